//! Comparisons of paths whose difference is known.

use netaware_record::{Interval, MetricComparison, Preference, Use, Verdict};
use netaware_stats::rng::SplitMix64;

use super::*;

/// Rounds of samples around `level`: noise within rounds, and a drift of each round that both
/// versions share.
struct Source {
    rng: SplitMix64,
    rounds: usize,
    samples: usize,
}

impl Source {
    fn new(seed: u64, rounds: usize) -> Self {
        Self { rng: SplitMix64::new(seed), rounds, samples: 15 }
    }

    /// Roughly normal with this standard deviation.
    fn noise(&mut self, sd: f64) -> f64 {
        ((0..12).map(|_| self.rng.unit()).sum::<f64>() - 6.0) * sd
    }

    fn samples(&mut self, metric: Metric, v4: f64, v6: f64, sd: f64) -> RoundSamples {
        let mut of = |level: f64, drifts: &[f64]| -> Vec<Vec<f64>> {
            let mut round = |drift: f64| (0..self.samples).map(|_| level + drift + self.noise(sd)).collect();
            drifts.iter().map(|drift| round(*drift)).collect()
        };
        let drifts: Vec<f64> = (0..8).map(|n| sd * f64::from(n % 3)).collect();
        let (rounds_v4, rounds_v6) = (of(v4, &drifts), of(v6, &drifts));
        let cut = |mut rounds: Vec<Vec<f64>>, n| {
            rounds.truncate(n);
            rounds
        };
        let direction = Direction::Reverse;
        let (rounds_v4, rounds_v6) = (cut(rounds_v4, self.rounds), cut(rounds_v6, self.rounds));
        RoundSamples { metric, direction, rounds_v4, rounds_v6, ..none() }
    }
}

/// A comparison of nothing.
fn none() -> RoundSamples {
    RoundSamples {
        metric: Metric::TcpParallel,
        direction: Direction::Reverse,
        rounds_v4: Vec::new(),
        rounds_v6: Vec::new(),
        figures: None,
        shares: None,
        runs: [None; 2],
        lower_bounds: [false; 2],
        loads: None,
        host_limited: false,
        doubt: None,
    }
}

#[test]
fn an_hour_of_samples_is_compared_like_a_minute() {
    let mut source = Source { samples: 20_000, ..Source::new(1, 2) };
    let found = compare_metric(&source.samples(Metric::IdleRtt, 5e6, 6e6, 1e6)).unwrap();
    assert_eq!((found.pairs, found.favours), (40_000, Preference::V4));
    assert!((found.difference.estimate - 1e6).abs() < 0.1e6, "{found:?}");
}

fn favours(samples: &RoundSamples) -> Preference {
    compare_metric(samples).unwrap().favours
}

#[test]
fn equal_paths_show_no_difference_in_nineteen_of_twenty_runs() {
    // Noise of a fifth of the level, so that the margin is no help.
    let rows = [(Metric::TcpParallel, 40e6, 8e6), (Metric::IdleRtt, 5e6, 1e6), (Metric::UdpLoss, 0.05, 0.01)];
    for rounds in [2, 4] {
        for (metric, level, sd) in rows {
            let quiet = (0..100)
                .filter(|seed| {
                    let samples = Source::new(*seed, rounds).samples(metric, level, level, sd);
                    favours(&samples) == Preference::NoDifferenceShown
                })
                .count();
            assert!(quiet >= 95, "{metric:?}, {rounds} rounds: {quiet} of 100");
        }
    }
}

#[test]
fn twice_the_rate_is_always_seen() {
    for (rounds, least) in [(1, 0), (2, 90), (4, 95)] {
        let mut held = 0;
        for seed in 0..100 {
            let samples = Source::new(seed, rounds).samples(Metric::TcpParallel, 40e6, 80e6, 4e6);
            let found = compare_metric(&samples).unwrap();
            assert_eq!(found.favours, Preference::V6, "{found:?}");
            assert!(found.difference.lo > 0.0, "{found:?}");
            assert_eq!((found.pairs, found.rounds), (15 * rounds as u64, rounds as u64));
            held += usize::from(found.difference.lo <= 40e6 && 40e6 <= found.difference.hi);
        }
        assert!(held >= least, "{rounds} rounds: interval holds the truth in {held} of 100");
    }
}

