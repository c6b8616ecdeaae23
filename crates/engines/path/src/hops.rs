//! What each hop of a path is like, seen from one end: addresses, loss, round trips, queueing,
//! capacity, choke points.
//!
//! **Measures**, for each router that can be made to answer, the smallest delay of packets of
//! several sizes (variable packet size). A link of capacity C adds 8 L / C to a packet of L bytes,
//! so the slope of delay over size up to hop n is the sum of 8 / C over its links, and the
//! difference of two neighbouring slopes is one link's. Where answers grow with the question, are
//! rationed or absent, a small packet follows each large one closely (tailgating): the large one
//! ends at hop n, the small one goes on, later by what the large one took. Trains whose outermost
//! packets end at hop 1, 2, … say where a burst is stretched (recursive packet train).
//!
//! **Assumes** that packets of one flow take one path, that each device takes a packet in before it
//! sends it on, and that some packets of each size meet empty queues. **Biased** low by layer-2
//! devices that store and forward: each adds 8 L / C of its own ([`segments`] names what would
//! explain a reading); blind to devices that cut through; errors add up along the path, so a fast
//! hop behind a slow one is known badly and reads as a bound.
//!
//! **Published**: Jacobson, "pathchar", 1997; Downey, "Using pathchar to estimate Internet link
//! characteristics", SIGCOMM 1999; Lai and Baker, "Measuring link bandwidths using a deterministic
//! model of packet delay", SIGCOMM 2000 (tailgating); Prasad, Dovrolis, Mah, "The effect of layer-2
//! store-and-forward devices on per-hop capacity estimation", INFOCOM 2003; Hu et al., "Locating
//! Internet bottlenecks" (Pathneck), SIGCOMM 2004. Where we differ: sizes come in random order over
//! the whole time, the line is Theil and Sen's with least squares beside it, ports and flow label
//! never change (Augustin et al., "Avoiding traceroute anomalies with Paris traceroute", IMC 2006),
//! and a slope that may be zero is a bound.
//!
//! [`Hops`] asks for [`Round`]s of probes and is told what came back. It has no socket and no
//! clock: times are arguments.

mod conclusion;
mod finding;
mod log;
#[cfg(test)]
mod made_up;
mod method;
mod plan;
mod ration;
mod round;
mod route;
pub mod segments;
mod slope;
mod slower;
mod survey;
mod trains;

pub use finding::{HopCapacity, HopFinding, HopFlag, HopsFinding, PathFlag, Queueing, TrainAtHop};
pub use method::{Hops, Stage};
pub use plan::{CapacityWay, HopsPlan};
pub use ration::AnswerRate;
pub use round::{Fate, HostStamps, Kind, LateAnswer, Probe, Reply, Round, RoundReport, Told, What};
pub use slope::Way;
