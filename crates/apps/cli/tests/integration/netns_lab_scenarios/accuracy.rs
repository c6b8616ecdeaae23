//! `netaware test` with the emulator at its best: each figure has to contain the truth within what
//! it says of itself.

mod impaired;
mod ledger;
mod plain;
mod versions;
