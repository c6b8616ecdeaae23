//! What integration tests of several crates share: the `netaware` binary and its responder, labs
//! and pairs of namespaces with `netaware` on their hosts, a browser, a ClickHouse server.
//!
//! Tests run at the same time, each in a process of its own. Whatever exists once on a host (a
//! port, the name of a namespace) therefore gets a name that is unique on this host:
//! [`program::free_port`], [`lab::prefix`].

pub mod clickhouse;
pub mod contention;
pub mod control;
pub mod counters;
pub mod drawn;
pub mod figures;
mod inconclusive;
pub mod lab;
pub mod pair;
pub mod program;
pub mod world;

pub use inconclusive::inconclusive;
