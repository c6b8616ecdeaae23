//! The integration tests of `netaware-prober`, in one executable.

mod loopback;
