//! The report against a path that knows the truth.

use super::*;
use crate::echo::{EchoPlan, EchoTrain, Ignored, Pacing};
use crate::virtual_path::{FLOW, Link, VirtualPath, WAKE_UP};
use netaware_record::{Arrivals, Histogram};
use netaware_units::{Mono, Stamp};

const MS: Span = Span::from_millis(1);

fn context() -> Context {
    Context {
        method: "latency",
        version: IpVersion::V4,
        payload: ByteCount(64),
        response: ByteCount(64),
        pacing: Pacing::Even(MS * 5),
        spacing: MS * 5,
        bins: None,
        patience: MS * 500,
        health: Health { late_sends: Some(3), ..Health::default() },
    }
}

fn round(path: &VirtualPath, count: u64) -> EchoRound {
    paced(path, count, Pacing::Even(MS * 5))
}

fn paced(path: &VirtualPath, count: u64, pacing: Pacing) -> EchoRound {
    let response = path.response.unwrap_or(64);
    let start = Mono(0);
    let plan =
        EchoPlan { flow: FLOW, count: Some(count), pacing, length: 64, response, patience: MS * 500, start };
    let mut train = EchoTrain::new(plan).unwrap();
    let mut log = EchoLog::default();
    let mut ended_at = start;
    for (at, event) in path.drive(&mut train) {
        log.observe(&event);
        ended_at = at;
    }
    log.finish(train.counts()).lasting(ended_at.since(start))
}

#[test]
fn report_agrees_with_the_paths_truth() {
    let way = Link { jitter: MS * 2, loss: 0.02, ..Link::of(MS * 10) };
    let rounds = [1, 2]
        .map(|seed| round(&VirtualPath { forward: way, seed, ..VirtualPath::symmetric(MS * 10) }, 2000));
    let result = latency(&rounds, &context());
    let rtt = result.rtt.unwrap();
    // 20 ms plus a uniform 0 to 2 ms.
    assert!((rtt.min - MS * 20) < Span::from_micros(5) && (rtt.max - MS * 22).abs() < Span::from_micros(5));
    assert!((rtt.p50 - MS * 21).abs() < Span::from_micros(60), "{:?}", rtt.p50);
    assert!((rtt.sd.unwrap().millis_f64() - 2.0 / 12.0_f64.sqrt()).abs() < 0.02);
    // |difference| of two uniforms has mean 1/3 of the width; PDV is the uniform itself.
    assert!((result.ipdv.unwrap().mean.millis_f64() - 2.0 / 3.0).abs() < 0.03);
    assert!((result.pdv.unwrap().mean.millis_f64() - 1.0).abs() < 0.03);
    assert!((result.jitter.unwrap().millis_f64() - 2.0 / 3.0).abs() < 0.4);
    assert_eq!(result.responder.unwrap().max, Span::from_micros(30));
    let above = result.rtt_application.unwrap().p50 - rtt.p50;
    assert!((above - Span::from_micros(32) - WAKE_UP).abs() < Span::from_micros(5), "{above:?}");
    assert_eq!((result.sent, result.received + result.lost), (4000, 4000));
    assert!((50..120).contains(&result.lost), "{}", result.lost);
    assert_eq!((result.pedigree.clock, result.health.late_sends), (ClockSource::Kernel, Some(3)));
    let held: u64 = result.histogram.unwrap().bins.iter().map(|(_, count)| count).sum();
    assert_eq!(held, result.received);
}

#[test]
fn rounds_are_no_neighbours_of_each_other() {
    let rounds = [MS, MS * 100].map(|delay| round(&VirtualPath::symmetric(delay), 10));
    let result = latency(&rounds, &context());
    assert_eq!(result.ipdv.unwrap().max, Span::ZERO);
    assert_eq!(result.jitter, Some(Span::ZERO));
    assert_eq!(result.pdv.unwrap().max, MS * 198);
    assert_eq!(rounds[0].hops(), (Some(3), Some(7)));
}

#[test]
fn nothing_answered_yields_counts_and_no_delay() {
    let deaf = VirtualPath { forward: Link { loss: 1.0, ..Link::of(MS) }, ..VirtualPath::symmetric(MS) };
    let result = latency(&[round(&deaf, 10)], &context());
    assert_eq!((result.sent, result.lost, result.received), (10, 10, 0));
    assert_eq!((result.rtt, result.ipdv, result.histogram.is_none()), (None, None, true));
    assert_eq!(under_load(result, None).round_trips_per_minute, None);
}

