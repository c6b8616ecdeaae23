//! The integration tests of `netaware-confine`, in one executable.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

mod confined;
