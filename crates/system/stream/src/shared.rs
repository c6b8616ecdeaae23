//! What all holders of a stream share, and how one of them works for all.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use netaware_dual::policy::{Choice, Decision, DecisionLog, Evidence, NotDone, Rules};
use netaware_dual::{Event, Loss, Peer, Setting, Side, Standing, Stream};
use netaware_io::clock;
use netaware_io::tcp_info::TcpInfo;
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};
use netaware_wire::Token;
use netaware_wire::dual::MAX_DATA;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::bell::Bell;
use crate::inbox::Inbox;
use crate::judge::Judge;
use crate::kept::Kept;
use crate::link::{Direct, Fault, Link, is_silent};
use crate::readiness::Readiness;
use crate::steer::Steer;

/// What a stream is made with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Bytes kept that the peer has not acknowledged, and bytes taken that nobody has read: what fits into a path is at most
    /// this for each round trip. 1 byte to 1 GiB; memory is used as it is needed.
    pub window: u32,
    /// The longest record, bytes; 1 to 1 MiB. Short ones let a switch happen sooner and cost 16 bytes each.
    pub longest_record: u32,
    /// How long a stream without any connection waits for a new one.
    pub patience: Span,
    /// How long a connection is tried.
    pub connect_patience: Span,
    /// What is made anew when it is lost. An acceptor only waits.
    pub wanted: netaware_dual::connect::Wanted,
    /// Tried first, and used first where both come up.
    pub preferred: IpVersion,
    /// Switches by itself; without it only on a wish.
    pub policy: Option<Rules>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            window: 16 << 20,
            longest_record: 256 * 1024,
            patience: Span::from_secs(60),
            connect_patience: Span::from_secs(10),
            wanted: netaware_dual::connect::Wanted::Each,
            preferred: IpVersion::V6,
            policy: None,
        }
    }
}

/// An event, and when it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Happened {
    /// On the monotonic clock.
    pub at: Mono,
    /// What.
    pub event: Event,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) name: Token,
    pub(crate) side: Side,
    pub(crate) options: Options,
    /// Where an opener connects again.
    pub(crate) addresses: [Option<SocketAddr>; 2],
    state: Mutex<State>,
    /// Something changed, or nobody waits for the sockets now.
    changed: Condvar,
    /// Calls back whoever waits for the sockets.
    bell: Bell,
    /// The program's own policy.
    pub(crate) judge: Judge,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) stream: Stream,
    pub(crate) kept: Kept,
    pub(crate) inbox: Inbox,
    pub(crate) links: [Option<Link>; 2],
    pub(crate) happened: VecDeque<Happened>,
    /// Somebody waits for the sockets.
    waiting: Option<Waiting>,
    /// Who waits for the one who waits.
    followers: u32,
    /// By IP version, what the last connection was called that this end has asked for.
    asked: [u32; 2],
    /// Calls under way, the keeper's apart.
    pub(crate) calls: u32,
    pub(crate) last_call_at: Mono,
    /// No application holds it any more.
    pub(crate) released: bool,
    /// Without any connection since.
    pub(crate) alone_since: Option<Mono>,
    /// Why it failed, where the reason is this end's.
    pub(crate) failure: Option<String>,
    looked_at: Mono,
    worked_at: Mono,
    /// Bytes sent since acknowledgements were last read.
    unheard: usize,
    /// Where an event loop waits for the stream.
    pub(crate) readiness: Option<Readiness>,
    window: u32,
    /// By IP version, the other end of the last connection.
    pub(crate) peers: [Option<SocketAddr>; 2],
    pub(crate) rules: Option<Rules>,
    pub(crate) steer: Option<Steer>,
    pub(crate) decisions: DecisionLog,
}

/// Who waits for the sockets, and what for.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    keeper: bool,
    /// Sockets that it waits to write to.
    writes: [bool; 2],
}

