//! RFC 6349's figures and spaced blocks over lab paths of which the truth is closed.
//!
//! Counts, and that nothing is earlier or faster than the path, hold in every run; how much later
//! or slower is held by [`accuracy`]. Needs root: `cargo xtask netns`.

mod accuracy;

use netaware_lab::Report;
use netaware_netns::permitted;
use netaware_record::{Record, TcpResult};
use netaware_testkit::lab;
use netaware_units::Span;

fn over(path: &str, arguments: &[&str]) -> (Record, Report) {
    let lab = lab::up(path, 1);
    let responder = lab::responder(&lab, &[]);
    let prober = lab::prober(&lab, &[&["tcp", "b", "--format", "json"], arguments].concat());
    let record = prober.finish_within(Span::from_secs(50)).exits_with(0).record();
    drop(responder);
    (record, lab.end().unwrap())
}

/// One for each version.
#[track_caller]
fn results(record: &Record) -> Vec<&TcpResult> {
    let counts: Vec<usize> = record.versions.iter().map(|version| version.tcp.len()).collect();
    assert_eq!(counts, [1, 1], "{record:#?}");
    record.versions.iter().flat_map(|version| &version.tcp).collect()
}

/// Fills a link. Returns results that are slower or later than slow start explains.
fn filled() -> (Vec<String>, Report) {
    // The window is above what the path holds (25 kB) and below that and the queue: nothing is
    // lost.
    let path = "[[hop]]\nrate = '10Mbit/s'\ndelay = '10ms'\nqueue = { bytes = '200kB' }\n";
    let (record, report) = over(path, &["-n", "3MB", "-w", "50kB", "--bottleneck", "10Mbit/s,0"]);
    let mut off = Vec::new();
    for result in results(&record) {
        let figures = result.rfc6349.as_ref().unwrap();
        let (ratio, rtt) = (figures.transfer_time_ratio.unwrap(), 0.020);
        // 3 MB take 2.5 s; slow start from ten segments fills 17 within two round trips, and
        // reading begins with the first segment, so at most four round trips are lost.
        let ideal = figures.ideal_time.unwrap().secs_f64();
        // A first segment that the emulator released late makes the time shorter by as much.
        let late = report.lateness_max.map_or(0.0, Span::secs_f64) + 0.01;
        assert!(ratio >= 1.0 - late / ideal, "{figures:?}, {report}");
        // Little's law: what is in flight is the rate times the round trip, and all of it beyond
        // the path lies in the queue.
        let baseline = figures.baseline_rtt.unwrap();
        assert!(baseline >= Span::from_millis(20), "{figures:?}");
        assert!(figures.buffer_delay.unwrap() > 0.5, "the window stands in the queue: {figures:?}");
        let is_right = (0.999..=1.0 + 4.0 * rtt / ideal).contains(&ratio)
            && figures.efficiency == Some(1.0)
            && baseline < Span::from_millis(24);
        off.extend((!is_right).then(|| format!("{figures:?}")));
    }
    (off, report)
}

/// Loses one segment of a hundred. Returns efficiencies that are lower than that explains.
fn losing() -> (Vec<String>, Report) {
    let path = "[[hop]]\nrate = '50Mbit/s'\ndelay = '5ms'\nloss = { every = 100 }\n";
    let (record, report) = over(path, &["-n", "8MB"]);
    let mut off = Vec::new();
    for result in results(&record) {
        // Of every hundred segments sent, those sent again included, one is lost and sent again.
        // More are sent again only for nothing, when an acknowledgement was late.
        let efficiency = result.rfc6349.as_ref().unwrap().efficiency.unwrap();
        assert!(efficiency < 0.992, "{efficiency}");
        off.extend(((efficiency - 0.99).abs() >= 0.002).then(|| format!("{efficiency}")));
    }
    (off, report)
}

/// Spaces blocks wider than the path needs. Returns results that are late.
fn spaced() -> (Vec<String>, Report) {
    let path = "[[hop]]\nrate = '10Mbit/s'\ndelay = '10ms'\n";
    // 1000 bytes each 2 ms: 4 Mbit/s over two streams.
    let (record, report) =
        over(path, &["-l", "1000", "--block-spacing", "2ms", "--blocks", "1000", "-P", "2"]);
    let mut off = Vec::new();
    for result in results(&record) {
        let (blocks, times) = (result.blocks.unwrap(), result.times.unwrap());
        let kept = blocks.kept.unwrap();
        assert_eq!(blocks.written, 1000);
        // 999 spacings, and what the sender itself says that it put off.
        let (given, planned) = (times.given.unwrap(), Span::from_millis(1998));
        assert!(given >= planned - Span::from_millis(2), "{given}");
        // The last acknowledgement comes a round trip after the last block, or a delayed
        // acknowledgement later.
        let after = times.acknowledged.unwrap() - given;
        assert!(after >= Span::from_millis(20), "{after}");
        let spread = (times.received.unwrap() - given).abs();
        let is_right = kept.waits == 0
            && given < planned + kept.slipped + Span::from_millis(20)
            && after < Span::from_millis(120)
            && spread < Span::from_millis(60);
        off.extend((!is_right).then(|| format!("{kept:?}, {times:?}")));
    }
    (off, report)
}

#[test]
fn a_link_that_is_filled_is_never_read_faster_or_nearer_than_it_is() {
    if permitted() {
        println!("{:?}", filled());
    }
}

#[test]
fn every_hundredth_packet_lost_is_seen_in_the_efficiency() {
    if permitted() {
        println!("{:?}", losing());
    }
}

#[test]
fn spaced_blocks_are_all_written_and_none_leaves_early() {
    if permitted() {
        println!("{:?}", spaced());
    }
}
