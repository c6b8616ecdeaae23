//! A train that has passed: how long it took to leave, how long to arrive, and what came between.
//!
//! **Assumes** that both clocks run evenly during one train; their offset cancels. **Ends**: under interrupt coalescing an
//! arrival is stamped when its batch is handed over. The last packet of a batch waited least, less than one gap, so a
//! batched train is measured between last packets; the train's very last batch is left out, for nothing follows that would
//! show where it ended. **Sends**: a train that its sender interrupted is cut there, and the longest piece counts.
//! **Published**: whole-train means after Jacobsson et al. (IFAC 2005); last of batch and splitting after Jain and Dovrolis
//! (PAM 2002); spikes after Yin and Kaur (2014).

use netaware_units::Span;

use crate::{Gaps, Train, TrainReport};

/// A packet that left and arrived, in order.
#[derive(Debug, Clone, Copy)]
struct Point {
    number: u32,
    /// ns of the sender's clock.
    sent: i64,
    /// ns of the receiver's clock.
    at: i64,
}

/// What became of a train, as far as it can be used.
#[derive(Debug, Clone)]
pub(crate) struct Passage {
    /// Bits of one packet.
    bits: f64,
    points: Vec<Point>,
    /// Indexes of the last packets of batches, the train's last batch apart; empty unless arrivals are batched.
    ends: Vec<usize>,
    batched: bool,
    /// Packets that left, by number, within the piece: for counting what left between two.
    left: Vec<u32>,
    /// Packets that left.
    pub(crate) sent: u32,
    /// Packets that arrived.
    pub(crate) arrived: u32,
    /// Packets that arrived behind one that left later.
    pub(crate) reordered: u32,
    /// The sender paused in mid-train.
    pub(crate) interrupted: bool,
}

/// How a train was stretched between two of its packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Dispersion {
    /// ns from the first to the last at the sender.
    pub(crate) sent_ns: f64,
    /// The same at the receiver.
    pub(crate) received_ns: f64,
    /// Bits that left meanwhile, the first packet's apart.
    pub(crate) bits: f64,
    /// Share of these that did not arrive.
    pub(crate) lost: f64,
    /// Packets between.
    pub(crate) packets: f64,
}

/// A part of a train.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Segment {
    /// ns from its first to its last packet at the sender.
    pub(crate) sent_ns: f64,
    /// The same at the receiver; may be nothing, and less where clocks are read badly.
    pub(crate) received_ns: f64,
    /// Bits that left meanwhile, the first packet's apart.
    pub(crate) bits: f64,
    /// Delay of its first packet over that of the train's first, ns.
    pub(crate) delay: f64,
}

/// Batches of arrivals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Batches {
    /// From batch to batch, median.
    pub(crate) period: Span,
    /// Packets of one, on average.
    pub(crate) size: f64,
}

/// Why a train has no dispersion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// Too little of it arrived.
    Lost,
    /// It was too short for how the receiver hands arrivals over.
    TooShort,
}

impl Passage {
    /// Reads a report. Numbers and times that cannot be are left out.
    pub(crate) fn of(train: &Train, report: &TrainReport) -> Self {
        let sent = report.sent.iter().flatten().count() as u32;
        let mut points = Vec::with_capacity(report.arrivals.len());
        let (mut highest, mut reordered, mut arrived) = (None, 0, 0);
        for arrival in &report.arrivals {
            let Some(Some(left)) = report.sent.get(arrival.number as usize) else { continue };
            arrived += 1;
            if highest.is_some_and(|highest| arrival.number <= highest) {
                reordered += 1;
            } else {
                highest = Some(arrival.number);
                points.push(Point { number: arrival.number, sent: *left, at: arrival.at });
            }
        }
        let piece = longest_piece(&points, longest_gap(train));
        let interrupted = piece.len() < points.len();
        let points = piece.to_vec();
        let (batched, ends) = batch_ends(&points);
        let left = report.sent.iter().scan(0, |sum, packet| {
            *sum += u32::from(packet.is_some());
            Some(*sum)
        });
        let left = left.collect();
        let bits = f64::from(train.length) * 8.0;
        Self { bits, points, ends, batched, left, sent, arrived, reordered, interrupted }
    }

