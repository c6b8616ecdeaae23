//! Short bulks, where stamps are fine enough to count packets of cross traffic one by one.
//!
//! Three dispersions of each bulk: of one gap, of k and of 2k. The shortest has the best chance to
//! have met nothing and the largest error of the stamps, so a longer one replaces it only where
//! both agree. Of each, two views: the strongest cluster of the sixth that was delayed least, which
//! is the answer, and the fastest cluster of any weight at all. Where the latter is faster, packets
//! were pushed together behind the narrow link, or most were held apart, and the figure is called
//! ambiguous.

use netaware_stats::interval::Interval;
use netaware_stats::modes::clusters;
use netaware_stats::moments::Moments;
use netaware_stats::quantile::{linear, median};

use super::super::sample::Whole;
use super::Reading;
use super::growth::{Grown, difference_error};
use crate::{Instrument, VolleyReport};

/// All bulks so far.
#[derive(Debug, Clone)]
pub(super) struct Bulks {
    length: u32,
    /// Standard deviation of the difference of two stamps, ns.
    error: f64,
    /// Packets of the dispersions that are looked at, rising.
    steps: [usize; 3],
    packets: u32,
    samples: [Vec<Sample>; 3],
    /// Rate of the longest train, bit/s; no capacity is below it.
    floor: f64,
}

/// One dispersion.
#[derive(Debug, Clone, Copy)]
struct Sample {
    /// ns per packet.
    gap: f64,
    /// The same at the sender.
    sent_gap: f64,
    /// Delays of the first and the last packet above the least of the volley, ns.
    delay: f64,
}

/// What dispersions of one length say.
#[derive(Debug, Clone, Copy)]
struct View {
    /// Of what was delayed least, ns per packet.
    gap: f64,
    /// Standard error of `gap`.
    error: f64,
    /// Of the least delayed, those that gather there.
    share: f64,
    /// The same as a count.
    weight: usize,
    /// Fastest cluster of all.
    fast: f64,
    /// Median of all.
    middle: f64,
    /// Stamps explain the spread of all.
    quiet: bool,
    /// Width of a cluster, ns per packet.
    width: f64,
    /// Of what was delayed least, another cluster that is nearly as strong, ns per packet.
    rival: Option<f64>,
}

impl Bulks {
    pub(super) fn new(instrument: &Instrument, grown: &Grown) -> Self {
        let error = difference_error(instrument);
        let most = u32::try_from(instrument.largest_burst / u64::from(instrument.largest.max(1)));
        let step = (STAMPS * error / grown.distance).ceil().clamp(1.0, 4.0) as u32;
        let step = step.min(most.unwrap_or(u32::MAX) / 2).max(1);
        Self {
            length: instrument.largest,
            error,
            steps: [1, step as usize, 2 * step as usize],
            packets: 2 * step + 1,
            samples: [Vec::new(), Vec::new(), Vec::new()],
            floor: grown.long.rate,
        }
    }

    pub(super) const fn packets(&self) -> u32 {
        self.packets
    }

    pub(super) fn take(&mut self, report: &VolleyReport) {
        let whole: Vec<Whole<'_>> = report.trains.iter().filter_map(Whole::of).collect();
        for (step, samples) in self.steps.iter().zip(&mut self.samples) {
            let before = samples.len();
            samples.extend(whole.iter().filter_map(|train| sample(train, *step)));
            above_the_least(&mut samples[before..]);
        }
    }

