//! What policies have decided.

use std::ffi::c_int;

use netaware_stream::{DecidedBy, Decision, Metric, NotDone, PeerId};

use crate::calls::guarded;
use crate::error::Failure;
use crate::status::number;
use crate::table::{self, Carries, datagrams_of, lock, stream_of};

/// NaDecision: the rules decided.
pub const NA_BY_RULES: c_int = 1;
/// NaDecision: the program's callback decided.
pub const NA_BY_CALLBACK: c_int = 2;

/// NaDecision: figures are bit/s.
pub const NA_GOODPUT: c_int = 1;
/// NaDecision: figures are microseconds.
pub const NA_ROUND_TRIP: c_int = 2;
/// NaDecision: figures are shares of the packets, 0 to 1.
pub const NA_LOSS: c_int = 3;

/// What a policy has decided, on which evidence, and what became of it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NaDecision {
    /// When, microseconds of CLOCK_MONOTONIC.
    pub at_us: i64,
    /// Of datagrams, the peer whose session it is, as na_recvfrom names it; of streams 0.
    pub peer: u64,
    /// Away from 4 or 6.
    pub from: c_int,
    /// To 4 or 6.
    pub to: c_int,
    /// NA_BY_RULES or NA_BY_CALLBACK, which may have had other reasons than these figures.
    pub by: c_int,
    /// NA_GOODPUT, NA_ROUND_TRIP or NA_LOSS: by what the rules compare.
    pub metric: c_int,
    /// 0 where the switch was begun; else why not: EBUSY the stream is held, ENETUNREACH no
    /// connection of that version, EALREADY another switch was under way, ENOTCONN it has ended.
    pub not_done: c_int,
    /// Observations behind `present`.
    pub present_looks: c_int,
    /// Observations behind `other`.
    pub other_looks: c_int,
    /// Median of the version in use; -1 where nothing was seen.
    pub present: f64,
    /// Median of the other version; -1 where nothing was seen.
    pub other: f64,
    /// How much better the other one had to be: a share of the present figure, of loss a share of
    /// the packets; 0 where a callback decided.
    pub margin: f64,
}

/// Writes the oldest decision of a policy that has not been read, also one that came to nothing. 1,
/// 0 where there is none, or -1. The latest 256 are kept, and what repeats itself is kept once in
/// ten seconds.
///
/// # Safety
/// `decision` has room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn na_decision(stream: c_int, decision: *mut NaDecision) -> c_int {
    guarded(|| {
        if decision.is_null() {
            return Err(Failure::new(libc::EFAULT, "nowhere to put the decision"));
        }
        let entry = table::entry(stream)?;
        let carries = lock(&entry).carries;
        let next = match carries {
            Carries::Bytes => stream_of(&entry)?.next_decision().map(|it| (PeerId(0), it)),
            Carries::Datagrams => datagrams_of(&entry)?.next_decision(),
        };
        let Some((peer, next)) = next else { return Ok(0) };
        // SAFETY: the caller's promise, and not null.
        unsafe { decision.write(shown(peer, &next)) };
        Ok(1)
    })
}

fn shown(peer: PeerId, decision: &Decision) -> NaDecision {
    let (metric, unit) = match decision.metric {
        Metric::Goodput => (NA_GOODPUT, 1.0),
        // From nanoseconds.
        Metric::RoundTrip => (NA_ROUND_TRIP, 1e-3),
        Metric::Loss => (NA_LOSS, 1.0),
    };
    let figure = |value: f64| if value.is_nan() { -1.0 } else { value * unit };
    NaDecision {
        at_us: i64::try_from(decision.at.0 / 1000).unwrap_or(i64::MAX),
        peer: peer.0,
        from: number(decision.from()),
        to: number(decision.to),
        by: match decision.by {
            DecidedBy::Rules => NA_BY_RULES,
            DecidedBy::Callback => NA_BY_CALLBACK,
        },
        metric,
        not_done: decision.not_done.map_or(0, |why| match why {
            NotDone::Held => libc::EBUSY,
            NotDone::Down => libc::ENETUNREACH,
            NotDone::Unsettled => libc::EALREADY,
            NotDone::Over => libc::ENOTCONN,
        }),
        present_looks: decision.of[0] as c_int,
        other_looks: decision.of[1] as c_int,
        present: figure(decision.present),
        other: figure(decision.other),
        margin: decision.margin,
    }
}

#[cfg(test)]
mod tests {
    use netaware_record::IpVersion;
    use netaware_units::Mono;

    use super::*;

    #[test]
    fn figures_have_the_units_of_their_metric_and_what_was_not_seen_has_none() {
        let decision = Decision {
            at: Mono(5_000_000),
            to: IpVersion::V6,
            by: DecidedBy::Callback,
            metric: Metric::RoundTrip,
            present: 20e6,
            other: f64::NAN,
            of: [7, 0],
            margin: 0.0,
            not_done: Some(NotDone::Unsettled),
        };
        let shown = shown(PeerId(3), &decision);
        assert_eq!((shown.at_us, shown.peer, shown.from, shown.to), (5000, 3, 4, 6));
        assert!((shown.present - 20_000.0).abs() < 1e-6 && (shown.other + 1.0).abs() < 1e-6, "{shown:?}");
        assert_eq!((shown.by, shown.metric, shown.not_done), (NA_BY_CALLBACK, NA_ROUND_TRIP, libc::EALREADY));
        assert_eq!((shown.present_looks, shown.other_looks), (7, 0));
    }
}
