//! Whom one end of a TLS connection believes the other to be, and why it does not.
//!
//! TLS 1.3 alone is spoken. A certificate is judged by an authority and the name that was dialled,
//! by its own fingerprint, or not at all where both ends prove over that very connection (RFC 9266)
//! that they have a key. What a person has to do when it is not believed is the business of
//! [`Refusal`].

mod identity;
pub mod pem;
mod pinned;
mod provider;
mod refusal;
mod trust;

pub use identity::{Identity, IdentityError};
pub use pinned::{Fingerprint, fingerprint, pinned};
pub use provider::provider;
pub use refusal::Refusal;
pub use trust::{Judge, Trust, TrustError};
