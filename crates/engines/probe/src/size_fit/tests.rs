//! Fits of records whose slope is known.

use std::collections::BTreeMap;

use netaware_record::{Health, HostInfo, NicInfo, Outcome, Request, SeriesPoint, VersionResult};
use netaware_stats::rng::SplitMix64;
use netaware_units::{BitRate, ClockSource, Mono, Stamp, Wall};
use uuid::Uuid;

use super::*;
use crate::delay_report::{self, Context, EchoLog};
use crate::echo::{EchoCounts, Exchange, Pacing};

const NIC: u32 = 1500;

fn host(speed: Option<BitRate>, copy: Option<f64>) -> HostInfo {
    let nic = NicInfo { name: "eth0".into(), mtu: NIC, speed, ..NicInfo::default() };
    HostInfo { nics: vec![nic], memory_copy_ns_per_byte: copy, ..HostInfo::default() }
}

/// A latency result whose round trips lie at `base` ns and a little above.
fn result(version: IpVersion, request: u64, response: u64, base: f64, rng: &mut SplitMix64) -> LatencyResult {
    let mut log = EchoLog::default();
    for seq in 0..50 {
        let noise = if seq == 7 { 0.0 } else { 400.0 * rng.unit() };
        let at = Mono(1_000_000 * seq);
        let rx = Stamp::application(at + Span::from_nanos((base + noise) as i64));
        log.push(&Exchange {
            seq,
            due: at,
            tx: Stamp::application(at),
            rx,
            tx_application: at,
            rx_application: rx.at,
            responder: None,
            responder_told: true,
            responder_clock: ClockSource::Application,
            ttl_forward: None,
            ttl_reverse: None,
        });
    }
    let round = log.finish(EchoCounts { asked: 50, received: 50, ..EchoCounts::default() });
    let context = Context {
        method: "latency",
        version,
        payload: ByteCount(request),
        response: ByteCount(response),
        pacing: Pacing::PingPong,
        spacing: Span::ZERO,
        patience: Span::from_secs(1),
        bins: None,
        health: Health::default(),
    };
    delay_report::latency(&[round], &context)
}

fn record(index: u64, point: &[(&str, String)], versions: Vec<VersionResult>) -> Record {
    Record {
        schema: 1,
        id: Uuid::from_u128(u128::from(index)),
        software: String::new(),
        command: "latency".into(),
        started_at: Wall(0),
        started_at_utc: String::new(),
        elapsed: Span::ZERO,
        outcome: Outcome::Complete,
        request: Request::default(),
        label: None,
        series: Some(SeriesPoint {
            id: Uuid::from_u128(99),
            kind: SeriesKind::Scan,
            index,
            planned: 100,
            point: point.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        }),
        prober: host(Some(BitRate(1_000_000_000)), Some(0.1)),
        responder: Some(host(None, None)),
        versions,
        comparison: None,
        ability: None,
        expectations: Vec::new(),
        warnings: Vec::new(),
    }
}

/// 100 us and so many ns per byte, the kink at the MTU included.
fn scan(name: &str, slope: f64, sizes: impl Iterator<Item = u64>) -> Vec<Record> {
    let mut rng = SplitMix64::new(4);
    sizes
        .enumerate()
        .map(|(index, size)| {
            let (request, response) = match name {
                "request" => (size, 64),
                "response" => (64, size),
                _ => (size, size),
            };
            let versions = [IpVersion::V4, IpVersion::V6]
                .map(|version| {
                    let factor = if version == IpVersion::V4 { 1.0 } else { 2.0 };
                    let base = 100_000.0 + slope * factor * size as f64;
                    let latency = Some(result(version, request, response, base, &mut rng));
                    VersionResult { latency, ..VersionResult::new(version) }
                })
                .to_vec();
            record(index as u64, &[(name, format!("{size}B"))], versions)
        })
        .collect()
}

