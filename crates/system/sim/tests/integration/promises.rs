//! What every engine may rely on, whatever the path does.

use std::collections::{BTreeMap, VecDeque};

use netaware_engine::{Engine, Input, NotSent, Output, Tag};
use netaware_record::IpVersion;
use netaware_sim::{Drive, Ended, Flow, Fragments, Scenario, Side, Simulation};
use netaware_units::{ByteCount, Mono, Span};

/// Sends what it is given, and checks that it is treated as the contract says.
#[derive(Default)]
struct Witness {
    plan: VecDeque<Output<()>>,
    ends_at: Mono,
    /// Instant of the last call.
    last: Mono,
    /// The last poll said `Wait` or `Done`.
    settled: bool,
    polled: bool,
    answered: BTreeMap<Tag, u32>,
    sent_at: Vec<(Tag, Mono)>,
    refused: Vec<(Tag, NotSent)>,
    stops: u32,
}

impl Witness {
    fn new(start: Mono, lasts: Span, plan: impl IntoIterator<Item = Output<()>>) -> Self {
        Self { plan: plan.into_iter().collect(), ends_at: start + lasts, ..Self::default() }
    }

    fn answer(&mut self, tag: Tag) {
        *self.answered.entry(tag).or_default() += 1;
    }

    fn see(&mut self, now: Mono) {
        assert!(now >= self.last, "time ran backwards");
        self.last = now;
    }
}

impl Engine for Witness {
    type Event = ();

    fn handle(&mut self, now: Mono, input: Input<'_>) {
        assert!(self.settled || !self.polled, "handled before it was polled to the end");
        (self.settled, self.polled) = (false, true);
        self.see(now);
        match input {
            Input::Sent { tag, tx } => {
                assert!(tx.at <= now, "sent in the future");
                self.answer(tag);
                self.sent_at.push((tag, tx.at));
            }
            Input::NotSent { tag, why } => {
                self.answer(tag);
                self.refused.push((tag, why));
            }
            Input::Stop => self.stops += 1,
            Input::Datagram { rx, .. } => assert!(rx.at <= now, "received in the future"),
            Input::Wake | Input::Handed { .. } => {}
        }
    }

    fn poll(&mut self, now: Mono, _out: &mut [u8]) -> Output<()> {
        self.see(now);
        if let Some(output) = self.plan.pop_front() {
            return output;
        }
        self.settled = true;
        if now >= self.ends_at { Output::Done } else { Output::Wait(self.ends_at) }
    }

    fn fill(&mut self, _tag: Tag, out: &mut [u8]) -> usize {
        out.fill(7);
        out.len()
    }
}

