//! Two ends on a virtual clock, with a network between them that each test makes.

mod alone;

use std::net::SocketAddr;

use netaware_record::Use;
use netaware_wire::dual::{Came, DatagramBody, Refusal};

use super::*;
use crate::policy::{Choice, DecidedBy, NotDone, Rules};
use crate::stream::Outcome;

const V4: IpVersion = IpVersion::V4;
const V6: IpVersion = IpVersion::V6;
/// Each step of the virtual clock.
const STEP: Span = Span::from_millis(1);

/// What a version does to datagrams of one direction.
#[derive(Debug, Clone, Copy)]
struct Way {
    delay: Span,
    /// One in so many is lost; 1 is all, 0 none.
    lost: u64,
    /// Each comes so often.
    copies: usize,
}

struct Flying {
    at: Mono,
    to: usize,
    bytes: Vec<u8>,
}

struct World {
    now: Mono,
    ends: [Option<Session>; 2],
    door: Door,
    /// By sender and version.
    ways: [[Way; 2]; 2],
    flying: Vec<Flying>,
    sent: u64,
    /// What each application got.
    got: [Vec<u32>; 2],
    events: [Vec<(Mono, Event)>; 2],
    carried: [[u64; 2]; 2],
    random: u64,
}

fn setting(side: Side) -> Setting {
    Setting {
        side,
        session: 77,
        clock_offset: if side == Side::Opener { u32::MAX - 5 } else { 12_345 },
        every: Span::from_millis(500),
        overlap: Span::from_millis(500),
        patience: Span::from_secs(20),
        wanted: Wanted::Each,
        preferred: V6,
    }
}

impl World {
    fn new(delay_ms: i64) -> Self {
        let now = Mono(5_000_000_000);
        let way = Way { delay: Span::from_millis(delay_ms), lost: 0, copies: 1 };
        let mut opener = Session::new(setting(Side::Opener), now);
        opener.reach(now, V6);
        opener.reach(now, V4);
        Self {
            now,
            ends: [Some(opener), None],
            door: Door::new([9; 32]),
            ways: [[way; 2]; 2],
            flying: Vec::new(),
            sent: 0,
            got: Default::default(),
            events: Default::default(),
            carried: [[0; 2]; 2],
            random: 1,
        }
    }

    /// Both versions up, and the first wish answered.
    fn up(delay_ms: i64) -> Self {
        let mut world = Self::new(delay_ms);
        world.run(Span::from_secs(2));
        for side in 0..2 {
            assert_eq!(world.end(side).current(), Some(V6));
            assert!(world.end(side).status().v4.standing == Standing::Up);
            world.events[side].clear();
        }
        world
    }

    fn end(&mut self, side: usize) -> &mut Session {
        self.ends[side].as_mut().unwrap()
    }

    fn throw(&mut self, from: usize, bytes: &[u8]) {
        let ip = if bytes[3] == 4 { V4 } else { V6 };
        let way = self.ways[from][ip.index()];
        self.carried[from][ip.index()] += 1;
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if way.lost > 0 && (self.random >> 33).is_multiple_of(way.lost) {
            return;
        }
        for copy in 0..way.copies {
            let at = self.now + way.delay + STEP * copy as i64;
            self.flying.push(Flying { at, to: 1 - from, bytes: bytes.to_vec() });
        }
    }

    /// A datagram of the application, with a number in it.
    fn send(&mut self, from: usize, value: u32) {
        self.send_of(from, value, 4);
    }

    fn send_of(&mut self, from: usize, value: u32, length: usize) {
        let now = self.now;
        let heads = self.end(from).send(now, length).unwrap();
        self.sent += 1;
        for head in heads.into_iter().flatten() {
            let bytes = [&head.emit()[..], &value.to_be_bytes()].concat();
            self.throw(from, &bytes);
        }
    }

