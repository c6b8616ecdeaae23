//! Every measurement against a responder in the same process, over both IP versions of loopback.
//!
//! What is asserted holds on the slowest machine: that figures are there, agree with each other and
//! name the host as the limit. How fast loopback is, is no business of a test.

use std::thread::JoinHandle;

#[cfg(target_os = "linux")]
use netaware_io::options::SocketOptions;
use netaware_io::stop::StopFlag;
use netaware_prober::{
    Directions, LatencyRequest, MatrixRequest, Pace, Pairs, Progress, Rhythm, Target, TcpRequest,
    TestRequest, Transport, UdpRequest, latency, matrix, tcp, test, udp,
};
use netaware_record::{
    Arrivals, Bottleneck, Direction, HistogramShape, IpVersion, MatrixProtocol, Outcome, Record, Side,
};
use netaware_server::{Config, Server, Stopper};
use netaware_units::{BitRate, ByteCount, SendRate, Span};

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
        rhythm: Rhythm::even(Span::from_millis(2)),
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
            rhythm: Rhythm::Closed(1),
            transports: vec![transport],
            ..LatencyRequest::new(responder.target.clone())
        };
        let record = latency(&request, &StopFlag::new(), &mut quiet());
        both_complete(&record);
        assert!(record.versions.iter().all(|v| v.latency.as_ref().unwrap().received > 100), "{transport:?}");
    }
}

fn sized(responder: &Responder, transport: Transport, rhythm: Rhythm, sizes: (u32, u32)) -> Record {
    let request = LatencyRequest {
        count: Some(20),
        rhythm,
        request: sizes.0,
        response: sizes.1,
        transports: vec![transport],
        ..LatencyRequest::new(responder.target.clone())
    };
    latency(&request, &StopFlag::new(), &mut quiet())
}

#[test]
fn requests_and_responses_of_any_two_sizes_are_exchanged() {
    let responder = Responder::start();
    let udp = [(1, 1), (1, 64), (23, 44), (64, 1), (64, 1400), (1400, 64), (24, 65_507), (65_507, 65_507)];
    let tcp = [(1, 1), (64, 300_000), (300_000, 1), (65_536, 65_536), (3_000_000, 2_000_000)];
    let all = udp.map(|sizes| (Transport::Udp, sizes)).into_iter();
    for (transport, sizes) in all.chain(tcp.map(|sizes| (Transport::Tcp, sizes))) {
        for rhythm in [Rhythm::Closed(1), Rhythm::Closed(3), Rhythm::even(Span::from_millis(10))] {
            // Three of the longest datagrams at a time do not fit a socket's buffer.
            if transport == Transport::Udp && rhythm == Rhythm::Closed(3) && sizes.1 > 60_000 {
                continue;
            }
            let record = sized(&responder, transport, rhythm, sizes);
            both_complete(&record);
            for version in &record.versions {
                let found = version.latency.as_ref().unwrap();
                let what = format!("{transport:?} {sizes:?} {rhythm:?} {found:#?} {:?}", record.warnings);
                assert_eq!((found.received + found.lost, found.bad), (20, 0), "{what}");
                // A socket's buffer holds two of the longest datagrams: a receiver that gets no
                // core for 30 ms loses the third.
                let may_lose = transport == Transport::Udp && sizes.1 > 60_000;
                assert!(found.received > 0 && (found.lost == 0 || may_lose), "{what}");
                let payloads = (found.payload, found.response_payload());
                assert_eq!(payloads, (ByteCount(sizes.0.into()), ByteCount(sizes.1.into())));
                assert_eq!(found.responder.is_some(), transport == Transport::Udp && sizes.1 >= 44);
                let total = found.total.unwrap();
                assert!(total.time >= found.rtt_application.unwrap().max && total.response_rate > BitRate(0));
                assert_eq!(found.rtt_from_due.is_some(), found.depth.is_none());
            }
        }
    }
}

