//! Sessions of a socket: what comes goes to its session, what is due goes to its address.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use netaware_dual::datagram::{Door, End, Event, Knock, Session, Setting, Standing, Taken, UnfitRules};
use netaware_dual::policy::{Choice, Decision, Evidence, Rules};
use netaware_dual::{CannotSwitch, Side};
use netaware_io::clock;
use netaware_io::probe_socket::ProbeSocket;
use netaware_pool::Rates;
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};
use netaware_wire::dual::{DATAGRAM_HEAD_LEN, DatagramBody, DatagramHead, MAX_DATAGRAM};

use super::guests::{ANSWERS, draws_unknown};
use super::sockets;
use super::{DatagramHappened, DatagramOptions, PeerId, SocketStatus};
use crate::leader::{HasLead, Lead};
use crate::readiness::Readiness;

#[derive(Debug)]
pub(super) struct State {
    pub(super) options: DatagramOptions,
    pub(super) side: Side,
    /// By version of IP.
    pub(super) sockets: [Option<Arc<ProbeSocket>>; 2],
    pub(super) peers: HashMap<PeerId, Peer>,
    /// Of sessions, by their name on the wire.
    pub(super) names: HashMap<u64, PeerId>,
    wakes: BTreeSet<(Mono, PeerId)>,
    last_peer: u64,
    door: Door,
    pub(super) answers: Rates,
    inbox: VecDeque<(PeerId, Vec<u8>)>,
    inbox_bytes: usize,
    told: SocketStatus,
    happened: VecDeque<DatagramHappened>,
    decisions: VecDeque<(PeerId, Decision)>,
    pub(super) rules: Option<Rules>,
    judged: bool,
    /// How many want all sessions to stay where they are.
    holds: u32,
    pub(super) readiness: Option<Readiness>,
    scratch: Vec<u8>,
    pub(super) frame: Vec<u8>,
    worked_at: Mono,
    /// With the instant until which the one who leads waits.
    lead: Lead<Option<Mono>>,
    pub(super) receivers: u32,
    pub(super) received_at: Mono,
    pub(super) released: bool,
    /// Why an opener's last address was given up.
    pub(super) failed: Option<(SocketAddr, io::Error)>,
}

impl HasLead for State {
    type WaitsFor = Option<Mono>;

    fn lead(&mut self) -> &mut Lead<Option<Mono>> {
        &mut self.lead
    }
}

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) session: Session,
    name: u64,
    /// Where it is, by version.
    pub(super) places: [Option<Place>; 2],
    /// Of an opener: addresses that have not been tried.
    pub(super) untried: [VecDeque<SocketAddr>; 2],
    wake_at: Option<Mono>,
}

/// Where a version's datagrams go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Which socket: a translator may have made the version another one.
    pub(super) socket: usize,
    pub(super) to: SocketAddr,
    /// From there, of an acceptor.
    pub(super) from: Option<IpAddr>,
}

impl State {
    pub(super) fn new(
        options: DatagramOptions,
        side: Side,
        sockets: [Option<Arc<ProbeSocket>>; 2],
    ) -> io::Result<Self> {
        let now = clock::now();
        let mut secret = [0; 32];
        fill(&mut secret)?;
        Ok(Self {
            options,
            side,
            sockets,
            peers: HashMap::new(),
            names: HashMap::new(),
            wakes: BTreeSet::new(),
            last_peer: 0,
            door: Door::new(secret),
            answers: Rates::new(ANSWERS),
            inbox: VecDeque::new(),
            inbox_bytes: 0,
            told: SocketStatus::default(),
            happened: VecDeque::new(),
            decisions: VecDeque::new(),
            rules: options.policy,
            judged: false,
            holds: 0,
            readiness: None,
            scratch: vec![0; MAX_DATAGRAM + DATAGRAM_HEAD_LEN],
            frame: Vec::new(),
            worked_at: now,
            lead: Lead::default(),
            receivers: 0,
            received_at: now,
            released: false,
            failed: None,
        })
    }

