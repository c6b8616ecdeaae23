//! The connection against responders that misbehave.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use netaware_probe::delay_report::{self, Context};
use netaware_record::{Health, IpVersion, LatencyResult};
use netaware_stats::patience::Waiting;
use netaware_units::ByteCount;
use netaware_wire::pattern;

use super::*;
use crate::latency;

const MS: Span = Span::from_millis(1);
const SIZES: EchoSizes = EchoSizes { request: 100, response: 3000 };

/// A connection whose other end answers with `responder(number, answer)`: it may alter the answer,
/// or take its time.
fn connected(responder: impl FnMut(u64, &mut Vec<u8>) + Send + 'static) -> (TcpEcho, JoinHandle<()>) {
    connected_to("responder", responder)
}

/// The same with a responder whose thread has this name.
fn connected_to(
    name: &str,
    responder: impl FnMut(u64, &mut Vec<u8>) + Send + 'static,
) -> (TcpEcho, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut far, mut responder) = (listener.accept().unwrap().0, responder);
    far.set_nodelay(true).unwrap();
    let thread = std::thread::Builder::new().name(name.to_owned());
    let thread = thread.spawn(move || {
        let mut request = vec![0; SIZES.request as usize];
        for number in 0.. {
            if far.read_exact(&mut request).is_err() {
                return;
            }
            assert!(pattern::matches(&request, number, 0), "request {number}");
            let mut answer = vec![0; SIZES.response as usize];
            pattern::fill(&mut answer, number, 0);
            responder(number, &mut answer);
            if far.write_all(&answer).is_err() {
                return;
            }
        }
    });
    (
        TcpEcho { stream, sizes: SIZES, rtt: None, asked: 0, owed: Some(0), test: 1, until: Mono(u64::MAX) },
        thread.unwrap(),
    )
}

fn order(pacing: Pacing, count: u64) -> EchoOrder {
    EchoOrder {
        count: Some(count),
        time: None,
        pacing,
        length: SIZES.request,
        response: SIZES.response,
        patience: MS * 2000,
        waiting: Waiting::Exactly,
    }
}

fn result(run: &EchoRun) -> LatencyResult {
    let context = Context {
        method: "latency-tcp",
        version: IpVersion::V4,
        payload: ByteCount(100),
        response: ByteCount(3000),
        pacing: run.order.pacing,
        spacing: run.order.shown_spacing(),
        patience: run.order.patience,
        bins: None,
        health: Health::default(),
    };
    delay_report::latency(std::slice::from_ref(&run.round), &context)
}

const RHYTHMS: [Pacing; 3] = [Pacing::PingPong, Pacing::Pipeline(4), Pacing::Even(MS)];

#[test]
fn an_altered_answer_is_bad_and_its_request_lost() {
    for pacing in RHYTHMS {
        let (mut echo, far) = connected(|number, answer| {
            if number == 3 {
                answer[2999] ^= 1;
            }
        });
        let run = echo.run(&order(pacing, 10), &StopFlag::new()).unwrap();
        let found = result(&run);
        assert_eq!((found.sent, found.received, found.lost, found.bad), (10, 9, 1, 1), "{pacing:?}");
        drop(echo);
        far.join().unwrap();
    }
}

#[test]
fn an_answer_given_up_on_is_read_off_before_the_next_block() {
    for pacing in [Pacing::PingPong, Pacing::Pipeline(4)] {
        let (go_on, may_go_on) = channel();
        let (mut echo, far) = connected(move |number, _| {
            if number == 5 {
                may_go_on.recv().unwrap();
            }
        });
        let impatient = EchoOrder { patience: MS * 300, ..order(pacing, 20) };
        let mut run = echo.run(&impatient, &StopFlag::new()).unwrap();
        let counts = run.round.counts();
        assert_eq!((counts.received, counts.lost), (5, 1), "{pacing:?}: {counts:?}");
        assert_eq!(counts.asked, counts.received + counts.lost + counts.abandoned);
        // Of a session that breaks off then, nobody knows what became of that one either.
        run.forget_its_end();
        let counts = run.round.counts();
        assert_eq!((counts.lost, counts.abandoned, run.lost_at_end), (0, counts.asked - 5, 0), "{pacing:?}");
        go_on.send(()).unwrap();
        let counts = echo.run(&order(pacing, 20), &StopFlag::new()).unwrap().round.counts();
        assert_eq!((counts.received, counts.bad(), counts.asked), (20, 0, 20), "{pacing:?}");
        drop(echo);
        far.join().unwrap();
    }
}

