//! UDPmon's one-line record: fields between semicolons, one line per IP version and direction, no
//! heading.
//!
//! The order is UDPmon's: time of day (Unix seconds); sender; receiver; payload; frames sent;
//! time-outs of "zero statistics"; other time-outs; send time per frame; wait time; send time; send
//! rate; received; lost; out of order; receive time; time per frame received; user rate; wire rate;
//! then of the histogram of inter-packet times: entries in bins, mean, sigma, skew, kurtosis,
//! median, first and third quartile. Times are in us, rates in Mbit/s. What was not measured is
//! `-`.
//!
//! Different from UDPmon on purpose: times per frame are those from frame to frame, so a time over
//! `n` frames is divided by `n - 1`; the wire rate is right for IPv6, VLAN tags, padding and
//! fragments too; quartiles are read off within a bin.

use netaware_record::{Direction, Histogram, Record, UdpReceiverEnd, UdpResult, VersionResult};
use netaware_units::Span;

/// The fields of one result.
pub(super) fn line(record: &Record, version: &VersionResult, r: &UdpResult) -> String {
    let near = version.local.clone().unwrap_or_else(none);
    let far = version.address.clone().unwrap_or_else(none);
    let (from, to) = if r.pedigree.direction == Direction::Reverse { (far, near) } else { (near, far) };
    let (sender, receiver) = (r.sender.as_ref(), r.receiver.as_ref());
    let whole = |number: Option<u64>| number.map_or_else(none, |number| number.to_string());
    let time = |time: Option<Span>| time.map_or_else(none, |time| number(micros(time)));
    let mut fields = vec![(record.started_at.0 / 1_000_000_000).to_string(), from, to];
    let sent = Some(r.sent).filter(|sent| sender.is_some() || *sent > 0);
    fields.extend([Some(r.payload.0), sent, r.exchanges.clearing, r.exchanges.fetching].map(whole));
    // Without a plan for the gaps there was no wait between frames.
    let wait = sender.map(|end| end.gaps.and_then(|gaps| gaps.planned).map_or(0.0, micros));
    fields.extend([
        sender.map_or_else(none, |end| per_frame(end.elapsed, end.sent)),
        wait.map_or_else(none, |wait| wait.to_string()),
        time(sender.map(|end| end.elapsed)),
        mbits(r.sent_rate),
    ]);
    let is_followed = r.sent > r.loss.unknown;
    fields.extend([
        whole(receiver.map(|_| r.received)),
        whole(Some(r.loss.lost).filter(|_| is_followed)),
        whole(r.reordered),
        time(receiver.map(|end| end.elapsed).filter(|_| r.received > 0)),
        receiver.map_or_else(none, |end| per_frame(end.elapsed, end.received)),
        received_rate(receiver, |end| end.bytes.0),
        received_rate(receiver, |end| end.received * r.wire.map_or(0, |wire| wire.bytes.0)),
    ]);
    fields.extend(receiver.and_then(|end| end.bins.as_ref()).map_or_else(|| vec![none(); 8], moments));
    fields.join(" ; ")
}

fn moments(bins: &Histogram) -> Vec<String> {
    let entries: u64 = bins.bins.iter().map(|(_, count)| count).sum();
    let Some(m) = bins.moments else { return vec![none(); 8] };
    let micros = |ns: Option<f64>| ns.map(|ns| ns / 1e3);
    let shown = |figure: Option<f64>| figure.map_or_else(none, number);
    let mut fields = vec![entries.to_string(), number(m.mean / 1e3)];
    fields.extend([micros(m.sigma), m.skew, m.kurtosis].map(shown));
    fields.extend([m.median, m.q25, m.q75].map(|ns| shown(micros(ns))));
    fields
}

fn per_frame(time: Span, frames: u64) -> String {
    if frames < 2 { none() } else { number(micros(time) / (frames - 1) as f64) }
}

/// UDPmon's rate is that from the first to the last frame that came, all but one of them.
fn received_rate(end: Option<&UdpReceiverEnd>, bytes: impl Fn(&UdpReceiverEnd) -> u64) -> String {
    let rate = |end: &UdpReceiverEnd| {
        let within = bytes(end) as f64 * (end.received.checked_sub(1)? as f64 / end.received as f64);
        let rate = within * 8.0 / end.elapsed.secs_f64() / 1e6;
        (rate.is_finite() && rate > 0.0).then(|| number(rate))
    };
    end.and_then(rate).unwrap_or_else(none)
}

fn mbits(rate: Option<netaware_units::BitRate>) -> String {
    rate.map_or_else(none, |rate| number(rate.0 as f64 / 1e6))
}

fn micros(span: Span) -> f64 {
    span.0 as f64 / 1e3
}

/// Six digits that count, as C++ streams print them.
fn number(x: f64) -> String {
    let digits = x.abs().max(1e-300).log10().floor();
    let decimals = (5.0 - digits).clamp(0.0, 9.0) as usize;
    let text = format!("{x:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn none() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::fixture;

    fn lines(of: &Record) -> Vec<Vec<String>> {
        let results =
            of.versions.iter().flat_map(|version| version.udp.iter().map(move |result| (version, result)));
        let line = |(version, result)| line(of, version, result).split(" ; ").map(str::to_owned).collect();
        results.map(line).collect()
    }

    #[test]
    fn there_are_as_many_fields_as_udpmon_has() {
        let lines = lines(&fixture::udp());
        assert!(!lines.is_empty() && lines.iter().all(|line| line.len() == 26), "{lines:?}");
    }

    #[test]
    fn rates_and_times_agree_with_each_other() {
        let mut record = fixture::udp();
        let result = &mut record.versions[0].udp[0];
        result.payload = netaware_units::ByteCount(1400);
        let receiver = result.receiver.as_mut().unwrap();
        (receiver.elapsed, receiver.received) = (Span::from_micros(35_362), 300);
        result.received = 300;
        let line = &lines(&record)[0];
        assert_eq!((line[3].as_str(), line[11].as_str(), line[14].as_str()), ("1400", "300", "35362"));
        assert_eq!(line[15], "118.268");
        assert_eq!(line[18..], vec!["-"; 8]);
    }

    #[test]
    fn an_end_that_never_reported_is_dashes_and_not_zeros() {
        let mut record = fixture::udp();
        let result = &mut record.versions[0].udp[0];
        (result.received, result.loss) = (0, netaware_record::LossSplit::default());
        result.loss.unknown = result.sent;
        (result.receiver, result.goodput, result.reordered) = (None, None, None);
        result.exchanges.fetching = None;
        result.wire = result.wire.map(|wire| netaware_record::WireRates { received: None, ..wire });
        let silent = &lines(&record)[0];
        assert_eq!((silent[6].as_str(), &silent[11..]), ("-", vec!["-".to_owned(); 15].as_slice()));
        assert_ne!((silent[4].as_str(), silent[10].as_str()), ("-", "-"), "the sender did report");
        let result = &mut record.versions[0].udp[0];
        (result.sent, result.loss.unknown, result.sent_rate, result.sender) = (0, 0, None, None);
        assert_eq!(lines(&record)[0][4], "-");
        assert_eq!(lines(&record)[0][7..], vec!["-"; 19]);
    }

    #[test]
    fn numbers_have_six_digits() {
        let rows = [
            (95.646_7, "95.6467"),
            (117.0979, "117.098"),
            (0.0, "0"),
            (28_694.0, "28694"),
            (1.300_859, "1.30086"),
            (1_234_567.8, "1234568"),
            (-0.001_234_567, "-0.00123457"),
        ];
        for (x, want) in rows {
            assert_eq!(number(x), want);
        }
    }
}
