//! Which channel a guest's datagram on the shared port is for.
//!
//! A STUN request names whom it asks, by a word of 128 random bits that only its session was told,
//! and is read only if it comes from the IP address of that session. DTLS names nobody: it goes by
//! the address and port, once that has sent a signed request. All else is not a guest's. Every
//! queue is short: a channel that is set up needs a dozen datagrams, an open one has a socket of
//! its own.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netaware_io::probe_socket::Arrival;
use netaware_io::zone::ZonedIp;
use netaware_wire::webrtc::{Guest, asked};

use super::ports::host_of;

/// The channels that a reflector passes datagrams to.
#[derive(Debug, Default)]
pub(crate) struct Doors {
    inner: Mutex<Inner>,
    /// How many are open, so that nobody pays for those that are not.
    open: AtomicUsize,
    /// STUN from addresses for which no channel is open. It was dropped unread.
    foreign: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    /// By the host of the page, then by the name that its session was told.
    by_page: HashMap<ZonedIp, HashMap<String, Arc<Queue>>>,
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
    page: ZonedIp,
    name: String,
    queue: Arc<Queue>,
    sources: Vec<SocketAddr>,
}

impl Doors {
    /// For those at `page` that ask for `name`.
    pub(super) fn open(self: &Arc<Self>, page: ZonedIp, name: &str) -> (Door, Receiver<Packet>) {
        let (packets, receiver) = sync_channel(LONGEST_QUEUE);
        let queue = Arc::new(Queue { packets, dropped: AtomicU64::new(0) });
        self.lock().by_page.entry(page).or_default().insert(name.to_owned(), Arc::clone(&queue));
        self.open.fetch_add(1, Ordering::Relaxed);
        let (doors, name) = (Arc::clone(self), name.to_owned());
        (Door { doors, page, name, queue, sources: Vec::new() }, receiver)
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
                Guest::Stun => {
                    if let Some(names) = inner.by_page.get(&host_of(arrival.from)) {
                        asked(bytes).and_then(|name| names.get(name)).cloned()
                    } else {
                        self.foreign.fetch_add(1, Ordering::Relaxed);
                        None
                    }
                }
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
    /// Lets DTLS in from a port of the page that has sent a signed request. Not from one too many,
    /// nor from one that another channel has.
    pub(super) fn admit(&mut self, source: SocketAddr) -> bool {
        if self.sources.contains(&source) {
            return true;
        }
        if host_of(source) != self.page {
            return false;
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

    /// STUN that came to all doors from addresses for which none was open.
    pub(super) fn foreign(&self) -> u64 {
        self.doors.foreign.load(Ordering::Relaxed)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let mut inner = self.doors.lock();
        if let Entry::Occupied(mut names) = inner.by_page.entry(self.page) {
            names.get_mut().remove(&self.name);
            if names.get().is_empty() {
                names.remove();
            }
        }
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
/// Ports of one browser, whose interfaces may share the address of a NAT.
pub(super) const MOST_SOURCES: usize = 8;

#[cfg(test)]
mod tests {
    use netaware_units::{Mono, Stamp};

    use super::*;

    fn from(port: u16) -> Arrival {
        arrival(SocketAddr::from(([192, 0, 2, 1], port)))
    }

    fn page() -> ZonedIp {
        host_of(from(0).from)
    }

    fn arrival(from: SocketAddr) -> Arrival {
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
        let (mut door, packets) = doors.open(page(), "abc");
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
    fn who_was_told_a_channels_name_is_not_read_at_another_address() {
        let doors = Arc::new(Doors::default());
        let (mut door, packets) = doors.open(page(), "abc");
        let victim = arrival(SocketAddr::from(([198, 51, 100, 7], 1)));
        assert!(!doors.pass(&request("abc"), &victim));
        assert!(!door.admit(victim.from) && !doors.pass(&[22, 254, 253, 0, 0], &victim));
        assert_eq!((packets.try_iter().count(), door.foreign()), (0, 1));
        // The same address of a socket for both versions.
        let mapped = SocketAddr::from(([0, 0, 0, 0, 0, 0xffff, 0xc000, 0x0201], 1));
        assert!(doors.pass(&request("abc"), &arrival(mapped)));
        // Not read either: another channel's page asks for this one.
        let (_other, others) = doors.open(host_of(victim.from), "abd");
        assert!(!doors.pass(&request("abc"), &victim) && doors.pass(&request("abd"), &victim));
        assert_eq!((packets.try_iter().count(), others.try_iter().count()), (1, 1));
    }

    #[test]
    fn a_page_whose_channels_have_ended_is_forgotten() {
        let doors = Arc::new(Doors::default());
        let ((one, _one), (two, _two)) = (doors.open(page(), "one"), doors.open(page(), "two"));
        drop(one);
        assert!(!doors.pass(&request("one"), &from(1)) && doors.pass(&request("two"), &from(1)));
        drop(two);
        assert!(doors.lock().by_page.is_empty());
    }

    #[test]
    fn a_flood_fills_one_short_queue() {
        let doors = Arc::new(Doors::default());
        let (door, packets) = doors.open(page(), "abc");
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
        let ((mut one, _one), (mut two, _two)) = (doors.open(page(), "one"), doors.open(page(), "two"));
        assert!(one.admit(from(1).from) && one.admit(from(1).from));
        assert!(!two.admit(from(1).from));
        let taken = (2..40).filter(|port| one.admit(from(*port).from)).count();
        assert_eq!(taken, MOST_SOURCES - 1);
        drop(one);
        assert!(two.admit(from(1).from));
    }
}
