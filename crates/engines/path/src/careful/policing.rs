//! Whether packets are dropped as a policer drops them, and what it lets through at least.
//!
//! **Measures** two things. First, of each train that lost packets, how fast it came before its
//! first loss and from there on: behind a policer the first packets live on the credit and come as
//! fast as the link carries them, and what comes behind them has to wait for tokens that are far
//! fewer. A queue that overflows leaves the link busy, so that packets come as fast as before;
//! chance takes packets anywhere, and so as often those at the begin of a train, which is what the
//! same reading of trains from their end to their begin tells. Second, what came between any two
//! losses: a bucket that has just dropped a packet has no token for another one, so no more than
//! its tokens came until the next loss, but for one packet. The fastest of these stretches lasts.
//! **Assumes** for the second that the path is one bucket; on any other path it is still a rate at
//! which packets came. **Biased** low where few packets are lost; high where most losses are of
//! chance.

use crate::{Train, TrainReport, Volley, VolleyReport};

/// What the trains so far have shown.
#[derive(Debug, Clone, Default)]
pub(super) struct Policing {
    now: Shown,
    /// The same of the turn before, where a path is followed.
    before: Shown,
    /// When packets that were lost left, ns, and bits that came of what left before them: of each
    /// train that lost several the middle one and the last one.
    losses: Vec<(i64, f64)>,
    came: f64,
}

/// What the trains of a turn have shown.
#[derive(Debug, Clone, Copy, Default)]
struct Shown {
    /// Trains that came well and then far more slowly, and such that did the same backwards.
    forwards: u32,
    backwards: u32,
    /// bit/s.
    lasts: Option<f64>,
}

impl Policing {
    /// What was seen before the last turn is forgotten.
    pub(super) fn begin_turn(&mut self) {
        *self = Self { before: self.now, ..Self::default() };
    }

    pub(super) fn observe(&mut self, asked: &Volley, report: &VolleyReport) {
        for (train, report) in asked.trains.iter().zip(&report.trains) {
            self.observe_train(train, report);
        }
    }

    fn observe_train(&mut self, train: &Train, report: &TrainReport) {
        let bits = f64::from(train.length) * 8.0;
        let mut packets: Vec<(i64, Option<i64>)> =
            report.sent.iter().filter_map(|sent| Some(((*sent)?, None))).collect();
        let place: Vec<usize> = report
            .sent
            .iter()
            .scan(0, |count, sent| {
                *count += usize::from(sent.is_some());
                Some(*count)
            })
            .collect();
        for arrival in &report.arrivals {
            let left = report.sent.get(arrival.number as usize).is_some_and(Option::is_some);
            let at = place.get(arrival.number as usize).and_then(|place| place.checked_sub(1));
            if let Some(packet) = at.filter(|_| left).and_then(|at| packets.get_mut(at)) {
                packet.1 = Some(arrival.at);
            }
        }
        let is_lost = |packet: &(i64, Option<i64>)| packet.1.is_none();
        let lost: Vec<usize> =
            packets.iter().enumerate().filter(|(_, it)| is_lost(it)).map(|(at, _)| at).collect();
        if let (Some(&first), Some(&last)) = (lost.first(), lost.last()) {
            let came = |until: usize| packets[..until].iter().filter(|it| !is_lost(it)).count() as f64 * bits;
            // The first loss may be one of chance, with the credit still to come behind it.
            let middle = lost[lost.len() / 2];
            if lost.len() >= MIN_LOST {
                self.lost(packets[middle].0, self.came + came(middle), bits);
                self.lost(packets[last].0, self.came + came(last), bits);
            }
            self.now.forwards += u32::from(comes_slower_behind(&packets, first));
            let backwards: Vec<(i64, Option<i64>)> = packets
                .iter()
                .rev()
                .map(|(sent, came)| (sent.saturating_neg(), came.map(i64::saturating_neg)))
                .collect();
            self.now.backwards += u32::from(comes_slower_behind(&backwards, packets.len() - 1 - last));
        }
        self.came += packets.iter().filter(|it| !is_lost(it)).count() as f64 * bits;
    }

