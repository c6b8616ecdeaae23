mod by_hand;
mod figures;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use netaware_engine::{Engine, Input, Output};
use netaware_record::IpVersion;
use netaware_stats::rng::SplitMix64;
use netaware_units::{ClockSource, Mono, Span, Stamp, Wall};
use netaware_wire::proof::Key;
use netaware_wire::stamp::ErrorEstimate;
use proptest::prelude::*;

use super::clock::{ClockMethod, relate};
use super::reflector::{Incoming, Reflector, ReflectorSettings, Refused};
use super::report::{RowNames, StampLog, WHY_ANEW, Way};
use super::*;

/// What happens to packets of one way.
#[derive(Debug, Clone, Copy)]
struct Link {
    delay: Span,
    jitter: Span,
    loss: f64,
    doubling: f64,
}

fn link(delay_us: i64) -> Link {
    Link { delay: Span::from_micros(delay_us), jitter: Span::ZERO, loss: 0.0, doubling: 0.0 }
}

/// A reflector behind two links, by a clock that is off; and the truth.
struct Path {
    forward: Link,
    reverse: Link,
    offset: Span,
    skew_ppm: f64,
    key: Option<Key>,
    stateless: bool,
    restart_at: Option<Mono>,
    /// Nothing arrives there from then on.
    deaf_from: Option<Mono>,
    seed: u64,
}

#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
struct Truth {
    lost_forward: u64,
    lost_reverse: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    There(u64, Vec<u8>),
    Back(u64, Vec<u8>),
    Sent(u64, Mono),
}

impl Path {
    fn new(forward: Link, reverse: Link) -> Self {
        Self {
            forward,
            reverse,
            offset: Span::ZERO,
            skew_ppm: 0.0,
            key: None,
            stateless: false,
            restart_at: None,
            deaf_from: None,
            seed: 1,
        }
    }

    fn their_clock(&self, now: Mono) -> Wall {
        let skewed = (self.skew_ppm * 1e-6 * now.0 as f64) as i64;
        Wall(EPOCH.0 + now.0 as i64 + self.offset.0 + skewed)
    }

    fn reflector(&self) -> Reflector {
        let run_of_kernel = Some(b"their kernel".to_vec());
        Reflector::new(ReflectorSettings { key: self.key.clone(), run_of_kernel, ..Default::default() })
    }

    /// Runs a flow of `planned` packets and says what was lost where of these; closers do not
    /// count.
    fn run(&self, plan: &StampPlan) -> (StampFlow, StampLog, Truth) {
        self.run_flow(StampFlow::new(plan.clone()).unwrap())
    }

    fn run_flow(&self, mut flow: StampFlow) -> (StampFlow, StampLog, Truth) {
        let plan = flow.plan.clone();
        let (mut log, mut truth, mut now) = (StampLog::default(), Truth::default(), Mono(0));
        let mut agenda: BinaryHeap<Reverse<(Mono, u64, Happening)>> = BinaryHeap::new();
        let mut added = 0;
        let mut add = |agenda: &mut BinaryHeap<_>, at: Mono, what: Happening| {
            added += 1;
            agenda.push(Reverse((at, added, what)));
        };
        let mut rng = SplitMix64::new(self.seed);
        let mut reflector = self.reflector();
        let mut restarted = false;
        let mut out = vec![0; 2048];
        for _ in 0..2_000_000 {
            match flow.poll(now, &mut out) {
                Output::Event(event) => log.observe(&event),
                Output::Send { len, tag, due } => {
                    let left_at = due.max(now);
                    add(&mut agenda, left_at + Span(3_000), Happening::Sent(tag, left_at));
                    let deaf = self.deaf_from.is_some_and(|from| left_at >= from);
                    let copies = if deaf { 0 } else { copies(&self.forward, &mut rng) };
                    truth.lost_forward += u64::from(copies == 0 && Some(tag) < plan.count);
                    for _ in 0..copies {
                        let at = left_at + delay(&self.forward, &mut rng);
                        add(&mut agenda, at, Happening::There(tag, out[..len].to_vec()));
                    }
                }
                Output::Train { .. } => panic!("no trains"),
                Output::Done => return (flow, log, truth),
                Output::Wait(until) => {
                    if agenda.peek().is_none_or(|next| next.0.0 > until) {
                        now = now.max(until);
                        flow.handle(now, Input::Wake);
                        continue;
                    }
                    let Reverse((at, _, what)) = agenda.pop().unwrap();
                    now = now.max(at);
                    match what {
                        Happening::Sent(tag, at) => flow.handle(now, Input::Sent { tag, tx: stamp(at) }),
                        Happening::Back(_, bytes) => {
                            flow.handle(now, Input::Datagram { bytes: &bytes, rx: stamp(at), ttl: Some(61) });
                        }
                        Happening::There(tag, mut bytes) => {
                            if self.restart_at.is_some_and(|from| at >= from && !restarted) {
                                (reflector, restarted) = (self.reflector(), true);
                            }
                            if !self.reflect(&mut reflector, at, &mut bytes) {
                                continue;
                            }
                            let copies = copies(&self.reverse, &mut rng);
                            truth.lost_reverse += u64::from(copies == 0 && Some(tag) < plan.count);
                            for _ in 0..copies {
                                let at = at + DWELL + delay(&self.reverse, &mut rng);
                                add(&mut agenda, at, Happening::Back(tag, bytes.clone()));
                            }
                        }
                    }
                }
            }
        }
        panic!("no end");
    }

