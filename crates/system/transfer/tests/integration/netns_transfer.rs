//! Transfers over emulated paths: a version that dies in the middle, and a policy that finds the
//! faster one.
//!
//! Each test is one run. [`accuracy`] has the bounds of time that hold on a machine that is not
//! busy.

mod accuracy;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_lab::{Lab, Report, Side};
use netaware_netns::permitted;
use netaware_record::IpVersion;
use netaware_testkit::{inconclusive, lab};
use netaware_transfer::{
    Existing, Progress, Reason, ReceiveConfig, Receiver, SendReport, SendRequest, SwitchPlan, Until, send,
};
use netaware_units::Span;
use tempfile::TempDir;

const PORT: u16 = 14_234;
/// An emulator that is later than this spoils what is asserted about time.
const LATE: Span = Span::from_millis(10);

/// IPv4 and IPv6 of these rates in Mbit/s, 10 ms each way.
fn lab(v4: u32, v6: u32) -> Lab {
    let version = |rate| format!("{{ rate = \"{rate}Mbit/s\", delay = \"10ms\" }}");
    let text = format!("[[hop]]\nv4 = {}\nv6 = {}\n", version(v4), version(v6));
    lab::up(&text, 1)
}

/// Sends so many bytes from one side to the other; what came of it, and that it is the same file.
fn transfer(lab: &Lab, bytes: usize, switch: &str, mut progress: impl FnMut(Progress) + Send) -> SendReport {
    let [source, target] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let mut content = vec![0; bytes];
    blake3::Hasher::new().update(switch.as_bytes()).finalize_xof().fill(&mut content);
    let file = source.path().join("file");
    std::fs::write(&file, &content).unwrap();
    let receiver = lab.within(Side::B, || {
        lab::keep_off_emulator(lab)?;
        Receiver::bind(config(&target)).map_err(std::io::Error::other)
    });
    let (receiver, stop) = (receiver.unwrap(), StopFlag::new());
    let addresses = [IpVersion::V4, IpVersion::V6].map(|ip| lab.address(Side::B, ip).to_string());
    let switch: SwitchPlan = switch.parse().unwrap();
    let request = SendRequest { switch, ..SendRequest::new(vec![file], addresses.join(","), PORT) };
    let report = std::thread::scope(|scope| {
        scope.spawn(|| receiver.run(Until::Stopped, &stop, |_| {}));
        let sent = lab.within(Side::A, || {
            lab::keep_off_emulator(lab)?;
            send(&request, &stop, &mut progress).map_err(std::io::Error::other)
        });
        stop.raise();
        sent.unwrap()
    });
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(hash(&target.path().join("file")), blake3::hash(&content));
    report
}

fn config(target: &TempDir) -> ReceiveConfig {
    let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    ReceiveConfig {
        folder: target.path().to_owned(),
        existing: Existing::Keep,
        port: PORT,
        bind: any.map(Into::into).to_vec(),
        key: None,
        identity: None,
        max_transfers: 4,
    }
}

fn hash(path: &Path) -> blake3::Hash {
    blake3::hash(&std::fs::read(path).unwrap())
}

/// IPv6, which is used, dies in the middle of a file; returns how long nothing came then. Asserts
/// what holds in every run.
fn lose_a_version() -> (Span, Report) {
    let lab = lab(40, 40);
    let kill = |side| {
        let rules = "table ip6 dead {\nchain in {\ntype filter hook prerouting priority 0;\ndrop\n}\n}\n";
        let status = lab.command(side, "nft").arg(rules).status().unwrap();
        assert!(status.success());
    };
    let mut killed = false;
    let report = transfer(&lab, 12 << 20, "6", |progress| {
        if let Progress::Moved { done, bytes, .. } = progress
            && done > bytes / 2
            && !killed
        {
            killed = true;
            // The reader first: what it hears then is the last that came, however long a busy host
            // takes to start the second command.
            [Side::B, Side::A].into_iter().for_each(kill);
        }
    });
    let emulator = lab.end().unwrap();
    println!("{report:?}; {emulator}");
    let [switch] = &report.switches[..] else { panic!("{report:?}") };
    assert_eq!((switch.to, switch.reason, report.reconnects), (IpVersion::V4, Reason::Loss, 0), "{report:?}");
    (switch.stalled, emulator)
}

#[test]
fn a_version_that_is_blackholed_in_the_middle_is_left_and_the_file_is_the_same() {
    if !permitted() {
        return;
    }
    let (stalled, report) = lose_a_version();
    if let Some(why) = report.why_invalid(LATE) {
        return inconclusive(why);
    }
    // It is not left before it was silent for a quarter of a second.
    assert!((Span::from_millis(250)..Span::from_secs(4)).contains(&stalled), "{stalled}");
}

#[test]
fn both_versions_gone_for_a_while_only_delay_the_file() {
    if !permitted() {
        return;
    }
    let lab = lab(40, 40);
    let kill = |side| {
        let rules = "table inet dead {\nchain in {\ntype filter hook prerouting priority 0;\ndrop\n}\n}\n";
        assert!(lab.command(side, "nft").arg(rules).status().unwrap().success());
    };
    let heal = |side| {
        assert!(
            lab.command(side, "nft").args(["delete", "table", "inet", "dead"]).status().unwrap().success()
        );
    };
    let (mut killed, mut healed) = (false, false);
    let report = transfer(&lab, 25 << 20, "off", |progress| match progress {
        Progress::Moved { done, bytes, .. } if done > bytes / 2 && !killed => {
            killed = true;
            [Side::A, Side::B].into_iter().for_each(kill);
        }
        // Both connections were given up, and what was under way with them.
        Progress::Note(note) if note.contains("trying again") && !healed => {
            healed = true;
            clock::sleep(Span::from_secs(1));
            [Side::A, Side::B].into_iter().for_each(heal);
        }
        _ => {}
    });
    println!("{report:?}");
    assert!(report.reconnects >= 1 && report.resumed > 10 << 20, "{report:?}");
    lab.end().unwrap();
}

/// What a policy does where IPv4 has four times the rate of IPv6, which is used first. Asserts what
/// holds in every run.
fn go_where_it_is_faster() -> (SendReport, Report) {
    let lab = lab(60, 15);
    let mut told = 0;
    let report = transfer(&lab, 60 << 20, "auto", |progress| {
        told += u32::from(matches!(progress, Progress::Decided(_)));
    });
    let emulator = lab.end().unwrap();
    println!("{report:?}; {emulator}");
    let ([switch], [decided]) = (&report.switches[..], &report.decisions[..]) else { panic!("{report:?}") };
    println!("{}", decided.decision);
    assert_eq!((switch.to, switch.reason), (IpVersion::V4, Reason::OwnWish), "{report:?}");
    assert_eq!((decided.decision.to, decided.decision.not_done, told), (switch.to, None, 1));
    assert!(decided.at <= switch.at && decided.decision.other > decided.decision.present, "{report:?}");
    (report, emulator)
}

/// How many times the rate before the switch the rate after it is.
fn gained(report: &SendReport) -> f64 {
    let switch = &report.switches[0];
    switch.after.unwrap().0 as f64 / switch.before.unwrap().0 as f64
}

#[test]
fn a_policy_moves_a_transfer_to_the_faster_version_and_tells_what_that_gained() {
    if !permitted() {
        return;
    }
    let (report, emulator) = go_where_it_is_faster();
    let gained = gained(&report);
    if let Some(why) = emulator.why_invalid(LATE) {
        return inconclusive(why);
    }
    assert!(gained > 1.5, "{gained}");
}
