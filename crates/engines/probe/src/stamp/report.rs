//! Figures of a flow: for the record of a measurement, and as rows of a period for a fleet.
//!
//! **Biased**: delays are of packets that made both ways, so what only the way back lost has no
//! delay there either; the largest delays are cut off by patience. A delay that comes out negative
//! is no delay: it is counted, not averaged, so means near the bound lean high by less than the
//! bound.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use netaware_record::passive::{DelayRow, DelayStatistics, Period};
use netaware_record::{DelaySummary, IpVersion, OwdWay};
use netaware_units::{Span, Stamp};

use super::clock::ClockRelation;
use super::{LostRun, StampEvent, StampExchange};
use crate::outage::{self, Outages};
use crate::{hops, summary};

/// A reflector knows a sender by its address and port.
pub(super) const WHY_ANEW: &str = "it was started again, or it took the packets for those of another sender, because an \
                                   address translator on the path has forgotten the flow and given it another port";

/// Takes in the events of a flow, or of a part of it.
#[derive(Debug, Clone, Default)]
pub struct StampLog {
    exchanges: Vec<StampExchange>,
    lost: LostRunSum,
    not_sent: u64,
    late: u64,
    forward_copies: u64,
    reverse_copies: u64,
    restarts: u64,
    patience: Option<Span>,
    held: Held,
}

/// What the reflector did not answer while its program did not run.
#[derive(Debug, Clone, Default)]
struct Held {
    /// The longest that it held a packet.
    longest: Span,
    /// Packets that it held and answered, in time or late.
    answered: BTreeSet<u64>,
    /// The rows of losses that may be of it.
    runs: Vec<LostRun>,
}

#[derive(Debug, Clone, Copy, Default)]
struct LostRunSum {
    count: u64,
    forward: u64,
    reverse: u64,
}

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the reflector.
    Forward,
    /// From it.
    Reverse,
}

impl StampLog {
    /// How long answers were waited for, where that followed the path.
    pub fn patience(&self) -> Option<Span> {
        self.patience
    }

    /// Takes note.
    pub fn observe(&mut self, event: &StampEvent) {
        match event {
            StampEvent::Answered(exchange) => self.exchanges.push(*exchange),
            StampEvent::Lost(run) => self.add(run),
            StampEvent::NotSent { .. } => self.not_sent += 1,
            StampEvent::Late { .. } => self.late += 1,
            StampEvent::Copy { forward: true, .. } => self.forward_copies += 1,
            StampEvent::Copy { forward: false, .. } => self.reverse_copies += 1,
            StampEvent::Doubled { count } => self.forward_copies += count,
            StampEvent::Restarted => self.restarts += 1,
            StampEvent::Patience(patience) => self.patience = Some(*patience),
            StampEvent::HeldUp { seq, dwell } => {
                self.held.longest = self.held.longest.max(*dwell);
                // Copies of an answer are one answer.
                self.held.answered.insert(*seq);
            }
            StampEvent::Abandoned { .. } => {}
        }
    }

    fn add(&mut self, run: &LostRun) {
        self.lost.count += run.count;
        self.lost.forward += run.forward;
        self.lost.reverse += run.reverse;
        self.not_sent += run.not_sent;
        self.held.runs.extend((run.inside > 0).then_some(*run));
    }

    /// Lost packets that came to the reflector, or would have, while its program did not run: what
    /// it answered too late, and what is missing meanwhile.
    pub fn held_up(&self) -> u64 {
        let missing: u64 = self.held.runs.iter().map(|run| run.inside).sum();
        let is_of_run = |seq: &u64| self.held.runs.iter().any(|run| run.numbers().contains(seq));
        let in_time: BTreeSet<u64> = self.exchanges.iter().map(|exchange| exchange.seq).collect();
        missing + self.held.answered.difference(&in_time).filter(|seq| !is_of_run(seq)).count() as u64
    }

    /// What to warn of where the reflector held packets.
    pub fn held_up_in_words(&self) -> Option<String> {
        let longest = self.held.longest;
        let lost = match self.held_up() {
            _ if longest == Span::ZERO => return None,
            0 => String::new(),
            1 => "; one packet of that time was answered too late, or dropped there, and tells nothing of the path"
                .to_owned(),
            many => format!(
                "; {many} packets of that time were answered too late, or dropped there, and tell nothing of the path"
            ),
        };
        Some(format!(
            "the reflector held packets for up to {longest} before it answered them: its program did not run (it was \
             stopped or suspended, or had no CPU time); its answers left at once then, and may have waited for each \
             other{lost}"
        ))
    }

    /// In order of numbers.
    pub fn exchanges(&self) -> &[StampExchange] {
        &self.exchanges
    }

