//! `netaware reach` over a lab path whose round trip, loss and narrow link are written down, both
//! IP versions.
//!
//! Short runs hold what is true in each of them: what answered and how, that no answer is early,
//! and that nothing is wrong without saying so. How near figures are to the truth is held on
//! virtual time (`crates/system/sim/tests/integration/{reach,reach_scenarios}.rs`), and in real
//! time by [`accuracy`]. Needs root: `cargo xtask netns`.

mod accuracy;

use netaware_lab::{Report, Side};
use netaware_netns::permitted;
use netaware_record::{IpVersion, QueuedWay, ReachProtocol, ReachResult, Record};
use netaware_testkit::figures::{is_exact, judge, misleads};
use netaware_testkit::lab;
use netaware_testkit::program::Finished;
use netaware_units::{ClockSource, Span};

const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];
/// Packets later than this would show in the figures.
const LATE: Span = Span::from_micros(500);

fn in_lab(path: &str, arguments: &[&str], exit: i32) -> (Finished, Report) {
    let lab = lab::up(path, 1);
    let prober = lab::prober(&lab, &[arguments, &["--no-save", "--format", "json"]].concat());
    let ended = prober.finish_within(Span::from_secs(60)).exits_with(exit);
    (ended, lab.end().unwrap())
}

/// What was asked for is in every record.
#[track_caller]
fn by(record: &Record, version: IpVersion, protocol: ReachProtocol) -> &ReachResult {
    let found = record.versions.iter().find(|it| it.version == version);
    let found = found.and_then(|it| it.reach_probes.iter().find(|it| it.protocol == protocol));
    found.unwrap_or_else(|| panic!("no {protocol:?} over {}: {record:#?}", version.name()))
}

/// A host that runs nothing, 20 ms away behind 20 Mbit/s, asked for so long. That it answers by
/// echo, TCP and UDP, never early and stamped by the kernel, is asserted.
fn bare(time: &str) -> (Record, Report) {
    let path = "[[hop]]\nrate = '100Mbit/s'\ndelay = '5ms'\n[[hop]]\nrate = '20Mbit/s'\ndelay = '5ms'\n";
    let (ended, report) = in_lab(path, &["reach", "b", "-t", time], 0);
    let record = ended.record();
    for version in VERSIONS {
        for protocol in [ReachProtocol::Echo, ReachProtocol::Tcp, ReachProtocol::Udp] {
            let found = by(&record, version, protocol);
            let rtt = found.rtt.unwrap_or_else(|| panic!("{found:#?}"));
            println!(
                "{} {}: {} .. {}, {}/{}",
                version.name(),
                protocol.name(),
                rtt.min,
                rtt.p50,
                found.answered,
                found.asked
            );
            assert!(rtt.min >= Span::from_millis(20), "{found:#?}");
            assert!(found.answered <= found.asked, "{found:#?}");
            // Refusals too have the kernel's stamps: no wait for a core is in them.
            assert_eq!(found.pedigree.clock, ClockSource::Kernel, "{found:#?}");
        }
        assert_eq!(by(&record, version, ReachProtocol::Tcp).answers, ["refused"], "{record:#?}");
    }
    (record, report)
}

#[test]
fn a_host_that_runs_nothing_answers_by_echo_tcp_and_udp() {
    if !permitted() {
        return;
    }
    let (record, report) = bare("5s");
    if !is_exact(&report) {
        return;
    }
    let mut off = Vec::new();
    for version in VERSIONS {
        let echo = by(&record, version, ReachProtocol::Echo);
        println!("{:?} {:?} {:?}", echo.capacity, echo.by_direction, echo.flags);
        assert_eq!(echo.loss, Some(0.0), "this path loses nothing: {echo:#?}");
        let capacity = echo.capacity.as_ref();
        let why = capacity.and_then(|it| misleads(&it.rate, it.bound, &echo.flags, 20e6));
        off.extend(why.map(|why| format!("{}: {why}", version.name())));
    }
    judge(&off, &report, LATE);
}

#[test]
fn losses_are_counted_one_way_and_a_silent_host_ends_in_time() {
    if !permitted() {
        return;
    }
    let lossy = "[[hop]]\nrate = '100Mbit/s'\ndelay = '2ms'\nforward = { loss = 0.1 }\n";
    let (ended, report) = in_lab(lossy, &["reach", "b", "-t", "6s", "-4"], 0);
    let record = ended.record();
    let echo = by(&record, IpVersion::V4, ReachProtocol::Echo);
    println!("{:?} {:?}", echo.loss, echo.by_direction);
    let by_direction = echo.by_direction.unwrap_or_else(|| panic!("no direction: {echo:#?}"));

    let dead = "[[hop]]\nrate = '100Mbit/s'\ndelay = '2ms'\nloss = 1.0\n";
    let (ended, _) = in_lab(dead, &["reach", "b", "-t", "3s"], 2);
    assert!(ended.took < Span::from_secs(7), "{}", ended.took);
    assert!(
        ended.stderr.starts_with("error: ") && ended.stderr.contains("answered neither"),
        "{}",
        ended.stderr
    );
    // A late emulator loses nothing more, so its lateness excuses no count.
    if !is_exact(&report) {
        return;
    }
    assert_eq!(by_direction.reverse, 0, "nothing is lost on the way back: {echo:#?}");
    let lost = f64::from(echo.asked - echo.answered);
    // A tenth, within four standard deviations.
    let (mean, sd) = (0.1 * f64::from(echo.asked), (0.09 * f64::from(echo.asked)).sqrt());
    assert!((lost - mean).abs() <= 4.0 * sd, "{lost} lost, and not {mean} ± {sd}: {echo:#?}");
}

