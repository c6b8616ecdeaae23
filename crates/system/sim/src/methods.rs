//! Measurements by name, with the truth beside what they say.
//!
//! Each runs over a network of its own, so that one IP version does not disturb the other and the
//! same seed gives the same figures whatever else is run.

mod figure;
mod latency;
mod path_mtu;
mod reach;
mod record;
mod stream;
mod way;

use netaware_netmodel::Scenario;
use netaware_probe::echo::PlanError;
use netaware_record::{IpVersion, VersionResult};
use netaware_units::Span;
use serde::Serialize;

use crate::truth::PathTruth;

pub use crate::hops::TcpPort;
pub use figure::{Figure, Spread, Unit, spread};
pub use latency::LatencyAsk;
pub use netaware_probe::Pacing;
pub use reach::ReachAsk;
pub use record::record;
pub use stream::StreamAsk;
pub use way::WaySummary;

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Round trips of an echo train, as `netaware latency` measures them.
    Latency(LatencyAsk),
    /// The largest packet that passes, as `netaware test` searches for it.
    PathMtu,
    /// What a host that runs nothing answers, as `netaware reach` asks it.
    Reach(ReachAsk),
    /// A stream of probes in one direction; no method at all but the truth.
    Stream(StreamAsk),
}

impl Method {
    /// As it is asked for.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Latency(_) => "latency",
            Self::PathMtu => "path-mtu",
            Self::Reach(_) => "reach",
            Self::Stream(_) => "stream",
        }
    }
}

/// What a method said over one IP version, and what is true.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Found {
    /// Which one.
    pub version: IpVersion,
    /// Estimates beside truth.
    pub figures: Vec<Figure>,
    /// What is true of the path.
    pub truth: PathTruth,
    /// What became of the packets from A.
    pub forward: WaySummary,
    /// What became of the packets from B.
    pub reverse: WaySummary,
    /// How long it took, in virtual time.
    pub elapsed: Span,
    /// The same in the schema of records; empty for [`Method::Stream`], which estimates nothing,
    /// and for [`Method::Reach`], whose figures are all here.
    #[serde(skip)]
    pub result: VersionResult,
}

/// Runs a method over a scenario.
///
/// # Errors
/// A plan that no train can carry out.
pub fn run(scenario: &Scenario, seed: u64, version: IpVersion, method: &Method) -> Result<Found, PlanError> {
    match method {
        Method::Latency(ask) => latency::run(scenario, seed, version, ask),
        Method::PathMtu => Ok(path_mtu::run(scenario, seed, version)),
        Method::Reach(ask) => Ok(reach::run(scenario, seed, version, *ask)),
        Method::Stream(ask) => Ok(stream::run(scenario, seed, version, ask)),
    }
}

/// Longer than any plan lasts, shorter than a network does.
const LONGEST: Span = Span::from_secs(90 * 24 * 3600);
/// RFC 768.
const UDP_HEADER: u32 = 8;
