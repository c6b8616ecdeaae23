//! One file per command: its flags with their help, how they become a request, and its tests.

pub(crate) mod available;
pub(crate) mod capacity;
pub(crate) mod completions;
pub(crate) mod hops;
pub(crate) mod host;
#[cfg(target_os = "linux")]
pub(crate) mod lab;
pub(crate) mod latency;
pub(crate) mod man;
pub(crate) mod matrix;
pub(crate) mod reach;
#[cfg(target_os = "linux")]
pub(crate) mod receive;
pub(crate) mod relay;
pub(crate) mod results;
#[cfg(target_os = "linux")]
pub(crate) mod run;
pub(crate) mod schema;
#[cfg(target_os = "linux")]
pub(crate) mod send;
pub(crate) mod serve;
#[cfg(target_os = "linux")]
pub(crate) mod simulate;
pub(crate) mod tcp;
pub(crate) mod test;
pub(crate) mod udp;
