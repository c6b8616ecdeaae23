//! Chooses how to wait for a datagram.
//!
//! A blocking `recvmsg` is the cheapest way (one call, one wake-up), but its timeout
//! (`SO_RCVTIMEO`) counts jiffies and may overshoot by two of them, 20 ms with HZ=100. So it serves
//! while the deadline is far, and `ppoll`, exact but dearer by 0.8 us, bridges the rest.

use netaware_units::{Mono, Span};

/// What to do next while waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Block in `recvmsg` with this timeout, which may wake early but never past the deadline.
    Block(Span),
    /// `ppoll` for this long.
    Poll(Span),
    /// The deadline has come.
    Over,
}

/// `timeout` is what the socket is set to now: it is kept while it serves, because changing it
/// costs a system call.
pub(super) fn choose(now: Mono, until: Option<Mono>, timeout: Span) -> Wait {
    let Some(until) = until else {
        return Wait::Block(if timeout >= IDLE_TIMEOUT { timeout } else { IDLE_TIMEOUT });
    };
    let left = until.since(now);
    if left <= Span::ZERO {
        Wait::Over
    } else if left < BLOCK_FROM {
        Wait::Poll(left)
    } else if timeout >= left / 4 && timeout + OVERSHOOT <= left {
        Wait::Block(timeout)
    } else {
        Wait::Block((left / 2).min(IDLE_TIMEOUT))
    }
}

/// Two jiffies of the slowest kernel.
const OVERSHOOT: Span = Span::from_millis(20);
/// Half of this, and the overshoot, still end before the deadline.
const BLOCK_FROM: Span = Span::from_millis(40);
/// Without a deadline there is nothing to wake for; it is finite so that the kernel's arithmetic
/// stays simple.
const IDLE_TIMEOUT: Span = Span::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_never_ends_past_its_deadline() {
        let ms = Span::from_millis;
        let rows = [
            (1, Some(0), 0, Wait::Over),
            (2, Some(1), 500, Wait::Poll(ms(1))),
            (3, Some(39), 1, Wait::Poll(ms(39))),
            (4, Some(40), 0, Wait::Block(ms(20))),
            (5, Some(50), 25, Wait::Block(ms(25))),
            (6, Some(49), 25, Wait::Block(ms(25))),
            (7, Some(50), 31, Wait::Block(ms(25))),
            (8, Some(1_000), 25, Wait::Block(ms(500))),
            (9, Some(500_000), 0, Wait::Block(IDLE_TIMEOUT)),
            (10, None, 25, Wait::Block(IDLE_TIMEOUT)),
        ];
        let now = Mono(7_000_000_000);
        for (row, left, timeout, want) in rows {
            let until = left.map(|left| now + ms(left));
            assert_eq!(choose(now, until, ms(timeout)), want, "row {row}");
        }
    }

    #[test]
    fn a_timeout_once_set_serves_the_next_waits() {
        let now = Mono(1_000_000_000);
        let until = Some(now + Span::from_millis(50));
        let Wait::Block(timeout) = choose(now, until, Span::ZERO) else { panic!("far enough to block") };
        for late in [0, 1_000, 100_000, 2_000_000] {
            assert_eq!(choose(now + Span(late), until, timeout), Wait::Block(timeout));
        }
    }
}
