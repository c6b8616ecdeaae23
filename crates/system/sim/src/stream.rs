//! Packets at an even pace in one direction: the truth about one-way delay, with nothing estimated.

use netaware_netmodel::{Answer, Fate, Packet, Side};
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};

use crate::drive::Way;
use crate::simulation::Simulation;

/// What to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeStream {
    /// Who sends.
    pub from: Side,
    /// Over which IP version.
    pub version: IpVersion,
    /// Bytes of each IP packet, headers included.
    pub length: u32,
    /// From packet to packet; zero sends them all at once.
    pub spacing: Span,
    /// Packets.
    pub count: u64,
}

/// What became of a stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamFates {
    /// Its packets; their tags are their numbers, from zero.
    pub way: Way,
    /// Arrived after a packet with a higher number (RFC 4737 §3).
    pub reordered: u64,
}

impl ProbeStream {
    /// At even distances from now on.
    pub(crate) fn run(&self, sim: &mut Simulation) -> StreamFates {
        let start = sim.now;
        let spacing = self.spacing;
        let instant = |number| start + spacing * i64::try_from(number).unwrap_or(i64::MAX);
        self.run_at(sim, (0..self.count).map(instant))
    }

    /// At these instants; one before its predecessor's, or before now, is taken for that.
    pub(crate) fn run_at(&self, sim: &mut Simulation, instants: impl Iterator<Item = Mono>) -> StreamFates {
        let mut fates = Gathered { first: sim.next_id, highest: None, fates: StreamFates::default() };
        if self.length > sim.known_mtu(self.from, self.version) {
            fates.fates.way.not_sent = self.count;
            return fates.fates;
        }
        fates.fates.way.delays.reserve(usize::try_from(self.count).unwrap_or(0).min(MOST_RESERVED));
        let mut told_at = sim.now;
        for (number, at) in (0..self.count).zip(instants) {
            let at = at.max(sim.now);
            // Nothing here depends on what comes back, so time may pass in slices.
            if at.since(told_at) >= SLICE || number % MOST_OFFERED == MOST_OFFERED - 1 {
                sim.network.advance(at, &mut |fate| fates.take(fate));
                told_at = at;
            }
            sim.network.offer(at, self.from, self.packet(fates.first + number));
            sim.now = at;
            fates.fates.way.sent += 1;
        }
        sim.next_id = fates.first + fates.fates.way.sent;
        fates.wait_for_the_rest(sim);
        fates.fates
    }

    const fn packet(&self, id: u64) -> Packet {
        Packet { id, version: self.version, length: self.length, hop_limit: 64, flow: 1, dont_fragment: true }
    }
}

struct Gathered {
    /// Number of the stream's first packet in the network.
    first: u64,
    highest: Option<u64>,
    fates: StreamFates,
}

impl Gathered {
    fn take(&mut self, fate: Fate) {
        // An earlier run's.
        let Some(number) = fate.id().checked_sub(self.first) else { return };
        let way = &mut self.fates.way;
        match fate {
            Fate::Delivered { duplicate: true, .. } => way.copies += 1,
            Fate::Delivered { corrupted_bit: Some(_), .. } => way.corrupted += 1,
            Fate::Delivered { delay, .. } => {
                way.delays.push((number, delay));
                self.fates.reordered += u64::from(self.highest.is_some_and(|highest| number < highest));
                self.highest = self.highest.max(Some(number));
            }
            Fate::Answered { answer: Answer::TooBig { .. }, .. } => way.too_big += 1,
            Fate::Answered { answer: Answer::TimeExceeded, .. } => way.time_exceeded += 1,
            Fate::Dropped { cause, .. } => way.dropped[cause as usize] += 1,
        }
    }

    fn wait_for_the_rest(&mut self, sim: &mut Simulation) {
        let until = sim.now + LONGEST_WAIT;
        // Not "until nothing is under way": a fate may be decided, and still lie in the future.
        while let Some(next) = sim.network.next_event().filter(|next| *next <= until) {
            sim.now = next.max(sim.now + SLICE);
            sim.network.advance(sim.now, &mut |fate| self.take(fate));
        }
    }
}

/// Time passes in steps of this.
const SLICE: Span = Span::from_millis(1);
/// So many packets are offered ahead at most.
const MOST_OFFERED: u64 = 4096;
/// A packet that has not arrived by then is left under way.
const LONGEST_WAIT: Span = Span::from_secs(600);
/// Memory taken before the first packet has arrived.
const MOST_RESERVED: usize = 1 << 22;
