//! The integration tests of `netaware-capture`, in one executable. Modules called `netns_*` need
//! root and network namespaces.

mod netns_capture;
