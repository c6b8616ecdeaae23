//! "Too big" reaches real sockets, and the kernel learns from it; a black hole says nothing.

use netaware_lab::{Lab, Side};
use netaware_netns::permitted;
use netaware_record::IpVersion;
use netaware_testkit::lab::{bundled, scenario};

use super::ground::{VERSIONS, said, tried, up, words};

/// IP and ICMP headers around what `ping -s` says.
fn payload(version: IpVersion, packet: u32) -> String {
    (packet - version.header_len() - 8).to_string()
}

fn ping(lab: &Lab, version: IpVersion, packet: u32) -> (bool, String) {
    let target = lab.address(Side::B, version).to_string();
    let size = payload(version, packet);
    let output = tried(
        lab,
        Side::A,
        "ping",
        &["-n", "-M", "do", "-c", "2", "-i", "0.1", "-W", "0.5", "-s", &size, &target],
    );
    (output.status.success(), words(&output))
}

/// What the kernel of host A believes of the way to B.
fn route(lab: &Lab, version: IpVersion) -> String {
    said(lab, Side::A, "ip", &["route", "get", &lab.address(Side::B, version).to_string()])
}

#[test]
fn the_kernel_learns_the_path_mtu_from_the_router() {
    if !permitted() {
        return;
    }
    let lab = up(&bundled("small-mtu"));
    for version in VERSIONS {
        assert!(!route(&lab, version).contains("mtu"), "nothing is known before");
        let router = lab.addresses().router(0, version).to_string();
        let (passed, text) = ping(&lab, version, 1500);
        let told = match version {
            IpVersion::V4 => text.contains("Frag needed and DF set (mtu = 1400)"),
            IpVersion::V6 => text.contains("Packet too big: mtu=1400"),
        };
        assert!(!passed && told && text.contains(&format!("From {router}")), "{text}");
        assert!(route(&lab, version).contains("mtu 1400"), "{}", route(&lab, version));
        // Now the kernel itself refuses, before anything leaves.
        let (passed, text) = ping(&lab, version, 1401);
        let local = text.contains("message too long") && text.contains("1400");
        assert!(!passed && local && !text.contains(&format!("From {router}")), "{text}");
        let (passed, text) = ping(&lab, version, 1400);
        assert!(passed && text.contains("2 received"), "{text}");
    }
}

#[test]
fn a_host_knows_the_mtu_of_its_own_link_for_each_version() {
    if !permitted() {
        return;
    }
    let rows = [("v6 = { mtu = 1400 }", IpVersion::V6, 1400), ("v4 = { mtu = 1300 }", IpVersion::V4, 1300)];
    for (text, smaller, mtu) in rows {
        let lab = up(&scenario(&format!("[[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\n{text}\n")));
        for version in VERSIONS {
            let (passed, text) = ping(&lab, version, 1500);
            assert_eq!(passed, version != smaller, "{text}");
            let local = text.contains("message too long") && !text.contains("From ");
            assert!(passed || local, "{text}");
        }
        let (passed, text) = ping(&lab, smaller, mtu);
        assert!(passed, "{text}");
    }
}

#[test]
fn a_black_hole_for_large_packets_stays_silent_and_teaches_nothing() {
    if !permitted() {
        return;
    }
    let lab = up(&bundled("mtu-black-hole"));
    for version in VERSIONS {
        let (passed, text) = ping(&lab, version, 1500);
        assert!(!passed && text.contains(" 0 received") && !text.contains("From "), "{text}");
        assert!(!route(&lab, version).contains("mtu"), "{}", route(&lab, version));
        let (passed, text) = ping(&lab, version, 1400);
        assert!(passed && text.contains("2 received"), "{text}");
    }
}
