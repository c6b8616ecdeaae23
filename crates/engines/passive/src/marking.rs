//! How many packets of a marked block came through?
//!
//! **What it measures.** Somebody on the way colours packets by one bit of the DSCP that changes
//! every block (RFC 9341): of each block and colour this task counts packets and bytes, and keeps
//! the first and the mean stamp, and with double marking the stamps of marked packets. Two points'
//! rows of a block are loss and delay ([`join`]).
//!
//! **What it assumes.** That blocks begin at multiples of their length since the epoch by the
//! marker's clock, colour 0 with even ones, and that a packet comes within half a block of its own:
//! clock difference, delay and its spread together less than L/2. What the filter lets through is
//! one flow.
//!
//! **How it is biased.** Loss is exact while the assumption holds; where it does not, packets count
//! in the block before or after, and loss of neighbours comes out with opposite signs. The delay of
//! first packets is wrong wherever one of them was lost or reordered, the mean delay by loss within
//! the block; double marking by neither.
//!
//! **Where it was published.** RFC 9341 (alternate marking), §3.1 to §3.2 and §5 for the guard
//! band.

mod join;
mod ledger;
mod rule;

use std::collections::BTreeMap;

use netaware_record::passive::{FlowKey, MarkingRow, Period, Row};
use netaware_units::{ByteCount, Wall};

pub use join::{BlockLoss, Doubt, JoinSettings, join};
pub use ledger::MarkingJoin;
pub use rule::{MarkingPair, MarkingRule, MarkingRuleError};

use crate::{Found, Observed, TaskError, Watch, watch};

/// The task.
#[derive(Debug)]
pub struct MarkingWatch {
    colour: u8,
    delay: Option<u8>,
    length: i64,
    /// By number; the colour is the number's lowest bit.
    blocks: BTreeMap<i64, Block>,
    /// Blocks below this were handed out.
    read: i64,
    /// Packets that came too late for theirs, by colour.
    late: [u64; 2],
    /// Whether no more will come.
    ended: bool,
}

#[derive(Debug)]
struct Block {
    packets: u64,
    bytes: u64,
    first_at: Wall,
    /// Sum of stamps less the first.
    after_first: i128,
    marked_at: Vec<Wall>,
}

impl Block {
    fn empty(first_at: Wall) -> Self {
        Self { packets: 0, bytes: 0, first_at, after_first: 0, marked_at: Vec::new() }
    }
}

impl MarkingWatch {
    /// A task that reads the colour from bit `colour` of the DSCP (0 the lowest), and double marks
    /// from `delay`, in blocks of `block_ms`.
    pub fn new(colour: u8, delay: Option<u8>, block_ms: u32) -> Result<Self, TaskError> {
        watch::within("colour_bit", colour.into(), 0, 5)?;
        watch::within("delay_bit", delay.unwrap_or(0).into(), 0, 5)?;
        if delay == Some(colour) {
            return Err(TaskError::SameBit(colour));
        }
        let length = i64::from(watch::within("block_ms", block_ms, 10, 3_600_000)?) * 1_000_000;
        Ok(Self {
            colour,
            delay,
            length,
            blocks: BTreeMap::new(),
            read: i64::MIN,
            late: [0; 2],
            ended: false,
        })
    }

    /// The block of a packet: the nearest in time that has its colour.
    fn block(&self, at: Wall, colour: u8) -> i64 {
        let number = at.0.div_euclid(self.length);
        if (number & 1) as u8 == colour {
            return number;
        }
        let into = at.0.rem_euclid(self.length);
        if into < self.length / 2 { number - 1 } else { number + 1 }
    }

    fn hand_out(&mut self, number: i64, block: Block, found: &mut Found) {
        let colour = (number & 1) as u8;
        let mean = block.after_first / i128::from(block.packets.max(1));
        found.rows.push(Row::Marking(MarkingRow {
            key: FlowKey::default(),
            colour,
            block: number.max(0).cast_unsigned(),
            packets: block.packets,
            bytes: ByteCount(block.bytes),
            first_at: block.first_at,
            mean_at: Wall(block.first_at.0.saturating_add(mean as i64)),
            marked_at: block.marked_at,
            late: std::mem::take(&mut self.late[usize::from(colour)]),
        }));
    }
}

