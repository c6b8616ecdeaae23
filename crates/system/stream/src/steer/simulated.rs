//! An hour of a steered stream on a virtual clock: the rates that the policy sees are measured, on
//! paths of which the truth is known.
//!
//! ```text
//!  dual::Stream ── bytes, padding ──► Tcp ── packets ──► netmodel::Network (IPv4) ─┐ acknowledgements
//!       ▲                        └──► Tcp ── packets ──► netmodel::Network (IPv6) ─┤ after a fixed way back
//!       └── wishes ── Steer ◄── TcpInfo (delivery rate as Linux takes it) ◄────────┘
//! ```
//!
//! `Tcp` is as much of TCP as shapes these figures: slow start, one halving per round trip of
//! losses, growth by a segment per round trip, and the delivery rate of each acknowledged segment
//! with Linux's rule for those that were not limited by the window (net/ipv4/tcp_rate.c;
//! draft-cheng-iccrg-delivery-rate-estimation).

use std::collections::{BTreeMap, VecDeque};

use netaware_dual::{Due, Event, Peer, Setting, Side as End, Stream};
use netaware_netmodel::{Fate, Network, Packet, Scenario, Side};
use netaware_wire::dual::{Answer, Record};

use super::*;

const SEGMENT: u32 = 1448;
const BOTH: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];
/// From an arrival until the sender knows of it, and of a loss as long after the drop.
const WAY_BACK: Span = Span::from_millis(15);

/// What was known when a segment left.
#[derive(Debug, Clone, Copy)]
struct Sent {
    at: Mono,
    delivered: u64,
    delivered_at: Mono,
    first_at: Mono,
    limited_by_bytes: bool,
}

struct Tcp {
    ip: IpVersion,
    network: Network,
    /// Bytes to send; what the stream has is endless.
    unsent: u64,
    cwnd: f64,
    ssthresh: f64,
    under_way: BTreeMap<u64, Sent>,
    next: u64,
    /// Acknowledgements (true) and drops that the sender hears of later.
    told: VecDeque<(Mono, u64, bool)>,
    delivered: u64,
    delivered_at: Mono,
    first_at: Mono,
    halved_at: Mono,
    rtt: Span,
    rate: BitRate,
    bytes_sent: u64,
    bytes_resent: u64,
}

impl Tcp {
    fn new(ip: IpVersion, scenario: &str, seed: u64) -> Self {
        let scenario = Scenario::parse(scenario).unwrap_or_else(|error| panic!("{error}"));
        Self {
            ip,
            network: Network::new(&scenario, seed),
            unsent: 0,
            cwnd: 10.0,
            ssthresh: f64::INFINITY,
            under_way: BTreeMap::new(),
            next: 0,
            told: VecDeque::new(),
            delivered: 0,
            delivered_at: Mono(0),
            first_at: Mono(0),
            halved_at: Mono(0),
            rtt: Span::ZERO,
            rate: BitRate(0),
            bytes_sent: 0,
            bytes_resent: 0,
        }
    }

    /// Segments that have been acknowledged by then, after sending what may be sent.
    fn pass(&mut self, now: Mono) -> u64 {
        let told = &mut self.told;
        self.network.advance(now, &mut |fate| match fate {
            Fate::Delivered { id, at, to: Side::B, duplicate: false, .. } => {
                told.push_back((at + WAY_BACK, id, true));
            }
            Fate::Dropped { id, at, .. } => told.push_back((at + WAY_BACK, id, false)),
            _ => {}
        });
        let mut acknowledged = 0;
        while let Some((at, id, came)) = self.told.front().copied().filter(|(at, ..)| *at <= now) {
            self.told.pop_front();
            let Some(sent) = self.under_way.remove(&id) else { continue };
            if came {
                acknowledged += 1;
                self.acknowledge(at, sent);
            } else {
                self.lose(at, sent);
            }
        }
        self.send(now);
        acknowledged
    }

