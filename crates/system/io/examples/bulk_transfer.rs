//! Moves bulk data between two addresses and prints what both ends saw: the tight loops without the
//! control protocol, for tuning them.
//!
//! ```text
//! bulk_transfer tcp       STREAMS SECONDS [LENGTH] [zerocopy]      both ends on loopback
//! bulk_transfer udp       SEND RECEIVE LENGTH SECONDS [GAP_NS]     SEND: single mmsg gso, RECEIVE: single mmsg gro
//! bulk_transfer send HERE THERE tcp|udp …                          one end each, e.g. in two network namespaces;
//! bulk_transfer receive HERE THERE tcp|udp …                       start `receive` first
//! ```

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use netaware_io::options::{Reuse, SocketOptions, bind_udp, connect_tcp, listen_tcp};
use netaware_io::priority::Permits;
use netaware_io::stop::StopFlag;
use netaware_io::{clock, tcp, udp_stream};
use netaware_record::{Direction, GapSummary, TcpEnd, UdpReceiverEnd, UdpSenderEnd};
use netaware_units::{BitRate, Span};
use netaware_wire::control::{TcpPlan, UdpPlan, UdpReceive, UdpSend};

const PORT: u16 = 14_777;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let lo = IpAddr::from(Ipv4Addr::LOCALHOST);
    match words.as_slice() {
        ["send", here, there, plan @ ..] => send(here.parse()?, there.parse()?, plan),
        ["receive", here, there, plan @ ..] => receive(here.parse()?, there.parse()?, plan),
        plan => {
            let plan_of_receiver: Vec<String> = plan.iter().map(ToString::to_string).collect();
            let receiver = std::thread::spawn(move || {
                let words: Vec<&str> = plan_of_receiver.iter().map(String::as_str).collect();
                receive(lo, lo, &words).map_err(|error| error.to_string())
            });
            clock::sleep(Span::from_millis(100));
            send(lo, lo, plan)?;
            receiver.join().map_err(|_| "the receiver panicked")??;
            Ok(())
        }
    }
}

fn send(here: IpAddr, there: IpAddr, plan: &[&str]) -> Result<(), Failure> {
    if let Some(plan) = tcp_plan(plan)? {
        let to = SocketAddr::new(there, PORT);
        let connect = || connect_tcp(to, &SocketOptions::default(), Span::from_secs(2));
        let streams = (0..plan.streams).map(|_| connect()).collect::<Result<_, _>>()?;
        print_tcp("sent", &tcp::send(streams, &plan, &[], &StopFlag::new(), &mut |_| {}));
        return Ok(());
    }
    let plan = udp_plan(plan)?;
    let socket = bind_udp(SocketAddr::new(here, PORT + 1), &SocketOptions::default(), Reuse::No)?;
    socket.connect(SocketAddr::new(there, PORT))?;
    print_udp_sender(&udp_stream::send(socket, 1, &plan, None, &Permits::unlimited(), &StopFlag::new()));
    Ok(())
}

fn receive(here: IpAddr, there: IpAddr, plan: &[&str]) -> Result<(), Failure> {
    if let Some(plan) = tcp_plan(plan)? {
        let listener = listen_tcp(SocketAddr::new(here, PORT), 512)?;
        let streams = (0..plan.streams)
            .map(|_| listener.accept().map(|(stream, _)| stream))
            .collect::<Result<_, _>>()?;
        print_tcp("received", &tcp::receive(streams, &plan, &[], &StopFlag::new(), &mut |_| {}));
        return Ok(());
    }
    let plan = udp_plan(plan)?;
    let socket = bind_udp(SocketAddr::new(here, PORT), &SocketOptions::default(), Reuse::No)?;
    socket.connect(SocketAddr::new(there, PORT + 1))?;
    print_udp_receiver(&udp_stream::receive(
        udp_stream::ready(socket, &plan),
        1,
        &plan,
        None,
        &StopFlag::new(),
        &mut |_| {},
    ));
    Ok(())
}

