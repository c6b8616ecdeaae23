//! Throw-away network namespaces for tests and benchmarks.
//!
//! ```text
//!          namespace "…-left"                                   namespace "…-right"
//!   ┌─────────────────────────────┐                      ┌─────────────────────────────┐
//!   │ lo     127.0.0.1, ::1       │                      │ lo     127.0.0.1, ::1       │
//!   │ lan    10.77.0.1/24         ├──────── veth ────────┤ lan    10.77.0.2/24         │
//!   │        fd00:77::1/64        │                      │        fd00:77::2/64        │
//!   │                             │                      │                             │
//!   │ hosts  both.test → .2, ::2  │                      │ hosts  both.test → .1, ::1  │
//!   │        v4.test   → .2       │                      │        v4.test   → .1       │
//!   │        v6.test   → ::2      │                      │        v6.test   → ::1      │
//!   └─────────────────────────────┘                      └─────────────────────────────┘
//!
//!   leaving each `lan`, once shaped:          entering each `lan`, once blackholed:
//!   htb ─┬─ class 4 ── tbf (IPv4 rate)        nft prerouting: drop by version or length, silently
//!        └─ class 6 ── tbf (IPv6 rate)
//! ```
//!
//! The addresses are the same in every pair: namespaces keep them apart, so pairs can live side by
//! side. Nothing outside the two namespaces is touched, except files below `/etc/netns/<namespace>`
//! (host names), which go with them. Needs root, and `ip`, `tc` and `nft` (Debian: iproute2,
//! nftables). Delay and random loss are not offered: that needs netem, which the kernels that these
//! tests must run on do not have.
//!
//! ```no_run
//! # fn main() -> Result<(), netaware_netns::NetnsError> {
//! let pair = netaware_netns::Pair::new("example")?;
//! let server = netaware_netns::Running::start(pair.right().command("iperf3").args(["-s", "-1"]))?;
//! netaware_netns::wait_until_bound(server.id(), netaware_netns::Transport::Tcp, 5201)?;
//! pair.left().command("iperf3").args(["-c", "both.test"]).status().expect("iperf3 is installed");
//! # Ok(())
//! # }
//! ```

mod blackhole;
mod bound;
mod inject;
mod pair;
mod permission;
mod running;
mod shaper;
mod side;
mod stale;
mod star;
mod tool;

pub use bound::{Transport, is_bound, wait_until_bound};
pub use pair::Pair;
pub use permission::permitted;
pub use running::Running;
pub use side::Side;
pub use stale::remove_stale;
pub use star::Star;
pub use tool::NetnsError;

/// IPv4 or IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpVersion {
    /// RFC 791.
    V4,
    /// RFC 8200.
    V6,
}
