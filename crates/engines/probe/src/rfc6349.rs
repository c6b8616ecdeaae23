//! The figures of RFC 6349: transfer time ratio, TCP efficiency, buffer delay.
//!
//! **Measures** nothing of its own: it relates what both ends of the transfers saw. **Assumes**
//! that the bottleneck's rate is known from elsewhere; our own measurement never stands in for it,
//! because the ratio would then be near 1 by construction, and so without a rate there is no ratio.
//! **Biased**: slow start is in the actual time, so that short transfers read a higher ratio; the
//! mean round trip is over TCP's smoothed samples at the end of each slice; the baseline is the
//! smallest round trip seen, which on a path with a standing queue is too large and the buffer
//! delay too small. **Published**: RFC 6349 §4.1 to §4.3. **We differ** in that the ideal rate goes
//! by the segment size and the headers in use (the RFC's table has 40 bytes of headers, without
//! timestamps), and that the round trip is sampled each slice instead of each second.

use netaware_record::{Bottleneck, IpVersion, Rfc6349, StreamEnd, TcpEnd};
use netaware_units::{BitRate, ByteCount, Span};

/// What is known of all rounds of one direction and number of streams.
#[derive(Debug, Clone, Copy)]
pub struct Rounds<'a> {
    /// Decides how long headers are.
    pub version: IpVersion,
    /// What somebody knows of the narrowest link.
    pub bottleneck: Option<Bottleneck>,
    /// Times of connecting, as the application saw them.
    pub connects: &'a [Span],
    /// Mean of the sender's smoothed round trip, if known.
    pub mean_rtt: Option<Span>,
    /// Smallest round trip that TCP saw, if known.
    pub min_rtt: Option<Span>,
    /// The sending end of each round.
    pub senders: &'a [&'a TcpEnd],
    /// The receiving end of each round.
    pub receivers: &'a [&'a TcpEnd],
}

/// The figures; `None` if there is ground for none of them.
pub fn figures(rounds: &Rounds<'_>) -> Option<Rfc6349> {
    let ideal_rate = rounds.bottleneck.and_then(|link| ideal_rate(link, rounds));
    let received: ByteCount = rounds.receivers.iter().map(|end| end.bytes).sum();
    let actual_time = some(rounds.receivers.iter().filter_map(|end| end.received).sum());
    let ideal_time = ideal_rate.map(|rate| rate.time_for(received)).and_then(some);
    let known = |rtt: &&Span| **rtt > Span::ZERO;
    let baseline_rtt = rounds.connects.iter().chain(&rounds.min_rtt).filter(known).min().copied();
    let mean_rtt = rounds.mean_rtt.and_then(some);
    let found = Rfc6349 {
        bottleneck: rounds.bottleneck,
        ideal_rate,
        ideal_time,
        actual_time,
        transfer_time_ratio: actual_time.zip(ideal_time).map(|(actual, ideal)| over(actual, ideal)),
        efficiency: efficiency(rounds.senders),
        baseline_rtt,
        mean_rtt,
        buffer_delay: mean_rtt
            .zip(baseline_rtt)
            .filter(|_| fills_a_window(rounds.senders))
            .map(|(mean, baseline)| over(mean - baseline, baseline)),
    };
    let has_figure =
        [found.transfer_time_ratio, found.efficiency, found.buffer_delay].iter().any(Option::is_some);
    has_figure.then_some(found)
}

/// Whether more than the first window left: less queues behind nothing of its own.
fn fills_a_window(senders: &[&TcpEnd]) -> bool {
    let given: ByteCount = senders.iter().map(|end| end.bytes).sum();
    let sent: ByteCount =
        senders.iter().flat_map(|end| &end.streams).filter_map(|stream| stream.bytes_sent).sum();
    given.max(sent) > INITIAL_WINDOW
}

/// Ten segments (RFC 6928).
const INITIAL_WINDOW: ByteCount = ByteCount(10 * 1460);

