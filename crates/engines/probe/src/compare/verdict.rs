//! From metrics to advice, one line for each use.

use netaware_record::{Direction, IpVersion, Metric, MetricComparison, Preference, Use, Verdict};
use netaware_units::{BitRate, Span};

use super::Unreached;

pub(super) fn all(metrics: &[MetricComparison], unreached: Unreached<'_>) -> Vec<Verdict> {
    [Use::Bulk, Use::Interactive, Use::Media].map(|purpose| verdict(purpose, metrics, unreached)).into()
}

fn verdict(purpose: Use, metrics: &[MetricComparison], unreached: Unreached<'_>) -> Verdict {
    let (prefer, because) = match (unreached.v4, unreached.v6) {
        (Some(v4), Some(v6)) => {
            (Preference::NotCompared, format!("neither was measured to its end: IPv4 {v4}; IPv6 {v6}"))
        }
        (Some(why), None) => (Preference::V6, format!("IPv4 could not be measured: {why}")),
        (None, Some(why)) => (Preference::V4, format!("IPv6 could not be measured: {why}")),
        (None, None) => stalled(purpose, unreached)
            .or_else(|| Some((Preference::NotCompared, unreached.changed?.to_owned())))
            .unwrap_or_else(|| weigh(&relevant(purpose, metrics))),
    };
    Verdict { purpose, prefer, because }
}

/// A version over which TCP carries nothing is of no use for what needs TCP.
fn stalled(purpose: Use, unreached: Unreached<'_>) -> Option<(Preference, String)> {
    if purpose == Use::Media {
        return None;
    }
    Some(match (unreached.stalled_v4, unreached.stalled_v6) {
        (None, None) => return None,
        (Some(v4), Some(v6)) => {
            (Preference::NotCompared, format!("TCP carried nothing over either: IPv4 {v4}; IPv6 {v6}"))
        }
        (Some(why), None) => (Preference::V6, format!("TCP over IPv4 carried nothing: {why}")),
        (None, Some(why)) => (Preference::V4, format!("TCP over IPv6 carried nothing: {why}")),
    })
}

/// What counts for a use, weightiest first: for bulk what most people do most, download.
fn relevant(purpose: Use, metrics: &[MetricComparison]) -> Vec<&MetricComparison> {
    let parallel = metrics.iter().any(|metric| metric.metric == Metric::TcpParallel);
    let order: &[Metric] = match purpose {
        Use::Bulk if parallel => &[Metric::TcpParallel],
        Use::Bulk => &[Metric::TcpSingle],
        Use::Interactive => &[Metric::IdleRtt, Metric::LoadedRtt],
        Use::Media => &[Metric::UdpLoss, Metric::DelayVariation, Metric::LoadedRtt],
    };
    let directions = [Direction::Reverse, Direction::Forward, Direction::RoundTrip];
    let wanted = order.iter().flat_map(|metric| directions.map(|direction| (*metric, direction)));
    wanted
        .filter_map(|wanted| metrics.iter().find(|found| (found.metric, found.direction) == wanted))
        .collect()
}

/// Who differs decides, if all that differ agree. A figure that a host set decides nothing: it
/// tells what the host did at that moment, and another host would tell something else. Where they
/// contradict each other we say so and prefer none: how much upload weighs against download is the
/// reader's to know.
fn weigh(metrics: &[&MetricComparison]) -> (Preference, String) {
    let favouring = |who: Preference| {
        metrics.iter().copied().filter(move |metric| metric.favours == who && !metric.host_limited)
    };
    let text = |chosen: &[&MetricComparison]| {
        let told: Vec<String> = chosen.iter().take(MOST_TOLD).map(|metric| tell(metric)).collect();
        told.join("; ") + host_note(chosen)
    };
    let decided = |chosen: &[&MetricComparison]| text(chosen) + round_note(chosen);
    let (v4, v6): (Vec<_>, Vec<_>) =
        (favouring(Preference::V4).collect(), favouring(Preference::V6).collect());
    match (v4.first(), v6.first()) {
        (None, None) if metrics.is_empty() => {
            (Preference::NotCompared, "not measured over both versions, or not often enough".to_owned())
        }
        (None, None) => (Preference::NoDifferenceShown, text(metrics)),
        (Some(_), None) => (Preference::V4, decided(&v4)),
        (None, Some(_)) => (Preference::V6, decided(&v6)),
        (Some(for_v4), Some(for_v6)) => {
            let contradiction = format!("contradictory: {}, but {}", tell(for_v4), tell(for_v6));
            (Preference::NoDifferenceShown, contradiction + host_note(&[for_v4, for_v6]))
        }
    }
}

/// What a preference that rests on one round cannot know.
fn round_note(told: &[&MetricComparison]) -> &'static str {
    let takes_turns = |metric: &&&MetricComparison| {
        matches!(metric.metric, Metric::TcpSingle | Metric::TcpParallel | Metric::LoadedRtt | Metric::UdpLoss)
    };
    if told.iter().take(MOST_TOLD).filter(takes_turns).any(|metric| metric.rounds < 2) {
        " (measured in one round: what changed between the two turns looks like a difference)"
    } else {
        ""
    }
}

fn host_note(told: &[&MetricComparison]) -> &'static str {
    let told = &told[..told.len().min(MOST_TOLD)];
    match told.iter().filter(|metric| metric.host_limited).count() {
        0 => "",
        n if n == told.len() => " (set by the hosts: it compares hosts, not paths)",
        _ => " (in part set by the hosts)",
    }
}

/// "TCP, parallel streams down: IPv4 38.2 Mbit/s, IPv6 76.1 Mbit/s, difference 37.9 Mbit/s (37.1 to
/// 38.6)".
fn tell(metric: &MetricComparison) -> String {
    let show = |value| in_unit(metric.metric, value);
    let way = match metric.direction {
        Direction::RoundTrip => String::new(),
        direction => format!(" {}", direction.name()),
    };
    let (difference, (low, high)) = (metric.difference, bounds(metric));
    let name = metric.metric.name();
    format!(
        "{name}{way}: IPv4 {}{}, IPv6 {}{}, difference {} ({} to {})",
        at_least(metric, IpVersion::V4),
        show(metric.v4),
        at_least(metric, IpVersion::V6),
        show(metric.v6),
        show(difference.estimate),
        show(low),
        show(high)
    )
}

/// TCP was still speeding up.
fn at_least(metric: &MetricComparison, version: IpVersion) -> &'static str {
    if metric.lower_bounds.contains(&version) { "at least " } else { "" }
}

fn bounds(metric: &MetricComparison) -> (f64, f64) {
    (metric.difference.lo, metric.difference.hi)
}

fn in_unit(metric: Metric, value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    let size = value.abs();
    match metric {
        Metric::TcpSingle | Metric::TcpParallel => format!("{sign}{}", BitRate(size.round() as u64)),
        Metric::UdpLoss => format!("{sign}{:.2} %", size * 100.0),
        Metric::IdleRtt | Metric::LoadedRtt | Metric::DelayVariation | Metric::Connect => {
            format!("{sign}{}", Span::from_nanos(size.round() as i64))
        }
    }
}

/// More than two do not fit a line.
const MOST_TOLD: usize = 2;