#[test]
fn an_open_loop_leaves_when_due_however_long_an_answer_takes() {
    let (mut echo, far) = connected(|number, _| {
        if number == 20 {
            clock::sleep(MS * 200);
        }
    });
    let run = echo.run(&order(Pacing::Even(MS * 4), 100), &StopFlag::new()).unwrap();
    let found = result(&run);
    assert_eq!((found.received, found.lost), (100, 0));
    // Fifty were due in the stall. Of those that waited for each other only one would have met it.
    let waited = run.round.rtts_ns().iter().filter(|rtt| **rtt > 50e6).count();
    assert!(waited >= 30, "{waited}");
    assert!(found.rtt_from_due.unwrap().p95 > MS * 100, "{:?}", found.rtt_from_due);
    drop(echo);
    far.join().unwrap();
}

#[test]
fn an_open_loop_outlasts_a_stall_longer_than_its_patience() {
    let (mut echo, far) = connected(|number, _| {
        if number == 20 {
            clock::sleep(MS * 300);
        }
    });
    let impatient = EchoOrder { patience: MS * 100, ..order(Pacing::Even(MS * 4), 200) };
    let counts = echo.run(&impatient, &StopFlag::new()).unwrap().round.counts();
    // Answers come later than patience: lost and late at once. Those due after the stall are in
    // time again.
    assert!(counts.lost >= 30 && counts.lost == counts.late, "{counts:?}");
    assert!(counts.received >= 80 && counts.received + counts.lost == 200, "{counts:?}");
    drop(echo);
    far.join().unwrap();
}

#[test]
fn a_connection_that_ends_is_an_error_and_a_stop_is_none() {
    for pacing in RHYTHMS {
        // The gate allows a test to survive the panics of a thread with this name.
        let (mut echo, far) =
            connected_to("panics on purpose", |number, _| assert!(number < 5, "the responder dies"));
        let failed = echo.run(&order(pacing, 50), &StopFlag::new());
        let Err(Broke { cause: Cause::System(_), run: Some(run) }) = failed else {
            panic!("{pacing:?}: {failed:?}")
        };
        // What was measured until then is kept, and what followed is unknown.
        let counts = run.round.counts();
        assert_eq!((counts.received, counts.lost), (5, 0), "{pacing:?}: {counts:?}");
        assert_eq!(counts.asked, 5 + counts.abandoned, "{pacing:?}");
        assert_eq!((run.lost_at_end, run.ceasing), (0, Ceasing::default()), "{pacing:?}");
        assert!(far.join().is_err());

        let stop = StopFlag::new();
        let raised = stop.clone();
        let (mut echo, far) = connected(move |number, _| {
            if number == 5 {
                raised.raise();
                // Longer than anybody who pressed Ctrl-C should wait.
                clock::sleep(MS * 1000);
            }
        });
        let began_at = clock::now();
        let endless = EchoOrder { count: None, ..order(pacing, 0) };
        let counts = echo.run(&endless, &stop).unwrap().round.counts();
        assert!(clock::now() - began_at < MS * 900, "{pacing:?}");
        assert_eq!((counts.received, counts.lost), (5, 0), "{pacing:?}");
        drop(echo);
        far.join().unwrap();
    }
}

/// A connection that stood still from 1 s to the end of 8 s was "complete", and "1 of 93" lost.
#[test]
fn a_connection_that_stands_still_is_noticed_and_one_that_is_slow_or_stopped_is_not() {
    let order_of = |pacing, count| EchoOrder { patience: MS * 100, ..order(pacing, count) };
    for pacing in RHYTHMS {
        let (go_on, may_go_on) = channel::<()>();
        let (mut echo, far) = connected(move |number, _| {
            if number == 5 {
                let _ = may_go_on.recv();
            }
        });
        let is_open = matches!(pacing, Pacing::Even(_));
        let (count, time) = if is_open { (None, Some(MS * 2000)) } else { (Some(50), None) };
        let order = EchoOrder { count, time, ..order_of(pacing, 0) };
        let mut runs = [echo.run(&order, &StopFlag::new()).unwrap()];
        let ceased = runs[0].ceasing.ceased(MS * 100);
        assert_eq!((ceased.is_some(), runs[0].gave_up), (is_open, !is_open), "{pacing:?}: {ceased:?}");
        assert!(ceased.is_none_or(|it| it.unanswered > 1000), "{ceased:?}");
        let why = latency::stood_still(&mut runs).unwrap();
        let counts = runs[0].round.counts();
        assert_eq!((counts.received, counts.lost, counts.abandoned), (5, 0, counts.asked - 5), "{pacing:?}");
        assert!(why.contains(&format!("until they ended: {} had no answer", counts.abandoned)), "{why}");
        drop(go_on);
        drop(echo);
        far.join().unwrap();
    }
    let (mut echo, far) = connected(|number, _| {
        if number == 5 {
            clock::sleep(MS * 300);
        }
    });
    let run = echo.run(&order_of(Pacing::Even(MS * 4), 150), &StopFlag::new()).unwrap();
    assert_eq!((run.ceasing.ceased(MS * 100), run.gave_up, run.lost_at_end), (None, false, 0));
    assert_eq!(latency::stood_still(&mut [run]), None);
    drop(echo);
    far.join().unwrap();
}
