//! Records made by hand for tests: a path shaped to 40 Mbit/s for IPv4 and 80 Mbit/s for IPv6.

mod hops;
mod host;
mod matrix;
mod owd;
mod path_rates;

use netaware_record::{
    Arrivals, Bottleneck, Comparison, CpuUse, DelaySummary, DelayTail, Direction, ExchangeTotal, Exchanges,
    GapSummary, Health, Histogram, HistogramShape, HostDrops, HostInfo, Interval, IpVersion, LatencyResult,
    Layer, Limit, LimitedBy, LoadedLatency, LossSplit, Metric, MetricComparison, MtuFinding, NicInfo,
    Outcome, PathFacts, Pedigree, Preference, Reach, ReceiverTick, Record, Request, Rfc6349, SenderTick,
    SpacedBlocks, StreamEnd, StreamSample, TcpBlocks, TcpCount, TcpEnd, TcpResult, TcpTimes, UdpReceiverEnd,
    UdpResult, UdpSenderEnd, Unreachable, Use, Verdict, VersionResult, WarmUp, WireRates,
};
use netaware_units::{BitRate, ByteCount, ClockSource, Span, Wall};

const BOTH: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

/// Everything that `test` can fill.
pub(crate) fn test() -> Record {
    let versions = BOTH
        .map(|version| VersionResult {
            latency: Some(idle(version)),
            tcp: [Direction::Reverse, Direction::Forward]
                .into_iter()
                .flat_map(|way| [transfer(version, way, 1), transfer(version, way, 4)])
                .collect(),
            udp: vec![datagrams(version, Direction::Reverse), datagrams(version, Direction::Forward)],
            ..reached(version)
        })
        .to_vec();
    Record {
        comparison: Some(comparison()),
        warnings: vec![
            "IPv6 lost 1 of 200 idle requests: with so few, the true loss may lie anywhere between 0.03 % and 2.8 %"
                .into(),
        ],
        ..empty("test", versions)
    }
}

pub(crate) fn tcp() -> Record {
    let versions = BOTH.map(|version| VersionResult {
        tcp: vec![transfer(version, Direction::Forward, 1)],
        ..reached(version)
    });
    empty("tcp", versions.to_vec())
}

pub(crate) fn udp() -> Record {
    let versions = BOTH.map(|version| VersionResult {
        udp: vec![datagrams(version, Direction::Forward)],
        ..reached(version)
    });
    empty("udp", versions.to_vec())
}

pub(crate) fn latency() -> Record {
    let versions = BOTH.map(|version| VersionResult { latency: Some(idle(version)), ..reached(version) });
    empty("latency", versions.to_vec())
}

/// Capacity up and down.
pub(crate) fn capacity() -> Record {
    let versions =
        BOTH.map(|version| VersionResult { path_rates: path_rates::capacity(version), ..reached(version) });
    empty("capacity", versions.to_vec())
}

/// Available bandwidth up, and the maximum down.
pub(crate) fn available() -> Record {
    let versions = BOTH.map(|version| VersionResult {
        path_rates: [path_rates::available(version), path_rates::maximum(version)].concat(),
        ..reached(version)
    });
    empty("available", versions.to_vec())
}

/// Available bandwidth over time.
pub(crate) fn followed() -> Record {
    let versions =
        BOTH.map(|version| VersionResult { path_rates: path_rates::followed(version), ..reached(version) });
    empty("available", versions.to_vec())
}

/// `test --path`: its own figures, and those of the path.
pub(crate) fn test_path() -> Record {
    let mut record = test();
    for result in &mut record.versions {
        let version = result.version;
        result.path_rates = [path_rates::capacity(version), path_rates::available(version)].concat();
        result.path_use = path_rates::uses(version);
    }
    record
}

/// Hops towards a host that runs nothing.
pub(crate) fn hops() -> Record {
    let versions =
        BOTH.map(|version| VersionResult { hops: Some(hops::path(version)), ..VersionResult::new(version) });
    empty("hops", versions.to_vec())
}

