//! A train of request-responses: the engine behind idle and loaded latency, loss and reordering of
//! a path.
//!
//! **Measures** the round trip of each request between the stamps closest to the wire, and its
//! fate. **Assumes** that the responder answers each request at once, with a datagram of the length
//! asked for, and tells how long it held it where there is room for that; its clock need not agree
//! with ours, because only a difference of its own stamps is used. **Biased**: loss is a verdict.
//! After `patience` without an answer we call a request lost; an answer that turns up later is
//! counted as late and leaves the loss alone, so that a finished figure never changes. So loss
//! leans high, and the longest round trips are cut off, when patience is shorter than the path's
//! worst delay; [`EchoTrain::following`] has patience follow the round trips, late ones too
//! ([`netaware_stats::patience`]). In closed loop ([`Pacing::PingPong`], [`Pacing::Pipeline`]) a
//! slow answer delays the next request, which hides congestion and stalls ("coordinated omission");
//! an open loop does not. The two ways cannot be told apart for a loss. An answer below 24 bytes
//! repeats only the last digits of its number: one that is late by as many requests as these can
//! count is taken for another's. **Published**: RFC 2681 (round-trip delay), RFC 6673 (round-trip
//! loss), RFC 4737 §3 (reordering), RFC 5357 (TWAMP, which this resembles). Where we differ:
//! spacing is even unless [`Pacing::Poisson`] (RFC 3432) is asked for, so something periodic on the
//! path may hide or dominate.
//!
//! Memory is bounded: requests without a verdict, at most [`EchoPlan::MOST_OUTSTANDING`] by plan,
//! and the last few thousand that have one, so that copies and late answers are recognised.

mod exchange;
mod plan;
mod schedule;
mod window;

use std::collections::VecDeque;

use netaware_engine::{Engine, Input, NotSent, Output};
use netaware_stats::patience::Patience;
use netaware_units::{Mono, Span, Stamp};
use netaware_wire::echo::{self, Form, Reply};

use crate::standstill::Standstill;

pub use exchange::{EchoCounts, EchoEvent, Exchange, Ignored};
pub use plan::{EchoPlan, Pacing, PlanError};
pub use schedule::Schedule;
use window::{Arrival, Fate, OpenProbe, Window};

/// The engine. Feed it until it says [`Output::Done`], then read [`EchoTrain::counts`].
#[derive(Debug)]
pub struct EchoTrain {
    plan: EchoPlan,
    patience: Patience,
    window: Window,
    schedule: Schedule,
    events: VecDeque<EchoEvent>,
    counts: EchoCounts,
    /// Highest number answered in time, for the reordering rule.
    highest_answered: Option<u64>,
    /// Highest number of which an answer came, in time or late.
    highest_heard: Option<u64>,
    /// The longest round trip of an answer that came.
    longest: Span,
    /// No request is due from then on.
    sends_until: Option<Mono>,
    /// Set by `Stop`: answers are awaited until then and no
    /// longer.
    ends_at: Option<Mono>,
    is_overdue_told: bool,
    standstill: Standstill,
}

impl EchoTrain {
    /// A train that has not sent anything yet.
    ///
    /// # Errors
    /// A plan that cannot be carried out; see [`PlanError`].
    pub fn new(plan: EchoPlan) -> Result<Self, PlanError> {
        Self::waiting(plan, Patience::fixed(plan.patience))
    }

    /// A train whose patience follows the path, at least that of the plan. `known` is a round trip
    /// that was seen before, as of a handshake.
    ///
    /// # Errors
    /// A plan that cannot be carried out; see [`PlanError`].
    pub fn following(plan: EchoPlan, known: Option<Span>) -> Result<Self, PlanError> {
        let patience = Patience::following(plan.patience).at_most(plan.most_patience()).knowing(known);
        Self::waiting(plan, patience)
    }

    fn waiting(plan: EchoPlan, patience: Patience) -> Result<Self, PlanError> {
        plan.check()?;
        Ok(Self {
            schedule: Schedule::new(plan.pacing, plan.start),
            window: Window::new(patience.span()),
            patience,
            plan,
            events: VecDeque::new(),
            counts: EchoCounts::default(),
            highest_answered: None,
            highest_heard: None,
            longest: Span::ZERO,
            sends_until: None,
            ends_at: None,
            is_overdue_told: false,
            standstill: Standstill::default(),
        })
    }

    /// The same, whose requests are all due before this instant. Each of them is waited for as long
    /// as any other: a train that ended with its time and left those without an answer out would
    /// count what came and not what was lost.
    #[must_use]
    pub fn sending_until(self, at: Mono) -> Self {
        Self { sends_until: Some(at), ..self }
    }

    /// How long an answer is waited for, as far as the path is known.
    pub fn patience(&self) -> Span {
        self.patience.span()
    }

    /// The counts up to now. `asked = not_sent + received + lost + abandoned + outstanding` at any
    /// time.
    pub fn counts(&self) -> EchoCounts {
        self.counts
    }

