//! The facts about this host that change what its figures mean.
#![expect(unsafe_code, reason = "uname and sysconf have no safe wrapper in the standard library")]

use std::ffi::{CStr, c_char};
use std::net::SocketAddr;

use netaware_record::{HostInfo, NicInfo};

use crate::device::Device;
use crate::{interface, kernel_file, tcp_settings, virtualisation};

/// Describes this host, and the interfaces that own the `local` addresses of the measured traffic,
/// a link-local one with its scope.
pub fn describe(local: &[SocketAddr]) -> HostInfo {
    let (name, kernel) = system_names();
    let cpuinfo = kernel_file::read("/proc/cpuinfo").unwrap_or_default();
    HostInfo {
        name,
        kernel,
        cpu: cpu_model(&cpuinfo),
        cores: cores_online(),
        virtualisation: virtualisation::detect(&cpuinfo),
        software: env!("CARGO_PKG_VERSION").to_owned(),
        congestion: tcp_settings::default_congestion_control(),
        nics: interface::interfaces_for(local).iter().map(|name| describe_nic(name)).collect(),
        memory_copy_ns_per_byte: None,
        stamps: None,
    }
}

/// Logical processors online, whether or not this process may use them; 0 where unknown.
pub fn cores_online() -> u32 {
    // SAFETY: sysconf takes an integer and returns one.
    let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u32::try_from(cores).unwrap_or(0)
}

fn describe_nic(name: &str) -> NicInfo {
    let nic = NicInfo { name: name.to_owned(), ..NicInfo::default() };
    let Some(device) = Device::open(name) else { return nic };
    with_driver_facts(NicInfo { mtu: device.mtu().unwrap_or(0), ..nic }, &device)
}

#[cfg(target_os = "linux")]
fn with_driver_facts(nic: NicInfo, device: &Device) -> NicInfo {
    let speed = device.megabits().map(|rate| netaware_units::BitRate(u64::from(rate) * 1_000_000));
    NicInfo { driver: device.driver().unwrap_or_default(), speed, offloads: active_offloads(device), ..nic }
}

#[cfg(not(target_os = "linux"))]
fn with_driver_facts(nic: NicInfo, _device: &Device) -> NicInfo {
    nic
}

/// Names as `ethtool -k` prints them.
#[cfg(target_os = "linux")]
pub(crate) fn active_offloads(device: &Device) -> Vec<String> {
    use crate::device::Command;
    /// `ETH_FLAG_LRO`, the only offload that is told in the flags' word.
    const LARGE_RECEIVE: u32 = 1 << 15;
    let questions = [
        ("rx-checksumming", Command::RxChecksum, u32::MAX),
        ("tx-checksumming", Command::TxChecksum, u32::MAX),
        ("scatter-gather", Command::ScatterGather, u32::MAX),
        ("tcp-segmentation-offload", Command::TcpSegmentation, u32::MAX),
        ("generic-segmentation-offload", Command::GenericSegmentation, u32::MAX),
        ("generic-receive-offload", Command::GenericReceive, u32::MAX),
        ("large-receive-offload", Command::Flags, LARGE_RECEIVE),
    ];
    let active = questions
        .into_iter()
        .filter(|(_, command, mask)| device.value(*command).is_some_and(|answer| answer & mask != 0));
    active.map(|(name, ..)| name.to_owned()).collect()
}

/// Host name, and kernel with its release: `("gauge", "Linux 6.18.44")`.
pub(crate) fn system_names() -> (String, String) {
    // SAFETY: `utsname` consists of character arrays, for which all-zero bytes are valid.
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: `names` is a live, writable `utsname`, and the call keeps no pointer to it.
    if unsafe { libc::uname(&raw mut names) } < 0 {
        return (String::new(), String::new());
    }
    let kernel = format!("{} {}", text(&names.sysname), text(&names.release));
    (text(&names.nodename), kernel)
}

fn text(field: &[c_char]) -> String {
    let bytes: Vec<u8> = field.iter().flat_map(|character| character.to_ne_bytes()).collect();
    CStr::from_bytes_until_nul(&bytes).map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The first name for a processor in `/proc/cpuinfo`, whose keys differ by architecture; empty
/// where there is none.
///
/// 64-bit ARM tells no name, only registers; these are given as they stand rather than looked up in
/// a table that ages.
pub(crate) fn cpu_model(cpuinfo: &str) -> String {
    let value_of = |key: &str| {
        let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        fields
            .find(|(name, value)| name.trim_end() == key && !value.trim().is_empty())
            .map(|(_, value)| value.trim())
    };
    if let Some(name) = MODEL_KEYS.iter().find_map(|key| value_of(key)) {
        return name.to_owned();
    }
    match (value_of("CPU implementer"), value_of("CPU part")) {
        (Some(implementer), Some(part)) => format!("ARM implementer {implementer}, part {part}"),
        _ => String::new(),
    }
}

/// x86 and 32-bit ARM, MIPS, RISC-V, POWER, and ARM boards, in this order because the later ones
/// are less precise.
const MODEL_KEYS: &[&str] = &["model name", "cpu model", "uarch", "cpu", "Model", "Hardware"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_named_by_whatever_its_architecture_offers() {
        let rows: &[(&str, &str)] = &[
            ("processor\t: 0\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n\nmodel name\t: Other\n", "AMD EPYC"),
            ("processor : 0\ncpu : POWER9, altivec supported\n", "POWER9, altivec supported"),
            ("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", "ARM implementer 0x41, part 0xd0c"),
            (
                "CPU part\t: 0xd08\nModel\t\t: Raspberry Pi 4 Model B Rev 1.1\n",
                "Raspberry Pi 4 Model B Rev 1.1",
            ),
            ("model name\t: \ncpu model\t: MIPS 74Kc\n", "MIPS 74Kc"),
            ("model name", ""),
            ("", ""),
        ];
        for (n, (cpuinfo, want)) in rows.iter().enumerate() {
            assert_eq!(cpu_model(cpuinfo), *want, "row {n}");
        }
    }

    #[test]
    fn this_host_has_a_name_a_kernel_cores_and_its_loopback() {
        let host = describe(&[([127, 0, 0, 1], 0).into(), ([127, 0, 0, 1], 0).into()]);
        assert!(!host.name.is_empty() && !host.kernel.is_empty() && host.cores >= 1, "{host:?}");
        assert_eq!(host.nics.len(), 1);
        assert!(host.nics.iter().all(|nic| nic.mtu >= 1280), "{host:?}");
        assert!(!host.software.is_empty());
    }

    #[test]
    fn without_addresses_no_interface_is_described() {
        assert_eq!(describe(&[]).nics, []);
        assert_eq!(describe(&["192.0.2.77:0".parse().expect("an address")]).nics, []);
    }
}
