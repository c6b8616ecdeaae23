//! What stands at the far end of an echo train: answers each request as the responder's reflector
//! does.

use std::collections::VecDeque;
use std::convert::Infallible;

use netaware_engine::{Engine, Input, Output};
use netaware_units::{Mono, Span, Stamp};
use netaware_wire::datagram::{EchoStamps, Kind, as_remote};
use netaware_wire::echo;

/// Answers echo requests with its own clock's stamps and drops everything else. It is never done.
#[derive(Debug, Default)]
pub struct EchoResponder {
    holding: Span,
    /// Payload of answers; absent: as long as their requests.
    response: Option<usize>,
    answers: VecDeque<(u64, Mono, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
}

impl EchoResponder {
    /// Answers at once.
    pub fn new() -> Self {
        Self::default()
    }

    /// Holds each request for this long, as a busy host does, and says so.
    pub fn holding(holding: Span) -> Self {
        Self { holding: holding.or_zero(), ..Self::default() }
    }

    /// Answers every request with this many bytes.
    #[must_use]
    pub fn answering(self, response: usize) -> Self {
        Self { response: Some(response), ..self }
    }

    fn answer(&mut self, now: Mono, request: &[u8], rx: Stamp, ttl: Option<u8>) {
        let Ok(header) = echo::parse_request(request) else { return };
        if header.kind != Kind::EchoRequest {
            return;
        }
        let due = now + self.holding;
        let stamps = EchoStamps {
            received_at: as_remote(rx.at),
            answered_at: as_remote(due),
            ttl: ttl.unwrap_or(0),
            kernel_stamp: rx.by != netaware_units::ClockSource::Application,
        };
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(request);
        let response = self.response.unwrap_or(request.len());
        bytes.resize(request.len().max(response), 0);
        if echo::answer(&mut bytes, request.len(), response, FLOW, &stamps).is_ok() {
            bytes.truncate(response);
            self.answers.push_back((header.seq, due, bytes));
        }
    }
}

impl Engine for EchoResponder {
    type Event = Infallible;

    fn handle(&mut self, now: Mono, input: Input<'_>) {
        if let Input::Datagram { bytes, rx, ttl } = input {
            self.answer(now, bytes, rx, ttl);
        }
    }

    /// The tag of an answer is the number of its request.
    fn poll(&mut self, _now: Mono, out: &mut [u8]) -> Output<Infallible> {
        let Some((tag, due, bytes)) = self.answers.pop_front() else { return Output::Wait(Mono(u64::MAX)) };
        let len = bytes.len().min(out.len());
        out[..len].copy_from_slice(&bytes[..len]);
        self.spare.push(bytes);
        Output::Send { len, tag, due }
    }
}

/// Of requests too short to name theirs; the simulator has one flow at a time.
const FLOW: u32 = 1;

#[cfg(test)]
mod tests {
    use netaware_units::RemoteMono;
    use netaware_wire::datagram::{ECHO_LEN, Header};

    use super::*;

    fn request(length: usize, kind: Kind) -> Vec<u8> {
        let mut bytes = vec![0; length];
        Header { kind, flow: 3, seq: 9, sent_at: 77 }.emit(&mut bytes);
        bytes
    }

    fn ask(responder: &mut EchoResponder, bytes: &[u8]) -> Option<(Vec<u8>, Mono)> {
        let rx = Stamp::application(Mono(1_000));
        responder.handle(Mono(1_005), Input::Datagram { bytes, rx, ttl: Some(61) });
        let mut out = vec![0; 2048];
        match responder.poll(Mono(1_005), &mut out) {
            Output::Send { len, tag: 9, due } => Some((out[..len].to_vec(), due)),
            _ => None,
        }
    }

    #[test]
    fn an_answer_is_as_long_as_its_request_and_tells_how_long_it_was_held() {
        let (bytes, due) =
            ask(&mut EchoResponder::holding(Span(30)), &request(200, Kind::EchoRequest)).unwrap();
        let stamps = EchoStamps::parse(&bytes).unwrap();
        assert_eq!(
            (bytes.len(), due, Header::parse(&bytes).unwrap().kind),
            (200, Mono(1_035), Kind::EchoReply)
        );
        assert_eq!((stamps.received_at, stamps.answered_at), (RemoteMono(1_000), RemoteMono(1_035)));
        assert_eq!((stamps.ttl, stamps.kernel_stamp), (61, false));
    }

    #[test]
    fn what_is_no_request_is_not_answered() {
        let mut responder = EchoResponder::new();
        for bytes in [request(64, Kind::EchoReply), request(64, Kind::Data), vec![0; 64], Vec::new()] {
            assert_eq!(ask(&mut responder, &bytes), None);
        }
    }

    #[test]
    fn an_answer_has_the_length_asked_for() {
        for response in [ECHO_LEN - 1, ECHO_LEN, 1400] {
            let mut responder = EchoResponder::new().answering(response);
            let (bytes, _) = ask(&mut responder, &request(64, Kind::EchoRequest)).unwrap();
            assert_eq!((bytes.len(), Header::parse(&bytes).unwrap().seq), (response, 9));
            assert!(echo::is_intact(&bytes, 9));
        }
    }
}
