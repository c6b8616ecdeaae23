//! Flows whose answers are made by hand: all that they send, tell and wait for is written down.

use netaware_engine::NotSent;
use netaware_wire::stamp::tlv::{ClassOfService, Counters, kind};

use super::super::plan::MOST_OUTSTANDING;
use super::*;

const MS: Span = Span::from_millis(1);

fn at(ms: i64) -> Mono {
    Mono(0) + MS * ms
}

/// When a packet is sent that is due then.
fn ahead(ms: i64) -> Mono {
    at(ms) - LEAD
}

fn wall(at: Mono) -> Wall {
    Wall(EPOCH.0 + at.0 as i64)
}

/// The first packet is due at 10 ms, the others 10 ms apart; a patience of 100 ms.
fn flow(count: u64) -> StampFlow {
    StampFlow::new(StampPlan { start: at(10), patience: MS * 100, ..plan(count) }).unwrap()
}

/// All that it says at this instant, until it waits or is done.
fn polled(flow: &mut StampFlow, now: Mono) -> Vec<Output<StampEvent>> {
    let mut out = [0; 144];
    let mut said = Vec::new();
    loop {
        let output = flow.poll(now, &mut out);
        let is_last = matches!(output, Output::Wait(_) | Output::Done);
        said.push(output);
        if is_last {
            return said;
        }
    }
}

fn sends(tag: u64, due: Mono) -> Output<StampEvent> {
    Output::Send { len: 144, tag, due }
}

fn left(flow: &mut StampFlow, tag: u64, sent: Mono) {
    flow.handle(sent, Input::Sent { tag, tx: stamp(sent) });
}

/// Of a reflector that answers at once, to a packet that left then, with its own number.
fn answer(seq: u32, sent: Mono, number: u32, there: Mono) -> Reply {
    Reply {
        seq: number,
        sent_at: wall(there),
        error: ErrorEstimate::UNKNOWN,
        ssid: 77,
        received_at: wall(there),
        request_seq: seq,
        request_sent_at: Timestamp::new(wall(sent), ErrorEstimate::UNKNOWN.format),
        request_error: ErrorEstimate::UNKNOWN,
        request_ttl: 60,
    }
}

/// The answer comes, with the reflector's counts behind it or without.
fn take(flow: &mut StampFlow, now: Mono, reply: &Reply, counted: bool) {
    let mut bytes = [0; 60];
    reply.emit(&mut bytes, None);
    bytes[44..48].copy_from_slice(&[0, kind::DIRECT_MEASUREMENT, 0, 12]);
    bytes[56..].copy_from_slice(&reply.seq.wrapping_add(1).to_be_bytes());
    let len = if counted { 60 } else { 44 };
    flow.handle(now, Input::Datagram { bytes: &bytes[..len], rx: stamp(now), ttl: Some(61) });
}

fn exchange(seq: u64, sent: Mono, there: Mono, came: Mono) -> StampExchange {
    StampExchange {
        seq,
        sent_at: wall(sent),
        received_at: wall(there),
        answered_at: wall(there),
        came_at: wall(came),
        tx: stamp(sent),
        rx: stamp(came),
        error: ErrorEstimate::UNKNOWN,
        ttl_forward: 60,
        ttl_reverse: Some(61),
        reordered_forward: false,
        reordered_reverse: false,
    }
}

fn answered(seq: u64, sent: Mono, there: Mono, came: Mono) -> Output<StampEvent> {
    Output::Event(StampEvent::Answered(exchange(seq, sent, there, came)))
}

fn lost(run: LostRun) -> Output<StampEvent> {
    Output::Event(StampEvent::Lost(run))
}

/// The first of two packets took 3 ms there and 2 ms back, patience with the second is over, and
/// the first closer has left.
fn with_the_last_unanswered() -> StampFlow {
    let mut flow = flow(2);
    assert_eq!(polled(&mut flow, Mono(0)), [Output::Wait(ahead(10))]);
    assert_eq!(polled(&mut flow, ahead(10)), [sends(0, at(10)), Output::Wait(ahead(20))]);
    left(&mut flow, 0, at(10));
    take(&mut flow, at(15), &answer(0, at(10), 0, at(13)), false);
    let first = answered(0, at(10), at(13), at(15));
    assert_eq!(polled(&mut flow, at(15)), [first, Output::Wait(ahead(20))]);
    assert_eq!(polled(&mut flow, ahead(20)), [sends(1, at(20)), Output::Wait(at(120))]);
    left(&mut flow, 1, at(20));
    assert_eq!(polled(&mut flow, at(120)), [sends(2, at(120)), Output::Wait(ahead(140))]);
    left(&mut flow, 2, at(120));
    flow
}

