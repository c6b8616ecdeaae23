use super::*;
use crate::hops::{Fate, HostStamps, LateAnswer, Reply, RoundReport, Told};

fn plan() -> ReachPlan {
    ReachPlan {
        host: IpAddr::from([192, 0, 2, 9]),
        smallest: 60,
        largest: 1500,
        time: Span::from_secs(10),
        count: None,
        gap: Span::from_millis(10),
        echo: true,
        timestamps: false,
        patience: Span::from_secs(1),
        stamp_error: Span::ZERO,
    }
}

/// A host 10 ms away behind a link of `ns` per byte; `answers` says whether a question gets an
/// answer, by kind and number.
fn run(plan: ReachPlan, ns: f64, answers: impl Fn(Kind, u32) -> bool) -> ReachFinding {
    run_with_syns(plan, ns, |kind, number, _| answers(kind, number), None)
}

/// The same, with connections tried between the rounds until the host is `gone`.
fn run_with_syns(
    plan: ReachPlan,
    ns: f64,
    answers: impl Fn(Kind, u32, Mono) -> bool,
    gone: Option<Mono>,
) -> ReachFinding {
    let (host, end) = (plan.host, BEGAN_AT + plan.time);
    let mut tries = TcpTries::default();
    let mut reach = Reach::new(plan);
    let (mut now, mut counter, mut ident) = (BEGAN_AT, 0_u32, 0_u16);
    while let Some(round) = reach.next(now) {
        let mut probes = Vec::new();
        let mut free = Mono(0);
        for probe in &round.probes {
            now = now + probe.after + Span::from_micros(2);
            counter += 1;
            let left = now.max(free) + Span((f64::from(probe.length) * ns) as i64);
            free = left;
            let answered = answers(probe.kind, counter, now);
            ident = ident.wrapping_add(1);
            let what = match probe.kind {
                Kind::Echo => What::EchoReply,
                Kind::Timestamp => What::TimestampReply,
                Kind::Udp => What::PortUnreachable,
            };
            let at = left + Span::from_millis(10);
            let ms = (left.0 / 1_000_000) as u32;
            let stamps = (probe.kind == Kind::Timestamp).then_some(HostStamps { receive: ms, transmit: ms });
            let reply = Reply { at, from: host, what, length: None, ident: Some(ident), stamps };
            let fate = if answered { Fate::Answered(reply) } else { Fate::Silent };
            probes.push(Told { sent_at: now, fate });
        }
        let silent = probes.iter().any(|told| told.fate == Fate::Silent);
        now += if silent { round.patience } else { Span::from_millis(12) };
        reach.take(&RoundReport::of(probes));
        let patience = tries.due(now, end.since(now), reach.syn_patience(tries.unanswered()));
        let (Some(gone), Some(patience)) = (gone.filter(|_| !reach.strains()), patience) else { continue };
        let answered = tries.answered();
        if now < gone {
            let rtt = Span::from_millis(10);
            tries.take(now, TcpAnswer::Refused(rtt));
            now += rtt;
            reach.heard(now);
        } else {
            tries.take(now, TcpAnswer::Silent);
            if answered > 0 {
                reach.missed(now);
            }
            now += patience;
        }
    }
    reach.finding()
}

const BEGAN_AT: Mono = Mono(1_000_000_000);

#[test]
fn a_host_that_falls_silent_for_two_seconds_did_not_ration_its_answers() {
    for at in (200..=1000).step_by(20) {
        let gone = BEGAN_AT + Span::from_millis(at);
        let plan = ReachPlan {
            time: Span::from_secs(3),
            gap: Span::from_millis(50),
            timestamps: true,
            patience: Span::from_secs(15),
            ..plan()
        };
        let found = run_with_syns(plan, 240.0, |_, _, now| now < gone, Some(gone));
        let ceased = found.ceased.unwrap_or_else(|| panic!("silent from {at} ms of 3 s: {:?}", found.echo));
        assert!(ceased.unanswered >= 4, "{ceased:?}");
        assert!(!found.udp_rationed, "{at} ms: {:?}", found.udp);
        assert!(!matches!(found.lasting, Some(Lasting::Unknown | Lasting::Unanswered)), "{at} ms");
        assert!(found.echo.asked - found.echo.answered <= 2, "{at} ms: {:?}", found.echo);
    }
}

#[test]
fn in_a_short_time_the_first_question_is_listened_for_to_its_end() {
    // 1.45 s are half of 3 s; the round trip of a satellite with its queue takes 1.2 s.
    let mut reach = Reach::new(ReachPlan { time: Span::from_millis(1450), ..plan() });
    let round = reach.next(Mono(0)).unwrap();
    assert_eq!((round.probes[0].kind, round.probes.len()), (Kind::Echo, 1));
    assert!(round.patience > Span::from_millis(1400), "{}", round.patience);
    assert_eq!(reach.first_syn_patience(Span::from_millis(1400)), Span::from_millis(1400));
    assert_eq!(reach.first_syn_patience(Span::from_secs(9)), reach.syn_patience(0));
}

