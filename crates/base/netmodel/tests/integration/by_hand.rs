//! Small paths of which every fate and every figure can be worked out by hand.

use netaware_netmodel::scenario::Protocol;
use netaware_netmodel::truth::{Counts, LinkInterval};
use netaware_netmodel::{Answer, DropCause, Fate, Kind, Network, Packet, Scenario, Side};
use netaware_record::IpVersion;
use netaware_units::{BitRate, Mono, Span};

fn network(text: &str) -> Network {
    let scenario = Scenario::parse(&format!("about = 'x'\n{text}"));
    Network::new(&scenario.unwrap_or_else(|error| panic!("{error}\n{text}")), 1)
}

fn packet(id: u64, length: u32) -> Packet {
    Packet { id, version: IpVersion::V4, length, hop_limit: 64, flow: 1, dont_fragment: true }
}

/// Until this millisecond.
fn told(network: &mut Network, until: u64) -> Vec<Fate> {
    let mut fates = Vec::new();
    network.advance(Mono(until * 1_000_000), &mut |fate| fates.push(fate));
    fates
}

/// At B, so many nanoseconds after it was sent.
fn delivered(id: u64, sent_at: u64, after: u64) -> Fate {
    Fate::Delivered {
        id,
        at: Mono(sent_at + after),
        to: Side::B,
        hop_limit: 64,
        duplicate: false,
        corrupted_bit: None,
        delay: Span(after.cast_signed()),
    }
}

fn counts(network: &Network, from: Side, hop: usize) -> Counts {
    *network.truth().link(from, hop).expect("there is such a hop").counts()
}

#[test]
fn the_next_event_and_the_next_arrival_are_told_as_far_as_they_are_known() {
    let mut network = network("[[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\n");
    assert_eq!((network.next_event(), network.next_arrival()), (None, None));
    network.offer(Mono(1_000_000), Side::A, packet(1, 1000));
    assert_eq!(network.next_event(), Some(Mono(1_000_000)));
    assert_eq!(network.next_arrival(), Some(Mono(2_000_000)));
    // Once it has left it is known when it arrives: 8 us for 1000 bytes, and 1 ms.
    assert!(told(&mut network, 2).is_empty());
    assert_eq!([network.next_event(), network.next_arrival()], [Some(Mono(2_008_000)); 2]);
    let mut fates = Vec::new();
    network.advance(Mono(2_007_999), &mut |fate| fates.push(fate));
    assert_eq!((fates.len(), network.under_way()), (0, 1));
    network.advance(Mono(2_008_000), &mut |fate| fates.push(fate));
    assert_eq!(fates, [delivered(1, 1_000_000, 1_008_000)]);
    assert_eq!((network.next_event(), network.next_arrival(), network.under_way()), (None, None, 0));
}

#[test]
fn nothing_arrives_sooner_than_by_the_shortest_way_on_or_back() {
    // Delays of the first hop and of the second, there and back, and how soon something arrives
    // from A and B.
    let rows = [
        // A router's answer is at A after 2 + 1 + 4 ms; what B sends is at A after 7 + 4 ms.
        ([2, 4], [30, 7], [7, 11]),
        // What A sends is at B after 2 + 3 ms; a router's answer is at B after 9 + 1 + 3 ms.
        ([2, 40], [3, 9], [5, 13]),
    ];
    for ([forward0, reverse0], [forward1, reverse1], soonest) in rows {
        for (from, soonest) in [Side::A, Side::B].into_iter().zip(soonest) {
            let mut network = network(&format!(
                "[[hop]]\nrate = '1Gbit/s'\nforward.delay = '{forward0}ms'\nreverse.delay = '{reverse0}ms'\n\
                 answers = {{ delay = '1ms' }}\n\
                 [[hop]]\nrate = '1Gbit/s'\nforward.delay = '{forward1}ms'\nreverse.delay = '{reverse1}ms'\n"
            ));
            network.offer(Mono(0), from, packet(1, 1000));
            assert_eq!(network.next_arrival(), Some(Mono(soonest * 1_000_000)), "{from:?}");
        }
    }
}

#[test]
fn another_seed_is_another_chance_for_links_sources_and_routers() {
    let lossy = "[[hop]]\nrate = '100Mbit/s'\nloss = 0.5\n";
    let loaded = "[[hop]]\nrate = '100Mbit/s'\n[[cross]]\nenter = 0\npattern = 'poisson'\nload = 0.5\n";
    let answering = "[[hop]]\nrate = '100Mbit/s'\nanswers = { delay = '1ms', jitter = '10ms' }\n\
                     [[hop]]\nrate = '100Mbit/s'\n";
    for (text, hop_limit) in [(lossy, 64), (loaded, 64), (answering, 1)] {
        let of = |seed: u64| {
            let mut network = network(text);
            network.reseed(seed);
            for id in 0..100 {
                network.offer(Mono(id * 1_000_000), Side::A, Packet { hop_limit, ..packet(id, 100) });
            }
            told(&mut network, 1000)
        };
        assert_eq!(of(7).len(), 100, "{text}");
        assert_eq!(of(7), of(7), "{text}");
        assert_ne!(of(7), of(8), "{text}");
    }
}

