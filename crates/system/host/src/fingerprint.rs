//! What a host's timings belong to: the hardware and the kernel under them.

use netaware_record::Fingerprint;

use crate::ability::{clock_sources, hardware_interfaces};
use crate::device::Device;
use crate::{describe, kernel_file, virtualisation};

/// This host's. Interfaces of software (bridges, tunnels, containers' pairs) are left out, since
/// they come and go. Takes a millisecond.
pub fn fingerprint() -> Fingerprint {
    let cpuinfo = kernel_file::read("/proc/cpuinfo").unwrap_or_default();
    let mut interfaces: Vec<String> = hardware_interfaces().iter().map(|name| one_line(name)).collect();
    interfaces.sort();
    Fingerprint {
        software: env!("CARGO_PKG_VERSION").to_owned(),
        cpu: describe::cpu_model(&cpuinfo),
        cores: describe::cores_online(),
        kernel: describe::system_names().1,
        clock_source: clock_sources().0.known().cloned().unwrap_or_default(),
        virtualisation: virtualisation::detect(&cpuinfo),
        interfaces,
    }
}

fn one_line(name: &str) -> String {
    let device = Device::open(name);
    #[cfg(target_os = "linux")]
    let driver = device.as_ref().and_then(Device::driver).unwrap_or_default();
    #[cfg(not(target_os = "linux"))]
    let driver = String::new();
    let mtu = device.as_ref().and_then(Device::mtu).unwrap_or(0);
    format!("{name} {driver} {mtu}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_host_has_the_same_fingerprint_and_no_loopback_in_it() {
        let one = fingerprint();
        assert_eq!(one.differences(&fingerprint()), [""; 0]);
        assert!(one.cores > 0 && !one.kernel.is_empty(), "{one:?}");
        assert!(!one.interfaces.iter().any(|line| line.starts_with("lo ")), "{one:?}");
    }
}
