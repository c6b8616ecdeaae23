//! The emulator: takes packets from two hosts, asks the model for their fate, and hands each over
//! at its deadline.
//!
//! One round of the loop: take what has come (stamped when it is read), release what is due, idle
//! until the next deadline. Packets are released one by one, each with its lateness measured,
//! however many are due. The model's time zero is when the emulator starts.
//!
//! It leans late: a packet is stamped when it is *read*, after its sender's kernel queued it, and
//! never handed over before its deadline.

use std::io;
use std::net::IpAddr;

use netaware_netmodel::scenario::Rewrite;
use netaware_netmodel::{Answer, DropCause, Fate, Network, Packet, Scenario, Side};
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};
use serde::Serialize;

use crate::addresses::{Addressee, Addresses};
use crate::icmp::{self, Message};
use crate::nat::Nat;
use crate::packet::{self, Header};
use crate::reset;
use crate::slab::{Origin, Slab, Stored};
use crate::tally::Tally;
use crate::world::{Idled, Witness, World};

/// A path, running.
pub(crate) struct Emulator {
    network: Network,
    slab: Slab,
    addresses: Addresses,
    pub(crate) tally: Tally,
    /// The model's zero.
    epoch: Mono,
    /// When the loop last looked at the clock.
    looked_at: Mono,
    /// When each host had surely nothing for us that was not taken.
    nothing_at: [Mono; 2],
    idled: Idled,
    answer: Vec<u8>,
    nat: Option<Nat>,
    /// What the hops write over, by hop, in each direction.
    rewrites: [Vec<(usize, Rewrite)>; 2],
}

impl Emulator {
    /// Starts the model's time at `epoch`.
    pub(crate) fn new(scenario: &Scenario, seed: u64, largest_packet: usize, epoch: Mono) -> Self {
        // Only a duplicate makes bytes needed after their packet's own fate.
        let wires = scenario.hops.iter().flat_map(|hop| hop.forward.wires.iter().chain(&hop.reverse.wires));
        let duplicates = wires.into_iter().any(|wire| wire.duplication > 0.0);
        let linger = if duplicates { LINGER } else { Span::ZERO };
        let addresses = Addresses::new(scenario.hops.len());
        let rewrites = [Side::A, Side::B].map(|side| {
            let links = scenario.links(side).into_iter();
            links.filter_map(|(hop, link)| Some((hop, link.rewrite?))).collect()
        });
        Self {
            network: Network::new(scenario, seed),
            slab: Slab::new(MOST_BYTES, largest_packet, linger),
            addresses,
            tally: Tally::new(epoch),
            epoch,
            looked_at: epoch,
            nothing_at: [epoch; 2],
            // The way to the first round, through threads and measurements, is no loss.
            idled: Idled::Woken,
            answer: Vec::with_capacity(largest_packet),
            nat: scenario.nat.as_ref().map(|nat| Nat::new(nat, addresses)),
            rewrites,
        }
    }

    /// One round.
    ///
    /// # Errors
    /// A host is gone.
    pub(crate) fn round(&mut self, world: &mut impl World, witness: &mut impl Witness) -> io::Result<()> {
        self.look(world.now());
        self.take(world, Side::A)?;
        self.take(world, Side::B)?;
        let now = world.now();
        self.release(now, world, witness);
        witness.round(now, self.network.truth(), &mut self.tally);
        let until = match self.network.next_event() {
            Some(event) => self.epoch + Span(event.0.cast_signed()),
            None => now + LONGEST_IDLE,
        };
        self.looked_at = world.now();
        // Cross traffic is arithmetic that is due whether or not a packet comes: a long silence
        // must not pile it up.
        self.idled = world.idle(until.min(now + LONGEST_IDLE));
        Ok(())
    }

    /// Was the core taken away since the last look, or in the sleep?
    fn look(&mut self, now: Mono) {
        match self.idled {
            Idled::Awake => self.tally.stood_still(now - self.looked_at),
            Idled::Overslept { due } => {
                self.tally.overslept(now - due);
                self.tally.stood_still(now - due);
                // A packet would have ended the sleep.
                self.nothing_at = self.nothing_at.map(|at| at.max(due));
            }
            Idled::Woken => {}
        }
        self.looked_at = now;
        self.tally.now = now;
    }

    fn model_time(&self, at: Mono) -> Mono {
        Mono((at - self.epoch).or_zero().0.cast_unsigned())
    }

    fn take(&mut self, world: &mut impl World, from: Side) -> io::Result<()> {
        for _ in 0..MOST_TAKEN {
            let Some(vacancy) = self.slab.vacancy(self.looked_at) else {
                return self.discard(world, from);
            };
            let Some(length) = world.read(from, self.slab.buffer(vacancy))? else {
                self.nothing_at[from as usize] = self.looked_at;
                return Ok(());
            };
            let at = world.now();
            let bytes = self.slab.buffer(vacancy).get(..length).unwrap_or(&[]);
            let waited = world.entered(from, bytes, at).map(|entered| at - entered);
            self.offer(at, from, vacancy, length, waited);
            self.looked_at = at;
        }
        Ok(())
    }

