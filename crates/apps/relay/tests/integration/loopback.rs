//! Both ends on loopback, with plain sockets on either side of them.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use netaware_io::clock;
use netaware_record::IpVersion;
use netaware_relay::{Bound, Far, Forward, Handle, Key, Near, Settings};
use netaware_units::Span;

/// A relay that works until it is dropped.
struct Running {
    addresses: Vec<SocketAddr>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(bound: Bound) -> Self {
        let (addresses, handle) = (bound.addresses(), bound.handle());
        Self { addresses, handle, thread: Some(thread::spawn(move || bound.run())) }
    }

    fn end(&mut self) -> Span {
        let began_at = clock::now();
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
        clock::now() - began_at
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

fn settings(key: Option<&str>) -> Settings {
    let key = key.map(|key| Key::new(key.as_bytes()).unwrap());
    Settings { key, drain: Span::from_secs(2), ..Settings::default() }
}

fn far(server: u16, settings: Settings) -> Running {
    let forwards = vec![Forward { name: String::new(), host: "127.0.0.1".into(), port: server }];
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let accept = vec![(Ipv4Addr::LOCALHOST, free).into(), (Ipv6Addr::LOCALHOST, free).into()];
    Running::start(Bound::far(Far { accept, forwards, allow: Vec::new() }, settings).unwrap())
}

fn near(far: &Running, service: &str, settings: Settings) -> Running {
    let listen = vec![(Ipv4Addr::LOCALHOST, 0).into()];
    let port = far.addresses[0].port();
    let near = Near { listen, to: "127.0.0.1,::1".into(), port, service: service.into() };
    Running::start(Bound::near(near, settings).unwrap())
}

fn connect(near: &Running) -> TcpStream {
    let socket = TcpStream::connect(near.addresses[0]).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

/// A server that does `work` with each connection.
fn server(work: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let work = work.clone();
            thread::spawn(move || work(socket));
        }
    });
    port
}

/// A server that reports the first bytes of a connection, and then does `work` with it.
fn reporting_server(work: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> (u16, Receiver<()>) {
    let (report, reported) = channel();
    let port = server(move |socket| {
        if socket.peek(&mut [0]).is_ok() {
            let _ = report.send(());
        }
        work(socket);
    });
    (port, reported)
}

/// Until the server has bytes of a connection.
fn await_bytes(reported: &Receiver<()>) {
    reported.recv_timeout(Duration::from_secs(20)).expect("bytes reach the server");
}

/// Answers only when the whole request has come, with the bytes turned round.
fn turn_round(mut socket: TcpStream) {
    let mut bytes = Vec::new();
    if socket.read_to_end(&mut bytes).is_ok() {
        bytes.reverse();
        socket.write_all(&bytes).ok();
    }
}

fn bytes(count: usize, seed: u64) -> Vec<u8> {
    let mix = |n: u64| (n.wrapping_add(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    (0..count as u64).map(mix).collect()
}

/// Sends, ends its direction, reads to the end.
fn ask(mut socket: TcpStream, request: &[u8]) -> Vec<u8> {
    let mut sending = socket.try_clone().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            sending.write_all(request).unwrap();
            sending.shutdown(Shutdown::Write).unwrap();
        });
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).unwrap();
        answer
    })
}

#[test]
fn bytes_are_equal_over_switches_and_each_direction_ends_by_itself() {
    let far = far(server(turn_round), settings(Some("sesame")));
    let near = near(&far, "", settings(Some("sesame")));
    let request = bytes(40_000_000, 1);
    let changes = Changes::counted();
    let mut socket = connect(&near);
    // Each block goes on its way while the stream of both ends changes its version.
    let mut to = IpVersion::V4;
    for block in request.chunks(5_000_000) {
        let before = changes.load(Ordering::SeqCst);
        let deadline = clock::now() + Span::from_secs(20);
        near.handle.switch(to);
        socket.write_all(block).unwrap();
        let mut wished_at = clock::now();
        while changes.load(Ordering::SeqCst) == before {
            let now = clock::now();
            assert!(now < deadline, "the stream does not change its version");
            // A wish for the version that is in use, or for one that is not up yet, changes
            // nothing.
            if now - wished_at > Span::from_millis(300) {
                to = to.other();
                near.handle.switch(to);
                wished_at = now;
            }
            clock::sleep(Span::from_millis(5));
        }
        to = to.other();
    }
    socket.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).unwrap();
    answer.reverse();
    assert!(answer == request, "{} of {} bytes", answer.len(), request.len());
}

/// Counts how often a stream of this process is on another version, as its log says.
struct Changes(Arc<AtomicUsize>);

impl Changes {
    fn counted() -> Arc<AtomicUsize> {
        let count = Arc::new(AtomicUsize::new(0));
        tracing::subscriber::set_global_default(Self(count.clone())).unwrap();
        count
    }
}

