//! What the verdict for bulk transfers says of rates that one round, or a path that changed, leaves
//! open.
//!
//! **Assumes** that two rounds in turns (A B B A) tell a change of the path from a difference of
//! the versions, and that one does not. **Biased** towards "not decided" for versions that do
//! differ, where a round was short.

use netaware_record::{Comparison, Direction, Metric, MetricComparison, Preference, Use};
use netaware_units::BitRate;

use super::Pair;

/// Begins the verdict with why nothing is decided, and ends it with what would decide, which is
/// `more`.
pub(super) fn complete(pair: &Pair<'_>, comparison: &mut Comparison, more: Option<&str>) {
    if pair.v4.unreachable.is_some() || pair.v6.unreachable.is_some() {
        return;
    }
    let Comparison { metrics, verdicts } = comparison;
    let Some(verdict) = verdicts.iter_mut().find(|it| it.purpose == Use::Bulk) else { return };
    let has_several = metrics.iter().any(|it| it.metric == Metric::TcpParallel);
    let wanted = if has_several { Metric::TcpParallel } else { Metric::TcpSingle };
    let of_way = |way: Direction| metrics.iter().find(move |it| (it.metric, it.direction) == (wanted, way));
    let rates: Vec<&MetricComparison> =
        [Direction::Reverse, Direction::Forward].into_iter().filter_map(of_way).collect();
    let more = more.map_or(String::new(), |more| format!("; {more}"));
    if verdict.prefer == Preference::NoDifferenceShown {
        let is_decided = rates.iter().any(|it| it.favours != Preference::NoDifferenceShown);
        if let Some(why) = changed(pair).or_else(|| too_short(pair, &rates, &more)).filter(|_| !is_decided) {
            verdict.because = why;
        }
    } else if rates.iter().any(|it| it.favours == verdict.prefer && it.rounds < 2) {
        verdict.because.push_str(&more);
    }
}

/// The rates of single rounds are quoted, and not their mean, which is the rate of none.
fn changed(pair: &Pair<'_>) -> Option<String> {
    pair.changed().map(|why| format!("not decided: {why}"))
}

/// That one round was not enough for a difference that it showed: what the path did casts no doubt
/// on it.
fn too_short(pair: &Pair<'_>, rates: &[&MetricComparison], more: &str) -> Option<String> {
    let why = rates
        .iter()
        .filter(|it| it.rounds < 2)
        .find_map(|it| it.doubt.as_ref().filter(|_| pair.doubt(it.metric, it.direction).is_none()))?;
    let of = |it: &&MetricComparison| {
        let [v4, v6] = [it.v4, it.v6].map(|rate| BitRate(rate.round() as u64));
        format!("{} {}: IPv4 {v4}, IPv6 {v6}", it.metric.name(), it.direction.name())
    };
    let seen: Vec<String> = rates.iter().map(of).collect();
    Some(format!("not decided by what was seen ({}), because {why}{more}", seen.join("; ")))
}

#[cfg(test)]
mod tests {
    use netaware_record::{Interval, IpVersion, Verdict, VersionResult};
    use netaware_units::Mono;

    use super::super::super::{Findings, outages};
    use super::*;

    /// What is said of transfers of so many Mbit/s, begun at these seconds, that favour this
    /// version or are doubted for this reason.
    fn said(v4: &[(u64, u64)], v6: &[(u64, u64)], favours: Preference, doubt: Option<&str>) -> String {
        let found = |rounds: &[(u64, u64)]| {
            let tcp = rounds.iter().map(|(second, mbit)| {
                let mut round = outages::tests::transfer(&[*mbit; 20], outages::tests::run(60, 0..0));
                (round.order.direction, round.order.streams, round.load) = (Direction::Reverse, 4, None);
                round.ended.began_at = Some(Mono(second * 1_000_000_000));
                round
            });
            Findings { tcp: tcp.collect(), ..Findings::default() }
        };
        let rounds = v4.len() as u64;
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
            rounds,
            margin: 1e6,
            favours,
            host_limited: false,
            doubt: doubt.map(str::to_owned),
        };
        let verdict = Verdict { purpose: Use::Bulk, prefer: favours, because: "the mean".to_owned() };
        let mut comparison = Comparison { metrics: vec![rate], verdicts: vec![verdict] };
        complete(&pair, &mut comparison, Some("-t 24s gives 2 rounds"));
        comparison.verdicts.remove(0).because
    }

    /// The time that decides was in a note alone, and "no difference shown" beside 20 against 8
    /// Mbit/s.
    #[test]
    fn one_round_that_was_too_short_is_not_decided_and_names_the_time_that_would_decide() {
        let why = said(&[(0, 30)], &[(10, 3)], Preference::NoDifferenceShown, Some("of one short round"));
        assert_eq!(
            why,
            "not decided by what was seen (TCP, parallel streams down: IPv4 28.9 Mbit/s, IPv6 2.87 Mbit/s), because of \
             one short round; -t 24s gives 2 rounds"
        );
        let why = said(&[(0, 30)], &[(10, 3)], Preference::V4, None);
        assert_eq!(why, "the mean; -t 24s gives 2 rounds");
        let rounds = (&[(0, 30), (30, 30)], &[(10, 3), (20, 3)]);
        assert_eq!(said(rounds.0, rounds.1, Preference::V4, None), "the mean", "two rounds decide");
    }

    /// The mean of 28.9 and 2.85 Mbit/s was quoted, which is the rate of neither round.
    #[test]
    fn a_path_that_changed_has_both_levels_in_the_verdict_and_no_mean() {
        let why = said(&[(0, 20), (30, 1)], &[(10, 1), (20, 1)], Preference::NoDifferenceShown, None);
        assert_eq!(
            why,
            "not decided: the path changed meanwhile: TCP down over IPv4 had 20.0 Mbit/s in one round and 1.00 Mbit/s in \
             another"
        );
    }
}
