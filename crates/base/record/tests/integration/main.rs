//! The integration tests of `netaware-record`, in one executable.

mod moments;
