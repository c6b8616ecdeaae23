use super::*;

/// Sending 1.5 us, receiving 0.5 us, stamps 1 us, clock 50 ns, bursts of 200 kB; all for 1500 B.
fn host() -> HostCosts {
    HostCosts {
        clock_read: 30.0,
        clock_resolution: 50.0,
        stamp_error: 1000.0,
        kernel_stamps: true,
        send: CostBySize::new([(1500, 1500.0)]),
        receive: CostBySize::new([(1500, 500.0)]),
        bulk: CostBySize::new([(1500, 240.0)]),
        pacing: Some(100.0),
        memory_copy: Some(0.1),
        coalescing: None,
        ring: None,
        link: None,
        largest_burst: 200_000,
    }
}

fn rate(costs: &HostCosts, way: Way) -> (f64, &'static str) {
    let found = HonestRate::of(costs, way, 1500, 0.05).unwrap();
    (found.limit().rate, found.limit().by)
}

fn is_near(found: f64, want: f64) -> bool {
    (found / want - 1.0).abs() < 1e-9
}

#[test]
fn each_way_is_as_computed_by_hand() {
    let sqrt2 = std::f64::consts::SQRT_2;
    // 133 packets of 1500 B are 199,500 B: 132 distances of 12,000 bit.
    let whole = 132.0 * 12_000.0;
    let rows = [
        // 12,000 bit / (1.414 us / 0.05): one pair in 28.28 us.
        (Way::Pairs, 12_000.0 * 0.05 / (sqrt2 * 1e-6), "stamps"),
        (Way::Chirps, 3.0 * 12_000.0 * 0.05 / (sqrt2 * 1e-6), "stamps"),
        (Way::Streams, whole / (600.0 * sqrt2 * 1e-6), "stamps"),
        // 28.28 us for the train would be 56 Gbit/s; it cannot leave at more than 12,000 bit / 1.5
        // us.
        (Way::Trains, 8e9, "sending"),
        (Way::Filling, 8e9, "sending"),
        // 2.828 us / 0.05 = 56.57 us for 1500 - 64 B.
        (Way::Sizes, 1436.0 * 8.0 * 0.05 / (8_f64.sqrt() * 1e-6), "stamps"),
        // 100 ns / 0.05 = 2 us.
        (Way::Paced, 12_000.0 / 2e-6, "pacing"),
        (Way::Bulk, 50e9, "loopback"),
    ];
    for (way, want, by) in rows {
        let (found, limit) = rate(&host(), way);
        assert!(is_near(found, want) && limit == by, "{way:?}: {found} by {limit}, not {want} by {by}");
    }
}

/// Jin and Tierney, IMC 2003, §5: a clock that costs 959 ns errs by 8 % on packets of 1500 B at 1
/// Gbit/s, by 80 % at ten times that.
#[test]
fn the_published_example_of_a_slow_clock_comes_out() {
    let quiet = HostCosts { clock_resolution: 959.0, stamp_error: 0.0, ..host() };
    let fast = HostCosts { send: CostBySize::new([(1500, 1.0)]), ..quiet };
    for (error, want) in [(0.959 / 12.0, 1e9), (0.959 / 1.2, 10e9)] {
        let found = HonestRate::of(&fast, Way::Pairs, 1500, error).unwrap();
        assert_eq!(found.limit().by, "clock");
        assert!(is_near(found.limit().rate, want), "{:?}", found.limit());
    }
}

#[test]
fn coalescing_rules_pairs_out_and_lengthens_trains() {
    let moderated = HostCosts { coalescing: Some(50_000.0), ..host() };
    // One pair per period of 50 us.
    assert_eq!(rate(&moderated, Way::Pairs), (12_000.0 / 50e-6, "coalescing"));
    // Twenty periods are a millisecond.
    let (found, by) = rate(&moderated, Way::Trains);
    assert!(is_near(found, 132.0 * 12_000.0 / 1e-3) && by == "coalescing", "{found}");
    // Twelve periods are 600 us, less than the 848 us that stamps ask of a stream.
    assert_eq!(rate(&moderated, Way::Streams).1, "stamps");
}

#[test]
fn a_ring_holds_what_comes_within_a_period() {
    // 64 packets of 1500 B in 500 us; without a period nobody waits.
    let ringed = HostCosts { ring: Some(64.0), ..host() };
    assert_eq!(rate(&ringed, Way::Bulk).1, "loopback");
    let slow = HostCosts { coalescing: Some(500_000.0), ..ringed };
    let (found, by) = rate(&slow, Way::Bulk);
    assert!(is_near(found, 64.0 * 12_000.0 / 500e-6) && by == "ring", "{found}");
}

