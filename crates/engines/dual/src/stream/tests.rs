use netaware_wire::dual::{Answer, HEAD_LEN};

use super::*;

const NOW: Mono = Mono(1_000_000_000);
const V4: IpVersion = IpVersion::V4;
const V6: IpVersion = IpVersion::V6;

/// Two ends; what is written to a connection waits in `wires` until it is carried over.
struct Pair {
    ends: [Stream; 2],
    /// For each IP version, what is on its way to each end.
    wires: [[VecDeque<Due>; 2]; 2],
    events: [Vec<Event>; 2],
    /// Bytes that each end was sent again.
    twice: [u64; 2],
}

impl Pair {
    fn with_room(room: u32) -> Self {
        let end =
            |side| Stream::new(Setting { side, room, longest: 16_384, ack_delay: Span::from_millis(20) });
        let mut pair = Self {
            ends: [end(Side::Opener), end(Side::Acceptor)],
            wires: Default::default(),
            events: Default::default(),
            twice: [0; 2],
        };
        pair.connect(V6, 1);
        pair.connect(V4, 1);
        pair.run();
        pair
    }

    fn new() -> Self {
        Self::with_room(1 << 20)
    }

    fn connect(&mut self, ip: IpVersion, generation: u32) {
        let own = [self.ends[0].own(), self.ends[1].own()];
        self.ends[0].connected(NOW, ip, generation, own[1]).unwrap();
        self.ends[1].connected(NOW, ip, generation, own[0]).unwrap();
    }

    fn cut(&mut self, ip: IpVersion) {
        self.wires[ip.index()] = Default::default();
    }

    fn write(&mut self) {
        for end in 0..2 {
            for ip in [V4, V6] {
                while let Some(due) = self.ends[end].poll(NOW, ip) {
                    self.wires[ip.index()][1 - end].push_back(due);
                }
            }
            self.events[end].extend(std::iter::from_fn(|| self.ends[end].event()));
        }
    }

    fn carry(&mut self, ip: IpVersion, to: usize) -> bool {
        let Some(due) = self.wires[ip.index()][to].pop_front() else { return false };
        let end = &mut self.ends[to];
        match due {
            Due::Record(record) => drop(end.take(NOW, ip, record).unwrap()),
            Due::Data { offset, length } => {
                let before = end.received();
                end.take(NOW, ip, Record::Data { offset, length }).unwrap();
                end.arrived(NOW, offset, length).unwrap();
                self.twice[to] += before.saturating_sub(offset).min(u64::from(length));
                let came = end.received() - before;
                end.consumed(NOW, came);
            }
        }
        true
    }

    /// Until nothing is on its way.
    fn run(&mut self) {
        loop {
            self.write();
            let carried = [(V4, 0), (V4, 1), (V6, 0), (V6, 1)].map(|(ip, to)| self.carry(ip, to));
            if !carried.contains(&true) {
                return;
            }
        }
    }

    fn ended(&self, end: usize) -> Vec<Outcome> {
        let outcome = |event: &Event| match event {
            Event::WishEnded { outcome, .. } => Some(*outcome),
            _ => None,
        };
        self.events[end].iter().filter_map(outcome).collect()
    }
}

#[test]
fn bytes_come_and_both_ends_finish() {
    let mut pair = Pair::new();
    pair.ends[0].queued(100_000);
    pair.ends[1].queued(7);
    pair.run();
    assert_eq!((pair.ends[1].received(), pair.ends[0].received()), (100_000, 7));
    pair.ends[0].finish();
    pair.run();
    assert!(pair.ends[1].has_all() && pair.ends[0].standing() == Standing::Open);
    pair.ends[1].finish();
    pair.run();
    assert_eq!(pair.ends.each_ref().map(Stream::standing), [Standing::Finished; 2]);
}