    /// Returns whether the packet is answered: one that is doubled on its way is only once.
    fn reflect(&self, reflector: &mut Reflector, at: Mono, bytes: &mut [u8]) -> bool {
        let incoming = Incoming {
            now: at,
            received_at: self.their_clock(at),
            from: "192.0.2.1:40000".parse().unwrap(),
            to: None,
            port: 862,
            ttl: Some(60),
            traffic_class: None,
            stamped_by_kernel: true,
            error: ErrorEstimate::UNKNOWN,
            synchronised_by: 5,
        };
        let number = Request::parse(bytes, self.key.as_ref()).unwrap().seq;
        let ready = match reflector.take(&incoming, bytes) {
            Ok(ready) => ready,
            Err(Refused::Repeated) => return false,
            Err(why) => panic!("{why:?}"),
        };
        ready.seal(bytes, self.their_clock(at + DWELL), self.key.as_ref());
        if self.stateless {
            bytes[..4].copy_from_slice(&number.to_be_bytes());
        }
        true
    }
}

fn copies(link: &Link, rng: &mut SplitMix64) -> usize {
    if rng.unit() < link.loss { 0 } else { 1 + usize::from(rng.unit() < link.doubling) }
}

fn delay(link: &Link, rng: &mut SplitMix64) -> Span {
    link.delay + Span((link.jitter.0 as f64 * rng.unit()) as i64)
}

fn stamp(at: Mono) -> Stamp {
    Stamp { at, by: ClockSource::Kernel, error: Span(100) }
}

fn plan(count: u64) -> StampPlan {
    StampPlan {
        start: Mono(0),
        interval: Span::from_millis(10),
        count: Some(count),
        length: 144,
        patience: Span::from_millis(500),
        ssid: 77,
        error: ErrorEstimate::UNKNOWN,
        epoch: EPOCH,
        key: None,
        dscp: 0,
        nonce: [3; 16],
        run_of_kernel: Some(b"our kernel".to_vec()),
    }
}

const EPOCH: Wall = Wall(1_790_000_000_123_456_789);
const DWELL: Span = Span::from_micros(30);

fn found(flow: &StampFlow) -> Truth {
    let counts = flow.counts();
    Truth { lost_forward: counts.lost_forward, lost_reverse: counts.lost_reverse }
}

#[test]
fn delays_of_one_clock_are_the_paths_own() {
    let (flow, log, _) = Path::new(link(3_000), link(9_000)).run(&plan(100));
    assert_eq!((flow.counts().answered, flow.counts().lost), (100, 0));
    let relation = relate(log.exchanges(), ErrorEstimate::UNKNOWN, true).unwrap();
    for (way, delay) in [(Way::Forward, 3_000), (Way::Reverse, 9_000)] {
        let summary = log.way(way, Some(&relation)).delay.unwrap();
        assert_eq!(
            (summary.min, summary.max),
            (Span::from_micros(delay), Span::from_micros(delay)),
            "{way:?}"
        );
    }
    assert_eq!(log.rtt().unwrap().p50, Span::from_micros(12_000));
    assert_eq!(log.dwell().unwrap().p50, DWELL);
    assert_eq!(flow.same_clock(), Some(false), "the kernels are different ones");
    assert_eq!(log.way(Way::Forward, Some(&relation)).hops, Some(4));
}