    /// How often the reflector began to count anew.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// What to warn of where it did.
    pub fn restarts_in_words(&self) -> Option<String> {
        let often = match self.restarts {
            0 => return None,
            1 => "once".to_owned(),
            often => format!("{often} times"),
        };
        Some(format!("the reflector began to count anew {often}: {WHY_ANEW}"))
    }

    /// Packets that left and have a verdict.
    pub fn sent(&self) -> u64 {
        self.exchanges.len() as u64 + self.lost.count
    }

    /// Outages between answers, of packets this far apart. `None` where some were not sent: they
    /// might be in the rows of those without an answer. Of `unknown` of the packets after the last
    /// answer nobody knows what became: they are in no outage, and nor are those that the path
    /// `rejected`.
    pub fn outages(&self, interval: Span, unknown: u64, rejected: &[RangeInclusive<u64>]) -> Option<Outages> {
        let (answered, followed) = self.not_lost(unknown)?;
        let answered = outage::and_rejected(&answered, followed, rejected);
        Some(Outages::between(answered, followed, interval))
    }

    /// How many lost packets the path `rejected`, apart from those of which nobody knows what
    /// became; zero where it is not known which were lost.
    pub fn rejected(&self, unknown: u64, rejected: &[RangeInclusive<u64>]) -> u64 {
        self.not_lost(unknown).map_or(0, |(answered, followed)| {
            let with = outage::and_rejected(&answered, followed, rejected);
            with.len().saturating_sub(answered.len()) as u64
        })
    }

    /// The numbers of packets that are not known to be lost, in order, and how many packets with a
    /// verdict there were. `None` where some were not sent.
    fn not_lost(&self, unknown: u64) -> Option<(Vec<u64>, u64)> {
        let mut answered: Vec<u64> = self.exchanges.iter().map(|exchange| exchange.seq).collect();
        // The path carried what the reflector held, and may have carried the rest.
        answered.extend(&self.held.answered);
        let mostly_held = self.held.runs.iter().filter(|run| run.inside.saturating_mul(2) >= run.count);
        answered.extend(mostly_held.flat_map(LostRun::numbers));
        answered.sort_unstable();
        answered.dedup();
        let followed = self.sent().saturating_sub(unknown);
        (self.not_sent == 0).then_some((answered, followed))
    }

    /// The worst stamps of ours; `None` without exchanges.
    pub fn worst_stamps(&self) -> Option<(Stamp, Span)> {
        let worst = self.exchanges.iter().flat_map(|it| [it.tx, it.rx]).min_by_key(|stamp| stamp.by)?;
        let error = self.exchanges.iter().map(|it| it.tx.error + it.rx.error).max()?;
        Some((worst, error))
    }

    /// Round trips without the reflector's time.
    pub fn rtt(&self) -> Option<DelaySummary> {
        summary::of_delays(&self.each(StampExchange::rtt))
    }

    /// Time inside the reflector.
    pub fn dwell(&self) -> Option<DelaySummary> {
        summary::of_delays(&self.each(StampExchange::dwell))
    }

    fn each(&self, of: impl Fn(&StampExchange) -> Span) -> Vec<Span> {
        self.exchanges.iter().map(of).collect()
    }

    fn delays(&self, way: Way, relation: &ClockRelation) -> Vec<Span> {
        match way {
            Way::Forward => self.each(|it| relation.forward(it)),
            Way::Reverse => self.each(|it| relation.reverse(it)),
        }
    }

    /// Absolute differences of delays of packets that follow each other.
    fn ipdv(&self, delays: &[Span]) -> Vec<Span> {
        let pairs = self.exchanges.windows(2).zip(delays.windows(2));
        pairs
            .filter(|(pair, _)| pair[1].seq == pair[0].seq + 1)
            .map(|(_, of)| (of[1] - of[0]).abs())
            .collect()
    }

    fn reordered(&self, way: Way) -> u64 {
        let is = |it: &&StampExchange| match way {
            Way::Forward => it.reordered_forward,
            Way::Reverse => it.reordered_reverse,
        };
        self.exchanges.iter().filter(is).count() as u64
    }

    fn copies(&self, way: Way) -> u64 {
        match way {
            Way::Forward => self.forward_copies,
            Way::Reverse => self.reverse_copies,
        }
    }

    /// Packets that were sent on a way, and those lost there.
    fn sent_and_lost(&self, way: Way) -> (u64, u64) {
        match way {
            Way::Forward => (self.sent(), self.lost.forward),
            // What was lost nobody knows where may have come as far as there.
            Way::Reverse => (self.sent() - self.lost.forward, self.lost.reverse),
        }
    }

    fn lost_somewhere(&self) -> u64 {
        self.lost.count - self.lost.forward - self.lost.reverse
    }

