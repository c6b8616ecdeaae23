//! The integration tests of `netaware-ipfix`, in one executable.

mod interop;
mod sockets;
