//! A responder whose page comes over TLS, as browsers meet it.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use netaware_io::clock;
use netaware_server::{Config, Fingerprint, Identity, Server, Stopper};
use netaware_units::Span;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

type Tls = StreamOwned<ClientConnection, TcpStream>;

struct Responder {
    address: SocketAddr,
    client: Arc<ClientConfig>,
    fingerprint: Fingerprint,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
    _folder: TempDir,
}

impl Responder {
    fn start() -> Self {
        Self::with(Config::default())
    }

    fn with(config: Config) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let identity = Identity::kept(&folder.path().join("serve.pem"), &netaware_server::names()).unwrap();
        let fingerprint = identity.fingerprint();
        let bind = vec![Ipv4Addr::LOCALHOST.into()];
        let config = Config { port: 0, bind, identity: Some(identity), ..config };
        let server = Server::bind(config).unwrap();
        assert_eq!(server.fingerprint(), Some(fingerprint));
        let (address, stopper) = (server.addresses()[0], server.stopper());
        let thread = Some(std::thread::spawn(move || server.run().unwrap()));
        let client = Arc::new(netaware_tls::pinned(Some(fingerprint)).unwrap());
        Self { address, client, fingerprint, stopper, thread, _folder: folder }
    }

    fn plain(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream
    }

    fn connect(&self) -> Tls {
        let connection = ClientConnection::new(self.client.clone(), "localhost".try_into().unwrap()).unwrap();
        StreamOwned::new(connection, self.plain())
    }

    fn socket(&self, path: &str) -> WebSocket<Tls> {
        let request = format!("wss://{}{path}", self.address).into_client_request().unwrap();
        match tungstenite::client(request, self.connect()) {
            Ok((socket, _)) => socket,
            Err(why) => panic!("{path}: {why}"),
        }
    }

    fn session(&self) -> Session {
        let mut session = Session { control: self.socket("/control"), token: String::new() };
        session.say(&json!({"type": "hello", "version": 1, "software": "test", "nonce": "0".repeat(32)}));
        session.hear("welcome")["token"].as_str().unwrap().clone_into(&mut session.token);
        session.say(&json!({"type": "reserve", "expected": 1_000_000_000_u64}));
        session.hear("admitted");
        session
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            // A second panic while a test fails would hide why it fails.
            assert!(ended.is_ok() || std::thread::panicking(), "the responder's thread panicked");
        }
    }
}

struct Session {
    control: WebSocket<Tls>,
    token: String,
}

impl Session {
    fn say(&mut self, message: &Value) {
        self.control.send(Message::text(message.to_string())).unwrap();
    }

    fn hear(&mut self, kind: &str) -> Value {
        let deadline = clock::now() + Span::from_secs(30);
        loop {
            assert!(clock::now() < deadline, "no {kind} within 30 s");
            let message: Value = match self.control.read().unwrap() {
                Message::Text(text) => serde_json::from_str(&text).unwrap(),
                _ => continue,
            };
            if message["type"] == kind {
                return message;
            }
            assert_ne!(message["type"], "error", "{message}");
        }
    }

    fn open(&mut self, plan: &Value) {
        self.say(&json!({"type": "open", "test": 1, "plan": plan}));
        self.hear("opened");
    }

    fn stream(&self, path: &str, number: u16) -> String {
        format!("{path}?token={}&test=1&stream={number}", self.token)
    }
}

