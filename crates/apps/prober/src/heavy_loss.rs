//! Loss that is heavy enough to end connections and to leave questions without an answer.
//!
//! **Measures** the share of requests on the idle path that were lost one by one. **Assumes** that
//! other packets of this path are lost as often. **Biased** towards less: what fell into an outage,
//! what was rejected on the way, and what had no answer at the end of a train, is left out, because
//! a path that ceased to pass anything looks the same.

use netaware_probe::Pacing;
use netaware_probe::compare::Share;
use netaware_record::IpVersion;

use crate::echo::EchoRun;
use crate::request::Transport;

/// What these runs have lost.
pub(crate) fn of_runs(runs: &[EchoRun]) -> Share {
    runs.iter().map(of_run).fold(NOTHING, and)
}

/// What one run has lost. Over TCP a lost packet comes again.
pub(crate) fn of_run(run: &EchoRun) -> Share {
    if run.transport == Transport::Tcp {
        return NOTHING;
    }
    let counts = run.round.counts();
    let is_even = matches!(run.order.pacing, Pacing::Even(_));
    let outages = is_even.then(|| run.round.outages(run.order.shown_spacing())).flatten();
    let apart = outages.map_or(0, |outages| outages.lost).max(run.lost_at_end);
    // What somebody on the path rejected is no chance either.
    let apart = apart.saturating_add(run.round.rejected());
    // Late answers came.
    let part = counts.lost.saturating_sub(apart).saturating_sub(counts.late);
    Share { part, of: part.saturating_add(run.answers()) }
}

/// Of both.
pub(crate) fn and(one: Share, other: Share) -> Share {
    Share { part: one.part.saturating_add(other.part), of: one.of.saturating_add(other.of) }
}

/// Whether so much is lost that a connection may end of it.
pub(crate) fn is_heavy(loss: Share) -> bool {
    is_known(loss) && loss.part.saturating_mul(HEAVY) >= loss.of
}

/// Whether enough requests were observed to tell.
fn is_known(loss: Share) -> bool {
    loss.of >= FEWEST
}

/// The advice for a version whose session ended in silence, of the `losses` of all versions: where
/// its own is not known, that of another one over which the same responder was reached counts.
pub(crate) fn advice(version: IpVersion, losses: &[(IpVersion, Share)]) -> Option<String> {
    let own = losses.iter().find(|(of, loss)| *of == version && is_known(*loss));
    let others = || losses.iter().find(|(_, loss)| is_heavy(*loss));
    let (of, loss) = own.or_else(others).filter(|(_, loss)| is_heavy(*loss))?;
    Some(format!(
        "{} lost {} of {} requests over UDP: so heavy a loss ends connections as well; see what drops packets on the way",
        of.name(),
        loss.part,
        loss.of
    ))
}

/// Nothing was observed.
pub(crate) const NOTHING: Share = Share { part: 0, of: 0 };
/// One in so many. Then a segment and its repetitions, of which TCP sends five within the 4 s that
/// an end may be silent, are lost once in a thousand times, and a session has hundreds of them.
const HEAVY: u64 = 4;
/// Of fewer requests a quarter is lost by chance on a path that loses far less.
const FEWEST: u64 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_without_requests_of_its_own_ended_by_the_loss_that_the_other_one_shows() {
        use IpVersion::{V4, V6};
        let share = |part, of| Share { part, of };
        let said = advice(V4, &[(V4, NOTHING), (V6, share(12, 24))]).unwrap();
        assert!(said.starts_with("IPv6 lost 12 of 24 requests over UDP: so heavy"), "{said}");
        assert!(advice(V4, &[(V4, share(22, 45)), (V6, NOTHING)]).unwrap().starts_with("IPv4 lost 22 of 45"));
        // Its own requests came through, or too few are known.
        assert_eq!(advice(V4, &[(V4, share(0, 200)), (V6, share(100, 200))]), None);
        assert_eq!(advice(V4, &[(V4, NOTHING), (V6, share(4, 8))]), None);
        assert_eq!(advice(V4, &[(V4, NOTHING), (V6, share(49, 200))]), None);
        assert_eq!(and(share(3, 10), share(2, 2)), share(5, 12));
    }
}
