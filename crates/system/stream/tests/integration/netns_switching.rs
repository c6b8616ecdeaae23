//! Streams over emulated paths: how long a reader waits when the stream is switched and when a
//! version dies.
//!
//! What holds in every run is asserted here in one short run, with bounds that only a stream which
//! waits for TCP to give up would exceed. [`accuracy`] has the same runs with the bounds that are
//! wanted. Where a policy goes is held on virtual time (`steer::simulated`) and over kernel shapers
//! (`netns_policy`).

mod accuracy;

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::thread;

use netaware_io::clock;
use netaware_lab::{Lab, Side};
use netaware_netns::permitted;
use netaware_record::IpVersion;
use netaware_stream::{DualListener, DualStream, Event, Loss, Options};
use netaware_testkit::lab;
use netaware_units::{Mono, Span};

const PORT: u16 = 4446;
/// Both versions of 40 Mbit/s and 20 ms each way.
const PATH: &str = "[[hop]]\nrate = \"40Mbit/s\"\ndelay = \"20ms\"\n";
/// A stream that does not notice what happened waits for TCP to give up, which takes a quarter of
/// an hour.
const MAX_STALL: Span = Span::from_secs(3);

struct Ends {
    opener: DualStream,
    acceptor: DualStream,
    _listener: DualListener,
}

/// Both connections up. Everything that streams start stays off the emulator's core.
fn ends(lab: &Lab, options: Options) -> Ends {
    let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let listener = lab.within(Side::B, || {
        lab::keep_off_emulator(lab)?;
        DualListener::bind_to(&any.map(|ip| SocketAddr::new(ip, PORT)), Options::default())
    });
    let listener = listener.unwrap();
    let addresses = [IpVersion::V4, IpVersion::V6].map(|ip| SocketAddr::new(lab.address(Side::B, ip), PORT));
    let opener = lab.within(Side::A, || {
        lab::keep_off_emulator(lab)?;
        DualStream::connect_to("b", &addresses, options).map_err(std::io::Error::other)
    });
    let opener = opener.unwrap();
    let (acceptor, _) = listener.accept().unwrap();
    let deadline = clock::now() + Span::from_secs(5);
    while [&opener, &acceptor].iter().any(|end| end.status().v4.is_none() || end.status().v6.is_none()) {
        assert!(clock::now() < deadline, "both connections come up");
        clock::sleep_until(clock::now() + Span::from_millis(5));
    }
    Ends { opener, acceptor, _listener: listener }
}

/// What a reader saw.
struct Read {
    bytes: u64,
    /// When it had something, and how long it had waited for that.
    waits: Vec<(Mono, Span)>,
    /// The first byte that is not what was sent there.
    wrong: Option<u64>,
}

impl Read {
    /// The longest wait of which any part lies between these times, also if it ended later.
    ///
    /// # Panics
    /// If the reader had nothing after `from`: how long it waited is unknown then.
    fn longest(&self, from: Mono, until: Mono) -> Span {
        let within = self.waits.iter().filter(|(at, wait)| *at > from && *at - *wait < until);
        within.map(|(_, wait)| *wait).max().expect("something was read after that")
    }
}

#[test]
fn a_stall_that_ends_after_the_window_is_seen_in_it() {
    let ms = |ms| Mono(0) + Span::from_millis(ms);
    let waits = [(10, 5), (900, 890), (905, 5)].map(|(at, wait)| (ms(at), Span::from_millis(wait)));
    let read = Read { bytes: 0, waits: waits.to_vec(), wrong: None };
    assert_eq!(read.longest(ms(20), ms(100)), Span::from_millis(890));
    assert_eq!(read.longest(ms(5), ms(8)), Span::from_millis(5));
    assert_eq!(read.longest(ms(900), ms(2_000)), Span::from_millis(5));
}

