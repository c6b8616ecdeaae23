//! What networks do to connections, one thing after the other.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use netaware_io::clock;
use netaware_netns::{IpVersion, Pair};
use netaware_stream::DualStream;
use netaware_units::Span;

use super::both_up;
use super::chance::Chance;

/// What happens to a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing comes through.
    Blackhole,
    /// Nothing comes through towards the opener.
    TowardsOpener,
    /// Nothing comes through towards the acceptor.
    TowardsAcceptor,
    /// Whatever is sent is answered by a reset.
    Reset,
    /// The acceptor's address is not there.
    AddressGone,
    /// Nothing comes through, of either version.
    BothBlackhole,
}

pub(crate) const KINDS: [Kind; 6] = [
    Kind::Blackhole,
    Kind::TowardsOpener,
    Kind::TowardsAcceptor,
    Kind::Reset,
    Kind::AddressGone,
    Kind::BothBlackhole,
];

#[derive(Debug, Clone, Copy)]
struct Failure {
    at: u64,
    kind: Kind,
    version: IpVersion,
    lasts: Span,
}

pub(crate) struct Failures {
    planned: Vec<Failure>,
    /// That many are over.
    over: AtomicUsize,
    under_way: AtomicBool,
    /// A thread that takes part has panicked.
    broken: AtomicBool,
}

/// Held by a thread that takes part: if it panics, the others do not wait for it.
pub(crate) struct Participant<'a>(&'a AtomicBool);

impl Drop for Participant<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Release);
        }
    }
}

/// What came of them.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) happened: usize,
    by_kind: [usize; KINDS.len()],
    /// How long until all connections were there again, after they could be.
    back_after: Vec<Span>,
}

impl fmt::Display for Done {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (median, longest) = (self.back_after.get(self.back_after.len() / 2), self.back_after.last());
        let by_kind = KINDS.iter().zip(self.by_kind).collect::<Vec<_>>();
        write!(
            out,
            "{} {by_kind:?}, all there again after {median:?} (median), {longest:?} at most",
            self.happened
        )
    }
}

impl Failures {
    pub(crate) fn plan(chance: &mut Chance, count: usize, bytes: u64) -> Self {
        let mut places = chance.places(count, bytes);
        places.reverse();
        let failure = |(number, at)| {
            let version = if chance.below(2) == 0 { IpVersion::V4 } else { IpVersion::V6 };
            // Each kind comes; some last too short for anybody to notice.
            let lasts = Span::from_millis(100 + chance.below(2000) as i64);
            Failure { at, kind: KINDS[number % KINDS.len()], version, lasts }
        };
        let mut planned: Vec<Failure> = places.into_iter().enumerate().map(failure).collect();
        // Not in the order of the list.
        for at in (1..planned.len()).rev() {
            let with = chance.below(at as u64 + 1) as usize;
            (planned[at].kind, planned[with].kind) = (planned[with].kind, planned[at].kind);
        }
        Self {
            planned,
            over: AtomicUsize::new(0),
            under_way: AtomicBool::new(false),
            broken: AtomicBool::new(false),
        }
    }

    /// A sender stays before the place of a failure until the one before is over, so that they come
    /// apart.
    pub(crate) fn wait_for_turn(&self, before: u64) {
        let reached = self.planned.partition_point(|failure| failure.at <= before);
        self.wait_until("a failure is over", || self.over.load(Ordering::Acquire) + 1 >= reached);
    }

    pub(crate) fn take_part(&self) -> Participant<'_> {
        Participant(&self.broken)
    }

    /// # Panics
    /// If another thread has panicked, or it takes longer than anything here does.
    fn wait_until(&self, what: &str, holds: impl Fn() -> bool) {
        let deadline = clock::now() + MAX_WAIT;
        while !holds() {
            assert!(!self.broken.load(Ordering::Acquire), "another thread has panicked before {what}");
            assert!(clock::now() < deadline, "not within {MAX_WAIT}: {what}");
            clock::sleep_until(clock::now() + Span::from_millis(1));
        }
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.under_way.load(Ordering::Acquire)
    }

    /// Each when so many bytes are sent.
    pub(crate) fn happen(&self, pair: &Pair, ends: [&DualStream; 2], sent: &AtomicU64) -> Done {
        let _here = self.take_part();
        let mut done = Done::default();
        for failure in &self.planned {
            self.wait_until("its bytes are sent", || sent.load(Ordering::Acquire) >= failure.at);
            self.under_way.store(true, Ordering::Release);
            begin(pair, failure);
            clock::sleep_until(clock::now() + failure.lasts);
            end(pair, failure);
            let back = both_up(ends, clock::now() + Span::from_secs(45));
            done.back_after.push(back.unwrap_or_else(|why| panic!("after {failure:?}: {why}")));
            done.happened += 1;
            done.by_kind[failure.kind as usize] += 1;
            self.under_way.store(false, Ordering::Release);
            self.over.fetch_add(1, Ordering::AcqRel);
        }
        done.back_after.sort_unstable();
        done
    }
}

/// Between two failures lie some hundred MB at most.
const MAX_WAIT: Span = Span::from_secs(120);

fn begin(pair: &Pair, failure: &Failure) {
    let version = failure.version;
    let done = match failure.kind {
        Kind::Blackhole => pair.blackhole(version),
        Kind::TowardsOpener => pair.left().blackhole(version),
        Kind::TowardsAcceptor => pair.right().blackhole(version),
        Kind::Reset => pair.reset(version),
        Kind::AddressGone => address(pair, version, "del"),
        Kind::BothBlackhole => pair.blackhole(IpVersion::V4).and_then(|()| pair.blackhole(IpVersion::V6)),
    };
    done.unwrap();
}

fn end(pair: &Pair, failure: &Failure) {
    let done = match failure.kind {
        Kind::AddressGone => address(pair, failure.version, "add"),
        _ => pair.unblackhole(),
    };
    done.unwrap();
}

fn address(pair: &Pair, version: IpVersion, what: &str) -> Result<(), netaware_netns::NetnsError> {
    let side = pair.right();
    let (address, nodad): (String, &[&str]) = match version {
        IpVersion::V4 => (format!("{}/24", side.v4()), &[]),
        IpVersion::V6 => (format!("{}/64", side.v6()), &["nodad"]),
    };
    let words = ["address", what, &address, "dev", side.device()];
    side.ip(&if what == "add" { [&words[..], nodad].concat() } else { words.to_vec() }).map(drop)
}
