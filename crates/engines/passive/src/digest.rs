//! Which packet is this, at every point of the network?
//!
//! **What it measures.** A 64-bit label of each chosen packet, made of what routers leave alone, so
//! that two probes give the same packet the same label and can be joined by it. Selection is by a
//! second hash of the same bytes: every probe of the fleet chooses the same packets, without
//! talking to the others (RFC 5474 §5, RFC 5475 §6.2).
//!
//! **What it assumes.** That nobody on the way rewrites addresses, ports, IPv4 identification or
//! the first payload bytes: NAT, tunnels seen at one point only, translation to the other IP
//! version, clamping of the segment size (SYN packets) and fragmentation between two points break
//! it: such packets look lost. Remarking (TOS, ECN, flow label), TTL and checksums do not.
//!
//! **How it is biased.** Packets that are equal in all that is hashed cannot be told apart:
//! retransmissions by link layers, and UDP whose sender leaves the identification 0 and repeats
//! itself. The join counts those. Two different packets within a window of `w` packets are confused
//! with probability `2 w / 2^64` each.
//!
//! **Where it was published.** BOB: RFC 5475 §6.2.4.1 (Jenkins' lookup2, 1996). Ours: NH (UMAC,
//! CRYPTO 1999) and over its 128 bits SipHash-1-3 (Aumasson and Bernstein, 2012). Where we differ:
//! RFC 5475 lists 5 bytes of each IPv6 address, we take all 16; it leaves out protocol and payload
//! length of IPv4; we add both. One hash for both uses: Henke, Schmoll and Zseby, PAM 2009.

mod bob;
mod compressor;
mod input;
mod sip;
mod statistics;

use netaware_record::passive::{DigestRow, PacketSighting, Period, Row};
use netaware_wire::ipfix::sightings::{BOB, HashSelector};
use netaware_wire::lmap::{DigestFunction, LEAST_PAYLOAD, MOST_PAYLOAD, What};
use netaware_wire::packet::Packet;

pub use bob::bob;
pub use input::{Unusable, rfc5475_input};
pub(crate) use sip::Sip;

use crate::{Found, Link, Observed, Seed, TaskError, Watch, watch};

/// How packets are labelled and chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DigestSettings {
    /// Share of packets to choose, above 0 to 1.
    pub share: f64,
    /// Payload bytes (from the transport header on) that are hashed, [`LEAST_PAYLOAD`] to
    /// [`MOST_PAYLOAD`]; of shorter packets what there is.
    pub payload: u16,
    /// Which hash.
    pub function: DigestFunction,
    /// Where BOB begins; `None`: made from the seed.
    pub initialiser: Option<u32>,
}

impl DigestSettings {
    /// Of a digest task.
    pub fn of(what: &What) -> Option<Self> {
        match what {
            What::Digest { share, payload, function, initialiser } => {
                let (share, payload, function) = (*share, *payload, *function);
                Some(Self { share, payload, function, initialiser: *initialiser })
            }
            _ => None,
        }
    }

    /// What others may know of it (RFC 5477 §8.3): all but the secrets. SipHash has no number
    /// there.
    pub fn selector(&self) -> HashSelector {
        let algorithm = if self.function == DigestFunction::Bob { BOB } else { 0 };
        let largest = u64::MAX >> (64 - self.bits());
        let chosen = self.below().map_or(largest, |below| below - 1);
        let (output, selected) = ((0, largest), (0, chosen));
        HashSelector { algorithm, payload_offset: 0, payload_size: self.payload, output, selected }
    }

    /// Of a digest.
    fn bits(&self) -> u32 {
        match self.function {
            DigestFunction::Sip => 64,
            DigestFunction::Bob => 32,
        }
    }

    /// Packets are chosen whose selection hash is below this; `None`: all.
    fn below(&self) -> Option<u64> {
        // The cast saturates: a share next to 1 chooses all but 1 of 2^64.
        let range = (self.share < 1.0).then(|| (self.share * f64::from(self.bits()).exp2()) as u64);
        range.map(|range| range.max(1))
    }
}

