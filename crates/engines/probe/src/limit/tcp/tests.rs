//! Ends as they were seen on real paths, simplified, and the verdict each must get.

use netaware_record::{CpuUse, SpacedBlocks};

use super::*;

const MS: Span = Span::from_millis(1);

/// One stream for 3 s with these shares of thread CPU, waiting and busiest core.
fn end(thread: f64, waiting: f64, core: f64) -> TcpEnd {
    let stream = StreamEnd {
        retransmits: Some(0),
        busy: Some(MS * 3000),
        window_limited: Some(Span::ZERO),
        buffer_limited: Some(Span::ZERO),
        rtt: Some(MS * 11),
        min_rtt: Some(MS * 10),
        thread_cpu: Some(thread),
        thread_waiting: Some(waiting),
        send_buffer: Some(ByteCount(4 << 20)),
        receive_buffer: Some(ByteCount(6 << 20)),
        ..StreamEnd::default()
    };
    let cpu = CpuUse {
        process_system: Some(thread),
        busiest_thread: Some(thread),
        busiest_core: Some(core),
        softirq: Some(0.01),
        cores: 2,
        ..CpuUse::default()
    };
    TcpEnd { cpu: Some(cpu), streams: vec![stream], ..TcpEnd::default() }
}

fn with(mut end: TcpEnd, change: impl FnOnce(&mut StreamEnd)) -> TcpEnd {
    change(&mut end.streams[0]);
    end
}

/// An idle end that sent spaced blocks for 3 s.
fn spaced(slipped: Span, waited: Span) -> TcpEnd {
    let kept = SpacedBlocks { written: 1500, slipped, waited, ..SpacedBlocks::default() };
    TcpEnd { spaced: Some(kept), given: Some(MS * 3000), ..end(0.1, 0.0, 0.2) }
}

/// A second and a half of slices whose rate varies by some `roughness`.
fn ticks(roughness: u64) -> Vec<ReceiverTick> {
    let tick = |n: u64| ReceiverTick {
        length: MS * 100,
        bytes: ByteCount(500_000 + (n * 7919 % 13) * roughness),
        ..ReceiverTick::default()
    };
    (0..15).map(tick).collect()
}

struct Row {
    name: &'static str,
    sender: TcpEnd,
    receiver: TcpEnd,
    requested: Option<u64>,
    loaded_rtt: Option<Span>,
    roughness: u64,
    is_held_down: bool,
    across: Across,
    want: LimitedBy,
}

impl Row {
    fn new(name: &'static str, want: LimitedBy) -> Self {
        Self {
            name,
            sender: end(0.1, 0.0, 0.2),
            receiver: end(0.1, 0.0, 0.2),
            requested: None,
            loaded_rtt: Some(MS * 11),
            roughness: 20_000,
            is_held_down: true,
            across: Across::Network,
            want,
        }
    }

    fn verdict(&self) -> Limit {
        let counted = ticks(self.roughness);
        tcp_limit(&TcpEvidence {
            sender: &self.sender,
            receiver: &self.receiver,
            goodput: BitRate(40_000_000),
            requested: self.requested.map(BitRate),
            idle_rtt: Some(MS * 10),
            loaded_rtt: self.loaded_rtt,
            counted: &counted,
            is_held_down: self.is_held_down,
            across: self.across,
            is_both_ways: false,
        })
    }
}

fn held(share_window: i64, share_buffer: i64) -> impl Fn(&mut StreamEnd) {
    move |stream| {
        stream.window_limited = Some(MS * (30 * share_window));
        stream.buffer_limited = Some(MS * (30 * share_buffer));
    }
}

