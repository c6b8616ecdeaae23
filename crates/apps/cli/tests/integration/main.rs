//! The integration tests of `netaware`, in one executable. Modules called `netns_*` need root and
//! network namespaces.

mod collect;
mod command_line;
mod export;
mod faults;
mod host_command;
mod latency_stall;
mod main_job;
mod netns_addresses;
mod netns_fleet;
mod netns_guide;
mod netns_hops;
mod netns_lab_command;
mod netns_lab_ends;
mod netns_lab_scenarios;
mod netns_latency_sessions;
mod netns_main_job;
mod netns_methods;
mod netns_owd;
mod netns_path_rates;
mod netns_probe;
mod netns_reach;
mod netns_relay;
mod netns_rtt;
mod netns_slow_path;
mod netns_tcp_figures;
mod netns_udp_exact;
mod netns_udpmon_examples;
mod netns_web_datagrams;
mod plot;
mod probe;
mod replay;
mod series;
mod transfer;