    fn wants_to_send(&self) -> bool {
        self.ends_at.is_none() && self.plan.count.is_none_or(|count| self.counts.asked < count)
    }

    /// Takes note of how long an answer took.
    fn learn(&mut self, seq: u64, at: Mono) {
        self.highest_heard = self.highest_heard.max(Some(seq));
        if let Some(rtt) = self.window.since_departure(seq, at) {
            self.patience.observe(rtt);
            self.window.set_patience(self.patience.span());
        }
    }

    /// When the next request should be handed to the driver: a little ahead, so that it can hit
    /// `due` by its own means.
    fn next_send_at(&self) -> Option<Mono> {
        let room = self.wants_to_send() && self.window.has_room();
        let in_time = |due: &Mono| self.sends_until.is_none_or(|until| *due < until);
        self.schedule.next_due().filter(|due| room && in_time(due)).map(|due| due - LEAD)
    }

    fn send(&mut self, now: Mono, due: Mono, out: &mut [u8]) -> Output<EchoEvent> {
        let sent_at = due.max(now);
        let seq = self.window.push(due, sent_at);
        self.counts.asked += 1;
        self.counts.outstanding += 1;
        self.schedule.advance();
        echo::emit_request(&mut out[..self.plan.length], self.plan.flow, seq, sent_at.0);
        Output::Send { len: self.plan.length, tag: seq, due }
    }

    fn take_datagram(&mut self, now: Mono, bytes: &[u8], rx: Stamp, ttl: Option<u8>) {
        let Some((seq, reply)) = self.parse(bytes) else { return };
        let arrival = self.window.arrive(seq, reply.sent_at, (now, rx), reply.stamps, ttl);
        if matches!(arrival, Arrival::InTime { .. } | Arrival::TooLate | Arrival::Late) {
            self.learn(seq, rx.at);
        }
        match arrival {
            Arrival::InTime { complete } => {
                self.judge_order(seq);
                self.schedule.turn_over(now);
                if complete {
                    self.report_answer(seq);
                }
            }
            Arrival::TooLate => {
                self.note_lost(seq, now);
                self.note_late(seq);
            }
            Arrival::Late => self.note_late(seq),
            Arrival::Copy => {
                self.counts.duplicates += 1;
                self.events.push_back(EchoEvent::Duplicate(seq));
            }
            Arrival::Forgotten => self.counts.ignored.forgotten += 1,
            Arrival::Unasked => self.counts.ignored.unasked += 1,
        }
    }

    /// What anybody may send us; each reason to ignore it is counted.
    fn parse(&mut self, bytes: &[u8]) -> Option<(u64, Reply)> {
        let plan = self.plan;
        let ours = |reply: &Reply| match reply.flow {
            Some(flow) => flow == plan.flow,
            None => Form::of(plan.response) == Form::Short,
        };
        let ignored = &mut self.counts.ignored;
        let Some(reply) = Reply::parse(bytes, plan.length).ok().filter(ours) else {
            ignored.foreign += 1;
            return None;
        };
        let number = echo::number_from(reply.seq, plan.number_bits(), self.window.next());
        let Some(seq) = number.filter(|seq| self.window.may_answer(*seq, reply.sent_at)) else {
            // A late answer of what the flow was used for before, such as the search for the MTU.
            ignored.unasked += 1;
            return None;
        };
        if bytes.len() != plan.response {
            ignored.wrong_length += 1;
            return None;
        }
        if !echo::is_intact(bytes, seq) {
            ignored.altered += 1;
            return None;
        }
        Some((seq, reply))
    }

    fn judge_order(&mut self, seq: u64) {
        if self.highest_answered.is_some_and(|highest| seq < highest) {
            self.counts.reordered += 1;
            self.events.push_back(EchoEvent::Reordered(seq));
        }
        self.highest_answered = self.highest_answered.max(Some(seq));
    }

    fn report_answer(&mut self, seq: u64) {
        if let Some(exchange) = self.window.settle_answer(seq) {
            self.counts.received += 1;
            self.counts.outstanding -= 1;
            self.longest = self.longest.max(exchange.rtt_application());
            self.events.push_back(EchoEvent::Answered(exchange));
        }
    }

    fn note_lost(&mut self, seq: u64, now: Mono) {
        self.counts.lost += 1;
        self.counts.outstanding -= 1;
        self.events.push_back(EchoEvent::Lost(seq));
        self.schedule.turn_over(now);
    }

    fn note_late(&mut self, seq: u64) {
        self.counts.late += 1;
        self.events.push_back(EchoEvent::Late(seq));
    }

    fn take_not_sent(&mut self, now: Mono, seq: u64, why: NotSent) {
        if self.window.not_sent(seq) {
            self.counts.not_sent += 1;
            self.counts.outstanding -= 1;
            self.events.push_back(EchoEvent::NotSent { seq, why });
            // Asking again at once would spin for as long as the system refuses.
            self.schedule.turn_over(now + NOT_SENT_PAUSE.min(self.plan.patience));
        }
    }

