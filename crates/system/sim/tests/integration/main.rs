//! The integration tests of `netaware-sim`, in one executable.

mod available;
mod busy_hosts;
mod capacity;
mod hops;
mod hostile_paths;
mod policed;
mod promises;
mod reach;
mod reach_scenarios;
mod size_slope;
mod truth;
mod unchanged;
mod world_files;
mod world_rates;