#[test]
fn larger_packets_allow_higher_rates_in_proportion() {
    let costs = HostCosts { send: CostBySize::new([(64, 1.0)]), memory_copy: None, ..host() };
    let of = |packet| HonestRate::of(&costs, Way::Pairs, packet, 0.05).unwrap().limit().rate;
    assert!(is_near(of(9000), 6.0 * of(1500)));
}

#[test]
fn half_the_error_allows_half_the_rate() {
    let of = |error| HonestRate::of(&host(), Way::Pairs, 1500, error).unwrap().limit().rate;
    assert!(is_near(of(0.05), 2.0 * of(0.025)));
}

#[test]
fn stamps_of_the_program_need_four_calls_for_a_pair() {
    let own = HostCosts { kernel_stamps: false, stamp_error: 1.0, clock_resolution: 1.0, ..host() };
    let found = HonestRate::of(&own, Way::Pairs, 1500, 0.05).unwrap();
    let calls = found.ceilings.iter().find(|ceiling| ceiling.by == "receiving").unwrap();
    assert!(is_near(calls.rate, 12_000.0 / (2.0 * 530e-9)), "{calls:?}");
}

#[test]
fn a_link_counts_with_what_ethernet_puts_around_a_packet() {
    let linked = HostCosts { link: Some(1e9), ..host() };
    let found = HonestRate::of(&linked, Way::Bulk, 1500, 0.05).unwrap();
    assert_eq!(found.limit().by, "link");
    assert!(is_near(found.limit().rate, 1e9 * 1500.0 / 1538.0));
    assert_eq!(
        found.ceilings.iter().map(|ceiling| ceiling.by).collect::<Vec<_>>(),
        ["link", "loopback", "memory"]
    );
}

#[test]
fn what_was_not_measured_limits_nothing_and_alone_says_nothing() {
    let blank = HostCosts {
        clock_resolution: f64::NAN,
        stamp_error: 0.0,
        send: CostBySize::default(),
        receive: CostBySize::default(),
        bulk: CostBySize::default(),
        pacing: None,
        link: Some(1e9),
        ..host()
    };
    assert_eq!(HonestRate::table(&blank, &[1500], 0.05), []);
}

#[test]
fn a_table_has_each_way_for_each_size_and_reads_as_a_formula() {
    let table = HonestRate::table(&host(), &[576, 1500], 0.05);
    assert_eq!(table.len(), 2 * Way::ALL.len());
    let pair = table.iter().find(|row| row.way == Way::Pairs && row.packet == 1500).unwrap();
    assert_eq!(
        pair.limit().because,
        "a pair: two stamps, wrong by 1.00 us each, are 5 % of 28.3 us: 8 x 1500 B / 28.3 us"
    );
}

#[test]
fn each_way_has_its_word_and_its_methods_and_each_method_its_way() {
    let rows: [(Way, &str, &[&str]); 8] = [
        (Way::Sizes, "sizes", &["hops"]),
        (Way::Pairs, "pairs", &["pathrate", "spruce", "reach"]),
        (Way::Chirps, "chirps", &["chirp"]),
        (Way::Streams, "streams", &["slops"]),
        (Way::Trains, "trains", &["bulk", "curve"]),
        (Way::Paced, "paced", &["udp --spacing"]),
        (Way::Filling, "filling", &["maximum"]),
        (Way::Bulk, "bulk", &["udp"]),
    ];
    assert_eq!(Way::ALL.map(|way| (way, way.name(), way.methods())), rows);
    let methods = [
        ("pathrate", Way::Pairs),
        ("spruce", Way::Pairs),
        ("reach", Way::Pairs),
        ("hops", Way::Sizes),
        ("chirp", Way::Chirps),
        ("slops", Way::Streams),
        ("maximum-capacity", Way::Filling),
        ("bulk", Way::Trains),
        ("curve", Way::Trains),
    ];
    for (method, way) in methods {
        assert_eq!(Way::of_method(method), way, "{method}");
    }
}

/// Of which everything is known, and whose programs stamp arrivals themselves.
fn known() -> HostCosts {
    HostCosts {
        kernel_stamps: false,
        coalescing: Some(50_000.0),
        ring: Some(64.0),
        link: Some(1e9),
        ..host()
    }
}

