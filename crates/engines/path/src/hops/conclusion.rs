//! What the answers so far come to.

use netaware_stats::ceasing::Ceased;
use netaware_stats::interval::Interval;
use netaware_stats::patience::UNKNOWN;
use netaware_units::Span;

use super::finding::{HopCapacity, HopFinding, HopFlag, HopsFinding, PathFlag, TrainAtHop};
use super::log::{mean, queueing};
use super::method::Hops;
use super::round::Kind;
use super::route::Route;
use super::segments::segments;
use super::slope::{Slope, link, slope};
use super::trains;
use crate::estimate::Bound;

/// Whether the last hop that was seen to stretch trains is where they meet the least: not if what
/// is behind it let none of them through, and not if trains left this host as slowly as they came
/// there (`left`, bit/s) while the link in front of that hop is known to be faster.
fn is_choke_point(ttl: u8, furthest: Option<u8>, hops: &[HopFinding], left: Option<f64>) -> bool {
    let came_to = |ttl: u8| hops.iter().find(|hop| hop.ttl == ttl).is_none_or(|hop| hop.train.is_some());
    let is_furthest = furthest.is_none_or(|furthest| furthest <= ttl || came_to(furthest));
    let hop = hops.iter().find(|hop| hop.ttl == ttl);
    let came = hop.and_then(|hop| hop.train).map(|train| train.rate);
    let carries = hop.and_then(|hop| hop.capacity.as_ref()).filter(|it| it.bound != Bound::AtMost);
    let is_of_host = match (came, left, carries) {
        (Some(came), Some(left), Some(link)) => {
            left < came * trains::LEAST_STEP && link.rate.lo > came * trains::LEAST_STEP
        }
        _ => false,
    };
    is_furthest && !is_of_host
}

/// Whether trains came to a hop faster than one link that reads as `rate` carries them. Links in
/// series delay each packet by the sum of what they take, but a train is as long behind them as
/// the slowest of them makes it.
fn is_more_than_one_link(rate: &Interval, train: Option<TrainAtHop>) -> bool {
    train.is_some_and(|train| train.rate > rate.hi * MORE_THAN_ONE)
}

