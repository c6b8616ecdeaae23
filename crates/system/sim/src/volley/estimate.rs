//! Drives an estimator to its end.

use netaware_path::{Estimate, Estimator, Step};
use netaware_units::Span;

use super::VolleyPath;

/// An estimation that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimated {
    /// What the estimator said at last.
    pub answer: Option<Estimate>,
    /// Virtual time from its begin to its end.
    pub took: Span,
    /// IP bytes that it asked to send.
    pub bytes: u64,
    /// Volleys that it asked for.
    pub volleys: u32,
    /// Whether it said itself that it was done.
    pub done: bool,
}

/// Asks `estimator` for volleys until it is done. `rtt` passes between the last arrival of a volley
/// and its report; where packets were lost, the far end first waits as long as a patient program
/// would.
pub fn estimate(path: &mut VolleyPath, estimator: &mut dyn Estimator, rtt: Span) -> Estimated {
    let began = path.now();
    let (mut bytes, mut volleys, mut done) = (0, 0, false);
    while volleys < MOST_VOLLEYS && path.now().since(began) < LONGEST {
        let Step::Volley { volley, due } = estimator.next(path.now()) else {
            done = true;
            break;
        };
        path.pass_to(due.max(path.now()));
        let started = path.now();
        let report = path.run(&volley);
        let complete = report.trains.iter().all(|train| train.arrivals.len() == train.sent.len());
        if !complete {
            path.pass_to(path.last_sent() + rtt + PATIENCE);
        }
        path.pass_to(path.now() + rtt);
        estimator.take(path.now(), &report, path.now().since(started));
        bytes += volley.bytes();
        volleys += 1;
    }
    Estimated { answer: estimator.answer(), took: path.now().since(began), bytes, volleys, done }
}

/// An estimator that never ends is cut off here.
const MOST_VOLLEYS: u32 = 100_000;
const LONGEST: Span = Span::from_secs(600);
/// How long somebody waits for a packet that may still come.
const PATIENCE: Span = Span::from_millis(50);
