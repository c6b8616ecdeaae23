//! One-way delay as the record has it.

use netaware_probe::stamp::clock::{ClockMethod, ClockRelation, relate};
use netaware_probe::stamp::report::Way;
use netaware_record::passive::ClockState;
use netaware_record::{Direction, Health, IpVersion, Layer, OwdClock, OwdReflector, OwdResult, Pedigree};
use netaware_units::{ByteCount, ClockSource, Span};
use netaware_wire::stamp::ErrorEstimate;

use super::route::Shift;
use crate::owd::{Flow, OwdRequest};

/// Of a flow that had answers.
pub(crate) fn result(version: IpVersion, request: &OwdRequest, flow: &Flow) -> OwdResult {
    let Flow { log, run, options, local } = flow;
    let counts = run.counts;
    let relation = relate(log.exchanges(), options.error, run.same_clock == Some(true));
    let relation = relation.as_ref();
    let mut forward = log.way(Way::Forward, relation);
    forward.dscp = run.told.class.map(|class| class.dscp);
    let stamps = log.worst_stamps().map_or(ClockSource::Application, |(worst, _)| worst.by);
    OwdResult {
        pedigree: pedigree(version, stamps, relation),
        port: request.target.port,
        payload: ByteCount(request.length as u64),
        spacing: request.interval,
        sent: counts.answered + counts.lost + counts.abandoned,
        not_sent: counts.not_sent,
        received: counts.answered,
        lost: counts.lost,
        lost_somewhere: counts.lost_somewhere(),
        unknown: counts.abandoned,
        late: counts.late,
        patience: run.patience,
        reverse: log.way(Way::Reverse, relation),
        forward,
        rtt: log.rtt(),
        dwell: log.dwell(),
        clock: relation.map(|relation| clocks(relation, flow, local)),
        reflector: OwdReflector {
            authenticated: request.key.is_some(),
            stateful: run.stateful,
            extensions: run.asked_questions.then(|| run.told.counters.is_some()),
            restarts: log.restarts(),
            ignored: counts.ignored.foreign + counts.ignored.unasked + counts.ignored.unproven,
            unproven: counts.ignored.unproven,
        },
        health: Health {
            late_sends: Some(run.drive.late_sends),
            worst_lateness: Some(run.drive.worst_lateness),
            not_sent: Some(run.drive.not_sent),
            host_drops: Some(run.drive.drops),
            stamp_fallbacks: Some(run.drive.stamp_fallbacks),
            ..Health::default()
        },
    }
}

/// That the path's round trip rose or fell in the midst of a flow of these round trips, in the
/// order sent, and stayed so.
pub(crate) fn moved(version: IpVersion, rtts_ns: &[f64]) -> Option<String> {
    Shift::of_idle(rtts_ns).map(|shift| shift.warning(version))
}

fn pedigree(version: IpVersion, clock: ClockSource, relation: Option<&ClockRelation>) -> Pedigree {
    let uncertainty = relation.map_or_else(String::new, |relation| {
        let bound = relation.bound;
        match relation.method {
            ClockMethod::SameHost => format!("±{bound}: both ends read the same clock"),
            ClockMethod::ClockDaemons => format!("±{bound}: what both clocks say that they may be off by"),
            ClockMethod::ActiveExchange => {
                format!("±{bound}: half of the least round trip, as nobody can tell how unequal the ways are")
            }
        }
    });
    Pedigree {
        method: "owd".to_owned(),
        layer: Layer::Payload,
        direction: Direction::RoundTrip,
        version,
        clock,
        uncertainty,
    }
}

fn clocks(relation: &ClockRelation, flow: &Flow, local: &ClockState) -> OwdClock {
    let errors = flow.log.exchanges().iter().map(|it| it.error);
    let worst = errors.max_by_key(|error| (!error.synchronised, error.span()));
    let doubts = [(relation.contradicted, "contradicted"), (relation.stepped, "stepped")];
    OwdClock {
        offset: relation.offset,
        skew_ppm: relation.skew_ppm,
        bound: relation.bound,
        method: relation.method.name().to_owned(),
        local: ClockState { stepped: flow.run.stepped, ..local.clone() },
        remote_synchronised: worst.is_some_and(|error| error.synchronised),
        remote_error: worst.map_or(Span::ZERO, ErrorEstimate::span),
        remote_source: flow.run.told.synchronised_by.and_then(source).map(str::to_owned),
        doubts: doubts.into_iter().filter(|(is, _)| *is).map(|(_, name)| name.to_owned()).collect(),
    }
}

/// IANA, STAMP Synchronization Sources.
fn source(number: u8) -> Option<&'static str> {
    match number {
        1 => Some("ntp"),
        2 => Some("ptp"),
        3 => Some("bits"),
        4 => Some("satellites"),
        5 => Some("nothing"),
        _ => None,
    }
}
