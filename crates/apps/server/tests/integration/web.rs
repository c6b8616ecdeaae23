//! What a web browser can do with a responder, spoken to as a browser would.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use netaware_io::clock;
use netaware_record::Record;
use netaware_server::{Config, KeepError, Listed, Results, Sender, Server, Stopper};
use netaware_units::Span;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

struct Responder {
    address: SocketAddr,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
}

impl Responder {
    fn start() -> Self {
        Self::with(Config::default())
    }

    fn with(config: Config) -> Self {
        let bind = vec![Ipv4Addr::LOCALHOST.into()];
        let server = Server::bind(Config { port: 0, bind, ..config }).unwrap();
        let (address, stopper) = (server.addresses()[0], server.stopper());
        let thread = Some(std::thread::spawn(move || server.run().unwrap()));
        Self { address, stopper, thread }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream
    }

    /// Status line, headers and body of a request whose connection is then closed.
    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, path: &str, headers: &str) -> String {
        let host = self.address;
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n"))
    }

    fn socket(&self, path: &str) -> WebSocket<TcpStream> {
        self.try_socket(path, None).unwrap()
    }

    fn try_socket(
        &self,
        path: &str,
        origin: Option<&str>,
    ) -> Result<WebSocket<TcpStream>, tungstenite::Error> {
        let mut request = format!("ws://{}{path}", self.address).into_client_request().unwrap();
        if let Some(origin) = origin {
            request.headers_mut().insert("origin", origin.parse().unwrap());
        }
        match tungstenite::client(request, self.connect()) {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::HandshakeError::Failure(error)) => Err(error),
            Err(tungstenite::HandshakeError::Interrupted(_)) => unreachable!("the socket blocks"),
        }
    }

    fn session(&self) -> Session {
        let mut session = Session { control: self.socket("/control"), token: String::new() };
        session.say(&json!({"type": "hello", "version": 1, "software": "test", "nonce": "0".repeat(32)}));
        let welcome = session.hear("welcome");
        welcome["token"].as_str().unwrap().clone_into(&mut session.token);
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
    control: WebSocket<TcpStream>,
    token: String,
}

impl Session {
    fn say(&mut self, message: &Value) {
        self.control.send(Message::text(message.to_string())).unwrap();
    }

    /// The next message of that type; those of others are passed over, but for errors.
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

    fn open_tcp(&mut self, direction: &str, streams: u16, millis: u64) {
        self.say(&json!({"type": "reserve", "expected": 1_000_000_000_u64}));
        self.hear("admitted");
        let plan = json!({
            "kind": "tcp", "direction": direction, "streams": streams, "duration": millis * 1_000_000,
            "length": 65_536, "tick": 50_000_000,
        });
        self.say(&json!({"type": "open", "test": 1, "plan": plan}));
        self.hear("opened");
    }

    fn stream(&self, path: &str, number: u16) -> String {
        format!("{path}?token={}&test=1&stream={number}", self.token)
    }
}

#[test]
fn what_a_browser_receives_is_the_body_of_an_answer() {
    let responder = Responder::start();
    let mut session = responder.session();
    session.open_tcp("reverse", 2, 300);
    let mut streams: Vec<TcpStream> = (0..2)
        .map(|number| {
            let mut stream = responder.connect();
            let path = session.stream("/data/down", number);
            write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", responder.address).unwrap();
            stream
        })
        .collect();
    session.hear("ready");
    session.say(&json!({"type": "start", "test": 1}));
    let mut bodies = 0;
    for stream in &mut streams {
        let mut all = Vec::new();
        // A sender ends by a reset, so that nothing drains into the next measurement.
        let _ = stream.read_to_end(&mut all);
        let end = all.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        let head = str::from_utf8(&all[..end]).unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("application/octet-stream"), "{head}");
        bodies += all.len() - end;
    }
    let finished = session.hear("finished");
    assert_eq!(finished["outcome"], "complete");
    let sent = finished["report"]["bytes"].as_u64().unwrap() as usize;
    // What was in the queue at the end is dropped.
    assert!(bodies > 100_000 && bodies <= sent, "{bodies} of {sent}");
}

