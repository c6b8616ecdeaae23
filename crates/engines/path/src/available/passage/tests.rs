//! Trains made by hand.

use netaware_units::Span;

use super::*;
use crate::Arrival;

const GAP: i64 = 12_000;

fn train(packets: u32) -> Train {
    Train { packets, length: 1500, gaps: Gaps::Even(12_000_000), rest: Span::ZERO }
}

/// Sent every 12 us, arriving `stretch` times slower, by a clock that is far off.
fn report(packets: u32, stretch: f64) -> TrainReport {
    let arrival = |number: u32| Arrival {
        number,
        at: 7_000_000_000_000 + (f64::from(number) * 12_000.0 * stretch) as i64,
    };
    TrainReport {
        sent: (0..i64::from(packets)).map(|number| Some(number * GAP)).collect(),
        arrivals: (0..packets).map(arrival).collect(),
    }
}

#[test]
fn rate_and_stretch_are_those_of_the_stamps() {
    let found = Passage::of(&train(100), &report(100, 1.25)).dispersion(0.25).unwrap();
    assert!((found.rate() - 1e9).abs() < 1.0, "{found:?}");
    assert!((found.stretch() - 1.25).abs() < 1e-3);
    assert!((found.received_rate() - 8e8).abs() < 1e6);
}

#[test]
fn batches_cost_less_than_one_gap_at_each_end() {
    let mut batched = report(400, 1.1);
    for arrival in &mut batched.arrivals {
        arrival.at = (arrival.at / 250_000 + 1) * 250_000 + i64::from(arrival.number) % 7;
    }
    let passage = Passage::of(&train(400), &batched);
    let found = passage.dispersion(0.25).unwrap();
    assert!((found.stretch() - 1.1).abs() < 2.0 * 1.1 / 300.0, "{}", found.stretch());
    let batching = passage.batching().unwrap();
    assert!((batching.period - 250_000.0).abs() < 1000.0 && (batching.batch - 19.0).abs() < 0.5);
}

#[test]
fn a_train_within_one_batch_is_too_short() {
    let mut at_once = report(30, 1.0);
    for arrival in &mut at_once.arrivals {
        arrival.at = 5_000 + i64::from(arrival.number);
    }
    assert_eq!(Passage::of(&train(30), &at_once).dispersion(0.0), Err(Unusable::TooShort));
}

#[test]
fn an_interrupted_train_is_its_longest_piece() {
    let mut late = report(100, 1.0);
    for number in 30..100 {
        late.sent[number] = late.sent[number].map(|at| at + 900_000);
        late.arrivals[number].at += 900_000;
    }
    let passage = Passage::of(&train(100), &late);
    assert!(passage.interrupted);
    assert_eq!(passage.len(), 70);
    assert!((passage.dispersion(0.0).unwrap().rate() - 1e9).abs() < 1.0);
}

#[test]
fn what_a_policer_takes_counts_as_stretch_and_stray_loss_does_not() {
    let mut policed = report(200, 1.0);
    policed.arrivals.retain(|arrival| arrival.number % 2 == 0);
    let found = Passage::of(&train(200), &policed).dispersion(0.0).unwrap();
    assert!(found.stretch() > 1.8, "{}", found.stretch());
    let mut stray = report(200, 1.0);
    stray.arrivals.remove(77);
    assert!((Passage::of(&train(200), &stray).dispersion(0.0).unwrap().stretch() - 1.0).abs() < 1e-9);
}

#[test]
fn late_packets_are_counted_and_not_used() {
    let mut swapped = report(50, 1.0);
    swapped.arrivals.swap(10, 11);
    let passage = Passage::of(&train(50), &swapped);
    assert_eq!((passage.reordered, passage.arrived, passage.len()), (1, 50, 49));
}

