//! Samples of delay as the result schema shows them.
//!
//! Order statistics are exact: type 7 of Hyndman and Fan over all samples, no histogram in between. They lean low in the
//! tail when samples are few; below 1000 the 99.9th percentile is given as the largest sample, which says so plainly.

use netaware_record::{DelaySummary, Histogram};
use netaware_stats::hist::DelayHistogram;
use netaware_stats::quantile::Summary;
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
        sd: summary.sd.map_or(Span::ZERO, span),
    })
}

/// HDR histogram of delays, three digits; negative ones are counted as underflow, those above an hour as overflow.
/// `None` without samples.
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
    fn histogram_accounts_for_every_sample() {
        let delays = [-1, 0, 5, 1_234_567, 1_234_568, i64::MAX].map(Span::from_nanos);
        let histogram = histogram_of(&delays).unwrap();
        assert_eq!((histogram.underflow, histogram.overflow), (1, 1));
        let (edges, counts): (Vec<_>, Vec<_>) = histogram.bins.iter().copied().unzip();
        assert_eq!(counts.iter().sum::<u64>(), 4);
        assert_eq!(edges, [0, 5, 1_233_920]);
    }
}
