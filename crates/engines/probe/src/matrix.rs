//! Short transfers: from what both ends counted to the cells of a matrix.
//!
//! **Measures** how long a given number of bytes takes in blocks of a given size, at the end that
//! sends and at the end that receives. **Assumes** that nothing else runs meanwhile. **Biased**:
//! the server's clock begins with its first read, so what that read brought is left out of its
//! throughput; a transfer that comes in one piece has no throughput there. The client's time with
//! TCP ends with the server's confirmation, a round trip after the last write, so on a long path
//! its throughput reads low; with UDP it is only how fast this host accepts datagrams, and reads
//! high on any slower path. Short TCP transfers are slow start and little else: a figure of a cell
//! is no figure of the path. **Published**: the cells and the pair of clocks are those of Tan, "A
//! Network Measurement Tool for Handheld Devices" (Virginia Tech), Table 2 and Equation 1; that
//! divides all bytes by the server's time, which reads high by the first block.

use netaware_record::{
    Interval, MatrixCell, MatrixEnd, MatrixRun, Outcome, TcpEnd, UdpReceiverEnd, UdpSenderEnd,
};
use netaware_stats::quantile;
use netaware_units::{BitRate, ByteCount, Span};

use crate::loss_split;

/// A TCP transfer of `bytes` by what both ends told; an end that never told is `None`.
pub fn tcp_run(round: u16, outcome: Outcome, client: Option<&TcpEnd>, server: Option<&TcpEnd>) -> MatrixRun {
    let calls = |end: &TcpEnd| end.streams.iter().map(|stream| stream.calls).reduce(u64::saturating_add);
    let sending = client.map(|end| client_end(end.bytes, calls(end), end.elapsed));
    let receiving = server.map(|end| {
        let first = end.streams.iter().map(|stream| stream.first_read).sum::<Option<ByteCount>>();
        // A receiver that was pieced together from its slices told of no stream.
        let first = first.filter(|_| !end.streams.is_empty());
        server_end(end.bytes, calls(end), first, end.elapsed)
    });
    MatrixRun {
        round,
        outcome,
        lost: ByteCount(0),
        undelivered: sending.zip(receiving).map_or(ByteCount(0), |(from, to)| from.bytes - to.bytes),
        lost_in_host: None,
        unknown: if receiving.is_some() { ByteCount(0) } else { sending.unwrap_or_default().bytes },
        retransmits: client.and_then(|end| {
            end.streams.iter().filter_map(|stream| stream.retransmits).reduce(u64::saturating_add)
        }),
        client: sending,
        server: receiving,
    }
}

/// A UDP transfer in datagrams of `block` bytes.
pub fn udp_run(
    round: u16,
    outcome: Outcome,
    block: ByteCount,
    client: Option<&UdpSenderEnd>,
    server: Option<&UdpReceiverEnd>,
) -> MatrixRun {
    let sent = client.map_or(0, |end| end.sent);
    let sending = client.map(|end| client_end(end.bytes, Some(end.sent), end.elapsed));
    let receiving = server.map(|end| {
        let calls = end.duplicates.map(|duplicates| end.received + duplicates);
        server_end(end.bytes, calls, Some(block), end.elapsed)
    });
    let sent = sent.max(server.map_or(0, |end| end.highest));
    let loss = loss_split::split(sent, server);
    let of = |datagrams: u64| ByteCount(datagrams.saturating_mul(block.0));
    MatrixRun {
        round,
        outcome,
        client: sending,
        server: receiving,
        lost: of(loss.lost),
        undelivered: ByteCount(0),
        lost_in_host: loss.host.map(of),
        unknown: of(loss.unknown),
        retransmits: None,
    }
}

/// A cell with its medians.
pub fn cell(bytes: ByteCount, block: ByteCount, runs: Vec<MatrixRun>) -> MatrixCell {
    let over = |figure: &dyn Fn(&MatrixRun) -> Option<f64>| {
        median(runs.iter().filter(|r| r.outcome == Outcome::Complete).filter_map(figure).collect())
    };
    let time = |end: Option<&MatrixEnd>| end.and_then(|end| end.elapsed).map(|span| span.0 as f64);
    let rate = |end: Option<&MatrixEnd>| end.and_then(|end| end.throughput).map(|rate| rate.0 as f64);
    MatrixCell {
        bytes,
        block,
        client_time: over(&|run| time(run.client.as_ref())),
        client_throughput: over(&|run| rate(run.client.as_ref())),
        server_time: over(&|run| time(run.server.as_ref())),
        server_throughput: over(&|run| rate(run.server.as_ref())),
        runs,
    }
}

fn client_end(bytes: ByteCount, calls: Option<u64>, elapsed: Span) -> MatrixEnd {
    end(bytes, calls, Some(bytes), elapsed)
}

/// `first` came before the clock started; without it nobody knows how much came in its time.
fn server_end(bytes: ByteCount, calls: Option<u64>, first: Option<ByteCount>, elapsed: Span) -> MatrixEnd {
    end(bytes, calls, first.map(|first| bytes - first), elapsed)
}

