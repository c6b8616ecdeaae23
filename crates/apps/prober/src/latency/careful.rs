//! Requests that a path can carry: a spacing that nobody chose is not to fill a slow one.
//!
//! **Measures** with a few requests at the usual spacing whether round trips grow while they are
//! sent, doubles the spacing until they do not, and once more for safety. Each look waits for its
//! last answer, so the next one finds the queue empty. **Assumes** that a path that carries ten requests without a queue
//! carries more of them. **Biased**: a path that is filled to a little more than it carries shows it
//! only later, in the measurement itself ([`own_queue`]); jitter beyond 20 ms may be taken for a
//! queue, which costs time and no accuracy.

use netaware_io::stop::StopFlag;
use netaware_units::Span;

use crate::echo::{EchoOrder, EchoRun};
use crate::lane::Lane;
use crate::progress::{Progress, Watch};
use crate::request::{LatencyRequest, Rhythm};
use crate::test::planning::{Block, queued};

use super::{Probe, pacing};

/// The request with a spacing that every lane's path was seen to carry, and what to say if that is
/// not the usual one.
pub(super) fn slowed(
    request: &LatencyRequest,
    lanes: &mut [Lane],
    probes: &mut [Vec<Probe>],
    stop: &StopFlag,
    watch: &mut Watch<'_>,
) -> (LatencyRequest, Option<String>) {
    let Rhythm::Open { spacing: usual, arrivals, seed } = request.rhythm else {
        return (request.clone(), None);
    };
    if request.is_spacing_chosen {
        return (request.clone(), None);
    }
    let mut spacing = usual;
    for (lane, probes) in lanes.iter_mut().zip(probes) {
        for probe in probes {
            while lane.is_alive() && !stop.is_raised() && spacing < usual * SLOWEST {
                let Some(run) = probe.run(lane, &look(request, spacing)) else { break };
                if !queued(Block { count: LOOK, spacing }, &run.round.rtts_ns()) {
                    break;
                }
                spacing = spacing * 2;
            }
        }
    }
    if spacing == usual {
        return (request.clone(), None);
    }
    // What a look just carried may still fill the path within a hundred requests.
    spacing = spacing * 2;
    let note = format!(
        "requests go every {spacing} instead of every {usual}, which fills the path's queue; -i chooses"
    );
    watch.tell(Progress::Note(note.clone()));
    let rhythm = Rhythm::Open { spacing, arrivals, seed };
    (
        LatencyRequest {
            rhythm,
            count: request.count.map(|count| fewer(count, usual, spacing)),
            ..request.clone()
        },
        Some(note),
    )
}

/// About what fits the same time, but enough for a quartile.
fn fewer(count: u64, usual: Span, spacing: Span) -> u64 {
    let times = (spacing / usual.0.max(1)).0.max(1).cast_unsigned();
    (count / times).max(FEWEST).min(count)
}

fn look(request: &LatencyRequest, spacing: Span) -> EchoOrder {
    EchoOrder {
        count: Some(LOOK),
        time: None,
        pacing: pacing(Rhythm::even(spacing), 0),
        length: request.request,
        response: request.response,
        patience: request.patience,
        waiting: request.waiting,
    }
}

/// What to say of requests that queued behind each other.
pub(super) fn own_queue(runs: &[EchoRun]) -> Option<&'static str> {
    let fills = |run: &&EchoRun| {
        let (spacing, count) = (run.order.shown_spacing(), run.round.counts().sent());
        run.order.pacing.depth().is_none() && queued(Block { count, spacing }, &run.round.rtts_ns())
    };
    let filled = runs.iter().filter(fills).count();
    (filled * 2 > runs.len()).then_some(
        "round trips grew while requests were sent: the requests themselves fill the path; a longer -i shows it \
         idle",
    )
}

/// Requests of a look, and the fewest of a measurement.
const LOOK: u64 = 10;
const FEWEST: u64 = 40;
/// A path that carries no request in a second is not looked at any longer.
const SLOWEST: i64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Round trips of requests that share a queue with this service time.
    fn answers(count: u64, spacing: Span, service: Span) -> Vec<f64> {
        let mut free = Span::ZERO;
        (0..count)
            .map(|n| {
                let sent = spacing * n.cast_signed();
                free = free.max(sent) + service;
                (free - sent + Span::from_millis(500)).nanos() as f64
            })
            .collect()
    }

    #[test]
    fn requests_every_10_ms_are_seen_to_fill_30_kbit_and_twice_what_a_look_passed_carries_them() {
        // 92 bytes at 30 kbit/s.
        let service = Span::from_micros(24_533);
        let is_filled = |millis| {
            let spacing = Span::from_millis(millis);
            queued(Block { count: LOOK, spacing }, &answers(LOOK, spacing, service))
        };
        assert_eq!([10, 20, 40, 80].map(is_filled), [true, false, false, false]);
        assert!(service < Span::from_millis(20) * 2, "what is chosen is below the path's rate");
    }

    #[test]
    fn slower_requests_are_fewer_and_still_enough() {
        let millis = Span::from_millis;
        assert_eq!(fewer(200, millis(10), millis(20)), 100);
        assert_eq!(fewer(200, millis(10), millis(640)), FEWEST);
        assert_eq!(fewer(5, millis(10), millis(20)), 5);
    }
}
