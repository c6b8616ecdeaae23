//! The end of a test in messages that fit their frames.

use netaware_record::{Outcome, StreamEnd, TcpEnd, UdpReceiverEnd};
use netaware_units::ByteCount;
use netaware_wire::control::{EndReport, ServerMessage};
use netaware_wire::frame;

/// `StreamEnds`, `StreamSamples`, `Bins` and `Arrivals` where there are such, then `Finished`.
pub(super) fn messages(test: u32, outcome: Outcome, mut report: EndReport) -> Vec<ServerMessage> {
    let mut streams = take_streams(&mut report);
    let samples: Vec<_> =
        streams.iter_mut().map(|stream| (stream.index, std::mem::take(&mut stream.samples))).collect();
    let mut messages: Vec<_> = streams
        .chunks(STREAMS_IN_A_MESSAGE)
        .map(|streams| ServerMessage::StreamEnds { test, streams: streams.to_vec() })
        .collect();
    if let EndReport::UdpReceiver(end) = &mut report {
        messages.extend(details(test, end));
    }
    for (stream, samples) in samples {
        messages.extend(samples.chunks(SAMPLES_IN_A_MESSAGE).map(|samples| ServerMessage::StreamSamples {
            test,
            stream,
            samples: samples.to_vec(),
        }));
    }
    set_outcome(&mut report, outcome);
    messages.push(fitting(ServerMessage::Finished { test, outcome, report }));
    messages
}

/// Takes out what is too long for one message.
fn details(test: u32, end: &mut UdpReceiverEnd) -> Vec<ServerMessage> {
    let bins = end.bins.as_mut().map(|bins| std::mem::take(&mut bins.bins)).unwrap_or_default();
    let bins = bins.chunks(BINS_IN_A_MESSAGE).map(|bins| ServerMessage::Bins { test, bins: bins.to_vec() });
    let arrivals = std::mem::take(&mut end.arrivals);
    let arrivals = arrivals
        .chunks(ARRIVALS_IN_A_MESSAGE)
        .map(|arrivals| ServerMessage::Arrivals { test, arrivals: arrivals.to_vec() });
    bins.chain(arrivals).collect()
}

/// How the end itself says it ended.
pub(super) fn outcome(report: &EndReport) -> Outcome {
    match report {
        EndReport::Echo { .. } => Outcome::Complete,
        EndReport::Trains { outcome, .. } => *outcome,
        EndReport::TcpSender(end) | EndReport::TcpReceiver(end) => end.outcome,
        EndReport::UdpSender(end) => end.outcome,
        EndReport::UdpReceiver(end) => end.outcome,
    }
}

/// Payload moved.
pub(super) fn bytes(report: &EndReport) -> ByteCount {
    match report {
        EndReport::Echo { .. } => ByteCount(0),
        EndReport::Trains { bytes, .. } => *bytes,
        EndReport::TcpSender(end) | EndReport::TcpReceiver(end) => end.bytes,
        EndReport::UdpSender(end) => end.bytes,
        EndReport::UdpReceiver(end) => end.bytes,
    }
}

fn set_outcome(report: &mut EndReport, outcome: Outcome) {
    match report {
        EndReport::Echo { .. } => {}
        EndReport::Trains { outcome: it, .. } => *it = outcome,
        EndReport::TcpSender(end) | EndReport::TcpReceiver(end) => end.outcome = outcome,
        EndReport::UdpSender(end) => end.outcome = outcome,
        EndReport::UdpReceiver(end) => end.outcome = outcome,
    }
}

fn take_streams(report: &mut EndReport) -> Vec<StreamEnd> {
    let (EndReport::TcpSender(TcpEnd { streams, .. }) | EndReport::TcpReceiver(TcpEnd { streams, .. })) =
        report
    else {
        return Vec::new();
    };
    let mut streams = std::mem::take(streams);
    for error in streams.iter_mut().filter_map(|stream| stream.error.as_mut()) {
        *error = error.chars().take(LONGEST_ERROR).collect();
    }
    streams
}

/// Drops detail of a UDP receiver until its report fits: first the histogram, whose summary stays,
/// then the runs of losses. Both are bounded where they arise; this is for a path that is odd in
/// every possible way at once.
fn fitting(mut message: ServerMessage) -> ServerMessage {
    let steps: [fn(&mut UdpReceiverEnd); 3] =
        [|end| end.histogram = None, |end| end.loss_runs.clear(), |end| end.reorder_extents.clear()];
    for drop_detail in steps {
        if frame::emit(&message).is_ok() {
            break;
        }
        if let ServerMessage::Finished { report: EndReport::UdpReceiver(end), .. } = &mut message {
            drop_detail(end);
        }
    }
    message
}

