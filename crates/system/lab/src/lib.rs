//! A lab: two hosts on this machine and a path between them that does what a scenario says, in real
//! time.
//!
//! ```text
//!   namespace PREFIX-a                 one process                    namespace PREFIX-b
//!  ┌───────────────────┐   ┌─────────────────────────────────┐   ┌───────────────────┐
//!  │ lo                │   │ emulator: one thread with       │   │ lo                │
//!  │ lab 10.77.0.1/16  ├──►│ priority, on a core of its own  ├──►│ lab 10.77.0.2/16  │
//!  │     fd77::1/32    │TUN│                                 │TUN│     fd77::2/32    │
//!  │                   │◄──┤ netmodel: hop 0 ─ r1 ─ hop 1 …  │◄──┤                   │
//!  │ names: a b r1 r2 …│   │           10.77.1.1 fd77:0:1::1 │   │ names: a b r1 r2 …│
//!  └───────────────────┘   └──────┬──────────────────────────┘   └───────────────────┘
//!                                 └─► truth (NDJSON), report of its own error
//! ```
//!
//! Nothing in a lab leads out of it: there is no default route, and the devices lead to the
//! emulator only. It is known to everybody on this host by files below `/run/netaware-lab`, so that
//! [`down()`] can remove it after any kind of crash.
//!
//! What it cannot show: the clocks of both hosts are the one of this machine, whatever the scenario
//! says of clocks; and what its own [`Report`] says it was late.
//!
//! ```no_run
//! # use netaware_lab::{Lab, LabOptions, Side, scenarios};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scenario = scenarios::load("three-hops")?.scenario;
//! let lab = Lab::up(&scenario, &LabOptions::default())?;
//! lab.command(Side::A, "ping").args(["-c", "3", "b"]).status()?;
//! println!("{}", lab.end()?);
//! # Ok(())
//! # }
//! ```

mod addresses;
mod devices;
mod down;
mod emulator;
mod error;
mod icmp;
mod keeper;
mod lab;
mod namespace;
mod nat;
mod packet;
mod permission;
mod ports;
mod process;
mod recorded;
mod report;
mod reset;
pub mod scenarios;
mod slab;
mod stamps;
mod state;
mod system;
mod tally;
mod tool;
mod truth;
mod world;

pub use addresses::Addresses;
pub use down::{Removed, down, down_all};
pub use error::LabError;
pub use lab::{EmulatorCore, Lab, LabOptions, command};
pub use namespace::name as namespace_name;
pub use netaware_netmodel::{Scenario, Side};
pub use permission::check as check_permission;
pub use ports::await_listener;
pub use process::{ProcessId, end_child, end_child_sooner};
pub use recorded::{RecordedPacket, RecordedPackets, RecordedSum};
pub use report::{Entered, EnteredCount, OwnDrops, Report};
pub use state::{Holding, LabState, Phase};
pub use system::new_session;
pub use truth::{TruthDetail, TruthFile};
