//! How fast is the narrow link that this traffic came through, though nobody sent any for it?
//!
//! **What it measures.** The capacity (layer 3, bit/s) of the slowest link between a source and
//! this point, from the spacing of its large packets. Two methods, a row each: `packet_pairs` takes
//! the place where the rates of neighbouring packets, L / gap, are densest; `equally_spaced_modes`
//! takes the distance between the modes of the gaps: packets of others come between two of ours,
//! and each makes the gap longer by its own time on the narrow link.
//!
//! **What it assumes.** That the source sends some packets closer together than the narrow link can
//! pass them on; that the narrow link serialises (a token bucket's credit does not) and is in front
//! of this point; for the second method, that others' packets are as large as ours. Packets that
//! this interface itself sends are not used: they would show this host's own card.
//!
//! **How it is biased.** High, if links behind the narrow one are loaded and press packets
//! together, or if stamps are made for batches (interrupt coalescing): gaps shorter than the
//! interface's own speed allows are thrown away, and many of them are told as `coalesced`. Low, if
//! the source never sends two packets at once, or if traffic of others comes between most of them:
//! then the second method is the better one.
//!
//! **Where it was published.** Nettimer: Lai and Baker, "Measuring link bandwidths using a
//! deterministic model of packet delay", SIGCOMM 2000 (kernel density). multiQ: Katti, Katabi,
//! Blake, Kohler and Strauss, IMC 2004. Where we differ: the kernel has a width relative to the
//! rate, and the received-bandwidth filter of Nettimer needs the sender's spacing, which nobody
//! tells us. Claimed is what was published for both: within 10 % in 85 of 100 cases.

mod modes;
mod pairs;

use netaware_record::Interval;
use netaware_record::passive::{CapacityRow, Period, Row};
use netaware_units::Wall;
use netaware_wire::lmap::MOST_SOURCES;

use crate::flow::{Flow, Table, table};
use crate::{Found, Link, Observed, Seed, TaskError, Watch, watch};

/// The task.
#[derive(Debug)]
pub struct CapacityWatch {
    /// By source and destination.
    sources: Table<Flow, Source>,
    most: usize,
    link: Link,
}

#[derive(Debug)]
struct Source {
    last_at: Wall,
    last_length: u32,
    longest: u32,
    gaps: Vec<Gap>,
    /// Where the next one goes once there are [`MOST_GAPS`].
    next: usize,
    /// Gaps that the interface cannot have made, and merged frames; since the last row.
    impossible: u64,
}

/// Between two large packets of one source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Gap {
    /// ns.
    pub(crate) ns: u32,
    /// Of the later packet, bytes from the IP header on.
    pub(crate) length: u32,
}

impl Gap {
    /// Bit/s.
    pub(crate) fn rate(self) -> f64 {
        f64::from(self.length) * 8e9 / f64::from(self.ns)
    }
}

/// What a method found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Estimate {
    /// Bit/s, the likeliest first.
    pub(crate) candidates: Vec<f64>,
    pub(crate) samples: u64,
}

impl CapacityWatch {
    /// A task that keeps `sources` pairs of source and destination.
    pub fn new(sources: u32, seed: &Seed, link: Link) -> Result<Self, TaskError> {
        let most = watch::within("sources", sources, 1, MOST_SOURCES)? as usize;
        Ok(Self { sources: table(seed, "sources of capacity"), most, link })
    }

    fn source(&mut self, flow: Flow, at: Wall) -> &mut Source {
        if self.sources.len() >= self.most && !self.sources.contains_key(&flow) {
            // The half that has told least: a source that sends much fills its samples again soon.
            let mut told: Vec<usize> = self.sources.values().map(|source| source.gaps.len()).collect();
            let middle = (told.len() - 1) / 2;
            let limit = *told.select_nth_unstable(middle).1;
            let mut room = middle + 1;
            self.sources.retain(|_, source| {
                let goes = source.gaps.len() <= limit && room > 0;
                room -= usize::from(goes);
                !goes
            });
        }
        self.sources.entry(flow).or_insert_with(|| Source::new(at))
    }
}

impl Source {
    fn new(at: Wall) -> Self {
        Self { last_at: at, last_length: 0, longest: 0, gaps: Vec::new(), next: 0, impossible: 0 }
    }