    fn arrive(&mut self, to: usize, bytes: &[u8]) {
        let (head, body) = DatagramHead::parse(bytes).unwrap();
        let now = self.now;
        if let (1, DatagramBody::Hello { speaks, cookie, .. }) = (to, body) {
            let from: SocketAddr =
                if head.ip == V4 { "192.0.2.1:5" } else { "[2001:db8::1]:5" }.parse().unwrap();
            match self.door.knock(now, from, head.session, speaks, cookie) {
                Knock::Enter => {
                    let made = || Session::new(setting(Side::Acceptor), now);
                    self.ends[1].get_or_insert_with(made).joined(now, head.ip);
                }
                Knock::Answer(answer) => {
                    let mut out = [0; PROBE_LEN];
                    let length = answer.emit(DatagramHead { ..head }, &mut out);
                    assert!(length <= bytes.len());
                    self.throw(1, &out[..length]);
                }
            }
            return;
        }
        let Some(end) = &mut self.ends[to] else { return };
        if end.take(now, &head, &body) == Taken::Payload {
            let value: [u8; 4] = bytes[bytes.len() - 4..].try_into().unwrap();
            self.got[to].push(u32::from_be_bytes(value));
        }
    }

    fn run(&mut self, span: Span) {
        self.run_with(span, |_| {});
    }

    /// Lets time pass and calls back each millisecond.
    fn run_with(&mut self, span: Span, mut meanwhile: impl FnMut(&mut Self)) {
        let until = self.now + span;
        while self.now < until {
            self.now += STEP;
            meanwhile(self);
            let now = self.now;
            let (due, later): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.flying).into_iter().partition(|it| it.at <= now);
            self.flying = later;
            for it in due {
                self.arrive(it.to, &it.bytes);
            }
            for side in 0..2 {
                while let Some(due) = self.ends[side].as_mut().and_then(|end| end.poll(now)) {
                    self.throw(side, due.bytes());
                }
                while let Some(event) = self.ends[side].as_mut().and_then(Session::event) {
                    self.events[side].push((now, event));
                }
            }
        }
    }

    /// Sends one each so many milliseconds from both ends.
    fn talk(&mut self, span: Span, every_ms: u64) {
        let mut step = 0;
        self.run_with(span, |world| {
            step += 1;
            if step % every_ms == 0 {
                for side in 0..2 {
                    world.send(side, step as u32);
                }
            }
        });
    }

    fn had(&self, side: usize, event: Event) -> bool {
        self.events[side].iter().any(|(_, it)| *it == event)
    }
}

#[test]
fn both_versions_come_up_and_the_preferred_one_is_used() {
    let mut world = World::up(10);
    let status = world.end(0).status();
    for version in [status.v4, status.v6] {
        let rtt = version.round_trip.unwrap();
        assert!((rtt - Span::from_millis(20)).abs() <= Span::from_millis(3), "{rtt}");
    }
}

#[test]
fn an_idle_version_costs_two_probes_each_second_and_no_more() {
    let mut world = World::up(10);
    world.carried = [[0; 2]; 2];
    world.talk(Span::from_secs(10), 10);
    world.run(Span::from_millis(20));
    let [used, idle] = [world.carried[0][V6.index()], world.carried[0][V4.index()]];
    assert!((18..=24).contains(&idle), "{idle}");
    // 1000 of the application, and at most ten reports each second.
    assert!((1000..=1110).contains(&used), "{used}");
    assert_eq!(world.got.each_ref().map(Vec::len), [1000, 1000]);
}

#[test]
fn a_switch_loses_nothing_brings_nothing_twice_and_takes_the_peer_along() {
    let mut world = World::up(10);
    world.talk(Span::from_millis(300), 1);
    let now = world.now;
    let serial = world.end(1).switch(now, V4).unwrap();
    world.talk(Span::from_millis(300), 1);
    world.run(Span::from_millis(100));
    for side in 0..2 {
        assert_eq!(world.end(side).current(), Some(V4));
        let mut got = world.got[side].clone();
        got.sort_unstable();
        let twice: Vec<u32> = (1..=300).flat_map(|n| [n, n]).collect();
        assert_eq!(got, twice, "two rounds of 300, each number once in each");
        assert!(world.end(side).status().repeated > 10, "went both ways for a round trip");
        assert!(world.end(side).status().repeated < 60);
    }
    assert!(world.had(1, Event::WishEnded { serial, outcome: Outcome::Granted }));
    assert!(world.had(0, Event::Turned { from: V6, to: V4, reason: Reason::PeersWish }));
}

