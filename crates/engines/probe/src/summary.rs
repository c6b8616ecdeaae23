//! Samples of delay as the result schema shows them.
//!
//! Order statistics are exact: type 7 of Hyndman and Fan over all samples, no histogram in between.
//! They lean low in the tail when samples are few; below 1000 the 99.9th percentile is given as the
//! largest sample, which says so plainly.

use netaware_record::{DelaySummary, DelayTail, Histogram, HistogramShape};
use netaware_stats::hist::DelayHistogram;
use netaware_stats::quantile::{Summary, linear};
use netaware_units::Span;

/// Order statistics of delays in any order; `None` without samples.
pub fn of_delays(delays: &[Span]) -> Option<DelaySummary> {
    let nanos: Vec<i64> = delays.iter().map(|delay| delay.nanos()).collect();
    let summary = Summary::of(&nanos)?;
    let span = |nanos: f64| Span::from_nanos(nanos.round() as i64);
    let max = span(summary.max);
    Some(DelaySummary {
        count: summary.count,
        min: span(summary.min),
        p50: span(summary.p50),
        p95: span(summary.p95),
        p99: span(summary.p99),
        p999: if summary.count < FEWEST_FOR_P999 { max } else { span(summary.p999) },
        max,
        mean: span(summary.mean),
        sd: summary.sd.map(span),
    })
}

/// The quantiles that need many samples, each from as many as it takes for one of them to lie above
/// it; `None` without samples.
pub fn tail_of(delays: &[Span]) -> Option<DelayTail> {
    if delays.is_empty() {
        return None;
    }
    let mut nanos: Vec<i64> = delays.iter().map(|delay| delay.nanos()).collect();
    nanos.sort_unstable();
    let from = |fewest: usize, q: f64| {
        let value = linear(&nanos, q).filter(|_| nanos.len() >= fewest)?;
        Some(Span::from_nanos(value.round() as i64))
    };
    Some(DelayTail { p90: from(10, 0.9), p9999: from(10_000, 0.9999), p99999: from(100_000, 0.99999) })
}

/// Histogram of delays in bins of equal width, with moments; `None` without samples, or for a shape
/// that cannot be.
pub fn bins_of(delays: &[Span], shape: HistogramShape) -> Option<Histogram> {
    let mut bins = shape.empty().filter(|_| !delays.is_empty())?;
    for delay in delays {
        bins.observe(delay.nanos());
    }
    Some(Histogram::from(&bins))
}

/// HDR histogram of delays, three digits; negative ones are counted as underflow, those above an
/// hour as overflow. `None` without samples.
pub fn histogram_of(delays: &[Span]) -> Option<Histogram> {
    if delays.is_empty() {
        return None;
    }
    let mut bins = DelayHistogram::new();
    let (mut underflow, mut overflow) = (0, 0);
    for delay in delays {
        match u64::try_from(delay.nanos()) {
            Err(_) => underflow += 1,
            Ok(nanos) if nanos > DelayHistogram::LONGEST_NS => overflow += 1,
            Ok(nanos) => bins.observe(nanos),
        }
    }
    Some(Histogram {
        bins: bins.lower_edges().collect(),
        digits: Some(3),
        underflow,
        overflow,
        ..Histogram::default()
    })
}

