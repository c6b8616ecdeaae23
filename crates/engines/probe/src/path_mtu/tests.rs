//! The search on paths whose MTU is known.

use std::collections::VecDeque;

use netaware_units::Stamp;
use proptest::prelude::*;

use super::*;
use crate::virtual_path::{Bottleneck, Link, VirtualPath};

const MS: Span = Span::from_millis(1);

fn plan(version: IpVersion, believed: u32) -> PathMtuPlan {
    PathMtuPlan { flow: 3, version, believed, timeout: MS * 50, budget: MS * 3000, start: Mono(1_000) }
}

fn search(path: &VirtualPath, plan: PathMtuPlan) -> (Mono, PathMtu) {
    let path = VirtualPath { headers: plan.headers(), ..path.clone() };
    let events = path.drive(&mut PathMtuSearch::new(plan));
    assert_eq!(events.len(), 1);
    events[0]
}

fn path(bottleneck: Bottleneck) -> VirtualPath {
    VirtualPath { bottleneck, ..VirtualPath::symmetric(MS * 5) }
}

#[test]
fn the_path_mtu_is_found_and_how_it_was_learnt() {
    use Bottleneck::{None as Wide, Silent, Telling};
    use IpVersion::{V4, V6};
    use MtuFinding::{BlackHole, Confirmed, Learnt, Unknown};
    let rows = [
        (V4, 1500, Wide, Some(1500), Confirmed),
        (V6, 1500, Wide, Some(1500), Confirmed),
        // Loopback: over IPv4 no datagram fills 65536, over IPv6 one does.
        (V4, 65_536, Wide, Some(65_535), Confirmed),
        (V6, 65_536, Wide, Some(65_536), Confirmed),
        (V6, u32::MAX, Wide, Some(65_555), Confirmed),
        (V4, 1500, Telling(1492), Some(1492), Learnt),
        (V6, 1500, Telling(1280), Some(1280), Learnt),
        (V4, 9000, Telling(1503), Some(1503), Learnt),
        (V4, 1500, Silent(1492), Some(1492), BlackHole),
        (V4, 1500, Silent(1437), Some(1437), BlackHole),
        (V6, 1500, Silent(1281), Some(1281), BlackHole),
        (V4, 9000, Silent(1500), Some(1500), BlackHole),
        (V4, 9000, Silent(4321), Some(4321), BlackHole),
        (V4, 1500, Silent(576), Some(576), BlackHole),
        (V4, 1500, Silent(500), None, Unknown),
        (V4, 400, Wide, Some(400), Confirmed),
        (V4, 0, Wide, Some(72), Confirmed),
    ];
    for (n, (version, believed, bottleneck, mtu, finding)) in rows.into_iter().enumerate() {
        let (at, found) = search(&path(bottleneck), plan(version, believed));
        assert_eq!((found.mtu, found.finding), (mtu, finding), "row {n}");
        assert!(at <= Mono(1_000) + MS * 3000 && found.sent < 150, "row {n}: {at:?}, {found:?}");
    }
}

#[test]
fn a_path_that_is_wide_enough_costs_one_round_trip() {
    let (at, found) = search(&path(Bottleneck::None), plan(IpVersion::V4, 1500));
    assert!(at.since(Mono(0)) < MS * 11 && found.sent == 1, "{at:?} {found:?}");
}

#[test]
fn a_dead_path_is_given_up_after_six_timeouts() {
    let dead = VirtualPath { forward: Link { loss: 1.0, ..Link::of(MS) }, ..path(Bottleneck::None) };
    let (at, found) = search(&dead, plan(IpVersion::V4, 1500));
    assert_eq!((found.mtu, found.finding), (None, MtuFinding::Unknown));
    assert_eq!(at, Mono(1_000) + MS * 300);
}

#[test]
fn the_budget_ends_the_search_with_a_lower_bound() {
    let short = PathMtuPlan { budget: MS * 320, ..plan(IpVersion::V4, 1500) };
    let (at, found) = search(&path(Bottleneck::Silent(1430)), short);
    assert_eq!((found.mtu, found.finding), (Some(1428), MtuFinding::BlackHole));
    assert_eq!(at, Mono(1_000) + MS * 320);
}

