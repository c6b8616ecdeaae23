//! TCP over paths that are cut, far or very slow. Needs root: `cargo xtask netns`.

mod accuracy;

use netaware_io::clock;
use netaware_lab::Report;
use netaware_netns::{Pair, Side, permitted};
use netaware_record::{Direction, Outcome, Record, TcpResult};
use netaware_testkit::program::Finished;
use netaware_testkit::{lab, pair};
use netaware_units::{BitRate, Span};

/// Waits until a host has sent so many bytes.
fn await_sent(side: &Side, bytes: u64) {
    let due = clock::now() + Span::from_secs(15);
    let counter = format!("/sys/class/net/{}/statistics/tx_bytes", side.device());
    loop {
        let read = side.command("cat").arg(&counter).output().unwrap();
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
    await_sent(pair.right(), 2_500_000);
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

/// What is printed of a transfer of 20 s whose link is cut after a second of its rate.
fn cut(options: &[&str]) -> Finished {
    let pair = Pair::new("tcp cuts").unwrap();
    pair.shape_two_classes(CUT_RATE, CUT_RATE).unwrap();
    let responder = pair::responder(&pair, &[]);
    let is_v6 = options.contains(&"-6");
    let host = if is_v6 { pair.right().v6().to_string() } else { pair.right().v4().to_string() };
    let prober = pair::prober(&pair, &[&["tcp", &host, "-t", "20s"], options].concat());
    if !options.contains(&"-R") {
        await_sent(pair.left(), 2_500_000);
    }
    if options.contains(&"-R") || options.contains(&"--bidir") {
        await_sent(pair.right(), 2_500_000);
    }
    pair.right().ip(&["link", "set", "dev", pair.right().device(), "down"]).unwrap();
    let finished = prober.finish_within(Span::from_secs(14)).exits_with(2);
    drop(responder);
    finished
}

const CUT_RATE: BitRate = BitRate(20_000_000);

/// Where a figure that is never zero when somebody measured it is zero.
fn zeros(json: &serde_json::Value, path: &str) -> Vec<String> {
    const NEVER: [&str; 8] =
        ["goodput", "rtt", "min_rtt", "cwnd", "busiest_thread", "thread_cpu", "first_read", "mss"];
    let within = |(name, value): (String, &serde_json::Value)| {
        let here = format!("{path}/{name}");
        let is_zero = NEVER.contains(&name.as_str()) && value.as_f64() == Some(0.0);
        zeros(value, &here).into_iter().chain(is_zero.then_some(here)).collect::<Vec<_>>()
    };
    match json {
        serde_json::Value::Object(fields) => {
            fields.iter().flat_map(|(name, value)| within((name.clone(), value))).collect()
        }
        serde_json::Value::Array(items) => {
            items.iter().enumerate().flat_map(|(n, value)| within((n.to_string(), value))).collect()
        }
        _ => Vec::new(),
    }
}

/// The rate of what came, and nothing of the end behind the cut that it never told.
#[track_caller]
fn is_rate_of_what_came(tcp: &TcpResult) {
    let share = tcp.goodput.unwrap_or_else(|| panic!("{tcp:#?}")).0 as f64 / CUT_RATE.0 as f64;
    assert!((0.3..1.1).contains(&share), "{share} of the path's rate: {tcp:#?}");
    assert_eq!(tcp.outcome, Outcome::Failed, "{tcp:#?}");
    assert!(tcp.ended_early.is_some(), "{tcp:#?}");
    let json = serde_json::to_value(tcp).unwrap();
    assert_eq!(zeros(&json, ""), Vec::<String>::new());
    if tcp.pedigree.direction == Direction::Forward {
        assert!(tcp.sender.is_some() && tcp.retransmits.is_some(), "the sender is here: {tcp:#?}");
        // Its slices stand in for what the receiver never told in whole.
        assert!(tcp.receiver.as_ref().is_none_or(|end| end.cpu.is_none() && end.streams.is_empty()));
    } else {
        assert!(tcp.sender.is_none(), "it never reported: {tcp:#?}");
        // What its slices told until the cut is known, what only its report has is not.
        assert_eq!((tcp.min_rtt, tcp.retransmits), (None, None));
    }
}

#[test]
fn a_cut_upload_both_ways_and_ipv6_leave_the_rate_of_what_came_and_no_zero() {
    if !permitted() {
        return;
    }
    std::thread::scope(|scope| {
        let json = [&["--format", "json"][..], &["--bidir", "-6", "--format", "json"]];
        for options in json {
            scope.spawn(move || {
                let record = cut(options).record();
                let ways: Vec<&TcpResult> = record.versions.iter().flat_map(|it| &it.tcp).collect();
                assert_eq!(ways.len(), if options.contains(&"--bidir") { 2 } else { 1 }, "{record:#?}");
                ways.into_iter().for_each(is_rate_of_what_came);
            });
        }
        scope.spawn(|| {
            let table = cut(&["-R", "-6", "--format", "csv"]).stdout;
            let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
            let (names, fields) = (lines.next().unwrap(), lines.next().unwrap());
            let at = |wanted: &str| fields[names.iter().position(|name| *name == wanted).unwrap()];
            let rate: f64 = at("goodput_bps").parse().unwrap_or_else(|_| panic!("{table}"));
            assert!((0.3..1.1).contains(&(rate / CUT_RATE.0 as f64)), "{rate} bit/s: {table}");
            for unknown in ["retransmits", "min_rtt_ns", "writes"] {
                assert_eq!(at(unknown), "", "{unknown}: {table}");
            }
            assert_eq!(at("outcome"), "failed", "{table}");
        });
    });
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
