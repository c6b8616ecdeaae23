//! What a policy costs in real time.

use netaware_stream::Wanted;

use super::*;

/// A minute over the fast version, as in the simulator. A policy needs some seconds to be sure, in
/// which half of what could be carried is: 6.4 s, the longest seen, cost a minute 5 %.
const BYTES: usize = 640 << 20;
/// Enough to know the rate of the fast version alone.
const ALONE: usize = 80 << 20;

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn a_transfer_that_begins_on_the_slow_version_takes_at_most_a_tenth_longer_than_the_fast_one_alone() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("policy").unwrap();
    pair.shape_two_classes(BitRate(50_000_000), BitRate(100_000_000)).unwrap();
    let alone = Options { wanted: Wanted::Only(IpVersion::V6), ..Options::default() };
    let alone = transfer(&pair, alone, |bytes, _, _| bytes >= ALONE);
    let steered = transfer(&pair, steered(), |bytes, _, _| bytes >= BYTES);
    let per_byte = |transfer: &Transfer| transfer.took.nanos() as f64 / transfer.bytes as f64;
    let ratio = per_byte(&steered) / per_byte(&alone);
    println!("× {ratio:.3}");
    let [(at, IpVersion::V6)] = steered.switched_after[..] else { panic!("{:?}", steered.switched_after) };
    assert!(at <= Span::from_secs(10) && ratio <= 1.1, "switched after {at}, × {ratio:.3}");
}
