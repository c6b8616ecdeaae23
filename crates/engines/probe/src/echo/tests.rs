//! The train against a path that knows the truth, and against inputs that make no sense.

use netaware_units::{ByteCount, ClockSource, RemoteMono};
use proptest::prelude::*;

use super::*;
use netaware_wire::datagram::{EchoStamps, Header, Kind};

use crate::virtual_path::{FLOW, Link, VirtualPath, WAKE_UP};

const MS: Span = Span::from_millis(1);

fn plan(count: u64, pacing: Pacing) -> EchoPlan {
    EchoPlan {
        flow: FLOW,
        count: Some(count),
        pacing,
        length: 64,
        response: 64,
        patience: MS * 200,
        start: Mono(1_000_000),
    }
}

fn train(count: u64, pacing: Pacing) -> EchoTrain {
    EchoTrain::new(plan(count, pacing)).unwrap()
}

fn answers(events: &[(Mono, EchoEvent)]) -> Vec<Exchange> {
    let answered = |event: &EchoEvent| match event {
        EchoEvent::Answered(exchange) => Some(*exchange),
        _ => None,
    };
    events.iter().filter_map(|(_, event)| answered(event)).collect()
}

fn balanced(counts: &EchoCounts) -> bool {
    counts.asked == counts.not_sent + counts.received + counts.lost + counts.abandoned + counts.outstanding
}

/// A satellite with a queue: 1.2 s there and back.
const SLOW: Span = Span::from_millis(600);

#[test]
fn on_a_path_of_1200_ms_nothing_is_lost_and_nothing_late() {
    for (known, pacing) in [
        (None, Pacing::Even(MS * 10)),
        (Some(MS * 1200), Pacing::Even(MS * 10)),
        (Some(MS * 1200), Pacing::PingPong),
        (None, Pacing::Pipeline(8)),
    ] {
        let plan = EchoPlan { patience: MS * 1000, ..plan(20, pacing) };
        let mut train = EchoTrain::following(plan, known).unwrap();
        let events = VirtualPath::symmetric(SLOW).drive(&mut train);
        let counts = train.counts();
        assert_eq!((counts.received, counts.lost, counts.late), (20, 0, 0), "{known:?} {pacing:?}");
        assert_eq!(answers(&events).len(), 20);
        let longest = answers(&events).iter().map(|it| it.rx.at.since(it.tx.at)).max().unwrap();
        assert_eq!(train.patience(), longest * 4);
    }
    // What a person typed stays as it is.
    let mut typed =
        EchoTrain::new(EchoPlan { patience: MS * 1000, ..plan(20, Pacing::Even(MS * 10)) }).unwrap();
    VirtualPath::symmetric(SLOW).drive(&mut typed);
    assert_eq!((typed.counts().lost, typed.counts().late, typed.patience()), (20, 0, MS * 1000));
}

#[test]
fn late_answers_lengthen_a_patience_that_was_too_short() {
    // A proxy nearby answered the handshake.
    let plan = EchoPlan { patience: MS * 1000, ..plan(300, Pacing::Even(MS * 10)) };
    let mut train = EchoTrain::following(plan, Some(MS * 2)).unwrap();
    VirtualPath::symmetric(SLOW).drive(&mut train);
    let counts = train.counts();
    assert!(counts.lost == counts.late && (15..=25).contains(&counts.lost), "{counts:?}");
    assert_eq!(counts.received, 300 - counts.lost);
}

#[test]
fn a_run_that_ends_by_its_time_waits_for_its_last_answers() {
    for (way, asked) in [(MS * 4, 50), (SLOW, 50)] {
        let endless = EchoPlan { count: None, patience: MS * 1000, ..plan(0, Pacing::Even(MS * 10)) };
        let start = endless.start;
        let mut train = EchoTrain::following(endless, Some(way * 2)).unwrap().sending_until(start + MS * 500);
        let events = VirtualPath::symmetric(way).drive(&mut train);
        let counts = train.counts();
        assert_eq!((counts.asked, counts.received), (asked, asked), "{way}");
        // It ends with its last answer.
        let last = events.last().unwrap().0;
        assert!(last < start + MS * 500 + way * 2 + MS * 50, "{way}: {last:?}");
    }
}

