//! What depends on the behaviour of TCP's flows, and when it is no property of an IP version.
//!
//! **Measures** nothing: it finds reasons not to believe a difference. A transfer of a second is
//! one draw from what its congestion control may do: BBR and CUBIC fill a queue in one turn and
//! leave it empty in the next, and one burst of losses halves a rate for the rest of a turn. The
//! samples of one turn depend on each other through that draw, so that no interval from within the
//! turn knows of it. **Assumes** that turns of different rounds are independent draws, and so are
//! the transfers with one and with several streams of one round. **Biased** towards no difference
//! shown: a path whose queue is managed may lose its advantage to the start of a short transfer, in
//! which its queue is long as well. **Published**: the values are ours; they come from paths that
//! are the same for both versions and on which the comparison without these rules preferred one of
//! them.

use netaware_record::{Metric, Preference};
use netaware_stats::quantile;
use netaware_units::{BitRate, Span};

use super::{Loads, RoundSamples};

/// A rate that was still growing is a lower bound and cannot lose; the delay beside it is one, too,
/// and cannot win, because the queue was not yet filled.
pub(super) fn is_lower_bound(samples: &RoundSamples, winner: Preference) -> Option<String> {
    let (winner, loser) = sides(winner)?;
    let doubted = if samples.metric == Metric::LoadedRtt { winner } else { loser };
    samples.lower_bounds[doubted]
        .then(|| format!("TCP over {} was still speeding up when it ended", NAMES[doubted]))
}

/// Round trips under load say something of the paths only if both were loaded alike: the version
/// with the shorter ones carried about as much, and its own longest ones are shorter than what the
/// other one's usually are. If they are not, its flow met the same queue for a part of the time.
pub(super) fn was_loaded_otherwise(
    samples: &RoundSamples,
    rounds: usize,
    winner: Preference,
) -> Option<String> {
    let (winner, loser) = sides(winner).filter(|_| samples.metric == Metric::LoadedRtt)?;
    if let Some([Some(won), Some(lost)]) = samples.loads.map(|loads| [winner, loser].map(|n| loads.rates[n]))
        && won.0 < lost.percent(ALIKE).0
    {
        return Some(format!(
            "TCP over {} loaded its path with {won} only, and over {} with {lost}",
            NAMES[winner], NAMES[loser]
        ));
    }
    let of = |side: usize| -> Vec<f64> {
        let rounds = if side == 0 { &samples.rounds_v4 } else { &samples.rounds_v6 };
        rounds.iter().flatten().copied().collect()
    };
    let mut of_winner = of(winner);
    of_winner.sort_unstable_by(f64::total_cmp);
    let longest = quantile::linear(&of_winner, UPPER)?;
    let usual = quantile::median(&of(loser))?;
    // From this many rounds on, an advantage that lasted is not an accident of one turn.
    let met_the_queue = rounds < ENOUGH_ROUNDS && longest >= usual * REACHED;
    met_the_queue.then(|| {
        format!(
            "over {} one round trip in twenty took {} or more as well: its transfer met such a queue for a part of \
             its time",
            NAMES[winner],
            Span::from_nanos(longest.round() as i64)
        )
    })
}

/// A single turn of each version shows what a flow did and not what a path does, unless the turns
/// were long, another transfer of the round shows the same difference, or most datagrams were lost
/// all the time.
pub(super) fn one_round_is_too_few(
    samples: &RoundSamples,
    rounds: usize,
    winner: Preference,
) -> Option<String> {
    let loads = samples.loads.filter(|_| rounds < 2)?;
    let is_long = loads.observed >= LONG_TURN;
    let observed = loads.observed;
    match samples.metric {
        Metric::LoadedRtt => Some(
            "it comes from one round, and one transfer fills a queue that the next one leaves empty"
                .to_owned(),
        ),
        Metric::TcpParallel if !is_long && loads.beside.is_none() => Some(format!(
            "it comes from one round of {observed}, and there is no transfer with one stream over both versions that \
             could show the same"
        )),
        Metric::TcpParallel if !is_long && !differ_much(loads) => Some(format!(
            "it comes from one round of {observed}, and the transfers with one stream do not show the same by far"
        )),
        Metric::TcpSingle | Metric::UdpLoss if !is_long && !is_lost_throughout(samples, winner) => {
            Some(format!(
                "it comes from one round of {observed}, in which one burst of other traffic or of losses decides"
            ))
        }
        _ => None,
    }
}

