//! Runs a measurement plan against a responder and yields records.
//!
//! [`test`] is the main job; [`tcp`], [`udp`] and [`latency`] are its phases as measurements of
//! their own, [`matrix()`] is many short transfers; [`hops()`] and [`reach()`] need no responder,
//! and [`host()`] looks at this host alone. None of those fails with an error: a path that cannot
//! be measured is a finding, and the [`netaware_record::Record`] says why. What was measured before
//! something broke is always in it.
//!
//! Reading order: [`Target`] and the requests, `test` (the rounds), `lane` (one version), `session`
//! and `link` (the control connection), `transfer` and `echo`, then one module per phase. `report`
//! turns what the phases saw into the record.

mod alone;
mod attach;
mod broke_off;
mod bulk;
mod careful;
mod departures;
mod dial;
mod echo;
mod estimation;
mod heavy_loss;
mod hops;
mod host;
mod interval;
mod lane;
mod latency;
mod lease;
mod link;
mod matrix;
mod owd;
mod own_absence;
mod path;
mod progress;
mod queueing;
mod reach;
mod report;
mod request;
mod resolve;
mod session;
mod stage;
mod tcp;
mod tcp_echo;
mod test;
mod trains;
mod transfer;
mod turns;
mod udp;

pub use estimation::{AvailableMethod, CapacityMethod, Estimation, EstimationRequest, Follow, estimate};
pub use hops::{HopsRequest, hops};
pub use host::{CacheUse, HostRequest, NoSuchInterface, host};
pub use latency::{latency, memory_copy};
pub use matrix::{MatrixRequest, Pair, Pairs, matrix};
pub use netaware_host::cores_online;
pub use netaware_path::hops::CapacityWay;
pub use netaware_probe::size_fit;
pub use owd::{OwdRequest, Slowing, owd};
pub use progress::Progress;
pub use reach::{ReachRequest, reach};
pub use request::{
    Directions, LatencyRequest, Pace, Rhythm, Target, TcpRequest, TestRequest, Transport, UdpRequest,
};
pub use tcp::tcp;
pub use test::test;
pub use udp::udp;
