//! Which trains to send: rates at a distance from the available bandwidth that chance does not
//! bridge.
//!
//! A train strained by s for a time t lifts the queue by s t; bursts move it by a standard
//! deviation that grows as the root of t. Only where the first is more than the second does the
//! queue stay busy and the line hold.

use netaware_units::{Mono, Span};

use crate::Volley;
use crate::available::budget::Budget;
use crate::available::health::Health;
use crate::available::line::{Fit, Sample};
use crate::available::sender::Sender;
use crate::batching::least_duration;

/// The trains still to be sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Plan {
    /// Available bandwidth and tight capacity, bit/s.
    pub(super) near: Option<(f64, f64)>,
    /// Least packets of a train.
    pub(super) packets: u32,
    scatter: f64,
    /// Rate of a link in front of the tight one, bit/s; nothing as long as none is seen.
    narrow: f64,
    round: u32,
    /// Shortest train that is read well enough, ns.
    shortest: f64,
}

impl Plan {
    /// For stamps that are wrong by `error` ns.
    pub(super) fn new(error: f64) -> Self {
        Self { shortest: least_duration(error, READ) / (1.0 - SKIPPED), ..Self::default() }
    }

    pub(super) fn begin(&mut self, available: f64, capacity: f64, packets: u32) {
        self.near = Some((available, capacity));
        self.packets = if packets > ENOUGH { packets } else { 0 };
    }

    /// What the trains so far say; `narrow` is the rate of a link in front of the tight one, bit/s,
    /// if there is any.
    pub(super) fn improve(&mut self, fit: &Fit, scatter: f64, narrow: f64) {
        self.round += 1;
        self.scatter = scatter;
        self.narrow = narrow;
        if let Some((available, _)) = self.near {
            let available = fit.available.max(available / 4.0).min(available * 2.0);
            self.near = Some((available, fit.capacity));
        }
    }

    /// Trains were handed over in too few batches.
    pub(super) fn lengthen(&mut self, sender: &Sender) {
        self.packets = self.packets.max(ENOUGH).saturating_mul(2).min(sender.longest);
    }

    /// Whether there are rounds enough for a figure at all.
    pub(super) const fn is_begun(&self) -> bool {
        self.round >= FEWEST_ROUNDS
    }

    /// Whether all rounds have been sent that are wanted in any case.
    pub(super) const fn is_done(&self) -> bool {
        self.round >= ROUNDS
    }

    /// Whether the bytes last for one round more of trains as long as they should be.
    pub(super) fn has_room(&self, sender: &Sender, budget: &Budget, health: &Health, now: Mono) -> bool {
        let Some((rate, _)) = self.near.filter(|_| self.round < MOST_ROUNDS) else { return false };
        let share = budget.bits_left(now) / MANY.len() as f64 / sender.bits();
        share * AFFORDED >= self.wanted(sender, health, rate)
    }

    pub(super) fn volley(&self, sender: &Sender, budget: &Budget, health: &Health, now: Mono) -> Volley {
        let Some((available, capacity)) = self.near else { return Volley::default() };
        let packets = self.affordable(sender, budget, health, available, now);
        let factors: &[f64] = if packets < SHORT { &FEW } else { &MANY };
        // A sixth as many trains, each so much longer.
        let packets = (packets as usize * MANY.len() / factors.len()) as u32;
        let lasts = f64::from(packets) * sender.bits() / available;
        let least = (DISTANCE * self.scatter / (SKIPPED * lasts).sqrt()).clamp(LEAST, MOST / 2.0);
        let train = |factor: &f64| {
            let rate = available + (least * factor).min(MOST) * capacity;
            // Behind a narrow link faster trains say nothing more.
            let rate = if self.narrow > 0.0 { rate.min(self.narrow * BEYOND) } else { rate };
            let train = sender.train(rate, packets, Span::ZERO);
            let bits = f64::from(train.packets) * sender.bits();
            let lasts = Span::from_secs_f64(bits / rate.max(1.0));
            crate::Train { rest: budget.rest(bits, lasts), ..train }
        };
        Volley { trains: factors.iter().map(train).collect() }
    }

    /// Packets of each of six trains a round.
    fn affordable(&self, sender: &Sender, budget: &Budget, health: &Health, rate: f64, now: Mono) -> u32 {
        let rounds = ROUNDS.saturating_sub(self.round).max(1);
        let trains = f64::from(rounds) * MANY.len() as f64;
        let share = budget.bits_left(now) / trains / sender.bits();
        self.wanted(sender, health, rate).min(share * AFFORDED).max(f64::from(SHORTEST)) as u32
    }

