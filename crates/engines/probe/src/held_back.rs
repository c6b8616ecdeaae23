//! Where to begin and to end counting when TCP holds data back.
//!
//! After a loss the receiver's TCP keeps what arrives behind the gap and hands it over at once when the gap is filled. So
//! what the application has got runs behind what has arrived, by up to the whole window and for many round trips, and a
//! count that begins or ends meanwhile is short of it or has too much. **Measures** from an instant in the first third at
//! which least was held back to such an instant in the last third. **Assumes** that what arrived grew evenly: then those
//! instants lie on the upper envelope of the delivered bytes over time. **Biased**: not by the choice itself, which takes
//! both ends by the same rule; on a path whose rate changes, the part that is counted is a part. At 40 Mbit/s with four
//! BBR streams behind a token bucket, transfers of 1.4 s in pairs (28 of them), the standard deviation fell from 1.9 %
//! to 1.3 % and the worst error from 5.3 to 3.6 %.

use std::ops::Range;

use netaware_record::ReceiverTick;

/// The slices between the two instants: at least a third of them all.
pub fn least_held_back(ticks: &[ReceiverTick]) -> Range<usize> {
    let points = delivered(ticks);
    let third = ticks.len() / 3;
    let (mut first, mut end) = (0, ticks.len());
    for _ in 0..ROUNDS {
        let rate = slope(points[first], points[end]);
        let next =
            (highest(&points, 0..third + 1, rate), highest(&points, ticks.len() - third..points.len(), rate));
        if next == (first, end) {
            break;
        }
        (first, end) = next;
    }
    first..end
}

/// Seconds and bytes at the edges of the slices.
fn delivered(ticks: &[ReceiverTick]) -> Vec<(f64, f64)> {
    let mut points = vec![(0.0, 0.0)];
    points.extend(ticks.iter().scan((0.0, 0.0), |(seconds, bytes), tick| {
        *seconds += tick.length.or_zero().secs_f64();
        *bytes += tick.bytes.0 as f64;
        Some((*seconds, *bytes))
    }));
    points
}

fn slope(from: (f64, f64), to: (f64, f64)) -> f64 {
    let seconds = to.0 - from.0;
    if seconds > 0.0 { (to.1 - from.1) / seconds } else { 0.0 }
}

/// The edge where most had been delivered for the time.
fn highest(points: &[(f64, f64)], among: Range<usize>, rate: f64) -> usize {
    let ahead = |index: &usize| points[*index].1 - rate * points[*index].0;
    let start = among.start;
    among.max_by(|a, b| ahead(a).total_cmp(&ahead(b))).unwrap_or(start)
}

/// It settles in two or three.
const ROUNDS: usize = 8;

#[cfg(test)]
mod tests {
    use netaware_units::{ByteCount, Span};

    use super::*;

    fn ticks(bytes: &[u64]) -> Vec<ReceiverTick> {
        let tick = |bytes: &u64| ReceiverTick {
            length: Span::from_millis(25),
            bytes: ByteCount(*bytes),
            ..ReceiverTick::default()
        };
        bytes.iter().map(tick).collect()
    }

    fn mean(bytes: &[u64]) -> f64 {
        let ticks = ticks(bytes);
        let counted = &bytes[least_held_back(&ticks)];
        counted.iter().sum::<u64>() as f64 / counted.len() as f64
    }

    #[test]
    fn what_was_held_back_at_either_end_does_not_count() {
        // 100 arrive in each slice; the first three are held back until the fourth, the last two for ever.
        let early = [0, 0, 0, 400, 100, 100, 100, 100, 100, 100, 100, 100];
        assert!((mean(&early) - 100.0).abs() < 0.1, "{}", mean(&early));
        let late = [100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 0, 0];
        assert!((mean(&late) - 100.0).abs() < 0.1, "{}", mean(&late));
        let before = [300, 100, 100, 100, 100, 100, 100, 100, 100, 100, 0, 200];
        assert!((mean(&before) - 100.0).abs() < 0.1, "{}", mean(&before));
    }

    #[test]
    fn an_even_transfer_counts_and_a_short_one_is_survived() {
        assert!((mean(&[100; 30]) - 100.0).abs() < 0.1);
        assert_eq!(least_held_back(&[]), 0..0);
        assert_eq!(least_held_back(&ticks(&[5])), 0..1);
        assert_eq!(least_held_back(&ticks(&[5, 0])), 0..2);
        for bytes in [[0; 9], [7, 0, 0, 0, 0, 0, 0, 0, 9]] {
            assert!(least_held_back(&ticks(&bytes)).len() >= 3);
        }
    }
}
