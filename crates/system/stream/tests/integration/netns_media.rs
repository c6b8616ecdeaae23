//! What the policy for media sees of paths that lose, by the kernel's own counts: the version that
//! is not used is judged by packets that are sent to show its loss.
//!
//! Where the policy goes for that is held on virtual time (`steer::simulated`), and in real time by
//! [`accuracy`].

mod accuracy;

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread;

use netaware_io::clock;
use netaware_lab::{Lab, Side};
use netaware_netns::permitted;
use netaware_record::{IpVersion, Use};
use netaware_stream::{Callback, Choice, DualListener, DualStream, Evidence, Options, Rules};
use netaware_testkit::lab;
use netaware_units::{Mono, Span};

const PORT: u16 = 4453;

/// IPv4 and IPv6 lose these shares.
fn lab(v4: &str, v6: &str) -> Lab {
    let version = |loss| format!("{{ rate = \"50Mbit/s\", delay = \"10ms\", loss = \"{loss}\" }}");
    let text = format!("[[hop]]\nv4 = {}\nv6 = {}\n", version(v4), version(v6));
    lab::up(&text, 1)
}

/// Sends about two Mbit/s over IPv4 under the rules for media until `is_over`, which is asked
/// before each block.
fn media(lab: &Lab, callback: Option<Callback>, mut is_over: impl FnMut(&DualStream, Mono) -> bool) {
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
    opener.set_policy_callback(callback);
    opener.set_policy(Some(Rules { prefer: None, ..Rules::of(Use::Media) }));
    let reader = thread::spawn(move || {
        let mut bytes = 0;
        loop {
            match acceptor.recv(&mut [0; 8_000]).unwrap() {
                0 => return bytes,
                count => bytes += count,
            }
        }
    });
    let (mut next, mut sent) = (clock::now(), 0);
    while !is_over(&opener, clock::now()) {
        (&opener).write_all(&[7; BLOCK]).unwrap();
        sent += BLOCK;
        next += Span::from_millis(10);
        clock::sleep_until(next);
    }
    opener.shutdown(std::net::Shutdown::Write);
    assert_eq!(reader.join().unwrap(), sent);
}

const BLOCK: usize = 2_500;

#[test]
fn the_loss_of_both_versions_is_seen_by_the_kernels_counts() {
    if !permitted() {
        return;
    }
    let lab = lab("5%", "0%");
    let seen: Arc<Mutex<Option<Evidence>>> = Arc::default();
    let told = seen.clone();
    let callback = Callback::new(move |evidence| {
        *told.lock().unwrap() = Some(*evidence);
        Choice::Keep
    });
    let deadline = clock::now() + Span::from_secs(40);
    media(&lab, Some(callback), |_, now| {
        let evidence = *seen.lock().unwrap();
        assert!(now < deadline, "the loss of both is not known: {evidence:?}");
        let known = |evidence: Evidence| evidence.v4.loss.is_some() && evidence.v6.loss.is_some();
        evidence.is_some_and(|it| known(it) && it.v4.observations >= 8)
    });
    let evidence = seen.lock().unwrap().unwrap();
    println!("{evidence:?}; {}", lab.end().unwrap());
    assert_eq!(evidence.present, IpVersion::V4, "the callback kept it");
    let (v4, v6) = (evidence.v4.loss.unwrap(), evidence.v6.loss.unwrap());
    // TCP sends a packet again that was only late, so what it counts may be more than the truth,
    // though not much.
    assert!((0.01..0.15).contains(&v4), "{v4} instead of 0.05");
    assert!((0.0..v4 / 2.0).contains(&v6), "{v6} instead of none, beside {v4}");
}