/// Payload rate of full segments over the bottleneck.
fn ideal_rate(link: Bottleneck, rounds: &Rounds<'_>) -> Option<BitRate> {
    let told = |stream: &'_ StreamEnd| Some((stream.mss.filter(|mss| *mss > 0)?, stream.timestamps));
    let (mss, timestamps) = rounds.senders.iter().flat_map(|end| &end.streams).find_map(told)?;
    let options = if timestamps { TIMESTAMPS } else { 0 };
    let on_the_link = mss + TCP_HEADER + options + rounds.version.header_len() + link.overhead;
    let rate = u128::from(link.rate.0) * u128::from(mss) / u128::from(on_the_link);
    u64::try_from(rate).ok().map(BitRate)
}

/// Bytes sent once over bytes sent.
fn efficiency(senders: &[&TcpEnd]) -> Option<f64> {
    let streams = || senders.iter().flat_map(|end| &end.streams);
    let sent: ByteCount = streams().filter_map(|stream| stream.bytes_sent).sum();
    let resent: ByteCount = streams().filter_map(|stream| stream.bytes_resent).sum();
    (sent.0 > 0).then(|| (sent - resent).0 as f64 / sent.0 as f64)
}

fn some(span: Span) -> Option<Span> {
    (span > Span::ZERO).then_some(span)
}

fn over(part: Span, whole: Span) -> f64 {
    part.0 as f64 / whole.0 as f64
}

