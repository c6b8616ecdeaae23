//! Blocks at their times, to the streams in turn.

use super::*;

const BLOCK: u32 = 1000;

fn spaced(streams: u16, blocks: u64, spacing: Span) -> TcpPlan {
    TcpPlan {
        bytes: Some(ByteCount(blocks * u64::from(BLOCK))),
        length: BLOCK,
        block_spacing: Some(spacing),
        ..plan(streams, 20_000)
    }
}

#[test]
fn as_many_blocks_as_asked_for_leave_no_faster_than_asked_for() {
    let spacing = Span::from_micros(500);
    let done = transfer(&spaced(2, 200, spacing), &StopFlag::new());
    assert_eq!((done.sent.outcome, done.received.outcome), (Outcome::Complete, Outcome::Complete));
    assert_eq!((done.sent.bytes, done.received.bytes), (ByteCount(200_000), ByteCount(200_000)));
    let kept = done.sent.spaced.unwrap();
    assert_eq!(kept.written, 200);
    // The last block begins 199 spacings after the first; what the host was late by more than one
    // is told.
    let given = done.sent.given.unwrap();
    assert!(given + spacing >= spacing * 199, "{given}");
    assert!(given >= spacing * 198 + kept.slipped, "{given}, {kept:?}");
    assert!(done.received.received.unwrap() > Span::ZERO);
}

#[test]
fn blocks_go_to_the_streams_in_turn() {
    let done = transfer(&spaced(3, 90, Span::from_micros(200)), &StopFlag::new());
    assert_eq!((done.sent.streams.len(), done.received.streams.len()), (3, 3));
    for stream in &done.sent.streams {
        assert_eq!((stream.bytes, stream.calls), (ByteCount(30_000), 30), "{stream:?}");
    }
    for stream in &done.received.streams {
        assert_eq!(stream.bytes, ByteCount(30_000));
        // A read takes what is there: a block, or several if the reader was away.
        assert!((1..=30).contains(&stream.calls), "{stream:?}");
    }
}

#[test]
fn a_last_block_may_be_shorter_and_time_ends_what_has_no_number() {
    let odd = TcpPlan { bytes: Some(ByteCount(2500)), ..spaced(1, 3, Span::from_micros(100)) };
    assert_eq!(transfer(&odd, &StopFlag::new()).received.bytes, ByteCount(2500));
    let spacing = Span::from_millis(5);
    let timed = TcpPlan { bytes: None, length: BLOCK, block_spacing: Some(spacing), ..plan(2, 300) };
    let done = transfer(&timed, &StopFlag::new());
    assert_eq!(done.sent.outcome, Outcome::Complete);
    let written = done.sent.spaced.unwrap().written;
    assert!((1..=61).contains(&written), "{written} blocks in 300 ms, one each 5 ms");
    assert_eq!(done.sent.bytes.0, written * u64::from(BLOCK));
}

#[test]
fn a_stop_is_seen_between_blocks() {
    let stop = StopFlag::new();
    let rare = TcpPlan { bytes: None, ..spaced(2, 1, Span::from_secs(30)) };
    // Once the first block has come.
    let done = transfer_watched(&rare, &stop, &|tick| {
        if tick.bytes > ByteCount(0) {
            stop.raise();
        }
    });
    assert_eq!(done.sent.outcome, Outcome::Interrupted);
    assert_eq!(done.sent.bytes, ByteCount(u64::from(BLOCK)));
}

#[test]
fn a_broken_stream_leaves_its_blocks_to_the_others() {
    let (out, mut into) = pairs(2);
    let plan = TcpPlan { bytes: Some(ByteCount(400_000)), ..spaced(2, 400, Span::from_micros(100)) };
    let (sent, received) = std::thread::scope(|scope| {
        let broken = into.remove(0);
        let receiver_plan = plan.clone();
        let receiver = scope.spawn(move || receive(into, &receiver_plan, &[], &StopFlag::new(), &mut |_| {}));
        crate::options::close_now(&broken);
        drop(broken);
        (send(out, &plan, &[], &StopFlag::new(), &mut |_| {}), receiver.join().unwrap())
    });
    assert_eq!(sent.outcome, Outcome::Failed);
    assert!(sent.streams[0].error.is_some() && sent.streams[1].error.is_none(), "{sent:?}");
    assert_eq!(sent.streams[1].bytes, received.bytes);
    // What the broken stream's buffer had taken before is gone with it.
    assert_eq!(sent.bytes, ByteCount(400_000));
}