#[test]
fn a_black_hole_on_a_long_path_is_found_and_not_left_unknown() {
    for (rtt, mtu) in [(600, 1300), (600, 1420), (1200, 1300), (1500, 1492), (300, 1437)] {
        let path =
            VirtualPath { bottleneck: Bottleneck::Silent(mtu), ..VirtualPath::symmetric(MS * (rtt / 2)) };
        let plan = PathMtuPlan::following(3, IpVersion::V4, 1500, MS * rtt, Mono(1_000));
        let (at, found) = search(&path, plan);
        assert_eq!(found.finding, MtuFinding::BlackHole, "{rtt} ms: {found:?}");
        let (passes, vanishes) = (found.mtu.unwrap(), found.vanishes.unwrap());
        assert!(passes <= mtu && mtu < vanishes && vanishes - passes <= 70, "{rtt} ms: {found:?}");
        assert!(at.since(Mono(1_000)) <= MS * (3000.max(rtt * 8 + 4000)), "{rtt} ms: {at:?}");
    }
}

/// How long a search over a path of 20 ms takes and what it finds. `is_answered` gets the time from
/// its begin and the size of each packet.
fn searched(is_answered: impl Fn(Span, u32) -> bool) -> (Span, PathMtu) {
    let plan = PathMtuPlan::following(3, IpVersion::V4, 1500, MS * 20, Mono(1_000));
    let (mut out, mut now) = (vec![0; plan.longest_datagram()], plan.start);
    let mut engine = PathMtuSearch::new(plan);
    let mut on_the_way: VecDeque<(Mono, Vec<u8>)> = VecDeque::new();
    loop {
        match engine.poll(now, &mut out) {
            Output::Send { len, .. } => {
                if is_answered(now - plan.start, len as u32 + plan.headers()) {
                    let mut reply = out[..len].to_vec();
                    reply[2] = Kind::EchoReply as u8;
                    on_the_way.push_back((now + MS * 20, reply));
                }
            }
            Output::Wait(until) => {
                let is_due = on_the_way.front().is_some_and(|(at, _)| *at <= until);
                if is_due && let Some((at, bytes)) = on_the_way.pop_front() {
                    now = at;
                    let rx = Stamp::application(now);
                    engine.handle(now, Input::Datagram { bytes: &bytes, rx, ttl: None });
                } else {
                    now = until;
                }
            }
            Output::Event(found) => return (now - plan.start, found),
            _ => panic!("no result"),
        }
    }
}

/// "Packets above 1499 bytes vanish" was said of a path of 1500 that was out for 0.3 s.
#[test]
fn an_outage_at_the_begin_of_the_search_is_no_black_hole() {
    for outage in (0..=1000).step_by(50) {
        let (took, found) = searched(|at, _| at >= MS * outage);
        // Six tries, 100 ms apart, and then nobody knows anything.
        let (mtu, finding) =
            if outage <= 500 { (Some(1500), MtuFinding::Confirmed) } else { (None, MtuFinding::Unknown) };
        assert_eq!((found.mtu, found.finding), (mtu, finding), "{outage} ms");
        assert_eq!(found.vanishes, None, "{outage} ms");
        assert!(took <= MS * 600, "{outage} ms: {took}");
    }
}

#[test]
fn an_outage_during_the_search_does_not_make_sizes_vanish_that_pass() {
    for begins in (0..1500).step_by(50) {
        for lasts in [250, 400, 600] {
            let outage = MS * begins..MS * (begins + lasts);
            let (_, found) = searched(|at, size| size <= 1437 && !outage.contains(&at));
            assert!(found.mtu.is_none_or(|mtu| mtu <= 1437), "{outage:?}: {found:?}");
            assert!(found.vanishes.is_none_or(|vanishes| vanishes > 1437), "{outage:?}: {found:?}");
        }
    }
}

#[test]
fn a_path_that_dies_during_the_search_has_no_black_hole() {
    let (took, found) = searched(|at, size| at < MS * 310 && size <= 1499);
    // What passed has passed, and of what did not nobody knows why.
    assert_eq!((found.mtu, found.finding, found.vanishes), (Some(1492), MtuFinding::Unknown, None));
    assert_eq!(took, MS * 3000);
}

#[test]
fn a_black_hole_on_a_path_without_losses_is_proven_in_the_time_of_three_tries() {
    // The tries of the believed size, of the common ones, and twice of what lies between.
    let (took, found) = searched(|_, size| size <= 1437);
    assert_eq!((found.mtu, found.finding), (Some(1437), MtuFinding::BlackHole));
    assert_eq!(took, MS * 100 * 4 * 3);
    // A common size: it passes at once, and there is but one smaller size that can be answered.
    let (took, found) = searched(|_, size| size <= 1492);
    assert_eq!((found.mtu, found.finding), (Some(1492), MtuFinding::BlackHole));
    assert_eq!(took, MS * (300 + 20 + 400));
}

