//! Leader and followers: of those in a call, and a keeper, one waits for the sockets on behalf of
//! all; the others wait for that one.
//!
//! Streams and datagrams keep what they know behind a lock of this kind. Who has nothing left to do
//! but wait leads where nobody does ([`Led::wait`]), and follows otherwise ([`Led::follow`]).
//! Nobody leads while something is done, so whoever ends a call without having led last lets the
//! next one lead ([`Led::pass_on`]).

use std::io;
use std::os::fd::AsFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use netaware_units::{Mono, Span};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::bell::Bell;

/// Who wants something done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// Somebody in a call.
    Application,
    /// The thread that works while nobody is in one; it gives way.
    Keeper,
}

/// Part of what the lock guards: who leads, what it waits for, and how many follow.
#[derive(Debug)]
pub(crate) struct Lead<W> {
    leader: Option<(Who, W)>,
    followers: u32,
}

impl<W> Default for Lead<W> {
    fn default() -> Self {
        Self { leader: None, followers: 0 }
    }
}

impl<W> Lead<W> {
    /// What the one who leads waits for.
    pub(crate) fn waits_for(&self) -> Option<&W> {
        self.leader.as_ref().map(|(_, waits_for)| waits_for)
    }
}

/// What can be led for.
pub(crate) trait HasLead {
    /// What a leader tells that it waits for, so that others can see whether it is enough.
    type WaitsFor;

    fn lead(&mut self) -> &mut Lead<Self::WaitsFor>;
}

/// Something behind a lock that one waits for on behalf of all.
#[derive(Debug)]
pub(crate) struct Led<S> {
    state: Mutex<S>,
    /// Something changed, or nobody leads now.
    changed: Condvar,
    /// Calls back the one who leads.
    bell: Bell,
}

