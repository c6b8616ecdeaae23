//! As many streams as the protocol allows, in bounded memory.
#![cfg(target_os = "linux")]

use std::net::{Ipv4Addr, SocketAddr};

use netaware_io::options::{SocketOptions, connect_tcp, listen_tcp};
use netaware_io::stop::StopFlag;
use netaware_io::tcp::{receive, send};
use netaware_record::{Direction, Outcome};
use netaware_units::{ByteCount, Span};
use netaware_wire::control::{MAX_SAMPLES_IN_ALL, MAX_STREAMS, TcpPlan};

/// The most memory this process has had, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

/// Both ends of 512 streams in one process, a thread for each: sender and receiver together stay
/// below 64 MiB. It is the only test of its executable, because the memory of a process is that of
/// all its tests.
#[test]
fn both_ends_of_512_streams_fit_64_mib() {
    let listener = listen_tcp(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0), 512).unwrap();
    let to = listener.local_addr().unwrap();
    for spacing in [None, Some(Span::from_micros(100))] {
        let (out, into): (Vec<_>, Vec<_>) = (0..MAX_STREAMS)
            .map(|_| {
                let out = connect_tcp(to, &SocketOptions::default(), Span::from_secs(5)).unwrap();
                (out, listener.accept().unwrap().0)
            })
            .unzip();
        let limit = ByteCount(64 << 20);
        let plan = TcpPlan {
            streams: MAX_STREAMS,
            bytes: Some(limit),
            length: 64 << 10,
            per_stream: true,
            block_spacing: spacing,
            ..TcpPlan::new(Direction::Forward, Span::from_secs(60))
        };
        let (stop, receiving) = (StopFlag::new(), plan.clone());
        let (sent, received) = std::thread::scope(|scope| {
            let receiver = scope.spawn(|| receive(into, &receiving, &[], &stop, &mut |_| {}));
            (send(out, &plan, &[], &stop, &mut |_| {}), receiver.join().unwrap())
        });
        assert_eq!((sent.outcome, received.outcome), (Outcome::Complete, Outcome::Complete));
        assert_eq!((sent.bytes, received.bytes), (limit, limit));
        assert_eq!((sent.streams.len(), received.streams.len()), (512, 512));
        assert_eq!(received.streams.iter().map(|stream| stream.bytes).sum::<ByteCount>(), limit);
        assert!(sent.streams.iter().map(|stream| stream.samples.len()).sum::<usize>() <= MAX_SAMPLES_IN_ALL);
    }
    let peak = peak_memory();
    assert!(peak < 64 << 20, "{} at most", ByteCount(peak));
}
