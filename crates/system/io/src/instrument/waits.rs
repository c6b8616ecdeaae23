//! How late waits end.

use netaware_record::{Effort, WaitHow, WaitTiming};
use netaware_units::{Mono, Span};

use super::samples::{mean_and_sd, quantile};
use super::times;
use crate::{clock, pacer};

/// Sleeps with and without slack, and the paced wait, at the lengths that matter for pacing. Quick
/// takes 0.2 s, full 2 s on an idle host.
pub fn waits(effort: Effort) -> Vec<WaitTiming> {
    let kinds = [
        (WaitHow::Sleep, 100, times(effort, 200, 2000)),
        (WaitHow::PreciseSleep, 100, times(effort, 300, 3000)),
        (WaitHow::PreciseSleep, 1000, times(effort, 40, 400)),
        (WaitHow::Paced, 100, times(effort, 300, 3000)),
    ];
    kinds.map(|(how, micros, samples)| wait(how, Span::from_micros(micros), samples)).to_vec()
}

fn wait(how: WaitHow, asked: Span, samples: usize) -> WaitTiming {
    let _precise = (how != WaitHow::Sleep).then(pacer::precise_sleep);
    // Outside of what is measured: the first paced wait would measure the margin.
    let _ = pacer::margin();
    let mut late: Vec<f64> = (0..samples).map(|_| lateness(how, asked)).collect();
    let (mean_ns, sd_ns) = mean_and_sd(&late);
    let mut at = |q| Span(quantile(&mut late, q).round() as i64);
    WaitTiming {
        how,
        asked,
        samples: samples as u64,
        mean_ns,
        sd_ns,
        p50: at(0.5),
        p99: at(0.99),
        max: at(1.0),
    }
}

fn lateness(how: WaitHow, asked: Span) -> f64 {
    let due = clock::now() + asked;
    let woke_at = woken(how, due);
    (woke_at - due).nanos() as f64
}

fn woken(how: WaitHow, due: Mono) -> Mono {
    if how == WaitHow::Paced {
        return pacer::wait_until(due);
    }
    clock::sleep_until(due);
    clock::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_wait_ends_early_and_its_percentiles_are_in_order() {
        let timings = waits(Effort::Quick);
        let asked: Vec<_> = timings.iter().map(|it| (it.how, it.asked.nanos() / 1000)).collect();
        let want = [
            (WaitHow::Sleep, 100),
            (WaitHow::PreciseSleep, 100),
            (WaitHow::PreciseSleep, 1000),
            (WaitHow::Paced, 100),
        ];
        assert_eq!(asked, want);
        for timing in timings {
            assert!(timing.samples >= 40 && timing.mean_ns > 0.0, "{timing:?}");
            assert!(Span::ZERO <= timing.p50 && timing.p50 <= timing.p99 && timing.p99 <= timing.max);
        }
    }
}