/// As the record's own documentation says.
const FEWEST_FOR_P999: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p999_of_few_samples_is_the_largest() {
        let delays: Vec<_> = (0..=998).map(Span::from_micros).collect();
        let few = of_delays(&delays).unwrap();
        assert_eq!((few.count, few.p999, few.p50), (999, few.max, Span::from_micros(499)));
        let delays: Vec<_> = (0..=1000).map(Span::from_micros).collect();
        let many = of_delays(&delays).unwrap();
        assert_eq!((many.p999, many.max), (Span::from_micros(999), Span::from_micros(1000)));
        assert_eq!(of_delays(&[]), None);
    }

    #[test]
    fn one_sample_alone_has_no_deviation_and_not_one_of_zero() {
        let sd = |delays: &[i64]| {
            of_delays(&delays.iter().copied().map(Span).collect::<Vec<_>>()).and_then(|of| of.sd)
        };
        assert_eq!((sd(&[21]), sd(&[21, 21]), sd(&[20, 22])), (None, Some(Span(0)), Some(Span(1))));
    }

    #[test]
    fn a_quantile_is_absent_below_the_samples_that_it_needs() {
        let delays = |count: i64| (0..count).map(Span::from_micros).collect::<Vec<_>>();
        let rows = [
            (9, [false, false, false]),
            (10, [true, false, false]),
            (9_999, [true, false, false]),
            (10_000, [true, true, false]),
            (100_000, [true, true, true]),
        ];
        for (count, want) in rows {
            let tail = tail_of(&delays(count)).unwrap();
            assert_eq!([tail.p90.is_some(), tail.p9999.is_some(), tail.p99999.is_some()], want, "{count}");
        }
        // Type 7 of 0..=100,000 us: the quantile q stands at q times the largest.
        let tail = tail_of(&delays(100_001)).unwrap();
        assert_eq!(tail.p90, Some(Span::from_micros(90_000)));
        assert_eq!(tail.p9999, Some(Span::from_micros(99_990)));
        assert_eq!(tail.p99999, Some(Span::from_micros(99_999)));
        assert_eq!(tail_of(&[]), None);
    }

    #[test]
    fn bins_hold_what_lies_in_them_and_count_the_rest() {
        let us = Span::from_micros;
        let shape = HistogramShape { low: us(110), width: us(1), bins: 10 };
        let delays = [109, 110, 110, 119, 120, 500].map(us);
        let found = bins_of(&delays, shape).unwrap();
        assert_eq!(found.bins, [(110_000, 2), (119_000, 1)]);
        assert_eq!((found.underflow, found.overflow, found.low), (1, 2, Some(us(110))));
        let moments = found.moments.unwrap();
        assert_eq!(moments.entries, 6);
        assert!((moments.mean - 1_068_000.0 / 6.0).abs() < 1e-6);
        assert!(
            bins_of(&[], shape).is_none() && bins_of(&delays, HistogramShape { bins: 0, ..shape }).is_none()
        );
    }

    #[test]
    fn histogram_accounts_for_every_sample() {
        let delays = [-1, 0, 5, 1_234_567, 1_234_568, i64::MAX].map(Span::from_nanos);
        let histogram = histogram_of(&delays).unwrap();
        assert_eq!((histogram.underflow, histogram.overflow), (1, 1));
        let (edges, counts): (Vec<_>, Vec<_>) = histogram.bins.iter().copied().unzip();
        assert_eq!(counts.iter().sum::<u64>(), 4);
        assert_eq!(edges, [0, 5, 1_233_920]);
    }

    #[test]
    fn a_thousand_samples_are_enough_for_a_999th_of_them() {
        let delays: Vec<_> = (0..1000).map(Span::from_micros).collect();
        let found = of_delays(&delays).unwrap();
        // Type 7: 0.999 of the way from 0 to 999 us.
        assert_eq!((found.p999, found.max), (Span(998_001), Span::from_micros(999)));
    }

    #[test]
    fn an_hour_is_the_longest_delay_that_has_a_bin() {
        let hour = DelayHistogram::LONGEST_NS as i64;
        let found = histogram_of(&[5, 5, 7].map(Span)).unwrap();
        let want = Histogram { bins: vec![(5, 2), (7, 1)], digits: Some(3), ..Histogram::default() };
        assert_eq!(found, want);
        let found = histogram_of(&[hour, hour + 1, hour + 2].map(Span)).unwrap();
        let held: u64 = found.bins.iter().map(|(_, count)| count).sum();
        assert_eq!((held, found.underflow, found.overflow), (1, 0, 2));
        assert!(histogram_of(&[]).is_none());
    }
}
