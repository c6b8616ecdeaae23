//! Which IP version is the better one now, and whether that is worth a switch.
//!
//! **Measures** nothing itself: it is told what background probes and the traffic saw of each
//! version. **Assumes** that the future is like the last observations. **Leans** towards staying:
//! the other version must have been better for [`Rules::after`], in the median and in nine of ten
//! of its last observations, by [`Rules::margin`], and by more while they are few: three of them
//! count where the difference is half, two dozen where it is the margin. A switch that soon had to
//! be undone makes the next one wait twice as long. **Published**: the margin and the hold are the
//! hysteresis of every selector since Schmitt's trigger (1938); damping of those that flap is RFC
//! 2439's idea.

mod evidence;
mod file;
mod log;

use std::collections::VecDeque;

use netaware_record::{IpVersion, Use};
use netaware_stats::quantile;
use netaware_units::{BitRate, Mono, Span};

pub use evidence::{Choice, DecidedBy, Evidence, VersionEvidence};
pub use file::PolicyError;
pub use log::{DecisionLog, NotDone};

/// By what two versions are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// More delivered bytes each second are better.
    Goodput,
    /// A shorter round trip is better.
    RoundTrip,
    /// Fewer lost packets are better.
    Loss,
}

/// When to switch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// By what.
    pub metric: Metric,
    /// How much better, as a share of the present version's figure; of loss, as a share of the
    /// packets.
    pub margin: f64,
    /// For how long it must have been better.
    pub after: Span,
    /// The least time between two switches.
    pub hold: Span,
    /// Between two looks at both versions.
    pub every: Span,
    /// What looking may cost, as a share of what the stream carries.
    pub budget: f64,
    /// Which one where both are equal.
    pub prefer: Option<IpVersion>,
}

impl Rules {
    /// What suits a use.
    pub fn of(what_for: Use) -> Self {
        let bulk = Self {
            metric: Metric::Goodput,
            margin: 0.1,
            after: Span::from_secs(4),
            hold: Span::from_secs(30),
            every: Span::from_millis(500),
            budget: 0.05,
            prefer: Some(IpVersion::V6),
        };
        match what_for {
            Use::Bulk => bulk,
            Use::Interactive => Self { metric: Metric::RoundTrip, margin: 0.15, ..bulk },
            Use::Media => Self { metric: Metric::Loss, margin: 0.005, hold: Span::from_secs(60), ..bulk },
        }
    }
}

/// What was seen of one version.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// When.
    pub at: Mono,
    /// Of which version.
    pub ip: IpVersion,
    /// What it delivers, or would.
    pub goodput: Option<BitRate>,
    /// There and back.
    pub round_trip: Option<Span>,
    /// Share of packets lost, 0 to 1.
    pub loss: Option<f64>,
    /// Between which that share is, where few packets leave it open: the present version is judged
    /// by the lower bound and the other one by the upper. `None` where it is taken as it is.
    pub loss_bounds: Option<[f64; 2]>,
}

/// Why it is better to be elsewhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// When.
    pub at: Mono,
    /// There.
    pub to: IpVersion,
    /// Who decided. A callback may have had other reasons than the figures below.
    pub by: DecidedBy,
    /// By what.
    pub metric: Metric,
    /// Median of the present version: bit/s, nanoseconds or share. NaN where a callback decided and
    /// nothing was seen.
    pub present: f64,
    /// Median of the other one.
    pub other: f64,
    /// Observations of each behind those.
    pub of: [usize; 2],
    /// How much better it had to be; 0 where a callback decided.
    pub margin: f64,
    /// Why nothing came of it; `None` where the switch was begun.
    pub not_done: Option<NotDone>,
}

impl Decision {
    /// Away from there.
    pub fn from(&self) -> IpVersion {
        self.to.other()
    }
}

/// The metric's figure of a version, and the bounds that it is judged by.
#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Mono,
    value: f64,
    low: f64,
    high: f64,
}

/// Follows both versions.
#[derive(Debug, Clone)]
pub struct Policy {
    rules: Rules,
    seen: [VecDeque<Seen>; 2],
    /// For a callback: the last ones whole.
    recent: [VecDeque<Observation>; 2],
    switched_at: Option<Mono>,
    hold: Span,
}