#[test]
fn a_run_that_ends_by_its_time_counts_what_was_lost_and_not_only_what_came() {
    for loss in [0.1, 1.0] {
        let mut lossy = VirtualPath::symmetric(MS * 4);
        lossy.forward.loss = loss;
        let endless = EchoPlan { count: None, patience: MS * 1000, ..plan(0, Pacing::Even(MS * 10)) };
        let start = endless.start;
        let train = EchoTrain::following(endless, Some(MS * 8)).unwrap();
        let mut train = train.sending_until(start + MS * 5000);
        let events = lossy.drive(&mut train);
        let counts = train.counts();
        assert_eq!((counts.sent(), counts.abandoned), (500, 0), "{counts:?}");
        let expected = 500.0 * loss;
        assert!(
            (counts.lost as f64 - expected).abs() <= 4.5 * (expected * (1.0 - loss)).sqrt(),
            "{counts:?}"
        );
        assert!(events.iter().all(|(at, _)| *at <= start + MS * 6010));
    }
}

#[test]
fn a_run_that_somebody_ends_counts_as_lost_what_was_overtaken_and_leaves_the_rest_unknown() {
    let mut lossy = VirtualPath { stop_at: Some(Mono(5_000_000_000)), ..VirtualPath::symmetric(MS * 20) };
    lossy.forward.loss = 0.1;
    // As beside a load that may fill a queue of seconds.
    let endless = EchoPlan { count: None, patience: MS * 8000, ..plan(0, Pacing::Even(MS * 10)) };
    let mut train = EchoTrain::new(endless).unwrap();
    lossy.drive(&mut train);
    let counts = train.counts();
    assert!(balanced(&counts) && (20..=80).contains(&counts.lost), "{counts:?}");
    assert!(counts.abandoned <= 5, "only those after the last answer: {counts:?}");
}

#[test]
fn an_answer_that_may_still_come_when_somebody_ends_the_run_is_unknown_and_not_lost() {
    // A round trip takes between 40 and 640 ms, and nothing is lost.
    let mut path = VirtualPath { stop_at: Some(Mono(5_000_000_000)), ..VirtualPath::symmetric(MS * 20) };
    path.reverse.jitter = MS * 600;
    let endless = EchoPlan { count: None, patience: MS * 8000, ..plan(0, Pacing::Even(MS * 10)) };
    let mut train = EchoTrain::new(endless).unwrap();
    path.drive(&mut train);
    let counts = train.counts();
    assert!(balanced(&counts) && counts.abandoned > 0, "{counts:?}");
    assert_eq!(counts.lost, 0, "{counts:?}");
}

#[test]
fn even_train_measures_the_paths_round_trip_without_the_responders_time() {
    for stamp_lag in [Span::from_micros(1), MS * 50] {
        let path = VirtualPath { stamp_lag, ..VirtualPath::symmetric(MS * 4) };
        let mut train = train(50, Pacing::Even(MS * 3));
        let exchanges = answers(&path.drive(&mut train));
        assert_eq!((exchanges.len(), train.counts().received), (50, 50));
        for (seq, exchange) in exchanges.iter().enumerate() {
            assert_eq!(exchange.seq, seq as u64);
            assert_eq!(exchange.due, Mono(1_000_000) + MS * (3 * seq as i64));
            assert_eq!(exchange.rtt(), MS * 8);
            assert_eq!(exchange.responder, Some(Span::from_micros(30)));
            let seen = MS * 8 + Span::from_micros(30 + 2) + WAKE_UP;
            assert!((exchange.rtt_application() - seen).abs() <= WAKE_UP, "{:?}", exchange.rtt_application());
            assert_eq!((exchange.ttl_forward, exchange.ttl_reverse), (Some(61), Some(57)));
            assert_eq!(exchange.clock(), ClockSource::Kernel);
        }
    }
}

