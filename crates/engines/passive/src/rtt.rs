//! How long does an answer take, seen from one point?
//!
//! **What it measures.** Of each conversation the time from a packet that passes here to the first
//! packet back that proves its arrival: by TCP timestamps (RFC 7323), by TCP acknowledgements, and
//! of QUIC the whole round by its spin bit (RFC 9000 §17.4). With both directions in view, one row
//! for each direction: `key.source` is the side whose packets were waited on, so a TCP figure is
//! the round from here to `key.destination` and back. The spin bit's is the round between both
//! ends, wherever the point is.
//!
//! **What it assumes.** That both directions pass here (for the spin bit one is enough), and that
//! QUIC is QUIC because a long header of a known version opened it: connections that were open
//! before are not measured.
//!
//! **How it is biased.** High by what the answering host waits: up to 40 ms or more with delayed
//! acknowledgements, which is why an acknowledgement is held against the last segment that it
//! covers exactly. Never low: a timestamp that repeats counts from its first packet, whatever came
//! with it later (clocks of 1 ms repeat on every fast path), a retransmitted range is not timed at
//! all (Karn). The spin bit is high while a sender has nothing to send.
//!
//! **Where it was published.** Timestamps: Nichols, "pping" (2017) and Sundberg et al., "Efficient
//! continuous latency monitoring with eBPF", PAM 2023. Acknowledgements: Karn and Partridge,
//! SIGCOMM 1987. Spin bit: RFC 9312 §4.2, and the time filter of De Vaere et al., "Three bits
//! suffice", IMC 2018.

mod acknowledgements;
mod quic;
mod tcp;
mod timestamps;

use acknowledgements::Segments;
use netaware_record::passive::{FlowKey, Period, Row, RttRow};
use netaware_units::{Span, Wall};
use netaware_wire::lmap::MOST_FLOWS;
use netaware_wire::packet::Packet;
use quic::Spin;
use tcp::TcpHeader;
use timestamps::Stamps;

use crate::flow::{Flow, Table, table};
use crate::{Delays, Found, Observed, Seed, TaskError, Watch, watch};

/// The task.
#[derive(Debug)]
pub struct RttWatch {
    flows: Table<Flow, Conversation>,
    most: usize,
    /// Round trips of flows that were put out for want of room, by method.
    rest: [Delays; 3],
}

/// Both directions; the first is the one whose packets the key describes.
#[derive(Debug)]
struct Conversation {
    last_at: Wall,
    directions: [Direction; 2],
    spin: Option<Box<Spin>>,
}

#[derive(Debug, Default)]
struct Direction {
    stamps: Stamps,
    segments: Segments,
    found: [Delays; 3],
}

/// In the order of the arrays of delays.
const METHODS: [&str; 3] = ["timestamps", "acknowledgements", "spin_bit"];

impl RttWatch {
    /// A task that keeps `flows` conversations.
    pub fn new(flows: u32, seed: &Seed) -> Result<Self, TaskError> {
        let most = watch::within("flows", flows, 1, MOST_FLOWS)? as usize;
        Ok(Self { flows: table(seed, "conversations"), most, rest: Default::default() })
    }

    /// The conversation of a packet; a new one only where the packet can begin one.
    fn conversation(&mut self, flow: Flow, at: Wall, begins: bool) -> Option<&mut Conversation> {
        if !self.flows.contains_key(&flow) {
            if !begins {
                return None;
            }
            if self.flows.len() >= self.most {
                self.make_room();
            }
            let new = Conversation { last_at: at, directions: Default::default(), spin: None };
            self.flows.insert(flow, new);
        }
        let conversation = self.flows.get_mut(&flow)?;
        conversation.last_at = conversation.last_at.max(at);
        Some(conversation)
    }

    /// Puts out the half that has been silent longest; what they had measured goes into the rest.
    #[cold]
    fn make_room(&mut self) {
        let mut silent: Vec<Wall> = self.flows.values().map(|flow| flow.last_at).collect();
        let middle = (silent.len() - 1) / 2;
        let limit = *silent.select_nth_unstable(middle).1;
        let mut equals = middle + 1 - silent[..=middle].iter().filter(|at| **at < limit).count();
        let rest = &mut self.rest;
        self.flows.retain(|_, flow| {
            let stays = flow.last_at > limit || (flow.last_at == limit && equals == 0);
            if !stays {
                equals -= usize::from(flow.last_at == limit);
                flow.settle();
                for way in &flow.directions {
                    rest.iter_mut().zip(&way.found).for_each(|(rest, found)| rest.merge(found));
                }
            }
            stays
        });
    }

