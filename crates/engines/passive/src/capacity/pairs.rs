//! Where the rates of neighbouring packets are densest.

use super::{Estimate, Gap};

/// The densest place, and others that are nearly as dense; `None` without gaps.
pub(super) fn densest(gaps: &[Gap]) -> Option<Estimate> {
    let mut rates: Vec<f64> = gaps.iter().map(|gap| gap.rate().ln()).collect();
    rates.sort_unstable_by(f64::total_cmp);
    let density = densities(&rates);
    let mut order: Vec<usize> = (0..rates.len()).collect();
    order.sort_unstable_by(|a, b| density[*b].total_cmp(&density[*a]));
    let best = density[*order.first()?];
    let mut peaks: Vec<f64> = Vec::new();
    for at in order {
        if density[at] < RIVAL * best || peaks.len() >= MOST_RIVALS {
            break;
        }
        if peaks.iter().all(|peak| (peak - rates[at]).abs() > APART) {
            peaks.push(rates[at]);
        }
    }
    let candidates = peaks.into_iter().map(|peak| middle(&rates, peak)).collect();
    Some(Estimate { candidates, samples: gaps.len() as u64 })
}

/// Of each value, by a triangular kernel over sorted values.
fn densities(sorted: &[f64]) -> Vec<f64> {
    let mut from = 0;
    let at = |(n, value): (usize, &f64)| {
        while value - sorted[from] > WIDTH {
            from += 1;
        }
        let left: f64 = sorted[from..n].iter().map(|other| 1.0 - (value - other) / WIDTH).sum();
        let right = sorted[n..].iter().take_while(|other| *other - value <= WIDTH);
        left + right.map(|other| 1.0 - (other - value) / WIDTH).sum::<f64>()
    };
    sorted.iter().enumerate().map(at).collect()
}

/// The median rate (bit/s) around a peak: steadier than the peak itself.
fn middle(sorted: &[f64], peak: f64) -> f64 {
    let from = sorted.partition_point(|value| *value < peak - WIDTH);
    let until = sorted.partition_point(|value| *value <= peak + WIDTH);
    sorted[from + (until - from) / 2].exp()
}

/// Half width of the kernel, relative to the rate: stamps of 1 us err by so much at 500 Mbit/s.
const WIDTH: f64 = 0.05;

/// Of the best density: what is denser than this is an answer too.
const RIVAL: f64 = 0.7;

/// Peaks nearer than this (relative) are one.
const APART: f64 = 0.15;

/// More than this, and there is no peak at all.
const MOST_RIVALS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(ns: u32) -> Gap {
        Gap { ns, length: 1500 }
    }

    #[test]
    fn the_densest_rate_wins_over_the_widest() {
        // 100 gaps around 120 us (100 Mbit/s), 300 spread from 200 us to 3.2 ms.
        let mut gaps: Vec<Gap> = (0..100).map(|n| gap(119_500 + n * 10)).collect();
        gaps.extend((0..300).map(|n| gap(200_000 + n * 10_000)));
        let found = densest(&gaps).unwrap();
        assert_eq!(found.candidates.len(), 1);
        assert!((found.candidates[0] - 1e8).abs() < 1e6, "{found:?}");
        assert_eq!(densest(&[]), None);
    }

    #[test]
    fn two_places_as_dense_are_two_answers() {
        let gaps: Vec<Gap> = (0..200).map(|n| gap(if n % 2 == 0 { 120_000 } else { 240_000 } + n)).collect();
        let found = densest(&gaps).unwrap();
        assert_eq!(found.candidates.len(), 2);
    }

    #[test]
    fn a_density_counts_neighbours_on_both_sides() {
        let found = densities(&[18.0, 18.02, 18.04, 19.0]);
        assert_eq!(found.len(), 4);
        for (found, want) in found.into_iter().zip([1.8, 2.2, 1.8, 1.0]) {
            assert!((found - want).abs() < 1e-9, "{found} instead of {want}");
        }
    }

    #[test]
    fn a_place_that_is_less_than_seven_tenths_as_dense_is_no_answer() {
        for (fewer, answers) in [(45, 2), (42, 2), (41, 1)] {
            let mut gaps = vec![gap(120_000); 60];
            gaps.resize(60 + fewer, gap(240_000));
            let found = densest(&gaps).unwrap();
            assert_eq!((found.candidates.len(), found.samples), (answers, gaps.len() as u64), "{fewer}");
            for (found, want) in found.candidates.into_iter().zip([1e8, 5e7]) {
                assert!((found / want - 1.0).abs() < 1e-9, "{found} instead of {want}");
            }
        }
    }

    #[test]
    fn no_more_than_eight_places_are_answers_and_near_ones_are_one() {
        let places = [100_000, 150_000, 225_000, 337_500, 506_250, 759_375, 1_139_063, 1_708_594, 2_562_891];
        let gaps: Vec<Gap> = places.iter().flat_map(|ns| [gap(*ns); 10]).collect();
        assert_eq!(densest(&gaps).unwrap().candidates.len(), MOST_RIVALS);
        let near: Vec<Gap> = [120_000, 132_000].iter().flat_map(|ns| [gap(*ns); 50]).collect();
        assert_eq!(densest(&near).unwrap().candidates.len(), 1);
    }

    #[test]
    fn the_middle_of_a_peak_is_the_median_of_what_is_near() {
        for (sorted, peak, want) in [
            (&[0.4, 0.5, 1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 1.2][..], 1.03, 1.03),
            (&[0.4, 0.5, 1.0, 1.01, 1.02, 1.2], 1.01, 1.01),
        ] {
            let found = middle(sorted, peak).ln();
            assert!((found - want).abs() < 1e-9, "{found} instead of {want}");
        }
    }

    #[test]
    fn a_rate_is_in_bits_per_second() {
        assert!((gap(120_000).rate() - 1e8).abs() < 1e-3);
    }
}
