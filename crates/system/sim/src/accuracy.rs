//! Estimators held against the truth of the cells, over seeds.

use std::fmt;
use std::str::FromStr;

use netaware_path::{Bound, Careful, Estimate, Flag, Instrument, RateMethod};
use netaware_stats::quantile::linear;

use crate::cells::{Cell, FROM, RTT, Traffic};
use crate::volley::{Bank, Concluded, Estimated, VolleyPath, conclude_beside};

/// What is held against the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Capacity by bulks of least delay.
    Bulk,
    /// Capacity by modes.
    Pathrate,
    /// Capacity by bulks, and by modes where these doubt.
    Capacity,
    /// Available bandwidth by trains of several rates.
    Curve,
    /// Available bandwidth by streams with a trend.
    Slops,
    /// Available bandwidth by trains of rising rate.
    Chirp,
    /// Available bandwidth by pairs, told the tight link's capacity.
    Spruce,
    /// Available bandwidth by the curve, confirmed by streams.
    Available,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Bulk,
        Self::Pathrate,
        Self::Capacity,
        Self::Curve,
        Self::Slops,
        Self::Chirp,
        Self::Spruce,
        Self::Available,
    ];

    /// Whether it is the narrow link's capacity that it says.
    pub const fn is_of_capacity(self) -> bool {
        matches!(self, Self::Bulk | Self::Pathrate | Self::Capacity)
    }

    /// The estimator for hosts like these, as the commands run it: behind first trains, within what
    /// the path was seen to carry, and with a test whether its figure lasts. `tight` is the tight
    /// link's capacity, bit/s, for the method that must be told.
    pub fn build(self, instrument: &Instrument, tight: f64, seed: u64) -> Careful {
        self.of_commands(tight).careful(instrument, seed)
    }

    /// The same method as the commands have it.
    pub const fn of_commands(self, tight: f64) -> RateMethod {
        match self {
            Self::Bulk => RateMethod::Bulk,
            Self::Pathrate => RateMethod::Pathrate,
            Self::Capacity => RateMethod::Capacity,
            Self::Curve => RateMethod::Curve,
            Self::Slops => RateMethod::Slops,
            Self::Chirp => RateMethod::Chirp,
            Self::Spruce => RateMethod::Spruce(tight),
            Self::Available => RateMethod::Available,
        }
    }

    /// Error in the middle, and of nine runs of ten, that a figure may have; relative.
    pub fn target(self, cell: &Cell) -> (f64, f64) {
        let rate = cell.rate.0;
        let of = |slow, gigabit, fast| match rate {
            ..1_000_000_000 => slow,
            1_000_000_000..10_000_000_000 => gigabit,
            _ => fast,
        };
        if self.is_of_capacity() {
            return of((0.01, 0.02), (0.02, 0.05), (0.05, 0.10));
        }
        let is_rough = cell.load >= 80 || cell.load > 0 && cell.traffic == Traffic::Pareto;
        if is_rough {
            of((0.10, f64::INFINITY), (0.15, f64::INFINITY), (0.20, f64::INFINITY))
        } else {
            of((0.03, 0.05), (0.05, 0.10), (0.10, 0.15))
        }
    }

    /// One estimation, and what it should have said, bit/s: of available bandwidth, what was left
    /// while it ran. Over seconds traffic of heavy tails is far from its own mean, and no method
    /// can know that.
    ///
    /// # Panics
    /// Never for the cells of [`Cell::all`]: their scenarios are sound.
    pub fn run(self, cell: &Cell, seed: u64, bank: &mut Bank) -> (Estimated, f64) {
        let scenario = cell.scenario().unwrap_or_else(|error| panic!("{cell}: {error}"));
        let mut path = VolleyPath::with_bank(&scenario, FROM, seed, cell.noise(), std::mem::take(bank));
        let mut method = self.build(&cell.instrument(), cell.truth().tight_capacity, seed);
        // Packets are waited for as the prober's responders wait.
        let ended = conclude_beside(&mut path, &mut method, RTT, RTT, |_, _| {});
        let (bytes, Concluded { conclusion, took, volleys, .. }) = (ended.bytes(), ended);
        let ended = Estimated { answer: conclusion.ok(), took, bytes, volleys, done: true };
        let truth = cell.truth();
        let left = || path.available().map_or(truth.available, |wire| wire * cell.ip_share());
        let truth = if self.is_of_capacity() { truth.capacity } else { left() };
        *bank = path.into_bank();
        (ended, truth)
    }

    /// Many of them.
    pub fn score(self, cell: &Cell, seeds: impl IntoIterator<Item = u64>) -> Score {
        self.score_with(cell, seeds, &mut Bank::default())
    }

    /// Many of them that begin with what others have left in `bank`.
    pub fn score_with(self, cell: &Cell, seeds: impl IntoIterator<Item = u64>, bank: &mut Bank) -> Score {
        let mut score = Score::default();
        for seed in seeds {
            let (ended, truth) = self.run(cell, seed, bank);
            score.add(&ended, truth, cell.truth().capacity);
        }
        score
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bulk => "bulk",
            Self::Pathrate => "pathrate",
            Self::Capacity => "capacity",
            Self::Curve => "curve",
            Self::Slops => "slops",
            Self::Chirp => "chirp",
            Self::Spruce => "spruce",
            Self::Available => "available",
        })
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|method| method.to_string() == text);
        found.ok_or_else(|| format!("'{text}' is none of {}", Self::ALL.map(|it| it.to_string()).join(", ")))
    }
}

