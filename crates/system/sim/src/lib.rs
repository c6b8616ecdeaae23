//! A network on a virtual clock: runs engines over a scenario thousands of times faster than real
//! time.
//!
//! ```text
//!   engine ◄── seat at A ──►  Network (netmodel)  ◄── seat at B ──► engine (an EchoResponder, say)
//!              its clock        true time               its clock
//! ```
//!
//! A [`Simulation`] is a scenario with a seed. It keeps the three promises of the engine contract
//! as the real-time driver does, but time passes only when nothing is left to do at an instant, so
//! nothing sleeps. What comes out depends on scenario, seed and engines alone: run it again and
//! every byte is the same.
//!
//! Its hosts are better than real ones: a datagram leaves when it is due, is stamped without error
//! by the host's own clock (offset and skew as the scenario says), and is read at once. So what a
//! method says here is the most that it can say on such a path; what a host adds to it is a matter
//! for the lab.
//!
//! Reading order: [`Simulation`], then [`methods`] for the measurements people ask for by name,
//! [`VolleyPath`] for estimators of capacity and available bandwidth, [`hops`] for probes that end
//! on the way and [`reach`] for a host that runs nothing, [`cells`] for the paths that estimators
//! are held against, and [`accuracy`] for how they fare.

pub mod accuracy;
pub mod cells;
mod clock;
mod drive;
mod echo_responder;
pub mod hops;
pub mod methods;
mod planned;
pub mod reach;
mod run;
mod seat;
mod simulation;
mod stream;
mod truth;
mod under_way;
mod volley;

pub use clock::LocalClock;
pub use drive::{Drive, Ended, Way};
pub use echo_responder::EchoResponder;
pub use netaware_netmodel::{Scenario, Side};
pub use simulation::{Flow, Fragments, Simulation};
pub use stream::{ProbeStream, StreamFates};
pub use truth::{Available, PathTruth, WayTruth};
pub use volley::{Bank, Concluded, Estimated, HostNoise, Stall, VolleyPath, conclude, estimate};