impl<S: HasLead> Led<S> {
    pub(crate) fn new(state: S) -> io::Result<Self> {
        Ok(Self { state: Mutex::new(state), changed: Condvar::new(), bell: Bell::new()? })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, S> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Self::lock`], if nobody holds it now.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, S>> {
        self.state.try_lock().ok()
    }

    /// Whoever waits looks again.
    pub(crate) fn call_back(&self) {
        self.bell.ring();
        self.changed.notify_all();
    }

    /// The one who leads looks again: it waits for less than there is to wait for now.
    pub(crate) fn call_leader(&self) {
        self.bell.ring();
    }

    /// Follows, if somebody leads. A keeper that leads is called back by an application, which then
    /// leads itself.
    ///
    /// # Errors
    /// Nobody leads; the lock is given back as it was.
    pub(crate) fn follow<'a>(
        &self,
        mut state: MutexGuard<'a, S>,
        who: Who,
        deadline: Option<Mono>,
        now: Mono,
    ) -> Result<MutexGuard<'a, S>, MutexGuard<'a, S>> {
        let lead = state.lead();
        let Some((leader, _)) = lead.leader else { return Err(state) };
        if leader == Who::Keeper && who == Who::Application {
            self.bell.ring();
        }
        lead.followers += 1;
        let most = deadline.map_or(FOLLOWED, |deadline| (deadline - now).min(FOLLOWED));
        let (mut state, _) =
            self.changed.wait_timeout(state, most.or_zero().to_std()).unwrap_or_else(PoisonError::into_inner);
        state.lead().followers -= 1;
        Ok(state)
    }

    /// Leads: waits, unlocked, for one of these sockets, until it is called back, or until then;
    /// what the sockets are ready for.
    pub(crate) fn wait<'a, F: AsFd>(
        &'a self,
        mut state: MutexGuard<'a, S>,
        as_leader: (Who, S::WaitsFor),
        sockets: &[(F, PollFlags)],
        until: Option<Mono>,
        now: Mono,
    ) -> (MutexGuard<'a, S>, Vec<PollFlags>) {
        state.lead().leader = Some(as_leader);
        drop(state);
        let mut polled = vec![PollFd::new(&self.bell, PollFlags::IN)];
        polled.extend(sockets.iter().map(|(socket, flags)| PollFd::new(socket, *flags)));
        let _ = poll(&mut polled, timeout(until, now).as_ref());
        let mut woken = polled.iter().map(PollFd::revents);
        let called = woken.next().is_some_and(|flags| !flags.is_empty());
        let woken = woken.collect();
        let mut state = self.lock();
        state.lead().leader = None;
        if called {
            self.bell.silence();
        }
        let state = self.pass_on(state);
        (state, woken)
    }

    /// Lets another one lead, where nobody does.
    pub(crate) fn pass_on<'a>(&self, mut state: MutexGuard<'a, S>) -> MutexGuard<'a, S> {
        let lead = state.lead();
        if lead.leader.is_none() && lead.followers > 0 {
            self.changed.notify_all();
        }
        state
    }
}

/// For `poll`: how long it is until then.
pub(crate) fn timeout(until: Option<Mono>, now: Mono) -> Option<Timespec> {
    until.and_then(|until| Timespec::try_from((until - now).or_zero().to_std()).ok())
}

/// At most, before one who follows looks for itself.
pub(crate) const FOLLOWED: Span = Span::from_millis(50);

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::thread;

    use netaware_io::clock;

    use super::*;

    #[derive(Debug, Default)]
    struct Counted {
        lead: Lead<()>,
        led: u32,
        done: bool,
    }

    impl HasLead for Counted {
        type WaitsFor = ();

        fn lead(&mut self) -> &mut Lead<()> {
            &mut self.lead
        }
    }

    const NOTHING: &[(UnixStream, PollFlags)] = &[];

    /// Until it is done, as a call would.
    fn drive(led: &Led<Counted>, who: Who) {
        let mut state = led.lock();
        while !state.done {
            let now = clock::now();
            state = match led.follow(state, who, None, now) {
                Ok(state) => state,
                Err(mut state) => {
                    state.led += 1;
                    led.wait(state, (who, ()), NOTHING, None, now).0
                }
            };
        }
        drop(led.pass_on(state));
    }

    fn until(led: &Led<Counted>, holds: impl Fn(&Counted) -> bool) {
        let deadline = clock::now() + Span::from_secs(15);
        while !holds(&led.lock()) {
            assert!(clock::now() < deadline, "it did not come in 15 seconds");
            clock::sleep(Span::from_millis(1));
        }
    }

    #[test]
    fn one_leads_the_others_follow_and_all_hear_of_the_end() {
        let led = Arc::new(Led::new(Counted::default()).unwrap());
        let all: Vec<_> = (0..4)
            .map(|_| {
                let led = led.clone();
                thread::spawn(move || drive(&led, Who::Application))
            })
            .collect();
        until(&led, |state| state.lead.followers == 3);
        assert!(led.lock().lead.waits_for().is_some());
        assert_eq!(led.lock().led, 1);
        led.lock().done = true;
        led.call_leader();
        for one in all {
            one.join().unwrap();
        }
        let state = led.lock();
        assert!(state.lead.leader.is_none() && state.lead.followers == 0);
    }

    #[test]
    fn a_keeper_that_leads_is_called_back_by_an_application() {
        let led = Arc::new(Led::new(Counted::default()).unwrap());
        let keeper = led.clone();
        let keeper = thread::spawn(move || {
            let state = keeper.lock();
            drop(keeper.wait(state, (Who::Keeper, ()), NOTHING, None, clock::now()));
        });
        until(&led, |state| state.lead.leader.is_some());
        // Without the call it would wait for ever.
        let state = led.lock();
        let state = led.follow(state, Who::Application, None, clock::now()).unwrap();
        drop(state);
        keeper.join().unwrap();
        assert!(led.follow(led.lock(), Who::Application, None, clock::now()).is_err());
    }

    #[test]
    fn a_keeper_does_not_call_back_one_who_leads() {
        let led = Led::new(Counted {
            lead: Lead { leader: Some((Who::Keeper, ())), followers: 0 },
            ..Counted::default()
        });
        let led = led.unwrap();
        let now = clock::now();
        let state = led.follow(led.lock(), Who::Keeper, Some(now), now).unwrap();
        let (_state, woken) =
            led.wait(state, (Who::Keeper, ()), &[(&led.bell, PollFlags::IN)], Some(now), now);
        assert_eq!(woken, [PollFlags::empty()]);
    }
}
