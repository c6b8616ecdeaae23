//! `netaware reach` over a lab path whose round trip, loss and narrow link are written down, both IP versions.
//!
//! A machine whose cores are taken away for milliseconds spoils times, and with them a run; what was answered, and by what, has to
//! hold in every run. Needs root: `cargo xtask netns`.

use netaware_lab::Side;
use netaware_netns::{in_one_of, permitted};
use netaware_record::{IpVersion, QueuedWay, ReachProtocol, ReachQueues, ReachResult, Record};
use netaware_testkit::lab;
use netaware_testkit::program::Finished;
use netaware_units::{ClockSource, Span};

const RUNS: usize = 4;

fn in_lab(path: &str, seed: u64, arguments: &[&str], exit: i32) -> Finished {
    let lab = lab::up(path, seed);
    let prober = lab::prober(&lab, &[arguments, &["--no-save", "--format", "json"]].concat());
    let ended = prober.finish_within(Span::from_secs(60)).exits_with(exit);
    lab.end().unwrap();
    ended
}

/// What was asked for is in every record.
#[track_caller]
fn by(record: &Record, version: IpVersion, protocol: ReachProtocol) -> &ReachResult {
    let found = record.versions.iter().find(|it| it.version == version);
    let found = found.and_then(|it| it.reach_probes.iter().find(|it| it.protocol == protocol));
    found.unwrap_or_else(|| panic!("no {protocol:?} over {}: {record:#?}", version.name()))
}

/// Asserts what holds in every run, and judges what a busy machine may spoil.
fn holds(path: &str, arguments: &[&str], judge: impl Fn(&Record) -> Result<(), String>) {
    let mut seeds = 0..;
    in_one_of(RUNS, || judge(&in_lab(path, seeds.next().unwrap_or_default(), arguments, 0).record()));
}

#[test]
fn a_host_that_runs_nothing_answers_by_echo_tcp_and_udp() {
    if !permitted() {
        return;
    }
    let path = "[[hop]]\nrate = '100Mbit/s'\ndelay = '5ms'\n[[hop]]\nrate = '20Mbit/s'\ndelay = '5ms'\n";
    holds(path, &["reach", "b", "-t", "16s"], |record| {
        for version in [IpVersion::V4, IpVersion::V6] {
            for protocol in [ReachProtocol::Echo, ReachProtocol::Tcp, ReachProtocol::Udp] {
                let found = by(record, version, protocol);
                let rtt = found.rtt.ok_or_else(|| format!("{found:#?}"))?;
                println!(
                    "{} {}: {} .. {}, {}/{}",
                    version.name(),
                    protocol.name(),
                    rtt.min,
                    rtt.p50,
                    found.answered,
                    found.asked
                );
                // Refusals too have the kernel's stamps: no wait for a core is in them.
                let kernel = found.pedigree.clock == ClockSource::Kernel;
                if rtt.min < Span::from_millis(20) || rtt.p50 > Span::from_millis(21) || !kernel {
                    return Err(format!("{found:#?}"));
                }
            }
            assert_eq!(by(record, version, ReachProtocol::Tcp).answers, ["refused"], "{record:#?}");
            let echo = by(record, version, ReachProtocol::Echo);
            let capacity = echo.capacity.as_ref().ok_or("no capacity")?;
            println!("{:?} {:?}", capacity, echo.by_direction);
            if (capacity.rate.estimate / 20e6 - 1.0).abs() > 0.1 || echo.loss != Some(0.0) {
                return Err(format!("{echo:#?}"));
            }
        }
        Ok(())
    });
}

#[test]
fn losses_are_counted_and_a_silent_host_ends_in_time() {
    if !permitted() {
        return;
    }
    let lossy = "[[hop]]\nrate = '100Mbit/s'\ndelay = '2ms'\nforward = { loss = 0.1 }\n";
    holds(lossy, &["reach", "b", "-t", "20s", "-4"], |record| {
        let echo = by(record, IpVersion::V4, ReachProtocol::Echo);
        println!("{:?} {:?}", echo.loss, echo.by_direction);
        let loss = echo.loss.ok_or("no loss")?;
        let Some(by) = echo.by_direction else { return Err("no direction".to_owned()) };
        if !(0.05..0.16).contains(&loss) || by.forward == 0 || by.reverse > 0 {
            return Err(format!("{echo:#?}"));
        }
        Ok(())
    });
    let dead = "[[hop]]\nrate = '100Mbit/s'\ndelay = '2ms'\nloss = 1.0\n";
    let ended = in_lab(dead, 0, &["reach", "b", "-t", "6s"], 2);
    assert!(ended.took < Span::from_secs(8), "{}", ended.took);
    assert!(
        ended.stderr.starts_with("error: ") && ended.stderr.contains("answered neither"),
        "{}",
        ended.stderr
    );
}

