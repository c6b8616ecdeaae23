//! TCP connections that are tried again from another port.
//!
//! Where several links, servers or translators share the connections of a path, they share them by
//! address and port. One of them that is dead swallows its share of the connections, and TCP sends
//! the first segment of such a connection again from the same port, to the same place. So a
//! connection that is not answered gets company from another port, and the first that is answered
//! is taken. **Biased**: a connection whose first segments were lost by chance counts as
//! unanswered, too.
//!
//! Opening a connection does not fail where a firewall of this host drops its segments: it is given
//! up at the end of the patience, as with a host that is silent. Which of both it was is what the
//! system knows of that connection by then.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use netaware_io::clock;
use netaware_io::options::{self, ConnectError, SocketOptions};
use netaware_io::stop::StopFlag;
use netaware_units::Span;

/// A connection that was answered.
pub(crate) struct Dialled<T> {
    pub(crate) stream: T,
    /// From its own first segment on.
    pub(crate) took: Span,
    /// From the first segment of the first attempt on.
    pub(crate) in_all: Span,
    /// Connections from other ports that were begun before, and have not been answered.
    pub(crate) unanswered: u32,
}

/// Connects within `patience`, from another port where one is not answered. What a firewall of this
/// host drops is an error of its own, and not a silence of the other host.
pub(crate) fn dial(
    at: SocketAddr,
    options: &SocketOptions,
    patience: Span,
) -> Result<Dialled<TcpStream>, ConnectError> {
    dial_until(at, options, patience, &StopFlag::new())
}

/// Connects within `patience` in the same way, and gives up as `Interrupted` once `over` is raised.
pub(crate) fn dial_until(
    at: SocketAddr,
    options: &SocketOptions,
    patience: Span,
    over: &StopFlag,
) -> Result<Dialled<TcpStream>, ConnectError> {
    let options = options.clone();
    among(at, patience, AGAIN_AFTER, over, move |patience| options::connect_tcp(at, &options, patience))
}

