//! What a method may still send: bytes are earned by waiting, at `max_load` of the capacity.
//!
//! **Assumes** of the capacity what the path has shown so far: a rate at which trains arrived that
//! one of sixteen has passed. The fastest of all may be above the narrow link's, where a loaded
//! link behind that has pushed the train together. **Leans** to less load than allowed. Before the
//! first train nothing is known; what it cost is waited for afterwards.

use netaware_units::{Mono, Span};

use crate::available::sender::{Sender, duration};
use crate::{Instrument, Volley};

/// The account of one measurement.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    begin: Option<Mono>,
    heard: Mono,
    limit: Span,
    load: f64,
    rtt: Span,
    /// bit/s; 0 as long as nothing arrived.
    capacity: f64,
    /// Rates of arrival, bit/s, the fastest first; as many as can still matter.
    arrivals: Vec<f64>,
    /// Trains that arrived.
    arrived: usize,
    /// IP bytes that another method has sent in the time of this one.
    elsewhere: u64,
    /// IP bytes sent.
    pub(crate) bytes: u64,
    /// Packets sent.
    pub(crate) packets: u64,
}

impl Budget {
    /// For a method that takes no longer than `limit` by itself.
    pub(crate) fn new(instrument: &Instrument, limit: Span) -> Self {
        let load = if instrument.max_load.is_finite() { instrument.max_load.clamp(0.001, 1.0) } else { 0.1 };
        Self {
            begin: None,
            heard: Mono(0),
            limit: limit.min(instrument.time_limit).or_zero(),
            load,
            rtt: instrument.rtt.or_zero(),
            capacity: 0.0,
            arrivals: Vec::new(),
            arrived: 0,
            elsewhere: 0,
            bytes: 0,
            packets: 0,
        }
    }

    /// It may take longer than it was given first; whether that is more.
    pub(crate) fn prolong(&mut self, limit: Span) -> bool {
        let is_more = limit > self.limit;
        self.limit = self.limit.max(limit);
        is_more
    }

    /// The measurement begins with the first question.
    pub(crate) fn begin(&mut self, now: Mono) {
        if self.begin.is_none() {
            self.begin = Some(now);
            self.heard = now;
        }
    }

    /// A train of so many packets arrived at this rate, bit/s.
    pub(crate) fn saw(&mut self, rate: f64, packets: f64) {
        if !rate.is_finite() || rate <= 0.0 {
            return;
        }
        let rate = rate * (1.0 - CHANCE / packets.max(1.0).sqrt());
        let place = self.arrivals.partition_point(|known| *known >= rate);
        self.arrivals.insert(place, rate);
        self.arrivals.truncate(MOST_ARRIVALS);
        self.arrived += 1;
        let rank = (self.arrived / PASSED_BY).min(self.arrivals.len() - 1);
        self.capacity = self.arrivals[rank];
    }

    /// The capacity is known from elsewhere, bit/s.
    pub(crate) fn knows(&mut self, capacity: f64) {
        self.saw(capacity, f64::INFINITY);
    }

    /// bit/s that bytes are earned by; 0 as long as nothing arrived.
    pub(crate) fn capacity(&self) -> f64 {
        self.capacity
    }

    /// When `volley` may leave; `None` if it could not be over in time.
    pub(crate) fn due(&self, now: Mono, volley: &Volley, sender: &Sender) -> Option<Mono> {
        let begin = self.begin?;
        let lasts = volley_duration(volley, sender);
        let due = if self.capacity > 0.0 {
            // Earned when its last packet has left.
            let earned = (self.elsewhere + self.bytes + volley.bytes()) as f64 * 8.0
                / (self.load * self.capacity * CAUTION);
            now.max(begin + Span::from_secs_f64(earned) - lasts)
        } else {
            now
        };
        let back = due + lasts + self.rtt * 2 + PATIENCE.min(self.limit / 10);
        (back <= begin + self.limit).then_some(due)
    }

    /// A rest before a train, so that such trains with such rests make no more than the allowed
    /// load.
    pub(crate) fn rest(&self, bits: f64, lasts: Span) -> Span {
        if self.capacity <= 0.0 {
            return Span::ZERO;
        }
        (Span::from_secs_f64(bits / (self.load * self.capacity * CAUTION)) - lasts).or_zero()
    }

    /// Bits that may still be sent.
    pub(crate) fn bits_left(&self, now: Mono) -> f64 {
        let begin = self.begin.unwrap_or(now);
        // Reports travel, and the last of them must be back.
        let end = (self.limit - self.rtt * 12 - PATIENCE.min(self.limit / 10)).or_zero().secs_f64();
        let left = (begin + self.limit - now).or_zero().secs_f64();
        let allowed = self.load * self.capacity * CAUTION * end - (self.elsewhere + self.bytes) as f64 * 8.0;
        // Where the allowance was saved up, the link's own rate still bounds what the rest of the
        // time takes.
        allowed.min(0.5 * self.capacity * left).max(0.0)
    }

    /// Another method has sent so many IP bytes in all: they count for the load.
    pub(crate) fn spent_elsewhere(&mut self, bytes: u64) {
        self.elsewhere = bytes;
    }

    /// It was asked for.
    pub(crate) fn charge(&mut self, volley: &Volley) {
        self.bytes += volley.bytes();
        self.packets += volley.trains.iter().map(|train| u64::from(train.packets)).sum::<u64>();
    }

    /// Its report is here.
    pub(crate) fn heard(&mut self, now: Mono) {
        self.heard = self.heard.max(now);
    }

    /// From the begin to the last report.
    pub(crate) fn took(&self) -> Span {
        self.begin.map_or(Span::ZERO, |begin| self.heard.since(begin))
    }

