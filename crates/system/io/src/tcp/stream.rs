//! A stream of a transfer: a socket, and what may stand between its bytes and the payload.

use std::io::{self, Write};
use std::net::TcpStream;

/// Encryption of one stream. What it does is a library's; here is how the loops speak to it.
///
/// The socket is blocking with a timeout, or does not block: a call that would have to wait gives
/// back `WouldBlock`, and is then made again.
pub trait Encryption: std::fmt::Debug + Send {
    /// Decrypted bytes, as a socket's `read`: 0 at the end.
    ///
    /// # Errors
    /// The socket's, or bytes that no holder of the keys has sent.
    fn read(&mut self, socket: &TcpStream, into: &mut [u8]) -> io::Result<usize>;

    /// Takes some of `bytes` and gives the socket what it has room for. What has been taken and not
    /// given goes first at the next call.
    ///
    /// # Errors
    /// The socket's.
    fn write(&mut self, socket: &TcpStream, bytes: &[u8]) -> io::Result<usize>;

    /// Says that nothing more comes, and gives the socket all that is left.
    ///
    /// # Errors
    /// The socket's.
    fn finish(&mut self, socket: &TcpStream) -> io::Result<()>;

    /// Encrypted bytes that the socket has taken so far.
    fn given(&self) -> u64;
}

/// See the module.
#[derive(Debug)]
pub struct Stream {
    /// Of the connection.
    pub socket: TcpStream,
    /// Absent: payload travels as it is.
    pub encryption: Option<Box<dyn Encryption>>,
}

impl From<TcpStream> for Stream {
    fn from(socket: TcpStream) -> Self {
        Self { socket, encryption: None }
    }
}

/// For the few bytes before a transfer.
impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.encryption {
            None => self.socket.write(bytes),
            Some(encryption) => encryption.write(&self.socket, bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
