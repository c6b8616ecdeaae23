//! Greedy flows that back off: slow start, then additive increase and multiplicative decrease,
//! clocked by arrivals.
//!
//! What it is not: no retransmission (a lost packet is heard of once, a feedback time later), no
//! timeouts, no pacing, no delayed acknowledgements, and acknowledgements are never lost. It fills
//! queues and shares links like Reno (RFC 5681) in congestion avoidance; do not read absolute TCP
//! throughput from it.

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
            // Silent by schedule. When the last packet has been heard of, it sleeps until it may
            // send again.
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

#[cfg(test)]
mod tests {
    use netaware_units::Span;

    use super::*;
    use crate::scenario::{Factor, Schedule};

    /// May send at these factors from these microseconds on.
    fn schedule(steps: &[(i64, f64)]) -> Warp {
        let step = |(at, factor): &(i64, f64)| Factor { at: Span::from_micros(*at), factor: *factor };
        Warp::new(&Schedule::Steps(steps.iter().map(step).collect()))
    }

    /// When it sends and which flow, until it waits for news.
    fn sent(tcp: &mut Tcp, warp: &mut Warp) -> Vec<(u64, u32)> {
        let mut sent = Vec::new();
        loop {
            let at = tcp.next_at();
            let Some(flow) = tcp.emit(warp) else { return sent };
            sent.push((at, flow));
        }
    }

    #[test]
    fn a_flow_doubles_halves_once_for_what_was_in_flight_and_then_adds() {
        let (mut tcp, mut always) = (Tcp::new(1, 0), schedule(&[(0, 1.0)]));
        tcp.wake_all(0);
        assert_eq!(sent(&mut tcp, &mut always), [(0, 0); 10]);
        assert_eq!(tcp.next_at(), u64::MAX);
        // What is heard, how many packets go for it, and thousandths of the window, in flight,
        // forgiven.
        let rows = [
            (Outcome::Arrived, 2, (11_000, 11, 0)),
            (Outcome::Lost, 0, (5_500, 10, 10)),
            (Outcome::Lost, 0, (5_500, 9, 9)),
            (Outcome::Arrived, 0, (5_682, 8, 8)),
        ];
        for (at, (outcome, packets, state)) in (5..).zip(rows) {
            tcp.hear(at, 0, outcome);
            assert_eq!(tcp.next_at(), at);
            assert_eq!(sent(&mut tcp, &mut always), vec![(at, 0); packets]);
            let flow = &tcp.flows[0];
            let thousandths = (flow.window * 1000.0).round() as u64;
            assert_eq!((thousandths, flow.in_flight, flow.forgiven), state, "heard at {at}");
        }
    }

    #[test]
    fn flows_begin_a_microsecond_apart_and_send_no_more_than_the_largest_window() {
        let (mut tcp, mut always) = (Tcp::new(3, 2), schedule(&[(0, 1.0)]));
        tcp.wake_all(7);
        let expected = [(7, 0), (7, 0), (1_000_007, 1), (1_000_007, 1), (2_000_007, 2), (2_000_007, 2)];
        assert_eq!(sent(&mut tcp, &mut always), expected);
        let mut never = Tcp::new(2, 0);
        never.wake_all(u64::MAX);
        assert_eq!(never.next_at(), u64::MAX);
    }

    #[test]
    fn a_flow_that_is_silent_by_schedule_begins_again_once_all_it_sent_has_been_heard_of() {
        let (mut tcp, mut pausing) = (Tcp::new(1, 2), schedule(&[(0, 1.0), (1, 0.0), (2, 1.0)]));
        tcp.wake_all(0);
        assert_eq!(sent(&mut tcp, &mut pausing), [(0, 0); 2]);
        tcp.hear(1_500_000, 0, Outcome::Arrived);
        assert_eq!((tcp.emit(&mut pausing), tcp.next_at()), (None, u64::MAX));
        tcp.hear(1_600_000, 0, Outcome::Arrived);
        assert_eq!((tcp.emit(&mut pausing), tcp.next_at()), (None, 2_000_000));
        assert_eq!(sent(&mut tcp, &mut pausing), [(2_000_000, 0); 2]);
    }
}