impl Watch for MarkingWatch {
    #[inline]
    fn observe(&mut self, seen: &Observed<'_>) {
        let packet = &seen.packet;
        let colour = packet.dscp >> self.colour & 1;
        let number = self.block(seen.at, colour);
        if number < self.read {
            self.late[usize::from(colour)] += u64::from(seen.segments);
            return;
        }
        if self.blocks.len() >= MOST_BLOCKS && !self.blocks.contains_key(&number) {
            // Stamps all over the place: nothing of a marked flow. The oldest block goes, and what
            // comes for it is late.
            if let Some((oldest, block)) = self.blocks.pop_first() {
                self.late[(oldest & 1) as usize] += block.packets;
                self.read = self.read.max(oldest + 1);
            }
        }
        let block = self.blocks.entry(number).or_insert_with(|| Block::empty(seen.at));
        block.packets += u64::from(seen.segments);
        block.bytes += seen.length();
        block.after_first +=
            (i128::from(seen.at.0) - i128::from(block.first_at.0)) * i128::from(seen.segments);
        let marked = self.delay.is_some_and(|bit| packet.dscp >> bit & 1 == 1);
        if marked && block.marked_at.len() < MOST_MARKED {
            block.marked_at.push(seen.at);
        }
    }

    /// Hands out the blocks that are over since half a block: until then packets may still be on
    /// their way; where none come any more, all. Without any, the last that is over, empty.
    fn close(&mut self, period: Period, found: &mut Found) {
        let over = period.until.0.saturating_sub(self.length / 2).div_euclid(self.length);
        let later = if self.ended { BTreeMap::new() } else { self.blocks.split_off(&over) };
        let blocks = std::mem::replace(&mut self.blocks, later);
        if blocks.is_empty() {
            // Whoever joins must know that it watched and nothing came.
            self.hand_out(
                over - 1,
                Block::empty(Wall(over.saturating_sub(1).saturating_mul(self.length))),
                found,
            );
        }
        for (number, block) in blocks {
            self.hand_out(number, block, found);
        }
        self.read = self.read.max(over);
    }

    fn end(&mut self) {
        self.ended = true;
    }
}

/// Double-marked packets whose stamps are kept; as the record says.
const MOST_MARKED: usize = 1024;

