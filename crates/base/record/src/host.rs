//! Who measured: the facts about a host that change what its figures mean.

use netaware_units::BitRate;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::StampTiming;

/// A host at one end of the path. Every field may be empty: absent is better than guessed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HostInfo {
    /// Host name.
    pub name: String,
    /// Operating system and its version, for example "Linux 6.18.44".
    pub kernel: String,
    /// Processor model.
    pub cpu: String,
    /// Logical processors online.
    pub cores: u32,
    /// "kvm", "vmware", "container" and so on; empty on bare metal or where unknown.
    #[serde(default)]
    pub virtualisation: String,
    /// netaware's version.
    pub software: String,
    /// Default TCP congestion control.
    #[serde(default)]
    pub congestion: String,
    /// Interfaces that carried the measured traffic.
    #[serde(default)]
    pub nics: Vec<NicInfo>,
    /// What copying memory costs, ns per byte, best of several copies of 16 MiB; only where it was
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_copy_ns_per_byte: Option<f64>,
    /// How fast it sends single packets and how far its stamps can be trusted; only where it was
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamps: Option<StampTiming>,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct NicInfo {
    /// "eth0".
    pub name: String,
    /// Driver, "veth", "virtio_net"; empty where unknown.
    #[serde(default)]
    pub driver: String,
    /// MTU in bytes.
    pub mtu: u32,
    /// Link rate that the driver claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<BitRate>,
    /// Active offloads by their ethtool names ("tx-checksumming", "generic-receive-offload", …).
    #[serde(default)]
    pub offloads: Vec<String>,
}