/// Handed over every 60 us, five packets at a time.
fn in_fives(packets: u32, stretch: f64) -> TrainReport {
    let mut batched = report(packets, stretch);
    for arrival in &mut batched.arrivals {
        arrival.at = (arrival.at / 60_000 + 1) * 60_000 + i64::from(arrival.number) % 5 * 20;
    }
    batched
}

#[test]
fn a_step_that_ends_within_a_batch_has_the_mean_of_the_batch() {
    let passage = Passage::of(&train(200), &in_fives(200, 1.0));
    // None of these but the last is near the end of a batch.
    let steps = passage.segments(&[52, 62, 72, 82]);
    for step in steps {
        let step = step.unwrap();
        assert!((step.received_ns / step.sent_ns - 1.0).abs() < 0.01, "{step:?}");
        assert!((step.bits / step.sent_ns * 1e9 / 1e9 - 1.0).abs() < 0.01, "{step:?}");
    }
    // Shorter than a batch: without its own packets it would have none at all.
    assert!(passage.segments(&[57, 59])[0].is_some());
}

#[test]
fn nonsense_is_survived() {
    let wild = TrainReport {
        sent: vec![Some(i64::MAX), Some(i64::MIN), None, Some(0), Some(5), Some(6)],
        arrivals: (0..9).map(|number| Arrival { number, at: i64::MIN + i64::from(number) }).collect(),
    };
    let passage = Passage::of(&train(6), &wild);
    assert!(passage.dispersion(0.0).is_err());
    assert!(passage.segments(&[0, 2, 5, 9]).len() == 3 && passage.delays().len() <= 6);
    let nothing = Passage::of(&train(6), &TrainReport::default());
    assert!((nothing.lost() - 1.0).abs() < 1e-9 && nothing.level().is_none());
}

#[test]
fn a_train_of_uneven_gaps_is_interrupted_beyond_twice_its_longest_gap() {
    // Twice 40 us, and 10 us that stamps may err.
    for (gap, interrupted) in [(89_000, false), (91_000, true)] {
        let gaps = Gaps::Each(vec![40_000_000, 10_000_000, 20_000_000, 20_000_000, 20_000_000]);
        let train = Train { packets: 6, length: 1500, gaps, rest: Span::ZERO };
        let times = [0, 40_000, 50_000, 50_000 + gap, 70_000 + gap, 90_000 + gap];
        let report = TrainReport {
            sent: times.iter().map(|at| Some(*at)).collect(),
            arrivals: (0..).zip(times).map(|(number, at)| Arrival { number, at }).collect(),
        };
        assert_eq!(Passage::of(&train, &report).interrupted, interrupted, "{gap}");
    }
}

/// Packets that left every 100 us and came when they did, ns; these numbers were lost.
fn seen(came: &[i64], lost: &[u32]) -> Passage {
    let train =
        Train { packets: came.len() as u32, length: 1500, gaps: Gaps::Even(100_000_000), rest: Span::ZERO };
    let arrivals = (0..).zip(came).map(|(number, at)| Arrival { number, at: *at });
    let report = TrainReport {
        sent: (0_i64..).zip(came).map(|(number, _)| Some(number * 100_000)).collect(),
        arrivals: arrivals.filter(|arrival| !lost.contains(&arrival.number)).collect(),
    };
    Passage::of(&train, &report)
}