/// Whether most datagrams of the version that lost more were lost in nearly all of its slices: a
/// burst comes and goes.
fn is_lost_throughout(samples: &RoundSamples, winner: Preference) -> bool {
    let Some((_, loser)) = sides(winner).filter(|_| samples.metric == Metric::UdpLoss) else { return false };
    let rounds = if loser == 0 { &samples.rounds_v4 } else { &samples.rounds_v6 };
    let all = rounds.iter().map(Vec::len).sum::<usize>();
    let lossy = rounds.iter().flatten().filter(|share| **share > MOST).count();
    all >= FEWEST_SLICES && lossy as f64 >= all as f64 * NEARLY_ALL
}

/// Whether two transfers of one round show the same version so much slower that no queue, no burst
/// of losses and no other traffic that comes and goes is likely to have done it twice.
fn differ_much(loads: Loads) -> bool {
    let [Some(v4), Some(v6)] = loads.rates else { return false };
    let Some([v4_beside, v6_beside]) = loads.beside else { return false };
    let is_slow = |one: BitRate, other: BitRate| one.0 < other.percent(MUCH_SLOWER).0;
    is_slow(v4, v6) && is_slow(v4_beside, v6_beside) || is_slow(v6, v4) && is_slow(v6_beside, v4_beside)
}

/// The places of the version that is favoured and of the other one.
fn sides(winner: Preference) -> Option<(usize, usize)> {
    match winner {
        Preference::V4 => Some((0, 1)),
        Preference::V6 => Some((1, 0)),
        Preference::NoDifferenceShown | Preference::NotCompared => None,
    }
}

const NAMES: [&str; 2] = ["IPv4", "IPv6"];
/// Per cent of the other version's rate from which a path was loaded alike.
const ALIKE: u64 = 80;
/// Per cent of the other version's rate below which a version is much slower. On a path that is the
/// same for both and 95 % full of other traffic, 64 % and 75 % were seen in one round.
const MUCH_SLOWER: u64 = 60;
/// The quantile that stands for a version's longest round trips: of the few dozen of a turn the
/// largest is an accident.
const UPPER: f64 = 0.95;
/// Share of the other version's median from which a round trip stood in the same queue: turns over
/// one path fill its queue by more or less than each other by this much.
const REACHED: f64 = 0.8;
/// Docs call two rounds an indication and four a measurement.
const ENOUGH_ROUNDS: usize = 4;
/// Other traffic comes and goes, and a flow recovers from losses, in some tenths of a second: four
/// blocks of half a second ([`crate::goodput`]) are the fewest whose scatter says something.
const LONG_TURN: Span = Span::from_secs(2);
/// Share of the datagrams of a slice above which most of them were lost.
const MOST: f64 = 0.5;
/// Share of the slices from which something lasted all the time.
const NEARLY_ALL: f64 = 0.9;
/// In fewer slices nothing is seen to come and go.
const FEWEST_SLICES: usize = 4;

#[cfg(test)]
mod tests {
    use netaware_record::{Direction, MetricComparison};

    use super::*;
    use crate::compare::{Share, compare_metric};

    const MS: f64 = 1e6;

    fn samples(metric: Metric, v4: Vec<f64>, v6: Vec<f64>) -> RoundSamples {
        RoundSamples {
            metric,
            direction: Direction::Reverse,
            rounds_v4: vec![v4],
            rounds_v6: vec![v6],
            figures: None,
            shares: None,
            runs: [None; 2],
            lower_bounds: [false; 2],
            loads: None,
            host_limited: false,
            doubt: None,
        }
    }

    fn loads(rates: [f64; 2], beside: Option<[f64; 2]>, observed_ms: i64) -> Loads {
        let rate = |mbits: f64| BitRate((mbits * 1e6) as u64);
        let rates = rates.map(|mbits| Some(rate(mbits)));
        Loads { rates, beside: beside.map(|it| it.map(rate)), observed: Span::from_millis(observed_ms) }
    }

    /// So many samples, in ms, each in turn with its neighbours.
    fn ms(parts: &[(usize, f64)]) -> Vec<f64> {
        parts.iter().flat_map(|(count, ms)| std::iter::repeat_n(ms * MS, *count)).collect()
    }

    fn judged(samples: &RoundSamples) -> MetricComparison {
        compare_metric(samples).unwrap()
    }

    fn twice(samples: &RoundSamples) -> RoundSamples {
        let [v4, v6] =
            [&samples.rounds_v4, &samples.rounds_v6].map(|rounds| [rounds.clone(), rounds.clone()].concat());
        RoundSamples { rounds_v4: v4, rounds_v6: v6, ..samples.clone() }
    }

