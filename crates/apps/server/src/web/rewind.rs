//! A connection some of whose bytes have been read already, because they had to say what it is.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Reads `before` first.
#[derive(Debug)]
pub(super) struct Rewind<S> {
    before: Vec<u8>,
    taken: usize,
    stream: S,
}

impl<S> Rewind<S> {
    pub(super) fn new(before: Vec<u8>, stream: S) -> Self {
        Self { before, taken: 0, stream }
    }

    /// The connection, if all that had been read before has been read again.
    pub(super) fn into_inner(self) -> Option<S> {
        self.before.is_empty().then_some(self.stream)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewind<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = &self.before[self.taken..];
        if rest.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, into);
        }
        let count = rest.len().min(into.remaining());
        into.put_slice(&rest[..count]);
        self.taken += count;
        if self.taken == self.before.len() {
            (self.before, self.taken) = (Vec::new(), 0);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewind<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
