//! A session of datagrams over both IP versions: where each one goes, what of it came, and when a
//! version does not work.
//!
//! Unlike a stream it promises nothing of the application's datagrams: they may be lost, and come
//! in another order. What it adds is that they go over the version that works or is wanted, that
//! none comes twice, and that both ends see what each version lost and how long it took.
//!
//! ```text
//!                 hello, cookie, welcome                       told to have come
//!   Greeting ─────────────────────────────► Up ◄──────────────────────────────────┐
//!                                           │  nothing told to have come           │
//!                                           └──────────────────────────────────► Silent   probes, ever more seldom;
//!                                                                                          the opener greets anew
//! ```
//!
//! A [`Session`] has no socket: its driver takes what [`Session::send`] and [`Session::poll`] name
//! to the address of that version, and shows what came to [`Session::take`]. Memory is the same
//! whatever comes.

mod delay;
mod door;
mod event;
mod greeting;
mod path;
mod seen;
mod steer;
mod turning;

use std::collections::VecDeque;

use netaware_record::IpVersion;
use netaware_units::{Mono, Span};
use netaware_wire::dual::{
    DATAGRAM_VERSION, DatagramBody, DatagramHead, DatagramKind, PROBE_LEN, Probe, WishAnswer,
};

use crate::connect::Wanted;
use crate::stream::{Outcome, Reason, Side};
use path::Path;
use seen::{Arrival, Seen};
use steer::Steer;
use turning::{Doubling, Wish};

pub use door::{Door, Knock};
pub use event::{End, Event, SessionStatus, Standing, VersionStatus};
pub use steer::UnfitRules;

/// What a session is made with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Which end.
    pub side: Side,
    /// Its name: random, and known to nobody else.
    pub session: u64,
    /// Added to the clock that the peer sees, microseconds: random, so that it says nothing of this
    /// host (RFC 7323 §7.1).
    pub clock_offset: u32,
    /// Between probes over each version.
    pub every: Span,
    /// After a wish, datagrams go both ways until one is told to have come over the new one, but no
    /// longer than this.
    pub overlap: Span,
    /// How long neither version may work.
    pub patience: Span,
    /// Which versions an opener greets.
    pub wanted: Wanted,
    /// Greeted first.
    pub preferred: IpVersion,
}

/// What a datagram that came is for the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It is the application's: hand over what follows the head.
    Payload,
    /// It is not, or has come before.
    Nothing,
}

/// Something to be sent now.
#[derive(Debug, Clone, Copy)]
pub struct Due {
    /// Over this version.
    pub ip: IpVersion,
    bytes: [u8; PROBE_LEN],
    length: usize,
}

impl Due {
    /// What.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Why nothing can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CannotSend {
    /// Neither version has worked yet.
    #[error("no version of IP works yet")]
    NotUp,
    /// It is over.
    #[error("{0}")]
    Ended(End),
}

/// One end of a session.
#[derive(Debug)]
pub struct Session {
    setting: Setting,
    paths: [Path; 2],
    current: Option<IpVersion>,
    /// The opener has been welcome once: the peer must know the session.
    known: bool,
    number: u64,
    seen: Seen,
    delivered: u64,
    repeated: u64,
    late: u64,
    /// The last datagram of the application.
    data_came_over: Option<IpVersion>,
    doubling: Option<Doubling>,
    wish: Option<Wish>,
    wishes: u32,
    peers_wish: u32,
    answer: Option<(u32, WishAnswer)>,
    holds: bool,
    ended: Option<End>,
    byes: [u8; 2],
    /// Neither version has worked since.
    silent_since: Option<Mono>,
    events: VecDeque<Event>,
    steer: Option<Steer>,
}