#[test]
fn load_shows_as_rise_and_fewer_round_trips_per_minute() {
    let [idle, loaded] =
        [MS * 5, MS * 50].map(|delay| latency(&[round(&VirtualPath::symmetric(delay), 50)], &context()));
    let loaded = under_load(loaded, Some(&idle));
    assert_eq!(loaded.rise, Some(MS * 90));
    assert!((loaded.round_trips_per_minute.unwrap() - 600.0).abs() < 1e-9);
}

#[test]
fn variation_blocks_see_the_spread_and_drop_a_short_rest() {
    let way = Link { jitter: MS * 2, ..Link::of(MS * 10) };
    let round = round(&VirtualPath { forward: way, ..VirtualPath::symmetric(MS) }, 208);
    let blocks = round.variation_blocks_ns();
    assert_eq!(blocks.len(), 10);
    assert!(blocks.iter().all(|spread| (1e6..2e6).contains(spread)), "{blocks:?}");
}

/// A responder that stands still for 400 ms, asked for some 4 s.
fn stalled(pacing: Pacing, count: u64) -> LatencyResult {
    let stall = Some((Mono(1_000_000_000), Mono(1_400_000_000)));
    let path = VirtualPath { stall, ..VirtualPath::symmetric(MS / 10) };
    latency(&[paced(&path, count, pacing)], &Context { pacing, ..context() })
}

#[test]
fn an_open_loop_shows_a_stall_in_its_p999_and_a_closed_loop_alone_hides_it() {
    for pacing in [Pacing::Even(MS), Pacing::Poisson { mean: MS, seed: 5 }] {
        let open = stalled(pacing, 4_000);
        assert_eq!(open.lost, 0);
        // One in ten requests is due in the stall; the longest waits for all of it.
        assert!(open.rtt_from_due.unwrap().p999 > MS * 390, "{pacing:?}: {:?}", open.rtt_from_due);
        assert!(open.rtt_application.unwrap().p999 > MS * 390);
        assert!(open.rtt_from_due.unwrap().p95 > MS * 150);
        // It is no fault of the network, and the figure without the responder's time says so; what
        // is left of it is the 8 us that each of the 400 answers at once takes to be taken in.
        assert!(open.rtt.unwrap().max < MS * 5);
    }
    let closed = stalled(Pacing::PingPong, 15_000);
    assert!(closed.rtt_application.unwrap().max > MS * 390, "it met the stall");
    assert!(closed.rtt_application.unwrap().p999 < MS, "{:?}", closed.rtt_application);
    assert_eq!((closed.rtt_from_due, closed.tail_from_due), (None, None));
}

#[test]
fn the_wait_for_answers_of_a_path_that_was_gone_is_no_time_of_an_exchange() {
    let counts = EchoCounts { asked: 89, received: 86, lost: 3, ..EchoCounts::default() };
    let (lasted, answered) = (MS * 3900, MS * 900);
    let round = EchoLog::default().finish(counts).lasting(lasted).answered_within(answered);
    let context = Context { pacing: Pacing::PingPong, response: ByteCount(64), ..context() };
    let each = |round| latency(&[round], &context).total.unwrap().per_exchange_ns / 1e6;
    // Time-outs of lost ones stay in it, as in UDPmon.
    assert!((each(round.clone()) - 3900.0 / 89.0).abs() < 0.001);
    assert!((each(round.not_knowing_of(3)) - 900.0 / 86.0).abs() < 0.001);
}

#[test]
fn totals_are_those_of_a_closed_loop_by_arithmetic() {
    let path = VirtualPath { response: Some(1064), ..VirtualPath::symmetric(MS * 5) };
    let context = Context { pacing: Pacing::PingPong, response: ByteCount(1064), ..context() };
    let result = latency(&[paced(&path, 100, context.pacing), paced(&path, 100, context.pacing)], &context);
    let total = result.total.unwrap();
    // Round trip, the responder's 30 us and the wake-up.
    let each = MS * 10 + Span::from_micros(30) + WAKE_UP;
    assert!((total.per_exchange_ns - each.nanos() as f64).abs() < 3_000.0, "{total:?}");
    assert!((total.time - each * 200).abs() < MS);
    let rate = 1064.0 * 8.0 / each.secs_f64();
    assert!((total.response_rate.0 as f64 / rate - 1.0).abs() < 1e-3, "{total:?}");
    assert_eq!((result.response, result.response_payload()), (Some(ByteCount(1064)), ByteCount(1064)));
    assert_eq!((result.depth, result.arrivals, result.bad), (Some(1), None, 0));
}