    /// Share of what left that never arrived, 0..=1; 1 if nothing left.
    pub(crate) fn lost(&self) -> f64 {
        1.0 - f64::from(self.arrived.min(self.sent)) / f64::from(self.sent.max(1))
    }

    /// How the train was stretched behind its first `skip` (0..1), in which a queue may still have run empty.
    pub(crate) fn dispersion(&self, skip: f64) -> Result<Dispersion, Unusable> {
        if self.points.len() < FEWEST {
            return Err(Unusable::Lost);
        }
        let from = (self.points.len() as f64 * skip) as usize;
        let (first, last) = if self.batched {
            let behind = self.ends.partition_point(|end| *end < from);
            let ends = self.ends.get(behind..).unwrap_or_default();
            let (Some(first), Some(last)) = (ends.first(), ends.last()) else { return Err(Unusable::TooShort) };
            if ends.len() < FEWEST_BATCHES {
                return Err(Unusable::TooShort);
            }
            (*first, *last)
        } else {
            (from, self.points.len() - 1)
        };
        self.between(first, last)
    }

    /// Between two points by index. What arrives much faster than it left was held back together on the way.
    fn between(&self, first: usize, last: usize) -> Result<Dispersion, Unusable> {
        let (Some(a), Some(b)) = (self.points.get(first), self.points.get(last)) else {
            return Err(Unusable::Lost);
        };
        let count = |number: u32| self.left.get(number as usize).copied().unwrap_or(0);
        let packets = f64::from(count(b.number).saturating_sub(count(a.number)));
        let found = Dispersion {
            sent_ns: ns(b.sent, a.sent),
            received_ns: ns(b.at, a.at),
            bits: packets * self.bits,
            lost: 1.0 - (last - first) as f64 / packets.max(1.0),
            packets,
        };
        let sound = packets >= 2.0 && found.sent_ns > 0.0 && found.received_ns > 0.0;
        if !sound {
            return Err(Unusable::Lost);
        }
        if found.received_ns < COMPRESSED * found.sent_ns { Err(Unusable::TooShort) } else { Ok(found) }
    }

    /// Between the packets of these numbers, or the batch ends next to them, each with the one before it; `None` where there
    /// is no such pair. Short ones are noisy: nothing is left out for being compressed.
    pub(crate) fn segments(&self, numbers: &[u32]) -> Vec<Option<Segment>> {
        let marks: Vec<Point> = if self.batched {
            self.ends.iter().filter_map(|end| self.points.get(*end)).copied().collect()
        } else {
            self.points.clone()
        };
        let near = |number: u32| {
            let at = marks.partition_point(|point| point.number < number);
            let around = [at.checked_sub(1), Some(at)].into_iter().flatten();
            around.filter_map(|at| marks.get(at)).min_by_key(|point| point.number.abs_diff(number)).copied()
        };
        let origin = self.points.first();
        let segment = |pair: &[u32]| {
            let (a, b, origin) = (near(pair[0])?, near(pair[1])?, origin?);
            let sent_ns = ns(b.sent, a.sent);
            let delay = ns(a.at, origin.at) - ns(a.sent, origin.sent);
            let far = a.number.abs_diff(pair[0]).max(b.number.abs_diff(pair[1]));
            let sound = b.number > a.number && sent_ns > 0.0 && far * 2 <= pair[1].abs_diff(pair[0]);
            let bits = f64::from(b.number.abs_diff(a.number)) * self.bits;
            sound.then(|| Segment { sent_ns, received_ns: ns(b.at, a.at), bits, delay })
        };
        numbers.windows(2).map(segment).collect()
    }

    /// Delays over the first packet's, ns: of all packets, or of the last ones of batches.
    pub(crate) fn delays(&self) -> Vec<f64> {
        let Some(origin) = self.points.first() else { return Vec::new() };
        let delay = |point: &Point| ns(point.at, origin.at) - ns(point.sent, origin.sent);
        if self.batched {
            self.ends.iter().filter_map(|end| self.points.get(*end)).map(delay).collect()
        } else {
            self.points.iter().map(delay).collect()
        }
    }

    /// Least difference of the two clocks over the first quarter, ns: what the path takes before this train fills it.
    pub(crate) fn level(&self) -> Option<i128> {
        let first = self.points.get(..self.points.len().div_ceil(4))?;
        first.iter().map(|point| i128::from(point.at) - i128::from(point.sent)).min()
    }