    /// Gives the verdict on every request whose time is over, or on all of them when the train
    /// itself is. Then one that was asked before the last that was answered is lost: its answer
    /// was overtaken, had [`LINGER`] to come, and is later than any that came. Of the others nobody
    /// can tell.
    fn expire(&mut self, now: Mono) {
        let over = self.ends_at.is_some_and(|ends_at| now >= ends_at);
        while let Some(open) = self.window.first_open() {
            if open.answered && (over || now >= open.deadline) {
                self.report_answer(open.seq);
            } else if now >= open.deadline || (over && self.is_overtaken(&open, now)) {
                self.window.settle(open.seq, Fate::Lost);
                self.note_lost(open.seq, now);
            } else if over {
                self.window.settle(open.seq, Fate::Abandoned);
                self.counts.abandoned += 1;
                self.counts.outstanding -= 1;
            } else {
                break;
            }
        }
    }

    fn is_overtaken(&self, open: &OpenProbe, now: Mono) -> bool {
        self.highest_answered.is_some_and(|highest| open.seq < highest)
            && now.since(open.departure) > self.longest
    }

    /// When the last answers are missing for so long that whoever waits should know.
    fn overdue_at(&mut self) -> Option<Mono> {
        let is_too_late = |due: Mono| self.sends_until.is_some_and(|until| due >= until);
        let is_all_sent = !self.wants_to_send() || self.schedule.next_due().is_some_and(is_too_late);
        if self.is_overdue_told || self.ends_at.is_some() || !is_all_sent {
            return None;
        }
        let open = self.window.first_open().filter(|open| !open.answered)?;
        Some(open.deadline - self.patience.span() / 2)
    }

    fn note_overdue(&mut self, now: Mono) {
        if self.overdue_at().is_some_and(|at| now >= at)
            && let Some(until) = self.window.last_deadline()
        {
            self.is_overdue_told = true;
            let heard = self.highest_heard.map_or(0, |highest| highest + 1);
            let in_a_row = self.window.next().saturating_sub(heard);
            self.events.push_back(EchoEvent::Overdue { until, in_a_row });
        }
    }

    fn wait_until(&mut self, now: Mono) -> Option<Mono> {
        let overdue = self.overdue_at().map(|at| self.standstill.verdict_at(at, now));
        let verdict = self.window.first_open().map(|open| open.deadline);
        let end = self.ends_at.filter(|_| verdict.is_some());
        let verdict = [verdict, end, overdue].into_iter().flatten().min();
        let verdict = verdict.map(|at| self.standstill.verdict_at(at, now));
        [self.next_send_at(), verdict].into_iter().flatten().min()
    }
}

impl Engine for EchoTrain {
    type Event = EchoEvent;

    fn handle(&mut self, now: Mono, input: Input<'_>) {
        self.standstill.observe(now);
        match input {
            Input::Wake => {}
            Input::Stop if self.ends_at.is_some() => self.ends_at = Some(now),
            Input::Stop => self.ends_at = Some(now + LINGER.min(self.plan.patience)),
            Input::Datagram { bytes, rx, ttl } => self.take_datagram(now, bytes, rx, ttl),
            Input::Handed { tag, at } => self.window.handed(tag, at),
            Input::Sent { tag, tx } => {
                if self.window.sent(tag, tx) {
                    self.report_answer(tag);
                }
            }
            Input::NotSent { tag, why } => self.take_not_sent(now, tag, why),
        }
    }

    /// # Panics
    /// When `out` is shorter than the plan's `length`.
    fn poll(&mut self, now: Mono, out: &mut [u8]) -> Output<EchoEvent> {
        let judged = self.standstill.judged(now);
        self.expire(judged);
        self.note_overdue(judged);
        if let Some(event) = self.events.pop_front() {
            return Output::Event(event);
        }
        if let (Some(due), Some(send_at)) = (self.schedule.next_due(), self.next_send_at())
            && now >= send_at
        {
            return self.send(now, due, out);
        }
        let Some(at) = self.wait_until(now) else { return Output::Done };
        self.standstill.wake_at(at);
        Output::Wait(at)
    }
}

/// How far ahead of `due` a request is handed to the driver. Longer than a wake-up is usually late
/// (35 us at p99 on an idle virtual machine), short enough that a driver which waits for `due` with
/// its back to the socket delays no answer noticeably.
const LEAD: Span = Span::from_micros(200);
/// After `Stop`, how long answers are still awaited. A person who pressed Ctrl-C waits no longer
/// than this. The last requests that have no answer by then are abandoned and not lost, which drops
/// the slowest of the last few.
const LINGER: Span = Span::from_millis(250);
/// Until the next request where the system has refused one: a route that is back soon is noticed
/// soon.
const NOT_SENT_PAUSE: Span = Span::from_millis(100);

#[cfg(test)]
mod tests;