/// RFC 9293 §3.1, without options.
const TCP_HEADER: u32 = 20;
/// RFC 7323 §3.2, padded to a multiple of four.
const TIMESTAMPS: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use netaware_record::ETHERNET_OVERHEAD;

    fn sender(mss: u32, timestamps: bool, sent: u64, resent: u64) -> TcpEnd {
        let (bytes_sent, bytes_resent) = (Some(ByteCount(sent)), Some(ByteCount(resent)));
        let stream =
            StreamEnd { mss: Some(mss), timestamps, bytes_sent, bytes_resent, ..StreamEnd::default() };
        TcpEnd { streams: vec![stream], ..TcpEnd::default() }
    }

    fn receiver(bytes: u64, millis: i64) -> TcpEnd {
        let received = Some(Span::from_millis(millis));
        TcpEnd { bytes: ByteCount(bytes), received, ..TcpEnd::default() }
    }

    fn of<'a>(senders: &'a [&'a TcpEnd], receivers: &'a [&'a TcpEnd]) -> Rounds<'a> {
        Rounds {
            version: IpVersion::V4,
            bottleneck: Some(Bottleneck { rate: BitRate(100_000_000), overhead: ETHERNET_OVERHEAD }),
            connects: &[],
            mean_rtt: None,
            min_rtt: None,
            senders,
            receivers,
        }
    }

    #[test]
    fn the_ideal_rate_is_what_full_segments_leave_of_the_link() {
        // RFC 6349 §3.3.2: 100 Mbit/s Ethernet, MTU 1500, no options: 8127 frames/s of 1460 bytes,
        // 94.9 Mbit/s.
        let rows = [
            (IpVersion::V4, 1460, false, 38, 94_928_478),
            (IpVersion::V4, 1448, true, 38, 94_148_244),
            (IpVersion::V6, 1428, true, 38, 92_847_854),
            (IpVersion::V4, 1448, true, 0, 96_533_333),
        ];
        for (version, mss, timestamps, overhead, want) in rows {
            let sender = sender(mss, timestamps, 1, 0);
            let link = Bottleneck { rate: BitRate(100_000_000), overhead };
            let rounds = Rounds { version, bottleneck: Some(link), ..of(&[], &[]) };
            let found = figures(&Rounds { senders: &[&sender], ..rounds }).unwrap();
            assert_eq!(found.ideal_rate, Some(BitRate(want)), "{version:?} {mss}");
        }
    }

    #[test]
    fn the_ratio_is_actual_over_ideal_time_of_all_rounds() {
        let sender = sender(1460, false, 1000, 0);
        // At 94,928,478 bit/s, 11,866,060 bytes take a second (less 0.2 bit).
        let (one, other) = (receiver(11_866_060, 1100), receiver(11_866_060, 1300));
        let found = figures(&of(&[&sender, &sender], &[&one, &other])).unwrap();
        assert_eq!(found.actual_time, Some(Span::from_millis(2400)));
        assert!((found.transfer_time_ratio.unwrap() - 1.2).abs() < 1e-6, "{found:?}");
        let found = figures(&Rounds { bottleneck: None, ..of(&[&sender], &[&one]) }).unwrap();
        assert_eq!((found.transfer_time_ratio, found.ideal_rate), (None, None), "never our own rate");
        assert_eq!(found.efficiency, Some(1.0));
    }

    #[test]
    fn the_examples_of_the_rfc_come_out() {
        // §4.2: 100,000 bytes sent, 1,000 of them again: 99.0 %. §4.3: baseline 25 ms, mean 32 ms:
        // 28 %.
        let sender = sender(1448, true, 100_000, 1_000);
        let connects = [Span::from_millis(27), Span::from_millis(25)];
        let senders = [&sender];
        let rounds = Rounds {
            connects: &connects,
            mean_rtt: Some(Span::from_millis(32)),
            min_rtt: Some(Span::from_millis(26)),
            ..of(&senders, &[])
        };
        let found = figures(&rounds).unwrap();
        assert_eq!(found.efficiency, Some(0.99));
        assert_eq!(found.baseline_rtt, Some(Span::from_millis(25)));
        assert_eq!(found.buffer_delay, Some(0.28));
    }

    #[test]
    fn a_transfer_of_one_byte_has_no_buffer_delay() {
        let sender = TcpEnd { bytes: ByteCount(1), ..sender(1448, true, 1, 0) };
        let connects = [Span::from_micros(40)];
        let senders = [&sender];
        let mean_rtt = Some(Span::from_micros(1400));
        let found = figures(&Rounds { connects: &connects, mean_rtt, ..of(&senders, &[]) });
        assert_eq!(found.and_then(|found| found.buffer_delay), None);
    }

    #[test]
    fn nothing_known_is_no_figure() {
        assert_eq!(figures(&of(&[], &[])), None);
        let silent = TcpEnd::default();
        assert_eq!(figures(&of(&[&silent], &[&silent])), None);
    }

    #[test]
    fn what_one_end_did_not_tell_is_absent_and_what_the_other_told_is_there() {
        let mut sender = sender(1460, false, 100_000, 1_000);
        // A stream that sent nothing knows no segment size.
        sender.streams.insert(0, StreamEnd { timestamps: true, ..StreamEnd::default() });
        let link = Bottleneck { rate: BitRate(100_000_000), overhead: ETHERNET_OVERHEAD };
        let alone = Rfc6349 {
            bottleneck: Some(link),
            ideal_rate: Some(BitRate(94_928_478)),
            ideal_time: None,
            actual_time: None,
            transfer_time_ratio: None,
            efficiency: Some(0.99),
            baseline_rtt: None,
            mean_rtt: None,
            buffer_delay: None,
        };
        assert_eq!(figures(&of(&[&sender], &[])).as_ref(), Some(&alone));
        let receiver = receiver(11_866_060, 1_100);
        let connects = [Span::ZERO, Span::from_millis(27), Span::from_millis(25)];
        let (senders, receivers) = ([&sender], [&receiver]);
        let rounds =
            Rounds { connects: &connects, mean_rtt: Some(Span::from_millis(32)), ..of(&senders, &receivers) };
        let all = Rfc6349 {
            // 94,928,480 bits, 2 more than a second takes.
            ideal_time: Some(Span(1_000_000_022)),
            actual_time: Some(Span::from_millis(1_100)),
            transfer_time_ratio: Some(1_100_000_000.0 / 1_000_000_022.0),
            baseline_rtt: Some(Span::from_millis(25)),
            mean_rtt: Some(Span::from_millis(32)),
            buffer_delay: Some(0.28),
            ..alone
        };
        assert_eq!(figures(&rounds), Some(all));
    }
}
