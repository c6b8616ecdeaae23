//! A prober reduced to its control connection: says exactly what a test wants to be said.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use netaware_io::clock;
use netaware_units::{Mono, Span};
use netaware_wire::control::{ClientMessage, PING_EVERY, ServerMessage};
use netaware_wire::preface::{PREFACE_LEN, Preface, Role};
use netaware_wire::{PROTOCOL_VERSION, Token, frame};

/// What came, or did not.
#[derive(Debug)]
pub enum Heard {
    /// A message.
    Message(Box<ServerMessage>),
    /// The responder has closed or reset the connection.
    End,
    /// Nothing in time.
    Nothing,
}

/// An open control connection.
pub struct Control {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Control {
    /// Connects and exchanges prefaces; returns the version of the responder, too.
    pub fn open(address: SocketAddr, version: u16) -> (Self, u16) {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.write_all(&Preface { version, role: Role::Control }.emit()).unwrap();
        let mut answer = [0; PREFACE_LEN];
        stream.set_read_timeout(Some(Span::from_secs(5).to_std())).unwrap();
        stream.read_exact(&mut answer).unwrap();
        let theirs = Preface::parse(&answer).unwrap();
        (Self { stream, unread: Vec::new() }, theirs.version)
    }

    /// Opens a session without a key; returns its token.
    pub fn session(address: SocketAddr) -> (Self, Token) {
        let (mut control, _) = Self::open(address, PROTOCOL_VERSION);
        control.say(&hello(PROTOCOL_VERSION));
        let token = control.wait_for(Span::from_secs(5), |message| match message {
            ServerMessage::Welcome { token, .. } => Some(*token),
            _ => None,
        });
        (control, token)
    }

    /// Sends a message.
    pub fn say(&mut self, message: &ClientMessage) {
        self.stream.write_all(&frame::emit(message).unwrap()).unwrap();
    }

    /// The next message.
    ///
    /// # Panics
    /// When what comes is no message.
    pub fn hear_until(&mut self, due: Mono) -> Heard {
        loop {
            if let Some(body) = self.take_frame() {
                return Heard::Message(Box::new(frame::parse(&body).unwrap()));
            }
            let left = due - clock::now();
            if left <= Span::ZERO {
                return Heard::Nothing;
            }
            self.stream.set_read_timeout(Some(left.to_std())).unwrap();
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Heard::End,
                Ok(n) => self.unread.extend_from_slice(&bytes[..n]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Heard::Nothing,
                Err(_) => return Heard::End,
            }
        }
    }

    /// Reads until `wanted` finds what it looks for, with a ping every second so that the session
    /// lives.
    ///
    /// # Panics
    /// When that takes longer than `limit`, or the connection ends before.
    pub fn wait_for<T>(&mut self, limit: Span, wanted: impl Fn(&ServerMessage) -> Option<T>) -> T {
        let due = clock::now() + limit;
        let mut ping_due = clock::now() + PING_EVERY;
        let mut seen = Vec::new();
        while clock::now() < due {
            match self.hear_until(ping_due.min(due)) {
                Heard::Message(message) => match wanted(&message) {
                    Some(found) => return found,
                    None => seen.push(message),
                },
                Heard::End => panic!("the responder closed the connection; there came {seen:?}"),
                Heard::Nothing => {
                    ping_due += PING_EVERY;
                    self.say(&ClientMessage::Ping { seq: 0 });
                }
            }
        }
        panic!("not within {limit}; there came {seen:?}")
    }

    fn take_frame(&mut self) -> Option<Vec<u8>> {
        let header = *self.unread.first_chunk::<4>()?;
        let end = 4 + frame::body_len(header).unwrap();
        (self.unread.len() >= end).then(|| self.unread.drain(..end).skip(4).collect())
    }
}

/// The first message of a session without a key.
pub fn hello(version: u16) -> ClientMessage {
    ClientMessage::Hello { version, software: "a test".into(), nonce: Token([7; 16]) }
}
