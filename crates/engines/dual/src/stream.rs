//! One end of a stream.
//!
//! The driver keeps these promises:
//!
//! 1. what [`Stream::poll`] gives for a connection is written to it, whole and in that order, or
//!    the connection is reported lost;
//! 2. it keeps the bytes from [`Stream::acked`] on, and writes them when asked to, as often as
//!    asked to;
//! 3. every record read is given to [`Stream::take`]; of a data record, the bytes read so far to
//!    [`Stream::arrived`];
//! 4. `now` never runs backwards.
//!
//! What follows holds for both ends whatever the network does, and
//! `tests/integration/interleavings` walks through the orders in which it can do it: no byte is
//! lost or comes twice, every wish ends, and as long as some connection comes up, the stream ends.

mod event;
mod incoming;
mod link;
mod outgoing;
mod switching;

use std::collections::VecDeque;

use netaware_record::IpVersion;
use netaware_units::{Mono, Span};
use netaware_wire::dual::{Farewell, MAX_DATA, Record};

pub use event::{CannotSwitch, Event, Loss, Outcome, Reason, Violation};
use incoming::Incoming;
use link::Link;
use outgoing::Outgoing;
use switching::{Turn, Wish};

/// Which end this is. It matters where the wishes of both cross: the opener's is fulfilled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// It connected.
    Opener,
    /// It was connected to.
    Acceptor,
}

/// What a stream is begun with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Setting {
    /// Which end.
    pub side: Side,
    /// Bytes that can be kept beyond those that the application has read.
    pub room: u32,
    /// The longest data record to send, bytes.
    pub longest: u32,
    /// How long bytes that came may stay without acknowledgement.
    pub ack_delay: Span,
}

/// What the peer says of itself when a connection is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Bytes that it can take beyond `received`.
    pub room: u32,
    /// Bytes that it has without a gap.
    pub received: u64,
}

/// What is to be written to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Due {
    /// A record without bytes, or padding, which is followed by as many bytes of any kind.
    Record(Record),
    /// A data record with the stream's bytes from there on.
    Data {
        /// Of the first byte.
        offset: u64,
        /// How many.
        length: u32,
    },
}

/// What became of a record that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reception {
    /// It was taken in; bytes that follow it have [`Stream::arrived`].
    Heeded,
    /// The stream is broken, or that connection is none of its own any more: nothing was looked at,
    /// and bytes that follow are to be thrown away.
    Ignored,
}

/// How a stream stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Bytes can travel, or will when a connection comes up.
    Open,
    /// Both directions have ended and all was acknowledged.
    Finished,
    /// Given up by one of the ends.
    Broken(Farewell),
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stream {
    setting: Setting,
    links: [Link; 2],
    /// Where data and acknowledgements go; down only where both are.
    current: Option<IpVersion>,
    out: Outgoing,
    come: Incoming,
    /// The change of connections under way in this direction.
    turn: Option<Turn>,
    /// What this end wants and the peer has not answered.
    wish: Option<Wish>,
    /// What this end wants after that.
    next_wish: Option<Wish>,
    /// Where to turn after the turn under way.
    follow: Option<(IpVersion, Reason)>,
    /// How many want it to stay where it is.
    holds: u32,
    /// Made so far by the application.
    wishes: u32,
    /// The opener's last one that is known here.
    decision: u32,
    switches: u32,
    broken: Option<Farewell>,
    events: VecDeque<Event>,
}

impl Stream {
    /// A stream without a connection.
    pub fn new(setting: Setting) -> Self {
        Self {
            setting,
            links: [Link::default(), Link::default()],
            current: None,
            out: Outgoing::default(),
            come: Incoming::new(setting.room),
            turn: None,
            wish: None,
            next_wish: None,
            follow: None,
            holds: 0,
            wishes: 0,
            decision: 0,
            switches: 0,
            broken: None,
            events: VecDeque::new(),
        }
    }

    /// How it stands.
    pub fn standing(&self) -> Standing {
        match self.broken {
            Some(why) => Standing::Broken(why),
            None if self.out.is_over() && self.come.is_over() => Standing::Finished,
            None => Standing::Open,
        }
    }

