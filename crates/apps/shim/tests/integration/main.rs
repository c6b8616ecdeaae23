//! The integration tests of `netaware-shim`, in one executable. Modules called `netns_*` need root
//! and network namespaces.

mod loopback;
mod netns_programs;
