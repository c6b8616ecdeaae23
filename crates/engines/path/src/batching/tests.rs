use proptest::prelude::*;

use super::*;

/// Arrivals at `gap` ns, handed over as a card does whose timer runs `period` from the first packet
/// of a batch.
fn coalesced(packets: u32, gap: f64, period: f64) -> Vec<Arrival> {
    let (mut handed, mut until, mut ready) = (Vec::new(), f64::MIN, f64::MIN);
    for number in 0..packets {
        let at = f64::from(number) * gap;
        if at > until {
            until = at + period;
            ready = until;
        }
        handed.push(Arrival { number, at: ready as i64 });
        ready += 300.0;
    }
    handed
}

fn even(packets: u32, gap: i64) -> Vec<Arrival> {
    (0..packets).map(|number| Arrival { number, at: i64::from(number) * gap }).collect()
}

#[test]
fn an_even_train_is_no_batch() {
    assert_eq!(Batching::of(&even(100, 12_000)), None);
    assert_eq!(starts(&even(100, 12_000)).len(), 99);
}

#[test]
fn a_coalesced_train_tells_its_period_and_its_batch() {
    let found = Batching::of(&coalesced(500, 12_000.0, 50_000.0)).unwrap();
    assert!((found.period - 60_000.0).abs() < 1.0, "{found:?}");
    assert!((found.batch - 5.0).abs() < 0.01, "{found:?}");
}

#[test]
fn from_batch_start_to_batch_start_a_rate_is_exact_where_from_end_to_end_it_is_not() {
    let arrivals = coalesced(103, 12_000.0, 250_000.0);
    let batching = Batching::of(&arrivals);
    let snapped = Dispersion::of(&arrivals, batching.as_ref()).unwrap();
    assert!((snapped.rate(1500) / 1e9 - 1.0).abs() < 1e-6, "{snapped:?}");
    let plain = Dispersion::of(&arrivals, None).unwrap();
    assert!((plain.rate(1500) / 1e9 - 1.0).abs() > 0.02, "{plain:?}");
}

#[test]
fn the_last_of_a_batch_stands_before_the_first_of_the_next() {
    let arrivals = coalesced(15, 12_000.0, 50_000.0);
    assert_eq!((starts(&arrivals), lasts(&arrivals)), (vec![5, 10], vec![4, 9]));
}

#[test]
fn one_per_cent_takes_141_stamp_errors() {
    assert!((least_duration(1_000.0, 0.01) - 141_421.0).abs() < 1.0);
}

#[test]
fn hostile_arrivals_have_no_rate() {
    let at = |at| Arrival { number: 0, at };
    for arrivals in [vec![], vec![at(5)], vec![at(5); 40], vec![at(i64::MAX), at(i64::MIN)]] {
        assert_eq!(Batching::of(&arrivals), None);
        assert_eq!(Dispersion::of(&arrivals, None), None);
        assert!(starts(&arrivals).is_empty());
    }
}

#[test]
fn smoothing_makes_coalesced_gaps_even_again() {
    let arrivals = coalesced(200, 12_000.0, 50_000.0);
    let received: Vec<f64> = arrivals.windows(2).map(gap).collect();
    let sent = vec![12_000.0; received.len()];
    let (sent, received) = smooth(&sent, &received, 30_000.0);
    // The first batch and the last are cut.
    for (sent, received) in sent.iter().zip(&received).skip(4).take(190) {
        assert!((received - 12_000.0).abs() < 1.0 && (sent - 12_000.0).abs() < 1e-9, "{received}");
    }
}

proptest! {
    #[test]
    fn snapped_rates_are_exact_for_every_gap_and_period(
        gap in 500.0..50_000.0_f64, batches in 3.0..40.0_f64, packets in 400_u32..900,
    ) {
        let arrivals = coalesced(packets, gap, gap.max(1_000.0) * batches);
        prop_assume!(gap > 700.0);
        let batching = Batching::of(&arrivals);
        prop_assert!(batching.is_some());
        let snapped = Dispersion::of(&arrivals, batching.as_ref()).unwrap();
        prop_assert!((snapped.gap() / gap - 1.0).abs() < 1e-3, "{snapped:?} {batching:?}");
    }

    #[test]
    fn smoothing_keeps_the_sums(
        gaps in proptest::collection::vec((0.0..1e5_f64, 0.0..1e5_f64), 1..200), spike in 0.0..1e5_f64,
    ) {
        let (sent, received): (Vec<f64>, Vec<f64>) = gaps.into_iter().unzip();
        let (smooth_sent, smooth_received) = smooth(&sent, &received, spike);
        let sum = |of: &[f64]| of.iter().sum::<f64>();
        prop_assert!((sum(&sent) - sum(&smooth_sent)).abs() < 1e-3);
        prop_assert!((sum(&received) - sum(&smooth_received)).abs() < 1e-3);
    }
}

#[test]
fn batches_of_two_among_single_packets_are_seen() {
    let mut at = 0;
    let arrivals: Vec<Arrival> = (0..90)
        .map(|number| {
            at += if number % 3 == 1 { 300 } else { 120_000 };
            Arrival { number, at }
        })
        .collect();
    assert!(Batching::of(&arrivals).is_some());
}

