//! Datagrams over emulated paths: how soon a dead version is left, what is seen of each version, where a policy goes.
//! Run one at a time: `cargo xtask netns`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;

use netaware_io::clock;
use netaware_lab::{Lab, Side};
use netaware_netns::{in_one_of, permitted};
use netaware_record::{IpVersion, Use};
use netaware_stream::datagram::{Event, VersionStanding, VersionStatus};
use netaware_stream::{DatagramOptions, DualDatagram, PeerId, Reason, Rules};
use netaware_testkit::lab;
use netaware_units::{Mono, Span};

const PORT: u16 = 4447;
/// Before a busy machine is a failure.
const RUNS: usize = 4;
const HERE: PeerId = PeerId::CONNECTED;

/// A hop of these for IPv4 and IPv6, as scenarios have them.
fn lab(v4: &str, v6: &str) -> Lab {
    let text = format!("[[hop]]\nv4 = {{ {v4} }}\nv6 = {{ {v6} }}\n");
    lab::up(&text, 1)
}

/// Both versions up. This thread and everything that it and the sockets start stay off the emulator's core, which leaves others
/// next to nothing.
fn ends(lab: &Lab, options: DatagramOptions) -> (DualDatagram, DualDatagram) {
    let core = lab.state().core;
    let stay_off = || {
        let own = netaware_io::thread::allowed_cores().into_iter().find(|it| Some(*it) != core);
        own.map_or(Ok(()), netaware_io::thread::pin)
    };
    stay_off().unwrap();
    let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let bound = lab.within(Side::B, || {
        stay_off()?;
        DualDatagram::bind_to(&any.map(|ip| SocketAddr::new(ip, PORT)), DatagramOptions::default())
    });
    let bound = bound.unwrap();
    let addresses = [IpVersion::V4, IpVersion::V6].map(|ip| SocketAddr::new(lab.address(Side::B, ip), PORT));
    let opener = lab.within(Side::A, || {
        stay_off()?;
        DualDatagram::connect_to("b", &addresses, options).map_err(std::io::Error::other)
    });
    let opener = opener.unwrap();
    let up = |end: &DualDatagram| {
        end.status(HERE).is_some_and(|it| [it.v4, it.v6].iter().all(|it| it.standing == VersionStanding::Up))
    };
    let deadline = clock::now() + Span::from_secs(10);
    while !(up(&opener) && up(&bound)) {
        assert!(clock::now() < deadline, "both versions come up");
        clock::sleep(Span::from_millis(5));
    }
    (opener, bound)
}

/// When each number came.
fn receive_all(bound: DualDatagram) -> thread::JoinHandle<Vec<(Mono, u32)>> {
    thread::spawn(move || {
        let mut came = Vec::new();
        let mut buffer = [0; 2000];
        while let Ok((_, _)) = bound.recv_from_until(&mut buffer, Some(clock::now() + Span::from_secs(2))) {
            came.push((clock::now(), u32::from_be_bytes([buffer[0], buffer[1], buffer[2], buffer[3]])));
        }
        came
    })
}

/// One of 500 bytes each 2 ms; how many. From within the namespace, in which a socket may have to be made anew.
fn send_for(lab: &Lab, opener: &DualDatagram, span: Span, meanwhile: impl FnMut(Mono) + Send) -> u32 {
    lab.within(Side::A, || Ok(send_here(opener, span, meanwhile))).unwrap()
}

fn send_here(opener: &DualDatagram, span: Span, mut meanwhile: impl FnMut(Mono)) -> u32 {
    let began_at = clock::now();
    let mut bytes = [0; 500];
    for n in 0.. {
        let due = began_at + Span::from_millis(2) * i64::from(n);
        if due - began_at >= span {
            return n;
        }
        clock::sleep_until(due);
        meanwhile(due);
        bytes[..4].copy_from_slice(&n.to_be_bytes());
        // What the system refuses while a version dies is part of what is lost.
        let _ = opener.send(&bytes);
    }
    0
}

#[test]
fn a_dead_version_is_left_within_a_second_and_comes_back() {
    if permitted() {
        in_one_of(RUNS, die_and_come_back);
    }
}