/// Sightings that are kept between two calls of [`Watch::drain`] or [`Watch::close`] at most; what
/// is beyond is given up and counted.
pub const MOST_SIGHTINGS: usize = 1 << 21;

/// The hash of a fleet: the same packet gives the same digest wherever it is seen.
#[derive(Debug, Clone)]
pub struct Digester {
    payload: usize,
    hash: Hash,
    /// A packet is chosen whose selection hash is below this; `None`: all are.
    below: Option<u64>,
}

#[derive(Debug, Clone)]
enum Hash {
    Ours(input::Ours),
    /// Initialisers of digest and selection.
    Bob(u32, u32),
}

/// A packet's label, or that it was not chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Its digest.
    Selected(u64),
    /// Outside of the range.
    PassedOver,
}

impl Digester {
    /// For a fleet.
    pub fn new(settings: &DigestSettings, seed: &Seed) -> Result<Self, TaskError> {
        let payload =
            watch::within("payload", settings.payload.into(), LEAST_PAYLOAD.into(), MOST_PAYLOAD.into())?;
        if !(settings.share > 0.0 && settings.share <= 1.0) {
            return Err(TaskError::OutOfRange {
                name: "share",
                value: settings.share,
                least: 0.0,
                most: 1.0,
            });
        }
        let key = seed.key("packet digest");
        let hash = match settings.function {
            DigestFunction::Sip => Hash::Ours(input::Ours::new(key)),
            DigestFunction::Bob => Hash::Bob(settings.initialiser.unwrap_or(key.0 as u32), key.1 as u32),
        };
        Ok(Self { payload: payload as usize, hash, below: settings.below() })
    }

    /// The digest of a packet, if it is chosen.
    #[inline]
    pub fn choose(&self, packet: &Packet<'_>) -> Result<Choice, Unusable> {
        let payload = input::payload(packet, self.payload)?;
        let (digest, selection) = match &self.hash {
            Hash::Ours(ours) => ours.hash(packet, payload, self.below.is_some()),
            Hash::Bob(digest, selection) => {
                let mut bytes = [0; input::MOST_INPUT];
                let used = input::rfc5475(packet, payload, &mut bytes);
                input::without_checksum(packet.protocol, &mut bytes[used - payload.len()..used]);
                let selection = self.below.map_or(0, |_| bob(&bytes[..used], *selection));
                (bob(&bytes[..used], *digest).into(), selection.into())
            }
        };
        let chosen = self.below.is_none_or(|below| selection < below);
        Ok(if chosen { Choice::Selected(digest) } else { Choice::PassedOver })
    }
}

/// The task.
#[derive(Debug)]
pub struct DigestWatch {
    digester: Digester,
    link: Link,
    counts: DigestRow,
    sightings: Vec<PacketSighting>,
}

impl DigestWatch {
    /// A task that has seen nothing yet.
    pub fn new(settings: &DigestSettings, seed: &Seed, link: Link) -> Result<Self, TaskError> {
        let digester = Digester::new(settings, seed)?;
        Ok(Self { digester, link, counts: DigestRow::default(), sightings: Vec::new() })
    }
}

impl Watch for DigestWatch {
    #[inline]
    fn observe(&mut self, seen: &Observed<'_>) {
        let packet = &seen.packet;
        self.counts.observed += 1;
        if seen.is_merged() || self.link.merged(packet.length) {
            self.counts.unusable += 1;
            return;
        }
        match self.digester.choose(packet) {
            Err(why) => {
                self.counts.unusable += 1;
                self.counts.cut += u64::from(why == Unusable::CutOff);
            }
            Ok(Choice::PassedOver) => {}
            Ok(Choice::Selected(_)) if self.sightings.len() >= MOST_SIGHTINGS => self.counts.given_up += 1,
            Ok(Choice::Selected(digest)) => {
                self.counts.selected += 1;
                self.sightings.push(PacketSighting {
                    digest,
                    at: seen.at,
                    length: u16::try_from(packet.length).unwrap_or(u16::MAX),
                    ttl: packet.ttl,
                    version: packet.version,
                });
            }
        }
    }

