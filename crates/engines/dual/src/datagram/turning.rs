//! Going over to the other version: this end's wish, the peer's, and datagrams that go both ways
//! meanwhile.
//!
//! Nothing is waited for: who wishes goes over with its next datagram. The wish is for the peer's
//! direction. It is in every probe until it is answered, and the answer in every probe from then
//! on, so that neither can be lost for good.

use netaware_record::IpVersion;
use netaware_units::{Mono, Span};
use netaware_wire::dual::WishAnswer;

use super::Session;
use super::event::Event;
use super::path::REPORT_AFTER;
use crate::stream::{CannotSwitch, Outcome, Reason, Side};

/// A wish of this end that has not been answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    to: IpVersion,
    serial: u32,
    since: Mono,
}

impl Wish {
    pub(super) fn ends_at(&self) -> Mono {
        self.since + WISH_PATIENCE
    }

    /// When it goes over a version again that was last probed then.
    pub(super) fn repeat_at(&self, probed_at: Option<Mono>) -> Mono {
        probed_at.map_or(self.since, |at| self.since.max(at + REPORT_AFTER))
    }

    pub(super) fn repeated(&mut self, _now: Mono) -> (IpVersion, u32) {
        (self.to, self.serial)
    }
}

/// Datagrams go both ways.
#[derive(Debug, Clone, Copy)]
pub(super) struct Doubling {
    old: IpVersion,
    until: Mono,
    /// Over the new one, from which on it is known to work.
    sequence: u64,
}

impl Session {
    /// Goes over to this version with the next datagram, and asks the peer to do the same; the
    /// number by which [`Event::WishEnded`] names that.
    ///
    /// # Errors
    /// It cannot be had now.
    pub fn switch(&mut self, now: Mono, to: IpVersion) -> Result<u32, CannotSwitch> {
        if self.ended.is_some() {
            return Err(CannotSwitch::Over);
        }
        if self.holds {
            return Err(CannotSwitch::Held);
        }
        if !self.path(to).is_up() {
            return Err(CannotSwitch::Down);
        }
        if self.current != Some(to) {
            self.turn(now, to, Reason::OwnWish);
        }
        Ok(self.begin_wish(now, to))
    }

    pub(super) fn begin_wish(&mut self, now: Mono, to: IpVersion) -> u32 {
        self.end_wish(Outcome::Superseded);
        self.wishes += 1;
        self.wish = Some(Wish { to, serial: self.wishes, since: now });
        for path in &mut self.paths {
            path.hurry(now);
        }
        self.wishes
    }

    /// Refuses the peer's wishes and makes none of its own from now on, or no longer.
    pub fn hold(&mut self, holds: bool) {
        self.holds = holds;
    }

    pub(super) fn turn(&mut self, now: Mono, to: IpVersion, reason: Reason) {
        let Some(from) = self.current.replace(to).filter(|from| *from != to) else { return };
        self.note(Event::Turned { from, to, reason });
        if let Some(steer) = &mut self.steer {
            steer.turned(now);
        }
        let doubles = reason != Reason::Loss && self.path(from).is_up() && self.setting.overlap > Span::ZERO;
        self.doubling = doubles.then(|| Doubling {
            old: from,
            until: now + self.setting.overlap,
            sequence: self.path(to).sent() + 1,
        });
    }

    /// The version over which a datagram goes as well.
    pub(super) fn doubled(&self, now: Mono) -> Option<IpVersion> {
        self.doubling.filter(|it| now < it.until && self.path(it.old).is_up()).map(|it| it.old)
    }

    pub(super) fn end_doubling(&mut self, now: Mono) {
        let Some(doubling) = self.doubling else { return };
        let new = self.path(doubling.old.other());
        if new.confirmed_highest() >= doubling.sequence || now >= doubling.until {
            self.doubling = None;
        }
    }

    pub(super) fn is_turning(&self) -> bool {
        self.wish.is_some() || self.doubling.is_some()
    }

    pub(super) fn end_wish(&mut self, outcome: Outcome) {
        if let Some(wish) = self.wish.take() {
            self.note(Event::WishEnded { serial: wish.serial, outcome });
        }
    }

    pub(super) fn give_up_wish(&mut self, now: Mono) {
        if self.wish.is_some_and(|wish| now >= wish.ends_at()) {
            self.end_wish(Outcome::Down);
        }
    }

    pub(super) fn take_wish_answer(&mut self, serial: u32, answer: WishAnswer) {
        if self.wish.is_some_and(|wish| wish.serial == serial) {
            self.end_wish(match answer {
                WishAnswer::Granted => Outcome::Granted,
                WishAnswer::Crossed => Outcome::Crossed,
                WishAnswer::Held => Outcome::Held,
                WishAnswer::Down => Outcome::Down,
            });
        }
    }

    pub(super) fn take_wish(&mut self, now: Mono, to: IpVersion, serial: u32) {
        if serial <= self.peers_wish {
            return;
        }
        self.peers_wish = serial;
        let crosses = self.wish.is_some_and(|wish| wish.to != to);
        let answer = if self.holds {
            WishAnswer::Held
        } else if !self.path(to).is_up() {
            WishAnswer::Down
        } else if crosses && self.setting.side == Side::Opener {
            WishAnswer::Crossed
        } else {
            if crosses {
                self.end_wish(Outcome::Crossed);
            }
            self.turn(now, to, Reason::PeersWish);
            WishAnswer::Granted
        };
        self.answer = Some((serial, answer));
        for path in &mut self.paths {
            path.hurry(now);
        }
    }
}

/// A wish that nobody answers for so long has ended.
const WISH_PATIENCE: Span = Span::from_secs(5);
