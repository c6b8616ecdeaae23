use std::net::IpAddr;

use super::super::finding::{HopFlag, HopsFinding, PathFlag};
use super::super::made_up::{SILENT, hops, told};
use super::super::round::{Fate, LateAnswer, Reply, RoundReport, Told, What};
use super::super::trains::FAR;
use super::*;

fn on_a_link(rate: u64, passes: u32, millis: i64) -> (Vec<(Mono, u32)>, Hops) {
    on_a_changing_link(|_| rate, passes, millis)
}

/// Rounds on a path where packets of up to `passes` bytes are answered after 40 ms and what
/// they take on a link of `rate` there, which all queue for.
fn on_a_changing_link(rate: impl Fn(Mono) -> u64, passes: u32, millis: i64) -> (Vec<(Mono, u32)>, Hops) {
    on_a_link_where(1, rate, millis, |probe, _| probe.length <= passes)
}

/// The same behind routers, where it is said which probes of which instants are answered.
fn on_a_link_where(
    hops_there: u8,
    rate: impl Fn(Mono) -> u64,
    millis: i64,
    mut is_answered: impl FnMut(&Probe, Mono) -> bool,
) -> (Vec<(Mono, u32)>, Hops) {
    let mut plan = hops(1).plan;
    (plan.max_hops, plan.time, plan.trains) = (30, Span::from_millis(millis), true);
    let mut given_up: Vec<LateAnswer> = Vec::new();
    let mut method = Hops::new(plan);
    let (mut now, mut sent) = (Mono(0), Vec::new());
    let mut free_at = Mono(0);
    while let Some(round) = method.next(now) {
        let mut told = Vec::new();
        for probe in &round.probes {
            now += probe.after;
            sent.push((now, probe.length));
            let begins = free_at.max(now);
            let takes = Span((u64::from(probe.length) * 8_000_000_000 / rate(begins)).cast_signed());
            free_at = begins + takes;
            let at = free_at + Span::from_millis(40);
            let is_router = probe.ttl < hops_there;
            let what = match probe.kind {
                _ if is_router => What::TimeExceeded,
                Kind::Echo => What::EchoReply,
                _ => What::PortUnreachable,
            };
            let from = IpAddr::from([192, 0, 2, if is_router { probe.ttl } else { 9 }]);
            let (length, ident, stamps) = (Some(probe.length.min(72)), None, None);
            let reply = Reply { at, from, what, length, ident, stamps };
            let fate = if is_answered(probe, now) { Fate::Answered(reply) } else { Fate::Silent };
            told.push(Told { sent_at: now, fate });
        }
        let answered = told.iter().filter_map(|told| Some(told.reply()?.at)).max();
        let is_whole = told.iter().all(|told| told.reply().is_some());
        let until = now + round.patience;
        now = if is_whole { answered.unwrap_or(until).min(until) } else { until };
        let is_in_time = |late: &LateAnswer| late.sent_at + late.rtt <= now;
        let late = given_up.extract_if(.., |late| is_in_time(late)).collect();
        for (told, probe) in told.iter_mut().zip(&round.probes) {
            if let Some(reply) = told.reply().filter(|reply| reply.at > until) {
                let (rtt, from, what) = (reply.at - told.sent_at, reply.from, reply.what);
                let (kind, ttl, sent_at) = (probe.kind, probe.ttl, told.sent_at);
                given_up.push(LateAnswer { kind, ttl, sent_at, rtt, from, what });
                told.fate = Fate::Silent;
            }
        }
        method.take(&RoundReport { probes: told, late });
    }
    (sent, method)
}

fn busiest_second(sent: &[(Mono, u32)]) -> u64 {
    let within =
        |from: Mono| sent.iter().filter(move |(at, _)| *at >= from && *at < from + Span::from_secs(1));
    let sums = sent.iter().map(|(from, _)| within(*from).map(|(_, length)| u64::from(*length)).sum::<u64>());
    sums.max().unwrap_or(0) * 8
}

