//! What was odd about the trains of a measurement: loss, batches, pauses of the sender, another
//! path in mid-run.

use netaware_stats::quantile::median;
use netaware_units::Span;

use crate::Flag;
use crate::available::passage::Passage;
use crate::batching::Batching;
use crate::path_change::Levels;

/// Gathers over all trains.
#[derive(Debug, Clone, Default)]
pub(crate) struct Health {
    sent: u64,
    arrived: u64,
    reordered: u64,
    trains: u32,
    interrupted: u32,
    levels: Levels,
    /// The same of the trains of each packet length: on a slow link a shorter packet takes less
    /// time, and that is no other path.
    by_length: Vec<(u32, Levels)>,
    batchings: Vec<Batching>,
}

impl Health {
    /// Of a method that follows another one: what changes from one to the other is seen as well.
    pub(crate) fn after(other: &Self) -> Self {
        Self { levels: other.levels.clone(), by_length: other.by_length.clone(), ..Self::default() }
    }

    /// One more train.
    pub(crate) fn saw(&mut self, passage: &Passage) {
        self.sent += u64::from(passage.sent);
        self.arrived += u64::from(passage.arrived);
        self.reordered += u64::from(passage.reordered);
        self.trains += 1;
        self.interrupted += u32::from(passage.interrupted);
        if let Some(level) = passage.level() {
            self.levels.saw(level);
            let length = passage.length();
            if !self.by_length.iter().any(|(of, _)| *of == length) {
                self.by_length.push((length, Levels::default()));
            }
            let of_length = self.by_length.iter_mut().filter(|(of, _)| *of == length);
            of_length.for_each(|(_, levels)| levels.saw(level));
        }
        self.batchings.extend(passage.batching());
    }

    /// Share of the packets that were lost.
    pub(crate) fn lost(&self) -> f64 {
        1.0 - self.arrived as f64 / self.sent.max(1) as f64
    }

    /// From batch to batch; zero without.
    pub(crate) fn period(&self) -> Span {
        self.batching().map_or(Span::ZERO, |batching| Span(batching.period as i64))
    }

    /// Medians over the trains that were handed over in batches.
    fn batching(&self) -> Option<Batching> {
        let of = |of: fn(&Batching) -> f64| median(&self.batchings.iter().map(of).collect::<Vec<_>>());
        Some(Batching { period: of(|batching| batching.period)?, batch: of(|batching| batching.batch)? })
    }

    /// Whether a third of the trains were cut by their sender.
    pub(crate) fn sender_is_late(&self) -> bool {
        self.interrupted * 3 > self.trains
    }

    /// Whether the delay moved by more than queues explain.
    pub(crate) fn path_changed(&self) -> bool {
        let of_lengths = if self.by_length.len() > 1 { SLOW_PACKET } else { 0 };
        // The first packet of a batch waits for up to its period, as the train's rate has it.
        let least = LEAST.max(i128::from(self.period().nanos()));
        self.by_length.iter().any(|(_, levels)| levels.changed_by(least))
            || self.levels.changed_by(of_lengths.max(least))
    }

    /// What a reader must know; `limit` is the share of loss from which on the method's figures
    /// suffer.
    pub(crate) fn flags(&self, limit: f64) -> Vec<Flag> {
        let mut flags = Vec::new();
        if self.sender_is_late() {
            flags.push(Flag::HostLimited);
        }
        let often = self.batchings.len() as u64 * 3 > u64::from(self.trains);
        flags.extend(self.batching().filter(|_| often).map(|batching| batching.flag()));
        if self.sent > 0 && self.lost() > limit {
            flags.push(Flag::Lossy(self.lost()));
        }
        let reordered = self.reordered as f64 / self.arrived.max(1) as f64;
        if reordered > REORDERED {
            flags.push(Flag::Reordered(reordered));
        }
        if self.path_changed() {
            flags.push(Flag::PathChanged);
        }
        flags
    }
}

