//! Plans that pass, and the sentence that each of the others is refused with.

use super::*;

fn tcp() -> TcpPlan {
    TcpPlan { streams: 4, length: 128 << 10, ..TcpPlan::new(Direction::Forward, Span::from_secs(10)) }
}

fn udp() -> UdpPlan {
    UdpPlan {
        direction: Direction::Reverse,
        duration: Span::from_secs(10),
        packets: None,
        length: 1250,
        gap_ps: Some(1_000_000_000),
        send: UdpSend::Single,
        receive: UdpReceive::Single,
        tick: Span::from_millis(100),
        window: None,
        dscp: 0,
        burst: 1,
        histogram: None,
        log: false,
        settle: None,
        round_trip: Span::ZERO,
    }
}

fn shape(width: i64, bins: u32) -> HistogramShape {
    HistogramShape { low: Span::ZERO, width: Span(width), bins }
}

#[test]
fn sound_plans_pass() {
    let none = Limits::default();
    assert_eq!(check(&TestPlan::Tcp(tcp()), &none), Ok(()));
    assert_eq!(check(&TestPlan::Udp(udp()), &none), Ok(()));
    let duration = Span::from_secs(5);
    for response in [None, Some(1), Some(64), Some(65_507)] {
        assert_eq!(check(&TestPlan::UdpEcho { length: 64, response, duration, dscp: 46 }, &none), Ok(()));
        assert_eq!(check(&TestPlan::TcpEcho { length: 64, response, duration }, &none), Ok(()));
    }
    assert_eq!(check(&udp_echo(1, Some(64)), &none), Ok(()));
    assert_eq!(check(&tcp_echo(100_000_000, Some(100_000_000)), &none), Ok(()));
}

fn udp_echo(length: u32, response: Option<u32>) -> TestPlan {
    TestPlan::UdpEcho { length, response, duration: Span::from_secs(1), dscp: 0 }
}

fn tcp_echo(length: u32, response: Option<u32>) -> TestPlan {
    TestPlan::TcpEcho { length, response, duration: Span::from_secs(1) }
}

#[test]
fn long_exchanges_over_tcp_wait_for_their_turn_and_all_others_do_not() {
    let rows = [
        (tcp_echo(65_536, None), false),
        (tcp_echo(1, Some(65_536)), false),
        (tcp_echo(1, Some(65_537)), true),
        (tcp_echo(65_537, Some(1)), true),
        (udp_echo(65_507, Some(65_507)), false),
    ];
    for (n, (plan, waits)) in rows.iter().enumerate() {
        assert_eq!((needs_reservation(plan), is_echo(plan)), (*waits, true), "row {n}");
    }
}

#[test]
fn caps_bound_what_an_exchange_may_draw_and_no_plain_echoes() {
    let rate = Limits { rate: Some(BitRate(8_000_000)), ..Limits::default() };
    assert_eq!(check(&udp_echo(64, Some(64)), &rate), Ok(()));
    assert_eq!(check(&udp_echo(64, None), &rate), Ok(()));
    assert_eq!(check(&tcp_echo(1_000, Some(1)), &rate), Ok(()));
    let bytes = Limits { bytes: Some(ByteCount(1_000)), ..Limits::default() };
    // The search for the path MTU asks for echoes of any length, and was refused.
    for length in [500, 501, 65_507] {
        assert_eq!(check(&udp_echo(length, None), &bytes), Ok(()));
        assert_eq!(check(&udp_echo(length, Some(length)), &bytes), Ok(()));
    }
    assert_eq!(check(&udp_echo(44, Some(900)), &bytes), Ok(()));
    let rows = [
        (udp_echo(64, Some(65)), &rate, "rate"),
        (tcp_echo(100_000, Some(1)), &rate, "rate"),
        (udp_echo(44, Some(1_000)), &bytes, "bytes"),
        (tcp_echo(1, Some(1_000)), &bytes, "bytes"),
        (tcp_echo(100_000, Some(1)), &bytes, "bytes"),
    ];
    for (plan, limits, want) in rows {
        let refusal = check(&plan, limits).unwrap_err();
        assert!(refusal.message.starts_with(&format!("the responder's cap for {want} is")), "{refusal:?}");
    }
}

