//! The UDP half of a latency session, without its measurements.

use std::net::{SocketAddr, UdpSocket};

use netaware_units::Span;
use netaware_wire::Token;
use netaware_wire::datagram::{Header, Kind, SETUP_LEN, Setup};

/// An attached flow.
pub(crate) struct Flow {
    socket: UdpSocket,
    number: u32,
    sent: u64,
    answered: u64,
}

impl Flow {
    /// Bytes of request and response.
    pub(crate) const LENGTH: u32 = 64;

    /// Knocks, and enters with the cookie.
    pub(crate) fn attach(responder: SocketAddr, token: Token, test: u32) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(responder).unwrap();
        socket.set_read_timeout(Some(Span::from_secs(5).to_std())).unwrap();
        let setup = Setup { token, test, cookie: Token::default() };
        let (header, answer) = ask(&socket, &setup.emit_request(Kind::Knock));
        assert_eq!(header.kind, Kind::Cookie);
        let setup = Setup { cookie: answer.cookie, ..setup };
        let (header, _) = ask(&socket, &setup.emit_request(Kind::Enter));
        assert_eq!(header.kind, Kind::Entered);
        socket.set_nonblocking(true).unwrap();
        Self { socket, number: header.flow, sent: 0, answered: 0 }
    }

    pub(crate) fn request(&mut self) {
        let mut bytes = [0; Self::LENGTH as usize];
        Header { kind: Kind::EchoRequest, flow: self.number, seq: self.sent, sent_at: 0 }.emit(&mut bytes);
        assert_eq!(self.socket.send(&bytes).unwrap(), bytes.len());
        self.sent += 1;
    }

    /// Takes in the answers that have come.
    pub(crate) fn drain(&mut self) {
        let mut bytes = [0; 2048];
        while let Ok(length) = self.socket.recv(&mut bytes) {
            let header = Header::parse(&bytes[..length]).unwrap();
            assert_eq!(
                (header.kind, header.seq),
                (Kind::EchoReply, self.answered),
                "answers come once and in order"
            );
            self.answered += 1;
        }
    }

    pub(crate) fn answered(&self) -> u64 {
        self.answered
    }
}

fn ask(socket: &UdpSocket, question: &[u8; SETUP_LEN]) -> (Header, Setup) {
    socket.send(question).unwrap();
    let mut bytes = [0; 2048];
    let length = socket.recv(&mut bytes).unwrap();
    let header = Header::parse(&bytes[..length]).unwrap();
    let setup = Setup::parse(&header, &bytes[..length]).unwrap();
    (header, setup)
}