    pub(super) fn reading(&self) -> Option<Reading> {
        let views = [0, 1, 2].map(|n| self.view(n));
        let [one, few, many] = [views[0]?, views[1]?, views[2]?];
        let mut best = one;
        for longer in [few, many] {
            let error = (best.error / best.gap).hypot(longer.error / longer.gap);
            let agree = (longer.gap / best.gap - 1.0).abs() <= 0.005 + 3.0 * error;
            if agree && (longer.quiet || longer.error / longer.gap < best.error / best.gap) {
                best = View { fast: best.fast, ..longer };
            }
        }
        let quiet = best.quiet && many.quiet;
        let weak = !quiet && best.share < STRONG;
        let below_floor = f64::from(self.length) * 8e9 / best.gap < self.floor * (1.0 - DIFFER);
        let faster = one.fast < one.gap * (1.0 - DIFFER) - 3.0 * one.error;
        // Traffic that spreads the bulks slows a long train, unless it is in all of the bulks as
        // well.
        let is_floor = f64::from(self.length) * 8e9 / best.gap < self.floor * (1.0 + DIFFER);
        let rivalled = best.rival.is_some() || one.rival.is_some();
        // Longer bulks that all come alike, but slower: traffic in step with them.
        let is_slower = |longer: &View| longer.share > MOST && longer.gap > best.gap * (1.0 + DIFFER);
        let in_step = [few, many].iter().any(is_slower);
        let contested = rivalled || is_floor || in_step || best.weight < FEWEST;
        let disturbed = faster || contested || self.some_come_together(one.middle);
        let contradicted = below_floor || (!quiet && disturbed);
        Some(self.judged(&best, &one, quiet, weak, contradicted))
    }

    fn judged(&self, best: &View, one: &View, quiet: bool, weak: bool, contradicted: bool) -> Reading {
        let bits = f64::from(self.length) * 8e9;
        let estimate = bits / best.gap;
        let slack = if quiet { 0.002 } else { 0.002 + best.width / 8.0 / best.gap };
        let half = estimate * (2.0 * best.error / best.gap + slack);
        let mut rate = Interval { estimate, lo: estimate - half, hi: estimate + half, confidence: 0.95 };
        if weak {
            rate = rate.widened_to((bits / best.middle * 0.98).min(rate.lo), rate.hi);
        }
        let (weak, rate_floor) =
            if estimate < self.floor * (1.0 - DIFFER) { (true, self.floor) } else { (weak, 0.0) };
        if contradicted {
            let slow = if best.middle > best.gap { bits / best.middle } else { rate.lo };
            rate = rate.widened_to(slow, (bits / one.fast).max(rate_floor) * 1.01);
            for rival in [best.rival, one.rival].into_iter().flatten() {
                rate = rate.widened_to(bits / rival * 0.99, bits / rival * 1.01);
            }
        }
        let is_host = self.is_host();
        Reading { rate, is_quiet: quiet, is_bound: weak, is_host, is_ambiguous: contradicted }
    }

    /// Pairs at a distance that no link makes: the host hands over in batches, though too seldom to
    /// be called that.
    fn some_come_together(&self, middle: f64) -> bool {
        let together = self.samples[0].iter().filter(|sample| sample.gap < middle / 20.0).count();
        together * 100 > self.samples[0].len()
    }

    fn is_host(&self) -> bool {
        let of = |of: fn(&Sample) -> f64| median(&self.samples[2].iter().map(of).collect::<Vec<_>>());
        match (of(|sample| sample.sent_gap), of(|sample| sample.gap)) {
            (Some(sent), Some(came)) => sent > came * 0.97,
            _ => false,
        }
    }

    fn view(&self, which: usize) -> Option<View> {
        let samples = &self.samples[which];
        if samples.len() < FEWEST {
            return None;
        }
        let noise = self.error / self.steps[which] as f64;
        let all = sorted(samples.iter().map(|sample| sample.gap));
        let middle = linear(&all, 0.5)?;
        let spread = (linear(&all, 0.84)? - linear(&all, 0.16)?) / 2.0;
        let wide = (linear(&all, 0.97)? - linear(&all, 0.03)?) / 3.8;
        let allowed = 1.3 * noise + 0.003 * middle;
        if spread <= allowed && wide <= allowed {
            let core = &all[all.len() / 10..all.len() - all.len() / 10];
            let gap = core.iter().sum::<f64>() / core.len() as f64;
            let error = spread / (all.len() as f64).sqrt();
            return Some(View {
                gap,
                error,
                share: 1.0,
                weight: all.len(),
                fast: gap,
                middle,
                quiet: true,
                width: 4.0 * noise,
                rival: None,
            });
        }
        let width = 4.0 * noise + 0.01 * middle;
        let least = least_delayed(samples);
        let fast = gathered(&all, width, Pick::Fastest)?.0.min(gathered(&least, width, Pick::Fastest)?.0);
        let (gap, error, share) = gathered(&least, width, Pick::Strongest)?;
        let rival = rival(&least, width, gap);
        let weight = (share * least.len() as f64).round() as usize;
        Some(View { gap, error, share, weight, fast, middle, quiet: false, width, rival })
    }
}

