//! What a stream knows: its engine, its bytes and its connections, and everything that can be done
//! with them without waiting.

mod policy;

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;

use netaware_dual::policy::{DecisionLog, Rules};
use netaware_dual::{Event, Loss, Peer, Setting, Standing, Stream};
use netaware_io::clock;
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};

use crate::inbox::Inbox;
use crate::kept::Kept;
use crate::leader::{HasLead, Lead};
use crate::link::{Direct, Fault, Link, is_silent};
use crate::options::{Happened, Options};
use crate::readiness::Readiness;
use crate::steer::Steer;

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) stream: Stream,
    pub(crate) kept: Kept,
    pub(crate) inbox: Inbox,
    pub(crate) links: [Option<Link>; 2],
    pub(crate) happened: VecDeque<Happened>,
    /// With the sockets that the one who leads waits to write to.
    lead: Lead<[bool; 2]>,
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

impl HasLead for State {
    type WaitsFor = [bool; 2];

    fn lead(&mut self) -> &mut Lead<[bool; 2]> {
        &mut self.lead
    }
}

impl State {
    pub(crate) fn new(setting: Setting, options: &Options, now: Mono) -> io::Result<Self> {
        Ok(Self {
            stream: Stream::new(setting),
            kept: Kept::new()?,
            inbox: Inbox::default(),
            links: [None, None],
            happened: VecDeque::new(),
            lead: Lead::default(),
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
        })
    }

    /// A connection belongs to the stream from now on.
    pub(crate) fn join(
        &mut self,
        now: Mono,
        link: Link,
        from: Option<SocketAddr>,
        peer: Peer,
    ) -> io::Result<()> {
        let (ip, generation) = (link.ip, link.generation);
        if generation <= self.stream.generation(ip) {
            return Err(io::Error::other("a later connection is there"));
        }
        self.stream.connected(now, ip, generation, peer).map_err(|why| io::Error::other(why.to_string()))?;
        self.links[ip.index()] = Some(link);
        self.peers[ip.index()] = from.or(self.peers[ip.index()]);
        self.alone_since = None;
        self.work(now, None);
        Ok(())
    }

    /// What to call a connection that is asked for. The peer may have heard of those that came to
    /// nothing here, and takes none of the same name or an earlier one.
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
            let Some(link) = &mut self.links[at] else { continue };
            *seen = link.info();
            let Some(info) = seen else { continue };
            let waited = link.waited(now, info);
            if info.rtt > Span::ZERO {
                self.stream.takes(link.ip, info.rtt);
            }
            if is_silent(info, waited, only) {
                self.lose(now, at, Loss::Silent);
            }
        }
        self.steer(now, &seen);
    }

    /// When the connections are to be looked at though nothing happens: while something is under
    /// way.
    pub(crate) fn look_at(&self) -> Option<Mono> {
        let busy = self.kept.len() > 0
            || !self.stream.is_settled()
            || self.links.iter().flatten().any(|link| link.blocked);
        let some = self.links.iter().any(Option::is_some);
        let look = self.looked_at + if busy { LOOK_EVERY } else { LOOK_IDLE };
        let packet = self.steer.as_ref().and_then(Steer::packet_at);
        (some && (busy || self.stream.standing() != Standing::Finished))
            .then(|| packet.map_or(look, |packet| packet.min(look)))
    }

    /// Whether an application is in a call, or was a moment ago and will be again: between two
    /// calls of one that sends all it can there is nothing for a keeper to do. One that has an
    /// event loop may stay away until it is told.
    pub(crate) fn is_called(&self, now: Mono) -> bool {
        self.calls > 0 || (self.readiness.is_none() && now - self.last_call_at < QUIET)
    }

    /// Whether somebody waits for the sockets, but not for all that there is to write.
    pub(crate) fn waits_for_less(&self) -> bool {
        let blocked = self.blocked();
        self.lead.waits_for().is_some_and(|writes| (0..2).any(|at| blocked[at] && !writes[at]))
    }

    pub(crate) fn blocked(&self) -> [bool; 2] {
        self.links.each_ref().map(|link| link.as_ref().is_some_and(|link| link.blocked))
    }

    /// Bytes of the application, of which there is room for `most`; how many were taken. They go
    /// into one record.
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
        // Acknowledgements that nobody waits for are read now and then, so that little is kept and
        // that stays in the cache; and so are wishes, for a keeper does not work while somebody
        // sends a little all the time.
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

/// After the last call.
pub(crate) const QUIET: Span = Span::from_millis(5);
/// Between looks at the connections while bytes are under way.
const LOOK_EVERY: Span = Span::from_millis(50);
const LOOK_IDLE: Span = Span::from_secs(1);
const HEARD_EVERY: usize = 256 * 1024;
const HEARD_AFTER: Span = Span::from_millis(10);
const MOST_HAPPENED: usize = 256;
