//! Packets without a verdict, in order of their numbers, and what the reflector's own numbers say
//! of losses.

use std::collections::{BTreeSet, VecDeque};

use netaware_units::{Mono, Span, Stamp, Wall};
use netaware_wire::stamp::Reply;

use super::exchange::LostRun;
use super::plan::MOST_OUTSTANDING;
use super::{StampEvent, StampExchange, StampPlan};

/// What a reply brought.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    reply: Reply,
    rx: Stamp,
    ttl: Option<u8>,
    /// The reflector's number; rises beyond 32 bits.
    number: i64,
    /// How often the reflector had begun anew.
    generation: u32,
    overtaken: bool,
}

impl Seen {
    pub(super) fn new(reply: Reply, number: u32, rx: Stamp, ttl: Option<u8>) -> Self {
        Self { reply, rx, ttl, number: i64::from(number), generation: 0, overtaken: false }
    }
}

#[derive(Debug)]
struct Slot {
    /// T1 as the packet says.
    told_at: Wall,
    sent_at: Mono,
    deadline: Mono,
    tx: Option<Stamp>,
    seen: Option<Seen>,
    not_sent: bool,
    closes: bool,
    /// The reflector's number of an answer that came after the deadline.
    late: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Pending,
    Answered,
    Lost,
    NotSent,
}

impl Slot {
    fn fate(&self, now: Mono, over: bool) -> Fate {
        let expired = now >= self.deadline;
        match (&self.seen, self.not_sent) {
            (_, true) => Fate::NotSent,
            (Some(_), _) if self.tx.is_some() || expired || over => Fate::Answered,
            (None, _) if expired => Fate::Lost,
            _ => Fate::Pending,
        }
    }
}

/// How a reply was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    InTime,
    /// In time, and the reflector counts from zero again.
    Restarted,
    Late,
    Copy {
        forward: bool,
    },
    Forgotten,
}

/// What became of a packet that has left the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Past {
    Answered,
    Lost,
    /// Lost and late, or not sent: nothing more to count.
    Closed,
}

#[derive(Debug)]
pub(super) struct Window {
    slots: VecDeque<Slot>,
    /// Number of the first slot.
    base: u64,
    patience: Span,
    /// The first so many slots are known to be lost or not sent.
    dead: usize,
    /// The last few before the first slot.
    past: VecDeque<Past>,
    /// The reflector's numbers that have come or were counted as lost on the way back.
    numbers: BTreeSet<i64>,
    /// The last answer settled: the reflector's number and generation. At first: it has counted
    /// nothing.
    anchor: Option<(i64, u32)>,
    generation: u32,
    highest_number: i64,
    /// It has shown that it counts its answers.
    stateful: bool,
    /// Least apparent delays, there and back.
    least: Option<(Span, Span)>,
    /// Packets sent between these came to the reflector while its program did not run.
    held_up: Option<(Wall, Wall)>,
}

impl Window {
    pub(super) fn new(patience: Span) -> Self {
        Self {
            slots: VecDeque::new(),
            base: 0,
            patience,
            dead: 0,
            past: VecDeque::new(),
            numbers: BTreeSet::new(),
            anchor: Some((-1, 0)),
            generation: 0,
            highest_number: -1,
            stateful: false,
            least: None,
            held_up: None,
        }
    }

    /// The reflector held the packet that was sent then for so long before it answered: what was
    /// sent within that time came to it meanwhile, too.
    pub(super) fn held_up(&mut self, told_at: Wall, dwell: Span) {
        let until = Wall(told_at.0.saturating_add(dwell.0));
        let before = self.held_up.filter(|(from, end)| *from <= until && told_at <= *end);
        let (from, end) = before.unwrap_or((told_at, until));
        self.held_up = Some((from.min(told_at), end.max(until)));
    }

    fn is_held_up(&self, slot: &Slot) -> bool {
        self.held_up.is_some_and(|(from, until)| slot.told_at >= from && slot.told_at <= until)
    }

