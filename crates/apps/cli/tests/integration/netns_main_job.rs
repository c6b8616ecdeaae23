//! The main job between two namespaces: shapers whose rate is known, packets that vanish, a responder with one version.
//! Needs root and a quiet machine.

mod blackholes;
mod one_version;
mod shapers;
