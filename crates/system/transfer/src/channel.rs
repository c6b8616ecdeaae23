//! Messages and chunks over a stream, encrypted or not.

use std::io::{self, ErrorKind, Read, Write};

use netaware_io::clock;
use netaware_stream::DualStream;
use netaware_units::{Mono, Span};
use netaware_wire::frame::{self, MAX_FRAME};
use netaware_wire::transfer::{HEAD_LEN, Head, HeadError, MAX_CHUNK};
use rustls::{AlertDescription, Connection};

use crate::error::Broken;

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// The body of a message.
    Message(Vec<u8>),
    /// So many bytes, to be read by [`Channel::chunk`].
    Chunk(usize),
}

/// Looks after things while a channel waits for the other end; an error ends the wait.
pub(crate) type Look<'a> = dyn FnMut(&DualStream) -> Result<(), Broken> + 'a;

pub(crate) struct Channel {
    stream: DualStream,
    tls: Option<Connection>,
    /// What has come and was not taken lies between `begin` and `end`.
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    chunk: usize,
}

impl Channel {
    pub(crate) fn new(stream: DualStream, tls: Option<Connection>) -> Self {
        Self { stream, tls, buffer: vec![0; ROOM], begin: 0, end: 0, chunk: 0 }
    }

    pub(crate) fn stream(&self) -> &DualStream {
        &self.stream
    }

    /// What both ends know of the encryption, once both have spoken; nothing without encryption.
    pub(crate) fn binding(&self) -> Result<Vec<u8>, Broken> {
        let Some(tls) = &self.tls else { return Ok(Vec::new()) };
        // RFC 9266.
        let exported = tls.export_keying_material([0; 32], b"EXPORTER-Channel-Binding", Some(&[]));
        exported.map(Vec::from).map_err(|why| Broken::Tls(why.to_string()))
    }

    /// Says a message.
    pub(crate) fn say<M: frame::Message>(&mut self, message: &M, look: &mut Look<'_>) -> Result<(), Broken> {
        let bytes = frame::emit(message).map_err(|why| Broken::Protocol(why.to_string()))?;
        self.send(&bytes, look)
    }

    /// Sends a chunk that lies behind [`HEAD_LEN`] free bytes.
    pub(crate) fn send_chunk(&mut self, bytes: &mut [u8], look: &mut Look<'_>) -> Result<(), Broken> {
        let head = Head::Chunk(bytes.len() - HEAD_LEN).emit();
        bytes[..HEAD_LEN].copy_from_slice(&head);
        self.send(bytes, look)
    }

    fn send(&mut self, mut bytes: &[u8], look: &mut Look<'_>) -> Result<(), Broken> {
        if self.tls.is_none() {
            return send_all(&self.stream, bytes, look);
        }
        while !bytes.is_empty() {
            let tls = self.tls.as_mut().ok_or_else(gone)?;
            let taken = tls.writer().write(bytes).map_err(Broken::Stream)?;
            bytes = &bytes[taken..];
            if taken == 0 && !tls.wants_write() {
                // The handshake has to go on before anything else can be sent.
                self.receive(Some(clock::now() + STEP))?;
            }
            self.flush(look)?;
        }
        Ok(())
    }

    /// Sends what the encryption has ready.
    fn flush(&mut self, look: &mut Look<'_>) -> Result<(), Broken> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        let mut out = Vec::new();
        while tls.wants_write() {
            out.clear();
            tls.write_tls(&mut out).map_err(Broken::Stream)?;
            send_all(&self.stream, &out, look)?;
        }
        Ok(())
    }

    /// Runs the handshake, where there is one.
    pub(crate) fn shake_hands(&mut self, deadline: Mono) -> Result<(), Broken> {
        // An end that reads nothing holds this one no longer than one that says nothing.
        let look = &mut |_: &DualStream| if clock::now() < deadline { Ok(()) } else { Err(unanswered()) };
        self.flush(look)?;
        while self.tls.as_ref().is_some_and(|tls| tls.is_handshaking()) {
            if clock::now() >= deadline {
                return Err(unanswered());
            }
            let received = self.receive(Some(clock::now() + STEP));
            // What is wrong is told to the other end, too.
            let flushed = self.flush(look);
            received?;
            flushed?;
        }
        Ok(())
    }

    /// The next message or chunk, or nothing until then.
    pub(crate) fn next(&mut self, deadline: Mono) -> Result<Option<Came>, Broken> {
        let Some(head) = self.peek(HEAD_LEN, deadline)? else { return Ok(None) };
        let head = [head[0], head[1], head[2], head[3]];
        match Head::parse(head).map_err(unreadable)? {
            Head::Message(length) => {
                let Some(bytes) = self.peek(HEAD_LEN + length, deadline)? else { return Ok(None) };
                let body = bytes[HEAD_LEN..].to_vec();
                self.begin += HEAD_LEN + length;
                Ok(Some(Came::Message(body)))
            }
            Head::Chunk(length) => {
                if self.peek(HEAD_LEN + length, deadline)?.is_none() {
                    return Ok(None);
                }
                self.begin += HEAD_LEN;
                self.chunk = length;
                Ok(Some(Came::Chunk(length)))
            }
        }
    }