/// "5 late sends, worst 990 ms" was told of a flow whose last packets had no answer.
#[test]
fn a_closer_is_due_when_it_is_wanted_and_not_late_by_all_of_the_patience() {
    let mut flow = with_the_last_unanswered();
    // It only has to come behind what is missing, so there is no instant that it could be late for.
    let next = polled(&mut flow, at(147));
    assert!(matches!(next[0], Output::Send { tag: 3, due, .. } if due == at(147)), "{next:?}");
}

#[test]
fn closers_follow_a_loss_at_the_end_every_20_ms_and_are_at_most_five() {
    let mut flow = with_the_last_unanswered();
    for (tag, ms) in [(3, 140), (4, 160), (5, 180)] {
        assert_eq!(polled(&mut flow, ahead(ms)), [sends(tag, at(ms)), Output::Wait(ahead(ms + 20))]);
    }
    // From now on it waits for the end of each closer's patience.
    assert_eq!(polled(&mut flow, ahead(200)), [sends(6, at(200)), Output::Wait(at(220))]);
    for ms in [220, 240, 260, 280] {
        assert_eq!(polled(&mut flow, at(ms)), [Output::Wait(at(ms + 20))]);
    }
    let run =
        LostRun { seq: 1, sent_at: wall(at(20)), count: 1, not_sent: 0, forward: 0, reverse: 0, inside: 0 };
    assert_eq!(polled(&mut flow, at(300)), [lost(run), Output::Done]);
    assert_eq!(flow.counts(), StampCounts { asked: 2, answered: 1, lost: 1, ..StampCounts::default() });
}

#[test]
fn without_any_answer_nothing_closes_and_all_is_lost_when_patience_ends() {
    let mut flow = flow(2);
    assert_eq!(polled(&mut flow, ahead(10)), [sends(0, at(10)), Output::Wait(ahead(20))]);
    assert_eq!(polled(&mut flow, ahead(20)), [sends(1, at(20)), Output::Wait(at(110))]);
    assert_eq!(polled(&mut flow, at(110)), [Output::Wait(at(120))]);
    let run =
        LostRun { seq: 0, sent_at: wall(at(10)), count: 2, not_sent: 0, forward: 0, reverse: 0, inside: 0 };
    assert_eq!(polled(&mut flow, at(120)), [lost(run), Output::Done]);
    assert_eq!(flow.counts(), StampCounts { asked: 2, lost: 2, ..StampCounts::default() });
}

#[test]
fn an_answer_waits_for_the_stamp_of_its_packet_until_patience_ends_and_others_wait_behind_it() {
    let mut flow = flow(2);
    assert_eq!(polled(&mut flow, ahead(10)), [sends(0, at(10)), Output::Wait(ahead(20))]);
    take(&mut flow, at(15), &answer(0, at(10), 0, at(13)), false);
    assert_eq!(polled(&mut flow, at(15)), [Output::Wait(ahead(20))]);
    assert_eq!(polled(&mut flow, ahead(20)), [sends(1, at(20)), Output::Wait(at(110))]);
    left(&mut flow, 1, at(20));
    take(&mut flow, at(26), &answer(1, at(20), 1, at(23)), false);
    assert_eq!(polled(&mut flow, at(26)), [Output::Wait(at(110))]);
    // Of the first only the program knows when it left.
    let unstamped = StampExchange { tx: Stamp::application(at(10)), ..exchange(0, at(10), at(13), at(15)) };
    let first = Output::Event(StampEvent::Answered(unstamped));
    let second = answered(1, at(20), at(23), at(26));
    assert_eq!(polled(&mut flow, at(110)), [first, second, Output::Done]);
    assert_eq!(flow.counts(), StampCounts { asked: 2, answered: 2, ..StampCounts::default() });
}

