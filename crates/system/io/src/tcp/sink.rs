//! Where received bytes go: nowhere, once they are counted.

use std::io::{self, Read as _};
use std::net::TcpStream;

use netaware_wire::websocket::FrameWalk;

#[cfg(target_os = "linux")]
use super::receiver::HIGHEST_MARK;
use super::{Carriage, Encryption};

/// Takes bytes and forgets them.
#[derive(Debug)]
pub(super) enum Sink {
    /// All are payload, and the kernel need not hand them over.
    #[cfg(target_os = "linux")]
    Discarding,
    /// They have to be looked at: decrypted, or walked over for the payload in frames.
    Copying { buffer: Vec<u8>, encryption: Option<Box<dyn Encryption>>, walk: Option<FrameWalk> },
}

/// What a read brought.
#[derive(Debug, Clone, Copy)]
pub(super) struct Got {
    /// Bytes of the stream, decrypted.
    pub(super) taken: usize,
    /// Of these: what counts.
    pub(super) payload: u64,
    /// Blocks that ended, where they can be told apart, else 1.
    pub(super) blocks: u64,
    /// Nothing comes any more.
    pub(super) is_end: bool,
}

impl Sink {
    pub(super) fn new(carriage: Carriage, encryption: Option<Box<dyn Encryption>>) -> Self {
        let walk = match carriage {
            #[cfg(target_os = "linux")]
            Carriage::Plain if encryption.is_none() => return Self::Discarding,
            Carriage::Plain => None,
            Carriage::WebSocket => Some(FrameWalk::default()),
        };
        Self::Copying { buffer: vec![0; COPIED], encryption, walk }
    }

    pub(super) fn read(&mut self, mut stream: &TcpStream) -> io::Result<Got> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Discarding => discard(stream).map(Got::plain),
            Self::Copying { buffer, encryption, walk } => {
                let taken = match encryption {
                    None => stream.read(buffer)?,
                    Some(encryption) => encryption.read(stream, buffer)?,
                };
                let Some(walk) = walk else { return Ok(Got::plain(taken)) };
                let walked = walk.walk(&buffer[..taken]).map_err(io::Error::other)?;
                let is_end = taken == 0 || walked.closed;
                Ok(Got { taken, payload: walked.payload, blocks: walked.messages, is_end })
            }
        }
    }
}

impl Got {
    fn plain(taken: usize) -> Self {
        Self { taken, payload: taken as u64, blocks: 1, is_end: taken == 0 }
    }
}

#[cfg(target_os = "linux")]
fn discard(stream: &TcpStream) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    // SAFETY: with MSG_TRUNC, TCP discards instead of copying and never touches the (null) buffer:
    // tcp(7).
    let got = unsafe {
        libc::recv(stream.as_raw_fd(), std::ptr::null_mut(), HIGHEST_MARK as usize, libc::MSG_TRUNC)
    };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

/// Stays in a processor's cache.
const COPIED: usize = 128 << 10;