/// As browsers take connections that they had used before.
#[test]
fn a_connection_that_had_other_requests_before_becomes_a_stream() {
    let responder = Responder::start();
    let mut session = responder.session();
    session.open_tcp("reverse", 1, 200);
    let mut stream = responder.connect();
    for (path, end) in [("/api/v1/about", "}"), ("/manifest.webmanifest", "}\n"), ("/nothing", "}")] {
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", responder.address).unwrap();
        let mut answer = Vec::new();
        while !answer.windows(4).any(|window| window == b"\r\n\r\n") || !answer.ends_with(end.as_bytes()) {
            let mut part = [0; 2048];
            let count = stream.read(&mut part).unwrap();
            assert!(count > 0, "it was closed after {path}");
            answer.extend_from_slice(&part[..count]);
        }
    }
    let path = session.stream("/data/down", 0);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", responder.address).unwrap();
    session.hear("ready");
    session.say(&json!({"type": "start", "test": 1}));
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    assert!(
        all.starts_with(b"HTTP/1.1 200 OK\r\n"),
        "{:?}",
        String::from_utf8_lossy(&all[..50.min(all.len())])
    );
    assert!(all.len() > 100_000, "{}", all.len());
    assert_eq!(session.hear("finished")["outcome"], "complete");
    let nobody = format!("/data/down?token={}&test=1&stream=0", "1".repeat(32));
    let mut stream = responder.connect();
    write!(stream, "GET /nothing HTTP/1.1\r\nHost: {}\r\n\r\n", responder.address).unwrap();
    let mut first = [0; 2048];
    assert!(stream.read(&mut first).unwrap() > 0);
    write!(stream, "GET {nobody} HTTP/1.1\r\nHost: {}\r\n\r\n", responder.address).unwrap();
    let mut refused = String::new();
    stream.read_to_string(&mut refused).unwrap();
    assert!(refused.contains("HTTP/1.1 404") && refused.contains("Connection: close"), "{refused}");
}

#[test]
fn what_a_browser_sends_is_counted_by_the_payload_of_its_messages() {
    let responder = Responder::start();
    let mut session = responder.session();
    session.open_tcp("forward", 2, 400);
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
    let finished = session.hear("finished");
    assert_eq!(finished["report"]["as"], "tcp_receiver");
    assert_eq!(finished["report"]["bytes"], 2 * 50 * 65_536, "{finished}");
}

#[test]
fn echoes_come_back_behind_two_instants_and_end_with_their_test() {
    let responder = Responder::start();
    let mut session = responder.session();
    let plan = json!({"kind": "tcp_echo", "length": 64, "duration": 5_000_000_000_u64});
    session.say(&json!({"type": "open", "test": 1, "plan": plan}));
    session.hear("opened");
    let mut echo = responder.socket(&session.stream("/echo", 0));
    session.hear("ready");
    for n in 0..20_u8 {
        echo.send(Message::binary(vec![n; 64])).unwrap();
        let Message::Binary(reply) = echo.read().unwrap() else { panic!("no binary reply") };
        let at = |from: usize| u64::from_be_bytes(*reply[from..].first_chunk().unwrap());
        assert!(at(0) <= at(8) && at(0) > 0);
        assert_eq!(&reply[16..], [n; 64]);
    }
    session.say(&json!({"type": "stop", "test": 1}));
    assert_eq!(session.hear("finished")["report"]["answered"], 20);
    assert!(echo.read().is_err(), "the connection outlives its test");
}

#[test]
fn pages_of_others_measure_nothing_from_here() {
    let responder = Responder::start();
    for origin in ["http://evil.example", "null", "https://192.0.2.9:14233"] {
        let header = format!("Origin: {origin}\r\n");
        assert!(responder.get("/api/v1/about", &header).starts_with("HTTP/1.1 403"), "{origin}");
        let refused = responder.try_socket("/control", Some(origin));
        let Err(tungstenite::Error::Http(answer)) = refused else { panic!("{origin}: {refused:?}") };
        assert_eq!(answer.status(), 403);
        let path = format!("/data/down?token={}&test=1&stream=0", "0".repeat(32));
        assert!(responder.get(&path, &header).starts_with("HTTP/1.1 403"), "{origin}");
    }
    for name in ["evil.example", "evil.local", "evil.lan", "evil"] {
        let rebound = responder.ask(&format!("GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n"));
        assert!(rebound.starts_with("HTTP/1.1 403") && rebound.contains("--name NAME"), "{name}: {rebound}");
    }
}

/// It was refused even with a certificate of that name.
#[test]
fn behind_a_reverse_proxy_and_below_a_path_the_page_comes_by_the_name_that_the_owner_gave() {
    let names = vec!["https://example.com/speed/".parse().unwrap()];
    let responder = Responder::with(Config { names, ..Config::default() });
    let get = |path: &str| {
        responder.ask(&format!(
            "GET {path} HTTP/1.1\r\nHost: example.com\r\nOrigin: https://example.com\r\nConnection: close\r\n\r\n"
        ))
    };
    for path in ["/", "/speed/", "/speed/app.js", "/app.js", "/speed/api/v1/about"] {
        assert!(get(path).starts_with("HTTP/1.1 200"), "{path}");
    }
    let led = get("/speed");
    assert!(
        led.starts_with("HTTP/1.1 308") && led.to_ascii_lowercase().contains("location: /speed/\r\n"),
        "{led}"
    );
    assert!(get("/speedy/app.js").starts_with("HTTP/1.1 404"));
    // The test's connection is one of loopback, as a proxy's is.
    let refused = get("/speed/api/v1/server");
    assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("reverse proxy"), "{refused}");
    let unknown = get(&format!("/speed/data/down?token={}&test=1&stream=0", "1".repeat(32)));
    assert!(
        unknown.starts_with("HTTP/1.1 404"),
        "a stream of nobody is asked for below the path too: {unknown}"
    );
}