#[test]
fn answers_that_came_while_the_program_was_stopped_are_not_lost() {
    let mut flow = flow(3);
    for (tag, ms) in [(0, 10), (1, 20)] {
        assert_eq!(polled(&mut flow, ahead(ms))[0], sends(tag, at(ms)));
        left(&mut flow, tag, at(ms));
    }
    // It was handed to the driver, which did not come round to it.
    assert_eq!(polled(&mut flow, ahead(30))[0], sends(2, at(30)));
    let resumed = at(6_000);
    let read = |flow: &mut StampFlow, seq: u32, sent: Mono, came: Mono| {
        let mut bytes = [0; 44];
        answer(seq, sent, seq, came - MS).emit(&mut bytes, None);
        flow.handle(resumed, Input::Datagram { bytes: &bytes, rx: stamp(came), ttl: Some(61) });
    };
    read(&mut flow, 0, at(10), at(35));
    let first = answered(0, at(10), at(34), at(35));
    assert_eq!(polled(&mut flow, resumed), [first, Output::Wait(resumed + MS * 100)]);
    flow.handle(resumed, Input::Wake);
    read(&mut flow, 1, at(20), at(45));
    flow.handle(resumed, Input::NotSent { tag: 2, why: NotSent::Overdue });
    let second = answered(1, at(20), at(44), at(45));
    let third = Output::Event(StampEvent::NotSent { seq: 2 });
    assert_eq!(polled(&mut flow, resumed), [second, third, Output::Done]);
    let want = StampCounts { asked: 3, not_sent: 1, answered: 2, ..StampCounts::default() };
    assert_eq!(flow.counts(), want);
}

#[test]
fn what_came_too_late_in_a_standstill_is_late_and_what_did_not_come_is_lost() {
    let mut flow = flow(2);
    for (tag, ms) in [(0, 10), (1, 20)] {
        assert_eq!(polled(&mut flow, ahead(ms))[0], sends(tag, at(ms)));
        left(&mut flow, tag, at(ms));
    }
    let resumed = at(6_000);
    let mut bytes = [0; 44];
    answer(0, at(10), 0, at(200)).emit(&mut bytes, None);
    flow.handle(resumed, Input::Datagram { bytes: &bytes, rx: stamp(at(201)), ttl: Some(61) });
    let late = Output::Event(StampEvent::Late { seq: 0 });
    assert!(polled(&mut flow, resumed).contains(&late));
    let over = resumed + MS * 100;
    flow.handle(over, Input::Wake);
    polled(&mut flow, over);
    let counts = flow.counts();
    assert_eq!((counts.lost, counts.late, counts.answered), (2, 1, 0), "{counts:?}");
}

/// The reflector was stopped from 18 to 323 ms. What was in its socket it answered then, and its
/// host dropped the rest: "lost 44 at least" on the way there, and nothing of the standstill.
#[test]
fn what_a_stopped_reflector_dropped_is_not_lost_on_the_way_there() {
    for holds in [true, false] {
        let (mut flow, mut log) = (flow(40), StampLog::default());
        let mut runs = Vec::new();
        let mut say = |flow: &mut StampFlow, now: Mono| {
            for said in polled(flow, now) {
                if let Output::Event(event) = said {
                    log.observe(&event);
                    runs.extend(if let StampEvent::Lost(run) = event { Some(run) } else { None });
                }
            }
        };
        let mut number = 0;
        for n in 0..40 {
            let due = 10 + 10 * n;
            say(&mut flow, ahead(due));
            left(&mut flow, n as u64, at(due));
            if n == 31 && holds {
                let held = Reply { received_at: wall(at(23)), ..answer(1, at(20), 1, at(323)) };
                take(&mut flow, at(325), &held, true);
                number += 1;
            }
            if n == 0 || n > 30 {
                take(&mut flow, at(due + 5), &answer(n as u32, at(due), number, at(due + 3)), true);
                number += 1;
                say(&mut flow, at(due + 5));
            }
        }
        // Patience with the last one that has no answer is over by then.
        say(&mut flow, at(450));
        let (forward, inside) = if holds { (0, 30) } else { (30, 0) };
        let run =
            LostRun { seq: 1, sent_at: wall(at(20)), count: 30, not_sent: 0, forward, reverse: 0, inside };
        assert_eq!(runs, [run], "holds: {holds}");
        let counts = flow.counts();
        assert_eq!((counts.lost, counts.lost_forward, counts.late), (30, forward, u64::from(holds)));
        assert_eq!((log.held_up(), log.way(Way::Forward, None).lost), (inside, forward));
        assert_eq!(log.outages(MS * 10, 0, &[]).unwrap().times, u64::from(!holds));
        let said = log.held_up_in_words();
        assert_eq!(said.is_some(), holds, "{said:?}");
        assert!(
            said.is_none_or(|it| it.contains("for up to 300 ms") && it.contains("; 30 packets of that time"))
        );
    }
}

