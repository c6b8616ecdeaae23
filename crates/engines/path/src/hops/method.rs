//! The order of rounds.

mod sizes;
mod take;

use std::collections::VecDeque;

use netaware_stats::ceasing::Ceasing;
use netaware_stats::rng::SplitMix64;
use netaware_units::{Mono, Span};

use super::log::HopLog;
use super::plan::HopsPlan;
use super::round::{Kind, Probe, Round};
use super::route::Route;
use super::survey::{FAR_PATIENCE, FIRST_PATIENCE, LEAST_GAP, Survey};
use super::trains::{Gaps, TRAINS, Train};

/// Where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// How long is the path?
    Find,
    /// The same by echoes, where nobody reports closed ports.
    FindByEcho,
    /// Those that were silent, one at a time.
    Alone,
    /// Who answers how?
    Repeat,
    /// What is the largest packet that passes?
    Ladder,
    /// How do answers to it look, and how long does it take?
    Large,
    /// Delays of all sizes.
    Measure,
    /// Choke points.
    Trains,
    /// Over.
    Done,
}

/// What a probe was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Find {
        ttl: u8,
    },
    /// One hop alone.
    Hop {
        ttl: u8,
    },
    /// The destination alone.
    Whole,
    Ladder {
        length: u32,
    },
    /// A large packet in front of a small one.
    Leader {
        ttl: u8,
    },
    /// The small one behind it, right behind in the round as well.
    Tail {
        ttl: u8,
        bytes: u32,
    },
    /// Part of a train.
    Train,
}

/// The method. Ask [`Hops::next`] for a round, tell [`Hops::take`] what became of it, until there
/// is none.
#[derive(Debug)]
pub struct Hops {
    pub(super) plan: HopsPlan,
    rng: SplitMix64,
    pub(super) began_at: Option<Mono>,
    pub(super) now: Mono,
    pub(super) stage: Stage,
    /// Rounds of this stage so far.
    turn: u32,
    asked: Vec<Asked>,
    probes: Vec<Probe>,
    pub(super) logs: Vec<HopLog>,
    /// Hops that answer echoes only, by TTL less one.
    pub(super) by_echo: Vec<bool>,
    /// TTL of the last hop.
    pub(super) end: u8,
    pub(super) reached: bool,
    pub(super) refused: bool,
    /// Echoes to the destination: asked, answered.
    pub(super) whole: (u32, u32),
    /// Of these, since the last that was answered.
    pub(super) whole_silent: u32,
    pub(super) largest: u32,
    pub(super) passed: Option<u32>,
    /// Small packets beside those that try which lengths pass: asked, answered.
    pub(super) controls: (u32, u32),
    pub(super) mtu: Option<u32>,
    pub(super) gap: Span,
    /// What the largest packet takes beyond the smallest, there and back, as far as it is known.
    pub(super) serial: Span,
    /// The gap at the time when the path was first found to be slower.
    pub(super) gap_before: Option<Span>,
    /// How long the queue is that the last round has left.
    pub(super) queue: Span,
    /// What the first probes, right behind each other, have shown of the path's rate.
    pub(super) survey: Option<Survey>,
    /// How much longer than a small packet one of the ladder's took.
    pub(super) ladder_took: Option<(u32, Span)>,
    /// Probes that were counted as asked and have no answer: their hop, kind and departure.
    unanswered: VecDeque<(u8, Kind, Mono)>,
    pub(super) patience: Span,
    /// The longest round trip seen, late ones too.
    pub(super) longest: Option<Span>,
    /// Times that all hops have been asked for delays.
    cycles: u32,
    /// Hops to be asked one at a time.
    silent: Vec<u8>,
    pub(super) routes: Vec<Option<Route>>,
    pub(super) train: Train,
    pub(super) gaps: Vec<(u8, Gaps)>,
    /// The same of trains as they left: one for each of which any hop answered to both ends.
    pub(super) departures: Gaps,
    pub(super) trains: u32,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Whether the present round is cut off by the end of the time, before its answers are due.
    cut_off: bool,
    /// Whether answers of anybody, and of the destination once it has answered, cease.
    pub(super) ceasing: Ceasing,
    pub(super) end_ceasing: Ceasing,
    pub(super) stopped: bool,
}