#[test]
fn a_slow_path_is_not_filled_by_looking_at_it() {
    for (rate, passes) in
        [(20_000, 1500), (64_000, 1500), (300_000, 1500), (64_000, 1280), (300_000, 1000), (2_000_000, 1500)]
    {
        let (sent, method) = on_a_link(rate, passes, 20_000);
        let busiest = busiest_second(&sent);
        // The first probes, 2 kB, and the first large one are sent before anything is known.
        let allowed = (rate * 125 / 100).max(28_000);
        assert!(busiest <= allowed, "{busiest} bit in a second on {rate}, {passes} B pass");
        let hop = method.hop(1);
        assert!(hop.answered * 100 >= hop.asked * 99, "{} of {} on {rate}", hop.answered, hop.asked);
    }
}

#[test]
fn a_path_that_becomes_ten_times_slower_is_followed_within_two_seconds() {
    for rate in [2_000_000, 10_000_000] {
        let falls_at = Mono(0) + Span::from_secs(5);
        let (sent, method) =
            on_a_changing_link(|at| if at < falls_at { rate } else { rate / 10 }, 1500, 15_000);
        let before: Vec<_> = sent.iter().copied().filter(|(at, _)| *at < falls_at).collect();
        assert!(busiest_second(&before) > rate / 8, "{rate}: it was asked slowly all the time");
        let later = sent.iter().copied().filter(|(at, _)| *at >= falls_at + Span::from_secs(2));
        let busiest = busiest_second(&later.collect::<Vec<_>>());
        assert!(busiest <= rate / 8, "{busiest} bit in a second on {}", rate / 10);
        assert!(method.finding().flags.contains(&PathFlag::PathChanged), "{rate}");
    }
}

/// When the path dies, when the last question with an answer was asked, and what the method says of
/// it, where only so many answers to UDP come.
fn dies(at_millis: i64, millis: i64, port_answers: u32) -> (Mono, Mono, Hops) {
    let dead_from = Mono(0) + Span::from_millis(at_millis);
    let (mut answered, mut last) = (0, Mono(0));
    let (_, method) = on_a_link_where(
        1,
        |_| 50_000_000,
        millis,
        |probe, at| {
            answered += u32::from(probe.kind == Kind::Udp);
            let is_answered = at < dead_from && (probe.kind == Kind::Echo || answered <= port_answers);
            last = if is_answered { at } else { last };
            is_answered
        },
    );
    (dead_from, last, method)
}

#[test]
fn a_path_that_is_dead_until_the_end_is_said_whatever_was_asked_last() {
    let mut known_too_late = 0;
    for millis in [3000, 4000, 6000] {
        // Its first echo is answered after 200 ms.
        for at in (250..millis - 1500).step_by(100) {
            for port_answers in [6, u32::MAX] {
                let (dead_from, last, method) = dies(at, millis, port_answers);
                let finding = method.finding();
                let lasted = method.now.since(dead_from);
                let told = format!("dead from {at} ms of {millis} ms, {lasted} until its end");
                if lasted < LONG_ENOUGH {
                    // It had all that it wanted before it could know.
                    known_too_late += 1;
                    continue;
                }
                let ceased = finding.ceased.unwrap_or_else(|| panic!("{told}: {:?}", method.end_ceasing));
                // Answers to other questions than those that are followed are answers, too.
                assert!(Mono(0) + ceased.after >= last, "{told}: nothing came after {}", ceased.after);
                // No more time would have helped, and nobody rationed.
                assert!(!finding.flags.contains(&PathFlag::CutShort), "{told}");
                let loss = finding.hops.last().map(|hop| hop.asked - hop.answered);
                assert!(loss <= Some(2), "{told}: {loss:?} lost");
            }
        }
    }
    assert!(known_too_late <= 4, "{known_too_late} were over within a second");
}

/// A silence that paths do not have, and an answer's time.
const LONG_ENOUGH: Span = Span::from_millis(1200);

/// Routers in front of a host that answers nothing, each with one answer a second after the first
/// six, or with one for each question.
fn in_front_of_a_silent_host(routers: u8, rationed: bool, dead_from: Span) -> HopsFinding {
    let mut credits = vec![(6.0_f64, Mono(0)); usize::from(routers) + 1];
    let (_, method) = on_a_link_where(
        routers + 1,
        |_| 50_000_000,
        6000,
        |probe, at| {
            let Some((credit, since)) = credits.get_mut(usize::from(probe.ttl)) else { return false };
            *credit = (*credit + at.since(*since).secs_f64()).min(6.0);
            *since = at;
            let is_answered = at < Mono(0) + dead_from && (!rationed || *credit >= 1.0);
            *credit -= f64::from(u8::from(is_answered));
            is_answered
        },
    );
    method.finding()
}

