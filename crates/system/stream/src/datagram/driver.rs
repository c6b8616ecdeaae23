//! Who waits for the sockets of a socket of both versions: whoever receives, and the keeper when
//! nobody does. As with streams, there is no thread in the way of the datagrams.

use std::io;
use std::sync::{Arc, MutexGuard};

use netaware_io::clock;
use netaware_io::signals::quiet_thread;
use netaware_units::{Mono, Span};
use rustix::event::{PollFd, PollFlags, poll};

use super::state::State;
use crate::judge::Judge;
use crate::leader::{FOLLOWED, Led, Who, timeout};

#[derive(Debug)]
pub(super) struct Shared {
    state: Led<State>,
    pub(super) judge: Judge,
}

impl Shared {
    pub(super) fn new(state: State) -> io::Result<Arc<Self>> {
        let shared = Arc::new(Self { state: Led::new(state)?, judge: Judge::default() });
        let kept = shared.clone();
        quiet_thread("dual-keeper", move || keep(&kept))?;
        Ok(shared)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn call_back(&self) {
        self.state.call_back();
    }

    /// After a call that brought a deadline: whoever waits may wait too long.
    pub(super) fn leave(&self, state: MutexGuard<'_, State>) {
        let calls = state.waits_too_long();
        drop(state);
        if calls {
            self.state.call_leader();
        }
    }

    /// Works until `enough`, the deadline, or for a keeper until an application wants to wait
    /// itself.
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
                return self.state.pass_on(state);
            }
            state = match self.state.follow(state, who, deadline, now) {
                Ok(state) => state,
                Err(state) => self.wait(state, who, deadline, now),
            };
        }
    }

    /// Waits for the sockets, unlocked.
    fn wait<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        who: Who,
        deadline: Option<Mono>,
        now: Mono,
    ) -> MutexGuard<'a, State> {
        let until = [deadline, state.wake_at()].into_iter().flatten().min();
        let sockets = state.sockets.clone();
        let polled: Vec<_> =
            sockets.iter().flatten().map(|socket| (socket.socket(), PollFlags::IN)).collect();
        self.state.wait(state, (who, until), &polled, until, now).0
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
