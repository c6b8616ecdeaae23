//! Requests that queue behind each other, because they come faster than the path carries them.
//!
//! **Measures** by how much the round trips of requests at even distances grow from the first third
//! to the last one, and so at which distance the path lets them through. **Assumes** that nothing
//! else makes the queue grow meanwhile. **Biased**: a queue of others' traffic that grows steadily
//! is taken for one of our own, and a queue that was full from the first request on is not seen.
//! **Published**: the rank correlation is that of Kendall, A New Measure of Rank Correlation, 1938.

use netaware_stats::quantile;
use netaware_units::Span;

use crate::echo::EchoRun;
use crate::request::Transport;

/// The distance at which the path let requests through that went every `spacing`, `asked` of them,
/// where their round trips, in nanoseconds in the order sent, grew by a quarter of the time that
/// they took, and of most pairs the later one took longer: more came than left. `None` where they
/// did not queue. A pause of the path makes a step that falls again, which is no queue of theirs.
pub(crate) fn served_every(spacing: Span, asked: u64, rtts_ns: &[f64]) -> Option<Span> {
    let third = rtts_ns.len() / 3;
    if third == 0 {
        return None;
    }
    let (first, last) = (&rtts_ns[..third], &rtts_ns[rtts_ns.len() - third..]);
    let (first, last) = (quantile::median(first)?, quantile::median(last)?);
    let between = quantile::median(&rtts_ns[third..rtts_ns.len() - third])?;
    let lasting = spacing.nanos() as f64 * asked as f64;
    let (growth, least) = (last - first, LEAST_GROWTH.nanos() as f64);
    // Growth that is steady is a queue, be it a short one: noise does not rise from third to third.
    let is_steady = (between - first).min(last - between) > growth / 4.0;
    // Between the middles of the thirds lies two thirds of the time.
    let has_queued = growth > (lasting / 6.0).max(least)
        || (is_steady && growth > (lasting / 24.0).max(LEAST_STEADY_GROWTH.nanos() as f64));
    // Each request waited for longer than the one before it by what the path takes longer.
    let by_growth = spacing.nanos() as f64 + growth / (rtts_ns.len() - third) as f64;
    // A full queue drops what it does not hold.
    let by_share = lasting / rtts_ns.len() as f64;
    (has_queued && rise(rtts_ns) >= STEADY_RISE).then(|| Span(by_growth.max(by_share).round() as i64))
}

/// The distance that requests need, where the path lets them through every `served` and they went
/// every `spacing`; `None` where that is no more than 1.25 times as fast as the path.
pub(crate) fn slower(spacing: Span, served: Span) -> Option<Span> {
    (served * 4 > spacing * 5).then(|| served * 5 / 4)
}

/// The closest distance of answers to requests that were right behind each other, by the number of
/// each and when it came: on a slow path all are as far apart as it takes to pass one. `None` where
/// fewer than three came, or one was overtaken, which is jitter.
pub(crate) fn served_closest(answers: &[(u64, Span)]) -> Option<Span> {
    let has_enough = answers.len() >= 3 && !is_overtaken(answers);
    let gaps = answers.windows(2).map(|pair| {
        let [(before, left), (after, right)] = pair else { return Span::ZERO };
        (*right - *left) / i64::try_from(after - before).unwrap_or(1).max(1)
    });
    gaps.min().filter(|closest| has_enough && *closest > Span::ZERO)
}

/// Whether an answer came before that to an earlier request, of answers in the order of the
/// requests.
pub(crate) fn is_overtaken(answers: &[(u64, Span)]) -> bool {
    answers.windows(2).any(|pair| pair[1].1 < pair[0].1)
}

/// By how much more pairs of delays, in the order sent, rise than fall, as a share of all pairs:
/// Kendall's tau. It is 1 in a queue that grows, and 0.3 or more by chance in three of a hundred
/// runs of 20 requests. Of many delays it takes evenly chosen ones.
pub(crate) fn rise(delays: &[f64]) -> f64 {
    let step = delays.len().div_ceil(MOST_COMPARED).max(1);
    let some: Vec<f64> = delays.iter().copied().step_by(step).collect();
    let (mut balance, mut pairs) = (0_i32, 0_i32);
    for (n, before) in some.iter().enumerate() {
        for after in &some[n + 1..] {
            balance += i32::from(after > before) - i32::from(after < before);
            pairs += 1;
        }
    }
    f64::from(balance) / f64::from(pairs.max(1))
}

/// Whether half of the runs or more stood in a queue that grew while they lasted: they are not
/// those of an idle path.
pub(crate) fn fills_most(runs: &[EchoRun]) -> bool {
    let queued = runs.iter().filter(|run| filled_a_queue(run)).count();
    queued > 0 && queued * 2 >= runs.iter().filter(|run| run.transport == Transport::Udp).count()
}

/// Whether the requests of a run over UDP stood in a queue that grew while it lasted.
pub(crate) fn filled_a_queue(run: &EchoRun) -> bool {
    let (apart, sent) = (run.order.shown_spacing(), run.round.counts().sent());
    run.transport == Transport::Udp && grows(apart, sent, &run.round.rtts_ns())
}

