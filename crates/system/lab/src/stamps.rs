//! When a packet entered its host's device, by the stamp of that host's kernel.
//!
//! A TUN device stamps nothing that its reader could see, and packets may wait in it. An ear hears
//! each of them as it is given to the device, stamped, and in about the order in which they are
//! read; which is which is told by their first bytes.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use netaware_io::sent_ear::SentEar;
use netaware_units::{Mono, Span};

/// The stamps of one host's device.
pub(crate) struct Stamps {
    ear: SentEar,
    heard: Heard,
}

impl Stamps {
    pub(crate) fn new(ear: SentEar) -> Self {
        Self { ear, heard: Heard::default() }
    }

    /// When this packet, which was read from the device at `at`, was given to it; `None` if nothing
    /// that can be believed was heard of it.
    pub(crate) fn entered(&mut self, packet: &[u8], at: Mono) -> Option<Mono> {
        let wanted = mark(packet);
        let entered = self.heard.take(wanted).or_else(|| self.listen(wanted))?;
        (at - entered < LONGEST_WAIT).then_some(entered.min(at))
    }

    fn listen(&mut self, wanted: u64) -> Option<Mono> {
        let mut start = [0; MARKED];
        while let Some(heard) = self.ear.next_packet(&mut start) {
            let mark = mark(&start[..heard.length]);
            match heard.at {
                Some(stamp) if mark == wanted => {
                    self.heard.forget_before(stamp);
                    return Some(stamp);
                }
                Some(stamp) => self.heard.keep(mark, stamp),
                None if mark == wanted => return None,
                None => {}
            }
        }
        None
    }
}

/// Packets that were heard and not yet read, oldest first.
#[derive(Default)]
struct Heard(VecDeque<(u64, Mono)>);

impl Heard {
    fn keep(&mut self, mark: u64, stamp: Mono) {
        if self.0.len() == MOST_HEARD {
            self.0.pop_front();
        }
        self.0.push_back((mark, stamp));
    }

    /// The oldest with that mark.
    fn take(&mut self, mark: u64) -> Option<Mono> {
        let index = self.0.iter().position(|heard| heard.0 == mark)?;
        let (_, stamp) = self.0.remove(index)?;
        self.forget_before(stamp);
        Some(stamp)
    }

    /// What was not read before one that was stamped then, and is no neighbour of it, was dropped
    /// by the device.
    fn forget_before(&mut self, stamp: Mono) {
        let old = |heard: &(u64, Mono)| stamp - heard.1 > OVERTAKES_WITHIN;
        while self.0.front().is_some_and(old) {
            self.0.pop_front();
        }
    }
}

fn mark(packet: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    packet.get(..MARKED).unwrap_or(packet).hash(&mut hasher);
    hasher.finish()
}

/// Bytes by which packets are told apart: all headers, and of a payload what has a number in most
/// formats. Of equal packets the first one heard is the first one read.
const MARKED: usize = 128;
/// Two cores may give packets to the device at the same time, and have them stamped the other way
/// round.
const OVERTAKES_WITHIN: Span = Span::from_millis(1);
/// More than the device holds.
const MOST_HEARD: usize = 1 << 14;
/// A device that nobody reads from for so long is full: an older one was an equal packet that it
/// dropped.
const LONGEST_WAIT: Span = Span::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_told_apart_by_their_first_bytes() {
        let [first, second] = [1, 2].map(|number| {
            let mut packet = vec![0; 600];
            packet[100] = number;
            packet
        });
        assert_ne!(mark(&first), mark(&second));
        assert_eq!(mark(&first), mark(&first[..MARKED]));
        assert_ne!(mark(&first[..50]), mark(&first[..49]));
    }

    #[test]
    fn what_the_device_dropped_is_forgotten_and_a_neighbour_is_not() {
        let mut heard = Heard::default();
        for (mark, us) in [(1, 0), (2, 1_500), (3, 2_000), (2, 2_001)] {
            heard.keep(mark, Mono(us * 1000));
        }
        assert_eq!(heard.take(9), None);
        assert_eq!(heard.take(3), Some(Mono(2_000_000)));
        assert_eq!(heard.take(1), None, "2 ms before one that was read");
        assert_eq!(heard.take(2), Some(Mono(1_500_000)), "the older one of two alike");
        assert_eq!(heard.take(2), Some(Mono(2_001_000)));
    }

    #[test]
    fn what_nobody_reads_does_not_grow() {
        let mut heard = Heard::default();
        (0..2 * MOST_HEARD as u64).for_each(|mark| heard.keep(mark, Mono(0)));
        assert_eq!((heard.0.len(), heard.0[0].0), (MOST_HEARD, MOST_HEARD as u64));
    }
}