#[test]
fn copies_that_the_network_makes_are_dropped() {
    let mut world = World::up(10);
    world.ways[0][V6.index()].copies = 3;
    world.talk(Span::from_millis(500), 5);
    world.run(Span::from_millis(100));
    assert_eq!(world.got[1].len(), 100);
    assert!(world.end(1).status().v6.repeated >= 200);
}

#[test]
fn crossing_wishes_end_and_both_go_the_openers_way() {
    let mut world = World::up(10);
    let now = world.now;
    let of_opener = world.end(0).switch(now, V4).unwrap();
    let of_acceptor = world.end(1).switch(now, V6).unwrap();
    world.talk(Span::from_secs(1), 10);
    assert!(world.had(0, Event::WishEnded { serial: of_opener, outcome: Outcome::Granted }));
    assert!(world.had(1, Event::WishEnded { serial: of_acceptor, outcome: Outcome::Crossed }));
    assert_eq!([0, 1].map(|side| world.end(side).current()), [Some(V4); 2]);
}

#[test]
fn wishes_end_though_half_of_the_datagrams_are_lost() {
    for random in 0..6 {
        let mut world = World::up(10);
        world.random = random;
        world.ways[0] = world.ways[0].map(|way| Way { lost: 2, ..way });
        world.ways[1] = world.ways[0];
        let now = world.now;
        let serial = world.end(0).switch(now, V4).unwrap();
        world.talk(Span::from_secs(6), 10);
        let ended = world.events[0]
            .iter()
            .any(|(_, it)| matches!(it, Event::WishEnded { serial: it, .. } if *it == serial));
        assert!(ended, "{random}");
    }
}

#[test]
fn a_session_that_ends_ends_its_wish() {
    let mut world = World::up(10);
    let now = world.now;
    let serial = world.end(0).switch(now, V4).unwrap();
    world.end(0).close();
    world.run(Span::from_millis(50));
    let ended: Vec<_> = world.events[0]
        .iter()
        .map(|(_, it)| *it)
        .filter(|it| matches!(it, Event::WishEnded { serial: it, .. } if *it == serial))
        .collect();
    assert_eq!(ended, [Event::WishEnded { serial, outcome: Outcome::Over }]);
}

#[test]
fn a_session_that_is_held_stays_and_says_so() {
    let mut world = World::up(10);
    let now = world.now;
    world.end(1).hold(true);
    assert_eq!(world.end(1).switch(now, V4), Err(crate::CannotSwitch::Held));
    let serial = world.end(0).switch(now, V4).unwrap();
    world.run(Span::from_millis(200));
    assert!(world.had(0, Event::WishEnded { serial, outcome: Outcome::Held }));
    assert_eq!([0, 1].map(|side| world.end(side).current()), [Some(V4), Some(V6)]);
}

#[test]
fn a_dead_version_is_left_within_a_second_and_used_again_when_it_is_back() {
    let mut world = World::up(20);
    world.talk(Span::from_secs(1), 5);
    let died_at = world.now;
    for ways in &mut world.ways {
        ways[V6.index()].lost = 1;
    }
    world.talk(Span::from_secs(5), 5);
    for side in 0..2 {
        let turned = Event::Turned { from: V6, to: V4, reason: Reason::Loss };
        let at = world.events[side].iter().find(|(_, it)| *it == turned).unwrap().0;
        assert!(at - died_at <= Span::from_secs(1), "{}", at - died_at);
        assert_eq!(world.end(side).status().v6.standing, Standing::Silent);
    }
    assert_eq!(world.end(0).switch(died_at, V6), Err(crate::CannotSwitch::Down));
    for side in 0..2 {
        world.ways[side][V6.index()].lost = 0;
    }
    world.talk(Span::from_secs(12), 50);
    assert!((0..2).all(|side| world.had(side, Event::Up(V6))));
    assert_eq!(world.end(0).current(), Some(V4), "nobody asked to go back");
}

