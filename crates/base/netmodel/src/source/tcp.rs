//! Greedy flows that back off: slow start, then additive increase and multiplicative decrease, clocked by arrivals.
//!
//! What it is not: no retransmission (a lost packet is heard of once, a feedback time later), no timeouts, no pacing,
//! no delayed acknowledgements, and acknowledgements are never lost. It fills queues and shares links like Reno (RFC
//! 5681) in congestion avoidance; do not read absolute TCP throughput from it.

use std::collections::VecDeque;

use super::Outcome;
use super::warp::Warp;
use crate::network::time_queue::TimeQueue;

/// Packets of a fresh flow, RFC 6928.
const INITIAL_WINDOW: f64 = 10.0;

#[derive(Debug, Clone)]
pub(super) struct Tcp {
    flows: Vec<Flow>,
    window: f64,
    news: TimeQueue<(u32, News)>,
    /// Packets that may leave now: flow and how many.
    ready: VecDeque<(u32, u32)>,
    now: u64,
}

#[derive(Debug, Clone, Copy)]
enum News {
    /// The schedule lets it send.
    Go,
    Of(Outcome),
}

#[derive(Debug, Clone)]
struct Flow {
    window: f64,
    threshold: f64,
    in_flight: u32,
    /// Packets still in flight from before the last decrease; their losses belong to it.
    forgiven: u32,
}

impl Tcp {
    pub(super) fn new(flows: u32, window: u32) -> Self {
        let flow = Flow { window: INITIAL_WINDOW, threshold: f64::INFINITY, in_flight: 0, forgiven: 0 };
        let window = if window == 0 { f64::INFINITY } else { f64::from(window) };
        Self {
            flows: vec![flow; flows as usize],
            window,
            news: TimeQueue::new(),
            ready: VecDeque::new(),
            now: 0,
        }
    }

    pub(super) fn wake_all(&mut self, at: u64) {
        if at < u64::MAX {
            for flow in 0..self.flows.len() {
                // A microsecond apart, so that they do not all meet in one instant.
                self.news.push(at + flow as u64 * 1_000_000, (flow as u32, News::Go));
            }
        }
    }

    pub(super) fn hear(&mut self, at: u64, flow: u32, outcome: Outcome) {
        self.news.push(at, (flow, News::Of(outcome)));
    }

    pub(super) fn next_at(&self) -> u64 {
        if self.ready.is_empty() { self.news.head() } else { self.now }
    }

    /// The flow that sends a packet at `next_at`; `None` if it only took in what it heard.
    pub(super) fn emit(&mut self, warp: &mut Warp) -> Option<u32> {
        if self.ready.is_empty() {
            self.take_in(warp);
        }
        let (flow, left) = self.ready.front_mut()?;
        let number = *flow;
        *left -= 1;
        if *left == 0 {
            self.ready.pop_front();
        }
        Some(number)
    }

    fn take_in(&mut self, warp: &Warp) {
        let Some((at, (number, news))) = self.news.pop() else { return };
        self.now = at;
        let flow = &mut self.flows[number as usize];
        if let News::Of(outcome) = news {
            flow.take_in(outcome);
        }
        let active = warp.active_from(at);
        if active > at {
            // Silent by schedule. When the last packet has been heard of, it sleeps until it may send again.
            if active < u64::MAX && flow.in_flight == 0 {
                self.news.push(active, (number, News::Go));
            }
            return;
        }
        let may = (flow.window.min(self.window) as u32).saturating_sub(flow.in_flight);
        if may > 0 {
            flow.in_flight += may;
            self.ready.push_back((number, may));
        }
    }
}

impl Flow {
    fn take_in(&mut self, outcome: Outcome) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let forgiven = self.forgiven > 0;
        self.forgiven = self.forgiven.saturating_sub(1);
        match outcome {
            Outcome::Lost if forgiven => {}
            Outcome::Lost => {
                self.threshold = (self.window / 2.0).max(2.0);
                self.window = self.threshold;
                self.forgiven = self.in_flight;
            }
            Outcome::Arrived if self.window < self.threshold => self.window += 1.0,
            Outcome::Arrived => self.window += 1.0 / self.window,
        }
    }
}
