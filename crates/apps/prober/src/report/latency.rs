//! Idle and loaded delay, from the trains that ran.

use netaware_probe::delay_report::{self, Context, EchoRound};
use netaware_record::{
    Health, HistogramShape, IpVersion, LatencyResult, LoadedLatency, PathFacts, VersionResult,
};
use netaware_units::ByteCount;

use super::Load;
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
    merged(version, runs, None).map(|latency| delay_report::under_load(latency, idle))
}

fn merged<'a>(
    version: IpVersion,
    runs: &(impl Iterator<Item = &'a EchoRun> + Clone),
    bins: Option<HistogramShape>,
) -> Option<LatencyResult> {
    let first = runs.clone().next()?;
    let order = first.order;
    let rounds: Vec<EchoRound> = runs.clone().map(|run| run.round.clone()).collect();
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
    Some(delay_report::latency(&rounds, &context))
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
