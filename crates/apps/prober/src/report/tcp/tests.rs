//! What is said of transfers whose slices are known.

use netaware_probe::limit::Across;
use netaware_probe::warm_up::WarmUpEnd;
use netaware_record::{Limit, LimitedBy, Outcome, ReceiverTick, StreamEnd};
use netaware_units::SendRate;

use super::bucket::slowing_down;
use super::verdict::{taken_back, unsettled};
use super::*;
use crate::bulk::Ended;
use crate::report::outages;

/// BBR on a path of 10 Mbit/s and 1.2 s, as it was seen: the rate is below a third of the
/// path's and still grows by half each round, with pauses between the flights.
#[test]
fn slow_start_is_not_over_at_its_first_pause_on_a_path_whose_round_trip_nobody_measured_before() {
    let (tick, rtt) = (Span::from_millis(100), Span::from_millis(1200));
    let flights = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2];
    let slices = flights.iter().flat_map(|rate| {
        // The flight takes half of the round.
        std::iter::repeat_n(2.0 * rate, 6).chain(std::iter::repeat_n(0.0, 6))
    });
    let receiver_ticks: Vec<ReceiverTick> = slices
        .enumerate()
        .map(|(n, rate): (usize, f64)| ReceiverTick {
            end: tick * (n as i64 + 1),
            length: tick,
            bytes: ByteCount((rate * 12_500.0) as u64),
            streams: 1,
            ..ReceiverTick::default()
        })
        .collect();
    let sender_ticks = vec![SenderTick { rtt: Some(rtt), ..SenderTick::default() }];
    let duration = tick * receiver_ticks.len() as i64;
    let order = TcpOrder { duration, ..TcpOrder::new(Direction::Forward, tick) };
    let ended = Ended { outcome: Outcome::Complete, receiver_ticks, sender_ticks, ..Ended::default() };
    let round = TcpRound { order, ended, arrived: None, ran: None, load: None };
    for idle in [None, Some(Span::ZERO), Some(rtt)] {
        assert_eq!(measured(&round, idle).warm_up, WarmUpEnd::NeverEnded, "{idle:?}");
    }
}

/// Slices of 100 ms, of bytes received and of the sender's round trip in ms.
fn transfer(direction: Direction, slices: &[(u64, i64)]) -> TcpRound {
    let tick = Span::from_millis(100);
    let at = |n: usize| tick * (n as i64 + 1);
    let receiver = |(n, (bytes, _)): (usize, &(u64, i64))| ReceiverTick {
        end: at(n),
        length: tick,
        bytes: ByteCount(*bytes),
        streams: 1,
        ..ReceiverTick::default()
    };
    let sender = |(n, (bytes, rtt)): (usize, &(u64, i64))| SenderTick {
        end: at(n),
        length: tick,
        acked: Some(ByteCount(*bytes)),
        rtt: Some(Span::from_millis(*rtt)),
        ..SenderTick::default()
    };
    let ended = Ended {
        receiver_ticks: slices.iter().enumerate().map(receiver).collect(),
        sender_ticks: slices.iter().enumerate().map(sender).collect(),
        ..Ended::default()
    };
    let duration = tick * slices.len() as i64;
    let order = TcpOrder { duration, ..TcpOrder::new(direction, tick) };
    TcpRound { order, ended, arrived: None, ran: None, load: None }
}

/// 51 Mbit/s of payload were once told of a link that carries 48, whose way back was full of
/// others' traffic.
#[test]
fn acknowledgements_that_come_sooner_and_sooner_widen_the_interval_and_not_the_link() {
    let of = |from: i64, until: i64, counted: bool| {
        let slices: Vec<(u64, i64)> = (0..10).map(|n| (600_000, from + (until - from) * n / 9)).collect();
        let mut round = transfer(Direction::Reverse, &slices);
        round.arrived = counted.then(|| round.ended.receiver_ticks.clone());
        let counts = measured(&round, Some(Span::from_millis(20)));
        let counts = MeasuredRound { warm_up: WarmUpEnd::SlowStartOver(0), ..counts };
        gathered_acknowledgements(&[&round], &[counts])
    };
    // 48 Mbit/s over a second, in which acknowledgements came 60 ms sooner in the end.
    assert!((of(80, 20, true) / 2.88e6 - 1.0).abs() < 0.01, "{}", of(80, 20, true));
    assert_eq!((of(20, 80, true), of(80, 20, false)), (0.0, 0.0));
}

