//! Every measurement against a responder in the same process, over both IP versions of loopback.
//!
//! What is asserted holds on the slowest machine: that figures are there, agree with each other and name the host as the
//! limit. How fast loopback is, is no business of a test.

use std::thread::JoinHandle;

use netaware_io::stop::StopFlag;
use netaware_prober::{
    Directions, LatencyRequest, MatrixRequest, Pace, Pairs, Progress, Target, TcpRequest, TestRequest,
    Transport, UdpRequest, latency, matrix, tcp, test, udp,
};
use netaware_record::{Direction, IpVersion, MatrixProtocol, Outcome, Record, Side};
use netaware_server::{Config, Server, Stopper};
use netaware_units::{BitRate, ByteCount, Span};

struct Responder {
    target: Target,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
}

impl Responder {
    fn start() -> Self {
        let bind = vec!["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()];
        let server = Server::bind(Config { port: 0, bind, ..Config::default() }).unwrap();
        let port = server.addresses()[0].port();
        let target = Target { port, own_responder: true, ..Target::new("localhost") };
        let stopper = server.stopper();
        let thread = std::thread::spawn(move || server.run().unwrap());
        Self { target, stopper, thread: Some(thread) }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stopper.stop();
        self.thread.take().unwrap().join().unwrap();
    }
}

fn quiet() -> impl FnMut(Progress) {
    |_| {}
}

fn both_complete(record: &Record) {
    let failures: Vec<_> = record.versions.iter().filter_map(|v| v.unreachable.as_ref()).collect();
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!(record.outcome, Outcome::Complete);
    assert_eq!(record.versions.iter().map(|v| v.version).collect::<Vec<_>>(), [IpVersion::V4, IpVersion::V6]);
}

#[test]
fn latency_counts_every_request_once() {
    let responder = Responder::start();
    let request = LatencyRequest {
        count: Some(200),
        spacing: Span::from_millis(2),
        ..LatencyRequest::new(responder.target.clone())
    };
    let record = latency(&request, &StopFlag::new(), &mut quiet());
    both_complete(&record);
    for version in &record.versions {
        let latency = version.latency.as_ref().unwrap();
        assert_eq!(latency.received + latency.lost, 200);
        assert!(latency.rtt.unwrap().min > Span::ZERO);
        assert!(latency.rtt.unwrap().p50 <= latency.rtt_application.unwrap().p50);
    }
}

#[test]
fn ping_pong_over_udp_and_tcp_end_in_time() {
    let responder = Responder::start();
    for transport in [Transport::Udp, Transport::Tcp] {
        let request = LatencyRequest {
            count: None,
            time: Some(Span::from_millis(300)),
            ping_pong: true,
            transport,
            ..LatencyRequest::new(responder.target.clone())
        };
        let record = latency(&request, &StopFlag::new(), &mut quiet());
        both_complete(&record);
        assert!(record.versions.iter().all(|v| v.latency.as_ref().unwrap().received > 100), "{transport:?}");
    }
}

#[test]
fn tcp_counts_the_same_bytes_at_both_ends() {
    let responder = Responder::start();
    let request = TcpRequest {
        bytes: Some(ByteCount(50_000_000)),
        streams: 3,
        directions: Directions::Both,
        ..TcpRequest::new(responder.target.clone())
    };
    let record = tcp(&request, &StopFlag::new(), &mut quiet());
    both_complete(&record);
    for version in &record.versions {
        assert_eq!(version.tcp.len(), 2);
        for tcp in &version.tcp {
            assert_eq!(tcp.sender.bytes, ByteCount(50_000_000));
            assert_eq!(tcp.receiver.bytes, tcp.sender.bytes);
        }
    }
}

#[test]
fn paced_udp_arrives_as_it_was_sent() {
    let responder = Responder::start();
    for directions in [Directions::Forward, Directions::Reverse] {
        let request = UdpRequest {
            time: Span::from_millis(600),
            pace: Pace::Rate(BitRate(20_000_000)),
            directions,
            ..UdpRequest::new(responder.target.clone())
        };
        let record = udp(&request, &StopFlag::new(), &mut quiet());
        both_complete(&record);
        for version in &record.versions {
            let udp = &version.udp[0];
            assert!(udp.sent > 0);
            assert_eq!(udp.received + udp.loss.lost, udp.sent);
            assert_eq!(udp.loss.network, 0, "loopback loses nothing on the way");
        }
    }
}

#[test]
fn the_whole_test_fills_every_row_and_blames_no_network() {
    let responder = Responder::start();
    let request = TestRequest { budget: Span::from_secs(6), ..TestRequest::new(responder.target.clone()) };
    let mut phases = 0;
    let record = test(&request, &StopFlag::new(), &mut |progress| {
        phases += usize::from(matches!(progress, Progress::Phase { .. }));
    });
    both_complete(&record);
    assert!(phases > 20);
    for version in &record.versions {
        assert_eq!(version.latency.as_ref().unwrap().sent, 200);
        assert!(version.path.as_ref().unwrap().mtu.is_some());
        assert_eq!(version.tcp.len(), 4);
        assert_eq!(version.udp.len(), 2);
        for tcp in &version.tcp {
            assert!(tcp.goodput.is_some() && tcp.latency_under_load.is_some());
            assert_ne!(tcp.limit.side, Side::Network, "{:?}", tcp.limit);
        }
    }
    let comparison = record.comparison.unwrap();
    assert_eq!(comparison.verdicts.len(), 3);
    assert!(comparison.metrics.iter().any(|metric| metric.direction == Direction::Reverse));
}

#[test]
fn a_raised_stop_ends_the_test_early_with_what_there_is() {
    let responder = Responder::start();
    let stop = StopFlag::new();
    let request = TestRequest::new(responder.target.clone());
    let record = test(&request, &stop, &mut |progress| {
        if matches!(progress, Progress::Phase { ref what, .. } if what.starts_with("TCP")) {
            stop.raise();
        }
    });
    assert_eq!(record.outcome, Outcome::Interrupted);
    assert!(record.elapsed < Span::from_secs(10));
    assert!(record.versions.iter().all(|version| version.latency.is_some()));
}

#[test]
fn nobody_listening_is_a_finding_for_each_version() {
    let responder = Responder::start();
    let target = Target { port: 1, ..responder.target.clone() };
    let record = test(&TestRequest::new(target), &StopFlag::new(), &mut quiet());
    for version in &record.versions {
        let unreachable = version.unreachable.as_ref().unwrap();
        assert!(unreachable.reason.contains("refused"), "{unreachable:?}");
        assert!(unreachable.advice.contains("netaware serve"));
    }
}

#[test]
fn a_matrix_accounts_for_every_byte_at_both_ends() {
    let responder = Responder::start();
    let sizes = |of: &[u64]| of.iter().copied().map(ByteCount).collect::<Vec<_>>();
    let request = MatrixRequest {
        pairs: Pairs::Each { bytes: sizes(&[1_000, 100_000]), blocks: sizes(&[1_000, 100_000]) },
        runs: 2,
        ..MatrixRequest::new(responder.target.clone())
    };
    let record = matrix(&request, &StopFlag::new(), &mut quiet());
    both_complete(&record);
    assert!(record.warnings[0].contains("100000 B became 65507 B"), "{:?}", record.warnings);
    for version in &record.versions {
        let protocols: Vec<_> = version.matrix.iter().map(|result| result.protocol).collect();
        assert_eq!(protocols, MatrixProtocol::ALL);
        for (result, cell) in version.matrix.iter().flat_map(|r| r.cells.iter().map(move |cell| (r, cell))) {
            let blocks = cell.bytes.0.div_ceil(cell.block.0);
            let is_udp = result.protocol == MatrixProtocol::Udp;
            assert_eq!(cell.runs.len(), 2);
            for run in &cell.runs {
                let server = run.server.unwrap();
                assert_eq!(run.outcome, Outcome::Complete, "{cell:?}");
                assert_eq!(run.client.bytes.0, if is_udp { blocks * cell.block.0 } else { cell.bytes.0 });
                assert!(run.client.calls >= blocks && run.client.throughput.is_some(), "{cell:?}");
                assert_eq!(run.client.bytes - server.bytes, run.lost);
                assert!(is_udp || run.lost == ByteCount(0));
                assert!(
                    blocks > 1 || !is_udp || server.throughput.is_none(),
                    "one datagram has no rate: {cell:?}"
                );
            }
            assert_eq!(cell.client_time.unwrap().confidence.to_bits(), 0.5_f64.to_bits());
        }
    }
}

#[test]
fn a_stopped_matrix_keeps_what_it_has() {
    let responder = Responder::start();
    let stop = StopFlag::new();
    let mut begun = 0;
    let record = matrix(&MatrixRequest::new(responder.target.clone()), &stop, &mut |progress| {
        begun += usize::from(matches!(progress, Progress::Phase { version: Some(_), .. }));
        if begun == 5 {
            stop.raise();
        }
    });
    assert_eq!(record.outcome, Outcome::Interrupted);
    for version in &record.versions {
        assert_eq!(version.matrix.len(), 1, "TCP comes first");
        assert!((2..=3).contains(&version.matrix[0].cells.len()));
    }
}
