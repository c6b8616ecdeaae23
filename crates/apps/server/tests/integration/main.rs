//! The integration tests of `netaware-server`, in one executable.

mod responder;
mod secure;
mod web;
