//! The main job between two namespaces: shapers whose rate is known, packets that vanish, a
//! responder with one version. Needs root. Shapers keep TCP from filling the machine, so that
//! several measurements can run side by side.

mod accuracy;
mod blackholes;
mod one_version;
mod shapers;

use netaware_netns::Pair;
use netaware_units::BitRate;

/// A pair whose two versions have the same modest rate.
fn modest_pair(name: &str) -> Pair {
    let pair = Pair::new(name).unwrap();
    pair.shape_two_classes(MODEST, MODEST).unwrap();
    pair
}

const MODEST: BitRate = BitRate(20_000_000);

/// Runs a case for each item, all at the same time: each mostly waits.
fn side_by_side<T: Send>(items: impl IntoIterator<Item = T>, case: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for item in items {
            scope.spawn(|| case(item));
        }
    });
}
