//! Trains of packets that a prober asks for one volley after the other, and when their packets left
//! or came.
//!
//! ```text
//! prober                                   responder
//!   | Open (trains), flow attaches, Start, Started as for every test
//!   | Volley 1 ------------------------------>  |
//!   |   forward: the prober sends its trains    |   reverse: the responder sends them
//!   |  <------------------------ VolleyTimes…   |   when each packet came, or left
//!   | Volley 2 …                                |
//!   | Stop ---------------------------------->  |
//!   |  <-------------------------- Finished     |
//! ```

use netaware_record::Direction;
use netaware_units::Span;
use serde::{Deserialize, Serialize};

use crate::datagram::{HEADER_LEN, MAX_PAYLOAD};

/// Packets of one volley.
pub const MAX_VOLLEY_PACKETS: u64 = 1 << 16;
/// Longest plan of one volley.
pub const MAX_VOLLEY_TIME: Span = Span::from_secs(10);
/// Longest wait for the packets of a volley that do not come.
pub const MAX_VOLLEY_PATIENCE: Span = Span::from_secs(5);
/// Times in one message.
pub const TIMES_IN_A_MESSAGE: usize = 1024;

/// A test whose trains are asked for while it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainsPlan {
    /// `Forward`: the prober sends.
    pub direction: Direction,
    /// How long at most.
    pub duration: Span,
    /// Largest payload of a datagram.
    pub length: u32,
    /// DSCP, 0..=63.
    #[serde(default)]
    pub dscp: u8,
}

/// One train.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainSpec {
    /// Datagrams.
    pub packets: u32,
    /// Payload of each.
    pub length: u32,
    /// Picoseconds from datagram to datagram: none for back to back, one for equal distances, or
    /// one for each but the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps_ps: Vec<u64>,
    /// From the plan of the last datagram before, or from the begin, to the first of this train.
    #[serde(default)]
    pub rest: Span,
}

/// Trains that are sent one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolleySpec {
    /// Counts from zero.
    pub number: u32,
    /// Sequence number of its first datagram; they go on from volley to volley.
    pub first: u64,
    /// In the order of sending.
    pub trains: Vec<TrainSpec>,
    /// After so long without a datagram of it, the rest counts as lost.
    pub patience: Span,
}

impl TrainSpec {
    /// Distance from datagram `n` to the next as planned, ps.
    pub fn gap_ps(&self, n: u32) -> u64 {
        match self.gaps_ps.as_slice() {
            [] => 0,
            [even] => *even,
            each => each.get(n as usize).copied().unwrap_or(0),
        }
    }

    /// From its first datagram to its last as planned, ps.
    fn span_ps(&self) -> u128 {
        match self.gaps_ps.as_slice() {
            [] => 0,
            [even] => u128::from(*even) * u128::from(self.packets.saturating_sub(1)),
            each => each.iter().map(|gap| u128::from(*gap)).sum(),
        }
    }
}

impl VolleySpec {
    /// Datagrams of all its trains.
    pub fn packets(&self) -> u64 {
        self.trains.iter().map(|train| u64::from(train.packets)).sum()
    }

    /// Payload of all its datagrams, bytes.
    pub fn payload(&self) -> u64 {
        let bytes = |train: &TrainSpec| u64::from(train.packets) * u64::from(train.length);
        self.trains.iter().fold(0, |sum, train| sum.saturating_add(bytes(train)))
    }

    /// Between its trains, in all.
    pub fn rests(&self) -> Span {
        let sum: i128 = self.trains.iter().map(|train| i128::from(train.rest.0)).sum();
        Span(i64::try_from(sum).unwrap_or(i64::MAX)).or_zero()
    }

    /// From its begin to its last datagram as planned.
    pub fn planned(&self) -> Span {
        let span = |train: &TrainSpec| i128::from(train.rest.0) + (train.span_ps() / 1000).cast_signed();
        let nanos: i128 = self.trains.iter().map(span).sum();
        Span(i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    /// Why it cannot be sent within `plan`, if so.
    pub fn fault(&self, plan: &TrainsPlan) -> Option<&'static str> {
        let longest = plan.length.min(MAX_PAYLOAD as u32);
        let fits = |train: &TrainSpec| {
            let gaps = train.gaps_ps.len();
            (HEADER_LEN as u32..=longest).contains(&train.length)
                && train.packets > 0
                && train.rest >= Span::ZERO
                && (gaps <= 1 || gaps + 1 == train.packets as usize)
        };
        if !(1..=MAX_VOLLEY_PACKETS).contains(&self.packets()) {
            return Some("a volley has 1 to 65536 packets");
        }
        if !self.trains.iter().all(fits) {
            return Some(
                "a train has packets of the plan's length at most, and no gaps, one, or one for each packet but the first",
            );
        }
        if self.first.checked_add(MAX_VOLLEY_PACKETS).is_none() {
            return Some("the sequence numbers run out");
        }
        if self.planned() > MAX_VOLLEY_TIME {
            return Some("a volley takes 10 s at most");
        }
        if !(Span::ZERO..=MAX_VOLLEY_PATIENCE).contains(&self.patience) {
            return Some("patience is 0 to 5 s");
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> TrainsPlan {
        TrainsPlan { direction: Direction::Forward, duration: Span::from_secs(10), length: 1472, dscp: 0 }
    }

    fn volley(trains: Vec<TrainSpec>) -> VolleySpec {
        VolleySpec { number: 0, first: 0, trains, patience: Span::from_millis(100) }
    }

    fn train(packets: u32, length: u32, gaps_ps: Vec<u64>) -> TrainSpec {
        TrainSpec { packets, length, gaps_ps, rest: Span::ZERO }
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        let rows = [
            (volley(vec![train(3, 1472, vec![])]), true),
            (volley(vec![train(3, 1472, vec![5]), train(3, 24, vec![5, 6])]), true),
            (volley(vec![]), false),
            (volley(vec![train(0, 100, vec![]), train(1, 100, vec![])]), false),
            (volley(vec![train(3, 1473, vec![])]), false),
            (volley(vec![train(3, 23, vec![])]), false),
            (volley(vec![train(3, 100, vec![1, 2, 3])]), false),
            (volley(vec![train(65_537, 100, vec![])]), false),
            (volley(vec![train(2, 100, vec![10_000_000_001_000])]), false),
            (volley(vec![train(2, 100, vec![u64::MAX])]), false),
            (VolleySpec { first: u64::MAX, ..volley(vec![train(2, 100, vec![])]) }, false),
            (VolleySpec { patience: Span::from_secs(6), ..volley(vec![train(2, 100, vec![])]) }, false),
            (VolleySpec { patience: Span(-1), ..volley(vec![train(2, 100, vec![])]) }, false),
            (volley(vec![TrainSpec { rest: Span(-1), ..train(2, 100, vec![]) }]), false),
        ];
        for (n, (volley, fits)) in rows.into_iter().enumerate() {
            assert_eq!(volley.fault(&plan()).is_none(), fits, "row {n}: {volley:?}");
        }
    }

    #[test]
    fn the_plan_is_the_sum_of_rests_and_gaps() {
        let rest = Span::from_micros(7);
        let volley = volley(vec![
            TrainSpec { rest, ..train(11, 100, vec![1_000_000]) },
            TrainSpec { rest, ..train(3, 100, vec![1_500_000, 500_000]) },
        ]);
        assert_eq!((volley.packets(), volley.planned()), (14, Span::from_micros(7 + 10 + 7 + 2)));
        assert_eq!(volley.rests(), rest * 2);
    }
}
