//! What a lab is for, tried with the tools of the field and with packets of our own: real ping, traceroute and iperf3 read
//! the figures that follow from the scenario by arithmetic. Needs root and a quiet machine: `cargo xtask netns`.
//!
//! Whoever judges a figure here first asks the emulator for its own error ([`ground::believed`]): a run that it spoiled is
//! repeated, three times at most, and then fails with its report.

mod chance;
mod delay;
mod ground;
mod model;
mod mtu;
mod neighbours;
mod rate;
mod tools;
mod wire;
