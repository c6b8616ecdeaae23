//! The integration tests of `netaware-host`, in one executable. Modules called `netns_*` need root
//! and network namespaces.

mod full_socket;
mod netns_chronyd;
mod netns_ntpd;
mod netns_ptp4l;
