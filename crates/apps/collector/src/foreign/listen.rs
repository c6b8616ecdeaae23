//! The sockets: one thread for each place. Exporters that send over UDP are told apart by their address.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use netaware_io::clock;
use netaware_record::passive::{Period, Row, TaskRow};
use netaware_units::{Mono, Span, Wall};
use netaware_wire::ipfix::meaning::{Found, Interpreter};
use netaware_wire::ipfix::{MAX_MESSAGE, Reader, Transport};

use super::{ForeignCounts, Place};
use crate::desk::{Counter, Errand};

/// Exporters over UDP that are remembered; beyond, the one that has been quiet longest is forgotten.
const MOST_EXPORTERS: usize = 256;
const MOST_CONNECTIONS: usize = 64;
/// Rows that are brought to the store together.
const TOGETHER: usize = 10_000;
const PATIENCE: Duration = Duration::from_millis(200);

/// Threads that listen.
#[derive(Default)]
pub(crate) struct Foreign {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Listens at all places.
///
/// # Errors
/// One of them cannot be listened at.
pub(crate) fn start(
    places: &[Place],
    counts: &Arc<ForeignCounts>,
    counter: &Counter,
) -> std::io::Result<Foreign> {
    let mut foreign = Foreign::default();
    for place in places {
        let (stop, counts, counter) = (foreign.stop.clone(), counts.clone(), counter.clone());
        let builder = std::thread::Builder::new().name("ipfix".into());
        let thread = match place {
            Place::Udp(address) => {
                let socket = UdpSocket::bind(address)?;
                socket.set_read_timeout(Some(PATIENCE))?;
                builder.spawn(move || datagrams(&socket, &stop, &counts, &counter))?
            }
            Place::Tcp(address) => {
                let socket = TcpListener::bind(address)?;
                socket.set_nonblocking(true)?;
                builder.spawn(move || connections(&socket, &stop, &counts, &counter))?
            }
        };
        foreign.threads.push(thread);
    }
    Ok(foreign)
}

impl Foreign {
    pub(crate) fn end(self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// One exporter's session.
struct Exporter {
    name: String,
    reader: Reader,
    meaning: Interpreter,
    missing: u64,
    bad: u64,
    heard_at: Mono,
}

impl Exporter {
    fn new(peer: SocketAddr, transport: Transport) -> Self {
        let name = format!("ipfix-{}", peer.ip().to_canonical());
        let (reader, meaning) = (Reader::new(transport), Interpreter::new());
        Self { name, reader, meaning, missing: 0, bad: 0, heard_at: clock::now() }
    }

    fn read(&mut self, message: &[u8], counts: &ForeignCounts, rows: &mut Vec<TaskRow>) {
        self.heard_at = clock::now();
        counts.messages.fetch_add(1, Relaxed);
        let (meaning, name) = (&mut self.meaning, &self.name);
        let before = rows.len();
        let read = self.reader.read(clock::wall(), message, &mut |record| {
            if let Found::Flow(flow) = meaning.interpret(record) {
                let row = flow.row;
                // The end of a period is not in it.
                let period = Period {
                    from: row.first_at,
                    until: Wall(row.last_at.max(row.first_at).0.saturating_add(1)),
                };
                rows.push(TaskRow { task: name.clone(), period, row: Row::Volume(row) });
            }
        });
        counts.flows.fetch_add((rows.len() - before) as u64, Relaxed);
        let now = self.reader.counts();
        let bad = now.records_bad + now.messages_bad + now.templates_bad + u64::from(read.is_err());
        counts.malformed.fetch_add(bad.saturating_sub(self.bad), Relaxed);
        counts.missing.fetch_add(now.missing.saturating_sub(self.missing), Relaxed);
        (self.bad, self.missing) = (now.records_bad + now.messages_bad + now.templates_bad, now.missing);
    }
}

/// Gives rows to the desk when there are many, or none came for a moment.
fn hand_over(rows: &mut Vec<TaskRow>, counter: &Counter, least: usize) {
    if rows.len() > least {
        // The desk is gone when the collector ends.
        let _ = counter.send(Errand::Keep(std::mem::take(rows)));
    }
}

fn datagrams(socket: &UdpSocket, stop: &AtomicBool, counts: &ForeignCounts, counter: &Counter) {
    let mut exporters: BTreeMap<SocketAddr, Exporter> = BTreeMap::new();
    let (mut room, mut rows) = (vec![0; MAX_MESSAGE], Vec::new());
    while !stop.load(Relaxed) {
        match socket.recv_from(&mut room) {
            Ok((length, peer)) => {
                if exporters.len() >= MOST_EXPORTERS && !exporters.contains_key(&peer) {
                    let quiet = exporters.iter().min_by_key(|(_, one)| one.heard_at).map(|(peer, _)| *peer);
                    quiet.and_then(|quiet| exporters.remove(&quiet));
                }
                let exporter =
                    exporters.entry(peer).or_insert_with(|| Exporter::new(peer, Transport::Datagrams));
                exporter.read(&room[..length], counts, &mut rows);
                hand_over(&mut rows, counter, TOGETHER);
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                hand_over(&mut rows, counter, 0);
            }
            Err(error) => {
                tracing::error!("IPFIX over UDP: {error}");
                return;
            }
        }
    }
    hand_over(&mut rows, counter, 0);
}

fn connections(socket: &TcpListener, stop: &Arc<AtomicBool>, counts: &Arc<ForeignCounts>, counter: &Counter) {
    let open = Arc::new(AtomicUsize::new(0));
    while !stop.load(Relaxed) {
        let Ok((stream, peer)) = socket.accept() else {
            clock::sleep(Span::from_millis(50));
            continue;
        };
        if open.fetch_add(1, Relaxed) >= MOST_CONNECTIONS {
            open.fetch_sub(1, Relaxed);
            continue;
        }
        let (stop, counts, counter, place) = (stop.clone(), counts.clone(), counter.clone(), open.clone());
        let work = move || {
            stream_of(stream, peer, &stop, &counts, &counter);
            place.fetch_sub(1, Relaxed);
        };
        if std::thread::Builder::new().name("ipfix".into()).spawn(work).is_err() {
            open.fetch_sub(1, Relaxed);
        }
    }
}

fn stream_of(
    mut stream: TcpStream,
    peer: SocketAddr,
    stop: &AtomicBool,
    counts: &ForeignCounts,
    counter: &Counter,
) {
    let set = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(PATIENCE)));
    if set.is_err() {
        return;
    }
    let mut exporter = Exporter::new(peer, Transport::Stream);
    let (mut come, mut part, mut rows) = (Vec::new(), vec![0; 64 << 10], Vec::new());
    while !stop.load(Relaxed) {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(length) => come.extend_from_slice(&part[..length]),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                hand_over(&mut rows, counter, 0);
                continue;
            }
            Err(_) => break,
        }
        let mut used = 0;
        loop {
            match netaware_wire::ipfix::message::first(&come[used..]) {
                Ok(Some((one, _))) => {
                    exporter.read(one, counts, &mut rows);
                    used += one.len();
                }
                Ok(None) => break,
                Err(_) => {
                    // Nobody knows where the next message begins.
                    counts.malformed.fetch_add(1, Relaxed);
                    hand_over(&mut rows, counter, 0);
                    return;
                }
            }
        }
        come.drain(..used);
        hand_over(&mut rows, counter, TOGETHER);
    }
    hand_over(&mut rows, counter, 0);
}
