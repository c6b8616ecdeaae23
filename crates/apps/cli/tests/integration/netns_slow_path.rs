//! A path whose round trip takes 1.2 s: longer than any patience that is fixed to a second. Nothing
//! is lost on it, so nothing may be called lost, late or silent. Needs root.

use netaware_netns::{Transport, permitted, wait_until_bound};
use netaware_record::{IpVersion, ReachProtocol, Record, VersionResult};
use netaware_testkit::lab;
use netaware_testkit::pair::over;
use netaware_units::Span;

const PATH: &str =
    "[[hop]]\nrate = '100Mbit/s'\ndelay = '1ms'\n[[hop]]\nrate = '10Mbit/s'\ndelay = '599ms'\n";
const RTT: Span = Span::from_millis(1200);
const STAMP: u16 = 8620;

type Holds = fn(&VersionResult) -> bool;

fn latency(found: &VersionResult) -> bool {
    let Some(it) = &found.latency else { return false };
    (it.received, it.lost, it.late) == (it.sent, 0, 0) && it.received == 30 && it.patience >= RTT * 4
}

fn owd(found: &VersionResult) -> bool {
    found.owd.as_ref().is_some_and(|it| (it.received, it.lost, it.late) == (50, 0, 0))
}

fn reach(found: &VersionResult) -> bool {
    let by = |wanted| found.reach_probes.iter().find(|it| it.protocol == wanted);
    let echo = by(ReachProtocol::Echo).is_some_and(|it| it.answered > 0 && it.loss == Some(0.0));
    echo && by(ReachProtocol::Tcp)
        .is_some_and(|it| it.answered > 0 && it.rtt.is_some_and(|rtt| rtt.min >= RTT))
}

fn hops(found: &VersionResult) -> bool {
    let Some(it) = &found.hops else { return false };
    it.hops.len() == 2 && it.hops[1].answered > 0 && it.hops[1].rtt_min.is_some_and(|rtt| rtt >= RTT)
}

#[test]
fn a_slow_path_is_not_a_silent_one() {
    if !permitted() {
        return;
    }
    let lab = lab::up(PATH, 1);
    let reflector = lab::responder(&lab, &[&format!("--stamp={STAMP}")]);
    wait_until_bound(reflector.id(), Transport::Udp, STAMP).unwrap();
    let port = STAMP.to_string();
    let runs: [(&[&str], Holds); 8] = [
        (&["latency", "b", "-4", "-c", "30", "-i", "20ms"], latency),
        (&["latency", "b", "-6", "--tcp", "-c", "30", "-i", "20ms"], latency),
        (&["owd", "b", "-4", "--port", &port, "-c", "50", "-i", "20ms"], owd),
        (&["owd", "b", "-6", "--port", &port, "-c", "50", "-i", "20ms"], owd),
        (&["reach", "b", "-4", "-t", "8s"], reach),
        (&["reach", "b", "-6", "-t", "8s"], reach),
        (&["hops", "b", "-4", "-t", "12s", "--max-hops", "3", "--no-trains"], hops),
        (&["hops", "b", "-6", "-t", "12s", "--max-hops", "3", "--no-trains"], hops),
    ];
    let start =
        |arguments: &[&str]| lab::prober(&lab, &[arguments, &["--no-save", "--format", "json"]].concat());
    let programs: Vec<_> = runs.iter().map(|(arguments, _)| start(arguments)).collect();
    for ((arguments, holds), program) in runs.iter().zip(programs) {
        let finished = program.finish_within(Span::from_secs(40)).exits_with(0);
        let record: Record = finished.record();
        let version = if arguments.contains(&"-6") { IpVersion::V6 } else { IpVersion::V4 };
        assert!(holds(over(&record, version)), "{arguments:?}: {record:#?}");
    }
}