    fn tcp(&mut self, packet: &Packet<'_>, at: Wall) {
        let Some(header) = TcpHeader::parse(packet) else { return };
        let (flow, other) = Flow::five_tuple(packet).both_ways();
        let Some(conversation) = self.conversation(flow, at, header.carries()) else { return };
        let [first, second] = &mut conversation.directions;
        let (own, opposite) = if other { (second, first) } else { (first, second) };
        if header.opens() {
            // The same ports anew: numbers of before mean nothing now.
            own.forget();
            opposite.forget();
        }
        if let Some((value, echoed)) = header.stamps {
            own.stamps.sent(value, at, header.carries());
            if header.acknowledges()
                && let Some(rtt) = opposite.stamps.echoed(echoed, at).filter(|rtt| plausible(*rtt))
            {
                opposite.found[TIMESTAMPS].observe(rtt);
            }
        }
        own.segments.sent(header.sequence, header.takes(), at);
        if header.acknowledges()
            && let Some(rtt) =
                opposite.segments.acknowledged(header.acknowledged, at).filter(|rtt| plausible(*rtt))
        {
            opposite.found[ACKNOWLEDGEMENTS].observe(rtt);
        }
    }

    fn udp(&mut self, packet: &Packet<'_>, at: Wall) {
        let Some(header) = quic::Header::parse(packet) else { return };
        let (flow, other) = Flow::five_tuple(packet).both_ways();
        let Some(conversation) = self.conversation(flow, at, header.opens()) else { return };
        // A TCP conversation has another protocol in its key: whoever is here was opened by a long
        // header.
        let spin = conversation.spin.get_or_insert_default();
        if let Some(rtt) = spin.observe(usize::from(other), header, at).filter(|rtt| plausible(*rtt)) {
            conversation.directions[usize::from(other)].found[SPIN_BIT].observe(rtt);
        }
    }
}

impl Conversation {
    /// Drops what a spin bit said that did not spin.
    fn settle(&mut self) {
        let Some(spin) = &mut self.spin else { return };
        for (number, way) in self.directions.iter_mut().enumerate() {
            if !spin.spins(number, &way.found[SPIN_BIT]) {
                way.found[SPIN_BIT] = Delays::default();
            }
        }
        spin.begin_period();
    }
}

impl Direction {
    fn forget(&mut self) {
        self.stamps = Stamps::default();
        self.segments = Segments::default();
    }
}

impl Watch for RttWatch {
    #[inline]
    fn observe(&mut self, seen: &Observed<'_>) {
        match seen.packet.protocol {
            _ if seen.packet.later_fragment => {}
            TCP => self.tcp(&seen.packet, seen.at),
            UDP => self.udp(&seen.packet, seen.at),
            _ => {}
        }
    }

    fn close(&mut self, period: Period, found: &mut Found) {
        let keep_from = Wall(period.until.0.saturating_sub(SILENCE.0));
        self.flows.retain(|flow, conversation| {
            conversation.settle();
            for (number, way) in conversation.directions.iter_mut().enumerate() {
                let key = if number == 0 { flow.key() } else { flow.reversed().key() };
                rows(&key, &mut way.found, found);
            }
            conversation.last_at >= keep_from
        });
        rows(&FlowKey::default(), &mut self.rest, found);
    }
}

/// Hands out the methods that found something and empties them.
fn rows(key: &FlowKey, delays: &mut [Delays; 3], found: &mut Found) {
    for (method, delays) in METHODS.iter().zip(delays) {
        if delays.count() > 0 {
            let delay = std::mem::take(delays).statistics();
            found.rows.push(Row::Rtt(RttRow { key: key.clone(), method: (*method).to_string(), delay }));
        }
    }
}

/// Clocks step: what is negative or longer than a minute is no round trip.
fn plausible(rtt: Span) -> bool {
    (0..=LONGEST.0).contains(&rtt.0)
}

