//! Probes that end at each hop of a simulated path, and a destination that is nobody's friend: it
//! answers echoes with echoes and timestamps with its clock's milliseconds, counts its answers in
//! the identification of their IPv4 headers, and reports closed ports as seldom as Linux does.
//! Connections are opened by [`HopPath::connect`].

mod tcp;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netaware_netmodel::{Answer, Fate as Passage, Packet, Scenario, Side};
use netaware_path::hops::{
    Fate, Hops, HopsFinding, HopsPlan, HostStamps, Kind, Probe, Reply, Round, RoundReport, Told, What,
};
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};

use crate::drive::{Way, index};
use crate::simulation::Simulation;

pub use tcp::{Connected, TcpPort};

/// A path seen from host A.
#[derive(Debug)]
pub struct HopPath {
    sim: Simulation,
    version: IpVersion,
    /// The answers of the destination that are under way, by packet.
    answers: BTreeMap<u64, HostAnswer>,
    /// Identification of its next answer over IPv4.
    ident: u16,
    /// When the destination may next report a closed port, less what it may save up.
    may_report_at: Mono,
    /// What became of probes, then of the destination's answers.
    ways: [Way; 2],
    /// The same of those that are kept apart.
    apart: [Way; 2],
    /// Packets from this number on are.
    apart_from: u64,
    /// Connections tried.
    connections: u64,
    /// True delays of timestamps and of their answers.
    stamped: [Vec<Span>; 2],
}

/// What the destination says.
#[derive(Debug, Clone, Copy)]
struct HostAnswer {
    /// The probe.
    about: u64,
    said: Said,
    ident: Option<u16>,
    stamps: Option<HostStamps>,
}

/// By which protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Icmp(What),
    Tcp,
}

/// A round, or a connection, under way.
struct Underway<'a> {
    probes: &'a [Probe],
    /// Number in the network of the first.
    first: u64,
    told: Vec<Told>,
    tcp: Option<tcp::Connecting>,
}

impl HopPath {
    /// The path of `scenario`, its cross traffic in full swing. Equal seeds make equal paths.
    pub fn new(scenario: &Scenario, version: IpVersion, seed: u64) -> Self {
        let mut sim = Simulation::new(scenario, seed);
        sim.pass(WARM_UP);
        Self {
            sim,
            version,
            answers: BTreeMap::new(),
            ident: 0,
            may_report_at: Mono(0),
            ways: Default::default(),
            apart: Default::default(),
            apart_from: u64::MAX,
            connections: 0,
            stamped: Default::default(),
        }
    }

    /// Probes, or the destination's answers, as somebody saw them who knows everything.
    pub fn way(&self, from: Side) -> &Way {
        &self.ways[index(from)]
    }

    /// What is sent from now on is not in [`Self::way`]: trains that fill the path would be most of
    /// it.
    pub fn keep_apart(&mut self) {
        self.apart_from = self.apart_from.min(self.sim.next_id);
    }

    /// Where the packet of this number is counted, which left `from`.
    fn book(&mut self, id: u64, from: Side) -> &mut Way {
        let ways = if id >= self.apart_from { &mut self.apart } else { &mut self.ways };
        &mut ways[index(from)]
    }

    /// True one-way delays of ICMP timestamps (from A) or of the answers to them (from B), in the
    /// order of arrival.
    pub fn stamped(&self, from: Side) -> &[Span] {
        &self.stamped[index(from)]
    }

    /// The network that it goes through.
    pub(crate) fn simulation(&self) -> &Simulation {
        &self.sim
    }

    /// What the clock of host A shows.
    pub fn now(&self) -> Mono {
        self.sim.local_now(Side::A)
    }

    /// Sends a round and waits as it says.
    pub fn run(&mut self, round: &Round) -> RoundReport {
        let nothing = Told { sent_at: self.now(), fate: Fate::Silent };
        let mut underway = Underway {
            probes: &round.probes,
            first: self.sim.next_id,
            told: vec![nothing; round.probes.len()],
            tcp: None,
        };
        // Answers of the destination get numbers behind those of the probes.
        self.sim.next_id += round.probes.len() as u64;
        for (n, probe) in round.probes.iter().enumerate() {
            let at = self.sim.now + probe.after.or_zero();
            self.pass_to(at, &mut underway);
            self.send(n, *probe, &mut underway);
        }
        let until = self.sim.now + round.patience;
        while underway.waits() {
            let next = self.sim.network.next_event().filter(|next| *next <= until);
            self.pass_to(next.unwrap_or(until), &mut underway);
            if next.is_none() {
                break;
            }
        }
        RoundReport::of(underway.told)
    }