    fn close(&mut self, _period: Period, found: &mut Found) {
        found.sightings.append(&mut self.sightings);
        found.rows.push(Row::Digests(std::mem::take(&mut self.counts)));
    }

    fn drain(&mut self, least: usize, empty: &mut Vec<PacketSighting>) {
        if self.sightings.len() >= least.max(1) && empty.is_empty() {
            std::mem::swap(empty, &mut self.sightings);
        }
    }

    fn link(&mut self, link: Link) {
        self.link = link;
    }
}

#[cfg(test)]
mod tests {
    use netaware_units::Wall;

    use super::*;
    use crate::made_up::{Made, PERIOD};

    fn settings(share: f64) -> DigestSettings {
        DigestSettings { share, payload: 24, function: DigestFunction::Sip, initialiser: None }
    }

    #[test]
    fn what_routers_change_does_not_change_the_digest() {
        for function in [DigestFunction::Sip, DigestFunction::Bob] {
            let digester =
                Digester::new(&DigestSettings { function, ..settings(1.0) }, &Seed::new([3; 16])).unwrap();
            for made in [Made::tcp4(), Made::udp4(), Made::tcp6(), Made::udp6(), Made::icmp6()] {
                let before = digester.choose(&made.packet()).unwrap();
                let after = digester.choose(&made.clone().forwarded().packet()).unwrap();
                assert_eq!(before, after, "{function:?} {made:?}");
                let other = digester.choose(&made.clone().payload(b"another payload").packet()).unwrap();
                assert_ne!(before, other, "{function:?} {made:?}");
            }
        }
    }

    #[test]
    fn what_tells_packets_apart_changes_it() {
        let digester = Digester::new(&settings(1.0), &Seed::new([3; 16])).unwrap();
        let digest = |made: &Made| digester.choose(&made.packet()).unwrap();
        for made in [Made::udp4(), Made::udp6()] {
            let was = digest(&made);
            assert_ne!(was, digest(&made.clone().ports(1, 2)));
            assert_ne!(was, digest(&made.clone().destination_of(99)));
            assert_ne!(
                was,
                digest(&made.clone().payload(b"longer than it was before, by a few bytes and more"))
            );
        }
        let first = Made::udp4().identification(7);
        assert_ne!(digest(&first), digest(&first.clone().identification(8)));
        let elsewhere = Digester::new(&settings(1.0), &Seed::new([4; 16])).unwrap();
        assert_ne!(digest(&first), elsewhere.choose(&first.packet()).unwrap());
    }

    #[test]
    fn what_others_may_know_is_told_and_the_range_is_that_which_chooses() {
        let bob = DigestSettings { function: DigestFunction::Bob, initialiser: Some(7), ..settings(0.25) };
        let told = bob.selector();
        assert_eq!((told.algorithm, told.payload_offset, told.payload_size), (6, 0, 24));
        assert_eq!((told.output, told.selected), ((0, u32::MAX.into()), (0, (1 << 30) - 1)));
        let sip = settings(1.0).selector();
        assert_eq!((sip.algorithm, sip.output, sip.selected), (0, (0, u64::MAX), (0, u64::MAX)));
    }

    #[test]
    fn bob_begins_where_it_is_told_to_whatever_the_seed() {
        let digest = |initialiser, seed| {
            let asked = DigestSettings { function: DigestFunction::Bob, initialiser, ..settings(1.0) };
            let digester = Digester::new(&asked, &Seed::new([seed; 16])).unwrap();
            let made = Made::udp4();
            let Choice::Selected(digest) = digester.choose(&made.packet()).unwrap() else { panic!() };
            digest
        };
        assert_eq!(digest(Some(7), 1), digest(Some(7), 2));
        assert_ne!(digest(Some(7), 1), digest(Some(8), 1));
        assert_ne!(digest(None, 1), digest(None, 2));
    }

