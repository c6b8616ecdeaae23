//! The integration tests of `netaware-stream`, in one executable. Modules called `netns_*` need
//! root and network namespaces.

mod datagrams;
// Loopback has more addresses than one on Linux alone.
#[cfg(target_os = "linux")]
mod forged_sources;
mod loopback;
mod netns_datagrams;
mod netns_endurance;
mod netns_media;
mod netns_policy;
mod netns_set_up;
mod netns_switching;
