//! Drives a careful method to its end, as the prober does: packets are waited for as long as a
//! responder waits, and what comes later does not count.

use netaware_path::{Careful, Estimate, Estimator, NoFigure, Step, VolleyPatience, VolleyReport};
use netaware_units::{Mono, Span};

use super::VolleyPath;

/// A careful estimation that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Concluded {
    /// The figure, or why there is none.
    pub conclusion: Result<Estimate, NoFigure>,
    /// Virtual time from its begin to its end.
    pub took: Span,
    /// When each packet left, and its bytes, in the order of sending.
    pub sent: Vec<(Mono, u32)>,
    /// Volleys that it asked for.
    pub volleys: u32,
}

impl Concluded {
    /// IP bytes that left.
    pub fn bytes(&self) -> u64 {
        self.sent.iter().map(|(_, bytes)| u64::from(*bytes)).sum()
    }
}

/// Asks `careful` for volleys until it is done. `spoil` is what happens to reports on their way.
pub fn conclude(
    path: &mut VolleyPath,
    careful: &mut Careful,
    rtt: Span,
    spoil: impl FnMut(Mono, &mut VolleyReport),
) -> Concluded {
    conclude_beside(path, careful, rtt, rtt / 2, spoil)
}

/// The same on a path whose model has less delay than its round trip: `back` passes between the
/// last arrival of a volley and its report.
pub(crate) fn conclude_beside(
    path: &mut VolleyPath,
    careful: &mut Careful,
    rtt: Span,
    back: Span,
    mut spoil: impl FnMut(Mono, &mut VolleyReport),
) -> Concluded {
    let began = path.now();
    let mut patience = VolleyPatience::new(rtt);
    let (mut sent, mut volleys) = (Vec::new(), 0);
    while let Step::Volley { volley, due } = careful.next(path.now()) {
        path.pass_to(due.max(path.now()));
        let started = path.now();
        let mut report = path.run(&volley);
        for (train, report) in volley.trains.iter().zip(&report.trains) {
            let left = report.sent.iter().flatten();
            sent.extend(left.map(|at| (Mono(at.unsigned_abs()), train.length)));
        }
        spoil(path.now(), &mut report);
        let wait = patience.now();
        let is_complete = cut_late(&mut report, wait);
        if !is_complete {
            path.pass_to(path.last_sent().max(path.now()) + wait);
        }
        path.pass_to(path.now() + back);
        patience.observe(&report);
        careful.take(path.now(), &report, path.now().since(started));
        volleys += 1;
        assert!(volleys < MOST_VOLLEYS, "no end: {careful:?}");
    }
    Concluded { conclusion: careful.conclusion(), took: path.now().since(began), sent, volleys }
}

/// Leaves out what came after nothing had for so long; says whether all has come.
fn cut_late(report: &mut VolleyReport, wait: Span) -> bool {
    let mut last: Option<i64> = None;
    let mut is_complete = true;
    for train in &mut report.trains {
        let count = train.arrivals.len();
        let planned = train.sent.iter().flatten().max().copied();
        train.arrivals.retain(|arrival| {
            let since = last.max(planned.map(|at| at.saturating_add(wait.nanos())));
            let is_late = since.is_some_and(|last| arrival.at.saturating_sub(last) > wait.nanos());
            last = last.max(Some(arrival.at));
            !is_late
        });
        let left = train.sent.iter().flatten().count();
        is_complete &= train.arrivals.len() == count && train.arrivals.len() >= left;
    }
    is_complete
}

/// A method that never ends is cut off here.
const MOST_VOLLEYS: u32 = 20_000;
