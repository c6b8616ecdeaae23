//! Exporter and listener over real sockets on loopback, and what a listener does with bad guests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};

use netaware_io::clock;
use netaware_ipfix::{ExportError, Exporter, Listener, Options, Over, Sink};
use netaware_record::IpVersion;
use netaware_record::passive::{FlowKey, VolumeRow};
use netaware_units::{ByteCount, Mono, Span, Wall};
use netaware_wire::ipfix::{Emitter, Found, Transport};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

const NOW: Wall = Wall(1_795_440_000_000_000_000);
const ANY: fn() -> SocketAddr = || ([127, 0, 0, 1], 0).into();

fn row(n: u64) -> VolumeRow {
    let key = FlowKey {
        version: Some(IpVersion::V4),
        source: Some("192.0.2.1".parse().unwrap()),
        destination_port: Some(n as u16),
        ..FlowKey::default()
    };
    VolumeRow {
        key,
        packets: n,
        bytes: ByteCount(n * 100),
        first_at: NOW,
        last_at: NOW,
        packets_error: 0,
        rest: false,
    }
}

/// A listener, and the flows that it heard of.
fn listen(options: &Options) -> (Listener, Arc<Mutex<Vec<VolumeRow>>>) {
    let heard: Arc<Mutex<Vec<VolumeRow>>> = Arc::default();
    let into = heard.clone();
    let sink: Sink = Arc::new(move |_, found| {
        if let Found::Flow(flow) = found {
            into.lock().unwrap().push(flow.row);
        }
    });
    (Listener::open(options, &sink).expect("a free port"), heard)
}

fn wait(what: &str, done: impl Fn() -> bool) {
    let deadline = clock::now() + Span::from_secs(10);
    while !done() {
        assert!(clock::now() < deadline, "{what}");
        clock::sleep(Span::from_millis(5));
    }
}

fn flows(emitter: &mut Emitter, out: &mut dyn FnMut(&[u8])) {
    (1..=100).for_each(|n| emitter.volume(&row(n), out));
}

fn certified() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = CertificateDer::from(made.cert.der().to_vec());
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let provider = netaware_tls::provider();
    let server = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(server), Arc::new(client))
}

#[test]
fn rows_arrive_over_each_transport() {
    let (server, client) = certified();
    let options =
        Options { udp: Some(ANY()), tcp: Some(ANY()), tls: Some((ANY(), server)), ..Options::default() };
    let (listener, heard) = listen(&options);
    let expected: Vec<VolumeRow> = (1..=100).map(row).collect();
    for over in [Over::Tcp, Over::Udp, Over::Tls] {
        let port = listener.address(over).unwrap().port();
        let host = if over == Over::Tls { "localhost" } else { "127.0.0.1" };
        let target = format!("{over}://{host}:{port}").parse().unwrap();
        let mut exporter = Exporter::new(target, Some(client.clone()), 7);
        exporter.send(clock::now(), NOW, &mut flows).unwrap();
        wait("all flows", || heard.lock().unwrap().len() >= 100);
        assert_eq!(std::mem::take(&mut *heard.lock().unwrap()), expected, "{over}");
        assert_eq!((exporter.counts().batches_lost, exporter.counts().datagrams_refused), (0, 0));
    }
    wait("all counts", || listener.totals().counts.records == 300);
    assert_eq!(listener.totals().counts.missing, 0);
}

#[test]
fn a_collector_whose_certificate_is_not_believed_gets_nothing() {
    let (server, _) = certified();
    let (_, stranger) = certified();
    let (listener, heard) = listen(&Options { tls: Some((ANY(), server)), ..Options::default() });
    let port = listener.address(Over::Tls).unwrap().port();
    let target = format!("tls://localhost:{port}").parse().unwrap();
    let mut exporter = Exporter::new(target, Some(stranger), 7);
    let sent = exporter.send(clock::now(), NOW, &mut flows);
    assert!(matches!(sent, Err(ExportError::Tls { .. })), "{sent:?}");
    assert!(heard.lock().unwrap().is_empty());
}

#[test]
fn a_collector_that_comes_back_is_told_the_templates_again() {
    let (listener, heard) = listen(&Options { tcp: Some(ANY()), ..Options::default() });
    let at = listener.address(Over::Tcp).unwrap();
    let mut exporter = Exporter::new(format!("tcp://{at}").parse().unwrap(), None, 7);
    exporter.send(clock::now(), NOW, &mut flows).unwrap();
    wait("the first batch", || heard.lock().unwrap().len() == 100);
    drop(listener);
    // A kernel takes what comes just after the other end went, so the loss may show one batch late.
    let mut now = clock::now();
    let deadline = now + Span::from_secs(10);
    while exporter.send(now, NOW, &mut flows).is_ok() {
        assert!(now < deadline, "no break is seen");
        clock::sleep(Span::from_millis(5));
        now = clock::now();
    }
    now += Span::from_secs(1);
    let back = Options { tcp: Some(at), ..Options::default() };
    let (_listener, heard) = listen(&back);
    exporter.send(now, NOW, &mut flows).unwrap();
    wait("the batch after", || heard.lock().unwrap().len() == 100);
    assert_eq!(exporter.counts().connections, 2);
}