/// Of 150 packets that a stopped reflector held, one or two were "lost on the way down": its
/// answers left at once, and the last ones waited for the others.
#[test]
fn an_answer_that_waited_for_others_after_a_standstill_is_not_lost_on_the_way_back() {
    let mut flow = flow(40);
    let mut number = 0;
    for n in 0..40 {
        let due = 10 + 10 * n;
        polled(&mut flow, ahead(due));
        left(&mut flow, n as u64, at(due));
        if n == 31 {
            for (seq, came) in [(1, 325), (2, 326)] {
                let sent = 10 + 10 * i64::from(seq);
                let held =
                    Reply { received_at: wall(at(sent + 3)), ..answer(seq, at(sent), number, at(323)) };
                take(&mut flow, at(came), &held, true);
                number += 1;
            }
        }
        if n == 0 || n > 31 {
            take(&mut flow, at(due + 5), &answer(n as u32, at(due), number, at(due + 3)), true);
            number += 1;
        }
    }
    polled(&mut flow, at(450));
    let counts = flow.counts();
    assert_eq!((counts.lost, counts.lost_forward, counts.lost_reverse, counts.late), (31, 0, 0, 2));
}

/// No reflector holds a packet for longer than it was away.
#[test]
fn a_reflector_that_claims_too_much_explains_no_loss() {
    let mut flow = with_the_last_unanswered();
    let claims = Reply { received_at: wall(at(-9_000)), ..answer(2, at(120), 1, at(123)) };
    take(&mut flow, at(125), &claims, true);
    let said = polled(&mut flow, at(125));
    assert!(!said.iter().any(|it| matches!(it, Output::Event(StampEvent::HeldUp { .. }))), "{said:?}");
    assert_eq!(flow.counts().lost_forward, 1);
}

#[test]
fn packets_that_never_left_are_neither_lost_nor_awaited() {
    let mut flow = flow(3);
    for (tag, ms) in [(0, 10), (1, 20), (2, 30)] {
        assert_eq!(polled(&mut flow, ahead(ms))[0], sends(tag, at(ms)));
    }
    left(&mut flow, 2, at(30));
    flow.handle(at(31), Input::NotSent { tag: 1, why: NotSent::QueueFull });
    flow.handle(at(31), Input::Sent { tag: 0, tx: stamp(at(10)) });
    take(&mut flow, at(32), &answer(0, at(10), 0, at(13)), false);
    let first = answered(0, at(10), at(13), at(32));
    let second = Output::Event(StampEvent::NotSent { seq: 1 });
    assert_eq!(polled(&mut flow, at(32)), [first, second, Output::Wait(at(130))]);
    assert_eq!(flow.is_stateful(), None);
    // The reflector has seen two.
    take(&mut flow, at(35), &answer(2, at(30), 1, at(33)), false);
    assert_eq!(polled(&mut flow, at(35)), [answered(2, at(30), at(33), at(35)), Output::Done]);
    assert_eq!(flow.is_stateful(), Some(true));
    assert_eq!(flow.counts(), StampCounts { asked: 3, not_sent: 1, answered: 2, ..StampCounts::default() });
}

#[test]
fn a_run_of_losses_begins_with_the_first_that_left_and_counts_the_others_apart() {
    let mut flow = flow(5);
    assert_eq!(polled(&mut flow, ahead(10)), [sends(0, at(10)), Output::Wait(ahead(20))]);
    left(&mut flow, 0, at(10));
    take(&mut flow, at(15), &answer(0, at(10), 0, at(13)), false);
    assert_eq!(polled(&mut flow, at(15))[0], answered(0, at(10), at(13), at(15)));
    for (tag, ms) in [(1, 20), (2, 30), (3, 40), (4, 50)] {
        assert_eq!(polled(&mut flow, ahead(ms))[0], sends(tag, at(ms)));
    }
    left(&mut flow, 4, at(50));
    flow.handle(at(51), Input::NotSent { tag: 3, why: NotSent::QueueFull });
    assert_eq!(polled(&mut flow, at(120)), [Output::Wait(at(130))]);
    // Only after its patience is it known that the second stayed at home.
    flow.handle(at(121), Input::NotSent { tag: 1, why: NotSent::QueueFull });
    assert_eq!(polled(&mut flow, at(121)), [Output::Wait(at(130))]);
    take(&mut flow, at(125), &answer(4, at(50), 1, at(123)), false);
    assert_eq!(polled(&mut flow, at(125)), [Output::Wait(at(130))]);
    let run =
        LostRun { seq: 2, sent_at: wall(at(30)), count: 1, not_sent: 2, forward: 1, reverse: 0, inside: 0 };
    let last = answered(4, at(50), at(123), at(125));
    assert_eq!(polled(&mut flow, at(130)), [lost(run), last, Output::Done]);
    let want = StampCounts {
        asked: 5,
        not_sent: 2,
        answered: 2,
        lost: 1,
        lost_forward: 1,
        ..StampCounts::default()
    };
    assert_eq!(flow.counts(), want);
}

