//! Joining data connections and UDP flows to a test of a session.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};

use netaware_io::clock;
use netaware_io::options::{self, SocketOptions};
use netaware_units::Span;
use netaware_wire::Token;
use netaware_wire::datagram::{Header, Kind, Setup};
use netaware_wire::preface::{ATTACHED, Attach, Preface, Role};

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
    let open = |stream| one_stream(at, options, Attach { token, test, stream }, role);
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
) -> Result<TcpStream, Cause> {
    let mut stream =
        options::connect_tcp(at, options, ATTACH_PATIENCE).map_err(|e| Cause::System(e.to_string()))?;
    let system = |e: std::io::Error| Cause::System(format!("data connection {}: {e}", attach.stream));
    stream.set_read_timeout(Some(ATTACH_PATIENCE.to_std())).map_err(system)?;
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
    Ok(stream)
}

/// An attached UDP flow.
pub(crate) struct Flow {
    pub(crate) socket: UdpSocket,
    pub(crate) number: u32,
    /// Datagrams of the set-up that had to be sent again.
    pub(crate) repeats: u64,
}

/// Knocks, repeats the cookie, and gets a flow number.
pub(crate) fn flow(session: &Session, options: &SocketOptions, test: u32) -> Result<Flow, Cause> {
    let socket =
        options::connect_udp(session.link.peer(), options).map_err(|e| Cause::System(e.to_string()))?;
    let knock = Setup { token: session.token, test, cookie: Token::default() };
    let cookie = ask(&socket, &knock.emit_request(Kind::Knock), Kind::Cookie, test)?;
    let enter = Setup { cookie: cookie.setup.cookie, ..knock };
    let entered = ask(&socket, &enter.emit_request(Kind::Enter), Kind::Entered, test)?;
    socket.set_read_timeout(None).map_err(|e| Cause::System(e.to_string()))?;
    Ok(Flow { socket, number: entered.flow, repeats: cookie.repeats + entered.repeats })
}

struct Answer {
    flow: u32,
    setup: Setup,
    repeats: u64,
}

/// Repeats a question until the wanted answer comes.
fn ask(socket: &UdpSocket, question: &[u8], wanted: Kind, test: u32) -> Result<Answer, Cause> {
    let mut refused = None;
    for (repeats, wait) in (0..).zip(KNOCK_WAITS) {
        if let Err(e) = socket.send(question) {
            refused = Some(e);
        }
        if let Some((flow, setup)) = listen(socket, wanted, test, wait, &mut refused) {
            return Ok(Answer { flow, setup, repeats });
        }
    }
    Err(match refused {
        Some(e) => Cause::System(format!("UDP: {e}")),
        None => Cause::UdpBlocked,
    })
}

fn listen(
    socket: &UdpSocket,
    wanted: Kind,
    test: u32,
    wait: Span,
    refused: &mut Option<std::io::Error>,
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
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionRefused => *refused = Some(e),
            Err(_) => return None,
        }
    }
}
