//! One end of a UDP stream over all rounds together.
//!
//! Counts and times are added up, runs and histograms are merged entry by entry, and extremes are
//! those of all rounds. Means and standard deviations are those of all values together. What cannot
//! be had from summaries, which are percentiles and jitter, is that of the worst round: the figures
//! lean towards the round that was disturbed. What belongs to a stream that is not cut into rounds
//! (logged arrivals, bursts, bins that were asked for) is taken from the round that has it.

use std::collections::BTreeMap;

use netaware_probe::loss_split;
use netaware_record::{
    CpuUse, DelaySummary, GapSummary, Histogram, SendRefusal, UdpReceiverEnd, UdpSenderEnd,
};
use netaware_units::{ByteCount, Span};

use super::{sent_in, told};
use crate::report::worst;
use crate::transfer::UdpRound;

/// The sending end over the rounds that it reported; `None` where it reported none.
pub(super) fn sender(ends: &[&UdpSenderEnd]) -> Option<UdpSenderEnd> {
    let last = ends.last()?;
    Some(UdpSenderEnd {
        outcome: worst(ends.iter().map(|end| end.outcome)),
        elapsed: ends.iter().map(|end| end.elapsed).sum(),
        sent: added(ends, |end| end.sent),
        not_sent: added(ends, |end| end.not_sent),
        bytes: ByteCount(added(ends, |end| end.bytes.0)),
        late: added(ends, |end| end.late),
        worst_lateness: ends.iter().map(|end| end.worst_lateness).max().unwrap_or_default(),
        gaps: gaps(ends.iter().filter_map(|end| end.gaps.as_ref())),
        refusals: refusals(ends),
        released_by_queue: last.released_by_queue && ends.iter().all(|end| end.released_by_queue),
        calls: added(ends, |end| end.calls),
        cpu: busiest(ends.iter().filter_map(|end| end.cpu)),
    })
}

/// The receiving end over the rounds of which it told anything; `None` where there is none.
pub(super) fn receiver(rounds: &[&UdpRound]) -> Option<UdpReceiverEnd> {
    let ends: Vec<&UdpReceiverEnd> = rounds.iter().filter_map(|r| r.ended.udp_receiver.as_ref()).collect();
    let last = ends.last()?;
    let first = |has: fn(&UdpReceiverEnd) -> bool| ends.iter().find(|end| has(end)).unwrap_or(last);
    Some(UdpReceiverEnd {
        outcome: worst(ends.iter().map(|end| end.outcome)),
        elapsed: ends.iter().map(|end| end.elapsed).sum(),
        received: added(&ends, |end| end.received),
        bytes: ByteCount(added(&ends, |end| end.bytes.0)),
        duplicates: told(&ends, |end| end.duplicates),
        reordered: told(&ends, |end| end.reordered),
        reorder_extent: ends.iter().filter_map(|end| end.reorder_extent).max(),
        reorder_extents: counts(ends.iter().flat_map(|end| &end.reorder_extents)),
        highest: added(&ends, |end| end.highest),
        observed: observed(rounds),
        loss_runs: counts(ends.iter().flat_map(|end| &end.loss_runs)),
        gaps: gaps(ends.iter().filter_map(|end| end.gaps.as_ref())),
        histogram: histogram(ends.iter().filter_map(|end| end.histogram.as_ref())),
        bins: first(|end| end.bins.is_some()).bins.clone(),
        bursts: first(|end| end.bursts.is_some()).bursts,
        arrivals: first(|end| !end.arrivals.is_empty()).arrivals.clone(),
        unlogged: added(&ends, |end| end.unlogged),
        delay_variation: delays(ends.iter().filter_map(|end| end.delay_variation)),
        stood_still: ends.iter().filter_map(|end| end.stood_still).reduce(|sum, one| sum + one),
        drops: loss_split::sum(ends.iter().map(|end| end.drops)),
        foreign: told(&ends, |end| end.foreign),
        receive_buffer: ends.iter().filter_map(|end| end.receive_buffer).min(),
        jitter: ends.iter().filter_map(|end| end.jitter).max(),
        planned: last.planned,
        calls: told(&ends, |end| end.calls),
        cpu: busiest(ends.iter().filter_map(|end| end.cpu)),
    })
}

/// Where the receiver listened to the end in all rounds, it is not told how far that is.
fn observed(rounds: &[&UdpRound]) -> Option<u64> {
    let mut cut_short = false;
    let mut sum = 0_u64;
    for round in rounds {
        let Some(end) = &round.ended.udp_receiver else { continue };
        cut_short |= end.observed.is_some();
        sum = sum.saturating_add(end.observed.unwrap_or_else(|| sent_in(round)));
    }
    cut_short.then_some(sum)
}

fn added<T>(ends: &[&T], count: impl Fn(&T) -> u64) -> u64 {
    ends.iter().map(|end| count(end)).fold(0, u64::saturating_add)
}

/// How often each value occurred.
fn counts<'a>(all: impl Iterator<Item = &'a (u64, u64)>) -> Vec<(u64, u64)> {
    let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
    for (value, times) in all {
        let sum = sums.entry(*value).or_default();
        *sum = sum.saturating_add(*times);
    }
    sums.into_iter().collect()
}

/// One entry for each error, as in each round; its times are those of the rounds one behind the
/// other.
fn refusals(ends: &[&UdpSenderEnd]) -> Vec<SendRefusal> {
    let mut all: Vec<SendRefusal> = Vec::new();
    let mut before = Span::ZERO;
    for end in ends {
        for refusal in &end.refusals {
            let (first, last) = (before + refusal.first, before + refusal.last);
            match all.iter_mut().find(|known| known.cause == refusal.cause) {
                None => all.push(SendRefusal { first, last, ..refusal.clone() }),
                Some(known) => {
                    known.count = known.count.saturating_add(refusal.count);
                    known.not_sent = known.not_sent.saturating_add(refusal.not_sent);
                    known.last = last;
                }
            }
        }
        before += end.elapsed;
    }
    all
}