/// The same results over TCP besides.
fn with_tcp(mut records: Vec<Record>) -> Vec<Record> {
    for record in &mut records {
        for version in &mut record.versions {
            let mut tcp = version.latency.clone().unwrap();
            tcp.pedigree.method = "latency-tcp".into();
            version.latency_tcp = Some(tcp);
        }
    }
    records
}

#[test]
fn a_known_slope_is_found_for_each_version_whatever_grows() {
    for (name, grows) in [("request", Grows::Request), ("response", Grows::Response), ("length", Grows::Both)]
    {
        let fits = size_fit(&scan(name, 80.0, (64..=1400).step_by(24)));
        assert_eq!(fits.len(), 2, "{name}");
        for (fit, truth) in fits.iter().zip([80.0, 160.0]) {
            assert_eq!((fit.grows, fit.one_packet, fit.points), (grows, Some(true), 56));
            assert_eq!((fit.from, fit.to), (ByteCount(64), ByteCount(1384)));
            assert!((fit.smallest.slope - truth).abs() < 1e-3, "{:?}", fit.smallest);
            assert!((fit.smallest.intercept_ns - 100_000.0).abs() < 2.0, "{:?}", fit.smallest);
            let within = fit.median.interval.unwrap();
            assert!(within.lo <= truth && truth <= within.hi && within.hi - within.lo < 0.2, "{within:?}");
        }
    }
}

#[test]
fn sizes_of_several_packets_are_fitted_apart() {
    let fits = size_fit(&scan("response", 10.0, (200..=2800).step_by(200)));
    let of_v4: Vec<_> = fits.iter().filter(|fit| fit.version == IpVersion::V4).collect();
    // 1472 bytes fit an MTU of 1500 over IPv4.
    assert_eq!(
        of_v4.iter().map(|fit| (fit.one_packet, fit.points)).collect::<Vec<_>>(),
        [(Some(true), 7), (Some(false), 7)]
    );
    assert_eq!((of_v4[0].to, of_v4[1].from), (ByteCount(1400), ByteCount(1600)));
}

#[test]
fn one_packet_holds_what_the_headers_leave_of_the_smaller_mtu() {
    let mut records = with_tcp(scan("response", 10.0, 1420..=1480));
    for record in &mut records {
        record.responder.as_mut().unwrap().nics[0].mtu = 9000;
    }
    let fits = size_fit(&records);
    let edges: Vec<_> = fits.chunks(2).map(|of| (of[0].to.0, of[1].from.0)).collect();
    // IPv4, then IPv6, and UDP first of each.
    assert_eq!(edges, [(1472, 1473), (1448, 1449), (1452, 1453), (1428, 1429)]);
}

#[test]
fn what_is_no_scan_over_size_has_no_fit() {
    let mut records = scan("response", 80.0, (64..=200).step_by(8));
    for record in &mut records {
        record.series.as_mut().unwrap().kind = SeriesKind::Repeat;
    }
    assert_eq!(size_fit(&records), []);
    assert_eq!(size_fit(&scan("spacing", 80.0, (64..=200).step_by(8))), []);
    assert_eq!(size_fit(&scan("response", 80.0, std::iter::once(64))), []);
    assert_eq!(size_fit(&[]), []);
}

#[test]
fn other_scanned_options_keep_their_points_apart() {
    let mut records = scan("response", 80.0, (64..=1000).step_by(24));
    records.extend(scan("response", 40.0, (64..=1000).step_by(24)));
    let half = records.len() / 2;
    for (n, record) in records.iter_mut().enumerate() {
        let depth = if n < half { "1" } else { "8" };
        record.series.as_mut().unwrap().point.insert("depth".into(), depth.into());
    }
    let fits = size_fit(&records);
    let slopes: Vec<f64> = fits.iter().map(|fit| fit.smallest.slope.round()).collect();
    assert_eq!(slopes, [80.0, 40.0, 160.0, 80.0]);
    assert_eq!(fits[0].others, BTreeMap::from([("depth".to_owned(), "1".to_owned())]));
}