#[test]
fn less_is_better_for_delay_and_loss() {
    let rows = [
        (Metric::IdleRtt, 5e6, 9e6, 1e5),
        (Metric::LoadedRtt, 5e6, 9e6, 1e5),
        (Metric::UdpLoss, 0.01, 0.05, 0.001),
    ];
    for (metric, v4, v6, sd) in rows {
        assert_eq!(favours(&Source::new(1, 4).samples(metric, v4, v6, sd)), Preference::V4, "{metric:?}");
        assert_eq!(favours(&Source::new(1, 4).samples(metric, v6, v4, sd)), Preference::V6, "{metric:?}");
    }
}

#[test]
fn a_certain_difference_below_the_margin_favours_nobody() {
    let rows = [
        (Metric::TcpParallel, 940e6, 926e6, 1e5),
        (Metric::IdleRtt, 300e3, 340e3, 1e3),
        (Metric::UdpLoss, 0.0101, 0.0105, 1e-5),
    ];
    for (metric, v4, v6, sd) in rows {
        let found = compare_metric(&Source::new(1, 4).samples(metric, v4, v6, sd)).unwrap();
        assert!(found.difference.excludes_zero(), "{found:?}");
        assert_eq!(found.favours, Preference::NoDifferenceShown, "{found:?}");
    }
}

#[test]
fn one_round_needs_three_times_the_margin() {
    let rate = |v6| favours(&Source::new(1, 1).samples(Metric::TcpParallel, 100e6, v6, 1e5));
    assert_eq!((rate(110e6), rate(125e6)), (Preference::NoDifferenceShown, Preference::V6));
}

#[test]
fn rounds_without_a_partner_are_left_out() {
    let samples = RoundSamples {
        metric: Metric::TcpSingle,
        direction: Direction::Forward,
        rounds_v4: vec![vec![1.0, 2.0, 3.0], vec![4.0], vec![9.0]],
        rounds_v6: vec![vec![11.0, 12.0], vec![]],
        ..none()
    };
    let found = compare_metric(&samples).unwrap();
    assert_eq!((found.pairs, found.rounds, found.v4, found.v6), (2, 1, 2.0, 11.5));
    assert!((found.difference.estimate - 9.5).abs() < 1e-9);
    let single = RoundSamples { rounds_v4: vec![vec![1.0]], ..samples.clone() };
    assert_eq!(compare_metric(&single), None);
    let broken = RoundSamples { rounds_v4: vec![vec![f64::NAN, 1.0]], ..samples };
    assert_eq!(compare_metric(&broken), None);
}

/// A metric, its direction, IPv4's level and IPv6's.
type Levels = (Metric, Direction, f64, f64);

fn metrics(rows: &[Levels]) -> Vec<RoundSamples> {
    let sample = |(metric, direction, v4, v6): &Levels| {
        let samples = Source::new(3, 4).samples(*metric, *v4, *v6, v4.abs() * 0.0005);
        RoundSamples { direction: *direction, ..samples }
    };
    rows.iter().map(sample).collect()
}

fn advice(samples: &[RoundSamples], purpose: Use) -> (Preference, String) {
    let comparison = compare(samples, [Standing::default(); 2]);
    let verdict = comparison.verdicts.into_iter().find(|verdict| verdict.purpose == purpose).unwrap();
    (verdict.prefer, verdict.because)
}