fn scenario(name: &str) -> Scenario {
    let file = format!("{}/../../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    Scenario::parse(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn one_hop(more: &str) -> Scenario {
    Scenario::parse(&format!("about = 'x'\n{more}[[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\n")).unwrap()
}

fn send(len: usize, tag: Tag, due: Mono) -> Output<()> {
    Output::Send { len, tag, due }
}

/// Against somebody who says nothing.
fn drive(sim: &mut Simulation, flow: &Flow, witness: &mut Witness) -> Drive {
    let mut silent = Witness { ends_at: Mono(u64::MAX), ..Witness::default() };
    sim.run_against(flow, witness, &mut silent, |()| {})
}

#[test]
fn every_send_is_answered_exactly_once_whatever_the_path_does() {
    for name in [
        "loss-5",
        "copies-and-bit-errors",
        "mtu-black-hole",
        "small-mtu",
        "bufferbloat",
        "skewed-clocks",
        "wifi",
    ] {
        for version in [IpVersion::V4, IpVersion::V6] {
            let mut sim = Simulation::new(&scenario(name), 3);
            let start = sim.local_now(Side::A);
            let singles = (0..200_i64).map(|n| {
                // Some are due in the past, some together, some are too big.
                let due = start + Span::from_micros(n / 3 * 250) - Span::from_millis(5);
                send(if n % 10 == 0 { 3000 } else { 1400 }, n.cast_unsigned(), due)
            });
            let gap = Span::from_micros(10);
            let train = Output::Train { count: 100, len: 1000, gap, tag: 1000, due: start };
            let mut witness = Witness::new(start, Span::from_secs(2), singles.chain([train]));
            let drive = drive(&mut sim, &Flow::new(version), &mut witness);
            assert_eq!(drive.ended, Ended::Done);
            let tags: Vec<Tag> = witness.answered.keys().copied().collect();
            assert_eq!(tags, (0..200).chain(1000..1100).collect::<Vec<Tag>>(), "{name}");
            assert!(witness.answered.values().all(|times| *times == 1), "{name}");
            let way = drive.way(Side::A);
            assert_eq!(
                (way.sent + way.not_sent, way.not_sent),
                (300, witness.refused.len() as u64),
                "{name}"
            );
            let told = way.delays.len() as u64 + way.lost();
            assert!(told <= way.sent, "{name}: {told} fates of {}", way.sent);
        }
    }
}

#[test]
fn a_train_leaves_at_its_gaps() {
    let mut sim = Simulation::new(&one_hop(""), 1);
    let start = sim.local_now(Side::A);
    let due = start + Span::from_millis(1);
    let train = Output::Train { count: 5, len: 100, gap: Span::from_micros(20), tag: 10, due };
    let mut witness = Witness::new(start, Span::from_millis(50), [train]);
    let drive = drive(&mut sim, &Flow::new(IpVersion::V4), &mut witness);
    let want: Vec<(Tag, Mono)> =
        (0..5_u64).map(|n| (10 + n, due + Span::from_micros(20) * n.cast_signed())).collect();
    assert_eq!(witness.sent_at, want);
    assert_eq!(drive.way(Side::A).delays.len(), 5);
}

#[test]
fn what_the_own_link_does_not_take_is_refused_with_its_mtu() {
    for (version, most) in [(IpVersion::V4, 1500 - 28), (IpVersion::V6, 1500 - 48)] {
        let mut sim = Simulation::new(&one_hop(""), 1);
        let start = sim.local_now(Side::A);
        let plan = [send(most, 0, start), send(most + 1, 1, start)];
        let mut witness = Witness::new(start, Span::from_millis(50), plan);
        let drive = drive(&mut sim, &Flow::new(version), &mut witness);
        assert_eq!(witness.refused, [(1, NotSent::TooBig(Some(ByteCount(1500))))]);
        assert_eq!((drive.way(Side::A).sent, drive.way(Side::A).not_sent), (1, 1));
    }
}

#[test]
fn a_router_that_says_too_big_teaches_the_host() {
    for version in [IpVersion::V4, IpVersion::V6] {
        let mut sim = Simulation::new(&scenario("small-mtu"), 1);
        let start = sim.local_now(Side::A);
        let plan =
            [send(1430, 0, start), send(1430, 1, start + Span::from_millis(500)), send(1300, 2, start)];
        let mut witness = Witness::new(start, Span::from_secs(1), plan);
        let drive = drive(&mut sim, &Flow::new(version), &mut witness);
        assert_eq!(witness.refused, [(1, NotSent::TooBig(Some(ByteCount(1400))))]);
        assert_eq!((drive.way(Side::A).too_big, drive.way(Side::A).delays.len()), (1, 1));
        assert_eq!(sim.known_mtu(Side::A, version), 1400);
    }
}

#[test]
fn ipv4_may_be_cut_into_pieces_where_nobody_forbids_it() {
    let mut sim = Simulation::new(&scenario("small-mtu"), 1);
    let start = sim.local_now(Side::A);
    let mut witness = Witness::new(start, Span::from_secs(1), [send(3000, 0, start)]);
    let flow = Flow { fragments: Fragments::Allowed, ..Flow::new(IpVersion::V4) };
    assert_eq!(drive(&mut sim, &flow, &mut witness).way(Side::A).delays.len(), 1);
    assert!(witness.refused.is_empty());
}

#[test]
fn a_clock_that_drifts_is_obeyed_all_the_same() {
    let mut sim = Simulation::new(&one_hop("[host.a]\nclock = { offset = '-2s', skew_ppm = 100.0 }\n"), 1);
    let start = sim.local_now(Side::A);
    let second = Span::from_secs(1);
    let mut witness = Witness::new(start, second * 3, [send(100, 0, start + second)]);
    let drive = drive(&mut sim, &Flow::new(IpVersion::V4), &mut witness);
    let late = witness.sent_at[0].1.since(start + second);
    assert!((0..=1).contains(&late.nanos()), "{late}");
    // A second of a clock that is 100 ppm fast is 100 us short.
    let true_length = drive.ended_at.since(drive.began_at);
    assert!((true_length - Span(2_999_700_030)).abs() <= Span(5), "{true_length:?}");
}

#[test]
fn a_run_is_told_to_stop_once_and_cut_off_when_it_does_not_obey() {
    let mut sim = Simulation::new(&one_hop(""), 1);
    let mut witness = Witness { ends_at: Mono(u64::MAX), ..Witness::default() };
    let flow = Flow {
        stop_after: Some(Span::from_secs(1)),
        cut_off_after: Span::from_secs(5),
        ..Flow::new(IpVersion::V4)
    };
    let drive = drive(&mut sim, &flow, &mut witness);
    assert_eq!((drive.ended, witness.stops), (Ended::CutOff, 1));
}

#[test]
fn an_engine_that_wants_to_be_woken_in_the_past_does_not_keep_time_from_passing() {
    struct Impatient(u64);
    impl Engine for Impatient {
        type Event = ();
        fn handle(&mut self, _now: Mono, _input: Input<'_>) {
            self.0 += 1;
        }
        fn poll(&mut self, now: Mono, _out: &mut [u8]) -> Output<()> {
            if self.0 > 1000 { Output::Done } else { Output::Wait(now) }
        }
    }
    let mut sim = Simulation::new(&one_hop(""), 1);
    let drive = sim.run(&Flow::new(IpVersion::V4), &mut Impatient(0), |()| {});
    assert_eq!(drive.ended, Ended::Done);
    assert!(drive.ended_at > drive.began_at);
}