#[test]
fn routers_that_ration_their_answers_are_no_dead_path() {
    let (never, early) = (Span::from_secs(60), Span::from_millis(2500));
    for routers in [1, 2, 4] {
        assert_eq!(in_front_of_a_silent_host(routers, true, never).ceased, None, "{routers} that ration");
        assert_eq!(in_front_of_a_silent_host(routers, false, never).ceased, None, "{routers}");
    }
    // Whoever answers no echo may ration for some seconds.
    assert_eq!(in_front_of_a_silent_host(1, false, early).ceased, None);
}

#[test]
fn a_destination_that_answers_after_the_search_was_given_up_is_at_the_end_of_the_hops() {
    // A router next door, and 1.2 s to the host behind it; 3 s are half of 6.
    let mut plan = hops(1).plan;
    (plan.max_hops, plan.time) = (30, Span::from_secs(3));
    let mut method = Hops::new(plan);
    let first = method.next(Mono(0)).unwrap();
    let mut told = vec![SILENT; first.probes.len()];
    told[0] = super::super::made_up::told(What::TimeExceeded, 1, 1);
    method.take(&RoundReport::of(told));
    let again = method.next(Mono(0) + Span::from_millis(1_150)).unwrap();
    assert!(again.patience >= Span::from_secs(1), "{}", again.patience);
    // What is rationed is not waited for.
    let awaited: Vec<Kind> = again.probes.iter().filter(|it| it.awaited).map(|it| it.kind).collect();
    assert_eq!(awaited, [Kind::Echo]);
    let late = |ttl: u8, kind, what| LateAnswer {
        kind,
        ttl,
        sent_at: Mono(0),
        rtt: Span::from_millis(1_200),
        from: IpAddr::from([192, 0, 2, 9]),
        what,
    };
    let late = vec![
        late(3, Kind::Udp, What::PortUnreachable),
        late(2, Kind::Udp, What::PortUnreachable),
        late(FAR, Kind::Echo, What::EchoReply),
    ];
    method.take(&RoundReport { probes: vec![SILENT; again.probes.len()], late });
    assert_eq!((method.reached, method.end, method.whole), (true, 2, (2, 1)));
    let hop = &method.finding().hops[1];
    assert_eq!(hop.rtt_min, Some(Span::from_millis(1_200)));
}

#[test]
fn an_answer_that_came_late_is_no_loss() {
    let mut hops = hops(2);
    hops.stage = Stage::Measure;
    hops.note_exchange(1, Kind::Udp, 64, &told(What::TimeExceeded, 1, 1));
    let given_up = Told { sent_at: Mono(5), ..SILENT };
    hops.note_exchange(1, Kind::Udp, 64, &given_up);
    assert_eq!((hops.hop(1).asked, hops.hop(1).answered), (2, 1));
    // Of a part of a train, which was not counted as asked; and of the one that was.
    for (sent_at, answered) in [(Mono(6), 1), (Mono(5), 2), (Mono(5), 2)] {
        let (from, what) = (IpAddr::from([192, 0, 2, 1]), What::TimeExceeded);
        let rtt = Span::from_secs(3);
        let late = vec![LateAnswer { kind: Kind::Udp, ttl: 1, sent_at, rtt, from, what }];
        hops.take(&RoundReport { probes: Vec::new(), late });
        assert_eq!((hops.hop(1).asked, hops.hop(1).answered), (2, answered));
    }
    assert_eq!(hops.patience, Span::from_millis(6100));
}

/// Looks for the hops of a path of one, all of whose answers take so long, and says what is
/// asked next.
fn search(time: Span, answer_after: i64) -> (Hops, Option<Round>) {
    let mut hops = hops(1);
    (hops.plan.time, hops.end) = (time, 0);
    let first = hops.next(Mono(0)).unwrap();
    hops.take(&RoundReport::of(vec![SILENT; first.probes.len()]));
    let next = hops.next(Mono(0) + Span::from_millis(1010));
    if let Some(round) = next.as_ref().filter(|it| it.patience >= Span::from_millis(answer_after)) {
        let answered = vec![told(What::PortUnreachable, 9, answer_after); round.probes.len()];
        hops.take(&RoundReport::of(answered));
    }
    (hops, next)
}