fn die_and_come_back() -> Result<(), String> {
    let lab = lab("rate = \"40Mbit/s\", delay = \"20ms\"", "rate = \"40Mbit/s\", delay = \"20ms\"");
    let (opener, bound) = ends(&lab, DatagramOptions::default());
    assert_eq!(opener.status(HERE).unwrap().current, Some(IpVersion::V6));
    let nft = |words: &str| {
        for side in [Side::A, Side::B] {
            assert!(lab.command(side, "nft").arg(words).status().unwrap().success());
        }
    };
    let kill = "table ip6 dead {\nchain in {\ntype filter hook prerouting priority 0;\ndrop\n}\n}\n";
    let receiver = receive_all(bound.clone());
    let (began_at, mut died_at, mut healed_at) = (clock::now(), None, None);
    let sent = send_for(&lab, &opener, Span::from_secs(14), |now| {
        if now - began_at > Span::from_secs(3) && died_at.is_none() {
            died_at = Some(now);
            nft(kill);
        }
        if now - began_at > Span::from_secs(7) && healed_at.is_none() {
            healed_at = Some(now);
            nft("delete table ip6 dead");
        }
    });
    let came = receiver.join().unwrap();
    let (died_at, healed_at) = (died_at.unwrap(), healed_at.unwrap());
    let happened = opener.happened();
    let left = happened.iter().find(|it| {
        it.event == Event::Turned { from: IpVersion::V6, to: IpVersion::V4, reason: Reason::Loss }
    });
    let took = left.unwrap().at - died_at;
    let gaps = came.windows(2).map(|pair| pair[1].0 - pair[0].0);
    let gap = gaps.max().unwrap();
    let lost = sent - u32::try_from(came.len()).unwrap();
    println!("left after {took}, {lost} of {sent} lost, longest gap {gap}");
    let mut numbers: Vec<u32> = came.iter().map(|(_, n)| *n).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), came.len(), "none twice");
    let back = happened.iter().find(|it| it.at > healed_at && it.event == Event::Up(IpVersion::V6));
    println!("back after {}", back.unwrap().at - healed_at);
    assert_eq!(opener.status(HERE).unwrap().current, Some(IpVersion::V4), "nobody asked to go back");
    lab.end().unwrap();
    // One lost each 2 ms for as long as it took, and hardly any more.
    let few = i64::from(lost) <= took.nanos() / 2_000_000 + 60;
    if took <= Span::from_secs(1) && gap <= Span::from_millis(1200) && few {
        Ok(())
    } else {
        Err(format!("left after {took}, {lost} of {sent} lost, longest gap {gap}"))
    }
}

#[test]
fn loss_and_round_trips_of_each_version_are_those_of_the_path() {
    if permitted() {
        in_one_of(RUNS, see_both_versions);
    }
}

fn see_both_versions() -> Result<(), String> {
    let lab =
        lab("rate = \"40Mbit/s\", delay = \"10ms\"", "rate = \"40Mbit/s\", delay = \"30ms\", loss = 0.05");
    let (opener, bound) = ends(&lab, DatagramOptions::default());
    let receiver = receive_all(bound.clone());
    send_for(&lab, &opener, Span::from_secs(12), |_| {});
    let [there, here] = [&bound, &opener].map(|end| end.status(HERE).unwrap());
    receiver.join().unwrap();
    println!("{here:?}");
    lab.end().unwrap();
    let right = |version: VersionStatus, rtt: i64| {
        (version.round_trip.unwrap() - Span::from_millis(rtt)).abs() < Span::from_millis(12)
    };
    let share = |lost: u64, of: u64| lost as f64 / (lost + of) as f64;
    let told = share(here.v6.lost, here.v6.confirmed);
    let seen = share(there.v6.missing, there.v6.received);
    let lost = (told - 0.05).abs() < 0.015 && (seen - 0.05).abs() < 0.015 && here.v4.lost == 0;
    if right(here.v4, 20) && right(here.v6, 60) && lost {
        Ok(())
    } else {
        Err(format!("lost {told} {seen}; {here:?}"))
    }
}

#[test]
fn a_policy_leaves_the_version_that_loses() {
    if permitted() {
        in_one_of(RUNS, leave_what_loses);
    }
}

fn leave_what_loses() -> Result<(), String> {
    let lab =
        lab("rate = \"40Mbit/s\", delay = \"10ms\"", "rate = \"40Mbit/s\", delay = \"10ms\", loss = 0.05");
    let options = DatagramOptions { policy: Some(Rules::of(Use::Media)), ..DatagramOptions::default() };
    let (opener, bound) = ends(&lab, options);
    let receiver = receive_all(bound.clone());
    let began_at = clock::now();
    send_for(&lab, &opener, Span::from_secs(25), |_| {});
    receiver.join().unwrap();
    let decisions = opener.decisions();
    println!("{decisions:?} since {began_at:?}");
    let current = [&opener, &bound].map(|end| end.status(HERE).unwrap().current);
    lab.end().unwrap();
    if decisions.len() == 1 && current == [Some(IpVersion::V4); 2] {
        Ok(())
    } else {
        Err(format!("{current:?} by {decisions:?}"))
    }
}