impl tracing::Subscriber for Changes {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_event()
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = String::new();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            if field.name() == "message" {
                text = format!("{value:?}");
            }
        });
        if text.contains(": is on IPv") {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn many_connections_at_once_do_not_mix() {
    let far = far(server(turn_round), settings(None));
    let near = near(&far, "", settings(None));
    thread::scope(|scope| {
        for n in 0..40 {
            let socket = connect(&near);
            scope.spawn(move || {
                let request = bytes(100_000 + n as usize, n);
                let mut answer = ask(socket, &request);
                answer.reverse();
                assert!(answer == request, "connection {n}");
            });
        }
    });
}

#[test]
fn a_server_that_refuses_or_breaks_off_is_a_reset() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let breaks_off = server(|mut socket| {
        socket.read_exact(&mut [0; 1000]).ok();
        socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).ok();
    });
    for server in [nobody, breaks_off] {
        let far = far(server, settings(None));
        let near = near(&far, "", settings(None));
        let mut socket = connect(&near);
        socket.write_all(&[0; 1000]).ok();
        let read = socket.read(&mut [0; 10]).map_err(|error| error.kind());
        assert_eq!(read, Err(ErrorKind::ConnectionReset));
    }
}

#[test]
fn a_client_that_breaks_off_is_a_reset_for_the_server() {
    let (tell, told) = channel();
    let (server, reported) = reporting_server(move |mut socket| {
        let mut all = Vec::new();
        let _ = tell.send(socket.read_to_end(&mut all).map_err(|error| error.kind()));
    });
    let far = far(server, settings(None));
    let near = near(&far, "", settings(None));
    let mut socket = connect(&near);
    socket.write_all(b"half a reque").unwrap();
    await_bytes(&reported);
    socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
    drop(socket);
    let seen = told.recv_timeout(Duration::from_secs(10)).unwrap();
    assert_eq!(seen, Err(ErrorKind::ConnectionReset));
}

#[test]
fn without_the_key_nothing_is_carried() {
    let (tell, told) = channel();
    let server = server(move |_| tell.send(()).unwrap());
    let far = far(server, settings(Some("sesame")));
    for wrong in [Some("simsim"), None] {
        let near = near(&far, "", settings(wrong));
        let read = connect(&near).read(&mut [0; 10]).map_err(|error| error.kind());
        assert_eq!(read, Err(ErrorKind::ConnectionReset), "{wrong:?}");
    }
    assert!(told.try_recv().is_err(), "the server was connected to");
    // Nor does a near end with a key talk to a far end that has none.
    let open = self::far(self::server(turn_round), settings(None));
    let near = near(&open, "", settings(Some("sesame")));
    let read = connect(&near).read(&mut [0; 10]).map_err(|error| error.kind());
    assert_eq!(read, Err(ErrorKind::ConnectionReset));
}

#[test]
fn only_servers_of_the_command_line_are_connected_to() {
    let far = far(server(turn_round), settings(None));
    let near = near(&far, "another", settings(None));
    let read = connect(&near).read(&mut [0; 10]).map_err(|error| error.kind());
    assert_eq!(read, Err(ErrorKind::ConnectionReset));
}

#[test]
fn beyond_the_places_connections_wait_for_their_turn() {
    let (server, reported) = reporting_server(turn_round);
    let far = far(server, settings(None));
    let near = near(&far, "", Settings { max: 1, ..settings(None) });
    let mut first = connect(&near);
    first.write_all(b"first").unwrap();
    await_bytes(&reported);
    let mut second = connect(&near);
    second.write_all(b"second").unwrap();
    second.shutdown(Shutdown::Write).unwrap();
    second.set_read_timeout(Some(Duration::from_millis(700))).unwrap();
    let early = second.read(&mut [0; 10]).map_err(|error| error.kind());
    assert_eq!(early, Err(ErrorKind::WouldBlock));
    assert_eq!(ask(first, b""), b"tsrif");
    second.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut answer = Vec::new();
    second.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"dnoces");
}

#[test]
fn a_relay_that_is_told_to_stop_lets_open_connections_end() {
    let (server, reported) = reporting_server(turn_round);
    let mut far = far(server, settings(None));
    let mut near = near(&far, "", Settings { drain: Span::from_secs(10), ..settings(None) });
    let mut socket = connect(&near);
    socket.write_all(b"to the ").unwrap();
    await_bytes(&reported);
    near.handle.stop();
    let deadline = clock::now() + Span::from_secs(5);
    while TcpStream::connect(near.addresses[0]).is_ok() {
        assert!(clock::now() < deadline, "new connections are taken");
        clock::sleep(Span::from_millis(5));
    }
    assert_eq!(ask(socket, b"end"), b"dne eht ot");
    assert!(near.end() < Span::from_secs(5));
    far.end();
}

#[test]
fn a_relay_gives_up_what_does_not_end() {
    let (server, reported) = reporting_server(turn_round);
    let far = far(server, settings(None));
    let mut near = near(&far, "", Settings { drain: Span::from_millis(200), ..settings(None) });
    let mut socket = connect(&near);
    socket.write_all(b"never ends").unwrap();
    await_bytes(&reported);
    near.end();
    let read = socket.read(&mut [0; 10]).map_err(|error| error.kind());
    assert_eq!(read, Err(ErrorKind::ConnectionReset));
}

#[test]
fn what_nobody_reads_does_not_pile_up() {
    let server = server(|socket| {
        clock::sleep(Span::from_secs(60));
        drop(socket);
    });
    let far = far(server, settings(None));
    let mut near_settings = settings(None);
    near_settings.options.window = 1 << 20;
    let near = near(&far, "", near_settings);
    let mut socket = connect(&near);
    socket.set_write_timeout(Some(Duration::from_millis(1500))).unwrap();
    let mut taken = 0;
    while let Ok(count) = socket.write(&[0; 16_000]) {
        taken += count;
        // Socket buffers of two connections, two windows, blocks.
        assert!(taken < 64 << 20, "{taken} bytes and no end");
    }
}