#[test]
fn attempts_are_not_made_too_often() {
    let free = UdpSocket::bind(ANY()).unwrap().local_addr().unwrap();
    let mut exporter = Exporter::new(format!("tcp://{free}").parse().unwrap(), None, 7);
    let begin = Mono(1_000_000_000_000);
    let mut at = |ms: i64| exporter.send(begin + Span::from_millis(ms), NOW, &mut flows).unwrap_err();
    assert!(matches!(at(0), ExportError::Connect { .. }));
    assert!(matches!(at(999), ExportError::Waiting { .. }));
    assert!(matches!(at(1000), ExportError::Connect { .. }));
    assert!(matches!(at(2999), ExportError::Waiting { .. }));
    assert!(matches!(at(3000), ExportError::Connect { .. }));
    assert_eq!(exporter.counts().batches_lost, 5);
}

#[test]
fn connections_are_bounded_and_strangers_thrown_out() {
    let options = Options { tcp: Some(ANY()), connections: 2, ..Options::default() };
    let (listener, heard) = listen(&options);
    let at = listener.address(Over::Tcp).unwrap();
    let mut idle = [TcpStream::connect(at).unwrap(), TcpStream::connect(at).unwrap()];
    wait("two places taken", || listener.totals().connections == 2);
    let mut third = TcpStream::connect(at).unwrap();
    assert_eq!(third.read(&mut [0; 1]).unwrap_or(0), 0, "a third is closed");
    idle[0].write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(idle[0].read(&mut [0; 1]).unwrap_or(0), 0, "a browser is closed");
    wait("a place given back", || listener.totals().connections == 1);
    assert_eq!((listener.totals().refused, listener.totals().foreign), (1, 1));
    let mut exporter = Exporter::new(format!("tcp://{at}").parse().unwrap(), None, 7);
    exporter.send(clock::now(), NOW, &mut flows).unwrap();
    wait("who is left is heard", || heard.lock().unwrap().len() == 100);
}

#[test]
fn exporters_over_datagrams_are_bounded() {
    let options = Options { udp: Some(ANY()), exporters: 3, ..Options::default() };
    let (listener, heard) = listen(&options);
    let at = listener.address(Over::Udp).unwrap();
    let mut message = Vec::new();
    let mut emitter = Emitter::new(1, 512, Transport::Datagrams);
    emitter.begin(NOW, &mut |_| {});
    emitter.volume(&row(1), &mut |_| {});
    emitter.finish(&mut |bytes| message.extend_from_slice(bytes));
    let sockets: Vec<UdpSocket> = (0..5).map(|_| UdpSocket::bind(ANY()).unwrap()).collect();
    for socket in &sockets {
        socket.send_to(b"not this protocol", at).unwrap();
        socket.send_to(&message, at).unwrap();
    }
    wait("all datagrams", || listener.totals().refused == 5 + 2 && heard.lock().unwrap().len() == 3);
    assert_eq!(listener.totals().exporters, 3);
}

#[test]
fn a_victim_whose_address_is_forged_is_sent_nothing_by_a_listener_for_datagrams() {
    let (listener, heard) = listen(&Options { udp: Some(ANY()), ..Options::default() });
    let at = listener.address(Over::Udp).unwrap();
    let mut message = Vec::new();
    let mut emitter = Emitter::new(1, 512, Transport::Datagrams);
    emitter.begin(NOW, &mut |_| {});
    emitter.volume(&row(1), &mut |_| {});
    emitter.finish(&mut |bytes| message.extend_from_slice(bytes));
    // A whole message, its header alone, one that claims another length, no message, and nothing.
    let mut longer = message.clone();
    longer.push(0);
    let kinds = [&message[..], &message[..16], &longer[..], &b"not this protocol"[..], &[]];
    // The victim's own socket stands for a forged source.
    let victim = UdpSocket::bind(ANY()).unwrap();
    for _ in 0..100 {
        for bytes in kinds {
            victim.send_to(bytes, at).unwrap();
        }
        clock::sleep(Span::from_millis(1));
    }
    wait("a flow", || !heard.lock().unwrap().is_empty());
    victim.set_read_timeout(Some(std::time::Duration::from_secs(3))).unwrap();
    assert!(victim.recv(&mut [0; 2000]).is_err(), "it was sent something");
}
