//! What each change of the IP version gained.
//!
//! **Measures** the rate at which the receiver acknowledged bytes in the [`LOOK`] before a switch
//! and in the [`LOOK`] after it was complete, and the longest time without any acknowledgement from
//! its beginning until [`CALM`] after it was complete. **Assumes** that the sender always had
//! something to send. **Leans**: an acknowledgement is held back for 20 ms at most, so a stall is
//! right to about that, and too long where the disk of either end stalled. A rate of less than
//! [`LEAST`] is none. **Published** nowhere: it is arithmetic over the stream's own events.

use std::collections::VecDeque;

use netaware_dual::Reason;
use netaware_record::IpVersion;
use netaware_units::{BitRate, ByteCount, Mono, Span};

/// A change of the IP version, and what it brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// When it began, from the beginning of the transfer.
    pub at: Span,
    /// Before.
    pub from: IpVersion,
    /// After.
    pub to: IpVersion,
    /// Who wanted it.
    pub reason: Reason,
    /// Goodput before, where it was seen for long enough.
    pub before: Option<BitRate>,
    /// Goodput after.
    pub after: Option<BitRate>,
    /// Until the receiver had every byte that went the old way; unknown where the transfer ended
    /// before.
    pub took: Option<Span>,
    /// The longest time without an acknowledgement around it.
    pub stalled: Span,
}

/// Follows the acknowledgements of a transfer.
#[derive(Debug)]
pub(crate) struct Gains {
    began_at: Mono,
    /// Rising, of the present stream and way.
    seen: VecDeque<(Mono, u64)>,
    open: Option<Open>,
    done: Vec<Switch>,
}

#[derive(Debug)]
struct Open {
    switch: Switch,
    began_at: Mono,
    /// With what was acknowledged then.
    turned: Option<(Mono, u64)>,
    last_rise_at: Mono,
}

impl Gains {
    pub(crate) fn new(now: Mono) -> Self {
        Self { began_at: now, seen: VecDeque::new(), open: None, done: Vec::new() }
    }

    /// So much is acknowledged now.
    pub(crate) fn observe(&mut self, now: Mono, acked: u64) {
        let risen = self.seen.back().is_none_or(|(_, last)| *last < acked);
        if let Some(open) = &mut self.open {
            let calm = open.turned.is_some_and(|(at, _)| now - at > CALM);
            if !calm {
                open.switch.stalled = open.switch.stalled.max(now - open.last_rise_at);
            }
            if risen {
                open.last_rise_at = now;
            }
        }
        let fits = self.seen.back().is_none_or(|(at, _)| now - *at >= FINE);
        if risen && fits {
            self.seen.push_back((now, acked));
        }
        while self.seen.get(1).is_some_and(|(at, _)| now - *at >= LOOK) {
            self.seen.pop_front();
        }
        let over = |open: &Open| open.turned.is_some_and(|(at, _)| now - at >= LOOK);
        if self.open.as_ref().is_some_and(over) {
            self.close(now, acked);
        }
    }

    /// What was acknowledged lately.
    pub(crate) fn rate(&self, now: Mono, acked: u64) -> Option<BitRate> {
        self.seen.front().and_then(|first| rate(*first, (now, acked)))
    }

    /// This end's bytes go another way from now on.
    pub(crate) fn turning(&mut self, at: Mono, acked: u64, from: IpVersion, to: IpVersion, reason: Reason) {
        self.close(at, acked);
        let before = self.seen.front().and_then(|first| rate(*first, (at, acked)));
        let switch = Switch {
            at: (at - self.began_at).or_zero(),
            from,
            to,
            reason,
            before,
            after: None,
            took: None,
            stalled: Span::ZERO,
        };
        // A way that died had stalled before it was left.
        let last_rise_at = self.seen.back().map_or(at, |(risen_at, _)| (*risen_at).min(at));
        self.open = Some(Open { switch, began_at: at, turned: None, last_rise_at });
        self.seen.clear();
    }

    /// The receiver has everything that went the old way.
    pub(crate) fn turned(&mut self, at: Mono, acked: u64) {
        if let Some(open) = self.open.as_mut().filter(|open| open.turned.is_none()) {
            open.turned = Some((at, acked));
            open.switch.took = Some((at - open.began_at).or_zero());
        }
    }

    /// Nothing more comes over the present stream.
    pub(crate) fn close(&mut self, now: Mono, acked: u64) {
        if let Some(mut open) = self.open.take() {
            open.switch.after = open.turned.and_then(|turned| rate(turned, (now, acked)));
            self.done.push(open.switch);
        }
    }

    /// The stream has ended; over the next one counting begins anew.
    pub(crate) fn restart(&mut self, now: Mono, acked: u64) {
        self.close(now, acked);
        self.seen.clear();
    }

    /// Those that are complete since the last call; of very many the first ones.
    pub(crate) fn take(&mut self) -> Vec<Switch> {
        std::mem::take(&mut self.done)
    }
}

fn rate(from: (Mono, u64), to: (Mono, u64)) -> Option<BitRate> {
    let span = to.0 - from.0;
    BitRate::mean(ByteCount(to.1.saturating_sub(from.1)), span).filter(|_| span >= LEAST)
}

/// Before and after.
const LOOK: Span = Span::from_secs(3);
/// Of a rate.
const LEAST: Span = Span::from_millis(200);
/// After a switch is complete, for what follows from it.
const CALM: Span = Span::from_secs(1);
/// Between two points of which the rate is drawn.
const FINE: Span = Span::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    const BEGAN: Mono = Mono(1_000_000_000);

    fn at(millis: i64) -> Mono {
        BEGAN + Span::from_millis(millis)
    }

    /// 1 MB/s until 5 s, nothing for 300 ms, then 2 MB/s.
    fn acked(millis: i64) -> u64 {
        let millis = millis.unsigned_abs();
        match millis {
            0..=5000 => millis * 1000,
            5001..=5300 => 5_000_000,
            _ => 5_000_000 + (millis - 5300) * 2000,
        }
    }

    fn run(until: i64, turned_at: Option<i64>) -> Vec<Switch> {
        let mut gains = Gains::new(BEGAN);
        for millis in (0..=until).step_by(5) {
            gains.observe(at(millis), acked(millis));
            if millis == 5000 {
                gains.turning(at(millis), acked(millis), IpVersion::V4, IpVersion::V6, Reason::OwnWish);
            }
            if Some(millis) == turned_at {
                gains.turned(at(millis), acked(millis));
            }
        }
        gains.close(at(until), acked(until));
        gains.take()
    }

    #[test]
    fn a_switch_tells_both_rates_its_time_and_its_stall() {
        let [switch] = run(9000, Some(5300))[..] else { panic!("one switch") };
        assert_eq!(switch.at, Span::from_secs(5));
        assert_eq!((switch.before, switch.after), (Some(BitRate(8_000_000)), Some(BitRate(16_000_000))));
        assert_eq!(switch.took, Some(Span::from_millis(300)));
        let error = (switch.stalled - Span::from_millis(300)).abs();
        assert!(error <= Span::from_millis(10), "{}", switch.stalled);
    }

    #[test]
    fn what_was_not_seen_for_long_enough_is_no_rate() {
        let [switch] = run(5400, Some(5300))[..] else { panic!("one switch") };
        assert_eq!(switch.after, None);
        let [switch] = run(5400, None)[..] else { panic!("one switch") };
        assert_eq!((switch.took, switch.after), (None, None));
    }
}