#[test]
fn copies_are_told_by_the_reflectors_number_whether_their_packet_is_still_awaited_or_not() {
    let copy = |seq, forward| Output::Event(StampEvent::Copy { seq, forward });
    let mut flow = flow(2);
    assert_eq!(polled(&mut flow, ahead(10)), [sends(0, at(10)), Output::Wait(ahead(20))]);
    left(&mut flow, 0, at(10));
    take(&mut flow, at(15), &answer(0, at(10), 0, at(13)), false);
    assert_eq!(polled(&mut flow, at(15))[0], answered(0, at(10), at(13), at(15)));
    // The same answer once more, then another one to the same packet.
    take(&mut flow, at(16), &answer(0, at(10), 0, at(13)), false);
    take(&mut flow, at(17), &answer(0, at(10), 1, at(14)), false);
    assert_eq!(polled(&mut flow, at(17)), [copy(0, false), copy(0, true), Output::Wait(ahead(20))]);
    assert_eq!(polled(&mut flow, ahead(20)), [sends(1, at(20)), Output::Wait(at(120))]);
    // Its own stamp is missing, so the second packet has no verdict yet.
    take(&mut flow, at(25), &answer(1, at(20), 2, at(23)), false);
    assert_eq!(polled(&mut flow, at(25)), [Output::Wait(at(120))]);
    take(&mut flow, at(26), &answer(1, at(20), 2, at(23)), false);
    take(&mut flow, at(27), &answer(1, at(20), 3, at(24)), false);
    flow.handle(at(27), Input::Sent { tag: 1, tx: stamp(at(20)) });
    let second = answered(1, at(20), at(23), at(25));
    assert_eq!(polled(&mut flow, at(27)), [copy(1, false), copy(1, true), second, Output::Done]);
    let want =
        StampCounts { asked: 2, answered: 2, forward_copies: 2, reverse_copies: 2, ..StampCounts::default() };
    assert_eq!(flow.counts(), want);
}

#[test]
fn packets_that_a_reflector_had_twice_and_answered_once_are_copies_of_the_way_there() {
    let took = |flow: &mut StampFlow, seq: u32, number: u32, received: u32| {
        let sent = at(10 * (i64::from(seq) + 1));
        let mut bytes = [0; 60];
        answer(seq, sent, number, sent + MS * 3).emit(&mut bytes, None);
        bytes[44..48].copy_from_slice(&[0, kind::DIRECT_MEASUREMENT, 0, 12]);
        bytes[52..56].copy_from_slice(&received.to_be_bytes());
        bytes[56..].copy_from_slice(&(number + 1).to_be_bytes());
        flow.handle(at(45), Input::Datagram { bytes: &bytes, rx: stamp(at(45)), ttl: Some(61) });
    };
    let doubled = |count| Output::Event(StampEvent::Doubled { count });
    let mut flow = flow(4);
    for seq in 0..4 {
        let sent = at(10 * (seq as i64 + 1));
        polled(&mut flow, sent - LEAD);
        left(&mut flow, seq, sent);
    }
    // The answers are overtaken on their way, so the counts go up and down.
    for (seq, received, want) in [(1, 3, vec![1]), (0, 1, vec![]), (3, 9, vec![4]), (2, 5, vec![])] {
        took(&mut flow, seq, seq, received);
        let said = polled(&mut flow, at(45));
        let found: Vec<_> = said
            .iter()
            .filter(|output| matches!(output, Output::Event(StampEvent::Doubled { .. })))
            .cloned()
            .collect();
        assert_eq!(found, want.into_iter().map(doubled).collect::<Vec<_>>(), "{seq}");
    }
    // What is less than was answered, or of another number, is no count of copies.
    assert_eq!((flow.counts().answered, flow.counts().forward_copies), (4, 5));
    took(&mut flow, 3, 3, 2);
    assert_eq!((flow.counts().reverse_copies, flow.counts().forward_copies), (1, 5));
}

