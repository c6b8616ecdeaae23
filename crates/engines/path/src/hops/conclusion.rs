//! What the answers so far come to.

use netaware_units::Span;

use super::finding::{HopCapacity, HopFinding, HopFlag, HopsFinding, PathFlag};
use super::log::{mean, queueing};
use super::method::Hops;
use super::round::Kind;
use super::route::Route;
use super::segments::segments;
use super::slope::{Slope, link, slope};
use super::trains;
use crate::estimate::Bound;

impl Hops {
    /// What there is so far.
    pub fn finding(&self) -> HopsFinding {
        let (trains, choke_point) = {
            let mut gaps = self.gaps.clone();
            gaps.sort_by_key(|(ttl, _)| *ttl);
            trains::judge(&gaps)
        };
        let mut hops: Vec<HopFinding> = (1..=self.end).map(|ttl| self.facts(ttl)).collect();
        let mut mean_before = 0.0;
        for (hop, log) in hops.iter_mut().zip(&self.logs) {
            let excess = log.excess();
            hop.queueing = queueing(&excess, mean_before);
            mean_before = mean(&excess).unwrap_or(mean_before);
            hop.train = trains.iter().find(|(ttl, _)| *ttl == hop.ttl).map(|(_, at)| *at);
        }
        self.fill_capacities(&mut hops);
        HopsFinding {
            choke_point,
            trains: self.trains,
            reached: self.reached,
            largest: self.largest,
            packets: self.packets,
            bytes: self.bytes,
            took: self.began_at.map_or(Span::ZERO, |began_at| self.now.since(began_at)),
            flags: self.path_flags(&hops),
            hops,
        }
    }

    /// All but queueing, trains and capacity.
    fn facts(&self, ttl: u8) -> HopFinding {
        let log = self.hop(ttl);
        let rtt = log.rtt(self.plan.smallest);
        let mut flags = Vec::new();
        if log.answered == 0 {
            flags.push(HopFlag::Silent);
        }
        if log.pace.limited {
            let took = self.began_at.map_or(1.0, |began_at| self.now.since(began_at).secs_f64().max(0.001));
            flags
                .push(HopFlag::RateLimited(log.answers_per_second(self.now, f64::from(log.answered) / took)));
        }
        if log.alternates() {
            flags.push(HopFlag::SeveralAddresses);
        }
        if log.changed(self.plan.smallest) {
            flags.push(HopFlag::PathChanged);
        }
        HopFinding {
            ttl,
            addresses: log.addresses(),
            asked: log.asked,
            answered: log.answered,
            rtt_min: rtt.map(|(least, _)| least),
            rtt_median: rtt.map(|(_, median)| median),
            queueing: None,
            capacity: None,
            train: None,
            flags,
        }
    }

    fn path_flags(&self, hops: &[HopFinding]) -> Vec<PathFlag> {
        let mut flags = Vec::new();
        if !self.reached {
            flags.push(PathFlag::DestinationSilent);
        }
        if self.refused {
            flags.push(PathFlag::Refused);
        }
        flags.extend(self.mtu.map(PathFlag::Mtu));
        if hops.iter().any(|hop| hop.flags.contains(&HopFlag::PathChanged)) {
            flags.push(PathFlag::PathChanged);
        }
        if self.end > 0 && hops.iter().all(|hop| hop.capacity.is_none()) {
            flags.push(PathFlag::CutShort);
        }
        flags
    }

    fn fill_capacities(&self, hops: &mut [HopFinding]) {
        let (mut before, mut from, mut rate_before) = (Slope::ZERO, 1, None);
        for (hop, route) in hops.iter_mut().zip(&self.routes) {
            let Some(route) = route else { continue };
            let log = self.hop(hop.ttl);
            let Some(after) = slope(&self.samples(log, *route), self.plan.stamp_error) else {
                hop.flags.push(HopFlag::TooFewAnswers);
                continue;
            };
            let Some(found) = link(&before, &after) else {
                hop.flags.push(HopFlag::SlopeFalls);
                continue;
            };
            let known = found.bound == Bound::None;
            let outside = |squares: f64| squares < found.rate.lo * 0.9 || squares > found.rate.hi * 1.1;
            if known && found.least_squares.is_none_or(outside) {
                hop.flags.push(HopFlag::FitsDisagree);
            }
            hop.flags.extend(self.way_flags(hop.ttl, *route, &after, found.rate.estimate, rate_before));
            let outran = rate_before.is_none() && self.outruns_the_host(*route, found.rate.estimate);
            if found.is_host_limited || outran {
                hop.flags.push(HopFlag::HostLimited);
            }
            let is_own = from == hop.ttl && known;
            hop.capacity = Some(HopCapacity {
                rate: found.rate,
                bound: found.bound,
                least_squares: found.least_squares,
                way: route.way(),
                from,
                segments: if is_own { segments(&found.rate) } else { None },
                sizes: after.sizes,
                samples: after.samples,
            });
            rate_before = Some(found.rate.estimate);
            (before, from) = (after, hop.ttl + 1);
        }
    }