    #[test]
    fn what_was_cut_off_or_merged_is_unusable_and_counted() {
        let link = Link { mtu: Some(1500), rate: None };
        let mut task = DigestWatch::new(&settings(1.0), &Seed::new([3; 16]), link).unwrap();
        let whole = Made::udp4().payload(&[7; 100]);
        task.observe(&whole.observed(Wall(1)));
        task.observe(&whole.clone().captured(50).observed(Wall(2)));
        task.observe(&whole.clone().captured(20 + 24).observed(Wall(3)));
        task.observe(&whole.clone().captured(20 + 23).observed(Wall(4)));
        task.observe(&whole.clone().later_fragment().observed(Wall(5)));
        task.observe(&Made::tcp4().payload(&[7; 3000]).observed(Wall(6)));
        task.observe(&Observed { segments: 2, ..whole.observed(Wall(7)) });
        let mut found = Found::default();
        task.close(PERIOD, &mut found);
        assert_eq!(
            found.rows,
            [Row::Digests(DigestRow { observed: 7, selected: 3, unusable: 4, given_up: 0, cut: 1 })]
        );
        let digests: Vec<_> = found.sightings.iter().map(|sighting| sighting.digest).collect();
        assert_eq!(digests, [digests[0]; 3], "the same bytes were there to hash");
        task.link(Link { mtu: Some(9000), rate: None });
        task.observe(&Made::tcp4().payload(&[7; 3000]).observed(Wall(6)));
        let mut after = Found::default();
        task.close(PERIOD, &mut after);
        assert_eq!(
            after.rows,
            [Row::Digests(DigestRow { observed: 1, selected: 1, ..DigestRow::default() })]
        );
    }

    #[test]
    fn the_ethernet_padding_of_a_short_packet_is_not_hashed() {
        let digester = Digester::new(&settings(1.0), &Seed::new([3; 16])).unwrap();
        let short = Made::udp4().payload(b"x");
        let padded = short.clone().padded(18);
        assert_eq!(digester.choose(&short.packet()), digester.choose(&padded.packet()));
    }

    #[test]
    fn all_probes_choose_the_same_packets_and_about_the_share_asked_for() {
        for function in [DigestFunction::Sip, DigestFunction::Bob] {
            let asked = DigestSettings { share: 0.1, payload: 12, function, initialiser: None };
            let here = Digester::new(&asked, &Seed::new([9; 16])).unwrap();
            let there = Digester::new(&asked, &Seed::new([9; 16])).unwrap();
            let mut chosen = 0;
            for number in 0..20_000_u32 {
                let made = Made::udp6().payload(&number.to_be_bytes());
                let choice = here.choose(&made.packet()).unwrap();
                assert_eq!(choice, there.choose(&made.clone().forwarded().packet()).unwrap());
                chosen += u32::from(choice != Choice::PassedOver);
            }
            // Binomial: 2000 with a deviation of 42; five of those.
            assert!(chosen.abs_diff(2000) < 212, "{function:?}: {chosen}");
        }
    }

    #[test]
    fn sightings_come_out_between_periods_and_the_count_goes_on() {
        let mut task = DigestWatch::new(&settings(1.0), &Seed::new([3; 16]), Link::default()).unwrap();
        let mut sightings = Vec::new();
        task.observe(&Made::tcp6().observed(Wall(1)));
        task.drain(2, &mut sightings);
        assert!(sightings.is_empty(), "too few to be worth it");
        task.drain(1, &mut sightings);
        assert_eq!(sightings.len(), 1);
        task.drain(0, &mut sightings);
        assert_eq!(sightings.len(), 1, "these are not taken back");
        task.observe(&Made::tcp4().observed(Wall(2)));
        let mut found = Found::default();
        task.close(PERIOD, &mut found);
        assert_eq!(found.sightings.len(), 1);
        assert_eq!(
            found.rows,
            [Row::Digests(DigestRow { observed: 2, selected: 2, ..DigestRow::default() })]
        );
    }
}