#[test]
fn bins_asked_for_hold_the_round_trips() {
    let shape = HistogramShape { low: MS * 9, width: Span::from_micros(100), bins: 100 };
    let context = Context { bins: Some(shape), ..context() };
    let bins = latency(&[round(&VirtualPath::symmetric(MS * 5), 50)], &context).bins.unwrap();
    assert_eq!((bins.bins, bins.underflow, bins.overflow), (vec![(10_000_000, 50)], 0, 0));
    assert!((bins.moments.unwrap().mean - 1e7).abs() < 10.0);
}

#[test]
fn answers_without_stamps_leave_the_responders_time_in_and_say_so() {
    let path = VirtualPath { response: Some(24), ..VirtualPath::symmetric(MS) };
    let result = latency(&[round(&path, 20)], &Context { response: ByteCount(24), ..context() });
    assert_eq!((result.responder, result.received), (None, 20));
    assert_eq!(result.rtt.unwrap().p50, MS * 2 + Span::from_micros(30));
    assert!(result.pedigree.uncertainty.contains("carry no stamps"), "{}", result.pedigree.uncertainty);
}

/// An exchange with this round trip: handed over 5 ns after it was due and 5 ns before it left,
/// held by the responder for 30 ns, and its answer seen by the program 20 ns after it had come.
fn exchange(seq: u64, rtt: i64) -> Exchange {
    let due = Mono(10_000 * seq);
    let tx = Stamp { at: due + Span(10), by: ClockSource::Kernel, error: Span(100) };
    let rx = Stamp { at: tx.at + Span(rtt + 30), by: ClockSource::Nic, error: Span(50) };
    Exchange {
        seq,
        due,
        tx,
        rx,
        tx_application: due + Span(5),
        rx_application: rx.at + Span(20),
        responder: Some(Span(30)),
        responder_told: true,
        responder_clock: ClockSource::Kernel,
        ttl_forward: Some(60),
        ttl_reverse: Some(120),
    }
}

fn logged(exchanges: &[Exchange]) -> EchoLog {
    let mut log = EchoLog::default();
    for exchange in exchanges {
        log.observe(&EchoEvent::Answered(*exchange));
    }
    log
}

/// Of 100 ns between each of three and the next.
fn three(min: i64) -> DelaySummary {
    DelaySummary {
        count: 3,
        min: Span(min),
        p50: Span(min + 100),
        p95: Span(min + 190),
        p99: Span(min + 198),
        p999: Span(min + 200),
        max: Span(min + 200),
        mean: Span(min + 100),
        sd: Some(Span(100)),
    }
}

/// Of equal ones.
fn alike(count: u64, value: i64) -> DelaySummary {
    let value = Span(value);
    DelaySummary {
        count,
        min: value,
        p50: value,
        p95: value,
        p99: value,
        p999: value,
        max: value,
        mean: value,
        sd: (count > 1).then_some(Span::ZERO),
    }
}

#[test]
fn requests_that_nobody_can_tell_of_are_unknown_and_not_lost() {
    let counts = EchoCounts { asked: 6, received: 2, lost: 4, ..EchoCounts::default() };
    let round = EchoLog::default().finish(counts).not_knowing_of(3);
    let found = latency(std::slice::from_ref(&round), &context());
    assert_eq!((found.sent, found.received, found.lost, found.unknown), (6, 2, 1, 3));
    assert_eq!(round.not_knowing_of(9).counts().abandoned, 4, "no more than were lost");
}