#[test]
fn bulk_follows_the_rates() {
    use Direction::{Forward, Reverse};
    use Metric::{TcpParallel, TcpSingle};
    use Preference::{NoDifferenceShown, NotCompared, V4, V6};
    let rows: [(&str, &[Levels], Preference); 6] = [
        ("both ways", &[(TcpParallel, Forward, 40e6, 80e6), (TcpParallel, Reverse, 40e6, 80e6)], V6),
        ("down alone", &[(TcpParallel, Forward, 40e6, 40e6), (TcpParallel, Reverse, 90e6, 80e6)], V4),
        (
            "contradiction",
            &[(TcpParallel, Forward, 40e6, 80e6), (TcpParallel, Reverse, 80e6, 40e6)],
            NoDifferenceShown,
        ),
        (
            "equal",
            &[(TcpParallel, Forward, 40e6, 40e6), (TcpParallel, Reverse, 80e6, 80e6)],
            NoDifferenceShown,
        ),
        ("one stream where nothing else", &[(TcpSingle, Forward, 40e6, 80e6)], V6),
        ("nothing", &[], NotCompared),
    ];
    for (name, rows, want) in rows {
        let (prefer, because) = advice(&metrics(rows), Use::Bulk);
        assert_eq!(prefer, want, "{name}: {because}");
        assert_eq!(because.contains("contradictory"), name == "contradiction", "{because}");
    }
}

#[test]
fn interactive_and_media_follow_delay_and_loss() {
    use Direction::{Forward, Reverse, RoundTrip};
    use Metric::{DelayVariation, IdleRtt, LoadedRtt, UdpLoss};
    let samples = metrics(&[
        (IdleRtt, RoundTrip, 20e6, 20e6),
        (LoadedRtt, Forward, 120e6, 60e6),
        (LoadedRtt, Reverse, 60e6, 60e6),
        (DelayVariation, RoundTrip, 3e6, 3e6),
        (UdpLoss, Reverse, 0.001, 0.02),
    ]);
    let (prefer, because) = advice(&samples, Use::Interactive);
    assert_eq!(prefer, Preference::V6, "{because}");
    assert!(
        because.starts_with("round trip under load up: IPv4 120 ms, IPv6 60.1 ms, difference -"),
        "{because}"
    );
    let (prefer, because) = advice(&samples, Use::Media);
    assert_eq!(prefer, Preference::NoDifferenceShown, "{because}");
    assert!(because.starts_with("contradictory: UDP loss down: IPv4 0.10 %, IPv6 2.00 %"), "{because}");
}

#[test]
fn what_the_hosts_set_decides_nothing_and_is_said_to_compare_hosts() {
    let mut samples = metrics(&[(Metric::TcpParallel, Direction::Reverse, 40e9, 30e9)]);
    samples[0].host_limited = true;
    let (prefer, because) = advice(&samples, Use::Bulk);
    assert_eq!(prefer, Preference::NoDifferenceShown);
    assert!(because.contains("compares hosts, not paths"), "{because}");
    let metric: MetricComparison = compare_metric(&samples[0]).unwrap();
    assert!(metric.host_limited);
}

#[test]
fn an_unreachable_version_loses_to_the_other_with_its_reason() {
    let rows = [
        ([None, Some("connect to [2001:db8::1]:14233 timed out")], Preference::V4),
        ([Some("no IPv4 address"), None], Preference::V6),
        ([Some("refused"), Some("refused")], Preference::NotCompared),
    ];
    for (out, want) in rows {
        let verdicts = compare(&[], out.map(|out| Standing { out, ..Standing::default() })).verdicts;
        assert_eq!(verdicts.len(), 3);
        for verdict in verdicts {
            assert_eq!(verdict.prefer, want);
            let why = out[0].or(out[1]).unwrap();
            assert!(verdict.because.contains(why), "{}", verdict.because);
        }
    }
}

#[test]
fn a_version_is_not_preferred_for_what_it_has_no_figure_of_or_broke_off_before() {
    let gone = Standing { out: Some("refused"), ..Standing::default() };
    let bare = Standing { lacks: &[Use::Bulk], ..Standing::default() };
    let prefers = |standings| compare(&[], standings).verdicts.iter().map(|it| it.prefer).collect::<Vec<_>>();
    let (none, v6) = (Preference::NotCompared, Preference::V6);
    assert_eq!(prefers([gone, bare]), [none, v6, v6]);
    assert_eq!(prefers([gone, Standing { is_broken: true, ..Standing::default() }]), [none; 3]);
}