/// Which cluster counts.
#[derive(Debug, Clone, Copy)]
enum Pick {
    Strongest,
    Fastest,
}

/// The strongest cluster, or the fastest that has a quarter of its weight: mean, its standard
/// error, and share.
fn gathered(sorted: &[f64], width: f64, pick: Pick) -> Option<(f64, f64, f64)> {
    let found = clusters(sorted, width, 40);
    let strongest = found.first()?.len();
    let least = (strongest as f64 / 4.0).max(4.0).min(strongest as f64);
    let heavy = found.iter().filter(|w| w.len() as f64 >= least);
    let window = match pick {
        Pick::Fastest => heavy.min_by_key(|window| window.start)?,
        Pick::Strongest => found.first()?,
    };
    let inside: Moments = sorted[window.clone()].iter().copied().collect();
    let count = window.len() as f64;
    Some((inside.mean()?, inside.sd().unwrap_or(0.0) / count.sqrt(), count / sorted.len() as f64))
}

/// A cluster elsewhere that has more than half the weight of the strongest.
fn rival(sorted: &[f64], width: f64, strongest: f64) -> Option<f64> {
    let found = clusters(sorted, width, 40);
    let least = found.first()?.len() / 2;
    let middle = |window: &std::ops::Range<usize>| {
        let inside = &sorted[window.clone()];
        inside.iter().sum::<f64>() / inside.len().max(1) as f64
    };
    let heavy = found.iter().skip(1).filter(|window| window.len() > least).map(middle);
    heavy.filter(|gap| (gap / strongest - 1.0).abs() > DIFFER).max_by(|a, b| {
        let apart = |gap: &f64| (gap / strongest).ln().abs();
        apart(a).total_cmp(&apart(b))
    })
}

fn sample(whole: &Whole<'_>, n: usize) -> Option<Sample> {
    let packets = n as f64;
    Some(Sample {
        gap: whole.dispersion(n)? / packets,
        sent_gap: whole.sending(n)? / packets,
        delay: whole.delay_sum(n)?,
    })
}

fn above_the_least(samples: &mut [Sample]) {
    let least = samples.iter().map(|sample| sample.delay).fold(f64::INFINITY, f64::min);
    for sample in samples {
        sample.delay -= least;
    }
}