    fn send(&mut self, n: usize, probe: Probe, underway: &mut Underway<'_>) {
        underway.told[n].sent_at = self.now();
        let id = underway.first + n as u64;
        let mtu = self.sim.known_mtu(Side::A, self.version);
        if probe.length > mtu {
            underway.told[n].fate = Fate::TooBig(mtu);
            self.book(id, Side::A).not_sent += 1;
            return;
        }
        let packet = Packet {
            id,
            version: self.version,
            length: probe.length,
            hop_limit: probe.ttl,
            flow: 1 + probe.kind as u64,
            dont_fragment: true,
        };
        self.book(id, Side::A).sent += 1;
        self.sim.network.offer(self.sim.now, Side::A, packet);
    }

    /// Lets time pass, from one event to the next: what the destination says has to leave when it
    /// is said.
    fn pass_to(&mut self, at: Mono, underway: &mut Underway<'_>) {
        let mut fates = Vec::new();
        loop {
            let next = self.sim.network.next_event().filter(|next| *next < at).unwrap_or(at);
            self.sim.now = self.sim.now.max(next);
            self.sim.network.advance(self.sim.now, &mut |fate| fates.push(fate));
            for fate in fates.drain(..) {
                self.take(fate, underway);
            }
            if next >= at {
                return;
            }
        }
    }

    /// Into the books, whichever round it belongs to.
    fn note(&mut self, fate: &Passage, underway: &Underway<'_>) {
        let answer = self.answers.get(&fate.id()).map(|answer| answer.said);
        let way = self.book(fate.id(), if answer.is_some() { Side::B } else { Side::A });
        match *fate {
            Passage::Delivered { duplicate: true, .. } => way.copies += 1,
            Passage::Delivered { corrupted_bit: Some(_), .. } => way.corrupted += 1,
            Passage::Delivered { id, delay, .. } => {
                way.delays.push((id, delay));
                let asked = || underway.probe(id).is_some_and(|probe| probe.kind == Kind::Timestamp);
                match answer {
                    Some(Said::Icmp(What::TimestampReply)) => self.stamped[index(Side::B)].push(delay),
                    None if asked() => self.stamped[index(Side::A)].push(delay),
                    _ => {}
                }
            }
            Passage::Answered { answer: Answer::TooBig { .. }, .. } => way.too_big += 1,
            Passage::Answered { answer: Answer::TimeExceeded, .. } => way.time_exceeded += 1,
            Passage::Dropped { id, cause, .. } => {
                way.dropped[cause as usize] += 1;
                self.answers.remove(&id);
            }
        }
    }

    fn take(&mut self, fate: Passage, underway: &mut Underway<'_>) {
        self.take_tcp(&fate, underway);
        self.note(&fate, underway);
        match fate {
            Passage::Delivered { id, to: Side::B, corrupted_bit: None, duplicate: false, .. } => {
                self.arrived(id, underway);
            }
            Passage::Delivered { id, at, to: Side::A, corrupted_bit: None, .. } => {
                let Some(HostAnswer { about, said, ident, stamps }) = self.answers.remove(&id) else {
                    return;
                };
                let Said::Icmp(what) = said else { return };
                let length = underway.probe(about).map(|probe| self.answer_length(what, probe.length));
                let (at, from) = (self.reading(at), self.destination());
                let reply = Reply { at, from, what, length, ident, stamps };
                underway.answered(about, reply);
            }
            Passage::Answered { id, at, hop, member, answer, .. } => {
                let what = match answer {
                    Answer::TimeExceeded => What::TimeExceeded,
                    Answer::TooBig { mtu } => What::TooBig(mtu),
                };
                let length = underway.probe(id).map(|probe| self.router_length(probe.length));
                let (at, from) = (self.reading(at), self.router(hop, member));
                let reply = Reply { at, from, what, length, ident: None, stamps: None };
                underway.answered(id, reply);
            }
            _ => {}
        }
    }

    /// A probe has come to the destination.
    fn arrived(&mut self, id: u64, underway: &Underway<'_>) {
        let Some(probe) = underway.probe(id) else { return };
        let what = match probe.kind {
            Kind::Echo => What::EchoReply,
            Kind::Timestamp if self.version == IpVersion::V4 => What::TimestampReply,
            Kind::Udp if probe.mute && self.version == IpVersion::V6 => return,
            Kind::Udp if self.may_report() => What::PortUnreachable,
            Kind::Udp | Kind::Timestamp => return,
        };
        let answer = self.sim.next_id;
        self.sim.next_id += 1;
        let is_v4 = self.version == IpVersion::V4;
        let ident = is_v4.then_some(self.ident);
        self.ident = self.ident.wrapping_add(u16::from(is_v4));
        let stamps = (what == What::TimestampReply).then(|| self.host_stamps());
        self.answers.insert(answer, HostAnswer { about: id, said: Said::Icmp(what), ident, stamps });
        let packet = Packet {
            id: answer,
            version: self.version,
            length: self.answer_length(what, probe.length),
            hop_limit: 64,
            flow: 1 + probe.kind as u64,
            dont_fragment: true,
        };
        self.book(answer, Side::B).sent += 1;
        self.sim.network.offer(self.sim.now, Side::B, packet);
    }