fn tcp_plan(words: &[&str]) -> Result<Option<TcpPlan>, Failure> {
    let ["tcp", streams, seconds, rest @ ..] = words else { return Ok(None) };
    let length = rest.first().map_or(Ok(tcp::DEFAULT_LENGTH), |length| length.parse())?;
    let duration = Span::from_secs_f64(seconds.parse()?);
    Ok(Some(TcpPlan {
        streams: streams.parse()?,
        length,
        zerocopy: rest.get(1) == Some(&"zerocopy"),
        ..TcpPlan::new(Direction::Forward, duration)
    }))
}

fn udp_plan(words: &[&str]) -> Result<UdpPlan, Failure> {
    let ["udp", send, receive, length, seconds, rest @ ..] = words else {
        return Err("see the head of this example for its arguments".into());
    };
    let gap_ns: Option<u64> = rest.first().map(|gap| gap.parse()).transpose()?;
    Ok(UdpPlan {
        direction: Direction::Forward,
        duration: Span::from_secs_f64(seconds.parse()?),
        packets: None,
        length: length.parse()?,
        gap_ps: gap_ns.map(|gap| gap * 1000),
        send: match *send {
            "mmsg" => UdpSend::Mmsg,
            "gso" => UdpSend::Gso,
            _ => UdpSend::Single,
        },
        receive: match *receive {
            "mmsg" => UdpReceive::Mmsg,
            "gro" => UdpReceive::Gro,
            _ => UdpReceive::Single,
        },
        tick: Span::from_millis(100),
        settle: None,
        round_trip: Span::ZERO,
        window: None,
        dscp: 0,
        burst: 1,
        histogram: None,
        log: false,
    })
}

fn print_tcp(what: &str, end: &TcpEnd) {
    let calls: u64 = end.streams.iter().map(|stream| stream.calls).sum();
    println!(
        "{what}: {:.1} Gbit/s in {}, {} per call, busiest thread {:.2}, {:?}",
        BitRate::mean(end.bytes, end.elapsed).unwrap_or_default().mbits_f64() / 1e3,
        end.elapsed,
        end.bytes.0.checked_div(calls).unwrap_or(0),
        end.cpu.unwrap_or_default().busiest_thread.unwrap_or_default(),
        end.outcome,
    );
}

fn print_udp_sender(end: &UdpSenderEnd) {
    println!(
        "sent: {:.3} M/s, {} in {} calls, not sent {}, late {}, worst {}, thread {:.2}, {:?}",
        end.sent as f64 / end.elapsed.secs_f64() / 1e6,
        end.sent,
        end.calls,
        end.not_sent,
        end.late,
        end.worst_lateness,
        end.cpu.unwrap_or_default().busiest_thread.unwrap_or_default(),
        end.outcome,
    );
    print_gaps(end.gaps.as_ref());
}

fn print_udp_receiver(end: &UdpReceiverEnd) {
    let lost: u64 = end.loss_runs.iter().map(|(length, times)| length * times).sum();
    println!(
        "received: {:.3} M/s, {}, lost {lost} (dropped here {}), {} calls, buffer {}, thread {:.2}, {:?}",
        end.received as f64 / end.elapsed.secs_f64() / 1e6,
        end.received,
        end.drops.socket.unwrap_or_default(),
        end.calls.unwrap_or_default(),
        end.receive_buffer.unwrap_or_default(),
        end.cpu.unwrap_or_default().busiest_thread.unwrap_or_default(),
        end.outcome,
    );
    print_gaps(end.gaps.as_ref());
}

fn print_gaps(gaps: Option<&GapSummary>) {
    let Some(gaps) = gaps else { return };
    println!(
        "  gaps: mean {:.3} us, sd {:.2} us, p1 {} p50 {} p99 {} p99.9 {} max {}",
        gaps.mean_ns / 1e3,
        gaps.sd_ns.unwrap_or_default() / 1e3,
        gaps.p1,
        gaps.p50,
        gaps.p99,
        gaps.p999,
        gaps.max,
    );
}