    fn observe(&mut self, length: u32, at: Wall, link: &Link) {
        let (gap, before) = (at.since(self.last_at).0, self.last_length);
        (self.last_at, self.last_length) = (at, length);
        self.longest = self.longest.max(length);
        // Nearly as large as the largest, both: small packets are pressed together behind others,
        // and queue for other reasons.
        let large = self.longest / 10 * 9;
        if before < large || length < large || !(0..=LONGEST_GAP).contains(&gap) {
            return;
        }
        let gap = Gap { ns: gap as u32, length };
        if gap.ns == 0 || link.rate.is_some_and(|rate| gap.rate() > rate.0 as f64 * TOLERANCE) {
            self.impossible += 1;
            return;
        }
        if self.gaps.len() < MOST_GAPS {
            self.gaps.push(gap);
        } else {
            self.gaps[self.next] = gap;
            self.next = (self.next + 1) % MOST_GAPS;
        }
    }

    /// What both methods make of the gaps; nothing before there are enough. Begins anew afterwards.
    fn rows(&mut self, flow: Flow, found: &mut Found) {
        if self.gaps.len() < FEWEST {
            return;
        }
        let gaps = std::mem::take(&mut self.gaps);
        let impossible = std::mem::take(&mut self.impossible);
        self.next = 0;
        let mut doubts = Vec::new();
        if gaps.len() < FEW {
            doubts.push("few_samples".to_string());
        }
        if impossible * 5 > gaps.len() as u64 {
            doubts.push("coalesced".to_string());
        }
        let Some(pairs) = pairs::densest(&gaps) else { return };
        let modes = modes::equally_spaced(&gaps, pairs.candidates[0]);
        found.rows.push(row(flow, "packet_pairs", &pairs, doubts.clone()));
        if let Some(modes) = modes {
            found.rows.push(row(flow, "equally_spaced_modes", &modes, doubts));
        }
    }
}

fn row(flow: Flow, method: &str, estimate: &Estimate, mut doubts: Vec<String>) -> Row {
    let fold = |of: fn(f64, f64) -> f64| estimate.candidates.iter().copied().reduce(of).unwrap_or(0.0);
    if estimate.candidates.len() > 1 {
        doubts.push("many_modes".to_string());
    }
    let rate = Interval {
        estimate: estimate.candidates[0],
        lo: fold(f64::min) * 0.9,
        hi: fold(f64::max) * 1.1,
        confidence: 0.85,
    };
    Row::Capacity(CapacityRow {
        key: flow.key(),
        method: method.to_string(),
        rate,
        samples: estimate.samples,
        doubts,
    })
}

impl Watch for CapacityWatch {
    #[inline]
    fn observe(&mut self, seen: &Observed<'_>) {
        let packet = &seen.packet;
        if seen.outgoing || packet.later_fragment || packet.length < SMALLEST {
            return;
        }
        let link = self.link;
        let source = self.source(Flow::hosts(packet), seen.at);
        if seen.is_merged() || link.merged(packet.length) {
            source.impossible += 1;
            source.last_length = 0;
            return;
        }
        source.observe(packet.length, seen.at, &link);
    }

    fn close(&mut self, period: Period, found: &mut Found) {
        let keep_from = Wall(period.until.0.saturating_sub(SILENCE));
        self.sources.retain(|flow, source| {
            source.rows(*flow, found);
            source.last_at >= keep_from
        });
    }

    fn link(&mut self, link: Link) {
        self.link = link;
        // What was too close for the old speed may be right for the new one, and the other way
        // round.
        self.sources.clear();
    }
}

/// Smaller packets are no part of a transfer, bytes from the IP header on.
const SMALLEST: u32 = 500;

/// Between packets that may have left together, ns: 1500 bytes at 12 kbit/s.
const LONGEST_GAP: i64 = 1_000_000_000;

/// The newest gaps of a source that are kept.
const MOST_GAPS: usize = 1500;

/// Before so many, nothing is said.
const FEWEST: usize = 50;

/// Before so many, it is said with doubt.
const FEW: usize = 200;

/// Stamps err: what is faster than the interface by less than this is kept.
const TOLERANCE: f64 = 1.1;

/// A source that was silent for so long is forgotten, ns.
const SILENCE: i64 = 120_000_000_000;

#[cfg(test)]
mod tests;