    fn acknowledge(&mut self, at: Mono, sent: Sent) {
        let rtt = at - sent.at;
        self.rtt = if self.rtt == Span::ZERO { rtt } else { (self.rtt * 7 + rtt) / 8 };
        self.delivered += 1;
        self.delivered_at = at;
        self.first_at = sent.at;
        let took = (sent.at - sent.first_at).max(at - sent.delivered_at);
        let count = self.delivered - sent.delivered;
        if took >= self.rtt / 2 {
            let rate = BitRate((count as f64 * f64::from(SEGMENT) * 8e9 / took.nanos() as f64) as u64);
            if !sent.limited_by_bytes || rate >= self.rate {
                self.rate = rate;
            }
        }
        if !sent.limited_by_bytes {
            self.cwnd += if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
        }
    }

    fn lose(&mut self, at: Mono, sent: Sent) {
        self.unsent += u64::from(SEGMENT);
        self.bytes_resent += u64::from(SEGMENT);
        if sent.at >= self.halved_at {
            self.halved_at = at;
            self.ssthresh = (self.cwnd * 0.7).max(2.0);
            self.cwnd = self.ssthresh;
        }
    }

    fn send(&mut self, now: Mono) {
        if self.under_way.is_empty() {
            (self.delivered_at, self.first_at) = (now, now);
        }
        while self.under_way.len() < self.cwnd as usize && self.unsent > 0 {
            self.unsent = self.unsent.saturating_sub(SEGMENT.into());
            self.bytes_sent += u64::from(SEGMENT);
            let sent = Sent {
                at: now,
                delivered: self.delivered,
                delivered_at: self.delivered_at,
                first_at: self.first_at,
                limited_by_bytes: self.unsent == 0,
            };
            self.under_way.insert(self.next, sent);
            let packet = Packet {
                id: self.next,
                version: self.ip,
                length: SEGMENT + 52,
                hop_limit: 64,
                flow: 1,
                dont_fragment: true,
            };
            self.network.offer(now, Side::A, packet);
            self.next += 1;
        }
    }

    fn info(&self) -> TcpInfo {
        TcpInfo {
            rtt: self.rtt,
            cwnd: ByteCount(self.cwnd as u64 * u64::from(SEGMENT)),
            mss: SEGMENT,
            unacked: self.under_way.len() as u32,
            unsent: ByteCount(self.unsent),
            delivery_rate: self.rate,
            bytes_sent: ByteCount(self.bytes_sent),
            bytes_resent: ByteCount(self.bytes_resent),
            segments_sent: self.bytes_sent / u64::from(SEGMENT),
            retransmits: self.bytes_resent / u64::from(SEGMENT),
            ..TcpInfo::default()
        }
    }
}

/// A stream that always has bytes to send, its peer that grants what it wishes for, and what
/// carries them.
struct Steered {
    stream: Stream,
    steer: Steer,
    paths: [Tcp; 2],
    /// Padding that a connection has not carried yet; it goes before what is given to it later.
    padding: [u64; 2],
    /// Of the stream: given to it, written to a connection, and known to have come.
    queued: u64,
    written: u64,
    came: u64,
    /// What the application has to send every 10 ms.
    offers: u64,
    /// Packets that show the other version's loss.
    packets: u64,
    /// When it went where.
    switches: Vec<(Mono, IpVersion)>,
}

impl Steered {
    /// From IPv4 on, under the rules for bulk, with bytes without end.
    fn new(scenarios: [&str; 2], seed: u64) -> Self {
        Self::under(Rules::of(Use::Bulk), u64::MAX, scenarios, seed)
    }

    fn under(rules: Rules, offers: u64, scenarios: [&str; 2], seed: u64) -> Self {
        let setting = Setting { side: End::Opener, room: 1 << 20, longest: 1 << 16, ack_delay: Span::ZERO };
        let mut stream = Stream::new(setting);
        for ip in BOTH {
            stream.connected(Mono(0), ip, 1, Peer { room: 1 << 30, received: 0 }).unwrap();
        }
        Self {
            stream,
            steer: Steer::new(rules, false, Mono(0)),
            paths: BOTH.map(|ip| Tcp::new(ip, scenarios[ip.index()], seed * 2 + ip.index() as u64)),
            padding: [0; 2],
            queued: 0,
            written: 0,
            came: 0,
            offers,
            packets: 0,
            switches: Vec::new(),
        }
    }

