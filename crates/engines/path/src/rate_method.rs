//! The methods by name, each as the product runs it.
//!
//! The prober and the simulator both build their methods here, so that what the simulator says of
//! a method's accuracy is true of the method that people run: behind its first trains and within
//! what the path was seen to carry ([`Careful`]), and with a test whether its figure lasts
//! ([`Lasting`]).

use netaware_stats::interval::Interval;
use netaware_units::Span;

use crate::available::{self, Chirp, Curve, Maximum, Search, Slops, Spruce};
use crate::capacity::{self, Bulk, Pathrate, PathrateRules};
use crate::{Careful, Estimator, Instrument, Lasting, Metric, Needs};

/// A method for a rate of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RateMethod {
    /// Capacity by bulks, and by modes where these doubt.
    Capacity,
    /// Capacity by bulks of least delay.
    Bulk,
    /// Capacity by modes of many pairs and trains.
    Pathrate,
    /// Available bandwidth by the curve, confirmed by streams.
    Available,
    /// Available bandwidth by trains of several rates.
    Curve,
    /// Available bandwidth by streams with a trend.
    Slops,
    /// Available bandwidth by trains of rising rate.
    Chirp,
    /// Available bandwidth by pairs, told the tight link's capacity, bit/s.
    Spruce(f64),
    /// The highest rate at which packets come while the path is filled.
    Maximum(Search),
}

impl RateMethod {
    /// What it needs to say anything.
    pub const fn needs(self) -> Needs {
        match self {
            Self::Capacity => capacity::Automatic::NEEDS,
            Self::Bulk => Bulk::NEEDS,
            Self::Pathrate => Pathrate::NEEDS,
            Self::Available => available::Automatic::NEEDS,
            Self::Curve => Curve::NEEDS,
            Self::Slops => Slops::NEEDS,
            Self::Chirp => Chirp::NEEDS,
            Self::Spruce(_) => Spruce::NEEDS,
            Self::Maximum(_) => Maximum::NEEDS,
        }
    }

    /// What it measures; a method that fills the path sees by itself whether its figure lasts.
    pub const fn metric(self) -> Option<Metric> {
        match self {
            Self::Capacity | Self::Bulk | Self::Pathrate => Some(Metric::Capacity),
            Self::Available | Self::Curve | Self::Slops | Self::Chirp | Self::Spruce(_) => {
                Some(Metric::Available)
            }
            Self::Maximum(_) => None,
        }
    }

    /// The longest time that it takes by itself, unless that is too short for it to be content and
    /// the instrument allows more.
    pub fn longest(self, instrument: &Instrument) -> Span {
        match self {
            Self::Capacity => capacity::Automatic::longest(instrument),
            Self::Bulk => Bulk::longest(instrument),
            // It goes on as long as it may.
            Self::Pathrate | Self::Maximum(_) => instrument.time_limit,
            Self::Available => available::Automatic::longest(instrument),
            Self::Curve => Curve::longest(instrument),
            Self::Slops => Slops::longest(instrument),
            Self::Chirp => Chirp::longest(instrument),
            Self::Spruce(_) => Spruce::longest(instrument),
        }
    }

    /// The method as a command runs it once. `seed` is of its random distances.
    pub fn careful(self, instrument: &Instrument, seed: u64) -> Careful {
        Careful::new(instrument, self.needs(), move |instrument| self.lasting(instrument, seed))
    }

    /// The method as a command runs it that follows a path until it is stopped; whether its figure
    /// lasts is tested `every` so often. Only chirps can follow a path; other methods end.
    pub fn following(self, instrument: &Instrument, seed: u64, every: Span) -> Careful {
        Careful::new(instrument, self.needs(), move |instrument| match self {
            Self::Chirp => {
                Box::new(Lasting::watching(instrument, Metric::Available, every, Chirp::watching(instrument)))
            }
            _ => self.lasting(instrument, seed),
        })
    }

    /// The method with a test whether its figure lasts, but without first trains before it: what it
    /// would say by itself, for comparisons.
    pub fn lasting(self, instrument: &Instrument, seed: u64) -> Box<dyn Estimator> {
        let Some(metric) = self.metric() else { return self.alone(instrument, seed) };
        let method = |instrument: &Instrument| self.alone(instrument, seed);
        Box::new(Lasting::new(instrument, metric, self.longest(instrument), method))
    }

    fn alone(self, instrument: &Instrument, seed: u64) -> Box<dyn Estimator> {
        match self {
            Self::Capacity => Box::new(capacity::Automatic::new(instrument, seed)),
            Self::Bulk => Box::new(Bulk::new(instrument, seed)),
            Self::Pathrate => {
                let rules = PathrateRules { time_limit: instrument.time_limit, ..PathrateRules::default() };
                Box::new(Pathrate::new(instrument, rules, seed))
            }
            Self::Available => Box::new(available::Automatic::new(instrument)),
            Self::Curve => Box::new(Curve::new(instrument)),
            Self::Slops => Box::new(Slops::new(instrument)),
            Self::Chirp => Box::new(Chirp::new(instrument)),
            Self::Spruce(rate) => {
                let known = Interval { estimate: rate, lo: rate, hi: rate, confidence: 0.95 };
                Box::new(Spruce::new(instrument, known, seed))
            }
            Self::Maximum(search) => Box::new(Maximum::new(instrument, search)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Flag;
    use crate::available::fifo::{Path, Traffic, instrument};

    const METHODS: [RateMethod; 6] = [
        RateMethod::Capacity,
        RateMethod::Bulk,
        RateMethod::Available,
        RateMethod::Curve,
        RateMethod::Slops,
        RateMethod::Spruce(1.1e7),
    ];

    /// An upstream of 11 Mbit/s with grants each 4 ms, and a line of 60 Mbit/s that others use.
    fn paths() -> [(&'static str, Path, Instrument); 2] {
        let limit = Span::from_secs(30);
        let of = |rate: f64| Instrument { time_limit: limit, ..instrument(rate) };
        let mut grants = Path::single(1.1e7, 0.0, Traffic::Even, 3);
        grants.coalescing = 4e6;
        let shared = Path::single(6e7, 0.33, Traffic::Poisson, 3);
        [("grants", grants, of(1.1e7)), ("shared", shared, of(6e7))]
    }

    #[test]
    fn time_does_not_run_out_after_three_seconds_of_thirty() {
        for (name, path, host) in paths() {
            for method in METHODS {
                let outcome = path.clone().run(&mut method.careful(&host, 1));
                let row = format!("{method:?} over {name}: {outcome:?}");
                let Some(answer) = &outcome.answer else { continue };
                let limit = host.time_limit.secs_f64();
                assert!(outcome.took <= limit, "{row}");
                // A volley that does not fit may be long.
                let ran_out = answer.flags.contains(&Flag::CutShort);
                assert!(!ran_out || outcome.took > 0.6 * limit, "{row}");
            }
        }
    }

    #[test]
    fn the_load_is_the_allowed_one_with_the_first_trains() {
        for (name, path, host) in paths() {
            for method in METHODS {
                let outcome = path.clone().run(&mut method.careful(&host, 1));
                let rate = path.hops[0].capacity;
                let load = outcome.bits / outcome.took / rate;
                assert!(load <= 0.105, "{load} of the path by {method:?} over {name}: {outcome:?}");
            }
        }
    }
}