fn end(bytes: ByteCount, calls: Option<u64>, timed: Option<ByteCount>, elapsed: Span) -> MatrixEnd {
    let elapsed = Some(elapsed).filter(|span| *span > Span::ZERO);
    let timed = timed.filter(|timed| timed.0 > 0);
    let throughput = elapsed.zip(timed).and_then(|(span, timed)| BitRate::mean(timed, span));
    MatrixEnd { bytes, calls, elapsed, throughput }
}

/// The median between the smallest and the largest value, which hold the true median between them
/// unless all `n` values fell on one side of it: with a probability of `1 - 2^(1 - n)`, whatever
/// the distribution (sign test).
fn median(mut values: Vec<f64>) -> Option<Interval> {
    values.sort_unstable_by(f64::total_cmp);
    let confidence = 1.0 - 0.5_f64.powi(i32::try_from(values.len()).unwrap_or(i32::MAX).saturating_sub(1));
    Some(Interval {
        estimate: quantile::median(&values)?,
        lo: *values.first()?,
        hi: *values.last()?,
        confidence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use netaware_record::{HostDrops, StreamEnd};

    fn tcp_end(bytes: u64, calls: u64, first_read: u64, micros: i64) -> TcpEnd {
        let stream = StreamEnd {
            calls,
            first_read: Some(ByteCount(first_read)).filter(|first| first.0 > 0),
            ..StreamEnd::default()
        };
        TcpEnd {
            bytes: ByteCount(bytes),
            elapsed: Span::from_micros(micros),
            streams: vec![stream],
            ..TcpEnd::default()
        }
    }

    #[test]
    fn what_the_first_read_brought_is_not_in_the_servers_throughput() {
        // 10 Mbit/s: the remaining 98,552 bytes take 78.8416 ms.
        let (client, server) = (tcp_end(100_000, 10, 0, 90_000), tcp_end(100_000, 69, 1448, 78_842));
        let run = tcp_run(0, Outcome::Complete, Some(&client), Some(&server));
        assert_eq!(run.client.unwrap().throughput, Some(BitRate(8_888_888)));
        assert_eq!(run.server.unwrap().throughput, Some(BitRate(9_999_949)));
        assert_eq!(
            (run.client.unwrap().calls, run.server.unwrap().calls, run.lost),
            (Some(10), Some(69), ByteCount(0))
        );
    }

    #[test]
    fn a_transfer_in_one_piece_has_no_throughput_at_the_server() {
        let run =
            tcp_run(0, Outcome::Complete, Some(&tcp_end(1000, 1, 0, 300)), Some(&tcp_end(1000, 1, 1000, 3)));
        assert_eq!(run.server.unwrap().throughput, None);
        let (client, server) = (
            UdpSenderEnd { sent: 1, bytes: ByteCount(1000), elapsed: Span::ZERO, ..UdpSenderEnd::default() },
            UdpReceiverEnd { received: 1, bytes: ByteCount(1000), ..UdpReceiverEnd::default() },
        );
        let run = udp_run(0, Outcome::Complete, ByteCount(1000), Some(&client), Some(&server));
        assert_eq!((run.client.unwrap().throughput, run.client.unwrap().elapsed), (None, None));
        assert_eq!((run.server.unwrap().throughput, run.server.unwrap().elapsed), (None, None));
    }

    #[test]
    fn ten_datagrams_span_nine_gaps() {
        // At 10 Mbit/s 10,000 bytes take 8 ms.
        let server = UdpReceiverEnd {
            received: 10,
            bytes: ByteCount(100_000),
            elapsed: Span::from_millis(72),
            ..UdpReceiverEnd::default()
        };
        let run = udp_run(0, Outcome::Complete, ByteCount(10_000), None, Some(&server));
        assert_eq!(run.server.unwrap().throughput, Some(BitRate(10_000_000)));
    }

    #[test]
    fn lost_datagrams_count_in_bytes_and_by_place() {
        let client = UdpSenderEnd { sent: 20, bytes: ByteCount(1000), ..UdpSenderEnd::default() };
        let server = UdpReceiverEnd {
            received: 15,
            bytes: ByteCount(750),
            drops: HostDrops { socket: Some(2), ..HostDrops::default() },
            ..UdpReceiverEnd::default()
        };
        let run = udp_run(1, Outcome::Complete, ByteCount(50), Some(&client), Some(&server));
        assert_eq!((run.lost, run.lost_in_host), (ByteCount(250), Some(ByteCount(100))));
        let unheard = udp_run(1, Outcome::Failed, ByteCount(50), Some(&client), None);
        assert_eq!((unheard.lost, unheard.server), (ByteCount(0), None));
        assert_eq!(unheard.unknown, ByteCount(1000), "no server has told what became of them");
    }

    #[test]
    fn a_cell_is_the_median_of_complete_runs_between_the_extremes() {
        let run = |outcome, rate| MatrixRun {
            client: Some(MatrixEnd { throughput: rate, ..MatrixEnd::default() }),
            ..udp_run(0, outcome, ByteCount(1), None, None)
        };
        let runs = vec![
            run(Outcome::Complete, Some(BitRate(300))),
            run(Outcome::Complete, Some(BitRate(100))),
            run(Outcome::Interrupted, Some(BitRate(1))),
            run(Outcome::Complete, Some(BitRate(110))),
            run(Outcome::Complete, None),
        ];
        let cell = cell(ByteCount(1000), ByteCount(50), runs);
        let found = cell.client_throughput.unwrap();
        assert_eq!((found.estimate, found.lo, found.hi, found.confidence), (110.0, 100.0, 300.0, 0.75));
        assert_eq!((cell.server_throughput, cell.client_time), (None, None));
    }

    #[test]
    fn a_run_over_udp_says_of_both_ends_what_they_counted() {
        let client = UdpSenderEnd {
            sent: 20,
            bytes: ByteCount(1000),
            elapsed: Span::from_millis(10),
            ..UdpSenderEnd::default()
        };
        let server = UdpReceiverEnd {
            received: 15,
            duplicates: Some(2),
            bytes: ByteCount(750),
            // Two more than the client knows of have left it.
            highest: 22,
            elapsed: Span::from_millis(5),
            drops: HostDrops { socket: Some(2), ..HostDrops::default() },
            ..UdpReceiverEnd::default()
        };
        let want = MatrixRun {
            round: 3,
            outcome: Outcome::Interrupted,
            client: Some(MatrixEnd {
                bytes: ByteCount(1000),
                calls: Some(20),
                elapsed: Some(Span::from_millis(10)),
                throughput: Some(BitRate(800_000)),
            }),
            // The first datagram came before the clock began.
            server: Some(MatrixEnd {
                bytes: ByteCount(750),
                calls: Some(17),
                elapsed: Some(Span::from_millis(5)),
                throughput: Some(BitRate(1_120_000)),
            }),
            lost: ByteCount(350),
            undelivered: ByteCount(0),
            lost_in_host: Some(ByteCount(100)),
            unknown: ByteCount(0),
            retransmits: None,
        };
        let found = udp_run(3, Outcome::Interrupted, ByteCount(50), Some(&client), Some(&server));
        assert_eq!(found, want);
    }

    #[test]
    fn an_end_that_never_reported_has_no_figures_and_not_a_throughput_of_zero() {
        let nobody = tcp_run(0, Outcome::Failed, None, None);
        assert_eq!((nobody.client, nobody.server, nobody.lost_in_host), (None, None, None));
        // The streams of a receiver that was pieced together from its slices are unknown.
        let pieced = TcpEnd { streams: Vec::new(), ..tcp_end(70_000, 0, 0, 50_000) };
        let run = tcp_run(0, Outcome::Failed, Some(&tcp_end(100_000, 10, 0, 90_000)), Some(&pieced));
        assert_eq!((run.server.unwrap().throughput, run.server.unwrap().calls), (None, None));
        let pieced = UdpReceiverEnd { received: 15, observed: Some(15), ..UdpReceiverEnd::default() };
        let sender = UdpSenderEnd { sent: 20, ..UdpSenderEnd::default() };
        let run = udp_run(0, Outcome::Failed, ByteCount(50), Some(&sender), Some(&pieced));
        assert_eq!((run.lost, run.unknown), (ByteCount(0), ByteCount(250)));
    }

    #[test]
    fn tcp_bytes_that_did_not_arrive_in_time_are_not_lost() {
        // A path on which large packets vanish: TCP keeps them for another try.
        let (client, server) = (tcp_end(9_000, 180, 0, 10_000_000), tcp_end(50, 1, 50, 3));
        let run = tcp_run(0, Outcome::Interrupted, Some(&client), Some(&server));
        assert_eq!((run.lost, run.undelivered, run.unknown), (ByteCount(0), ByteCount(8_950), ByteCount(0)));
    }

    #[test]
    fn a_cell_has_the_times_and_the_throughputs_of_both_ends() {
        let (client, server) = (tcp_end(2_000, 4, 0, 80), tcp_end(1_500, 3, 500, 40));
        let run = tcp_run(2, Outcome::Complete, Some(&client), Some(&server));
        let missing = (run.lost, run.undelivered);
        assert_eq!((run.round, missing, run.lost_in_host), (2, (ByteCount(0), ByteCount(500)), None));
        let once = |value| Some(Interval { estimate: value, lo: value, hi: value, confidence: 0.0 });
        let want = MatrixCell {
            bytes: ByteCount(2_000),
            block: ByteCount(500),
            client_time: once(80_000.0),
            client_throughput: once(200_000_000.0),
            server_time: once(40_000.0),
            server_throughput: once(200_000_000.0),
            runs: vec![run.clone()],
        };
        assert_eq!(cell(ByteCount(2_000), ByteCount(500), vec![run]), want);
    }
}
