//! Given, acknowledged, received; and each stream over time.

use super::*;

#[test]
fn what_is_limited_in_bytes_is_given_then_acknowledged_whole() {
    let limit = ByteCount(5_000_000);
    for spacing in [None, Some(Span::from_micros(50))] {
        let plan =
            TcpPlan { bytes: Some(limit), length: 64 << 10, block_spacing: spacing, ..plan(3, 20_000) };
        let done = transfer(&plan, &StopFlag::new());
        let (given, acknowledged) = (done.sent.given.unwrap(), done.sent.acknowledged.unwrap());
        assert!(given > Span::ZERO && given <= acknowledged, "{given}, {acknowledged}");
        assert!(acknowledged <= done.sent.elapsed, "{acknowledged}, {}", done.sent.elapsed);
        assert_eq!(done.sent.acknowledged_bytes, Some(limit));
        let received = done.received.received.unwrap();
        assert!(received > Span::ZERO && received <= done.received.elapsed, "{received}");
        assert_eq!((done.sent.received, done.received.given), (None, None));
        let counted = |s: &StreamEnd| s.bytes_sent >= Some(s.bytes) && s.bytes_resent <= s.bytes_sent;
        assert!(done.sent.streams.iter().all(counted));
    }
}

#[test]
fn at_the_end_of_time_what_was_acknowledged_is_told() {
    let (out, into) = pairs(1);
    // Nobody reads, so the receiver's TCP acknowledges what its buffer takes and the rest stays
    // here.
    let sent = send(out, &plan(1, 300), &[], &StopFlag::new(), &mut |_| {});
    drop(into);
    let acknowledged = sent.acknowledged_bytes.unwrap();
    assert!(acknowledged > ByteCount(0) && acknowledged < sent.bytes, "{acknowledged} of {}", sent.bytes);
    // Data went into the buffers at once; that all the time passed before the end is no time of
    // giving.
    assert!(sent.given.unwrap() < sent.acknowledged.unwrap());
    // Both times count from the first byte that was given, which may have been late.
    assert!(sent.elapsed >= Span::from_millis(300) && sent.acknowledged.unwrap() <= sent.elapsed, "{sent:?}");
}

#[test]
fn a_connection_that_breaks_ends_the_wait_for_acknowledgements() {
    let (out, into) = pairs(1);
    let began_at = clock::now();
    let sent = std::thread::scope(|scope| {
        let plan = TcpPlan { bytes: Some(ByteCount(100_000)), ..plan(1, 60_000) };
        let sender = scope.spawn(move || send(out, &plan, &[], &StopFlag::new(), &mut |_| {}));
        await_bytes(&into);
        into.iter().for_each(crate::options::close_now);
        drop(into);
        sender.join().unwrap()
    });
    assert_eq!(sent.outcome, Outcome::Failed);
    assert!(clock::now() - began_at < Span::from_secs(30), "the plan would have lasted a minute");
}

#[test]
fn each_stream_is_sampled_where_asked_for_and_not_otherwise() {
    let asked = TcpPlan { per_stream: true, tick: Span::from_millis(20), ..plan(3, 400) };
    let done = transfer(&asked, &StopFlag::new());
    let counts: Vec<usize> = done.sent.streams.iter().map(|stream| stream.samples.len()).collect();
    assert!(counts[0] >= 2 && counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    for stream in &done.sent.streams {
        let grows = |pair: &[netaware_record::StreamSample]| {
            pair[0].at < pair[1].at && pair[0].acked <= pair[1].acked
        };
        assert!(stream.samples.windows(2).all(grows), "{:?}", stream.samples);
        assert!(
            stream.samples.iter().all(|sample| sample.acked <= Some(stream.bytes) && sample.cwnd.is_some())
        );
    }
    assert!(done.received.streams.iter().all(|stream| stream.samples.is_empty()));
    let plain = transfer(&plan(1, 100), &StopFlag::new());
    assert!(plain.sent.streams[0].samples.is_empty());
}