fn rows() -> Vec<Row> {
    use LimitedBy::{
        Network, ReceiveWindow, ReceiverCpu, RequestedRate, SenderCpu, Shaper, SocketBuffer, Unknown,
    };
    let lossy = |end| with(end, |stream: &mut StreamEnd| stream.retransmits = Some(40));
    let row = Row::new;
    vec![
        Row {
            requested: Some(41_000_000),
            sender: end(1.0, 0.0, 1.0),
            ..row("rate asked for", RequestedRate)
        },
        Row {
            requested: Some(80_000_000),
            sender: lossy(end(0.1, 0.0, 0.2)),
            ..row("asked for more", Network)
        },
        Row {
            requested: Some(80_000_000),
            sender: spaced(MS * 1500, MS * 20),
            roughness: 300,
            ..row("blocks put off by their own sender", SenderCpu)
        },
        Row {
            requested: Some(80_000_000),
            sender: spaced(MS * 1500, MS * 1490),
            roughness: 300,
            ..row("blocks that waited for room", Shaper)
        },
        Row {
            requested: Some(80_000_000),
            sender: spaced(MS * 20, Span::ZERO),
            roughness: 300,
            ..row("blocks put off by next to nothing", Shaper)
        },
        Row { sender: end(0.97, 0.0, 0.99), ..row("sender's thread full", SenderCpu) },
        Row { sender: end(0.6, 0.35, 0.99), ..row("sender's thread wants a core", SenderCpu) },
        Row { receiver: end(0.95, 0.0, 0.97), ..row("receiver's thread full", ReceiverCpu) },
        Row {
            receiver: end(0.55, 0.0, 0.97),
            ..row("receiver's core full of interrupts and us", ReceiverCpu)
        },
        Row {
            sender: with(end(0.96, 0.0, 1.0), held(60, 0)),
            receiver: end(0.93, 0.0, 1.0),
            ..row("both full, window closed", ReceiverCpu)
        },
        Row { sender: end(0.99, 0.0, 1.0), receiver: end(0.93, 0.0, 1.0), ..row("both full", SenderCpu) },
        Row { sender: with(end(0.1, 0.0, 0.2), held(70, 0)), ..row("window too small", ReceiveWindow) },
        Row {
            sender: with(end(0.1, 0.0, 0.2), held(70, 0)),
            receiver: end(0.95, 0.0, 1.0),
            ..row("receiver too slow to read", ReceiverCpu)
        },
        Row { sender: with(end(0.1, 0.0, 0.2), held(0, 80)), ..row("buffer too small", SocketBuffer) },
        Row {
            sender: with(end(0.1, 0.0, 0.2), held(0, 80)),
            loaded_rtt: Some(MS * 90),
            ..row("buffer full because a queue is", Network)
        },
        Row {
            sender: with(end(0.05, 0.4, 1.0), held(50, 0)),
            receiver: end(0.05, 0.5, 1.0),
            loaded_rtt: Some(MS * 60),
            roughness: 300,
            ..row("shaped path, hosts kept busy by others", Shaper)
        },
        Row { sender: lossy(end(0.1, 0.0, 0.2)), roughness: 300, ..row("flat and lossy", Shaper) },
        Row { roughness: 300, ..row("flat alone", Shaper) },
        Row { sender: lossy(end(0.5, 0.0, 0.6)), ..row("lossy", Network) },
        Row { loaded_rtt: Some(MS * 30), ..row("queue", Network) },
        row("nothing", Unknown),
        Row { loaded_rtt: None, ..row("little known", Unknown) },
    ]
}

#[test]
fn each_transfer_gets_its_verdict() {
    for row in rows() {
        let limit = row.verdict();
        assert_eq!(limit.by, row.want, "{}: {}", row.name, limit.evidence);
        assert!(limit.evidence.contains(|c: char| c.is_ascii_digit()), "{}: {}", row.name, limit.evidence);
        assert!(
            !limit.evidence.contains('\n') && limit.evidence.len() < 220,
            "{}: {}",
            row.name,
            limit.evidence
        );
    }
}

/// Streams over 80 ms that were held back for so many per cent by the window and by the buffer.
fn far(streams: u64, window: (u64, i64), buffer: (u64, i64)) -> TcpEnd {
    let one = with(end(0.02, 0.0, 0.1), |stream| {
        held(window.1, buffer.1)(stream);
        stream.send_window = Some(ByteCount(window.0));
        stream.send_buffer = Some(ByteCount(buffer.0));
        (stream.min_rtt, stream.rtt) = (Some(MS * 80), Some(MS * 82));
    });
    let streams = (0..streams).map(|_| one.streams[0].clone()).collect();
    TcpEnd { streams, ..one }
}

/// The verdict on them at so many kbit/s in all, with slices as flat as a shaper's.
fn far_verdict(sender: &TcpEnd, kbits: u64) -> Limit {
    tcp_limit(&TcpEvidence {
        sender,
        receiver: &end(0.02, 0.0, 0.1),
        goodput: BitRate(kbits * 1000),
        requested: None,
        idle_rtt: Some(MS * 80),
        loaded_rtt: Some(MS * 82),
        counted: &ticks(300),
        is_held_down: true,
        across: Across::Network,
        is_both_ways: false,
    })
}