/// Whether a small packet behind each large one tells what the large one took.
fn is_tail(route: Route) -> bool {
    matches!(route, Route::TailByEcho | Route::TailByHop(_))
}

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
        let furthest = self.train.ends.iter().map(|(ttl, ..)| *ttl).max();
        HopsFinding {
            choke_point: choke_point
                .filter(|ttl| is_choke_point(*ttl, furthest, &hops, trains::rate_of(&self.departures))),
            trains: self.trains,
            reached: self.reached,
            largest: self.largest,
            packets: self.packets,
            bytes: self.bytes,
            took: self.began_at.map_or(Span::ZERO, |began_at| self.now.since(began_at)),
            ceased: self.ceased(),
            flags: self.path_flags(&hops),
            hops,
        }
    }

    /// The destination answered, and then no more until the end; or, if it never did, anybody.
    fn ceased(&self) -> Option<Ceased> {
        // Who rations what it says of closed ports says nothing for seconds.
        let everybody = self.ceasing.ceased(self.patience.max(UNKNOWN));
        let of_end = self.end_ceasing.ceased(self.patience).filter(|_| self.end_ceasing.has_come());
        // Where nobody answers any more, the last answer is that of whoever gave it.
        let of_all = of_end.and_then(|_| self.ceasing.ceased(self.patience));
        let ceased = of_all.or(of_end).or(everybody);
        ceased.filter(|_| !self.stopped)
    }

    fn all_ceased(&self) -> bool {
        self.ceasing.ceased(self.patience).is_some()
    }

    /// All but queueing, trains and capacity.
    fn facts(&self, ttl: u8) -> HopFinding {
        let log = self.hop(ttl);
        let rtt = log.rtt(self.plan.smallest);
        let mut flags = Vec::new();
        if log.answered == 0 {
            flags.push(HopFlag::Silent);
        }
        let ceased = self.ceased().is_some() && log.answered > 0;
        let silent_since = ceased && (!self.reached || ttl == self.end || self.all_ceased());
        // Silence until the end is no ration.
        if log.pace.limited && !(silent_since && log.pace.answers == 0) {
            flags.push(HopFlag::RateLimited(log.ration.rate()));
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
            asked: if silent_since { log.asked_before_silence() } else { log.asked },
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
        // Much slower since some time, and until the end.
        let is_slower = self.gap_before.is_some_and(|before| self.gap > before * 2);
        if is_slower || hops.iter().any(|hop| hop.flags.contains(&HopFlag::PathChanged)) {
            flags.push(PathFlag::PathChanged);
        }
        // More time would not have helped where nothing came any more.
        let had_time = self.ceased().is_none();
        if self.end > 0 && had_time && hops.iter().all(|hop| hop.capacity.is_none()) {
            flags.push(PathFlag::CutShort);
        }
        flags
    }

    fn fill_capacities(&self, hops: &mut [HopFinding]) {
        let (mut before, mut from, mut slowest): (_, _, Option<Interval>) = (Slope::ZERO, 1, None);
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
            let apart = slowest.filter(|_| is_tail(*route)).map(|before| self.apart_from(&before));
            let fell_behind = apart.is_some_and(|apart| found.rate.estimate > apart.estimate);
            let found = apart.filter(|_| fell_behind).map_or(found, |apart| found.no_more_than(apart.lo));
            let known = found.bound == Bound::None;
            let outside = |squares: f64| squares < found.rate.lo * 0.9 || squares > found.rate.hi * 1.1;
            if known && found.least_squares.is_none_or(outside) {
                hop.flags.push(HopFlag::FitsDisagree);
            }
            hop.flags.extend(fell_behind.then_some(HopFlag::FellBehind));
            hop.flags.extend(self.way_flags(hop.ttl, *route, &after));
            let outran = slowest.is_none() && self.outruns_the_host(*route, found.rate.estimate);
            if found.is_host_limited || outran {
                hop.flags.push(HopFlag::HostLimited);
            }
            let is_own = from == hop.ttl && known;
            let is_series = is_own && is_more_than_one_link(&found.rate, hop.train);
            hop.capacity = Some(HopCapacity {
                rate: found.rate,
                bound: found.bound,
                least_squares: found.least_squares,
                way: route.way(),
                from,
                segments: hop.train.filter(|_| is_series).and_then(|train| segments(&found.rate, train.rate)),
                sizes: after.sizes,
                samples: after.samples,
            });
            // A link of which only a bound is known may be as fast as any.
            let is_slower = |than: &Interval| found.rate.estimate < than.estimate;
            if known && slowest.as_ref().is_none_or(is_slower) {
                slowest = Some(found.rate);
            }
            (before, from) = (after, hop.ttl + 1);
        }
    }

    /// The rate from which on a link has sent the large packet of a pair on before the small one is
    /// there, bit/s, since it left the slowest link in front of it so much later. No slope has
    /// anything of such a link in it.
    fn apart_from(&self, slowest: &Interval) -> Interval {
        let apart = f64::from(self.leader_from()) / f64::from(self.plan.tail);
        let times = |rate: f64| rate * apart;
        Interval {
            estimate: times(slowest.estimate),
            lo: times(slowest.lo),
            hi: times(slowest.hi),
            ..*slowest
        }
    }

    fn way_flags(&self, ttl: u8, route: Route, slope: &Slope) -> Vec<HopFlag> {
        let mut flags = Vec::new();
        match route {
            Route::TwoWay => flags.push(HopFlag::AssumesSymmetry),
            Route::TailByEcho | Route::TailByHop(_) => {
                if self.answers_in_the_way(ttl, slope) {
                    flags.push(HopFlag::AnswersInTheWay);
                }
            }
            Route::Direct { .. } => {}
        }
        flags
    }

    /// Whether a first link has taken the large packet before the host sends the small one behind
    /// it, so that the delay of the small one has nothing of the large one's in it.
    fn outruns_the_host(&self, route: Route, rate: f64) -> bool {
        let gap = self.plan.send_gap.or_zero().secs_f64();
        is_tail(route) && rate * gap > f64::from(self.leader_from()) * 8.0
    }

    /// Whether the answer to a large packet, which grows with it, may still be in a queue when the
    /// small one's comes by.
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

