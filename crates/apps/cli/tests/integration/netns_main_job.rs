//! The main job between two namespaces: shapers whose rate is known, packets that vanish, a responder with one version.
//! Needs root and a quiet machine.

mod blackholes;
mod one_version;
mod shapers;

#[path = "../harness/pair.rs"]
mod pair;
#[path = "../harness/program.rs"]
#[expect(dead_code, reason = "shared with tests on loopback")]
mod program;