#[test]
fn heads_cost_a_thousandth_of_records_of_16_kib() {
    let mut pair = Pair::new();
    pair.ends[0].queued(1 << 20);
    pair.write();
    let dues = &pair.wires[V6.index()][1];
    let data = dues.iter().filter(|due| matches!(due, Due::Data { .. })).count();
    assert!((data * HEAD_LEN) as f64 / f64::from(1 << 20) <= 0.001, "{data} records");
}

#[test]
fn a_wish_of_either_end_moves_both_directions() {
    for end in 0..2 {
        let mut pair = Pair::new();
        pair.ends[0].queued(50_000);
        pair.write();
        assert_eq!(pair.ends[end].switch(NOW, V4), Ok(1));
        pair.run();
        assert_eq!(pair.ends.each_ref().map(Stream::current), [Some(V4); 2]);
        assert_eq!(pair.ended(end), [Outcome::Granted]);
        assert!(pair.events[0].iter().any(|event| matches!(event, Event::Turned { to: V4, .. })));
        assert_eq!((pair.ends[1].received(), pair.twice[1]), (50_000, 0));
    }
}

#[test]
fn where_wishes_cross_the_openers_counts() {
    let mut pair = Pair::new();
    pair.ends[0].switch(NOW, V4).unwrap();
    pair.ends[1].switch(NOW, V6).unwrap();
    pair.run();
    assert_eq!(pair.ends.each_ref().map(Stream::current), [Some(V4); 2]);
    assert_eq!((pair.ended(0), pair.ended(1)), (vec![Outcome::Granted], vec![Outcome::Crossed]));
}

#[test]
fn a_wish_repeated_is_one_wish_and_a_third_takes_the_place_of_the_second() {
    let mut pair = Pair::new();
    assert_eq!(pair.ends[0].switch(NOW, V4), Ok(1));
    assert_eq!(pair.ends[0].switch(NOW, V4), Ok(1));
    assert_eq!(pair.ends[0].switch(NOW, V6), Ok(2));
    assert_eq!(pair.ends[0].switch(NOW, V4), Ok(3));
    pair.run();
    assert_eq!(pair.ended(0), [Outcome::Superseded, Outcome::Granted, Outcome::Granted]);
    assert!(pair.ends[0].is_settled());
}

#[test]
fn what_is_down_cannot_be_wished_for_and_what_goes_down_ends_the_wish() {
    let mut pair = Pair::new();
    pair.ends[0].switch(NOW, V4).unwrap();
    pair.cut(V4);
    pair.ends[0].lost(NOW, V4, 1, Loss::Ended);
    pair.run();
    assert_eq!(pair.ended(0), [Outcome::Down]);
    assert_eq!(pair.ends[0].switch(NOW, V4), Err(CannotSwitch::Down));
    assert!(!pair.ends[1].is_up(V4), "the peer was told");
}

#[test]
fn a_stream_that_is_held_stays() {
    let mut pair = Pair::new();
    pair.ends[1].hold();
    pair.ends[0].switch(NOW, V4).unwrap();
    pair.run();
    assert_eq!(pair.ended(0), [Outcome::Held]);
    assert_eq!(pair.ends[1].switch(NOW, V4), Err(CannotSwitch::Held));
    assert_eq!(pair.ends[0].current(), Some(V6));
}

#[test]
fn holds_count_and_the_last_one_lets_go() {
    let mut pair = Pair::new();
    assert!(!pair.ends[1].release(NOW), "nobody held it");
    pair.ends[1].hold();
    pair.ends[1].hold();
    assert!(pair.ends[1].release(NOW) && pair.ends[1].is_held());
    pair.ends[0].switch(NOW, V4).unwrap();
    pair.run();
    assert_eq!(pair.ended(0), [Outcome::Held]);
    assert!(pair.ends[1].release(NOW) && !pair.ends[1].is_held());
    pair.ends[0].switch(NOW, V4).unwrap();
    pair.run();
    assert_eq!(pair.ends.each_ref().map(Stream::current), [Some(V4); 2]);
}

