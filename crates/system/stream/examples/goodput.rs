//! Goodput of a dual-stack stream and of a plain TCP socket on loopback, by turns, with the same
//! block.
//!
//! `cargo run --release -p netaware-stream --example goodput -- [rounds] [seconds] [block]`

use std::io::{Read, Write};
use std::net::{Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use netaware_io::clock;
use netaware_stream::{DualListener, DualStream, Options};
use netaware_units::Span;

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|word| word.parse::<u64>().ok());
    let rounds = arguments.next().unwrap_or(5);
    let span = Span::from_secs(arguments.next().unwrap_or(2) as i64);
    let block = arguments.next().unwrap_or(128 * 1024) as usize;
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        let (plain, dual) = (plain(span, block), dual(span, block));
        println!("{round}: plain {plain:.1} Gbit/s, dual-stack {dual:.1} Gbit/s, {:.2} x", dual / plain);
        ratios.push(dual / plain);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    println!("median {:.2} x", ratios[ratios.len() / 2]);
}

fn plain(span: Span, block: usize) -> f64 {
    let listener = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).expect("a port");
    let sender = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    let (receiver, _) = listener.accept().expect("a connection");
    let sending = thread::spawn(move || {
        send(&sender, span, block);
        sender.shutdown(Shutdown::Write).expect("an end");
    });
    let rate = receive(&receiver, block);
    sending.join().expect("a sender");
    rate
}

fn dual(span: Span, block: usize) -> f64 {
    let any = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    let listener = DualListener::bind_to(&[any], Options::default()).expect("a port");
    let sender =
        DualStream::connect_to("loopback", listener.addresses(), Options::default()).expect("a stream");
    let (receiver, _) = listener.accept().expect("a stream");
    let sending = thread::spawn(move || {
        send(&sender, span, block);
        sender.finish(clock::now() + Span::from_secs(10)).ok();
    });
    let rate = receive(&receiver, block);
    drop(receiver);
    sending.join().expect("a sender");
    rate
}

fn send(mut to: impl Write, span: Span, block: usize) {
    let bytes = vec![0x5a; block];
    let end = clock::now() + span;
    while clock::now() < end {
        to.write_all(&bytes).expect("room");
    }
}

/// Gbit/s.
fn receive(mut from: impl Read, block: usize) -> f64 {
    let mut buffer = vec![0; block];
    let began_at = clock::now();
    let mut bytes = 0;
    loop {
        let count = from.read(&mut buffer).expect("bytes");
        if count == 0 {
            break;
        }
        bytes += count;
    }
    bytes as f64 * 8.0 / (clock::now() - began_at).nanos() as f64
}