const TIMESTAMPS: usize = 0;
const ACKNOWLEDGEMENTS: usize = 1;
const SPIN_BIT: usize = 2;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// A stack has given up long before (RFC 6298: its timer ends at 60 s).
const LONGEST: Span = Span::from_secs(60);

/// A conversation that was silent for so long is forgotten.
const SILENCE: Span = Span::from_secs(120);

#[cfg(test)]
mod tests {
    use netaware_record::passive::DelayStatistics;

    use super::*;
    use crate::made_up::{Made, PERIOD};

    const MS: i64 = 1_000_000;

    fn close(task: &mut RttWatch) -> Vec<RttRow> {
        let mut found = Found::default();
        task.close(PERIOD, &mut found);
        let rtt = |row| if let Row::Rtt(row) = row { row } else { panic!("{row:?}") };
        found.rows.into_iter().map(rtt).collect()
    }

    fn task(flows: u32) -> RttWatch {
        RttWatch::new(flows, &Seed::new([1; 16])).unwrap()
    }

    #[test]
    fn both_methods_find_the_round_trip_of_either_ip_version() {
        for made in [Made::tcp4(), Made::tcp6()] {
            let mut task = task(10);
            for n in 0..20_u32 {
                let at = i64::from(n) * 100 * MS;
                let data = made.clone().stamps(1000 + n * 100, 1).sequence(n * 100, 1).payload(&[0; 100]);
                let answer =
                    made.clone().answer().stamps(5000 + n * 100, 1000 + n * 100).sequence(1, n * 100 + 100);
                task.observe(&data.observed(Wall(at)));
                task.observe(&answer.observed(Wall(at + 30 * MS)));
            }
            let rows = close(&mut task);
            let said: Vec<_> =
                rows.iter().map(|row| (row.method.as_str(), row.delay.count, row.delay.max)).collect();
            let thirty = Span::from_millis(30);
            assert_eq!(said, [("timestamps", 20, thirty), ("acknowledgements", 20, thirty)]);
            assert_eq!(
                rows[0].key.source_port,
                Some(12345),
                "the side that was waited for is the destination"
            );
            assert!(close(&mut task).is_empty());
        }
    }

    #[test]
    fn a_new_connection_with_old_ports_begins_anew() {
        let mut task = task(10);
        let made = Made::tcp4();
        task.observe(&made.clone().stamps(90_000, 1).sequence(5000, 1).payload(b"x").observed(Wall(0)));
        task.observe(&made.clone().stamps(7, 0).sequence(100, 0).flags(SYN).observed(Wall(MS)));
        task.observe(&made.answer().stamps(5, 7).sequence(9, 101).flags(SYN | ACK).observed(Wall(4 * MS)));
        let rows = close(&mut task);
        assert_eq!(rows.len(), 2, "{rows:?}");
        assert!(rows.iter().all(|row| row.delay.min == Span::from_millis(3) && row.delay.count == 1));
    }

    #[test]
    fn flows_have_a_bound_and_no_round_trip_is_lost_to_it() {
        let mut task = task(50);
        for n in 0..1000_u32 {
            let made = Made::tcp4().ports((n + 1) as u16, 80);
            let at = i64::from(n) * MS;
            task.observe(&made.clone().sequence(1, 1).payload(b"x").observed(Wall(at)));
            task.observe(&made.answer().sequence(1, 2).observed(Wall(at + MS / 2)));
            assert!(task.flows.len() <= 50);
        }
        let rows = close(&mut task);
        assert_eq!(rows.iter().map(|row| row.delay.count).sum::<u64>(), 1000);
        let rest = rows.iter().filter(|row| row.key == FlowKey::default());
        assert_eq!(rest.count(), 1);
    }

    #[test]
    fn silent_conversations_are_forgotten() {
        let mut task = task(50);
        task.observe(&Made::tcp4().payload(b"x").observed(Wall(0)));
        close(&mut task);
        assert_eq!(task.flows.len(), 1);
        let later = Period { from: Wall(300_000 * MS), until: Wall(310_000 * MS) };
        task.close(later, &mut Found::default());
        assert!(task.flows.is_empty());
    }