/// IPv6 was preferred to an IPv4 whose session was lost, and had lost half of its requests itself.
#[test]
fn a_version_that_failed_in_part_or_loses_half_of_all_is_not_preferred_to_one_that_was_lost() {
    let gone = Standing { out: Some("nothing heard for 3.71 s"), ..Standing::default() };
    let verdicts = |v6| compare(&[], [gone, v6]).verdicts;
    let (none, v6) = (Preference::NotCompared, Preference::V6);
    let failed = verdicts(Standing { failed: &[Use::Bulk], ..Standing::default() });
    assert_eq!(failed.iter().map(|it| it.prefer).collect::<Vec<_>>(), [none, v6, v6]);
    let want = "IPv4 could not be measured: nothing heard for 3.71 s; and IPv6 failed in a part of what counts for this";
    assert_eq!(failed[0].because, want);
    let loses = Some(Share { part: 12, of: 24 });
    for verdict in verdicts(Standing { loses, ..Standing::default() }) {
        assert_eq!(verdict.prefer, none);
        let because = verdict.because;
        assert!(
            because.contains("; and IPv6 lost 50.00 % (12 of 24, ") && because.ends_with("ends sessions"),
            "{because}"
        );
    }
}

#[test]
fn what_a_command_does_not_measure_is_not_said_to_be_measured_too_seldom() {
    let because = |standings| compare(&[], standings).verdicts[1].because.clone();
    let bare = Standing { lacks: &[Use::Interactive], ..Standing::default() };
    let full = Standing::default();
    assert_eq!(because([bare, bare]), "nothing that counts for it was measured");
    assert_eq!(because([full, bare]), "nothing that counts for it was measured over IPv6");
    assert_eq!(because([full, full]), "not measured often enough over both versions");
}

/// Two rounds of two samples each, all alike.
fn alike(metric: Metric, v4: f64, v6: f64) -> RoundSamples {
    let rounds = |level: f64| vec![vec![level; 2]; 2];
    RoundSamples {
        metric,
        direction: Direction::Reverse,
        rounds_v4: rounds(v4),
        rounds_v6: rounds(v6),
        host_limited: true,
        ..none()
    }
}

#[test]
fn a_difference_counts_from_two_rounds_on_if_it_exceeds_the_margin() {
    let want = MetricComparison {
        metric: Metric::TcpSingle,
        direction: Direction::Reverse,
        v4: 15.0,
        v6: 16.0,
        difference: Interval { estimate: 1.0, lo: 1.0, hi: 1.0, confidence: 0.95 },
        pairs: 4,
        rounds: 2,
        // A twentieth of the larger one.
        margin: 0.8,
        favours: Preference::V6,
        host_limited: true,
        doubt: None,
    };
    assert_eq!(compare_metric(&alike(Metric::TcpSingle, 15.0, 16.0)), Some(want));
    // The margin of a round trip is 50 us where that is more than a twentieth.
    let rows = [(150_000.0, Preference::NoDifferenceShown), (150_001.0, Preference::V4)];
    for (v6, want) in rows {
        assert_eq!(favours(&alike(Metric::IdleRtt, 100_000.0, v6)), want, "{v6}");
    }
    assert_eq!(favours(&alike(Metric::IdleRtt, 150_001.0, 100_000.0)), Preference::V6);
}

#[test]
fn every_metric_has_its_own_margin() {
    let rows = [
        (Metric::TcpParallel, 100e6, 5e6),
        (Metric::IdleRtt, 2e6, 1e5),
        (Metric::IdleRtt, 1e5, 5e4),
        (Metric::LoadedRtt, 1e7, 2e6),
        (Metric::LoadedRtt, 1e6, 5e5),
        (Metric::DelayVariation, 1e7, 2e6),
        (Metric::Connect, 1e7, 1e6),
        (Metric::Connect, 1e6, 2e5),
        (Metric::UdpLoss, 0.5, 0.001),
    ];
    for (metric, larger, want) in rows {
        for (v4, v6) in [(larger, larger / 2.0), (larger / 2.0, larger)] {
            let found = compare_metric(&alike(metric, v4, v6)).unwrap().margin;
            assert!((found / want - 1.0).abs() < 1e-9, "{metric:?}, {v4} and {v6}: {found}");
        }
    }
}