#[test]
fn intervals_are_forgotten_and_sums_go_on() {
    let mut network =
        network("[[hop]]\nrate = '8Mbit/s'\n[[cross]]\nenter = 0\npattern = 'constant'\nload = 0.5\n");
    network.advance(Mono(1_000_000_000), &mut |_| {});
    let before = counts(&network, Side::A, 0);
    network.forget();
    let link = network.truth().link(Side::A, 0).expect("one hop");
    let kept_and_closed = [0, 1, 2, 3].map(|scale| (link.intervals(scale).len(), link.closed(scale)));
    assert_eq!(kept_and_closed, [(0, 1000), (0, 100), (0, 10), (0, 1)]);
    assert!(*link.counts() == before && before.arrived > 300, "{before:?}");
}

#[test]
fn cross_traffic_leaves_behind_the_last_device_of_its_last_hop() {
    let arrived = |leave: usize| {
        let hop = "[[hop]]\nrate = '10Mbit/s'\nswitches = [{ rate = '20Mbit/s' }, { rate = '20Mbit/s' }]\n";
        let cross = "[[cross]]\nenter = 0\npattern = 'constant'\nrate = '1Mbit/s'\n";
        let mut network = network(&format!("{}{cross}leave = {leave}\n", hop.repeat(3)));
        network.advance(Mono(1_000_000_000), &mut |_| {});
        // One each 12 ms.
        [0, 1, 2].map(|hop| counts(&network, Side::A, hop).arrived > 80)
    };
    assert_eq!(arrived(0), [true, false, false]);
    assert_eq!(arrived(1), [true, true, false]);
    assert_eq!(arrived(2), [true, true, true]);
}

#[test]
fn a_large_packet_pays_for_the_heads_of_its_fragments_or_is_refused() {
    let mut network = network("[[hop]]\nrate = '8Mbit/s'\nmtu = 500\noverhead = 10\n");
    let fragile = |id, length| Packet { dont_fragment: false, ..packet(id, length) };
    let over_ipv6 = Packet { version: IpVersion::V6, ..fragile(3, 501) };
    let sent =
        [fragile(0, 1200), packet(1, 500), packet(2, 501), over_ipv6, fragile(4, 501), fragile(5, 1000)];
    for packet in sent {
        network.offer(Mono(packet.id * 10_000_000), Side::A, packet);
    }
    let refused = |id| Fate::Dropped { id, at: Mono(id * 10_000_000), hop: 0, cause: DropCause::Mtu };
    // A microsecond for each byte; each fragment but the first costs heads of 20 and, in layer 2,
    // 10 bytes.
    let expected = [
        delivered(0, 0, 1_270_000),
        delivered(1, 10_000_000, 510_000),
        refused(2),
        refused(3),
        delivered(4, 40_000_000, 541_000),
        delivered(5, 50_000_000, 1_040_000),
    ];
    assert_eq!(told(&mut network, 100), expected);
}

#[test]
fn a_policer_counts_what_a_packet_costs_on_the_link() {
    let mut network = network(
        "[[hop]]\nrate = '8Gbit/s'\nmtu = 500\noverhead = 10\n\
         bucket = { kind = 'policer', rate = '8Mbit/s', burst = 1270 }\n",
    );
    // 1270 bytes with all heads: as many as the bucket holds, and gets back in 1270 us.
    for (id, micros) in [(0, 0), (1, 1269), (2, 1270)] {
        let sent = Packet { dont_fragment: false, ..packet(id, 1200) };
        network.offer(Mono(micros * 1000), Side::A, sent);
    }
    let policed = Fate::Dropped { id: 1, at: Mono(1_269_000), hop: 0, cause: DropCause::Policer };
    let expected = [delivered(0, 0, 1270), policed, delivered(2, 1_270_000, 1270)];
    assert_eq!(told(&mut network, 100), expected);
}

