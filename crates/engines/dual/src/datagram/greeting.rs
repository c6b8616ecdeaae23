//! How a session begins over each version: hello, cookie, hello, welcome; and how it goes on from
//! another address.

use netaware_record::IpVersion;
use netaware_units::{Mono, Span};
use netaware_wire::Token;
use netaware_wire::dual::{DATAGRAM_VERSION, DatagramBody, Join, Refusal};

use super::Session;
use super::event::{End, Standing};
use crate::connect::Wanted;
use crate::stream::Side;

impl Session {
    /// The opener has an address of this version, or another one than before. The version that is
    /// not preferred follows a little later (RFC 8305 §5), unless the other one cannot be reached.
    pub fn reach(&mut self, now: Mono, ip: IpVersion) {
        let other_is_tried = self.path(ip.other()).standing != Standing::Unused;
        let wait = ip != self.setting.preferred && other_is_tried && !self.path(ip.other()).is_up();
        let path = self.path_mut(ip);
        path.standing = Standing::Greeting;
        path.reached = true;
        path.cookie = Token::default();
        path.greetings = 0;
        path.greet_at = if wait { now + STAGGER } else { now };
    }

    /// There is no address of this version, or nobody there. It is tried again only as long as the
    /// other one works.
    pub fn unreachable(&mut self, now: Mono, ip: IpVersion) {
        match self.path(ip).standing {
            Standing::Unused | Standing::Silent => {}
            Standing::Greeting if self.known => self.path_mut(ip).greet_at = now + GREET_LONGEST,
            Standing::Greeting => {
                self.path_mut(ip).standing = Standing::Unused;
                let other = self.path_mut(ip.other());
                other.greet_at = other.greet_at.min(now);
            }
            Standing::Up => self.fall_silent(now, ip),
        }
    }

    /// How often this version has been greeted in vain.
    pub fn greetings(&self, ip: IpVersion) -> u32 {
        self.path(ip).greetings
    }

    /// The acceptor's [`Door`] has let the opener in over this version.
    pub fn joined(&mut self, now: Mono, ip: IpVersion) {
        if self.ended.is_none() {
            self.path_mut(ip).welcome_due = true;
            self.come_up(now, ip);
        }
    }

    /// One version works: the other one, given up before, is worth a try now and then.
    pub(super) fn greet_other(&mut self, now: Mono, ip: IpVersion) {
        let other = self.path_mut(ip.other());
        if other.reached && other.standing == Standing::Unused {
            other.standing = Standing::Greeting;
            other.greet_at = now + GREET_LONGEST;
        }
    }

    /// What an acceptor says to a hello, or of a session that it does not know.
    pub(super) fn take_answer(&mut self, now: Mono, ip: IpVersion, body: &DatagramBody) {
        let greeting = matches!(self.path(ip).standing, Standing::Greeting | Standing::Silent);
        match body {
            DatagramBody::Cookie(cookie) if greeting => {
                let path = self.path_mut(ip);
                path.cookie = *cookie;
                path.greet_at = now;
            }
            DatagramBody::Welcome { version: DATAGRAM_VERSION } if greeting => {
                self.known = true;
                self.come_up(now, ip);
            }
            DatagramBody::Refused(why) if greeting => match why {
                // What one version's acceptor says holds for the other: it is the same one.
                Refusal::Stream | Refusal::Version => self.end(End::Refused(*why)),
                Refusal::Busy | Refusal::Generation => {
                    if self.known {
                        return;
                    }
                    self.end(End::Refused(*why));
                }
            },
            // It does not know this address: greet it again, from which it learns it.
            DatagramBody::Unknown if self.path(ip).is_up() => {
                let every = self.setting.every;
                let path = self.path_mut(ip);
                path.fall_silent(now, every);
                path.cookie = Token::default();
                self.after_silence(now, ip);
            }
            _ => {}
        }
    }

    /// Whether the opener tries to bring this version up.
    pub(super) fn greets(&self, ip: IpVersion) -> bool {
        let tried = matches!(self.path(ip).standing, Standing::Greeting | Standing::Silent);
        let wanted = match self.setting.wanted {
            Wanted::Each => true,
            Wanted::Only(only) => only == ip,
            Wanted::First => !self.path(ip.other()).is_up(),
        };
        self.setting.side == Side::Opener && tried && wanted
    }

    pub(super) fn hello(&mut self, now: Mono, ip: IpVersion) -> DatagramBody {
        let join = if self.known { Join::Existing } else { Join::New };
        let path = self.path_mut(ip);
        // Doubled, as RFC 8085 §3.1.1 has it for what is not told to have come.
        path.greet_at = now + (GREET_EVERY * (1_i64 << path.greetings.min(5))).min(GREET_LONGEST);
        path.greetings = path.greetings.saturating_add(1);
        // Once: it is that of the address from which it was asked for, and the next hello may leave
        // from another one.
        let cookie = std::mem::take(&mut path.cookie);
        DatagramBody::Hello { speaks: (DATAGRAM_VERSION, DATAGRAM_VERSION), join, cookie }
    }
}

/// The preferred version's advance: the Connection Attempt Delay of RFC 8305 §5.
const STAGGER: Span = Span::from_millis(250);
const GREET_EVERY: Span = Span::from_millis(250);
const GREET_LONGEST: Span = Span::from_secs(5);