    /// Time that is left.
    pub(crate) fn time_left(&self, now: Mono) -> Span {
        self.begin.map_or(self.limit, |begin| (begin + self.limit).since(now).or_zero())
    }
}

/// By which a single packet's gap is off; of a train it is less by the square root of its packets.
const CHANCE: f64 = 0.6;
/// One of so many trains may have arrived faster than what is taken for the capacity.
const PASSED_BY: usize = 16;
/// Fastest arrivals that are kept.
const MOST_ARRIVALS: usize = 64;
/// What the last report brings is not known before.
const CAUTION: f64 = 0.95;
/// How long a report may be held back for packets that do not come.
const PATIENCE: Span = Span::from_millis(60);

/// From the volley's begin to its last packet.
pub(crate) fn volley_duration(volley: &Volley, sender: &Sender) -> Span {
    let lasts = |train| duration(train, f64::from(train.length) * 8.0, sender.fastest) + train.rest;
    volley.trains.iter().map(lasts).fold(Span::ZERO, |sum, one| sum + one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::available::fifo::instrument;

    fn volley(sender: &Sender, packets: u32) -> Volley {
        Volley { trains: vec![sender.train(1e8, packets, Span::ZERO)] }
    }

    #[test]
    fn bytes_leave_when_they_are_earned() {
        let host = instrument(1e8);
        let sender = Sender::new(&host);
        let mut budget = Budget::new(&host, Span::from_secs(10));
        budget.begin(Mono(0));
        budget.knows(1e8);
        let volley = volley(&sender, 100);
        let due = budget.due(Mono(0), &volley, &sender).unwrap();
        let over = due + volley_duration(&volley, &sender);
        // 1.2 Mbit at 10 % of 100 Mbit/s, with caution.
        assert!((over.0 as f64 / 1e6 - 120.0 / 0.95).abs() < 0.1, "{over:?}");
        budget.charge(&volley);
        assert!(budget.due(over, &volley, &sender).unwrap() > over + Span::from_millis(100));
    }

    #[test]
    fn the_capacity_is_what_one_of_sixteen_trains_has_passed() {
        let host = instrument(1e8);
        let mut budget = Budget::new(&host, Span::from_secs(10));
        for nothing in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            budget.saw(nothing, 100.0);
        }
        assert_eq!((budget.capacity().to_bits(), budget.arrived), (0.0_f64.to_bits(), 0));
        let after = (1..=32_u32).map(|rate| {
            budget.knows(f64::from(rate) * 1e6);
            (budget.capacity() / 1e6).round() as u32
        });
        let after: Vec<u32> = after.collect();
        assert_eq!([0, 14, 15, 30, 31].map(|n| after[n]), [1, 15, 15, 30, 30]);
        // Of 36 packets a tenth may be chance, of a single one six tenths.
        let of = |packets: f64| {
            let mut budget = Budget::new(&host, Span::from_secs(10));
            budget.saw(1e8, packets);
            (budget.capacity() / 1e6).round() as u32
        };
        assert_eq!([36.0, 1.0, 0.25].map(of), [90, 40, 40]);
    }

    #[test]
    fn what_may_still_be_sent_is_bounded_by_the_load_and_at_the_end_by_the_time() {
        let host = instrument(1e8);
        let sender = Sender::new(&host);
        let mut budget = Budget::new(&host, Span::from_secs(10));
        let second = |n: u64| Mono(n * 1_000_000_000);
        assert_eq!((budget.took(), budget.time_left(second(3))), (Span::ZERO, Span::from_secs(10)));
        budget.begin(second(1));
        budget.begin(second(2));
        budget.knows(1e8);
        let left = |budget: &Budget, now: Mono| budget.bits_left(now).round() as u64;
        // 95 % of a tenth, for ten seconds less twelve round trips of 10 ms and 60 ms.
        assert_eq!(left(&budget, second(1)), 93_290_000);
        budget.charge(&volley(&sender, 100));
        assert_eq!((budget.bytes, budget.packets), (150_000, 100));
        assert_eq!(left(&budget, second(1)), 92_090_000);
        // Half of what the link carries in the last tenth of a second.
        assert_eq!(left(&budget, Mono(10_900_000_000)), 5_000_000);
        assert_eq!(left(&budget, second(12)), 0);
        budget.heard(second(3));
        budget.heard(second(2));
        assert_eq!((budget.took(), budget.time_left(second(4))), (Span::from_secs(2), Span::from_secs(7)));
        // Ten gaps of 120 us, four of 60 us, and a rest.
        let fast = crate::Train { packets: 5, length: 1500, gaps: crate::Gaps::BackToBack, rest: Span::ZERO };
        let trains = vec![sender.train(1e8, 11, Span::from_millis(5)), fast];
        assert_eq!(volley_duration(&Volley { trains }, &sender), Span::from_micros(6_440));
    }

    #[test]
    fn nothing_leaves_that_cannot_be_back_in_time() {
        let host = instrument(1e8);
        let sender = Sender::new(&host);
        let mut budget = Budget::new(&host, Span::from_millis(230));
        budget.begin(Mono(0));
        budget.knows(1e8);
        assert!(budget.due(Mono(0), &volley(&sender, 100), &sender).is_some());
        assert!(budget.due(Mono(0), &volley(&sender, 200), &sender).is_none());
        assert!(budget.due(Mono(199_000_000), &volley(&sender, 10), &sender).is_none());
    }

    #[test]
    fn trains_with_their_rests_make_the_allowed_load() {
        let host = instrument(1e8);
        let mut budget = Budget::new(&host, Span::from_secs(10));
        budget.begin(Mono(0));
        budget.knows(1e8);
        let rest = budget.rest(1e6, Span::from_millis(20)).millis_f64();
        assert!((rest - (100.0 / 0.95 - 20.0)).abs() < 0.01, "{rest}");
    }
}