/// One direction has bursts of cross traffic that fill its queue for some 20 ms at a time.
fn busy(from: &str) -> String {
    format!(
        "[[hop]]\nrate = '20Mbit/s'\ndelay = '5ms'\nqueue = {{ bytes = '64kB' }}\n\
         [[cross]]\nenter = 0\nfrom = '{from}'\npattern = 'constant'\nload = 0.8\n\
         square = {{ period = '230ms', duty = 0.4, high = 2.0, low = 0.0 }}\n"
    )
}

#[test]
fn the_kernels_timestamps_tell_the_way_that_queues() {
    if !permitted() {
        return;
    }
    let queues = |record: &Record| -> Result<ReachQueues, String> {
        let found = by(record, IpVersion::V4, ReachProtocol::Timestamp);
        println!("{}/{} {:?}", found.answered, found.asked, found.queues);
        // A host that answers all else and no timestamp would be the socket's fault.
        assert_eq!(found.answers, ["timestamp_reply"], "{found:#?}");
        if found.answered * 10 < found.asked * 9 {
            return Err(format!("{found:#?}"));
        }
        found.queues.clone().ok_or_else(|| format!("{found:#?}"))
    };
    let idle = "[[hop]]\nrate = '20Mbit/s'\ndelay = '5ms'\n".to_owned();
    let rows = [(idle, QueuedWay::Neither), (busy("a"), QueuedWay::Forward), (busy("b"), QueuedWay::Reverse)];
    for (path, want) in rows {
        holds(&path, &["reach", "b", "-t", "8s", "-4", "--no-tcp"], |record| {
            let found = queues(record)?;
            let milli = Span::from_millis(1);
            let (loaded, free) = match want {
                QueuedWay::Forward => (found.forward, found.reverse),
                _ => (found.reverse, found.forward),
            };
            let sized = want == QueuedWay::Neither || loaded.max >= Span::from_millis(10);
            if found.queued != want || found.resolution != milli || free.p90 > milli || !sized {
                return Err(format!("{want:?}: {found:?}"));
            }
            Ok(())
        });
    }
}

#[test]
fn connections_take_as_long_as_echoes_by_the_kernels_clock() {
    if !permitted() {
        return;
    }
    let lab = lab::up("[[hop]]\nrate = '100Mbit/s'\ndelay = '5ms'\n", 0);
    let responder = lab::responder(&lab, &[]);
    let port = responder.port();
    in_one_of(RUNS, || {
        let reach = ["reach", "b", "-t", "10s", "--no-save", "--format", "json", "--tcp-port", &port];
        let record = lab::prober(&lab, &reach).finish_within(Span::from_secs(60)).exits_with(0).record();
        [IpVersion::V4, IpVersion::V6].into_iter().try_for_each(|version| connections(&record, version))
    });
    drop(responder);
    lab.end().unwrap();
}

fn connections(record: &Record, version: IpVersion) -> Result<(), String> {
    let (tcp, echo) = (by(record, version, ReachProtocol::Tcp), by(record, version, ReachProtocol::Echo));
    assert_eq!(tcp.answers, ["accepted"], "{tcp:#?}");
    let median = |of: &ReachResult| of.rtt.map(|rtt| rtt.p50).ok_or_else(|| format!("{of:#?}"));
    let (connected, echoed) = (median(tcp)?, median(echo)?);
    println!("{}: TCP {connected}, echo {echoed}, {} connections", version.name(), tcp.answered);
    let near = (connected - echoed).abs() < Span::from_micros(500);
    if tcp.pedigree.clock != ClockSource::Kernel || !near {
        return Err(format!("{tcp:#?}"));
    }
    Ok(())
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
