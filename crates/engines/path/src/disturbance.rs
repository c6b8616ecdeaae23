//! What others took from the two hosts while they measured, and what a figure may therefore not
//! claim.
//!
//! ```text
//!  planned  | | | | | | | | | | | |               packets of a train
//!  left     | | | |       | | | | | | | |         ▒ the thread is ready, and somebody else has its core
//!                  ▒▒▒▒▒▒▒
//!                    away: its share of the train says how far a time measured meanwhile may be wrong
//! ```
//!
//! **Measures** nothing: it weighs what both ends counted. A sender is **away** in the pauses of
//! its trains that nobody planned, as far as its thread's wait for a core explains them; either end
//! is for what the hypervisor withheld of the time that its host was busy. An end that takes in
//! packets is not away while its thread waits, since arrivals are stamped by the kernel's
//! interrupts, which no program delays, but for the share of arrivals that the program had to stamp
//! itself. **Assumes** the worst: that the pauses fell into what was measured and not into view, as
//! they do between a packet's stamp and its leaving. Then a span that reads T lasted (1 - a) T to T
//! / (1 - a), and a rate is as uncertain. Methods see most pauses by their stamps and leave them
//! out, so an interval that is widened so is **biased** to be too wide. What a system does not
//! count is taken for quiet. **Published**: that load of the measuring host spoils such figures,
//! Jin and Tierney, "System capability effects on algorithms for network bandwidth measurement",
//! IMC 2003; the rule is ours.

use netaware_stats::interval::Interval;

use crate::available::TightLink;
use crate::hops::{HopFlag, HopsFinding, PathFlag};
use crate::{Bound, Estimate, Flag};

/// What one end's processors did while it measured; absent where the system does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EndLoad {
    /// Of the time in which this end sent trains, the share in pauses that nobody planned, 0..=1.
    pub paused: Option<f64>,
    /// Of the time in which the measuring thread had to be on time, that for which it waited for a
    /// core, 0..=1.
    pub denied: Option<f64>,
    /// Of the time of all cores, what the hypervisor withheld, 0..=1.
    pub steal: Option<f64>,
    /// Of the time of all cores, what was not idle, steal included, 0..=1.
    pub busy: Option<f64>,
    /// The core that idled least, everything included, 0..=1.
    pub busiest_core: Option<f64>,
    /// What the measuring process used, in cores: 1 is one core all the time.
    pub own: Option<f64>,
}

impl EndLoad {
    /// Without what cannot be, as another host may say: shares as the nearest that can, no more
    /// cores than a host may have.
    #[must_use]
    pub fn sane(self) -> Self {
        let within =
            |of: Option<f64>, most: f64| of.filter(|it| it.is_finite()).map(|it| it.clamp(0.0, most));
        Self {
            paused: within(self.paused, 1.0),
            denied: within(self.denied, 1.0),
            steal: within(self.steal, 1.0),
            busy: within(self.busy, 1.0),
            busiest_core: within(self.busiest_core, 1.0),
            own: within(self.own, MOST_CORES),
        }
    }

    /// The highest of two turns, each figure by itself: for showing.
    #[must_use]
    pub fn or_worse(&self, other: &Self) -> Self {
        let worse =
            |of: fn(&Self) -> Option<f64>| [of(self), of(other)].into_iter().flatten().reduce(f64::max);
        Self {
            paused: worse(|load| load.paused),
            denied: worse(|load| load.denied),
            steal: worse(|load| load.steal),
            busy: worse(|load| load.busy),
            busiest_core: worse(|load| load.busiest_core),
            own: worse(|load| load.own),
        }
    }

    /// What of the time that the host was busy the hypervisor withheld: cores that idle lose
    /// nothing.
    fn withheld(&self) -> f64 {
        let steal = self.steal.unwrap_or(0.0);
        if steal < LEAST_STEAL { 0.0 } else { steal / self.busy.unwrap_or(1.0).max(steal) }
    }

    /// Share of the time in which it sent that it was kept from sending: pauses that the wait for a
    /// core explains.
    fn kept(&self) -> f64 {
        self.paused.unwrap_or(0.0).min(self.denied.unwrap_or(1.0))
    }

    /// Others had a core for themselves, or more of the measuring thread's than wake-ups explain.
    fn has_others(&self) -> bool {
        let core = self.busiest_core.unwrap_or(0.0);
        let full = core >= FULL && core - self.own.unwrap_or(0.0) >= OTHERS;
        full || self.denied.is_some_and(|denied| denied >= WAITED)
    }
}

/// How much the hosts were disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As much as hosts are that do nothing else.
    Quiet,
    /// Others used them: figures are less certain than their methods can see.
    Suspected,
    /// They were away for so long that no figure is the path's alone.
    Limited,
}

/// Of both ends together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Disturbance {
    /// Share of the time in which the hosts had to be on time and did not run, 0..1.
    pub away: f64,
    /// A core of one of them was full, and not with the measurement.
    pub beside: bool,
}

