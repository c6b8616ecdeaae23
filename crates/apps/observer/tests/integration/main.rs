//! The integration tests of `netaware-observer`, in one executable. Modules called `netns_*` need
//! root and network namespaces.

mod netns_filters;
