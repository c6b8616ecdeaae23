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

    /// The smallest size from which on answers do not grow any more, where enough sizes are left above it.
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
            large.saturating_sub(self.plan.header + ICMP_HEADER).next_multiple_of(8)
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
