use proptest::prelude::*;

use super::*;

/// Arrivals at `gap` ns, handed over as a card does whose timer runs `period` from the first packet of a batch.
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