/// A stream's end is about 700 bytes of JSON, with the longest error below 1300.
const STREAMS_IN_A_MESSAGE: usize = 32;
/// A sample is at most 180 bytes of JSON.
const SAMPLES_IN_A_MESSAGE: usize = 256;
const LONGEST_ERROR: usize = 100;
/// Two numbers of at most 20 digits each.
const BINS_IN_A_MESSAGE: usize = 1024;
/// Three of them.
const ARRIVALS_IN_A_MESSAGE: usize = 768;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::MOST_WITH_TESTS;
    use netaware_record::{Histogram, HistogramShape, LoggedArrival, StreamSample};
    use netaware_units::Span;
    use netaware_wire::control::MAX_SAMPLES_IN_ALL;

    #[test]
    fn every_message_about_512_streams_fits_its_frame() {
        let stream = |index| StreamEnd { index, error: Some("é".repeat(5000)), ..StreamEnd::default() };
        let end = TcpEnd { streams: (0..512).map(stream).collect(), ..TcpEnd::default() };
        let messages = messages(1, Outcome::Complete, EndReport::TcpReceiver(end));
        assert_eq!(messages.len(), 17);
        assert!(messages.iter().all(|message| frame::emit(message).is_ok()));
    }

    #[test]
    fn bins_and_arrivals_travel_in_frames_of_their_own() {
        let bins = (0..u64::from(HistogramShape::MOST_BINS)).map(|n| (u64::MAX - n, u64::MAX)).collect();
        let arrivals = vec![LoggedArrival(u64::MAX, u64::MAX, u64::MAX); 2000];
        let end = UdpReceiverEnd {
            bins: Some(Histogram { bins, underflow: 3, ..Histogram::default() }),
            arrivals,
            ..UdpReceiverEnd::default()
        };
        let messages = messages(1, Outcome::Complete, EndReport::UdpReceiver(end));
        assert!(messages.iter().all(|message| frame::emit(message).is_ok()));
        let count = |of: fn(&ServerMessage) -> usize| messages.iter().map(of).sum::<usize>();
        let bins = count(|m| if let ServerMessage::Bins { bins, .. } = m { bins.len() } else { 0 });
        let arrivals =
            count(|m| if let ServerMessage::Arrivals { arrivals, .. } = m { arrivals.len() } else { 0 });
        assert_eq!((bins, arrivals), (1 << 16, 2000));
        let Some(ServerMessage::Finished { report: EndReport::UdpReceiver(end), .. }) = messages.last()
        else {
            panic!("no end");
        };
        assert_eq!(end.bins.as_ref().map(|bins| bins.underflow), Some(3));
    }

    #[test]
    fn samples_of_the_longest_numbers_fit_their_frames_in_order() {
        let sample = |n: i64| StreamSample {
            at: Span(i64::MAX - 1000 + n),
            acked: Some(ByteCount(u64::MAX)),
            cwnd: Some(ByteCount(u64::MAX)),
            rtt: Some(Span(i64::MAX)),
            retransmits: Some(u64::MAX),
        };
        let samples: Vec<_> = (0..1000).map(sample).collect();
        let stream = |index| StreamEnd { index, samples: samples.clone(), ..StreamEnd::default() };
        let end = TcpEnd { streams: (0..2).map(stream).collect(), ..TcpEnd::default() };
        let messages = messages(1, Outcome::Complete, EndReport::TcpSender(end));
        assert!(messages.iter().all(|message| frame::emit(message).is_ok()));
        for stream in 0..2 {
            let told: Vec<_> = messages
                .iter()
                .filter_map(|message| match message {
                    ServerMessage::StreamSamples { stream: of, samples, .. } if *of == stream => {
                        Some(samples.clone())
                    }
                    _ => None,
                })
                .flatten()
                .collect();
            assert_eq!(told, samples);
        }
        assert!(matches!(messages.last(), Some(ServerMessage::Finished { .. })));
    }

    #[test]
    fn both_ways_of_512_streams_at_their_longest_fit_the_outbox() {
        let sample = StreamSample {
            at: Span(i64::MAX),
            acked: Some(ByteCount(u64::MAX)),
            cwnd: Some(ByteCount(u64::MAX)),
            rtt: Some(Span(i64::MAX)),
            retransmits: Some(u64::MAX),
        };
        let stream = |index, samples| StreamEnd {
            index,
            error: Some("e".repeat(LONGEST_ERROR)),
            samples: vec![sample; samples],
            ..StreamEnd::default()
        };
        let end = |samples| TcpEnd {
            streams: (0..512).map(|index| stream(index, samples)).collect(),
            ..TcpEnd::default()
        };
        let both = [EndReport::TcpSender(end(MAX_SAMPLES_IN_ALL / 512)), EndReport::TcpReceiver(end(0))];
        let bytes: usize = both
            .into_iter()
            .flat_map(|report| messages(1, Outcome::Complete, report))
            .map(|message| frame::emit(&message).unwrap().len())
            .sum();
        // The rest is left for ticks.
        assert!(bytes < MOST_WITH_TESTS * 9 / 10, "{bytes}");
    }

    #[test]
    fn a_report_too_long_loses_its_detail_and_keeps_its_figures() {
        let bins = (0..20_000).map(|n| (n, u64::MAX)).collect();
        let end = UdpReceiverEnd {
            received: 7,
            histogram: Some(Histogram { bins, ..Histogram::default() }),
            loss_runs: vec![(1, 2)],
            ..UdpReceiverEnd::default()
        };
        let messages = messages(1, Outcome::Complete, EndReport::UdpReceiver(end));
        let [ServerMessage::Finished { report: EndReport::UdpReceiver(end), .. }] = &messages[..] else {
            panic!("{messages:?}");
        };
        assert_eq!((end.received, end.histogram.is_none(), &end.loss_runs[..]), (7, true, &[(1, 2)][..]));
    }
}