#[test]
fn all_ceilings_of_a_pair_are_told_with_their_formulas() {
    let found = HonestRate::of(&known(), Way::Pairs, 1500, 0.05).unwrap();
    let because: Vec<(&str, &str)> = found.ceilings.iter().map(|it| (it.by, it.because.as_str())).collect();
    let want = [
        (
            "coalescing",
            "a pair: arrivals are handed over every 50.0 us, it has to last 50.0 us: 8 x 1500 B / 50.0 us",
        ),
        ("stamps", "a pair: two stamps, wrong by 1.00 us each, are 5 % of 28.3 us: 8 x 1500 B / 28.3 us"),
        ("link", "the link carries 1500 B in 1538 B at 1.00 Gbit/s"),
        ("sending", "a packet can leave every 1.50 us: 8 x 1500 B / 1.50 us"),
        (
            "receiving",
            "stamps are the program's: two readings and two calls take 1.06 us: 8 x 1500 B / 1.06 us",
        ),
        ("clock", "50.0 ns, which two readings tell apart, is 5 % of 1.00 us: 8 x 1500 B / 1.00 us"),
        (
            "ring",
            "the ring holds 64 packets between two interrupts, 50.0 us apart: 64 x 8 x 1500 B / 50.0 us",
        ),
        ("memory", "copying costs 0.100 ns a byte: 8 bit / 0.100 ns"),
    ];
    assert_eq!(because, want);
    let rates = [
        240e6,
        12_000.0 * 0.05 / (std::f64::consts::SQRT_2 * 1e-6),
        1e9 * 1500.0 / 1538.0,
        8e9,
        12_000.0 / 1.06e-6,
        12e9,
        15.36e9,
        80e9,
    ];
    for (ceiling, rate) in found.ceilings.iter().zip(rates) {
        assert!(is_near(ceiling.rate, rate), "{ceiling:?}, not {rate}");
    }
}

#[test]
fn each_other_way_has_ceilings_of_its_own_among_those_of_the_host() {
    let rows: [(Way, &[&str], usize, &str); 7] = [
        (
            Way::Sizes,
            &["stamps", "link", "clock", "ring", "memory"],
            0,
            "two hops' round trips of the largest and the smallest packet, wrong by 2.83 us together, are \
             5 % of 56.6 us: 8 x (1500 - 64) B / 56.6 us",
        ),
        (
            Way::Chirps,
            &["coalescing", "link", "stamps", "sending", "ring", "memory"],
            0,
            "a step of three packets: arrivals are handed over every 50.0 us, it has to last 125 us: \
             3 x 8 x 1500 B / 125 us",
        ),
        (
            Way::Streams,
            &["link", "stamps", "coalescing", "sending", "ring", "memory"],
            1,
            "a stream of 133 packets: it lasts 600 times what a packet's stamps err, 1.41 us: \
             132 x 8 x 1500 B / 849 us",
        ),
        (
            Way::Trains,
            &["link", "coalescing", "sending", "ring", "stamps", "memory"],
            1,
            "a train of 133 packets: arrivals are handed over every 50.0 us, it has to last 1.00 ms: \
             132 x 8 x 1500 B / 1.00 ms",
        ),
        (
            Way::Paced,
            &["link", "pacing", "sending", "ring", "memory"],
            1,
            "99 of 100 packets are late by 100 ns at most, 5 % of 2.00 us: 8 x 1500 B / 2.00 us",
        ),
        (
            Way::Filling,
            &["link", "sending", "ring", "receiving", "memory"],
            3,
            "taking one in costs 500 ns: 8 x 1500 B / 500 ns",
        ),
        (
            Way::Bulk,
            &["link", "ring", "loopback", "memory"],
            2,
            "loopback moved one every 240 ns: 8 x 1500 B / 240 ns",
        ),
    ];
    for (way, by, place, because) in rows {
        let found = HonestRate::of(&known(), way, 1500, 0.05).unwrap();
        assert_eq!(found.ceilings.iter().map(|it| it.by).collect::<Vec<_>>(), by, "{way:?}");
        assert_eq!(found.ceilings[place].because, because, "{way:?}");
    }
}

#[test]
fn a_size_that_tells_no_slope_has_no_ceiling_by_it() {
    // The smallest packet is no larger than the smallest: what it takes longer is nothing.
    let ceiling = |by, rate, because: &str| Ceiling { by, rate, because: because.to_owned() };
    let ceilings = vec![
        ceiling(
            "clock",
            512e6,
            "50.0 ns, which two readings tell apart, is 5 % of 1.00 us: 8 x 64 B / 1.00 us",
        ),
        ceiling("memory", 80e9, "copying costs 0.100 ns a byte: 8 bit / 0.100 ns"),
    ];
    assert_eq!(
        HonestRate::of(&host(), Way::Sizes, 64, 0.05),
        Some(HonestRate { way: Way::Sizes, packet: 64, error: 0.05, ceilings })
    );
}
