//! A single chirp's own estimate: the rate from which on its queueing delay no longer comes back.
//!
//! Ribeiro et al., pathChirp, PAM 2003: an excursion begins where the delay rises and ends where it
//! has fallen below a fraction 1/F of its peak. Steps within an excursion that lasted long enough
//! are taken for over the available bandwidth at their own rates; from the beginning of the last
//! excursion, the one that does not end, on it is that one's rate. The estimate is the mean over
//! the steps, weighed by their times. **Biased** high by up to a step, and high where the delay
//! never rises: then it is the highest rate of the chirp.

use crate::available::passage::Segment;

/// bit/s; `None` for fewer than four steps, or if one in between is missing.
pub(super) fn estimate(chirp: &[Option<Segment>]) -> Option<f64> {
    let steps: Vec<&Segment> = chirp.iter().map_while(Option::as_ref).collect();
    // The last steps may be missing: nothing shows where the last batch ended.
    let hole = chirp.iter().skip(steps.len()).any(Option::is_some);
    if steps.len() < 4 || hole {
        return None;
    }
    let rates: Vec<f64> = steps.iter().map(|step| step.bits / step.sent_ns * 1e9).collect();
    let last = steps.last()?;
    let mut delays: Vec<f64> = steps.iter().map(|step| step.delay).collect();
    delays.push(last.delay + last.received_ns - last.sent_ns);
    let (own, open) = excursions(&delays, &rates);
    let sums = steps.iter().zip(&own).fold((0.0, 0.0), |(sum, weight), (step, own)| {
        (sum + own.unwrap_or(open) * step.sent_ns, weight + step.sent_ns)
    });
    Some(sums.0 / sums.1)
}

/// For each step its own estimate, if an excursion gives it one, and the rate of the excursion that
/// does not end.
fn excursions(delays: &[f64], rates: &[f64]) -> (Vec<Option<f64>>, f64) {
    let mut own = vec![None; rates.len()];
    let rises = |at: usize| delays[at + 1] > delays[at];
    let mut begin = 0;
    loop {
        let Some(first) = (begin..rates.len()).find(|at| rises(*at)) else {
            return (own, rates[rates.len() - 1]);
        };
        let Some(end) = ends(delays, first) else { return (own, rates[first]) };
        if end - first >= LONG {
            for at in (first..end).filter(|at| rises(*at)) {
                own[at] = Some(rates[at]);
            }
        }
        begin = end;
    }
}

/// Where the excursion from `first` ends.
fn ends(delays: &[f64], first: usize) -> Option<usize> {
    let mut peak = 0.0_f64;
    (first + 1..delays.len()).find(|at| {
        let over = delays[*at] - delays[first];
        peak = peak.max(over);
        over < peak / FALL
    })
}

/// Part of the peak below which an excursion ends.
const FALL: f64 = 1.5;
/// Steps of an excursion that counts.
const LONG: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// A chirp of ten steps over a fluid link that queues from `available` on.
    fn chirp(available: f64, capacity: f64) -> Vec<Option<Segment>> {
        let mut delay = 0.0;
        let step = |number: u32| {
            let rate = 10.0 * 1.25_f64.powi(number as i32);
            let sent_ns = 1000.0 / rate * 1e9;
            let strain = ((rate - available) / capacity).max(0.0);
            let segment = Segment { sent_ns, received_ns: sent_ns * (1.0 + strain), bits: 1000.0, delay };
            delay += sent_ns * strain;
            Some(segment)
        };
        (0..10).map(step).collect()
    }

    #[test]
    fn the_last_excursion_begins_within_a_step_of_the_truth() {
        for available in [12.0, 20.0, 31.0, 60.0] {
            let found = estimate(&chirp(available, 100.0)).unwrap();
            assert!(found >= available && found <= available * 1.25, "{found} for {available}");
        }
    }

    #[test]
    fn a_passing_burst_is_not_the_end() {
        let mut burst = chirp(40.0, 100.0);
        for (at, delay) in [(1, 5e6), (2, 8e6), (3, 1e6), (4, 0.0)] {
            burst[at].as_mut().unwrap().delay += delay;
        }
        let found = estimate(&burst).unwrap();
        assert!((40.0..50.0).contains(&found), "{found}");
    }

    #[test]
    fn what_never_queues_is_the_highest_rate() {
        let found = estimate(&chirp(1e9, 1e9)).unwrap();
        assert!((found - 10.0 * 1.25_f64.powi(9)).abs() < 1e-6);
        assert_eq!(estimate(&chirp(30.0, 100.0)[..3]), None);
        let mut lossy = chirp(30.0, 100.0);
        lossy[5] = None;
        assert_eq!(estimate(&lossy), None);
    }
}
