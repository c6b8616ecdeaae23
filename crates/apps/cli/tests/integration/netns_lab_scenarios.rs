//! `netaware test` over paths of which the truth is known: each figure has to contain it within what it says of itself.
//!
//! A run that the emulator spoiled (see [`measured`]) says nothing about the method; it is repeated, three times at most.
//! Needs root and a quiet machine: `cargo xtask netns`.

mod impaired;
mod ledger;
mod measured;
mod plain;
mod versions;