/// Gaps of the sixth of the samples that were delayed least, but of 24 at least, sorted.
fn least_delayed(samples: &[Sample]) -> Vec<f64> {
    let mut by_delay = samples.to_vec();
    by_delay.sort_unstable_by(|a, b| a.delay.total_cmp(&b.delay));
    by_delay.truncate((samples.len() / 6).max(24));
    sorted(by_delay.iter().map(|sample| sample.gap))
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// A bulk lasts so many stamp errors: 3 % for one of them, 0.4 % for sixty.
const STAMPS: f64 = 34.0;
/// A cluster that holds this share of what was least delayed is no accident.
const STRONG: f64 = 0.12;
/// And one that holds this much is nearly all.
const MOST: f64 = 0.6;
/// Clusters this far apart are two.
const DIFFER: f64 = 0.03;
/// Fewer samples are no cluster, and none to be sure of.
const FEWEST: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn bulks(floor: f64, samples: [Vec<Sample>; 3]) -> Bulks {
        Bulks { length: 1500, error: 0.0, steps: [1, 1, 1], packets: 3, samples, floor }
    }

    fn dispersion(gap: f64, sent_gap: f64) -> Sample {
        Sample { gap, sent_gap, delay: 0.0 }
    }

    /// Packets of 1500 bytes come 120 us apart: 100 Mbit/s.
    const VIEW: View = View {
        gap: 120_000.0,
        error: 1_200.0,
        share: 1.0,
        weight: 20,
        fast: 120_000.0,
        middle: 150_000.0,
        quiet: false,
        width: 9_600.0,
        rival: None,
    };

    #[test]
    fn an_interval_holds_all_that_bulks_may_mean() {
        let fast = View { fast: 100_000.0, ..VIEW };
        let near = View { middle: 110_000.0, ..VIEW };
        let rivalled = View { rival: Some(200_000.0), ..VIEW };
        let rival = View { rival: Some(80_000.0), ..fast };
        // Best and shortest view, quiet, weak, contradicted, floor; ends in Mbit/s, whether it is a
        // bound.
        let rows = [
            // Two errors of 1 %, an eighth of the width of 8 %, and 0.2 %.
            (VIEW, fast, [false, false, false], 0.0, [96.8, 103.2], false),
            (VIEW, fast, [true, false, false], 0.0, [97.8, 102.2], false),
            // The median of all bulks, less 2 %.
            (VIEW, fast, [false, true, false], 0.0, [78.4, 103.2], true),
            // From the median of all to the fastest, and 1 %.
            (VIEW, fast, [false, false, true], 0.0, [80.0, 121.2], false),
            (near, fast, [false, false, true], 0.0, [96.8, 121.2], false),
            (rivalled, rival, [false, false, true], 0.0, [59.4, 151.5], false),
            // A long train was faster than that.
            (VIEW, VIEW, [false, false, true], 110e6, [80.0, 111.1], true),
            (VIEW, fast, [false, false, false], 110e6, [96.8, 103.2], true),
        ];
        for (row, (best, one, [quiet, weak, contradicted], floor, ends, is_bound)) in
            rows.into_iter().enumerate()
        {
            let bulks = bulks(floor, [Vec::new(), Vec::new(), Vec::new()]);
            let told = bulks.judged(&best, &one, quiet, weak, contradicted);
            let rate = [told.rate.estimate, told.rate.lo, told.rate.hi].map(|rate| rate / 1e6);
            let is_near = rate.iter().zip([100.0, ends[0], ends[1]]).all(|(a, b)| (a - b).abs() < 1e-6);
            assert!(is_near, "row {row}: {told:?}");
            let rate = told.rate;
            let want =
                Reading { rate, is_quiet: quiet, is_bound, is_host: false, is_ambiguous: contradicted };
            assert_eq!((told, rate.confidence.to_bits()), (want, 0.95_f64.to_bits()), "row {row}");
        }
    }

    #[test]
    fn bulks_that_come_as_they_were_sent_are_the_hosts() {
        let is_host =
            |sent: f64| bulks(0.0, [Vec::new(), Vec::new(), vec![dispersion(100.0, sent); 3]]).is_host();
        assert_eq!([90.0, 97.0, 97.1].map(is_host), [false, false, true]);
    }

    #[test]
    fn a_cluster_that_is_faster_or_a_long_train_that_is_not_slower_makes_it_ambiguous() {
        // Sixteen around 100 us (sd 206.6 ns, mean known to 51.6), five that are faster, three far
        // off.
        let reading = |fast: f64, floor: f64| {
            let mut gaps = [99_800.0, 100_200.0].repeat(8);
            gaps.extend([&[fast; 5][..], &[130_000.0; 3][..]].concat());
            let samples: Vec<Sample> = gaps.into_iter().map(|gap| dispersion(gap, 1.0)).collect();
            let told = bulks(floor, [samples.clone(), samples.clone(), samples]).reading().unwrap();
            assert!((told.rate.estimate / 1.2e8 - 1.0).abs() < 1e-9 && !told.is_quiet, "{told:?}");
            (told.is_ambiguous, told.is_bound)
        };
        // Three per cent and three errors are 96,845.
        assert_eq!(reading(96_800.0, 0.0), (true, false));
        assert_eq!(reading(96_900.0, 0.0), (false, false));
        // 120 Mbit/s are three per cent above 116.5, and as much below 123.7.
        assert_eq!(reading(96_900.0, 1.16e8), (false, false));
        assert_eq!(reading(96_900.0, 1.17e8), (true, false));
        assert_eq!(reading(96_900.0, 1.23e8), (true, false));
        assert_eq!(reading(96_900.0, 1.24e8), (true, true));
    }

    /// Dispersions of each length, half of them so far below 120 us and half so far above, ns.
    /// Stamps err by 100 ns.
    fn two_places(apart: f64, count: usize) -> Bulks {
        let gaps = [vec![120_000.0 - apart; count / 2], vec![120_000.0 + apart; count - count / 2]].concat();
        let samples: Vec<Sample> = gaps.into_iter().map(|gap| dispersion(gap, 1.0)).collect();
        let samples = [samples.clone(), samples.clone(), samples];
        Bulks { error: 100.0, steps: [1, 2, 4], ..bulks(0.0, samples) }
    }

    #[test]
    fn dispersions_that_only_stamps_spread_have_clusters_as_wide_as_four_errors_of_a_packet() {
        let of = two_places(100.0, 20);
        for (which, width) in [(0, 400.0), (1, 200.0), (2, 100.0)] {
            let view = of.view(which).unwrap();
            // The deviation is 100 of twenty.
            let pairs = [
                (view.width, width),
                (view.gap, 120_000.0),
                (view.error, 100.0 / 20_f64.sqrt()),
                (view.share, 1.0),
                (view.fast, 120_000.0),
                (view.middle, 120_000.0),
            ];
            assert!(pairs.iter().all(|(found, want)| (found - want).abs() < 1e-6), "{view:?}");
            assert_eq!((view.quiet, view.weight, view.rival), (true, 20, None));
        }
    }

    #[test]
    fn dispersions_are_quiet_up_to_the_errors_of_stamps_and_three_thousandths() {
        // 1.3 errors are 130, 65 and 32.5 per packet; 0.3 % of 120 us are 360.
        let is_quiet = |(apart, which): (f64, usize)| two_places(apart, 20).view(which).unwrap().quiet;
        let rows = [(489.0, 0), (491.0, 0), (424.0, 1), (426.0, 1), (392.0, 2), (393.0, 2)];
        assert_eq!(rows.map(is_quiet), [true, false, true, false, true, false]);
    }

    #[test]
    fn seven_dispersions_are_no_view() {
        assert!(two_places(0.0, 7).view(0).is_none() && two_places(0.0, 8).view(0).is_some());
    }

    #[test]
    fn packets_come_together_if_more_than_one_of_a_hundred_is_within_a_twentieth_of_the_distance() {
        let together = |(gap, count): (f64, usize)| {
            let samples = [vec![dispersion(120_000.0, 1.0); 300 - count], vec![dispersion(gap, 1.0); count]];
            bulks(0.0, [samples.concat(), Vec::new(), Vec::new()]).some_come_together(120_000.0)
        };
        let rows = [(5_999.0, 3), (5_999.0, 4), (6_000.0, 4)];
        assert_eq!(rows.map(together), [false, true, false]);
    }

    #[test]
    fn delays_are_told_above_the_least_and_the_least_delayed_are_a_sixth_but_at_least_24() {
        let delayed = |number: u32| Sample { delay: f64::from(number) - 50.0, ..dispersion(7.0, 1.0) };
        let mut samples: Vec<Sample> = (0..6 * 30).map(delayed).collect();
        above_the_least(&mut samples);
        assert!(samples[0].delay.abs() < 1e-9 && (samples[9].delay - 9.0).abs() < 1e-9);
        let counts = [10, 100, 150, 180].map(|count: usize| least_delayed(&samples[..count]).len());
        assert_eq!(counts, [10, 24, 25, 30]);
    }
}
