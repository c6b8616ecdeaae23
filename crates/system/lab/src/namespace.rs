//! One host: a namespace with a TUN device, its addresses and its names.
//!
//! A namespace of ours bears the lab's mark as the alias of its loopback device. That stays when
//! the emulator is killed and its TUN device vanishes, and a namespace that somebody else makes
//! under the same name does not have it.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use netaware_io::clock;
use netaware_io::sent_ear::SentEar;
use netaware_netmodel::scenario::NatKind;
use netaware_netmodel::{Scenario, Side};
use netaware_record::IpVersion;
use netaware_units::Span;

use crate::addresses::{NAT64_NETWORK, PREFIX_LENGTHS, V4_NETWORK, through_nat64};
use crate::process::ProcessId;
use crate::state::Phase;
use crate::system::{self, Signal};
use crate::{Addresses, LabError, tool};

/// Name of the device that leads into the path, in either namespace.
pub(crate) const DEVICE: &str = "lab";

/// What the emulator holds of a host.
pub(crate) struct HostEnd {
    pub(crate) tun: File,
    /// `/proc/net/dev` of the namespace, to read how many packets its TUN queue dropped.
    pub(crate) counters: File,
    /// Hears what is given to the device, if packets are to be stamped.
    pub(crate) sent: Option<SentEar>,
}

/// `PREFIX-a` or `PREFIX-b`.
pub fn name(prefix: &str, side: Side) -> String {
    match side {
        Side::A => format!("{prefix}-a"),
        Side::B => format!("{prefix}-b"),
    }
}

fn path(namespace: &str) -> PathBuf {
    PathBuf::from("/run/netns").join(namespace)
}

/// `ip netns exec` shows these files to a program in place of those in `/etc`.
fn files(namespace: &str) -> PathBuf {
    PathBuf::from("/etc/netns").join(namespace)
}

/// Refuses names that are taken.
pub(crate) fn check_free(namespace: &str) -> Result<(), LabError> {
    if path(namespace).exists() {
        return Err(LabError::Foreign { what: format!("the network namespace '{namespace}'") });
    }
    if files(namespace).exists() {
        return Err(LabError::Foreign { what: format!("the folder {}", files(namespace).display()) });
    }
    Ok(())
}

/// Makes and marks a namespace, with nothing in it but loopback.
pub(crate) fn make(namespace: &str, mark: &str) -> Result<(), LabError> {
    tool::ip(&["netns", "add", namespace])?;
    tool::ip(&["-netns", namespace, "link", "set", "dev", "lo", "alias", mark, "up"]).map(drop)
}

/// Gives a namespace its device, addresses and names. Nothing in it leads out of the lab.
pub(crate) fn furnish(
    namespace: &str,
    mark: &str,
    side: Side,
    mtus: [u32; 2],
    addresses: Addresses,
    scenario: &Scenario,
    stamped: bool,
) -> Result<HostEnd, LabError> {
    let end = within(namespace, || {
        let tun = system::open_tun(DEVICE)?;
        Ok(HostEnd { tun, counters: File::open("/proc/thread-self/net/dev")?, sent: None })
    });
    let mut end = end.map_err(LabError::system(format!("make a TUN device in '{namespace}'")))?;
    let [v4, v6] = [IpVersion::V4, IpVersion::V6].map(|version| addresses.host(side, version));
    let [mtu4, mtu6] = mtus;
    let mtu = mtu4.max(mtu6);
    let [long4, long6] = PREFIX_LENGTHS;
    // No link-local address: the kernel would talk to routers that are not there. No duplicate
    // address detection: it would keep the address unusable for a second.
    let mut lines = format!(
        "link set dev {DEVICE} mtu {mtu} txqueuelen {QUEUE} addrgenmode none\n\
         link set dev {DEVICE} up\n"
    );
    let lacks = scenario.hosts[side as usize].lacks;
    if lacks != Some(IpVersion::V4) {
        let _ = writeln!(lines, "address add {v4}/{long4} dev {DEVICE}");
    }
    if lacks != Some(IpVersion::V6) {
        let _ = writeln!(lines, "address add {v6}/{long6} dev {DEVICE} nodad");
    }
    if side == Side::A && scenario.nat.as_ref().is_some_and(|nat| nat.kind == NatKind::Nat64) {
        let _ = writeln!(lines, "route add {NAT64_NETWORK} dev {DEVICE}");
    }
    if mtu4 < mtu && lacks != Some(IpVersion::V4) {
        let _ = writeln!(
            lines,
            "route change {V4_NETWORK}/{long4} dev {DEVICE} proto kernel scope link src {v4} mtu {mtu4}"
        );
    }
    tool::ip_batch(namespace, &lines)?;
    if mtu6 < mtu {
        within(namespace, || fs::write(format!("/proc/sys/net/ipv6/conf/{DEVICE}/mtu"), mtu6.to_string()))
            .map_err(LabError::system(format!("set the MTU of IPv6 in '{namespace}'")))?;
    }
    if stamped {
        let sent = within(namespace, || SentEar::open(DEVICE, HEARD_BYTES));
        end.sent = Some(sent.map_err(LabError::system(format!("hear what '{namespace}' sends")))?);
    }
    write_files(namespace, mark, addresses, scenario)?;
    Ok(end)
}

