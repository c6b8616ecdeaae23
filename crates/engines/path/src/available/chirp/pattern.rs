//! One chirp: steps of rising rate, dense around the centre, each as long as the receiver's batches
//! need.

use netaware_units::Span;

use crate::available::sender::{SLOWEST, Sender};
use crate::{Gaps, Train};

/// Rates from low to high, bit/s: distances from the centre grow outwards by a factor.
pub(super) fn rates(centre: f64, reach: f64, fastest: f64) -> Vec<f64> {
    let sum: f64 = (0..SIDE).map(|step| GROWTH.powi(step)).sum();
    let unit = centre * reach / sum;
    let distance = |side: i32| (0..side).map(|step| unit * GROWTH.powi(step)).sum::<f64>();
    let rates = (-SIDE..=SIDE + UP).map(|side| {
        let distance = distance(side.abs());
        (if side < 0 { centre - distance } else { centre + distance }).max(SLOWEST).min(fastest)
    });
    let mut rates: Vec<f64> = rates.collect();
    rates.dedup_by(|a, b| *a <= *b * 1.001);
    rates
}

/// The plan of one chirp.
#[derive(Debug, Clone, Default)]
pub(super) struct Pattern {
    gaps: Vec<u64>,
    edges: Vec<u32>,
}

impl Pattern {
    /// Steps of `packets` at these rates, none of them shorter than `least` seconds.
    pub(super) fn new(rates: &[f64], sender: &Sender, packets: u32, least: f64) -> Self {
        let mut pattern = Self { gaps: Vec::new(), edges: vec![0] };
        for rate in rates {
            let gap = sender.bits() / rate.max(SLOWEST);
            let packets = (least / gap).ceil().max(f64::from(packets)).clamp(1.0, MOST_A_STEP) as usize;
            let room = (sender.longest as usize).saturating_sub(pattern.gaps.len() + 1);
            pattern.gaps.extend(std::iter::repeat_n((gap * 1e12).round() as u64, packets.min(room)));
            pattern.edges.push(u32::try_from(pattern.gaps.len()).unwrap_or(u32::MAX));
        }
        pattern.edges.dedup();
        pattern
    }

    pub(super) fn train(&self, sender: &Sender) -> Train {
        let packets = u32::try_from(self.gaps.len() + 1).unwrap_or(u32::MAX);
        Train { packets, length: sender.length, gaps: Gaps::Each(self.gaps.clone()), rest: Span::ZERO }
    }

    /// Numbers of the packets at which steps begin and end.
    pub(super) fn edges(&self) -> &[u32] {
        &self.edges
    }

    pub(super) fn lasts(&self) -> Span {
        let ps: u128 = self.gaps.iter().map(|gap| u128::from(*gap)).sum();
        Span(i64::try_from(ps / 1000).unwrap_or(i64::MAX))
    }
}

/// Steps on either side of the centre.
const SIDE: i32 = 6;
/// Further steps above: the filter learns the slope there.
const UP: i32 = 1;
/// Of the distances, outwards.
const GROWTH: f64 = 1.2;
/// No step has more packets.
const MOST_A_STEP: f64 = 20_000.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::available::fifo::instrument;

    #[test]
    fn rates_rise_and_are_densest_in_the_middle() {
        let rates = rates(50.0e6, 0.5, 1e9);
        assert!(rates.windows(2).all(|pair| pair[1] > pair[0]), "{rates:?}");
        assert!((rates[0] / 25e6 - 1.0).abs() < 1e-9 && (rates[6] / 50e6 - 1.0).abs() < 1e-9);
        assert!(rates[7] - rates[6] < rates[12] - rates[11]);
    }

    #[test]
    fn steps_have_batches_where_there_are_any() {
        let sender = Sender::new(&instrument(1e9));
        let plain = Pattern::new(&[1e8, 2e8], &sender, 1, 0.0);
        assert_eq!((plain.edges(), plain.train(&sender).packets), (&[0, 1, 2][..], 3));
        let batched = Pattern::new(&[1e8, 2e8], &sender, 1, 0.0006);
        assert_eq!(batched.edges(), [0, 5, 15]);
        assert_eq!(batched.lasts(), Span::from_micros(1200));
    }
}
