//! What was the limit of a transfer.

use netaware_probe::goodput::{MeasuredRound, goodput};
use netaware_probe::limit::{self, Across, TcpEvidence};
use netaware_probe::outage::Outages;
use netaware_probe::warm_up;
use netaware_record::{Limit, LimitedBy, LoadedLatency, Outcome};
use netaware_units::Span;

use super::bucket::slowing_down;
use super::count::is_cut;
use crate::report::{most_frequent, outages};
use crate::transfer::TcpRound;

/// The verdict, and what happened to the rate of its rounds: that an outage fell into one, or that
/// it does not last.
pub(super) fn with_events(mut limit: Limit, rounds: &[&TcpRound], measured: &[MeasuredRound<'_>]) -> Limit {
    let outage = rounds.iter().filter_map(|round| outages::beside(round)).reduce(Outages::and);
    if let Some(Outages { longest, .. }) = outage {
        limit.evidence = format!("nothing came for {longest} in its midst; {}", limit.evidence);
    }
    let whole = || rounds.iter().zip(measured).filter(|(round, _)| !is_cut(round)).map(|(_, it)| it);
    if limit.by == LimitedBy::Unknown && whole().any(rose_to_its_end) {
        limit.evidence = format!(
            "it came faster in the second half of what counts, so that its mean may be low; {}",
            limit.evidence
        );
    }
    if let Some(slowing) = slowing_down(whole()) {
        limit.evidence = format!("{slowing}; {}", limit.evidence);
    }
    limit
}

/// Whether a transfer whose slow start was over, since it grew by less than a quarter from round to
/// round, came faster by a quarter in the second half of what counts than in the first all the
/// same.
fn rose_to_its_end(measured: &MeasuredRound<'_>) -> bool {
    let counted = measured.counted();
    let is_over = measured.warm_up != warm_up::WarmUpEnd::NeverEnded;
    is_over && counted.len() >= MIN_SLICES && warm_up::has_grown(counted)
}

/// The verdict of most rounds.
pub(super) fn judge(
    rounds: &[&TcpRound],
    measured: &[MeasuredRound<'_>],
    idle_rtt: Option<Span>,
    load: Option<&LoadedLatency>,
    across: Across,
) -> Limit {
    let all = rounds.len();
    let is_held_down = is_held_down(rounds, measured);
    // The figures behind a verdict are those of its round, and the rows above count all of them.
    let of_round = |number: usize, limit: Limit| {
        let which = if all > 1 { format!("in round {number} of {all}: ") } else { String::new() };
        Limit { evidence: format!("{which}{}", limit.evidence), ..limit }
    };
    let verdicts: Vec<Limit> = (1..)
        .zip(rounds.iter().zip(measured))
        .filter_map(|(number, (round, measured))| {
            let limit = limit::tcp_limit(&TcpEvidence {
                sender: round.ended.tcp_sender.as_ref()?,
                receiver: round.ended.tcp_receiver.as_ref()?,
                goodput: goodput(std::slice::from_ref(measured))?.rate,
                requested: round.order.held_to(),
                idle_rtt,
                loaded_rtt: load.and_then(|load| load.latency.rtt).map(|rtt| rtt.p50),
                counted: measured.counted(),
                is_held_down,
                across,
                is_both_ways: round.order.at_once,
            });
            Some(of_round(number, by_owner(limit, round)))
        })
        .collect();
    if verdicts.is_empty() {
        return undecided(rounds);
    }
    // One round that had not settled makes all of them together a lower bound.
    let why = (1..).zip(rounds.iter().zip(measured)).find_map(|(number, (round, measured))| {
        unsettled(round, measured)
            .map(|what| if all > 1 { format!("{what} (round {number})") } else { what.to_owned() })
    });
    taken_back(most_frequent(&verdicts), why)
}

/// Whether each round that no outage fell into began far faster than it went on.
fn is_held_down(rounds: &[&TcpRound], measured: &[MeasuredRound<'_>]) -> bool {
    let mut whole = rounds.iter().zip(measured).filter(|(round, _)| !is_cut(round)).peekable();
    whole.peek().is_some() && whole.all(|(_, measured)| slowing_down([measured]).is_some())
}

/// A rate that nobody asked for, but the responder's owner allowed no more.
fn by_owner(limit: Limit, round: &TcpRound) -> Limit {
    let Some(cap) = round.order.cap.filter(|_| limit.by == LimitedBy::RequestedRate) else { return limit };
    Limit::by_owner(cap, ", which was reached")
}

/// How a transfer went that had not settled when it ended.
pub(super) fn unsettled(round: &TcpRound, measured: &MeasuredRound<'_>) -> Option<&'static str> {
    let is_whole = round.ended.outcome == Outcome::Complete;
    let has_settled = measured.warm_up != warm_up::WarmUpEnd::NeverEnded;
    if !is_whole || has_settled {
        return None;
    }
    Some(if warm_up::has_grown(measured.ticks) {
        "still speeding up when it ended"
    } else {
        "too short to tell what lasts"
    })
}

/// A transfer that had not settled has not shown what the network carries.
pub(super) fn taken_back(limit: Limit, unsettled: Option<String>) -> Limit {
    match (limit.by, unsettled) {
        (LimitedBy::Network | LimitedBy::Shaper | LimitedBy::Unknown, Some(what)) => {
            Limit::new(LimitedBy::Unknown, format!("{what}; {}", limit.evidence))
        }
        _ => limit,
    }
}

/// Why no round has a verdict.
fn undecided(rounds: &[&TcpRound]) -> Limit {
    let has_reports =
        |round: &&TcpRound| round.ended.tcp_sender.is_some() && round.ended.tcp_receiver.is_some();
    let is_interrupted = |round: &&TcpRound| round.ended.outcome == Outcome::Interrupted;
    let why = if !rounds.iter().any(has_reports) {
        "the transfer ended before both ends had reported"
    } else if rounds.iter().all(|round| round.carried_nothing()) {
        if rounds.iter().all(is_interrupted) {
            "it was ended before anything had arrived"
        } else {
            "nothing of what was sent arrived"
        }
    } else {
        "too little arrived to tell a rate"
    };
    Limit::new(LimitedBy::Unknown, why)
}

/// Of fewer slices one more or less decides.
const MIN_SLICES: usize = 4;
