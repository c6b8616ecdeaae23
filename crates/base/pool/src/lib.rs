//! Decides who may take a place in a pool that strangers share: connections that have not said
//! what they want, sessions, echoes, files that are being received.
//!
//! Each pool has a fixed number of places. Four rules keep one address, or a few, from taking all
//! of them:
//!
//! 1. **Shares.** A host and a site hold no more unproven places than their share. A host is an
//!    IPv4 address or an IPv6 /64; a site is an IPv4 address or an IPv6 /48, which is the most that
//!    one customer is usually given (RFC 6177 §2).
//! 2. **Eviction.** If the pool is full, the oldest unproven place of the site that holds most is
//!    taken away. So a site that holds one place keeps it as long as another one holds two.
//! 3. **Reserve.** Some places are given only to those who have proven that they know a key, and
//!    nobody who has proven it is evicted.
//! 4. **Ends are reported at once.** Whoever is evicted is told in the same call ([`Places`]).
//!
//! [`Pool`] decides and has neither lock, clock nor socket. [`Places`] shares it among threads and
//! gives each holder a [`Place`] that is free again when it is dropped. Each operation takes
//! O(log n) of n places, and memory is bounded by the number of places.
//!
//! [`Rates`] decides how often strangers are answered who hold no place: each host, and all.

mod network;
mod places;
mod pool;
mod rates;
mod reports;

pub use network::{Host, Site};
pub use places::{Place, Places};
pub use pool::{AtShare, Entered, Full, Id, Limits, Pool, Standing};
pub use rates::{OverRate, Rate, RateLimits, Rates};
pub use reports::Reports;
