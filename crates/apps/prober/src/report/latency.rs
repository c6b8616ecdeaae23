//! Idle and loaded delay, from the trains that ran.

use netaware_probe::delay_report::{self, Context, EchoRound};
use netaware_record::{
    Health, HistogramShape, IpVersion, LatencyResult, LoadedLatency, PathFacts, VersionResult,
};
use netaware_units::{ByteCount, Span};

use super::{Findings, Load};
use crate::echo::EchoRun;

/// All blocks of idle latency as one result.
pub(super) fn idle(
    version: IpVersion,
    runs: &[EchoRun],
    bins: Option<HistogramShape>,
) -> Option<LatencyResult> {
    let merged = merged(version, &runs.iter(), bins)?;
    // The first blocks of a test are further apart than the rest.
    let spacing = runs.last().map_or(merged.spacing, |run| run.order.shown_spacing());
    Some(LatencyResult { spacing, ..merged })
}

/// The trains beside the rounds of a transfer.
pub(super) fn loaded<'a>(
    version: IpVersion,
    runs: &(impl Iterator<Item = &'a EchoRun> + Clone),
    idle: Option<&LatencyResult>,
) -> Option<LoadedLatency> {
    let rounds: Vec<EchoRound> = runs.clone().map(beside_load).collect();
    merged_of(version, runs, &rounds, None).map(|latency| delay_report::under_load(latency, idle))
}

/// The requests of a run that met the load they were meant for: one that waited for a core of this
/// host may have left when the transfer was over.
pub(super) fn beside_load(run: &EchoRun) -> EchoRound {
    run.round.left_within(MAX_HELD_UP)
}

/// The number of answered requests that left too late to meet the transfer.
pub(super) fn held_up(run: &EchoRun) -> usize {
    run.round.rtts_ns().len() - beside_load(run).rtts_ns().len()
}

/// Short beside the transfers that requests run beside, and longer than a thread of a host that is
/// not overloaded waits for a core.
pub(super) const MAX_HELD_UP: Span = Span::from_millis(50);

fn merged<'a>(
    version: IpVersion,
    runs: &(impl Iterator<Item = &'a EchoRun> + Clone),
    bins: Option<HistogramShape>,
) -> Option<LatencyResult> {
    let rounds: Vec<EchoRound> = runs.clone().map(|run| run.round.clone()).collect();
    merged_of(version, runs, &rounds, bins)
}

fn merged_of<'a>(
    version: IpVersion,
    runs: &(impl Iterator<Item = &'a EchoRun> + Clone),
    rounds: &[EchoRound],
    bins: Option<HistogramShape>,
) -> Option<LatencyResult> {
    let first = runs.clone().next()?;
    let order = first.order;
    let load = Load::of(runs.clone().map(|run| run.cpu));
    let health = Health {
        late_sends: Some(runs.clone().map(|run| run.late_sends).sum()),
        worst_lateness: runs.clone().map(|run| run.worst_lateness).max(),
        stamp_fallbacks: runs.clone().map(|run| run.stamp_fallbacks).sum(),
        host_drops: runs.clone().map(|run| run.host_drops).sum(),
        steal: load.steal,
        prober_busiest_core: load.busiest_core,
        ..Health::default()
    };
    let context = Context {
        method: first.transport.method(),
        version,
        payload: ByteCount(u64::from(order.length)),
        response: ByteCount(u64::from(order.response)),
        pacing: order.pacing,
        bins,
        spacing: runs.clone().map(|run| run.order.shown_spacing()).max().unwrap_or_default(),
        patience: runs.clone().map(|run| run.order.patience).max().unwrap_or_default(),
        health,
    };
    Some(delay_report::latency(rounds, &context))
}

/// What was wrong with answers that could not be used.
pub(super) fn bad_answers(found: &Findings) -> Option<String> {
    let beside = found.tcp.iter().filter_map(|round| round.load.as_ref());
    let runs = found.idle.iter().chain(&found.idle_tcp).chain(beside);
    let (mut length, mut altered) = (0, 0);
    for ignored in runs.map(|run| run.round.counts().ignored) {
        length += ignored.wrong_length;
        altered += ignored.altered;
    }
    said_of_bad(length, altered)
}

/// Requests that never left this host are told of neither the path nor the other end.
pub(super) fn kept_in(found: &Findings) -> Option<String> {
    let beside = found.tcp.iter().filter_map(|round| round.load.as_ref());
    let runs = found.idle.iter().chain(&found.idle_tcp).chain(beside);
    let kept = runs.filter_map(|run| Some((run.round.counts().not_sent, run.why_not_sent?)));
    let mut reasons: Vec<(String, u64)> = Vec::new();
    for (count, why) in kept {
        let why = super::why_not_sent(why);
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, sum)) => *sum += count,
            None => reasons.push((why, count)),
        }
    }
    let count: u64 = reasons.iter().map(|(_, count)| count).sum();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let why = reasons.into_iter().map(|(why, _)| why).collect::<Vec<_>>().join("; ");
    let requests = if count == 1 { "request was" } else { "requests were" };
    (count > 0).then(|| format!("{count} {requests} not sent by this host: {why}"))
}

fn said_of_bad(length: u64, altered: u64) -> Option<String> {
    let of_length = (length > 0).then(|| format!("{length} of another length than asked for"));
    let of_payload = (altered > 0).then(|| format!("{altered} with an altered payload"));
    let what = of_length.into_iter().chain(of_payload).collect::<Vec<_>>().join(", ");
    (!what.is_empty())
        .then(|| format!("bad answers: {what}; they are not taken, and their requests count as lost"))
}

/// Adds what the TTLs of the answers told.
pub(super) fn note_hops(result: &mut VersionResult, runs: &[EchoRun]) {
    let Some((forward, reverse)) = runs.iter().map(|run| run.round.hops()).next_back() else { return };
    if forward.is_some() || reverse.is_some() {
        let path = result.path.get_or_insert_with(PathFacts::default);
        path.hops_forward = forward;
        path.hops_reverse = reverse;
    }
}

#[cfg(test)]
mod tests {
    use super::super::outages::tests::left_late;
    use super::*;

    #[test]
    fn a_bad_answer_is_said_to_be_bad_for_a_reason() {
        let want = "bad answers: 2 of another length than asked for, 1 with an altered payload; they are not taken, and \
                    their requests count as lost";
        assert_eq!(said_of_bad(2, 1).as_deref(), Some(want));
        assert_eq!(said_of_bad(0, 0), None);
    }

    #[test]
    fn requests_that_left_after_the_transfer_tell_nothing_of_its_load() {
        let run = left_late(100, 30..100);
        let found = loaded(IpVersion::V4, &[&run].into_iter(), None).unwrap();
        let median = found.latency.rtt.unwrap().p50;
        assert_eq!((held_up(&run), median), (70, Span::from_millis(90)));
        // Where all of them did, nothing is known.
        let none = loaded(IpVersion::V4, &[&left_late(100, 0..100)].into_iter(), None);
        assert!(none.is_none_or(|found| found.latency.rtt.is_none()));
    }
}