/// Of IPv4, of IPv6, their difference and its bounds.
fn told(metric: Metric, direction: Direction, [v4, v6, estimate, lo, hi]: [f64; 5]) -> MetricComparison {
    MetricComparison {
        metric,
        direction,
        v4,
        v6,
        difference: Interval { estimate, lo, hi, confidence: 0.95 },
        pairs: 30,
        rounds: 2,
        margin: 0.0,
        favours: Preference::NoDifferenceShown,
        host_limited: false,
        doubt: None,
    }
}

#[test]
fn an_advice_tells_the_figures_that_it_rests_on_in_their_units() {
    use Direction::{Forward, Reverse, RoundTrip};
    use Metric::{DelayVariation, IdleRtt, LoadedRtt, TcpParallel, UdpLoss};
    let metrics = [
        MetricComparison {
            favours: Preference::V6,
            ..told(TcpParallel, Reverse, [38.2e6, 76.1e6, 37.9e6, 37.1e6, 38.6e6])
        },
        told(IdleRtt, RoundTrip, [20e6, 20e6, 0.0, -1e6, 5e5]),
        MetricComparison {
            favours: Preference::V6,
            host_limited: true,
            ..told(LoadedRtt, Forward, [60e6, 20e6, -40e6, -41e6, -39e6])
        },
        MetricComparison {
            favours: Preference::V4,
            ..told(UdpLoss, Reverse, [0.001, 0.02, 0.019, 0.018, 0.02])
        },
        MetricComparison {
            favours: Preference::V6,
            ..told(DelayVariation, RoundTrip, [3e6, 2e6, -1e6, -1.1e6, -9e5])
        },
    ];
    let verdict = |purpose, prefer, because: &str| Verdict { purpose, prefer, because: because.to_owned() };
    let want = [
        verdict(
            Use::Bulk,
            Preference::V6,
            "TCP, parallel streams down: IPv4 38.2 Mbit/s, IPv6 76.1 Mbit/s, \
             difference 37.9 Mbit/s (37.1 Mbit/s to 38.6 Mbit/s)",
        ),
        // What a host set decides nothing, but is told.
        verdict(
            Use::Interactive,
            Preference::NoDifferenceShown,
            "idle round trip: IPv4 20.0 ms, IPv6 20.0 ms, difference 0 ns (-1.00 ms to 500 us); round trip \
             under load up: IPv4 60.0 ms, IPv6 20.0 ms, difference -40.0 ms (-41.0 ms to -39.0 ms) (in part \
             set by the hosts)",
        ),
        verdict(
            Use::Media,
            Preference::NoDifferenceShown,
            "contradictory: UDP loss down: IPv4 0.10 %, IPv6 2.00 %, difference 1.90 % (1.80 % to 2.00 %), \
             but delay variation: IPv4 3.00 ms, IPv6 2.00 ms, difference -1.00 ms (-1.10 ms to -900 us)",
        ),
    ];
    assert_eq!(verdict::all(&metrics, &[], [Standing::default(); 2]), want);
}

#[test]
fn the_difference_is_that_of_the_two_figures_beside_it_also_where_versions_have_unlike_many_samples() {
    let skewed = |count: usize, level: f64| -> Vec<f64> {
        (0..count).map(|n| level + if n % 3 == 0 { 40e6 } else { n as f64 * 1e4 }).collect()
    };
    let samples = RoundSamples {
        metric: Metric::LoadedRtt,
        rounds_v4: vec![skewed(90, 50e6)],
        rounds_v6: vec![skewed(31, 60e6)],
        ..none()
    };
    let found = compare_metric(&samples).unwrap();
    assert!((found.difference.estimate - (found.v6 - found.v4)).abs() < 1.0, "{found:?}");
    let Interval { estimate, lo, hi, .. } = found.difference;
    assert!(lo <= estimate && estimate <= hi, "{found:?}");
}

