//! A sender of which nothing more is heard.

use std::io::Write as _;

use super::*;

/// Receives by `plan` what `sender` gives; the connection then stays open and nothing more comes,
/// as from a path that has become a black hole. Also how long that took beyond the plan.
fn received_from(plan: &TcpPlan, sender: impl FnOnce(&mut TcpStream) + Send) -> (TcpEnd, Span) {
    let (mut out, into) = pairs(1);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let began_at = clock::now();
            let end = receive(into, plan, &[], &StopFlag::new(), &mut |_| {});
            (end, clock::now() - began_at - plan.duration)
        });
        sender(&mut out[0]);
        receiver.join().unwrap()
    })
}

#[test]
fn a_transfer_that_went_silent_is_not_waited_for_beyond_its_planned_end() {
    let (end, overtime) =
        received_from(&plan(1, 2500), |stream| stream.write_all(&vec![1; 100_000]).unwrap());
    assert_eq!((end.outcome, end.bytes), (Outcome::Failed, ByteCount(100_000)));
    let why = end.streams[0].error.as_deref().unwrap_or_default();
    assert!(why.starts_with("nothing more came for "), "{why}");
    // With the grace of a sender that was just heard it would be three seconds and more.
    assert!(overtime < Span::from_millis(2500), "{overtime}");
}

#[test]
fn of_a_transfer_of_which_nothing_came_nothing_drains() {
    let (end, overtime) = received_from(&plan(1, 3000), |_| {});
    assert_eq!((end.outcome, end.bytes), (Outcome::Failed, ByteCount(0)));
    assert!(overtime < Span::from_millis(2500), "{overtime}");
}

#[test]
fn a_reset_that_was_lost_does_not_make_a_whole_transfer_a_failure() {
    let millis = 600;
    let (end, _) = received_from(&plan(1, millis), |stream| {
        let until = clock::now() + Span::from_millis(millis);
        while clock::now() < until {
            stream.write_all(&[1; 1000]).unwrap();
            clock::sleep(Span::from_millis(5));
        }
    });
    assert_eq!((end.outcome, end.streams[0].error.as_deref()), (Outcome::Complete, None));
    assert!(end.elapsed < Span::from_secs(2), "the silence at the end does not count: {}", end.elapsed);
}

#[test]
fn a_path_that_is_too_thin_for_its_streams_is_no_transfer_that_broke_off() {
    // Four segments of a narrow-band radio; what its queue dropped of the rest is sent again after
    // the planned end.
    let (end, _) = received_from(&plan(1, 1200), |stream| {
        for _ in 0..4 {
            stream.write_all(&[1; 1448]).unwrap();
            clock::sleep(Span::from_millis(150));
        }
    });
    assert_eq!((end.outcome, end.streams[0].error.as_deref()), (Outcome::Complete, None));
    assert!(end.elapsed < Span::from_secs(1), "the silence does not count: {}", end.elapsed);
}

#[test]
fn a_few_segments_that_came_at_once_are_no_pace_that_explains_a_silence() {
    let (end, _) = received_from(&plan(1, 1200), |stream| {
        for _ in 0..4 {
            stream.write_all(&[1; 1448]).unwrap();
            clock::sleep(Span::from_millis(5));
        }
    });
    assert_eq!(end.outcome, Outcome::Failed);
}
