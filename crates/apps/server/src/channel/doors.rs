//! Which channel a guest's datagram on the shared port is for.
//!
//! A STUN request names whom it asks, by a word of 128 random bits that only its session was told.
//! DTLS names nobody: it goes by the address, once that has proven itself. All else is not a
//! guest's. Every queue is short: a channel that is set up needs a dozen datagrams, an open one has
//! a socket of its own.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netaware_io::probe_socket::Arrival;
use netaware_wire::webrtc::{Guest, asked};

/// The channels that a reflector passes datagrams to.
#[derive(Debug, Default)]
pub(crate) struct Doors {
    inner: Mutex<Inner>,
    /// How many are open, so that nobody pays for those that are not.
    open: AtomicUsize,
}

#[derive(Debug, Default)]
struct Inner {
    by_name: HashMap<String, Arc<Queue>>,
    by_source: HashMap<SocketAddr, Arc<Queue>>,
}

#[derive(Debug)]
struct Queue {
    packets: SyncSender<Packet>,
    dropped: AtomicU64,
}

/// A datagram that the shared socket received.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) bytes: Vec<u8>,
    pub(super) arrival: Arrival,
}

/// Closed when it is dropped.
#[derive(Debug)]
pub(super) struct Door {
    doors: Arc<Doors>,
    name: String,
    queue: Arc<Queue>,
    sources: Vec<SocketAddr>,
}

impl Doors {
    /// For those that ask for `name`.
    pub(super) fn open(self: &Arc<Self>, name: &str) -> (Door, Receiver<Packet>) {
        let (packets, receiver) = sync_channel(LONGEST_QUEUE);
        let queue = Arc::new(Queue { packets, dropped: AtomicU64::new(0) });
        self.lock().by_name.insert(name.to_owned(), Arc::clone(&queue));
        self.open.fetch_add(1, Ordering::Relaxed);
        (Door { doors: Arc::clone(self), name: name.to_owned(), queue, sources: Vec::new() }, receiver)
    }

    /// Whether it was a guest's for an open door, and is gone.
    pub(crate) fn pass(&self, bytes: &[u8], arrival: &Arrival) -> bool {
        if self.open.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let Some(guest) = Guest::of(bytes).filter(|_| bytes.len() <= LONGEST_PACKET) else { return false };
        let queue = {
            let inner = self.lock();
            match guest {
                Guest::Stun => asked(bytes).and_then(|name| inner.by_name.get(name)).cloned(),
                Guest::Dtls => inner.by_source.get(&arrival.from).cloned(),
            }
        };
        let Some(queue) = queue else { return false };
        if queue.packets.try_send(Packet { bytes: bytes.to_vec(), arrival: *arrival }).is_err() {
            queue.dropped.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Door {
    /// Lets DTLS of an address in that has proven itself. Not of one too many, nor of one that
    /// another channel has.
    pub(super) fn admit(&mut self, source: SocketAddr) -> bool {
        if self.sources.contains(&source) {
            return true;
        }
        let mut inner = self.doors.lock();
        if self.sources.len() >= MOST_SOURCES || inner.by_source.contains_key(&source) {
            return false;
        }
        inner.by_source.insert(source, Arc::clone(&self.queue));
        self.sources.push(source);
        true
    }

    /// Datagrams for which there was no room.
    pub(super) fn dropped(&self) -> u64 {
        self.queue.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let mut inner = self.doors.lock();
        inner.by_name.remove(&self.name);
        for source in &self.sources {
            inner.by_source.remove(source);
        }
        self.doors.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Of a channel: 128 KiB at the longest.
const LONGEST_QUEUE: usize = 64;
/// STUN and DTLS of browsers stay below what a path carries.
const LONGEST_PACKET: usize = 2048;
/// Addresses of one browser: interfaces, times IP versions that reach here.
const MOST_SOURCES: usize = 8;

#[cfg(test)]
mod tests {
    use netaware_units::{Mono, Stamp};

    use super::*;

    fn from(port: u16) -> Arrival {
        let from = SocketAddr::from(([192, 0, 2, 1], port));
        let (rx, seen_at) = (Stamp::application(Mono(1)), Mono(1));
        Arrival { len: 0, from, to: None, rx, seen_at, ttl: None, traffic_class: None }
    }

    fn request(name: &str) -> Vec<u8> {
        let user = format!("{name}:x");
        let padded = user.len().next_multiple_of(4);
        let mut bytes = vec![0, 1, 0, padded as u8 + 4, 0x21, 0x12, 0xa4, 0x42];
        bytes.extend([9; 12]);
        bytes.extend([0, 6, 0, user.len() as u8]);
        bytes.extend(user.as_bytes());
        bytes.resize(24 + padded, 0);
        bytes
    }

    #[test]
    fn stun_goes_by_name_and_dtls_by_proven_address() {
        let doors = Arc::new(Doors::default());
        let (mut door, packets) = doors.open("abc");
        let dtls = [22, 254, 253, 0, 0];
        assert!(doors.pass(&request("abc"), &from(1)));
        assert!(!doors.pass(&request("abd"), &from(1)));
        assert!(!doors.pass(&dtls, &from(1)), "not proven yet");
        assert!(door.admit(from(1).from));
        assert!(doors.pass(&dtls, &from(1)) && !doors.pass(&dtls, &from(2)));
        assert!(!doors.pass(b"Na\x05\0", &from(1)), "ours");
        assert_eq!(packets.try_iter().count(), 2);
        drop(door);
        assert!(!doors.pass(&dtls, &from(1)) && !doors.pass(&request("abc"), &from(1)));
    }

    #[test]
    fn a_flood_fills_one_short_queue() {
        let doors = Arc::new(Doors::default());
        let (door, packets) = doors.open("abc");
        for port in 0..1000 {
            assert!(doors.pass(&request("abc"), &from(port)));
        }
        assert_eq!(
            (packets.try_iter().count(), door.dropped()),
            (LONGEST_QUEUE, 1000 - LONGEST_QUEUE as u64)
        );
        assert!(!doors.pass(&[22; 3000], &from(1)), "too long for a guest");
    }

    #[test]
    fn an_address_belongs_to_one_channel_and_a_channel_has_few() {
        let doors = Arc::new(Doors::default());
        let ((mut one, _one), (mut two, _two)) = (doors.open("one"), doors.open("two"));
        assert!(one.admit(from(1).from) && one.admit(from(1).from));
        assert!(!two.admit(from(1).from));
        let taken = (2..40).filter(|port| one.admit(from(*port).from)).count();
        assert_eq!(taken, MOST_SOURCES - 1);
        drop(one);
        assert!(two.admit(from(1).from));
    }
}