#[test]
fn the_verdict_has_the_rates_that_stand_in_the_section() {
    let samples = RoundSamples { figures: Some([6.4e6, 6.5e6]), ..alike(Metric::TcpParallel, 3.5e6, 5.0e6) };
    let found = compare_metric(&samples).unwrap();
    assert_eq!((found.v4, found.v6), (6.4e6, 6.5e6));
    let Interval { estimate, lo, hi, .. } = found.difference;
    assert!((estimate - 0.1e6).abs() < 1.0 && lo <= estimate && estimate <= hi, "{found:?}");
}

#[test]
fn a_path_that_became_slower_in_the_first_turn_is_no_slower_version() {
    // IPv4 had all of its first turn at 51 Mbit/s, and IPv6 has no rate of its own.
    let slow = |rate: f64| (0..30).map(|n| rate + f64::from(n % 3) * 1e4).collect::<Vec<f64>>();
    let samples = RoundSamples {
        metric: Metric::TcpSingle,
        rounds_v4: vec![slow(51.2e6), slow(11.6e6)],
        rounds_v6: vec![Vec::new(), slow(11.4e6)],
        figures: Some([31.5e6, 11.4e6]),
        ..none()
    };
    let found = compare_metric(&samples).unwrap();
    assert_eq!(found.favours, Preference::NoDifferenceShown, "{found:?}");
    assert!(found.doubt.as_ref().is_some_and(|why| why.starts_with("in only 1 of 2 rounds")), "{found:?}");
    // Where the rounds that both have show the same difference, it stands.
    let like = RoundSamples {
        rounds_v4: vec![slow(51.2e6), slow(51.0e6)],
        figures: Some([51.1e6, 11.4e6]),
        ..samples
    };
    assert_eq!(compare_metric(&like).unwrap().favours, Preference::V4);
}

#[test]
fn a_rate_that_was_still_growing_may_win_and_cannot_lose() {
    let samples = |lower_bounds| {
        let samples = Source::new(5, 4).samples(Metric::TcpParallel, 2e6, 18e6, 1e5);
        compare_metric(&RoundSamples { lower_bounds, ..samples }).unwrap()
    };
    assert_eq!(samples([false, true]).favours, Preference::V6);
    let undecided = samples([true, false]);
    assert_eq!(undecided.favours, Preference::NoDifferenceShown);
    assert_eq!(undecided.doubt.as_deref(), Some("TCP over IPv4 was still speeding up when it ended"));
    let (prefer, because) = {
        let verdicts = verdict::all(&[undecided], &[], [Standing::default(); 2]);
        (verdicts[0].prefer, verdicts[0].because.clone())
    };
    assert_eq!(prefer, Preference::NoDifferenceShown);
    assert!(because.contains("it says nothing of the versions, because TCP over IPv4"), "{because}");
}

#[test]
fn without_a_single_loss_the_difference_is_not_certain() {
    let lost = |v4, v6, of| RoundSamples {
        metric: Metric::UdpLoss,
        rounds_v4: vec![vec![0.0; 10]],
        rounds_v6: vec![vec![0.0; 10]],
        shares: Some([Share { part: v4, of }, Share { part: v6, of }]),
        ..none()
    };
    let nothing = compare_metric(&lost(0, 0, 100)).unwrap();
    assert_eq!((nothing.v4, nothing.v6, nothing.favours), (0.0, 0.0, Preference::NoDifferenceShown));
    assert!(nothing.difference.hi > 0.03 && nothing.difference.lo < -0.03, "{nothing:?}");
    let much = compare_metric(&lost(680, 0, 1000)).unwrap();
    assert_eq!((much.v4, much.favours), (0.68, Preference::V6));
    // Newcombe 1998, table II, row (a): 56 of 70 and 48 of 80.
    let row = [Share { part: 48, of: 80 }, Share { part: 56, of: 70 }];
    let published = compare_metric(&RoundSamples { shares: Some(row), ..lost(0, 0, 1) }).unwrap().difference;
    assert!((published.lo - 0.0524).abs() < 5e-5 && (published.hi - 0.3339).abs() < 5e-5, "{published:?}");
}