    fn way_flags(
        &self,
        ttl: u8,
        route: Route,
        slope: &Slope,
        rate: f64,
        rate_before: Option<f64>,
    ) -> Vec<HopFlag> {
        let mut flags = Vec::new();
        match route {
            Route::TwoWay => flags.push(HopFlag::AssumesSymmetry),
            Route::TailByEcho | Route::TailByHop(_) => {
                let apart = f64::from(self.leader_from()) / f64::from(self.plan.tail);
                if rate_before.is_some_and(|before| rate > before * apart) {
                    flags.push(HopFlag::FellBehind);
                }
                if self.answers_in_the_way(ttl, slope) {
                    flags.push(HopFlag::AnswersInTheWay);
                }
            }
            Route::Direct { .. } => {}
        }
        flags
    }

    /// Whether a first link has taken the large packet before the host sends the small one behind it, so that the delay of the
    /// small one has nothing of the large one's in it.
    fn outruns_the_host(&self, route: Route, rate: f64) -> bool {
        let gap = self.plan.send_gap.or_zero().secs_f64();
        let tails = matches!(route, Route::TailByEcho | Route::TailByHop(_));
        tails && rate * gap > f64::from(self.leader_from()) * 8.0
    }

    /// Whether the answer to a large packet, which grows with it, may still be in a queue when the small one's comes by.
    fn answers_in_the_way(&self, ttl: u8, slope: &Slope) -> bool {
        let (exchanges, from) = (&self.hop(ttl).exchanges, self.leader_from());
        let is_free = self.is_destination(ttl) && self.hop(ttl).has_free_tails();
        if is_free || !self.hop(ttl).leaders_are_answered() {
            return false;
        }
        let answers = || {
            let large = exchanges.iter().filter(|e| e.kind == Kind::Udp && e.length >= from);
            large.filter_map(|e| e.reply_length)
        };
        let (Some(large), Some(small)) = (answers().max(), answers().min()) else { return false };
        let (Some((far, _)), Some((near, _))) =
            (self.hop(self.end).rtt(self.plan.smallest), self.hop(ttl).rtt(self.plan.smallest))
        else {
            return false;
        };
        large > small + 8 && ((far - near).nanos() as f64) < slope.value * f64::from(large)
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::Exchange;
    use super::super::plan::{CapacityWay, HopsPlan};
    use super::*;

    /// A first hop behind 100 Mbit/s, with answers to twelve sizes, the nth of which came later by
    /// `late(n)` ns.
    fn measured(late: impl Fn(u32) -> i64) -> HopFinding {
        let mut hops = Hops::new(HopsPlan {
            max_hops: 1,
            smallest: 64,
            largest: 1500,
            tail: 40,
            header: 20,
            sizes: Vec::new(),
            time: Span::from_secs(10),
            per_hop: None,
            way: CapacityWay::Automatic,
            echo: true,
            trains: false,
            stamp_error: Span(50),
            send_gap: Span(1_000),
            seed: 1,
        });
        hops.end = 1;
        hops.routes = vec![Some(Route::Direct { from: 64 })];
        hops.logs[0].exchanges.extend((0..12).map(|n| {
            let length = 64 + 120 * n;
            let rtt = Span(4_000_000 + i64::from(length) * 80 + late(n));
            Exchange { kind: Kind::Udp, length, rtt, reply_length: Some(56) }
        }));
        hops.finding().hops.remove(0)
    }

    #[test]
    fn fits_disagree_if_least_squares_is_beyond_the_interval_on_either_side() {
        // A queue at the largest size makes the least-squares rate too low, at the smallest size
        // too high.
        for (row, (queued, disagree)) in
            [(None, false), (Some(11), true), (Some(0), true)].into_iter().enumerate()
        {
            let hop = measured(|n| if queued == Some(n) { 200_000 } else { 0 });
            let capacity = hop.capacity.as_ref().unwrap();
            assert!((capacity.rate.estimate / 1e8 - 1.0).abs() < 0.01, "row {row}: {hop:?}");
            assert_eq!(hop.flags.contains(&HopFlag::FitsDisagree), disagree, "row {row}: {hop:?}");
        }
    }
}