#[test]
fn fields_out_of_range_are_named() {
    let rows = [
        ("streams is 0", TestPlan::Tcp(TcpPlan { streams: 0, ..tcp() })),
        ("streams is 513", TestPlan::Tcp(TcpPlan { streams: 513, ..tcp() })),
        ("length is 0", TestPlan::Tcp(TcpPlan { length: 0, ..tcp() })),
        ("length", TestPlan::Tcp(TcpPlan { length: MAX_TCP_LENGTH + 1, ..tcp() })),
        ("duration", TestPlan::Tcp(TcpPlan { duration: Span::ZERO, ..tcp() })),
        ("duration", TestPlan::Tcp(TcpPlan { duration: Span(i64::MAX), ..tcp() })),
        ("duration", TestPlan::Tcp(TcpPlan { duration: Span(-1), ..tcp() })),
        ("alone", TestPlan::Tcp(TcpPlan { alone: Span::from_secs(11), ..tcp() })),
        ("tick", TestPlan::Tcp(TcpPlan { tick: Span::from_millis(9), ..tcp() })),
        ("dscp", TestPlan::Tcp(TcpPlan { dscp: 64, ..tcp() })),
        ("bytes", TestPlan::Tcp(TcpPlan { bytes: Some(ByteCount(0)), ..tcp() })),
        ("direction", TestPlan::Tcp(TcpPlan { direction: Direction::RoundTrip, ..tcp() })),
        ("block_spacing is 0", TestPlan::Tcp(TcpPlan { block_spacing: Some(Span::ZERO), ..tcp() })),
        (
            "block_spacing is 60000000001",
            TestPlan::Tcp(TcpPlan { block_spacing: Some(MAX_BLOCK_SPACING + Span(1)), ..tcp() }),
        ),
        (
            "block_spacing goes",
            TestPlan::Tcp(TcpPlan {
                block_spacing: Some(Span::from_secs(1)),
                rate: Some(BitRate(1_000_000)),
                ..tcp()
            }),
        ),
        (
            "block_spacing goes",
            TestPlan::Tcp(TcpPlan { block_spacing: Some(Span::from_secs(1)), zerocopy: true, ..tcp() }),
        ),
        ("congestion", TestPlan::Tcp(TcpPlan { congestion: Some("cubic; rm".into()), ..tcp() })),
        ("length is 23", TestPlan::Udp(UdpPlan { length: 23, ..udp() })),
        ("length is 65508", TestPlan::Udp(UdpPlan { length: 65_508, ..udp() })),
        ("gap_ps", TestPlan::Udp(UdpPlan { gap_ps: Some(0), ..udp() })),
        ("packets", TestPlan::Udp(UdpPlan { packets: Some(0), ..udp() })),
        ("settle", TestPlan::Udp(UdpPlan { settle: Some(Span::from_secs(11)), ..udp() })),
        ("settle", TestPlan::Udp(UdpPlan { settle: Some(Span(-1)), ..udp() })),
        ("round_trip", TestPlan::Udp(UdpPlan { round_trip: Span::from_secs(11), ..udp() })),
        ("round_trip", TestPlan::Udp(UdpPlan { round_trip: Span(-1), ..udp() })),
        ("burst is 0", TestPlan::Udp(UdpPlan { burst: 0, ..udp() })),
        ("burst is 10001", TestPlan::Udp(UdpPlan { burst: 10_001, ..udp() })),
        ("histogram", TestPlan::Udp(UdpPlan { histogram: Some(shape(0, 10)), ..udp() })),
        ("histogram", TestPlan::Udp(UdpPlan { histogram: Some(shape(1, 0)), ..udp() })),
        ("histogram", TestPlan::Udp(UdpPlan { histogram: Some(shape(1, u32::MAX)), ..udp() })),
        ("histogram", TestPlan::Udp(UdpPlan { histogram: Some(shape(i64::MAX, 2)), ..udp() })),
        ("length is 43", udp_echo(43, None)),
        ("length is 0", udp_echo(0, Some(64))),
        ("response is 65;", udp_echo(23, Some(65))),
        ("response is 0", udp_echo(64, Some(0))),
        ("length is 65508", udp_echo(65_508, Some(64))),
        ("length is 65537", tcp_echo(65_537, None)),
        ("length is 100000001", tcp_echo(100_000_001, Some(1))),
        ("response is 100000001", tcp_echo(1, Some(100_000_001))),
    ];
    for (want, plan) in rows {
        let refusal = check(&plan, &Limits::default()).unwrap_err();
        assert!(refusal.message.starts_with(want), "{want}: {}", refusal.message);
        assert_eq!(refusal.code, ErrorCode::BadMessage);
    }
}