impl Session {
    /// Nothing is sent yet. An opener says with [`Self::reach`] which versions have an address.
    pub fn new(setting: Setting, now: Mono) -> Self {
        Self {
            setting,
            paths: [IpVersion::V4, IpVersion::V6].map(|ip| Path::new(ip, now)),
            current: None,
            known: false,
            number: 0,
            seen: Seen::new(),
            delivered: 0,
            repeated: 0,
            late: 0,
            data_came_over: None,
            doubling: None,
            wish: None,
            wishes: 0,
            peers_wish: 0,
            answer: None,
            holds: false,
            ended: None,
            byes: [0; 2],
            silent_since: Some(now),
            events: VecDeque::new(),
            steer: None,
        }
    }

    /// A datagram of this session came over `head.ip`, from the address that it has there.
    pub fn take(&mut self, now: Mono, head: &DatagramHead, body: &DatagramBody) -> Taken {
        if self.ended.is_some() {
            return Taken::Nothing;
        }
        if self.setting.side == Side::Opener && head.kind.is_set_up() {
            self.take_answer(now, head.ip, body);
            return Taken::Nothing;
        }
        if head.kind.is_set_up() || self.path(head.ip).standing == Standing::Unused {
            return Taken::Nothing;
        }
        let clock = self.clock(now);
        if self.path_mut(head.ip).arrive(now, head, clock) != Arrival::First {
            // A copy that the network made; it has been counted there.
            return Taken::Nothing;
        }
        match body {
            DatagramBody::Data => return self.take_data(now, head),
            DatagramBody::Probe(probe) => self.take_probe(now, head.ip, probe),
            DatagramBody::Bye => self.end(End::PeerClosed),
            _ => {}
        }
        Taken::Nothing
    }

    fn take_data(&mut self, now: Mono, head: &DatagramHead) -> Taken {
        let path = self.path_mut(head.ip);
        path.owe_report(now);
        // The peer goes another way, or both: it waits for a word of that.
        if self.data_came_over.replace(head.ip) != Some(head.ip) {
            self.path_mut(head.ip).hurry(now);
        }
        match self.seen.take(head.number) {
            Arrival::First => {
                self.delivered += 1;
                return Taken::Payload;
            }
            Arrival::Again => self.repeated += 1,
            Arrival::TooLate => self.late += 1,
        }
        Taken::Nothing
    }

    fn take_probe(&mut self, now: Mono, ip: IpVersion, probe: &Probe) {
        let clock = self.clock(now);
        self.path_mut(ip).probed(now, clock, probe);
        for (at, came) in probe.came.into_iter().enumerate() {
            // What cannot be is no word of this peer's state: the next probe tells it again.
            if self.paths[at].told(now, came) == Ok(true) {
                let ip = self.paths[at].ip;
                self.come_up(now, ip);
            }
        }
        self.end_doubling(now);
        if let Some((serial, answer)) = probe.answer {
            self.take_wish_answer(serial, answer);
        }
        if let Some((to, serial)) = probe.wish {
            self.take_wish(now, to, serial);
        }
    }

    /// Where the application's next datagram goes, and with which heads. It goes twice after a
    /// wish.
    ///
    /// # Errors
    /// Nowhere.
    pub fn send(&mut self, now: Mono, bytes: usize) -> Result<[Option<DatagramHead>; 2], CannotSend> {
        if let Some(end) = self.ended {
            return Err(CannotSend::Ended(end));
        }
        self.tick(now);
        let current = self.current.ok_or(CannotSend::NotUp)?;
        self.number += 1;
        if let Some(steer) = &mut self.steer {
            steer.spend(bytes);
        }
        let first = self.data_head(now, current);
        let second = self.doubled(now).map(|ip| self.data_head(now, ip));
        Ok([Some(first), second])
    }

    fn data_head(&mut self, now: Mono, ip: IpVersion) -> DatagramHead {
        let number = self.number as u32;
        DatagramHead { number, ..self.head(now, DatagramKind::Data, ip) }
    }