#[test]
fn a_wish_under_way_turns_a_held_end_when_it_is_let_go() {
    for end in [0, 1] {
        let mut pair = Pair::new();
        pair.ends[end].switch(NOW, V4).unwrap();
        pair.ends[end].hold();
        pair.run();
        assert_eq!(pair.ended(end), [Outcome::Granted]);
        assert_eq!((pair.ends[end].current(), pair.ends[1 - end].current()), (Some(V6), Some(V4)));
        assert!(!pair.ends[end].is_settled());
        assert!(pair.ends[end].release(NOW));
        pair.run();
        assert_eq!(pair.ends[end].current(), Some(V4));
        assert!(pair.ends[end].is_settled());
    }
}

#[test]
fn a_wish_that_waits_is_made_when_the_end_is_let_go() {
    let mut pair = Pair::new();
    pair.ends[0].queued(50_000);
    pair.write();
    // The second waits for the turn of the first.
    pair.ends[0].switch(NOW, V4).unwrap();
    pair.ends[0].switch(NOW, V6).unwrap();
    pair.ends[0].hold();
    pair.run();
    assert_eq!(pair.ended(0), [Outcome::Granted]);
    assert_eq!(pair.ends[0].current(), Some(V6), "it has not turned at all");
    pair.ends[0].release(NOW);
    pair.run();
    assert_eq!(pair.ended(0), [Outcome::Granted, Outcome::Granted]);
    assert_eq!(pair.ends.each_ref().map(Stream::current), [Some(V6); 2]);
}

#[test]
fn what_the_peer_was_granted_before_waits_as_well() {
    let mut pair = Pair::new();
    pair.ends[1].queued(50_000);
    pair.write();
    pair.ends[0].switch(NOW, V4).unwrap();
    pair.write();
    pair.carry(V4, 1);
    // It has turned to IPv4, and is granted another wish before that is over.
    assert_eq!(pair.ends[1].current(), Some(V4));
    pair.ends[1].take(NOW, V6, Record::Wish { to: V6, serial: 9 }).unwrap();
    pair.ends[1].hold();
    pair.run();
    assert_eq!(pair.ends[1].current(), Some(V4), "held where it was");
    pair.ends[1].release(NOW);
    pair.run();
    assert_eq!(pair.ends[1].current(), Some(V6));
}

#[test]
fn a_held_end_leaves_what_is_lost() {
    let mut pair = Pair::new();
    pair.ends[0].hold();
    pair.ends[0].queued(1000);
    pair.cut(V6);
    pair.ends[0].lost(NOW, V6, 1, Loss::Silent);
    pair.run();
    assert_eq!((pair.ends[0].current(), pair.ends[1].received()), (Some(V4), 1000));
}

#[test]
fn a_dead_connection_is_left_with_every_byte() {
    let mut pair = Pair::new();
    pair.ends[0].queued(200_000);
    pair.write();
    for _ in 0..5 {
        pair.carry(V6, 1);
    }
    pair.cut(V6);
    pair.ends[0].lost(NOW, V6, 1, Loss::Silent);
    pair.ends[0].finish();
    pair.run();
    assert!(pair.ends[1].has_all() && pair.ends[1].received() == 200_000);
    assert!(!pair.ends[1].is_up(V6), "half-open connections do not stay");
    assert_eq!(pair.ends[1].current(), Some(V4));
}

#[test]
fn with_both_dead_it_waits_and_goes_on_with_the_next_one() {
    let mut pair = Pair::new();
    pair.ends[0].queued(200_000);
    pair.write();
    for ip in [V4, V6] {
        pair.cut(ip);
        pair.ends[0].lost(NOW, ip, 1, Loss::Ended);
    }
    assert_eq!((pair.ends[0].current(), pair.ends[0].poll(NOW, V4)), (None, None));
    pair.connect(V4, 2);
    pair.run();
    assert_eq!(pair.ends[1].received(), 200_000);
    pair.ends[0].lost(NOW, V4, 1, Loss::Ended);
    assert!(pair.ends[0].is_up(V4), "of an older one");
}

