//! How long a receiver waits for packets of a volley that may still come.
//!
//! A packet that has not come may be lost, or wait in a queue. On a slow path the packets of one
//! train come seconds apart, and a fixed patience takes the second for lost. So the patience
//! follows the round trip, the longest time from one arrival to the next, and the longest wait in a
//! queue that this path has shown. That is another matter than how long one answer is waited for
//! ([`netaware_stats::patience`]): a volley is over when nothing comes any more. **Leans** to
//! waiting too long: a loss costs the patience, but a packet that is called lost and is not makes a
//! wrong figure.

use netaware_units::Span;

use crate::VolleyReport;

/// What the patience follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolleyPatience {
    rtt: Span,
    /// Longest time from one arrival of a train to the next, beyond that from send to send; absent
    /// before anything came.
    apart: Option<Span>,
    /// Longest delay above the shortest of the same train.
    queue: Span,
}

impl VolleyPatience {
    /// On a path with this round trip of which nothing else is known.
    pub fn new(rtt: Span) -> Self {
        Self { rtt: rtt.or_zero(), apart: None, queue: Span::ZERO }
    }

    /// For the next volley: from its planned end, or from its last arrival.
    pub fn now(&self) -> Span {
        let slow = self.apart.map_or(SLOWEST_PACKET, |apart| (apart * 2).min(SLOWEST_PACKET * 2));
        (self.rtt * 2 + LATENESS + slow + self.queue).min(LONGEST)
    }

    /// The longest wait in a queue, as of late.
    pub(crate) fn queue(&self) -> Span {
        self.queue
    }

    /// What became of a volley.
    pub fn observe(&mut self, report: &VolleyReport) {
        // What was long ago says little; a clock that was set is not to be waited for for ever.
        self.queue = self.queue * 3 / 4;
        self.apart = self.apart.map(|apart| apart * 3 / 4);
        for train in &report.trains {
            let delay = |number: u32, at: i64| {
                let sent = train.sent.get(number as usize).copied().flatten()?;
                Some(i128::from(at) - i128::from(sent))
            };
            let delays = train.arrivals.iter().filter_map(|it| delay(it.number, it.at));
            let ends = delays.fold(None, |ends: Option<(i128, i128)>, delay| {
                Some(ends.map_or((delay, delay), |(least, most)| (least.min(delay), most.max(delay))))
            });
            if let Some((least, most)) = ends {
                let queue = i64::try_from(most - least).unwrap_or(i64::MAX).min(LONGEST.nanos());
                self.queue = self.queue.max(Span(queue));
            }
            for pair in train.arrivals.windows(2) {
                let sent = |which: usize| train.sent.get(pair[which].number as usize).copied().flatten();
                let (Some(before), Some(after)) = (sent(0), sent(1)) else { continue };
                let beyond = pair[1].at.saturating_sub(pair[0].at) - after.saturating_sub(before).max(0);
                let beyond = Span(beyond.clamp(0, LONGEST.nanos()));
                self.apart = Some(self.apart.map_or(beyond, |apart| apart.max(beyond)));
            }
        }
    }
}

/// What a packet may be late beyond the round trip.
const LATENESS: Span = Span::from_millis(200);
/// A packet of 1500 bytes at 20 kbit/s: as slow as a path may be before its first packets came.
const SLOWEST_PACKET: Span = Span::from_millis(600);
/// As long as a responder may be asked to wait.
const LONGEST: Span = Span::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrival, TrainReport};

    fn came(apart: i64) -> VolleyReport {
        let arrivals = (0..3).map(|number| Arrival { number, at: i64::from(number) * apart }).collect();
        VolleyReport { trains: vec![TrainReport { sent: vec![Some(0); 3], arrivals }] }
    }

    #[test]
    fn a_packet_that_takes_a_second_is_waited_for() {
        let mut patience = VolleyPatience::new(Span::from_millis(10));
        assert!(patience.now() > Span::from_millis(600), "the first packets of 20 kbit/s");
        patience.observe(&came(1_000_000_000));
        assert!(patience.now() > Span::from_secs(1));
        patience.observe(&came(i64::MAX / 4));
        assert_eq!(patience.now(), LONGEST);
    }

    #[test]
    fn on_a_fast_path_a_loss_costs_little_more_than_two_round_trips() {
        let mut patience = VolleyPatience::new(Span::from_millis(10));
        patience.observe(&came(12_000));
        assert!(patience.now() < Span::from_millis(221), "{}", patience.now());
    }
}