impl Policy {
    /// Nothing seen yet.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            seen: Default::default(),
            recent: Default::default(),
            switched_at: None,
            hold: rules.hold,
        }
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Takes in an observation. One without the metric's figure tells the rules nothing.
    pub fn observe(&mut self, seen: &Observation) {
        let recent = &mut self.recent[seen.ip.index()];
        recent.push_back(*seen);
        if recent.len() > MOST_SEEN {
            recent.pop_front();
        }
        let value = match self.rules.metric {
            Metric::Goodput => seen.goodput.map(|rate| rate.0 as f64),
            Metric::RoundTrip => seen.round_trip.map(|rtt| rtt.nanos() as f64),
            Metric::Loss => seen.loss,
        };
        let Some(value) = value.filter(|value| value.is_finite() && *value >= 0.0) else { return };
        let bounds = seen.loss_bounds.filter(|_| self.rules.metric == Metric::Loss);
        let [low, high] = bounds.unwrap_or([value; 2]);
        let window = &mut self.seen[seen.ip.index()];
        window.push_back(Seen { at: seen.at, value, low, high });
        if window.len() > KEPT {
            window.pop_front();
        }
    }

    /// Whether to be elsewhere than on `present` now. Who does switch says so with
    /// [`Self::switched`].
    pub fn decide(&self, now: Mono, present: IpVersion) -> Option<Decision> {
        let held = self.switched_at.is_some_and(|at| now - at < self.hold);
        if held {
            return None;
        }
        (LEAST_SEEN..=MOST_SEEN).find_map(|count| self.decide_by(now, present, count))
    }

    /// By the last `count` observations of the other version, and those of the present one in the
    /// same time.
    fn decide_by(&self, now: Mono, present: IpVersion, count: usize) -> Option<Decision> {
        let [mine, others] = [present, present.other()].map(|ip| &self.seen[ip.index()]);
        let first = others.len().checked_sub(count)?;
        let since = others.get(first)?.at;
        let there: Vec<Seen> = others.range(first..).copied().collect();
        let here: Vec<Seen> = mine.iter().filter(|seen| seen.at >= since).copied().collect();
        if now - since < self.rules.after || here.len() < LEAST_SEEN {
            return None;
        }
        let of =
            |seen: &[Seen], figure: fn(&Seen) -> f64| median(&seen.iter().map(figure).collect::<Vec<_>>());
        // In doubt the present version is good and the other one bad.
        let (good, bad) = (of(&here, |seen| seen.low)?, of(&there, |seen| seen.high)?);
        let margin = self.rules.margin + MORE_WHILE_FEW * (1.0 - count as f64 / MOST_SEEN as f64);
        let better = there.iter().filter(|seen| self.is_better(seen.high, good, margin, present)).count();
        let worse = here.iter().filter(|seen| self.is_better(bad, seen.low, margin, present)).count();
        let (present_is, other_is) = (of(&here, |seen| seen.value)?, of(&there, |seen| seen.value)?);
        let most = |count: usize, of: usize| count * 10 >= of * 9;
        (most(better, there.len()) && most(worse, here.len())).then(|| Decision {
            at: now,
            to: present.other(),
            by: DecidedBy::Rules,
            metric: self.rules.metric,
            present: present_is,
            other: other_is,
            of: [here.len(), there.len()],
            margin,
            not_done: None,
        })
    }

    /// The stream goes another way, for whatever reason. What was seen before counts no more for or
    /// against it.
    pub fn switched(&mut self, now: Mono) {
        let soon = self.switched_at.is_some_and(|at| now - at < self.hold * SOON);
        self.hold =
            if soon { (self.hold * 2).min(LONGEST_HOLD.max(self.rules.hold)) } else { self.rules.hold };
        self.switched_at = Some(now);
        self.seen = Default::default();
        self.recent = Default::default();
    }

    /// What a callback is shown; `up` says which versions can be used.
    pub fn evidence(&self, now: Mono, present: IpVersion, up: [bool; 2]) -> Evidence {
        let of = |ip: IpVersion| {
            let recent = &self.recent[ip.index()];
            let figures = |figure: &dyn Fn(&Observation) -> Option<f64>| {
                median(&recent.iter().filter_map(figure).collect::<Vec<_>>())
            };
            VersionEvidence {
                up: up[ip.index()],
                observations: recent.len(),
                seen_at: recent.back().map(|seen| seen.at),
                goodput: figures(&|seen| Some(seen.goodput?.0 as f64)).map(|rate| BitRate(rate as u64)),
                round_trip: figures(&|seen| Some(seen.round_trip?.nanos() as f64))
                    .map(|nanos| Span::from_nanos(nanos as i64)),
                loss: figures(&|seen| seen.loss),
            }
        };
        let [v4, v6] = [IpVersion::V4, IpVersion::V6].map(of);
        let rules_say = self.decide(now, present).filter(|it| up[it.to.index()]).map(|it| it.to);
        Evidence { at: now, present, v4, v6, rules_say, switched_at: self.switched_at }
    }

    /// A callback wants to be elsewhere than on `present`: what the rules' metric says of that, for
    /// the log.
    pub fn called(&self, now: Mono, present: IpVersion) -> Decision {
        let last = |ip: IpVersion| -> Vec<f64> {
            self.seen[ip.index()].iter().rev().take(MOST_SEEN).map(|seen| seen.value).collect()
        };
        let (here, there) = (last(present), last(present.other()));
        Decision {
            at: now,
            to: present.other(),
            by: DecidedBy::Callback,
            metric: self.rules.metric,
            present: median(&here).unwrap_or(f64::NAN),
            other: median(&there).unwrap_or(f64::NAN),
            of: [here.len(), there.len()],
            margin: 0.0,
            not_done: None,
        }
    }

    /// By enough. Where both lose nothing worth counting, less is enough towards the preferred
    /// version.
    fn is_better(&self, there: f64, here: f64, margin: f64, present: IpVersion) -> bool {
        let preferred = self.rules.prefer == Some(present.other());
        match self.rules.metric {
            Metric::Goodput => there > here * (1.0 + margin),
            Metric::RoundTrip => there * (1.0 + margin) < here,
            Metric::Loss => there < here - self.rules.margin || (preferred && there < here),
        }
    }
}

fn median(values: &[f64]) -> Option<f64> {
    quantile::median_in_place(&mut values.to_vec())
}

/// Of each version, before anything is decided.
const LEAST_SEEN: usize = 3;
/// Of the other version, more of which tell no more.
const MOST_SEEN: usize = 24;
/// Added to the margin where there is but one observation.
const MORE_WHILE_FEW: f64 = 0.4;
/// Kept of each version.
const KEPT: usize = 512;
/// A switch within so many holds after the one before is taken for flapping.
const SOON: i64 = 4;
const LONGEST_HOLD: Span = Span::from_secs(3600);

#[cfg(test)]
mod tests;