    /// A packet that left at `at`, ns, was lost, and of those before it so many bits came.
    fn lost(&mut self, at: i64, came: f64, packet: f64) {
        for (then, before) in &self.losses {
            let (bits, ns) = (came - before, at.saturating_sub(*then) as f64);
            if ns > 0.0 && bits >= MIN_BETWEEN * packet {
                let rate = (bits - packet) * 1e9 / ns;
                self.now.lasts = Some(self.now.lasts.map_or(rate, |known| known.max(rate)));
            }
        }
        if self.losses.len() >= MAX_LOSSES {
            self.losses.remove(0);
        }
        self.losses.push((at, came));
    }

    /// Whether trains are held back behind their first packets, and chance does not explain it.
    pub(super) fn is_shown(&self) -> bool {
        let both = |of: fn(&Shown) -> u32| f64::from(of(&self.now)) + f64::from(of(&self.before));
        let (forwards, backwards) = (both(|it| it.forwards), both(|it| it.backwards));
        let more = forwards - backwards;
        more > 0.0 && more * more >= SURE * (forwards + backwards)
    }

    /// bit/s that came between two losses: what lasts is no less.
    pub(super) fn lasts(&self) -> Option<f64> {
        [self.now.lasts, self.before.lasts].into_iter().flatten().reduce(f64::max)
    }
}

/// Whether packets came well up to the first one that was lost, and then far more slowly.
fn comes_slower_behind(packets: &[(i64, Option<i64>)], first_lost: usize) -> bool {
    let (head, rest) = packets.split_at(first_lost);
    if head.len() < MIN_HEAD || rest.len() < MIN_REST {
        return false;
    }
    let (Some((_, Some(began))), Some((_, Some(ended)))) = (head.first(), head.last()) else { return false };
    let head_took = ended.saturating_sub(*began).max(1) as f64;
    let left = |packets: &[(i64, Option<i64>)]| match (packets.first(), packets.last()) {
        (Some((first, _)), Some((last, _))) => last.saturating_sub(*first),
        _ => 0,
    };
    // Packets that were handed over at once do not show how fast they came.
    let head_took = head_took.max(left(head) as f64);
    let before = (head.len() - 1) as f64 / head_took;
    let came = rest.iter().filter_map(|it| it.1);
    let count = came.clone().count() as f64;
    let took = came.max().map_or(0, |last| last.saturating_sub(*ended)).max(left(rest)).max(1) as f64;
    (count + 1.0) / took < SLOWER * before
}

/// Packets before the first loss, and from there on, of a train that says something.
const MIN_HEAD: usize = 4;
const MIN_REST: usize = 6;
/// Losses of a train of which chance makes no more than half.
const MIN_LOST: usize = 4;
/// A rate behind the first loss of less than this part of the one before it.
const SLOWER: f64 = 0.5;
/// Seven trains of seven; ten of eleven.
const SURE: f64 = 7.0;
/// Packets that came between two losses: one of them may have been the bucket's.
const MIN_BETWEEN: f64 = 8.0;
/// Losses that are remembered.
const MAX_LOSSES: usize = 256;

#[cfg(test)]
mod tests {
    use netaware_units::Span;

    use super::*;
    use crate::{Arrival, Gaps};

    /// A train of 40 packets, one each 12 us, of which the first ten come as they left and then one
    /// of eight, or all of them.
    fn observe(policing: &mut Policing, at: i64, is_policed: bool) {
        let train = Train { packets: 40, length: 1500, gaps: Gaps::BackToBack, rest: Span::ZERO };
        let sent: Vec<Option<i64>> = (0..40).map(|number| Some(at + number * 12_000)).collect();
        let comes = |number: u32| !is_policed || number < 10 || number.is_multiple_of(8);
        let arrival = |number: u32| Arrival { number, at: at + 5_000_000 + i64::from(number) * 12_000 };
        let arrivals = (0..40).filter(|number| comes(*number)).map(arrival).collect();
        let report = VolleyReport { trains: vec![TrainReport { sent, arrivals }] };
        policing.observe(&Volley { trains: vec![train] }, &report);
    }

    #[test]
    fn a_policer_of_an_earlier_turn_is_not_told_for_ever() {
        let mut policing = Policing::default();
        let mut turn = |is_policed: bool, number: i64| {
            policing.begin_turn();
            (0..10).for_each(|n| observe(&mut policing, (number * 10 + n) * 100_000_000, is_policed));
            (policing.is_shown(), policing.lasts().is_some())
        };
        let turns = [turn(true, 0), turn(true, 1), turn(false, 2), turn(false, 3)];
        assert_eq!(turns, [(true, true), (true, true), (true, true), (false, false)]);
    }
}
