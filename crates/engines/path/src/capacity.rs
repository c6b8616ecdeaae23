//! Capacity: what the narrow link carries when nothing else wants it, bit/s of IP packets of the
//! largest size.
//!
//! | method | asks | time |
//! |---|---|---|
//! | [`Bulk`] | short bulks of packets; those that met no queue tell the truth | up to 3 s |
//! | [`Pathrate`] | pairs of many sizes and their modes, long trains as a lower end | up to 30 s |
//! | [`Automatic`] | the first, and the second where the first is in doubt | both |

mod automatic;
mod budget;
mod bulk;
pub(crate) mod long_train;
#[cfg(test)]
mod made_up;
mod pathrate;
mod sample;

pub use automatic::Automatic;
pub use bulk::Bulk;
pub use pathrate::{Pathrate, PathrateRules};