    /// Where data go now.
    pub fn current(&self) -> Option<IpVersion> {
        self.current
    }

    /// Whether there is a connection of this IP version.
    pub fn is_up(&self, ip: IpVersion) -> bool {
        self.link(ip).up
    }

    /// Which connection of this IP version is or was the last one; 0 before the first.
    pub fn generation(&self, ip: IpVersion) -> u32 {
        self.link(ip).generation
    }

    /// What to say of oneself in the opening of another connection.
    pub fn own(&self) -> Peer {
        Peer { room: self.come.room_left(), received: self.come.received() }
    }

    /// The next thing that happened; to be asked until there is none.
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// A connection is there, and both openings have been read.
    ///
    /// # Errors
    /// The peer claims to have what was never sent.
    pub fn connected(
        &mut self,
        now: Mono,
        ip: IpVersion,
        generation: u32,
        peer: Peer,
    ) -> Result<(), Violation> {
        if self.link(ip).up {
            self.lost(now, ip, self.link(ip).generation, Loss::Replaced);
        }
        self.out.acknowledge(peer.received, peer.room, false)?;
        *self.link_mut(ip) = Link::up(generation);
        self.events.push_back(Event::Up { ip, generation });
        if self.current.is_none() {
            self.current = Some(ip);
            self.out.rewind();
            self.agree_on(ip);
        }
        self.come.acknowledge_now();
        self.settle(now);
        Ok(())
    }

    /// A connection is no more. That of another generation is none of this stream's any more.
    pub fn lost(&mut self, now: Mono, ip: IpVersion, generation: u32, why: Loss) {
        let other = ip.other();
        if !self.link(ip).up || self.link(ip).generation != generation {
            return;
        }
        *self.link_mut(ip) = Link::down(generation);
        self.events.push_back(Event::Down { ip, generation, why });
        if self.link(other).up && why != Loss::PeerSaid {
            self.link_mut(other).said.push_back(Record::Gone { ip, generation });
        }
        self.leave(now, ip);
    }

    /// What to write to a connection next; `None` for nothing now. A long stream is told in many
    /// records.
    pub fn poll(&mut self, now: Mono, ip: IpVersion) -> Option<Due> {
        if !self.link(ip).up {
            return None;
        }
        if let Some(record) = self.link_mut(ip).said.pop_front() {
            return Some(Due::Record(record));
        }
        if self.current != Some(ip) || self.broken.is_some() {
            return None;
        }
        if let Some(ack) = self.come.ack(now) {
            return Some(Due::Record(ack));
        }
        self.out.next(self.setting.longest)
    }

    /// When to poll again though nothing happened; `None` for never.
    pub fn wake_at(&self) -> Option<Mono> {
        self.current.and(self.come.ack_at())
    }

    /// Takes in a record.
    ///
    /// # Errors
    /// The peer broke the rules; the stream is broken, and says so to the peer.
    pub fn take(&mut self, now: Mono, ip: IpVersion, record: Record) -> Result<Reception, Violation> {
        if self.broken.is_some() || !self.link(ip).up {
            return Ok(Reception::Ignored);
        }
        let taken = self.take_sound(now, ip, record);
        if taken.is_err() {
            self.break_off(Farewell::Violation);
        }
        self.end_wishes_of_ended();
        taken.map(|()| Reception::Heeded)
    }

    fn take_sound(&mut self, now: Mono, ip: IpVersion, record: Record) -> Result<(), Violation> {
        match record {
            Record::Data { offset, length } => self.come.expect(offset, length)?,
            Record::Ack { received, room, all } => {
                self.out.acknowledge(received, room, all)?;
                self.settle(now);
            }
            Record::Marker { offset, .. } => self.come.take_marker(offset)?,
            Record::Fin { offset } => self.come.take_fin(offset)?,
            Record::Wish { to, serial } => self.take_wish(now, ip, to, serial)?,
            Record::Answer { serial, outcome, decision } => self.take_answer(now, serial, outcome, decision),
            Record::Gone { ip: gone, generation } => self.lost(now, gone, generation, Loss::PeerSaid),
            Record::Ping { nonce } => {
                self.link(ip).hears()?;
                self.link_mut(ip).said.push_back(Record::Pong { nonce });
            }
            Record::Pong { nonce } => self.events.push_back(Event::Pong { ip, nonce }),
            Record::Pad { .. } | Record::Bye { reason: Farewell::Finished } => {}
            Record::Bye { reason } => self.broken = Some(reason),
        }
        Ok(())
    }

