//! By which probes each hop's slope is measured, and what they gave.

use super::log::HopLog;
use super::method::Hops;
use super::plan::CapacityWay;
use super::slope::{Sample, Way};

/// By what a hop's slope is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// Sizes from `from` on get answers of one length.
    Direct { from: u32 },
    /// The small packet is an echo to the destination.
    TailByEcho,
    /// The small packet ends at this hop.
    TailByHop(u8),
    /// Answers grow with the questions.
    TwoWay,
}

impl Route {
    pub(super) fn way(self) -> Way {
        match self {
            Self::Direct { .. } => Way::Direct,
            Self::TailByEcho | Self::TailByHop(_) => Way::Tailgating,
            Self::TwoWay => Way::TwoWay,
        }
    }
}

impl Hops {
    pub(super) fn settle_routes(&mut self) {
        let routes = (1..=self.end).map(|ttl| self.route(ttl)).collect();
        if self.routes != routes {
            for hop in &mut self.logs {
                hop.order.clear();
            }
        }
        self.routes = routes;
    }

    fn route(&self, ttl: u8) -> Option<Route> {
        let hop = self.hop(ttl);
        let by_echo = self.is_destination(ttl) && self.whole.1 > 0;
        let answers = hop.answered > 0;
        let direct = if by_echo { None } else { self.direct_from(ttl).map(|from| Route::Direct { from }) };
        let own = direct.or(answers.then_some(Route::TwoWay));
        let tail = self.tail(ttl);
        match self.plan.way {
            CapacityWay::Direct => own,
            CapacityWay::Tailgating => tail,
            CapacityWay::Automatic if hop.pace.limited => tail.or(own),
            CapacityWay::Automatic => direct.or(tail).or(own),
        }
    }

    /// The smallest size from which on answers do not grow any more, where enough sizes are left
    /// above it.
    fn direct_from(&self, ttl: u8) -> Option<u32> {
        let answers = |length: u32| {
            let of_length = self.hop(ttl).exchanges.iter().filter(move |e| e.length == length);
            of_length.filter_map(|exchange| exchange.reply_length).max()
        };
        let (small, large) = (answers(self.plan.smallest)?, answers(self.largest)?);
        let from = if large < small + 8 {
            self.plan.smallest
        } else {
            // A message of the largest size quotes as much as it ever will.
            let quoted = large.saturating_sub(self.plan.header + ICMP_HEADER).next_multiple_of(8);
            quoted.max(self.plan.smallest)
        };
        (from + self.largest * 2 / 5 <= self.largest).then_some(from)
    }

    /// Who can answer a small packet that goes on behind hop `ttl`.
    fn tail(&self, ttl: u8) -> Option<Route> {
        if self.echo_answers() {
            return Some(Route::TailByEcho);
        }
        let beyond = (ttl + 1..=self.end).rev();
        let mut good = beyond.filter(|far| {
            let hop = self.hop(*far);
            hop.answered > 0 && !hop.pace.limited && hop.answered * 10 >= hop.asked * 7
        });
        good.next().map(Route::TailByHop)
    }

    pub(super) fn samples(&self, log: &HopLog, route: Route) -> Vec<Sample> {
        match route {
            Route::TailByEcho | Route::TailByHop(_) => log.tail_samples(),
            Route::Direct { from } => {
                let fitting = log.exchanges.iter().filter(|e| e.length >= from && e.length <= self.largest);
                fitting.map(|e| Sample { bytes: e.length, delay: e.rtt }).collect()
            }
            // Each link is crossed by the question and by the answer, at one rate by assumption.
            Route::TwoWay => {
                let known = log.exchanges.iter().filter_map(|e| Some((e, e.reply_length?)));
                known.map(|(e, reply)| Sample { bytes: e.length + reply, delay: e.rtt }).collect()
            }
        }
    }
}

/// ICMP and ICMPv6 alike.
const ICMP_HEADER: u32 = 8;

#[cfg(test)]
mod tests {
    use netaware_units::Span;

    use super::super::log::Exchange;
    use super::super::made_up::{answered, hops};
    use super::super::round::Kind;
    use super::*;

    type Change = fn(&mut Hops);

    /// Answers of one length to the smallest and the largest packet.
    fn constant() -> Vec<Exchange> {
        [answered(Kind::Udp, 64, 56, &[10]), answered(Kind::Udp, 1500, 56, &[12])].concat()
    }

    #[test]
    fn answers_are_read_from_where_they_grow_no_more_if_two_fifths_of_the_sizes_are_left() {
        let rows = [
            (1500, 563, Some(64)),
            // Eight bytes more are more: then 536 are quoted, behind two headers.
            (1500, 564, Some(536)),
            (1500, 576, Some(552)),
            (1500, 924, Some(896)),
            (1500, 928, None),
            (1000, 628, Some(600)),
        ];
        for (largest, reply, from) in rows {
            let mut hops = hops(1);
            hops.largest = largest;
            hops.logs[0].exchanges.extend(answered(Kind::Udp, 64, 556, &[10]));
            hops.logs[0].exchanges.extend(answered(Kind::Udp, largest, reply, &[12]));
            hops.logs[0].exchanges.extend(answered(Kind::Udp, largest, 100, &[13]));
            assert_eq!(hops.direct_from(1), from, "{largest} {reply}");
        }
        let mut hops = hops(1);
        hops.logs[0].exchanges.extend(answered(Kind::Udp, 64, 556, &[10]));
        assert_eq!(hops.direct_from(1), None);
    }

