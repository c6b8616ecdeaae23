//! The other end of the protocol, small enough to be seen through.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::thread::JoinHandle;
use std::time::Duration;

use netaware_io::clock;
use netaware_server::{Config, RunError, Server, Stopper};
use netaware_units::Span;
use netaware_wire::control::{ClientMessage, ServerMessage, TestPlan};
use netaware_wire::datagram::{Header, Kind, Setup};
use netaware_wire::preface::{Attach, PREFACE_LEN, Preface, Role};
use netaware_wire::{Token, frame};

/// A responder in a thread of this process; stopped when dropped.
pub(crate) struct Responder {
    port: u16,
    pub(crate) stopper: Stopper,
    thread: Option<JoinHandle<Result<(), RunError>>>,
}

impl Responder {
    pub(crate) fn start(config: Config) -> Self {
        let server = Server::bind(Config { port: 0, ..config }).expect("ports on loopback");
        let port = server.addresses()[0].port();
        let stopper = server.stopper();
        let thread = Some(std::thread::spawn(move || server.run()));
        Self { port, stopper, thread }
    }

    pub(crate) fn v4(&self) -> SocketAddr {
        SocketAddr::new(Ipv4Addr::LOCALHOST.into(), self.port)
    }

    pub(crate) fn v6(&self) -> SocketAddr {
        SocketAddr::new(Ipv6Addr::LOCALHOST.into(), self.port)
    }

    pub(crate) fn join(&mut self) {
        let thread = self.thread.take().expect("joined once");
        thread.join().expect("no panic in the responder").expect("it ran");
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stopper.stop();
        if self.thread.is_some() {
            self.join();
        }
    }
}

/// A connection whose reads fail rather than hang.
pub(crate) fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).expect("a listening responder");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// What arrives until the other end closes.
pub(crate) fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => bytes,
        Err(error) if error.kind() == ErrorKind::ConnectionReset => bytes,
        Err(error) => panic!("not closed: {error}"),
    }
}

/// A control connection.
pub(crate) struct Speaker {
    pub(crate) stream: TcpStream,
    pub(crate) token: Token,
    to: SocketAddr,
}

impl Speaker {
    /// Has sent its preface and read the answer.
    pub(crate) fn greet(to: SocketAddr) -> Self {
        let mut stream = connect(to);
        stream.write_all(&Preface::new(Role::Control).emit()).unwrap();
        let mut answer = [0; PREFACE_LEN];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(Preface::parse(&answer), Ok(Preface::new(Role::Control)));
        Self { stream, token: Token::default(), to }
    }

    /// Has an open session.
    pub(crate) fn open(to: SocketAddr) -> Self {
        let mut speaker = Self::greet(to);
        speaker.say(&hello());
        let ServerMessage::Welcome { token, .. } = speaker.hear() else { panic!("not welcome") };
        speaker.token = token;
        speaker
    }

    pub(crate) fn say(&mut self, message: &ClientMessage) {
        self.stream.write_all(&frame::emit(message).unwrap()).unwrap();
    }

    pub(crate) fn hear(&mut self) -> ServerMessage {
        self.try_hear().expect("a message")
    }

    /// `None` when the connection is closed instead.
    pub(crate) fn try_hear(&mut self) -> Option<ServerMessage> {
        let mut len = [0; 4];
        match self.stream.read_exact(&mut len) {
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                return None;
            }
            other => other.expect("a message or the end within the patience of this test"),
        }
        let mut body = vec![0; frame::body_len(len).unwrap()];
        self.stream.read_exact(&mut body).unwrap();
        Some(frame::parse(&body).unwrap())
    }

    /// Skips until `pick` finds what it wants.
    pub(crate) fn hear_until<T>(&mut self, pick: impl Fn(&ServerMessage) -> Option<T>) -> T {
        let deadline = clock::now() + Span::from_secs(60);
        loop {
            assert!(clock::now() < deadline, "not within a minute");
            let message = self.hear();
            if let Some(found) = pick(&message) {
                return found;
            }
            let benign = matches!(
                message,
                ServerMessage::Pong { .. }
                    | ServerMessage::Queued { .. }
                    | ServerMessage::ReceiverTicks { .. }
                    | ServerMessage::SenderTicks { .. }
                    | ServerMessage::StreamEnds { .. }
                    | ServerMessage::Started { .. }
            );
            assert!(benign, "{message:?}");
        }
    }

    /// Holds a reservation.
    pub(crate) fn admitted(&mut self, join: Option<Token>) -> Token {
        self.say(&ClientMessage::Reserve { expected: Span::from_secs(5), join });
        self.hear_until(|message| match message {
            ServerMessage::Admitted { reservation, .. } => Some(*reservation),
            _ => None,
        })
    }

    pub(crate) fn opened(&mut self, test: u32, plan: TestPlan) {
        self.say(&ClientMessage::Open { test, plan });
        let message = self.hear();
        assert_eq!(message, ServerMessage::Opened { test });
    }

    pub(crate) fn ready(&mut self, test: u32) {
        self.hear_until(|message| (*message == ServerMessage::Ready { test }).then_some(()));
    }

    /// A data or echo connection, and the byte it was answered with.
    pub(crate) fn attach(&self, role: Role, test: u32, stream: u16) -> (TcpStream, Option<u8>) {
        let mut connection = connect(self.to);
        connection.write_all(&Preface::new(role).emit()).unwrap();
        connection.write_all(&Attach { token: self.token, test, stream }.emit()).unwrap();
        let mut answer = [0];
        let answered = connection.read_exact(&mut answer).is_ok();
        (connection, answered.then_some(answer[0]))
    }
}

pub(crate) fn hello() -> ClientMessage {
    ClientMessage::Hello { version: 1, software: "a test by hand".into(), nonce: PROBER_NONCE }
}

/// A UDP socket connected to the responder.
pub(crate) fn udp(to: SocketAddr) -> UdpSocket {
    let any: IpAddr = if to.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).unwrap();
    socket.connect(to).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Sends one setup datagram and reads its answer.
pub(crate) fn set_up(
    socket: &UdpSocket,
    kind: Kind,
    token: Token,
    test: u32,
    cookie: Token,
) -> (Header, Setup) {
    socket.send(&Setup { token, test, cookie }.emit_request(kind)).unwrap();
    let mut buf = [0; 2048];
    let len = socket.recv(&mut buf).expect("an answer");
    let header = Header::parse(&buf[..len]).unwrap();
    (header, Setup::parse(&header, &buf[..len]).unwrap())
}

/// Attaches a flow and returns its number.
pub(crate) fn enter(socket: &UdpSocket, token: Token, test: u32) -> u32 {
    let (_, answer) = set_up(socket, Kind::Knock, token, test, Token::default());
    let (header, _) = set_up(socket, Kind::Enter, token, test, answer.cookie);
    assert_eq!(header.kind, Kind::Entered);
    header.flow
}

/// Whether something comes within a moment. Loopback delivers before `send` returns; the rest is
/// the thread's wake-up.
pub(crate) fn is_answered(socket: &UdpSocket) -> bool {
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let answered = socket.recv(&mut [0; 2048]).is_ok();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    answered
}

pub(crate) const PROBER_NONCE: Token = Token([7; 16]);
/// Longer than any timeout of the responder.
const PATIENCE: Duration = Duration::from_secs(8);
