//! Ten thousand strangers with random bytes: the responder stays alive, and its memory flat.
//!
//! An executable of its own, because memory is counted per process.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use netaware_server::{Config, Server};
use netaware_wire::control::{ClientMessage, ServerMessage};
use netaware_wire::datagram::{Header, Kind};
use netaware_wire::preface::{PREFACE_LEN, Preface, Role};
use netaware_wire::{Token, frame};

/// Steele and Vigna's SplitMix64: reproducible, unlike the rest of this test.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        (0..self.next() % most).map(|_| self.next() as u8).collect()
    }
}

/// Random, but often right at the start, so that deeper code is reached.
fn tcp_noise(noise: &mut Noise) -> Vec<u8> {
    let mut bytes = match noise.next() % 8 {
        0 => Vec::new(),
        1 => b"GET / HTTP/1.1\r\n".to_vec(),
        2 => Preface::new(Role::Data).emit().to_vec(),
        3 => Preface::new(Role::Echo).emit().to_vec(),
        4 => Preface { version: noise.next() as u16, role: Role::Control }.emit().to_vec(),
        5 => Preface::new(Role::Control).emit().to_vec(),
        _ => [Preface::new(Role::Control).emit().to_vec(), frame::emit(&hello()).unwrap()].concat(),
    };
    if noise.next().is_multiple_of(2) {
        let body = noise.bytes(300);
        bytes.extend((body.len() as u32).to_be_bytes());
        bytes.extend(body);
    }
    bytes.extend(noise.bytes(300));
    bytes
}

fn udp_noise(noise: &mut Noise) -> Vec<u8> {
    let mut bytes = noise.bytes(200);
    if bytes.len() >= 24 && !noise.next().is_multiple_of(4) {
        Header { kind: Kind::Knock, flow: 0, seq: noise.next() % 4, sent_at: 0 }.emit(&mut bytes);
        bytes[2] = (noise.next() % 10) as u8;
    }
    bytes
}

fn hello() -> ClientMessage {
    ClientMessage::Hello { version: 1, software: "noise".into(), nonce: Token([1; 16]) }
}

fn ten_thousand_each(to: SocketAddr, noise: &mut Noise) {
    let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut held = std::collections::VecDeque::new();
    let mut connected = 0;
    for n in 0..10_000 {
        udp.send_to(&udp_noise(noise), to).unwrap();
        let Ok(mut stream) = TcpStream::connect(to) else { continue };
        connected += 1;
        // Refused half-way is as good as taken.
        let _ = stream.write_all(&tcp_noise(noise));
        held.push_back(stream);
        // Some linger, some vanish at once.
        while held.len() > n % 64 {
            held.pop_front();
        }
    }
    assert!(connected >= 9_000, "only {connected} of 10,000 connections were taken");
}

fn is_welcome(to: SocketAddr) -> bool {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(&Preface::new(Role::Control).emit()).unwrap();
    stream.write_all(&frame::emit(&hello()).unwrap()).unwrap();
    let mut start = [0; PREFACE_LEN + 4];
    stream.read_exact(&mut start).unwrap();
    let mut body = vec![0; frame::body_len(*start[PREFACE_LEN..].first_chunk().unwrap()).unwrap()];
    stream.read_exact(&mut body).unwrap();
    matches!(frame::parse(&body), Ok(ServerMessage::Welcome { .. }))
}

/// Resident memory in KiB; absent outside Linux.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?.parse().ok()
}

#[test]
fn ten_thousand_random_connections_and_datagrams_leave_it_alive_and_its_memory_flat() {
    let server = Server::bind(Config { port: 0, ..Config::default() }).unwrap();
    let to = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), server.addresses()[0].port());
    let stopper = server.stopper();
    let thread = std::thread::spawn(move || server.run());
    let mut noise = Noise(1);
    // The first round fills allocators and caches, the second must not need more.
    ten_thousand_each(to, &mut noise);
    assert!(is_welcome(to));
    let before = resident();
    ten_thousand_each(to, &mut noise);
    assert!(is_welcome(to));
    let memory = before.zip(resident());
    assert_eq!(memory.is_some(), cfg!(target_os = "linux"), "the resident memory is unknown");
    if let Some((before, after)) = memory {
        assert!(after < before + 4096, "resident memory grew from {before} to {after} KiB");
    }
    stopper.stop();
    thread.join().expect("no panic").expect("it ran");
}