#[test]
fn twenty_milliseconds_are_time_to_ask_a_host_that_is_near() {
    let mut reach = Reach::new(ReachPlan { time: Span::from_millis(10), ..plan() });
    assert!(reach.next(Mono(0)).is_some());
}

#[test]
fn a_host_that_falls_silent_for_good_is_not_one_that_loses() {
    let found = run(plan(), 80.0, |_, n| n < 300);
    let ceased = found.ceased.expect("it fell silent");
    assert!(ceased.silent > Span::from_secs(1) && ceased.unanswered >= 4, "{ceased:?}");
    // One echo of a burst or pair may be the last that was answered.
    assert!(found.echo.asked - found.echo.answered <= 2, "{:?}", found.echo);
    // An outage that ends, and a host that never answered.
    assert_eq!(run(plan(), 80.0, |_, n| !(100..120).contains(&n)).ceased, None);
    assert_eq!(run(plan(), 80.0, |_, _| false).ceased, None);
}

#[test]
fn a_healthy_host_has_its_round_trip_no_loss_and_a_capacity() {
    let found = run(plan(), 800.0, |_, _| true);
    assert!(found.echo.asked > 100 && found.echo.asked == found.echo.answered);
    assert_eq!(found.echo.rtts[0], Span::from_millis(10) + Span::from_micros(48));
    let (rate, bound) = found.capacity.unwrap();
    assert!((rate.estimate / 1e7 - 1.0).abs() < 0.01 && bound == Bound::None, "{rate:?}");
    assert_eq!(found.by_direction.map(|it| (it.forward, it.reverse)), Some((0, 0)));
    assert!(!found.udp_rationed);
}

#[test]
fn a_fast_link_is_told_from_large_packets() {
    // The host sends each 2 us, which for 9000 bytes is 36 Gbit/s.
    let found = run(ReachPlan { largest: 9000, ..plan() }, 0.6, |_, _| true);
    let (rate, bound) = found.capacity.unwrap();
    assert!(bound == Bound::None && (rate.estimate / 13.3e9 - 1.0).abs() < 0.01, "{rate:?}");
}

#[test]
fn what_the_stamps_err_widens_the_capacity_until_it_is_a_bound_that_says_so() {
    // 1500 bytes each 120 us.
    let with = |error| run(ReachPlan { stamp_error: error, ..plan() }, 80.0, |_, _| true);
    let [fine, coarse, blunt] = [0, 7, 70].map(|us| with(Span::from_micros(us)));
    let rate = |of: &ReachFinding| of.capacity.unwrap().0;
    assert!(coarse.capacity.unwrap().1 == Bound::None && rate(&coarse).contains(1e8), "{coarse:?}");
    assert!(rate(&coarse).width() > rate(&fine).width() + 1e7, "{:?} {:?}", rate(&coarse), rate(&fine));
    let (rate, bound) = blunt.capacity.unwrap();
    assert!(bound == Bound::AtLeast && rate.lo <= 1e8, "{rate:?}");
    assert_eq!([fine, coarse, blunt].map(|it| it.host_limited), [false, false, true]);
}

#[test]
fn answers_that_come_in_batches_tell_no_capacity() {
    let found = run(plan(), 0.8, |_, _| true);
    assert_eq!((found.capacity, found.batched), (None, true));
}

#[test]
fn echoes_lost_on_the_way_back_were_counted() {
    let found = run(plan(), 80.0, |kind, n| kind == Kind::Udp || n % 9 != 0);
    let by = found.by_direction.unwrap();
    assert!(by.reverse > 0 && by.forward == 0, "{by:?}");
    assert!(found.echo.answered < found.echo.asked);
}

#[test]
fn a_host_that_rations_unreachables_is_not_called_lossy() {
    let found = run(plan(), 80.0, |kind, n| kind == Kind::Echo || n < 4);
    assert!(found.udp_rationed, "{:?}", found.udp);
}

#[test]
fn timestamps_are_asked_for_seldom_and_believed_once_they_move() {
    let found = run(ReachPlan { timestamps: true, ..plan() }, 80.0, |_, _| true);
    assert!((50..=100).contains(&found.timestamps.asked), "{}", found.timestamps.asked);
    assert_eq!(
        (found.timestamps.answered, &found.timestamps.said[..]),
        (found.timestamps.asked, &[What::TimestampReply][..])
    );
    assert!(matches!(found.clock, Some(HostClock::Believed(_))), "{:?}", found.clock);
    assert!(found.capacity.is_some() && found.by_direction.is_some());
}