#[test]
fn answers_say_by_which_of_parallel_links_a_packet_came_and_take_turns_on_the_way_back() {
    let mut network = network(
        "[[hop]]\nrate = '8Mbit/s'\ndelay = '1ms'\n\
         members = { count = 2, balance = 'packet', delay_step = '5ms' }\n\
         [[hop]]\nrate = '8Mbit/s'\n",
    );
    for id in 0..2 {
        network.offer(Mono(id * 100_000_000), Side::A, Packet { hop_limit: 1, ..packet(id, 100) });
    }
    // There 100 bytes, 1 ms, and 5 ms more by the second link; then 50 us; and the like with 56
    // bytes back.
    let answered = |id, at, member| {
        let answer = Answer::TimeExceeded;
        Fate::Answered { id, at: Mono(at), to: Side::A, hop: 0, member, answer }
    };
    assert_eq!(told(&mut network, 1000), [answered(0, 12_206_000, 1), answered(1, 102_206_000, 0)]);
    let none = Counts::default();
    let mut expired = [0; 11];
    expired[DropCause::HopLimit as usize] = 2;
    let forward = [Counts { arrived: 2, left: 2, ..none }, Counts { arrived: 2, dropped: expired, ..none }];
    assert_eq!([0, 1].map(|hop| counts(&network, Side::A, hop)), forward);
    let reverse = [Counts { arrived: 2, left: 2, answers: 2, ..none }, none];
    assert_eq!([0, 1].map(|hop| counts(&network, Side::B, hop)), reverse);
}

#[test]
fn a_shaper_occupies_its_link_until_its_tokens_are_back_and_parallel_links_add_up() {
    let mut shaped =
        network("[[hop]]\nrate = '8Mbit/s'\nbucket = { kind = 'shaper', rate = '1Mbit/s', burst = 1500 }\n");
    shaped.offer(Mono(1_000_000), Side::A, packet(1, 1000));
    assert_eq!(told(&mut shaped, 20), [delivered(1, 1_000_000, 1_000_000)]);
    let expected: Vec<LinkInterval> = (0..20)
        .map(|ms| LinkInterval {
            start: Mono(ms * 1_000_000),
            capacity: BitRate(1_000_000),
            available: BitRate(1_000_000),
            offered_ppm: if (1..9).contains(&ms) { 1_000_000 } else { 0 },
            arrived: u32::from(ms == 1),
            ..LinkInterval::default()
        })
        .collect();
    assert_eq!(*shaped.truth().link(Side::A, 0).expect("one hop").intervals(0), expected);

    let mut parallel = network("[[hop]]\nrate = '8Mbit/s'\nmembers = { count = 2 }\n");
    parallel.offer(Mono(0), Side::A, packet(1, 1000));
    told(&mut parallel, 1);
    let rate = BitRate(16_000_000);
    let half = LinkInterval {
        capacity: rate,
        available: rate,
        offered_ppm: 500_000,
        arrived: 1,
        ..LinkInterval::default()
    };
    assert_eq!(*parallel.truth().link(Side::A, 0).expect("one hop").intervals(0), [half]);
}

#[test]
fn cross_traffic_meets_whatever_its_link_does_to_packets() {
    let met = |hop: &str, rate: &str| {
        let mut network = network(&format!(
            "[[hop]]\nrate = '8Mbit/s'\n{hop}\n\
             [[cross]]\nenter = 0\npattern = 'constant'\nrate = '{rate}'\nsizes = 1000\n"
        ));
        network.advance(Mono(1_000_000_000), &mut |_| {});
        counts(&network, Side::A, 0)
    };
    let dropped = |cause: DropCause, count: u64| {
        let mut dropped = [0; 11];
        dropped[cause as usize] = count;
        Counts { arrived: 100, left: 100 - count, dropped, ..Counts::default() }
    };
    // One packet each 10 ms. The policer's tokens are there for two packets, and then for every
    // other one.
    let policer = "bucket = { kind = 'policer', rate = '400kbit/s', burst = 1500 }";
    let rows = [
        ("", dropped(DropCause::Queue, 0)),
        ("loss = { every = 2 }", dropped(DropCause::Loss, 50)),
        ("black_hole = true", dropped(DropCause::BlackHole, 100)),
        // From 300 ms to 400 ms, and again from 700 to 800: ten packets each.
        ("outages = [{ at = '300ms', for = '100ms', every = '400ms' }]", dropped(DropCause::Outage, 20)),
        ("outages = [{ at = '250ms' }]", dropped(DropCause::Outage, 75)),
        // What enters within is nobody's that a filter looks for.
        ("filters = [{ action = 'drop' }]", dropped(DropCause::Filter, 0)),
        (policer, dropped(DropCause::Policer, 49)),
        ("duplication = 1.0", Counts { arrived: 100, copied: 100, left: 200, ..Counts::default() }),
    ];
    for (hop, expected) in rows {
        assert_eq!(met(hop, "800kbit/s"), expected, "{hop}");
    }
    // Each of two links has time for every other packet, and one would not have it for all.
    let shared = met("members = { count = 2, balance = 'packet' }\nqueue = { packets = 1 }", "12Mbit/s");
    assert!(shared.arrived > 1000 && shared.dropped == [0; 11], "{shared:?}");
    let alone = met("queue = { packets = 1 }", "12Mbit/s");
    assert!(alone.dropped_by(DropCause::Queue) > 100, "{alone:?}");
}

