//! Sockets over IPv4 and IPv6 at once.
//!
//! [`DualStream`] reads and writes as a `TcpStream` does, over a connection of each IP version, and
//! changes from one to the other while bytes flow. What goes where is decided by [`netaware_dual`];
//! this room has the sockets, the bytes and the waiting.
//!
//! ```text
//!  send ─► kept ───────────► connections          kept: bytes that the peer has not acknowledged, in memory that the
//!  recv ◄─ inbox ◄─ or at once ─┘                       kernel sends from without another copy
//!                                                 inbox: what came before anybody read, or beyond a gap
//! ```
//!
//! [`DualDatagram`] is the same for datagrams, which are handed over as they come.
//!
//! **Who does the work.** There is no thread in the way of the bytes. Whoever is in a call reads
//! and writes both connections for everybody; one of them waits for the sockets, the others for it.
//! When nobody has been in a call for some milliseconds the stream's keeper takes over, so that
//! acknowledgements, wishes and failures are not left lying.

#[cfg(feature = "tokio")]
mod asynchronous;
mod bell;
pub mod datagram;
mod draining;
mod inbox;
mod judge;
mod keeper;
mod kept;
mod leader;
mod link;
mod listener;
mod opening;
mod options;
mod queue;
mod race;
mod readiness;
mod shared;
mod state;
mod steer;
mod stream;
mod system;
mod threads;

#[cfg(feature = "tokio")]
pub use asynchronous::{AsyncDualDatagram, AsyncDualStream};
pub use datagram::{DatagramOptions, DualDatagram, PeerId};
pub use judge::Callback;
pub use listener::DualListener;
pub use netaware_dual::connect::Wanted;
pub use netaware_dual::policy::{
    Choice, DecidedBy, Decision, Evidence, Metric, NotDone, PolicyError, Rules, VersionEvidence,
};
pub use netaware_dual::{CannotSwitch, Event, Loss, Outcome, Reason, Standing};
pub use netaware_wire::dual::MAX_DATAGRAM;
pub use opening::ConnectError;
pub use options::{Happened, Options};
pub use stream::{DualStream, LinkStatus, Status};
pub use threads::settle;