#[test]
fn ping_pong_sends_the_next_request_when_the_answer_has_come() {
    let mut train = train(20, Pacing::PingPong);
    let exchanges = answers(&VirtualPath::symmetric(MS).drive(&mut train));
    assert_eq!(exchanges.len(), 20);
    for pair in exchanges.windows(2) {
        assert_eq!(pair[1].due, pair[0].rx_application);
    }
}

#[test]
fn a_pipeline_keeps_its_depth_outstanding_and_carries_that_much_more() {
    let (mut rates, path) = (Vec::new(), VirtualPath::symmetric(MS));
    for depth in [1, 4, 16] {
        let mut train = train(1600, Pacing::Pipeline(depth));
        let events = path.drive(&mut train);
        let exchanges = answers(&events);
        assert_eq!(exchanges.len(), 1600);
        for (seq, exchange) in exchanges.iter().enumerate().skip(depth as usize) {
            let freed_by = &exchanges[seq - depth as usize];
            assert_eq!(exchange.due, freed_by.rx_application, "request {seq} at depth {depth}");
        }
        rates.push(1600.0 / events.last().unwrap().0.since(Mono(1_000_000)).secs_f64());
    }
    assert!((rates[1] / rates[0] - 4.0).abs() < 0.1 && (rates[2] / rates[0] - 16.0).abs() < 0.5, "{rates:?}");
}

#[test]
fn every_pair_of_lengths_is_matched_though_losses_copies_and_disorder_come_between() {
    let rough = Link { delay: MS, jitter: MS * 9, loss: 0.05, doubling: 0.05 };
    for (length, response) in
        [(1, 1), (1, 64), (23, 44), (24, 1), (64, 2), (44, 43), (64, 1472), (1472, 64), (24, 65_507)]
    {
        let path = VirtualPath {
            forward: rough,
            reverse: rough,
            response: Some(response),
            ..VirtualPath::symmetric(MS)
        };
        let plan = EchoPlan { length, response, ..plan(3_000, Pacing::Even(MS * 2)) };
        let mut train = EchoTrain::new(plan).unwrap();
        let exchanges = answers(&path.drive(&mut train));
        let counts = train.counts();
        assert_eq!((counts.bad(), counts.ignored), (0, Ignored::default()), "{length} B for {response} B");
        assert_eq!(counts.received, exchanges.len() as u64);
        assert!((2_600..2_800).contains(&counts.received), "{length} B for {response} B: {counts:?}");
        let spread = MS * 2..MS * 20 + Span::from_micros(31);
        assert!(exchanges.iter().all(|exchange| spread.contains(&exchange.rtt())), "{length} for {response}");
        assert!(exchanges.iter().all(|exchange| exchange.responder_told == (response >= 44)));
    }
}

#[test]
fn answers_of_another_length_are_bad_and_their_requests_lost() {
    let path = VirtualPath { response: Some(100), ..VirtualPath::symmetric(MS) };
    let mut train = train(10, Pacing::Even(MS));
    path.drive(&mut train);
    let counts = train.counts();
    assert_eq!((counts.received, counts.lost, counts.bad()), (0, 10, 10));
}

/// The search for the path MTU uses the flow before, and its longest answer may come late.
#[test]
fn a_late_answer_to_what_the_flow_asked_before_is_no_bad_answer() {
    let mut train = train(1, Pacing::Even(MS));
    let mut out = [0; 64];
    let now = Mono(1_000_000);
    assert!(matches!(train.poll(now, &mut out), Output::Send { .. }));
    let mut long = [0; 1000];
    Header { kind: Kind::EchoReply, flow: 7, seq: 0, sent_at: now.0 - 500_000 }.emit(&mut long);
    let rx = Stamp::application(now + MS);
    train.handle(rx.at, Input::Datagram { bytes: &long, rx, ttl: None });
    let counts = train.counts();
    assert_eq!((counts.bad(), counts.ignored.unasked, counts.outstanding), (0, 1, 1));
}