#[test]
fn one_in_ten_lost_at_random_is_seen_and_makes_no_version_silent() {
    let mut world = World::up(10);
    for side in 0..2 {
        world.ways[side] = world.ways[side].map(|way| Way { lost: 10, ..way });
    }
    world.talk(Span::from_secs(30), 5);
    for side in 0..2 {
        assert!(
            !world.had(side, Event::Silent(V6)) && !world.had(side, Event::Silent(V4)),
            "{:?}",
            world.events[side]
        );
        let version = world.end(side).status().v6;
        let share = version.lost.unwrap() as f64 / (version.confirmed + version.lost.unwrap()) as f64;
        assert!((share - 0.1).abs() < 0.02, "{share}");
        let missing = version.missing as f64 / (version.received + version.missing) as f64;
        assert!((missing - 0.1).abs() < 0.02, "{missing}");
    }
}

#[test]
fn a_queue_shows_as_delay_at_both_ends() {
    let mut world = World::up(10);
    world.talk(Span::from_secs(2), 10);
    world.ways[0][V6.index()].delay = Span::from_millis(40);
    world.talk(Span::from_secs(2), 10);
    let [forward, reverse] = [world.end(0).status().v6.forward_delay, world.end(1).status().v6.reverse_delay];
    for delay in [forward, reverse] {
        assert!((delay.unwrap() - Span::from_millis(30)).abs() < Span::from_millis(3), "{delay:?}");
    }
    assert!(world.end(0).status().v6.reverse_delay.unwrap() < Span::from_millis(2));
}

#[test]
fn rules_leave_the_version_that_loses_and_say_why() {
    let mut world = World::up(10);
    let now = world.now;
    world.ways[0][V6.index()].lost = 20;
    world.end(0).set_policy(now, Some(Rules::of(Use::Media)), false).unwrap();
    world.talk(Span::from_secs(40), 2);
    assert_eq!([0, 1].map(|side| world.end(side).current()), [Some(V4); 2]);
    let decision = world.end(0).decision().unwrap();
    assert_eq!((decision.to, decision.by), (V4, DecidedBy::Rules));
    assert!(decision.present > 0.02 && decision.other < 0.01, "{decision:?}");
    assert_eq!(world.end(0).decision(), None);
}

#[test]
fn a_decision_of_rules_that_is_held_up_is_told_and_done_later() {
    let mut world = World::up(10);
    let now = world.now;
    world.ways[0][V6.index()].lost = 20;
    world.end(0).set_policy(now, Some(Rules::of(Use::Media)), false).unwrap();
    world.end(0).hold(true);
    world.talk(Span::from_secs(40), 2);
    assert_eq!(world.end(0).current(), Some(V6));
    let held: Vec<_> = std::iter::from_fn(|| world.end(0).decision()).collect();
    // At every look, and told every ten seconds.
    assert!((1..=4).contains(&held.len()), "{held:?}");
    assert!(held.iter().all(|it| (it.to, it.not_done) == (V4, Some(NotDone::Held))), "{held:?}");
    world.end(0).hold(false);
    world.talk(Span::from_secs(2), 2);
    assert_eq!(world.end(0).current(), Some(V4));
    assert_eq!(world.end(0).decision().map(|it| it.not_done), Some(None));
}

#[test]
fn looking_at_the_other_version_costs_no_more_than_the_budget() {
    let mut world = World::up(10);
    let now = world.now;
    world.end(0).set_policy(now, Some(Rules { budget: 0.02, ..Rules::of(Use::Media) }), false).unwrap();
    world.carried = [[0; 2]; 2];
    let seconds = 10;
    world.run_with(Span::from_secs(seconds), |world| {
        world.send_of(0, 1, 1000);
    });
    // 2 % of a million bytes each second are 178 probes of 112 bytes, more than one each 20 ms.
    let probes = world.carried[0][V4.index()] as i64;
    assert!(probes > 30 * seconds && probes <= 55 * seconds, "{probes}");
}