    /// Both versions over the same path, of which one transfer filled the queue and one did not for
    /// most of its time: 12 Mbit/s with 200 kB of queue, and 40 Mbit/s with 250 kB, as they were
    /// seen.
    #[test]
    fn a_queue_that_one_version_filled_later_is_no_shorter_round_trip() {
        let wifi = RoundSamples {
            loads: Some(loads([11.33, 11.37], None, 180)),
            ..samples(
                Metric::LoadedRtt,
                ms(&[(22, 19.2), (12, 19.8), (2, 46.5), (2, 65.0), (3, 84.0), (6, 92.0)]),
                ms(&[(3, 19.3), (5, 60.0), (10, 84.0), (6, 93.0), (8, 115.0), (9, 131.0)]),
            )
        };
        let powerline = RoundSamples {
            loads: Some(loads([37.6, 37.6], None, 900)),
            ..samples(
                Metric::LoadedRtt,
                ms(&[(84, 4.2), (20, 5.5), (25, 25.5), (40, 35.0)]),
                ms(&[(5, 4.2), (39, 23.0), (30, 27.5), (41, 39.0)]),
            )
        };
        for once in [wifi, powerline] {
            let one = judged(&once);
            assert!(one.difference.excludes_zero(), "{one:?}");
            let two = judged(&twice(&once));
            assert_eq!([one.favours, two.favours], [Preference::NoDifferenceShown; 2], "{two:?}");
            assert!(two.doubt.unwrap().contains("met such a queue"));
        }
    }

    #[test]
    fn a_round_trip_under_load_of_one_round_prefers_nobody_and_of_two_it_may() {
        // 10 Gbit/s, the same for both: the hosts' own queue in one turn of 0.7 s.
        let once = RoundSamples {
            loads: Some(loads([1582.0, 1624.0], None, 590)),
            ..samples(Metric::LoadedRtt, ms(&[(10, 0.4), (72, 3.2)]), ms(&[(60, 0.26), (18, 0.6)]))
        };
        let found = judged(&once);
        assert_eq!(found.favours, Preference::NoDifferenceShown);
        assert!(found.doubt.unwrap().contains("from one round"));
        assert_eq!(judged(&twice(&once)).favours, Preference::V6, "a queue that is deeper in each round");
    }

    #[test]
    fn a_throttled_flow_that_fills_no_queue_does_not_win_the_round_trip_under_load() {
        let throttled = RoundSamples {
            loads: Some(loads([0.95, 28.5], None, 690)),
            ..samples(Metric::LoadedRtt, ms(&[(40, 18.2)]), ms(&[(10, 30.0), (90, 49.2)]))
        };
        let found = judged(&twice(&throttled));
        assert_eq!(found.favours, Preference::NoDifferenceShown);
        assert!(found.doubt.unwrap().starts_with("TCP over IPv4 loaded its path with 950 kbit/s only"));
        let bound = RoundSamples { loads: None, lower_bounds: [true, false], ..twice(&throttled) };
        assert!(judged(&bound).doubt.unwrap().contains("still speeding up"));
    }

    /// A cable of 80 Mbit/s, 40 % used by others who come and go, the same for both.
    #[test]
    fn one_stream_that_met_a_pause_of_other_traffic_in_one_round_is_no_better_version() {
        let v4 = [36.0, 39.0, 40.0, 41.0, 39.0, 38.0].map(|mbits| mbits * 1e6).to_vec();
        let v6 = [44.5, 50.0, 60.0, 54.0, 55.0, 52.0].map(|mbits| mbits * 1e6).to_vec();
        let short = RoundSamples {
            loads: Some(loads([39.0, 52.7], Some([48.5, 52.6]), 100)),
            ..samples(Metric::TcpSingle, v4.clone(), v6.clone())
        };
        let found = judged(&short);
        assert!(found.difference.excludes_zero());
        assert_eq!(found.favours, Preference::NoDifferenceShown);
        let long = RoundSamples { loads: Some(loads([39.0, 52.7], None, 2000)), ..short };
        assert_eq!(judged(&long).favours, Preference::V6);
    }

