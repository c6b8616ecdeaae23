//! Labs beside each other, and what others made.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::Stdio;

use netaware_lab::{Lab, LabError, LabState, Removed, Side, down};
use netaware_netns::permitted;
use netaware_record::IpVersion;
use netaware_testkit::lab::{self, options, scenario};

use super::ground::{ip, up};
use super::tools::fastest;

fn path(delay_ms: u32) -> netaware_lab::Scenario {
    scenario(&format!("[[hop]]\nrate = '100Mbit/s'\ndelay = '{delay_ms}ms'\n"))
}

fn pinging(lab: &Lab) -> std::process::Child {
    let target = lab.address(Side::B, IpVersion::V4).to_string();
    let mut ping = lab.command(Side::A, "ping");
    ping.args(["-n", "-c", "100", "-i", "0.02", "-W", "1", "-w", "20", &target])
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    ping.spawn().unwrap()
}

#[test]
fn two_labs_have_their_own_delays_at_the_same_time_and_one_outlives_the_other() {
    if !permitted() {
        return;
    }
    let (near, far, third) = (up(&path(5)), up(&path(30)), up(&path(1)));
    let pings = [pinging(&near), pinging(&far)];
    // Until both are answered, and so busy.
    let mut printed = pings.map(|ping| (BufReader::new(ping.stdout.unwrap()), String::new()));
    for (output, text) in &mut printed {
        while !text.contains("bytes from") {
            assert!(output.read_line(text).unwrap() > 0, "it ended: {text}");
        }
    }
    third.end().unwrap();
    for ((mut output, mut text), ms) in printed.into_iter().zip([10.0, 60.0]) {
        output.read_to_string(&mut text).unwrap();
        assert!(text.contains("100 received"), "{text}");
        let found = fastest(&text).unwrap().millis_f64();
        assert!((ms..ms + 1.0).contains(&found), "{found} instead of {ms} ms");
    }
    for lab in [near, far] {
        assert_eq!(lab.end().unwrap().ended, None);
    }
}

#[test]
fn names_that_others_have_taken_are_refused_and_stay_as_they_were() {
    if !permitted() {
        return;
    }
    let own = options();
    let prefix = &own.prefix;
    let [ours, theirs] = &["b", "a"].map(|side| format!("{prefix}-{side}"));
    // A namespace with something in it.
    ip(&["netns", "add", theirs]);
    ip(&["-netns", theirs, "link", "add", "mine", "type", "veth", "peer", "name", "other"]);
    let before = ip(&["-netns", theirs, "-oneline", "link"]);
    let refused = Lab::up(&path(1), &own).unwrap_err();
    let nothing = down(prefix);
    let after = ip(&["-netns", theirs, "-oneline", "link"]);
    ip(&["netns", "delete", theirs]);
    assert!(matches!(refused, LabError::Foreign { .. }) && refused.to_string().contains(theirs), "{refused}");
    assert_eq!((nothing.unwrap(), before), (Removed::default(), after));
    assert!(LabState::read(prefix).is_none() && !Path::new("/run/netns").join(ours).exists());
    // A folder of names.
    let folder = &Path::new("/etc/netns").join(ours);
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("hosts"), "127.0.0.1 mine\n").unwrap();
    let refused = Lab::up(&path(1), &own).unwrap_err();
    let nothing = down(prefix);
    let kept = std::fs::read_to_string(folder.join("hosts"));
    std::fs::remove_dir_all(folder).unwrap();
    assert!(matches!(refused, LabError::Foreign { .. }), "{refused}");
    assert_eq!((nothing.unwrap(), kept.unwrap()), (Removed::default(), "127.0.0.1 mine\n".to_owned()));
    // And with the names free again it comes up.
    lab::start(&path(1), &own).end().unwrap();
}
