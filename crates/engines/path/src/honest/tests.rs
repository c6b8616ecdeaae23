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
        // 28.28 us for the train would be 56 Gbit/s; it cannot leave at more than 12,000 bit / 1.5 us.
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

/// Jin and Tierney, IMC 2003, §5: a clock that costs 959 ns errs by 8 % on packets of 1500 B at 1 Gbit/s, by 80 % at
/// ten times that.
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
