//! How flat a rate is.

use netaware_record::ReceiverTick;
use netaware_stats::moments::Moments;
use netaware_units::Span;

/// Coefficient of variation (sd over mean) of the rate in slices, or in groups of 2, 4 or 8 slices
/// if that is smaller and leaves enough groups: bytes that a late wake-up moves from one slice to
/// the next cancel within a group. `None` with too few slices to tell, or when nothing arrived.
///
/// Bias: reads low for independent noise, which groups average away as well (by up to 2.8 for
/// groups of 8).
pub fn flatness(ticks: &[ReceiverTick]) -> Option<f64> {
    let longest = ticks.iter().map(|tick| tick.length).max()?;
    let full: Vec<(f64, f64)> = ticks
        .iter()
        .filter(|tick| tick.length * 2 >= longest && tick.length > Span::ZERO)
        .map(|tick| (tick.bytes.0 as f64, tick.length.secs_f64()))
        .collect();
    [1, 2, 4, 8].into_iter().filter_map(|group| variation(&full, group)).reduce(f64::min)
}

fn variation(slices: &[(f64, f64)], group: usize) -> Option<f64> {
    let groups = slices.chunks_exact(group);
    if groups.len() < FEWEST_GROUPS {
        return None;
    }
    let rate = |group: &[(f64, f64)]| {
        let (bytes, time) = group.iter().fold((0.0, 0.0), |sum, slice| (sum.0 + slice.0, sum.1 + slice.1));
        bytes / time
    };
    let rates: Moments = groups.map(rate).collect();
    let mean = rates.mean().filter(|mean| *mean > 0.0)?;
    Some(rates.sd()? / mean)
}

/// The deviation of five values is off by a third either way, which still tells 1 % from 5 %.
const FEWEST_GROUPS: usize = 5;

#[cfg(test)]
mod tests {
    use netaware_units::ByteCount;

    use super::*;

    fn ticks(bytes: impl IntoIterator<Item = u64>) -> Vec<ReceiverTick> {
        let length = Span::from_millis(100);
        let tick = |bytes| ReceiverTick { length, bytes: ByteCount(bytes), ..ReceiverTick::default() };
        bytes.into_iter().map(tick).collect()
    }

    #[test]
    fn late_wake_ups_do_not_unflatten_a_shaped_rate() {
        let shaped = ticks((0..40).map(|n| if n % 2 == 0 { 480_000 } else { 520_000 }));
        assert!(flatness(&shaped).unwrap() < 0.001);
        let rough = ticks((0..40).map(|n| 500_000 + (n * 7919 % 13) * 20_000));
        assert!(flatness(&rough).unwrap() > 0.015);
    }

    #[test]
    fn too_little_is_not_flat() {
        assert_eq!(flatness(&ticks([1, 1, 1, 1])), None);
        assert_eq!(flatness(&ticks([0; 20])), None);
        assert_eq!(flatness(&[]), None);
        assert_eq!(flatness(&ticks([5; 5])), Some(0.0));
    }

    /// Slices of so many bytes and milliseconds.
    fn slices(of: &[(u64, i64)]) -> Vec<ReceiverTick> {
        let tick = |(bytes, millis): &(u64, i64)| ReceiverTick {
            length: Span::from_millis(*millis),
            bytes: ByteCount(*bytes),
            ..ReceiverTick::default()
        };
        of.iter().map(tick).collect()
    }

    #[test]
    fn flatness_is_the_deviation_of_full_slices_over_their_mean() {
        // Of 6, 2, 6, 2 and 4 B/s the mean is 4 and the deviation 2; the short slice does not
        // count.
        let found = flatness(&slices(&[(6, 1000), (2, 1000), (6, 1000), (2, 1000), (4, 1000), (900, 400)]));
        assert!((found.unwrap() - 0.5).abs() < 1e-12, "{found:?}");
        // It is the rates that are compared, not the bytes.
        let of_two_lengths = slices(&[(500, 100), (250, 50), (500, 100), (250, 50), (500, 100), (250, 50)]);
        assert_eq!(flatness(&of_two_lengths), Some(0.0));
        assert_eq!(flatness(&slices(&[(9, 0); 5])), None, "no time has passed");
    }
}
