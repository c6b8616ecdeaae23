//! The C ABI of streams and datagrams over both IP versions: names and arguments of sockets,
//! numbers as handles, `errno` for errors. No decisions of its own: everything is
//! [`netaware_stream`]'s.
//!
//! No call panics across the boundary, a null or a number that is no stream is an error, and
//! signals stay the program's: the library's threads block all of them, and only [`na_signals`]
//! makes it listen to two.
#![expect(unsafe_code, reason = "the other side is C; each block says what it relies on")]

mod calls;
mod datagrams;
mod decisions;
mod ending;
mod error;
mod peers;
mod policy;
mod signals;
mod status;
mod table;

pub use calls::{
    NA_DGRAM, NA_DONTWAIT, NA_DUAL, NA_EFORK, NA_FIRST, NA_HOLD, NA_IPV4, NA_IPV6, NA_MSG_HOLD, NA_NONBLOCK,
    NA_RCVTIMEO, NA_SHUT_RDWR, NA_SHUT_WR, NA_SNDTIMEO, NA_WINDOW, na_accept, na_bind, na_close, na_connect,
    na_getsockopt, na_hold, na_listen, na_poll_fd, na_recv, na_send, na_setsockopt, na_shutdown, na_socket,
    na_strerror, na_switch, na_writev,
};
pub use datagrams::{na_recvfrom, na_sendto};
pub use decisions::{
    NA_BY_CALLBACK, NA_BY_RULES, NA_GOODPUT, NA_LOSS, NA_ROUND_TRIP, NaDecision, na_decision,
};
pub use peers::{NA_ADDRESS_LENGTH, na_peer, na_peer_of};
pub use policy::{NA_KEEP, NaDecide, NaEvidence, NaVersionEvidence, na_policy, na_policy_callback};
pub use signals::na_signals;
pub use status::{NaStatus, NaVersionStatus, na_status, na_status_of};