    /// Number of the next packet.
    pub(super) fn next(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    pub(super) fn has_room(&self) -> bool {
        self.slots.len() < MOST_OUTSTANDING
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn counts_its_answers(&mut self) {
        self.stateful = true;
    }

    pub(super) fn is_stateful(&self) -> Option<bool> {
        self.stateful.then_some(true)
    }

    pub(super) fn push(&mut self, sent_at: Mono, told_at: Wall, patience: Span, closes: bool) -> u64 {
        let seq = self.next();
        let deadline = sent_at + patience;
        let slot =
            Slot { told_at, sent_at, deadline, tx: None, seen: None, not_sent: false, closes, late: None };
        self.slots.push_back(slot);
        seq
    }

    /// For packets that are sent from now on, and for those on their way that are not known to be
    /// lost.
    pub(super) fn set_patience(&mut self, patience: Span) {
        if self.patience != patience {
            self.patience = patience;
            for slot in self.slots.iter_mut().skip(self.dead).filter(|slot| !slot.closes) {
                slot.deadline = slot.sent_at + patience;
            }
        }
    }

    /// From a packet's departure to this instant; `None` where it is no longer here.
    pub(super) fn since_departure(&mut self, seq: u64, at: Mono) -> Option<Span> {
        self.slot(seq).map(|slot| at.since(slot.tx.map_or(slot.sent_at, |tx| tx.at)))
    }

    /// How many packets were not answered in time, in front of those without a verdict.
    pub(super) fn dead(&self) -> usize {
        self.dead
    }

    fn slot(&mut self, seq: u64) -> Option<&mut Slot> {
        self.slots.get_mut(usize::try_from(seq.checked_sub(self.base)?).ok()?)
    }

    pub(super) fn sent(&mut self, seq: u64, tx: Stamp) {
        if let Some(slot) = self.slot(seq) {
            slot.tx = Some(tx);
        }
    }

    pub(super) fn not_sent(&mut self, seq: u64) {
        if let Some(slot) = self.slot(seq) {
            slot.not_sent = true;
        }
    }

    /// Whether a packet with that number said that it left then; nobody off the path can guess it.
    /// Of packets that are no longer here the number must do.
    pub(super) fn may_answer(&self, seq: u64, told_at: Wall) -> bool {
        let Some(index) = seq.checked_sub(self.base) else { return true };
        usize::try_from(index)
            .is_ok_and(|index| self.slots.get(index).is_some_and(|slot| slot.told_at == told_at))
    }

    /// Takes an answer; verdicts up to now have been given.
    pub(super) fn arrive(&mut self, seq: u64, mut seen: Seen, wall: impl Fn(Mono) -> Wall) -> Arrival {
        seen.number = self.whole_number(seen.number as u32);
        let known = self.numbers.contains(&seen.number);
        let Some(index) = seq.checked_sub(self.base).map(|index| index as usize) else {
            return self.arrive_past(seq, seen.number);
        };
        let dead = self.dead;
        let blames_reverse = self.blames_reverse(index, &seen, &wall);
        let Some(slot) = self.slots.get_mut(index) else { return Arrival::Forgotten };
        if slot.seen.is_some() || slot.late.is_some() {
            // The number of a late answer is not noted where the way back is to blame.
            let is_known = known || slot.late == Some(seen.number);
            if !is_known {
                self.numbers.insert(seen.number);
            }
            return Arrival::Copy { forward: !is_known };
        }
        if index < dead {
            slot.late = Some(seen.number);
            if !blames_reverse {
                self.numbers.insert(seen.number);
            }
            return Arrival::Late;
        }
        let is_old = seen.number < self.highest_number - NUMBERS_KEPT;
        let restarted = (known || is_old) && seen.number as u64 != seq;
        if restarted {
            self.generation += 1;
            self.numbers.clear();
            self.highest_number = -1;
        }
        self.stateful |= seen.number as u64 != seq;
        seen.generation = self.generation;
        seen.overtaken = seen.number < self.highest_number;
        self.highest_number = self.highest_number.max(seen.number);
        self.numbers.insert(seen.number);
        slot.seen = Some(seen);
        if restarted { Arrival::Restarted } else { Arrival::InTime }
    }

    fn arrive_past(&mut self, seq: u64, number: i64) -> Arrival {
        let back = usize::try_from(self.base - seq).unwrap_or(usize::MAX);
        let Some(past) = self.past.len().checked_sub(back).and_then(|at| self.past.get_mut(at)) else {
            return Arrival::Forgotten;
        };
        match *past {
            Past::Lost => {
                *past = Past::Closed;
                self.numbers.insert(number);
                Arrival::Late
            }
            Past::Answered | Past::Closed => Arrival::Copy { forward: self.numbers.insert(number) },
        }
    }

    /// The number that ends in these 32 bits and is nearest to the highest seen.
    fn whole_number(&self, low: u32) -> i64 {
        let near = self.highest_number.max(0);
        let step = low.wrapping_sub(near as u32).cast_signed();
        let number = near + i64::from(step);
        if number < 0 { i64::from(low) } else { number }
    }

    /// Whether a late answer was held up on the way back: its excess over the least delay is larger
    /// there. Where the reflector did not run, it was neither way.
    fn blames_reverse(&self, index: usize, seen: &Seen, wall: &impl Fn(Mono) -> Wall) -> bool {
        let slot = self.slots.get(index).filter(|slot| !self.is_held_up(slot));
        let (Some((forward, reverse)), Some(slot)) = (self.least, slot) else { return false };
        let there = seen.reply.received_at.since(slot.told_at) - forward;
        let back = wall(seen.rx.at).since(seen.reply.sent_at) - reverse;
        back > there
    }

    /// Whether all that is left was lost, so that nothing tells the way of it.
    pub(super) fn ends_in_losses(&self, now: Mono) -> bool {
        let is_over = |slot: &Slot| matches!(slot.fate(now, false), Fate::Lost | Fate::NotSent);
        self.slots.iter().any(|slot| slot.fate(now, false) == Fate::Lost)
            && self
                .slots
                .iter()
                .rev()
                .take(self.slots.len() - self.dead)
                .all(|slot| is_over(slot) || slot.closes)
    }

    /// The next verdict, in order of numbers. `nothing_follows`: no later answer can tell the way
    /// of losses.
    pub(super) fn settle(
        &mut self,
        now: Mono,
        over: bool,
        nothing_follows: bool,
        plan: &StampPlan,
    ) -> Option<StampEvent> {
        loop {
            let front = self.slots.front()?;
            match front.fate(now, over) {
                Fate::Answered => {
                    if let Some(event) = self.settle_answer(plan) {
                        return Some(event);
                    }
                }
                Fate::NotSent if self.dead == 0 => {
                    let closes = front.closes;
                    let seq = self.base;
                    self.pop(Past::Closed);
                    if !closes {
                        return Some(StampEvent::NotSent { seq });
                    }
                }
                Fate::Lost | Fate::NotSent => return self.settle_losses(now, over, nothing_follows),
                Fate::Pending if over => return Some(self.abandon()),
                Fate::Pending => return None,
            }
        }
    }

    fn settle_answer(&mut self, plan: &StampPlan) -> Option<StampEvent> {
        let reordered_forward = self.is_overtaken();
        let seq = self.base;
        let slot = self.pop(Past::Answered)?;
        let seen = slot.seen?;
        self.anchor = Some((seen.number, seen.generation));
        while self.numbers.first().is_some_and(|first| *first < seen.number - NUMBERS_KEPT) {
            self.numbers.pop_first();
        }
        let tx = slot.tx.unwrap_or(Stamp::application(slot.sent_at));
        let exchange = StampExchange {
            seq,
            sent_at: plan.wall(tx.at),
            received_at: seen.reply.received_at,
            answered_at: seen.reply.sent_at,
            came_at: plan.wall(seen.rx.at),
            tx,
            rx: seen.rx,
            error: seen.reply.error,
            ttl_forward: seen.reply.request_ttl,
            ttl_reverse: seen.ttl,
            reordered_forward,
            reordered_reverse: seen.overtaken,
        };
        let (there, back) = (exchange.forward_apparent(), exchange.reverse_apparent());
        self.least = Some(self.least.map_or((there, back), |(f, r)| (f.min(there), r.min(back))));
        (!slot.closes).then_some(StampEvent::Answered(exchange))
    }

    /// Whether one of the packets right behind the first came to the reflector before it.
    fn is_overtaken(&self) -> bool {
        let mut seen = self.slots.iter().take(NEIGHBOURS).filter_map(|slot| slot.seen);
        let Some(first) = seen.next() else { return false };
        seen.any(|later| later.generation == first.generation && later.number < first.number)
    }

    /// The losses at the front, once an answer behind them, or the end, is there.
    fn settle_losses(&mut self, now: Mono, over: bool, nothing_follows: bool) -> Option<StampEvent> {
        while let Some(slot) = self.slots.get(self.dead) {
            if slot.seen.is_some() || !matches!(slot.fate(now, false), Fate::Lost | Fate::NotSent) {
                break;
            }
            self.dead += 1;
        }
        let answer = self.slots.get(self.dead).and_then(|slot| slot.seen);
        let waited = self.slots.front().is_some_and(|front| now >= front.deadline + GRACE);
        let is_end = nothing_follows && (over || self.dead == self.slots.len());
        if answer.is_none() && !waited && !is_end {
            return None;
        }
        Some(self.close_losses(answer))
    }

    fn close_losses(&mut self, answer: Option<Seen>) -> StampEvent {
        let dead = std::mem::take(&mut self.dead);
        let lost = |slot: &&Slot| !slot.not_sent;
        let first = self.slots.iter().take(dead).position(|slot| !slot.not_sent).unwrap_or(0);
        let of_all = self.slots.iter().take(dead).filter(lost).count() as u64;
        let count = self.slots.iter().take(dead).filter(lost).filter(|slot| !slot.closes).count() as u64;
        let of_packets = self.slots.iter().take(dead).filter(lost).filter(|slot| !slot.closes);
        let held_up = of_packets.filter(|slot| self.is_held_up(slot)).count() as u64;
        let reverse = answer.and_then(|answer| self.lost_on_the_way_back(&answer, of_all));
        let on_the_way_back = reverse.map_or(0, |reverse| reverse.min(count));
        let inside = held_up.min(count - on_the_way_back);
        let run = LostRun {
            seq: self.base + first as u64,
            sent_at: self.slots.get(first).map_or(Wall(0), |slot| slot.told_at),
            count,
            not_sent: dead as u64 - of_all,
            forward: reverse.map_or(0, |_| count - on_the_way_back - inside),
            reverse: on_the_way_back,
            inside,
        };
        if reverse.is_none() {
            self.anchor = None;
        }
        for _ in 0..dead {
            let closed = self.slots.front().is_some_and(|slot| slot.not_sent || slot.late.is_some());
            self.pop(if closed { Past::Closed } else { Past::Lost });
        }
        StampEvent::Lost(run)
    }

    /// How many of `lost` packets the reflector answered: its numbers before this answer that never
    /// came. `None`: it does not say, or what it says cannot be.
    fn lost_on_the_way_back(&mut self, answer: &Seen, lost: u64) -> Option<u64> {
        let (from, generation) = self.anchor?;
        if generation != answer.generation || (answer.number - from).unsigned_abs() > MOST_OUTSTANDING as u64
        {
            return None;
        }
        let between = from.min(answer.number) + 1..from.max(answer.number);
        let missing: Vec<i64> = between.filter(|number| !self.numbers.contains(number)).collect();
        let reflected = missing.len() as u64;
        self.stateful |= reflected < lost;
        if !self.stateful || reflected > lost {
            return None;
        }
        self.numbers.extend(missing);
        Some(reflected)
    }

    /// All that is left, answered or not: who counted the answers alone would find less loss than
    /// there was.
    fn abandon(&mut self) -> StampEvent {
        let planned = || self.slots.iter().filter(|slot| !slot.closes);
        let not_sent = planned().filter(|slot| slot.not_sent).count() as u64;
        let count = planned().count() as u64 - not_sent;
        self.base += self.slots.len() as u64;
        self.slots.clear();
        self.past.clear();
        self.dead = 0;
        StampEvent::Abandoned { count, not_sent }
    }

    fn pop(&mut self, past: Past) -> Option<Slot> {
        let slot = self.slots.pop_front()?;
        self.base += 1;
        if self.past.len() == PAST_KEPT {
            self.past.pop_front();
        }
        self.past.push_back(past);
        Some(slot)
    }

    /// When time alone changes something.
    pub(super) fn next_verdict_at(&self, now: Mono) -> Option<Mono> {
        let front = self.slots.front()?;
        let pending = self.slots.get(self.dead).map(|slot| slot.deadline).filter(|at| *at > now);
        let grace = (self.dead > 0).then(|| front.deadline + GRACE);
        [pending, grace].into_iter().flatten().min().or(Some(now + Span::from_millis(1)))
    }
}

/// How long losses wait for a later answer that tells their way.
const GRACE: Span = Span::from_secs(2);
/// Fates remembered, to tell late answers and copies from noise.
const PAST_KEPT: usize = 4096;
/// The reflector's numbers that are remembered behind the last one settled.
const NUMBERS_KEPT: i64 = 4096;
/// How many packets further back one may be that overtakes and is noticed.
const NEIGHBOURS: usize = 64;
