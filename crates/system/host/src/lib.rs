//! What this host is, and what it did while we measured.
//!
//! Two kinds of things: facts that change what a figure means ([`describe`], [`interface_for`], the limits of
//! [`socket_buffer_limits`]), and counters read before and after a phase ([`CpuSnapshot`], [`ThreadCpu`],
//! [`DropSnapshot`]), whose differences say whether the host or the network set the figure.
//!
//! Nothing here needs a privilege and nothing here fails: a file, call or column that is missing yields absence
//! (`None`, zero, an empty string or list), because absent is better than guessed. No clock is read here; the caller
//! hands in the span that lies between two snapshots, and its clock for [`memory_copy_ns_per_byte`]. Outside Linux only the portable facts are filled.
//!
//! Everything follows the *calling thread's* network namespace: counters come from `/proc/thread-self/net`, devices are
//! asked through sockets. `/sys/class/net` is avoided, since it keeps showing the namespace in which it was mounted.

mod cpu;
mod describe;
mod device;
mod drops;
mod interface;
mod kernel_file;
mod memory_copy;
mod open_files;
mod rusage;
mod tcp_settings;
mod thread;
mod virtualisation;

pub use cpu::CpuSnapshot;
pub use describe::describe;
pub use drops::DropSnapshot;
pub use interface::interface_for;
pub use memory_copy::memory_copy_ns_per_byte;
pub use open_files::raise_open_files;
pub use tcp_settings::{BufferRange, SocketBufferLimits, congestion_controls, socket_buffer_limits};
pub use thread::{ThreadCpu, ThreadShare};
