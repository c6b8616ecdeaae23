//! Where the policy for media goes over paths that lose: the version that is not used is judged by packets that are sent to show its
//! loss. Run one at a time: `cargo xtask netns`.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;

use netaware_io::clock;
use netaware_lab::{Lab, Side};
use netaware_netns::{in_one_of, permitted};
use netaware_record::{IpVersion, Use};
use netaware_stream::{Decision, DualListener, DualStream, Event, Options, Reason, Rules};
use netaware_testkit::lab;
use netaware_units::Span;

const PORT: u16 = 4453;
/// Before a busy machine is a failure.
const RUNS: usize = 3;

/// IPv4 and IPv6 lose these shares.
fn lab(v4: &str, v6: &str) -> Lab {
    let version = |loss| format!("{{ rate = \"50Mbit/s\", delay = \"10ms\", loss = \"{loss}\" }}");
    let text = format!("[[hop]]\nv4 = {}\nv6 = {}\n", version(v4), version(v6));
    lab::up(&text, 1)
}

/// About two Mbit/s for so long, from IPv4 on: what was decided, and where it went for that.
fn media(lab: &Lab, span: Span) -> (Vec<Decision>, Vec<IpVersion>) {
    let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let bind = || DualListener::bind_to(&any.map(|ip| SocketAddr::new(ip, PORT)), Options::default());
    let listener = lab.within(Side::B, bind).unwrap();
    let addresses = [IpVersion::V4, IpVersion::V6].map(|ip| SocketAddr::new(lab.address(Side::B, ip), PORT));
    let options = Options { preferred: IpVersion::V4, ..Options::default() };
    let connect = || DualStream::connect_to("b", &addresses, options).map_err(std::io::Error::other);
    let opener = lab.within(Side::A, connect).unwrap();
    let (acceptor, _) = listener.accept().unwrap();
    // Over paths that lose either version may come up first.
    let deadline = clock::now() + Span::from_secs(20);
    while opener.status().v4.is_none() || opener.status().v6.is_none() {
        assert!(clock::now() < deadline, "both connections come up");
        clock::sleep(Span::from_millis(10));
    }
    while opener.status().current != Some(IpVersion::V4) {
        assert!(clock::now() < deadline, "it goes over IPv4");
        let _ = opener.switch(IpVersion::V4);
        clock::sleep(Span::from_millis(100));
    }
    opener.happened();
    opener.set_policy(Some(Rules { prefer: None, ..Rules::of(Use::Media) }));
    let reader = thread::spawn(move || while acceptor.recv(&mut [0; 8_000]).unwrap() > 0 {});
    let began_at = clock::now();
    let mut next = began_at;
    while next - began_at < span {
        (&opener).write_all(&[7; 2_500]).unwrap();
        next += Span::from_millis(10);
        clock::sleep_until(next);
    }
    let happened = opener.happened().into_iter();
    let went = happened.filter_map(|it| match it.event {
        Event::Turning { to, reason: Reason::OwnWish, .. } => Some(to),
        _ => None,
    });
    let told = (opener.decisions(), went.collect());
    opener.shutdown(std::net::Shutdown::Write);
    reader.join().unwrap();
    told
}

#[test]
fn media_stays_away_from_a_version_that_loses_more() {
    if !permitted() {
        return;
    }
    in_one_of(RUNS, || {
        let lab = lab("3%", "10%");
        let (decisions, went) = media(&lab, Span::from_secs(45));
        lab.end().unwrap();
        let stays = decisions.is_empty() && went.is_empty();
        if stays { Ok(()) } else { Err(format!("{decisions:?} {went:?}")) }
    });
}

#[test]
fn media_goes_to_a_version_that_loses_less() {
    if !permitted() {
        return;
    }
    in_one_of(RUNS, || {
        let lab = lab("5%", "0.05%");
        let (decisions, went) = media(&lab, Span::from_secs(60));
        lab.end().unwrap();
        println!("{decisions:?}");
        match decisions[..] {
            [decision, ..]
                if went == [IpVersion::V6]
                    && (0.02..0.09).contains(&decision.present)
                    && decision.other < 0.01 =>
            {
                Ok(())
            }
            _ => Err(format!("{decisions:?} {went:?}")),
        }
    });
}