    /// What the wall clock of host B shows, its steps included. It answers at once.
    fn host_stamps(&self) -> HostStamps {
        let shown = self.sim.network.clock(Side::B).reading(self.sim.now).0;
        let ms = shown.div_euclid(1_000_000).rem_euclid(MILLIS_OF_A_DAY) as u32;
        HostStamps { receive: ms, transmit: ms }
    }

    /// `net.ipv4.icmp_ratelimit` and its IPv6 twin: one a second, six at once.
    fn may_report(&mut self) -> bool {
        let now = self.sim.now;
        if self.may_report_at > now + REPORT_EVERY * (REPORTS_AT_ONCE - 1) {
            return false;
        }
        self.may_report_at = self.may_report_at.max(now) + REPORT_EVERY;
        true
    }

    fn answer_length(&self, what: What, length: u32) -> u32 {
        match (what, self.version) {
            (What::EchoReply | What::TimestampReply, _) => length,
            (_, IpVersion::V4) => (length + 28).min(576),
            (_, IpVersion::V6) => (length + 48).min(1280),
        }
    }

    /// As the model of the network has it.
    fn router_length(&self, length: u32) -> u32 {
        match self.version {
            IpVersion::V4 => 56,
            IpVersion::V6 => (length + 48).min(1280),
        }
    }

    fn reading(&self, at: Mono) -> Mono {
        self.sim.clock(Side::A).reading(at)
    }

    /// Its address on the link that a packet came by.
    fn router(&self, hop: usize, member: u16) -> IpAddr {
        let [high, low] = member.to_be_bytes();
        match self.version {
            IpVersion::V4 if member == 0 => Ipv4Addr::new(192, 0, 2, hop as u8 + 1).into(),
            IpVersion::V4 => Ipv4Addr::new(10, high, low, hop as u8 + 1).into(),
            IpVersion::V6 => Ipv6Addr::new(0x2001, 0xdb8, 0, member, 0, 0, 0, hop as u16 + 1).into(),
        }
    }

    fn destination(&self) -> IpAddr {
        destination(self.version)
    }
}

/// The address of the host at the other end.
pub(crate) fn destination(version: IpVersion) -> IpAddr {
    match version {
        IpVersion::V4 => Ipv4Addr::new(198, 51, 100, 1).into(),
        IpVersion::V6 => Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1).into(),
    }
}

impl Underway<'_> {
    fn place(&self, id: u64) -> Option<usize> {
        usize::try_from(id.checked_sub(self.first)?).ok().filter(|place| *place < self.probes.len())
    }

    fn probe(&self, id: u64) -> Option<Probe> {
        self.place(id).map(|place| self.probes[place])
    }

    fn answered(&mut self, id: u64, reply: Reply) {
        if let Some(place) = self.place(id)
            && self.told[place].fate == Fate::Silent
        {
            self.told[place].fate = Fate::Answered(reply);
        }
    }

    fn waits(&self) -> bool {
        self.probes.iter().zip(&self.told).any(|(probe, told)| probe.awaited && told.fate == Fate::Silent)
    }
}

/// Runs the method over a path to its end.
pub fn hops(path: &mut HopPath, plan: HopsPlan) -> HopsFinding {
    let mut method = Hops::new(plan);
    while let Some(round) = method.next(path.now()) {
        let report = path.run(&round);
        method.take(&report);
    }
    method.finding()
}

/// What a prober asks for over this version, on a path that takes 1500 bytes: for tests and
/// comparisons.
pub fn usual_plan(version: IpVersion, time: Span, seed: u64) -> HopsPlan {
    let header = version.header_len();
    HopsPlan {
        max_hops: 30,
        smallest: header + 8 + 16,
        largest: 1500,
        tail: header + 8 + 4,
        header,
        sizes: Vec::new(),
        time,
        per_hop: None,
        way: netaware_path::hops::CapacityWay::Automatic,
        echo: true,
        trains: true,
        stamp_error: Span(20),
        send_gap: Span::ZERO,
        seed,
    }
}

/// Until queues are as full as they usually are.
const WARM_UP: Span = Span::from_millis(500);
const MILLIS_OF_A_DAY: i64 = 86_400_000;
const REPORT_EVERY: Span = Span::from_secs(1);
const REPORTS_AT_ONCE: i64 = 6;