    /// One way as a record shows it.
    pub fn way(&self, way: Way, relation: Option<&ClockRelation>) -> OwdWay {
        let (sent, lost) = self.sent_and_lost(way);
        // What the reflector held up is lost on neither.
        let (held, somewhere) = (self.held_up(), self.lost_somewhere());
        let sent = sent.saturating_sub(held.min(somewhere));
        let known = somewhere <= held && sent > 0;
        let counted = OwdWay {
            lost,
            loss: known.then(|| lost as f64 / sent as f64),
            duplicates: self.copies(way),
            reordered: self.reordered(way),
            hops: self.hops(way),
            ..OwdWay::default()
        };
        let Some(relation) = relation else { return counted };
        let all = self.delays(way, relation);
        let delays: Vec<Span> = all.iter().copied().filter(|delay| *delay >= Span::ZERO).collect();
        let least = all.iter().min().copied().unwrap_or_default();
        OwdWay {
            delay: summary::of_delays(&delays),
            below_bound: all.iter().filter(|delay| **delay < relation.bound).count() as u64,
            negative: (all.len() - delays.len()) as u64,
            ipdv: summary::of_delays(&self.ipdv(&all)),
            // One delay alone does not vary.
            pdv: summary::of_delays(&all.iter().map(|delay| *delay - least).collect::<Vec<_>>())
                .filter(|variation| variation.count > 1),
            histogram: summary::histogram_of(&all),
            ..counted
        }
    }

    fn hops(&self, way: Way) -> Option<u8> {
        let last = self.exchanges.last()?;
        match way {
            // 255 is also what a reflector says that does not know.
            Way::Forward => Some(last.ttl_forward).filter(|ttl| *ttl != u8::MAX).and_then(hops::from_ttl),
            Way::Reverse => last.ttl_reverse.and_then(hops::from_ttl),
        }
    }

    /// One way as a row of a period. What was lost nobody knows where is `unobserved` on both.
    pub fn row(&self, way: Way, relation: Option<&ClockRelation>, about: &RowNames<'_>) -> DelayRow {
        let (packets, lost) = self.sent_and_lost(way);
        let unobserved = self.lost_somewhere();
        let all = relation.map(|relation| self.delays(way, relation)).unwrap_or_default();
        let delays: Vec<Span> = all.iter().copied().filter(|delay| *delay >= Span::ZERO).collect();
        let (from, to) = match way {
            Way::Forward => (about.here, about.there),
            Way::Reverse => (about.there, about.here),
        };
        let mut warnings = Vec::new();
        if relation.is_some_and(|relation| relation.contradicted) {
            warnings.push("both clocks say that they are synchronised, and cannot both be right".to_owned());
        }
        if relation.is_some_and(|relation| relation.stepped) {
            warnings.push("a clock was set in this period".to_owned());
        }
        warnings.extend(self.restarts_in_words());
        warnings.extend(self.held_up_in_words());
        DelayRow {
            from: from.to_owned(),
            to: to.to_owned(),
            version: Some(about.version),
            method: "active".to_owned(),
            packets,
            matched: packets - lost - unobserved,
            lost,
            unobserved,
            late: self.late,
            duplicates: self.copies(way),
            reordered: self.reordered(way),
            collisions: 0,
            given_up: 0,
            patience: self.patience.unwrap_or(about.patience),
            delay: statistics(&delays),
            ipdv: statistics(&self.ipdv(&all)),
            offset: relation
                .map_or(Span::ZERO, |it| if way == Way::Forward { it.offset } else { -it.offset }),
            clock_bound: relation.map(|relation| relation.bound),
            clock_method: relation.map_or("", |relation| relation.method.name()).to_owned(),
            below_bound: relation
                .map_or(0, |it| all.iter().filter(|delay| **delay < it.bound).count() as u64),
            warnings,
        }
    }
}

/// What a row says beside its figures.
#[derive(Debug, Clone, Copy)]
pub struct RowNames<'a> {
    /// This end.
    pub here: &'a str,
    /// The reflector.
    pub there: &'a str,
    /// Over which version.
    pub version: IpVersion,
    /// After how long a packet is lost.
    pub patience: Span,
}

/// Of a period, from when to when.
pub fn period_of(exchanges: &[StampExchange]) -> Option<Period> {
    let from = exchanges.iter().map(|it| it.sent_at).min()?;
    let until = exchanges.iter().map(|it| it.came_at).max()?;
    Some(Period { from, until })
}

fn statistics(delays: &[Span]) -> DelayStatistics {
    DelayStatistics {
        count: delays.len() as u64,
        min: delays.iter().min().copied().unwrap_or_default(),
        max: delays.iter().max().copied().unwrap_or_default(),
        sum_ns: delays.iter().map(|delay| i128::from(delay.0)).sum(),
        sum_squares: delays.iter().map(|delay| (delay.0 as f64).powi(2)).sum(),
        histogram: summary::histogram_of(delays).unwrap_or_default(),
    }
}