#[test]
fn clocks_far_apart_stay_within_the_stated_bound() {
    let rows = [(50, 50.0), (-50, -50.0), (3_600_000, 0.0), (0, 0.0)];
    for (offset_ms, skew_ppm) in rows {
        let jitter = Span::from_micros(800);
        let path = Path {
            offset: Span::from_millis(offset_ms),
            skew_ppm,
            ..Path::new(Link { jitter, ..link(3_000) }, Link { jitter, ..link(5_000) })
        };
        let (_, log, _) = path.run(&plan(1_000));
        let relation = relate(log.exchanges(), ErrorEstimate::UNKNOWN, false).unwrap();
        let row = format!("{offset_ms} ms, {skew_ppm} ppm: {relation:?}");
        assert_eq!(relation.method, ClockMethod::ActiveExchange, "{row}");
        for (way, least, most) in [(Way::Forward, 3_000, 3_800), (Way::Reverse, 5_000, 5_800)] {
            let found = log.way(way, Some(&relation));
            let delay = found.delay.unwrap();
            assert!((delay.min - Span::from_micros(least)).abs() <= relation.bound, "{row}: {delay:?}");
            assert!((delay.max - Span::from_micros(most)).abs() <= relation.bound, "{row}: {delay:?}");
            assert!(delay.min >= Span::ZERO && found.histogram.unwrap().underflow == found.negative, "{row}");
        }
        // Half of the least round trip, and what 50 ppm leave over.
        assert!(relation.bound <= Span::from_micros(4_000 + 400), "{row}");
    }
}

#[test]
fn losses_are_told_apart_exactly() {
    for seed in 0..20 {
        let lossy = |delay, loss| Link { loss, ..link(delay) };
        let path = Path { seed, ..Path::new(lossy(3_000, 0.1), lossy(2_000, 0.2)) };
        let (flow, log, truth) = path.run(&plan(500));
        let counts = flow.counts();
        assert_eq!(found(&flow), truth, "seed {seed}: {counts:?}");
        assert_eq!(counts.answered + counts.lost, 500, "seed {seed}");
        assert_eq!((counts.lost_somewhere(), flow.is_stateful()), (0, Some(true)), "seed {seed}");
        let names =
            RowNames { here: "a", there: "b", version: IpVersion::V6, patience: Span::from_millis(500) };
        let relation = relate(log.exchanges(), ErrorEstimate::UNKNOWN, false);
        let (up, down) = (
            log.row(Way::Forward, relation.as_ref(), &names),
            log.row(Way::Reverse, relation.as_ref(), &names),
        );
        assert_eq!((up.packets, up.lost, up.unobserved), (500, truth.lost_forward, 0));
        assert_eq!((down.packets, down.lost), (500 - truth.lost_forward, truth.lost_reverse));
        assert_eq!((down.from.as_str(), down.to.as_str(), down.matched), ("b", "a", counts.answered));
    }
}

#[test]
fn a_reflector_that_does_not_count_leaves_the_way_of_losses_open() {
    let path = Path { stateless: true, ..Path::new(Link { loss: 0.1, ..link(3_000) }, link(2_000)) };
    let (flow, log, truth) = path.run(&StampPlan { length: 44, ..plan(300) });
    assert_eq!(flow.is_stateful(), None);
    assert_eq!(
        (flow.counts().lost, flow.counts().lost_somewhere()),
        (truth.lost_forward, truth.lost_forward)
    );
    assert_eq!(log.way(Way::Forward, None).loss, None);
    // The counts of a direct measurement TLV do as well as numbers.
    let (flow, _, truth) = path.run(&plan(300));
    assert_eq!((found(&flow), flow.is_stateful()), (truth, Some(true)));
}

#[test]
fn packets_of_the_bare_standard_are_enough() {
    let path =
        Path { seed: 4, ..Path::new(Link { loss: 0.1, ..link(3_000) }, Link { loss: 0.1, ..link(2_000) }) };
    let (flow, _, truth) = path.run(&StampPlan { length: 44, ..plan(300) });
    assert_eq!((flow.asks_questions(), flow.same_clock()), (false, None));
    let counts = flow.counts();
    assert_eq!(counts.lost, truth.lost_forward + truth.lost_reverse);
    // Until a loss on the way there shows that it counts, the ways are open; afterwards they are
    // exact.
    assert!(
        counts.lost_forward <= truth.lost_forward && counts.lost_somewhere() < 10,
        "{counts:?} {truth:?}"
    );
}

