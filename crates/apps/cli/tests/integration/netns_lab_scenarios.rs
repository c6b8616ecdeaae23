//! `netaware test` over paths of which the truth is known.
//!
//! Short runs hold what is true in each of them: routers, MTUs, counts, what is unreachable and
//! why, that no round trip is early, no rate above what the path carries, and no advice for the
//! worse version. That each figure contains the truth within what it says of itself is held by
//! [`accuracy`]. Needs root: `cargo xtask netns`.

mod accuracy;
mod measured;

use netaware_lab::Side;
use netaware_netns::permitted;
use netaware_record::MtuFinding::{BlackHole, Learnt};
use netaware_record::{Direction, IpVersion, Preference, TcpResult, Use};
use netaware_testkit::figures::judge;
use netaware_units::Span;

use self::measured::{Measured, over, over_text};

const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];
/// Packets later than this would show in what is judged here.
const LATE: Span = Span::from_millis(1);

/// Both ends count the routers between them.
#[track_caller]
fn counts_hops(run: &Measured, version: IpVersion) {
    let routers = Some(run.scenario.hops.len() as u8 - 1);
    let path = run.version(version).path.clone().unwrap_or_default();
    assert_eq!((path.hops_forward, path.hops_reverse), (routers, routers), "{}: {path:?}", version.name());
}

/// No round trip is shorter than that of a lone packet. Returns the smallest if it exceeds that by
/// much.
#[track_caller]
fn late(run: &Measured, version: IpVersion) -> Option<String> {
    let latency = run.version(version).latency.as_ref().unwrap();
    let (rtt, truth) = (latency.rtt.unwrap(), run.base_rtt(version));
    let text = format!("{} idle RTT: {} and {truth}", version.name(), rtt.min);
    println!("{text}");
    assert!(rtt.min >= truth - Span::from_micros(2), "{text}");
    assert_eq!(latency.sent, latency.received + latency.lost, "{latency:?}");
    (rtt.min > truth + Span::from_millis(5)).then_some(text)
}

/// A direction of TCP carried no more than its path could meanwhile, its `credit` (bytes) included.
#[track_caller]
fn is_no_faster(run: &Measured, version: IpVersion, tcp: &TcpResult, credit: f64) {
    let from = if tcp.pedigree.direction == Direction::Forward { Side::A } else { Side::B };
    let (rate, seconds) = (run.payload_rate(from, version), tcp.measured.secs_f64());
    let found = tcp.goodput.unwrap().0 as f64;
    let what = format!("{} {} x{}", version.name(), tcp.pedigree.direction.name(), tcp.streams);
    println!("{what}: {found:.4e} in {seconds:.1} s, the path carries {rate:.4e}");
    // What the emulator or the reader was late with before it was counted comes on top.
    let late = run.report.lateness_max.unwrap_or_default() + Span::from_millis(10);
    let most = rate * (1.0 + late.secs_f64() / seconds) + credit * 8.0 / seconds;
    assert!(found > 0.0 && found <= most, "{what}, {most:.4e} at most: {tcp:#?}");
}

/// Both directions with one stream and with several, none faster than the path.
#[track_caller]
fn is_no_faster_than_the_path(run: &Measured, version: IpVersion, credit: f64) {
    let found = &run.version(version).tcp;
    assert_eq!(found.len(), 4, "{found:#?}");
    assert_eq!(found.iter().filter(|tcp| tcp.streams > 1).count(), 2, "{found:#?}");
    for tcp in found {
        is_no_faster(run, version, tcp, credit);
    }
}

/// There is advice for each use, and it never is for the worse version.
#[track_caller]
fn never_prefers(run: &Measured, worse: Preference) {
    let verdicts = run.record.comparison.clone().unwrap_or_default().verdicts;
    assert_eq!(verdicts.len(), 3, "{verdicts:?}");
    assert!(verdicts.iter().all(|verdict| verdict.prefer != worse), "{verdicts:?}");
    assert!(verdicts.iter().any(|verdict| verdict.purpose == Use::Bulk), "{verdicts:?}");
}

#[test]
fn five_hops_of_an_asymmetric_line_are_counted_and_nothing_is_early_or_too_fast() {
    if !permitted() {
        return;
    }
    let hop = |rate: u32, back: u32, delay: &str| {
        format!("[[hop]]\nrate = '{rate}Mbit/s'\ndelay = '{delay}'\nreverse = {{ rate = '{back}Mbit/s' }}\n")
    };
    let path = [
        hop(200, 200, "100us"),
        hop(100, 100, "2ms"),
        hop(40, 20, "8ms"),
        hop(100, 100, "3ms"),
        hop(200, 200, "200us"),
    ]
    .concat();
    let run = over_text("five hops", &path, &["-t", "6s"]);
    let mut off = Vec::new();
    for version in VERSIONS {
        counts_hops(&run, version);
        is_no_faster_than_the_path(&run, version, 0.0);
        off.extend(late(&run, version));
    }
    judge(&off, &run.report, LATE);
}