#[test]
fn a_transfer_that_stood_still_for_a_while_says_so() {
    let slices = [vec![(360_000, 30); 20], vec![(0, 30); 14], vec![(360_000, 30); 20]].concat();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut round = transfer(direction, &slices);
        let said = warnings(std::slice::from_ref(&round));
        let [said] = said.as_slice() else { panic!("{said:?}") };
        assert!(said.ends_with("for 1.40 s nothing came, 2.00 s after its start"), "{said}");
        // Who asks for blocks with pauses between them gets them.
        round.order.rate = Some(SendRate::at_least(20_000));
        assert_eq!(warnings(&[round]), [""; 0]);
    }
}

/// The prober was stopped for 4 s of a transfer at 9.6 Mbit/s, in either direction: 2.7 Mbit/s
/// were told as the rate of the time in which data came.
#[test]
fn a_transfer_has_the_rate_of_the_time_in_which_both_ends_ran() {
    let even = vec![(360_000, 30); 30];
    let late = [(0, 30); 80];
    let ways = [Direction::Forward, Direction::Reverse];
    let cases = ways.map(|way| [true, false].map(|is_sender| [0, 1].map(|held| (way, is_sender, held))));
    for (direction, is_sender, held) in cases.into_iter().flatten().flatten() {
        let stopped = transfer(direction, &[even.clone(), late.to_vec(), even.clone()].concat());
        let (order, mut ended) = (stopped.order, stopped.ended);
        // What is held back makes acknowledgements the count.
        ended.sender_ticks[0].held = Some(ByteCount(held));
        // The end that was stopped cut one slice late; the other one saw nothing meanwhile.
        let long = order.tick * 80;
        if is_sender {
            ended.sender_ticks.drain(30..109);
            ended.sender_ticks[30].length = long;
        } else {
            ended.receiver_ticks.drain(30..109);
            ended.receiver_ticks[30].length = long;
        }
        let end = |stood: bool| TcpEnd {
            elapsed: order.duration,
            stood_still: Some(if stood { order.tick * 79 } else { Span::ZERO }),
            ..TcpEnd::default()
        };
        (ended.tcp_sender, ended.tcp_receiver) = (Some(end(is_sender)), Some(end(!is_sender)));
        let round = TcpRound::new(order, ended, None);
        let path = Path { version: IpVersion::V4, across: Across::Network };
        let found = results(path, std::slice::from_ref(&round), None, &[], None).remove(0);
        let rate = found.goodput.unwrap().0 as f64 / f64::from(360_000 * 8) * round.order.tick.secs_f64();
        assert!((rate - 1.0).abs() < 0.02, "{direction:?} {is_sender} {held}: {rate}");
        assert_eq!(found.counted == TcpCount::Acknowledged, held > 0);
        assert!(found.measured < round.order.tick * 60, "{:?}", found.measured);
        let is_other = is_sender == (direction == Direction::Reverse);
        let said = warnings(&[round]);
        assert_eq!(said.iter().any(|it| it.ends_with("that time is not in the rate")), is_other, "{said:?}");
    }
}

#[test]
fn a_responder_that_was_stopped_is_named_and_not_a_path_that_was_silent() {
    let stood = |sender: i64, receiver: i64, direction| {
        let mut round = transfer(direction, &[(360_000, 30); 30]);
        let end = |ms| TcpEnd {
            elapsed: Span::from_secs(3),
            stood_still: Some(Span::from_millis(ms)),
            ..TcpEnd::default()
        };
        (round.ended.tcp_sender, round.ended.tcp_receiver) = (Some(end(sender)), Some(end(receiver)));
        let (senders, receivers) = (round.ended.tcp_sender.iter(), round.ended.tcp_receiver.iter());
        let health = health(direction, &senders.collect::<Vec<_>>(), &receivers.collect::<Vec<_>>());
        (warnings(&[round]), health.prober_stood_still, health.responder_stood_still)
    };
    let away = Some(Span::from_millis(1980));
    for (direction, sender, receiver) in [(Direction::Forward, 0, 1980), (Direction::Reverse, 1980, 0)] {
        let (said, prober, responder) = stood(sender, receiver, direction);
        assert_eq!((prober, responder), (None, away));
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("the responder's host did not run netaware for 1.98 s"), "{said:?}");
    }
    // The lane says so of this host where it was for long.
    assert_eq!(stood(1980, 0, Direction::Forward), (vec![], away, None));
    let (said, ..) = stood(400, 0, Direction::Forward);
    assert!(said[0].contains(": this host did not run netaware for 400 ms"), "{said:?}");
    assert_eq!(stood(0, 60, Direction::Forward).0, [""; 0], "it has not set the rate");
}

