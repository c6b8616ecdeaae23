//! Streams and datagrams for programs on tokio.

use std::io::{self, ErrorKind, IoSlice, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use netaware_io::clock;
use netaware_units::Span;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::UnixStream;
use tokio::task::spawn_blocking;

use crate::datagram::{DatagramOptions, DualDatagram, PeerId};
use crate::listener::DualListener;
use crate::opening::ConnectError;
use crate::options::Options;
use crate::stream::DualStream;

/// A [`DualStream`] that reads and writes without blocking a thread. Needs a tokio runtime with I/O
/// enabled.
#[derive(Debug)]
pub struct AsyncDualStream {
    stream: DualStream,
    /// Shows when the stream is ready; nothing travels on it.
    ready: UnixStream,
}

impl AsyncDualStream {
    /// Connects as [`DualStream::connect`] does, on a thread for what blocks.
    ///
    /// # Errors
    /// As there.
    pub async fn connect(host: &str, port: u16, options: Options) -> Result<Self, ConnectError> {
        let host = host.to_owned();
        let connecting = spawn_blocking(move || DualStream::connect(&host, port, options));
        let stream = connecting.await.map_err(|why| ConnectError::Host(io::Error::other(why)))??;
        Self::new(stream).map_err(ConnectError::Host)
    }

    /// Takes over a stream.
    ///
    /// # Errors
    /// The system has no more descriptors, or there is no runtime.
    pub fn new(stream: DualStream) -> io::Result<Self> {
        let ready = UnixStream::from_std(StdUnixStream::from(stream.descriptor()?))?;
        Ok(Self { stream, ready })
    }

    /// Waits for the next stream of a listener, on a thread for what blocks.
    ///
    /// # Errors
    /// The listener has failed.
    pub async fn accept(listener: Arc<DualListener>) -> io::Result<Self> {
        let (stream, _) = spawn_blocking(move || listener.accept()).await.map_err(io::Error::other)??;
        Self::new(stream)
    }

    /// The stream itself: to switch, to hold, to look.
    pub fn stream(&self) -> &DualStream {
        &self.stream
    }
}

/// A [`DualDatagram`] that sends and receives without blocking a thread. Needs a tokio runtime with
/// I/O enabled.
#[derive(Debug)]
pub struct AsyncDualDatagram {
    socket: DualDatagram,
    /// Shows when the socket is ready; nothing travels on it.
    ready: UnixStream,
}

impl AsyncDualDatagram {
    /// Connects as [`DualDatagram::connect`] does, on a thread for what blocks.
    ///
    /// # Errors
    /// As there.
    pub async fn connect(host: &str, port: u16, options: DatagramOptions) -> Result<Self, ConnectError> {
        let host = host.to_owned();
        let connecting = spawn_blocking(move || DualDatagram::connect(&host, port, options));
        let socket = connecting.await.map_err(|why| ConnectError::Host(io::Error::other(why)))??;
        Self::new(socket).map_err(ConnectError::Host)
    }

    /// Takes over a socket, connected or bound.
    ///
    /// # Errors
    /// The system has no more descriptors, or there is no runtime.
    pub fn new(socket: DualDatagram) -> io::Result<Self> {
        let ready = UnixStream::from_std(StdUnixStream::from(socket.descriptor()?))?;
        Ok(Self { socket, ready })
    }

    /// The socket itself: to switch, to hold, to look.
    pub fn socket(&self) -> &DualDatagram {
        &self.socket
    }

    /// Sends one datagram to the peer that this socket is connected to.
    ///
    /// # Errors
    /// As [`DualDatagram::send_to_until`].
    pub async fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.send_to(bytes, PeerId::CONNECTED).await
    }

    /// Sends one datagram to this peer. While the system's buffer is full it is tried again each
    /// millisecond: that is over as soon as the device has sent some.
    ///
    /// # Errors
    /// As [`DualDatagram::send_to_until`].
    pub async fn send_to(&self, bytes: &[u8], peer: PeerId) -> io::Result<()> {
        loop {
            let sent = at_once(self.socket.send_to_until(bytes, peer, Some(clock::now())));
            if !would_wait(&sent) {
                return sent;
            }
            let pause = spawn_blocking(|| clock::sleep(Span::from_millis(1)));
            pause.await.map_err(io::Error::other)?;
        }
    }

    /// Waits for a datagram of the peer that this socket is connected to. Nothing is lost where it
    /// is cancelled.
    ///
    /// # Errors
    /// As [`DualDatagram::recv_from_until`].
    pub async fn recv(&self, out: &mut [u8]) -> io::Result<usize> {
        self.recv_from(out).await.map(|(count, _)| count)
    }

    /// As [`Self::recv`]; with the peer that it came from.
    ///
    /// # Errors
    /// As [`DualDatagram::recv_from_until`].
    pub async fn recv_from(&self, out: &mut [u8]) -> io::Result<(usize, PeerId)> {
        loop {
            self.ready.readable().await?;
            let received = self
                .ready
                .try_io(Interest::READABLE, || at_once(self.socket.recv_from_until(out, Some(clock::now()))));
            if !would_wait(&received) {
                return received;
            }
        }
    }
}

/// Of a call that must not wait.
fn at_once<T>(done: io::Result<T>) -> io::Result<T> {
    done.map_err(
        |error| if error.kind() == ErrorKind::TimedOut { ErrorKind::WouldBlock.into() } else { error },
    )
}

fn would_wait<T>(done: &io::Result<T>) -> bool {
    done.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

impl AsyncRead for AsyncDualStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.ready.poll_read_ready(cx))?;
            let free = out.initialize_unfilled();
            let read = || at_once(self.stream.recv_until(free, Some(clock::now())));
            let done = self.ready.try_io(Interest::READABLE, read);
            if !would_wait(&done) {
                return Poll::Ready(done.map(|count| out.advance(count)));
            }
        }
    }
}

impl AsyncWrite for AsyncDualStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.ready.poll_write_ready(cx))?;
            let write = || at_once(self.stream.send_vectored_until(parts, Some(clock::now())));
            let done = self.ready.try_io(Interest::WRITABLE, write);
            if !would_wait(&done) {
                return Poll::Ready(done);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready((&self.stream).flush())
    }

    /// Ends this direction; what was written still goes on its way.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.shutdown(Shutdown::Write);
        Poll::Ready(Ok(()))
    }
}