    #[test]
    fn each_hop_is_measured_by_what_answers_best() {
        let (direct, tail) = (Some(Route::Direct { from: 64 }), Some(Route::TailByHop(2)));
        let rows: [(CapacityWay, Change, Option<Route>); 11] = [
            (CapacityWay::Automatic, |_| {}, direct),
            (CapacityWay::Automatic, |hops| hops.logs[0].pace.limited = true, tail),
            (
                CapacityWay::Automatic,
                |hops| (hops.logs[0].pace.limited, hops.logs[1].pace.limited) = (true, true),
                direct,
            ),
            // Seven answers to eleven questions are too few.
            (
                CapacityWay::Automatic,
                |hops| (hops.logs[0].pace.limited, hops.logs[1].asked) = (true, 11),
                direct,
            ),
            (CapacityWay::Automatic, |hops| hops.logs[0].exchanges.clear(), tail),
            (CapacityWay::Direct, |hops| hops.logs[0].pace.limited = true, direct),
            (CapacityWay::Direct, |hops| hops.logs[0].exchanges.clear(), Some(Route::TwoWay)),
            (
                CapacityWay::Direct,
                |hops| {
                    hops.logs[0].exchanges.clear();
                    hops.logs[0].answered = 0;
                },
                None,
            ),
            (CapacityWay::Tailgating, |_| {}, tail),
            (CapacityWay::Tailgating, |hops| hops.whole = (10, 7), Some(Route::TailByEcho)),
            (CapacityWay::Tailgating, |hops| hops.whole = (10, 6), tail),
        ];
        for (row, (way, change, want)) in rows.into_iter().enumerate() {
            let mut hops = hops(2);
            hops.plan.way = way;
            hops.logs[0].answered = 1;
            hops.logs[0].exchanges = constant();
            (hops.logs[1].asked, hops.logs[1].answered) = (10, 7);
            change(&mut hops);
            assert_eq!(hops.route(1), want, "row {row}");
        }
    }

    #[test]
    fn a_destination_that_answers_echoes_is_not_read_directly() {
        let rows = [
            (true, (10, 7), Some(Route::TwoWay)),
            (true, (10, 0), Some(Route::Direct { from: 64 })),
            (false, (10, 7), Some(Route::Direct { from: 64 })),
        ];
        for (reached, whole, want) in rows {
            let mut hops = hops(1);
            hops.plan.way = CapacityWay::Direct;
            (hops.reached, hops.whole) = (reached, whole);
            hops.logs[0].answered = 1;
            hops.logs[0].exchanges = constant();
            assert_eq!(hops.route(1), want, "{reached} {whole:?}");
        }
    }

    #[test]
    fn a_small_packet_goes_to_the_furthest_hop_behind_that_does_not_ration() {
        let mut hops = hops(4);
        for log in &mut hops.logs {
            (log.asked, log.answered) = (10, 10);
        }
        hops.logs[3].pace.limited = true;
        let tails = [1, 2, 3, 4].map(|ttl| hops.tail(ttl));
        assert_eq!(tails, [Some(Route::TailByHop(3)), Some(Route::TailByHop(3)), None, None]);
        (hops.logs[2].asked, hops.logs[2].answered) = (0, 0);
        assert_eq!([1, 2].map(|ttl| hops.tail(ttl)), [Some(Route::TailByHop(2)), None]);
    }

    #[test]
    fn the_order_of_sizes_is_thrown_away_when_the_routes_change_and_only_then() {
        let mut hops = hops(1);
        hops.logs[0].answered = 1;
        hops.settle_routes();
        assert_eq!(hops.routes, [Some(Route::TwoWay)]);
        hops.logs[0].order = vec![100, 200];
        hops.settle_routes();
        assert_eq!(hops.logs[0].order, [100, 200]);
        hops.logs[0].exchanges = constant();
        hops.settle_routes();
        assert_eq!(hops.routes, [Some(Route::Direct { from: 64 })]);
        assert!(hops.logs[0].order.is_empty());
    }

    #[test]
    fn each_route_takes_the_delays_that_belong_to_it() {
        let hops = hops(1);
        let mut log = HopLog::default();
        let (kind, rtt) = (Kind::Udp, Span(9));
        let lengths = [(199, Some(56)), (200, Some(57)), (1500, None), (1501, Some(58))];
        let exchange = |(length, reply_length)| Exchange { kind, length, rtt, reply_length };
        log.exchanges.extend(lengths.map(exchange));
        log.note_tail(1400, Span(7), false);
        let samples = |route| {
            let samples = hops.samples(&log, route);
            samples.into_iter().map(|it| (it.bytes, it.delay)).collect::<Vec<_>>()
        };
        assert_eq!(samples(Route::Direct { from: 200 }), [(200, Span(9)), (1500, Span(9))]);
        assert_eq!(samples(Route::TwoWay), [(255, Span(9)), (257, Span(9)), (1559, Span(9))]);
        for route in [Route::TailByEcho, Route::TailByHop(2)] {
            assert_eq!((samples(route), route.way()), (vec![(1400, Span(7))], Way::Tailgating));
        }
        let ways = [Route::Direct { from: 64 }, Route::TwoWay].map(Route::way);
        assert_eq!(ways, [Way::Direct, Way::TwoWay]);
    }
}
