//! Streams over emulated paths: what a switch costs a reader, how soon a dead version is left, where a policy goes.
//! Run one at a time: `cargo xtask netns`.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::thread;

use netaware_io::clock;
use netaware_lab::{Lab, Side};
use netaware_netns::{in_one_of, permitted};
use netaware_record::{IpVersion, Use};
use netaware_stream::{DualListener, DualStream, Event, Loss, Options, Rules};
use netaware_testkit::lab;
use netaware_units::{Mono, Span};

const PORT: u16 = 4446;
/// Before a busy machine is a failure.
const RUNS: usize = 4;

/// IPv4 and IPv6 of these rates in Mbit/s and delays in ms.
fn lab(v4: (u32, u32), v6: (u32, u32)) -> Lab {
    let version = |(rate, delay)| format!("{{ rate = \"{rate}Mbit/s\", delay = \"{delay}ms\" }}");
    let text = format!("[[hop]]\nv4 = {}\nv6 = {}\n", version(v4), version(v6));
    lab::up(&text, 1)
}

struct Ends {
    opener: DualStream,
    acceptor: DualStream,
    _listener: DualListener,
}

/// Both connections up. Everything that streams start stays off the emulator's core.
fn ends(lab: &Lab, options: Options) -> Ends {
    let core = lab.state().core;
    let stay_off = || {
        let own = netaware_io::thread::allowed_cores().into_iter().find(|it| Some(*it) != core);
        own.map_or(Ok(()), netaware_io::thread::pin)
    };
    let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let listener = lab.within(Side::B, || {
        stay_off()?;
        DualListener::bind_to(&any.map(|ip| SocketAddr::new(ip, PORT)), Options::default())
    });
    let listener = listener.unwrap();
    let addresses = [IpVersion::V4, IpVersion::V6].map(|ip| SocketAddr::new(lab.address(Side::B, ip), PORT));
    let opener = lab.within(Side::A, || {
        stay_off()?;
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
    /// The longest wait that ended between these.
    fn longest(&self, from: Mono, until: Mono) -> Span {
        let within = self.waits.iter().filter(|(at, _)| (from..until).contains(at));
        within.map(|(_, wait)| *wait).max().unwrap_or(Span::ZERO)
    }
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

/// Sends until then and calls `meanwhile` before each block; how many bytes that were.
fn send_until(stream: &DualStream, until: Mono, mut meanwhile: impl FnMut(Mono)) -> u64 {
    let (mut sent, mut block) = (0, Vec::new());
    while clock::now() < until {
        meanwhile(clock::now());
        block.clear();
        block.extend((sent..sent + 16_384).map(byte));
        (&*stream).write_all(&block).unwrap();
        sent += 16_384;
    }
    stream.shutdown(Shutdown::Write);
    sent
}

/// Sends for so long while `meanwhile` does something to it; what the reader saw, and that all of it came.
fn transfer(ends: &Ends, span: Span, meanwhile: impl FnMut(Mono)) -> Read {
    let acceptor = ends.acceptor.clone();
    let reader = thread::spawn(move || read_all(&acceptor));
    let sent = send_until(&ends.opener, clock::now() + span, meanwhile);
    let read = reader.join().unwrap();
    assert_eq!((read.bytes, read.wrong), (sent, None));
    read
}

#[test]
fn a_requested_switch_stalls_the_reader_for_less_than_one_and_a_half_round_trips() {
    if permitted() {
        in_one_of(RUNS, switch_five_times);
    }
}

fn switch_five_times() -> Result<(), String> {
    let lab = lab((40, 20), (40, 20));
    let ends = ends(&lab, Options { window: 1 << 20, ..Options::default() });
    let mut wished: Vec<Mono> = Vec::new();
    let began_at = clock::now();
    let read = transfer(&ends, Span::from_secs(8), |now| {
        let due = began_at + Span::from_secs(2) + Span::from_secs(1) * wished.len() as i64;
        if now >= due && wished.len() < 5 {
            let to = ends.opener.status().current.unwrap().other();
            ends.opener.switch(to).unwrap();
            wished.push(now);
        }
    });
    let turned = ends.opener.happened().iter().filter(|it| matches!(it.event, Event::Turned { .. })).count();
    assert_eq!(turned, 5);
    let mut stalls: Vec<Span> =
        wished.iter().map(|at| read.longest(*at, *at + Span::from_millis(800))).collect();
    stalls.sort_unstable();
    println!("stalls at a requested switch: {stalls:?}");
    lab.end().unwrap();
    if stalls[2] <= Span::from_millis(60) { Ok(()) } else { Err(format!("stalls of {stalls:?}")) }
}

/// How long a reader gets nothing when a version dies in both directions, one a little after the other.
fn stall_of_a_death() -> Span {
    let lab = lab((40, 20), (40, 20));
    let ends = ends(&lab, Options { window: 1 << 20, preferred: IpVersion::V6, ..Options::default() });
    let kill = |side| {
        let rules = "table ip6 dead {\nchain in {\ntype filter hook prerouting priority 0;\ndrop\n}\n}\n";
        let status = lab.command(side, "nft").arg(rules).status().unwrap();
        assert!(status.success());
    };
    let (began_at, mut died_at) = (clock::now(), None);
    let read = transfer(&ends, Span::from_secs(6), |now| {
        if now - began_at > Span::from_secs(2) && died_at.is_none() {
            died_at = Some(now);
            [Side::A, Side::B].into_iter().for_each(kill);
        }
    });
    let died_at = died_at.unwrap();
    let down = |event: &Event| {
        matches!(event, Event::Down { ip: IpVersion::V6, why: Loss::Silent | Loss::PeerSaid, .. })
    };
    assert!(ends.opener.happened().iter().any(|it| down(&it.event)));
    lab.end().unwrap();
    read.longest(died_at, died_at + Span::from_secs(4))
}

#[test]
fn a_dead_version_is_left_within_a_second_and_loses_no_byte() {
    if !permitted() {
        return;
    }
    in_one_of(RUNS, || {
        let stall = stall_of_a_death();
        println!("stall when a version died: {stall}");
        if stall <= Span::from_secs(1) { Ok(()) } else { Err(format!("a stall of {stall}")) }
    });
}

#[test]
fn a_policy_moves_to_the_version_of_twice_the_rate_within_ten_seconds() {
    if permitted() {
        in_one_of(RUNS, move_to_twice_the_rate);
    }
}

fn move_to_twice_the_rate() -> Result<(), String> {
    let lab = lab((20, 15), (40, 15));
    let options = Options {
        window: 1 << 20,
        preferred: IpVersion::V4,
        policy: Some(Rules::of(Use::Bulk)),
        ..Options::default()
    };
    let ends = ends(&lab, options);
    let began_at = clock::now();
    transfer(&ends, Span::from_secs(20), |_| {});
    let decisions = ends.opener.decisions();
    println!("decisions: {decisions:?}");
    let turnings = ends.opener.happened().into_iter().filter(|it| matches!(it.event, Event::Turning { .. }));
    let turnings: Vec<_> = turnings.collect();
    lab.end().unwrap();
    match turnings[..] {
        [turning] if turning.at - began_at <= Span::from_secs(10) => {
            assert_eq!(ends.opener.status().current, Some(IpVersion::V6));
            Ok(())
        }
        _ => Err(format!("{turnings:?} since {began_at:?}")),
    }
}
