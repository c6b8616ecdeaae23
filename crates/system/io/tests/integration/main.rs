//! The integration tests of `netaware-io`, in one executable.

mod many_streams;