#[test]
fn a_restart_of_the_reflector_is_told_and_no_loss() {
    let path = Path { restart_at: Some(Mono(2_000_000_000)), ..Path::new(link(3_000), link(2_000)) };
    let (flow, log, _) = path.run(&plan(400));
    assert_eq!((flow.counts().answered, flow.counts().lost, log.restarts()), (400, 0, 1));
}

#[test]
fn a_row_warns_of_restarts_and_of_clocks_only_where_there_is_something_to_warn_of() {
    let path = Path::new(link(3_000), link(2_000));
    let (_, quiet, _) = path.run(&plan(400));
    let (_, restarted, _) = Path { restart_at: Some(Mono(2_000_000_000)), ..path }.run(&plan(400));
    let good = relate(quiet.exchanges(), ErrorEstimate::UNKNOWN, false).unwrap();
    let anew = format!("the reflector began to count anew once: {WHY_ANEW}");
    let (mut contradicted, mut stepped) = (good, good);
    contradicted.contradicted = true;
    stepped.stepped = true;
    let rows = [
        (&quiet, good, vec![]),
        (&restarted, good, vec![anew.as_str()]),
        (&quiet, contradicted, vec!["both clocks say that they are synchronised, and cannot both be right"]),
        (&quiet, stepped, vec!["a clock was set in this period"]),
    ];
    let names = RowNames { here: "a", there: "b", version: IpVersion::V4, patience: Span::from_millis(500) };
    for (log, relation, want) in rows {
        for way in [Way::Forward, Way::Reverse] {
            assert_eq!(log.row(way, Some(&relation), &names).warnings, want, "{way:?}");
        }
    }
}

#[test]
fn a_path_that_dies_ends_in_losses_of_no_known_way() {
    let path = Path { deaf_from: Some(Mono(1_000_000_000)), ..Path::new(link(3_000), link(2_000)) };
    let (flow, _, truth) = path.run(&plan(200));
    assert_eq!((flow.counts().answered, truth.lost_forward), (100, 100));
    assert_eq!((flow.counts().lost, flow.counts().lost_somewhere()), (100, 100));
}

#[test]
fn one_more_packet_tells_the_way_of_the_last_losses() {
    // Of the planned packets the last two vanish on the way there.
    let mut found_one = false;
    for seed in 0..200 {
        let path = Path { seed, ..Path::new(Link { loss: 0.3, ..link(3_000) }, link(2_000)) };
        let (flow, _, truth) = path.run(&plan(10));
        if flow.counts().answered > 0 {
            found_one |= truth.lost_forward > 0;
            assert_eq!(flow.counts().lost_forward, truth.lost_forward, "seed {seed}");
        }
    }
    assert!(found_one);
}

#[test]
fn on_a_path_of_1200_ms_nothing_is_lost_and_nothing_late() {
    let slow = Path::new(link(600_000), link(600_000));
    let plan = StampPlan { patience: Span::from_secs(1), ..plan(100) };
    let (flow, log, _) = slow.run_flow(StampFlow::following(plan.clone()).unwrap().if_silent(IfSilent::End));
    assert_eq!((flow.counts().answered, flow.counts().lost, flow.counts().late), (100, 0, 0));
    assert!(flow.patience() >= Span::from_millis(4800) && log.patience() == Some(flow.patience()));
    // What a person typed stays as it is: all are lost, and late are those whose answers came
    // before the last of them was given up.
    let (flow, ..) = slow.run(&plan);
    assert_eq!((flow.counts().lost, flow.patience()), (100, plan.patience));
    assert!(flow.counts().late >= 75, "{:?}", flow.counts());
}

#[test]
fn a_first_packet_that_is_lost_is_not_a_reflector_that_is_not_there() {
    let mut ended_well = 0;
    for seed in 0..20 {
        let path = Path { seed, ..Path::new(Link { loss: 0.5, ..link(3_000) }, link(3_000)) };
        let flow = StampFlow::following(plan(100)).unwrap().if_silent(IfSilent::End);
        let (flow, ..) = path.run_flow(flow);
        ended_well += u32::from(flow.counts().asked == 100);
    }
    assert_eq!(ended_well, 20);
}

