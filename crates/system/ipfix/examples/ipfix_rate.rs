//! How many IPFIX messages of one exporter a listener decodes in a second, over loopback:
//!
//! ```text
//! cargo run --release -p netaware-ipfix --example ipfix_rate -- [tcp|udp] [seconds] [size of each]
//! ```
//!
//! Messages hold packet reports and are made beforehand, so that the exporter costs a call and no
//! more. Sequence numbers are put right for each. Over UDP what is lost on the way is told by the
//! numbers and not counted as decoded.

use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use netaware_io::clock;
use netaware_ipfix::{Listener, Options, Over, Sink};
use netaware_record::passive::PacketSighting;
use netaware_units::{Span, Wall};
use netaware_wire::ipfix::{Emitter, Found, Transport};

/// Hands one message to the kernel, or keeps it until a call is worth it.
type Send = Box<dyn FnMut(&[u8])>;

const SEQUENCE: std::ops::Range<usize> = 8..12;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let over = if arguments.next().as_deref() == Some("udp") { Over::Udp } else { Over::Tcp };
    let seconds: i64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(5);
    let length: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1400);

    let seen = Arc::new(AtomicU64::new(0));
    let into = seen.clone();
    let sink: Sink = Arc::new(move |_, found| {
        if let Found::Packet { sighting, .. } = found {
            // Something has to depend on each, or nothing would be decoded.
            into.fetch_add(1 + (sighting.digest == 0) as u64, Ordering::Relaxed);
        }
    });
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    let options = match over {
        Over::Udp => Options { udp: Some(any), ..Options::default() },
        _ => Options { tcp: Some(any), ..Options::default() },
    };
    let listener = Listener::open(&options, &sink).expect("a free port");
    let at = listener.address(over).expect("listens");
    let (templates, mut message, reports) = made(length);

    let mut send: Send = if over == Over::Udp {
        let socket = UdpSocket::bind(any).expect("a port");
        socket.connect(at).expect("connected");
        Box::new(move |bytes| drop(socket.send(bytes)))
    } else {
        let mut stream = TcpStream::connect(at).expect("connected");
        let mut waiting = Vec::with_capacity(1 << 16);
        Box::new(move |bytes| {
            waiting.extend_from_slice(bytes);
            if waiting.len() > 60_000 {
                stream.write_all(&waiting).expect("taken");
                waiting.clear();
            }
        })
    };
    send(&templates);
    let begin = clock::now();
    let (mut sent, mut sequence) = (0_u64, 0_u32);
    while clock::now() - begin < Span::from_secs(seconds) {
        for _ in 0..64 {
            message[SEQUENCE].copy_from_slice(&sequence.to_be_bytes());
            send(&message);
            sequence = sequence.wrapping_add(reports);
            sent += 1;
        }
    }
    let counts = listener.totals().counts;
    let lasted = (clock::now() - begin).secs_f64();
    let decoded = seen.load(Ordering::Relaxed);
    println!(
        "{over}: {:.0} messages/s decoded ({:.0}/s sent), {} bytes and {reports} reports each, {:.2} M reports/s, {} missing",
        counts.messages as f64 / lasted,
        sent as f64 / lasted,
        message.len(),
        decoded as f64 / lasted / 1e6,
        counts.missing,
    );
}

/// A message of templates, one full of packet reports, and how many those are.
fn made(length: usize) -> (Vec<u8>, Vec<u8>, u32) {
    let at = Wall(1_795_440_000_000_000_000);
    let mut emitter = Emitter::new(1, length, Transport::Stream);
    let mut messages: Vec<Vec<u8>> = Vec::new();
    let mut out = |bytes: &[u8]| messages.push(bytes.to_vec());
    emitter.begin(at, &mut out);
    for digest in 1..8000_u64 {
        let seen =
            PacketSighting { digest, at: Wall(at.0 + digest as i64), length: 1500, ttl: 64, version: 4 };
        emitter.packet(1, &seen, &mut out);
    }
    let full = messages[1].clone();
    let reports = (full.len() - 20) / 24;
    // The first message has the template and reports before those of `full`; only its templates are
    // kept.
    let mut alone = Emitter::new(1, length, Transport::Stream);
    let mut templates = Vec::new();
    alone.begin(at, &mut |_| {});
    alone.packet(1, &PacketSighting { digest: 1, at, length: 0, ttl: 0, version: 4 }, &mut |_| {});
    alone.finish(&mut |bytes| templates.extend_from_slice(bytes));
    (templates, full, reports as u32)
}
