//! What a version lost of the packets that it was given lately.
//!
//! **Measures** segments that the kernel sent again, of those that it sent, over the last minute;
//! those that the peer reported as needless (RFC 2883) do not count. **Assumes** that the others
//! were lost, and that losses are independent. **Leans** up, by what a peer does not report; bursts
//! of loss make the truth lie outside of its bounds more often than one time in fifty.
//! **Published**: the bounds are Wilson's (1927), one-sided 99 %: they are looked at again and
//! again, and one look that errs is a needless switch.

use std::collections::VecDeque;

use netaware_io::tcp_info::TcpInfo;
use netaware_units::{Mono, Span};

#[derive(Debug, Clone, Default)]
pub(super) struct LossWindow {
    /// Rising in each figure.
    counted: VecDeque<Count>,
}

/// What the kernel had counted by then, segments.
#[derive(Debug, Clone, Copy)]
struct Count {
    at: Mono,
    sent: u64,
    again: u64,
    in_vain: u64,
}

/// Shares of the packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LossSeen {
    pub(super) share: f64,
    /// The truth is not likely to be outside of these.
    pub(super) bounds: [f64; 2],
}

impl LossWindow {
    pub(super) fn note(&mut self, now: Mono, info: &TcpInfo) {
        let count = Count {
            at: now,
            sent: info.segments_sent,
            again: info.retransmits,
            in_vain: info.resent_in_vain,
        };
        // Another connection, or a counter that has turned over.
        let fell =
            |last: &Count| count.sent < last.sent || count.again < last.again || count.in_vain < last.in_vain;
        if self.counted.back().is_some_and(fell) {
            self.counted.clear();
        }
        self.counted.push_back(count);
        while self.counted.get(1).is_some_and(|it| now - it.at >= LONGEST) || self.counted.len() > MOST {
            self.counted.pop_front();
        }
    }

    /// Nothing while there are too few packets to say anything.
    pub(super) fn seen(&self) -> Option<LossSeen> {
        let (from, to) = (self.counted.front()?, self.counted.back()?);
        let packets = to.sent - from.sent;
        let lost = (to.again - from.again).saturating_sub(to.in_vain - from.in_vain).min(packets);
        (packets >= LEAST).then(|| {
            let (lost, packets) = (lost as f64, packets as f64);
            LossSeen { share: lost / packets, bounds: wilson(lost, packets) }
        })
    }
}

fn wilson(lost: f64, packets: f64) -> [f64; 2] {
    let (share, z2) = (lost / packets, Z * Z);
    let scale = 1.0 + z2 / packets;
    let middle = (share + z2 / (2.0 * packets)) / scale;
    let half = Z * (share * (1.0 - share) / packets + z2 / (4.0 * packets * packets)).sqrt() / scale;
    [(middle - half).max(0.0), (middle + half).min(1.0)]
}

/// One lost of so many is half a percent, which is what media stream rules take for a difference.
const LEAST: u64 = 200;
const LONGEST: Span = Span::from_secs(60);
/// Counts are noted four times each second at most.
const MOST: usize = 256;
/// Of a normal distribution, one-sided 99 %.
const Z: f64 = 2.326;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Mono {
        Mono(1) + Span::from_secs(seconds)
    }

    fn info(segments_sent: u64, retransmits: u64) -> TcpInfo {
        TcpInfo { segments_sent, retransmits, ..TcpInfo::default() }
    }

    #[test]
    fn few_packets_say_nothing_and_many_leave_less_open() {
        let mut window = LossWindow::default();
        window.note(at(0), &info(1000, 50));
        window.note(at(1), &info(1199, 50));
        assert_eq!(window.seen(), None, "what was before does not count");
        window.note(at(2), &info(1400, 58));
        let few = window.seen().unwrap();
        assert!((few.share - 0.02).abs() < 1e-9, "{few:?}");
        // 8 of 400 by Wilson's formula, one-sided.
        assert!((few.bounds[0] - 0.0090).abs() < 5e-4 && (few.bounds[1] - 0.0439).abs() < 5e-4, "{few:?}");
        window.note(at(3), &info(5000, 130));
        let many = window.seen().unwrap();
        assert!(many.bounds[1] - many.bounds[0] < few.bounds[1] - few.bounds[0], "{many:?}");
    }

    #[test]
    fn what_was_sent_again_in_vain_was_not_lost() {
        let mut window = LossWindow::default();
        window.note(at(0), &info(0, 0));
        window.note(at(1), &TcpInfo { resent_in_vain: 30, ..info(1000, 40) });
        assert_eq!(window.seen().map(|it| it.share), Some(0.01));
    }

    #[test]
    fn no_loss_among_few_is_not_taken_for_none() {
        let mut window = LossWindow::default();
        window.note(at(0), &info(0, 0));
        window.note(at(1), &info(200, 0));
        let LossSeen { share, bounds } = window.seen().unwrap();
        assert!(share.abs() < 1e-12 && bounds[0].abs() < 1e-9 && bounds[1] > 0.012, "{bounds:?}");
    }

    #[test]
    fn an_older_minute_and_another_connection_count_no_more() {
        let mut window = LossWindow::default();
        for second in 0..200 {
            let lost = if second < 100 { second } else { 100 };
            window.note(at(second), &info(second.unsigned_abs() * 100, lost.unsigned_abs()));
        }
        assert_eq!(window.seen().map(|it| it.share), Some(0.0));
        window.note(at(200), &info(50, 1));
        assert_eq!(window.seen(), None);
        assert!(window.counted.len() <= MOST);
    }
}
