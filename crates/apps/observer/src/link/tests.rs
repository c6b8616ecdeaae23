//! A link against collectors that restart, lie, are silent, slow, or somebody else.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

use netaware_units::ByteCount;
use netaware_wire::frame;
use netaware_wire::lmap::{FromCollector, FromProbe, PREFACE};
use netaware_wire::proof;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;
use crate::buffer::{Batch, BufferSettings};

const KEY: &[u8] = b"sesame";

/// The longest that anything here waits for the link.
const PATIENCE: Span = Span::from_secs(20);

trait Wire: Read + Write + Send {}
impl<T: Read + Write + Send> Wire for T {}

/// One connection as a collector sees it.
struct Guest {
    wire: Box<dyn Wire>,
    binding: Vec<u8>,
}

impl Guest {
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.wire.read_exact(&mut bytes).expect("the probe says something");
        bytes
    }

    fn hear(&mut self) -> FromProbe {
        let head = self.bytes(4).try_into().unwrap();
        let body = self.bytes(frame::body_len(head).unwrap());
        FromProbe::parse(&body).unwrap()
    }

    fn say(&mut self, message: &FromCollector) {
        self.wire.write_all(&frame::emit(message).unwrap()).unwrap();
    }

    /// Up to the probe's hello, and our proof.
    fn greet(&mut self, key: &[u8]) -> (FromProbe, String) {
        assert_eq!(self.bytes(8), PREFACE);
        let nonce = Token([7; 16]);
        self.say(&FromCollector::Challenge { nonce: nonce.to_string() });
        let hello = self.hear();
        let FromProbe::Hello { probe, nonce: theirs, proof: shown, .. } = &hello else { panic!("{hello:?}") };
        let theirs = theirs.parse().unwrap();
        assert_eq!(*shown, proof::fleet_probe(KEY, nonce, theirs, probe, &self.binding));
        let proof = proof::fleet_collector(key, nonce, theirs, probe, &self.binding);
        (hello, proof)
    }

    fn welcome(&mut self, taken: u64) -> FromProbe {
        let (hello, proof) = self.greet(KEY);
        self.say(&FromCollector::Welcome { proof, taken });
        hello
    }

    /// The next message that is no status. A link sends a status every few seconds, so the timeout
    /// of a read alone would not end this.
    fn hear_no_status(&mut self) -> FromProbe {
        let until = clock::now() + PATIENCE;
        loop {
            match self.hear() {
                FromProbe::Status(_) => assert!(clock::now() < until, "nothing but statuses came"),
                other => return other,
            }
        }
    }

    /// The next batch; what else is said is passed over.
    fn batch(&mut self) -> (u64, Vec<u8>, Vec<u8>) {
        let until = clock::now() + PATIENCE;
        loop {
            if let FromProbe::Batch { sequence, ipfix, report, .. } = self.hear() {
                let ipfix = self.bytes(ipfix as usize);
                return (sequence, ipfix, self.bytes(report as usize));
            }
            assert!(clock::now() < until, "no batch came");
        }
    }
}

struct Bench {
    listener: TcpListener,
    shared: Shared,
    news: Receiver<Heard>,
    stop: StopFlag,
    thread: Option<JoinHandle<()>>,
    folder: tempfile::TempDir,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop.raise();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking());
        }
    }
}

fn batch(fill: u8) -> Batch {
    Batch { ipfix: vec![fill; 3], report: vec![fill; 5], selections: BTreeMap::new() }
}

impl Bench {
    fn new(trust: Trust) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let settings = BufferSettings { folder: folder.path().to_owned(), most: ByteCount(1 << 20) };
        let shared = Shared::new(Buffer::open(settings).unwrap(), Arc::default());
        let (sender, news) = mpsc::channel();
        let identity = Identity {
            probe: "bern".to_owned(),
            key: Some(Key::new(KEY).unwrap()),
            abilities: vec!["volume".to_owned()],
            interfaces: vec!["eth0".to_owned()],
            addresses: Vec::new(),
        };
        let address = CollectorAddress { host: "127.0.0.1".into(), port: address.port(), tls: false };
        let link = Link { index: 0, address, trust, identity, shared: shared.clone(), news: sender };
        let stop = StopFlag::new();
        let told = stop.clone();
        let thread = Some(thread::spawn(move || link.run(&told)));
        Self { listener, shared, news, stop, thread, folder }
    }

    fn plain() -> Self {
        Self::new(Trust::Plain)
    }

    fn socket(&self) -> TcpStream {
        self.listener.set_nonblocking(true).unwrap();
        let until = clock::now() + PATIENCE;
        let socket = loop {
            match self.listener.accept() {
                Ok((socket, _)) => break socket,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
            assert!(clock::now() < until, "the link does not connect");
            clock::sleep(Span::from_millis(1));
        };
        socket.set_nonblocking(false).unwrap();
        socket.set_read_timeout(Some(PATIENCE.to_std())).unwrap();
        socket
    }

    fn guest(&self) -> Guest {
        Guest { wire: Box::new(self.socket()), binding: Vec::new() }
    }

    fn append(&self, fill: u8) {
        held(&self.shared.buffer).append(&batch(fill)).unwrap();
    }

    fn waiting(&self) -> u64 {
        held(&self.shared.buffer).waiting().0
    }

    /// Waits until so many batches wait. What a guest says is read some time after it was said.
    fn waits_with(&self, batches: u64) {
        let until = clock::now() + PATIENCE;
        while self.waiting() != batches {
            assert!(clock::now() < until, "{} batches wait and not {batches}", self.waiting());
            clock::sleep(Span::from_millis(1));
        }
    }

    fn lost(&self) -> String {
        let until = clock::now() + PATIENCE;
        loop {
            if let Heard::Lost(_, why) = self.news.recv_timeout(PATIENCE.to_std()).unwrap() {
                return why;
            }
            assert!(clock::now() < until, "the connection is not lost");
        }
    }
}

