//! The integration tests of `netaware-collector`, in one executable.

mod fleet;
