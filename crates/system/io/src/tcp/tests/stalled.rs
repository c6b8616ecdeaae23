//! A stream whose receiver stops reading holds up nobody but itself.

use super::*;

/// Three streams, of which nobody reads the second; how much each has been given.
fn with_a_stalled_stream(plan: &TcpPlan) -> (TcpEnd, Vec<u64>) {
    let small = SocketOptions { window: Some(128 << 10), ..SocketOptions::default() };
    let (out, mut into) = pairs_with(3, &small);
    let stalled = into.remove(1);
    let sent = std::thread::scope(|scope| {
        let read = TcpPlan { streams: 2, ..plan.clone() };
        scope.spawn(move || receive(into, &read, &[], &StopFlag::new(), &mut |_| {}));
        send(out, plan, &[], &StopFlag::new(), &mut |_| {})
    });
    drop(stalled);
    let given = sent.streams.iter().map(|stream| stream.bytes.0).collect();
    (sent, given)
}

fn assert_only_the_second_stalls(given: &[u64]) {
    assert!(given[1] > 0, "its buffers take something: {given:?}");
    // Its own buffers, and not a tenth of what the others move meanwhile.
    assert!(given[0] > 10 * given[1] && given[2] > 10 * given[1], "{given:?}");
}

#[test]
fn full_speed_streams_go_on_beside_a_stalled_one() {
    let (sent, given) = with_a_stalled_stream(&TcpPlan { length: 64 << 10, ..plan(3, 600) });
    assert_eq!(sent.outcome, Outcome::Complete);
    assert_only_the_second_stalls(&given);
}

#[test]
fn spaced_blocks_pass_a_stalled_stream_by() {
    let spacing = Span::from_micros(200);
    let plan = TcpPlan { length: 8 << 10, block_spacing: Some(spacing), ..plan(3, 3000) };
    let (sent, given) = with_a_stalled_stream(&plan);
    assert_eq!(sent.outcome, Outcome::Complete);
    assert_only_the_second_stalls(&given);
    // Blocks began at their times, or the plan says by how much it slipped; a sender that waits for
    // the stalled stream would have slipped by nearly all the time.
    let kept = sent.spaced.unwrap();
    assert!(kept.slipped < Span::from_millis(2700), "{kept:?}");
}

#[test]
fn what_blocks_wait_for_room_is_told_apart_from_what_their_sender_is_late() {
    let small = SocketOptions { window: Some(64 << 10), ..SocketOptions::default() };
    let (out, into) = pairs_with(1, &small);
    let spacing = Span::from_millis(1);
    let plan = TcpPlan { length: 32 << 10, block_spacing: Some(spacing), ..plan(1, 1000) };
    let sent = std::thread::scope(|scope| {
        let read = plan.clone();
        scope.spawn(move || {
            // The buffers are full after some ten blocks; nobody reads for as long as it takes to
            // notice.
            clock::sleep(Span::from_millis(500));
            receive(into, &read, &[], &StopFlag::new(), &mut |_| {})
        });
        send(out, &plan, &[], &StopFlag::new(), &mut |_| {})
    });
    let kept = sent.spaced.unwrap();
    assert!(kept.waits >= 1 && kept.waited > Span::from_millis(100), "{kept:?}");
    // Each wait puts off what is left of its spacing.
    assert!(
        kept.slipped + spacing * i64::try_from(kept.waits + 1).unwrap() >= kept.waited,
        "what waits is put off: {kept:?}"
    );
}
