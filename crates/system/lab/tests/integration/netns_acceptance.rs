//! What a lab is for, tried with the tools of the field and with packets of our own: real ping,
//! traceroute and iperf3 read the figures that follow from the scenario by arithmetic. Needs root
//! and a machine that does nothing else.
//!
//! Each figure is of one run. What holds in every run (nothing early, nothing lost or doubled but
//! by the scenario) is always asserted. What the emulator's lateness adds is judged by the
//! emulator's own report; a run that the report says was spoiled is not judged
//! ([`ground::Judged`]). [`accuracy`] has the bounds that hold on a machine that lends nobody its
//! cores.

mod accuracy;
mod chance;
mod delay;
mod ground;
mod model;
mod mtu;
mod neighbours;
mod rate;
mod tools;
mod wire;