#[test]
fn a_cap_names_itself_and_its_value() {
    let limits = Limits {
        duration: Some(Span::from_secs(20)),
        rate: Some(BitRate(10_000_000)),
        bytes: Some(ByteCount(1_000_000)),
        streams: Some(4),
    };
    let rated = TcpPlan { rate: Some(BitRate(10_000_000)), ..tcp() };
    assert_eq!(check(&TestPlan::Tcp(rated.clone()), &limits), Ok(()));
    let of_size = UdpPlan { packets: Some(800), ..udp() };
    assert_eq!(check(&TestPlan::Udp(of_size), &limits), Ok(()));
    let rows = [
        ("duration is 20.0 s", TestPlan::Tcp(TcpPlan { duration: Span::from_secs(21), ..rated.clone() })),
        (
            "duration is 20.0 s",
            TestPlan::Tcp(TcpPlan {
                duration: Span::from_secs(11),
                alone: Span::from_secs(10),
                ..rated.clone()
            }),
        ),
        ("rate is 10.0 Mbit/s", TestPlan::Tcp(tcp())),
        ("bytes is", TestPlan::Tcp(TcpPlan { bytes: Some(ByteCount(1_000_001)), ..rated.clone() })),
        ("streams is 4", TestPlan::Tcp(TcpPlan { streams: 5, ..rated })),
        (
            "rate is 10.0 Mbit/s",
            TestPlan::Tcp(TcpPlan { length: 1250, block_spacing: Some(Span::from_micros(999)), ..tcp() }),
        ),
        ("rate is 10.0 Mbit/s", TestPlan::Udp(UdpPlan { gap_ps: Some(999_000_000), ..udp() })),
        ("rate is 10.0 Mbit/s", TestPlan::Udp(UdpPlan { gap_ps: None, ..udp() })),
        ("rate is 10.0 Mbit/s", TestPlan::Udp(UdpPlan { burst: 2, ..udp() })),
        ("bytes is", TestPlan::Udp(UdpPlan { packets: Some(u64::MAX), ..udp() })),
    ];
    for (want, plan) in rows {
        let refusal = check(&plan, &limits).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::Cap);
        let want = format!("the responder's cap for {want}");
        assert!(refusal.message.starts_with(&want), "{want}: {}", refusal.message);
    }
}

/// Nobody counted what the responder sent over UDP: a cap of 1 MB let 5 MB pass, without a word.
#[test]
fn what_the_responder_sends_over_udp_is_held_to_a_cap_on_bytes_too() {
    let limits = Limits { bytes: Some(ByteCount(1_000_000)), ..Limits::default() };
    let check = |plan: UdpPlan| check(&TestPlan::Udp(plan), &limits);
    let tenth = Span::from_millis(100);
    assert_eq!(check(UdpPlan { duration: tenth * 8, ..udp() }), Ok(()));
    assert_eq!(check(UdpPlan { packets: Some(800), ..udp() }), Ok(()));
    for too_much in [
        udp(),
        UdpPlan { duration: tenth * 9, ..udp() },
        UdpPlan { packets: Some(801), ..udp() },
        UdpPlan { duration: tenth, gap_ps: None, ..udp() },
        UdpPlan { duration: tenth * 8, burst: 2, ..udp() },
    ] {
        assert_eq!(check(too_much).unwrap_err().message, "the responder's cap for bytes is 977 KiB");
    }
    // What comes from the prober is counted while it comes.
    assert_eq!(check(UdpPlan { direction: Direction::Forward, ..udp() }), Ok(()));
}

fn trains() -> TrainsPlan {
    TrainsPlan { direction: Direction::Reverse, duration: Span::from_secs(10), length: 1472, dscp: 46 }
}

#[test]
fn a_cap_on_the_rate_allows_no_trains_and_other_caps_do() {
    let none = Limits::default();
    assert_eq!(check(&TestPlan::Trains(trains()), &none), Ok(()));
    // However high it is: packets that leave back to back have no rate to compare with.
    let rate = Limits { rate: Some(BitRate(400_000_000_000)), ..none };
    let refusal = check(&TestPlan::Trains(trains()), &rate).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::Cap);
    let want = "the responder's cap for rate is 400 Gbit/s, and trains exceed any rate for a moment";
    assert_eq!(refusal.message, want);
    // Bytes are counted as they are asked for, volley by volley.
    let bytes = Limits { bytes: Some(ByteCount(1)), streams: Some(1), ..none };
    assert_eq!(check(&TestPlan::Trains(trains()), &bytes), Ok(()));
    let short = Limits { duration: Some(Span::from_secs(9)), ..none };
    let refusal = check(&TestPlan::Trains(trains()), &short).unwrap_err();
    assert_eq!(refusal.message, "the responder's cap for duration is 9.00 s");
}

