//! Who set the figure: the network, a host, or the person who asked for no more.
//!
//! **Measures** nothing new: it weighs what both ends counted. Each verdict carries the
//! observations behind it, and where they single nobody out the verdict is "unknown" with what is
//! known. **Assumes** that a thread which ran (or waited for a core) nine tenths of the time was
//! the limit unless the rate asked for was reached; that a window or a buffer is the limit only
//! while no queue stands on the path, for with one a larger window would only lengthen the queue;
//! and that a busy core is ours only if we were what kept it busy. **Biased** towards the host: a
//! CPU at its end hides any network limit just above it. A flat rate is called a shaper's only
//! behind a burst, because a plain link of fixed rate without other traffic is as flat: a bucket of
//! little credit is called "network".
//! **Published**: the shares of busy time are Linux's (`tcp_info`, Yuchung Cheng and Francis Yan
//! 2016), the taxonomy follows Zhang, Breslau, Paxson, Shenker, "On the characteristics and origins
//! of Internet flow rates", SIGCOMM 2002 (T-RAT); the weights are ours and stand at the end of each
//! file.

mod cpu;
mod flatness;
mod tcp;
mod udp;

use netaware_units::Span;

pub use flatness::flatness;
pub use tcp::{TcpEvidence, tcp_limit};
pub use udp::{UdpEvidence, pause as udp_sender_pause, udp_limit};

/// What lies between the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Across {
    /// Nothing: both ends are on this host, over loopback. The network is never to blame.
    Loopback,
    /// A network, even if a short one.
    Network,
}

/// How long the program of one end did not run although it was to, where that is enough of the
/// time to have set the figure.
pub fn stood_still(told: Option<Span>, elapsed: Span) -> Option<Span> {
    told.filter(|stood| stood.secs_f64() > elapsed.secs_f64() * BRIEFLY && *stood > Span::ZERO)
}

fn did_not_run(end: &str, stood: Span) -> String {
    format!("the {end} did not run for {stood}: it was stopped, or its host was suspended")
}

/// A rate that is short of another by this share is taken for the same.
const BRIEFLY: f64 = 0.03;

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn percent_finely(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}
