//! WebSockets opened by the thousand, and filled by somebody who never reads: others are served as
//! before, and memory stays flat.
//!
//! An executable of its own, because memory is counted per process.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use netaware_io::clock;
use netaware_server::{Config, Server};
use netaware_units::Span;
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

/// More than strangers and sessions of one address may be.
const CONNECTIONS: usize = 700;
/// More than sockets and boxes between the two ends hold.
const MESSAGES: u32 = 400_000;
/// A flood of less than this many bytes would be no flood.
const MIN_FLOOD: usize = 100_000;
const FLOODER: Ipv4Addr = Ipv4Addr::LOCALHOST;
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

#[test]
fn floods_of_connections_messages_and_pings_and_readers_that_never_read_harm_nobody_else() {
    let bind = vec![FLOODER.into()];
    let server = Server::bind(Config { port: 0, bind, ..Config::default() }).unwrap();
    let (to, stopper) = (server.addresses()[0], server.stopper());
    let thread = std::thread::spawn(move || server.run());
    assert!(is_welcome(to, OTHER));
    let before = resident();
    for kind in [Flood::Messages, Flood::Pings, Flood::Pongs, Flood::Echoes] {
        let flooding = flooded(to, kind);
        assert!(is_welcome(to, OTHER), "another address during {kind:?}");
        assert_grew_little(&format!("{kind:?}"), before);
        drop(flooding);
    }
    // The first crowd fills allocators and caches, the second must not need more.
    crowd(to);
    let before = resident();
    crowd(to);
    assert_grew_little("the second crowd", before);
    stopper.stop();
    thread.join().expect("no panic").expect("it ran");
}

/// By much less than what a flood has sent.
fn assert_grew_little(what: &str, before: Option<u64>) {
    let (before, after) = before.zip(resident()).expect("Linux tells the resident memory");
    assert!(after < before + 16 * 1024, "{what}: resident memory grew from {before} to {after} KiB");
}

/// The oldest beyond the bound are closed, the others wait to be spoken to.
fn crowd(to: SocketAddr) {
    let opened: Vec<_> = (0..CONNECTIONS).filter_map(|_| socket(to, FLOODER, "/control").ok()).collect();
    let open = opened.iter().filter(|socket| is_open(socket.get_ref())).count();
    assert!((10..CONNECTIONS).contains(&open), "{open} of {} are open", opened.len());
    assert!(is_welcome(to, OTHER), "another address during {} connections", opened.len());
}

/// Whether the other end has not closed it.
fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let seen = stream.peek(&mut [0]);
    seen.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Flood {
    /// Each wants an answer.
    Messages,
    /// Of the WebSocket protocol: its library answers.
    Pings,
    /// Nobody asked for them.
    Pongs,
    Echoes,
}

/// Writes until it is closed or nobody takes more, and reads nothing; what it holds open then.
fn flooded(to: SocketAddr, kind: Flood) -> WebSocket<TcpStream> {
    let mut control = session(to, FLOODER);
    let mut flooding = if kind == Flood::Echoes { echoes(to, &mut control) } else { control.socket };
    flooding.get_ref().set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut written = 0;
    for n in 0..MESSAGES {
        let message = match kind {
            Flood::Messages => Message::text(json!({"type": "ping", "seq": n}).to_string()),
            Flood::Pings => Message::Ping(vec![7; 125].into()),
            Flood::Pongs => Message::Pong(vec![7; 125].into()),
            Flood::Echoes => Message::binary(vec![7; 1000]),
        };
        let bytes = message.len();
        if flooding.send(message).is_err() {
            break;
        }
        written += bytes;
    }
    assert!(written > MIN_FLOOD, "{kind:?}: only {written} bytes were taken");
    flooding
}

struct Session {
    socket: WebSocket<TcpStream>,
    token: String,
}

impl Session {
    fn hear(&mut self, kind: &str) -> Value {
        let deadline = clock::now() + Span::from_secs(30);
        loop {
            assert!(clock::now() < deadline, "no {kind} within 30 s");
            let Message::Text(text) = self.socket.read().unwrap() else { continue };
            let message: Value = serde_json::from_str(&text).unwrap();
            if message["type"] == kind {
                return message;
            }
            assert_ne!(message["type"], "error", "{message}");
        }
    }

    fn say(&mut self, message: &Value) {
        self.socket.send(Message::text(message.to_string())).unwrap();
    }
}

fn echoes(to: SocketAddr, session: &mut Session) -> WebSocket<TcpStream> {
    let plan = json!({"kind": "tcp_echo", "length": 1000, "duration": 30_000_000_000_u64});
    session.say(&json!({"type": "open", "test": 1, "plan": plan}));
    session.hear("opened");
    socket(to, FLOODER, &format!("/echo?token={}&test=1&stream=0", session.token)).unwrap()
}

/// A place that was just given up may not be free yet.
fn session(to: SocketAddr, from: Ipv4Addr) -> Session {
    let socket = (0..200).find_map(|_| {
        let opened = socket(to, from, "/control").ok();
        if opened.is_none() {
            clock::sleep(Span::from_millis(50));
        }
        opened
    });
    let mut session = Session { socket: socket.expect("a place"), token: String::new() };
    session.say(&json!({"type": "hello", "version": 1, "software": "flood", "nonce": "0".repeat(32)}));
    session.hear("welcome")["token"].as_str().unwrap().clone_into(&mut session.token);
    session
}

fn is_welcome(to: SocketAddr, from: Ipv4Addr) -> bool {
    !session(to, from).token.is_empty()
}

fn socket(to: SocketAddr, from: Ipv4Addr, path: &str) -> Result<WebSocket<TcpStream>, tungstenite::Error> {
    let stream = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    stream.bind(&SocketAddr::from((from, 0)).into())?;
    stream.connect(&to.into())?;
    let stream = TcpStream::from(stream);
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let request = format!("ws://{to}{path}").into_client_request()?;
    // What could not be written at once is not kept for later: the flood ends there.
    let config = WebSocketConfig::default().write_buffer_size(0);
    match tungstenite::client::client_with_config(request, stream, Some(config)) {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::HandshakeError::Failure(error)) => Err(error),
        Err(tungstenite::HandshakeError::Interrupted(_)) => unreachable!("the socket blocks"),
    }
}

/// Resident memory in KiB; absent outside Linux.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?.parse().ok()
}