#[test]
fn a_request_that_left_late_counts_from_when_it_was_due() {
    let mut train = train(2, Pacing::Even(MS * 10));
    let mut out = [0; 64];
    let due = Mono(1_000_000);
    assert!(matches!(train.poll(due, &mut out), Output::Send { .. }));
    // The host was away for 7 ms.
    let left_at = due + MS * 7;
    train.handle(left_at, Input::Sent { tag: 0, tx: Stamp::application(left_at) });
    let stamps =
        EchoStamps { received_at: RemoteMono(5), answered_at: RemoteMono(5), ttl: 0, kernel_stamp: false };
    stamps.answer(&mut out).unwrap();
    let rx = Stamp::application(left_at + MS);
    train.handle(rx.at, Input::Datagram { bytes: &out, rx, ttl: None });
    let Output::Event(EchoEvent::Answered(exchange)) = train.poll(rx.at, &mut out) else { panic!() };
    assert_eq!((exchange.rtt(), exchange.rtt_from_due()), (MS, MS * 8));
}

#[test]
fn ping_pong_goes_on_after_patience_when_everything_is_lost() {
    let path = VirtualPath { forward: Link { loss: 1.0, ..Link::of(MS) }, ..VirtualPath::symmetric(MS) };
    let mut train = train(5, Pacing::PingPong);
    let events = path.drive(&mut train);
    assert_eq!(train.counts().lost, 5);
    let last = events.last().unwrap().0;
    assert!(last.since(Mono(1_000_000)) - MS * 1000 < MS, "{last:?}");
}

