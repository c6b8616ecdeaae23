//! Whether this process may make a lab, asked before anything is touched.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::LabError;

/// CAP_NET_ADMIN makes devices, CAP_SYS_ADMIN namespaces.
const NEEDED: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (21, "CAP_SYS_ADMIN")];

/// Whether this process may make, enter and remove labs.
///
/// # Errors
/// What is missing, all of it in one sentence.
pub fn check() -> Result<(), LabError> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut ip = Command::new("ip");
    netaware_private::without_secrets(&mut ip);
    let has_ip = ip.arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    match missing(&status, Path::new("/dev/net/tun").exists(), has_ip) {
        Some(missing) => Err(LabError::NotPermitted { missing }),
        None => Ok(()),
    }
}

fn missing(status: &str, has_tun: bool, has_ip: bool) -> Option<String> {
    let held = effective(status);
    let lacking: Vec<&str> =
        NEEDED.iter().filter(|(bit, _)| held >> bit & 1 == 0).map(|(_, name)| *name).collect();
    let mut wants = Vec::new();
    if !lacking.is_empty() {
        wants.push(format!("root, or {}", lacking.join(" and ")));
    }
    if !has_tun {
        wants.push("the TUN device /dev/net/tun (`modprobe tun`)".to_owned());
    }
    if !has_ip {
        wants.push("the program `ip` (package iproute2)".to_owned());
    }
    (!wants.is_empty()).then(|| wants.join("; and "))
}

/// "CapEff:\t000001ffffffffff"; a kernel that does not tell grants nothing.
fn effective(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_missing_is_named_at_once() {
        assert_eq!(missing("Name:\tx\nCapEff:\t000001ffffffffff\n", true, true), None);
        assert_eq!(missing("CapEff:\t0000000000001000\n", true, true).unwrap(), "root, or CAP_SYS_ADMIN");
        let all = missing("", false, false).unwrap();
        for word in ["CAP_NET_ADMIN and CAP_SYS_ADMIN", "/dev/net/tun", "iproute2"] {
            assert!(all.contains(word), "{all}");
        }
    }
}
