use std::net::SocketAddr;
use std::thread;

use netaware_probe::stamp::clock::{ClockMethod, relate};
use netaware_probe::stamp::reflector::{ReflectorSettings, Refused};
use netaware_probe::stamp::report::{StampLog, Way};
use netaware_units::{ClockSource, Span};
use netaware_wire::proof::Key;
use netaware_wire::stamp::StampError;

use super::periods::{StampNames, run_periods};
use super::reflector::{ReflectorSocket, wake};
use super::*;

/// A reflector on loopback for as long as `during` lasts, and its counts.
fn beside<T>(
    ip: &str,
    key: Option<Key>,
    during: impl FnOnce(SocketAddr) -> T,
) -> (T, netaware_probe::stamp::reflector::ReflectorCounts) {
    let settings = ReflectorSettings { key, run_of_kernel: run_of_kernel(), ..Default::default() };
    let reflector = ReflectorSocket::bind(SocketAddr::new(ip.parse().unwrap(), 0), settings).unwrap();
    let (local, stop) = (reflector.local(), StopFlag::new());
    thread::scope(|scope| {
        let answering = scope.spawn(|| reflector.run(&stop, &|_| true).unwrap());
        let result = during(local);
        stop.raise();
        wake(local);
        (result, answering.join().unwrap())
    })
}

fn options(count: u64) -> StampOptions {
    let socket = SocketOptions { dscp: 46, ..SocketOptions::default() };
    StampOptions { interval: Span::from_millis(1), count: Some(count), socket, ..StampOptions::new() }
}

#[test]
fn loopback_is_one_clock_over_both_versions_proven_or_not() {
    for ip in ["127.0.0.1", "::1"] {
        for key in [None, Key::new(*b"sesame").ok()] {
            let proven = key.is_some();
            let options =
                StampOptions { key: key.clone(), length: if proven { 220 } else { 128 }, ..options(50) };
            let mut log = StampLog::default();
            let stop = StopFlag::new();
            let (run, counts) =
                beside(ip, key, |to| run(to, &options, &stop, &mut |event| log.observe(&event)).unwrap());
            assert_eq!((run.counts.answered, run.counts.lost), (50, 0), "{ip}, proven {proven}");
            assert_eq!(counts.answered, 50);
            assert_eq!((run.same_clock, run.stateful), (Some(true), Some(true)));
            let class = run.told.class.unwrap();
            assert_eq!((class.dscp, class.refused), (46, false), "{ip}");
            let relation = relate(log.exchanges(), options.error, true).unwrap();
            assert_eq!(relation.method, ClockMethod::SameHost);
            let first = log.exchanges()[0];
            assert_eq!((first.tx.by, first.rx.by), (ClockSource::Kernel, ClockSource::Kernel));
            assert_eq!((first.ttl_forward, first.ttl_reverse), (64, Some(64)));
            for way in [Way::Forward, Way::Reverse] {
                let found = log.way(way, Some(&relation));
                let delay = found.delay.unwrap_or_else(|| panic!("{way:?}: {found:?}"));
                assert!(delay.p50 < Span::from_millis(50), "{ip} {way:?}: {delay:?}");
            }
        }
    }
}

#[test]
fn another_key_is_silence_and_is_counted() {
    let options = StampOptions {
        key: Key::new(*b"other").ok(),
        length: 112,
        // The reflector has as long to take what came before it is stopped.
        patience: Span::from_secs(1),
        ..options(5)
    };
    let (run, counts) = beside("127.0.0.1", Key::new(*b"sesame").ok(), |to| {
        run(to, &options, &StopFlag::new(), &mut |_| ()).unwrap()
    });
    assert_eq!((run.counts.answered, run.counts.lost), (0, 5));
    assert_eq!(counts.refused(Refused::Packet(StampError::Proof)), 5);
}

#[test]
fn a_flow_that_goes_on_is_told_by_periods() {
    let mut periods = Vec::new();
    let names = StampNames {
        here: "a".to_owned(),
        there: "b".to_owned(),
        period: Span::from_millis(100),
        same_clock: true,
    };
    let options = StampOptions { patience: Span::from_millis(200), ..options(300) };
    beside("::1", None, |to| {
        run_periods(to, &options, &names, &StopFlag::new(), &mut |period| periods.push(period)).unwrap()
    });
    assert!(periods.len() >= 3, "{}", periods.len());
    assert_eq!(periods.iter().map(|period| period.rows[0].packets).sum::<u64>(), 300);
    for period in &periods {
        let inside = |it: &netaware_record::passive::ClockExchange| {
            it.sent_at >= period.period.from && it.sent_at < period.period.until
        };
        assert!(!period.tightest.is_empty() && period.tightest.iter().all(inside));
        let [up, down] = &period.rows;
        assert_eq!((up.from.as_str(), up.to.as_str(), up.method.as_str()), ("a", "b", "active"));
        assert_eq!((down.from.as_str(), down.matched), ("b", up.matched));
        assert_eq!(up.clock_method, "same_host");
    }
}