    #[test]
    fn connections_of_quic_tell_the_round_of_each_direction() {
        let mut task = task(10);
        let client = Made::udp4();
        let server = client.clone().answer();
        let show = |task: &mut RttWatch, made: &Made, payload: &[u8], ms: i64| {
            task.observe(&made.clone().payload(payload).observed(Wall(ms * MS)));
        };
        show(&mut task, &client, &[0x40], 0);
        assert!(task.flows.is_empty(), "only a long header begins a connection");
        // A handshake of 40 ms, then edges.
        for (made, ms) in [(&client, 0), (&server, 20), (&client, 40)] {
            show(&mut task, made, &[0xc3, 0, 0, 0, 1], ms);
        }
        for (ms, first) in [(50, 0x40), (90, 0x60), (130, 0x40), (170, 0x60)] {
            show(&mut task, &client, &[first], ms);
        }
        for (ms, first) in [(60, 0x40), (100, 0x60), (141, 0x40)] {
            show(&mut task, &server, &[first], ms);
        }
        let row = |made: &Made, rounds: &[i64]| {
            let mut delay = DelayStatistics::default();
            for ms in rounds {
                delay.observe(Span::from_millis(*ms));
            }
            RttRow { key: Flow::five_tuple(&made.packet()).key(), method: "spin_bit".to_string(), delay }
        };
        assert_eq!(close(&mut task), [row(&client, &[40, 40]), row(&server, &[41])]);
    }

    #[test]
    fn what_nobody_answers_begins_no_conversation() {
        let mut task = task(10);
        for made in [Made::tcp4(), Made::tcp4().payload(b"x").later_fragment(), Made::icmp6()] {
            task.observe(&made.observed(Wall(0)));
        }
        assert!(task.flows.is_empty());
        task.observe(&Made::tcp4().payload(b"x").observed(Wall(0)));
        assert_eq!(task.flows.len(), 1);
    }

    #[test]
    fn the_half_that_was_silent_longest_makes_room() {
        let flow = |number: u8| Flow { source: number.into(), ..Flow::default() };
        let full = |at: fn(u8) -> i64| {
            let mut task = task(10);
            for number in 0..10 {
                let conversation = task.conversation(flow(number), Wall(at(number)), true).unwrap();
                conversation.directions[0].found[TIMESTAMPS].observe(Span(number.into()));
            }
            task
        };
        let mut task = full(i64::from);
        assert_eq!(task.conversation(flow(9), Wall(1), false).unwrap().last_at, Wall(9));
        assert!(task.conversation(flow(99), Wall(50), false).is_none());
        assert_eq!(task.flows.len(), 10);
        assert!(task.conversation(flow(99), Wall(50), true).is_some());
        let mut left: Vec<u128> = task.flows.keys().map(|flow| flow.source).collect();
        left.sort_unstable();
        assert_eq!(left, [5, 6, 7, 8, 9, 99]);
        let rest = task.rest.each_ref().map(|rest| (rest.count(), rest.statistics().sum_ns));
        assert_eq!(rest, [(5, 10), (0, 0), (0, 0)]);
        let mut equals = full(|_| 3);
        assert!(equals.conversation(flow(99), Wall(50), true).is_some());
        assert_eq!((equals.flows.len(), equals.rest[TIMESTAMPS].count()), (6, 5));
    }

    #[test]
    fn a_conversation_is_forgotten_after_two_minutes_of_silence() {
        let mut task = task(10);
        for (port, at) in [(1, 0), (2, 1)] {
            task.observe(&Made::tcp4().ports(port, 80).payload(b"x").observed(Wall(at)));
        }
        for (until, left) in [(120_000 * MS, 2), (120_000 * MS + 1, 1)] {
            task.close(Period { from: Wall(0), until: Wall(until) }, &mut Found::default());
            assert_eq!(task.flows.len(), left);
        }
        assert!(task.flows.values().all(|conversation| conversation.last_at == Wall(1)));
    }

    #[test]
    fn a_round_trip_is_not_negative_and_no_longer_than_a_minute() {
        let found = [-1, 0, 60_000 * MS, 60_000 * MS + 1].map(|ns| plausible(Span(ns)));
        assert_eq!(found, [false, true, true, false]);
    }

    const SYN: u8 = 2;
    const ACK: u8 = 16;
}