#[test]
fn the_page_comes_with_rules_that_keep_strange_scripts_out() {
    let responder = Responder::start();
    let page = responder.get("/", "");
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let lower = page.to_ascii_lowercase();
    assert!(
        lower.contains("content-security-policy: default-src 'none'") && !lower.contains("unsafe"),
        "{page}"
    );
    let about = responder.get("/api/v1/about", "");
    let body = about.split("\r\n\r\n").nth(1).unwrap();
    let about: Value = serde_json::from_str(body).unwrap();
    assert_eq!(about["port"], responder.address.port());
    assert_eq!(about["addresses"], json!(["127.0.0.1"]), "only that one is listened on");
}

#[test]
fn paths_that_lead_elsewhere_streams_of_nobody_and_other_methods_are_refused() {
    let responder = Responder::start();
    for path in ["/../Cargo.toml", "/%2e%2e/Cargo.toml", "/etc/passwd", "//", "/app.js/../../x"] {
        assert!(responder.get(path, "").starts_with("HTTP/1.1 404"), "{path}");
    }
    let nobody = format!("/data/down?token={}&test=1&stream=0", "1".repeat(32));
    assert!(responder.get(&nobody, "").starts_with("HTTP/1.1 404"));
    assert!(responder.get("/data/down?token=1", "").starts_with("HTTP/1.1 400"));
    let up = format!("/data/up?token={}&test=1&stream=0", "1".repeat(32));
    assert!(responder.get(&up, "").starts_with("HTTP/1.1 426"), "no WebSocket was asked for");
    let host = responder.address;
    let post = format!("POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    assert!(responder.ask(&post).starts_with("HTTP/1.1 405"));
}

#[test]
fn a_stream_that_does_not_fit_its_test_is_refused_and_harms_nothing() {
    let responder = Responder::start();
    let mut session = responder.session();
    session.open_tcp("forward", 1, 200);
    let wrong = responder.get(&session.stream("/data/down", 0), "");
    assert!(wrong.starts_with("HTTP/1.1 409"), "{wrong}");
    let mut right = responder.socket(&session.stream("/data/up", 0));
    session.hear("ready");
    session.say(&json!({"type": "start", "test": 1}));
    session.hear("started");
    right.send(Message::binary(vec![0; 1000])).unwrap();
    right.close(None).unwrap();
    assert_eq!(session.hear("finished")["report"]["bytes"], 1000);
}

#[test]
fn messages_beyond_their_bound_end_the_session() {
    let responder = Responder::start();
    let mut session = responder.session();
    let _ = session.control.send(Message::text("x".repeat(70_000)));
    let ended = loop {
        match session.control.read() {
            Ok(Message::Close(_)) => break None,
            Err(error) => break Some(error),
            Ok(_) => {}
        }
    };
    if let Some(tungstenite::Error::Io(error)) = &ended {
        let is_silent = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(!is_silent, "the session is still open: {error}");
    }
    // Others are served as before.
    responder.session();
}

#[test]
fn the_owner_sees_who_measures_who_waits_and_how_the_host_does() {
    let results: Option<Arc<dyn Results>> = Some(Arc::new(InMemory::default()));
    let responder = Responder::with(Config { results, ..Config::default() });
    assert!(post(&responder, &record().to_string(), "application/json").starts_with("HTTP/1.1 201"));
    let (mut first, mut second) = (responder.session(), responder.session());
    first.open_tcp("reverse", 1, 200);
    second.say(&json!({"type": "reserve", "expected": 7_000_000_000_u64}));
    second.hear("queued");
    let answer = responder.get("/api/v1/server", "");
    let view: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let sessions = view["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2, "{view}");
    assert_eq!(
        (&sessions[0]["software"], &sessions[0]["tests"][0]["what"]),
        (&json!("test"), &json!("tcp_down"))
    );
    assert_eq!(sessions[1]["tests"], json!([]));
    let queue = &view["queue"];
    assert_eq!((&queue["slots"], queue["held"].as_array().unwrap().len()), (&json!(1), 1));
    assert_eq!(queue["held"][0]["peers"], json!([sessions[0]["peer"]]));
    assert_eq!(queue["waiting"][0]["peers"], json!([sessions[1]["peer"]]));
    assert!(queue["waiting"][0]["expected"].as_u64().unwrap() <= 1_000_000_000, "{view}");
    assert_eq!(view["results"][0]["command"], "test");
    assert!(view["health"]["cores"].as_u64().unwrap() > 0);
    drop((first, second));
    let gone = || {
        let answer = responder.get("/api/v1/server", "");
        let view: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        view["sessions"] == json!([])
            && view["queue"]["held"] == json!([])
            && view["queue"]["waiting"] == json!([])
    };
    let deadline = clock::now() + Span::from_secs(20);
    while !gone() {
        assert!(clock::now() < deadline, "they stay");
        clock::sleep(Span::from_millis(100));
    }
}

#[test]
fn a_responder_with_a_key_has_no_page() {
    let key = netaware_server::Key::new(*b"sesame").unwrap();
    let responder = Responder::with(Config { key: Some(key), ..Config::default() });
    let mut stream = responder.connect();
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", responder.address);
    stream.write_all(request.as_bytes()).unwrap();
    let closed = stream.read(&mut [0]).map_err(|error| error.kind());
    assert!(matches!(closed, Ok(0) | Err(ErrorKind::ConnectionReset)), "it is not closed: {closed:?}");
}

/// A store that forgets.
#[derive(Debug, Default)]
struct InMemory(Mutex<Vec<Record>>);

impl Results for InMemory {
    fn list(&self, limit: u32) -> Result<Vec<Listed>, String> {
        let listed = |record: &Record| Listed {
            id: record.id,
            started_at: record.started_at,
            elapsed: record.elapsed,
            command: record.command.clone(),
            host: record.request.host.clone(),
            label: record.label.clone(),
        };
        Ok(self.0.lock().unwrap().iter().take(limit as usize).map(listed).collect())
    }

    fn get(&self, id: uuid::Uuid) -> Option<Record> {
        self.0.lock().unwrap().iter().find(|record| record.id == id).cloned()
    }

    fn keep(&self, record: &Record, _: Sender) -> Result<(), KeepError> {
        if self.get(record.id).is_some() {
            return Err(KeepError::Refused("it is there already".to_owned()));
        }
        self.0.lock().unwrap().push(record.clone());
        Ok(())
    }
}

/// The least that a record has.
fn record() -> Value {
    json!({
        "schema": 1, "id": "01990000-0000-7000-8000-000000000001", "software": "netaware-web 0.1.0", "command": "test",
        "started_at": 1, "started_at_utc": "1970-01-01T00:00:00Z", "elapsed": 1, "outcome": "complete",
        "request": {"host": "<script>alert(1)</script>", "port": 1, "own_responder": false}, "versions": [],
        "prober": {"name": "phone", "kernel": "", "cpu": "", "cores": 8, "software": "a browser"},
    })
}

fn post(responder: &Responder, body: &str, kind: &str) -> String {
    responder.ask(&format!(
        "POST /api/v1/results HTTP/1.1\r\nHost: {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        responder.address,
        body.len()
    ))
}

#[test]
fn results_of_pages_are_kept_where_the_owner_says_and_nowhere_else() {
    let without = Responder::start();
    assert!(post(&without, &record().to_string(), "application/json").starts_with("HTTP/1.1 403"));
    let results: Option<Arc<dyn Results>> = Some(Arc::new(InMemory::default()));
    let responder = Responder::with(Config { results, ..Config::default() });
    let kept = post(&responder, &record().to_string(), "application/json");
    assert!(kept.starts_with("HTTP/1.1 201"), "{kept}");
    let again = post(&responder, &record().to_string(), "application/json");
    assert!(again.starts_with("HTTP/1.1 409"), "{again}");
    let list = responder.get("/api/v1/results", "");
    assert!(
        list.contains("01990000-0000-7000-8000-000000000001") && list.contains("application/json"),
        "{list}"
    );
    let one = responder.get("/api/v1/results/01990000-0000-7000-8000-000000000001", "");
    let body: Value = serde_json::from_str(one.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(body["request"]["host"], "<script>alert(1)</script>");
    assert!(responder.get("/api/v1/results/../../etc/passwd", "").starts_with("HTTP/1.1 404"));
}

#[test]
fn results_that_are_none_are_refused_with_the_reason() {
    let results: Option<Arc<dyn Results>> = Some(Arc::new(InMemory::default()));
    let responder = Responder::with(Config { results, ..Config::default() });
    for (body, kind, status) in [
        ("{}", "application/json", "422"),
        ("not json", "application/json", "422"),
        (&*record().to_string(), "text/plain", "415"),
        (&*"[".repeat(600_000), "application/json", "413"),
        (&*"[".repeat(100_000), "application/json", "422"),
    ] {
        let answer = post(&responder, body, kind);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {answer}");
    }
}