impl Hops {
    /// A measurement that has not begun.
    pub fn new(plan: HopsPlan) -> Self {
        let hops = usize::from(plan.max_hops.max(1));
        let largest = plan.sizes.iter().copied().max().unwrap_or(plan.largest).max(plan.smallest);
        let plan = HopsPlan { max_hops: plan.max_hops.max(1), largest, ..plan };
        Self {
            rng: SplitMix64::new(plan.seed),
            began_at: None,
            now: Mono(0),
            stage: Stage::Find,
            turn: 0,
            asked: Vec::new(),
            probes: Vec::new(),
            logs: (0..hops).map(|_| HopLog::default()).collect(),
            by_echo: vec![false; hops],
            end: 0,
            reached: false,
            refused: false,
            whole: (0, 0),
            whole_silent: 0,
            largest,
            passed: None,
            controls: (0, 0),
            mtu: None,
            gap: LEAST_GAP,
            serial: Span::ZERO,
            gap_before: None,
            queue: Span::ZERO,
            survey: None,
            ladder_took: None,
            unanswered: VecDeque::new(),
            patience: FIRST_PATIENCE,
            longest: None,
            cycles: 0,
            silent: Vec::new(),
            routes: Vec::new(),
            train: Train::default(),
            gaps: Vec::new(),
            departures: Gaps::default(),
            trains: 0,
            packets: 0,
            bytes: 0,
            cut_off: false,
            ceasing: Ceasing::default(),
            end_ceasing: Ceasing::default(),
            stopped: false,
            plan,
        }
    }

    /// What looking for hops once takes to send.
    pub fn search(&self) -> Span {
        self.find(Kind::Udp).iter().map(|(probe, _)| probe.after).sum()
    }

    /// Where it stands.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Give what there is. Called before the report of the round that was ended for it is taken in:
    /// what has no answer in that one was not waited for.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Whether answers to the last round were waited for less long than to others.
    fn is_cut_off(&self) -> bool {
        self.cut_off || self.stopped
    }

    /// What to send now; `None` when it is over.
    pub fn next(&mut self, now: Mono) -> Option<Round> {
        self.now = now;
        if self.began_at.is_none() {
            (self.ceasing, self.end_ceasing) = (Ceasing::beginning(now), Ceasing::beginning(now));
        }
        let began_at = *self.began_at.get_or_insert(now);
        let deadline = began_at + self.plan.time;
        while self.stage != Stage::Done && !self.stopped {
            // Trains into a silence tell nothing, and less of it than what else is asked.
            let is_silent = self.end_ceasing.is_suspected();
            if self.stage == Stage::Measure && self.measured_enough(began_at) && !is_silent {
                self.enter(Stage::Trains);
                continue;
            }
            let asked = self.build();
            if asked.is_empty() {
                self.go_on();
                continue;
            }
            let Some(round) = self.round(asked, deadline.since(now)) else { break };
            self.turn += 1;
            return Some(round);
        }
        self.stage = Stage::Done;
        None
    }

    /// A round that ends within `left`, or nothing.
    fn round(&mut self, asked: Vec<(Probe, Asked)>, left: Span) -> Option<Round> {
        let sending: Span = asked.iter().map(|(probe, _)| probe.after).sum();
        let room = left - sending - ROUND_MARGIN.min(self.plan.time / 10);
        // The first large packets take longer than what patience has followed so far.
        let patience = match self.stage {
            Stage::Ladder | Stage::Large => self.patience + self.time_of(self.largest) * 2,
            _ => self.patience,
        };
        // Answers that nobody would wait for are not asked for.
        let least = LEAST_ROOM.min(self.plan.time / 8);
        let least = self.longest.map_or(least, |rtt| rtt.max(least));
        if room < patience.min(least) {
            return None;
        }
        self.cut_off = room < self.patience;
        (self.probes, self.asked) = asked.into_iter().unzip();
        self.packets += self.probes.len() as u64;
        self.bytes += self.probes.iter().map(|probe| u64::from(probe.length)).sum::<u64>();
        Some(Round { probes: self.probes.clone(), patience: patience.min(room) })
    }