    /// So many bytes of a data record have come, from `offset` on. Those before [`Self::received`]
    /// came before.
    ///
    /// # Errors
    /// More pieces than a sender can make.
    pub fn arrived(&mut self, now: Mono, offset: u64, bytes: u32) -> Result<(), Violation> {
        let due = now + self.setting.ack_delay;
        let arrived = self.come.arrived(offset, bytes, due);
        if arrived.is_err() {
            self.break_off(Farewell::Violation);
        }
        self.end_wishes_of_ended();
        arrived
    }

    /// Bytes of the other direction that are here without a gap.
    pub fn received(&self) -> u64 {
        self.come.received()
    }

    /// Whether the application can be told the end once it has read [`Self::received`] bytes.
    pub fn has_all(&self) -> bool {
        self.come.is_over()
    }

    /// Bytes that are here without a gap and not read.
    pub fn unread(&self) -> u64 {
        self.come.unread()
    }

    /// The application has read so many more bytes.
    pub fn consumed(&mut self, now: Mono, bytes: u64) {
        let due = now + self.setting.ack_delay;
        self.come.consumed(bytes, due);
    }

    /// The application has so many more bytes to send, which the driver keeps.
    pub fn queued(&mut self, bytes: u64) {
        self.out.queued(bytes);
    }

    /// The application sends no more.
    pub fn finish(&mut self) {
        self.out.finish();
    }

    /// Whether the application has said that it sends no more.
    pub fn is_finishing(&self) -> bool {
        self.out.is_finishing()
    }

    /// Whether the peer has everything, the end included.
    pub fn is_delivered(&self) -> bool {
        self.out.is_over()
    }

    /// The application gives the stream up.
    pub fn abandon(&mut self) {
        self.break_off(Farewell::Abandoned);
    }

    /// Bytes that the peer has for certain; the driver keeps all from here on.
    pub fn acked(&self) -> u64 {
        self.out.acked()
    }

    /// Asks for a sign of life on a connection, which is [`Event::Pong`].
    pub fn ping(&mut self, ip: IpVersion, nonce: u64) {
        if self.link(ip).up {
            self.link_mut(ip).said.push_back(Record::Ping { nonce });
        }
    }

    /// Has bytes without a meaning written to a connection that carries nothing else, at most
    /// [`MAX_DATA`] at a time; whether it does.
    pub fn pad(&mut self, ip: IpVersion, length: u32) -> bool {
        let carries_nothing = self.link(ip).up && self.current != Some(ip) && self.broken.is_none();
        if carries_nothing {
            self.link_mut(ip).said.push_back(Record::Pad { length: length.clamp(1, MAX_DATA) });
        }
        carries_nothing
    }

    /// How long a connection takes there and back, its queues included. A turn away from a slow one
    /// sends again over the new one what is still on its way, instead of waiting for it.
    pub fn takes(&mut self, ip: IpVersion, round_trip: Span) {
        self.link_mut(ip).round_trip = Some(round_trip);
    }

    fn break_off(&mut self, reason: Farewell) {
        if self.broken.is_none() {
            self.broken = Some(reason);
            for link in self.links.iter_mut().filter(|link| link.up) {
                link.said.push_back(Record::Bye { reason });
            }
            self.end_wishes_of_ended();
        }
    }

    fn link(&self, ip: IpVersion) -> &Link {
        &self.links[ip.index()]
    }

    fn link_mut(&mut self, ip: IpVersion) -> &mut Link {
        &mut self.links[ip.index()]
    }
}

#[cfg(test)]
mod tests;
