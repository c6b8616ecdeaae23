//! Figures of a handful of exchanges, worked out by hand.

use netaware_record::passive::{DelayRow, DelayStatistics, Period};
use netaware_record::{DelaySummary, Histogram, OwdWay};

use super::super::clock::ClockRelation;
use super::super::report::period_of;
use super::*;

/// Apparent delays there and back, and the time inside the reflector, ns; they begin 10,000 ns
/// apart.
fn made_up(seq: u64, there: i64, back: i64, dwell: i64) -> StampExchange {
    let sent_at = Wall(EPOCH.0 + 10_000 * seq as i64);
    let received_at = Wall(sent_at.0 + there);
    let answered_at = Wall(received_at.0 + dwell);
    StampExchange {
        seq,
        sent_at,
        received_at,
        answered_at,
        came_at: Wall(answered_at.0 + back),
        tx: Stamp { at: Mono(seq), by: ClockSource::Kernel, error: Span(40) },
        rx: Stamp { at: Mono(seq), by: ClockSource::Kernel, error: Span(90) },
        error: ErrorEstimate::UNKNOWN,
        ttl_forward: 60,
        ttl_reverse: Some(120),
        reordered_forward: false,
        reordered_reverse: false,
    }
}

/// Answers to the packets 0, 1, 2 and 4, and what else may happen to a flow.
fn log() -> StampLog {
    let first = made_up(0, 1_300, -500, 400);
    let tx = Stamp { error: Span(100), ..first.tx };
    let rx = Stamp { by: ClockSource::Nic, error: Span(10), ..first.rx };
    let third = made_up(2, 1_200, -300, 600);
    let exchanges = [
        StampExchange { tx, rx, reordered_reverse: true, ..first },
        made_up(1, 1_100, -400, 700),
        StampExchange {
            tx: Stamp::application(Mono(2)),
            reordered_forward: true,
            reordered_reverse: true,
            ..third
        },
        made_up(4, 900, -600, 500),
    ];
    let run =
        LostRun { seq: 3, sent_at: Wall(EPOCH.0), count: 3, not_sent: 1, forward: 2, reverse: 1, inside: 0 };
    let mut log = StampLog::default();
    for exchange in exchanges {
        log.observe(&StampEvent::Answered(exchange));
    }
    let others = [
        StampEvent::Lost(run),
        StampEvent::NotSent { seq: 9 },
        StampEvent::Late { seq: 3 },
        StampEvent::Copy { seq: 0, forward: true },
        StampEvent::Doubled { count: 1 },
        StampEvent::Copy { seq: 0, forward: false },
        StampEvent::Abandoned { count: 7, not_sent: 2 },
    ];
    for event in others {
        log.observe(&event);
    }
    log
}

/// The reflector's clock is ahead by 1 us, and no delay is further off than 200 ns.
fn relation(log: &StampLog) -> ClockRelation {
    let mut relation = relate(log.exchanges(), ErrorEstimate::UNKNOWN, true).unwrap();
    assert_eq!((relation.method, relation.skew_ppm.to_bits()), (ClockMethod::SameHost, 0));
    relation.offset = Span(1_000);
    relation.bound = Span(200);
    relation
}

/// Count, then all the others in their order.
fn summary(count: u64, [min, p50, p95, p99, max, mean, sd]: [i64; 7]) -> DelaySummary {
    DelaySummary {
        count,
        min: Span(min),
        p50: Span(p50),
        p95: Span(p95),
        p99: Span(p99),
        p999: Span(max),
        max: Span(max),
        mean: Span(mean),
        sd: Some(Span(sd)),
    }
}

/// One entry in each of these bins.
fn histogram(edges: &[u64], underflow: u64) -> Histogram {
    let bins = edges.iter().map(|edge| (*edge, 1)).collect();
    Histogram { bins, digits: Some(3), underflow, ..Histogram::default() }
}

#[test]
fn each_way_has_the_figures_of_its_own_delays_losses_and_copies() {
    let log = log();
    let relation = relation(&log);
    // There 300, 100, 200 and -100 ns; the third and the last do not follow each other.
    let counted = OwdWay {
        lost: 2,
        loss: Some(2.0 / 7.0),
        duplicates: 2,
        reordered: 1,
        hops: Some(4),
        ..OwdWay::default()
    };
    assert_eq!(log.way(Way::Forward, None), counted);
    let forward = OwdWay {
        delay: Some(summary(3, [100, 200, 290, 298, 300, 200, 100])),
        below_bound: 2,
        negative: 1,
        ipdv: Some(summary(2, [100, 150, 195, 199, 200, 150, 71])),
        pdv: Some(summary(4, [0, 250, 385, 397, 400, 225, 171])),
        histogram: Some(histogram(&[100, 200, 300], 1)),
        ..counted
    };
    assert_eq!(log.way(Way::Forward, Some(&relation)), forward);
    // Back 500, 600, 700 and 400 ns; two of the seven packets had not come as far as there.
    let reverse = OwdWay {
        delay: Some(summary(4, [400, 550, 685, 697, 700, 550, 129])),
        below_bound: 0,
        negative: 0,
        lost: 1,
        loss: Some(0.2),
        duplicates: 1,
        reordered: 2,
        ipdv: Some(summary(2, [100, 100, 100, 100, 100, 100, 0])),
        pdv: Some(summary(4, [0, 150, 285, 297, 300, 150, 129])),
        hops: Some(8),
        dscp: None,
        histogram: Some(histogram(&[400, 500, 600, 700], 0)),
    };
    assert_eq!(log.way(Way::Reverse, Some(&relation)), reverse);
}

