//! Paths that tests make up, one train at a time.

use netaware_units::{Mono, Span};

use crate::{Arrival, Estimator, Instrument, Step, Train, TrainReport, VolleyReport};

pub(super) fn instrument() -> Instrument {
    Instrument {
        largest: 1500,
        smallest: 200,
        rtt: Span::from_millis(10),
        send_gap: Span(500),
        send_error: Span(300),
        receive_error: Span(100),
        largest_burst: 750_000,
        max_load: 0.1,
        time_limit: Span::from_secs(30),
        carried: None,
    }
}

/// Runs over an answer to each volley that `path` makes up; gives the end and the time.
pub(super) fn drive(estimator: &mut dyn Estimator, mut path: impl FnMut(&Train, i64) -> TrainReport) -> Span {
    let mut now = Mono(1_000_000);
    while let Step::Volley { volley, due } = estimator.next(now) {
        now = now.max(due);
        let mut trains = Vec::new();
        for train in &volley.trains {
            now += train.rest;
            trains.push(path(train, now.0.cast_signed()));
        }
        now += Span::from_millis(10);
        estimator.take(now, &VolleyReport { trains }, Span::from_millis(10));
    }
    now.since(Mono(1_000_000))
}

pub(super) fn sent(train: &Train, at: i64) -> Vec<Option<i64>> {
    (0..train.packets).map(|n| Some(at + i64::from(n) * 500)).collect()
}

/// A link without load that sends a packet every `gap` ns.
pub(super) fn ideal(train: &Train, at: i64, gap: i64) -> TrainReport {
    let arrival = |number: u32| Arrival { number, at: at - 77 + i64::from(number) * gap };
    TrainReport { sent: sent(train, at), arrivals: (0..train.packets).map(arrival).collect() }
}
