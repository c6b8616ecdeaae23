//! Keeps other programs from delaying a thread that has deadlines.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Decides which threads of paced streams may run before all ordinary ones. Clones share the
/// decision. The default is that no thread may.
#[derive(Debug, Clone, Default)]
pub struct Permits(Rule);

#[derive(Debug, Clone, Default)]
enum Rule {
    #[default]
    None,
    /// Whether a thread has the permit.
    One(Arc<AtomicBool>),
    Unlimited,
}

impl Permits {
    /// Makes permits of which there are none.
    pub fn none() -> Self {
        Self(Rule::None)
    }

    /// Makes a single permit, for one thread at a time. That one keeps it for as long as it takes
    /// at most half of a core. It is meant for streams that somebody else asks for.
    pub fn one() -> Self {
        Self(Rule::One(Arc::default()))
    }

    /// Makes as many permits as threads ask for. It is meant for streams that the user of this
    /// very program asks for.
    pub fn unlimited() -> Self {
        Self(Rule::Unlimited)
    }

    /// Takes a permit if there is one now.
    pub(crate) fn take(&self) -> Option<Permit> {
        match &self.0 {
            Rule::None => None,
            Rule::One(is_taken) => {
                let before = is_taken.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed);
                before.is_ok().then(|| Permit(Some(is_taken.clone())))
            }
            Rule::Unlimited => Some(Permit(None)),
        }
    }
}

/// Lets one thread run before all ordinary ones until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit(Option<Arc<AtomicBool>>);

impl Permit {
    /// Returns whether the thread loses the permit when it takes more than its share of a core.
    pub(crate) fn is_bounded(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(is_taken) = &self.0 {
            is_taken.store(false, Ordering::Release);
        }
    }
}

/// Asks the scheduler to run this thread before all ordinary ones (`SCHED_FIFO`, lowest priority).
/// Needs privilege; false means that it goes on as an ordinary thread, which on a busy host loses
/// the core for some milliseconds at a time.
///
/// The kernel takes 5 % of each second back for ordinary threads, in one piece (50 ms), if this one
/// has not slept as much: see `udp_stream::breath`.
#[cfg(target_os = "linux")]
pub fn raise() -> bool {
    set(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1)
}

/// As [`raise`], and before every thread that was raised so: for what such threads must not be able
/// to hold up.
#[cfg(target_os = "linux")]
pub fn raise_above_raised() -> bool {
    set(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, ABOVE_RAISED)
}

/// Well below the kernel's own threads (50).
#[cfg(target_os = "linux")]
const ABOVE_RAISED: libc::c_int = 10;

/// Asks for the largest share that an ordinary thread can have (nice -20). The kernel takes nothing
/// back from such a one, so it may keep a core for good; another that becomes ready on the same
/// core waits at most a slice of the scheduler's, and so does this one. Needs privilege.
#[cfg(target_os = "linux")]
pub fn favour() -> bool {
    // SAFETY: takes numbers; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) == 0 }
}

/// Makes the thread an ordinary one again. `SCHED_RESET_ON_FORK` stays set, since without privilege
/// the kernel refuses to clear it, and the thread would keep its priority (sched(7)).
#[cfg(target_os = "linux")]
pub fn lower() -> bool {
    set(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0)
}

#[cfg(target_os = "linux")]
fn set(policy: libc::c_int, sched_priority: libc::c_int) -> bool {
    let parameter = libc::sched_param { sched_priority };
    // SAFETY: 0 is the calling thread; the parameter is valid for the call.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) == 0 }
}

/// Asks for priority: only Linux is asked.
#[cfg(not(target_os = "linux"))]
pub fn raise() -> bool {
    false
}

/// Asks for priority: only Linux is asked.
#[cfg(not(target_os = "linux"))]
pub fn raise_above_raised() -> bool {
    false
}

/// Asks for a large share: only Linux is asked.
#[cfg(not(target_os = "linux"))]
pub fn favour() -> bool {
    false
}

/// An ordinary thread, as it always was.
#[cfg(not(target_os = "linux"))]
pub fn lower() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_streams_of_a_stranger_get_one_permit_and_none_without_the_owners_word() {
        let permits = Permits::one();
        let mut taken: Vec<_> = (0..8).map(|_| permits.clone().take()).collect();
        let had: Vec<bool> = taken.iter().map(Option::is_some).collect();
        assert_eq!(had, [true, false, false, false, false, false, false, false]);
        assert!(taken[0].as_ref().is_some_and(Permit::is_bounded));
        taken[0] = None;
        assert!(permits.take().is_some(), "it is free again");
        assert!(Permits::none().take().is_none() && Permits::default().take().is_none());
    }

    #[test]
    fn own_streams_are_not_bounded() {
        let permits = Permits::unlimited();
        let [first, second] = [permits.take(), permits.take()];
        assert!(first.is_some_and(|permit| !permit.is_bounded()) && second.is_some());
    }
}