/// What such a host answers.
pub(crate) fn reach() -> Record {
    let versions = BOTH
        .map(|version| VersionResult { reach_probes: hops::reach(version), ..VersionResult::new(version) });
    empty("reach", versions.to_vec())
}

/// One-way delay to a reflector, IPv4 by clocks that are good, IPv6 by exchanges.
pub(crate) fn owd() -> Record {
    let versions =
        BOTH.map(|version| VersionResult { owd: Some(owd::result(version)), ..VersionResult::new(version) });
    empty("owd", versions.to_vec())
}

/// A matrix of short transfers.
pub(crate) fn matrix() -> Record {
    let versions = BOTH.map(|version| VersionResult { matrix: matrix::results(version), ..reached(version) });
    empty("matrix", versions.to_vec())
}

/// A closed loop eight deep over both transports, UDP held up by a stall, with the bins that were
/// asked for.
pub(crate) fn latency_both() -> Record {
    let us = Span::from_micros;
    let shape = HistogramShape { low: us(110), width: us(1), bins: 20 };
    let mut filled = shape.empty().unwrap();
    for ns in [100_000, 116_200, 116_900, 117_000, 119_999, 400_000] {
        filled.observe(ns);
    }
    let versions = BOTH.map(|version| {
        let stalled = LatencyResult {
            rtt_from_due: Some(delays(52_000)),
            tail_from_due: Some(DelayTail { p9999: Some(us(380_000)), ..DelayTail::default() }),
            arrivals: Some(Arrivals::Poisson),
            ..idle(version)
        };
        let closed = LatencyResult {
            pedigree: pedigree("latency-tcp", version, Direction::RoundTrip, ClockSource::Application),
            response: Some(ByteCount(1400)),
            depth: Some(8),
            arrivals: None,
            spacing: Span::ZERO,
            rtt_from_due: None,
            bad: 3,
            bins: Some(Histogram::from(&filled)),
            ..idle(version)
        };
        VersionResult { latency: Some(stalled), latency_tcp: Some(closed), ..reached(version) }
    });
    empty("latency", versions.to_vec())
}

/// IPv6 could not be reached; two thresholds were given.
pub(crate) fn half() -> Record {
    let mut record = test();
    record.comparison = None;
    record.versions[1] = VersionResult {
        address: Some("2001:db8::2".into()),
        unreachable: Some(Unreachable {
            stage: "connect".into(),
            reason: "connect [2001:db8::2]:14233: no answer within 3.00 s".into(),
            advice: "check that the host is up and that no firewall drops TCP and UDP on that port".into(),
        }),
        ..VersionResult::new(IpVersion::V6)
    };
    for text in ["rtt.p99<20ms", "tcp.down>100Mbit/s"] {
        let threshold: crate::expect::Threshold = text.parse().unwrap();
        record.expectations.push(threshold.judge(&record));
    }
    record
}

/// Two streams of spaced blocks, each shown, against a bottleneck that somebody knows.
pub(crate) fn spaced() -> Record {
    let mut record = tcp();
    for version in &mut record.versions {
        let result = &mut version.tcp[0];
        let sample = StreamSample { at: Span::from_millis(100), ..StreamSample::default() };
        let mut sender = result.sender.clone().unwrap();
        let stream = StreamEnd { samples: vec![sample], calls: 4995, ..sender.streams[0].clone() };
        result.streams = 2;
        sender.streams = vec![stream.clone(), StreamEnd { index: 1, ..stream }];
        result.receiver = result.receiver.take().map(|end| TcpEnd { streams: sender.streams.clone(), ..end });
        result.sender = Some(sender);
        result.window_asked = Some(ByteCount(65_536));
        let kept = SpacedBlocks {
            written: 9990,
            late: 1234,
            worst_lateness: Span::from_micros(871),
            slipped: Span::from_micros(3),
            waits: 7,
            waited: Span::from_micros(2),
        };
        result.blocks = Some(TcpBlocks {
            length: ByteCount(1000),
            spacing: Some(Span::from_micros(100)),
            asked: Some(10_000),
            written: kept.written,
            each_ns: Some(100_017.0),
            kept: Some(kept),
        });
        let figures = result.rfc6349.as_mut().unwrap();
        figures.bottleneck = Some(Bottleneck { rate: BitRate(100_000_000), overhead: 38 });
        figures.ideal_rate = Some(BitRate(94_148_244));
        figures.transfer_time_ratio = Some(1.0213);
    }
    record
}

