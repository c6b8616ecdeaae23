//! From metrics to advice, one line for each use.

use std::cmp::Reverse;

use netaware_record::{Direction, Metric, MetricComparison, Preference, Use, Verdict};
use netaware_units::{BitRate, Span};

use super::{Counted, Share, Standing, sample};
use crate::loss_split::wilson;

/// `losses` are those that were counted.
pub(super) fn all(
    metrics: &[MetricComparison],
    losses: &[Counted],
    standings: [Standing<'_>; 2],
) -> Vec<Verdict> {
    let verdict = |purpose| verdict(purpose, metrics, losses, standings);
    [Use::Bulk, Use::Interactive, Use::Media].map(verdict).into()
}

fn verdict(
    purpose: Use,
    metrics: &[MetricComparison],
    losses: &[Counted],
    standings: [Standing<'_>; 2],
) -> Verdict {
    let [v4, v6] = standings;
    let (prefer, because) = match (v4.out, v6.out) {
        (Some(v4), Some(v6)) => (Preference::NotCompared, format!("neither answered: IPv4 {v4}; IPv6 {v6}")),
        (Some(why), None) => against(("IPv4", why), ("IPv6", v6), purpose),
        (None, Some(why)) => against(("IPv6", why), ("IPv4", v4), purpose),
        (None, None) => match <(Option<&str>, Option<&str>)>::from(
            [v4, v6].map(|it| it.stalled.filter(|_| purpose == Use::Bulk)),
        ) {
            (Some(why), None) => unless_it_lacks(format!("over IPv4 {why}"), "IPv6", lacks(v6, purpose)),
            (None, Some(why)) => unless_it_lacks(format!("over IPv6 {why}"), "IPv4", lacks(v4, purpose)),
            (Some(why), Some(_)) => (Preference::NotCompared, format!("over both versions {why}")),
            (None, None) => {
                let relevant = relevant(purpose, metrics, losses);
                let (prefer, because) = weigh(&relevant, losses, || too_little(purpose, [v4, v6]));
                let beside = beside_tcp(purpose, losses, [v4, v6]).filter(|_| !relevant.is_empty());
                (prefer, because + &beside.unwrap_or_default() + broken_note([v4, v6]))
            }
        },
    };
    Verdict { purpose, prefer, because }
}

/// That the figures of one version are those of a part of its phases.
fn broken_note(standings: [Standing<'_>; 2]) -> &'static str {
    match standings.map(|standing| standing.is_broken) {
        [true, false] => " (IPv4 broke off before its end, and IPv6 did not)",
        [false, true] => " (IPv6 broke off before its end, and IPv4 did not)",
        [true, true] => " (both versions broke off before their end)",
        [false, false] => "",
    }
}

/// Why there is nothing to compare.
fn too_little(purpose: Use, standings: [Standing<'_>; 2]) -> String {
    let lacks = standings.map(|standing| standing.lacks.contains(&purpose));
    match lacks {
        [true, true] => "nothing that counts for it was measured",
        [true, false] => "nothing that counts for it was measured over IPv4",
        [false, true] => "nothing that counts for it was measured over IPv6",
        [false, false] => "not measured often enough over both versions",
    }
    .to_owned()
}

/// One version could not be measured. The other one is preferred if it was measured itself, nothing
/// of it failed, and it does not lose so much that the first one may have been lost by the same.
fn against(
    (gone, why): (&str, &str),
    (other, standing): (&str, Standing<'_>),
    purpose: Use,
) -> (Preference, String) {
    let heavy =
        |share| format!("lost {} of its own requests: a loss as heavy as this ends sessions", counted(share));
    let broken = standing.is_broken.then(|| BROKE_OFF.to_owned());
    let lacks = broken.or(standing.loses.map(heavy)).or_else(|| lacks(standing, purpose));
    unless_it_lacks(format!("{gone} could not be measured: {why}"), other, lacks)
}

/// What a version has not, that would have to be preferred to one without a figure.
fn lacks(standing: Standing<'_>, purpose: Use) -> Option<String> {
    let what = if standing.is_broken {
        BROKE_OFF
    } else if standing.lacks.contains(&purpose) {
        "has no figure that counts for this"
    } else if standing.failed.contains(&purpose) {
        "failed in a part of what counts for this"
    } else {
        return None;
    };
    Some(what.to_owned())
}

/// The other version is preferred to one without a figure, of which `gone` tells, unless it lacks
/// something itself.
fn unless_it_lacks(gone: String, other: &str, lacks: Option<String>) -> (Preference, String) {
    match lacks {
        Some(lacks) => (Preference::NotCompared, format!("{gone}; and {other} {lacks}")),
        None if other == "IPv4" => (Preference::V4, gone),
        None => (Preference::V6, gone),
    }
}

const BROKE_OFF: &str = "broke off before its end";

/// What was lost of requests beside TCP, where more of them were observed than of what was sent
/// without it: few requests say little of what is lost under load.
fn beside_tcp(purpose: Use, losses: &[Counted], standings: [Standing<'_>; 2]) -> Option<String> {
    let [v4, v6] = standings.map(|standing| standing.beside_tcp);
    let shares = [v4?, v6?];
    let most = losses.iter().map(Counted::sample).max().unwrap_or(0);
    let [of_v4, of_v6] = shares.map(counted);
    let is_told = purpose == Use::Media && sample(shares) > most && shares.iter().any(|share| share.part > 0);
    is_told.then(|| {
        format!(
            "; of requests beside TCP, which are more, IPv4 lost {of_v4} and IPv6 {of_v6}, perhaps in part in queues \
             that TCP filled"
        )
    })
}

/// "2.00 % (60 of 3000, 1.56 % to 2.57 %)".
fn counted(share: Share) -> String {
    let show = |value| in_unit(Metric::UdpLoss, value);
    let Share { part, of } = share;
    wilson(part, of).map_or_else(
        || format!("{part} of {of}"),
        |it| format!("{} ({part} of {of}, {} to {})", show(it.estimate), show(it.lo), show(it.hi)),
    )
}

/// What a loss was counted from.
fn find<'a>(losses: &'a [Counted], metric: &MetricComparison) -> Option<&'a Counted> {
    losses.iter().find(|loss| (loss.metric, loss.direction) == (metric.metric, metric.direction))
}

/// Whether single requests show a loss, and streams of more datagrams both ways do not, leave no
/// room for it in their intervals together, and nothing casts a doubt on them: few requests show
/// the chance of a moment. The other way round a stream may lose what single requests do not.
fn is_outweighed(metric: &MetricComparison, all: &[&MetricComparison], losses: &[Counted]) -> bool {
    let Some(own) = find(losses, metric).filter(|_| metric.metric == Metric::IdleLoss) else { return false };
    let stream =
        |way: Direction| all.iter().copied().find(|it| (it.metric, it.direction) == (Metric::UdpLoss, way));
    let (Some(down), Some(up)) = (stream(Direction::Reverse), stream(Direction::Forward)) else {
        return false;
    };
    let shows_none = [down, up].into_iter().all(|stream| {
        let is_larger = find(losses, stream).is_some_and(|loss| loss.sample() > own.sample());
        let favours_nobody = stream.favours == Preference::NoDifferenceShown && !stream.host_limited;
        is_larger && favours_nobody && stream.doubt.is_none()
    });
    // A request and its answer meet the losses of both ways.
    let both_ways = (down.difference.lo + up.difference.lo)..=(down.difference.hi + up.difference.hi);
    shows_none && !both_ways.contains(&metric.difference.estimate)
}

/// A loss that the preferred version has and the other one has not, by their counts, and why it did
/// not count against it.
fn uncounted(
    prefer: Preference,
    metrics: &[&MetricComparison],
    losses: &[Counted],
    tell: impl Fn(&MetricComparison) -> String,
) -> String {
    let speaks_against = |metric: &&MetricComparison| {
        let Some([Some(v4), Some(v6)]) =
            find(losses, metric).map(|loss| loss.shares.map(|share| wilson(share.part, share.of)))
        else {
            return false;
        };
        let is_clear = if prefer == Preference::V4 { v4.lo > v6.hi } else { v6.lo > v4.hi };
        is_clear && metric.difference.estimate.abs() > metric.margin
    };
    let Some(metric) = metrics.iter().copied().find(speaks_against) else { return String::new() };
    let needed = MetricComparison::needed(metric.margin, metric.rounds);
    let why = if metric.doubt.is_some() {
        // It is told with the figures.
        ""
    } else if metric.host_limited {
        ", because a host and not the path may have lost it"
    } else if is_outweighed(metric, metrics, losses) {
        ", because streams of more datagrams both ways do not show it"
    } else if metric.difference.estimate.abs() <= needed {
        ", because it is too small for one round"
    } else {
        ", because losses came in bursts, and the interval of the difference holds zero"
    };
    format!("; not counted against it: {}{why}", tell(metric))
}

/// What counts for a use, weightiest first: for bulk what most people do most, download. Of losses
/// the one of which more was observed comes first.
fn relevant<'a>(
    purpose: Use,
    metrics: &'a [MetricComparison],
    losses: &[Counted],
) -> Vec<&'a MetricComparison> {
    let parallel = metrics.iter().any(|metric| metric.metric == Metric::TcpParallel);
    let order: &[Metric] = match purpose {
        Use::Bulk if parallel => &[Metric::TcpParallel],
        Use::Bulk => &[Metric::TcpSingle],
        Use::Interactive => &[Metric::IdleRtt, Metric::LoadedRtt],
        Use::Media => &[Metric::UdpLoss, Metric::IdleLoss, Metric::DelayVariation, Metric::LoadedRtt],
    };
    let directions = [Direction::Reverse, Direction::Forward, Direction::RoundTrip];
    let wanted = order.iter().flat_map(|metric| directions.map(|direction| (*metric, direction)));
    let mut found: Vec<&MetricComparison> = wanted
        .filter_map(|wanted| metrics.iter().find(|found| (found.metric, found.direction) == wanted))
        .collect();
    // What is no loss keeps its place behind them.
    found.sort_by_key(|metric| Reverse(find(losses, metric).map_or(0, Counted::sample)));
    found
}

/// Who differs decides, if all that differ agree. A figure that a host set decides nothing: it
/// tells what the host did at that moment, and another host would tell something else. Nor does a
/// loss of few requests that a larger sample does not show ([`is_outweighed`]). Where they
/// contradict each other we say so and prefer none: how much upload weighs against download is the
/// reader's to know.
fn weigh(
    metrics: &[&MetricComparison],
    losses: &[Counted],
    too_little: impl FnOnce() -> String,
) -> (Preference, String) {
    let favouring = |who: Preference| {
        metrics.iter().copied().filter(move |metric| {
            metric.favours == who && !metric.host_limited && !is_outweighed(metric, metrics, losses)
        })
    };
    let tell = |metric: &MetricComparison| tell(metric, find(losses, metric)) + &caution(metric);
    let text = |chosen: &[&MetricComparison]| {
        let told = &chosen[..chosen.len().min(MOST_TOLD)];
        let of_one_round = !told.is_empty() && told.iter().all(|metric| is_of_one_round(metric));
        let cautioned = |metric: &&MetricComparison| {
            if of_one_round { self::tell(metric, find(losses, metric)) } else { tell(metric) }
        };
        let text: Vec<String> = told.iter().map(cautioned).collect();
        (if of_one_round { ONE_ROUND } else { "" }).to_owned() + &text.join("; ") + host_note(chosen)
    };
    let (v4, v6): (Vec<_>, Vec<_>) =
        (favouring(Preference::V4).collect(), favouring(Preference::V6).collect());
    match (v4.first(), v6.first()) {
        (None, None) if metrics.is_empty() => (Preference::NotCompared, too_little()),
        (None, None) => (Preference::NoDifferenceShown, text(&worse_ways(metrics))),
        (Some(_), None) => (Preference::V4, text(&v4) + &uncounted(Preference::V4, metrics, losses, tell)),
        (None, Some(_)) => (Preference::V6, text(&v6) + &uncounted(Preference::V6, metrics, losses, tell)),
        (Some(for_v4), Some(for_v6)) => {
            let contradiction = format!("contradictory: {}, but {}", tell(for_v4), tell(for_v6));
            (Preference::NoDifferenceShown, contradiction + host_note(&[for_v4, for_v6]))
        }
    }
}

/// Of a delay or a loss the direction in which it is larger: who uses the path meets both, and the
/// worse one decides what he feels. Of rates both directions, since each has its use.
fn worse_ways<'a>(metrics: &[&'a MetricComparison]) -> Vec<&'a MetricComparison> {
    let worst = |metric: &MetricComparison| metric.v4.max(metric.v6);
    let mut kept: Vec<&MetricComparison> = Vec::new();
    for one in metrics {
        match kept.iter_mut().find(|other| other.metric == one.metric && !one.metric.more_is_better()) {
            Some(other) if worst(one) > worst(other) => *other = one,
            Some(_) => {}
            None => kept.push(one),
        }
    }
    kept
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
/// 38.6)". A loss that was counted is told with its counts.
fn tell(metric: &MetricComparison, loss: Option<&Counted>) -> String {
    let show = |value| in_unit(metric.metric, value);
    let own = [metric.v4, metric.v6].map(show);
    let [v4, v6] = loss.map_or(own, |loss| loss.shares.map(counted));
    let way = match metric.direction {
        Direction::RoundTrip => String::new(),
        direction => format!(" {}", direction.name()),
    };
    let (difference, (low, high)) = (metric.difference, bounds(metric));
    let name = metric.metric.name();
    format!(
        "{name}{way}: IPv4 {v4}, IPv6 {v6}, difference {} ({} to {})",
        show(difference.estimate),
        show(low),
        show(high)
    )
}

/// Why a difference may be none of the versions.
fn caution(metric: &MetricComparison) -> String {
    match &metric.doubt {
        Some(doubt) => format!("; it says nothing of the versions, because {doubt}"),
        None if is_of_one_round(metric) => {
            ", in one round: a change of the path between the two would look the same".to_owned()
        }
        None => String::new(),
    }
}

/// Whether a version is favoured, and had one turn only.
fn is_of_one_round(metric: &MetricComparison) -> bool {
    metric.rounds < 2 && metric.doubt.is_none() && metric.favours != Preference::NoDifferenceShown
}

/// What a preference begins with of which nothing was measured twice.
const ONE_ROUND: &str = "by one round, and only if the path did not change between the versions' turns: ";

fn bounds(metric: &MetricComparison) -> (f64, f64) {
    (metric.difference.lo, metric.difference.hi)
}

fn in_unit(metric: Metric, value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    let size = value.abs();
    match metric {
        Metric::TcpSingle | Metric::TcpParallel => format!("{sign}{}", BitRate(size.round() as u64)),
        Metric::UdpLoss | Metric::IdleLoss => format!("{sign}{:.2} %", size * 100.0),
        Metric::IdleRtt | Metric::LoadedRtt | Metric::DelayVariation | Metric::Connect => {
            format!("{sign}{}", Span::from_nanos(size.round() as i64))
        }
    }
}

/// More than two do not fit a line.
const MOST_TOLD: usize = 2;