#[test]
fn a_path_that_loses_half_of_all_packets_has_no_black_hole() {
    let lossy = Link { loss: 0.3, ..Link::of(MS * 5) };
    let wrong = (0..500).filter(|seed| {
        let path = VirtualPath { forward: lossy, reverse: lossy, seed: *seed, ..path(Bottleneck::None) };
        search(&path, plan(IpVersion::V4, 1500)).1.finding == MtuFinding::BlackHole
    });
    // Of these searches 13 % lose the believed size three times at first.
    let wrong = wrong.count();
    assert!(wrong <= 2, "{wrong} of 500");
}

#[test]
fn too_short_a_timeout_is_mended_by_the_late_answer() {
    let hasty = PathMtuPlan { timeout: MS * 3, ..plan(IpVersion::V4, 1500) };
    let (_, found) = search(&path(Bottleneck::None), hasty);
    assert_eq!((found.mtu, found.finding), (Some(1500), MtuFinding::Confirmed));
}

#[test]
fn a_lossy_path_is_not_taken_for_a_narrow_one() {
    let lossy = Link { loss: 0.03, ..Link::of(MS * 5) };
    let right = (0..200).filter(|seed| {
        let path =
            VirtualPath { forward: lossy, reverse: lossy, seed: *seed, ..path(Bottleneck::Silent(1420)) };
        search(&path, plan(IpVersion::V4, 1500)).1.mtu == Some(1420)
    });
    // A try fails with 6 %, a size wrongly with 0.02 %; about twenty sizes are tried.
    assert!(right.count() >= 195);
}

#[test]
fn sizes_the_system_will_not_send_are_no_black_hole() {
    let mut engine = PathMtuSearch::new(plan(IpVersion::V4, 1500));
    let (mut out, mut now) = (vec![0; 1500], Mono(1_000));
    let found = loop {
        match engine.poll(now, &mut out) {
            Output::Send { tag, len, .. } if len > 1000 => {
                engine.handle(now, Input::NotSent { tag, why: NotSent::Refused(105) });
            }
            Output::Send { len, .. } => {
                let mut reply = out[..len].to_vec();
                reply[2] = Kind::EchoReply as u8;
                let rx = Stamp::application(now);
                engine.handle(now, Input::Datagram { bytes: &reply, rx, ttl: None });
            }
            Output::Wait(until) => now = until,
            Output::Event(found) => break found,
            _ => panic!("no result"),
        }
    };
    assert_eq!((found.mtu, found.finding), (Some(1028), MtuFinding::Unknown));
}

proptest! {
    #[test]
    fn any_black_hole_is_measured_exactly(mtu in 576..9000_u32, telling in any::<bool>()) {
        let bottleneck = if telling { Bottleneck::Telling(mtu) } else { Bottleneck::Silent(mtu) };
        let (_, found) = search(&path(bottleneck), plan(IpVersion::V4, 9000));
        let finding = if telling { MtuFinding::Learnt } else { MtuFinding::BlackHole };
        prop_assert_eq!((found.mtu, found.finding), (Some(mtu), finding));
    }

    #[test]
    fn no_sequence_of_inputs_breaks_the_search(inputs in prop::collection::vec((0..6_u8, 0..40_u64, any::<u32>(), 0..40_000_000_i64), 0..200)) {
        let mut engine = PathMtuSearch::new(plan(IpVersion::V6, 9000));
        let (mut out, mut now, mut done) = (vec![0; 9000], Mono(0), false);
        let mut sent: Vec<Vec<u8>> = Vec::new();
        for (what, seq, number, pass) in inputs {
            let told = NotSent::TooBig(Some(netaware_units::ByteCount(u64::from(number % 10_000))));
            let known = sent.get(seq as usize).cloned().unwrap_or_else(|| vec![0; (number % 100) as usize]);
            match what {
                0 => engine.handle(now, Input::NotSent { tag: seq, why: told }),
                1 => engine.handle(now, Input::NotSent { tag: seq, why: NotSent::TooBig(None) }),
                2 => engine.handle(now, Input::NotSent { tag: seq, why: NotSent::QueueFull }),
                3 => {
                    let mut reply = known;
                    if let Some(kind) = reply.get_mut(2) { *kind = Kind::EchoReply as u8; }
                    engine.handle(now, Input::Datagram { bytes: &reply, rx: Stamp::application(now), ttl: None });
                }
                _ => now += Span(pass),
            }
            match engine.poll(now, &mut out) {
                Output::Send { len, .. } => sent.push(out[..len].to_vec()),
                Output::Wait(until) => prop_assert!(until > now),
                Output::Event(found) => {
                    prop_assert!(!done && found.mtu.is_none_or(|mtu| (1280..=9000).contains(&mtu)));
                    done = true;
                }
                _ => {}
            }
        }
    }
}
