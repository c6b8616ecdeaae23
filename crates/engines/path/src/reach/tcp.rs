//! When a connection is tried, and what became of those that were.
//!
//! A SYN is answered by every host that is not behind a filter: by a SYN-ACK where somebody
//! listens, by a RST where nobody does (RFC 9293 §3.10.7.1). Opening it is the system's business,
//! or the simulator's; how often, how long, and whether it is worth it, is said here for both.

use netaware_units::{Mono, Span};

/// How a connection that was tried ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpAnswer {
    /// SYN-ACK, so long after the SYN.
    Accepted(Span),
    /// RST, so long after the SYN.
    Refused(Span),
    /// ICMP said why not.
    Unreachable,
    /// Nothing came in time.
    Silent,
    /// The SYN never left this host.
    NotSent,
}

/// Attempts to open a connection.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TcpTries {
    /// Tried.
    pub asked: u32,
    /// Answered by SYN-ACK.
    pub accepted: u32,
    /// Answered by RST.
    pub refused: u32,
    /// Answered by ICMP.
    pub unreachable: u32,
    /// Those whose SYN never left this host; not among the tried.
    pub not_sent: u32,
    /// From SYN to SYN-ACK or RST, in order.
    pub rtts: Vec<Span>,
    /// The longest that an answer was waited for.
    pub waited: Span,
    /// When the last was tried.
    asked_at: Option<Mono>,
}

impl TcpTries {
    /// Answered by the host itself.
    pub fn answered(&self) -> u32 {
        self.accepted + self.refused
    }

    /// Tried, without an answer of the host itself.
    pub fn unanswered(&self) -> u32 {
        self.asked - self.answered()
    }

    /// How long to wait for an answer, at most `patience`, if it is time for one more; `left` of
    /// all the time.
    pub fn due(&self, now: Mono, left: Span, patience: Span) -> Option<Span> {
        let left = left - MARGIN;
        let is_time = self.asked_at.is_none_or(|at| now.since(at) >= EVERY);
        // Who never answers costs the patience each time.
        let is_worth_it = self.asked + self.not_sent < SILENT_TRIES || self.answered() > 0;
        (is_time && is_worth_it && left > MARGIN).then(|| left.min(patience))
    }

    /// One was tried at `now`, and ended so.
    pub fn take(&mut self, now: Mono, answer: TcpAnswer) {
        self.asked += u32::from(answer != TcpAnswer::NotSent);
        self.asked_at = Some(now);
        match answer {
            TcpAnswer::Accepted(rtt) => {
                self.accepted += 1;
                self.rtts.push(rtt);
            }
            TcpAnswer::Refused(rtt) => {
                self.refused += 1;
                self.rtts.push(rtt);
            }
            TcpAnswer::Unreachable => self.unreachable += 1,
            TcpAnswer::Silent => {}
            TcpAnswer::NotSent => self.not_sent += 1,
        }
    }
}

const EVERY: Span = Span::from_millis(250);
const MARGIN: Span = Span::from_millis(50);
const SILENT_TRIES: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Span = Span::from_secs(1);
    const PATIENCE: Span = SECOND;

    #[test]
    fn one_is_tried_four_times_a_second_and_none_that_the_time_would_cut_off() {
        let mut tries = TcpTries::default();
        assert_eq!(tries.due(Mono(0), SECOND * 5, PATIENCE), Some(PATIENCE));
        tries.take(Mono(0), TcpAnswer::Refused(Span::from_millis(3)));
        assert_eq!(tries.due(Mono(0) + Span::from_millis(249), SECOND * 5, PATIENCE), None);
        assert_eq!(
            tries.due(Mono(0) + Span::from_millis(250), SECOND, PATIENCE),
            Some(Span::from_millis(950))
        );
        assert_eq!(tries.due(Mono(0) + SECOND, Span::from_millis(100), PATIENCE), None);
        assert_eq!((tries.asked, tries.answered(), tries.refused), (1, 1, 1));
    }

    #[test]
    fn each_end_of_a_connection_is_counted_as_what_it_is() {
        let mut tries = TcpTries::default();
        let ends = [
            TcpAnswer::Accepted(Span(5)),
            TcpAnswer::Unreachable,
            TcpAnswer::Refused(Span(3)),
            TcpAnswer::Silent,
            TcpAnswer::Accepted(Span(4)),
            TcpAnswer::NotSent,
        ];
        for (second, end) in (1..).zip(ends) {
            tries.take(Mono(second), end);
        }
        let want = TcpTries {
            asked: 5,
            accepted: 2,
            refused: 1,
            unreachable: 1,
            not_sent: 1,
            rtts: vec![Span(5), Span(3), Span(4)],
            waited: Span::ZERO,
            asked_at: Some(Mono(6)),
        };
        assert_eq!((tries.answered(), tries), (3, want));
    }

    #[test]
    fn a_port_that_never_answers_is_tried_twice_and_one_that_has_answered_for_ever() {
        let tried = |first: TcpAnswer| {
            let mut tries = TcpTries::default();
            tries.take(Mono(0), first);
            (1..20).for_each(|n| {
                let now = Mono(0) + SECOND * n;
                if tries.due(now, SECOND * 60, PATIENCE).is_some() {
                    tries.take(now, TcpAnswer::Silent);
                }
            });
            tries.asked
        };
        assert_eq!((tried(TcpAnswer::Silent), tried(TcpAnswer::Unreachable)), (2, 2));
        assert_eq!(tried(TcpAnswer::Accepted(SECOND)), 20);
    }
}