#[test]
fn a_row_has_the_sums_of_its_way_and_what_must_be_known_of_them() {
    let mut log = log();
    // Three more vanished nobody knows where.
    let run =
        LostRun { seq: 5, sent_at: Wall(EPOCH.0), count: 3, not_sent: 0, forward: 0, reverse: 0, inside: 0 };
    log.observe(&StampEvent::Lost(run));
    let mut relation = relation(&log);
    relation.contradicted = true;
    relation.stepped = true;
    let about = RowNames { here: "here", there: "there", version: IpVersion::V6, patience: Span(5) };
    let forward = DelayRow {
        from: "here".to_owned(),
        to: "there".to_owned(),
        version: Some(IpVersion::V6),
        method: "active".to_owned(),
        packets: 10,
        matched: 5,
        lost: 2,
        unobserved: 3,
        late: 1,
        duplicates: 2,
        reordered: 1,
        collisions: 0,
        given_up: 0,
        patience: Span(5),
        delay: DelayStatistics {
            count: 3,
            min: Span(100),
            max: Span(300),
            sum_ns: 600,
            sum_squares: 140_000.0,
            histogram: histogram(&[100, 200, 300], 0),
        },
        ipdv: DelayStatistics {
            count: 2,
            min: Span(100),
            max: Span(200),
            sum_ns: 300,
            sum_squares: 50_000.0,
            histogram: histogram(&[100, 200], 0),
        },
        offset: Span(1_000),
        clock_bound: Some(Span(200)),
        clock_method: "same_host".to_owned(),
        below_bound: 2,
        warnings: vec![
            "both clocks say that they are synchronised, and cannot both be right".to_owned(),
            "a clock was set in this period".to_owned(),
        ],
    };
    let row = log.row(Way::Forward, Some(&relation), &about);
    assert_eq!(row, forward);
    // Without a relation of the clocks there are counts and no delays.
    let counted = DelayRow {
        delay: DelayStatistics::default(),
        ipdv: DelayStatistics::default(),
        offset: Span::ZERO,
        clock_bound: None,
        clock_method: String::new(),
        below_bound: 0,
        warnings: Vec::new(),
        ..row
    };
    assert_eq!(log.row(Way::Forward, None, &about), counted);
    let reverse = log.row(Way::Reverse, Some(&relation), &about);
    assert_eq!((reverse.from.as_str(), reverse.to.as_str()), ("there", "here"));
    assert_eq!((reverse.packets, reverse.matched, reverse.lost, reverse.unobserved), (8, 4, 1, 3));
    assert_eq!((reverse.duplicates, reverse.reordered, reverse.below_bound), (1, 2, 0));
    assert_eq!((reverse.offset, reverse.delay.sum_ns), (Span(-1_000), 2_200));
}

#[test]
fn a_share_of_losses_needs_packets_whose_way_is_known() {
    let mut log = StampLog::default();
    assert_eq!(log.way(Way::Forward, None), OwdWay::default());
    assert_eq!((log.sent(), log.worst_stamps(), log.rtt(), log.dwell()), (0, None, None, None));
    let some = |forward| LostRun {
        seq: 0,
        sent_at: Wall(EPOCH.0),
        count: 4,
        not_sent: 0,
        forward,
        reverse: 1,
        inside: 0,
    };
    log.observe(&StampEvent::Lost(some(3)));
    assert_eq!(log.way(Way::Forward, None).loss, Some(0.75));
    assert_eq!(log.way(Way::Reverse, None).loss, Some(1.0));
    log.observe(&StampEvent::Lost(some(2)));
    assert_eq!((log.way(Way::Forward, None).loss, log.way(Way::Reverse, None).loss), (None, None));
    assert_eq!((log.way(Way::Forward, None).lost, log.way(Way::Reverse, None).lost), (5, 2));
    assert_eq!(log.sent(), 8);
}

#[test]
fn round_trips_are_free_of_the_reflectors_time_and_the_worst_stamps_are_named() {
    let log = log();
    assert_eq!(log.sent(), 7);
    assert_eq!(log.rtt(), Some(summary(4, [300, 750, 885, 897, 900, 675, 263])));
    assert_eq!(log.dwell(), Some(summary(4, [400, 550, 685, 697, 700, 550, 129])));
    // The error is that of both stamps of one exchange.
    assert_eq!(log.worst_stamps(), Some((Stamp::application(Mono(2)), Span(130))));
    let until = Wall(EPOCH.0 + 40_000 + 900 + 500 - 600);
    assert_eq!(period_of(log.exchanges()), Some(Period { from: Wall(EPOCH.0), until }));
    assert_eq!(period_of(&[]), None);
}

#[test]
fn a_reflector_that_does_not_know_the_ttl_says_255_and_that_is_no_number_of_routers() {
    let rows = [
        (60, Some(120), (Some(4), Some(8))),
        (255, None, (None, None)),
        (254, Some(255), (Some(1), Some(0))),
    ];
    for (ttl_forward, ttl_reverse, want) in rows {
        let mut log = StampLog::default();
        let exchange = StampExchange { ttl_forward, ttl_reverse, ..made_up(0, 1_300, -500, 400) };
        log.observe(&StampEvent::Answered(exchange));
        assert_eq!((log.way(Way::Forward, None).hops, log.way(Way::Reverse, None).hops), want);
    }
}

#[test]
fn restarts_are_told_in_words_where_there_were_any() {
    let mut log = StampLog::default();
    let anew = |often| Some(format!("the reflector began to count anew {often}: {WHY_ANEW}"));
    assert!(WHY_ANEW.contains("an address translator on the path has forgotten the flow"));
    for (restarts, words) in [None, anew("once"), anew("2 times")].into_iter().enumerate() {
        assert_eq!((log.restarts(), log.restarts_in_words()), (restarts as u64, words));
        log.observe(&StampEvent::Restarted);
    }
}
