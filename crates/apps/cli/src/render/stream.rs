//! What is shown while it happens: interval lines for people, events for programs.

use netaware_prober::Progress;
use netaware_record::{RateBound, RatePoint};
use netaware_units::BitRate;
use serde_json::{Value, json};

use super::figures::{NONE, count};
use super::table::padded;

/// Above the first interval line.
pub(crate) fn titles(progress: &Progress) -> Option<String> {
    if let Progress::Rate { .. } = progress {
        return Some(columns("", &["seconds", "rate", "from", "to", "remarks"], OF_RATES));
    }
    let Progress::Interval { packets, .. } = progress else { return None };
    let right = if packets.is_some() { ["lost / received", "", ""] } else { ["resent", "cwnd", "RTT"] };
    Some(columns("", &["seconds", "payload", "rate", right[0], right[1], right[2]], OF_SLICES))
}

/// One slice of a bulk transfer, or one figure of a path that is followed, 80 columns at most.
pub(crate) fn interval_line(progress: &Progress) -> Option<String> {
    if let Progress::Rate { version, direction, point } = progress {
        let who = format!("{} {}", version.name(), direction.name());
        return Some(columns(&who, &rate_cells(point).each_ref().map(String::as_str), OF_RATES));
    }
    let Progress::Interval {
        version,
        direction,
        start,
        end,
        bytes,
        rate,
        packets,
        lost,
        retransmits,
        rtt,
        cwnd,
    } = progress
    else {
        return None;
    };
    let who = format!("{} {}", version.name(), direction.name());
    let seconds = format!("{:.1} - {:.1}", start.secs_f64(), end.secs_f64());
    let rate = rate.map_or_else(|| NONE.to_owned(), |rate| rate.to_string());
    let mut cells = vec![seconds, bytes.to_string(), rate];
    if let Some(packets) = packets {
        let lost = lost.map_or_else(|| "?".to_owned(), |lost| lost.to_string());
        cells.push(format!("{lost} / {}", count(*packets)));
    } else {
        cells.push(retransmits.map_or_else(String::new, count));
        cells.push(cwnd.map_or_else(String::new, |cwnd| cwnd.to_string()));
        cells.push(rtt.map_or_else(String::new, |rtt| rtt.to_string()));
    }
    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
    Some(columns(&who, &cells, OF_SLICES))
}

/// When, how much, from where to where, and what to know of it.
fn rate_cells(point: &RatePoint) -> [String; 5] {
    let bits = |rate: f64| BitRate(rate.max(0.0) as u64).to_string();
    let at = format!("{:.1}", point.at.secs_f64());
    let [rate, lo, hi] = match (&point.rate, point.bound) {
        (None, _) => ["not known".to_owned(), String::new(), String::new()],
        (Some(rate), RateBound::None) => [rate.estimate, rate.lo, rate.hi].map(bits),
        (Some(rate), RateBound::AtLeast) => ["at least".to_owned(), bits(rate.lo), String::new()],
        (Some(rate), RateBound::AtMost) => ["at most".to_owned(), String::new(), bits(rate.hi)],
    };
    [at, rate, lo, hi, point.flags.join(" ")]
}

/// Widths of the columns: of slices of a transfer, and of figures of a path that is followed.
const OF_SLICES: [usize; 6] = [15, 12, 15, 9, 10, 8];
const OF_RATES: [usize; 6] = [15, 12, 12, 12, 0, 0];

fn columns(who: &str, cells: &[&str], widths: [usize; 6]) -> String {
    let mut line = padded(who, 11);
    for (cell, width) in cells.iter().zip(widths) {
        line.push_str(&padded(cell, width));
    }
    line.trim_end().to_owned()
}

/// One object per event. Times are ns since the start of the transfer (`interval`) or of the
/// measurement (`phase`).
pub(crate) fn event(progress: &Progress) -> Value {
    match progress {
        Progress::Phase { what, version, done, total } => {
            json!({"event": "phase", "what": what, "version": version, "done": done, "total": total})
        }
        Progress::Queued { place, expected_wait } => {
            json!({"event": "queued", "place": place, "expected_wait": expected_wait})
        }
        Progress::Interval {
            version,
            direction,
            start,
            end,
            bytes,
            rate,
            packets,
            lost,
            retransmits,
            rtt,
            cwnd,
        } => {
            json!({
                "event": "interval", "version": version, "direction": direction, "start": start, "end": end,
                "bytes": bytes, "rate": rate, "packets": packets, "lost": lost, "retransmits": retransmits,
                "rtt": rtt, "cwnd": cwnd,
            })
        }
        Progress::Rate { version, direction, point } => {
            json!({"event": "rate", "version": version, "direction": direction, "point": point})
        }
        Progress::Note(text) | Progress::Longer(text) => json!({"event": "note", "text": text}),
    }
}

#[cfg(test)]
mod tests {
    use netaware_record::{Direction, IpVersion};
    use netaware_units::{BitRate, ByteCount, Span};

    use super::*;

    fn interval(packets: Option<u64>) -> Progress {
        Progress::Interval {
            version: IpVersion::V6,
            direction: Direction::Reverse,
            start: Span::from_secs(119),
            end: Span::from_secs(120),
            bytes: ByteCount(1_181_116_006),
            rate: Some(BitRate(123_456_789_012)),
            packets,
            lost: packets.map(|_| 12),
            retransmits: packets.is_none().then_some(1234),
            rtt: packets.is_none().then_some(Span::from_micros(1210)),
            cwnd: packets.is_none().then_some(ByteCount(1_234_567)),
        }
    }

    #[test]
    fn interval_lines_fit_80_columns_below_their_titles() {
        let tcp = interval(None);
        assert_eq!(
            titles(&tcp).unwrap(),
            "           seconds        payload     rate           resent   cwnd      RTT"
        );
        assert_eq!(
            interval_line(&tcp).unwrap(),
            "IPv6 down  119.0 - 120.0  1.10 GiB    123 Gbit/s     1,234    1.18 MiB  1.21 ms"
        );
        assert_eq!(
            interval_line(&interval(Some(34_000_000))).unwrap(),
            "IPv6 down  119.0 - 120.0  1.10 GiB    123 Gbit/s     12 / 34,000,000"
        );
    }

    #[test]
    fn remarks_are_not_glued_to_the_rate_before_them() {
        let rate = netaware_record::Interval { estimate: 43.1e6, lo: 41.2e6, hi: 44.3e6, confidence: 0.9 };
        let point = RatePoint {
            at: Span::from_secs(5),
            rate: Some(rate),
            bound: RateBound::None,
            flags: vec!["ambiguous".into()],
        };
        let progress = Progress::Rate { version: IpVersion::V4, direction: Direction::Forward, point };
        let lines = [titles(&progress).unwrap(), interval_line(&progress).unwrap()];
        assert_eq!(
            lines,
            [
                "           seconds        rate        from        to          remarks",
                "IPv4 up    5.0            43.1 Mbit/s 41.2 Mbit/s 44.3 Mbit/s ambiguous"
            ]
        );
    }

    #[test]
    fn events_are_objects_that_name_themselves() {
        let value = event(&interval(None));
        assert_eq!(value["event"], "interval");
        assert_eq!(value["direction"], "reverse");
        assert_eq!(value["rate"], 123_456_789_012_u64);
    }
}