#[test]
fn a_receive_window_that_a_pacing_sender_fills_is_not_called_a_shaper() {
    use LimitedBy::{Network, ReceiveWindow, Shaper};
    const BUFFER: (u64, i64) = (1_161_216, 0);
    let rows = [
        // 64 KiB over 80 ms: held back 34 %, and rate times round trip is the window.
        (far(1, (80_512, 34), BUFFER), 7866, ReceiveWindow),
        // Four streams without window scaling.
        (far(4, (65_535, 36), BUFFER), 23_213, ReceiveWindow),
        // A second whose slow start counts.
        (far(1, (65_535, 27), BUFFER), 4569, ReceiveWindow),
        // The window was full for a moment, or there is room in it.
        (far(1, (80_512, 10), BUFFER), 7866, Shaper),
        (far(1, (160_000, 34), BUFFER), 7866, Shaper),
        // One that would carry many times the rate is not too small, however long it was closed.
        (far(1, (2_000_000, 61), BUFFER), 7866, Shaper),
        // A path that loses is the limit itself.
        (with(far(1, (80_512, 34), BUFFER), |stream| stream.retransmits = Some(40)), 7866, Shaper),
        (
            with(far(1, (80_512, 34), BUFFER), |stream| {
                (stream.delivered, stream.delivered_marked) = (Some(10_000), Some(500));
            }),
            7866,
            Network,
        ),
    ];
    for (n, (sender, kbits, want)) in rows.into_iter().enumerate() {
        let limit = far_verdict(&sender, kbits);
        assert_eq!(limit.by, want, "row {n}: {}", limit.evidence);
    }
    let limit = far_verdict(&far(1, (80_512, 34), BUFFER), 7866);
    assert_eq!(
        limit.evidence,
        "the receive window of 78.6 KiB was 98 % full (rate times round trip) and held the sender back 34 % \
         of its busy time (receive buffer 6.00 MiB at a round trip of 80.0 ms), receiver CPU 2 %"
    );
}

#[test]
fn a_send_buffer_that_a_pacing_sender_fills_is_not_unknown() {
    let verdict = |share, buffer| far_verdict(&far(4, (14_000_000, 0), (buffer, share)), 1_130_000);
    let limit = verdict(19, 4 << 20);
    assert_eq!(
        limit,
        Limit::new(
            LimitedBy::SocketBuffer,
            "the send buffer of 16.0 MiB was 67 % full (rate times round trip) and held the sender back 19 % of \
             its busy time (4.00 MiB at a round trip of 80.0 ms), sender CPU 2 %"
        )
    );
    // A buffer that the kernel still lengthens is not the limit.
    assert_eq!(verdict(19, 16 << 20).by, LimitedBy::Shaper);
    assert_eq!(verdict(5, 4 << 20).by, LimitedBy::Shaper);
}

#[test]
fn marks_of_congestion_are_not_nothing_that_stands_out() {
    let marked = |marked| {
        with(end(0.1, 0.0, 0.2), |stream| {
            (stream.delivered, stream.delivered_marked) = (Some(10_000), Some(marked));
        })
    };
    let idle = end(0.1, 0.0, 0.2);
    let limit = judged(&marked(490), &idle, None, Some((MS * 10, MS * 11)));
    assert_eq!(
        limit,
        Limit::new(
            LimitedBy::Network,
            "ECN marks on 4.90 % of segments; 0 segments sent again; round trip 10.0 ms idle, 11.0 ms loaded; \
             CPU sender 10 %, receiver 10 %; held by window 0 %, by buffer 0 %"
        )
    );
    for few in [0, 2] {
        let limit = judged(&marked(few), &idle, None, Some((MS * 10, MS * 11)));
        assert_eq!(limit.by, LimitedBy::Unknown, "{}", limit.evidence);
        assert_eq!(limit.evidence.contains("ECN"), few > 0, "{}", limit.evidence);
    }
}

