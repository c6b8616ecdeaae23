use super::super::made_up::{drive, ideal, instrument, sent};
use super::*;
use crate::{Arrival, Bound, TrainReport};

#[test]
fn on_an_ideal_link_the_preliminary_trains_are_the_answer() {
    let mut pathrate = Pathrate::new(&instrument(), PathrateRules::default(), 1);
    drive(&mut pathrate, |train, at| ideal(train, at, 120_000));
    let answer = pathrate.answer().unwrap();
    assert!((answer.rate.estimate / 100e6 - 1.0).abs() < 1e-6, "{answer:?}");
    assert!(answer.bound == Bound::None && answer.packets < 500, "{answer:?}");
}

/// Before every third packet, at random, comes one of cross traffic; so longer trains are spread by
/// a third.
fn loaded(train: &Train, at: i64, rng: &mut SplitMix64) -> TrainReport {
    let link = i64::from(train.length) * 80;
    let mut time = at;
    let arrivals = (0..train.packets).map(|number| {
        time += link + if rng.below(3) == 0 { 120_000 } else { 0 };
        Arrival { number, at: time }
    });
    let arrivals = arrivals.collect();
    TrainReport { sent: sent(train, at), arrivals }
}

#[test]
fn under_load_the_mode_above_the_rate_of_long_trains_wins() {
    let mut pathrate = Pathrate::new(&instrument(), PathrateRules::default(), 1);
    let mut rng = SplitMix64::new(1);
    let took = drive(&mut pathrate, |train, at| loaded(train, at, &mut rng));
    let answer = pathrate.answer().unwrap();
    let adr = pathrate.dispersion_rate();
    assert!(adr.is_some_and(|adr| (adr / 75e6 - 1.0).abs() < 0.02), "{adr:?} {answer:?}");
    assert!((answer.rate.estimate / 100e6 - 1.0).abs() < 0.01, "{answer:?}");
    assert!(took <= Span::from_secs(31), "{took}");
}

#[test]
fn the_modes_of_the_pairs_are_told_with_the_one_that_won() {
    let mut pathrate = Pathrate::new(&instrument(), PathrateRules::default(), 1);
    let mut rng = SplitMix64::new(1);
    drive(&mut pathrate, |train, at| loaded(train, at, &mut rng));
    let modes = pathrate.modes();
    let chosen: Vec<_> = modes.iter().filter(|mode| mode.chosen).collect();
    assert_eq!(chosen.len(), 1, "{modes:?}");
    assert!(chosen[0].lo <= 100.01e6 && chosen[0].hi >= 99e6 && chosen[0].share > 0.5, "{modes:?}");
    assert!(modes.is_sorted_by(|a, b| a.share >= b.share), "{modes:?}");
}

#[test]
fn an_answer_without_pairs_has_no_modes() {
    let mut pathrate = Pathrate::new(&instrument(), PathrateRules::default(), 1);
    drive(&mut pathrate, |train, at| ideal(train, at, 120_000));
    assert_eq!(pathrate.modes(), []);
}

/// The second packet of a large pair comes when another link's clock lets it, of a small one
/// whenever.
fn clocked(train: &Train, at: i64, rng: &mut SplitMix64) -> TrainReport {
    let mut report = loaded(train, at, rng);
    if let ([first, second], 2) = (&mut report.arrivals[..], train.packets) {
        let length = i64::from(train.length);
        let of_85_mbit = length * 8000 / 85;
        let by_chance = length * 80 + rng.below(200_000) as i64;
        second.at = first.at + if train.length >= 1000 { of_85_mbit } else { by_chance };
    }
    report
}

#[test]
fn a_mode_that_only_large_packets_make_is_doubtful() {
    let mut pathrate = Pathrate::new(&instrument(), PathrateRules::default(), 1);
    let mut rng = SplitMix64::new(1);
    drive(&mut pathrate, |train, at| clocked(train, at, &mut rng));
    let answer = pathrate.answer().unwrap();
    assert!((answer.rate.estimate / 85e6 - 1.0).abs() < 0.02, "{answer:?}");
    assert!(answer.flags.contains(&Flag::Ambiguous), "{answer:?}");
}