    fn build(&mut self) -> Vec<(Probe, Asked)> {
        match self.stage {
            Stage::Find if self.looks_again() => {
                if self.turn > 0 {
                    // While nobody has answered, there is nothing else that the time is for.
                    let nobody = self.longest.is_none();
                    let most = if nobody { self.plan.time } else { self.plan.time / 3 };
                    self.patience = self.patience.max(FAR_PATIENCE).min(most.max(self.patience));
                    return self.find_again();
                }
                self.find(Kind::Udp)
            }
            Stage::FindByEcho if self.turn < 1 && !self.reached && self.whole.1 > 0 => self.find(Kind::Echo),
            Stage::Alone => self.ask_alone(),
            Stage::Repeat if self.turn < self.repeats() => self.each_hop(self.plan.smallest, LEAST_GAP * 2),
            Stage::Ladder if self.turn < LADDERS && self.passed != Some(self.plan.largest) => {
                self.climb(self.turn)
            }
            Stage::Large if self.turn < self.repeats() => self.each_hop_large(),
            Stage::Measure => self.sizes_round(),
            Stage::Trains if self.plan.trains && self.trains < TRAINS => self.train_round(),
            _ => Vec::new(),
        }
    }

    /// Whether to look for hops once more: nobody at all has answered, or hops have and the
    /// destination, which may be behind a slow link, has not.
    fn looks_again(&self) -> bool {
        let nobody = self.end == 0 && self.whole.1 == 0;
        let not_reached = !self.reached && self.whole.1 == 0 && !self.refused;
        (self.turn < FIND_TRIES && nobody) || (self.turn == 1 && not_reached)
    }

    /// Rounds that only look how hops answer; on a slow path they must leave time for the others.
    fn repeats(&self) -> u32 {
        let rounds = self.longest.unwrap_or(Span::ZERO) * 8;
        if rounds > self.plan.time / 3 { 1 } else { REPEATS }
    }

    /// Hops that are asked one at a time; each costs the patience if it stays silent.
    fn most_alone(&self) -> usize {
        let fitting = self.plan.time.nanos() / 8 / self.patience.nanos().max(1);
        if self.patience > FIRST_PATIENCE { (fitting.max(1) as usize).min(MOST_ALONE) } else { MOST_ALONE }
    }

    fn enter(&mut self, stage: Stage) {
        (self.stage, self.turn) = (stage, 0);
    }

    fn go_on(&mut self) {
        let next = match self.stage {
            Stage::Find => Stage::FindByEcho,
            Stage::FindByEcho if self.end == 0 => Stage::Done,
            Stage::FindByEcho => {
                self.silent = self.silent_hops();
                Stage::Alone
            }
            Stage::Alone => Stage::Repeat,
            Stage::Repeat => Stage::Ladder,
            Stage::Ladder => {
                self.settle_largest();
                Stage::Large
            }
            Stage::Large => {
                self.settle_gap();
                self.settle_routes();
                Stage::Measure
            }
            Stage::Measure => Stage::Trains,
            Stage::Trains | Stage::Done => Stage::Done,
        };
        self.enter(next);
    }

    /// Hops that have not answered yet. Those right before the destination are listed several
    /// times: where its answer to a smaller TTL was lost, the destination seems to be one hop
    /// further away.
    fn silent_hops(&self) -> Vec<u8> {
        let is_silent = |ttl: &u8| self.hop(*ttl).answered == 0;
        let last_that_answered = (1..self.end).rev().find(|ttl| !is_silent(ttl)).unwrap_or(0);
        let times = |ttl: u8| {
            let may_be_the_end = self.reached && ttl > last_that_answered && ttl < self.end;
            if may_be_the_end { ASKED_IF_IT_IS_THE_END } else { 1 }
        };
        let silent = (1..=self.end).filter(is_silent);
        silent.flat_map(|ttl| std::iter::repeat_n(ttl, times(ttl))).take(self.most_alone()).collect()
    }