/// Nothing answered.
pub(crate) fn nothing() -> Record {
    let mut record = half();
    let dead = record.versions[1].clone();
    record.versions[0] = VersionResult { version: IpVersion::V4, ..dead };
    record
}

pub(crate) use host::host_ability;

pub(crate) fn all() -> Vec<Record> {
    vec![
        test(),
        test_path(),
        capacity(),
        available(),
        followed(),
        tcp(),
        spaced(),
        udp(),
        latency(),
        latency_both(),
        matrix(),
        host_ability(),
        hops(),
        reach(),
        owd(),
        half(),
        nothing(),
    ]
}

fn empty(command: &str, versions: Vec<VersionResult>) -> Record {
    Record {
        schema: netaware_record::SCHEMA_VERSION,
        id: uuid::Uuid::from_u128(0x019a_2b3c_4d5e_7f60_8123_4567_89ab_cdef),
        software: "0.1.0".into(),
        command: command.into(),
        started_at: Wall(1_795_232_087_123_456_789),
        started_at_utc: "2026-11-21T03:34:47.123456789Z".into(),
        elapsed: Span::from_millis(14_812),
        outcome: Outcome::Complete,
        request: Request {
            host: "lab-b".into(),
            port: 14233,
            own_responder: false,
            options: [("time".to_owned(), "15.0 s".to_owned())].into(),
        },
        label: None,
        series: None,
        prober: host("lab-a"),
        responder: Some(host("lab-b")),
        versions,
        comparison: None,
        ability: None,
        expectations: Vec::new(),
        warnings: Vec::new(),
    }
}

fn host(name: &str) -> HostInfo {
    HostInfo {
        name: name.into(),
        kernel: "Linux 6.18.44".into(),
        cpu: "AMD EPYC 7B13".into(),
        cores: 2,
        virtualisation: "kvm".into(),
        software: "0.1.0".into(),
        congestion: "cubic".into(),
        nics: vec![NicInfo {
            name: "eth0".into(),
            driver: "virtio_net".into(),
            mtu: 1500,
            speed: None,
            offloads: vec!["generic-receive-offload".into()],
        }],
        memory_copy_ns_per_byte: None,
        stamps: None,
    }
}

fn reached(version: IpVersion) -> VersionResult {
    let address = if version == IpVersion::V4 { "192.0.2.2" } else { "2001:db8::2" };
    VersionResult {
        address: Some(address.into()),
        reach: Some(Reach {
            resolve: Some(Span::from_micros(850)),
            connects: [240, 231, 260].map(Span::from_micros).to_vec(),
            round_trip: Some(Span::from_micros(205)),
            greeting: Span::from_micros(410),
        }),
        path: Some(PathFacts {
            mtu: Some(if version == IpVersion::V4 { 1500 } else { 1480 }),
            mtu_finding: if version == IpVersion::V4 { MtuFinding::Confirmed } else { MtuFinding::Learnt },
            mtu_vanishes: None,
            mtu_believed: Some(1500),
            hops_forward: Some(1),
            hops_reverse: Some(1),
        }),
        ..VersionResult::new(version)
    }
}

fn pedigree(method: &str, version: IpVersion, direction: Direction, clock: ClockSource) -> Pedigree {
    let uncertainty = match method {
        "echo" => "quantiles of all samples, exact",
        _ => "95 % block bootstrap over the slices",
    };
    Pedigree {
        method: method.into(),
        layer: Layer::Payload,
        direction,
        version,
        clock,
        uncertainty: uncertainty.into(),
    }
}