#[test]
fn a_transmission_carries_what_waits_up_to_its_limits_in_packets_and_bytes() {
    // A millisecond for each packet and for each transmission, of which the first carries only one.
    let rows = [
        ("packets = 3, bytes = 2500", [2, 5, 5, 8, 8]),
        ("packets = 3, bytes = 3000", [2, 6, 6, 6, 8]),
        ("packets = 2, bytes = 65535", [2, 5, 5, 8, 8]),
        ("packets = 3, bytes = 500", [2, 4, 6, 8, 10]),
    ];
    for (limits, millis) in rows {
        let mut network =
            network(&format!("[[hop]]\nrate = '8Mbit/s'\naggregation = {{ {limits}, access = '1ms' }}\n"));
        (0..5).for_each(|id| network.offer(Mono(0), Side::A, packet(id, 1000)));
        let expected: Vec<Fate> =
            (0..).zip(millis).map(|(id, ms)| delivered(id, 0, ms * 1_000_000)).collect();
        assert_eq!(told(&mut network, 100), expected, "{limits}");
    }
}

#[test]
fn a_filter_drops_what_it_names_and_answers_count_as_icmp() {
    const HOP: &str = "[[hop]]\nrate = '8Mbit/s'\n";
    let kind = |protocol, port| Kind { protocol, ports: [40_000, port], ecn: false, reset: false };
    let cause = |filter: &str, id: u64, hop_limit: u8, kind: Kind| {
        let mut network =
            network(&format!("{}reverse.filters = [{filter}]\n{}", HOP, "[[hop]]\nrate = '8Mbit/s'\n"));
        network.offer_kind(Mono(0), Side::B, packet(id, 1000), kind);
        network.offer_kind(Mono(0), Side::A, Packet { hop_limit, ..packet(id + 1, 100) }, kind);
        let fates = told(&mut network, 100);
        fates
            .iter()
            .filter_map(|fate| match fate {
                Fate::Dropped { id, cause, .. } => Some((*id, *cause)),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    let rows = [
        ("{ protocol = 'udp', action = 'drop' }", Protocol::Udp, 9, vec![(0, DropCause::Filter)]),
        ("{ protocol = 'tcp', action = 'drop' }", Protocol::Udp, 9, vec![]),
        ("{ protocol = 'tcp', port = 80, action = 'reset' }", Protocol::Tcp, 9, vec![(0, DropCause::Reset)]),
        ("{ protocol = 'udp', longer_than = 1000, action = 'drop' }", Protocol::Udp, 9, vec![]),
        // The router's answer to A travels in the direction that is filtered.
        ("{ protocol = 'icmp', action = 'drop' }", Protocol::Udp, 1, vec![(1, DropCause::AnswerLost)]),
    ];
    for (filter, protocol, hop_limit, want) in rows {
        assert_eq!(cause(filter, 0, hop_limit, kind(protocol, 80)), want, "{filter}");
    }
}

#[test]
fn a_fair_queue_serves_a_second_flow_at_once_and_drops_from_the_greedy_one_only() {
    let run = |queue: &str| {
        let mut network = network(&format!("[[hop]]\nrate = '8Mbit/s'\nqueue = {{ {queue} }}\n"));
        // 100 packets of a millisecond each at once, and one of another flow 10 ms later.
        (0..100).for_each(|id| network.offer(Mono(0), Side::A, Packet { flow: 1, ..packet(id, 1000) }));
        network.advance(Mono(10_000_000), &mut |_| {});
        network.offer(Mono(10_500_000), Side::A, Packet { flow: 2, ..packet(100, 1000) });
        let (mut delay, mut lost) = (None, 0);
        network.advance(Mono(1_000_000_000), &mut |fate| match fate {
            Fate::Delivered { id: 100, delay: found, .. } => delay = Some(found),
            Fate::Dropped { .. } => lost += 1,
            _ => {}
        });
        (
            delay.map(|delay| delay.0 / 1_000_000),
            lost,
            counts(&network, Side::A, 0).dropped_by(DropCause::Queue),
        )
    };
    assert_eq!(run("packets = 200"), (Some(90), 0, 0));
    assert_eq!(run("packets = 200, fair = true"), (Some(1), 0, 0));
    assert_eq!(run("packets = 50, fair = true").2, 49);
    assert_eq!(run("bytes = 50000, fair = true").0, Some(1));
}