#[test]
fn a_queue_that_was_still_filling_is_not_the_final_delay_under_load() {
    let ramp: Vec<(u64, i64)> = (0..40).map(|n| (60_000, 30 + n * 8)).collect();
    let said = warnings(&[transfer(Direction::Forward, &ramp)]);
    let [said] = said.as_slice() else { panic!("{said:?}") };
    assert!(
        said.contains(
            "still rising when it ended (TCP's smoothed estimate, which lags behind: 30.0 ms at first"
        ) && said.contains("342 ms"),
        "{said}"
    );
}

#[test]
fn what_was_in_flight_at_the_end_is_told_beside_what_still_came() {
    let mut round = transfer(Direction::Forward, &[(60_000, 30); 20]);
    round.order.duration = Span::from_secs(1);
    let stream = StreamEnd {
        bytes_sent: Some(ByteCount(3_000_000)),
        bytes_resent: Some(ByteCount(100_000)),
        ..StreamEnd::default()
    };
    round.ended.tcp_sender = Some(TcpEnd {
        streams: vec![stream],
        acknowledged_bytes: Some(ByteCount(600_000)),
        ..TcpEnd::default()
    });
    let left = queue_left(&[&round]).unwrap();
    assert_eq!((left.bytes, left.in_flight), (ByteCount(600_000), Some(ByteCount(2_300_000))));
    // 1.68 MiB were "left" where the path's queues held a third of that.
    round.ended.tcp_sender.as_mut().unwrap().acknowledged_bytes = Some(ByteCount(2_500_000));
    assert_eq!(queue_left(&[&round]).unwrap().bytes, ByteCount(400_000));
    // A system that does not tell leaves it unknown.
    round.ended.tcp_sender.as_mut().unwrap().acknowledged_bytes = None;
    assert_eq!(queue_left(&[&round]).unwrap().in_flight, None);
}

/// "Left 115 KiB in the path's queues, which took 1.90 s to drain", of a responder that was
/// stopped meanwhile.
#[test]
fn an_end_that_stood_still_when_the_time_was_up_left_no_queue() {
    let mut round = transfer(Direction::Forward, &[(60_000, 30); 20]);
    round.order.duration = Span::from_secs(1);
    let left = |round: &TcpRound| queue_left(&[round]).map(|left| left.drained);
    assert_eq!(left(&round), Some(Span::from_secs(1)));
    round.ended.tcp_receiver =
        Some(TcpEnd { stood_still: Some(Span::from_millis(900)), ..TcpEnd::default() });
    assert_eq!(left(&round), None);
    let end = round.ended.tcp_receiver.take().map(|end| TcpEnd { acknowledged_bytes: None, ..end });
    round.ended.tcp_sender = end;
    assert_eq!(left(&round), None);
    round.ended.tcp_sender = Some(TcpEnd { stood_still: Some(Span::ZERO), ..TcpEnd::default() });
    assert_eq!(left(&round), Some(Span::from_secs(1)));
}