#[test]
fn answers_that_came_while_the_program_was_stopped_are_not_lost() {
    let mut train =
        EchoTrain::new(EchoPlan { patience: MS * 1000, ..plan(2, Pacing::Even(MS * 10)) }).unwrap();
    let (mut out, mut asked) = ([0; 64], Vec::new());
    let mut now = Mono(0);
    while asked.len() < 2 {
        match train.poll(now, &mut out) {
            Output::Send { tag, due, .. } => {
                asked.push((tag, due.max(now), out));
                train.handle(now, Input::Sent { tag, tx: Stamp::application(due.max(now)) });
            }
            Output::Wait(until) => {
                now = until;
                train.handle(now, Input::Wake);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(train.poll(now, &mut out), Output::Wait(_)));
    let resumed_at = now + MS * 6000;
    // The clock says that both are overdue, and a wake-up is, too.
    train.handle(resumed_at, Input::Wake);
    assert!(matches!(train.poll(resumed_at, &mut out), Output::Wait(at) if at > resumed_at));
    for (tag, left_at, mut bytes) in asked {
        let stamps = EchoStamps {
            received_at: RemoteMono(5),
            answered_at: RemoteMono(5),
            ttl: 0,
            kernel_stamp: false,
        };
        stamps.answer(&mut bytes).unwrap();
        let rx = Stamp { at: left_at + MS * 20, by: ClockSource::Kernel, error: Span(0) };
        train.handle(resumed_at, Input::Datagram { bytes: &bytes, rx, ttl: None });
        let said = train.poll(resumed_at, &mut out);
        assert!(matches!(said, Output::Event(EchoEvent::Answered(it)) if it.seq == tag), "{said:?}");
    }
    assert_eq!(train.poll(resumed_at, &mut out), Output::Done);
    assert_eq!((train.counts().received, train.counts().lost), (2, 0));
}

#[test]
fn loss_doubling_and_reordering_are_counted_as_they_were_made() {
    let lossy = Link { delay: MS * 5, jitter: MS * 9, loss: 0.1, doubling: 0.05 };
    let path = VirtualPath { forward: lossy, reverse: lossy, ..VirtualPath::symmetric(MS) };
    let mut train = train(20_000, Pacing::Even(MS));
    let exchanges = answers(&path.drive(&mut train));
    let counts = train.counts();
    // Answered: the request passes, and of its copies (one, or two in 5 %) at least one answer
    // does.
    let answered = 0.9 * (0.95 * 0.9 + 0.05 * (1.0 - 0.1 * 0.1));
    let loss = counts.lost as f64 / counts.asked as f64;
    // Five standard deviations of a binomial.
    assert!((loss - (1.0 - answered)).abs() < 0.014, "{loss} against {}", 1.0 - answered);
    assert!(counts.duplicates > 1000 && counts.reordered > 5000, "{counts:?}");
    assert_eq!((counts.received, counts.outstanding), (exchanges.len() as u64, 0));
    let mean = exchanges.iter().map(|e| e.rtt().millis_f64()).sum::<f64>() / exchanges.len() as f64;
    assert!((18.0..19.1).contains(&mean), "{mean}: the earlier of two copies makes it a little less than 19");
}

#[test]
fn late_reply_does_not_undo_a_loss() {
    let path = VirtualPath::symmetric(MS * 150);
    let mut train = train(10, Pacing::Even(MS * 100));
    let events = path.drive(&mut train);
    let counts = train.counts();
    assert_eq!((counts.lost, counts.received), (10, 0));
    // Those that come after the last verdict find nobody any more.
    assert!(counts.late >= 8, "{counts:?}");
    let order: Vec<_> = events
        .iter()
        .filter(|(_, event)| matches!(event, EchoEvent::Lost(3) | EchoEvent::Late(3)))
        .map(|(_, event)| *event)
        .collect();
    assert_eq!(order, [EchoEvent::Lost(3), EchoEvent::Late(3)]);
}

#[test]
fn last_answers_that_are_missing_are_told_of_before_they_are_waited_for_to_the_end() {
    let overdue = |loss| {
        let forward = Link { loss, ..Link::of(MS * 10) };
        let events = VirtualPath { forward, ..VirtualPath::symmetric(MS * 10) }
            .drive(&mut train(3, Pacing::Even(MS * 10)));
        let told = events.iter().filter_map(|(at, event)| match event {
            EchoEvent::Overdue { until, in_a_row } => {
                Some((at.0 / 1_000_000, until.0 / 1_000_000, *in_a_row))
            }
            _ => None,
        });
        (told.collect::<Vec<_>>(), events.last().unwrap().0.0 / 1_000_000)
    };
    // Due at 1, 11 and 21 ms, with a patience of 200 ms.
    assert_eq!(overdue(1.0), (vec![(101, 221, 3)], 221));
    assert_eq!(overdue(0.0).0, []);
}

#[test]
fn requests_whose_answers_came_late_are_not_missing_in_a_row() {
    let path = VirtualPath::symmetric(MS * 150);
    let events = path.drive(&mut train(3, Pacing::Even(MS * 400)));
    let told = events.iter().filter_map(|(_, event)| match event {
        EchoEvent::Overdue { in_a_row, .. } => Some(*in_a_row),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [1], "the last one alone");
}

#[test]
fn stop_ends_the_train_soon_and_abandons_what_is_too_young_to_be_lost() {
    let path = VirtualPath {
        stop_at: Some(Mono(500_000_000)),
        forward: Link { loss: 1.0, ..Link::of(MS) },
        ..VirtualPath::symmetric(MS)
    };
    let endless = EchoPlan { count: None, patience: MS * 1000, ..plan(0, Pacing::Even(MS * 10)) };
    let mut train = EchoTrain::new(endless).unwrap();
    path.drive(&mut train);
    let counts = train.counts();
    assert_eq!((counts.asked, counts.abandoned, counts.lost, counts.outstanding), (50, 50, 0, 0));
}

#[test]
fn a_first_stop_leaves_answers_a_short_while_and_a_second_one_none() {
    for (patience, while_left) in [(MS * 1000, LINGER), (MS * 100, MS * 100)] {
        let endless = EchoPlan { count: None, patience, ..plan(0, Pacing::Even(MS * 10)) };
        let mut train = EchoTrain::new(endless).unwrap();
        let mut out = [0; 64];
        assert!(matches!(train.poll(endless.start, &mut out), Output::Send { .. }));
        // When it left is not known yet, so that it would be awaited for twice the patience.
        let stopped_at = endless.start + MS;
        train.handle(stopped_at, Input::Stop);
        assert_eq!(train.poll(stopped_at, &mut out), Output::Wait(stopped_at + while_left));
        train.handle(stopped_at + MS, Input::Stop);
        assert_eq!(train.poll(stopped_at + MS, &mut out), Output::Done);
        assert_eq!((train.counts().abandoned, train.counts().lost), (1, 0));
    }
}

#[test]
fn refused_sends_in_ping_pong_do_not_spin() {
    let mut train = train(1000, Pacing::PingPong);
    let (mut out, mut now, mut sends) = ([0; 64], Mono(0), 0);
    while now < Mono(1_000_000_000) {
        match train.poll(now, &mut out) {
            Output::Send { tag, .. } => {
                sends += 1;
                train.handle(now, Input::NotSent { tag, why: NotSent::Refused(101) });
            }
            Output::Wait(until) => now = until,
            _ => {}
        }
    }
    // Ten pauses in a second, and the first.
    assert_eq!((sends, train.counts().not_sent), (11, 11));
}

#[test]
fn a_responder_that_claims_the_impossible_is_not_subtracted() {
    for held in [-5_i64, 2_000_000_000] {
        let mut train = train(1, Pacing::PingPong);
        let mut out = [0; 64];
        let now = Mono(1_000_000);
        assert!(matches!(train.poll(now, &mut out), Output::Send { .. }));
        train.handle(now, Input::Sent { tag: 0, tx: Stamp::application(now) });
        let received_at = RemoteMono(1 << 40);
        let answered_at = RemoteMono(received_at.0.wrapping_add_signed(held));
        EchoStamps { received_at, answered_at, ttl: 0, kernel_stamp: false }.answer(&mut out).unwrap();
        let rx = Stamp::application(now + MS);
        train.handle(rx.at, Input::Datagram { bytes: &out, rx, ttl: None });
        let Output::Event(EchoEvent::Answered(exchange)) = train.poll(rx.at, &mut out) else { panic!() };
        assert_eq!((exchange.responder, exchange.rtt(), exchange.ttl_forward), (None, MS, None));
    }
}

#[test]
fn hostile_datagrams_change_nothing_but_their_counts() {
    let mut train = train(3, Pacing::Even(MS));
    let mut out = [0; 64];
    let now = Mono(1_000_000);
    assert!(matches!(train.poll(now, &mut out), Output::Send { .. }));
    let rx = Stamp::application(now + MS);
    let mut show = |bytes: &[u8]| train.handle(rx.at, Input::Datagram { bytes, rx, ttl: None });
    let reply = |flow, seq, sent_at, kind| {
        let mut bytes = [0; 64];
        Header { kind, flow, seq, sent_at }.emit(&mut bytes);
        bytes
    };
    show(b"");
    show(b"not ours at all, though longer than a header");
    show(&out);
    show(&reply(8, 0, now.0, Kind::EchoReply));
    show(&reply(7, 0, now.0, Kind::EchoReply)[..30]);
    show(&reply(7, 1, now.0, Kind::EchoReply));
    show(&reply(7, u64::MAX, now.0, Kind::EchoReply));
    show(&reply(7, 0, now.0 + 1, Kind::EchoReply));
    // Right in everything but its payload.
    show(&reply(7, 0, now.0, Kind::EchoReply));
    let counts = train.counts();
    assert_eq!(counts.ignored, Ignored { foreign: 4, wrong_length: 1, altered: 1, unasked: 3, forgotten: 0 });
    assert_eq!((counts.received, counts.outstanding, counts.bad()), (0, 1, 2));
}

/// One step of a driver that keeps none of its promises.
#[derive(Debug, Clone)]
enum Step {
    Poll,
    Pass(i64),
    Sent(u64),
    Handed(u64),
    NotSent(u64),
    Reply { seq: u64, flow: u32, early: i64, held: u64, cut: usize },
    Noise(Vec<u8>),
    Stop,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let seq = || prop_oneof![9 => 0..40_u64, 1 => any::<u64>()];
    let reply = (
        seq(),
        prop_oneof![9 => Just(7), 1 => any::<u32>()],
        -300_000_000..10_000_i64,
        any::<u64>(),
        0..70_usize,
    )
        .prop_map(|(seq, flow, early, held, cut)| Step::Reply { seq, flow, early, held, cut });
    let step = prop_oneof![
        8 => Just(Step::Poll),
        4 => (0..90_000_000_i64).prop_map(Step::Pass),
        4 => seq().prop_map(Step::Sent),
        1 => seq().prop_map(Step::Handed),
        1 => seq().prop_map(Step::NotSent),
        6 => reply,
        1 => prop::collection::vec(any::<u8>(), 0..80).prop_map(Step::Noise),
        1 => Just(Step::Stop),
    ];
    prop::collection::vec(step, 0..300)
}

/// Remembers the send times, so that some replies look genuine.
#[derive(Default)]
struct Careless {
    now: Mono,
    requests: Vec<Vec<u8>>,
    answered: u64,
    done: bool,
}

impl Careless {
    fn poll(&mut self, train: &mut EchoTrain) {
        let mut out = [0; 64];
        match train.poll(self.now, &mut out) {
            Output::Send { len, tag, due } => {
                assert_eq!((tag, len), (self.requests.len() as u64, 64));
                assert!(due <= self.now + LEAD);
                self.requests.push(out.to_vec());
            }
            Output::Event(EchoEvent::Answered(exchange)) => {
                assert!(exchange.rtt() >= Span::ZERO);
                self.answered += 1;
            }
            Output::Wait(until) => assert!(until > self.now, "{until:?} at {:?}", self.now),
            Output::Done => self.done = true,
            Output::Event(_) => {}
            Output::Train { .. } => panic!(),
        }
    }

    fn take(&mut self, train: &mut EchoTrain, step: &Step) {
        let now = self.now;
        match step {
            Step::Poll => self.poll(train),
            Step::Pass(nanos) => self.now += Span(*nanos),
            Step::Sent(tag) => train.handle(now, Input::Sent { tag: *tag, tx: Stamp::application(now) }),
            Step::Handed(tag) => train.handle(now, Input::Handed { tag: *tag, at: now }),
            Step::NotSent(tag) => {
                let why = NotSent::TooBig(Some(ByteCount(9)));
                train.handle(now, Input::NotSent { tag: *tag, why });
            }
            Step::Reply { seq, flow, early, held, cut } => {
                let mut bytes = [0; 64].to_vec();
                if let Some(request) = self.requests.get(*seq as usize) {
                    bytes.clone_from(request);
                }
                let header = Header::parse(&bytes).map_or(0, |header| header.sent_at);
                Header { kind: Kind::EchoReply, flow: *flow, seq: *seq, sent_at: header }.emit(&mut bytes);
                let stamps = EchoStamps {
                    received_at: RemoteMono(0),
                    answered_at: RemoteMono(*held),
                    ttl: 0,
                    kernel_stamp: true,
                };
                stamps.answer(&mut bytes).unwrap();
                let rx = Stamp::application(now + Span(*early));
                train.handle(now, Input::Datagram { bytes: &bytes[..*cut.min(&64)], rx, ttl: None });
            }
            Step::Noise(bytes) => {
                let rx = Stamp::application(now);
                train.handle(now, Input::Datagram { bytes, rx, ttl: Some(1) });
            }
            Step::Stop => train.handle(now, Input::Stop),
        }
    }
}

proptest! {
    #[test]
    fn the_books_balance_whatever_comes_in(steps in steps(), rhythm in 0..4, count in 0..30_u64) {
        let pacing = match rhythm {
            0 => Pacing::PingPong,
            1 => Pacing::Pipeline(5),
            2 => Pacing::Poisson { mean: MS * 10, seed: count },
            _ => Pacing::Even(MS * 10),
        };
        let mut train = train(count, pacing);
        let mut driver = Careless { now: Mono(1_000_000), ..Careless::default() };
        for step in &steps {
            driver.take(&mut train, step);
            prop_assert!(balanced(&train.counts()), "{:?}", train.counts());
            prop_assert!(train.counts().late <= train.counts().lost);
        }
        // Left alone it comes to its end: all patience there is, and all the polls it wants.
        for _ in 0..2000 {
            driver.poll(&mut train);
            driver.now += MS * 10;
        }
        prop_assert!(driver.done);
        prop_assert_eq!(train.counts().outstanding, 0);
        prop_assert_eq!(train.counts().received, driver.answered);
        prop_assert!(balanced(&train.counts()));
    }
}