    /// Whether arrivals come in batches, and in which.
    pub(crate) fn batches(&self) -> Option<Batches> {
        if !self.batched || self.ends.len() < 2 {
            return None;
        }
        let stamps: Vec<i64> =
            self.ends.iter().filter_map(|end| self.points.get(*end)).map(|point| point.at).collect();
        let gaps: Vec<f64> = stamps.windows(2).map(|pair| ns(pair[1], pair[0])).collect();
        let period = netaware_stats::quantile::median(&gaps)?;
        let inside = self.ends.last()?.saturating_sub(*self.ends.first()?);
        Some(Batches { period: Span(period as i64), size: inside as f64 / gaps.len() as f64 })
    }

    /// Whether arrivals come in batches.
    pub(crate) fn is_batched(&self) -> bool {
        self.batched
    }

    /// Packets of the longest piece.
    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }
}

impl Dispersion {
    /// bit/s as sent.
    pub(crate) fn rate(&self) -> f64 {
        self.bits / self.sent_ns * 1e9
    }

    /// bit/s as received, the lost ones not counted.
    pub(crate) fn received_rate(&self) -> f64 {
        self.bits * (1.0 - self.lost) / self.received_ns * 1e9
    }

    /// Sent over received rate, 1 for a train that passed as it was sent. A few lost packets were in the queue all the same
    /// and do not count; where more are lost, a policer or a full queue takes what the train has too much.
    pub(crate) fn stretch(&self) -> f64 {
        let taken = (self.lost - STRAY_LOSS).max(0.0);
        self.received_ns / self.sent_ns / (1.0 - taken).max(0.01)
    }
}

/// `later - earlier`; no stamps overflow it.
fn ns(later: i64, earlier: i64) -> f64 {
    (i128::from(later) - i128::from(earlier)) as f64
}

/// A sender's gap beyond this interrupts the train, ns: twice the plan, and 1 ms or a twentieth of the train above it.
fn longest_gap(train: &Train) -> f64 {
    let gap = |ps: u64| ps as f64 / 1000.0;
    match &train.gaps {
        Gaps::Even(ps) => {
            let all = gap(*ps) * f64::from(train.packets);
            (2.0 * gap(*ps)).max(gap(*ps) + (all / 20.0).clamp(1_000.0, 1e6))
        }
        Gaps::Each(each) => 2.0 * gap(each.iter().copied().max().unwrap_or(0)) + 1_000.0,
        // The plan has no gap to compare with.
        Gaps::BackToBack => 1e6,
    }
}

fn longest_piece(points: &[Point], longest_gap: f64) -> &[Point] {
    // Packets that were lost in between make a gap of several.
    let joined = |a: &Point, b: &Point| {
        let steps = f64::from(b.number.abs_diff(a.number).max(1));
        ns(b.sent, a.sent) <= longest_gap * steps
    };
    points.chunk_by(joined).max_by_key(|piece| piece.len()).unwrap_or_default()
}

/// Whether a third of the gaps are a quarter of the mean gap at most, and then where batches end.
fn batch_ends(points: &[Point]) -> (bool, Vec<usize>) {
    let gaps: Vec<f64> = points.windows(2).map(|pair| ns(pair[1].at, pair[0].at)).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len().max(1) as f64;
    let tiny = gaps.iter().filter(|gap| **gap <= mean / 4.0).count();
    if gaps.len() < FEWEST || tiny * 3 < gaps.len() {
        return (false, Vec::new());
    }
    let ends = gaps.iter().enumerate().filter(|(_, gap)| **gap > mean / 2.0);
    (true, ends.map(|(index, _)| index).collect())
}