    /// Packets of a train that is read well and keeps the queue busy.
    fn wanted(&self, sender: &Sender, health: &Health, rate: f64) -> f64 {
        let batches = BATCHES * health.period().secs_f64() * rate * 1.3 / sender.bits();
        let read = self.shortest / 1e9 * rate * 1.3 / sender.bits();
        // Bursts need longer trains: so long that the strain which keeps the queue busy can stay
        // small.
        let enough = f64::from(ENOUGH) * sender.bits() / rate;
        let burst = DISTANCE * self.scatter / (SKIPPED * enough).sqrt() / BUSY;
        let wanted = f64::from(ENOUGH.max(self.packets)) * (burst * burst).clamp(1.0, LONGER);
        wanted.max(batches).max(read)
    }
}

/// Share of the time in which the queue was empty, as a random walk with this scatter and strain
/// has it: what a train's stretch is too large by, on average.
pub(super) fn empty(used: &[Sample], fit: &Fit) -> f64 {
    let one = |sample: &Sample| {
        let strain = super::strain(sample, fit).max(0.01);
        // The walk's greatest fall is exponential with this mean, s; what the skipped part lifted
        // comes off.
        let fall = fit.scatter * fit.scatter / (2.0 * strain);
        let lifted = strain * sample.lasted * SKIPPED / (1.0 - SKIPPED);
        fall * (-lifted / fall.max(1e-12)).exp() / sample.lasted
    };
    used.iter().map(one).sum::<f64>() / used.len().max(1) as f64
}