/// ns; packets whose lengths differ may differ by so much on a slow link.
const SLOW_PACKET: i128 = 200_000_000;
/// ns; less is not told from how a host hands packets over.
const LEAST: i128 = 20_000;
/// Packets that others have overtaken: a share above this is told.
const REORDERED: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrival, Gaps, Train, TrainReport};

    fn health(delays: impl Iterator<Item = i64>) -> Health {
        let train = Train { packets: 10, length: 1500, gaps: Gaps::Even(1_000_000), rest: Span::ZERO };
        let mut health = Health::default();
        for (number, delay) in (0_i64..).zip(delays) {
            let sent: Vec<i64> = (0..10).map(|packet| number * 1_000_000 + packet * 1000).collect();
            let arrivals =
                (0_u32..).zip(&sent).map(|(number, at)| Arrival { number, at: at + delay }).collect();
            let report = TrainReport { sent: sent.into_iter().map(Some).collect(), arrivals };
            health.saw(&Passage::of(&train, &report));
        }
        health
    }

    #[test]
    fn shorter_packets_on_a_slow_link_are_not_another_path() {
        let mut health = Health::default();
        for (number, length) in (0_i64..).zip([1500, 1500, 1500, 1500, 1000, 1000, 1000, 1000]) {
            let train = Train { packets: 10, length, gaps: Gaps::Even(1_000_000), rest: Span::ZERO };
            // 10 Mbit/s.
            let delay = i64::from(length) * 800;
            let sent: Vec<i64> = (0..10).map(|packet| number * 1_000_000 + packet * 1000).collect();
            let arrivals =
                (0_u32..).zip(&sent).map(|(number, at)| Arrival { number, at: at + delay }).collect();
            let report = TrainReport { sent: sent.into_iter().map(Some).collect(), arrivals };
            health.saw(&Passage::of(&train, &report));
        }
        assert_eq!(health.flags(0.1), []);
    }

    #[test]
    fn a_step_of_the_delay_is_another_path() {
        for by in [2_000_000, -2_000_000] {
            let found = health((0..20).map(|n| 5_000_000 + n % 3 * 100_000 + if n < 8 { 0 } else { by }));
            assert_eq!(found.flags(0.1), [Flag::PathChanged]);
        }
    }

    #[test]
    fn what_is_odd_is_told_beyond_a_third_of_the_trains_and_a_share_of_the_packets() {
        let batchings =
            vec![Batching { period: 50_000.0, batch: 4.0 }, Batching { period: 70_000.0, batch: 6.0 }];
        let odd = Health {
            sent: 200,
            arrived: 150,
            reordered: 30,
            trains: 5,
            interrupted: 2,
            levels: Levels::default(),
            by_length: Vec::new(),
            batchings,
        };
        let coalescing = Flag::Coalescing { period: Span(60_000), batch: 5.0 };
        let (late, lossy, reordered) = (Flag::HostLimited, Flag::Lossy(0.25), Flag::Reordered(0.2));
        assert_eq!(odd.flags(0.24), [late, coalescing, lossy, reordered]);
        assert_eq!(odd.period(), Span(60_000));
        // A quarter of the packets, a third of the trains and one packet of a hundred are none too
        // many.
        assert_eq!(odd.flags(0.25), [late, coalescing, reordered]);
        assert_eq!(Health { trains: 6, ..odd.clone() }.flags(0.25), [reordered]);
        assert_eq!(Health { trains: 6, arrived: 100, reordered: 1, ..odd.clone() }.flags(0.5), []);
    }

    #[test]
    fn trains_and_their_packets_are_counted() {
        let mut found = health([0, 1, 2].into_iter());
        let train = Train { packets: 10, length: 1500, gaps: Gaps::Even(1_000_000), rest: Span::ZERO };
        // One comes late, one is lost, and the sender paused behind the sixth.
        let at = |number: i64| number * 1_000 + if number > 5 { 1_000_000 } else { 0 };
        let arrivals =
            [0, 2, 1, 3, 4, 6, 7, 8, 9].map(|number| Arrival { number, at: at(i64::from(number)) });
        let report = TrainReport {
            sent: (0..10).map(|number| Some(at(number))).collect(),
            arrivals: arrivals.to_vec(),
        };
        found.saw(&Passage::of(&train, &report));
        let Health { sent, arrived, reordered, trains, interrupted, .. } = found;
        assert_eq!((sent, arrived, reordered, trains, interrupted), (40, 39, 1, 4, 1));
        assert!((found.lost() - 0.025).abs() < 1e-9);
    }

    #[test]
    fn a_path_that_changes_from_one_method_to_the_next_is_seen_by_the_next() {
        let before = health((0..20).map(|n| 5_000_000 + if n < 8 { 0 } else { 2_000_000 }));
        let after = Health::after(&before);
        assert_eq!((after.flags(0.1), after.sent), (vec![Flag::PathChanged], 0));
    }

    #[test]
    fn nothing_sent_is_nothing_lost() {
        assert_eq!(Health::default().flags(0.0), []);
    }
}