#[test]
fn both_transports_take_turns_in_one_run() {
    let responder = Responder::start();
    let shape = HistogramShape { low: Span::ZERO, width: Span::from_micros(1), bins: 1000 };
    let request = LatencyRequest {
        count: Some(160),
        rhythm: Rhythm::Open { spacing: Span::from_millis(2), arrivals: Arrivals::Poisson, seed: 3 },
        transports: vec![Transport::Udp, Transport::Tcp],
        bins: Some(shape),
        ..LatencyRequest::new(responder.target.clone())
    };
    let mut phases = Vec::new();
    let record = latency(&request, &StopFlag::new(), &mut |progress| {
        if let Progress::Phase { what, version: Some(version), .. } = progress {
            phases.push((version, what));
        }
    });
    both_complete(&record);
    // Eight blocks of each version over each transport, the order turned round from one to the
    // next.
    assert_eq!(phases.len(), 32);
    assert!(phases[0].1.ends_with("UDP") && phases[4].1.ends_with("TCP") && phases[1].1.ends_with("TCP"));
    assert_eq!((phases[0].0, phases[4].0), (IpVersion::V4, IpVersion::V6));
    for version in &record.versions {
        let (udp, tcp) = (version.latency.as_ref().unwrap(), version.latency_tcp.as_ref().unwrap());
        assert_eq!((udp.pedigree.method.as_str(), tcp.pedigree.method.as_str()), ("latency", "latency-tcp"));
        for found in [udp, tcp] {
            assert_eq!((found.received + found.lost, found.arrivals), (160, Some(Arrivals::Poisson)));
            let bins = found.bins.as_ref().unwrap();
            let inside: u64 = bins.bins.iter().map(|(_, count)| count).sum();
            assert_eq!(inside + bins.underflow + bins.overflow, found.received);
        }
    }
    assert!(record.prober.memory_copy_ns_per_byte.is_some_and(|cost| cost > 0.0));
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
            let ends = [&tcp.sender, &tcp.receiver].map(|end| end.as_ref().map(|end| end.bytes));
            assert_eq!(ends, [Some(ByteCount(50_000_000)); 2]);
        }
    }
}