/// One arrival, and one more after each of these gaps, ns.
fn after(gaps: &[i64]) -> Vec<Arrival> {
    let times = gaps.iter().scan(0_i64, |at, gap| {
        *at += *gap;
        Some(*at)
    });
    (0..).zip(std::iter::once(0).chain(times)).map(|(number, at)| Arrival { number, at }).collect()
}

#[test]
fn six_gaps_of_ten_that_are_short_or_two_of_twelve_that_are_tiny_make_batches() {
    // A quarter of 100 is short, a twentieth is tiny. Batches begin behind the long gaps.
    let rows: [(&[i64], bool); 6] = [
        (&[20, 20, 20, 20, 20, 20, 100, 100, 100, 100], true),
        (&[20, 20, 20, 20, 20, 100, 100, 100, 100, 100], false),
        (&[5, 5, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100], true),
        (&[5, 6, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100], false),
        // Eight gaps are enough, and seven are not.
        (&[20, 20, 20, 20, 20, 20, 100, 100], true),
        (&[20, 20, 20, 20, 20, 100, 100], false),
    ];
    for (gaps, are_batches) in rows {
        let want = are_batches.then_some(Batching { period: 100.0, batch: 1.0 });
        assert_eq!(Batching::of(&after(gaps)), want, "{gaps:?}");
    }
    // Time that goes back and forth has no period.
    assert_eq!(Batching::of(&after(&[100, -100, 100, -100, 100, -100, 100, -100, 100, -100])), None);
}

#[test]
fn half_of_the_time_is_spent_in_the_typical_gap_or_longer_ones() {
    let mut gaps = [100; 20];
    gaps[7] = 1_000;
    assert_eq!(typical_gap(&after(&gaps)), Some(100.0));
    gaps[8] = 2_000;
    assert_eq!(typical_gap(&after(&gaps)), Some(1_000.0));
    assert_eq!(typical_gap(&after(&[0, 0])), None);
    // A batch begins behind more than half of it.
    assert_eq!(starts(&after(&[100, 50, 51, 100, 100])), [1, 3, 4, 5]);
}

#[test]
fn batches_have_a_period_and_a_size_and_few_arrivals_have_none() {
    let short = after(&[20, 20, 20, 20, 20, 20, 100, 100]);
    let long = after(&[20, 20, 20, 20, 20, 20, 20, 20, 300, 20, 20, 300, 20, 20, 20, 20, 300]);
    assert_eq!(Batching::of(&long), Some(Batching { period: 360.0, batch: 4.0 }));
    assert_eq!(Batching::of(&short), Some(Batching { period: 100.0, batch: 1.0 }));
    // Eight arrivals say nothing either way.
    assert_eq!([even(20, 100), even(8, 100)].map(|train| Batching::of(&train)), [None, None]);
}

#[test]
fn of_more_than_three_batches_the_last_one_does_not_count() {
    // Batches of three begin at 3, 6, 9 and 12.
    let three = after(&[20, 20, 300, 20, 20, 310, 20, 20, 320, 20]);
    let four = after(&[20, 20, 300, 20, 20, 310, 20, 20, 320, 20, 20, 330, 20]);
    let batching = Batching { period: 350.0, batch: 3.0 };
    let found = Some(Dispersion { packets: 6, span: 710.0 });
    assert_eq!(starts(&four), [3, 6, 9, 12]);
    assert_eq!(Dispersion::of(&three, Some(&batching)), found);
    assert_eq!(Dispersion::of(&four, Some(&batching)), found);
    assert_eq!(Dispersion::of(&four, None), Some(Dispersion { packets: 13, span: 1_440.0 }));
    assert_eq!(Dispersion::between(&four, 2, 4), Some(Dispersion { packets: 2, span: 320.0 }));
    assert_eq!(Dispersion::between(&four, 4, 4), None);
}

#[test]
fn a_rate_is_of_all_packets_over_the_whole_span() {
    let seen = Dispersion { packets: 100, span: 1.2e6 };
    let near = |found: f64, want: f64| (found / want - 1.0).abs() < 1e-9;
    assert!(near(seen.gap(), 12_000.0) && near(seen.rate(1500), 1e9), "{seen:?}");
}

#[test]
fn gaps_are_averaged_from_one_spike_to_the_next() {
    let (sent, received) = ([1.0, 2.0, 3.0, 4.0, 5.0], [10.0, 20.0, 10.0, 30.0]);
    // What is as long as a spike is none yet; of the sender's gaps the last has no counterpart.
    assert_eq!(
        smooth(&sent, &received, 20.0),
        (vec![2.0, 2.0, 2.0, 4.0], vec![40.0 / 3.0, 40.0 / 3.0, 40.0 / 3.0, 30.0])
    );
    assert_eq!(smooth(&sent, &received, 19.0), (vec![1.0, 2.5, 2.5, 4.0], vec![10.0, 15.0, 15.0, 30.0]));
    assert_eq!(smooth(&sent, &[], 19.0), (vec![], vec![]));
}
