//! Controller and collector of passive and active probes.
//!
//! One process: probes dial in and are told their tasks ([`Config`], `collect.toml`); what they see
//! and measure is taken into the fleet store, sightings of the same packets at several points are
//! joined, and all of it is shown over HTTP.
//!
//! ```text
//!  probes ──► listener ──► session ──► desk ──► fleet store        browsers ──► listener ──► http
//!                 ▲            │       ▲ │  ▲
//!  collect.toml ──┴ controller ┘       │ ▼  │ rows
//!  exporters of others ──► foreign ────┘ joins (a thread each)     desk ──► export ──► collectors of others
//! ```

mod access;
mod collector;
pub mod config;
mod controller;
mod desk;
mod export;
mod files;
mod foreign;
mod http;
mod instruct;
mod joins;
mod key_folders;
mod lacks;
mod latest;
mod listener;
mod markings;
mod mesh;
mod parked;
pub mod plan;
mod roster;
mod session;
mod shared;
mod tls;
mod totals;
mod window;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use collector::{Collector, StartError, Stopper};
pub use config::{Config, Fault, ReadError, Start, folder_of};
pub use controller::ApplyError;
pub use files::Files;
#[cfg(feature = "schema")]
pub use http::derived_openapi;
pub use http::{Answer, Client, ClientError, OPENAPI};
pub use instruct::{instruction, seed};
pub use joins::JoinView;
pub use latest::{FigureView, LatestView};
pub use mesh::RunView;
pub use netaware_tls::Judge;
pub use plan::{Plan, plan};
pub use roster::{Counts, ProbeView};

/// A lock, whoever panicked with it: what is behind ours is counts and states that each stand for
/// themselves.
pub(crate) fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
