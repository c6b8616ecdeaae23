//! The program's own policy: a function that sees what is known of both versions and says where to
//! go.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use netaware_dual::policy::{Choice, Evidence};

/// Decides in place of rules.
///
/// **When**: whenever something new was seen of a version, at most once for each
/// [`crate::Rules::every`] and, of a stream, four times each second; not while a switch is under
/// way. **Where**: on a thread of the library that blocks all signals; for one stream or socket
/// never twice at once. The same function given to several is called for them at once. **What it
/// may do**: call anything of the stream or socket that does not wait, also replace or remove
/// itself, and drop it. It must not block: while it runs, nobody who is not in a call is worked
/// for. It keeps no clone of the stream or socket, which would then never end. One that panics is
/// removed, and the stream stays where it is.
#[derive(Clone)]
pub struct Callback(Arc<dyn Fn(&Evidence) -> Choice + Send + Sync>);

impl Callback {
    /// From a function.
    pub fn new(decide: impl Fn(&Evidence) -> Choice + Send + Sync + 'static) -> Self {
        Self(Arc::new(decide))
    }
}

impl fmt::Debug for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}

/// Where a callback sits, and whether it is being called.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    seat: Mutex<Seat>,
    done: Condvar,
}

#[derive(Debug, Default)]
struct Seat {
    callback: Option<Callback>,
    calling: Option<ThreadId>,
}

impl Judge {
    /// Replaces the callback. When this returns the one before is not called any more, unless it is
    /// the caller.
    pub(crate) fn set(&self, callback: Option<Callback>) {
        let mut seat = self.lock();
        // Dropped unlocked: what it holds may have a say in that.
        let before = std::mem::replace(&mut seat.callback, callback);
        // Asked for only where it matters: a thread that is not Rust's leaves behind what Rust
        // keeps of it.
        while seat.calling.is_some_and(|calling| calling != thread::current().id()) {
            seat = self.done.wait(seat).unwrap_or_else(PoisonError::into_inner);
        }
        drop(seat);
        drop(before);
    }

    pub(crate) fn is_there(&self) -> bool {
        self.lock().callback.is_some()
    }

    /// What it says. To be called with no lock held.
    pub(crate) fn ask(&self, evidence: &Evidence) -> Choice {
        let callback = {
            let mut seat = self.lock();
            let Some(callback) = seat.callback.clone() else { return Choice::Keep };
            seat.calling = Some(thread::current().id());
            callback
        };
        let said = catch_unwind(AssertUnwindSafe(|| (callback.0)(evidence)));
        let mut seat = self.lock();
        seat.calling = None;
        let removed = if said.is_err() { seat.callback.take() } else { None };
        drop(seat);
        self.done.notify_all();
        drop((removed, callback));
        said.unwrap_or(Choice::Keep)
    }

    fn lock(&self) -> MutexGuard<'_, Seat> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc;

    use netaware_dual::policy::VersionEvidence;
    use netaware_record::IpVersion;
    use netaware_units::Mono;

    use super::*;

    fn evidence() -> Evidence {
        let version = VersionEvidence {
            up: true,
            observations: 0,
            seen_at: None,
            goodput: None,
            round_trip: None,
            loss: None,
        };
        let present = IpVersion::V4;
        Evidence { at: Mono(1), present, v4: version, v6: version, rules_say: None, switched_at: None }
    }

    #[test]
    fn a_removed_callback_is_not_running_any_more() {
        let judge = Arc::new(Judge::default());
        let (told, began) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        let ended = Arc::new(AtomicU32::new(0));
        let end = ended.clone();
        judge.set(Some(Callback::new(move |_| {
            told.send(()).unwrap();
            released.lock().unwrap().recv().unwrap();
            end.fetch_add(1, Ordering::SeqCst);
            Choice::Keep
        })));
        let asked = judge.clone();
        let asker = thread::spawn(move || asked.ask(&evidence()));
        began.recv().unwrap();
        let removed = judge.clone();
        let remover = thread::spawn(move || {
            removed.set(None);
            ended.load(Ordering::SeqCst)
        });
        release.send(()).unwrap();
        assert_eq!(remover.join().unwrap(), 1);
        asker.join().unwrap();
        assert!(!judge.is_there());
    }

    #[test]
    fn one_that_removes_itself_or_panics_is_gone() {
        let judge = Arc::new(Judge::default());
        let own = judge.clone();
        judge.set(Some(Callback::new(move |_| {
            own.set(None);
            Choice::Use(IpVersion::V6)
        })));
        assert_eq!(judge.ask(&evidence()), Choice::Use(IpVersion::V6));
        assert!(!judge.is_there());
        judge.set(Some(Callback::new(|_| panic!("on purpose"))));
        let asked = judge.clone();
        // The gate allows a test to survive the panics of a thread with this name.
        let asker = thread::Builder::new().name("panics on purpose".to_owned());
        let said = asker.spawn(move || asked.ask(&evidence())).unwrap().join().unwrap();
        assert_eq!(said, Choice::Keep);
        assert!(!judge.is_there());
    }
}