/// Blocks in memory: as many as a period has, were it of blocks of 10 ms and 40 s long.
const MOST_BLOCKS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::Made;

    const MS: i64 = 1_000_000;

    pub(super) fn rows(task: &mut MarkingWatch, until: i64) -> Vec<MarkingRow> {
        let mut found = Found::default();
        task.close(Period { from: Wall(0), until: Wall(until) }, &mut found);
        let marking = |row| if let Row::Marking(row) = row { row } else { panic!("{row:?}") };
        found.rows.into_iter().map(marking).collect()
    }

    #[test]
    fn packets_count_in_the_nearest_block_of_their_colour() {
        let mut task = MarkingWatch::new(0, None, 100).unwrap();
        // Sent at 95 and 105 (colours 0 and 1), seen 20 ms later; one of the next block seen early
        // by the clock here.
        for (at, colour) in [(15, 0), (115, 0), (125, 1), (190, 0), (199, 1)] {
            task.observe(&Made::udp4().dscp(colour).observed(Wall(at * MS)));
        }
        let said: Vec<_> =
            rows(&mut task, 1000 * MS).iter().map(|row| (row.block, row.colour, row.packets)).collect();
        assert_eq!(said, [(0, 0, 2), (1, 1, 2), (2, 0, 1)]);
    }

    #[test]
    fn a_block_is_read_half_a_block_after_its_end_and_what_comes_then_is_late() {
        let mut task = MarkingWatch::new(2, Some(0), 100).unwrap();
        for at in [10, 20, 30, 40] {
            task.observe(&Made::udp6().dscp(u8::from(at == 20)).observed(Wall(at * MS)));
        }
        let idle = rows(&mut task, 149 * MS);
        assert_eq!(idle.iter().map(|row| row.packets).collect::<Vec<_>>(), [0]);
        let row = rows(&mut task, 150 * MS).remove(0);
        assert_eq!((row.packets, row.first_at, row.mean_at), (4, Wall(10 * MS), Wall(25 * MS)));
        assert_eq!((row.marked_at, row.late), (vec![Wall(20 * MS)], 0));
        task.observe(&Made::udp6().observed(Wall(50 * MS)));
        task.observe(&Made::udp6().observed(Wall(210 * MS)));
        let row = rows(&mut task, 400 * MS).remove(0);
        assert_eq!((row.block, row.packets, row.late), (2, 1, 1));
        let row = rows(&mut task, 500 * MS).remove(0);
        assert_eq!(
            (row.block, row.packets, row.first_at),
            (3, 0, Wall(300 * MS)),
            "it watched, and nothing came"
        );
    }

    #[test]
    fn where_nothing_comes_any_more_blocks_that_are_not_over_are_read_as_well() {
        let mut task = MarkingWatch::new(0, None, 100).unwrap();
        // The last is a packet of the next colour that came early.
        for (at, colour) in [(50, 0), (150, 1), (199, 0)] {
            task.observe(&Made::udp4().dscp(colour).observed(Wall(at * MS)));
        }
        let said = |rows: Vec<MarkingRow>| -> Vec<(u64, u64)> {
            rows.iter().map(|row| (row.block, row.packets)).collect()
        };
        assert_eq!(said(rows(&mut task, 199 * MS)), [(0, 1)]);
        task.end();
        assert_eq!(said(rows(&mut task, 200 * MS)), [(1, 1), (2, 1)]);
    }

    #[test]
    fn stamps_all_over_the_place_take_no_more_than_the_bound() {
        let mut task = MarkingWatch::new(0, Some(1), 10).unwrap();
        for n in 0..20_000_i64 {
            let at = n.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed());
            task.observe(&Made::udp4().dscp((n & 3) as u8).observed(Wall(at)));
            assert!(task.blocks.len() <= MOST_BLOCKS);
        }
    }

    #[test]
    fn the_nearer_neighbour_of_a_block_takes_a_packet_of_the_other_colour() {
        let task = MarkingWatch::new(0, None, 100).unwrap();
        for (at, colour, block) in [
            (0, 0, 0),
            (99_999_999, 0, 0),
            (100_000_000, 1, 1),
            (100_000_000, 0, 0),
            (149_999_999, 0, 0),
            (150_000_000, 0, 2),
            (249_999_999, 1, 1),
            (250_000_000, 1, 3),
            (-1, 1, -1),
            (-1, 0, 0),
            (-60_000_000, 0, -2),
        ] {
            assert_eq!(task.block(Wall(at), colour), block, "colour {colour} at {at}");
        }
    }

    #[test]
    fn a_row_says_all_of_its_block_and_who_came_late_since_the_last_of_its_colour() {
        let row = |block: u64, [packets, bytes, late]: [u64; 3], [first, mean]: [i64; 2]| MarkingRow {
            key: FlowKey::default(),
            colour: (block & 1) as u8,
            block,
            packets,
            bytes: ByteCount(bytes),
            first_at: Wall(first),
            mean_at: Wall(mean),
            marked_at: Vec::new(),
            late,
        };
        let mut task = MarkingWatch::new(2, Some(0), 100).unwrap();
        let merged = Made::udp6().payload(&[7; 300]).dscp(1);
        task.observe(&Made::udp6().observed(Wall(10 * MS)));
        task.observe(&Observed { segments: 3, ..merged.observed(Wall(40 * MS)) });
        task.observe(&Made::udp6().dscp(4).observed(Wall(110 * MS)));
        // Three packets 30 ms after the first, with 48 bytes of headers each.
        let even = row(0, [4, 48 + 300 + 3 * 48, 0], [10 * MS, 32_500_000]);
        assert_eq!(rows(&mut task, 150 * MS), [MarkingRow { marked_at: vec![Wall(40 * MS)], ..even }]);
        task.observe(&Observed { segments: 3, ..merged.observed(Wall(20 * MS)) });
        assert_eq!(rows(&mut task, 350 * MS), [row(1, [1, 48, 0], [110 * MS; 2])]);
        task.observe(&Made::udp6().observed(Wall(210 * MS)));
        task.observe(&Made::udp6().observed(Wall(410 * MS)));
        assert_eq!(rows(&mut task, 600 * MS), [row(4, [1, 48, 4], [410 * MS; 2])]);
    }

    #[test]
    fn stamps_of_marked_packets_have_a_bound_and_packets_have_none() {
        let mut task = MarkingWatch::new(0, Some(1), 100).unwrap();
        for n in 0..1025 {
            task.observe(&Made::udp4().dscp(2).observed(Wall(n * 10_000)));
        }
        let row = rows(&mut task, 150 * MS).remove(0);
        assert_eq!((row.packets, row.marked_at.len()), (1025, 1024));
    }

    #[test]
    fn the_oldest_block_makes_room_and_what_it_had_is_late() {
        let mut task = MarkingWatch::new(0, None, 10).unwrap();
        let show = |task: &mut MarkingWatch, number: i64| {
            let made = Made::udp4().dscp((number & 1) as u8);
            task.observe(&made.observed(Wall(number * 10 * MS)));
        };
        (0..4096).for_each(|number| show(&mut task, number));
        // One that is there needs no room.
        show(&mut task, 5);
        assert_eq!((task.blocks.len(), task.blocks.contains_key(&0)), (4096, true));
        show(&mut task, 4096);
        assert_eq!((task.blocks.len(), task.blocks.contains_key(&0)), (4096, false));
        show(&mut task, 0);
        let said = rows(&mut task, 50_000 * MS);
        let said: Vec<_> = said.iter().map(|row| (row.block, row.packets, row.late)).collect();
        assert_eq!(said[..5], [(1, 1, 0), (2, 1, 2), (3, 1, 0), (4, 1, 0), (5, 2, 0)]);
        assert_eq!((said.len(), said[4095]), (4096, (4096, 1, 0)));
    }
}