#[test]
fn batches_wait_until_they_are_taken_and_none_comes_twice_after_a_restart() {
    let bench = Bench::plain();
    bench.append(1);
    bench.append(2);
    let mut guest = bench.guest();
    guest.welcome(0);
    assert_eq!(guest.batch(), (1, vec![1; 3], vec![1; 5]));
    assert_eq!(guest.batch().0, 2);
    guest.say(&FromCollector::Taken { sequence: 1 });
    bench.append(3);
    assert_eq!(guest.batch().0, 3);
    bench.waits_with(2);
    // Batch 2 came to its disk, but it died before it could say so.
    drop(guest);
    let mut guest = bench.guest();
    guest.welcome(2);
    assert_eq!(guest.batch().0, 3);
    guest.say(&FromCollector::Taken { sequence: 3 });
    bench.append(4);
    assert_eq!(guest.batch().0, 4, "the link sends what comes later, too");
    bench.waits_with(1);
}

#[test]
fn a_collector_without_the_key_learns_nothing() {
    let bench = Bench::plain();
    bench.append(1);
    let mut guest = bench.guest();
    let (_, proof) = guest.greet(b"guessed");
    guest.say(&FromCollector::Welcome { proof, taken: 0 });
    assert!(bench.lost().contains("does not have this probe's key"));
    assert_eq!(guest.wire.read(&mut [0; 64]).unwrap(), 0, "nothing but the end was sent");
    assert_eq!(bench.waiting(), 1);
}

#[test]
fn a_collector_that_took_what_was_never_sent_is_not_believed() {
    let bench = Bench::plain();
    let mut guest = bench.guest();
    guest.welcome(0);
    bench.append(1);
    guest.batch();
    bench.append(2);
    assert_eq!(guest.batch().0, 2);
    guest.say(&FromCollector::Taken { sequence: 900 });
    assert!(bench.lost().contains("never sent"));
    assert_eq!(bench.waiting(), 2);
}

#[test]
fn damaged_and_oversized_messages_end_the_connection_and_later_types_do_not() {
    let bench = Bench::plain();
    let mut guest = bench.guest();
    guest.welcome(0);
    guest.wire.write_all(b"\0\0\0\x0f{\"type\":\"sing\"}").unwrap();
    bench.append(1);
    assert_eq!(guest.batch().0, 1);
    guest.wire.write_all(&[0xff; 8]).unwrap();
    let why = bench.lost();
    assert!(why.contains("over the limit"), "{why}");
}

#[test]
fn what_answers_with_another_protocol_is_named() {
    let bench = Bench::plain();
    let mut guest = bench.guest();
    guest.wire.write_all(b"\0\0\0\x05hello").unwrap();
    assert!(bench.lost().contains("no collector of ours"));
}

#[test]
fn a_refusal_is_told_and_its_wait_kept() {
    let bench = Bench::plain();
    let mut guest = bench.guest();
    guest.bytes(8);
    let began_at = clock::now();
    guest.say(&FromCollector::Refusal { why: "no probe 'bern' here".into(), again_after: Some(1) });
    assert!(bench.lost().ends_with("no probe 'bern' here"));
    bench.guest().welcome(0);
    assert!(clock::now() - began_at >= Span::from_secs(1), "it came back too soon");
}