/// Packets that wait for the emulator to read them; the scenario's queues are to fill first.
const QUEUE: u32 = 10_000;
/// As much as the device's own queue holds.
const HEARD_BYTES: i32 = 64 << 20;

fn write_files(
    namespace: &str,
    mark: &str,
    addresses: Addresses,
    scenario: &Scenario,
) -> Result<(), LabError> {
    let folder = files(namespace);
    fs::create_dir_all(&folder).map_err(LabError::file(&folder))?;
    // Without name servers, so that an unknown name fails at once instead of asking the real
    // network.
    let resolv = format!("# {mark}\noptions timeout:1 attempts:1\n");
    for (file, text) in [("hosts", hosts(mark, addresses, scenario)), ("resolv.conf", resolv)] {
        let file = folder.join(file);
        fs::write(&file, text).map_err(LabError::file(&file))?;
    }
    Ok(())
}

/// `a`, `b`, `a4`, `b6`, and `r1` for the first router. A host that lacks a version has no name for
/// it, except where a NAT64 gives it one (DNS64).
fn hosts(mark: &str, addresses: Addresses, scenario: &Scenario) -> String {
    let mut text = format!("# {mark}\n127.0.0.1 localhost\n::1 localhost ip6-localhost\n");
    let versions = [(IpVersion::V4, 4), (IpVersion::V6, 6)];
    for (side, name) in [(Side::A, "a"), (Side::B, "b")] {
        for (version, digit) in versions {
            let mut address = addresses.host(side, version);
            if scenario.hosts[side as usize].lacks == Some(version) {
                let is_nat64 = scenario.nat.as_ref().is_some_and(|nat| nat.kind == NatKind::Nat64);
                match addresses.host(side, IpVersion::V4) {
                    IpAddr::V4(v4) if is_nat64 && version == IpVersion::V6 => {
                        address = through_nat64(v4).into();
                    }
                    _ => continue,
                }
            }
            let _ = writeln!(text, "{address} {name} {name}{digit}");
        }
    }
    for hop in 0..addresses.routers() {
        for (version, _) in versions {
            let _ = writeln!(text, "{} r{}", addresses.router(hop, version), hop + 1);
        }
    }
    text
}

/// Runs something in a thread that has entered the namespace.
pub(crate) fn within<T: Send>(namespace: &str, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let entrance = File::open(path(namespace))?;
    std::thread::scope(|scope| {
        let inside = scope.spawn(move || {
            system::enter(&entrance)?;
            work()
        });
        inside.join().unwrap_or_else(|_| Err(io::Error::other("the thread inside the namespace panicked")))
    })
}

/// Whose a namespace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Nobody,
    Ours,
    Foreign,
}

pub(crate) fn owner(namespace: &str, mark: &str, phase: Phase) -> Owner {
    if !path(namespace).exists() {
        return Owner::Nobody;
    }
    if phase == Phase::Making && is_stub(&path(namespace)) {
        return Owner::Ours;
    }
    let shown = tool::ip(&["-netns", namespace, "-oneline", "link", "show", "dev", "lo"]).unwrap_or_default();
    judge(&shown, mark, phase)
}

/// Whether `ip netns add` was killed between making the file and putting the namespace on it. The
/// name was free when we took the prefix, so it was ours.
fn is_stub(path: &Path) -> bool {
    // A namespace is on a file system of its own (nsfs).
    let device = |path: &Path| path.metadata().map(|metadata| metadata.dev()).ok();
    path.parent().is_some_and(|folder| device(path).is_some() && device(path) == device(folder))
}