fn ask(mut stream: impl Read + Write, request: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn the_page_comes_encrypted_and_says_which_certificate_it_has() {
    let responder = Responder::start();
    let host = responder.address;
    let page =
        ask(responder.connect(), &format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let about = ask(
        responder.connect(),
        &format!("GET /api/v1/about HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
    );
    let about: Value = serde_json::from_str(about.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(about["secure"], true);
    assert_eq!(about["certificate"], responder.fingerprint.to_string());
}

#[test]
fn a_browser_without_encryption_is_led_there_and_a_program_is_told() {
    let responder = Responder::start();
    let host = responder.address;
    let led = ask(responder.plain(), &format!("GET /app.js?x=1 HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert!(led.starts_with("HTTP/1.1 307"), "{led}");
    assert!(led.contains(&format!("Location: https://{host}/app.js\r\n")), "{led}");
    for request in [
        format!("POST /api/v1/results HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n"),
        format!("GET /control HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n\r\n"),
        "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\n\r\n".to_owned(),
    ] {
        let told = ask(responder.plain(), &request);
        assert!(told.starts_with("HTTP/1.1 403") && told.contains("over TLS only"), "{told}");
        assert!(!told.contains("Location"), "{told}");
    }
}

#[test]
fn probers_speak_to_the_same_port_as_before() {
    let responder = Responder::start();
    let mut stream = responder.plain();
    let preface = netaware_wire::preface::Preface::new(netaware_wire::preface::Role::Control).emit();
    stream.write_all(&preface).unwrap();
    let mut answer = vec![0; preface.len()];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, preface);
}

#[test]
fn what_is_received_encrypted_is_counted_by_its_payload() {
    let responder = Responder::start();
    let mut session = responder.session();
    let bytes = 5_000_001;
    session
        .open(&json!({"kind": "tcp", "direction": "reverse", "streams": 1, "duration": 10_000_000_000_u64,
        "length": 65_536, "tick": 50_000_000, "bytes": bytes}));
    let mut stream = responder.connect();
    let path = session.stream("/data/down", 0);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", responder.address).unwrap();
    session.hear("ready");
    session.say(&json!({"type": "start", "test": 1}));
    let mut all = Vec::new();
    // To the closing word of TLS: an end without it would be an error.
    stream.read_to_end(&mut all).unwrap();
    drop(stream);
    let head = all.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    assert_eq!(all.len() - head, bytes);
    let finished = session.hear("finished");
    assert_eq!(
        (&finished["outcome"], &finished["report"]["bytes"]),
        (&json!("complete"), &json!(bytes)),
        "{finished}"
    );
}

#[test]
fn what_is_sent_encrypted_is_counted_by_the_payload_of_its_messages() {
    let responder = Responder::start();
    let mut session = responder.session();
    session.open(&json!({"kind": "tcp", "direction": "forward", "streams": 2, "duration": 400_000_000_u64,
        "length": 65_536, "tick": 50_000_000}));
    let mut sockets: Vec<_> =
        (0..2).map(|number| responder.socket(&session.stream("/data/up", number))).collect();
    session.hear("ready");
    session.say(&json!({"type": "start", "test": 1}));
    session.hear("started");
    for socket in &mut sockets {
        for _ in 0..50 {
            socket.send(Message::binary(vec![7; 65_536])).unwrap();
        }
        socket.close(None).unwrap();
        let _ = socket.flush();
    }
    assert_eq!(session.hear("finished")["report"]["bytes"], 2 * 50 * 65_536);
}

#[test]
fn echoes_come_back_encrypted_and_spaced_blocks_are_refused() {
    let responder = Responder::start();
    let mut session = responder.session();
    session.open(&json!({"kind": "tcp_echo", "length": 64, "duration": 5_000_000_000_u64}));
    let mut echo = responder.socket(&session.stream("/echo", 0));
    session.hear("ready");
    echo.send(Message::binary(vec![3; 64])).unwrap();
    let Message::Binary(reply) = echo.read().unwrap() else { panic!("no binary reply") };
    assert_eq!(&reply[16..], [3; 64]);
    // One at a time: who stays would have the next wait until one of both has been silent for too
    // long.
    drop((echo, session));
    let mut session = responder.session();
    session.open(&json!({"kind": "tcp", "direction": "reverse", "streams": 1, "duration": 400_000_000_u64,
        "length": 1000, "tick": 50_000_000, "block_spacing": 1_000_000}));
    let path = session.stream("/data/down", 0);
    let refused =
        ask(responder.connect(), &format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", responder.address));
    assert!(refused.starts_with("HTTP/1.1 409"), "{refused}");
}

#[test]
fn with_a_key_the_page_comes_but_what_it_asks_for_needs_a_session_that_knows_the_key() {
    let key = netaware_server::Key::new(*b"sesame").unwrap();
    let responder = Responder::with(Config { key: Some(key), ..Config::default() });
    let host = responder.address;
    let get = |path: &str, more: &str| {
        ask(
            responder.connect(),
            &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n"),
        )
    };
    assert!(get("/", "").starts_with("HTTP/1.1 200"));
    let strange = format!("Authorization: Bearer {}\r\n", "1".repeat(32));
    for path in ["/api/v1/server", "/api/v1/results"] {
        for more in ["", "Authorization: Bearer sesame\r\n", &strange] {
            let told = get(path, more);
            assert!(
                told.starts_with("HTTP/1.1 403") && told.contains("give the key"),
                "{path} {more}: {told}"
            );
        }
    }
    let mut session = Session { control: responder.socket("/control"), token: String::new() };
    session.say(&json!({"type": "hello", "version": 1, "software": "test", "nonce": "0".repeat(32)}));
    let nonce = session.hear("challenge")["nonce"].as_str().unwrap().parse().unwrap();
    let proof = netaware_wire::proof::client(b"sesame", nonce, netaware_wire::Token::default());
    session.say(&json!({"type": "authenticate", "proof": proof}));
    let welcome = session.hear("welcome");
    let bearer = |field: &str| format!("Authorization: Bearer {}\r\n", welcome[field].as_str().unwrap());
    let (of_session, mine) = (bearer("token"), bearer("owner"));
    for path in ["/api/v1/server", "/api/v1/results"] {
        let told = get(path, &of_session);
        assert!(told.starts_with("HTTP/1.1 403"), "a prober's token opened {path}: {told}");
    }
    let view = get("/api/v1/server", &mine);
    assert!(view.starts_with("HTTP/1.1 200") && view.contains("\"sessions\":[{"), "{view}");
    session.say(&json!({"type": "bye"}));
    let deadline = clock::now() + Span::from_secs(20);
    while session.control.read().is_ok() {
        assert!(clock::now() < deadline, "a session that has said good-bye goes on");
    }
    while !get("/api/v1/server", &mine).starts_with("HTTP/1.1 403") {
        assert!(clock::now() < deadline, "a session that has gone still opens doors");
        clock::sleep(Span::from_millis(100));
    }
    // Without TLS there is no page at all, and nothing leads to it but the redirection.
    let plain = ask(responder.plain(), &format!("GET /api/v1/server HTTP/1.1\r\nHost: {host}\r\n{mine}\r\n"));
    assert!(plain.starts_with("HTTP/1.1 307"), "{plain}");
}

#[test]
fn noise_behind_the_first_byte_of_tls_harms_nobody() {
    let responder = Responder::start();
    for noise in [&[22][..], &[22, 3, 1, 255, 255], &[22; 2000]] {
        let mut stream = responder.plain();
        stream.write_all(noise).unwrap();
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    responder.session();
}