#[test]
fn a_slope_is_told_as_a_rate_as_links_and_as_copies() {
    let records = scan("length", 80.0, (64..=1400).step_by(24));
    let fit = &size_fit(&records)[0];
    let told = meaning(fit, &records[0]);
    // Both messages grow, so each stage is crossed twice: two crossings at 200 Mbit/s cost 80 ns.
    assert_eq!((told.crossings, told.one_stage.unwrap().to_string()), (2, "200 Mbit/s".to_owned()));
    let [link, copy] = &told.known[..] else { panic!("{told:?}") };
    assert_eq!(link.what, "the prober's eth0, 1.00 Gbit/s");
    assert!((link.ns_per_byte - 16.0).abs() < 1e-9 && (link.stages.unwrap() - 5.0).abs() < 1e-3);
    assert!((copy.ns_per_byte - 0.2).abs() < 1e-9);
    assert_eq!(
        told.unknown,
        ["the responder's link rate", "memory copies on the responder", "the buses of both hosts"]
    );
}

#[test]
fn a_slope_that_is_not_above_zero_means_no_rate() {
    let records = scan("response", 0.0, (64..=1400).step_by(24));
    let mut fit = size_fit(&records)[0].clone();
    fit.smallest.slope = -1.0;
    let told = meaning(&fit, &records[0]);
    assert_eq!((told.one_stage, told.known[0].stages), (None, None));
}

#[test]
fn udp_and_tcp_of_one_run_are_two_fits() {
    let records = with_tcp(scan("response", 80.0, (64..=1000).step_by(24)));
    let methods: Vec<String> = size_fit(&records).into_iter().map(|fit| fit.method).collect();
    assert_eq!(methods, ["latency", "latency-tcp", "latency", "latency-tcp"]);
}

/// Points on lines: 1000 ns and 2 ns for each byte, the smallest half a microsecond less.
fn exact_scan(sizes: &[u64]) -> Vec<Record> {
    let points = sizes.iter().enumerate().map(|(index, size)| {
        let mut found = result(IpVersion::V6, 64, *size, 0.0, &mut SplitMix64::new(1));
        let rtt = found.rtt.unwrap();
        let p50 = Span::from_nanos(1_000 + 2 * *size as i64);
        found.rtt = Some(DelaySummary { p50, min: p50 - Span(500), ..rtt });
        let of_v6 = VersionResult { latency: Some(found), ..VersionResult::new(IpVersion::V6) };
        record(index as u64, &[("response", size.to_string())], vec![of_v6])
    });
    points.collect()
}

#[test]
fn points_on_a_line_have_that_line_and_bounds_from_five_of_them_on() {
    let slope = Interval { estimate: 2.0, lo: 2.0, hi: 2.0, confidence: 0.95 };
    let rows: [(&[u64], Option<Interval>); 2] =
        [(&[64, 128, 192, 256], None), (&[64, 128, 192, 256, 320], Some(slope))];
    for (sizes, interval) in rows {
        let line = |intercept_ns| SizeLine { slope: 2.0, interval, intercept_ns, residual_ns: 0.0 };
        let want = SizeFit {
            version: IpVersion::V6,
            method: "latency".to_owned(),
            grows: Grows::Response,
            one_packet: Some(true),
            from: ByteCount(64),
            to: ByteCount(*sizes.last().unwrap()),
            points: sizes.len(),
            others: BTreeMap::new(),
            median: line(1_000.0),
            smallest: line(500.0),
        };
        assert_eq!(size_fit(&exact_scan(sizes)), [want]);
    }
}

#[test]
fn the_first_point_is_kept_and_learns_what_a_copy_costs_unless_it_knows() {
    let mut scan = SizeScan::default();
    assert_eq!(scan.first(), None);
    scan.note_memory_copy(|| panic!("there is nobody who could learn it"));
    let mut records = exact_scan(&[64, 128]);
    for record in &mut records {
        record.prober.memory_copy_ns_per_byte = None;
        scan.observe(record);
    }
    assert_eq!(scan.first(), Some(&records[0]));
    scan.note_memory_copy(|| Some(0.25));
    scan.note_memory_copy(|| panic!("it is known"));
    assert_eq!(scan.first().unwrap().prober.memory_copy_ns_per_byte, Some(0.25));
}