    fn run(mut self, span: Span) -> Vec<(Mono, IpVersion)> {
        self.pass(span);
        self.switches
    }

    fn pass(&mut self, span: Span) {
        let mut now = Mono(0);
        while now < Mono(0) + span {
            for ip in BOTH {
                let carried = self.paths[ip.index()].pass(now) * u64::from(SEGMENT);
                let padding = &mut self.padding[ip.index()];
                let of_padding = carried.min(*padding);
                *padding -= of_padding;
                self.came = (self.came + carried - of_padding).min(self.written);
            }
            if now.0.is_multiple_of(10_000_000) {
                self.write(now);
            }
            if now.0.is_multiple_of(50_000_000) {
                self.look(now);
            }
            now += Span::from_millis(1);
        }
    }

    /// What a driver does: keeps a socket's buffer full, and no more.
    fn write(&mut self, now: Mono) {
        let Some(current) = self.stream.current() else { return };
        let received = self.came;
        self.stream.take(now, current, Record::Ack { received, room: 1 << 30, all: false }).unwrap();
        let more = (received + BUFFER).saturating_sub(self.queued).min(self.offers);
        self.steer.send_packet(now, &mut self.stream);
        self.queued += more;
        self.stream.queued(more);
        for ip in BOTH {
            while let Some(due) = self.stream.poll(now, ip) {
                match due {
                    Due::Data { offset, length } => {
                        self.written = self.written.max(offset + u64::from(length));
                        self.paths[ip.index()].unsent += u64::from(length);
                    }
                    Due::Record(Record::Pad { length: 1 } | Record::Ping { .. }) => {
                        // A segment of its own.
                        self.packets += 1;
                        self.padding[ip.index()] += u64::from(SEGMENT);
                        self.paths[ip.index()].unsent += 1;
                    }
                    Due::Record(Record::Pad { length }) => {
                        self.padding[ip.index()] += u64::from(length);
                        self.paths[ip.index()].unsent += u64::from(length);
                    }
                    Due::Record(Record::Wish { serial, .. }) => {
                        let granted = Record::Answer { serial, outcome: Answer::Granted, decision: 0 };
                        self.stream.take(now, ip, granted).unwrap();
                    }
                    Due::Record(_) => {}
                }
            }
        }
        while let Some(event) = self.stream.event() {
            if let Event::Turning { to, .. } = event {
                self.steer.turned(now);
                self.switches.push((now, to));
            }
        }
    }

    fn look(&mut self, now: Mono) {
        let seen = self.paths.each_ref().map(|tcp| Some(tcp.info()));
        let decision = self.steer.look(now, &mut self.stream, &seen, true);
        if let Some(decision) = decision.filter(|_| self.stream.is_settled()) {
            self.stream.switch(now, decision.to).unwrap();
        }
        self.write(now);
    }
}

/// Of a socket.
const BUFFER: u64 = 512 * 1024;

/// Others' traffic takes this share of the link, now more and now less.
fn path(version: &str, rate: &str, load: f64) -> String {
    format!(
        "about = \"a link that others use as well\"\n\
         [[hop]]\nrate = \"{rate}\"\ndelay = \"15ms\"\nqueue = {{ time = \"60ms\" }}\n\
         [[cross]]\nenter = 0\nversion = \"{version}\"\npattern = \"poisson\"\nload = {load}\nsizes = \"imix\"\n"
    )
}

#[test]
#[ignore = "long: 2 minutes"]
fn an_hour_beside_the_noise_of_others_does_not_make_it_flap() {
    let same = ["v4", "v6"].map(|version| path(version, "4Mbit/s", 0.3));
    for seed in 0..3 {
        let switches = Steered::new(same.each_ref().map(String::as_str), seed).run(Span::from_secs(3600));
        println!("seed {seed}: {switches:?}");
        assert!(switches.len() <= 2, "seed {seed}: {switches:?}");
    }
}