/// Who is in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Application,
    Keeper,
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
        let now = clock::now();
        let state = State {
            stream: Stream::new(setting),
            kept: Kept::new()?,
            inbox: Inbox::default(),
            links: [None, None],
            happened: VecDeque::new(),
            waiting: None,
            followers: 0,
            asked: [0; 2],
            calls: 0,
            last_call_at: now,
            released: false,
            alone_since: Some(now),
            failure: None,
            looked_at: now,
            worked_at: now,
            unheard: 0,
            readiness: None,
            window: options.window,
            peers: [None; 2],
            rules: options.policy,
            steer: Steer::made(options.policy, false, now),
            decisions: DecisionLog::default(),
        };
        Ok(Self {
            name,
            side,
            options,
            addresses,
            state: Mutex::new(state),
            changed: Condvar::new(),
            bell: Bell::new()?,
            judge: Judge::default(),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection belongs to the stream from now on.
    pub(crate) fn join(
        &self,
        socket: TcpStream,
        ip: IpVersion,
        generation: u32,
        peer: Peer,
    ) -> io::Result<()> {
        let address = socket.peer_addr().ok();
        let link = Link::new(socket, ip, generation)?;
        let mut state = self.lock();
        let now = clock::now();
        if generation <= state.stream.generation(ip) {
            return Err(io::Error::other("a later connection is there"));
        }
        state.stream.connected(now, ip, generation, peer).map_err(|why| io::Error::other(why.to_string()))?;
        state.links[ip.index()] = Some(link);
        state.peers[ip.index()] = address.or(state.peers[ip.index()]);
        state.alone_since = None;
        state.work(now, None);
        drop(state);
        self.call_back();
        Ok(())
    }

    /// Whoever waits looks again.
    pub(crate) fn call_back(&self) {
        self.bell.ring();
        self.changed.notify_all();
    }

    /// Works until `enough`, the deadline, or for a keeper until an application wants to wait itself.
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
            if enough(&state, done) || late || (who == Who::Keeper && state.calls > 0) {
                break;
            }
            state = match state.waiting {
                Some(waiting) => self.follow(state, waiting, deadline, now),
                None => self.wait(state, who, deadline, now),
            };
        }
        // Somebody else has to wait for the sockets now.
        if state.waiting.is_none() && state.followers > 0 {
            self.changed.notify_all();
        }
        state
    }

    /// Another one waits for the sockets: wait for it.
    fn follow<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        waiting: Waiting,
        deadline: Option<Mono>,
        now: Mono,
    ) -> MutexGuard<'a, State> {
        if waiting.keeper || state.waits_for_less() {
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
        let writes = state.blocked();
        // What cannot be written now is not due now.
        let wake_at = state.stream.wake_at().filter(|_| writes == [false; 2]);
        let until = [deadline, wake_at, state.look_at()].into_iter().flatten().min();
        let sockets = state.links.each_ref().map(|link| link.as_ref().map(|link| link.socket.clone()));
        state.waiting = Some(Waiting { keeper: who == Who::Keeper, writes });
        drop(state);

        let mut polled = vec![PollFd::new(&self.bell, PollFlags::IN)];
        let mut whose = Vec::new();
        for (at, socket) in sockets.iter().enumerate() {
            let Some(socket) = socket else { continue };
            let write = if writes[at] { PollFlags::OUT } else { PollFlags::empty() };
            polled.push(PollFd::new(&**socket, PollFlags::IN | write));
            whose.push(at);
        }
        let timeout = until.map(|until| (until - now).or_zero());
        let timeout = timeout.and_then(|left| Timespec::try_from(left.to_std()).ok());
        let _ = poll(&mut polled, timeout.as_ref());
        let woken: Vec<PollFlags> = polled.iter().map(PollFd::revents).collect();

        let mut state = self.lock();
        state.waiting = None;
        if !woken[0].is_empty() {
            self.bell.silence();
        }
        for (at, flags) in whose.into_iter().zip(&woken[1..]) {
            let same =
                |link: &&mut Link| sockets[at].as_ref().is_some_and(|it| Arc::ptr_eq(it, &link.socket));
            if let Some(link) = state.links[at].as_mut().filter(same) {
                link.readable |= flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR);
            }
        }
        if state.followers > 0 {
            self.changed.notify_all();
        }
        state
    }

    /// After a call that left something to be written: whoever waits has to wait for that too.
    pub(crate) fn leave(&self, mut state: MutexGuard<'_, State>) {
        state.calls -= 1;
        state.last_call_at = clock::now();
        if state.waits_for_less() {
            self.bell.ring();
        }
    }
}

impl State {
    /// What to call a connection that is asked for. The peer may have heard of those that came to nothing here, and takes none of
    /// the same name or an earlier one.
    pub(crate) fn next_generation(&mut self, ip: IpVersion) -> u32 {
        let asked = &mut self.asked[ip.index()];
        *asked = (*asked).max(self.stream.generation(ip)) + 1;
        *asked
    }

