//! What this host is, and what it did while we measured.
//!
//! Two kinds of things: facts that change what a figure means ([`describe`], [`interface_for`], the
//! limits of [`socket_buffer_limits`], [`interface_facts`]), and counters read before and after a
//! phase ([`CpuSnapshot`], [`ThreadCpu`], [`CoreDemand`], [`DropSnapshot`]), whose differences say
//! whether the host or the network set the figure.
//!
//! [`kept`] and [`keep`] are the file in which `netaware host` finds again what it has measured,
//! for as long as the [`fingerprint`] stays the same.
//!
//! Nothing here needs a privilege and nothing here fails: a file, call or column that is missing
//! yields absence (`None`, zero, an empty string or list), because absent is better than guessed.
//! No clock is read here; the caller hands in the span that lies between two snapshots, and its
//! clock for [`memory_copy_ns_per_byte`]. Outside Linux only the portable facts are filled.
//!
//! Everything follows the *calling thread's* network namespace: counters come from
//! `/proc/thread-self/net`, devices are asked through sockets. `/sys/class/net` is avoided, since
//! it keeps showing the namespace in which it was mounted.

mod ability;
mod cache;
#[cfg(unix)]
pub mod clock;
mod core_demand;
mod cpu;
mod describe;
mod device;
mod drops;
mod fingerprint;
mod interface;
mod interrupts;
mod kernel_file;
mod load;
mod memory_copy;
mod open_files;
mod rusage;
mod tcp_settings;
mod thread;
mod virtualisation;

pub use ability::{
    clock_sources, congestion_facts, interface_facts, interfaces_of_interest, socket_buffers, steal,
};
pub use cache::{Kept, Miss, UnusableCache, default_cache, keep, kept};
pub use core_demand::CoreDemand;
pub use cpu::CpuSnapshot;
pub use describe::{cores_online, describe};
pub use drops::DropSnapshot;
pub use fingerprint::fingerprint;
pub use interface::{all_interfaces, interface_for, lost_network, reachable_addresses};
pub use interrupts::ModerationSnapshot;
pub use load::{Load, Memory};
pub use memory_copy::memory_copy_ns_per_byte;
pub use open_files::raise_open_files;
pub use tcp_settings::{BufferRange, SocketBufferLimits, congestion_controls, socket_buffer_limits};
pub use thread::{ThreadCpu, ThreadShare};
