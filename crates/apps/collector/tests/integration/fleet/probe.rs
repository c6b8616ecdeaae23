//! The other end of the protocol, with every freedom to misbehave.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use netaware_io::clock;
use netaware_record::passive::{
    CaptureHealth, ClockState, DigestRow, InterfaceCapture, PacketSighting, Period, ProbeReport, Row, TaskRow,
};
use netaware_tls::Trust;
use netaware_units::{Span, Wall};
use netaware_wire::ipfix::sightings::{self, Selection};
use netaware_wire::lmap::{FromCollector, FromProbe, Instruction, PREFACE};
use netaware_wire::{Token, frame, proof};
use rustls::StreamOwned;

/// A connection, encrypted or not.
trait Line: Read + Write + Send {}
impl<T: Read + Write + Send> Line for T {}

pub(crate) struct Probe {
    stream: Box<dyn Line>,
    pub(crate) name: String,
    pub(crate) taken: u64,
    /// Which kernel's clock it says that it stamps by.
    pub(crate) kernel: String,
}

impl Probe {
    /// As a good probe does: says hello and holds the collector's proof against its key.
    pub(crate) fn join(to: SocketAddr, name: &str) -> Self {
        Self::try_join(to, name, &format!("key of {name}"), 1).unwrap()
    }

    /// `Err`: why it was refused.
    pub(crate) fn try_join(to: SocketAddr, name: &str, key: &str, incarnation: u8) -> Result<Self, String> {
        Self::greet(Box::new(connect(to)), name, (key, &[]), incarnation)
    }

