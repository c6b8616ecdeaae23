//! The tracker against hand-made streams, hostile streams, and a slow exact oracle.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

const SPAN: u64 = 65_536;

fn report(seqs: &[u64], sent: Option<u64>) -> SequenceReport {
    let mut tracker = SequenceTracker::new();
    for &seq in seqs {
        tracker.observe(seq);
    }
    tracker.finish(sent)
}

fn bins(hist: &LengthHistogram) -> Vec<(u64, u64)> {
    hist.iter().collect()
}

#[test]
fn stream_in_order_loses_nothing() {
    let report = report(&(0..200_000).collect::<Vec<_>>(), Some(200_000));
    assert_eq!((report.counts.received, report.lost, report.counts.missing), (200_000, 0, 0));
    assert_eq!(report.counts.highest, Some(199_999));
    assert_eq!(report.loss_runs.count(), 0);
}

#[test]
fn every_kind_of_arrival_has_its_name() {
    let mut tracker = SequenceTracker::starting_at(10);
    let cases = [
        (1, 10, Arrival::InOrder),
        (2, 13, Arrival::Ahead { skipped: 2 }),
        (3, 12, Arrival::Reordered),
        (4, 12, Arrival::Duplicate),
        (5, 10, Arrival::Duplicate),
        (6, 9, Arrival::Late),
        (7, u64::MAX, Arrival::Rejected),
        (8, 14, Arrival::InOrder),
        (9, 14 + SPAN, Arrival::Ahead { skipped: SPAN - 1 }),
        (10, 11, Arrival::Late),
    ];
    for (row, seq, expected) in cases {
        assert_eq!(tracker.observe(seq), expected, "row {row}");
    }
    let counts = tracker.counts();
    assert_eq!((counts.received, counts.duplicates, counts.reordered), (5, 2, 1));
    assert_eq!((counts.late, counts.rejected, counts.missing), (2, 1, SPAN));
}

#[test]
fn extents_count_arrivals_and_distances_count_numbers() {
    // One packet overtaken by three, as in RFC 4737 §7.1.
    let one_late = report(&[0, 1, 2, 4, 5, 6, 3], None);
    assert_eq!(bins(&one_late.reorder_extents), [(3, 1)]);
    assert_eq!(bins(&one_late.reorder_distances), [(3, 1)]);
    // One packet far too early: all it overtook are reordered, with growing extent and shrinking
    // distance.
    let one_early = report(&[0, 6, 1, 2, 3, 4], None);
    assert_eq!(one_early.counts.reordered, 4);
    assert_eq!(bins(&one_early.reorder_extents), [(1, 1), (2, 1), (3, 1), (4, 1)]);
    assert_eq!(bins(&one_early.reorder_distances), [(2, 1), (3, 1), (4, 1), (5, 1)]);
}

#[test]
fn loss_runs_keep_their_lengths() {
    let report = report(&[1, 2, 6, 7, 9], Some(20));
    assert_eq!(bins(&report.loss_runs), [(1, 2), (3, 1), (10, 1)]);
    assert_eq!((report.lost, report.counts.missing), (15, 5));
}

#[test]
fn losses_at_the_end_show_only_with_the_count_of_the_sender() {
    assert_eq!(report(&[0, 1], None).lost, 0);
    assert_eq!(report(&[0, 1], Some(5)).lost, 3);
    assert_eq!(report(&[0, 1, 5], Some(2)).lost, 3, "an impossible count is disbelieved");
    assert_eq!(bins(&report(&[], Some(7)).loss_runs), [(7, 1)]);
    assert_eq!(report(&[], Some(u64::MAX)).lost, u64::MAX);
}

#[test]
fn late_packet_does_not_undo_a_loss() {
    let mut tracker = SequenceTracker::new();
    for seq in 1..=2 * SPAN {
        tracker.observe(seq);
    }
    assert_eq!(tracker.observe(0), Arrival::Late);
    let report = tracker.finish(None);
    assert_eq!((report.lost, report.counts.late, report.counts.reordered), (1, 1, 0));
    assert_eq!(bins(&report.loss_runs), [(1, 1)]);
}

#[test]
fn packet_is_reordered_up_to_the_edge_of_the_window_and_late_beyond() {
    // Window edges fall on words: with the highest at 2 * SPAN - 1 the floor is SPAN exactly.
    for (row, seq, expected) in [(1, SPAN - 1, Arrival::Late), (2, SPAN, Arrival::Reordered)] {
        let mut tracker = SequenceTracker::new();
        for sent in (0..2 * SPAN).filter(|&sent| sent != seq) {
            tracker.observe(sent);
        }
        assert_eq!(tracker.observe(seq), expected, "row {row}");
    }
}

#[test]
fn enormous_jump_costs_no_more_than_the_window() {
    let jump = 1_u64 << 60;
    let mut tracker = SequenceTracker::new();
    tracker.observe(0);
    assert_eq!(tracker.observe(jump), Arrival::Ahead { skipped: jump - 1 });
    // Far enough that an in-order stretch longer than the window is appended in one step as well.
    for i in 1..3 * SPAN {
        tracker.observe(jump + i);
    }
    assert_eq!(tracker.observe(1), Arrival::Late);
    let report = tracker.finish(None);
    assert_eq!((report.lost, report.loss_runs.longest()), (jump - 1, jump - 1));
    assert_eq!(report.loss_runs.count(), 1);
}

