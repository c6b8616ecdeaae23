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
    /// Trains that came well and then far more slowly, and such that did the same backwards.
    forwards: u32,
    backwards: u32,
    /// When packets that were lost left, ns, and bits that came of what left before them: of each
    /// train that lost several the middle one and the last one.
    losses: Vec<(i64, f64)>,
    came: f64,
    /// bit/s.
    lasts: Option<f64>,
}

impl Policing {
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
            self.forwards += u32::from(comes_slower_behind(&packets, first));
            let backwards: Vec<(i64, Option<i64>)> = packets
                .iter()
                .rev()
                .map(|(sent, came)| (sent.saturating_neg(), came.map(i64::saturating_neg)))
                .collect();
            self.backwards += u32::from(comes_slower_behind(&backwards, packets.len() - 1 - last));
        }
        self.came += packets.iter().filter(|it| !is_lost(it)).count() as f64 * bits;
    }

    /// A packet that left at `at`, ns, was lost, and of those before it so many bits came.
    fn lost(&mut self, at: i64, came: f64, packet: f64) {
        for (then, before) in &self.losses {
            let (bits, ns) = (came - before, at.saturating_sub(*then) as f64);
            if ns > 0.0 && bits >= MIN_BETWEEN * packet {
                let rate = (bits - packet) * 1e9 / ns;
                self.lasts = Some(self.lasts.map_or(rate, |known| known.max(rate)));
            }
        }
        if self.losses.len() >= MAX_LOSSES {
            self.losses.remove(0);
        }
        self.losses.push((at, came));
    }

    /// Whether trains are held back behind their first packets, and chance does not explain it.
    pub(super) fn is_shown(&self) -> bool {
        let (forwards, backwards) = (f64::from(self.forwards), f64::from(self.backwards));
        let more = forwards - backwards;
        more > 0.0 && more * more >= SURE * (forwards + backwards)
    }

    /// bit/s that came between two losses: what lasts is no less.
    pub(super) fn lasts(&self) -> Option<f64> {
        self.lasts
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
