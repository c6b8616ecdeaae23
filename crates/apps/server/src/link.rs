//! A browser's connection, with encryption or without, and how it is handed to the loops that move
//! data.
//!
//! TLS ends in this process. The event loop speaks it through a library's stream; a connection that
//! will carry bulk data leaves that stream behind and takes the keys along to its own thread
//! ([`Encrypted`]). Encryption costs that thread about a nanosecond for each two bytes, which is in
//! its `thread_cpu` like everything else that it does.

use std::io::{self, Read as _};
use std::net::TcpStream as StdStream;
use std::ops::Range;

use netaware_io::tcp::{Encryption, Stream};
use rustls::ServerConnection;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// See the module.
pub(crate) trait Link: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Whether nobody on the way can read along.
    const IS_ENCRYPTED: bool;

    /// Below it.
    fn socket(&self) -> &TcpStream;

    /// Leaves the event loop. The socket does not block yet.
    ///
    /// # Errors
    /// The system's.
    fn detach(self) -> io::Result<Stream>;
}

impl Link for TcpStream {
    const IS_ENCRYPTED: bool = false;

    fn socket(&self) -> &TcpStream {
        self
    }

    fn detach(self) -> io::Result<Stream> {
        self.into_std().map(Stream::from)
    }
}

impl Link for TlsStream<TcpStream> {
    const IS_ENCRYPTED: bool = true;

    fn socket(&self) -> &TcpStream {
        self.get_ref().0
    }

    fn detach(self) -> io::Result<Stream> {
        let (socket, connection) = self.into_inner();
        let encrypted = Encrypted { connection, incoming: vec![0; READ], unread: 0..0, given: 0 };
        Ok(Stream { socket: socket.into_std()?, encryption: Some(Box::new(encrypted)) })
    }
}

/// TLS of a stream that carries bulk data.
#[derive(Debug)]
struct Encrypted {
    connection: ServerConnection,
    /// As they came from the socket: the library alone would ask it for 4 KiB at a time.
    incoming: Vec<u8>,
    unread: Range<usize>,
    given: u64,
}

impl Encrypted {
    fn flush(&mut self, mut socket: &StdStream) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut socket)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                given => self.given += given as u64,
            }
        }
        Ok(())
    }
}

impl Encryption for Encrypted {
    fn read(&mut self, mut socket: &StdStream, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Without the closing word of TLS: what is counted has come all the same.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            if self.unread.is_empty() {
                let came = socket.read(&mut self.incoming)?;
                if came == 0 {
                    return Ok(0);
                }
                self.unread = 0..came;
            }
            let taken = self.connection.read_tls(&mut &self.incoming[self.unread.clone()])?;
            self.unread.start += taken;
            self.connection.process_new_packets().map_err(io::Error::other)?;
        }
    }

    fn write(&mut self, socket: &StdStream, bytes: &[u8]) -> io::Result<usize> {
        self.flush(socket)?;
        let taken = io::Write::write(&mut self.connection.writer(), bytes)?;
        match self.flush(socket) {
            // These bytes have been taken and wait for room.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(taken),
            Err(error) => Err(error),
            Ok(()) => Ok(taken),
        }
    }

    fn finish(&mut self, socket: &StdStream) -> io::Result<()> {
        // Said once, however often it is asked for.
        self.connection.send_close_notify();
        self.flush(socket)
    }

    fn given(&self) -> u64 {
        self.given
    }
}

/// Of encrypted bytes at a time.
const READ: usize = 128 << 10;