/// One direction has bursts of cross traffic that fill its queue for some 20 ms at a time.
fn busy(from: &str) -> String {
    format!(
        "[[hop]]\nrate = '20Mbit/s'\ndelay = '5ms'\nqueue = {{ bytes = '64kB' }}\n\
         [[cross]]\nenter = 0\nfrom = '{from}'\npattern = 'constant'\nload = 0.8\n\
         square = {{ period = '230ms', duty = 0.4, high = 2.0, low = 0.0 }}\n"
    )
}

/// Asks for timestamps over a path for so long. That they are answered is asserted.
fn timestamps(path: &str, time: &str) -> (ReachResult, Report) {
    let (ended, report) = in_lab(path, &["reach", "b", "-t", time, "-4", "--no-tcp"], 0);
    let found = by(&ended.record(), IpVersion::V4, ReachProtocol::Timestamp).clone();
    println!("{}/{} {:?}", found.answered, found.asked, found.queues);
    // A host that answers all else and no timestamp would be the socket's fault.
    assert_eq!(found.answers, ["timestamp_reply"], "{found:#?}");
    if let Some(queues) = &found.queues {
        assert_eq!(queues.resolution, Span::from_millis(1), "{found:#?}");
    }
    (found, report)
}

#[test]
fn the_kernels_timestamps_never_blame_the_way_that_is_free() {
    if !permitted() {
        return;
    }
    let (found, report) = timestamps(&busy("b"), "5s");
    let queued = found.queues.as_ref().map(|queues| queues.queued);
    let blamed = matches!(queued, Some(QueuedWay::Forward | QueuedWay::Both));
    let is_off = blamed && !found.flags.iter().any(|flag| flag == "host_busy");
    judge(&is_off.then(|| format!("{found:#?}")).into_iter().collect::<Vec<_>>(), &report, LATE);
}

/// Connects to a port that is open and asks for echoes, for so long. What answered, and by which
/// clock, is asserted.
fn connections(time: &str) -> (Record, Report) {
    let lab = lab::up("[[hop]]\nrate = '100Mbit/s'\ndelay = '5ms'\n", 0);
    let responder = lab::responder(&lab, &[]);
    let port = responder.port();
    let reach = ["reach", "b", "-t", time, "--no-save", "--format", "json", "--tcp-port", &port];
    let record = lab::prober(&lab, &reach).finish_within(Span::from_secs(60)).exits_with(0).record();
    drop(responder);
    let report = lab.end().unwrap();
    for version in VERSIONS {
        let tcp = by(&record, version, ReachProtocol::Tcp);
        assert_eq!(tcp.answers, ["accepted"], "{tcp:#?}");
        assert_eq!(tcp.pedigree.clock, ClockSource::Kernel, "{tcp:#?}");
        let rtt = tcp.rtt.unwrap_or_else(|| panic!("{tcp:#?}"));
        assert!(rtt.min >= Span::from_millis(10), "{tcp:#?}");
    }
    (record, report)
}

#[test]
fn connections_are_accepted_and_timed_by_the_kernels_clock() {
    if permitted() {
        connections("3s");
    }
}

#[test]
fn a_host_that_does_not_answer_timestamps_is_told_so() {
    if !permitted() {
        return;
    }
    let lab = lab::up("[[hop]]\nrate = '100Mbit/s'\n", 0);
    // The kernel has no switch for them: they are dropped before it sees them.
    let rules = "add table ip t; add chain ip t in { type filter hook input priority 0; }; \
                 add rule ip t in icmp type timestamp-request drop";
    assert!(lab.command(Side::B, "nft").arg(rules).status().unwrap().success(), "nft");
    let reach = ["reach", "b", "-t", "4s", "-4", "--no-save", "--format", "json"];
    let record = lab::prober(&lab, &reach).finish_within(Span::from_secs(60)).exits_with(0).record();
    lab.end().unwrap();
    let found = by(&record, IpVersion::V4, ReachProtocol::Timestamp);
    assert!((1..=5).contains(&found.asked) && found.answered == 0, "{found:#?}");
    assert!(found.flags.iter().any(|flag| flag == "silent"), "{found:#?}");
    assert_eq!(found.remarks, ["the host does not answer timestamps"]);
    assert_eq!((&found.loss, &found.queues), (&None, &None));
    let echo = by(&record, IpVersion::V4, ReachProtocol::Echo);
    assert!(echo.answered >= 10, "{echo:#?}");
}
