//! The responder: what `netaware serve` runs, and what `netaware test` runs against itself on
//! loopback.
//!
//! ```text
//!            TCP                                   UDP, one thread per IP version
//!             |                                               |
//!  opening: preface? HTTP? noise?                 reflector: judge each datagram (flows)
//!       |              |                             |                |
//!  control session   data, echo connections     echo answered    flow entered
//!       |    ^---------------+---------------------------------------'
//!       |   events
//!  session (decides)  admission (whose turn)  rig, runner (threads that move data)
//! ```
//!
//! One thread runs every control connection; it never measures. Tests run in threads of their own,
//! bulk transfer with the loops of `netaware-io`. Pure decisions (`session`, `admission`, `flows`,
//! `plan`) take time as an argument and know no socket.
//!
//! Everything from the network is hostile: what may be held per connection, session and address is
//! bounded, whoever says nothing is forgotten, and no UDP goes to an address that has not proven
//! itself.
//!
//! Reading order: [`Config`], [`Server`], then `session`, `control`, `flows`, `reflector`; `web`
//! for browsers.

mod admission;
mod allowance;
mod bind;
mod channel;
mod complaints;
mod config;
mod context;
mod control;
mod event;
mod flows;
mod framing;
mod http;
mod link;
mod meter;
mod names;
mod network;
mod opening;
mod outbox;
mod plan;
mod pools;
mod random;
mod reflector;
mod rig;
mod roster;
mod runner;
mod server;
mod session;
mod stamp;
mod stream_socket;
mod tcp_echo;
mod together;
mod trains;
mod web;

pub use bind::BindError;
pub use config::Config;
pub use names::{ParseNameError, PublicName};
pub use netaware_tls::{Fingerprint, Identity, IdentityError};
pub use netaware_wire::proof::{Key, KeyError};
pub use network::{Network, ParseNetworkError};
pub use server::{RunError, Server, Stopper, names};
pub use web::{KeepError, Listed, Results, Sender};