#[test]
fn memory_stays_bounded_when_every_other_packet_is_missing() {
    let mut tracker = SequenceTracker::new();
    for i in 0..300_000 {
        tracker.observe(2 * i);
    }
    assert!(tracker.gaps.len() as u64 <= SPAN / 2 + 1, "{} gaps", tracker.gaps.len());
}

/// What the tracker claims, computed from the whole history with sets and vectors.
fn oracle(seqs: &[u64], sent: Option<u64>) -> SequenceReport {
    let (mut arrivals, mut seen, mut next) = (Vec::new(), HashSet::new(), 0);
    let (mut duplicates, mut reordered, mut late) = (0, 0, 0);
    let mut reorder_extents = LengthHistogram::new(LENGTH_BINS);
    let mut reorder_distances = LengthHistogram::new(LENGTH_BINS);
    for &seq in seqs {
        if seq < next && seq < u64::next_multiple_of(next, 64).saturating_sub(SPAN) {
            late += 1;
        } else if !seen.insert(seq) {
            duplicates += 1;
        } else {
            if let Some(overtaker) = arrivals.iter().position(|&earlier| earlier > seq) {
                reordered += 1;
                reorder_extents.observe((arrivals.len() - overtaker) as u64);
                reorder_distances.observe(next - 1 - seq);
            }
            arrivals.push(seq);
            next = next.max(seq + 1);
        }
    }
    let missing = (0..next).filter(|seq| !seen.contains(seq)).count() as u64;
    let end = next.max(sent.unwrap_or(0));
    let (mut loss_runs, mut run) = (LengthHistogram::new(LENGTH_BINS), 0);
    for seq in 0..end {
        if seen.contains(&seq) {
            loss_runs.observe(std::mem::take(&mut run));
        } else {
            run += 1;
        }
    }
    loss_runs.observe(run);
    let received = arrivals.len() as u64;
    let highest = next.checked_sub(1);
    let counts = SequenceCounts { received, duplicates, reordered, late, rejected: 0, missing, highest };
    SequenceReport { counts, lost: end - received, loss_runs, reorder_extents, reorder_distances }
}

/// Steps of a sender with impairments: mostly small, sometimes far back or ahead.
fn stream(far: i64) -> impl Strategy<Value = Vec<u64>> {
    let step = prop_oneof![20 => Just(1), 4 => -8..8_i64, 1 => -200..200_i64, 1 => -far..far];
    prop::collection::vec((step, 1..80_u64), 0..60).prop_map(|steps| {
        let (mut seqs, mut at) = (Vec::new(), 0_u64);
        for (step, in_order) in steps {
            at = at.saturating_add_signed(step);
            seqs.extend(at..at + in_order);
            at += in_order - 1;
        }
        seqs
    })
}

proptest! {
    #[test]
    fn streams_equal_the_oracle(seqs in stream(1000), sent in prop::option::of(0..20_000_u64)) {
        prop_assert_eq!(report(&seqs, sent), oracle(&seqs, sent));
    }

    #[test]
    fn streams_beyond_the_window_equal_the_oracle(seqs in stream(100_000)) {
        prop_assert_eq!(report(&seqs, None), oracle(&seqs, None));
    }

    #[test]
    fn shuffled_numbers_equal_the_oracle(seqs in prop::collection::vec(0..300_u64, 0..300)) {
        prop_assert_eq!(report(&seqs, Some(300)), oracle(&seqs, Some(300)));
    }

    #[test]
    fn start_may_lie_anywhere(seqs in stream(1000), first in 0..BEYOND_REACH / 2) {
        let mut shifted = SequenceTracker::starting_at(first);
        for seq in &seqs {
            shifted.observe(first + seq);
        }
        let (shifted, plain) = (shifted.finish(None), report(&seqs, None));
        prop_assert_eq!(shifted.lost, plain.lost);
        prop_assert_eq!(shifted.loss_runs, plain.loss_runs);
        prop_assert_eq!(shifted.reorder_extents, plain.reorder_extents);
    }

    #[test]
    fn any_numbers_are_survived_and_all_are_counted(
        seqs in prop::collection::vec(prop_oneof![any::<u64>(), 0..100_u64, BEYOND_REACH - 5..BEYOND_REACH + 5], 0..100),
        first in any::<u64>(),
        sent in any::<Option<u64>>(),
    ) {
        let mut tracker = SequenceTracker::starting_at(first);
        for &seq in &seqs {
            tracker.observe(seq);
        }
        let counts = tracker.counts();
        prop_assert_eq!(counts.received + counts.duplicates + counts.late + counts.rejected, seqs.len() as u64);
        prop_assert!(tracker.finish(sent).lost >= counts.missing);
    }
}