/// The attempts, each in a thread of its own, which ends with its patience.
fn among<T: Send + 'static>(
    address: SocketAddr,
    patience: Span,
    again_after: Span,
    over: &StopFlag,
    connect: impl Fn(Span) -> Result<T, ConnectError> + Clone + Send + 'static,
) -> Result<Dialled<T>, ConnectError> {
    let dialled_at = clock::now();
    let until = dialled_at + patience;
    let (tell, told) = channel();
    let mut tell = Some(tell);
    // `refused` are those for which the system had no thread.
    let (mut begun, mut failed, mut refused) = (0_u32, 0_u32, 0_u32);
    loop {
        let left = (until - clock::now()).or_zero();
        let may_begin = begun < MOST_ATTEMPTS && (begun == 0 || left > again_after);
        tell = tell.filter(|_| may_begin);
        if let Some(tell) = &tell {
            let (tell, own, earlier) = (tell.clone(), connect.clone(), begun);
            let attempt = move || {
                let began_at = clock::now();
                let connected = own(left);
                // Who has another connection by now does not listen.
                let _ = tell.send((connected, clock::now() - began_at, earlier));
            };
            let spawned = std::thread::Builder::new().name("connect".into()).spawn(attempt);
            begun += u32::from(spawned.is_ok());
            refused += u32::from(spawned.is_err());
        }
        let failure =
            |kind: ErrorKind| ConnectError::System { operation: "connect to", address, source: kind.into() };
        match hear(&told, again_after, over) {
            // Those that were begun later have had less time.
            Ok((Ok(stream), took, earlier)) => {
                let in_all = (clock::now() - dialled_at).max(took);
                return Ok(Dialled { stream, took, in_all, unanswered: earlier });
            }
            Ok((Err(error), ..)) => {
                failed += 1;
                if failed >= begun || !is_unanswered(&error) {
                    return Err(error);
                }
            }
            Err(RecvTimeoutError::Timeout) if over.is_raised() => {
                return Err(failure(ErrorKind::Interrupted));
            }
            Err(RecvTimeoutError::Timeout) if begun == 0 && refused >= MOST_ATTEMPTS => {
                return Err(failure(ErrorKind::OutOfMemory));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(failure(ErrorKind::TimedOut)),
        }
    }
}

/// What the next attempt that ends tells within `patience`, or nothing once `over` is raised.
fn hear<T>(told: &Receiver<T>, patience: Span, over: &StopFlag) -> Result<T, RecvTimeoutError> {
    let until = clock::now() + patience;
    loop {
        let left = (until - clock::now()).or_zero();
        match told.recv_timeout(left.min(LOOKS_EACH).to_std()) {
            Err(RecvTimeoutError::Timeout) if left > LOOKS_EACH && !over.is_raised() => {}
            heard => return heard,
        }
    }
}

/// Whether nothing came of the other end.
pub(crate) fn is_unanswered(error: &ConnectError) -> bool {
    match error {
        ConnectError::System { source, .. } => {
            matches!(source.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock)
        }
        ConnectError::NotSent { .. } | ConnectError::Option { .. } => false,
    }
}

/// The first segment has been sent again by then (RFC 6298 §2.1: after one second).
const AGAIN_AFTER: Span = Span::from_millis(1500);
/// The system has sent the first segment again by then, with its timers' coarse steps: whether a
/// firewall of this host drops it is known by that.
pub(crate) const SENT_AGAIN_BY: Span = Span::from_millis(1200);
/// How often it is looked whether a connection is wanted any longer.
const LOOKS_EACH: Span = Span::from_millis(50);
/// Of four links one is dead: three connections meet it in one case of 64.
const MOST_ATTEMPTS: u32 = 3;

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn error(kind: ErrorKind) -> ConnectError {
        let address = SocketAddr::from(([192, 0, 2, 1], 1));
        ConnectError::System { operation: "connect to", address, source: kind.into() }
    }

    /// Connects by a script: what the n-th attempt meets.
    fn dialled(
        meets: impl Fn(u32, Span) -> Result<&'static str, ConnectError> + Clone + Send + 'static,
    ) -> (Result<Dialled<&'static str>, ConnectError>, u32) {
        let attempts = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&attempts);
        let connect = move |patience| meets(counter.fetch_add(1, Ordering::Relaxed), patience);
        let address = SocketAddr::from(([192, 0, 2, 1], 1));
        let result = among(address, Span::from_millis(200), Span::from_millis(10), &StopFlag::new(), connect);
        (result, attempts.load(Ordering::Relaxed))
    }

    fn never(patience: Span) -> Result<&'static str, ConnectError> {
        clock::sleep(patience);
        Err(error(ErrorKind::TimedOut))
    }

    #[test]
    fn a_connection_that_meets_the_dead_one_of_several_links_is_not_the_end() {
        let (result, _) = dialled(|n, patience| if n == 0 { never(patience) } else { Ok("another port") });
        let dialled = result.unwrap();
        assert_eq!((dialled.stream, dialled.unanswered), ("another port", 1));
        // The wait for the first one is part of it.
        assert!(dialled.in_all >= dialled.took + Span::from_millis(5), "{}", dialled.in_all);
    }

    #[test]
    fn the_first_connection_of_a_far_path_is_answered_though_another_one_was_begun() {
        let is_begun = Arc::new(AtomicU32::new(0));
        let (result, attempts) = dialled(move |n, patience| {
            if n > 0 {
                is_begun.store(1, Ordering::Relaxed);
                return never(patience);
            }
            while is_begun.load(Ordering::Relaxed) == 0 {
                clock::sleep(Span::from_millis(1));
            }
            Ok("first")
        });
        let dialled = result.unwrap();
        assert_eq!((dialled.stream, dialled.unanswered), ("first", 0));
        assert!(attempts > 1);
    }

    #[test]
    fn a_connection_that_is_answered_is_alone() {
        let (result, attempts) = dialled(|_, _| Ok("at once"));
        assert_eq!((result.unwrap().unanswered, attempts), (0, 1));
        // A refusal is an answer.
        let (result, attempts) = dialled(|_, _| Err(error(ErrorKind::ConnectionRefused)));
        assert!(result.is_err_and(|error| !is_unanswered(&error)) && attempts == 1);
    }

    /// A path that died was dialled for 8 s after its session had ended.
    #[test]
    fn a_connection_that_nobody_wants_any_longer_is_given_up_at_once() {
        let over = StopFlag::new();
        over.raise();
        let (_tell, told) = channel::<()>();
        assert_eq!(hear(&told, Span::from_secs(3600), &over), Err(RecvTimeoutError::Timeout));
        let address = SocketAddr::from(([192, 0, 2, 1], 1));
        let hour = Span::from_secs(3600);
        let result = among(address, hour, hour, &over, |_| -> Result<(), _> {
            clock::sleep(Span::from_millis(200));
            Err(error(ErrorKind::TimedOut))
        });
        let kind = result.err().map(|error| match error {
            ConnectError::System { source, .. } => source.kind(),
            ConnectError::NotSent { .. } | ConnectError::Option { .. } => ErrorKind::Other,
        });
        assert_eq!(kind, Some(ErrorKind::Interrupted));
    }

    /// "connect: no answer within 5.00 s; check that the host is up", of a SYN that this host's own
    /// firewall dropped.
    #[test]
    fn what_this_hosts_own_firewall_drops_is_not_a_silence_of_the_other_host() {
        let (result, _) = dialled(|_, _| {
            let address = SocketAddr::from(([192, 0, 2, 1], 1));
            Err(ConnectError::NotSent { address, source: std::io::Error::from_raw_os_error(1) })
        });
        let error = result.err().unwrap();
        assert!(!is_unanswered(&error));
        let said = error.to_string();
        assert!(said.starts_with("nothing could be sent to 192.0.2.1:1: "), "{said}");
    }

    #[test]
    fn a_host_that_is_gone_is_given_up_once_and_in_time() {
        let began_at = clock::now();
        let (result, attempts) = dialled(|_, patience| never(patience));
        assert!(result.is_err_and(|error| is_unanswered(&error)));
        assert_eq!(attempts, MOST_ATTEMPTS);
        assert!(clock::now() - began_at >= Span::from_millis(200));
    }
}