#[test]
fn every_figure_of_three_answers_is_what_their_stamps_say() {
    let ignored = Ignored { wrong_length: 2, altered: 3, ..Ignored::default() };
    let counts = EchoCounts {
        asked: 6,
        not_sent: 1,
        received: 3,
        lost: 1,
        late: 1,
        reordered: 2,
        duplicates: 4,
        abandoned: 1,
        outstanding: 0,
        ignored,
    };
    // They came in another order than they were sent in, and the third was lost.
    let log = logged(&[exchange(1, 1_200), exchange(0, 1_000), exchange(3, 1_100)]);
    let round = log.finish(counts).lasting(Span(3_000));
    assert_eq!((round.counts(), round.hops()), (counts, (Some(4), Some(8))));
    assert_eq!(round.rtts_ns(), [1_000.0, 1_200.0, 1_100.0]);
    let uncertainty = "exact order statistics; stamps off by up to 150 ns; \
                       responder's time taken out between its kernel and its application stamp";
    let want = LatencyResult {
        pedigree: Pedigree {
            method: "latency".to_owned(),
            layer: Layer::Payload,
            direction: Direction::RoundTrip,
            version: IpVersion::V4,
            clock: ClockSource::Kernel,
            uncertainty: uncertainty.to_owned(),
        },
        payload: ByteCount(64),
        response: None,
        depth: None,
        arrivals: Some(Arrivals::Even),
        spacing: MS * 5,
        sent: 5,
        not_sent: 1,
        received: 3,
        lost: 1,
        unknown: 1,
        late: 1,
        reordered: 2,
        duplicates: 4,
        bad: 5,
        patience: MS * 500,
        rtt: Some(three(1_000)),
        rtt_application: Some(three(1_055)),
        rtt_from_due: Some(three(1_060)),
        tail: None,
        tail_from_due: None,
        // Three responses of 64 bytes in 3 us.
        total: Some(ExchangeTotal {
            time: Span(3_000),
            per_exchange_ns: 750.0,
            response_rate: BitRate(512_000_000),
        }),
        responder: Some(alike(3, 30)),
        ipdv: Some(alike(1, 200)),
        pdv: Some(three(0)),
        // A sixteenth of 200 ns.
        jitter: Some(Span(13)),
        histogram: Some(Histogram {
            bins: vec![(1_000, 1), (1_100, 1), (1_200, 1)],
            digits: Some(3),
            ..Histogram::default()
        }),
        bins: None,
        health: Health { late_sends: Some(3), not_sent: Some(1), ..Health::default() },
    };
    assert_eq!(latency(&[round], &context()), want);
}

#[test]
fn the_uncertainty_names_the_worst_clocks_and_what_the_responder_did_not_tell() {
    let good = exchange(0, 1_000);
    let worse = Exchange {
        tx: Stamp { by: ClockSource::Application, error: Span(300), ..good.tx },
        responder_clock: ClockSource::Application,
        ..good
    };
    let impossible = Exchange { responder: None, ..good };
    let silent = Exchange { responder: None, responder_told: false, ..good };
    let exact = "exact order statistics; stamps off by up to";
    let rows = [
        (vec![], ClockSource::Application, "nothing was answered".to_owned()),
        (
            vec![good, worse],
            ClockSource::Application,
            format!(
                "{exact} 350 ns; responder's time taken out between its application and its application stamp"
            ),
        ),
        (
            vec![good, impossible],
            ClockSource::Kernel,
            format!(
                "{exact} 150 ns; responder's time taken out between its kernel and its application stamp; \
                 some of its claims were impossible and left in"
            ),
        ),
        (
            vec![good, silent],
            ClockSource::Kernel,
            format!("{exact} 150 ns; responder's time in it: its answers carry no stamps"),
        ),
    ];
    for (exchanges, clock, uncertainty) in rows {
        let round = logged(&exchanges).finish(EchoCounts::default());
        let found = latency(&[round], &context()).pedigree;
        assert_eq!((found.clock, found.uncertainty), (clock, uncertainty));
    }
}

#[test]
fn a_responder_that_held_a_request_for_a_nanosecond_has_told_so() {
    let quick = Exchange { responder: Some(Span(1)), ..exchange(0, 1_000) };
    let round = logged(&[quick]).finish(EchoCounts::default());
    assert_eq!(latency(&[round], &context()).responder, Some(alike(1, 1)));
}

#[test]
fn a_log_counts_answers_and_nothing_else() {
    let mut log = EchoLog::default();
    assert_eq!((log.len(), log.is_empty()), (0, true));
    for seq in 0..2 {
        log.observe(&EchoEvent::Answered(exchange(seq, 1_000)));
    }
    log.observe(&EchoEvent::Lost(2));
    assert_eq!((log.len(), log.is_empty()), (2, false));
}

#[test]
fn half_a_block_has_a_variation_and_less_has_none() {
    // Within each block the round trips rise from 1000 ns by 100 ns each.
    let of = |count: u64| {
        let exchanges: Vec<_> = (0..count).map(|n| exchange(n, 1_000 + 100 * (n % 20) as i64)).collect();
        logged(&exchanges).finish(EchoCounts::default()).variation_blocks_ns()
    };
    assert_eq!(of(30), [1_805.0, 855.0]);
    assert_eq!(of(29), [1_805.0]);
    assert!(of(9).is_empty());
}