    /// No room is left: what cannot be kept is lost, and by our fault.
    fn discard(&mut self, world: &mut impl World, from: Side) -> io::Result<()> {
        let mut nowhere = [0; 64];
        if world.read(from, &mut nowhere)?.is_some() {
            self.tally.slab_full += 1;
        }
        Ok(())
    }

    fn offer(&mut self, at: Mono, from: Side, vacancy: u32, length: usize, waited: Option<Span>) {
        let model_time = self.model_time(at);
        let translated = match &mut self.nat {
            Some(nat) if from == Side::B => nat.inward(model_time, self.slab.buffer(vacancy), length),
            _ => Some(length),
        };
        let length = translated.unwrap_or(0);
        let bytes = self.slab.buffer(vacancy).get(..length).unwrap_or(&[]);
        let parsed = Header::parse(bytes)
            .and_then(|header| Some((header, self.addressee(header.destination)?)))
            .filter(|(_, addressee)| *addressee != Addressee::Host(from));
        let Some((header, addressee)) = parsed else {
            self.tally.strangers += 1;
            return;
        };
        self.tally.taken += 1;
        let kind = header.kind();
        self.tally.entered(model_time, from, kind.protocol, length as u64);
        let woken = std::mem::replace(&mut self.idled, Idled::Awake) == Idled::Woken;
        self.tally.woken += u64::from(woken);
        let bound = (!woken).then(|| at - self.nothing_at[from as usize]);
        if let Some(waited) = waited.or(bound) {
            self.tally.seen(waited);
        }
        let packet = Packet {
            id: self.slab.keep(vacancy, length, header, Origin { number: self.tally.taken, waited }),
            version: header.version,
            length: length as u32,
            hop_limit: header.hop_limit.min(self.reach(from, addressee)),
            flow: header.flow,
            dont_fragment: header.dont_fragment,
        };
        self.network.offer_kind(model_time, from, packet, kind);
    }

    fn addressee(&self, address: IpAddr) -> Option<Addressee> {
        let behind_nat = self.nat.as_ref().filter(|nat| nat.means_far_host(address));
        behind_nat.map(|_| Addressee::Host(Side::B)).or_else(|| self.addresses.addressee(address))
    }

    /// Routers in the model have no address: a packet for one is made to end there, and is answered
    /// then.
    fn reach(&self, from: Side, addressee: Addressee) -> u8 {
        match (addressee, from) {
            (Addressee::Host(_), _) => u8::MAX,
            (Addressee::Router(hop), Side::A) => (hop + 1) as u8,
            (Addressee::Router(hop), Side::B) => (self.addresses.routers() - hop) as u8,
        }
    }

    fn release(&mut self, now: Mono, world: &mut impl World, witness: &mut impl Witness) {
        let due = self.model_time(now);
        let Self { network, slab, addresses, tally, epoch, answer, nat, rewrites, .. } = self;
        network.advance(due, &mut |fate| {
            let deadline = *epoch + Span(fate.at().0.cast_signed());
            let late = world.now() - deadline;
            let is_final = match fate {
                Fate::Delivered { id, to, hop_limit, duplicate, corrupted_bit, .. } => {
                    if let Some(stored) = slab.find(id) {
                        for (_, what) in &rewrites[to.other() as usize] {
                            packet::rewrite(stored.bytes, stored.header.version, *what);
                        }
                    }
                    let nat = nat.as_mut().filter(|_| to == Side::B).map(|nat| (nat, due));
                    deliver(world, slab, tally, nat, id, to, hop_limit, corrupted_bit, late);
                    !duplicate
                }
                Fate::Answered { id, to, hop, answer: said, .. } => {
                    let crossed = rewrites[to as usize].iter().filter(|(at, _)| match to {
                        Side::A => *at <= hop,
                        Side::B => *at > hop,
                    });
                    let crossed = crossed.map(|(_, what)| *what);
                    let is_quotable = prepare(slab, nat.as_mut(), id, to, crossed);
                    if is_quotable && reply(slab, *addresses, id, hop, said, answer) {
                        hand_over(world, tally, to, answer, late);
                    }
                    true
                }
                Fate::Dropped { id, cause: DropCause::Reset, .. } => {
                    reset(world, slab, tally, *addresses, id, answer, late);
                    true
                }
                Fate::Dropped { .. } => true,
            };
            witness.fate(&fate, late, slab.find(fate.id()).map(|stored| Subject::of(&stored, *addresses)));
            if is_final {
                slab.release(fate.id(), now);
            }
        });
    }
}

/// Whose fate it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Subject {
    /// The emulator took so many packets up to this one, from both hosts.
    number: u64,
    version: IpVersion,
    /// Bytes of the IP packet.
    length: usize,
    /// Absent if its source is no host of the lab.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Side>,
    /// How long it lay in its host's device before the emulator took it, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    waited: Option<Span>,
}