#[test]
fn loopback_never_blames_the_network() {
    use LimitedBy::{ReceiverCpu, SenderCpu, SocketBuffer, Unknown};
    let noisy = |end| {
        with(end, |stream: &mut StreamEnd| {
            stream.retransmits = Some(500);
            stream.rtt = Some(MS * 30);
        })
    };
    let rows = [
        (end(0.97, 0.0, 1.0), end(0.7, 0.0, 1.0), SenderCpu),
        (with(end(0.8, 0.0, 0.85), held(0, 90)), end(0.7, 0.0, 0.85), SocketBuffer),
        (end(0.7, 0.0, 0.8), end(0.75, 0.0, 0.8), ReceiverCpu),
        (end(0.2, 0.0, 0.3), end(0.2, 0.0, 0.3), Unknown),
    ];
    for (n, (sender, receiver, want)) in rows.into_iter().enumerate() {
        let row = Row {
            sender: noisy(sender),
            receiver,
            across: Across::Loopback,
            roughness: 100,
            ..Row::new("", want)
        };
        let limit = Row { loaded_rtt: Some(MS * 50), ..row }.verdict();
        assert_eq!(limit.by, want, "row {n}: {}", limit.evidence);
    }
}

#[test]
fn streams_that_share_full_cores_are_limited_by_cpu() {
    let mut sender = end(0.26, 0.3, 1.0);
    sender.cpu = sender.cpu.map(|cpu| CpuUse { process_system: Some(1.0), ..cpu });
    let row = Row {
        sender,
        receiver: end(0.24, 0.2, 1.0),
        across: Across::Loopback,
        ..Row::new("", LimitedBy::SenderCpu)
    };
    assert_eq!(row.verdict().by, LimitedBy::SenderCpu);
}

#[test]
fn a_plain_link_that_nobody_else_uses_is_no_shaper() {
    let lossy = with(end(0.1, 0.0, 0.2), |stream: &mut StreamEnd| stream.retransmits = Some(40));
    let plain = |sender: TcpEnd, loaded| Row {
        sender,
        loaded_rtt: Some(loaded),
        roughness: 300,
        is_held_down: false,
        ..Row::new("", LimitedBy::Network)
    };
    for row in [plain(end(0.1, 0.0, 0.2), MS * 90), plain(lossy, MS * 11), plain(end(0.1, 0.0, 0.2), MS * 11)]
    {
        assert_eq!(row.verdict().by, LimitedBy::Network);
        assert_eq!(Row { is_held_down: true, ..row }.verdict().by, LimitedBy::Shaper);
    }
}

#[test]
fn ends_that_tell_nothing_leave_it_unknown() {
    let nothing = TcpEnd::default();
    let row = Row { sender: nothing.clone(), receiver: nothing, ..Row::new("", LimitedBy::Unknown) };
    assert_eq!(Row { loaded_rtt: None, ..row }.verdict().by, LimitedBy::Unknown);
}

/// The verdict on a transfer over a network whose slices say nothing.
fn judged(sender: &TcpEnd, receiver: &TcpEnd, requested: Option<u64>, rtts: Option<(Span, Span)>) -> Limit {
    tcp_limit(&TcpEvidence {
        sender,
        receiver,
        goodput: BitRate(40_000_000),
        requested: requested.map(BitRate),
        idle_rtt: rtts.map(|(idle, _)| idle),
        loaded_rtt: rtts.map(|(_, loaded)| loaded),
        counted: &[],
        is_held_down: true,
        across: Across::Network,
        is_both_ways: false,
    })
}

#[test]
fn the_queue_of_a_transfer_the_other_way_is_named() {
    let named = |is_both_ways, loaded_rtt| {
        let end = end(0.1, 0.0, 0.2);
        let evidence = TcpEvidence {
            sender: &end,
            receiver: &end,
            goodput: BitRate(15_000_000),
            requested: None,
            idle_rtt: Some(MS * 10),
            loaded_rtt: Some(loaded_rtt),
            counted: &[],
            is_held_down: false,
            across: Across::Network,
            is_both_ways,
        };
        tcp_limit(&evidence).evidence.contains("delays the acknowledgements of this transfer")
    };
    assert!(named(true, MS * 51));
    assert!(!named(false, MS * 51), "it ran alone");
    assert!(!named(true, MS * 11), "no queue stands");
}

