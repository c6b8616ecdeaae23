//! What a policy costs and gains where one version is twice as fast: a transfer that begins on the slow one beside the same transfer
//! over the fast one alone. Kernel shapers on a veth; run one at a time: `cargo xtask netns`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::thread;

use netaware_io::clock;
use netaware_netns::{Pair, permitted};
use netaware_record::{IpVersion, Use};
use netaware_stream::{DualListener, DualStream, Event, Options, Rules, Wanted};
use netaware_units::{BitRate, Span};

const PORT: u16 = 4448;
/// Half a minute over the fast version. A policy needs some seconds to be sure, in which half of what could be carried is: a
/// transfer has to be ten times as long for that to be a twentieth.
const BYTES: usize = 360 << 20;
const SLOW: BitRate = BitRate(50_000_000);
const FAST: BitRate = BitRate(100_000_000);
const ROUNDS: usize = 3;

/// How long it took until the peer had everything, and when it went elsewhere.
struct Transfer {
    took: Span,
    switched_after: Vec<(Span, IpVersion)>,
}

fn transfer(pair: &Pair, options: Options) -> Transfer {
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
    for _ in 0..BYTES / block.len() {
        (&opener).write_all(&block).unwrap();
    }
    opener.finish(clock::now() + Span::from_secs(120)).unwrap();
    let took = clock::now() - began_at;
    assert_eq!(reader.join().unwrap(), BYTES);
    let happened = opener.happened().into_iter();
    let switched_after = happened.filter_map(|it| match it.event {
        Event::Turning { to, .. } => Some((it.at - began_at, to)),
        _ => None,
    });
    Transfer { took, switched_after: switched_after.collect() }
}

#[test]
fn a_transfer_that_begins_on_the_slow_version_takes_at_most_a_tenth_longer_than_the_fast_one_alone() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("policy").unwrap();
    pair.shape_two_classes(SLOW, FAST).unwrap();
    let alone = Options { wanted: Wanted::Only(IpVersion::V6), ..Options::default() };
    let steered =
        Options { preferred: IpVersion::V4, policy: Some(Rules::of(Use::Bulk)), ..Options::default() };
    let mut within = 0;
    for _ in 0..ROUNDS {
        let [alone, steered] = [alone, steered].map(|options| transfer(&pair, options));
        let ratio = steered.took.nanos() as f64 / alone.took.nanos() as f64;
        println!(
            "alone {}, steered {} (× {ratio:.3}), switched after {:?}",
            alone.took, steered.took, steered.switched_after
        );
        let once = matches!(steered.switched_after[..], [(at, IpVersion::V6)] if at <= Span::from_secs(10));
        within += usize::from(once && ratio <= 1.1);
        // As soon as most of all rounds are.
        if within > ROUNDS / 2 {
            return;
        }
    }
    panic!("in {within} of {ROUNDS} rounds one switch within ten seconds and at most a tenth longer");
}