#[test]
fn a_callback_sees_both_versions_and_is_obeyed() {
    let mut world = World::up(10);
    world.ways[0][V4.index()].delay = Span::from_millis(60);
    let now = world.now;
    world.end(0).set_policy(now, Some(Rules::of(Use::Interactive)), true).unwrap();
    let mut seen = None;
    world.run_with(Span::from_secs(5), |world| {
        let now = world.now;
        if let Some(evidence) = world.end(0).evidence(now) {
            seen = Some(evidence);
            let both = [V4, V6].iter().all(|ip| evidence.of(*ip).observations >= 3);
            world.end(0).judge(now, if both { Choice::Use(V4) } else { Choice::Keep });
        }
    });
    assert_eq!(world.end(1).current(), Some(V4), "for no good reason, but it was said");
    let seen = seen.unwrap();
    assert!(seen.v6.up && seen.at > now);
    let decision = world.end(0).decision().unwrap();
    assert_eq!((decision.to, decision.by), (V4, DecidedBy::Callback));
    assert!(decision.other > decision.present, "{decision:?}");
}

#[test]
fn goodput_is_no_measure_of_datagrams() {
    let mut world = World::up(10);
    let now = world.now;
    assert_eq!(world.end(0).set_policy(now, Some(Rules::of(Use::Bulk)), false), Err(UnfitRules));
}

#[test]
fn who_closes_is_heard_and_who_vanishes_is_missed() {
    let mut world = World::up(10);
    world.end(0).close();
    world.run(Span::from_millis(100));
    assert_eq!(world.end(1).ended(), Some(End::PeerClosed));
    let now = world.now;
    assert_eq!(world.end(1).send(now, 1), Err(CannotSend::Ended(End::PeerClosed)));

    let mut world = World::up(10);
    world.ways[1] = world.ways[1].map(|way| Way { lost: 1, ..way });
    world.talk_one_way(Span::from_secs(30));
    assert_eq!(world.end(0).ended(), Some(End::Silent));
}

impl World {
    fn talk_one_way(&mut self, span: Span) {
        self.run_with(span, |world| {
            let now = world.now;
            let _ = world.end(0).send(now, 4);
        });
    }
}

#[test]
fn a_peer_that_tells_what_cannot_be_is_not_believed() {
    let mut world = World::up(10);
    let before = world.end(0).status();
    let came = [Came { highest: 1_000_000, received: 1 }, Came { highest: 5, received: 900 }];
    let probe = Probe { came, ..Probe::default() };
    let now = world.now;
    let head = DatagramHead {
        kind: DatagramKind::Probe,
        ip: V6,
        sequence: 500_000,
        session: 77,
        sent_at: 0,
        number: 0,
    };
    world.end(0).take(now, &head, &DatagramBody::Probe(probe));
    let after = world.end(0).status();
    assert_eq!((after.v4.lost, after.v4.confirmed), (before.v4.lost, before.v4.confirmed));
    assert_eq!(after.v6.lost, before.v6.lost);
}

#[test]
fn a_version_without_a_way_is_tried_again_once_the_other_one_works() {
    let mut world = World::new(10);
    let now = world.now;
    world.end(0).unreachable(now, V6);
    world.run(Span::from_secs(1));
    assert_eq!((world.end(0).current(), world.end(0).status().v6.standing), (Some(V4), Standing::Greeting));
    world.run(Span::from_secs(5));
    assert_eq!(world.end(0).status().v6.standing, Standing::Up);
    assert_eq!(world.end(0).current(), Some(V4));
}

#[test]
fn an_acceptor_that_has_lost_its_memory_is_greeted_anew_or_left() {
    let mut world = World::up(10);
    let now = world.now;
    let unknown = DatagramHead::set_up(DatagramKind::Unknown, V6, 77);
    world.end(0).take(now, &unknown, &DatagramBody::Unknown);
    assert_eq!(world.end(0).current(), Some(V4));
    world.run(Span::from_millis(500));
    assert_eq!(world.end(0).status().v6.standing, Standing::Up);
    let refused = DatagramHead::set_up(DatagramKind::Refused, V6, 77);
    world.end(0).take(now, &unknown, &DatagramBody::Unknown);
    world.end(0).take(now, &refused, &DatagramBody::Refused(Refusal::Stream));
    assert_eq!(world.end(0).ended(), Some(End::Refused(Refusal::Stream)));
}
