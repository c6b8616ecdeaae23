//! The integration tests of `netaware-lab`, in one executable. Modules called `netns_*` need root
//! and network namespaces.

mod netns_acceptance;
mod netns_lab;
mod netns_middlebox;