    fn head(&mut self, now: Mono, kind: DatagramKind, ip: IpVersion) -> DatagramHead {
        let session = self.setting.session;
        if kind.is_set_up() {
            return DatagramHead::set_up(kind, ip, session);
        }
        let sent_at = self.clock(now);
        let sequence = self.path_mut(ip).number(now, kind == DatagramKind::Data) as u32;
        DatagramHead { kind, ip, sequence, session, sent_at, number: 0 }
    }

    /// What [`Self::send`] named first has not left this host and will be tried again. To be said
    /// before anything else is sent.
    pub fn withdraw(&mut self, ip: IpVersion) {
        self.number = self.number.saturating_sub(1);
        self.withdraw_copy(ip);
    }

    /// What it named second has not left.
    pub fn withdraw_copy(&mut self, ip: IpVersion) {
        self.path_mut(ip).take_back();
    }

    /// What [`Self::send`] named first could not leave this host over that version, for a reason
    /// that will not pass by itself. Whether there is another way now, over which it can be sent
    /// again.
    pub fn not_sent(&mut self, now: Mono, ip: IpVersion) -> bool {
        self.withdraw(ip);
        if self.path(ip).is_up() {
            self.fall_silent(now, ip);
        }
        self.current.is_some_and(|current| current != ip && self.path(current).is_up())
    }

    /// What is to be sent now; to be asked until there is nothing more.
    pub fn poll(&mut self, now: Mono) -> Option<Due> {
        self.tick(now);
        [IpVersion::V4, IpVersion::V6].into_iter().find_map(|ip| {
            let body = self.due(now, ip)?;
            let head = self.head(now, body.kind(), ip);
            let mut bytes = [0; PROBE_LEN];
            let length = body.emit(head, &mut bytes);
            Some(Due { ip, bytes, length })
        })
    }

    fn due(&mut self, now: Mono, ip: IpVersion) -> Option<DatagramBody> {
        if self.ended.is_some() {
            let byes = &mut self.byes[ip.index()];
            *byes = byes.checked_sub(1)?;
            return Some(DatagramBody::Bye);
        }
        if std::mem::take(&mut self.path_mut(ip).welcome_due) {
            return Some(DatagramBody::Welcome { version: DATAGRAM_VERSION });
        }
        if self.greets(ip) && self.path(ip).greet_at <= now {
            return Some(self.hello(now, ip));
        }
        if self.probe_due_at(ip).is_some_and(|at| at <= now) {
            return Some(DatagramBody::Probe(self.report(now, ip)));
        }
        None
    }

    fn report(&mut self, now: Mono, ip: IpVersion) -> Probe {
        let every = self.setting.every;
        let came = self.paths.each_ref().map(Path::came);
        let probe = self.path_mut(ip).report(now, every);
        if let Some(steer) = &mut self.steer {
            steer.probed(now, ip);
        }
        let wish = self.wish.as_mut().map(|wish| wish.repeated(now));
        Probe { came, wish, answer: self.answer, ..probe }
    }

    fn probe_due_at(&self, ip: IpVersion) -> Option<Mono> {
        let carries = self.carries(ip);
        let usual = self.path(ip).probe_due_at(self.setting.every, carries)?;
        if !self.path(ip).is_up() {
            return Some(usual);
        }
        let wish = self.wish.as_ref().map(|wish| wish.repeat_at(self.path(ip).probed_at()));
        let look = self.steer.as_ref().and_then(|steer| steer.probe_at(ip, self.current));
        Some([wish, look].into_iter().flatten().fold(usual, Mono::min))
    }

    fn carries(&self, ip: IpVersion) -> bool {
        self.current == Some(ip) || self.doubling.is_some()
    }

    /// Sees what time alone brings.
    fn tick(&mut self, now: Mono) {
        if self.ended.is_some() {
            return;
        }
        for ip in [IpVersion::V4, IpVersion::V6] {
            let silent_at = self.path(ip).silent_at(self.setting.every, self.carries(ip));
            if silent_at.is_some_and(|at| at <= now) {
                self.fall_silent(now, ip);
            }
        }
        self.end_doubling(now);
        self.give_up_wish(now);
        if self.silent_since.is_some_and(|since| now - since >= self.setting.patience) {
            self.end(End::Silent);
        }
        self.look(now);
    }

