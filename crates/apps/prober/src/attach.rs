//! Joining data connections and UDP flows to a test of a session.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::Ordering;

use netaware_io::clock;
use netaware_io::options::{self, SocketOptions};
use netaware_io::probe_socket::is_refusal;
use netaware_units::Span;
use netaware_wire::Token;
use netaware_wire::datagram::{Header, Kind, Setup};
use netaware_wire::preface::{ATTACHED, Attach, Preface, Role};

use crate::dial::{Dialled, dial};
use crate::session::Session;
use crate::stage::Cause;

/// A UDP datagram of the set-up is repeated this often, at growing distances, before UDP counts as
/// blocked.
const KNOCK_WAITS: [Span; 6] = [
    Span::from_millis(100),
    Span::from_millis(200),
    Span::from_millis(400),
    Span::from_millis(600),
    Span::from_millis(600),
    Span::from_millis(600),
];

/// For connecting and for the answer, each: a first segment that is lost on a round trip of 1.2 s
/// comes after 3.6 s, a second one after 7.2 s more.
const ATTACH_PATIENCE: Span = Span::from_secs(8);

/// How many connections of `count` are made one after the other, the others beside them.
pub(crate) fn connects_in_turn(count: u16) -> i64 {
    i64::from(count.div_ceil(AT_A_TIME))
}

/// The same on this path: connecting and attaching take a round trip each.
fn attach_patience(session: &Session) -> Span {
    ATTACH_PATIENCE.max(session.patience())
}

/// How long each datagram of the set-up is waited for: as usual, and then for as long as an answer
/// may take on this path.
fn knock_waits(patience: Span) -> impl Iterator<Item = Span> {
    let usual: Span = KNOCK_WAITS.into_iter().sum();
    let more = (patience - usual).or_zero();
    KNOCK_WAITS.into_iter().chain((more > Span::ZERO).then_some(more))
}

/// How long opening a UDP flow takes where nothing is answered: its first question is all.
pub(crate) fn entry_patience(session: &Session) -> Span {
    knock_waits(flow_patience(session)).sum()
}

/// Where a round trip takes long, the usual repetitions are over before the first answer.
fn flow_patience(session: &Session) -> Span {
    let is_slow = session.longest_rtt().is_some_and(|rtt| rtt > SLOW);
    if is_slow { session.patience() } else { Span::ZERO }
}

/// Opens `count` data connections of a test, some at a time: one after the other they would take
/// two round trips each.
pub(crate) fn streams(
    session: &Session,
    options: &SocketOptions,
    test: u32,
    count: u16,
    role: Role,
) -> Result<Vec<TcpStream>, Cause> {
    let (at, token) = (session.link.peer(), session.token);
    let patience = attach_patience(session);
    let counted = &session.unanswered;
    let open = |stream| {
        let (stream, unanswered) = one_stream(at, options, Attach { token, test, stream }, role, patience)?;
        counted.fetch_add(unanswered, Ordering::AcqRel);
        Ok(stream)
    };
    let mut opened = Vec::with_capacity(usize::from(count));
    for first in (0..count).step_by(usize::from(AT_A_TIME)) {
        let group = first..count.min(first + AT_A_TIME);
        let results: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = group.map(|stream| scope.spawn(move || open(stream))).collect();
            let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
            joined
                .map(|done| done.unwrap_or_else(|_| Err(Cause::System("a thread panicked".into()))))
                .collect()
        });
        for result in results {
            opened.push(result?);
        }
    }
    Ok(opened)
}

/// Each has a thread of its own for a moment. The responder waits ten seconds for all of them: a
/// test of 512 streams has these within 15 round trips.
const AT_A_TIME: u16 = 64;

fn one_stream(
    at: SocketAddr,
    options: &SocketOptions,
    attach: Attach,
    role: Role,
    patience: Span,
) -> Result<(TcpStream, u32), Cause> {
    let Dialled { mut stream, unanswered, .. } =
        dial(at, options, patience).map_err(|e| Cause::System(e.to_string()))?;
    let system = |e: std::io::Error| Cause::System(format!("data connection {}: {e}", attach.stream));
    stream.set_read_timeout(Some(patience.to_std())).map_err(system)?;
    let mut opening = Vec::with_capacity(36);
    opening.extend_from_slice(&Preface::new(role).emit());
    opening.extend_from_slice(&attach.emit());
    stream.write_all(&opening).map_err(system)?;
    let mut answer = [0];
    stream.read_exact(&mut answer).map_err(system)?;
    if answer[0] != ATTACHED {
        return Err(Cause::Protocol(format!("data connection {} was not accepted", attach.stream)));
    }
    stream.set_read_timeout(None).map_err(system)?;
    Ok((stream, unanswered))
}

/// A round trip that the usual repetitions do not leave room for twice.
const SLOW: Span = Span::from_millis(600);

/// An attached UDP flow.
pub(crate) struct Flow {
    pub(crate) socket: UdpSocket,
    pub(crate) number: u32,
    /// Datagrams of the set-up that had to be sent again.
    pub(crate) repeats: u64,
    /// The longest that an answer of the set-up took, from its first question on.
    pub(crate) rtt: Span,
}

