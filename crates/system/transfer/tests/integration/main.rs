//! The integration tests of `netaware-transfer`, in one executable. Modules called `netns_*` need
//! root and network namespaces.

mod loopback;
mod netns_transfer;