#[test]
fn away_from_a_slow_way_what_is_under_way_goes_again() {
    let mut pair = Pair::new();
    for end in &mut pair.ends {
        end.takes(V6, Span::from_millis(900));
        end.takes(V4, Span::from_millis(20));
    }
    pair.ends[0].queued(60_000);
    pair.write();
    pair.ends[0].switch(NOW, V4).unwrap();
    // Nothing comes over the slow one meanwhile.
    loop {
        pair.write();
        let carried = [pair.carry(V4, 0), pair.carry(V4, 1)];
        if carried == [false, false] {
            break;
        }
    }
    assert_eq!(pair.ends[1].received(), 60_000);
    pair.run();
    assert_eq!(pair.twice[1], 60_000);
}

#[test]
fn a_reader_that_does_not_read_holds_the_sender_back() {
    let mut pair = Pair::with_room(10_000);
    pair.ends[0].queued(100_000);
    pair.write();
    while let Some(Due::Data { offset, length }) = pair.wires[V6.index()][1].pop_front() {
        pair.ends[1].take(NOW, V6, Record::Data { offset, length }).unwrap();
        pair.ends[1].arrived(NOW, offset, length).unwrap();
    }
    pair.run();
    assert_eq!(pair.ends[1].received(), 10_000);
    pair.ends[1].consumed(NOW, 10_000);
    pair.run();
    assert_eq!(pair.ends[1].received(), 100_000);
}

#[test]
fn an_acknowledgement_is_late_by_its_delay_at_most() {
    let mut pair = Pair::new();
    pair.ends[0].queued(10);
    pair.run();
    assert_eq!(pair.ends[0].acked(), 0);
    let due = pair.ends[1].wake_at().unwrap();
    assert_eq!(due, NOW + Span::from_millis(20));
    let ack = pair.ends[1].poll(due, V6);
    assert!(matches!(ack, Some(Due::Record(Record::Ack { received: 10, .. }))), "{ack:?}");
    assert_eq!(pair.ends[1].wake_at(), None);
}

#[test]
fn a_peer_that_breaks_the_rules_is_told_and_left() {
    let broken = |record: Record| {
        let mut pair = Pair::with_room(100);
        let found = pair.ends[0].take(NOW, V6, record).unwrap_err();
        assert_eq!(pair.ends[0].standing(), Standing::Broken(Farewell::Violation));
        let bye = Due::Record(Record::Bye { reason: Farewell::Violation });
        assert_eq!(pair.ends[0].poll(NOW, V4), Some(bye));
        found
    };
    let ack = |received, all| Record::Ack { received, room: 1, all };
    assert_eq!(broken(Record::Data { offset: 1, length: 100 }), Violation::BeyondRoom);
    assert_eq!(broken(ack(1, false)), Violation::AcknowledgedUnsent);
    assert_eq!(broken(ack(0, true)), Violation::AcknowledgedUnsent);
    assert_eq!(broken(Record::Marker { offset: 101, switches: 1 }), Violation::BeyondRoom);
    assert_eq!(broken(Record::Wish { to: V4, serial: 1 }), Violation::WishElsewhere);
}

#[test]
fn an_end_stands_where_it_was_told_first() {
    let mut pair = Pair::new();
    let end = &mut pair.ends[0];
    end.take(NOW, V6, Record::Data { offset: 5, length: 5 }).unwrap();
    end.arrived(NOW, 5, 5).unwrap();
    assert_eq!(end.take(NOW, V6, Record::Fin { offset: 9 }), Err(Violation::OtherEnd));
    let mut pair = Pair::new();
    let end = &mut pair.ends[0];
    end.take(NOW, V6, Record::Fin { offset: 9 }).unwrap();
    assert_eq!(end.take(NOW, V6, Record::Data { offset: 5, length: 5 }), Err(Violation::BeyondEnd));
}

