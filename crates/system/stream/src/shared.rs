//! What all holders of a stream share, and how one of them works for all.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, MutexGuard, OnceLock};

use netaware_dual::{Peer, Setting, Side, Standing};
use netaware_io::clock;
use netaware_pool::Place;
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};
use netaware_wire::Token;
use netaware_wire::dual::MAX_DATA;
use rustix::event::PollFlags;

use crate::judge::Judge;
use crate::leader::{Led, Who};
use crate::link::{Direct, Link};
use crate::options::Options;
use crate::state::State;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) name: Token,
    pub(crate) side: Side,
    pub(crate) options: Options,
    /// Where an opener connects again.
    pub(crate) addresses: [Option<SocketAddr>; 2],
    state: Led<State>,
    /// The program's own policy.
    pub(crate) judge: Judge,
    /// Of an accepted stream: its place among those of the listener. It is free when nothing is
    /// left of the stream.
    place: OnceLock<Place>,
}

impl Shared {
    pub(crate) fn new(
        name: Token,
        side: Side,
        options: Options,
        addresses: [Option<SocketAddr>; 2],
    ) -> io::Result<Self> {
        let setting = Setting {
            side,
            room: options.window.clamp(1, MOST_WINDOW),
            longest: options.longest_record.clamp(1, MAX_DATA),
            ack_delay: ACK_DELAY,
        };
        let state = Led::new(State::new(setting, &options, clock::now())?)?;
        Ok(Self { name, side, options, addresses, state, judge: Judge::default(), place: OnceLock::new() })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// As [`Self::lock`], if nobody holds it now.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        self.state.try_lock()
    }

    /// A connection belongs to the stream from now on.
    pub(crate) fn join(
        &self,
        socket: TcpStream,
        ip: IpVersion,
        generation: u32,
        peer: Peer,
    ) -> io::Result<()> {
        let from = socket.peer_addr().ok();
        let link = Link::new(socket, ip, generation)?;
        self.lock().join(clock::now(), link, from, peer)?;
        self.call_back();
        Ok(())
    }

    /// The stream holds this place from now on.
    pub(crate) fn keep(&self, place: Place) {
        let _ = self.place.set(place);
    }

    /// Ends the stream at once; the program's next call fails with this reason.
    pub(crate) fn give_up(&self, why: &str) {
        let mut state = self.lock();
        if state.failure.is_none() && state.stream.standing() == Standing::Open {
            state.failure = Some(why.to_owned());
            state.stream.abandon();
            state.write(clock::now());
        }
        drop(state);
        self.call_back();
    }

    /// Whoever waits looks again.
    pub(crate) fn call_back(&self) {
        self.state.call_back();
    }

    /// Works until `enough`, the deadline, or for a keeper until an application wants to wait
    /// itself.
    pub(crate) fn drive<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        who: Who,
        mut direct: Option<&mut Direct<'_>>,
        deadline: Option<Mono>,
        enough: impl Fn(&State, usize) -> bool,
    ) -> MutexGuard<'a, State> {
        loop {
            let now = clock::now();
            state.work(now, direct.as_deref_mut());
            let done = direct.as_ref().map_or(0, |direct| direct.done);
            let late = deadline.is_some_and(|deadline| deadline <= now);
            if enough(&state, done) || late || (who == Who::Keeper && state.is_called(now)) {
                return self.state.pass_on(state);
            }
            if state.waits_for_less() {
                self.state.call_leader();
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
        let writes = state.blocked();
        // What cannot be written now is not due now.
        let wake_at = state.stream.wake_at().filter(|_| writes == [false; 2]);
        let until = [deadline, wake_at, state.look_at()].into_iter().flatten().min();
        let mut sockets = Vec::new();
        for (link, writes) in state.links.iter().zip(writes) {
            let write = if writes { PollFlags::OUT } else { PollFlags::empty() };
            sockets.extend(link.as_ref().map(|link| (link.socket.clone(), PollFlags::IN | write)));
        }
        let (mut state, woken) = self.state.wait(state, (who, writes), &sockets, until, now);
        for ((socket, _), flags) in sockets.iter().zip(woken) {
            let same = |link: &&mut Link| Arc::ptr_eq(socket, &link.socket);
            if let Some(link) = state.links.iter_mut().flatten().find(same) {
                link.readable |= flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR);
            }
        }
        state
    }

    /// After a call that left something to be written: whoever waits has to wait for that too.
    pub(crate) fn leave(&self, mut state: MutexGuard<'_, State>) {
        state.calls -= 1;
        state.last_call_at = clock::now();
        if state.waits_for_less() {
            self.state.call_leader();
        }
    }
}

const MOST_WINDOW: u32 = 1 << 30;
const ACK_DELAY: Span = Span::from_millis(20);
