//! The integration tests of `netaware-netns`, in one executable. Modules called `netns_*` need root
//! and network namespaces.

mod netns_pair;
