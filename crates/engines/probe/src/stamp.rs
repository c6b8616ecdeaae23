//! A flow of STAMP packets (RFC 8762): one-way delay and loss of both ways from one end.
//!
//! **Measures** for each packet when it left, when the reflector had it, when the answer left there
//! and when it came; and for each that stays without an answer on which way it was lost.
//! **Assumes** a reflector that answers at once. One that counts its answers (stateful, RFC 8762
//! §4) tells the ways apart: numbers missing among the answers were lost on the way back, the rest
//! on the way there. Whether it counts is known from its direct measurement TLV, or once its number
//! differs from ours; until then losses have no way. Nor have those that were due while the
//! reflector's program did not run, as answers show that it held back for [`HELD_UP`] and longer:
//! its host may have dropped them. **Biased**: loss is a verdict after
//! `patience`, as in [`crate::echo`]; of a late answer the way with the larger excess over its
//! minimum is blamed. The reflector's leaving stamp is read before its system call, so the way back
//! is long by what that takes (1 to 10 us). Delays are differences of two clocks: see [`clock`].
//! **Published**: RFC 8762, RFC 8972, RFC 7679 and 7680 (delay, loss), RFC 4737 (reordering). Where
//! we differ: when the last packets have no answer, up to [`MOST_CLOSERS`] more are sent, only so
//! that the next answer tells the way of those losses; they count nowhere.
//!
//! [`reflector`] is the other end.

pub mod clock;
mod exchange;
mod plan;
pub mod reflector;
pub mod report;
mod window;

use std::collections::VecDeque;

use netaware_engine::{Engine, Input, Output};
use netaware_stats::patience::Patience;
use netaware_units::{Mono, Span, Stamp, Wall};
use netaware_wire::echo::number_from;
use netaware_wire::stamp::tlv::{self, Question, Questions, Told};
use netaware_wire::stamp::{Mode, Reply, Request, Timestamp};

use crate::standstill::Standstill;

pub use exchange::{Ignored, LostRun, StampCounts, StampEvent, StampExchange};
pub use plan::{StampPlan, StampPlanError};
use window::{Arrival, Seen, Window};

/// The engine. Feed it until it says [`Output::Done`].
#[derive(Debug)]
pub struct StampFlow {
    plan: StampPlan,
    patience: Patience,
    questions: Questions,
    window: Window,
    events: VecDeque<StampEvent>,
    counts: StampCounts,
    next_due: Mono,
    closers: u32,
    /// Told by the reflector, the latest of each.
    told: Told,
    /// Packets that the reflector had a second time and did not answer, by its counts.
    doubled: u32,
    /// Something has come, in time or late.
    is_heard: bool,
    if_silent: IfSilent,
    /// Set by `Stop`: answers are awaited until then and no longer.
    ends_at: Option<Mono>,
    standstill: Standstill,
    /// The longest round trip.
    longest: Span,
}

/// What becomes of a flow whose first packets have no answer at all within patience.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfSilent {
    /// It goes on: the reflector may come.
    GoOn,
    /// It ends: nobody answers there.
    End,
}

impl StampFlow {
    /// A flow that has not sent anything yet.
    ///
    /// # Errors
    /// A plan that cannot be carried out.
    pub fn new(plan: StampPlan) -> Result<Self, StampPlanError> {
        let patience = Patience::fixed(plan.patience);
        Self::waiting(plan, patience)
    }

    /// A flow whose patience follows the path, at least that of the plan.
    ///
    /// # Errors
    /// A plan that cannot be carried out.
    pub fn following(plan: StampPlan) -> Result<Self, StampPlanError> {
        let patience = Patience::following(plan.patience).at_most(plan.most_patience());
        Self::waiting(plan, patience)
    }