/// Knocks, repeats the cookie, and gets a flow number. Where UDP was found to be blocked it does
/// not try again: each try takes seconds.
pub(crate) fn flow(session: &Session, options: &SocketOptions, test: u32) -> Result<Flow, Cause> {
    if session.is_udp_blocked.load(Ordering::Acquire) {
        return Err(since_answered(Cause::UdpBlocked, session.udp_came()));
    }
    let began_at = clock::now();
    let entered = enter(session, options, test);
    match entered {
        Ok(flow) => {
            session.note_udp(ANSWERS_OF_AN_ENTRY);
            Ok(flow)
        }
        Err(cause @ (Cause::UdpBlocked | Cause::UdpRejected(_))) if session.link.heard_since(began_at) => {
            session.is_udp_blocked.store(true, Ordering::Release);
            Err(since_answered(cause, session.udp_came()))
        }
        // The control connection is silent as well: the path has failed, and not UDP alone.
        Err(Cause::UdpBlocked) => Err(Cause::UdpAndTcpSilent(clock::now() - began_at)),
        Err(cause) => Err(cause),
    }
}

/// A cookie and a number.
const ANSWERS_OF_AN_ENTRY: u64 = 2;

/// The same cause where UDP was answered before: its port is open, and it has ceased.
fn since_answered(cause: Cause, answers: u64) -> Cause {
    match cause {
        Cause::UdpBlocked if answers > 0 => Cause::UdpCeased(answers, None),
        Cause::UdpRejected(why) if answers > 0 => Cause::UdpCeased(answers, Some(why)),
        cause => cause,
    }
}

fn enter(session: &Session, options: &SocketOptions, test: u32) -> Result<Flow, Cause> {
    let socket =
        options::connect_udp(session.link.peer(), options).map_err(|e| Cause::System(e.to_string()))?;
    let knock = Setup { token: session.token, test, cookie: Token::default() };
    let patience = flow_patience(session);
    let cookie = ask(&socket, &knock.emit_request(Kind::Knock), Kind::Cookie, test, patience)?;
    let enter = Setup { cookie: cookie.setup.cookie, ..knock };
    let entered = ask(&socket, &enter.emit_request(Kind::Enter), Kind::Entered, test, patience)?;
    socket.set_read_timeout(None).map_err(|e| Cause::System(e.to_string()))?;
    let rtt = cookie.rtt.max(entered.rtt);
    Ok(Flow { socket, number: entered.flow, repeats: cookie.repeats + entered.repeats, rtt })
}

struct Answer {
    flow: u32,
    setup: Setup,
    repeats: u64,
    rtt: Span,
}

/// Repeats a question until the wanted answer comes.
fn ask(
    socket: &UdpSocket,
    question: &[u8],
    wanted: Kind,
    test: u32,
    patience: Span,
) -> Result<Answer, Cause> {
    let (mut refused, mut rejected, mut has_sent) = (None, None, false);
    let began_at = clock::now();
    for (repeats, wait) in (0..).zip(knock_waits(patience)) {
        match socket.send(question) {
            Ok(_) => has_sent = true,
            // A socket that has sent something hands over what ICMP said of that.
            Err(e) if has_sent && e.kind() != std::io::ErrorKind::PermissionDenied => rejected = Some(e),
            Err(e) => refused = Some(e),
        }
        if let Some((flow, setup)) = listen(socket, wanted, test, wait, &mut rejected) {
            return Ok(Answer { flow, setup, repeats, rtt: clock::now() - began_at });
        }
    }
    Err(match (rejected, refused) {
        // The question left this host, and somebody on the path rejected it.
        (Some(e), _) if has_sent => Cause::UdpRejected(e.to_string()),
        // This host's own firewall, or no route.
        (_, Some(e)) | (Some(e), None) => Cause::NotSent(format!("UDP: {e}")),
        (None, None) => Cause::UdpBlocked,
    })
}

fn listen(
    socket: &UdpSocket,
    wanted: Kind,
    test: u32,
    wait: Span,
    rejected: &mut Option<std::io::Error>,
) -> Option<(u32, Setup)> {
    let until = clock::now() + wait;
    let mut bytes = [0; 256];
    loop {
        let left = until - clock::now();
        if left.0 <= 0 {
            return None;
        }
        socket.set_read_timeout(Some(left.to_std())).ok()?;
        match socket.recv(&mut bytes) {
            Ok(len) => {
                let answer = Header::parse(&bytes[..len])
                    .and_then(|header| Setup::parse(&header, &bytes[..len]).map(|setup| (header, setup)));
                if let Ok((header, setup)) = answer
                    && header.kind == wanted
                    && setup.test == test
                {
                    return Some((header.flow, setup));
                }
            }
            Err(e) if is_refusal(&e) => *rejected = Some(e),
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn udp_that_was_answered_before_has_ceased_and_is_not_blocked() {
        assert_eq!(since_answered(Cause::UdpBlocked, 0), Cause::UdpBlocked);
        assert_eq!(since_answered(Cause::UdpBlocked, 202), Cause::UdpCeased(202, None));
        let rejected = || Cause::UdpRejected("refused".to_owned());
        assert_eq!(since_answered(rejected(), 0), rejected());
        assert_eq!(since_answered(rejected(), 3), Cause::UdpCeased(3, Some("refused".to_owned())));
        assert_eq!(since_answered(Cause::Stopped, 3), Cause::Stopped);
    }
}
