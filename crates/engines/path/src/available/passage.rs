//! A train that has passed: how long it took to leave, how long to arrive, and what came between.
//!
//! **Assumes** that both clocks run evenly during one train; their offset cancels. **Ends**: under
//! interrupt coalescing an arrival is stamped when its batch is handed over. First packets of
//! batches all waited as long, so a batched train is measured from one batch's begin to another's;
//! last packets waited least, so delays are theirs. A card whose timer runs free makes either wrong
//! by up to one gap. **Sends**: a train that its sender interrupted is cut there, and the longest
//! piece counts. **Published**: whole-train means after Jacobsson et al. (IFAC 2005); last of batch
//! and splitting after Jain and Dovrolis (PAM 2002).

mod handed;
#[cfg(test)]
mod tests;

use crate::batching::{Batching, smooth};
use crate::{Gaps, Train, TrainReport};

use handed::{Handed, handed};

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
    handed: Handed,
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
        let handed = handed(&points);
        let left = report.sent.iter().scan(0, |sum, packet| {
            *sum += u32::from(packet.is_some());
            Some(*sum)
        });
        let left = left.collect();
        let bits = f64::from(train.length) * 8.0;
        Self { bits, points, handed, left, sent, arrived, reordered, interrupted }
    }

    /// Bytes of one packet.
    pub(crate) fn length(&self) -> u32 {
        (self.bits / 8.0) as u32
    }

    /// Share of what left that never arrived, 0..=1; 1 if nothing left.
    pub(crate) fn lost(&self) -> f64 {
        1.0 - f64::from(self.arrived.min(self.sent)) / f64::from(self.sent.max(1))
    }

    /// How the train was stretched behind its first `skip` (0..1), in which a queue may still have
    /// run empty.
    pub(crate) fn dispersion(&self, skip: f64) -> Result<Dispersion, Unusable> {
        if self.points.len() < FEWEST {
            return Err(Unusable::Lost);
        }
        let from = (self.points.len() as f64 * skip) as usize;
        let (first, last) = match &self.handed {
            Handed::Singly => (from, self.points.len() - 1),
            Handed::InFew => return Err(Unusable::TooShort),
            Handed::Batched(_, ends) => {
                let ends = ends.get(ends.partition_point(|end| *end < from)..).unwrap_or_default();
                // From first packet to first packet of a batch. The last batch may have waited for
                // more to come.
                let [first, .., last, _] = ends else { return Err(Unusable::TooShort) };
                if ends.len() <= FEWEST_BATCHES {
                    return Err(Unusable::TooShort);
                }
                (first + 1, last + 1)
            }
        };
        self.between(first, last)
    }

    /// Between two points by index. What arrives much faster than it left was held back together on
    /// the way.
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

    /// Between the packets of these numbers, or those next to them of which the time is known, each
    /// with the one before it; `None` where there is no such pair. Short ones are noisy: nothing is
    /// left out for being compressed.
    pub(crate) fn segments(&self, numbers: &[u32]) -> Vec<Option<Segment>> {
        let marks = self.edges();
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

    /// Where steps may begin and end: at every packet; under coalescing, with the gaps of both ends
    /// averaged over each batch, or, where batches are so small that their packets tell little
    /// more, at the last packets of batches.
    fn edges(&self) -> Vec<Point> {
        let Handed::Batched(batching, ends) = &self.handed else { return self.points.clone() };
        if batching.batch < LARGE_BATCH {
            return self.marks();
        }
        let (Some(first), Some(last)) = (ends.first(), ends.last()) else { return Vec::new() };
        let whole = self.points.get(*first..=*last).unwrap_or_default();
        let gaps = |of: fn(&Point) -> i64| -> Vec<f64> {
            whole.windows(2).map(|pair| ns(of(&pair[1]), of(&pair[0]))).collect()
        };
        let (sent, received) = smooth(&gaps(|it| it.sent), &gaps(|it| it.at), batching.period / 2.0);
        let Some(begin) = whole.first() else { return Vec::new() };
        let (mut left, mut came) = (0.0, 0.0);
        let rest = whole.iter().skip(1).zip(sent.iter().zip(&received)).map(|(point, (sent, received))| {
            (left, came) = (left + sent, came + received);
            let at = |begin: i64, later: f64| begin.saturating_add(later as i64);
            Point { number: point.number, sent: at(begin.sent, left), at: at(begin.at, came) }
        });
        std::iter::once(*begin).chain(rest).collect()
    }

    /// The packets whose times count: all of them, or the last ones of batches.
    fn marks(&self) -> Vec<Point> {
        match &self.handed {
            Handed::Batched(_, ends) => {
                ends.iter().filter_map(|end| self.points.get(*end)).copied().collect()
            }
            _ => self.points.clone(),
        }
    }

    /// Delays over the first packet's, ns: of all packets, or of the last ones of batches.
    pub(crate) fn delays(&self) -> Vec<f64> {
        let Some(origin) = self.points.first() else { return Vec::new() };
        let delay = |point: &Point| ns(point.at, origin.at) - ns(point.sent, origin.sent);
        self.marks().iter().map(delay).collect()
    }

    /// Least difference of the two clocks over the first quarter, ns: what the path takes before
    /// this train fills it.
    pub(crate) fn level(&self) -> Option<i128> {
        let first = self.points.get(..self.points.len().div_ceil(4))?;
        first.iter().map(|point| i128::from(point.at) - i128::from(point.sent)).min()
    }

    /// How arrivals are handed over; `None` unless in batches.
    pub(crate) fn batching(&self) -> Option<Batching> {
        match &self.handed {
            Handed::Batched(batching, _) => Some(*batching),
            _ => None,
        }
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

    /// Sent over received rate, 1 for a train that passed as it was sent. A few lost packets were
    /// in the queue all the same and do not count; where more are lost, a policer or a full queue
    /// takes what the train has too much.
    pub(crate) fn stretch(&self) -> f64 {
        let taken = (self.lost - STRAY_LOSS).max(0.0);
        self.received_ns / self.sent_ns / (1.0 - taken).max(0.01)
    }
}

/// `later - earlier`; no stamps overflow it.
fn ns(later: i64, earlier: i64) -> f64 {
    (i128::from(later) - i128::from(earlier)) as f64
}

/// A sender's gap beyond this interrupts the train, ns: twice the plan, and 1 ms or a twentieth of
/// the train above it, if that is more than its stamps err.
fn longest_gap(train: &Train) -> f64 {
    let gap = |ps: u64| ps as f64 / 1000.0;
    match &train.gaps {
        Gaps::Even(ps) => {
            let all = gap(*ps) * f64::from(train.packets);
            (2.0 * gap(*ps)).max(gap(*ps) + (all / 20.0).clamp(STAMPS, 1e6))
        }
        Gaps::Each(each) => 2.0 * gap(each.iter().copied().max().unwrap_or(0)) + STAMPS,
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

/// Packets of a batch, on average, from which on gaps are averaged over it.
const LARGE_BATCH: f64 = 4.0;
/// Fewer packets are no train.
const FEWEST: usize = 4;
/// Fewer batch ends leave an error of a gap in too few.
const FEWEST_BATCHES: usize = 5;
/// A train that arrives in less than this share of its time was handed over as one.
const COMPRESSED: f64 = 0.8;
/// Gaps are read no better than this, ns.
const STAMPS: f64 = 10_000.0;
/// Loss up to this share does not stretch a train.
const STRAY_LOSS: f64 = 0.02;