    /// Everything that can be done without waiting.
    pub(crate) fn work(&mut self, now: Mono, mut direct: Option<&mut Direct<'_>>) {
        self.worked_at = now;
        for at in 0..2 {
            if let Some(link) = &mut self.links[at] {
                let read = link.read(now, &mut self.stream, &mut self.inbox, direct.as_deref_mut());
                self.judge(now, at, read);
            }
        }
        self.look(now);
        if let Some(steer) = &mut self.steer {
            steer.send_packet(now, &mut self.stream);
        }
        self.write(now);
    }

    /// Writes what is due.
    pub(crate) fn write(&mut self, now: Mono) {
        // What one connection loses may be due on the other.
        for at in [0, 1, 0] {
            if let Some(link) = &mut self.links[at] {
                let written = link.write(now, &mut self.stream, &self.kept);
                self.judge(now, at, written);
            }
        }
        self.kept.forget_before(self.stream.acked());
        self.note(now);
        self.show();
    }

    /// Tells the event loop, where there is one.
    pub(crate) fn show(&mut self) {
        if self.readiness.is_none() {
            return;
        }
        let over = self.check().is_err();
        let readable = over || self.stream.unread() > 0 || self.stream.has_all();
        let writable = over || self.space() > 0;
        if let Some(readiness) = &mut self.readiness {
            readiness.show(readable, writable);
        }
    }

    fn judge(&mut self, now: Mono, at: usize, worked: Result<(), Fault>) {
        match worked {
            Ok(()) => {}
            Err(Fault::Io(_)) => self.lose(now, at, Loss::Ended),
            Err(Fault::Framing(why)) => {
                self.failure.get_or_insert(why);
                self.stream.abandon();
            }
        }
    }

    fn lose(&mut self, now: Mono, at: usize, why: Loss) {
        let Some(link) = self.links[at].take() else { return };
        if why != Loss::Ended {
            link.reset();
        }
        self.stream.lost(now, link.ip, link.generation, why);
    }

    /// Drops what the stream no longer believes in, and keeps its events.
    fn note(&mut self, now: Mono) {
        while let Some(event) = self.stream.event() {
            if let (Event::Turning { .. }, Some(steer)) = (event, &mut self.steer) {
                steer.turned(now);
            }
            if self.happened.len() == MOST_HAPPENED {
                self.happened.pop_front();
            }
            self.happened.push_back(Happened { at: now, event });
        }
        for at in 0..2 {
            let gone = |link: &mut Link| {
                !self.stream.is_up(link.ip) || self.stream.generation(link.ip) != link.generation
            };
            if let Some(link) = self.links[at].take_if(gone) {
                link.reset();
            }
        }
        if self.links.iter().all(Option::is_none) {
            self.alone_since.get_or_insert(now);
        }
    }

    /// Looks now and then at what the kernel knows of the connections.
    fn look(&mut self, now: Mono) {
        if now - self.looked_at < LOOK_EVERY {
            return;
        }
        self.looked_at = now;
        let only = self.links.iter().flatten().count() == 1;
        let mut seen = [None; 2];
        for (at, seen) in seen.iter_mut().enumerate() {
            let Some(link) = &self.links[at] else { continue };
            *seen = link.info();
            let Some(info) = seen else { continue };
            if info.rtt > Span::ZERO {
                self.stream.takes(link.ip, info.rtt);
            }
            if is_silent(info, only) {
                self.lose(now, at, Loss::Silent);
            }
        }
        self.steer(now, &seen);
    }

    fn steer(&mut self, now: Mono, seen: &[Option<TcpInfo>; 2]) {
        let Some(steer) = &mut self.steer else { return };
        let busy = self.kept.len() > 0;
        let Some(decision) = steer.look(now, &mut self.stream, seen, busy) else { return };
        self.follow(now, decision);
    }

    fn follow(&mut self, now: Mono, decision: Decision) {
        // Somebody who holds the stream is the better reason: a wish may wait for that alone.
        let not_done = if self.stream.is_settled() || self.stream.is_held() {
            self.stream.switch(now, decision.to).err().map(NotDone::from)
        } else {
            Some(NotDone::Unsettled)
        };
        self.decisions.note(Decision { not_done, ..decision });
    }

