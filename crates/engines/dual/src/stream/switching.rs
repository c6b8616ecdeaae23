//! Wishes, and the turns they lead to.
//!
//! A wish travels on the connection that it wants, so it ends with it: granted, refused, or down;
//! or the stream ends first. Who grants it turns its own direction, who wished turns when it hears
//! so. The opener decides: its wishes and grants are numbered in one row, it has one wish at a time
//! under way and refuses one of the acceptor that crosses it, and the acceptor goes by the latest
//! number that it has heard of. A direction makes one turn at a time: what is decided meanwhile
//! follows when the peer has every byte that went the old way before, and that comes or that way is
//! lost, so every wish ends.
//!
//! An end that is held turns for no wish. It refuses those of the peer, and has none of its own:
//! one that waits goes on waiting, and what was granted by either end before follows when it is let
//! go. A turn that has begun ends, and a connection that is lost is left all the same.

use netaware_record::IpVersion;
use netaware_units::Mono;
use netaware_wire::dual::{Answer, Record};

use super::{CannotSwitch, Event, Link, Outcome, Reason, Side, Standing, Stream, Violation};

/// What one end wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Wish {
    to: IpVersion,
    /// What the application knows it by; 0 where it is not the application's.
    name: u32,
    /// What the peer knows it by.
    serial: u32,
}

/// A change of connections that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Turn {
    from: IpVersion,
    to: IpVersion,
    /// Bytes before this one went the old way first.
    offset: u64,
    began_at: Mono,
}

impl Stream {
    /// Asks for both directions to go over this IP version; the number by which
    /// [`Event::WishEnded`] will name the wish. While an earlier one has no answer the latest waits
    /// for its turn, and a third takes the place of that.
    ///
    /// # Errors
    /// It cannot be had now.
    pub fn switch(&mut self, now: Mono, to: IpVersion) -> Result<u32, CannotSwitch> {
        if self.standing() != Standing::Open {
            return Err(CannotSwitch::Over);
        }
        if self.is_held() {
            return Err(CannotSwitch::Held);
        }
        if !self.link(to).up {
            return Err(CannotSwitch::Down);
        }
        if let Some(last) = self.next_wish.or(self.wish).filter(|wish| wish.to == to && wish.name > 0) {
            return Ok(last.name);
        }
        self.wishes += 1;
        let wish = Wish { to, name: self.wishes, serial: 0 };
        if let Some(waiting) = self.next_wish.replace(wish) {
            self.end_wish(waiting, Outcome::Superseded);
        }
        self.settle(now);
        Ok(wish.name)
    }

    /// Both ends take the connection that comes up first, which need not be the same one: the
    /// opener wishes for its.
    pub(super) fn agree_on(&mut self, to: IpVersion) {
        if self.setting.side == Side::Opener && self.wish.is_none() && self.next_wish.is_none() {
            self.next_wish = Some(Wish { to, name: 0, serial: 0 });
        }
    }

    /// One more wants this end to stay where it is: until as many [`Self::release`] no wish turns
    /// it. Those of the peer are refused, and this end makes none; what either wished for before
    /// waits.
    pub fn hold(&mut self) {
        self.holds = self.holds.saturating_add(1);
    }

    /// One who held it lets go; whether anybody had.
    pub fn release(&mut self, now: Mono) -> bool {
        let was_held = self.is_held();
        self.holds = self.holds.saturating_sub(1);
        if was_held && !self.is_held() {
            self.settle(now);
        }
        was_held
    }

    /// Whether somebody holds it.
    pub fn is_held(&self) -> bool {
        self.holds > 0
    }

    /// How many hold it.
    pub fn holds(&self) -> u32 {
        self.holds
    }

    /// Whether nothing is wished for or turning.
    pub fn is_settled(&self) -> bool {
        self.turn.is_none() && self.wish.is_none() && self.next_wish.is_none() && self.follow.is_none()
    }

    pub(super) fn take_wish(
        &mut self,
        now: Mono,
        ip: IpVersion,
        to: IpVersion,
        serial: u32,
    ) -> Result<(), Violation> {
        if ip != to {
            return Err(Violation::WishElsewhere);
        }
        self.links.iter().try_for_each(Link::hears)?;
        let crosses = self.wish.is_some_and(|own| own.to != to);
        let (outcome, decision) = match self.setting.side {
            _ if self.is_held() => (Answer::Held, 0),
            Side::Opener if crosses => (Answer::Crossed, 0),
            Side::Opener => {
                self.decision = self.decision.wrapping_add(1);
                (Answer::Granted, self.decision)
            }
            Side::Acceptor => {
                self.decision = self.decision.max(serial);
                (Answer::Granted, 0)
            }
        };
        self.link_mut(to).said.push_back(Record::Answer { serial, outcome, decision });
        if outcome == Answer::Granted {
            self.follow = Some((to, Reason::PeersWish));
            self.settle(now);
        }
        Ok(())
    }