#[test]
fn of_a_late_answer_the_way_with_the_larger_excess_is_blamed() {
    // It took 102 ms, 97 ms more than the first one; half of that there: the way there is blamed.
    let halfway = at(20) + MS * 3 + Span::from_micros(48_500);
    for (there, forward, reverse) in [(halfway, 1, 0), (halfway - Span(1), 0, 1)] {
        let mut flow = with_the_last_unanswered();
        let late = answer(1, at(20), 1, there);
        take(&mut flow, at(122), &late, true);
        let told = Output::Event(StampEvent::Late { seq: 1 });
        assert_eq!(polled(&mut flow, at(122)), [told, Output::Wait(ahead(140))]);
        // The same answer came twice, so the copy was made on the way back.
        take(&mut flow, at(123), &late, true);
        let copy = || Output::Event(StampEvent::Copy { seq: 1, forward: false });
        assert_eq!(polled(&mut flow, at(123)), [copy(), Output::Wait(ahead(140))]);
        take(&mut flow, at(125), &answer(2, at(120), 2, at(123)), true);
        let run =
            LostRun { seq: 1, sent_at: wall(at(20)), count: 1, not_sent: 0, forward, reverse, inside: 0 };
        assert_eq!(polled(&mut flow, at(125)), [lost(run), Output::Done]);
        // Once more it is a copy, and no further late answer.
        take(&mut flow, at(130), &late, true);
        assert_eq!(polled(&mut flow, at(130)), [copy(), Output::Done]);
        let want = StampCounts {
            asked: 2,
            answered: 1,
            lost: 1,
            lost_forward: forward,
            lost_reverse: reverse,
            late: 1,
            reverse_copies: 2,
            ..StampCounts::default()
        };
        assert_eq!(flow.counts(), want);
    }
}

#[test]
fn an_answer_that_comes_after_its_packet_was_told_lost_is_late() {
    let mut flow = with_the_last_unanswered();
    take(&mut flow, at(125), &answer(2, at(120), 1, at(123)), false);
    let run =
        LostRun { seq: 1, sent_at: wall(at(20)), count: 1, not_sent: 0, forward: 1, reverse: 0, inside: 0 };
    assert_eq!(polled(&mut flow, at(125)), [lost(run), Output::Done]);
    take(&mut flow, at(140), &answer(1, at(20), 2, at(130)), false);
    let late = Output::Event(StampEvent::Late { seq: 1 });
    assert_eq!(polled(&mut flow, at(140)), [late, Output::Done]);
    take(&mut flow, at(141), &answer(1, at(20), 2, at(130)), false);
    let copy = Output::Event(StampEvent::Copy { seq: 1, forward: false });
    assert_eq!(polled(&mut flow, at(141)), [copy, Output::Done]);
    let want = StampCounts {
        asked: 2,
        answered: 1,
        lost: 1,
        lost_forward: 1,
        late: 1,
        reverse_copies: 1,
        ..StampCounts::default()
    };
    assert_eq!(flow.counts(), want);
}

#[test]
fn closers_that_are_cut_short_count_nowhere_and_answers_after_the_end_are_forgotten() {
    let mut flow = with_the_last_unanswered();
    flow.handle(at(121), Input::Stop);
    flow.handle(at(122), Input::Stop);
    assert_eq!(polled(&mut flow, at(122)).last(), Some(&Output::Done));
    take(&mut flow, at(123), &answer(2, at(120), 1, at(121)), false);
    assert_eq!(polled(&mut flow, at(123)), [Output::Done]);
    let ignored = Ignored { forgotten: 1, ..Ignored::default() };
    let want = StampCounts { asked: 2, answered: 1, lost: 1, ignored, ..StampCounts::default() };
    assert_eq!(flow.counts(), want);
}

#[test]
fn what_is_behind_a_packet_that_nobody_waits_for_any_longer_has_no_verdict_but_that_it_never_left() {
    let mut flow = flow(4);
    for (tag, ms) in [(0, 10), (1, 20), (2, 30), (3, 40)] {
        assert_eq!(polled(&mut flow, ahead(ms))[0], sends(tag, at(ms)));
        if tag == 1 {
            flow.handle(at(ms), Input::NotSent { tag, why: NotSent::QueueFull });
        } else {
            left(&mut flow, tag, at(ms));
        }
    }
    take(&mut flow, at(45), &answer(2, at(30), 2, at(43)), false);
    flow.handle(at(46), Input::Stop);
    flow.handle(at(47), Input::Stop);
    let abandoned = Output::Event(StampEvent::Abandoned { count: 3, not_sent: 1 });
    assert_eq!(polled(&mut flow, at(47)), [abandoned, Output::Done]);
    let want = StampCounts { asked: 4, not_sent: 1, abandoned: 3, ..StampCounts::default() };
    assert_eq!(flow.counts(), want);
}