    /// What a callback has to judge now; nothing while a switch is under way.
    pub(crate) fn evidence(&mut self, now: Mono) -> Option<Evidence> {
        let present = self.stream.current().filter(|_| self.stream.is_settled())?;
        let up = [IpVersion::V4, IpVersion::V6].map(|ip| self.stream.is_up(ip));
        self.steer.as_mut()?.evidence(now, present, up)
    }

    /// Does what a callback has said.
    pub(crate) fn obey(&mut self, now: Mono, choice: Choice) {
        let (Choice::Use(to), Some(present), Some(steer)) = (choice, self.stream.current(), &self.steer)
        else {
            return;
        };
        if let Some(decision) = steer.called(now, present).filter(|_| to != present) {
            self.follow(now, decision);
            self.write(now);
        }
    }

    /// When the connections are to be looked at though nothing happens: while something is under way.
    fn look_at(&self) -> Option<Mono> {
        let busy = self.kept.len() > 0
            || !self.stream.is_settled()
            || self.links.iter().flatten().any(|link| link.blocked);
        let some = self.links.iter().any(Option::is_some);
        let look = self.looked_at + if busy { LOOK_EVERY } else { LOOK_IDLE };
        let packet = self.steer.as_ref().and_then(Steer::packet_at);
        (some && (busy || self.stream.standing() != Standing::Finished))
            .then(|| packet.map_or(look, |packet| packet.min(look)))
    }

    /// Whether somebody waits for the sockets, but not for all that there is to write.
    fn waits_for_less(&self) -> bool {
        let blocked = self.blocked();
        self.waiting.is_some_and(|waiting| (0..2).any(|at| blocked[at] && !waiting.writes[at]))
    }

    fn blocked(&self) -> [bool; 2] {
        self.links.each_ref().map(|link| link.as_ref().is_some_and(|link| link.blocked))
    }

    /// Bytes of the application, of which there is room for `most`; how many were taken. They go into one record.
    pub(crate) fn append(&mut self, parts: &[IoSlice<'_>], most: usize) -> io::Result<usize> {
        let mut taken = 0;
        for part in parts {
            let part = &part[..part.len().min(most - taken)];
            if part.is_empty() {
                continue;
            }
            match self.kept.append(part) {
                Ok(()) => taken += part.len(),
                Err(error) if taken == 0 => return Err(error),
                Err(_) => break,
            }
        }
        self.stream.queued(taken as u64);
        let now = clock::now();
        self.unheard += taken;
        if self.unheard < HEARD_EVERY && now - self.worked_at < HEARD_AFTER {
            self.write(now);
            return Ok(taken);
        }
        // Acknowledgements that nobody waits for are read now and then, so that little is kept and that stays in the cache; and so
        // are wishes, for a keeper does not work while somebody sends a little all the time.
        self.unheard = 0;
        for link in self.links.iter_mut().flatten() {
            link.readable = true;
        }
        self.work(now, None);
        Ok(taken)
    }

    /// Hands over what came before, and lets the peer know in time.
    pub(crate) fn take(&mut self, out: &mut [u8]) -> usize {
        let count = self.inbox.read(self.stream.unread(), out);
        if count > 0 {
            let now = clock::now();
            self.stream.consumed(now, count as u64);
            self.write(now);
        }
        count
    }

    /// Bytes that can be given to the stream now.
    pub(crate) fn space(&self) -> usize {
        u64::from(self.window).saturating_sub(self.kept.len()) as usize
    }

    /// An error where the stream is of no more use.
    pub(crate) fn check(&self) -> io::Result<()> {
        if let Some(why) = &self.failure {
            return Err(io::Error::new(ErrorKind::ConnectionAborted, why.clone()));
        }
        match self.stream.standing() {
            Standing::Broken(_) => Err(ErrorKind::ConnectionReset.into()),
            Standing::Open | Standing::Finished => Ok(()),
        }
    }
}

const MOST_WINDOW: u32 = 1 << 30;
const ACK_DELAY: Span = Span::from_millis(20);
/// Between looks at the connections while bytes are under way.
const LOOK_EVERY: Span = Span::from_millis(50);
const LOOK_IDLE: Span = Span::from_secs(1);
/// At most, for who works for all.
const FOLLOWED: Span = Span::from_millis(50);
const HEARD_EVERY: usize = 256 * 1024;
const HEARD_AFTER: Span = Span::from_millis(10);
const MOST_HAPPENED: usize = 256;