/// `ip -oneline` writes line breaks as backslashes; the alias comes last.
fn judge(loopback: &str, mark: &str, phase: Phase) -> Owner {
    let alias = loopback.split('\\').find_map(|line| line.trim().strip_prefix("alias "));
    match alias.map(str::trim) {
        Some(alias) if alias == mark => Owner::Ours,
        // Killed between making and marking: nobody has touched it since, loopback is still down.
        None if phase == Phase::Making && loopback.contains("state DOWN") => Owner::Ours,
        _ => Owner::Foreign,
    }
}

/// Removes a namespace of ours, with every process in it (SIGKILL) and its files. What bears
/// another mark stays.
pub(crate) fn remove(namespace: &str, mark: &str, phase: Phase) -> Result<Owner, LabError> {
    let owner = owner(namespace, mark, phase);
    if owner == Owner::Ours {
        kill_inside(namespace);
        tool::ip(&["netns", "delete", namespace])?;
    }
    remove_files(namespace, mark, phase);
    Ok(owner)
}

fn remove_files(namespace: &str, mark: &str, phase: Phase) {
    let folder = files(namespace);
    for file in ["hosts", "resolv.conf"] {
        let file = folder.join(file);
        let Ok(text) = fs::read_to_string(&file) else { continue };
        // Empty: killed between making it and writing it.
        let is_ours = text.lines().next() == Some(&format!("# {mark}"));
        if is_ours || (phase == Phase::Making && text.is_empty()) {
            let _ = fs::remove_file(file);
        }
    }
    // Only if it is empty: others may keep files there.
    let _ = fs::remove_dir(folder);
}

/// Twice and more, because a process may start another one while it is being killed.
fn kill_inside(namespace: &str) {
    for _ in 0..100 {
        let listed = tool::ip(&["netns", "pids", namespace]).unwrap_or_default();
        let inside: Vec<u32> = listed.lines().filter_map(|line| line.trim().parse().ok()).collect();
        if inside.is_empty() {
            return;
        }
        let own = ProcessId::own().pid;
        for process in inside.into_iter().filter(|pid| *pid > 1 && *pid != own) {
            if let Ok(process) = system::Process::hold(process) {
                process.signal(Signal::Kill);
            }
        }
        clock::sleep(Span::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_bears_our_mark_is_ours() {
        let shown = |state: &str, alias: &str| {
            format!(
                "1: lo: <LOOPBACK> mtu 65536 qdisc noop state {state} mode DEFAULT\\    link/loopback 00{alias}\n"
            )
        };
        let ours = shown("UNKNOWN", "\\    alias netaware-lab x 1");
        assert_eq!(judge(&ours, "netaware-lab x 1", Phase::Up), Owner::Ours);
        assert_eq!(judge(&ours, "netaware-lab x 12", Phase::Making), Owner::Foreign);
        assert_eq!(judge(&shown("DOWN", ""), "netaware-lab x 1", Phase::Making), Owner::Ours);
        assert_eq!(judge(&shown("DOWN", ""), "netaware-lab x 1", Phase::Up), Owner::Foreign);
        assert_eq!(judge(&shown("UNKNOWN", ""), "netaware-lab x 1", Phase::Making), Owner::Foreign);
        assert_eq!(judge("", "netaware-lab x 1", Phase::Making), Owner::Foreign);
    }

    #[test]
    fn a_file_without_a_namespace_on_it_is_a_stub() {
        let file = std::env::temp_dir().join(format!("lab-stub-{}", ProcessId::own().pid));
        fs::write(&file, "").unwrap();
        assert!(
            is_stub(&file) && !is_stub(Path::new("/proc/self/ns/net")) && !is_stub(Path::new("/no/file"))
        );
        fs::remove_file(file).unwrap();
    }

    #[test]
    fn every_host_and_router_has_a_name() {
        let path =
            |more: &str| Scenario::parse(&format!("about = 'x'\n[[hop]]\nrate = '1Mbit/s'\n{more}")).unwrap();
        let text = hosts("m", Addresses::new(3), &path(""));
        for line in ["10.77.0.2 b b4", "fd77::2 b b6", "10.77.2.1 r2", "fd77:0:1::1 r1"] {
            assert!(text.contains(line), "{text}");
        }
        assert!(!text.contains("r3"));
        let text = hosts("m", Addresses::new(3), &path("[host.b]\nlacks = 'v6'"));
        assert!(text.contains("10.77.0.2 b b4") && !text.contains("fd77::2"), "{text}");
        let nat64 = "[host.b]\nlacks = 'v6'\n[nat]\nkind = 'nat64'\nidle = '30s'";
        let text = hosts("m", Addresses::new(3), &path(nat64));
        assert!(text.contains("64:ff9b::a4d:2 b b6"), "{text}");
    }
}