/// Fewer packets are no train.
const FEWEST: usize = 4;
/// Fewer batch ends leave an error of a gap in too few.
const FEWEST_BATCHES: usize = 5;
/// A train that arrives in less than this share of its time was handed over as one.
const COMPRESSED: f64 = 0.8;
/// Loss up to this share does not stretch a train.
const STRAY_LOSS: f64 = 0.02;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arrival;

    const GAP: i64 = 12_000;

    fn train(packets: u32) -> Train {
        Train { packets, length: 1500, gaps: Gaps::Even(12_000_000), rest: Span::ZERO }
    }

    /// Sent every 12 us, arriving `stretch` times slower, by a clock that is far off.
    fn report(packets: u32, stretch: f64) -> TrainReport {
        let arrival = |number: u32| Arrival {
            number,
            at: 7_000_000_000_000 + (f64::from(number) * 12_000.0 * stretch) as i64,
        };
        TrainReport {
            sent: (0..i64::from(packets)).map(|number| Some(number * GAP)).collect(),
            arrivals: (0..packets).map(arrival).collect(),
        }
    }

    #[test]
    fn rate_and_stretch_are_those_of_the_stamps() {
        let found = Passage::of(&train(100), &report(100, 1.25)).dispersion(0.25).unwrap();
        assert!((found.rate() - 1e9).abs() < 1.0, "{found:?}");
        assert!((found.stretch() - 1.25).abs() < 1e-3);
        assert!((found.received_rate() - 8e8).abs() < 1e6);
    }

    #[test]
    fn batches_cost_less_than_one_gap_at_each_end() {
        let mut batched = report(400, 1.1);
        for arrival in &mut batched.arrivals {
            arrival.at = (arrival.at / 250_000 + 1) * 250_000 + i64::from(arrival.number) % 7;
        }
        let passage = Passage::of(&train(400), &batched);
        let found = passage.dispersion(0.25).unwrap();
        assert!((found.stretch() - 1.1).abs() < 2.0 * 1.1 / 300.0, "{}", found.stretch());
        let batches = passage.batches().unwrap();
        assert!((batches.period.micros_f64() - 250.0).abs() < 1.0 && (batches.size - 19.0).abs() < 0.5);
    }

    #[test]
    fn a_train_within_one_batch_is_too_short() {
        let mut at_once = report(30, 1.0);
        for arrival in &mut at_once.arrivals {
            arrival.at = 5_000 + i64::from(arrival.number);
        }
        assert_eq!(Passage::of(&train(30), &at_once).dispersion(0.0), Err(Unusable::TooShort));
    }

    #[test]
    fn an_interrupted_train_is_its_longest_piece() {
        let mut late = report(100, 1.0);
        for number in 30..100 {
            late.sent[number] = late.sent[number].map(|at| at + 900_000);
            late.arrivals[number].at += 900_000;
        }
        let passage = Passage::of(&train(100), &late);
        assert!(passage.interrupted);
        assert_eq!(passage.len(), 70);
        assert!((passage.dispersion(0.0).unwrap().rate() - 1e9).abs() < 1.0);
    }

    #[test]
    fn what_a_policer_takes_counts_as_stretch_and_stray_loss_does_not() {
        let mut policed = report(200, 1.0);
        policed.arrivals.retain(|arrival| arrival.number % 2 == 0);
        let found = Passage::of(&train(200), &policed).dispersion(0.0).unwrap();
        assert!(found.stretch() > 1.8, "{}", found.stretch());
        let mut stray = report(200, 1.0);
        stray.arrivals.remove(77);
        assert!((Passage::of(&train(200), &stray).dispersion(0.0).unwrap().stretch() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn late_packets_are_counted_and_not_used() {
        let mut swapped = report(50, 1.0);
        swapped.arrivals.swap(10, 11);
        let passage = Passage::of(&train(50), &swapped);
        assert_eq!((passage.reordered, passage.arrived, passage.len()), (1, 50, 49));
    }

    #[test]
    fn nonsense_is_survived() {
        let wild = TrainReport {
            sent: vec![Some(i64::MAX), Some(i64::MIN), None, Some(0), Some(5), Some(6)],
            arrivals: (0..9).map(|number| Arrival { number, at: i64::MIN + i64::from(number) }).collect(),
        };
        let passage = Passage::of(&train(6), &wild);
        assert!(passage.dispersion(0.0).is_err());
        assert!(passage.segments(&[0, 2, 5, 9]).len() == 3 && passage.delays().len() <= 6);
        let nothing = Passage::of(&train(6), &TrainReport::default());
        assert!((nothing.lost() - 1.0).abs() < 1e-9 && nothing.level().is_none());
    }
}