#[test]
fn ten_answers_have_a_tail_and_what_nothing_is_known_of_has_no_total_and_no_rate() {
    let ten: Vec<_> = (0..10).map(|n| exchange(n, 1_000 + 100 * n as i64)).collect();
    let found = latency(&[logged(&ten).finish(EchoCounts::default())], &context());
    let tail = |p90| Some(DelayTail { p90: Some(Span(p90)), ..DelayTail::default() });
    assert_eq!((found.tail, found.tail_from_due, found.total), (tail(1_810), tail(1_870), None));
    let nothing = EchoLog::default().finish(EchoCounts::default()).lasting(Span(5));
    assert_eq!(latency(&[nothing], &context()).total, None);
    // Stamps may contradict each other by less than their error: then there was no time that means
    // a rate.
    let at_once = latency(&[logged(&[exchange(0, 0)]).finish(EchoCounts::default())], &context());
    let loaded = under_load(at_once, Some(&found));
    assert_eq!((loaded.rise, loaded.round_trips_per_minute), (Some(Span(-1_450)), None));
}

#[test]
fn requests_lost_in_a_row_are_told_from_as_many_lost_one_by_one() {
    let of = |lost: fn(u64) -> bool| {
        let answered: Vec<Exchange> =
            (0..40).filter(|seq| !lost(*seq)).map(|seq| exchange(seq, 100)).collect();
        let round = logged(&answered).finish(EchoCounts::default());
        let tenths: Vec<f64> = round.loss_blocks().iter().map(|share| (share * 10.0).round()).collect();
        (round.loss_runs(), tenths)
    };
    assert_eq!(of(|seq| (10..20).contains(&seq)), (1, vec![0.0, 10.0, 0.0, 0.0]));
    assert_eq!(of(|seq| seq % 4 == 1), (10, vec![3.0, 2.0, 3.0, 2.0]));
    // What was lost at the end had no answer behind it: its fate is another matter.
    assert_eq!(of(|seq| seq >= 34), (0, vec![0.0; 3]));
    let none = EchoLog::default().finish(EchoCounts::default());
    assert_eq!((none.loss_runs(), none.loss_blocks().len()), (0, 0));
}

/// Requests that a stopped responder did not read count neither as losses nor as an outage.
#[test]
fn requests_in_the_midst_of_which_nobody_knows_are_no_losses_of_the_path() {
    let answered: Vec<Exchange> =
        (0..100).filter(|seq| !(30..50).contains(seq) && *seq != 70).map(|seq| exchange(seq, 5)).collect();
    let counts = EchoCounts { asked: 100, received: 79, lost: 21, late: 3, ..EchoCounts::default() };
    let round = logged(&answered).finish(counts);
    assert_eq!((round.loss_runs(), round.last_answered()), (2, Some(99)));
    assert_eq!(round.outages(MS * 10).unwrap().lost, 20);
    let unknown: Vec<u64> = (30..50).collect();
    let round = round.not_knowing_those(&unknown, 3);
    let counts = round.counts();
    assert_eq!((counts.lost, counts.abandoned, counts.late, counts.sent()), (1, 20, 0, 100));
    assert_eq!((round.loss_runs(), round.outages(MS * 10).unwrap().times), (1, 0));
    let blocks = round.loss_blocks();
    assert_eq!((blocks.len(), blocks.iter().sum::<f64>()), (8, 1.0 - 9.0 / 10.0));
    let train = round.train(Mono(7)).unwrap();
    assert_eq!((train.began_at, train.not_lost.len(), train.sent), (Mono(7), 99, 100));
}

/// Requests that this host could not send counted as losses in a row, and made that no outage was
/// told of the others.
#[test]
fn requests_that_never_left_are_no_losses_and_hide_no_outage() {
    let kept_in = 30..50;
    let lost = 70..90;
    let answered = (0..100).filter(|seq| !kept_in.contains(seq) && !lost.contains(seq));
    let answered: Vec<Exchange> = answered.map(|seq| exchange(seq, 5)).collect();
    let mut log = logged(&answered);
    for seq in kept_in {
        log.observe(&EchoEvent::NotSent { seq, why: netaware_engine::NotSent::QueueFull });
    }
    let counts = EchoCounts { asked: 100, not_sent: 20, received: 60, lost: 20, ..EchoCounts::default() };
    let round = log.finish(counts);
    assert_eq!(round.loss_runs(), 1);
    let outages = round.outages(MS * 10).unwrap();
    assert_eq!((outages.times, outages.lost), (1, 20));
    let blocks = round.loss_blocks();
    assert_eq!((blocks.len(), blocks.iter().sum::<f64>()), (8, 2.0));
}
