//! Datagrams over emulated paths: a dead version is left and comes back, what is seen of each
//! version, where a policy goes.
//!
//! Each test is one run that ends as soon as what it waits for has happened. [`accuracy`] has the
//! same runs with tight bounds.

mod accuracy;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;

use netaware_io::clock;
use netaware_lab::{Lab, Report, Side};
use netaware_netns::permitted;
use netaware_record::{IpVersion, Use};
use netaware_stream::datagram::{Event, SessionStatus, VersionStanding};
use netaware_stream::{DatagramOptions, DualDatagram, PeerId, Reason, Rules};
use netaware_testkit::figures::{is_exact, judge};
use netaware_testkit::{inconclusive, lab};
use netaware_units::{Mono, Span};

const PORT: u16 = 4447;
const HERE: PeerId = PeerId::CONNECTED;
/// Until an event that has to come, however busy the machine is.
const PATIENCE: Span = Span::from_secs(30);
/// An emulator that is later than this spoils what is asserted about time.
const LATE: Span = Span::from_millis(10);

/// A hop of these for IPv4 and IPv6, as scenarios have them.
fn lab(v4: &str, v6: &str) -> Lab {
    let text = format!("[[hop]]\nv4 = {{ {v4} }}\nv6 = {{ {v6} }}\n");
    lab::up(&text, 1)
}

