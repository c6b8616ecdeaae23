//! Ends as they were seen on real paths, simplified, and the verdict each must get.

use netaware_record::{CpuUse, SpacedBlocks};

use super::*;

const MS: Span = Span::from_millis(1);

/// One stream for 3 s with these shares of thread CPU, waiting and busiest core.
fn end(thread: f64, waiting: f64, core: f64) -> TcpEnd {
    let stream = StreamEnd {
        busy: MS * 3000,
        rtt: MS * 11,
        min_rtt: MS * 10,
        thread_cpu: thread,
        thread_waiting: waiting,
        send_buffer: ByteCount(4 << 20),
        receive_buffer: ByteCount(6 << 20),
        ..StreamEnd::default()
    };
    let cpu = CpuUse {
        process_system: thread,
        busiest_thread: thread,
        busiest_core: Some(core),
        softirq: Some(0.01),
        cores: 2,
        ..CpuUse::default()
    };
    TcpEnd { cpu, streams: vec![stream], ..TcpEnd::default() }
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
            across: self.across,
        })
    }
}

fn held(share_window: i64, share_buffer: i64) -> impl Fn(&mut StreamEnd) {
    move |stream| {
        stream.window_limited = MS * (30 * share_window);
        stream.buffer_limited = MS * (30 * share_buffer);
    }
}

fn rows() -> Vec<Row> {
    use LimitedBy::{
        Network, ReceiveWindow, ReceiverCpu, RequestedRate, SenderCpu, Shaper, SocketBuffer, Unknown,
    };
    let lossy = |end| with(end, |stream: &mut StreamEnd| stream.retransmits = 40);
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

#[test]
fn loopback_never_blames_the_network() {
    use LimitedBy::{ReceiverCpu, SenderCpu, SocketBuffer, Unknown};
    let noisy = |end| {
        with(end, |stream: &mut StreamEnd| {
            stream.retransmits = 500;
            stream.rtt = MS * 30;
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
    sender.cpu.process_system = 1.0;
    let row = Row {
        sender,
        receiver: end(0.24, 0.2, 1.0),
        across: Across::Loopback,
        ..Row::new("", LimitedBy::SenderCpu)
    };
    assert_eq!(row.verdict().by, LimitedBy::SenderCpu);
}

#[test]
fn ends_that_tell_nothing_leave_it_unknown() {
    let nothing = TcpEnd::default();
    let row = Row { sender: nothing.clone(), receiver: nothing, ..Row::new("", LimitedBy::Unknown) };
    assert_eq!(Row { loaded_rtt: None, ..row }.verdict().by, LimitedBy::Unknown);
}