    pub(super) fn take_answer(&mut self, now: Mono, serial: u32, answer: Answer, decision: u32) {
        let Some(wish) = self.wish.take_if(|wish| wish.serial == serial) else { return };
        let overtaken = self.setting.side == Side::Acceptor && decision <= self.decision;
        let outcome = match answer {
            Answer::Granted if overtaken => Outcome::Crossed,
            Answer::Granted => {
                self.decision = self.decision.max(decision);
                self.follow = Some((wish.to, Reason::OwnWish));
                Outcome::Granted
            }
            Answer::Crossed => Outcome::Crossed,
            Answer::Held => Outcome::Held,
        };
        self.end_wish(wish, outcome);
        self.settle(now);
    }

    /// Goes on with whatever waited for what just happened.
    pub(super) fn settle(&mut self, now: Mono) {
        if let Some(turn) = self.turn.take_if(|turn| self.out.acked() >= turn.offset) {
            self.events.push_back(Event::Turned { to: turn.to, took: now - turn.began_at });
        }
        if self.is_held() {
            return;
        }
        let free = |to: IpVersion| self.turn.is_none_or(|turn| turn.to == to);
        if let Some((to, reason)) = self.follow.take_if(|(to, _)| free(*to)) {
            self.turn(now, to, reason);
        }
        if self.wish.is_none() && self.turn.is_none() && self.follow.is_none() {
            self.make_next_wish();
        }
    }

    fn make_next_wish(&mut self) {
        let Some(mut wish) = self.next_wish.take() else { return };
        if !self.link(wish.to).up {
            self.end_wish(wish, Outcome::Down);
            return;
        }
        wish.serial = match self.setting.side {
            Side::Opener => {
                self.decision = self.decision.wrapping_add(1);
                self.decision
            }
            Side::Acceptor => wish.name,
        };
        self.wish = Some(wish);
        let record = Record::Wish { to: wish.to, serial: wish.serial };
        self.link_mut(wish.to).said.push_back(record);
    }

    /// Tells the application that its wishes end with the stream. One that the peer has heard of
    /// goes on without a name, so that both directions go the same way once its answer comes.
    pub(super) fn end_wishes_of_ended(&mut self) {
        if self.standing() == Standing::Open {
            return;
        }
        if let Some(wish) = self.wish {
            self.end_wish(wish, Outcome::Over);
            self.wish = Some(Wish { name: 0, ..wish });
        }
        if let Some(wish) = self.next_wish.take() {
            self.end_wish(wish, Outcome::Over);
        }
    }

    fn end_wish(&mut self, wish: Wish, outcome: Outcome) {
        if wish.name > 0 {
            self.events.push_back(Event::WishEnded { serial: wish.name, outcome });
        }
    }

    /// Sends this direction another way. No turn is under way.
    fn turn(&mut self, now: Mono, to: IpVersion, reason: Reason) {
        let Some(from) = self.current.filter(|from| *from != to && self.link(to).up) else { return };
        self.switches = self.switches.wrapping_add(1);
        let offset = self.out.sent();
        let marker = Record::Marker { offset, switches: self.switches };
        self.link_mut(from).said.push_back(marker);
        self.current = Some(to);
        self.out.tell_end_again();
        let again = if self.is_slower(from, to) { self.out.repeat(offset) } else { 0 };
        self.come.acknowledge_now();
        self.events.push_back(Event::Turning { from, to, reason, offset, again });
        self.turn = Some(Turn { from, to, offset, began_at: now });
        self.settle(now);
    }

    /// Whether what is still on the way would hold the reader up for more than the new way takes.
    fn is_slower(&self, from: IpVersion, to: IpVersion) -> bool {
        match (self.link(from).round_trip, self.link(to).round_trip) {
            (Some(old), Some(new)) => old.nanos() > new.nanos().saturating_mul(3) / 2,
            _ => false,
        }
    }

    /// What a connection that is no more leaves behind.
    pub(super) fn leave(&mut self, now: Mono, ip: IpVersion) {
        if let Some(wish) = self.wish.take_if(|wish| wish.to == ip) {
            self.end_wish(wish, Outcome::Down);
        }
        self.follow.take_if(|(to, _)| *to == ip);
        if self.current == Some(ip) {
            self.fall_back(now, ip);
        } else if let Some(turn) = self.turn.filter(|turn| turn.from == ip) {
            self.out.repeat(turn.offset);
        }
        self.come.acknowledge_now();
        self.settle(now);
    }

    fn fall_back(&mut self, now: Mono, from: IpVersion) {
        let before = self.out.sent();
        self.turn = None;
        self.out.rewind();
        self.current = Some(from.other()).filter(|to| self.link(*to).up);
        let Some(to) = self.current else { return };
        let (offset, again) = (before, before - self.out.acked());
        self.events.push_back(Event::Turning { from, to, reason: Reason::Loss, offset, again });
        self.turn = Some(Turn { from, to, offset, began_at: now });
    }
}
