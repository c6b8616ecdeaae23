//! What was published of the system before: OpenIMP's performance and precision tests, deliverable
//! D4.2 of the 6QM project (2004), on a Pentium 4 of 2.8 GHz with a card of 100 Mbit/s where
//! nothing else is said.
//!
//! Their figures stand beside ours in the tables; processors and cards being what they were, no
//! ratio is formed.

use super::super::contest::{Contender, Reading};

/// Its name in the tables.
pub(crate) const OPENIMP: &str = "OpenIMP, 2004";

/// A contender whose figures are known.
pub(crate) fn published<'a>(name: &'static str, reading: Reading) -> Contender<'a> {
    Contender { name, run: Box::new(move || Ok(reading.clone())) }
}

/// One line of the tables of load: packets per second, loss in per cent, CPU in per cent.
pub(crate) fn load<'a>(rate: f64, loss: f64, cpu: f64) -> Contender<'a> {
    load_of(OPENIMP, rate, loss, cpu)
}

/// The same on another host or in another setting, which `name` tells.
pub(crate) fn load_of<'a>(name: &'static str, rate: f64, loss: f64, cpu: f64) -> Contender<'a> {
    published(name, vec![("packets/s", rate), ("lost %", loss), ("CPU %", cpu)])
}

/// One line of the tables of stamps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamps {
    /// Bytes of a frame.
    pub(crate) frame: u32,
    pub(crate) rate: f64,
    /// Interval between packets at the sender, us.
    pub(crate) interval: f64,
    /// Longest and shortest interval between stamps, us.
    pub(crate) longest: f64,
    pub(crate) shortest: f64,
    pub(crate) deviation: f64,
    /// Of the mean interval, us.
    pub(crate) mean_error: f64,
    /// Per cent.
    pub(crate) loss: f64,
}

impl Stamps {
    pub(crate) fn contender<'a>(self) -> Contender<'a> {
        let reading = vec![
            ("mean error us", self.mean_error),
            ("deviation us", self.deviation),
            ("longest off us", self.longest - self.interval),
            ("shortest off us", self.shortest - self.interval),
            ("lost %", self.loss),
        ];
        published(OPENIMP, reading)
    }
}

/// Errors of one-way delays, us: mean, and least and most where they were published; and of the
/// share that was lost, per cent of what was sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DelayErrors {
    pub(crate) mean: f64,
    pub(crate) min: Option<f64>,
    pub(crate) max: f64,
    pub(crate) loss: Option<f64>,
}

impl DelayErrors {
    pub(crate) fn contender<'a>(self) -> Contender<'a> {
        let min = self.min.map(|min| ("min off us", min));
        let loss = self.loss.map(|loss| ("loss off %", loss));
        let rest = [("mean off us", self.mean), ("max off us", self.max)];
        published(OPENIMP, rest.into_iter().chain(min).chain(loss).collect())
    }
}