#[test]
fn an_interface_that_tells_no_mtu_bounds_no_packet() {
    let mut records = exact_scan(&[64, 128]);
    for record in &mut records {
        record.prober.nics[0].mtu = 0;
    }
    assert_eq!(size_fit(&records)[0].one_packet, Some(true), "the responder's tells");
    for record in &mut records {
        record.responder.as_mut().unwrap().nics[0].mtu = 0;
    }
    assert_eq!(size_fit(&records)[0].one_packet, None);
}

#[test]
fn messages_that_grow_out_of_step_have_no_size_to_fit() {
    let of = |request, response| {
        let found = result(IpVersion::V4, request, response, 1_000.0, &mut SplitMix64::new(1));
        let latency = VersionResult { latency: Some(found), ..VersionResult::new(IpVersion::V4) };
        record(0, &[("request", request.to_string())], vec![latency])
    };
    assert_eq!(size_fit(&[of(64, 64), of(128, 128)])[0].grows, Grows::Both);
    assert_eq!(size_fit(&[of(64, 64), of(128, 129)]), []);
}

/// A fit whose smallest round trips grow by so many ns per byte.
fn fit_with(grows: Grows, slope: f64) -> SizeFit {
    let line = SizeLine { slope, interval: None, intercept_ns: 0.0, residual_ns: 0.0 };
    SizeFit {
        version: IpVersion::V4,
        method: "latency".to_owned(),
        grows,
        one_packet: None,
        from: ByteCount(64),
        to: ByteCount(128),
        points: 2,
        others: BTreeMap::new(),
        median: line,
        smallest: line,
    }
}

#[test]
fn a_meaning_names_every_known_stage_and_all_that_is_unknown() {
    let nic = |name: &str, driver: &str, speed| NicInfo {
        name: name.to_owned(),
        driver: driver.to_owned(),
        speed: Some(BitRate(speed)),
        ..NicInfo::default()
    };
    let mut record = record(0, &[], Vec::new());
    record.prober.memory_copy_ns_per_byte = Some(0.5);
    record.prober.nics = vec![
        nic("eth0", "virtio_net", 1_000_000_000),
        nic("veth0", "veth", 10_000_000_000),
        nic("eth1", "e1000", 0),
    ];
    // What costs nothing is not known.
    record.responder = Some(host(Some(BitRate(2_000_000_000)), Some(0.0)));
    let cost = |what: &str, ns_per_byte, stages| KnownCost { what: what.to_owned(), ns_per_byte, stages };
    let unknown = ["memory copies on the responder", "the buses of both hosts"].map(str::to_owned).to_vec();
    let want = Meaning {
        crossings: 2,
        one_stage: Some(BitRate(1_000_000_000)),
        known: vec![
            cost("the prober's eth0, 1.00 Gbit/s", 16.0, Some(1.0)),
            cost("the responder's eth0, 2.00 Gbit/s", 8.0, Some(2.0)),
            cost("a memory copy on the prober", 1.0, Some(16.0)),
        ],
        unknown: unknown.clone(),
    };
    assert_eq!(meaning(&fit_with(Grows::Both, 16.0), &record), want);
    // A slope of zero has no rate, and each stage is crossed once where one message grows.
    let flat = Meaning {
        crossings: 1,
        one_stage: None,
        known: vec![
            cost("the prober's eth0, 1.00 Gbit/s", 8.0, None),
            cost("the responder's eth0, 2.00 Gbit/s", 4.0, None),
            cost("a memory copy on the prober", 0.5, None),
        ],
        unknown,
    };
    assert_eq!(meaning(&fit_with(Grows::Response, 0.0), &record), flat);
}