#[test]
fn questions_without_end_and_pieces_without_end_are_refused() {
    let mut pair = Pair::new();
    let mut asks = |nonce| pair.ends[0].take(NOW, V4, Record::Ping { nonce });
    let asked = (0..1000).find_map(|nonce| asks(nonce).err().map(|why| (nonce, why)));
    assert_eq!(asked, Some((64, Violation::TooMuchAsked)), "after 64 without an answer");
    let mut pair = Pair::new();
    let mut sends = |n: u64| pair.ends[0].arrived(NOW, n * 2, 1);
    let pieces = (1..1000).find_map(|n| sends(n).err().map(|why| (n, why)));
    assert_eq!(pieces, Some((65, Violation::TooManyPieces)));
}

#[test]
fn a_ping_is_answered_on_the_same_connection() {
    let mut pair = Pair::new();
    pair.ends[0].ping(V4, 77);
    pair.run();
    assert!(pair.events[0].contains(&Event::Pong { ip: V4, nonce: 77 }));
}

#[test]
fn giving_up_is_told_on_both_connections() {
    let mut pair = Pair::new();
    pair.ends[0].abandon();
    pair.run();
    assert_eq!(pair.ends[1].standing(), Standing::Broken(Farewell::Abandoned));
    assert_eq!(pair.ends[1].switch(NOW, V4), Err(CannotSwitch::Over));
}

#[test]
fn a_stream_that_ends_ends_its_wishes() {
    let wishing = || {
        let mut pair = Pair::new();
        pair.ends[0].switch(NOW, V4).unwrap();
        pair.ends[0].switch(NOW, V6).unwrap();
        pair
    };
    let mut given_up = wishing();
    given_up.ends[0].abandon();
    given_up.write();
    assert_eq!(given_up.ended(0), [Outcome::Over; 2]);
    given_up.run();
    assert_eq!(given_up.ended(0).len(), 2, "the answer that comes late ends nothing once more");

    let mut told = wishing();
    told.ends[0].take(NOW, V6, Record::Bye { reason: Farewell::Abandoned }).unwrap();
    told.write();
    assert_eq!(told.ended(0), [Outcome::Over; 2]);

    // The answer is behind on a connection that is slow, and all else is done meanwhile.
    let mut finished = wishing();
    for end in &mut finished.ends {
        end.finish();
    }
    finished.write();
    while finished.carry(V6, 0) || finished.carry(V6, 1) {
        finished.write();
    }
    assert_eq!(finished.ends[0].standing(), Standing::Finished);
    assert_eq!(finished.ended(0), [Outcome::Over; 2]);
    finished.run();
    assert!(finished.ends[0].is_settled());
    assert_eq!(finished.ends.each_ref().map(Stream::current), [Some(V4); 2]);
    assert_eq!(finished.ended(0).len(), 2);
    assert_eq!(finished.ends[1].standing(), Standing::Finished);
}

#[test]
fn an_end_that_is_to_be_told_again_may_be_acknowledged_meanwhile() {
    let setting = Setting { side: Side::Opener, room: 1000, longest: 1000, ack_delay: Span::ZERO };
    let mut stream = Stream::new(setting);
    for ip in [V4, V6] {
        stream.connected(NOW, ip, 1, Peer { room: 1000, received: 0 }).unwrap();
    }
    let writes = |stream: &mut Stream, ip| std::iter::from_fn(|| stream.poll(NOW, ip)).collect::<Vec<_>>();
    writes(&mut stream, V4);
    stream.take(NOW, V4, Record::Answer { serial: 1, outcome: Answer::Granted, decision: 0 }).unwrap();
    stream.queued(10);
    stream.finish();
    assert!(writes(&mut stream, V4).contains(&Due::Record(Record::Fin { offset: 10 })));
    // The other connection takes nothing yet.
    stream.take(NOW, V6, Record::Wish { to: V6, serial: 1 }).unwrap();
    assert_eq!(stream.current(), Some(V6));
    stream.take(NOW, V4, Record::Ack { received: 10, room: 990, all: true }).unwrap();
    assert!(stream.is_delivered());
}