#[test]
fn udp_goes_by_what_a_token_bucket_lets_pass_for_good_and_not_by_its_credit() {
    // A policer of 15 Mbit/s with 6 MB of credit on a link of 90 Mbit/s.
    let mbit = [16, 24, 50, 75, 88, 86, 82, 84, 74, 102, 86, 86, 85, 27, 3, 3, 4, 14, 10];
    let seen_of = |mbit: &[u64]| {
        let tick = |(n, mbit): (i64, &u64)| ReceiverTick {
            end: Span::from_millis(50) * (n + 1),
            length: Span::from_millis(50),
            bytes: ByteCount(mbit * 6250),
            streams: 4,
            ..ReceiverTick::default()
        };
        let order = TcpOrder {
            duration: Span::from_millis(50) * mbit.len() as i64,
            streams: 4,
            ..TcpOrder::new(Direction::Forward, Span::from_millis(50))
        };
        let ended = Ended { receiver_ticks: (0..).zip(mbit).map(tick).collect(), ..Ended::default() };
        seen(&TcpRound { order, ended, arrived: None, ran: None, load: None }, Span::from_millis(40))
    };
    let fallen = seen_of(&mbit);
    assert!(fallen.rate.unwrap().bit_rate().0 > 40_000_000, "{fallen:?}");
    assert!(fallen.lasting().unwrap().bit_rate().0 < 15_000_000, "{fallen:?}");
    let steady = seen_of(&[20, 40, 80, 88, 86, 84, 87, 60, 88, 86, 85, 88]);
    assert_eq!(steady.lasting(), steady.rate);
    // The link was gone for a while, and no rate follows from that.
    let cut = seen_of(&[20, 40, 80, 88, 86, 84, 87, 88, 86, 85, 88, 87, 0, 0, 0, 0, 0, 0]);
    assert_eq!((cut.lately, cut.lasting()), (None, cut.rate), "a silent end is no rate of 1 bit/s");
}

fn slices(rates: &[u64]) -> Vec<ReceiverTick> {
    let length = Span::from_millis(50);
    let tick = |(at, rate): (i64, &u64)| ReceiverTick {
        end: length * (at + 1),
        length,
        bytes: ByteCount(rate * 1_000_000 / 160),
        ..ReceiverTick::default()
    };
    (0..).zip(rates).map(tick).collect()
}

#[test]
fn what_one_stream_got_of_a_buckets_credit_does_not_pass_for_what_lasts() {
    // 15 Mbit/s with 6 MB of credit on a link of 90 Mbit/s.
    let one = [5, 7, 16, 37, 78, 86, 87, 87, 87, 86, 88, 87, 87, 86, 87, 87];
    let four = [17, 29, 61, 86, 86, 87, 87, 87, 34, 0, 5, 14, 17, 24, 19, 9, 14, 24, 17, 15, 14, 15];
    let round = |mbit: &[u64], streams: u16| {
        let order = TcpOrder {
            duration: Span::from_millis(50) * mbit.len() as i64,
            streams,
            ..TcpOrder::new(Direction::Reverse, Span::from_millis(50))
        };
        TcpRound {
            order,
            ended: Ended { receiver_ticks: slices(mbit), ..Ended::default() },
            arrived: None,
            ran: None,
            load: None,
        }
    };
    let path = Path { version: IpVersion::V4, across: Across::Network };
    let said = |rounds: &[TcpRound]| {
        let results = results(path, rounds, None, &[Span::from_millis(40)], None);
        fell_behind(&results, &[], rounds)
    };
    let fell = said(&[round(&one, 1), round(&four, 4)]);
    assert_eq!(fell.len(), 1, "{fell:?}");
    assert!(fell[0].starts_with("TCP down came at 8") && fell[0].contains("token bucket"), "{fell:?}");
    let first = fell[0].split(" for the first ").nth(1).unwrap();
    assert!(first.starts_with("9.") && first.contains(" MiB and at 1"), "{fell:?}");
    assert_eq!(said(&[round(&one, 1), round(&one, 4)]), [""; 0], "as much as before");
    assert_eq!(said(&[round(&four, 1), round(&one, 4)]), [""; 0], "several streams got more");
}

/// 28.9 Mbit/s in one round and 14.4 in another were said to be 21.2, of which "only the lower rate
/// lasts".
#[test]
fn a_rate_after_a_fast_start_is_not_the_mean_of_unlike_rounds() {
    let round = |mbit: [u64; 10], streams: u16| {
        let order = TcpOrder {
            duration: Span::from_millis(500),
            streams,
            ..TcpOrder::new(Direction::Reverse, Span::from_millis(50))
        };
        let ended = Ended { receiver_ticks: slices(&mbit), ..Ended::default() };
        TcpRound { order, ended, arrived: None, ran: None, load: None }
    };
    let rounds = [round([80; 10], 1), round([30; 10], 4), round([10; 10], 4)];
    let path = Path { version: IpVersion::V4, across: Across::Network };
    let results = results(path, &rounds, None, &[Span::from_millis(40)], None);
    let said = fell_behind(&results, &[], &rounds);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains(" by round then: ") && !said[0].contains("only the lower"), "{said:?}");
}