fn byte(n: u64) -> u8 {
    (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn read_all(stream: &DualStream) -> Read {
    let mut read = Read { bytes: 0, waits: Vec::new(), wrong: None };
    let mut buffer = vec![0; 64 * 1024];
    let mut last = clock::now();
    loop {
        let count = stream.recv(&mut buffer).unwrap();
        if count == 0 {
            return read;
        }
        let now = clock::now();
        read.waits.push((now, now - last));
        last = now;
        let wrong = (read.bytes..).zip(&buffer[..count]).find(|(n, got)| byte(*n) != **got);
        read.wrong = read.wrong.or(wrong.map(|(n, _)| n));
        read.bytes += count as u64;
    }
}

/// Sends until `is_over`, which is asked before each block; returns how many bytes that were.
fn send_until(stream: &DualStream, mut is_over: impl FnMut(Mono) -> bool) -> u64 {
    let (mut sent, mut block) = (0, Vec::new());
    while !is_over(clock::now()) {
        block.clear();
        block.extend((sent..sent + 16_384).map(byte));
        (&*stream).write_all(&block).unwrap();
        sent += 16_384;
    }
    stream.shutdown(Shutdown::Write);
    sent
}

/// Sends until `is_over`, which may do something to the stream; returns what the reader saw, and
/// asserts that all of it came.
fn transfer(ends: &Ends, is_over: impl FnMut(Mono) -> bool) -> Read {
    let acceptor = ends.acceptor.clone();
    let reader = thread::spawn(move || read_all(&acceptor));
    let sent = send_until(&ends.opener, is_over);
    let read = reader.join().unwrap();
    assert_eq!((read.bytes, read.wrong), (sent, None));
    read
}

/// How long the reader waited at each of five requested switches, the shortest first.
fn stalls_of_five_switches() -> [Span; 5] {
    const SWITCHES: usize = 5;
    let lab = lab::up(PATH, 1);
    let ends = ends(&lab, Options { window: 1 << 20, ..Options::default() });
    let mut wished: Vec<Mono> = Vec::new();
    let began_at = clock::now();
    let read = transfer(&ends, |now| {
        let due = began_at + Span::from_secs(1) + Span::from_millis(700) * wished.len() as i64;
        if now >= due && wished.len() < SWITCHES {
            let to = ends.opener.status().current.unwrap().other();
            ends.opener.switch(to).unwrap();
            wished.push(now);
        }
        now >= began_at + Span::from_secs(1) + Span::from_millis(700) * SWITCHES as i64
    });
    let turned = ends.opener.happened().iter().filter(|it| matches!(it.event, Event::Turned { .. })).count();
    assert_eq!((wished.len(), turned), (SWITCHES, SWITCHES));
    let mut stalls: [Span; SWITCHES] =
        std::array::from_fn(|n| read.longest(wished[n], wished[n] + Span::from_millis(600)));
    stalls.sort_unstable();
    println!("stalls at a requested switch: {stalls:?}; {}", lab.end().unwrap());
    stalls
}

#[test]
fn each_of_five_requested_switches_happens_and_loses_no_byte() {
    if permitted() {
        let longest = stalls_of_five_switches()[4];
        assert!(longest <= MAX_STALL, "a stall of {longest}");
    }
}

/// How long a reader gets nothing when a version dies in both directions, one a little after the
/// other.
fn stall_of_a_death() -> Span {
    let lab = lab::up(PATH, 1);
    let ends = ends(&lab, Options { window: 1 << 20, preferred: IpVersion::V6, ..Options::default() });
    let kill = |side| {
        let rules = "table ip6 dead {\nchain in {\ntype filter hook prerouting priority 0;\ndrop\n}\n}\n";
        let status = lab.command(side, "nft").arg(rules).status().unwrap();
        assert!(status.success());
    };
    let (began_at, mut died_at) = (clock::now(), None);
    let read = transfer(&ends, |now| {
        if now - began_at > Span::from_secs(1) && died_at.is_none() {
            assert_eq!(ends.opener.status().current, Some(IpVersion::V6), "the preferred version is used");
            died_at = Some(now);
            [Side::A, Side::B].into_iter().for_each(kill);
        }
        died_at.is_some_and(|at| now - at > Span::from_secs(2))
    });
    let died_at = died_at.unwrap();
    let down = |event: &Event| {
        matches!(event, Event::Down { ip: IpVersion::V6, why: Loss::Silent | Loss::PeerSaid, .. })
    };
    assert!(ends.opener.happened().iter().any(|it| down(&it.event)));
    let stall = read.longest(died_at, died_at + Span::from_secs(2));
    println!("stall when a version died: {stall}; {}", lab.end().unwrap());
    stall
}

#[test]
fn a_dead_version_is_left_within_three_seconds_and_loses_no_byte() {
    if permitted() {
        let stall = stall_of_a_death();
        assert!(stall <= MAX_STALL, "a stall of {stall}");
    }
}