impl Subject {
    fn of(stored: &Stored<'_>, addresses: Addresses) -> Self {
        let from = match addresses.addressee(stored.header.source) {
            Some(Addressee::Host(side)) => Some(side),
            _ => None,
        };
        let Origin { number, waited } = stored.origin;
        Self { number, version: stored.header.version, length: stored.bytes.len(), from, waited }
    }
}

#[expect(clippy::too_many_arguments, reason = "the parts of one fate, and where it goes")]
fn deliver(
    world: &mut impl World,
    slab: &mut Slab,
    tally: &mut Tally,
    nat: Option<(&mut Nat, Mono)>,
    id: u64,
    to: Side,
    hop_limit: u8,
    corrupted_bit: Option<u32>,
    late: Span,
) {
    let Some(stored) = slab.find(id) else {
        // A duplicate so long after its original that the bytes are gone.
        tally.slab_full += 1;
        return;
    };
    packet::set_hop_limit(stored.bytes, stored.header.version, hop_limit);
    if let Some((nat, now)) = nat {
        match nat.outward(now, &stored.header, stored.bytes) {
            Some(bytes) => hand_over(world, tally, to, bytes, late),
            None => tally.strangers += 1,
        }
        return;
    }
    match corrupted_bit {
        None => hand_over(world, tally, to, stored.bytes, late),
        Some(bit) => {
            packet::flip(stored.bytes, bit);
            hand_over(world, tally, to, stored.bytes, late);
            // A duplicate is not corrupted by what happened to the original.
            packet::flip(stored.bytes, bit);
        }
    }
}

/// Makes a packet what its sender and the hops so far made of it, for a router that quotes it.
/// Returns false if that cannot be done.
fn prepare(
    slab: &mut Slab,
    nat: Option<&mut Nat>,
    id: u64,
    to: Side,
    rewrites: impl Iterator<Item = Rewrite>,
) -> bool {
    let Some(stored) = slab.find(id) else { return false };
    for what in rewrites {
        packet::rewrite(stored.bytes, stored.header.version, what);
    }
    match nat.filter(|_| to == Side::B) {
        Some(nat) => nat.undo_for_far(&stored.header, stored.bytes),
        None => true,
    }
}

/// Resets both ends of the connection that a packet belongs to, at once: a middlebox far away would
/// take as long as its packets do.
fn reset(
    world: &mut impl World,
    slab: &mut Slab,
    tally: &mut Tally,
    addresses: Addresses,
    id: u64,
    out: &mut Vec<u8>,
    late: Span,
) {
    let Some(stored) = slab.find(id) else { return };
    for (onward, host) in [(true, stored.header.destination), (false, stored.header.source)] {
        let Some(Addressee::Host(side)) = addresses.addressee(host) else { continue };
        if reset::emit(&stored.header, stored.bytes, onward, out) {
            hand_over(world, tally, side, out, late);
        }
    }
}

fn hand_over(world: &mut impl World, tally: &mut Tally, to: Side, bytes: &[u8], late: Span) {
    if world.write(to, bytes) {
        tally.released(late);
    } else {
        tally.write_refused += 1;
    }
}

/// Writes what router `hop` says about a packet into `out`; false if it has to keep silent.
fn reply(
    slab: &mut Slab,
    addresses: Addresses,
    id: u64,
    hop: usize,
    said: Answer,
    out: &mut Vec<u8>,
) -> bool {
    let Some(stored) = slab.find(id) else { return false };
    let header = stored.header;
    let message = match said {
        Answer::TimeExceeded if addresses.addressee(header.destination) == Some(Addressee::Router(hop)) => {
            Message::of_addressee(&header, stored.bytes)
        }
        Answer::TimeExceeded => Some(Message::TimeExceeded),
        Answer::TooBig { mtu } => Some(Message::TooBig { mtu }),
    };
    let Some(message) = message else { return false };
    if message != Message::EchoReply && header.forbids_errors(stored.bytes) {
        return false;
    }
    if message == Message::TimeExceeded {
        // As it was when it ran out.
        packet::set_hop_limit(stored.bytes, header.version, 1);
    }
    icmp::emit(message, addresses.router(hop, header.version), &header, stored.bytes, out);
    true
}

/// Bytes of packets on their way: half a second at 2 Gbit/s, more than a TUN device carries.
const MOST_BYTES: usize = 128 << 20;
/// A duplicate that comes later than this after its original is lost, by our fault.
const LINGER: Span = Span::from_millis(500);
/// Taken from one host before the other one and the deadlines have their turn: some 10 us.
const MOST_TAKEN: usize = 8;
/// The model wants to be asked once a millisecond, so that cross traffic is computed in small
/// pieces.
const LONGEST_IDLE: Span = Span::from_millis(1);

#[cfg(test)]
mod tests;