/// A path of 110 ms from the start of its transfers on, after one of 44 ms when it was idle.
#[test]
fn a_path_that_was_longer_before_the_load_has_no_rise_under_it() {
    let with_least = |ms: i64| {
        let slice = Span::from_millis(50);
        let rtt = |ms: i64| SenderTick { rtt: Some(Span::from_millis(ms)), ..SenderTick::default() };
        TcpRound {
            order: TcpOrder::new(Direction::Forward, slice),
            ended: Ended { sender_ticks: vec![rtt(ms), rtt(ms + 100)], ..Ended::default() },
            arrived: None,
            ran: None,
            load: None,
        }
    };
    let idle = |ms: i64| {
        let run = outages::tests::answered_in(25, |_| ms);
        latency::idle(IpVersion::V4, &[run], None)
    };
    let began =
        |idle_ms: i64, least: [i64; 2]| began_higher(least.map(with_least).iter(), idle(idle_ms).as_ref());
    assert_eq!(began(44, [112, 110]), Some(Span::from_millis(110)));
    assert_eq!(began(44, [112, 45]), None, "one of them began on the path as it was");
    assert_eq!(began(44, [46, 45]), None);
}

/// A link of 34 Mbit/s that was down for 0.4 s: one stream had it all, and four after it met
/// the outage, or the one after those had the whole rate again.
#[test]
fn a_path_that_was_cut_for_a_moment_is_no_token_bucket() {
    let one = [5, 20, 34, 34, 34, 34, 34, 34, 34, 34, 34, 34];
    let cut = [17, 34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let round = |mbit: &[u64], streams: u16| {
        let order = TcpOrder {
            duration: Span::from_millis(50) * mbit.len() as i64,
            streams,
            ..TcpOrder::new(Direction::Reverse, Span::from_millis(50))
        };
        let ended = Ended { receiver_ticks: slices(mbit), ..Ended::default() };
        TcpRound { order, ended, arrived: None, ran: None, load: None }
    };
    let path = Path { version: IpVersion::V4, across: Across::Network };
    let said = |rounds: &[TcpRound]| {
        let results = results(path, rounds, None, &[Span::from_millis(40)], None);
        fell_behind(&results, &[], rounds)
    };
    let met =
        |lost: std::ops::Range<u64>| TcpRound { load: Some(outages::tests::run(60, lost)), ..round(&cut, 4) };
    assert_eq!(said(&[round(&one, 1), met(0..0)]).len(), 1, "no request was lost: a bucket, for all we know");
    assert_eq!(said(&[round(&one, 1), met(10..50)]), [""; 0]);
    assert_eq!(said(&[round(&one, 1), met(0..0), round(&one, 1)]), [""; 0], "the rate came again");
    // Nor is it one in what explains the rate.
    let emptied = [34, 34, 34, 34, 34, 34, 34, 3, 3, 3, 3, 3, 3, 3, 3, 3];
    let evidence = |lost: std::ops::Range<u64>| {
        let hit = TcpRound { load: Some(outages::tests::run(60, lost)), ..round(&emptied, 4) };
        results(path, &[hit], None, &[], None).remove(0).limit.evidence
    };
    assert!(evidence(0..0).contains("token bucket"), "{}", evidence(0..0));
}

/// 20 kbit/s: a segment each 0.6 s, of which two count.
#[test]
fn the_rate_of_two_segments_is_not_that_of_a_full_path() {
    let of = |bytes: u64| {
        let length = Span::from_millis(600);
        let tick = |n: i64| ReceiverTick {
            end: length * (n + 1),
            length,
            bytes: ByteCount(bytes),
            ..ReceiverTick::default()
        };
        let order = TcpOrder { duration: length * 2, ..TcpOrder::new(Direction::Forward, length) };
        let ended = Ended {
            receiver_ticks: (0..6).map(tick).collect(),
            outcome: Outcome::Complete,
            ..Ended::default()
        };
        measured(
            &TcpRound { order, ended, arrived: None, ran: None, load: None },
            Some(Span::from_millis(60)),
        )
        .warm_up
    };
    assert_eq!(of(1448), WarmUpEnd::NeverEnded);
    assert_eq!(of(14_480), WarmUpEnd::NoneSeen);
}

/// 45 Mbit/s of a path of 86, and still doubling.
#[test]
fn a_transfer_that_was_still_speeding_up_is_not_limited_by_the_network() {
    let limit = |by| Limit::new(by, "3 segments sent again");
    let ramp = slices(&[2, 5, 8, 16, 29, 53, 29, 100]);
    let order = TcpOrder {
        duration: Span::from_millis(400),
        ..TcpOrder::new(Direction::Reverse, Span::from_millis(50))
    };
    let ended = Ended { receiver_ticks: ramp, outcome: Outcome::Complete, ..Ended::default() };
    let round = TcpRound { order, ended, arrived: None, ran: None, load: None };
    let of =
        |round: &TcpRound| unsettled(round, &measured(round, Some(Span::from_millis(49)))).map(str::to_owned);
    let found = taken_back(limit(LimitedBy::Network), of(&round));
    assert_eq!(found.by, LimitedBy::Unknown);
    assert_eq!(found.evidence, "still speeding up when it ended; 3 segments sent again");
    // A host, or the rate that was asked for, stays the limit.
    for by in [LimitedBy::SenderCpu, LimitedBy::ReceiveWindow, LimitedBy::RequestedRate] {
        assert_eq!(taken_back(limit(by), of(&round)).by, by);
    }
    assert_eq!(taken_back(limit(LimitedBy::Network), None).by, LimitedBy::Network);
    let settled = Ended { receiver_ticks: slices(&[40; 8]), outcome: Outcome::Complete, ..Ended::default() };
    assert_eq!(of(&TcpRound { ended: settled, ..round }), None);
}

/// 14.6 Mbit/s of 19, over 444 ms, and nothing was said of its rising.
#[test]
fn a_rate_that_rose_slowly_in_all_of_what_counts_is_said_to_have() {
    let said = |rates: &[u64], by, warm_up| {
        let ticks = slices(rates);
        let order = TcpOrder::new(Direction::Reverse, Span::from_millis(50));
        let round = TcpRound { order, ended: Ended::default(), arrived: None, ran: None, load: None };
        let measured = MeasuredRound { ticks: &ticks, warm_up, at_start: ByteCount(0) };
        with_events(Limit::new(by, "nothing stands out"), &[&round], &[measured]).evidence
    };
    let rising = [4, 8, 10, 11, 13, 15, 17, 18, 19, 19];
    let over = WarmUpEnd::SlowStartOver(2);
    let rose =
        "it came faster in the second half of what counts, so that its mean may be low; nothing stands out";
    assert_eq!(said(&rising, LimitedBy::Unknown, over), rose);
    for (rates, by, warm_up) in [
        (&rising[..], LimitedBy::Network, over),
        (&rising[..], LimitedBy::Unknown, WarmUpEnd::NeverEnded),
        (&[4, 8, 19, 18, 19, 19, 18, 19, 19, 19][..], LimitedBy::Unknown, over),
        (&[4, 8, 10, 19][..], LimitedBy::Unknown, over),
    ] {
        assert_eq!(said(rates, by, warm_up), "nothing stands out", "{rates:?} {warm_up:?}");
    }
}

#[test]
fn a_transfer_that_emptied_a_bucket_is_said_to_have() {
    let emptied = slices(&[80, 80, 79, 80, 80, 80, 14, 14, 14, 15, 14, 14, 14, 14, 14]);
    let round = [MeasuredRound { ticks: &emptied, warm_up: WarmUpEnd::NeverEnded, at_start: ByteCount(0) }];
    let said = slowing_down(&round).unwrap();
    assert!(said.contains("from 80.0 Mbit/s to 14.0 Mbit/s"), "{said}");
    // One that holds its rate, speeds up, or has one slow moment at its end did not empty one.
    for rates in [
        &[80; 15][..],
        &[5, 10, 20, 40, 60, 70, 80, 80, 80, 80, 80, 80, 80, 80, 80],
        &[80, 80, 80, 80, 80, 80, 80, 80, 80, 80, 80, 80, 80, 14, 14],
        &[80, 14, 14],
    ] {
        let ticks = slices(rates);
        let round = [MeasuredRound { ticks: &ticks, warm_up: WarmUpEnd::NeverEnded, at_start: ByteCount(0) }];
        assert_eq!(slowing_down(&round), None, "{rates:?}");
    }
}