#[test]
fn what_follows_a_farewell_is_not_heeded() {
    let anywhere = Record::Data { offset: 1 << 60, length: 1 };
    let mut broken = Pair::new();
    broken.ends[0].take(NOW, V6, Record::Bye { reason: Farewell::Abandoned }).unwrap();
    assert_eq!(broken.ends[0].take(NOW, V6, anywhere), Ok(Reception::Ignored));
    assert_eq!(broken.ends[0].take(NOW, V4, anywhere), Ok(Reception::Ignored));

    let mut left = Pair::new();
    let generation = left.ends[0].generation(V6);
    left.ends[0].take(NOW, V6, Record::Gone { ip: V6, generation }).unwrap();
    assert_eq!(left.ends[0].take(NOW, V6, anywhere), Ok(Reception::Ignored));
    assert!(left.ends[0].take(NOW, V4, anywhere).is_err());
}

const UNDER_WAY: Setting =
    Setting { side: Side::Acceptor, room: 5000, longest: 1000, ack_delay: Span::from_millis(20) };

fn written(stream: &mut Stream, ip: IpVersion) -> Vec<Due> {
    std::iter::from_fn(|| stream.poll(NOW, ip)).collect()
}

fn happened(stream: &mut Stream) -> Vec<Event> {
    std::iter::from_fn(|| stream.event()).collect()
}

/// One end alone: both connections are there, and 3000 bytes went over IPv6, 1000 of which are
/// acknowledged.
fn under_way() -> Stream {
    let mut stream = Stream::new(UNDER_WAY);
    for ip in [V6, V4] {
        stream.connected(NOW, ip, 7, Peer { room: 10_000, received: 0 }).unwrap();
    }
    stream.queued(3000);
    let ack = Due::Record(Record::Ack { received: 0, room: 5000, all: false });
    let data = [0, 1000, 2000].map(|offset| Due::Data { offset, length: 1000 });
    assert_eq!(written(&mut stream, V6), [ack, data[0], data[1], data[2]]);
    stream.take(NOW, V6, Record::Ack { received: 1000, room: 10_000, all: false }).unwrap();
    assert_eq!(happened(&mut stream), [V6, V4].map(|ip| Event::Up { ip, generation: 7 }));
    stream
}

#[test]
fn a_turn_sends_again_what_is_under_way_where_that_takes_more_than_half_as_long_again() {
    for (slow, again) in [(150_000_000, 0), (150_000_001, 2000)] {
        let mut stream = under_way();
        stream.takes(V6, Span::from_nanos(slow));
        stream.takes(V4, Span::from_millis(100));
        stream.take(NOW, V4, Record::Wish { to: V4, serial: 5 }).unwrap();
        let reason = Reason::PeersWish;
        let turning = Event::Turning { from: V6, to: V4, reason, offset: 3000, again };
        assert_eq!(happened(&mut stream), [turning]);
        let marker = Due::Record(Record::Marker { offset: 3000, switches: 1 });
        assert_eq!(written(&mut stream, V6), [marker]);
        let answer = Record::Answer { serial: 5, outcome: Answer::Granted, decision: 0 };
        let ack = Record::Ack { received: 0, room: 5000, all: false };
        let data = [1000, 2000].map(|offset| Due::Data { offset, length: 1000 });
        let sent_again = data.into_iter().filter(|_| again > 0);
        let expected: Vec<Due> = [answer, ack].map(Due::Record).into_iter().chain(sent_again).collect();
        assert_eq!(written(&mut stream, V4), expected);
        let all = Record::Ack { received: 3000, room: 10_000, all: false };
        stream.take(NOW + Span::from_millis(70), V4, all).unwrap();
        assert_eq!(happened(&mut stream), [Event::Turned { to: V4, took: Span::from_millis(70) }]);
        assert!(stream.is_settled());
    }
}

