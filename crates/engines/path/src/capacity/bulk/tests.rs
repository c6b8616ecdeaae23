use super::super::made_up::{drive, ideal, instrument, sent};
use super::*;
use crate::{Arrival, TrainReport};

#[test]
fn an_ideal_link_is_read_exactly() {
    for gap in [1_200, 12_000, 120_000, 1_200_000_i64] {
        let mut bulk = Bulk::new(&instrument(), 1);
        let took = drive(&mut bulk, |train, at| ideal(train, at, gap));
        let answer = bulk.answer().unwrap();
        let truth = 12_000e9 / gap as f64;
        assert!((answer.rate.estimate / truth - 1.0).abs() < 1e-6, "{gap}: {answer:?}");
        assert!(
            answer.flags.is_empty() && answer.bound == Bound::None && took <= Bulk::LONGEST,
            "{gap}: {answer:?}"
        );
        assert!(bulk.is_sure());
    }
}

#[test]
fn whatever_comes_back_it_ends_in_time_and_says_nothing_it_does_not_know() {
    let nonsense: [fn(&Train, i64) -> TrainReport; 5] = [
        |_, _| TrainReport::default(),
        |train, _| TrainReport { sent: vec![None; train.packets as usize], arrivals: Vec::new() },
        |train, at| TrainReport { sent: sent(train, at), arrivals: vec![Arrival { number: 7, at }; 3] },
        |train, at| {
            let arrivals = (0..train.packets).map(|number| Arrival { number, at: i64::MAX });
            TrainReport { sent: sent(train, at), arrivals: arrivals.collect() }
        },
        |train, at| {
            let arrivals =
                (0..train.packets).rev().map(|number| Arrival { number, at: i64::from(number) * -999 });
            TrainReport { sent: sent(train, at), arrivals: arrivals.collect() }
        },
    ];
    // Only the last one has arrivals with time between them.
    let bounds = [None, None, None, None, Some(Bound::AtLeast)];
    for (row, (path, bound)) in nonsense.into_iter().zip(bounds).enumerate() {
        let mut bulk = Bulk::new(&instrument(), 1);
        let took = drive(&mut bulk, path);
        assert!(took <= Bulk::LONGEST + Span::from_millis(100), "row {row}: {took}");
        let answer = bulk.answer();
        assert_eq!(answer.as_ref().map(|answer| answer.bound), bound, "row {row}: {answer:?}");
    }
}
