//! The emulator over a virtual clock and two hosts that are lists.

use std::cell::Cell;
use std::collections::VecDeque;
use std::net::IpAddr;

use netaware_netmodel::Truth;
use netaware_record::IpVersion;

use super::*;
use crate::packet::made;

/// Each look at the clock takes a tenth of a microsecond, so that time passes.
struct Script {
    now: Cell<u64>,
    /// When, from whom, what; in order of time.
    coming: VecDeque<(u64, Side, Vec<u8>)>,
    given: Vec<(u64, Side, Vec<u8>)>,
    refuses: bool,
    /// Added to the end of each sleep.
    oversleeps: u64,
    /// How long a packet lay in its host's device.
    waited: Option<fn(&[u8]) -> Span>,
}

impl Script {
    fn new(coming: Vec<(u64, Side, Vec<u8>)>) -> Self {
        Self {
            now: Cell::new(1),
            coming: coming.into(),
            given: Vec::new(),
            refuses: false,
            oversleeps: 0,
            waited: None,
        }
    }
}

impl World for Script {
    fn now(&self) -> Mono {
        self.now.set(self.now.get() + 100);
        Mono(self.now.get())
    }

    fn read(&mut self, side: Side, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let come = |entry: &mut (u64, Side, Vec<u8>)| entry.0 <= self.now.get() && entry.1 == side;
        let Some((_, _, bytes)) = self.coming.pop_front_if(come) else { return Ok(None) };
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        Ok(Some(length))
    }

    fn entered(&mut self, _: Side, packet: &[u8], at: Mono) -> Option<Mono> {
        self.waited.map(|waited| at - waited(packet))
    }

    fn write(&mut self, side: Side, bytes: &[u8]) -> bool {
        self.given.push((self.now.get(), side, bytes.to_vec()));
        !self.refuses
    }

    fn idle(&mut self, until: Mono) -> Idled {
        let next = self.coming.front().map_or(u64::MAX, |entry| entry.0);
        let wake = until.0.min(next);
        if wake <= self.now.get() {
            return Idled::Awake;
        }
        self.now.set(wake + self.oversleeps);
        if next == wake { Idled::Woken } else { Idled::Overslept { due: until } }
    }
}

struct Nobody;

impl Witness for Nobody {
    fn fate(&mut self, _: &Fate, _: Span, _: Option<Subject>) {}
    fn round(&mut self, _: Mono, _: &Truth, _: &mut Tally) {}
}

const MS: u64 = 1_000_000;

/// Hops of 100 Mbit/s with 5 ms each.
fn path(hops: usize) -> Scenario {
    let hop = "[[hop]]\nrate = \"100Mbit/s\"\ndelay = \"5ms\"\n";
    Scenario::parse(&format!("about = \"a test\"\n{}", hop.repeat(hops))).unwrap()
}

fn run(scenario: &Scenario, script: &mut Script, until: u64) -> Tally {
    let mut emulator = Emulator::new(scenario, 1, 1500, Mono(0));
    while script.now.get() < until {
        emulator.round(script, &mut Nobody).unwrap();
    }
    emulator.tally
}

fn host(side: Side, version: IpVersion) -> IpAddr {
    Addresses::new(3).host(side, version)
}

fn datagram(from: Side, version: IpVersion, hop_limit: u8, payload: usize) -> Vec<u8> {
    made::udp(host(from, version), host(from.other(), version), hop_limit, payload)
}

const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

#[test]
fn a_packet_arrives_at_its_deadline_with_fewer_hops_to_live() {
    for (version, from) in [(IpVersion::V4, Side::A), (IpVersion::V6, Side::B)] {
        // 1250 bytes take 100 us at 100 Mbit/s: two hops of 5 ms make 10.2 ms.
        let payload = 1250 - 8 - version.header_len() as usize;
        let mut script = Script::new(vec![(MS, from, datagram(from, version, 64, payload))]);
        let tally = run(&path(2), &mut script, 30 * MS);
        let [(at, to, bytes)] = &script.given[..] else { panic!("{} came", script.given.len()) };
        assert_eq!(*to, from.other());
        assert!((11_200_000..11_202_000).contains(at), "{at}");
        let header = Header::parse(bytes).unwrap();
        assert_eq!((header.hop_limit, bytes.len()), (63, 1250));
        assert!(tally.latest < Span::from_micros(2), "{}", tally.latest);
        assert_eq!((tally.taken, tally.released, tally.core_losses), (1, 1, 0));
    }
}

