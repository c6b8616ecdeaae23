//! Notices that a path has become slower while its hops are measured, and asks more slowly then.
//!
//! **Measures** by how much longer the last answer of a round of sizes waited than the first one:
//! probes that leave no faster than the path takes them wait for no longer at the end than at the
//! begin. A round that leaves within a time S and builds a queue of q leaves (S + q) / S times as
//! fast as the path carries it. **Assumes** that the queue is our own; that of others makes us slow
//! for nothing, until the next answers to large packets have shown how long these take.
//! **Published**: as self-induced congestion in Jain and Dovrolis, "End-to-end available
//! bandwidth", SIGCOMM 2002.

use netaware_units::Span;

use super::log::HopLog;
use super::method::{Asked, Hops};
use super::round::{Fate, Probe, RoundReport, Told};
use super::survey::{LEAST_GAP, MOST_GAP};

impl Hops {
    /// Reads a round of sizes: whether the path carried it as fast as it left.
    pub(super) fn note_slower(&mut self, asked: &[Asked], probes: &[Probe], report: &RoundReport) {
        let least: Vec<Option<Span>> =
            (1..=self.end).map(|ttl| Some(self.hop(ttl).rtt(self.plan.smallest)?.0)).collect();
        let stories: Vec<(Span, &Told)> = asked
            .iter()
            .zip(probes)
            .zip(&report.probes)
            .filter(|((asked, probe), told)| probe.awaited && self.is_dependable(**asked) && has_left(told))
            .filter_map(|((asked, probe), told)| {
                Some((self.undisturbed(&least, *asked, probe.length)?, told))
            })
            .collect();
        let (Some((_, first)), Some((base, last))) = (stories.first(), stories.last()) else { return };
        let sending = last.sent_at.since(first.sent_at);
        let wait = |base: Span, told: &Told| Some((told.rtt()? - base).or_zero());
        let Some(at_begin) = stories.iter().find_map(|(base, told)| wait(*base, told)) else { return };
        let tail = &stories[stories.len() * 3 / 4..];
        let silent = tail.iter().filter(|(_, told)| told.rtt().is_none()).count();
        let at_end = match wait(*base, last) {
            Some(wait) => wait,
            // One that is lost alone says nothing.
            None if silent >= MIN_SILENT && silent * 2 > tail.len() => self.patience - *base,
            None => return,
        };
        let grown = at_end - at_begin;
        if sending <= Span::ZERO || grown < (sending / 4).max(LEAST_GROWTH) {
            return;
        }
        self.slow_down((sending + grown).secs_f64() / sending.secs_f64(), at_end);
    }

    /// Reads a train: the next one is as long as the path needs a bearable time for.
    pub(super) fn note_slow_train(&mut self, nanos_per_byte: f64) {
        let each = Span((nanos_per_byte * f64::from(self.largest)) as i64);
        if each > self.serial.max(LEAST_GAP) * 2 {
            self.serial = each.min(MOST_GAP);
        }
    }

    /// Packets are further apart from now on by this factor, and the next one leaves after the
    /// queue. What large packets took before says nothing of the path as it is now.
    fn slow_down(&mut self, factor: f64, queue: Span) {
        let times = |span: Span| Span((span.nanos() as f64 * factor.min(MOST_FACTOR)) as i64);
        self.gap_before.get_or_insert(self.gap);
        self.gap = times(self.gap).min(MOST_GAP);
        self.serial = times(self.serial.max(LEAST_GAP)).min(MOST_GAP);
        self.queue = queue.min(MOST_QUEUE);
        self.logs.iter_mut().for_each(HopLog::forget_long);
    }

    /// Whether an answer that stays out is rather late than refused.
    fn is_dependable(&self, asked: Asked) -> bool {
        let hop = match asked {
            Asked::Hop { ttl } => ttl,
            Asked::Whole | Asked::Tail { .. } => return self.echo_answers(),
            _ => return false,
        };
        let log = self.hop(hop);
        !log.pace.limited && log.answered * 10 >= log.asked * 7
    }

    /// What an answer takes that waits for nobody.
    fn undisturbed(&self, least: &[Option<Span>], asked: Asked, length: u32) -> Option<Span> {
        let ttl = if let Asked::Hop { ttl } = asked { ttl } else { self.end };
        let small = (*least.get(usize::from(ttl).checked_sub(1)?)?)?;
        let beyond = f64::from(length.saturating_sub(self.plan.smallest));
        let room = f64::from(self.largest.saturating_sub(self.plan.smallest).max(1));
        Some(small + Span((self.serial.nanos() as f64 * beyond / room) as i64))
    }
}

fn has_left(told: &Told) -> bool {
    !matches!(told.fate, Fate::NotSent | Fate::TooBig(_))
}

/// Shorter than that, the wait of one packet says nothing: a host that was busy.
const LEAST_GROWTH: Span = Span::from_millis(20);
/// Answers that stay out at the end of a round.
const MIN_SILENT: usize = 3;
/// At a time; the next round says whether that was enough.
const MOST_FACTOR: f64 = 16.0;
/// How long it is waited for at most.
const MOST_QUEUE: Span = Span::from_secs(2);