#[test]
fn a_host_that_takes_more_than_a_second_is_reached_in_the_half_of_six() {
    let (hops, round) = search(Span::from_secs(3), 1200);
    assert!(hops.reached, "{:?}", round.map(|round| round.patience));
}

/// One hop: rounds of echoes to it, each answered as `answers` says of its number.
fn asked(rounds: u64, answers: impl Fn(u64) -> bool) -> Hops {
    let mut hops = hops(1);
    (hops.reached, hops.stage, hops.whole) = (true, Stage::Measure, (1, 1));
    hops.note_exchange(1, Kind::Echo, 64, &told(What::EchoReply, 9, 1));
    for n in 0..rounds {
        let (probe, asked) = hops.whole(LEAST_GAP).unwrap();
        (hops.probes, hops.asked) = (vec![probe], vec![asked]);
        let sent_at = Mono(0) + Span::from_millis(100) * n.cast_signed();
        let fate = match told(What::EchoReply, 9, 1).fate {
            Fate::Answered(reply) if answers(n) => Fate::Answered(Reply { at: sent_at + Span(9), ..reply }),
            _ => Fate::Silent,
        };
        hops.take(&RoundReport::of(vec![Told { sent_at, fate }]));
    }
    hops
}

#[test]
fn a_host_that_falls_silent_for_good_rations_nothing_and_loses_nothing() {
    let found = asked(60, |n| n < 20).finding();
    let ceased = found.ceased.expect("it fell silent");
    assert_eq!((ceased.unanswered, ceased.silent), (40, Span::from_millis(3900)));
    assert_eq!((found.hops[0].asked, found.hops[0].answered), (21, 21));
    assert!(found.hops[0].flags.iter().all(|it| !matches!(it, HopFlag::RateLimited(_))), "{found:?}");
    // An outage that ends.
    let found = asked(60, |n| !(20..40).contains(&n)).finding();
    assert_eq!((found.ceased, found.hops[0].asked - found.hops[0].answered), (None, 20));
    assert!(found.hops[0].flags.iter().all(|it| !matches!(it, HopFlag::RateLimited(_))), "{found:?}");
}

#[test]
fn an_answer_that_came_late_or_was_not_waited_for_is_no_loss() {
    let mut hops = asked(4, |n| n > 0);
    assert_eq!((hops.hop(1).asked, hops.hop(1).answered), (5, 4));
    let sent_at = Mono(0);
    let (from, what) = (IpAddr::from([192, 0, 2, 9]), What::EchoReply);
    let late = LateAnswer { kind: Kind::Echo, ttl: FAR, sent_at, rtt: Span::from_millis(1400), from, what };
    hops.take(&RoundReport { probes: Vec::new(), late: vec![late] });
    assert_eq!((hops.hop(1).asked, hops.hop(1).answered), (5, 5));
    hops.cut_off = true;
    assert_eq!(hops.note_exchange(1, Kind::Echo, 64, &SILENT), None);
    assert_eq!(hops.hop(1).asked, 5);
}

#[test]
fn a_destination_whose_first_answer_was_lost_is_not_one_hop_further_away() {
    let mut hops = hops(3);
    hops.reached = true;
    hops.whole = (4, 4);
    hops.note_exchange(1, Kind::Udp, 64, &told(What::TimeExceeded, 1, 1));
    hops.note_exchange(3, Kind::Udp, 64, &told(What::PortUnreachable, 9, 20));
    hops.stage = Stage::Alone;
    hops.silent = hops.silent_hops();
    assert_eq!(hops.silent, [2; ASKED_IF_IT_IS_THE_END]);
    for (fate, end) in [(SILENT, 3), (told(What::EchoReply, 9, 20), 2)] {
        let (probes, asked): (Vec<Probe>, Vec<Asked>) = hops.ask_alone().into_iter().unzip();
        assert_eq!((probes[0].ttl, probes[0].kind), (2, Kind::Echo));
        (hops.asked, hops.probes) = (asked, probes);
        hops.take(&RoundReport::of(vec![fate]));
        assert_eq!((hops.end, hops.reached, hops.is_destination(2)), (end, true, end == 2));
    }
    assert_eq!(hops.ask_alone(), [], "it is known now");
}
