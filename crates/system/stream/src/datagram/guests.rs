//! Who knocks: openers that have proven their address, and strangers.

use netaware_pool::{Rate, RateLimits};
use netaware_units::Mono;
use netaware_wire::dual::{DatagramBody, DatagramHead, DatagramKind, Join, PROBE_LEN, Refusal};

use super::state::{Place, State};

/// Whether an acceptor answers a stranger's datagram of that kind by *unknown*. Whatever itself is
/// an answer to a stranger draws none, or two acceptors, or one and an echo service, would go on
/// for ever.
pub(super) fn draws_unknown(kind: DatagramKind) -> bool {
    !kind.is_set_up() && kind != DatagramKind::Bye
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
        if self.answers.allow(now, place.to.ip()).is_err() {
            return;
        }
        let mut out = [0; PROBE_LEN];
        let length = body.emit(DatagramHead::set_up(body.kind(), head.ip, head.session), &mut out);
        let _ = self.transmit(place, &out[..length]);
    }
}

/// How many strangers are answered: not so many that they keep this host busy with it, and no host
/// so often that there is nothing left for the others.
pub(super) const ANSWERS: RateLimits = RateLimits {
    per_host: Rate { per_second: 500, burst: 500 },
    all: Rate { per_second: 2000, burst: 2000 },
    hosts: 1024,
};

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use netaware_dual::datagram::{Door, Knock};
    use netaware_pool::Rates;
    use netaware_wire::Token;

    use super::*;

    #[test]
    fn no_answer_to_a_stranger_draws_another_one() {
        let door = Door::new([5; 32]);
        let knock = |speaks| door.knock(Mono(0), "192.0.2.1:5".parse().unwrap(), 7, speaks, Token::default());
        let Knock::Answer(cookie) = knock((1, 1)) else { panic!("let in") };
        let Knock::Answer(refused) = knock((2, 3)) else { panic!("let in") };
        let others = [
            DatagramBody::Refused(Refusal::Busy),
            DatagramBody::Unknown,
            DatagramBody::Welcome { version: 1 },
        ];
        for answer in [cookie, refused].into_iter().chain(others) {
            let kind = answer.kind();
            assert!(kind != DatagramKind::Hello && !draws_unknown(kind), "{kind:?}");
        }
        assert!(draws_unknown(DatagramKind::Data) && draws_unknown(DatagramKind::Probe));
        assert!(!draws_unknown(DatagramKind::Bye));
    }

    #[test]
    fn a_host_that_greets_without_end_leaves_answers_for_the_others() {
        let mut answers = Rates::new(ANSWERS);
        let [greedy, other] = [1, 2].map(|n| IpAddr::from([192, 0, 2, n]));
        let answered = (0..10_000).filter(|_| answers.allow(Mono(0), greedy).is_ok()).count();
        assert_eq!((answered, answers.allow(Mono(0), other)), (500, Ok(())));
    }
}
