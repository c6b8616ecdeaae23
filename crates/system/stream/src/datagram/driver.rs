//! Who waits for the sockets of a socket of both versions: whoever receives, and the keeper when nobody does. As with streams, there
//! is no thread in the way of the datagrams.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use netaware_io::clock;
use netaware_io::signals::quiet_thread;
use netaware_units::{Mono, Span};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::state::{State, Waiting};
use crate::bell::Bell;
use crate::judge::Judge;

#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// Something came, or nobody waits for the sockets now.
    changed: Condvar,
    /// Calls back whoever waits for the sockets.
    bell: Bell,
    pub(super) judge: Judge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Application,
    Keeper,
}

impl Shared {
    pub(super) fn new(state: State) -> io::Result<Arc<Self>> {
        let shared = Arc::new(Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            bell: Bell::new()?,
            judge: Judge::default(),
        });
        let kept = shared.clone();
        quiet_thread("dual-keeper", move || keep(&kept))?;
        Ok(shared)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn call_back(&self) {
        self.bell.ring();
        self.changed.notify_all();
    }

    /// After a call that brought a deadline: whoever waits may wait too long.
    pub(super) fn leave(&self, state: MutexGuard<'_, State>) {
        let sooner = |waiting: Waiting| match (state.wake_at(), waiting.until) {
            (Some(at), Some(until)) => at < until,
            (Some(_), None) => true,
            (None, _) => false,
        };
        let calls = state.waiting.is_some_and(sooner);
        drop(state);
        if calls {
            self.bell.ring();
        }
    }

    /// Works until `enough`, the deadline, or for a keeper until an application wants to wait itself.
    pub(super) fn drive<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        who: Who,
        deadline: Option<Mono>,
        enough: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        loop {
            let now = clock::now();
            state.work(now);
            let late = deadline.is_some_and(|deadline| deadline <= now);
            if enough(&state) || late || (who == Who::Keeper && state.receivers > 0) {
                break;
            }
            state = match state.waiting {
                Some(waiting) => self.follow(state, waiting, who, deadline, now),
                None => self.wait(state, who, deadline, now),
            };
        }
        if state.waiting.is_none() && state.followers > 0 {
            self.changed.notify_all();
        }
        state
    }

    fn follow<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        waiting: Waiting,
        who: Who,
        deadline: Option<Mono>,
        now: Mono,
    ) -> MutexGuard<'a, State> {
        if waiting.keeper && who == Who::Application {
            self.bell.ring();
        }
        state.followers += 1;
        let most = deadline.map_or(FOLLOWED, |deadline| (deadline - now).min(FOLLOWED));
        let (mut state, _) =
            self.changed.wait_timeout(state, most.or_zero().to_std()).unwrap_or_else(PoisonError::into_inner);
        state.followers -= 1;
        state
    }

    /// Waits for the sockets, unlocked.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        who: Who,
        deadline: Option<Mono>,
        now: Mono,
    ) -> MutexGuard<'a, State> {
        let until = [deadline, state.wake_at()].into_iter().flatten().min();
        let sockets = state.sockets.clone();
        state.waiting = Some(Waiting { keeper: who == Who::Keeper, until });
        drop(state);
        let mut polled = vec![PollFd::new(&self.bell, PollFlags::IN)];
        polled.extend(sockets.iter().flatten().map(|socket| PollFd::new(socket.socket(), PollFlags::IN)));
        let _ = poll(&mut polled, timeout(until, now).as_ref());
        let called = !polled[0].revents().is_empty();
        let mut state = self.lock();
        state.waiting = None;
        if called {
            self.bell.silence();
        }
        if state.followers > 0 {
            self.changed.notify_all();
        }
        state
    }
}

/// Waits, unlocked, until a socket takes more.
pub(super) fn wait_to_write(state: MutexGuard<'_, State>, at: usize, deadline: Option<Mono>) {
    let socket = state.sockets[at].clone();
    drop(state);
    let Some(socket) = socket else { return };
    let mut polled = [PollFd::new(socket.socket(), PollFlags::OUT)];
    let now = clock::now();
    // Not for ever: the version may change meanwhile.
    let until = deadline.map_or(now + FOLLOWED, |deadline| deadline.min(now + FOLLOWED));
    let _ = poll(&mut polled, timeout(Some(until), now).as_ref());
}

fn timeout(until: Option<Mono>, now: Mono) -> Option<Timespec> {
    until.and_then(|until| Timespec::try_from((until - now).or_zero().to_std()).ok())
}

/// Works when nobody receives, and asks the callback.
fn keep(shared: &Shared) {
    loop {
        let state = shared.lock();
        let now = clock::now();
        if state.released {
            return;
        }
        let evented = state.readiness.is_some();
        let quiet = state.receivers == 0 && (evented || now - state.received_at >= QUIET);
        if quiet {
            drop(shared.drive(state, Who::Keeper, Some(now + PATROL), |state| state.released));
        } else {
            let pause = if state.receivers > 0 { BUSY } else { QUIET };
            drop(state);
            clock::sleep_until(now + pause);
        }
        patrol(shared);
    }
}

fn patrol(shared: &Shared) {
    let evidence = shared.lock().evidence(clock::now());
    for (peer, evidence) in evidence {
        let choice = shared.judge.ask(&evidence);
        let mut state = shared.lock();
        state.judge(clock::now(), peer, choice);
        shared.leave(state);
    }
}

/// After the last call that received.
const QUIET: Span = Span::from_millis(5);
/// While somebody receives.
const BUSY: Span = Span::from_millis(20);
const PATROL: Span = Span::from_millis(250);
/// At most, for who works for all, or for a socket to take more.
const FOLLOWED: Span = Span::from_millis(50);