fn delays(p50_us: i64) -> DelaySummary {
    let us = Span::from_micros;
    DelaySummary {
        count: 200,
        min: us(p50_us * 8 / 10),
        p50: us(p50_us),
        p95: us(p50_us * 12 / 10),
        p99: us(if p50_us == 212 { 280 } else { p50_us * 145 / 100 }),
        p999: us(p50_us * 2),
        max: us(p50_us * 2),
        mean: us(p50_us * 102 / 100),
        sd: Some(us((p50_us / 10).max(1))),
    }
}

fn idle(version: IpVersion) -> LatencyResult {
    let lost = u64::from(version == IpVersion::V6);
    let pedigree = pedigree("echo", version, Direction::RoundTrip, ClockSource::Kernel);
    LatencyResult {
        arrivals: Some(Arrivals::Even),
        spacing: Span::from_millis(10),
        sent: 200,
        received: 200 - lost,
        lost,
        late: lost,
        patience: Span::from_secs(1),
        rtt: Some(delays(if version == IpVersion::V4 { 212 } else { 214 })),
        rtt_application: Some(delays(260)),
        rtt_from_due: Some(delays(260)),
        tail: Some(DelayTail { p90: Some(Span::from_micros(251)), ..DelayTail::default() }),
        total: Some(ExchangeTotal {
            time: Span::from_millis(2000),
            per_exchange_ns: 1e7,
            response_rate: BitRate(51_200),
        }),
        responder: Some(delays(9)),
        ipdv: Some(delays(14)),
        pdv: Some(delays(40)),
        jitter: Some(Span::from_micros(12)),
        histogram: Some(Histogram {
            bins: vec![(170_000, 60), (210_000, 100), (250_000, 39)],
            digits: Some(2),
            ..Histogram::default()
        }),
        health: Health {
            late_sends: Some(2 * lost),
            worst_lateness: Some(Span::from_micros(310)),
            ..Health::default()
        },
        ..LatencyResult::before_any(pedigree, ByteCount(64))
    }
}

fn cpu(busy: f64) -> CpuUse {
    CpuUse {
        process_user: Some(busy / 10.0),
        process_system: Some(busy),
        busiest_thread: Some(busy),
        busiest_core: Some((busy * 1.2).min(1.0)),
        host: Some(busy / 2.0),
        softirq: Some(0.02),
        steal: Some(0.001),
        denied: None,
        cores: 2,
    }
}

fn rate_of(version: IpVersion, way: Direction, streams: u16) -> BitRate {
    let base = if version == IpVersion::V4 { 38_100_000 } else { 76_200_000 };
    BitRate(
        base + if way == Direction::Forward { 100_000 } else { 0 } - if streams == 1 { 30_000 } else { 0 },
    )
}