/// Of so many, over IPv4 and over IPv6, without rounds.
fn lost(metric: Metric, direction: Direction, v4: (u64, u64), v6: (u64, u64)) -> RoundSamples {
    let shares = Some([v4, v6].map(|(part, of)| Share { part, of }));
    RoundSamples { metric, direction, shares, ..none() }
}

/// Media went by the idle requests alone, of which few were lost by chance.
#[test]
fn a_loss_of_few_requests_decides_nothing_where_thousands_of_datagrams_were_observed() {
    use Direction::{Forward, Reverse, RoundTrip};
    use Metric::{IdleLoss, UdpLoss};
    let idle = lost(IdleLoss, RoundTrip, (0, 200), (24, 200));
    assert_eq!(advice(std::slice::from_ref(&idle), Use::Media).0, Preference::V4);
    let streams = [Reverse, Forward].map(|way| lost(UdpLoss, way, (60, 3000), (62, 3000)));
    let [down, up] = streams;
    let (prefer, because) = advice(&[idle.clone(), down, up.clone()], Use::Media);
    assert_eq!(prefer, Preference::NoDifferenceShown, "{because}");
    let want = "UDP loss down: IPv4 2.00 % (60 of 3000, 1.56 % to 2.57 %), IPv6 2.07 % (62 of 3000";
    assert!(because.starts_with(want), "{because}");
    assert!(because.contains("idle loss: IPv4 0.00 % (0 of 200"), "{because}");
    // A stream of one direction says nothing of the other one.
    assert_eq!(advice(&[idle.clone(), up], Use::Media).0, Preference::V4);
    // Streams that show the contrary contradict it, and are not preferred to it.
    let [down, up] = [Reverse, Forward].map(|way| lost(UdpLoss, way, (160, 3000), (10, 3000)));
    assert_eq!(advice(&[down.clone(), up.clone()], Use::Media).0, Preference::V6);
    assert_ne!(advice(&[idle, down, up], Use::Media).0, Preference::V6);
}

/// IPv4 lost 3.4 % of a stream and IPv6 nothing, and media preferred IPv4 by 2 ms of variation
/// without a word of it.
#[test]
fn a_loss_contradicts_a_smaller_variation_or_is_said_not_to_count() {
    use Direction::{Reverse, RoundTrip};
    let delays = || metrics(&[(Metric::DelayVariation, RoundTrip, 24e3, 2e6)]);
    let in_rows = |runs| {
        let stream = lost(Metric::UdpLoss, Reverse, (34, 1004), (0, 1027));
        advice(&[delays(), vec![RoundSamples { runs: [Some(runs), None], ..stream }]].concat(), Use::Media)
    };
    let (prefer, because) = in_rows(12);
    assert_eq!(prefer, Preference::NoDifferenceShown, "{because}");
    assert!(because.starts_with("contradictory: delay variation: "), "{because}");
    assert!(because.contains(", but UDP loss down: IPv4 3.39 % (34 of 1004, "), "{because}");
    // Three bursts may be chance.
    let (prefer, because) = in_rows(3);
    assert_eq!(prefer, Preference::V4, "{because}");
    assert!(
        because.contains("; not counted against it: UDP loss down: IPv4 3.39 % (34 of 1004, "),
        "{because}"
    );
    let why = ", because losses came in bursts, and the interval of the difference holds zero";
    assert!(because.ends_with(why), "{because}");
}