#[test]
fn trains_with_fields_out_of_range_are_refused() {
    let rows = [
        ("direction", TrainsPlan { direction: Direction::RoundTrip, ..trains() }),
        ("length is 23", TrainsPlan { length: 23, ..trains() }),
        ("length is 65508", TrainsPlan { length: 65_508, ..trains() }),
        ("dscp is 64", TrainsPlan { dscp: 64, ..trains() }),
        ("duration", TrainsPlan { duration: Span::ZERO, ..trains() }),
    ];
    for (want, plan) in rows {
        let refusal = check(&TestPlan::Trains(plan), &Limits::default()).unwrap_err();
        assert!(refusal.message.starts_with(want), "{want}: {}", refusal.message);
        assert_eq!(refusal.code, ErrorCode::BadMessage);
    }
}

#[test]
fn spaced_blocks_have_a_rate_that_caps_hold() {
    let limits = Limits { rate: Some(BitRate(10_000_000)), ..Limits::default() };
    let spaced = TcpPlan { length: 1250, block_spacing: Some(Span::from_millis(1)), ..tcp() };
    assert_eq!(check(&TestPlan::Tcp(spaced), &limits), Ok(()));
}

#[test]
fn only_who_connects_can_choose_a_label_for_tcp() {
    let header = HeaderFields { flow_label: Some(5), ..HeaderFields::default() };
    let reverse = TestPlan::Tcp(TcpPlan { direction: Direction::Reverse, ..tcp() });
    for plan in [reverse.clone(), tcp_echo(64, None)] {
        assert!(check_label(&plan, &header).unwrap_err().message.contains("flow label"));
    }
    for plan in [TestPlan::Tcp(tcp()), TestPlan::Udp(udp()), udp_echo(64, None)] {
        assert_eq!(check_label(&plan, &header), Ok(()));
    }
    assert_eq!(check_label(&reverse, &HeaderFields { ttl: Some(3), ..HeaderFields::default() }), Ok(()));
    let wrong = HeaderFields { ttl: Some(0), ..HeaderFields::default() };
    assert!(check_header(&wrong).unwrap_err().message.starts_with("ttl is 0"));
}

#[test]
fn a_test_that_does_not_keep_to_its_plan_is_caught() {
    let limits = Limits { rate: Some(BitRate(8_000_000)), ..Limits::default() };
    let seconds = Span::from_secs;
    assert_eq!(exceeded(&limits, ByteCount(10_000_000), seconds(9)), None);
    assert!(exceeded(&limits, ByteCount(12_600_000), seconds(9)).is_some());
    assert_eq!(exceeded(&Limits::default(), ByteCount(u64::MAX), Span::ZERO), None);
    let limits = Limits { bytes: Some(ByteCount(5)), ..Limits::default() };
    assert!(exceeded(&limits, ByteCount(6), seconds(1)).is_some());
}

#[test]
fn an_echo_test_that_reaches_a_cap_names_it() {
    let limits =
        Limits { rate: Some(BitRate(8_000_000)), bytes: Some(ByteCount(1_000_000)), ..Limits::default() };
    let said = |cap| reached(&limits, cap).map(|refusal| (refusal.code, refusal.message)).unwrap();
    assert_eq!(said(Cap::Bytes), (ErrorCode::Cap, "the responder's cap for bytes is 977 KiB".to_owned()));
    let (code, message) = said(Cap::Rate);
    assert_eq!(code, ErrorCode::Cap);
    assert!(message.starts_with("the responder's cap for rate is 8.00 Mbit/s for all echoes"), "{message}");
    assert_eq!(reached(&Limits::default(), Cap::Rate), None);
}

#[test]
fn a_channel_carries_short_flows_one_by_one() {
    let most = MAX_CHANNEL_PAYLOAD as u32;
    let short = UdpPlan { length: most, ..udp() };
    for plan in [TestPlan::Udp(short.clone()), udp_echo(most, None), udp_echo(24, Some(most))] {
        assert_eq!(check_channel(&plan), Ok(()), "{plan:?}");
    }
    let rows = [
        (TestPlan::Tcp(tcp()), "no test of this kind"),
        (tcp_echo(64, None), "no test of this kind"),
        (TestPlan::Udp(UdpPlan { length: most + 1, ..udp() }), "at most 1024 bytes"),
        (udp_echo(most + 1, None), "at most 1024 bytes"),
        (udp_echo(64, Some(most + 1)), "at most 1024 bytes"),
        (TestPlan::Udp(UdpPlan { burst: 2, ..short.clone() }), "without bursts"),
        (TestPlan::Udp(UdpPlan { send: UdpSend::Gso, ..short.clone() }), "one by one"),
        (TestPlan::Udp(UdpPlan { receive: UdpReceive::Gro, ..short }), "one by one"),
    ];
    for (plan, why) in rows {
        let refusal = check_channel(&plan).unwrap_err();
        assert!(refusal.message.contains(why), "{plan:?}: {}", refusal.message);
    }
}