fn transfer(version: IpVersion, way: Direction, streams: u16) -> TcpResult {
    let rate = rate_of(version, way, streams);
    let bits = rate.0 as f64;
    let bytes = ByteCount(rate.0 / 8 * 2);
    let stream = StreamEnd {
        bytes,
        calls: 900,
        congestion: "cubic".into(),
        retransmits: Some(3),
        rtt: Some(Span::from_micros(4300)),
        mss: Some(1448),
        path_mtu: Some(1500),
        busy: Some(Span::from_millis(1990)),
        window_limited: Some(Span::from_millis(20)),
        buffer_limited: Some(Span::ZERO),
        cwnd: Some(ByteCount(131_072)),
        send_buffer: Some(ByteCount(2_626_560)),
        receive_buffer: Some(ByteCount(6_291_456)),
        bytes_sent: Some(ByteCount(bytes.0 + 4344)),
        bytes_resent: Some(ByteCount(4344)),
        timestamps: true,
        ..StreamEnd::default()
    };
    let end = TcpEnd {
        elapsed: Span::from_secs(2),
        bytes,
        cpu: Some(cpu(0.12)),
        streams: vec![stream],
        ..TcpEnd::default()
    };
    TcpResult {
        pedigree: pedigree("tcp", version, way, ClockSource::Application),
        outcome: Outcome::Complete,
        planned: Some(Span::from_secs(2)),
        ended_early: None,
        queue_left: None,
        streams,
        congestion: "cubic".into(),
        goodput: Some(rate),
        goodput_interval: Some(Interval {
            estimate: bits,
            lo: bits - 41_000.0,
            hi: bits + 43_000.0,
            confidence: 0.95,
        }),
        rounds: vec![rate, rate],
        counted: TcpCount::Delivered,
        bytes: Some(bytes),
        measured: Span::from_millis(1800),
        warm_up: Some(WarmUp { omitted: Span::from_millis(200), rule: "slow start over".into() }),
        retransmits: Some(3 * u64::from(streams)),
        rtt: Some(Span::from_micros(4300)),
        min_rtt: Some(Span::from_micros(205)),
        cwnd: Some(ByteCount(131_072 * u64::from(streams))),
        receiver_ticks: (1..=2).map(|n| receiver_tick(n, rate)).collect(),
        sender_ticks: (1..=2).map(|n| sender_tick(n, rate)).collect(),
        sender: Some(end.clone()),
        receiver: Some(end),
        times: Some(TcpTimes {
            given: Some(Span::from_millis(1990)),
            given_rate: Some(rate.percent(101)),
            acknowledged: Some(Span::from_millis(2003)),
            acknowledged_rate: Some(rate),
            received: Some(Span::from_millis(2001)),
            received_rate: Some(rate),
        }),
        blocks: Some(TcpBlocks {
            length: ByteCount(1 << 20),
            written: bytes.0 >> 20,
            each_ns: Some(1.99e9 / (bytes.0 >> 20) as f64),
            ..TcpBlocks::default()
        }),
        window_asked: None,
        rfc6349: Some(Rfc6349 {
            actual_time: Some(Span::from_millis(2001)),
            efficiency: Some(0.999_543),
            baseline_rtt: Some(Span::from_micros(205)),
            mean_rtt: Some(Span::from_micros(4300)),
            buffer_delay: Some(19.976),
            ..Rfc6349::default()
        }),
        fairness: Some(0.998),
        latency_under_load: Some(LoadedLatency {
            latency: LatencyResult { rtt: Some(delays(5100)), lost: 0, late: 0, ..idle(version) },
            rise: Some(Span::from_micros(4888)),
            round_trips_per_minute: Some(11_764.7),
        }),
        limit: Limit::new(
            LimitedBy::Shaper,
            "after its first burst the rate was flat to 0.3 %, with 3 segments sent again and both hosts under 15 % CPU",
        ),
        health: Health {
            responder_busiest_core: Some(0.14),
            prober_busiest_core: Some(0.14),
            ..Health::default()
        },
    }
}

fn receiver_tick(n: i64, rate: BitRate) -> ReceiverTick {
    ReceiverTick {
        end: Span::from_secs(n),
        length: Span::from_secs(1),
        bytes: ByteCount(rate.0 / 8),
        packets: rate.0 / 8 / 1452,
        lost: 8,
        streams: 1,
    }
}

fn sender_tick(n: i64, rate: BitRate) -> SenderTick {
    SenderTick {
        end: Span::from_secs(n),
        length: Span::from_secs(1),
        bytes: ByteCount(rate.0 / 8),
        retransmits: Some(1),
        rtt: Some(Span::from_micros(4300)),
        cwnd: Some(ByteCount(131_072)),
        acked: Some(ByteCount(rate.0 / 8)),
        held: Some(ByteCount(0)),
    }
}