#[test]
fn a_folder_from_a_backup_begins_anew() {
    let bench = Bench::plain();
    bench.append(1);
    bench.append(2);
    let mut guest = bench.guest();
    let FromProbe::Hello { incarnation: before, .. } = guest.welcome(50) else { panic!() };
    assert!(bench.lost().contains("older"));
    let mut guest = bench.guest();
    let FromProbe::Hello { incarnation, .. } = guest.welcome(0) else { panic!() };
    assert_ne!(incarnation, before);
    assert_eq!((guest.batch().0, guest.batch().0), (1, 2));
}

#[test]
fn instructions_starts_and_what_is_followed_go_both_ways() {
    let bench = Bench::plain();
    let mut guest = bench.guest();
    guest.welcome(0);
    let instruction =
        Instruction { number: 5, seed: "0".repeat(32), period_ms: 1000, ..Instruction::default() };
    guest.say(&FromCollector::Instruction(instruction.clone()));
    guest.say(&FromCollector::Start { task: "bulk".into(), run: 3 });
    let next = || bench.news.recv_timeout(PATIENCE.to_std()).unwrap();
    assert_eq!(next(), Heard::Joined(0));
    assert_eq!(next(), Heard::Instruction(0, Box::new(instruction)));
    assert_eq!(next(), Heard::Start(0, "bulk".into(), 3));
    let refused: BTreeMap<_, _> = [("rtt".to_owned(), "no interface eth9".to_owned())].into();
    held(&bench.shared.said).following = Some((5, refused.clone()));
    match guest.hear_no_status() {
        FromProbe::Following { instruction, refused: told } => {
            assert_eq!((instruction, told), (5, refused));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn after_a_kill_the_rest_is_sent_by_the_next_process() {
    let folder = {
        let bench = Bench::plain();
        bench.append(1);
        bench.append(2);
        let mut guest = bench.guest();
        guest.welcome(0);
        guest.batch();
        std::mem::replace(&mut { bench }.folder, tempfile::tempdir().unwrap())
    };
    let settings = BufferSettings { folder: folder.path().to_owned(), most: ByteCount(1 << 20) };
    let buffer = Buffer::open(settings).unwrap();
    assert_eq!((buffer.waiting().0, buffer.next()), (2, 3));
}

fn certificate() -> (Arc<ServerConfig>, String) {
    use sha2::Digest;
    let key = rcgen::KeyPair::generate().unwrap();
    let made = rcgen::CertificateParams::new(vec!["collector.test".to_owned()]).unwrap().self_signed(&key);
    let made = made.unwrap();
    let fingerprint: [u8; 32] = sha2::Sha256::digest(made.der()).into();
    let text: Vec<String> = fingerprint.iter().map(|byte| format!("{byte:02X}")).collect();
    let secret = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = netaware_tls::provider();
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.der().clone()], secret)
        .unwrap();
    (Arc::new(config), text.join(":"))
}

fn encrypted(bench: &Bench, config: Arc<ServerConfig>) -> Option<Guest> {
    let mut socket = bench.socket();
    let mut tls = ServerConnection::new(config).unwrap();
    while tls.is_handshaking() {
        tls.complete_io(&mut socket).ok()?;
    }
    let binding = tls.export_keying_material([0; 32], b"EXPORTER-Channel-Binding", Some(&[])).unwrap();
    Some(Guest { wire: Box::new(StreamOwned::new(tls, socket)), binding: binding.to_vec() })
}

#[test]
fn tls_by_fingerprint_carries_everything() {
    let (config, fingerprint) = certificate();
    let bench = Bench::new(Trust::tls(Judge::Fingerprint(&fingerprint), None).unwrap());
    let mut guest = encrypted(&bench, config).unwrap();
    guest.welcome(0);
    bench.append(1);
    assert_eq!(guest.batch(), (1, vec![1; 3], vec![1; 5]));
}

#[test]
fn another_certificate_is_refused() {
    let (config, _) = certificate();
    let bench = Bench::new(Trust::tls(Judge::Fingerprint(&"00".repeat(32)), None).unwrap());
    drop(encrypted(&bench, config));
    assert!(bench.lost().contains("TLS with the collector failed"));
}

#[test]
fn somebody_in_between_with_a_certificate_of_his_own_cannot_pass_proofs_on() {
    let (config, _) = certificate();
    let bench = Bench::new(Trust::tls(Judge::Key, None).unwrap());
    let mut guest = encrypted(&bench, config).unwrap();
    guest.bytes(8);
    guest.say(&FromCollector::Challenge { nonce: Token([7; 16]).to_string() });
    let FromProbe::Hello { nonce, probe, .. } = guest.hear() else { panic!() };
    // The true collector would make its proof over its own connection.
    let proof = proof::fleet_collector(KEY, Token([7; 16]), nonce.parse().unwrap(), &probe, &[9; 32]);
    guest.say(&FromCollector::Welcome { proof, taken: 0 });
    assert!(bench.lost().contains("does not have this probe's key"));
}