#[test]
fn where_nobody_answers_a_flow_ends_after_a_justified_patience() {
    let nobody = Path::new(Link { loss: 1.0, ..link(1) }, link(1));
    let flow = StampFlow::following(plan(2_000)).unwrap().if_silent(IfSilent::End);
    let (flow, log, _) = nobody.run_flow(flow);
    assert_eq!(flow.patience(), netaware_stats::patience::UNKNOWN);
    // One every 10 ms until the first of them had been waited for.
    assert!((495..=505).contains(&flow.counts().asked), "{:?}", flow.counts());
    assert!(log.exchanges().is_empty() && flow.counts().answered == 0);
}

#[test]
fn silence_ends_by_patience() {
    let (flow, log, _) = Path::new(Link { loss: 1.0, ..link(1) }, link(1)).run(&plan(20));
    assert_eq!((flow.counts().lost, flow.counts().lost_somewhere(), log.exchanges().len()), (20, 20, 0));
    assert_eq!(log.way(Way::Forward, None).loss, None);
}

#[test]
fn a_first_stop_leaves_answers_a_short_while_and_a_second_one_none() {
    let ms = Span::from_millis(1);
    let mut flow = StampFlow::new(StampPlan { count: None, ..plan(0) }).unwrap();
    let mut out = [0; 144];
    assert!(matches!(flow.poll(Mono(0), &mut out), Output::Send { .. }));
    let stopped_at = Mono(0) + ms;
    flow.handle(stopped_at, Input::Stop);
    assert_eq!(flow.poll(stopped_at, &mut out), Output::Wait(stopped_at + LINGER));
    flow.handle(stopped_at + ms, Input::Stop);
    let abandoned = StampEvent::Abandoned { count: 1, not_sent: 0 };
    assert_eq!(flow.poll(stopped_at + ms, &mut out), Output::Event(abandoned));
    assert_eq!(flow.poll(stopped_at + ms, &mut out), Output::Done);
    assert_eq!((flow.counts().abandoned, flow.counts().lost), (1, 0));
}

#[test]
fn copies_and_late_answers_are_neither_losses_nor_delays() {
    let doubled = Link { doubling: 0.2, ..link(3_000) };
    let (flow, ..) = Path::new(doubled, doubled).run(&plan(300));
    let counts = flow.counts();
    assert_eq!((counts.answered, counts.lost), (300, 0));
    assert!(counts.forward_copies > 30 && counts.reverse_copies > 30, "{counts:?}");
    let slow = Link { jitter: Span::from_millis(700), ..link(3_000) };
    let (flow, ..) = Path::new(link(3_000), slow).run(&plan(300));
    let counts = flow.counts();
    assert!(counts.late > 30 && counts.late <= counts.lost, "{counts:?}");
    assert_eq!(counts.lost_forward, 0, "the way back was late: {counts:?}");
}

#[test]
fn reordering_is_told_by_way() {
    let shuffled = Link { jitter: Span::from_millis(40), ..link(3_000) };
    let (_, log, _) = Path::new(shuffled, link(1_000)).run(&plan(300));
    assert!(log.way(Way::Forward, None).reordered > 50, "{}", log.way(Way::Forward, None).reordered);
    assert_eq!(log.way(Way::Reverse, None).reordered, 0);
    let (_, log, _) = Path::new(link(1_000), shuffled).run(&plan(300));
    assert_eq!(log.way(Way::Forward, None).reordered, 0);
    assert!(log.way(Way::Reverse, None).reordered > 50);
}

#[test]
fn a_proven_flow_takes_nothing_unproven() {
    let key = Key::new(*b"sesame").unwrap();
    let path = Path { key: Some(key.clone()), ..Path::new(link(3_000), link(2_000)) };
    let proven = StampPlan { key: Some(key), length: 220, ..plan(50) };
    let (flow, ..) = path.run(&proven);
    assert_eq!((flow.counts().answered, flow.told().unproven, flow.told().malformed), (50, false, false));
    assert_eq!(flow.is_stateful(), Some(true));
    let mut flow = StampFlow::new(proven).unwrap();
    flow.handle(Mono(0), Input::Datagram { bytes: &[0; 220], rx: stamp(Mono(0)), ttl: None });
    assert_eq!(flow.counts().ignored.unproven, 1);
}