    /// Begins the one session of an opener.
    pub(super) fn open(&mut self, now: Mono, addresses: &[Vec<SocketAddr>; 2]) -> io::Result<PeerId> {
        let mut name = [0; 8];
        fill(&mut name)?;
        let id = self.admit(now, u64::from_be_bytes(name))?;
        let preferred = self.options.preferred;
        for ip in [preferred, preferred.other()] {
            let peer = self.peers.get_mut(&id).ok_or(ErrorKind::NotFound)?;
            peer.untried[ip.index()] = addresses[ip.index()].iter().copied().take(MOST_ADDRESSES).collect();
            self.try_next(now, id, ip);
        }
        self.settle(now, id);
        Ok(id)
    }

    /// Greets the next address of a version, if there is one.
    pub(super) fn try_next(&mut self, now: Mono, id: PeerId, ip: IpVersion) {
        while let Some(to) = self.peers.get_mut(&id).and_then(|peer| peer.untried[ip.index()].pop_front()) {
            match sockets::connected(to) {
                Ok(socket) => {
                    self.sockets[ip.index()] = Some(Arc::new(socket));
                    let Some(peer) = self.peers.get_mut(&id) else { return };
                    peer.places[ip.index()] = Some(Place { socket: ip.index(), to, from: None });
                    peer.session.reach(now, ip);
                    return;
                }
                Err(error) => self.failed = Some((to, error)),
            }
        }
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.session.unreachable(now, ip);
        }
    }

    pub(super) fn admit(&mut self, now: Mono, name: u64) -> io::Result<PeerId> {
        let mut offset = [0; 4];
        fill(&mut offset)?;
        let options = &self.options;
        let mut session = Session::new(
            Setting {
                side: self.side,
                session: name,
                clock_offset: u32::from_be_bytes(offset),
                every: options.every.clamp(LEAST_EVERY, MOST_EVERY),
                overlap: options.overlap.or_zero(),
                patience: options.patience,
                wanted: options.wanted,
                preferred: options.preferred,
            },
            now,
        );
        session.hold(self.holds > 0);
        // That the rules fit has been seen to where they were given.
        let _ = session.set_policy(now, self.rules, self.judged);
        self.last_peer += 1;
        let id = PeerId(self.last_peer);
        let untried = Default::default();
        self.peers.insert(id, Peer { session, name, places: [None; 2], untried, wake_at: None });
        self.names.insert(name, id);
        Ok(id)
    }

    /// Everything that can be done without waiting.
    pub(super) fn work(&mut self, now: Mono) {
        self.worked_at = now;
        for at in 0..2 {
            self.read(at);
        }
        while let Some((at, id)) = self.wakes.first().copied().filter(|(at, _)| *at <= now) {
            self.settle(now, id);
            // Nothing was due after all: it must not be asked again before something can be.
            if self.wakes.contains(&(at, id)) {
                self.wake(id, Some(now + Span::from_millis(1)));
            }
        }
        self.show();
    }

    /// As [`Self::work`], for a sender: now and then, so that what nobody waits for is read.
    pub(super) fn work_if_due(&mut self, now: Mono) {
        if now - self.worked_at >= WORKED_EVERY || self.wake_at().is_some_and(|at| at <= now) {
            self.work(now);
        }
    }

    fn read(&mut self, at: usize) {
        for _ in 0..READ_AT_ONCE {
            let Some(socket) = self.sockets[at].clone() else { return };
            let mut scratch = std::mem::take(&mut self.scratch);
            let came = socket.try_receive(&mut scratch);
            let now = clock::now();
            match &came {
                Ok(Some(arrival)) => {
                    let place = Place { socket: at, to: arrival.from, from: arrival.to };
                    self.take(now, place, &scratch[..arrival.len]);
                }
                Ok(None) => {}
                Err(error) => self.refused(now, at, error),
            }
            self.scratch = scratch;
            if matches!(came, Ok(None)) {
                return;
            }
        }
    }

    /// The network's answer to an earlier datagram of an opener.
    pub(super) fn refused(&mut self, now: Mono, at: usize, error: &io::Error) {
        let Some(id) = self.peers.keys().next().copied().filter(|_| self.side == Side::Opener) else {
            return;
        };
        let ip = if at == 0 { IpVersion::V4 } else { IpVersion::V6 };
        let Some(peer) = self.peers.get(&id) else { return };
        let greeting = peer.session.status().of(ip).standing == Standing::Greeting;
        if let Some(place) = peer.places[at].filter(|_| greeting && sockets::is_no_way(error)) {
            let kept = error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
            self.failed = Some((place.to, kept));
            self.try_next(now, id, ip);
            self.settle(now, id);
        }
    }

    fn take(&mut self, now: Mono, place: Place, bytes: &[u8]) {
        let Ok((head, body)) = DatagramHead::parse(bytes) else {
            self.told.strangers += 1;
            return;
        };
        if let (Side::Acceptor, DatagramBody::Hello { speaks, join, cookie }) = (self.side, body) {
            match self.door.knock(now, place.to, head.session, speaks, cookie) {
                Knock::Enter => self.enter(now, place, &head, join),
                Knock::Answer(answer) => self.answer(now, place, &head, &answer),
            }
            return;
        }
        let known = self.names.get(&head.session).copied();
        let there = |peer: &Peer| peer.places[head.ip.index()].is_some_and(|it| it.is_same(&place));
        let Some(id) = known.filter(|id| self.peers.get(id).is_some_and(there)) else {
            self.told.strangers += 1;
            if self.side == Side::Acceptor && draws_unknown(head.kind) {
                self.answer(now, place, &head, &DatagramBody::Unknown);
            }
            return;
        };
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if peer.session.take(now, &head, &body) == Taken::Payload {
            self.keep(id, &bytes[DATAGRAM_HEAD_LEN..]);
        }
        self.settle(now, id);
    }

    /// Does what a session wants done, and notes what it tells.
    pub(super) fn settle(&mut self, now: Mono, id: PeerId) {
        while let Some(due) = self.peers.get_mut(&id).and_then(|peer| peer.session.poll(now)) {
            self.transmit_due(now, id, &due);
        }
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let mut over = false;
        while let Some(event) = peer.session.event() {
            over |= matches!(event, Event::Ended(_));
            push_bounded(&mut self.happened, DatagramHappened { at: now, peer: id, event });
        }
        while let Some(decision) = peer.session.decision() {
            push_bounded(&mut self.decisions, (id, decision));
        }
        let wake_at = peer.session.wake_at();
        self.wake(id, wake_at);
        if over && self.side == Side::Acceptor {
            self.forget(id);
        }
    }

    pub(super) fn wake(&mut self, id: PeerId, wake_at: Option<Mono>) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let before = std::mem::replace(&mut peer.wake_at, wake_at);
        if before == wake_at {
            return;
        }
        if let Some(at) = before {
            self.wakes.remove(&(at, id));
        }
        if let Some(at) = wake_at {
            self.wakes.insert((at, id));
        }
    }

    pub(super) fn wake_at(&self) -> Option<Mono> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// Whether something is due before whoever waits for the sockets looks again.
    pub(super) fn waits_too_long(&self) -> bool {
        let sooner = |until: &Option<Mono>| match (self.wake_at(), until) {
            (Some(at), Some(until)) => at < *until,
            (Some(_), None) => true,
            (None, _) => false,
        };
        self.lead.waits_for().is_some_and(sooner)
    }

    fn forget(&mut self, id: PeerId) {
        self.wake(id, None);
        if let Some(peer) = self.peers.remove(&id) {
            self.names.remove(&peer.name);
        }
    }

    /// Until the application takes it.
    fn keep(&mut self, id: PeerId, payload: &[u8]) {
        if self.released {
            return;
        }
        let room = self.inbox_bytes + payload.len() <= self.options.inbox as usize;
        if !room || self.inbox.len() >= MOST_KEPT {
            self.told.dropped += 1;
            return;
        }
        self.inbox_bytes += payload.len();
        self.inbox.push_back((id, payload.to_vec()));
    }

    pub(super) fn has_some(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// The oldest datagram that came; what does not fit is cut off.
    pub(super) fn receive(&mut self, out: &mut [u8]) -> Option<(usize, PeerId)> {
        let (id, payload) = self.inbox.pop_front()?;
        self.inbox_bytes -= payload.len();
        let length = payload.len().min(out.len());
        out[..length].copy_from_slice(&payload[..length]);
        self.show();
        Some((length, id))
    }

    /// Tells the event loop, where there is one.
    pub(super) fn show(&mut self) {
        let readable = self.has_some() || self.is_over();
        if let Some(readiness) = &mut self.readiness {
            readiness.show(readable, true);
        }
    }

    /// Why an opener's session has ended.
    pub(super) fn ended(&self) -> Option<End> {
        let only = self.peers.values().next().filter(|_| self.side == Side::Opener)?;
        only.session.ended()
    }

    pub(super) fn is_over(&self) -> bool {
        self.ended().is_some()
    }

    /// An opener has nothing more to try.
    pub(super) fn is_hopeless(&self) -> bool {
        let unused = |peer: &Peer| {
            let status = peer.session.status();
            [status.v4, status.v6].iter().all(|version| version.standing == Standing::Unused)
        };
        self.peers.values().all(unused)
    }

    pub(super) fn session(&self, id: PeerId) -> Option<&Session> {
        self.peers.get(&id).map(|peer| &peer.session)
    }

    pub(super) fn address(&self, id: PeerId, ip: IpVersion) -> Option<SocketAddr> {
        Some(self.peers.get(&id)?.places[ip.index()]?.to)
    }

    pub(super) fn peers(&self) -> Vec<PeerId> {
        let mut all: Vec<PeerId> = self.peers.keys().copied().collect();
        all.sort_unstable();
        all
    }

    pub(super) fn switch(&mut self, now: Mono, id: PeerId, to: IpVersion) -> Result<u32, CannotSwitch> {
        let peer = self.peers.get_mut(&id).ok_or(CannotSwitch::Over)?;
        let serial = peer.session.switch(now, to);
        self.settle(now, id);
        serial
    }

    pub(super) fn holds(&self) -> u32 {
        self.holds
    }

    pub(super) fn hold(&mut self, holds: u32) {
        self.holds = holds;
        self.peers.values_mut().for_each(|peer| peer.session.hold(holds > 0));
    }

    pub(super) fn set_policy(
        &mut self,
        now: Mono,
        rules: Option<Rules>,
        judged: bool,
    ) -> Result<(), UnfitRules> {
        UnfitRules::check(rules.as_ref())?;
        (self.rules, self.judged) = (rules, judged);
        for id in self.peers() {
            if let Some(peer) = self.peers.get_mut(&id) {
                peer.session.set_policy(now, rules, judged)?;
            }
            self.settle(now, id);
        }
        Ok(())
    }

    /// What a callback has to judge now.
    pub(super) fn evidence(&mut self, now: Mono) -> Vec<(PeerId, Evidence)> {
        if !self.judged {
            return Vec::new();
        }
        let of = |(id, peer): (&PeerId, &mut Peer)| Some((*id, peer.session.evidence(now)?));
        self.peers.iter_mut().filter_map(of).collect()
    }

    pub(super) fn judge(&mut self, now: Mono, id: PeerId, choice: Choice) {
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.session.judge(now, choice);
            self.settle(now, id);
        }
    }

    pub(super) fn close(&mut self, now: Mono, id: PeerId) {
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.session.close();
            self.settle(now, id);
        }
        self.show();
    }

    pub(super) fn happened(&mut self) -> Vec<DatagramHappened> {
        self.happened.drain(..).collect()
    }

    pub(super) fn next_decision(&mut self) -> Option<(PeerId, Decision)> {
        self.decisions.pop_front()
    }

    pub(super) fn decisions(&mut self) -> Vec<(PeerId, Decision)> {
        self.decisions.drain(..).collect()
    }

    pub(super) fn told(&self) -> SocketStatus {
        let drops = self.sockets.iter().flatten().map(|socket| socket.drops()).sum();
        SocketStatus { sessions: self.peers.len(), drops, ..self.told }
    }
}

impl Place {
    /// The local address may differ from one datagram to the next.
    fn is_same(&self, other: &Self) -> bool {
        (self.socket, self.to) == (other.socket, other.to)
    }
}

fn fill(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(|why| io::Error::other(why.to_string()))
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() == MOST_HAPPENED {
        queue.pop_front();
    }
    queue.push_back(item);
}

/// Kept until they are read, whatever their length.
const MOST_KEPT: usize = 16_384;
const MOST_HAPPENED: usize = 256;
const MOST_ADDRESSES: usize = 8;
const READ_AT_ONCE: usize = 64;
const WORKED_EVERY: Span = Span::from_millis(2);
const LEAST_EVERY: Span = Span::from_millis(50);
const MOST_EVERY: Span = Span::from_secs(15);