    fn waiting(plan: StampPlan, patience: Patience) -> Result<Self, StampPlanError> {
        plan.check()?;
        let room = plan.length - Mode::of(plan.key.as_ref()).base_len();
        Ok(Self {
            questions: Questions::fitting(&plan.questions(), room, plan.key.as_ref()),
            window: Window::new(patience.span()),
            patience,
            events: VecDeque::new(),
            counts: StampCounts::default(),
            next_due: plan.start,
            closers: 0,
            told: Told::default(),
            doubled: 0,
            is_heard: false,
            if_silent: IfSilent::GoOn,
            ends_at: None,
            standstill: Standstill::default(),
            longest: Span::ZERO,
            plan,
        })
    }

    /// The same, for a reflector that may not be there.
    #[must_use]
    pub fn if_silent(self, then: IfSilent) -> Self {
        Self { if_silent: then, ..self }
    }

    /// How long an answer is waited for, as far as the path is known.
    pub fn patience(&self) -> Span {
        self.patience.span()
    }

    /// The counts up to now.
    pub fn counts(&self) -> StampCounts {
        self.counts
    }

    /// What the reflector's TLVs told last.
    pub fn told(&self) -> Told {
        self.told
    }

    /// Whether the reflector reads the clock that we read; `None` until it has answered that, or if
    /// it was not asked.
    pub fn same_clock(&self) -> Option<bool> {
        let run = self.plan.run_of_kernel.as_ref()?;
        let answer = self.told.same_clock?;
        Some(answer == tlv::same_clock(run, &self.plan.nonce))
    }

    /// Whether the reflector counts its answers, as far as that has shown.
    pub fn is_stateful(&self) -> Option<bool> {
        self.window.is_stateful()
    }

    /// Whether questions about DSCP and counts travel along: a length without room for them has
    /// none.
    pub fn asks_questions(&self) -> bool {
        self.questions.ask(|question| *question == Question::Counters)
    }

    fn all_are_sent(&self) -> bool {
        self.ends_at.is_some() || self.plan.count.is_some_and(|count| self.counts.asked >= count)
    }

    fn wants_closer(&self, now: Mono) -> bool {
        self.ends_at.is_none()
            && self.counts.answered > 0
            && self.closers < MOST_CLOSERS
            && self.window.ends_in_losses(now)
    }

    /// When the next packet should be handed to the driver, and whether it closes.
    fn next_send(&self, now: Mono) -> Option<(Mono, Mono)> {
        if !self.window.has_room() {
            return None;
        }
        if !self.all_are_sent() {
            return Some((self.next_due - LEAD, self.next_due));
        }
        let judged = self.standstill.judged(now);
        self.wants_closer(judged).then_some((self.next_due - LEAD, self.next_due))
    }

    fn send(&mut self, now: Mono, due: Mono, out: &mut [u8]) -> Output<StampEvent> {
        let closes = self.all_are_sent();
        // One that closes is due when it is wanted, and no sooner.
        let due = if closes { due.max(now) } else { due };
        let sent_at = self.plan.wall(due.max(now));
        // A closer only has to come behind what is missing: it is not waited for as a packet is.
        let patience = self.patience.span();
        let patience = if closes { patience.min(self.longest * 2 + CLOSER_MARGIN) } else { patience };
        let seq = self.window.push(due.max(now), sent_at, patience, closes);
        if closes {
            self.closers += 1;
            self.next_due = due.max(now) + CLOSER_GAP;
        } else {
            self.counts.asked += 1;
            self.next_due = due + self.plan.interval;
        }
        let key = self.plan.key.as_ref();
        let (base, area) = out[..self.plan.length].split_at_mut(Mode::of(key).base_len());
        let number = seq as u32;
        self.questions.emit(area, key, number, number.wrapping_add(1));
        let error = self.plan.error;
        let request = Request {
            seq: number,
            sent_at: Timestamp::new(sent_at, error.format),
            error,
            ssid: self.plan.ssid,
        };
        request.emit(base, key);
        Output::Send { len: self.plan.length, tag: seq, due }
    }