/// Rounds of a volley each, in which the bytes are spent where they are scarce.
const ROUNDS: u32 = 4;
/// Rounds without which no figure is believed to be narrow.
const FEWEST_ROUNDS: u32 = 2;
/// The same where the figure is not yet narrow, and there are bytes for it.
const MOST_ROUNDS: u32 = 12;
/// How far above a narrow link's rate a train may be.
const BEYOND: f64 = 1.1;
/// Of what there is to spend.
const AFFORDED: f64 = 0.95;
/// Strains of a round's trains, in units of the least: most are near, where the slope hardly
/// matters, one is far, so that the slope is known, and one between, to see whether the line is
/// one.
const MANY: [f64; 6] = [1.0, 1.2, 2.5, 1.0, 1.2, 5.0];
/// The same where bytes are scarce.
const FEW: [f64; 3] = [1.0, 1.2, 4.0];
/// Trains of fewer packets are made longer and fewer.
const SHORT: u32 = 100;
/// Packets of a train that is long enough.
pub(super) const ENOUGH: u32 = 240;
/// Error of a train's stretch that stamps may make.
const READ: f64 = 0.003;
/// Packets of the shortest train.
const SHORTEST: u32 = 10;
/// Batches that a train should have.
const BATCHES: f64 = 14.0;
/// Least strain, standard deviations of what chance makes of the skipped part.
const DISTANCE: f64 = 1.2;
/// A strain that the trains' length should make do with.
const BUSY: f64 = 0.12;
/// But no more than so many times as long.
const LONGER: f64 = 4.0;
/// Bounds of the strain.
const LEAST: f64 = 0.06;
const MOST: f64 = 0.7;
/// Part of a train that does not count.
const SKIPPED: f64 = super::SKIP;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::available::fifo::instrument;
    use crate::{Gaps, Train};

    /// Trains near 40 Mbit/s that are available of 100, of which a tenth may be used for as long as
    /// `limit`.
    fn volley(limit: Span, narrow: f64) -> Volley {
        let host = instrument(1e8);
        let mut budget = Budget::new(&host, limit);
        budget.begin(Mono(0));
        budget.knows(1e8);
        let mut plan = Plan::new(0.0);
        plan.begin(4e7, 1e8, 0);
        // 240 packets last 72 ms: the strain that this scatter asks of them is a tenth.
        let fit = Fit { capacity: 1e8, available: 4e7, quality: 1.0, scatter: 0.0 };
        plan.improve(&fit, 0.1 * 0.018_f64.sqrt() / 1.2, narrow);
        plan.volley(&Sender::new(&host), &budget, &Health::default(), Mono(0))
    }

    #[test]
    fn rates_are_as_far_above_what_is_available_as_trains_are_short_and_traffic_scatters() {
        let train = |gap: u64, rest: i64| Train {
            packets: 240,
            length: 1500,
            gaps: Gaps::Even(gap),
            rest: Span(rest),
        };
        // 50, 52, 65 and 90 Mbit/s; all 303 ms, since 2.88 Mbit are 95 % of a tenth of 100 Mbit/s
        // then.
        let (near, next) = (train(240_000_000, 245_557_895), train(230_769_231, 247_773_280));
        let (middle, far) = (train(184_615_385, 258_850_203), train(133_333_333, 271_157_895));
        let few = [&near, &next, &middle, &near, &next, &far].map(Train::clone);
        assert_eq!(volley(Span::from_secs(60), 0.0).trains, few);
        // Behind a link of 50 Mbit/s no more than 55.
        let most = train(218_181_818, 250_794_259);
        let narrow = [&near, &next, &most, &near, &next, &most].map(Train::clone);
        assert_eq!(volley(Span::from_secs(60), 5e7).trains, narrow);
    }

    #[test]
    fn trains_of_less_than_a_hundred_packets_are_longer_and_fewer() {
        let shape = |millis: i64| {
            let trains = volley(Span::from_millis(millis), 0.0).trains;
            (trains.len(), trains.iter().map(|train| train.packets).max())
        };
        assert_eq!(shape(1_380), (3, Some(100)));
        assert_eq!(shape(2_572), (3, Some(198)));
        assert_eq!(shape(2_575), (6, Some(100)));
    }

    #[test]
    fn a_train_is_as_long_as_bursts_or_stamps_want_it() {
        let sender = Sender::new(&instrument(1e8));
        let wanted = |plan: Plan| plan.wanted(&sender, &Health::default(), 4e7);
        // 240 packets last 72 ms, of which 18 do not count: with this scatter a strain of 0.12 is
        // enough. Trains are longer by the square of what is asked above that, four times at most.
        let scatter = 0.1 * 0.018_f64.sqrt();
        let bursts = |of: f64, packets: u32| Plan { scatter: of * scatter, packets, ..Plan::new(0.0) };
        let shortest = |nanos: f64| Plan { shortest: nanos, ..Plan::new(0.0) };
        let rows = [
            (bursts(0.5, 0), 240.0),
            (bursts(1.5, 0), 540.0),
            (bursts(3.0, 0), 960.0),
            (bursts(1.5, 300), 675.0),
            // 100 ms at 1.3 times 40 Mbit/s are 433 packets and a third.
            (shortest(1e8), 1300.0 / 3.0),
            (shortest(1e7), 240.0),
        ];
        for (row, (plan, want)) in rows.into_iter().enumerate() {
            let found = wanted(plan);
            assert!((found - want).abs() < 1e-6, "row {row}: {found} for {want}");
        }
    }

    #[test]
    fn what_trains_say_moves_the_plan_to_a_quarter_or_to_twice_at_most() {
        let available = |found: f64| {
            let mut plan = Plan::new(0.0);
            plan.begin(4e7, 1e8, 0);
            plan.improve(&Fit { capacity: 9e7, available: found, quality: 1.0, scatter: 0.0 }, 0.0, 0.0);
            plan.near
        };
        assert_eq!([5e6, 2e7, 9e7].map(available), [1e7, 2e7, 8e7].map(|rate| Some((rate, 9e7))));
    }

    #[test]
    fn a_plan_is_begun_after_two_rounds_and_done_after_four() {
        let mut plan = Plan::new(0.0);
        let fit = Fit { capacity: 1e8, available: 4e7, quality: 1.0, scatter: 0.0 };
        let stages = [(); 5].map(|()| {
            let stage = (plan.is_begun(), plan.is_done());
            plan.improve(&fit, 0.0, 0.0);
            stage
        });
        assert_eq!(stages, [(false, false), (false, false), (true, false), (true, false), (true, true)]);
    }

    #[test]
    fn trains_begin_no_longer_than_enough_and_double_up_to_what_the_host_sends() {
        let sender = Sender { longest: 1_000, ..Sender::new(&instrument(1e8)) };
        let packets = |packets: u32| {
            let mut plan = Plan::new(0.0);
            plan.begin(4e7, 1e8, packets);
            let begin = plan.packets;
            plan.lengthen(&sender);
            let longer = plan.packets;
            plan.lengthen(&sender);
            [begin, longer, plan.packets]
        };
        assert_eq!([packets(240), packets(241)], [[0, 480, 960], [241, 482, 964]]);
        assert_eq!(packets(600), [600, 1_000, 1_000]);
    }

    #[test]
    fn a_queue_is_empty_for_the_share_that_a_random_walk_falls_below_what_the_skipped_part_lifted() {
        let fit = Fit { capacity: 1e8, available: 4e7, quality: 1.0, scatter: 0.02 };
        let sample = |rate: f64, lasted: f64| Sample { rate, stretch: 1.1, lasted };
        let used = [sample(5e7, 0.04), sample(6e7, 0.02), sample(4e7, 0.04)];
        // Strains of 0.1, 0.2 and, at least, 0.01: falls of 2, 1 and 20 ms, lifted by a third of
        // each.
        let each =
            [0.05 * (-2.0_f64 / 3.0).exp(), 0.05 * (-4.0_f64 / 3.0).exp(), 0.5 * (-1.0_f64 / 150.0).exp()];
        let found = empty(&used, &fit);
        assert!((found - each.iter().sum::<f64>() / 3.0).abs() < 1e-9, "{found}");
        assert!(empty(&[], &fit).abs() < 1e-9);
    }
}