    /// When something is due though nothing happens.
    pub fn wake_at(&self) -> Option<Mono> {
        if self.ended.is_some() {
            return None;
        }
        let every = self.setting.every;
        let of_path = |ip: IpVersion| {
            let path = self.path(ip);
            let greet = Some(path.greet_at).filter(|_| self.greets(ip));
            [greet, self.probe_due_at(ip), path.silent_at(every, self.carries(ip))]
        };
        let [v4, v6] = [IpVersion::V4, IpVersion::V6].map(of_path);
        let patience = self.silent_since.map(|since| since + self.setting.patience);
        let wish = self.wish.as_ref().map(Wish::ends_at);
        let look = self.steer.as_ref().map(Steer::look_at);
        v4.into_iter().chain(v6).chain([patience, wish, look]).flatten().min()
    }

    fn come_up(&mut self, now: Mono, ip: IpVersion) {
        let path = self.path_mut(ip);
        if !path.is_up() {
            path.come_up(now);
            self.note(Event::Up(ip));
        }
        self.silent_since = None;
        self.greet_other(now, ip);
        match self.current {
            None => {
                self.current = Some(ip);
                // Both ends may have begun with another one.
                if self.setting.side == Side::Opener {
                    self.begin_wish(now, ip);
                }
            }
            Some(current) if !self.path(current).is_up() => self.turn(now, ip, Reason::Loss),
            Some(_) => {}
        }
    }

    fn fall_silent(&mut self, now: Mono, ip: IpVersion) {
        let every = self.setting.every;
        self.path_mut(ip).fall_silent(now, every);
        self.after_silence(now, ip);
    }

    fn after_silence(&mut self, now: Mono, ip: IpVersion) {
        self.note(Event::Silent(ip));
        let other = ip.other();
        if self.path(other).is_up() {
            if self.current == Some(ip) {
                self.turn(now, other, Reason::Loss);
            }
        } else {
            self.silent_since.get_or_insert(now);
        }
    }

    /// Ends the session; what [`Self::poll`] gives then tells the peer.
    pub fn close(&mut self) {
        self.end(End::Closed);
    }

    fn end(&mut self, why: End) {
        if self.ended.is_none() {
            self.ended = Some(why);
            if why == End::Closed {
                // Twice, since nobody says that it came; who misses both finds out by silence.
                self.byes = self.paths.each_ref().map(|path| if path.is_up() { 2 } else { 0 });
            }
            self.end_wish(Outcome::Over);
            self.note(Event::Ended(why));
        }
    }

    /// What has happened, oldest first; the oldest of very many are dropped.
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn note(&mut self, event: Event) {
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Why it has ended, if it has.
    pub fn ended(&self) -> Option<End> {
        self.ended
    }

    /// Where this direction goes.
    pub fn current(&self) -> Option<IpVersion> {
        self.current
    }

    /// How it stands.
    pub fn status(&self) -> SessionStatus {
        SessionStatus {
            ended: self.ended,
            current: self.current,
            v4: self.path(IpVersion::V4).status(),
            v6: self.path(IpVersion::V6).status(),
            sent: self.number,
            delivered: self.delivered,
            repeated: self.repeated,
            late: self.late,
        }
    }

    fn path(&self, ip: IpVersion) -> &Path {
        &self.paths[ip.index()]
    }

    fn path_mut(&mut self, ip: IpVersion) -> &mut Path {
        &mut self.paths[ip.index()]
    }

    /// This host's clock as the peer sees it.
    fn clock(&self, now: Mono) -> u32 {
        ((now.0 / 1000) as u32).wrapping_add(self.setting.clock_offset)
    }
}

const MOST_EVENTS: usize = 256;

#[cfg(test)]
mod tests;