    /// 50 Mbit/s down whose way back is 95 % full of others' traffic, the same for both.
    #[test]
    fn several_streams_of_one_round_need_one_stream_that_shows_the_same_by_far() {
        let rows = [
            ([44.0, 51.2], [44.8, 7.3], Preference::NoDifferenceShown),
            ([45.3, 34.0], [45.7, 29.4], Preference::NoDifferenceShown),
            ([37.8, 19.0], [38.3, 18.0], Preference::V4),
            ([19.0, 37.8], [18.0, 38.3], Preference::V6),
        ];
        for (rates, beside, want) in rows {
            let of = |mbits: f64| vec![mbits * 0.99e6, mbits * 1e6, mbits * 1.01e6, mbits * 1e6];
            let found = RoundSamples {
                loads: Some(loads(rates, Some(beside), 300)),
                ..samples(Metric::TcpParallel, of(rates[0]), of(rates[1]))
            };
            assert_eq!(judged(&found).favours, want, "{rates:?}");
            let unknown = RoundSamples { loads: Some(loads(rates, None, 300)), ..found };
            assert_eq!(judged(&unknown).favours, Preference::NoDifferenceShown);
        }
    }

    /// They had been left out, and "do not show the same by far".
    #[test]
    fn transfers_with_one_stream_that_were_left_out_are_not_said_to_show_anything() {
        let of = |mbits: f64| vec![mbits * 0.99e6, mbits * 1e6, mbits * 1.01e6, mbits * 1e6];
        let why = |beside| {
            let loads = Some(loads([37.8, 19.0], beside, 444));
            judged(&RoundSamples { loads, ..samples(Metric::TcpParallel, of(37.8), of(19.0)) }).doubt.unwrap()
        };
        assert_eq!(
            why(None),
            "it comes from one round of 444 ms, and there is no transfer with one stream over both versions that could \
             show the same"
        );
        assert!(
            why(Some([38.3, 37.0]))
                .ends_with("and the transfers with one stream do not show the same by far")
        );
    }

    #[test]
    fn a_burst_in_some_tenths_of_a_second_of_datagrams_is_no_lossier_version() {
        let share = |part, of| Share { part, of };
        let short = RoundSamples {
            shares: Some([share(0, 57), share(14, 165)]),
            loads: Some(loads([3.3, 3.0], None, 300)),
            ..samples(Metric::UdpLoss, vec![0.0; 6], vec![0.1, 0.05, 0.1, 0.08, 0.1, 0.07])
        };
        assert_eq!(judged(&short).favours, Preference::NoDifferenceShown);
        let long = RoundSamples { loads: Some(loads([3.3, 3.0], None, 3000)), ..short };
        assert_eq!(judged(&long).favours, Preference::V4);
    }

    /// A limit of 500 kbit/s took 238 of 250 datagrams over half a second, and "one burst decides".
    #[test]
    fn a_steady_loss_of_most_datagrams_is_no_burst() {
        let of = |slices: Vec<f64>, lost: u64| {
            let shares = [Share { part: 0, of: 237 }, Share { part: lost, of: 250 }];
            judged(&RoundSamples {
                shares: Some(shares),
                loads: Some(loads([11.6, 11.4], None, 512)),
                ..samples(Metric::UdpLoss, vec![0.0; 10], slices)
            })
        };
        let steady = of([vec![0.85], vec![0.95; 9]].concat(), 238);
        assert_eq!((steady.favours, &steady.doubt), (Preference::V4, &None));
        let burst = of([vec![0.0; 5], vec![1.0; 5]].concat(), 125);
        assert_eq!(burst.favours, Preference::NoDifferenceShown, "{burst:?}");
        let light = of(vec![0.2; 10], 50);
        assert!(
            light.doubt.is_some_and(|why| why.ends_with("one burst of other traffic or of losses decides"))
        );
    }

    /// IPv6 takes a detour of 60 ms and loses 3 % each way: 10 of 200 requests, one by one. An
    /// outage of 0.2 s takes 35 in a row, and says nothing of a version.
    #[test]
    fn requests_lost_one_by_one_on_an_idle_path_are_a_difference_and_an_outage_is_none() {
        let share = |part, of| Share { part, of };
        let scattered: Vec<f64> = (0..20).map(|n| f64::from(u8::from(n % 2 == 0)) / 10.0).collect();
        let outage: Vec<f64> = (0..20).map(|n| f64::from(u8::from((8..12).contains(&n)))).collect();
        for (lost, blocks, want) in
            [(10, scattered, Preference::V4), (35, outage, Preference::NoDifferenceShown)]
        {
            let found = judged(&RoundSamples {
                shares: Some([share(0, 200), share(lost, 200)]),
                ..samples(Metric::IdleLoss, vec![0.0; 20], blocks)
            });
            assert_eq!(found.favours, want, "{found:?}");
        }
        let detour = samples(Metric::IdleRtt, ms(&[(200, 16.1)]), ms(&[(190, 76.1)]));
        assert_eq!(judged(&detour).favours, Preference::V4, "idle, one round is enough");
    }
}
