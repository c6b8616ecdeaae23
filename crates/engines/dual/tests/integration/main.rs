//! The integration tests of `netaware-dual`, in one executable.

mod interleavings;
