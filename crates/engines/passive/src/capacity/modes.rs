//! The distance between the modes of the gaps.

use netaware_stats::modes::{ModeRules, modes};

use super::{Estimate, Gap};

/// The rate at which one full packet takes as long as two modes are apart; `None` where there are
/// no three modes at equal distances. `near` (bit/s) only sets the scale that modes are looked for
/// on.
pub(super) fn equally_spaced(gaps: &[Gap], near: f64) -> Option<Estimate> {
    let length = gaps.iter().map(|gap| gap.length).max()?;
    let scale = f64::from(length) * 8e9 / near;
    let full = gaps.iter().filter(|gap| gap.length == length && f64::from(gap.ns) < FURTHEST * scale);
    let mut sorted: Vec<f64> = full.map(|gap| f64::from(gap.ns)).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let rules = ModeRules { fewest: FEWEST.max(sorted.len() / 100), ..ModeRules::new(WIDTH * scale) };
    let found = modes(&sorted, &rules);
    let strongest = found.first()?.count;
    let mut centres: Vec<(f64, usize)> = Vec::new();
    for mode in found.iter().filter(|mode| mode.count * 12 > strongest) {
        centres.push((centre(&sorted, mode.lo, mode.hi), mode.count));
    }
    centres.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let distance = distance(&centres.iter().map(|(centre, _)| *centre).collect::<Vec<_>>())?;
    let samples = centres.iter().map(|(_, count)| *count as u64).sum();
    Some(Estimate { candidates: vec![f64::from(length) * 8e9 / distance], samples })
}

/// Median of the samples of a window.
fn centre(sorted: &[f64], lo: f64, hi: f64) -> f64 {
    let from = sorted.partition_point(|value| *value < lo);
    let until = sorted.partition_point(|value| *value <= hi);
    sorted[from + (until - from) / 2]
}

/// The step of at least three places that follow one another at equal steps, or miss one in
/// between.
fn distance(centres: &[f64]) -> Option<f64> {
    let steps: Vec<f64> = centres.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let step = steps.iter().copied().fold(f64::INFINITY, f64::min);
    if steps.len() < 2 {
        return None;
    }
    let mut whole = 0.0;
    for gap in &steps {
        let times = (gap / step).round();
        if (gap / step - times).abs() > UNEVEN * times || times > 2.0 {
            return None;
        }
        whole += times;
    }
    Some((centres[centres.len() - 1] - centres[0]) / whole)
}

/// Of the windows that modes are looked for in, relative to the time of a packet on the narrow
/// link.
const WIDTH: f64 = 0.08;

/// Gaps beyond so many packets' times are pauses.
const FURTHEST: f64 = 8.0;

/// Samples that a mode has at least.
const FEWEST: usize = 8;

/// How far one step may differ from the others, relative.
const UNEVEN: f64 = 0.12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_steps_are_a_distance() {
        let close =
            |found: Option<f64>, expected: f64| found.is_some_and(|found| (found - expected).abs() < 1e-9);
        assert!(close(distance(&[120.0, 240.0, 360.0]), 120.0));
        assert!(close(distance(&[60.0, 180.0, 420.0]), 120.0), "one is missing in between");
        for none in [&[][..], &[1.0], &[1.0, 2.0], &[100.0, 200.0, 270.0], &[100.0, 200.0, 600.0]] {
            assert_eq!(distance(none), None, "{none:?}");
        }
    }

    #[test]
    fn modes_at_equal_distances_tell_the_rate_though_the_first_is_off() {
        // The first gap is not a packet's time: the flow is paced. 1500 bytes at 100 Mbit/s are 120
        // us.
        let gaps: Vec<Gap> =
            (0..400_u32).map(|n| Gap { ns: 170_000 + n % 4 * 120_000 + n % 7 * 100, length: 1500 }).collect();
        let found = equally_spaced(&gaps, 6e7).unwrap();
        assert!((found.candidates[0] - 1e8).abs() < 1e6, "{found:?}");
    }

    #[test]
    fn one_mode_tells_no_distance() {
        let gaps: Vec<Gap> = (0..400).map(|n| Gap { ns: 120_000 + n, length: 1500 }).collect();
        assert_eq!(equally_spaced(&gaps, 1e8), None);
    }

    #[test]
    fn only_full_places_of_full_packets_tell_the_distance_and_all_of_them_count() {
        let place = |at: u32, count: u32| (0..count).map(move |n| Gap { ns: at + n % 5 * 100, length: 1500 });
        // A twelfth of the strongest place is too weak.
        for (weak, samples) in [(10, 360), (11, 371)] {
            let strong = [100_000, 220_000, 340_000].into_iter().flat_map(|at| place(at, 120));
            let mut gaps: Vec<Gap> = strong.chain(place(460_000, weak)).collect();
            // Shorter packets take less time, and eight packets' time is a pause.
            gaps.extend([Gap { ns: 160_000, length: 1400 }; 200]);
            gaps.extend([Gap { ns: 960_000, length: 1500 }; 30]);
            let want = Estimate { candidates: vec![1e8], samples };
            assert_eq!(equally_spaced(&gaps, 1e8), Some(want), "{weak} weak ones");
        }
    }

    #[test]
    fn the_centre_of_a_place_is_the_median_of_its_samples() {
        for (sorted, hi, want) in [
            (&[1.0, 2.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 90.0][..], 15.0, 13.0),
            (&[1.0, 2.0, 10.0, 11.0, 12.0, 13.0, 14.0, 90.0], 14.0, 12.0),
        ] {
            let found = centre(sorted, 10.0, hi);
            assert!((found - want).abs() < 1e-9, "{found} instead of {want}");
        }
    }

    #[test]
    fn a_step_that_misses_one_may_be_off_by_twice_as_much() {
        let found = distance(&[0.0, 100.0, 320.0]).unwrap();
        assert!((found - 320.0 / 3.0).abs() < 1e-9, "{found}");
        assert_eq!(distance(&[0.0, 100.0, 325.0]), None);
    }
}