#[test]
fn a_link_of_twice_the_rate_is_found_by_padding_it() {
    let (slow, fast) = (path("v4", "4Mbit/s", 0.3), path("v6", "8Mbit/s", 0.3));
    for seed in 0..5 {
        let switches = Steered::new([&slow, &fast], seed).run(Span::from_secs(120));
        println!("seed {seed}: {switches:?}");
        let [(at, IpVersion::V6)] = switches[..] else { panic!("seed {seed}: {switches:?}") };
        assert!(at <= Mono(0) + Span::from_secs(10), "seed {seed}: {switches:?}");
    }
}

#[test]
fn a_transfer_that_begins_on_the_slow_version_takes_at_most_a_tenth_longer_than_the_fast_one_alone() {
    // A policy needs some seconds to be sure, in which half of what could be carried is.
    let minute = |v4: &str, v6: &str| {
        let path = |rate| {
            format!(
                "about = \"a link of its own\"\n[[hop]]\nrate = \"{rate}\"\ndelay = \"15ms\"\nqueue = {{ time = \"60ms\" }}\n"
            )
        };
        let mut steered = Steered::new([&path(v4), &path(v6)], 1);
        steered.pass(Span::from_secs(60));
        (steered.came, steered.switches)
    };
    // Where both are fast it does not matter which one is used.
    let (alone, _) = minute("8Mbit/s", "8Mbit/s");
    let (came, switches) = minute("4Mbit/s", "8Mbit/s");
    println!("{came} bytes instead of {alone}; {switches:?}");
    assert!(
        matches!(switches[..], [(at, IpVersion::V6)] if at <= Mono(0) + Span::from_secs(10)),
        "{switches:?}"
    );
    assert!(came as f64 * 1.1 >= alone as f64, "{came} bytes instead of {alone}");
}

fn lossy(loss: &str) -> String {
    format!(
        "about = \"a link that loses\"\n[[hop]]\nrate = \"20Mbit/s\"\ndelay = \"5ms\"\nloss = \"{loss}\"\n"
    )
}

/// Two Mbit/s under the rules for media, from IPv4 on. Preferring neither: a preferred version
/// needs no lead.
fn media(losses: [&str; 2], seed: u64) -> Steered {
    let paths = losses.map(lossy);
    let rules = Rules { prefer: None, ..Rules::of(Use::Media) };
    Steered::under(rules, 2_500, paths.each_ref().map(String::as_str), seed)
}

#[test]
fn media_does_not_go_where_more_is_lost_and_goes_where_less_is() {
    for seed in 0..3 {
        let worse = media(["5%", "10%"], seed).run(Span::from_secs(120));
        assert!(worse.is_empty(), "seed {seed}: {worse:?}");
        let better = media(["5%", "0.1%"], seed).run(Span::from_secs(120));
        println!("seed {seed}: {better:?}");
        let [(at, IpVersion::V6)] = better[..] else { panic!("seed {seed}: {better:?}") };
        assert!(at <= Mono(0) + Span::from_secs(60), "seed {seed}: {better:?}");
    }
}

#[test]
fn media_stays_where_both_lose_the_same() {
    for (seed, loss) in (0..6).zip(["0.1%", "1%", "3%"].iter().cycle()) {
        let switches = media([loss, loss], seed).run(Span::from_secs(300));
        assert!(switches.is_empty(), "seed {seed}, {loss}: {switches:?}");
    }
}

#[test]
fn what_shows_the_loss_of_the_other_version_is_within_the_budget() {
    // A twentieth of 100 kbit/s pays for less than four packets each second, though 50 would be
    // wanted.
    let paths = ["1%", "1%"].map(lossy);
    let paths = paths.each_ref().map(String::as_str);
    let mut steered = Steered::under(Rules::of(Use::Media), 125, paths, 1);
    steered.pass(Span::from_secs(100));
    let pings = 100.0 / Rules::of(Use::Media).every.secs_f64();
    let spent = (steered.packets as f64 - pings) * PACKET_COST;
    let budget = steered.came as f64 * Rules::of(Use::Media).budget;
    assert!(spent <= budget + PACKET_COST * MOST_SAVED, "{spent} of {budget}");
    assert!(spent >= budget * 0.8, "{spent} of {budget}");
}
