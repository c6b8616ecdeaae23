//! The integration tests of `netaware-stream`, in one executable. Modules called `netns_*` need
//! root and network namespaces.

mod datagrams;
mod loopback;
mod netns_datagrams;
mod netns_endurance;
mod netns_media;
mod netns_policy;
mod netns_set_up;
mod netns_switching;
