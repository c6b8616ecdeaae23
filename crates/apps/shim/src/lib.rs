//! Loaded into a program before its own libraries (`LD_PRELOAD`, by `netaware run`): TCP
//! connections to a host of both IP versions go over the one that comes up first (RFC 8305), though
//! the program asks for one address.
//!
//! ```text
//!  getaddrinfo ──► book: which addresses are one host's
//!  connect ──► movable? ── no ─► the system's connect
//!                 │ yes
//!                 ▼
//!               race: the address asked for, on the program's own socket; 250 ms later or once it failed the other
//!                 │   version's, on sockets of ours that are set like the program's
//!                 ▼
//!               the winner takes the place of the program's socket (dup3), if it is not that itself
//! ```
//!
//! A socket that blocks is raced in the call. One that does not block gets its `EINPROGRESS` at
//! once, and a thread of ours watches; it only acts where the program's own attempt has not ended
//! after 250 ms.
//!
//! **When in doubt** the system's own function is called: for everything but TCP to an address that
//! a resolver gave to this process within [`book::FRESH`], for sockets that are bound, of special
//! options, watched by an epoll from before, or known under two names. No panic leaves this
//! library, no lock is waited for without a bound, and `errno` is what the system's call would
//! leave.
#![cfg(target_os = "linux")]
#![expect(
    unsafe_code,
    reason = "stands between a C program and its C library; each block says what it relies on"
)]

mod address;
mod background;
mod begin;
mod book;
mod calls;
mod claims;
mod disguise;
mod guard;
mod order;
mod race;
mod socket;
mod system;
mod told;