#[test]
fn the_evidence_says_in_figures_what_decided() {
    use LimitedBy::{Network, ReceiveWindow, ReceiverCpu, RequestedRate, SenderCpu, SocketBuffer, Unknown};
    let idle = || end(0.1, 0.0, 0.2);
    let lossy = with(idle(), |stream: &mut StreamEnd| stream.retransmits = Some(40));
    let rows = [
        (
            idle(),
            idle(),
            Some(41_000_000),
            Limit::new(RequestedRate, "98 % of the 41.0 Mbit/s asked for was reached"),
        ),
        (
            spaced(MS * 1500, MS * 20),
            idle(),
            Some(80_000_000),
            Limit::new(
                SenderCpu,
                "the sender put off its blocks by 1.50 s in all, and waited only 20.0 ms of it \
                 for room in a stream's buffer",
            ),
        ),
        (
            end(0.97, 0.0, 0.99),
            idle(),
            None,
            Limit::new(SenderCpu, "sender's busiest thread ran 97 %, busiest core 99 %; receiver's ran 10 %"),
        ),
        (
            with(end(0.96, 0.0, 1.0), held(60, 0)),
            end(0.93, 0.0, 1.0),
            None,
            Limit::new(
                ReceiverCpu,
                "receiver's busiest thread ran 93 %, busiest core 100 %, \
                 its window held the sender back 60 % of the time; sender's ran 96 %",
            ),
        ),
        (
            with(idle(), held(70, 0)),
            idle(),
            None,
            Limit::new(
                ReceiveWindow,
                "the receive window held the sender back 70 % of its busy time \
                 (receive buffer 6.00 MiB at a round trip of 10.0 ms), receiver CPU 10 %",
            ),
        ),
        (
            with(idle(), held(0, 80)),
            idle(),
            None,
            Limit::new(
                SocketBuffer,
                "the send buffer held the sender back 80 % of its busy time \
                 (4.00 MiB at a round trip of 10.0 ms), sender CPU 10 %",
            ),
        ),
        (
            lossy,
            idle(),
            None,
            Limit::new(
                Network,
                "40 segments sent again; round trip 10.0 ms idle, 11.0 ms loaded; \
                 CPU sender 10 %, receiver 10 %; held by window 0 %, by buffer 0 %",
            ),
        ),
        // A rate of zero is none that was asked for.
        (
            idle(),
            idle(),
            Some(0),
            Limit::new(
                Unknown,
                "nothing stands out: 0 segments sent again; round trip 10.0 ms idle, 11.0 ms loaded; \
                 CPU sender 10 %, receiver 10 %; held by window 0 %, by buffer 0 %",
            ),
        ),
    ];
    for (sender, receiver, requested, want) in rows {
        assert_eq!(judged(&sender, &receiver, requested, Some((MS * 10, MS * 11))), want);
    }
}

#[test]
fn what_a_system_does_not_tell_is_left_out_of_the_evidence() {
    let silent = TcpEnd::default();
    let evidence = "nothing stands out: CPU sender unknown, receiver unknown";
    assert_eq!(judged(&silent, &silent, None, None), Limit::new(LimitedBy::Unknown, evidence));
    // Round trips of streams stand in for those that nobody measured.
    let stream = |rtt: Option<i64>, min_rtt: Option<i64>| StreamEnd {
        rtt: rtt.map(|rtt| MS * rtt),
        min_rtt: min_rtt.map(|rtt| MS * rtt),
        ..StreamEnd::default()
    };
    let streams = vec![stream(Some(10), None), stream(Some(30), Some(4)), stream(None, Some(9))];
    let sender = TcpEnd { streams, ..TcpEnd::default() };
    let evidence = "round trip 4.00 ms idle, 20.0 ms loaded; CPU sender unknown, receiver unknown";
    assert_eq!(judged(&sender, &silent, None, None), Limit::new(LimitedBy::Network, evidence));
}

#[test]
fn a_round_trip_that_grew_by_half_is_no_queue_yet_nor_is_one_that_grew_by_2_ms() {
    let idle = end(0.1, 0.0, 0.2);
    let (half, two_ms) = (MS * 10, MS * 2);
    let rows = [
        (half, MS * 15, LimitedBy::Unknown),
        (half, MS * 15 + Span(1), LimitedBy::Network),
        (two_ms, MS * 4, LimitedBy::Unknown),
        (two_ms, MS * 4 + Span(1), LimitedBy::Network),
    ];
    for (unloaded, loaded, want) in rows {
        let limit = judged(&idle, &idle, None, Some((unloaded, loaded)));
        assert_eq!(limit.by, want, "{}", limit.evidence);
    }
}