#[test]
fn one_in_a_hundred_lost_is_counted_as_the_networks() {
    if !permitted() {
        return;
    }
    let path = "[[hop]]\nrate = '50Mbit/s'\ndelay = '10ms'\nloss = '1%'\n";
    let run = over_text("1 % of loss", path, &["-t", "6s", "--no-tcp", "-b", "5Mbit/s", "-l", "500"]);
    let (mut lost, mut sent, mut off) = (0, 0, Vec::new());
    for version in VERSIONS {
        counts_hops(&run, version);
        let streams = &run.version(version).udp;
        assert_eq!(streams.len(), 2, "{streams:#?}");
        for udp in streams {
            assert_eq!(udp.received + udp.loss.lost, udp.sent, "{udp:#?}");
            let ratio = udp.loss.ratio.unwrap();
            let share = udp.loss.lost as f64 / udp.sent as f64;
            assert!(ratio.lo <= share && share <= ratio.hi, "{udp:#?}");
            off.extend((udp.loss.host != Some(0)).then(|| format!("a host dropped some: {:?}", udp.loss)));
            (lost, sent) = (lost + udp.loss.lost, sent + udp.sent);
        }
    }
    let (mean, sd) = (sent as f64 * 0.01, (sent as f64 * 0.01 * 0.99).sqrt());
    println!("{lost} of {sent}; {mean:.0} ± {sd:.0} expected");
    assert!(sent > 1000, "{sent}");
    off.extend(((lost as f64 - mean).abs() > 4.0 * sd).then(|| format!("{lost} of {sent} are lost")));
    judge(&off, &run.report, LATE);
}

#[test]
fn policer_is_never_read_above_its_rate_and_credit() {
    if !permitted() {
        return;
    }
    let run = over("policer", &["-t", "6s"]);
    for version in VERSIONS {
        counts_hops(&run, version);
        is_no_faster_than_the_path(&run, version, 100e3);
    }
}

#[test]
fn slower_ipv6_is_never_preferred_and_its_tunnel_found() {
    if !permitted() {
        return;
    }
    let path = "[[hop]]\nv4 = { rate = '60Mbit/s', delay = '8ms' }\nv6 = { rate = '30Mbit/s', delay = '20ms' }\n\
                [[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\nv6 = { mtu = 1480 }\n";
    let run = over_text("IPv4 faster", path, &["-t", "6s"]);
    for (version, mtu) in [(IpVersion::V4, 1500), (IpVersion::V6, 1480)] {
        counts_hops(&run, version);
        is_no_faster_than_the_path(&run, version, 0.0);
        let found = run.version(version).path.clone().unwrap_or_default();
        assert_eq!(found.mtu, Some(mtu), "{}: {found:?}", version.name());
    }
    never_prefers(&run, Preference::V6);
}

#[test]
fn slower_ipv4_is_never_preferred() {
    if !permitted() {
        return;
    }
    let path =
        "[[hop]]\nv4 = { rate = '30Mbit/s', delay = '15ms' }\nv6 = { rate = '60Mbit/s', delay = '8ms' }\n";
    let run = over_text("IPv6 faster", path, &["-t", "6s"]);
    never_prefers(&run, Preference::V4);
}

#[test]
fn swallowed_ipv6_is_named_and_ipv4_measured() {
    if !permitted() {
        return;
    }
    let path = "[[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\n\
                [[hop]]\nrate = '40Mbit/s'\ndelay = '6ms'\nv6 = { black_hole = true }\n";
    let run = over_text("IPv6 black hole", path, &["-t", "4s", "--connect-timeout", "1s"]);
    counts_hops(&run, IpVersion::V4);
    is_no_faster_than_the_path(&run, IpVersion::V4, 0.0);
    let why = run.version(IpVersion::V6).unreachable.clone().unwrap();
    assert!(why.stage == "connect" && why.reason.contains("fd77::2"), "{why:?}");
    never_prefers(&run, Preference::V6);
    judge(&late(&run, IpVersion::V4).into_iter().collect::<Vec<_>>(), &run.report, LATE);
}

#[test]
fn tunnel_that_answers_and_tunnel_that_is_silent_are_told_apart() {
    if !permitted() {
        return;
    }
    for (name, finding) in [("small-mtu", Learnt), ("mtu-black-hole", BlackHole)] {
        let run = over(name, &["-t", "3s", "--no-tcp", "--no-udp"]);
        for version in VERSIONS {
            counts_hops(&run, version);
            let path = run.version(version).path.clone().unwrap_or_default();
            // The search among sizes that nobody names has steps of up to 32 bytes.
            let is_right =
                path.mtu_finding == finding && path.mtu.is_some_and(|mtu| (1369..=1400).contains(&mtu));
            assert!(is_right, "{name}, {}: {path:?}; truth {finding:?}, 1400", version.name());
        }
    }
}
