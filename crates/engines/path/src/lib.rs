//! Estimators of what a path can carry, as pure state machines over trains of packets.
//!
//! ```text
//!  Estimator ──next()──► Step::Volley(trains) ──► somebody sends them: a socket, or the simulator
//!      ▲                                                     │
//!      └──────────── take(VolleyReport) ◄── when each packet left, when each arrived
//! ```
//!
//! An [`Estimator`] asks for [`Volley`]s, one at a time, and learns of each what left and what
//! arrived. It has no socket, no clock and no thread, and it never subtracts the time of one host
//! from that of the other but to look at differences of such differences. What the two hosts can do
//! is told to it as an [`Instrument`]; from that and from what it sees itself it says how far its
//! figure can be trusted, and where it cannot know, its [`Estimate`] is a bound and says so.
//!
//! Nobody runs a method as it is: [`Careful`] goes before it, keeps it from sending more than the
//! path was seen to carry, ends it in time, and has a [reason](NoFigure) where there is no figure.
//!
//! All rates are of the IP layer: bits of whole IP packets, headers included (RFC 5136 §2.3).

pub mod available;
pub mod batching;
pub mod capacity;
pub mod honest;
pub mod hops;
pub mod reach;

mod careful;
mod disturbance;
mod estimate;
mod estimator;
mod instrument;
mod lasting;
mod no_figure;
mod path_change;
mod patience;
mod rate_method;
mod train;
#[cfg(test)]
mod unchanged;
mod verdict;

pub use careful::{Careful, Needs};
pub use disturbance::{AWAY_TOO_LONG, Disturbance, EndLoad, Level};
pub use estimate::{Bound, Estimate, Flag, NEAR, RateMode};
pub use estimator::{Estimator, Step};
pub use instrument::Instrument;
pub use lasting::{Lasting, Metric};
pub use no_figure::NoFigure;
pub use patience::VolleyPatience;
pub use rate_method::RateMethod;
pub use train::{Arrival, Gaps, Train, TrainReport, Volley, VolleyReport};
pub use verdict::Use;
