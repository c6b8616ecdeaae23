//! What a measurement may cost: a share of the capacity on average, and a time.

use netaware_units::{Mono, Span};

use crate::{Instrument, Volley};

/// Bytes, packets and time so far.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    max_load: f64,
    limit: Span,
    /// Of the limit, for hearing of the last volley.
    spare: Span,
    began: Option<Mono>,
    now: Mono,
    bytes: u64,
    packets: u64,
    /// The lowest rate seen so far, bit/s: what `max_load` is a share of.
    rate: Option<f64>,
}

impl Budget {
    pub(super) fn new(instrument: &Instrument, most: Span) -> Self {
        let max_load =
            if instrument.max_load.is_finite() { instrument.max_load.clamp(1e-4, 1.0) } else { 0.1 };
        let limit = most.min(instrument.time_limit).or_zero();
        let spare = instrument.rtt.or_zero() + Span(limit.nanos() / SPARE);
        Self { max_load, limit, spare, began: None, now: Mono(0), bytes: 0, packets: 0, rate: None }
    }

    /// It may take longer than it was given first.
    pub(super) fn prolong(&mut self, limit: Span) {
        self.limit = self.limit.max(limit);
        self.spare = self.spare.max(Span(self.limit.nanos() / SPARE));
    }

    /// Time passes; the first call is the begin.
    pub(super) fn at(&mut self, now: Mono) {
        self.began.get_or_insert(now);
        self.now = self.now.max(now);
    }

    pub(super) const fn limit(&self) -> Span {
        self.limit
    }

    pub(super) fn took(&self) -> Span {
        self.began.map_or(Span::ZERO, |began| self.now.since(began).or_zero())
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) const fn packets(&self) -> u64 {
        self.packets
    }

    /// A rate was seen; the lowest counts.
    pub(super) fn saw_rate(&mut self, rate: f64) {
        if rate.is_finite() && rate > 0.0 {
            self.rate = Some(self.rate.map_or(rate, |known| known.min(rate)));
        }
    }

    /// Bytes that may still be sent before the time is over.
    pub(super) fn bytes_left(&self) -> u64 {
        let Some(rate) = self.rate else { return u64::MAX };
        let all = rate * self.max_load * self.limit.secs_f64() / 8.0;
        (all as u64).saturating_sub(self.bytes)
    }

    /// How long `bytes` must last at the load that is allowed, ps.
    pub(super) fn picoseconds(&self, bytes: u64) -> u64 {
        self.rate.map_or(0, |rate| (bytes as f64 * 8e12 / (rate * self.max_load)).min(1e18) as u64)
    }

    /// When a volley may begin so that the average, with it, stays below what is allowed; `None` if
    /// it would not be over in time.
    pub(super) fn due(&self, volley: &Volley, lasts: Span) -> Option<Mono> {
        let began = self.began?;
        let all = self.picoseconds(self.bytes + volley.bytes()) / 1000;
        let end = began + Span(i64::try_from(all).unwrap_or(i64::MAX));
        let due = (end - lasts).max(self.now);
        (due + lasts + self.spare <= began + self.limit).then_some(due)
    }

    pub(super) fn spend(&mut self, volley: &Volley) {
        self.bytes += volley.bytes();
        self.packets += volley.trains.iter().map(|train| u64::from(train.packets)).sum::<u64>();
    }
}

/// A part of the limit is for queues that the last volley waits in, as they are longer where the
/// limit has to be.
const SPARE: i64 = 120;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gaps, Train};

    fn instrument() -> Instrument {
        Instrument {
            largest: 1500,
            smallest: 200,
            rtt: Span::from_millis(10),
            send_gap: Span(500),
            send_error: Span(300),
            receive_error: Span(500),
            largest_burst: 1_000_000,
            max_load: 0.1,
            time_limit: Span::from_millis(3_100),
            carried: None,
        }
    }

    #[test]
    fn what_is_no_rate_is_not_taken_for_one_and_time_does_not_run_backwards() {
        let mut budget = Budget::new(&instrument(), Span::from_secs(3));
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            budget.saw_rate(rate);
        }
        assert_eq!((budget.bytes_left(), budget.picoseconds(1_000)), (u64::MAX, 0));
        assert_eq!(budget.took(), Span::ZERO);
        for now in [5, 9, 7] {
            budget.at(Mono(now));
        }
        assert_eq!((budget.took(), budget.bytes(), budget.packets()), (Span(4), 0, 0));
        // 8000 bit at a tenth of 10 Mbit/s.
        budget.saw_rate(1e7);
        assert_eq!(budget.picoseconds(1_000), 8_000_000_000);
    }

    #[test]
    fn the_average_load_is_kept_by_waiting_and_the_limit_by_not_sending() {
        let mut budget = Budget::new(&instrument(), Span::from_secs(30));
        budget.at(Mono(1_000));
        let train = Train { packets: 100, length: 1250, gaps: Gaps::BackToBack, rest: Span::ZERO };
        let volley = Volley { trains: vec![train] };
        assert_eq!(budget.due(&volley, Span::ZERO), Some(Mono(1_000)));
        budget.saw_rate(10e6);
        budget.saw_rate(20e6);
        // A megabit at a tenth of 10 Mbit/s is a second.
        assert_eq!(budget.due(&volley, Span::ZERO), Some(Mono(1_000_001_000)));
        budget.spend(&volley);
        budget.spend(&volley);
        assert_eq!(budget.due(&volley, Span::ZERO), Some(Mono(3_000_001_000)));
        // It could begin in time, and end; to hear of it takes longer.
        assert_eq!(budget.due(&volley, Span::from_millis(3_070)), None);
        budget.spend(&volley);
        assert_eq!((budget.due(&volley, Span::ZERO), budget.bytes_left()), (None, 12_500));
    }
}