    /// The same over TLS. An end of the connection in the midst of it is a refusal without a word.
    pub(crate) fn try_join_over(
        trust: &Trust,
        to: SocketAddr,
        name: &str,
        key: &str,
    ) -> Result<Self, String> {
        let connection = trust.connection("localhost").unwrap().expect("TLS");
        let mut stream = StreamOwned::new(connection, connect(to));
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).map_err(|why| why.to_string())?;
        }
        let binding = stream.conn.export_keying_material([0; 32], b"EXPORTER-Channel-Binding", Some(&[]));
        Self::greet(Box::new(stream), name, (key, &binding.unwrap()), 1)
    }

    fn greet(
        stream: Box<dyn Line>,
        name: &str,
        (key, binding): (&str, &[u8]),
        incarnation: u8,
    ) -> Result<Self, String> {
        let mut probe = Self { stream, name: name.to_owned(), taken: 0, kernel: "one kernel".to_owned() };
        probe.stream.write_all(&PREFACE).map_err(|why| why.to_string())?;
        let challenge = probe.try_hear().map_err(|why| why.to_string())?;
        let FromCollector::Challenge { nonce } = challenge else { panic!("no challenge") };
        let (theirs, ours): (Token, Token) = (nonce.parse().unwrap(), Token([7; 16]));
        probe.say(&FromProbe::Hello {
            probe: name.to_owned(),
            nonce: ours.to_string(),
            proof: proof::fleet_probe(key.as_bytes(), theirs, ours, name, binding),
            software: "0".to_owned(),
            abilities: vec!["digest".to_owned()],
            interfaces: vec!["eth0".to_owned()],
            addresses: Vec::new(),
            instruction: None,
            incarnation: format!("{incarnation:032x}"),
        });
        match probe.hear() {
            FromCollector::Welcome { proof, taken } => {
                assert_eq!(proof, proof::fleet_collector(key.as_bytes(), theirs, ours, name, binding));
                probe.taken = taken;
                Ok(probe)
            }
            FromCollector::Refusal { why, .. } => Err(why),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn say(&mut self, message: &FromProbe) {
        self.stream.write_all(&frame::emit(message).unwrap()).unwrap();
    }

    pub(crate) fn hear(&mut self) -> FromCollector {
        self.try_hear().unwrap()
    }

    fn try_hear(&mut self) -> std::io::Result<FromCollector> {
        self.stream.flush()?;
        let mut head = [0; 4];
        self.stream.read_exact(&mut head)?;
        let mut body = vec![0; frame::body_len(head).unwrap()];
        self.stream.read_exact(&mut body)?;
        Ok(FromCollector::parse(&body).unwrap())
    }

    /// What is found in the first message that has it; the others are let pass. Each of them comes
    /// within the timeout of a read, so all of them together have a limit of their own.
    pub(crate) fn hear_until<T>(&mut self, mut find: impl FnMut(FromCollector) -> Option<T>) -> T {
        let until = clock::now() + PATIENCE;
        loop {
            if let Some(found) = find(self.hear()) {
                return found;
            }
            assert!(clock::now() < until, "what was awaited did not come");
        }
    }

    /// The next instruction; whatever else comes before it is let pass.
    pub(crate) fn instruction(&mut self) -> Instruction {
        self.hear_until(|message| match message {
            FromCollector::Instruction(instruction) => Some(instruction),
            _ => None,
        })
    }

    /// Waits until all up to this number is taken.
    pub(crate) fn until_taken(&mut self, sequence: u64) {
        self.hear_until(|message| match message {
            FromCollector::Taken { sequence: taken } => (taken >= sequence).then_some(()),
            FromCollector::Refusal { why, .. } => panic!("{why}"),
            _ => None,
        });
    }

    /// A batch of the task `delay`, report included.
    pub(crate) fn batch(&mut self, sequence: u64, period: Period, seen: &[PacketSighting]) {
        let report = self.report(sequence, period, seen.len());
        self.bytes(sequence, seen, &serde_json::to_vec(&report).unwrap());
    }

    /// What it says of a period in which its task ran.
    pub(crate) fn report(&self, sequence: u64, period: Period, selected: usize) -> ProbeReport {
        let mut report = report(&self.name, sequence, period, selected as u64);
        report.clock.identity = Some(self.kernel.clone());
        report
    }

    pub(crate) fn bytes(&mut self, sequence: u64, seen: &[PacketSighting], report: &[u8]) {
        let mut ipfix = Vec::new();
        if !seen.is_empty() {
            let selection = Selection { sequence: 1, task: "delay".into(), ..Selection::default() };
            sightings::emit(1, Wall(0), &[(&selection, seen)], 65_000, &mut ipfix);
        }
        self.raw(sequence, &ipfix, report);
    }

    pub(crate) fn raw(&mut self, sequence: u64, ipfix: &[u8], report: &[u8]) {
        let selections = BTreeMap::from([("delay".to_owned(), 1)]);
        let (packets, json) = (ipfix.len() as u32, report.len() as u32);
        self.say(&FromProbe::Batch { sequence, ipfix: packets, report: json, selections });
        self.stream.write_all(ipfix).unwrap();
        self.stream.write_all(report).unwrap();
    }
}

fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE.to_std())).unwrap();
    stream
}

/// The longest that a probe waits for the collector.
const PATIENCE: Span = Span::from_secs(20);

pub(crate) fn report(probe: &str, sequence: u64, period: Period, selected: u64) -> ProbeReport {
    let digests = DigestRow { observed: selected, selected, ..DigestRow::default() };
    ProbeReport {
        probe: probe.to_owned(),
        sequence,
        period,
        captures: vec![InterfaceCapture {
            interface: "eth0".to_owned(),
            health: CaptureHealth { seen: selected, ..CaptureHealth::default() },
        }],
        clock: ClockState {
            source: "none".into(),
            identity: Some("one kernel".into()),
            ..ClockState::default()
        },
        rows: vec![TaskRow::new("delay", period, Row::Digests(digests))],
        rows_cut: BTreeMap::new(),
        exchanges: Vec::new(),
    }
}

/// A packet of that number.
pub(crate) fn seen(number: u64, at: i64, ttl: u8) -> PacketSighting {
    // Digests are spread over all 64 bits.
    let digest = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    PacketSighting { digest, at: Wall(at), length: 100, ttl, version: 4 }
}
