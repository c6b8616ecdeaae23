//! Loss and delay between two points that counted the same marked blocks.

use std::collections::BTreeMap;

use netaware_record::passive::MarkingRow;
use netaware_units::Span;

use super::MOST_MARKED;
use crate::Delays;

/// What must be known besides the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinSettings {
    /// Length of a block, L.
    pub block: Span,
    /// The two points' clocks differ by no more than this, A; `None`: nothing is known, and no
    /// block can be trusted.
    pub clock_bound: Option<Span>,
}

/// One block, at both points.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockLoss {
    /// Its number.
    pub block: u64,
    /// Packets at the first point.
    pub sent: u64,
    /// Packets at the second point.
    pub received: u64,
    /// Less the second clock's offset from the first: between the first packets of the block. Wrong
    /// if either was lost or overtaken. `None`: one of the points saw none.
    pub first_delay: Option<Span>,
    /// Between the means of all stamps; told only of blocks that lost nothing, for else it is of
    /// different packets.
    pub mean_delay: Option<Span>,
    /// Between the marked packets of double marking, in order; only where both points saw as many,
    /// and none of them was left out.
    pub marked: Option<Vec<Span>>,
    /// Why its loss may be wrong.
    pub doubt: Option<Doubt>,
}

impl BlockLoss {
    /// Packets lost; below zero, more came than were sent, and the block's boundaries are not to be
    /// trusted.
    pub fn lost(&self) -> i64 {
        self.sent.cast_signed() - self.received.cast_signed()
    }
}

/// What makes a block's figures doubtful.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// Clocks, delay and its spread together take half a block or more: packets may count in a
    /// neighbour (RFC 9341 §5).
    GuardBand {
        /// d = A + mean delay + 3 deviations.
        needs: Span,
    },
    /// How far the clocks differ is not known.
    Clocks,
    /// Packets came after their block had been read, at one of the points.
    Late,
}

/// Blocks that both points told of, in order. A block that only one of them told of is no loss: the
/// other may not have watched; it is left out.
pub fn join(first: &[MarkingRow], second: &[MarkingRow], settings: &JoinSettings) -> Vec<BlockLoss> {
    let there: BTreeMap<u64, &MarkingRow> = second.iter().map(|row| (row.block, row)).collect();
    let mut blocks: Vec<(BlockLoss, bool)> = Vec::new();
    let here: BTreeMap<u64, &MarkingRow> = first.iter().map(|row| (row.block, row)).collect();
    for (number, sent) in here {
        let Some(received) = there.get(&number) else { continue };
        blocks.push((pair(number, sent, received), sent.late + received.late > 0));
    }
    let guard = guard_band(blocks.iter().map(|(block, _)| block), settings);
    for (block, late) in &mut blocks {
        block.doubt = match guard {
            None => Some(Doubt::Clocks),
            Some(needs) if needs.0 >= settings.block.0 / 2 => Some(Doubt::GuardBand { needs }),
            Some(_) => late.then_some(Doubt::Late),
        };
    }
    blocks.into_iter().map(|(block, _)| block).collect()
}

fn pair(number: u64, sent: &MarkingRow, received: &MarkingRow) -> BlockLoss {
    let marks = (&sent.marked_at, &received.marked_at);
    let as_many = marks.0.len() == marks.1.len() && (1..MOST_MARKED).contains(&marks.0.len());
    let marked = as_many.then(|| marks.0.iter().zip(marks.1).map(|(left, came)| came.since(*left)).collect());
    let both = sent.packets > 0 && received.packets > 0;
    BlockLoss {
        block: number,
        sent: sent.packets,
        received: received.packets,
        first_delay: both.then(|| received.first_at.since(sent.first_at)),
        mean_delay: (both && sent.packets == received.packets).then(|| received.mean_at.since(sent.mean_at)),
        marked,
        doubt: None,
    }
}

/// d = A + D + 3 s, from the best delays there are: of marked packets, else of first ones. Negative
/// delays (clocks) count by their size.
fn guard_band<'a>(blocks: impl Iterator<Item = &'a BlockLoss>, settings: &JoinSettings) -> Option<Span> {
    let clocks = settings.clock_bound?;
    let mut delays = Delays::default();
    for block in blocks {
        match &block.marked {
            Some(marked) => marked.iter().for_each(|delay| delays.observe(*delay)),
            None => block.first_delay.into_iter().for_each(|delay| delays.observe(delay)),
        }
    }
    let said = delays.statistics();
    let count = said.count.max(1) as f64;
    let mean = said.sum_ns as f64 / count;
    let deviation = (said.sum_squares / count - mean * mean).max(0.0).sqrt();
    Some(clocks.abs() + Span((mean.abs() + 3.0 * deviation) as i64))
}

#[cfg(test)]
mod tests {
    use netaware_record::passive::FlowKey;
    use netaware_stats::rng::SplitMix64;
    use netaware_units::{ByteCount, Wall};

    use super::super::tests::rows;
    use super::*;
    use crate::Watch;
    use crate::made_up::Made;
    use crate::marking::MarkingWatch;

    const MS: i64 = 1_000_000;