/// Both versions up. This thread and everything that it and the sockets start stay off the
/// emulator's core, which leaves others next to nothing.
fn ends(lab: &Lab, options: DatagramOptions) -> (DualDatagram, DualDatagram) {
    lab::keep_off_emulator(lab).unwrap();
    let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let bound = lab.within(Side::B, || {
        lab::keep_off_emulator(lab)?;
        DualDatagram::bind_to(&any.map(|ip| SocketAddr::new(ip, PORT)), DatagramOptions::default())
    });
    let bound = bound.unwrap();
    let addresses = [IpVersion::V4, IpVersion::V6].map(|ip| SocketAddr::new(lab.address(Side::B, ip), PORT));
    let opener = lab.within(Side::A, || {
        lab::keep_off_emulator(lab)?;
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

/// Sends one of 500 bytes each 2 ms until `is_over`, which is asked before each; returns how many.
/// From within the namespace, in which a socket may have to be made once more.
fn send_until(lab: &Lab, opener: &DualDatagram, is_over: impl FnMut(Mono) -> bool + Send) -> u32 {
    lab.within(Side::A, || Ok(send_here(opener, is_over))).unwrap()
}

fn send_here(opener: &DualDatagram, mut is_over: impl FnMut(Mono) -> bool) -> u32 {
    let began_at = clock::now();
    let mut bytes = [0; 500];
    for n in 0.. {
        let due = began_at + Span::from_millis(2) * i64::from(n);
        clock::sleep_until(due);
        if is_over(clock::now()) {
            return n;
        }
        bytes[..4].copy_from_slice(&n.to_be_bytes());
        // What the system refuses while a version dies is part of what is lost.
        let _ = opener.send(&bytes);
    }
    0
}

/// What happened when a version died and came back.
struct Death {
    /// From the death until the other version was used.
    left_after: Span,
    lost: u32,
    /// The longest time without a datagram.
    gap: Span,
    report: Report,
}

/// IPv6, which is used, dies and comes back. Asserts what holds in every run.
fn die_and_come_back() -> Death {
    let path = "rate = \"40Mbit/s\", delay = \"20ms\"";
    let lab = lab(path, path);
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
    let (mut left_at, mut back_at, mut happened) = (None, None, Vec::new());
    let sent = send_until(&lab, &opener, |now| {
        happened.extend(opener.happened());
        if now - began_at > Span::from_secs(1) && died_at.is_none() {
            died_at = Some(now);
            nft(kill);
        }
        let left = Event::Turned { from: IpVersion::V6, to: IpVersion::V4, reason: Reason::Loss };
        left_at = left_at.or_else(|| happened.iter().find(|it| it.event == left).map(|it| it.at));
        if left_at.is_some_and(|at| now - at > Span::from_millis(500)) && healed_at.is_none() {
            healed_at = Some(now);
            nft("delete table ip6 dead");
        }
        let back = |from| happened.iter().find(|it| it.at > from && it.event == Event::Up(IpVersion::V6));
        back_at = back_at.or_else(|| Some(back(healed_at?)?.at));
        assert!(now - began_at < PATIENCE, "left {left_at:?}, back {back_at:?}: {happened:?}");
        back_at.is_some_and(|at| now - at > Span::from_millis(500))
    });
    let came = receiver.join().unwrap();
    let mut numbers: Vec<u32> = came.iter().map(|(_, n)| *n).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), came.len(), "none twice");
    assert_eq!(opener.status(HERE).unwrap().current, Some(IpVersion::V4), "no one asked to go back");
    let report = lab.end().unwrap();
    let left_after = left_at.unwrap() - died_at.unwrap();
    let gap = came.windows(2).map(|pair| pair[1].0 - pair[0].0).max().unwrap();
    let lost = sent - u32::try_from(came.len()).unwrap();
    println!("left after {left_after}, {lost} of {sent} lost, longest gap {gap}; {report}");
    Death { left_after, lost, gap, report }
}

impl Death {
    /// Whether one was lost each 2 ms until the version was left, and hardly any more.
    fn lost_few(&self) -> bool {
        i64::from(self.lost) <= self.left_after.nanos() / 2_000_000 + 60
    }
}

#[test]
fn a_dead_version_is_left_with_what_was_under_way_and_comes_back() {
    if !permitted() {
        return;
    }
    let death = die_and_come_back();
    if let Some(why) = death.report.why_invalid(LATE) {
        return inconclusive(why);
    }
    let Death { left_after, lost, gap, .. } = death;
    assert!(left_after <= Span::from_secs(3), "left after {left_after}");
    assert!(gap <= Span::from_secs(3) && death.lost_few(), "{lost} lost, left after {left_after}, gap {gap}");
}

/// What each end knows of both versions, of which IPv6 loses one in twenty.
struct BothVersions {
    sent: u32,
    there: SessionStatus,
    here: SessionStatus,
    report: Report,
}

fn see_both_versions(span: Span) -> BothVersions {
    let lab =
        lab("rate = \"40Mbit/s\", delay = \"10ms\"", "rate = \"40Mbit/s\", delay = \"30ms\", loss = 0.05");
    let (opener, bound) = ends(&lab, DatagramOptions::default());
    let receiver = receive_all(bound.clone());
    let began_at = clock::now();
    let sent = send_until(&lab, &opener, |now| now - began_at > span);
    // Until the last ones have been told of.
    clock::sleep(Span::from_millis(500));
    let [there, here] = [&bound, &opener].map(|end| end.status(HERE).unwrap());
    receiver.join().unwrap();
    let report = lab.end().unwrap();
    println!("{here:?}; {there:?}; {report}");
    BothVersions { sent, there, here, report }
}

impl BothVersions {
    /// The share of IPv6 that was lost, as the sender knows it and as the receiver does.
    fn lost(&self) -> [f64; 2] {
        let share = |lost: u64, of: u64| lost as f64 / (lost + of) as f64;
        let (here, there) = (self.here.v6, self.there.v6);
        [share(here.lost.unwrap(), here.confirmed), share(there.missing, there.received)]
    }

    /// How much longer than the truth both round trips are.
    fn excess(&self) -> [Span; 2] {
        let excess = |measured: Option<Span>, ms| measured.unwrap() - Span::from_millis(ms);
        [excess(self.here.v4.round_trip, 20), excess(self.here.v6.round_trip, 60)]
    }
}

#[test]
fn loss_and_round_trips_of_each_version_are_those_of_the_path() {
    if !permitted() {
        return;
    }
    let seen = see_both_versions(Span::from_secs(5));
    assert_eq!((seen.here.current, seen.there.current), (Some(IpVersion::V6), Some(IpVersion::V6)));
    assert!(seen.here.v6.sent >= u64::from(seen.sent), "{} over IPv6", seen.here.v6.sent);
    let excess = seen.excess();
    assert!(excess.iter().all(|it| *it >= Span::ZERO), "a round trip shorter than the path: {excess:?}");
    if !is_exact(&seen.report) {
        return;
    }
    assert_eq!(seen.here.v4.lost, Some(0), "that version loses nothing");
    // One in twenty of 2,500 is lost with a standard deviation of 0.4 per cent.
    assert!(seen.lost().iter().all(|lost| (lost - 0.05).abs() < 0.02), "{:?}", seen.lost());
    let slow = excess.iter().any(|it| *it >= Span::from_millis(40));
    judge(&slow.then(|| format!("{excess:?}")).into_iter().collect::<Vec<_>>(), &seen.report, LATE);
}

/// Sends under the rules for media, over IPv6 which loses one in twenty, until the policy has left
/// it; returns how long that took.
fn leave_what_loses() -> Span {
    let lab =
        lab("rate = \"40Mbit/s\", delay = \"10ms\"", "rate = \"40Mbit/s\", delay = \"10ms\", loss = 0.05");
    let options = DatagramOptions { policy: Some(Rules::of(Use::Media)), ..DatagramOptions::default() };
    let (opener, bound) = ends(&lab, options);
    let receiver = receive_all(bound.clone());
    let began_at = clock::now();
    let mut decisions = Vec::new();
    send_until(&lab, &opener, |now| {
        decisions.extend(opener.decisions());
        assert!(now - began_at < PATIENCE, "it is not left: {:?}", opener.status(HERE));
        decisions.first().is_some_and(|(_, decision)| now - decision.at > Span::from_secs(1))
    });
    receiver.join().unwrap();
    let current = [&opener, &bound].map(|end| end.status(HERE).unwrap().current);
    println!("{decisions:?} since {began_at:?}; {}", lab.end().unwrap());
    assert_eq!((decisions.len(), current), (1, [Some(IpVersion::V4); 2]), "{decisions:?}");
    assert_eq!((decisions[0].1.to, decisions[0].1.not_done), (IpVersion::V4, None));
    assert!(decisions[0].1.present > decisions[0].1.other, "{decisions:?}");
    decisions[0].1.at - began_at
}

#[test]
fn a_policy_leaves_the_version_that_loses() {
    if permitted() {
        leave_what_loses();
    }
}