#[test]
fn plans_that_cannot_be_are_refused() {
    let refused = |plan: StampPlan| StampFlow::new(plan).unwrap_err();
    assert_eq!(refused(StampPlan { length: 43, ..plan(1) }), StampPlanError::TooShort { least: 44 });
    assert_eq!(
        refused(StampPlan { length: 46, ..plan(1) }),
        StampPlanError::NoTlvFits { shorter: 44, longer: 48 }
    );
    assert_eq!(refused(StampPlan { ssid: 0, ..plan(1) }), StampPlanError::Ssid);
    assert_eq!(refused(StampPlan { interval: Span(1), ..plan(1) }), StampPlanError::Interval);
    assert_eq!(refused(StampPlan { patience: Span::ZERO, ..plan(1) }), StampPlanError::Patience);
    let key = Key::new(*b"sesame").ok();
    for (length, fits) in [(111, false), (112, true), (120, false), (132, true), (133, false), (136, true)] {
        assert_eq!(
            StampFlow::new(StampPlan { key: key.clone(), length, ..plan(1) }).is_ok(),
            fits,
            "{length}"
        );
    }
}

#[test]
fn lengths_rhythms_and_reasons_are_bounded_to_the_last_one() {
    let plan = plan(1);
    let keyed = Key::new(*b"sesame").ok();
    let rhythm =
        |interval, patience| StampPlan { interval: Span(interval), patience: Span(patience), ..plan.clone() };
    let rows = [
        (StampPlan { length: 65_527, ..plan.clone() }, None),
        (StampPlan { length: 65_528, ..plan.clone() }, Some(StampPlanError::TooLong)),
        (StampPlan { length: 48, ..plan.clone() }, None),
        (
            StampPlan { length: 133, key: keyed.clone(), ..plan.clone() },
            Some(StampPlanError::NoTlvFits { shorter: 132, longer: 136 }),
        ),
        (
            StampPlan { length: 131, key: keyed.clone(), ..plan.clone() },
            Some(StampPlanError::NoTlvFits { shorter: 112, longer: 132 }),
        ),
        (rhythm(1, 65_536), None),
        (rhythm(1, 65_537), Some(StampPlanError::Interval)),
        (rhythm(0, 1), Some(StampPlanError::Interval)),
        (rhythm(-1, 1), Some(StampPlanError::Interval)),
        (rhythm(1, 1), None),
    ];
    for (n, (plan, want)) in rows.into_iter().enumerate() {
        assert_eq!(StampFlow::new(plan).err(), want, "row {n}");
    }
    let told = [
        (StampPlanError::TooShort { least: 44 }, "the shortest packet has 44 bytes"),
        (
            StampPlanError::NoTlvFits { shorter: 44, longer: 48 },
            "no packet has that many bytes: the nearest lengths are 44 and 48 bytes",
        ),
        (
            StampPlanError::Interval,
            "within the time that an answer is waited for, at most 65536 packets may be sent",
        ),
        (StampPlanError::TooLong, "no packet is longer than 65527 bytes"),
        (StampPlanError::Patience, "answers must be waited for"),
        (StampPlanError::Ssid, "the session's number must not be zero"),
    ];
    for (error, words) in told {
        assert_eq!(error.to_string(), words);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn nothing_is_counted_twice_or_forgotten(seed: u64, there in 0.0..0.9, back in 0.0..0.9, doubling in 0.0..0.3,
                                             jitter_ms in 0_i64..900, count in 1_u64..120) {
        let of = |loss| Link { loss, doubling, jitter: Span::from_millis(jitter_ms), ..link(1_000) };
        let path = Path { seed, ..Path::new(of(there), of(back)) };
        let (flow, log, _) = path.run(&plan(count));
        let counts = flow.counts();
        prop_assert_eq!(counts.asked, count);
        prop_assert_eq!(counts.answered + counts.lost + counts.not_sent + counts.abandoned, count);
        prop_assert!(counts.lost_forward + counts.lost_reverse <= counts.lost);
        prop_assert!(counts.late <= counts.lost);
        prop_assert_eq!(log.sent(), counts.answered + counts.lost);
    }
}