#[test]
fn a_dispersion_has_all_that_left_and_a_share_that_was_lost() {
    let whole =
        Dispersion { sent_ns: 300_000.0, received_ns: 240_000.0, bits: 36_000.0, lost: 0.0, packets: 3.0 };
    // Four packets are a train, and four fifths of the time are enough.
    assert_eq!(seen(&[0, 80_000, 160_000, 240_000], &[]).dispersion(0.0), Ok(whole));
    assert_eq!(seen(&[0, 80_000, 160_000, 239_999], &[]).dispersion(0.0), Err(Unusable::TooShort));
    assert_eq!(seen(&[0, 80_000, 160_000], &[]).dispersion(0.0), Err(Unusable::Lost));
    // Behind the first packet.
    let rest =
        Dispersion { sent_ns: 200_000.0, received_ns: 170_000.0, bits: 24_000.0, packets: 2.0, ..whole };
    assert_eq!(seen(&[5, 80_000, 190_000, 250_000], &[]).dispersion(0.25), Ok(rest));
    assert_eq!(seen(&[5, 80_000, 190_000, 290_000], &[]).dispersion(0.5), Err(Unusable::Lost));
    let lossy = seen(&[0, 110_000, 0, 330_000, 440_000], &[2]);
    let found = lossy.dispersion(0.0).unwrap();
    let want =
        Dispersion { sent_ns: 400_000.0, received_ns: 440_000.0, bits: 48_000.0, lost: 0.25, packets: 4.0 };
    assert_eq!(found, want);
    let near = |found: f64, want: f64| (found / want - 1.0).abs() < 1e-9;
    assert!(near(found.rate(), 1.2e8) && near(found.received_rate(), 0.75 * 48e12 / 440e3));
    // Two per cent of loss are stray.
    assert!(near(found.stretch(), 1.1 / 0.77) && near(lossy.lost(), 0.2), "{found:?}");
}

#[test]
fn a_segment_is_between_the_packets_nearest_to_its_ends() {
    let passage = seen(&[0, 110_000, 0, 330_000, 440_000], &[2]);
    let segment = |sent_ns: f64, received_ns: f64, bits: f64, delay: f64| {
        Some(Segment { sent_ns, received_ns, bits, delay })
    };
    // The third was lost: the second stands for it in segments of two.
    let two = [segment(1e5, 1.1e5, 12_000.0, 0.0), segment(3e5, 3.3e5, 36_000.0, 10_000.0)];
    assert_eq!(passage.segments(&[0, 2, 4]), two);
    assert_eq!(passage.segments(&[0, 4]), [segment(4e5, 4.4e5, 48_000.0, 0.0)]);
    assert_eq!(passage.segments(&[1, 2, 3]), [None::<Segment>; 2]);
    assert_eq!(passage.delays(), [0.0, 10_000.0, 30_000.0, 40_000.0]);
    // Of the first two of five.
    assert_eq!(seen(&[50, 100_040, 200_030, 300_060, 400_060], &[]).level(), Some(40));
}

#[test]
fn a_sender_may_be_late_by_its_own_gap_or_a_twentieth_of_the_train() {
    let longest =
        |packets: u32, gaps: Gaps| longest_gap(&Train { packets, length: 1500, gaps, rest: Span::ZERO });
    let even = |packets: u32, ns: u64| longest(packets, Gaps::Even(ns * 1_000));
    let found = [
        // Stamps err by ten microseconds, and more than a millisecond is too much.
        (even(10, 1_000), 11_000.0),
        (even(4, 100_000), 200_000.0),
        (even(40, 100_000), 300_000.0),
        (even(400, 100_000), 1_100_000.0),
        (even(100, 10_000_000), 20_000_000.0),
        (longest(3, Gaps::Each(vec![7_000_000, 40_000_000])), 90_000.0),
        (longest(3, Gaps::BackToBack), 1_000_000.0),
    ];
    assert!(found.iter().all(|(found, want)| (found - want).abs() < 1e-6), "{found:?}");
}

#[test]
fn pairs_by_a_slow_timer_are_batches_of_two() {
    // Two packets within a microsecond, ten times, 100 us apart.
    let came = |pairs: i64| -> Vec<i64> {
        let single = (pairs..20 - pairs).map(|n| n * 100_000);
        (0..pairs).flat_map(|n| [n * 100_000, n * 100_000 + 1_000]).chain(single).collect()
    };
    assert_eq!(seen(&came(10), &[]).batching(), Some(Batching { period: 100_000.0, batch: 2.0 }));
    // Eight short gaps for twenty packets are just enough.
    assert!(seen(&came(8), &[]).batching().is_some() && seen(&came(7), &[]).batching().is_none());
}