    fn take(&mut self, bytes: &[u8], rx: Stamp, ttl: Option<u8>) {
        let key = self.plan.key.as_ref();
        let reply = match Reply::parse(bytes, key) {
            Ok(reply) => reply,
            Err(error) => return self.counts.ignored.count(error),
        };
        let next = self.window.next();
        let seq = number_from(u64::from(reply.request_seq), u32::BITS, next);
        let told_at = reply.request_sent_at.at(reply.request_error.format);
        let ours = reply.ssid == self.plan.ssid || reply.ssid == 0;
        let Some(seq) = seq.filter(|seq| ours && self.window.may_answer(*seq, told_at)) else {
            self.counts.ignored.unasked += 1;
            return;
        };
        let told = tlv::told(bytes.get(Mode::of(key).base_len()..).unwrap_or_default(), key, reply.seq);
        // One that repeats our numbers may still count, and say so.
        let counted = told.counters.map(|counters| counters.sent).filter(|_| reply.seq == reply.request_seq);
        let number = counted.and_then(|sent| sent.checked_sub(1)).unwrap_or(reply.seq);
        self.note(told, number);
        let dwell = reply.sent_at.since(reply.received_at);
        // A reflector may say anything; it did not hold a packet for longer than that was away.
        let is_held = dwell >= HELD_UP && dwell <= self.plan.wall(rx.at).since(told_at);
        if is_held {
            self.window.held_up(told_at, dwell);
            self.events.push_back(StampEvent::HeldUp { seq, dwell });
        }
        let seen = Seen::new(reply, number, rx, ttl);
        self.is_heard = true;
        // That the reflector did not run is no property of the path.
        self.learn(seq, rx.at - if is_held { dwell } else { Span::ZERO });
        match self.window.arrive(seq, seen, |mono| self.plan.wall(mono)) {
            Arrival::InTime => {}
            Arrival::Restarted => {
                self.doubled = 0;
                self.events.push_back(StampEvent::Restarted);
            }
            Arrival::Late => {
                self.counts.late += 1;
                self.events.push_back(StampEvent::Late { seq });
            }
            Arrival::Copy { forward } => {
                let count =
                    if forward { &mut self.counts.forward_copies } else { &mut self.counts.reverse_copies };
                *count += 1;
                self.events.push_back(StampEvent::Copy { seq, forward });
            }
            Arrival::Forgotten => self.counts.ignored.forgotten += 1,
        }
        let of_this = told.counters.filter(|counters| counters.sent == number.wrapping_add(1));
        self.note_doubled(of_this.and_then(|counters| counters.received.checked_sub(counters.sent)));
    }

    /// A reflector that answers nothing twice still counts what it had twice. Answers may come in
    /// any order, so only the most that any of them told counts.
    fn note_doubled(&mut self, told: Option<u32>) {
        let more = told.unwrap_or(0).saturating_sub(self.doubled);
        if more > 0 {
            self.doubled += more;
            let count = u64::from(more);
            self.counts.forward_copies += count;
            self.events.push_back(StampEvent::Doubled { count });
        }
    }

    /// Takes note of how long an answer took, which may be the first or a late one.
    fn learn(&mut self, seq: u64, at: Mono) {
        let Some(rtt) = self.window.since_departure(seq, at) else { return };
        let before = self.patience.span();
        self.patience.observe(rtt);
        self.longest = self.longest.max(rtt);
        let patience = self.patience.span();
        if patience != before {
            self.window.set_patience(patience);
            self.events.push_back(StampEvent::Patience(patience));
        }
    }

    fn note(&mut self, told: Told, number: u32) {
        if told.counters.is_some_and(|counters| counters.sent == number.wrapping_add(1)) {
            self.window.counts_its_answers();
        }
        let before = self.told;
        self.told = Told {
            class: told.class.or(before.class),
            counters: told.counters.or(before.counters),
            synchronised_by: told.synchronised_by.or(before.synchronised_by),
            same_clock: told.same_clock.or(before.same_clock),
            ..told
        };
    }

