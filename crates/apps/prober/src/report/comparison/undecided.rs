//! Begins a verdict with what is not known, where that is why no version is preferred.
//!
//! **Assumes** nothing of the path: where the versions were measured only one after the other, or
//! a version had far unlike rates in two rounds, the difference between the versions may be a
//! change of the path. **Biased**: versions that do differ are not decided either in one round.

use netaware_record::{Comparison, Direction, Metric, MetricComparison, Preference, Use};
use netaware_units::BitRate;

use super::Pair;

/// Says first why the rates decide nothing about bulk transfers. `more` says what would decide.
pub(super) fn lead(pair: &Pair<'_>, comparison: &mut Comparison, more: Option<&str>) {
    if pair.v4.unreachable.is_some() || pair.v6.unreachable.is_some() {
        return;
    }
    let has_several = comparison.metrics.iter().any(|it| it.metric == Metric::TcpParallel);
    let wanted = if has_several { Metric::TcpParallel } else { Metric::TcpSingle };
    let of_way =
        |way: Direction| comparison.metrics.iter().find(move |it| (it.metric, it.direction) == (wanted, way));
    let rates: Vec<&MetricComparison> =
        [Direction::Reverse, Direction::Forward].into_iter().filter_map(of_way).collect();
    if rates.is_empty() || rates.iter().any(|it| it.favours != Preference::NoDifferenceShown) {
        return;
    }
    let Some(why) = changed(pair).or_else(|| one_after_the_other(pair, &rates, more)) else { return };
    let bulk = comparison.verdicts.iter_mut().find(|it| it.purpose == Use::Bulk);
    if let Some(verdict) = bulk.filter(|it| it.prefer == Preference::NoDifferenceShown) {
        verdict.because = why;
    }
}

/// The rates of single rounds are quoted, and not their mean, which is the rate of none.
fn changed(pair: &Pair<'_>) -> Option<String> {
    pair.changed().map(|why| format!("not decided: {why}"))
}

fn one_after_the_other(pair: &Pair<'_>, rates: &[&MetricComparison], more: Option<&str>) -> Option<String> {
    let why = rates.iter().find_map(|it| {
        let why = pair.one_after_the_other(it.metric, it.direction)?;
        (it.doubt.as_ref() == Some(&why)).then_some(why)
    })?;
    let of = |it: &&MetricComparison| {
        let [v4, v6] = [it.v4, it.v6].map(|rate| BitRate(rate.round() as u64));
        format!("{} {}: IPv4 {v4}, IPv6 {v6}", it.metric.name(), it.direction.name())
    };
    let seen: Vec<String> = rates.iter().map(of).collect();
    let more = more.map_or(String::new(), |more| format!("; {more}"));
    Some(format!("not decided: {why}{more}; seen were {}", seen.join("; ")))
}

#[cfg(test)]
mod tests {
    use netaware_record::{Interval, IpVersion, Verdict, VersionResult};
    use netaware_units::Mono;

    use super::super::super::{Findings, outages};
    use super::*;

    /// What is said of transfers of so many Mbit/s, begun at these seconds.
    fn said(v4: &[(u64, u64)], v6: &[(u64, u64)]) -> String {
        let found = |rounds: &[(u64, u64)]| {
            let tcp = rounds.iter().map(|(second, mbit)| {
                let mut round = outages::tests::transfer(&[*mbit; 20], outages::tests::run(60, 0..0));
                (round.order.direction, round.order.streams, round.load) = (Direction::Reverse, 4, None);
                round.ended.began_at = Some(Mono(second * 1_000_000_000));
                round
            });
            Findings { tcp: tcp.collect(), ..Findings::default() }
        };
        let (f4, f6) = (found(v4), found(v6));
        let [v4, v6] = [IpVersion::V4, IpVersion::V6].map(VersionResult::new);
        let pair = Pair { v4: &v4, v6: &v6, f4: &f4, f6: &f6 };
        let rate = MetricComparison {
            metric: Metric::TcpParallel,
            direction: Direction::Reverse,
            v4: 28.9e6,
            v6: 2.87e6,
            difference: Interval { estimate: -26.03e6, lo: -26.1e6, hi: -25.9e6, confidence: 0.95 },
            pairs: 5,
            rounds: 1,
            margin: 1e6,
            favours: Preference::NoDifferenceShown,
            host_limited: false,
            doubt: pair.one_after_the_other(Metric::TcpParallel, Direction::Reverse),
        };
        let verdict = Verdict {
            purpose: Use::Bulk,
            prefer: Preference::NoDifferenceShown,
            because: "the mean".to_owned(),
        };
        let mut comparison = Comparison { metrics: vec![rate], verdicts: vec![verdict] };
        lead(&pair, &mut comparison, Some("-t 24s gives 2 rounds"));
        comparison.verdicts.remove(0).because
    }

    /// A path that fell or rose between the turns: one version was preferred.
    #[test]
    fn rates_of_one_round_do_not_decide_and_the_verdict_begins_with_that() {
        for [first, second] in [[30, 3], [2, 20]] {
            let why = said(&[(0, first)], &[(10, second)]);
            assert!(why.starts_with("not decided: one round"), "{why}");
            let seen =
                "; -t 24s gives 2 rounds; seen were TCP, parallel streams down: IPv4 28.9 Mbit/s, IPv6";
            assert!(why.contains("the path may have changed") && why.contains(seen), "{why}");
        }
        assert_eq!(said(&[(0, 30), (30, 30)], &[(10, 3), (20, 3)]), "the mean", "in turns");
    }

    /// The mean of 28.9 and 2.85 Mbit/s was quoted, which is the rate of neither round.
    #[test]
    fn a_path_that_changed_has_both_levels_in_the_verdict_and_no_mean() {
        let why = said(&[(0, 20), (30, 1)], &[(10, 1), (20, 1)]);
        assert_eq!(
            why,
            "not decided: the path changed meanwhile: TCP down over IPv4 had 20.0 Mbit/s in one round and 1.00 Mbit/s in \
             another"
        );
    }
}