impl Disturbance {
    /// Of the host that sends and the one that takes in; `unstamped` of the arrivals, 0..=1, had no
    /// stamp of the kernel's.
    pub fn of(sender: &EndLoad, receiver: &EndLoad, unstamped: f64) -> Self {
        let (sender, receiver) = (sender.sane(), receiver.sane());
        let unstamped = if unstamped.is_finite() { unstamped.clamp(0.0, 1.0) } else { 0.0 };
        let own_stamps = receiver.denied.unwrap_or(0.0) * unstamped;
        let parts = [sender.kept(), sender.withheld(), own_stamps, receiver.withheld()];
        let present: f64 = parts.iter().map(|away| 1.0 - away).product();
        Self {
            away: (1.0 - present).clamp(0.0, MOST_AWAY),
            beside: [sender, receiver].iter().any(EndLoad::has_others),
        }
    }

    /// Of one host that sends probes and takes in the kernel's stamps of their answers.
    pub fn alone(host: &EndLoad) -> Self {
        Self::of(host, &EndLoad::default(), 0.0)
    }

    /// Of two turns that one figure comes from.
    #[must_use]
    pub fn or_worse(&self, other: &Self) -> Self {
        Self { away: self.away.max(other.away), beside: self.beside || other.beside }
    }

    /// How bad it is.
    pub fn level(&self) -> Level {
        match self.away {
            away if away >= AWAY_TOO_LONG => Level::Limited,
            away if away >= SUSPECTED || self.beside => Level::Suspected,
            _ => Level::Quiet,
        }
    }

    /// A rate as it may be told: of disturbed hosts not narrower than they allow, of hosts that
    /// were away a bound.
    pub fn on_rate(&self, rate: Interval, bound: Bound) -> (Interval, Bound) {
        self.at_level(self.level(), rate, bound)
    }

    fn at_level(&self, level: Level, rate: Interval, bound: Bound) -> (Interval, Bound) {
        if level == Level::Quiet {
            return (rate, bound);
        }
        let away = if self.beside { self.away.max(BESIDE) } else { self.away };
        let present = 1.0 - away;
        // Of a bound only the end that bounds says something.
        let widened = match bound {
            Bound::None => rate.widened_to(rate.estimate * present, rate.estimate / present),
            Bound::AtLeast => Interval { lo: rate.lo * present, ..rate },
            Bound::AtMost => Interval { hi: rate.hi / present, ..rate },
        };
        let bound = if level == Level::Limited && bound == Bound::None { Bound::AtLeast } else { bound };
        (widened, bound)
    }

    /// An answer as it may be told, with flags that say why. One of a method that saw most of the
    /// pauses itself, and of hosts that were away, is a bound.
    #[must_use]
    pub fn on(&self, answer: Estimate) -> Estimate {
        let saw_it = answer.flags.contains(&Flag::HostLimited) && self.away >= SUSPECTED;
        let level = if saw_it { Level::Limited } else { self.level() };
        let (rate, bound) = self.at_level(level, answer.rate, answer.bound);
        let mut flags = answer.flags;
        // Whether hosts that were away for so long sent as fast as they can is another question:
        // the method says it if it has seen it.
        let busy = Flag::HostBusy { away: self.away };
        if level != Level::Quiet && !flags.contains(&busy) {
            flags.push(busy);
        }
        Estimate { rate, bound, flags, ..answer }
    }

    /// A tight link as it may be told: there is no bound of one, so hosts that were away tell none.
    pub fn on_tight_link(&self, link: TightLink) -> Option<TightLink> {
        let (capacity, bound) = self.on_rate(link.capacity, Bound::None);
        if bound == Bound::None { (TightLink { capacity, ..link }).known() } else { None }
    }

    /// Hops as they may be told.
    pub fn on_hops(&self, found: &mut HopsFinding) {
        if self.level() == Level::Quiet {
            return;
        }
        found.flags.push(PathFlag::HostBusy { away: self.away });
        for hop in &mut found.hops {
            let Some(capacity) = &mut hop.capacity else { continue };
            let before = capacity.bound;
            (capacity.rate, capacity.bound) = self.on_rate(capacity.rate, before);
            if capacity.bound != before && !hop.flags.contains(&HopFlag::HostLimited) {
                hop.flags.push(HopFlag::HostLimited);
            }
        }
    }
}

/// Away for less makes less of a difference than the methods' own intervals hold. Packets kept back
/// unseen by their stamps, over 100 Mbit/s half used (`sim/tests/integration/busy_hosts.rs`): away
/// for 5 to 11 %, the curve reads up to 17 % off, still within its interval; real hosts whose cores
/// nobody else wants pause for 0 to 3 %.
const SUSPECTED: f64 = 0.05;
/// Away for more allows a figure to be off by a sixth, and what methods see no longer saves them:
/// away for 19 %, slops reads 70 % low on that path, and for 25 to 40 % the curve is more than a
/// fifth off in each of eight runs. What is left is a bound. A program on each core of a real host
/// makes 50 to 75 %, on one of two 7 to 25 %.
pub const AWAY_TOO_LONG: f64 = 0.15;
/// A full core beside the measuring thread's: what interrupts and wake-ups suffer from it is in no
/// counter.
const BESIDE: f64 = 0.05;
/// Wake-ups beside an idle core make a thread wait for less.
const WAITED: f64 = 0.25;
/// Hypervisors withhold less at any time.
const LEAST_STEAL: f64 = 0.01;
/// Ticks of the system's own work keep a full core from reading 1.
const FULL: f64 = 0.95;
/// Of a full core that others had.
const OTHERS: f64 = 0.5;
/// Nobody's word makes intervals that reach to infinity.
const MOST_AWAY: f64 = 0.95;
const MOST_CORES: f64 = 1e5;

#[cfg(test)]
mod tests;