#[test]
fn of_two_full_ends_the_one_under_more_pressure_is_blamed_and_the_sender_if_both_are_alike() {
    for (sender, receiver, want) in [
        (0.93, 0.99, LimitedBy::ReceiverCpu),
        (0.99, 0.93, LimitedBy::SenderCpu),
        (0.95, 0.95, LimitedBy::SenderCpu),
    ] {
        let limit = judged(&end(sender, 0.0, 1.0), &end(receiver, 0.0, 1.0), None, None);
        assert_eq!(limit.by, want, "{}", limit.evidence);
    }
}

#[test]
fn a_policer_that_queues_nothing_is_no_shaper() {
    let resent = |share: u64| {
        with(end(0.01, 0.0, 0.2), |stream| {
            stream.retransmits = Some(207);
            stream.bytes_sent = Some(ByteCount(2_000_000));
            stream.bytes_resent = Some(ByteCount(20_000 * share));
        })
    };
    let of = |share, loaded_us, roughness| Row {
        sender: resent(share),
        loaded_rtt: Some(Span::from_micros(loaded_us)),
        roughness,
        ..Row::new("policer", LimitedBy::Network)
    };
    for roughness in [0, 5_000] {
        let found = of(22, 10_029, roughness).verdict();
        assert_eq!(found.by, LimitedBy::Network);
        assert!(found.evidence.contains("as at a policer"), "{}", found.evidence);
        assert!(found.evidence.contains("207 segments sent again (22 % of all bytes)"), "{}", found.evidence);
    }
    let is_policer = |row: Row| row.verdict().evidence.contains("policer");
    assert!(!is_policer(of(22, 60_000, 0)), "a queue stands");
    assert!(!is_policer(of(22, 10_029, 20_000)), "losses at random leave no even rate");
    assert!(!is_policer(of(0, 10_029, 0)), "hardly any losses");
}

#[test]
fn a_receiver_that_waits_for_a_core_nearly_all_the_time_is_not_the_network() {
    let lossy = with(end(0.01, 0.6, 1.0), |stream| stream.retransmits = Some(14));
    let of = |loaded_rtt| Row {
        sender: lossy.clone(),
        receiver: end(0.01, 0.96, 1.0),
        loaded_rtt: Some(loaded_rtt),
        ..Row::new("others have the core", LimitedBy::ReceiverCpu)
    };
    let found = of(Span::from_micros(10_050)).verdict();
    assert_eq!(found.by, LimitedBy::ReceiverCpu);
    assert!(
        found.evidence.starts_with("receiver's busiest thread ran 1 % and waited 96 %"),
        "{}",
        found.evidence
    );
    assert!(found.evidence.contains("CPU sender 1 % (and waited 60 % for a core)"), "{}", found.evidence);
    assert_eq!(of(MS * 60).verdict().by, LimitedBy::Network, "the path shows a queue");
}

#[test]
fn a_rate_that_was_exceeded_is_not_a_million_percent_reached() {
    let row = Row { requested: Some(1), ..Row::new("1 bit/s", LimitedBy::RequestedRate) };
    let found = row.verdict();
    assert_eq!(found.by, LimitedBy::RequestedRate);
    let want = "1 bit/s was asked for, and 40.0 Mbit/s went: a stream sends whole segments";
    assert_eq!(found.evidence, want);
}

/// 15 Mbit/s of 48 were "limited by unknown: nothing stands out", because the responder had been
/// stopped for 2 s.
#[test]
fn an_end_that_was_stopped_is_named_and_neither_the_network_nor_nothing() {
    let stopped = |sender: i64, receiver: i64| {
        let end = |ms: i64| TcpEnd { elapsed: MS * 3000, stood_still: Some(MS * ms), ..end(0.1, 0.0, 0.2) };
        Row { sender: end(sender), receiver: end(receiver), ..Row::new("", LimitedBy::Unknown) }.verdict()
    };
    for (sender, receiver, want) in
        [(2000, 0, "the sender did not run for 2.00 s"), (300, 2000, "the receiver did")]
    {
        let limit = stopped(sender, receiver);
        assert_eq!(limit.by, LimitedBy::Unknown);
        assert!(limit.evidence.starts_with(want), "{}", limit.evidence);
    }
    assert!(!stopped(90, 0).evidence.contains("did not run"));
    // What was asked for was reached all the same.
    let mut asked = Row { requested: Some(40_000_000), ..Row::new("", LimitedBy::RequestedRate) };
    asked.sender.stood_still = Some(MS * 2000);
    assert_eq!(asked.verdict().by, asked.want);
}
