//! A policy where one version is twice as fast: it goes there, and a transfer that begins on the
//! slow one costs little more than the same over the fast one alone. Kernel shapers on a veth.
//!
//! What that costs is held on virtual time (`steer::simulated`), and in real time by [`accuracy`].

mod accuracy;

use std::io::Write as _;
use std::net::SocketAddr;
use std::thread;

use netaware_io::clock;
use netaware_netns::{Pair, permitted};
use netaware_record::{IpVersion, Use};
use netaware_stream::{DualListener, DualStream, Event, Options, Rules};
use netaware_units::{BitRate, Span};

const PORT: u16 = 4448;
/// Until a policy has gone where it is faster, however busy the machine is.
const PATIENCE: Span = Span::from_secs(15);

/// What came of a transfer.
struct Transfer {
    /// How many bytes, and how long it took until the peer had them all.
    bytes: usize,
    took: Span,
    /// How long after the start it went where.
    switched_after: Vec<(Span, IpVersion)>,
}

/// Begins on IPv4, under the rules for bulk.
fn steered() -> Options {
    Options { preferred: IpVersion::V4, policy: Some(Rules::of(Use::Bulk)), ..Options::default() }
}

/// Sends until `is_over`, which is asked before each block with the bytes so far, the time since
/// the start, and the switches.
fn transfer(
    pair: &Pair,
    options: Options,
    is_over: impl Fn(usize, Span, &[(Span, IpVersion)]) -> bool,
) -> Transfer {
    let right = pair.right();
    let listener = right.within(|| DualListener::bind(PORT, Options::default())).unwrap();
    let addresses = [SocketAddr::from((right.v6(), PORT)), SocketAddr::from((right.v4(), PORT))];
    let connect = || DualStream::connect_to("right", &addresses, options).map_err(std::io::Error::other);
    let opener = pair.left().within(connect).unwrap();
    let (acceptor, _) = listener.accept().unwrap();
    let began_at = clock::now();
    let reader = thread::spawn(move || {
        let (mut buffer, mut bytes) = (vec![0; 64 * 1024], 0);
        loop {
            match acceptor.recv(&mut buffer).unwrap() {
                0 => break,
                count => bytes += count,
            }
        }
        acceptor.finish(clock::now() + Span::from_secs(10)).unwrap();
        bytes
    });
    let block = vec![7; 64 * 1024];
    let (mut bytes, mut switched_after) = (0, Vec::new());
    loop {
        switched_after.extend(opener.happened().into_iter().filter_map(|it| match it.event {
            Event::Turning { to, .. } => Some((it.at - began_at, to)),
            _ => None,
        }));
        if is_over(bytes, clock::now() - began_at, &switched_after) {
            break;
        }
        (&opener).write_all(&block).unwrap();
        bytes += block.len();
    }
    opener.finish(clock::now() + Span::from_secs(120)).unwrap();
    let took = clock::now() - began_at;
    assert_eq!(reader.join().unwrap(), bytes);
    println!("{bytes} bytes in {took}, switched after {switched_after:?}");
    Transfer { bytes, took, switched_after }
}

#[test]
fn a_transfer_that_begins_on_the_slow_version_switches_at_most_once_and_loses_no_byte() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("policy").unwrap();
    pair.shape_two_classes(BitRate(10_000_000), BitRate(20_000_000)).unwrap();
    // When it goes depends on the machine's time, and is judged by `accuracy` and on virtual time.
    let found = transfer(&pair, steered(), |_, now, switches| {
        now > PATIENCE || switches.first().is_some_and(|(at, _)| now - *at > Span::from_secs(2))
    });
    assert!(matches!(found.switched_after[..], [] | [(_, IpVersion::V6)]), "{:?}", found.switched_after);
}
