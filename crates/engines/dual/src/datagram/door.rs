//! Who may have a session: whoever receives at the address that it claims.
//!
//! Until an address has repeated a cookie, nothing is kept of it and it is sent nothing longer than
//! it sent, so that hellos with forged addresses cost no memory here and bring nobody more than
//! they cost.

use std::net::SocketAddr;

use netaware_units::{Mono, Span};
use netaware_wire::Token;
use netaware_wire::dual::{DatagramBody, Refusal};
use netaware_wire::proof;

/// Judges hellos.
#[derive(Debug, Clone)]
pub struct Door {
    secret: [u8; 32],
}

/// What becomes of a hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Knock {
    /// It comes from where it says: let it in.
    Enter,
    /// To be answered by this.
    Answer(DatagramBody),
}

impl Door {
    /// With 32 random bytes.
    pub fn new(secret: [u8; 32]) -> Self {
        Self { secret }
    }

    /// What becomes of a hello from there.
    pub fn knock(&self, now: Mono, from: SocketAddr, session: u64, speaks: (u8, u8), cookie: Token) -> Knock {
        if DatagramBody::agreed(speaks).is_none() {
            return Knock::Answer(DatagramBody::Refused(Refusal::Version));
        }
        let period = (now.0 / PERIOD.nanos() as u64) as u32;
        let of = |period: u32| {
            let mut name = [0; 16];
            name[..8].copy_from_slice(&session.to_be_bytes());
            proof::cookie(&self.secret, from, Token(name), period)
        };
        // One of the period before is still good, so that none runs out on its way.
        if [period, period.wrapping_sub(1)].into_iter().any(|period| of(period) == cookie) {
            Knock::Enter
        } else {
            Knock::Answer(DatagramBody::Cookie(of(period)))
        }
    }
}

/// How long a cookie is good for, at least.
const PERIOD: Span = Span::from_secs(32);

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Mono = Mono(1_000_000_000_000);

    fn cookie_for(door: &Door, now: Mono, from: SocketAddr) -> Token {
        match door.knock(now, from, 7, (1, 1), Token::default()) {
            Knock::Answer(DatagramBody::Cookie(cookie)) => cookie,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_cookie_lets_in_its_address_and_session_alone_and_not_for_ever() {
        let door = Door::new([5; 32]);
        let here: SocketAddr = "192.0.2.1:5".parse().unwrap();
        let there: SocketAddr = "[2001:db8::1]:5".parse().unwrap();
        let cookie = cookie_for(&door, NOW, here);
        let knock = |after: i64, from, session| {
            door.knock(NOW + Span::from_secs(after), from, session, (1, 3), cookie) == Knock::Enter
        };
        assert!(knock(0, here, 7) && knock(30, here, 7));
        assert!(!knock(0, there, 7) && !knock(0, here, 8) && !knock(90, here, 7));
    }

    #[test]
    fn another_version_of_the_framing_is_refused() {
        let door = Door::new([5; 32]);
        let here = "192.0.2.1:5".parse().unwrap();
        let refused = Knock::Answer(DatagramBody::Refused(Refusal::Version));
        assert_eq!(door.knock(NOW, here, 7, (2, 3), Token::default()), refused);
    }
}