fn datagrams(version: IpVersion, way: Direction) -> UdpResult {
    let planned = rate_of(version, way, 4).percent(80);
    let sent = planned.0 * 2 / 8 / 1452;
    let received = sent - 17;
    let gap_ns = 1452.0 * 8e9 / planned.0 as f64;
    let gaps = GapSummary {
        planned: Some(Span(gap_ns as i64)),
        count: received - 1,
        mean_ns: gap_ns + 0.42,
        sd_ns: Some(8123.4),
        min: Span::from_micros(2),
        p1: Span((gap_ns * 0.9) as i64),
        p50: Span(gap_ns as i64),
        p99: Span((gap_ns * 1.1) as i64),
        p999: Span((gap_ns * 1.2) as i64),
        max: Span::from_micros(1_210),
    };
    UdpResult {
        pedigree: pedigree("udp-stream", version, way, ClockSource::Kernel),
        outcome: Outcome::Complete,
        payload: ByteCount(1452),
        planned: Some(planned),
        sent_rate: Some(planned),
        wire: Some(WireRates {
            bytes: ByteCount(1452 + 46 + u64::from(version.header_len())),
            frames: 1,
            vlan: false,
            sent: Some(planned.percent(105)),
            received: Some(planned.percent(105)),
        }),
        exchanges: Exchanges { clearing: Some(0), fetching: Some(0) },
        goodput: Some(BitRate(planned.0 - planned.0 / 5000)),
        sent,
        not_sent: Some(0),
        received,
        packets_per_second: Some(received as f64 / 2.0),
        loss: LossSplit {
            lost: 17,
            host: Some(5),
            network: Some(12),
            unknown: 0,
            ratio: Some(Interval { estimate: 0.003, lo: 0.0019, hi: 0.0048, confidence: 0.95 }),
        },
        duplicates: Some(0),
        reordered: Some(2),
        ticks: (1..=2).map(|n| receiver_tick(n, planned)).collect(),
        sender: Some(UdpSenderEnd {
            sent,
            gaps: Some(GapSummary { sd_ns: Some(310.0), max: Span::from_micros(460), ..gaps }),
            cpu: Some(cpu(0.08)),
            ..UdpSenderEnd::default()
        }),
        receiver: Some(UdpReceiverEnd {
            received,
            gaps: Some(gaps),
            loss_runs: vec![(1, 12), (5, 1)],
            drops: HostDrops { socket: Some(5), stack: Some(5), nic: Some(0) },
            duplicates: Some(0),
            reordered: Some(2),
            jitter: Some(Span::from_micros(31)),
            cpu: Some(cpu(0.1)),
            ..UdpReceiverEnd::default()
        }),
        limit: Limit::new(LimitedBy::RequestedRate, "the planned rate was sent and 99.7 % of it arrived"),
        health: Health { host_drops: Some(5), late_sends: Some(0), ..Health::default() },
    }
}

fn comparison() -> Comparison {
    let metric = |metric, direction, v4: f64, v6: f64, half: f64, margin, favours| MetricComparison {
        metric,
        direction,
        v4,
        v6,
        difference: Interval { estimate: v6 - v4, lo: v6 - v4 - half, hi: v6 - v4 + half, confidence: 0.95 },
        pairs: 40,
        rounds: 2,
        margin,
        favours,
        host_limited: metric == Metric::Connect,
        doubt: None,
    };
    let none = Preference::NoDifferenceShown;
    let verdict = |purpose, prefer, because: &str| Verdict { purpose, prefer, because: because.into() };
    Comparison {
        metrics: vec![
            metric(Metric::TcpSingle, Direction::Reverse, 38.1e6, 76.2e6, 0.09e6, 1e6, Preference::V6),
            metric(Metric::TcpParallel, Direction::Forward, 38.2e6, 76.3e6, 0.1e6, 1e6, Preference::V6),
            metric(Metric::IdleRtt, Direction::RoundTrip, 212e3, 214e3, 5.2e3, 1e5, none),
            metric(Metric::LoadedRtt, Direction::Reverse, 5.1e6, 5.1e6, 0.2e6, 1e6, none),
            metric(Metric::DelayVariation, Direction::RoundTrip, 40e3, 41e3, 4e3, 1e5, none),
            metric(Metric::UdpLoss, Direction::Forward, 0.003, 0.0031, 0.002, 0.001, none),
            metric(Metric::Connect, Direction::RoundTrip, 240e3, 231e3, 20e3, 1e5, none),
        ],
        verdicts: vec![
            verdict(
                Use::Bulk,
                Preference::V6,
                "IPv6 carried 76.2 Mbit/s down and 76.3 Mbit/s up, twice the rate of IPv4, in every round",
            ),
            verdict(Use::Interactive, none, "round trips differ by less than 0.1 ms, idle and under load"),
            verdict(Use::Media, none, "loss and delay variation differ by less than what matters"),
        ],
    }
}