    /// An answer that quotes too little to be matched is the only probe's own when there is only
    /// one; a lost one has a second chance. Hosts ration what they say of closed ports, so what may
    /// be the destination is asked by echoes where it answers those.
    fn ask_alone(&mut self) -> Vec<(Probe, Asked)> {
        let Some(ttl) = self.silent.pop() else { return Vec::new() };
        if ttl > self.end || (self.is_destination(ttl) && self.hop(ttl).answered > 0) {
            return self.ask_alone();
        }
        let by_echo = self.reached && ttl + 1 == self.end && self.echo_answers();
        let probe = Probe {
            ttl,
            length: self.plan.smallest,
            kind: if by_echo { Kind::Echo } else { Kind::Udp },
            after: LEAST_GAP,
            awaited: true,
            mute: false,
        };
        vec![(probe, Asked::Hop { ttl })]
    }

    pub(super) fn hop(&self, ttl: u8) -> &HopLog {
        &self.logs[usize::from(ttl) - 1]
    }

    pub(super) fn hop_mut(&mut self, ttl: u8) -> &mut HopLog {
        &mut self.logs[usize::from(ttl) - 1]
    }

    pub(super) fn kind_for(&self, ttl: u8) -> Kind {
        if self.by_echo[usize::from(ttl) - 1] { Kind::Echo } else { Kind::Udp }
    }

    /// The destination answers echoes as a rule.
    pub(super) fn echo_answers(&self) -> bool {
        // Where nobody answers anything any more, the last ones tell nothing of the rule.
        let is_silent = self.ceasing.in_a_row() > 0;
        let asked = self.whole.0 - if is_silent { self.whole_silent.min(self.whole.0) } else { 0 };
        self.whole.1 * 10 >= asked * 7 && self.whole.1 > 0
    }

    pub(super) fn is_destination(&self, ttl: u8) -> bool {
        self.reached && ttl == self.end
    }

    /// A probe that asks a hop alone; the destination is asked by echoes where it answers those.
    pub(super) fn alone(&self, ttl: u8, length: u32, after: Span) -> Option<(Probe, Asked)> {
        if self.is_destination(ttl) && self.whole.1 > 0 {
            return None;
        }
        let probe = Probe { ttl, length, kind: self.kind_for(ttl), after, awaited: true, mute: false };
        Some((probe, Asked::Hop { ttl }))
    }

    /// What looking for choke points is left, at most three tenths of the whole.
    fn trains_take(&self) -> Span {
        let each = self.round_trip() * 2 + self.train_wait() + TRAIN_MARGIN;
        let all = if self.plan.trains { each * i64::from(TRAINS) } else { Span::ZERO };
        all.min(self.plan.time * 3 / 10)
    }

    /// Time is up, or every hop has what was asked for.
    fn measured_enough(&self, began_at: Mono) -> bool {
        if self.now.since(began_at) + self.trains_take() > self.plan.time {
            return true;
        }
        let Some(wanted) = self.plan.per_hop else { return false };
        let measured = self.routes.iter().zip(&self.logs).filter(|(route, _)| route.is_some());
        measured.map(|(_, hop)| hop.tail_samples().len().max(hop.exchanges.len())).min().unwrap_or(usize::MAX)
            >= wanted as usize
    }
}

/// Nobody at all has answered; a loss must not end it.
const FIND_TRIES: u32 = 3;
const REPEATS: u32 = 3;
/// The largest alone, twice; and twice the others.
const LADDERS: u32 = 4;
/// One in a hundred on a path that loses a fifth.
const ASKED_IF_IT_IS_THE_END: usize = 3;
/// Of hops that are asked one at a time.
const MOST_ALONE: usize = 10;
/// What a train takes to pass a slow link.
const TRAIN_MARGIN: Span = Span::from_millis(60);
/// What sending and reporting may add to a round.
const ROUND_MARGIN: Span = Span::from_millis(20);
const LEAST_ROOM: Span = Span::from_millis(50);

#[cfg(test)]
mod tests;