/// What many runs of one cell came to.
#[derive(Debug, Default, Clone)]
pub struct Score {
    /// Estimations.
    pub runs: usize,
    /// Relative errors of figures that are no bounds.
    pub errors: Vec<f64>,
    /// Bounds instead of figures.
    pub bounds: usize,
    /// Runs in which nothing was said.
    pub silent: usize,
    /// Runs whose interval, or bound, allows the truth.
    pub held: usize,
    /// More than 20 % off, without a flag that says why.
    pub misled: usize,
    /// Of any run, s.
    pub longest: f64,
    /// Largest mean load of any run, share of the capacity.
    pub load: f64,
    /// IP bytes of each run.
    pub bytes: Vec<u64>,
}

impl Score {
    /// One more run. Rates are bit/s; load is counted against `capacity`.
    pub fn add(&mut self, ended: &Estimated, truth: f64, capacity: f64) {
        self.runs += 1;
        self.longest = self.longest.max(ended.took.secs_f64());
        self.load = self.load.max(ended.bytes as f64 * 8.0 / ended.took.secs_f64().max(1e-9) / capacity);
        self.bytes.push(ended.bytes);
        let Some(answer) = &ended.answer else {
            self.silent += 1;
            self.held += 1;
            return;
        };
        self.held += usize::from(holds(answer, truth));
        self.misled += usize::from(misleads(answer, truth));
        if answer.bound == Bound::None {
            self.errors.push(answer.rate.estimate / truth - 1.0);
        } else {
            self.bounds += 1;
        }
    }

    /// Another part of the same runs.
    pub fn join(&mut self, other: Self) {
        self.runs += other.runs;
        self.errors.extend(other.errors);
        self.bounds += other.bounds;
        self.silent += other.silent;
        self.held += other.held;
        self.misled += other.misled;
        self.longest = self.longest.max(other.longest);
        self.load = self.load.max(other.load);
        self.bytes.extend(other.bytes);
    }

    /// Quantile of the errors' sizes; NaN without figures.
    pub fn absolute(&self, quantile: f64) -> f64 {
        of_sorted(self.errors.iter().map(|error| error.abs()).collect(), quantile)
    }

    /// Median of the errors; NaN without figures.
    pub fn bias(&self) -> f64 {
        of_sorted(self.errors.clone(), 0.5)
    }

    /// Quantile of the bytes that runs took; NaN without runs.
    pub fn bytes(&self, quantile: f64) -> f64 {
        of_sorted(self.bytes.iter().map(|bytes| *bytes as f64).collect(), quantile)
    }

    /// Whether the figures are as good as wanted; bounds alone are.
    pub fn reaches(&self, (middle, nine): (f64, f64)) -> bool {
        self.errors.is_empty() || (self.absolute(0.5) <= middle && self.absolute(0.9) <= nine)
    }

    /// Whether the truth lay in the interval in nine of ten runs.
    pub const fn is_held(&self) -> bool {
        self.held * 10 >= self.runs * 9
    }
}

fn of_sorted(mut values: Vec<f64>, quantile: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    linear(&values, quantile).unwrap_or(f64::NAN)
}

/// Whether the interval, or the bound, allows the truth.
pub fn holds(answer: &Estimate, truth: f64) -> bool {
    match answer.bound {
        Bound::None => answer.rate.contains(truth),
        Bound::AtLeast => truth >= answer.rate.lo,
        Bound::AtMost => truth <= answer.rate.hi,
    }
}

/// Whether an answer is more than 20 % off, or a bound that is wrong by as much, without a flag
/// that says why.
pub fn misleads(answer: &Estimate, truth: f64) -> bool {
    let warns = |flag: &Flag| !matches!(flag, Flag::Coalescing { .. });
    if answer.flags.iter().any(warns) {
        return false;
    }
    match answer.bound {
        Bound::None => (answer.rate.estimate / truth - 1.0).abs() > 0.2,
        Bound::AtLeast => answer.rate.lo > truth * 1.2,
        Bound::AtMost => answer.rate.hi < truth * 0.8,
    }
}
