//! What leaves: the application's datagrams, and what sessions want sent.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use netaware_dual::Side;
use netaware_dual::datagram::{Due, Standing};
use netaware_units::Mono;
use netaware_wire::Token;
use netaware_wire::dual::{DatagramBody, DatagramHead};

use super::state::{Place, State};
use super::{PeerId, sockets};

impl State {
    pub(super) fn transmit(&self, place: Place, bytes: &[u8]) -> io::Result<()> {
        let Some(socket) = &self.sockets[place.socket] else {
            return Err(ErrorKind::NetworkUnreachable.into());
        };
        match self.side {
            Side::Opener => match socket.send(bytes) {
                // The answer to an earlier one; this one has not left.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => socket.send(bytes),
                sent => sent,
            },
            Side::Acceptor => socket.send_to(bytes, place.to, place.from),
        }
    }

    pub(super) fn transmit_due(&mut self, now: Mono, id: PeerId, due: &Due) {
        let at = due.ip.index();
        let Some(peer) = self.peers.get(&id) else { return };
        let Some(place) = peer.places[at] else { return };
        let hello = match DatagramHead::parse(due.bytes()) {
            Ok((_, DatagramBody::Hello { cookie, .. })) => Some(cookie),
            _ => None,
        };
        // One that repeats a cookie has to leave from where that was asked for.
        if hello == Some(Token::default()) {
            let status = peer.session.status();
            let (greetings, standing) = (peer.session.greetings(due.ip), status.of(due.ip).standing);
            if standing == Standing::Silent {
                // This host may have another address by now: a new socket finds out.
                if let Ok(socket) = sockets::connected(place.to) {
                    self.sockets[at] = Some(Arc::new(socket));
                }
            } else if greetings > GREETED && !peer.untried[at].is_empty() {
                self.failed = Some((place.to, ErrorKind::TimedOut.into()));
                return self.try_next(now, id, due.ip);
            }
        }
        let Err(error) = self.transmit(place, due.bytes()) else { return };
        if hello.is_some() {
            self.refused(now, at, &error);
        }
    }

    /// Sends one. `WouldBlock`, with the version whose socket is full, where it has to wait.
    pub(super) fn send(&mut self, now: Mono, id: PeerId, bytes: &[u8]) -> Result<(), (io::Error, usize)> {
        // At most once over each version.
        for _ in 0..2 {
            let peer = self.peers.get_mut(&id).ok_or((ErrorKind::NotConnected.into(), 0))?;
            let [first, second] = peer
                .session
                .send(now, bytes.len())
                .map_err(|why| (io::Error::new(ErrorKind::NotConnected, why.to_string()), 0))?;
            let Some(first) = first else { break };
            let places = peer.places;
            let sent = self.send_one(&places, &first, bytes);
            if let Some(second) = second
                && (sent.is_err() || self.send_one(&places, &second, bytes).is_err())
                && let Some(peer) = self.peers.get_mut(&id)
            {
                peer.session.withdraw_copy(second.ip);
            }
            let Err(error) = sent else {
                self.after_send(now, id);
                return Ok(());
            };
            let Some(peer) = self.peers.get_mut(&id) else { break };
            if !sockets::is_no_way(&error) || error.kind() == ErrorKind::ConnectionRefused {
                peer.session.withdraw(first.ip);
                return Err((error, places[first.ip.index()].map_or(0, |place| place.socket)));
            }
            let other_way = peer.session.not_sent(now, first.ip);
            self.settle(now, id);
            if !other_way {
                return Err((error, first.ip.index()));
            }
        }
        Err((ErrorKind::NetworkUnreachable.into(), 0))
    }

    fn send_one(&mut self, places: &[Option<Place>; 2], head: &DatagramHead, bytes: &[u8]) -> io::Result<()> {
        let place = places[head.ip.index()].ok_or(ErrorKind::NetworkUnreachable)?;
        let mut frame = std::mem::take(&mut self.frame);
        frame.clear();
        frame.extend_from_slice(&head.emit());
        frame.extend_from_slice(bytes);
        let sent = self.transmit(place, &frame);
        self.frame = frame;
        sent
    }

    /// A datagram may have brought a deadline with it.
    fn after_send(&mut self, now: Mono, id: PeerId) {
        let Some(peer) = self.peers.get(&id) else { return };
        let wake_at = peer.session.wake_at();
        if wake_at.is_some_and(|at| at <= now) {
            self.settle(now, id);
        } else {
            self.wake(id, wake_at);
        }
    }
}

/// Hellos to one address before the next one gets them.
const GREETED: u32 = 3;
