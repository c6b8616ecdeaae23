//! A connection whose client has to take what it asked for: a write that makes no progress for a
//! while fails.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Limits how long each write waits for the client; reads are not limited here.
#[derive(Debug)]
pub(super) struct Patience<S> {
    stream: S,
    /// Runs while a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
    longest: Duration,
}

impl<S> Patience<S> {
    pub(super) fn new(stream: S, longest: Duration) -> Self {
        Self { stream, waiting: None, longest }
    }

    pub(super) fn into_inner(self) -> S {
        self.stream
    }

    /// Passes on what a write came to, or that it has waited for too long.
    fn judge<T>(&mut self, context: &mut Context<'_>, wrote: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if wrote.is_ready() {
            self.waiting = None;
            return wrote;
        }
        let longest = self.longest;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(longest)));
        waiting.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patience<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patience<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, wrote)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judge(context, shut)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    fn within<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
    }

    #[test]
    fn a_client_that_reads_nothing_is_let_go_and_a_slow_one_is_not() {
        within(async {
            let (near, mut far) = tokio::io::duplex(16);
            let mut near = Patience::new(near, Duration::from_millis(50));
            let reading = async {
                let mut bytes = [0; 16];
                for _ in 0..4 {
                    sleep(Duration::from_millis(20)).await;
                    far.read_exact(&mut bytes).await.unwrap();
                }
                far
            };
            let (wrote, _far) = tokio::join!(near.write_all(&[0; 64]), reading);
            assert!(wrote.is_ok(), "each write waits for 20 ms");
            let stuck = near.write_all(&[0; 64]).await;
            assert_eq!(stuck.unwrap_err().kind(), io::ErrorKind::TimedOut);
        });
    }
}
