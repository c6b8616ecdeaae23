//! TCP over paths that are cut, far or very slow. Needs root: `cargo xtask netns`.

mod accuracy;

use netaware_io::clock;
use netaware_lab::Report;
use netaware_netns::{Pair, permitted};
use netaware_record::{Outcome, Record, TcpResult};
use netaware_testkit::{lab, pair};
use netaware_units::{BitRate, Span};

/// Waits until the right host has sent so many bytes.
fn await_sent(pair: &Pair, bytes: u64) {
    let due = clock::now() + Span::from_secs(15);
    let counter = format!("/sys/class/net/{}/statistics/tx_bytes", pair.right().device());
    loop {
        let read = pair.right().command("cat").arg(&counter).output().unwrap();
        let sent: u64 = String::from_utf8(read.stdout).unwrap().trim().parse().unwrap();
        if sent >= bytes {
            return;
        }
        assert!(clock::now() < due, "only {sent} B were sent");
        clock::sleep(Span::from_millis(20));
    }
}

fn only(record: &Record) -> &TcpResult {
    let results: Vec<&TcpResult> = record.versions.iter().flat_map(|version| &version.tcp).collect();
    let [result] = results[..] else { panic!("{record:#?}") };
    result
}

#[test]
fn a_link_that_is_cut_leaves_the_rate_of_what_came_and_nothing_unknown_as_zero() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("tcp cut").unwrap();
    let rate = BitRate(20_000_000);
    pair.shape_two_classes(rate, rate).unwrap();
    let responder = pair::responder(&pair, &[]);
    let host = pair.right().v4().to_string();
    let prober = pair::prober(&pair, &["tcp", &host, "-R", "-t", "20s", "--format", "json"]);
    // A second of the shaper's rate.
    await_sent(&pair, 2_500_000);
    pair.right().ip(&["link", "set", "dev", pair.right().device(), "down"]).unwrap();

    // The silence is noticed after four seconds, long before the plan's end.
    let record = prober.finish_within(Span::from_secs(12)).exits_with(2).record();
    let tcp = only(&record);
    let outcomes = [record.outcome, tcp.outcome, tcp.receiver.as_ref().unwrap().outcome];
    assert_eq!(outcomes, [Outcome::Failed; 3], "inner and outer alike: {tcp:#?}");
    let (goodput, read) = (tcp.goodput.unwrap().0 as f64, tcp.times.unwrap().received_rate.unwrap().0 as f64);
    assert!((0.5..2.0).contains(&(goodput / read)), "{goodput} and {read} bit/s: {tcp:#?}");
    // The time in which it came, and not that in which nobody noticed that nothing came any more.
    let counted = tcp.measured + tcp.warm_up.as_ref().unwrap().omitted;
    let span = tcp.receiver.as_ref().unwrap().received.unwrap();
    assert!(counted > Span::ZERO && counted <= span + Span::from_millis(200), "{counted} of {span}");
    assert!(tcp.ended_early.is_some() && tcp.planned == Some(Span::from_secs(20)), "{tcp:#?}");
    assert!(tcp.sender.is_none(), "it never reported");
    assert_eq!((tcp.min_rtt, tcp.retransmits), (None, None), "unknown and not 0");
    let json = serde_json::to_value(tcp).unwrap();
    assert_eq!((json.get("min_rtt"), json.get("retransmits"), json.get("sender")), (None, None, None));

    // The other end is free again: a measurement on its side of the cut gets its place.
    let mut beside = pair.right().command(netaware_testkit::program::netaware_path());
    beside.args(["tcp", "127.0.0.1", "-t", "100ms", "--format", "json"]);
    let beside = netaware_testkit::program::Program::start(beside);
    beside.finish_within(Span::from_secs(8)).exits_with(0);
    drop(responder);
}

/// One transfer over a path of 200 ms.
fn over(rate: &str, queue: &str, arguments: &[&str], limit: Span) -> (Record, Report) {
    let path = format!("[[hop]]\nrate = '{rate}'\ndelay = '100ms'\nqueue = {{ bytes = '{queue}' }}\n");
    let lab = lab::up(&path, 1);
    let responder = lab::responder(&lab, &[]);
    let prober = lab::prober(&lab, &[&["tcp", "b", "-4", "--format", "json"], arguments].concat());
    let record = prober.finish_within(limit).exits_with(0).record();
    drop(responder);
    (record, lab.end().unwrap())
}

/// What a link's rate leaves for the payload of full segments with timestamps.
fn payload_of(link: f64) -> f64 {
    link * 1448.0 / 1500.0
}

/// The rate is within its own interval of the link's, of which what the measurement says meanwhile
/// may take 8 %.
#[track_caller]
fn holds(tcp: &TcpResult, link: f64) {
    let interval = tcp.goodput_interval.unwrap_or_else(|| panic!("{tcp:#?}"));
    let most = payload_of(link);
    assert!(interval.lo <= most * 1.01 && interval.hi >= most * 0.92, "{interval:?}, {most} bit/s");
    assert_eq!(tcp.outcome, Outcome::Complete);
    assert!(tcp.retransmits.is_some() && tcp.min_rtt.is_some() && tcp.cwnd.is_some(), "{tcp:#?}");
}

#[test]
fn four_streams_at_64_kbit_per_s_do_not_starve_the_control_connection() {
    if !permitted() {
        return;
    }
    let (record, _) = over("64kbit/s", "16kB", &["-P", "4", "-R", "-t", "4s"], Span::from_secs(19));
    assert_eq!(record.outcome, Outcome::Complete, "{record:#?}");
    holds(only(&record), 64_000.0);
}