    /// Gives every verdict that can be given now.
    fn settle(&mut self, now: Mono) {
        let over = self.ends_at.is_some_and(|ends_at| now >= ends_at);
        let nothing_follows = over || (self.all_are_sent() && !self.wants_closer(now));
        while let Some(event) = self.window.settle(now, over, nothing_follows, &self.plan) {
            match &event {
                StampEvent::Answered(_) => self.counts.answered += 1,
                StampEvent::Lost(lost) => self.counts.add_lost(lost),
                StampEvent::NotSent { .. } => self.counts.not_sent += 1,
                StampEvent::Abandoned { count, not_sent } => {
                    self.counts.abandoned += count;
                    self.counts.not_sent += not_sent;
                }
                _ => {}
            }
            self.events.push_back(event);
        }
        let in_vain = self.if_silent == IfSilent::End && !self.is_heard && self.window.dead() > 0;
        if in_vain && self.ends_at.is_none() {
            self.ends_at = Some(now);
        }
    }
}

impl Engine for StampFlow {
    type Event = StampEvent;

    fn handle(&mut self, now: Mono, input: Input<'_>) {
        self.standstill.observe(now);
        match input {
            Input::Wake | Input::Handed { .. } => {}
            Input::Stop if self.ends_at.is_some() => self.ends_at = Some(now),
            Input::Stop => self.ends_at = Some(now + LINGER.min(self.plan.patience)),
            Input::Datagram { bytes, rx, ttl } => {
                // What came in a standstill is judged by its stamp.
                self.settle(self.standstill.judged(now).max(rx.at.min(now)));
                self.take(bytes, rx, ttl);
            }
            Input::Sent { tag, tx } => self.window.sent(tag, tx),
            Input::NotSent { tag, .. } => self.window.not_sent(tag),
        }
    }

    /// # Panics
    /// When `out` is shorter than the plan's `length`.
    fn poll(&mut self, now: Mono, out: &mut [u8]) -> Output<StampEvent> {
        self.settle(self.standstill.judged(now));
        if let Some(event) = self.events.pop_front() {
            return Output::Event(event);
        }
        let next = self.next_send(now);
        if let Some((send_at, due)) = next
            && now >= send_at
        {
            return self.send(now, due, out);
        }
        let verdict = self.window.next_verdict_at(now);
        let end = self.ends_at.filter(|_| !self.window.is_empty());
        let verdict = [verdict, end].into_iter().flatten().min();
        let verdict = verdict.map(|at| self.standstill.verdict_at(at, now));
        let Some(at) = [next.map(|(send_at, _)| send_at), verdict].into_iter().flatten().min() else {
            return Output::Done;
        };
        let at = at.max(now + Span(1));
        self.standstill.wake_at(at);
        Output::Wait(at)
    }
}

/// Packets after the planned ones, at most.
pub const MOST_CLOSERS: u32 = 5;
/// A reflector on a busy host waits for a core, but not so long.
const HELD_UP: Span = Span::from_millis(200);
/// As in [`crate::echo`].
const LEAD: Span = Span::from_micros(200);
/// As in [`crate::echo`].
const LINGER: Span = Span::from_millis(250);
/// Between closers: long enough not to fall into the same burst of losses.
const CLOSER_GAP: Span = Span::from_millis(20);
/// A closer is waited for two round trips and this.
const CLOSER_MARGIN: Span = Span::from_millis(100);

impl StampPlan {
    /// The wall clock as it was when the plan was made, carried on: a step of the clock meanwhile
    /// changes no delay.
    pub(crate) fn wall(&self, at: Mono) -> Wall {
        Wall(self.epoch.0.saturating_add_unsigned(at.0))
    }
}

#[cfg(test)]
mod tests;
