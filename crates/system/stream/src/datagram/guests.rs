//! Who knocks: openers that have proven their address, and strangers.

use netaware_units::Mono;
use netaware_wire::dual::{DatagramBody, DatagramHead, Join, PROBE_LEN, Refusal};

use super::state::{Place, State};

/// How many strangers are answered, so that they cannot keep this host busy with it.
#[derive(Debug)]
pub(super) struct Answers {
    left: f64,
    at: Mono,
}

impl Answers {
    pub(super) fn new(now: Mono) -> Self {
        Self { left: ANSWERS_EACH_SECOND, at: now }
    }

    fn allow(&mut self, now: Mono) -> bool {
        self.left = (self.left + (now - self.at).secs_f64() * ANSWERS_EACH_SECOND).min(ANSWERS_EACH_SECOND);
        self.at = now;
        let allowed = self.left >= 1.0;
        self.left -= if allowed { 1.0 } else { 0.0 };
        allowed
    }
}

impl State {
    /// An opener that is where it says.
    pub(super) fn enter(&mut self, now: Mono, place: Place, head: &DatagramHead, join: Join) {
        let id = match (self.names.get(&head.session).copied(), join) {
            (Some(id), _) => id,
            (None, Join::Existing) => {
                return self.answer(now, place, head, &DatagramBody::Refused(Refusal::Stream));
            }
            (None, Join::New) if self.peers.len() >= self.options.sessions || self.released => {
                return self.answer(now, place, head, &DatagramBody::Refused(Refusal::Busy));
            }
            (None, Join::New) => match self.admit(now, head.session) {
                Ok(id) => id,
                Err(_) => return,
            },
        };
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.places[head.ip.index()] = Some(place);
            peer.session.joined(now, head.ip);
        }
        self.settle(now, id);
    }

    /// To somebody who is not known, and never longer than what came.
    pub(super) fn answer(&mut self, now: Mono, place: Place, head: &DatagramHead, body: &DatagramBody) {
        if !self.answers.allow(now) {
            return;
        }
        let mut out = [0; PROBE_LEN];
        let length = body.emit(DatagramHead::set_up(body.kind(), head.ip, head.session), &mut out);
        let _ = self.transmit(place, &out[..length]);
    }
}

const ANSWERS_EACH_SECOND: f64 = 2000.0;