    /// A marked flow of one packet each ms over a path of `delay` ms and up to 5 more, that loses
    /// `per_cent`; the second clock is `offset` ms off.
    fn run(delay: i64, per_cent: usize, offset: i64) -> (Vec<BlockLoss>, BTreeMap<u64, i64>) {
        let mut rng = SplitMix64::new(11);
        let mut points = [(); 2].map(|()| MarkingWatch::new(0, Some(1), 100).unwrap());
        let mut truth = BTreeMap::new();
        for n in 0..3000_i64 {
            let marked = n % 10 == 3;
            let made = Made::udp4().dscp((n / 100 % 2) as u8 | u8::from(marked) << 1);
            points[0].observe(&made.observed(Wall(n * MS)));
            let lost = rng.below(100) < per_cent;
            *truth.entry((n / 100).cast_unsigned()).or_default() += i64::from(lost);
            if !lost {
                let jitter = rng.below(5_000_000) as i64;
                points[1].observe(&made.observed(Wall((n + delay + offset) * MS + jitter)));
            }
        }
        let settings = JoinSettings {
            block: Span::from_millis(100),
            clock_bound: Some(Span::from_millis(offset.abs())),
        };
        let [first, second] = points.each_mut().map(|point| rows(point, 10_000 * MS));
        (join(&first, &second, &settings), truth)
    }

    #[test]
    fn loss_of_each_block_is_exact_within_the_guard_band() {
        for offset in [-20, 0, 10] {
            let (blocks, truth) = run(15, 3, offset);
            assert_eq!(blocks.len(), 30);
            let mut with_marks = 0;
            for block in &blocks {
                assert_eq!(
                    (block.lost(), block.doubt),
                    (truth[&block.block], None),
                    "offset {offset}: {block:?}"
                );
                if let Some(marked) = &block.marked {
                    let mean = marked.iter().map(|delay| delay.0).sum::<i64>() / marked.len() as i64;
                    let expected = (15 + offset) * MS;
                    assert!((expected..expected + 5 * MS).contains(&mean), "{mean}");
                    with_marks += 1;
                }
                assert_eq!(block.mean_delay.is_some(), block.lost() == 0);
            }
            // Three in a hundred are lost: about a quarter of the blocks lose one of its ten marked
            // packets.
            assert!(
                (15..30).contains(&with_marks),
                "{with_marks} of 30 blocks with all of their marked packets"
            );
        }
    }

    #[test]
    fn what_needs_half_a_block_is_doubted() {
        let (blocks, _) = run(45, 0, 5);
        assert_eq!(blocks.len(), 30);
        assert!(
            blocks.iter().all(|block| matches!(block.doubt, Some(Doubt::GuardBand { .. }))),
            "{:?}",
            blocks[3]
        );
    }

    #[test]
    fn unknown_clocks_are_doubted_and_a_block_seen_once_is_no_loss() {
        let mut point = MarkingWatch::new(0, None, 100).unwrap();
        for at in [10, 110, 210] {
            point.observe(&Made::udp4().dscp((at / 100) as u8 & 1).observed(Wall(at * MS)));
        }
        let all = rows(&mut point, 1000 * MS);
        let settings = JoinSettings { block: Span::from_millis(100), clock_bound: None };
        let blocks = join(&all, &all[1..], &settings);
        assert_eq!(blocks.len(), 2);
        assert!(blocks.iter().all(|block| block.doubt == Some(Doubt::Clocks)));
    }

    fn row(block: u64, packets: u64, [first, mean]: [i64; 2], marked: &[i64], late: u64) -> MarkingRow {
        MarkingRow {
            key: FlowKey::default(),
            colour: (block & 1) as u8,
            block,
            packets,
            bytes: ByteCount(100 * packets),
            first_at: Wall(first),
            mean_at: Wall(mean),
            marked_at: marked.iter().copied().map(Wall).collect(),
            late,
        }
    }

    #[test]
    fn blocks_of_two_points_say_their_loss_delays_and_doubts() {
        let first = [
            row(4, 10, [100, 150], &[110, 120], 0),
            row(5, 8, [200, 300], &[201], 0),
            row(6, 3, [400, 450], &[], 0),
            row(7, 1, [600, 600], &[], 0),
        ];
        let second = [
            row(4, 10, [130, 185], &[140, 150], 0),
            row(5, 7, [250, 333], &[], 2),
            row(6, 0, [400, 400], &[], 0),
        ];
        // Delays of 30, 30 and 50 have a mean of 36.7 and a deviation of 9.4; the clocks are 10
        // apart.
        let needs = Some(Doubt::GuardBand { needs: Span(74) });
        for (block, doubts) in [(150, [None, Some(Doubt::Late), None]), (149, [needs; 3]), (148, [needs; 3])]
        {
            let settings = JoinSettings { block: Span(block), clock_bound: Some(Span(-10)) };
            let found = join(&first, &second, &settings);
            let one = |block: u64, [sent, received]: [u64; 2], delays: [Option<i64>; 2]| BlockLoss {
                block,
                sent,
                received,
                first_delay: delays[0].map(Span),
                mean_delay: delays[1].map(Span),
                marked: None,
                doubt: doubts[block as usize - 4],
            };
            let marked = Some(vec![Span(30); 2]);
            let want = [
                BlockLoss { marked, ..one(4, [10, 10], [Some(30), Some(35)]) },
                one(5, [8, 7], [Some(50), None]),
                one(6, [3, 0], [None, None]),
            ];
            assert_eq!(found, want, "blocks of {block}");
            assert_eq!(found.iter().map(BlockLoss::lost).collect::<Vec<_>>(), [0, 1, 3]);
        }
        let more = join(&second[1..2], &first[1..2], &JoinSettings { block: Span(150), clock_bound: None });
        assert_eq!(more[0].lost(), -1);
    }

    #[test]
    fn marked_delays_are_told_unless_some_stamps_may_have_been_left_out() {
        for (count, told) in [(1023, true), (1024, false)] {
            let marked: Vec<i64> = (0..count).collect();
            let rows = [row(2, 5000, [0, 500], &marked, 0)];
            let found = join(&rows, &rows, &JoinSettings { block: Span(5000), clock_bound: None });
            assert_eq!(found[0].marked, told.then(|| vec![Span::ZERO; 1023]), "{count} marked packets");
        }
    }
}