#[test]
fn what_a_lost_connection_leaves_goes_over_the_other_one_and_the_peer_is_told_unless_it_said_so() {
    for (why, tells) in [(Loss::Silent, true), (Loss::PeerSaid, false)] {
        let mut stream = under_way();
        stream.lost(NOW, V6, 7, why);
        let down = Event::Down { ip: V6, generation: 7, why };
        let reason = Reason::Loss;
        let turning = Event::Turning { from: V6, to: V4, reason, offset: 3000, again: 2000 };
        assert_eq!(happened(&mut stream), [down, turning]);
        let gone = tells.then_some(Record::Gone { ip: V6, generation: 7 });
        let ack = Record::Ack { received: 0, room: 5000, all: false };
        let data = [1000, 2000].map(|offset| Due::Data { offset, length: 1000 });
        let expected: Vec<Due> = gone.into_iter().chain([ack]).map(Due::Record).chain(data).collect();
        assert_eq!(written(&mut stream, V4), expected);
        assert_eq!((stream.is_up(V6), stream.generation(V6)), (false, 7));
    }
}

#[test]
fn padding_goes_over_a_connection_that_is_there_and_carries_nothing_else() {
    let mut stream = under_way();
    let padded = [(V6, 9), (V4, 9), (V4, 0), (V4, u32::MAX)].map(|(ip, length)| stream.pad(ip, length));
    assert_eq!(padded, [false, true, true, true]);
    let expected = [9, 1, MAX_DATA].map(|length| Due::Record(Record::Pad { length }));
    assert_eq!(written(&mut stream, V4), expected);
    stream.lost(NOW, V4, 7, Loss::Ended);
    assert!(!stream.pad(V4, 9));
    let mut broken = under_way();
    broken.abandon();
    assert!(!broken.pad(V4, 9));
}

#[test]
fn a_stream_says_how_far_it_is_and_when_it_has_more_to_say() {
    let mut stream = under_way();
    assert_eq!((stream.acked(), stream.received(), stream.unread(), stream.wake_at()), (1000, 0, 0, None));
    stream.take(NOW, V6, Record::Data { offset: 0, length: 300 }).unwrap();
    stream.arrived(NOW, 0, 300).unwrap();
    assert_eq!(stream.wake_at(), Some(NOW + Span::from_millis(20)));
    let ack = Due::Record(Record::Ack { received: 300, room: 4700, all: false });
    assert_eq!(stream.poll(NOW + Span::from_millis(20), V6), Some(ack));
    stream.consumed(NOW + Span::from_millis(30), 100);
    assert_eq!(stream.wake_at(), Some(NOW + Span::from_millis(50)));
    assert_eq!((stream.received(), stream.unread()), (300, 200));
    assert_eq!(stream.own(), Peer { room: 4800, received: 300 });
    assert!(!stream.has_all() && !stream.is_finishing());
    stream.take(NOW, V6, Record::Fin { offset: 300 }).unwrap();
    stream.finish();
    assert!(stream.has_all() && stream.is_finishing() && !stream.is_delivered());
    stream.hold();
    stream.hold();
    assert_eq!(stream.holds(), 2);
}

#[test]
fn what_the_application_wants_is_more_than_what_both_ends_agree_by() {
    let mut stream = Stream::new(Setting { side: Side::Opener, ..UNDER_WAY });
    assert_eq!((stream.generation(V6), stream.is_settled()), (0, true));
    stream.connected(NOW, V6, 1, Peer { room: 10_000, received: 0 }).unwrap();
    assert!(!stream.is_settled(), "the peer may have begun with the other one");
    assert_eq!(stream.switch(NOW, V6), Ok(1));
}