/// Times the figure of a link at which a train comes to its hop only if that is not one link: two
/// equal ones in series let it come at twice the figure.
const MORE_THAN_ONE: f64 = 1.4;

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use netaware_units::Mono;

    use super::super::finding::Queueing;
    use super::super::log::Exchange;
    use super::super::made_up::{SILENT, answered, hops, told};
    use super::super::round::What;
    use super::super::segments::Segments;
    use super::super::slope::Way;
    use super::super::trains::Gaps;
    use super::*;

    /// A first hop behind 100 Mbit/s, with answers to twelve sizes, the nth of which came later by
    /// `late(n)` ns.
    fn measured(late: impl Fn(u32) -> i64) -> HopFinding {
        let mut hops = hops(1);
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

    #[test]
    fn of_hops_without_slopes_it_is_told_who_answered_and_how_late() {
        let mut hops = hops(2);
        (hops.began_at, hops.now) = (Some(Mono(1_000_000_000)), Mono(3_000_000_000));
        (hops.refused, hops.mtu, hops.packets, hops.bytes) = (true, Some(1400), 6, 384);
        for millis in [10, 20, 12] {
            hops.note_exchange(1, Kind::Udp, 64, &told(What::TimeExceeded, 1, millis));
            hops.note_exchange(2, Kind::Udp, 64, &SILENT);
        }
        let silent = HopFinding {
            ttl: 2,
            addresses: Vec::new(),
            asked: 3,
            answered: 0,
            rtt_min: None,
            rtt_median: None,
            queueing: None,
            capacity: None,
            train: None,
            flags: vec![HopFlag::Silent],
        };
        let first = HopFinding {
            ttl: 1,
            addresses: vec![IpAddr::from([192, 0, 2, 1])],
            answered: 3,
            rtt_min: Some(Span::from_millis(10)),
            rtt_median: Some(Span::from_millis(12)),
            queueing: Some(Queueing {
                median: Span::from_millis(2),
                p90: Span::from_micros(8_400),
                own_mean: Span::from_millis(4),
            }),
            flags: Vec::new(),
            ..silent.clone()
        };
        let flags =
            vec![PathFlag::DestinationSilent, PathFlag::Refused, PathFlag::Mtu(1400), PathFlag::CutShort];
        let found = HopsFinding {
            ceased: None,
            hops: vec![first, silent],
            reached: false,
            choke_point: None,
            trains: 0,
            largest: 1500,
            packets: 6,
            bytes: 384,
            took: Span::from_secs(2),
            flags,
        };
        assert_eq!(hops.finding(), found);
        (hops.reached, hops.refused, hops.mtu, hops.end) = (true, false, None, 0);
        assert_eq!(hops.finding().flags, []);
    }

    /// Twelve sizes, each byte of which takes so many ns.
    fn line(each: i64) -> Vec<Exchange> {
        let at = |n: u32| {
            let length = 64 + 120 * n;
            let rtt = Span(4_000_000 + i64::from(length) * each);
            Exchange { kind: Kind::Udp, length, rtt, reply_length: Some(56) }
        };
        (0..12).map(at).collect()
    }

    #[test]
    fn a_link_is_its_hops_own_where_the_hop_before_has_a_slope() {
        let mut hops = hops(2);
        hops.routes = vec![Some(Route::Direct { from: 64 }); 2];
        for (log, each) in hops.logs.iter_mut().zip([160, 320]) {
            (log.answered, log.exchanges) = (12, line(each));
        }
        // Stamps err by 50 ns, over 1320 bytes.
        let half = 50.0 / 1_320.0;
        let rate =
            Interval { estimate: 5e7, lo: 8e9 / (160.0 + half), hi: 8e9 / (160.0 - half), confidence: 0.95 };
        // Trains came to both hops at 100 Mbit/s.
        hops.gaps = vec![(1, Gaps(vec![80.0; 4])), (2, Gaps(vec![80.0; 4]))];
        let first = HopCapacity {
            rate,
            bound: Bound::None,
            least_squares: Some(5e7),
            way: Way::Direct,
            from: 1,
            segments: Some(Segments { rates: vec![1e8, 1e8] }),
            sizes: 12,
            samples: 12,
        };
        let found = hops.finding();
        assert_eq!(found.hops[0].capacity, Some(first));
        let second = found.hops[1].capacity.as_ref().unwrap();
        assert!((second.rate.estimate / 5e7 - 1.0).abs() < 1e-9, "{second:?}");
        assert_eq!((second.from, second.segments.is_some()), (2, true), "{second:?}");
        assert_eq!(
            (&found.hops[1].flags[..], &found.flags[..]),
            (&[][..], &[PathFlag::DestinationSilent][..])
        );
        // Two links together have no segments.
        hops.routes[0] = None;
        let found = hops.finding();
        let both = found.hops[1].capacity.as_ref().unwrap();
        assert!((both.rate.estimate / 2.5e7 - 1.0).abs() < 1e-9, "{both:?}");
        assert_eq!((found.hops[0].capacity.is_none(), both.from, &both.segments), (true, 1, &None));
        // Too few sizes, and a slope that falls.
        hops.routes[0] = Some(Route::Direct { from: 64 });
        hops.logs[1].exchanges = line(80);
        assert_eq!(hops.finding().hops[1].flags, [HopFlag::SlopeFalls]);
        hops.logs[1].exchanges.truncate(4);
        assert_eq!(hops.finding().hops[1].flags, [HopFlag::TooFewAnswers]);
    }

    #[test]
    fn a_small_packet_falls_behind_at_fifteen_times_the_rate_of_the_link_before() {
        // Large ones are of 600 bytes at least, small ones of 40.
        let hops = hops(2);
        let slowest = Interval { estimate: 1e6, lo: 0.9e6, hi: 1.2e6, confidence: 0.95 };
        let apart = hops.apart_from(&slowest);
        assert_eq!((apart.estimate, apart.lo, apart.hi), (15e6, 13.5e6, 18e6));
        let flags = |route| hops.way_flags(1, route, &Slope::ZERO);
        assert_eq!(flags(Route::TailByEcho), []);
        assert_eq!(flags(Route::TwoWay), [HopFlag::AssumesSymmetry]);
        assert!(is_tail(Route::TailByEcho) && is_tail(Route::TailByHop(2)));
        assert!(!is_tail(Route::TwoWay) && !is_tail(Route::Direct { from: 64 }));
        // 600 bytes in the microsecond in which the host sends the next one.
        assert!(!hops.outruns_the_host(Route::TailByEcho, 4.79e9));
        assert!(hops.outruns_the_host(Route::TailByEcho, 4.81e9));
        assert!(hops.outruns_the_host(Route::TailByHop(2), 4.81e9));
        assert!(!hops.outruns_the_host(Route::TwoWay, 4.81e9));
    }

    /// A hop that answers 1500 bytes by 500 and 600 by `small`; the last hop is 4 ms behind it.
    fn in_the_way(small: u32, each: f64, change: fn(&mut Hops)) -> bool {
        let mut hops = hops(2);
        let own = [
            answered(Kind::Udp, 64, 56, &[10]),
            answered(Kind::Udp, 600, small, &[11]),
            answered(Kind::Udp, 1500, 500, &[12]),
            // A shorter question and another kind do not count.
            answered(Kind::Udp, 599, 100, &[11]),
            answered(Kind::Echo, 600, 100, &[11]),
        ];
        hops.logs[0].exchanges = own.concat();
        hops.logs[0].note_leader(true);
        hops.logs[1].exchanges = answered(Kind::Udp, 64, 56, &[14]);
        change(&mut hops);
        hops.answers_in_the_way(1, &Slope { value: each, ..Slope::ZERO })
    }

    #[test]
    fn long_answers_are_in_the_way_for_as_long_as_they_take() {
        // 500 bytes take 4 ms at 8 us a byte.
        assert!(!in_the_way(491, 8_000.0, |_| {}));
        assert!(in_the_way(491, 8_001.0, |_| {}));
        assert!(!in_the_way(492, 8_001.0, |_| {}));
        assert!(!in_the_way(491, 8_001.0, |hops| hops.logs[0].note_leader(false)));
        // Small packets that no answer of the destination came before.
        let free: fn(&mut Hops) = |hops| {
            (hops.end, hops.reached) = (1, true);
            (0..30).for_each(|_| hops.logs[0].note_tail(1500, Span(1), false));
        };
        assert!(!in_the_way(491, 8_001.0, free));
        assert!(in_the_way(491, 8_001.0, |hops| (hops.end, hops.reached) = (1, true)));
        assert!(in_the_way(491, 8_001.0, |hops| {
            (0..30).for_each(|_| hops.logs[0].note_tail(1500, Span(1), false));
        }));
    }

    #[test]
    fn a_hop_behind_which_all_trains_are_lost_is_not_called_the_choke_point() {
        let train = |rate| Some(TrainAtHop { rate, seen: 10, stretched: true });
        let hop = |ttl, train| HopFinding {
            ttl,
            addresses: Vec::new(),
            asked: 10,
            answered: 10,
            rtt_min: None,
            rtt_median: None,
            queueing: None,
            capacity: None,
            train,
            flags: Vec::new(),
        };
        let lost = [hop(1, train(2.25e9)), hop(2, None)];
        assert!(!is_choke_point(1, Some(2), &lost, None) && is_choke_point(1, None, &lost, None));
        let came = [hop(1, train(2.25e9)), hop(2, train(2.2e9))];
        assert!(is_choke_point(1, Some(2), &came, None) && is_choke_point(2, Some(2), &came, None));
    }

    #[test]
    fn a_plain_link_of_50_mbit_is_not_told_as_two_of_100() {
        // What trains came at, ns for a byte, and what that says of a reading of 50 Mbit/s.
        let segments_of = |gap: Option<f64>| {
            let mut hops = hops(1);
            hops.routes = vec![Some(Route::Direct { from: 64 })];
            (hops.logs[0].answered, hops.logs[0].exchanges) = (12, line(160));
            hops.gaps.extend(gap.map(|gap| (1, Gaps(vec![gap; 4]))));
            let capacity = hops.finding().hops.remove(0).capacity.unwrap();
            capacity.segments.map(|found| found.rates)
        };
        assert_eq!(segments_of(Some(80.0)), Some(vec![1e8, 1e8]), "trains pass at 100 Mbit/s");
        assert_eq!(segments_of(Some(160.0)), None, "trains pass at 50 Mbit/s");
        assert_eq!(segments_of(Some(400.0)), None, "a slower link in front of it");
        assert_eq!(segments_of(Some(8.0)), None, "two links of 100 do not carry a gigabit");
        assert_eq!(segments_of(None), None, "no trains");
    }

    #[test]
    fn a_host_that_sends_trains_slowly_is_not_a_choke_point() {
        let mut hops = hops(1);
        hops.routes = vec![Some(Route::Direct { from: 64 })];
        (hops.logs[0].answered, hops.logs[0].exchanges) = (12, line(8));
        // The link carries a gigabit; trains came at 32 Mbit/s.
        hops.gaps = vec![(1, Gaps(vec![250.0; 4]))];
        let mut choke_point = |left: &[f64]| {
            hops.departures = Gaps(left.to_vec());
            hops.finding().choke_point
        };
        assert_eq!(choke_point(&[249.0; 4]), None, "the host sent them so");
        assert_eq!(choke_point(&[5.0, 5.0, 5.0, 249.0]), Some(1), "others fill the link");
        assert_eq!(choke_point(&[]), Some(1), "nobody knows");
        // A link of 32 Mbit/s may hold the host back.
        hops.logs[0].exchanges = line(250);
        hops.departures = Gaps(vec![249.0; 4]);
        assert_eq!(hops.finding().choke_point, Some(1));
    }
}