/// The events of a flow whose packets are answered after 5 ms with these numbers of the reflector,
/// or not at all.
fn events_of(answers: &[Option<u32>], counted: bool) -> Vec<StampEvent> {
    let mut flow = flow(answers.len() as u64);
    let (mut events, mut now, mut out) = (Vec::new(), Mono(0), [0; 144]);
    loop {
        match flow.poll(now, &mut out) {
            Output::Send { tag, due, .. } => {
                left(&mut flow, tag, due);
                now = due + MS * 5;
                if let Some(number) = answers.get(tag as usize).copied().flatten() {
                    take(&mut flow, now, &answer(tag as u32, due, number, due + MS * 3), counted);
                }
            }
            Output::Train { .. } => panic!("no trains"),
            Output::Event(event) => events.push(event),
            Output::Wait(until) => now = now.max(until),
            Output::Done => return events,
        }
    }
}

/// What `events_of` tells of a packet that was answered.
fn answered_in_5_ms(seq: u64) -> StampExchange {
    let sent = at(10 + 10 * seq as i64);
    exchange(seq, sent, sent + MS * 3, sent + MS * 5)
}

#[test]
fn the_reflectors_numbers_tell_the_way_of_losses_as_far_as_they_can() {
    let some = |first, last| vec![Some(first), None, None, Some(last)];
    let rows = [
        // All, one, or none of the two vanished on the way there.
        (some(0, 1), false, (1, 2, 2, 0)),
        (some(0, 2), false, (1, 2, 1, 1)),
        (some(0, 3), true, (1, 2, 0, 2)),
        // A reflector that only repeats our numbers would answer the same.
        (some(0, 3), false, (1, 2, 0, 0)),
        // It claims to have answered more than were sent.
        (some(0, 4), false, (1, 2, 0, 0)),
        // It had counted for long when the flow began.
        (some(200_000, 200_001), false, (1, 2, 2, 0)),
        (some(u32::MAX, 0), false, (1, 2, 2, 0)),
        // Losses before the first answer: it had counted nothing, or nobody knows how far.
        (vec![None, Some(0)], false, (0, 1, 1, 0)),
        (vec![None, Some(1)], true, (0, 1, 0, 1)),
        (vec![None, Some(u32::MAX)], false, (0, 1, 0, 0)),
    ];
    for (answers, counted, (seq, count, forward, reverse)) in rows {
        let sent_at = wall(at(10 + 10 * seq as i64));
        let run = LostRun { seq, sent_at, count, not_sent: 0, forward, reverse, inside: 0 };
        let mut want = vec![StampEvent::Lost(run)];
        if seq > 0 {
            want.insert(0, StampEvent::Answered(answered_in_5_ms(0)));
        }
        want.push(StampEvent::Answered(answered_in_5_ms(answers.len() as u64 - 1)));
        assert_eq!(events_of(&answers, counted), want, "{answers:?}");
    }
}

#[test]
fn a_reflector_that_begins_anew_reorders_nothing_and_leaves_the_way_of_losses_before_open() {
    let run =
        LostRun { seq: 2, sent_at: wall(at(30)), count: 1, not_sent: 0, forward: 0, reverse: 0, inside: 0 };
    let want = [
        StampEvent::Answered(answered_in_5_ms(0)),
        StampEvent::Answered(answered_in_5_ms(1)),
        StampEvent::Restarted,
        StampEvent::Lost(run),
        StampEvent::Answered(answered_in_5_ms(3)),
    ];
    assert_eq!(events_of(&[Some(0), Some(1), None, Some(0)], false), want);
}

#[test]
fn a_number_far_behind_tells_of_a_new_beginning_and_one_not_so_far_of_reordering() {
    let first = StampEvent::Answered(answered_in_5_ms(0));
    let second = StampEvent::Answered(answered_in_5_ms(1));
    let overtaken = StampEvent::Answered(StampExchange { reordered_reverse: true, ..answered_in_5_ms(1) });
    assert_eq!(events_of(&[Some(4097), Some(0)], false), [first, StampEvent::Restarted, second]);
    assert_eq!(events_of(&[Some(4096), Some(0)], false), [first, overtaken]);
}