#[test]
fn how_long_a_packet_lay_in_its_device_is_told_with_its_fate() {
    struct Waits(Vec<Option<Span>>);
    impl Witness for Waits {
        fn fate(&mut self, _: &Fate, _: Span, of: Option<Subject>) {
            self.0.push(of.unwrap().waited);
        }
        fn round(&mut self, _: Mono, _: &Truth, _: &mut Tally) {}
    }
    let coming = [40, 60].map(|payload| (MS, Side::A, datagram(Side::A, IpVersion::V6, 64, payload)));
    let mut script = Script::new(coming.to_vec());
    script.waited = Some(|packet| Span::from_micros(packet.len() as i64));
    let (mut emulator, mut waits) = (Emulator::new(&path(1), 1, 1500, Mono(0)), Waits(Vec::new()));
    while script.now.get() < 20 * MS {
        emulator.round(&mut script, &mut waits).unwrap();
    }
    assert_eq!(waits.0, [88, 108].map(|us| Some(Span::from_micros(us))));
    let longest = emulator.tally.seen_late(1.0).unwrap().micros_f64();
    assert!((longest - 108.0).abs() < 2.0, "{longest}");
}

#[test]
fn every_router_answers_traceroute_from_its_own_address() {
    for version in VERSIONS {
        let coming = (1..=2).map(|hops| (MS, Side::A, datagram(Side::A, version, hops, 40))).collect();
        let mut script = Script::new(coming);
        run(&path(3), &mut script, 60 * MS);
        let sources: Vec<IpAddr> =
            script.given.iter().map(|(_, _, bytes)| Header::parse(bytes).unwrap().source).collect();
        let routers = Addresses::new(3);
        assert_eq!(sources, [routers.router(0, version), routers.router(1, version)]);
        assert!(script.given.iter().all(|(_, to, _)| *to == Side::A));
        assert!(script.given[0].0 > 11 * MS && script.given[1].0 > 21 * MS);
    }
}

#[test]
fn a_router_answers_ping_from_either_end() {
    let (echo, target) = ([8, 0, 0, 0, 1, 1, 2, 2], Addresses::new(4).router(1, IpVersion::V4));
    for (from, round_trip) in [(Side::A, 20), (Side::B, 20)] {
        let asked = made::ip(host(from, IpVersion::V4), target, packet::ICMP, 64, &echo);
        let mut script = Script::new(vec![(MS, from, asked)]);
        run(&path(4), &mut script, 60 * MS);
        let [(at, to, bytes)] = &script.given[..] else { panic!("{} came", script.given.len()) };
        assert_eq!((*to, Header::parse(bytes).unwrap().source, bytes[20]), (from, target, 0));
        assert!(at.abs_diff((round_trip + 1) * MS) < MS, "{at}");
    }
}

#[test]
fn what_the_kernel_mutters_to_itself_does_not_enter_the_path() {
    let router_solicitation =
        made::ip("fe80::1".parse().unwrap(), "ff02::2".parse().unwrap(), 58, 255, &[133; 8]);
    let to_itself = made::udp(host(Side::A, IpVersion::V4), host(Side::A, IpVersion::V4), 64, 1);
    let mut script = Script::new(vec![
        (1, Side::A, router_solicitation),
        (1, Side::A, to_itself),
        (1, Side::A, vec![0xff; 9]),
    ]);
    let tally = run(&path(1), &mut script, 20 * MS);
    assert_eq!((tally.taken, tally.strangers, script.given.len()), (0, 3, 0));
}

#[test]
fn a_refused_packet_is_our_own_fault_and_a_held_up_loop_is_late() {
    let mut script = Script::new(vec![(MS, Side::A, datagram(Side::A, IpVersion::V4, 64, 100))]);
    script.refuses = true;
    assert_eq!(run(&path(1), &mut script, 20 * MS).write_refused, 1);
    let mut script = Script::new(vec![(MS, Side::A, datagram(Side::A, IpVersion::V4, 64, 100))]);
    script.oversleeps = 50 * MS;
    let tally = run(&path(1), &mut script, 200 * MS);
    assert!(tally.latest > Span::from_millis(40) && tally.core_losses > 0, "{}", tally.latest);
    assert!(tally.oversleep(0.99).is_some_and(|late| late > Span::from_millis(45)));
}