    /// The bytes of the chunk that came.
    pub(crate) fn chunk(&mut self) -> &[u8] {
        let from = self.begin;
        self.begin += std::mem::take(&mut self.chunk);
        &self.buffer[from..self.begin]
    }

    /// So many bytes, not taken yet.
    fn peek(&mut self, count: usize, deadline: Mono) -> Result<Option<&[u8]>, Broken> {
        while self.end - self.begin < count {
            if self.buffer.len() - self.begin < count {
                self.buffer.copy_within(self.begin..self.end, 0);
                (self.begin, self.end) = (0, self.end - self.begin);
            }
            if !self.receive(Some(deadline))? {
                return Ok(None);
            }
        }
        Ok(Some(&self.buffer[self.begin..self.begin + count]))
    }

    /// Receives some bytes; false if none came until then.
    fn receive(&mut self, deadline: Option<Mono>) -> Result<bool, Broken> {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
        let free = &mut self.buffer[self.end..];
        let Some(tls) = &mut self.tls else {
            return match self.stream.recv_until(free, deadline) {
                Ok(0) => Err(ended()),
                Ok(count) => {
                    self.end += count;
                    Ok(true)
                }
                Err(error) if error.kind() == ErrorKind::TimedOut => Ok(false),
                Err(error) => Err(Broken::Stream(error)),
            };
        };
        loop {
            match tls.reader().read(free) {
                Ok(0) if !free.is_empty() => return Err(ended()),
                Ok(count) => {
                    self.end += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(Broken::Stream(error)),
            }
            let mut below = Below { stream: &self.stream, deadline };
            match tls.read_tls(&mut below) {
                Ok(0) => return Err(ended()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(false),
                Err(error) => return Err(Broken::Stream(error)),
            }
            tls.process_new_packets().map_err(|why| Broken::Tls(explained(&why)))?;
            if tls.is_handshaking() {
                return Ok(false);
            }
        }
    }

    /// Says that nothing more comes, and waits until the other end has all of it.
    pub(crate) fn finish(mut self, deadline: Mono) -> Result<(), Broken> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            // A full window of an end that acknowledges nothing must not hold this one.
            self.flush(&mut |_| {
                if clock::now() < deadline { Ok(()) } else { Err(Broken::Stream(ErrorKind::TimedOut.into())) }
            })?;
        }
        self.stream.finish(deadline).map_err(Broken::Stream)
    }
}

/// Sends all, and looks around while that has to wait.
fn send_all(stream: &DualStream, mut bytes: &[u8], look: &mut Look<'_>) -> Result<(), Broken> {
    while !bytes.is_empty() {
        match stream.send_until(bytes, Some(clock::now() + STEP)) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::TimedOut => look(stream)?,
            Err(error) => return Err(Broken::Stream(error)),
        }
    }
    Ok(())
}

/// The stream as rustls reads it.
struct Below<'a> {
    stream: &'a DualStream,
    deadline: Option<Mono>,
}

impl Read for Below<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.stream.recv_until(out, self.deadline)
    }
}

fn ended() -> Broken {
    Broken::Stream(io::Error::new(ErrorKind::UnexpectedEof, "the other end has closed it"))
}

fn unanswered() -> Broken {
    Broken::Tls("the other end does not answer; does it use --tls?".into())
}

fn gone() -> Broken {
    Broken::Tls("it is gone".into())
}

fn unreadable(why: HeadError) -> Broken {
    if why.is_tls() {
        Broken::Tls(
            "the other end encrypts and this one does not: 'receive --tls' prints what 'send' needs".into(),
        )
    } else {
        Broken::Protocol(why.to_string())
    }
}

fn explained(why: &rustls::Error) -> String {
    match why {
        rustls::Error::InvalidMessage(_) => {
            "the other end does not encrypt and this one does: 'receive' needs --tls, too".to_owned()
        }
        rustls::Error::AlertReceived(
            AlertDescription::AccessDenied | AlertDescription::CertificateUnknown,
        ) => "the sender was given another fingerprint than that of this certificate".to_owned(),
        rustls::Error::InvalidCertificate(_) => {
            "the receiver shows another certificate than the one with this fingerprint".to_owned()
        }
        other => other.to_string(),
    }
}

/// The longest thing twice, so that moving is rare.
const ROOM: usize = 2 * (if MAX_CHUNK > MAX_FRAME { MAX_CHUNK } else { MAX_FRAME } + HEAD_LEN);
/// Between two looks.
const STEP: Span = Span::from_millis(20);
