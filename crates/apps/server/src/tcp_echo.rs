//! Answers requests on a TCP connection, whatever their length, from memory that does not grow with
//! it.
//!
//! Up to 64 KiB a request without a response length of its own goes back as it came. All other
//! responses are made here, of a pattern that the asker can check, numbered from zero on each
//! connection. A request is complete when its last byte has been read; then the response begins.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use netaware_wire::pattern;

use crate::meter::Gate;
use crate::runner::spawn;

/// Answers until the connection closes; in a thread of its own, because what is measured is how
/// soon.
pub(crate) fn answer(
    stream: TcpStream,
    request: u32,
    response: Option<u32>,
    answered: Arc<AtomicU64>,
    gate: Gate,
    guard: impl Send + 'static,
) -> io::Result<()> {
    spawn("netaware-echo", move || {
        let _guard = guard;
        let (mut stream, request) = (stream, request as usize);
        // The end of the connection is the end of the test, whichever way it comes.
        let _ = match response {
            None => give_back(&mut stream, request, &gate, &answered),
            Some(response) => make(&mut stream, request, response as usize, &gate, &answered),
        };
    })
}

fn give_back<S: Read + Write>(
    stream: &mut S,
    length: usize,
    gate: &Gate,
    answered: &AtomicU64,
) -> io::Result<()> {
    let mut buf = vec![0; length];
    loop {
        stream.read_exact(&mut buf)?;
        gate.wait(2 * length)?;
        counted(answered, || stream.write_all(&buf))?;
    }
}

fn make<S: Read + Write>(
    stream: &mut S,
    request: usize,
    response: usize,
    gate: &Gate,
    answered: &AtomicU64,
) -> io::Result<()> {
    let mut buf = vec![0; request.max(response).min(PIECE)];
    for exchange in 0.. {
        for piece in pieces(request) {
            stream.read_exact(&mut buf[..piece.len])?;
        }
        gate.wait(request + response)?;
        counted(answered, || {
            pieces(response).try_for_each(|piece| {
                pattern::fill(&mut buf[..piece.len], exchange, piece.at);
                stream.write_all(&buf[..piece.len])
            })
        })?;
    }
    Ok(())
}

/// Counted first: the prober may have the answer, and ask for the count, before the last write
/// returns.
fn counted(answered: &AtomicU64, write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    answered.fetch_add(1, Ordering::AcqRel);
    write().inspect_err(|_| {
        answered.fetch_sub(1, Ordering::AcqRel);
    })
}

/// A part of a message.
struct Piece {
    at: u64,
    len: usize,
}

fn pieces(length: usize) -> impl Iterator<Item = Piece> {
    (0..length).step_by(PIECE).map(move |at| Piece { at: at as u64, len: PIECE.min(length - at) })
}

/// What is read and written at a time, and all the memory that a connection takes.
const PIECE: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection on which everything the prober says is there already.
    struct Wire {
        asked: io::Cursor<Vec<u8>>,
        said: Vec<u8>,
    }

    impl Read for Wire {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            self.asked.read(buf)
        }
    }

    impl Write for Wire {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            self.said.write(buf)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn wire(bytes: usize) -> Wire {
        Wire { asked: io::Cursor::new((0..bytes).map(|n| n as u8).collect()), said: Vec::new() }
    }

    #[test]
    fn a_response_of_its_own_length_is_the_pattern_of_its_exchange() {
        for (request, response) in [(1, 1), (1, 300_000), (300_000, 1), (65_536, 65_537), (64, 0)] {
            let (mut wire, answered) = (wire(request * 3 + request / 2), AtomicU64::new(0));
            assert!(
                make(&mut wire, request, response, &Gate::default(), &answered).is_err(),
                "the connection ends"
            );
            assert_eq!((answered.into_inner(), wire.said.len()), (3, 3 * response), "{request} B");
            for (exchange, said) in (0..3).zip(wire.said.chunks(response.max(1))) {
                assert!(
                    pattern::matches(said, exchange, 0),
                    "{request} B for {response} B, exchange {exchange}"
                );
            }
        }
    }

    #[test]
    fn without_a_length_of_its_own_the_request_comes_back() {
        let (mut wire, answered) = (wire(250), AtomicU64::new(0));
        assert!(give_back(&mut wire, 100, &Gate::default(), &answered).is_err());
        assert_eq!((answered.into_inner(), &wire.said[..]), (2, &wire.asked.get_ref()[..200]));
    }

    #[test]
    fn an_answer_that_cannot_leave_does_not_count() {
        struct Deaf;
        impl Read for Deaf {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                Ok(buf.len())
            }
        }
        impl Write for Deaf {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let answered = AtomicU64::new(0);
        assert!(make(&mut Deaf, 10, 10, &Gate::default(), &answered).is_err());
        assert_eq!(answered.into_inner(), 0);
    }
}