/// Whether round trips are those of a queue that grew, beyond what chance and jitter make.
pub(crate) fn grows(spacing: Span, asked: u64, rtts_ns: &[f64]) -> bool {
    spacing > Span::ZERO && served_every(spacing, asked, rtts_ns).is_some()
}

/// At which distance the path let the requests of a run through that queued behind each other.
pub(crate) fn of_run(run: &EchoRun) -> Option<Span> {
    let (apart, sent) = (run.order.shown_spacing(), run.round.counts().sent());
    // A closed loop does not queue.
    (apart > Span::ZERO).then(|| served_every(apart, sent, &run.round.rtts_ns()))?
}

/// What is said of requests that [`fills_most`] found.
pub(crate) const OWN_QUEUE: &str = "the requests queued behind each other: their round trips are those of a queue that grew \
     meanwhile, and are not compared";

/// Three pairs of four rise: chance hardly makes so many.
const STEADY_RISE: f64 = 0.5;
/// More tell nothing more.
const MOST_COMPARED: usize = 64;
/// Growth below this is jitter.
const LEAST_GROWTH: Span = Span::from_millis(20);
const LEAST_STEADY_GROWTH: Span = Span::from_millis(4);

#[cfg(test)]
mod tests {
    use super::*;

    const APART: Span = Span::from_millis(5);

    #[test]
    fn jitter_is_not_taken_for_a_queue() {
        let jittered: Vec<f64> = (0..34).map(|n| f64::from(20 + (n * 7919) % 60) * 1e6).collect();
        assert_eq!(served_every(APART, 34, &jittered), None);
        assert_eq!([served_every(APART, 34, &[]), served_every(APART, 34, &[1.0, 2.0])], [None; 2]);
    }

    /// 92 bytes of IP each 5 ms are 147 kbit/s, on 128 kbit/s: each request waits 0.75 ms longer.
    #[test]
    fn requests_that_are_a_little_too_fast_for_a_path_do_not_pass_for_idle() {
        let growing: Vec<f64> = (0..25).map(|n| 56.5e6 + 750_000.0 * f64::from(n)).collect();
        assert_eq!(served_every(APART, 25, &growing), Some(Span::from_micros(5750)));
        let even: Vec<f64> = (0..25).map(|n| 56.5e6 + 4e6 * f64::from(n % 3)).collect();
        assert_eq!(served_every(APART, 25, &even), None);
    }

    /// One pause of 150 ms made the requests of the rest of a run slower, as if the path let them
    /// through every 15.6 ms only.
    #[test]
    fn a_pause_of_the_path_is_not_taken_for_a_queue() {
        let apart = Span::from_millis(10);
        for from in 0..25 {
            let held_up = |n: i32| if n < from { 0 } else { (150 - 10 * (n - from)).max(0) };
            let paused: Vec<f64> = (0..25).map(|n| f64::from(20 + held_up(n)) * 1e6).collect();
            assert_eq!(served_every(apart, 25, &paused), None, "from request {from} on");
        }
    }

    #[test]
    fn what_a_full_queue_dropped_makes_the_path_no_faster() {
        // Of 60 requests each 5 ms 15 were answered, in a queue that was soon full.
        let full: Vec<f64> = (0..15_i32).map(|n| 20e6 + 30e6 * f64::from(n.min(5))).collect();
        assert_eq!(served_every(APART, 60, &full), Some(Span::from_millis(20)));
    }

    /// 24 requests each 50 ms on 8 kbit/s: twice what the path carries was its idle round trip.
    #[test]
    fn round_trips_of_a_growing_queue_are_not_those_of_an_idle_path() {
        let apart = Span::from_millis(50);
        let growing: Vec<f64> = (0..24).map(|n| 1180e6 + 42e6 * f64::from(n)).collect();
        assert!((rise(&growing) - 1.0).abs() < 1e-9 && grows(apart, 24, &growing));
        let even: Vec<f64> = (0..24).map(|n| 1180e6 + 4e6 * f64::from(n % 3)).collect();
        assert!(!grows(apart, 24, &even) && rise(&even) < 0.2);
        assert!(!grows(Span::ZERO, 24, &growing), "a closed loop does not queue");
    }

    #[test]
    fn answers_to_requests_right_behind_each_other_show_what_one_of_them_takes() {
        let answers = |millis: &[i64]| {
            (0..).zip(millis).map(|(n, at)| (n, Span::from_millis(*at))).collect::<Vec<(u64, Span)>>()
        };
        let closest = |millis: &[i64]| served_closest(&answers(millis));
        assert_eq!(closest(&[1180, 1272, 1364, 1456]), Some(Span::from_millis(92)));
        // A ping between two of them is no slower path; nor is one of them overtaken, or too few.
        assert_eq!(closest(&[1180, 1272, 1464, 1556]), Some(Span::from_millis(92)));
        assert_eq!([closest(&[1180, 1572, 1364, 1456]), closest(&[1180, 1272])], [None; 2]);
    }

    #[test]
    fn requests_become_slower_where_they_were_too_fast_by_a_quarter() {
        let millis = Span::from_millis;
        assert_eq!(slower(millis(10), millis(12)), None);
        assert_eq!(slower(millis(10), millis(40)), Some(millis(50)));
    }
}
