//! What a dual-stack stream decides: pure state machines without socket, clock or thread.
//!
//! ```text
//!  Connect ── which address to try next, and when (RFC 8305) ──► connections
//!  Policy  ── which IP version is the better one now ──────────► Stream::switch
//!  Stream  ── what each connection carries, and what comes ────► bytes in order, once
//! ```
//!
//! [`datagram::Session`] is the same for datagrams, which nobody acknowledges one by one: they go
//! where it is better, and both ends see what each version loses.
//!
//! A [`Stream`] is one end of a stream that has up to two connections, one for each IP version. It
//! counts bytes and never sees them: its driver keeps those that it may have to send again, writes
//! what [`Stream::poll`] names and tells what came. Where a byte belongs is said by its offset, so
//! whatever a connection loses can go again over the other one, and what comes twice is known to
//! have come.

pub mod connect;
pub mod datagram;
pub mod policy;
mod stream;

pub use stream::{
    CannotSwitch, Due, Event, Loss, Outcome, Peer, Reason, Reception, Setting, Side, Standing, Stream,
    Violation,
};
