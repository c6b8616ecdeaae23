//! The integration tests of `netaware-relay`, in one executable.

mod loopback;