/// 12 of 200 requests were lost, and "none shown" of a stream over which as much may be lost
/// silenced them.
#[test]
fn streams_that_leave_room_for_a_loss_of_requests_do_not_outweigh_it() {
    use Direction::{Forward, Reverse, RoundTrip};
    let idle = lost(Metric::IdleLoss, RoundTrip, (12, 200), (0, 200));
    let up = lost(Metric::UdpLoss, Forward, (0, 1059), (0, 1047));
    let down = lost(Metric::UdpLoss, Reverse, (34, 1004), (0, 1027));
    let down = RoundSamples { runs: [Some(3), None], ..down };
    assert_eq!(favours(&down), Preference::NoDifferenceShown);
    let (prefer, because) = advice(&[idle, up, down], Use::Media);
    assert_eq!(prefer, Preference::V6, "{because}");
}

#[test]
fn the_loss_of_which_more_was_observed_is_quoted_first() {
    use Direction::{Reverse, RoundTrip};
    let idle = lost(Metric::IdleLoss, RoundTrip, (0, 24), (0, 24));
    let few = lost(Metric::UdpLoss, Reverse, (1, 1), (0, 2));
    let (_, because) = advice(&[idle.clone(), few], Use::Media);
    assert!(because.starts_with("idle loss: IPv4 0.00 % (0 of 24, 0.00 % to 13.80 %), IPv6"), "{because}");
    let lost_beside = |part, of| {
        let standing = Standing { beside_tcp: Some(Share { part, of }), ..Standing::default() };
        compare(std::slice::from_ref(&idle), [standing; 2]).verdicts.pop().unwrap().because
    };
    let beside = |of| lost_beside(7, of);
    let want = "; of requests beside TCP, which are more, IPv4 lost 4.70 % (7 of 149, ";
    assert!(beside(149).contains(want), "{}", beside(149));
    assert!(!beside(20).contains("beside TCP"), "{}", beside(20));
    assert!(!lost_beside(0, 149).contains("beside TCP"), "no queue of TCP's has lost what was not lost");
}

#[test]
fn what_is_in_doubt_favours_nobody_and_says_why() {
    let samples = Source::new(5, 4).samples(Metric::TcpParallel, 20e6, 80e6, 1e5);
    let doubt = Some("UDP below TCP's rate lost 68 %".to_owned());
    let found = compare_metric(&RoundSamples { doubt: doubt.clone(), ..samples.clone() }).unwrap();
    assert_eq!((found.favours, &found.doubt), (Preference::NoDifferenceShown, &doubt));
    let equal = Source::new(5, 4).samples(Metric::TcpParallel, 80e6, 80e6, 1e5);
    assert_eq!(compare_metric(&RoundSamples { doubt, ..equal }).unwrap().doubt, None, "nothing to doubt");
}

#[test]
fn one_round_is_said_to_be_one() {
    let samples = Source::new(5, 1).samples(Metric::TcpParallel, 20e6, 80e6, 1e5);
    let (prefer, because) = advice(&[samples], Use::Bulk);
    assert_eq!(prefer, Preference::V6);
    let wanted =
        "by one round, and only if the path did not change between the versions' turns: TCP, parallel";
    assert!(because.starts_with(wanted), "said first, and not after the preference: {because}");
}

#[test]
fn a_version_over_which_tcp_carries_nothing_is_not_preferred_for_bulk() {
    let samples = metrics(&[(Metric::IdleRtt, Direction::RoundTrip, 30e6, 30e6)]);
    let why = Some("TCP connected, and its data did not come through");
    let stalled = [Standing::default(), Standing { stalled: why, ..Standing::default() }];
    let verdicts = compare(&samples, stalled).verdicts;
    let told: Vec<(Preference, &str)> = verdicts.iter().map(|it| (it.prefer, it.because.as_str())).collect();
    assert_eq!(told[0], (Preference::V4, "over IPv6 TCP connected, and its data did not come through"));
    assert_eq!(told[1].0, Preference::NoDifferenceShown);
    let bare = Standing { lacks: &[Use::Bulk], ..Standing::default() };
    let over_v6 = Standing { stalled: why, ..Standing::default() };
    let verdicts = compare(&samples, [bare, over_v6]).verdicts;
    assert_eq!(verdicts[0].prefer, Preference::NotCompared, "IPv4 has no rate either");
}