#[test]
fn a_host_that_does_not_answer_timestamps_is_soon_left_alone() {
    let found = run(ReachPlan { timestamps: true, ..plan() }, 80.0, |kind, _| kind != Kind::Timestamp);
    assert_eq!((found.timestamps.asked, found.timestamps.answered, found.clock), (5, 0, None));
    assert_eq!(found.echo.asked, found.echo.answered);
}

/// Rounds to a host behind a link of `rate`, all in one queue, 10 ms away; packets longer than
/// `passes` vanish. What was sent when, and what was found.
fn on_a_link(rate: u64, passes: u32, seconds: i64) -> (Vec<(Mono, u32)>, ReachFinding) {
    let plan = ReachPlan { time: Span::from_secs(seconds), patience: Span::from_secs(10), ..plan() };
    let host = plan.host;
    let mut reach = Reach::new(plan);
    let (mut now, mut sent, mut free_at) = (Mono(1_000_000_000), Vec::new(), Mono(0));
    let mut given_up: Vec<LateAnswer> = Vec::new();
    while let Some(round) = reach.next(now) {
        let mut told = Vec::new();
        for probe in &round.probes {
            now = now + probe.after + Span::from_micros(2);
            sent.push((now, probe.length));
            free_at = free_at.max(now) + Span((u64::from(probe.length) * 8_000_000_000 / rate).cast_signed());
            let at = free_at + Span::from_millis(10);
            let what = if probe.kind == Kind::Udp { What::PortUnreachable } else { What::EchoReply };
            let reply = Reply { at, from: host, what, length: None, ident: None, stamps: None };
            let fate = if probe.length > passes { Fate::Silent } else { Fate::Answered(reply) };
            told.push(Told { sent_at: now, fate });
        }
        let until = now + round.patience;
        for (told, probe) in told.iter_mut().zip(&round.probes) {
            if let Some(Reply { at, from, what, .. }) = told.reply().filter(|reply| reply.at > until) {
                let (rtt, sent_at, kind, ttl) = (at - told.sent_at, told.sent_at, probe.kind, probe.ttl);
                given_up.push(LateAnswer { kind, ttl, sent_at, rtt, from, what });
                told.fate = Fate::Silent;
            }
        }
        let answered = told.iter().map(|told| Some(told.reply()?.at)).collect::<Option<Vec<_>>>();
        now = answered.and_then(|all| all.into_iter().max()).unwrap_or(until);
        let late = given_up.extract_if(.., |late| late.sent_at + late.rtt <= now).collect();
        reach.take(&RoundReport { probes: told, late });
    }
    (sent, reach.finding())
}

#[test]
fn a_slow_path_is_not_filled_by_pairs_and_trains() {
    for rate in [30_000, 64_000, 100_000, 140_000, 192_000, 250_000, 400_000, 1_000_000] {
        let (sent, _) = on_a_link(rate, 1500, 10);
        let within = |from: Mono| {
            let until = from + Span::from_secs(1);
            sent.iter().filter(move |(at, _)| *at >= from && *at < until).map(|(_, length)| *length)
        };
        let busiest = sent.iter().map(|(from, _)| within(*from).sum::<u32>()).max().unwrap();
        // The first pair is sent before anything is known.
        let allowed = (rate * 125 / 100).max(30_000);
        assert!(u64::from(busiest) * 8 <= allowed, "{} bit in a second on {rate}", busiest * 8);
    }
}

#[test]
fn large_echoes_that_do_not_fit_the_path_are_no_loss_and_their_length_is_told() {
    let (_, found) = on_a_link(10_000_000, 1380, 5);
    assert!(found.echo.asked == found.echo.answered && found.echo.asked > 50, "{:?}", found.echo);
    let too_large = found.too_large.unwrap();
    assert_eq!((too_large.length, too_large.answered, found.paired), (1420, Some(1380), 1380));
    let (rate, bound) = found.capacity.unwrap();
    assert!((rate.estimate / 1e7 - 1.0).abs() < 0.01 && bound == Bound::None, "{rate:?}");
    // A host that loses half of what it is asked answers some of the large ones.
    let lossy = run(plan(), 80.0, |_, n| n % 2 == 0);
    assert_eq!(lossy.too_large, None);
}

#[test]
fn an_echo_that_was_answered_has_a_round_trip_however_few_there_were() {
    // No time for more than two questions.
    let found = run(ReachPlan { time: Span::from_millis(90), ..plan() }, 80.0, |_, _| true);
    assert!(found.echo.answered > 0 && !found.echo.rtts.is_empty(), "{:?}", found.echo);
}

#[test]
fn without_echoes_udp_is_all_there_is_and_silence_ends_in_time() {
    let found = run(ReachPlan { echo: false, ..plan() }, 80.0, |_, _| false);
    assert!(found.echo.asked == 0 && found.udp.asked > 5 && found.udp.answered == 0);
    assert_eq!(found.capacity, None);
}
