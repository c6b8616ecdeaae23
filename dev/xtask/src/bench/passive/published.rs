//! What was published of the system before: OpenIMP's performance and precision tests, deliverable D4.2 of the 6QM project (2004),
//! on a Pentium 4 of 2.8 GHz with a card of 100 Mbit/s where nothing else is said.
//!
//! Their figures stand beside ours in the tables; processors and cards being what they were, no ratio is formed.

use super::super::contest::{Contender, Reading};

/// Its name in the tables.
pub(crate) const OPENIMP: &str = "OpenIMP, 2004";

/// A contender whose figures are known.
pub(crate) fn published<'a>(reading: Reading) -> Contender<'a> {
    Contender { name: OPENIMP, run: Box::new(move || Ok(reading.clone())) }
}

/// One line of the tables of load: packets per second, loss in per cent, CPU in per cent.
pub(crate) fn load<'a>(rate: f64, loss: f64, cpu: f64) -> Contender<'a> {
    published(vec![("packets/s", rate), ("lost %", loss), ("CPU %", cpu)])
}

/// One line of the tables of stamps: mean interval and standard deviation, us; packet loss, per cent.
pub(crate) fn stamps<'a>(mean_error: f64, deviation: f64, loss: f64) -> Contender<'a> {
    published(vec![("mean error us", mean_error), ("deviation us", deviation), ("lost %", loss)])
}

/// Errors of one-way delays, us: mean, and least and most where they were published.
pub(crate) fn delay_errors<'a>(mean: f64, min: Option<f64>, max: f64) -> Contender<'a> {
    let min = min.map(|min| ("min off us", min));
    let rest = [("mean off us", mean), ("max off us", max)];
    published(rest.into_iter().chain(min).collect())
}