/// The round in which the host had the least to spare.
fn busiest(all: impl Iterator<Item = CpuUse>) -> Option<CpuUse> {
    let load = |cpu: &CpuUse| [cpu.busiest_thread, cpu.busiest_core, cpu.steal].map(|it| it.unwrap_or(0.0));
    all.max_by(|one, other| load(one).partial_cmp(&load(other)).unwrap_or(std::cmp::Ordering::Equal))
}

fn gaps<'a>(all: impl Iterator<Item = &'a GapSummary>) -> Option<GapSummary> {
    all.copied().reduce(|one, other| {
        let (mean_ns, sd_ns) =
            pooled((one.count, one.mean_ns, one.sd_ns), (other.count, other.mean_ns, other.sd_ns));
        GapSummary {
            planned: other.planned.or(one.planned),
            count: one.count.saturating_add(other.count),
            mean_ns,
            sd_ns,
            min: one.min.min(other.min),
            p1: one.p1.min(other.p1),
            p50: one.p50.max(other.p50),
            p99: one.p99.max(other.p99),
            p999: one.p999.max(other.p999),
            max: one.max.max(other.max),
        }
    })
}

fn delays(all: impl Iterator<Item = DelaySummary>) -> Option<DelaySummary> {
    let ns = |span: Span| span.nanos() as f64;
    let span = |ns: f64| Span::from_nanos(ns.round() as i64);
    all.reduce(|one, other| {
        let (mean, sd) = pooled(
            (one.count, ns(one.mean), one.sd.map(ns)),
            (other.count, ns(other.mean), other.sd.map(ns)),
        );
        DelaySummary {
            count: one.count.saturating_add(other.count),
            min: one.min.min(other.min),
            p50: one.p50.max(other.p50),
            p95: one.p95.max(other.p95),
            p99: one.p99.max(other.p99),
            p999: one.p999.max(other.p999),
            max: one.max.max(other.max),
            mean: span(mean),
            sd: sd.map(span),
        }
    })
}

/// Mean and sample standard deviation of two sets of values together, each given as its size, mean
/// and sample standard deviation, which one value alone does not have.
fn pooled(
    (n, mean, sd): (u64, f64, Option<f64>),
    (m, other_mean, other_sd): (u64, f64, Option<f64>),
) -> (f64, Option<f64>) {
    let (n, m) = (n as f64, m as f64);
    if n + m < 2.0 {
        return (if m > 0.0 { other_mean } else { mean }, None);
    }
    let squares_of =
        |count: f64, sd: Option<f64>| if count < 2.0 { Some(0.0) } else { Some(sd? * sd? * (count - 1.0)) };
    let step = other_mean - mean;
    let between = step * step * n * m / (n + m);
    let squares = squares_of(n, sd).zip(squares_of(m, other_sd)).map(|(one, other)| one + other + between);
    (mean + step * m / (n + m), squares.map(|squares| (squares / (n + m - 1.0)).sqrt()))
}

/// Histograms of the same bins; one with others is left out. Moments are not those of all values
/// and are left out where there are several.
fn histogram<'a>(all: impl Iterator<Item = &'a Histogram>) -> Option<Histogram> {
    let shape = |it: &Histogram| (it.digits, it.width, it.low);
    all.cloned().reduce(|one, other| {
        if shape(&one) != shape(&other) {
            return other;
        }
        Histogram {
            bins: counts(one.bins.iter().chain(&other.bins)),
            underflow: one.underflow.saturating_add(other.underflow),
            overflow: one.overflow.saturating_add(other.overflow),
            moments: None,
            ..one
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_two_rounds_have_the_mean_and_deviation_of_all_of_them() {
        // 1, 3 and 5, 7, 9: the mean of all is 5, the sum of squares about it 16 + 4 + 0 + 4 + 16.
        let (mean, sd) = pooled((2, 2.0, Some(2.0_f64.sqrt())), (3, 7.0, Some(2.0)));
        let sd = sd.unwrap();
        assert!((mean - 5.0).abs() < 1e-12 && (sd - 10.0_f64.sqrt()).abs() < 1e-12, "{mean} {sd}");
        // One value alone has no deviation, and two of them have one.
        assert_eq!(pooled((0, 0.0, None), (1, 7.0, None)), (7.0, None));
        assert_eq!(pooled((1, 5.0, None), (1, 7.0, None)), (6.0, Some(2.0_f64.sqrt())));
    }

    #[test]
    fn runs_and_refusals_of_two_rounds_are_counted_and_not_repeated() {
        assert_eq!(counts([(1, 3), (7, 1), (1, 2)].iter()), [(1, 5), (7, 1)]);
        let refusal = |count, first: i64, last: i64| SendRefusal {
            cause: "no".into(),
            count,
            not_sent: count,
            first: Span::from_secs(first),
            last: Span::from_secs(last),
        };
        let elapsed = Span::from_secs(3);
        let end = |refusal| UdpSenderEnd { refusals: vec![refusal], elapsed, ..UdpSenderEnd::default() };
        let (one, other) = (end(refusal(2, 1, 2)), end(refusal(3, 0, 1)));
        assert_eq!(sender(&[&one, &other]).unwrap().refusals, [refusal(5, 1, 4)]);
    }
}