#[test]
fn the_reflectors_numbers_go_on_beyond_32_bits() {
    let want: Vec<_> = (0..3).map(|seq| StampEvent::Answered(answered_in_5_ms(seq))).collect();
    assert_eq!(events_of(&[Some(0x7fff_ffff), Some(0xffff_fffe), Some(0)], false), want);
}

#[test]
fn what_is_no_answer_of_this_flow_is_counted_by_its_reason() {
    let mut flow = flow(1);
    assert_eq!(polled(&mut flow, ahead(10)), [sends(0, at(10)), Output::Wait(at(110))]);
    left(&mut flow, 0, at(10));
    let genuine = answer(0, at(10), 0, at(13));
    let mut without_multiplier = [0; 44];
    genuine.emit(&mut without_multiplier, None);
    without_multiplier[13] = 0;
    for bytes in [b"".as_slice(), without_multiplier.as_slice()] {
        flow.handle(at(15), Input::Datagram { bytes, rx: stamp(at(15)), ttl: None });
    }
    let another_time = Timestamp::new(wall(at(10) + Span(1)), ErrorEstimate::UNKNOWN.format);
    let strangers = [
        Reply { ssid: 5, ..genuine },
        Reply { request_sent_at: another_time, ..genuine },
        Reply { request_seq: 1, ..genuine },
    ];
    for stranger in &strangers {
        take(&mut flow, at(15), stranger, false);
    }
    let ignored = Ignored { foreign: 2, unproven: 0, unasked: 3, forgotten: 0 };
    assert_eq!(flow.counts(), StampCounts { asked: 1, ignored, ..StampCounts::default() });
    // A reflector that knows only RFC 8762 gives no session back.
    take(&mut flow, at(15), &Reply { ssid: 0, ..genuine }, false);
    assert_eq!(polled(&mut flow, at(15)), [answered(0, at(10), at(13), at(15)), Output::Done]);
    assert_eq!(flow.counts(), StampCounts { asked: 1, answered: 1, ignored, ..StampCounts::default() });
}

#[test]
fn what_the_reflector_told_stays_known_when_later_answers_tell_nothing() {
    for (kernel, is_the_same) in [(b"their kernel".as_slice(), true), (b"our kernel".as_slice(), false)] {
        let path = Path::new(link(3_000), link(2_000));
        let run_of_kernel = Some(kernel.to_vec());
        let mut flow = StampFlow::new(StampPlan { start: at(10), run_of_kernel, ..plan(2) }).unwrap();
        let mut bytes = [0; 144];
        assert_eq!(flow.poll(at(10), &mut bytes), sends(0, at(10)));
        left(&mut flow, 0, at(10));
        assert_eq!((flow.told(), flow.same_clock()), (Told::default(), None));
        assert!(path.reflect(&mut path.reflector(), at(13), &mut bytes));
        flow.handle(at(15), Input::Datagram { bytes: &bytes, rx: stamp(at(15)), ttl: None });
        let told = Told {
            class: Some(ClassOfService { dscp: 0, ecn: 0, refused: false }),
            counters: Some(Counters { received: 1, sent: 1 }),
            synchronised_by: Some(5),
            same_clock: Some(tlv::same_clock(b"their kernel", &[3; 16])),
            unknown: 0,
            malformed: false,
            unproven: false,
        };
        assert_eq!((flow.told(), flow.same_clock()), (told, Some(is_the_same)));
        polled(&mut flow, at(20));
        take(&mut flow, at(25), &answer(1, at(20), 1, at(23)), false);
        assert_eq!((flow.told(), flow.same_clock()), (told, Some(is_the_same)));
    }
}

#[test]
fn the_reflectors_counts_are_asked_for_where_there_is_room_for_them() {
    // Behind the base packet is room for nothing, for padding, for marks, for the counts, for all.
    for (length, asks) in [(44, false), (48, false), (52, false), (60, true), (144, true)] {
        let flow = StampFlow::new(StampPlan { length, ..plan(1) }).unwrap();
        assert_eq!(flow.asks_questions(), asks, "{length}");
    }
}

#[test]
fn there_is_room_for_so_many_packets_without_a_verdict_and_no_more() {
    let mut window = Window::new(MS);
    for seq in 0..MOST_OUTSTANDING as u64 {
        assert!(window.has_room(), "{seq}");
        assert_eq!(window.push(Mono(0), Wall(0), MS, false), seq);
    }
    assert!(!window.has_room());
}