#[test]
fn spaced_blocks_are_told_by_both_ends_in_both_directions() {
    let responder = Responder::start();
    let request = TcpRequest {
        blocks: Some(3000),
        length: Some(1000),
        block_spacing: Some(Span::from_micros(200)),
        streams: 3,
        directions: Directions::Both,
        per_stream: true,
        bottleneck: Some(Bottleneck { rate: BitRate(100_000_000), overhead: 0 }),
        ..TcpRequest::new(responder.target.clone())
    };
    let record = tcp(&request, &StopFlag::new(), &mut quiet());
    both_complete(&record);
    assert_eq!(record.request.options["blocks"], "3000");
    assert!(record.versions.iter().all(|version| version.tcp.len() == 2), "up and down: {record:#?}");
    for tcp in record.versions.iter().flat_map(|version| &version.tcp) {
        let blocks = tcp.blocks.unwrap();
        assert_eq!((blocks.written, blocks.asked, blocks.length), (3000, Some(3000), ByteCount(1000)));
        assert_eq!(blocks.kept.unwrap().written, 3000);
        // Never faster than asked for; the last block begins 2999 spacings after the first.
        assert!(blocks.each_ns.unwrap() >= 200_000.0 * 2998.0 / 3000.0, "{blocks:?}");
        let times = tcp.times.unwrap();
        assert!(times.given.unwrap() <= times.acknowledged.unwrap(), "{times:?}");
        assert!(times.received_rate.is_some());
        let (sender, receiver) = (tcp.sender.as_ref().unwrap(), tcp.receiver.as_ref().unwrap());
        assert_eq!((sender.streams.len(), receiver.streams.len()), (3, 3));
        for (sent, received) in sender.streams.iter().zip(&receiver.streams) {
            assert_eq!((sent.bytes, sent.calls), (ByteCount(1_000_000), 1000));
            assert_eq!(received.bytes, sent.bytes);
            assert!((1..=1000).contains(&received.calls));
            assert!(!sent.samples.is_empty() && received.samples.is_empty());
        }
        assert_eq!(tcp.fairness, Some(1.0));
        assert_ne!(tcp.limit.side, Side::Network, "{:?}", tcp.limit);
        let figures = tcp.rfc6349.as_ref().unwrap();
        assert!(figures.efficiency.unwrap() > 0.0 && figures.efficiency.unwrap() <= 1.0);
        assert!(figures.transfer_time_ratio.is_some() && figures.buffer_delay.is_some());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn header_fields_go_with_every_kind_of_measurement_that_can_have_them() {
    let responder = Responder::start();
    let options = SocketOptions {
        dscp: 46,
        ttl: Some(33),
        flow_label: Some(0x5_4321),
        ..responder.target.options.clone()
    };
    let target = Target { options, ..responder.target.clone() };
    let latency_request = LatencyRequest { count: Some(20), ..LatencyRequest::new(target.clone()) };
    let record = latency(&latency_request, &StopFlag::new(), &mut quiet());
    both_complete(&record);
    for version in &record.versions {
        assert_eq!(version.latency.as_ref().unwrap().received, 20);
        assert_eq!(
            version.path.as_ref().and_then(|path| path.hops_forward),
            None,
            "an asked TTL tells no hops"
        );
    }
    assert_eq!(record.request.options["ttl"], "33");
    assert_eq!(record.request.options["flow-label"], "0x54321");
    let stream = UdpRequest {
        packets: Some(50),
        pace: Pace::Rate(SendRate::at_least(10_000_000)),
        directions: Directions::Both,
        ..UdpRequest::new(target.clone())
    };
    let record = udp(&stream, &StopFlag::new(), &mut quiet());
    both_complete(&record);
    for version in &record.versions {
        let received: Vec<_> = version.udp.iter().map(|udp| udp.received).collect();
        assert_eq!(received, [50, 50], "up and down");
    }
    let up = TcpRequest { bytes: Some(ByteCount(100_000)), ..TcpRequest::new(target.clone()) };
    both_complete(&tcp(&up, &StopFlag::new(), &mut quiet()));
    let down = TcpRequest { directions: Directions::Reverse, ..up };
    let record = tcp(&down, &StopFlag::new(), &mut quiet());
    assert_eq!(record.versions[0].tcp.len(), 1, "IPv4 has no label to refuse");
    assert!(record.versions[1].tcp.is_empty());
    assert!(record.warnings.iter().any(|warning| warning.contains("flow label")), "{:?}", record.warnings);
}

#[test]
fn paced_udp_arrives_as_it_was_sent() {
    let responder = Responder::start();
    for directions in [Directions::Forward, Directions::Reverse] {
        let request = UdpRequest {
            time: Span::from_millis(600),
            pace: Pace::Rate(SendRate::at_least(20_000_000)),
            directions,
            ..UdpRequest::new(responder.target.clone())
        };
        let record = udp(&request, &StopFlag::new(), &mut quiet());
        both_complete(&record);
        for version in &record.versions {
            let udp = &version.udp[0];
            assert!(udp.sent > 0);
            assert_eq!(udp.received + udp.loss.lost, udp.sent);
            assert_eq!(udp.loss.network, Some(0), "loopback loses nothing on the way");
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
    assert_eq!((record.outcome, record.versions.len()), (Outcome::Interrupted, 2));
    assert!(record.elapsed < Span::from_secs(10));
    assert!(record.versions.iter().all(|version| version.latency.is_some()));
}

#[test]
fn nobody_listening_is_a_finding_for_each_version() {
    let responder = Responder::start();
    let target = Target { port: 1, ..responder.target.clone() };
    let record = test(&TestRequest::new(target), &StopFlag::new(), &mut quiet());
    assert_eq!(record.versions.len(), 2);
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
            // A block is never longer than all bytes of its cell.
            assert_eq!((result.cells.len(), cell.runs.len()), (3, 2));
            for run in &cell.runs {
                let (client, server) = (run.client.unwrap(), run.server.unwrap());
                assert_eq!(run.outcome, Outcome::Complete, "{cell:?}");
                assert_eq!(client.bytes.0, if is_udp { blocks * cell.block.0 } else { cell.bytes.0 });
                assert!(client.calls >= Some(blocks) && client.throughput.is_some(), "{cell:?}");
                assert_eq!(client.bytes - server.bytes, run.lost);
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
        // Two of them look what the path carries.
        if begun == 7 {
            stop.raise();
        }
    });
    assert_eq!((record.outcome, record.versions.len()), (Outcome::Interrupted, 2));
    for version in &record.versions {
        assert_eq!(version.matrix.len(), 1, "TCP comes first");
        assert!((2..=3).contains(&version.matrix[0].cells.len()));
    }
}
