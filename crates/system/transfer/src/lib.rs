//! Files over a stream of both IP versions: resumed where they broke off, whole or not at all.
//!
//! ```text
//!  plan ─► sending ─► sender ──► channel ══ stream ══ channel ──► session ─► receiving ─► place
//!  files    what is     reads      messages, TLS                     writes    what is      names, locks,
//!  found    next        them                                         them      asked for    renames
//! ```
//!
//! [`netaware_wire::transfer`] has the words. `sending`, `receiving`, `switching` and `gains`
//! decide and touch nothing; the others do what those say. `receiver` listens, and has a session
//! for each stream. A file is known by its BLAKE3: what a receiver has of one is gone on with if
//! the sender's file begins with the same bytes, and a file takes its place only if all of it is
//! what was sent. Nothing is remembered between runs but the partial files themselves, so either
//! end may die at any time.

mod channel;
mod error;
mod gains;
mod greeting;
mod place;
mod plan;
mod receiver;
mod receiving;
mod report;
mod retries;
mod roster;
mod sender;
mod sending;
mod session;
mod silence;
mod switching;
mod tls;
mod watch;

pub use error::{Broken, Failure, SendError};
pub use gains::Switch;
pub use netaware_dual::Reason;
pub use netaware_stream::{DecidedBy, Decision, Metric, NotDone, Wanted};
pub use place::Existing;
pub use receiver::{ReceiveConfig, ReceiveError, Receiver, Until};
pub use report::{Decided, Event, Progress, ReceiveReport, SendReport};
pub use sender::{Encryption, SendRequest, send};
pub use switching::{SwitchPlan, SwitchPlanError};
pub use tls::{Identity, IdentityError};
