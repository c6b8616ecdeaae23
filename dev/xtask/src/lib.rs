//! What every program of `dev/` needs to start other programs: commands, Debian packages, Node, and
//! a stopwatch.

pub mod clock;
pub mod node;
pub mod packages;
pub mod shell;
