//! The order of rounds, and what their reports come to.

use std::collections::VecDeque;

use netaware_stats::ceasing::Ceasing;
use netaware_stats::rng::SplitMix64;
use netaware_units::{Mono, Span};

use super::log::HopLog;
use super::plan::HopsPlan;
use super::ration::Outcome;
use super::round::{Fate, Kind, Probe, Round, RoundReport, Told, What};
use super::route::Route;
use super::survey::{FAR_PATIENCE, FIRST_PATIENCE, LEAST_GAP, Survey};
use super::trains::{self, FAR, Gaps, TRAINS, Train};

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

    /// Give what there is.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// What to send now; `None` when it is over.
    pub fn next(&mut self, now: Mono) -> Option<Round> {
        self.now = now;
        let began_at = *self.began_at.get_or_insert(now);
        let deadline = began_at + self.plan.time;
        while self.stage != Stage::Done && !self.stopped {
            if self.stage == Stage::Measure && self.measured_enough(began_at) {
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
        self.whole.1 * 10 >= self.whole.0 * 7 && self.whole.1 > 0
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

    fn each_hop_large(&self) -> Vec<(Probe, Asked)> {
        let mut asked = self.each_hop(self.largest, self.time_of(self.largest));
        // The echo that ends it becomes large as well: how long does the largest take there and
        // back?
        for (probe, what) in &mut asked {
            if *what == Asked::Whole {
                probe.length = self.largest;
            }
        }
        asked
    }

    /// One probe or pair for each hop, again and again for about as long as answers take: then
    /// waiting for the last of them costs no more than asking did.
    fn sizes_round(&mut self) -> Vec<(Probe, Asked)> {
        if self.turn.is_multiple_of(SETTLE_EVERY) {
            // The first few round trips may have met queues, or a host that was busy.
            self.settle_gap();
        }
        let mut asked = Vec::new();
        let mut took = Span::ZERO;
        while asked.len() < MOST_PROBES && (took < self.round_trip() || asked.is_empty()) {
            let cycle = self.cycle();
            if cycle.is_empty() {
                break;
            }
            took += cycle.iter().map(|(probe, _)| probe.after).sum();
            asked.extend(cycle);
        }
        if let Some((first, _)) = asked.first_mut() {
            first.after += std::mem::replace(&mut self.queue, Span::ZERO);
        }
        asked
    }

    /// The longest of the smallest round trips.
    fn round_trip(&self) -> Span {
        let far = (1..=self.end).filter_map(|ttl| Some(self.hop(ttl).rtt(self.plan.smallest)?.0)).max();
        far.unwrap_or(Span::ZERO).min(MOST_SENDING)
    }

    fn cycle(&mut self) -> Vec<(Probe, Asked)> {
        let mut asked = Vec::new();
        let turn = self.cycles;
        self.cycles += 1;
        let small_too = turn.is_multiple_of(SMALL_EVERY);
        for n in 0..self.end {
            let ttl = 1 + (u32::from(n) + turn) % u32::from(self.end);
            let ttl = u8::try_from(ttl).unwrap_or(self.end);
            let (every, answers) = (self.hop(ttl).pace.every, self.hop(ttl).answered > 0);
            let due = turn.is_multiple_of(every);
            match self.routes[usize::from(ttl) - 1] {
                Some(Route::Direct { from }) if due => asked.extend(self.sized(ttl, from)),
                Some(Route::TwoWay) if due => asked.extend(self.sized(ttl, self.plan.smallest)),
                Some(route @ (Route::TailByEcho | Route::TailByHop(_))) => {
                    asked.extend(self.pair(ttl, route));
                }
                _ => {}
            }
            // A rationed hop is asked by its own pace, not by that of the small ones.
            if answers && (if every > 1 { due } else { small_too }) {
                asked.extend(self.alone(ttl, self.plan.smallest, self.gap));
            }
        }
        if turn.is_multiple_of(2) && self.whole.1 > 0 {
            asked.extend(self.whole(self.gap));
        }
        if turn % LARGE_EVERY == 1 && self.whole.1 > 0 {
            let large = |(probe, asked)| (Probe { length: self.largest, ..probe }, asked);
            asked.extend(self.whole(self.gap).map(large));
        }
        asked
    }

    fn sized(&mut self, ttl: u8, from: u32) -> Option<(Probe, Asked)> {
        let length = self.next_size(ttl, from);
        if self.is_destination(ttl) && self.whole.1 > 0 {
            let probe =
                Probe { ttl: FAR, length, kind: Kind::Echo, after: self.gap, awaited: true, mute: false };
            return Some((probe, Asked::Hop { ttl }));
        }
        self.alone(ttl, length, self.gap)
    }

    fn pair(&mut self, ttl: u8, route: Route) -> [(Probe, Asked); 2] {
        let bytes = self.next_size(ttl, self.leader_from());
        // The host's own answer to it would be in the way of that to the small one.
        let mute = self.is_destination(ttl);
        let leader = Probe { ttl, length: bytes, kind: Kind::Udp, after: self.gap, awaited: false, mute };
        let (tail_ttl, kind) = match route {
            Route::TailByHop(hop) => (hop, Kind::Udp),
            _ => (FAR, Kind::Echo),
        };
        let tail = Probe {
            ttl: tail_ttl,
            length: self.plan.tail,
            kind,
            after: Span::ZERO,
            awaited: true,
            mute: false,
        };
        [(leader, Asked::Leader { ttl }), (tail, Asked::Tail { ttl, bytes })]
    }

    /// The small packet keeps up only while a link takes longer for the large one than the link
    /// before for the small one.
    pub(super) fn leader_from(&self) -> u32 {
        (self.plan.tail * LEADER_TO_TAIL).max(self.largest * 2 / 5).min(self.largest * 3 / 5)
    }

    /// In random order, each as often as the others.
    fn next_size(&mut self, ttl: u8, from: u32) -> u32 {
        let place = usize::from(ttl) - 1;
        if self.logs[place].order.is_empty() {
            let mut order = self.sizes(from);
            for n in (1..order.len()).rev() {
                order.swap(n, self.rng.below(n + 1));
            }
            self.logs[place].order = order;
        }
        self.logs[place].order.pop().unwrap_or(self.largest)
    }

    fn sizes(&self, from: u32) -> Vec<u32> {
        if !self.plan.sizes.is_empty() {
            let given = self.plan.sizes.iter().copied().filter(|size| *size >= from && *size <= self.largest);
            let given: Vec<u32> = given.collect();
            if given.len() >= super::slope::LEAST_SIZES {
                return given;
            }
        }
        let room = self.largest.saturating_sub(from);
        (0..SIZES).map(|n| from + room * n / (SIZES - 1)).collect()
    }

    fn train_round(&mut self) -> Vec<(Probe, Asked)> {
        let last = if self.reached { self.end - 1 } else { self.end };
        let hops: Vec<u8> = (1..=last).filter(|ttl| self.hop(*ttl).answered > 0).collect();
        let destination = (self.reached && self.echo_answers()).then_some(self.end);
        if hops.is_empty() && destination.is_none() {
            return Vec::new();
        }
        let Some(load) = self.train_load() else { return Vec::new() };
        self.train = trains::build(&hops, destination, self.plan.smallest, self.train_wait(), load);
        self.train.probes.iter().map(|probe| (*probe, Asked::Train)).collect()
    }

    /// What the path takes the largest probe for at most, unless that is too little to see: an
    /// answer may have taken a part of it, or none on a path that is slower one way.
    fn train_each(&self) -> Span {
        if self.serial > LEAST_GAP { self.serial } else { Span::ZERO }
    }

    fn train_load(&self) -> Option<usize> {
        trains::load(self.largest, self.train_each())
    }

    /// In front of each train as long as its load takes: of a second the trains fill a part.
    fn train_wait(&self) -> Span {
        let load = self.train_load().map_or(0, trains::load_bytes);
        let takes = self.train_each() * load / i64::from(self.largest.max(1));
        takes.max(self.gap * 4)
    }

    /// Takes in what became of the last round.
    pub fn take(&mut self, report: &RoundReport) {
        let asked = std::mem::take(&mut self.asked);
        let (probes, last) = (std::mem::take(&mut self.probes), report.probes.iter().map(last_time).max());
        self.now = last.map_or(self.now, |at| at.max(self.now));
        if let Some(rtt) = report.longest_late() {
            self.follow(rtt);
        }
        if matches!(self.stage, Stage::Ladder | Stage::Large)
            && let Some(rtt) = report.probes.iter().filter_map(Told::rtt).max()
        {
            self.follow(rtt);
        }
        self.take_late(report);
        self.follow_answers(&asked, report);
        match self.stage {
            Stage::Find | Stage::FindByEcho => self.take_find(&asked, report),
            Stage::Ladder => self.take_ladder(&asked, report),
            Stage::Trains => self.take_train(report),
            Stage::Measure => self.note_slower(&asked, &probes, report),
            _ => {}
        }
        let mut leader = None;
        let mut outcomes: Vec<(u8, bool)> = Vec::new();
        for ((asked, probe), told) in asked.iter().zip(&probes).zip(&report.probes) {
            self.note_too_big_late(told);
            match *asked {
                Asked::Hop { ttl } => {
                    self.note_nearer_end(ttl, probe.kind, told);
                    if let Some(answered) = self.note_exchange(ttl, probe.kind, probe.length, told) {
                        outcomes.push((ttl, answered));
                    }
                }
                Asked::Whole => self.take_whole(probe.length, told),
                Asked::Leader { ttl } => {
                    leader = Some(*told);
                    self.hop_mut(ttl).note_leader(told.reply().is_some());
                    if told.reply().is_some() {
                        self.note_exchange(ttl, probe.kind, probe.length, told);
                    }
                }
                Asked::Tail { ttl, bytes } => {
                    self.take_tail(ttl, bytes, leader.take(), told);
                }
                Asked::Find { .. } | Asked::Ladder { .. } | Asked::Train => {}
            }
        }
        self.note_outcomes(&outcomes, &asked, &probes, report);
    }

    /// Takes note of who answers and when.
    fn follow_answers(&mut self, asked: &[Asked], report: &RoundReport) {
        if let Some(last) = report.probes.last().filter(|_| !report.late.is_empty()) {
            self.ceasing.came(last.sent_at);
            self.end_ceasing.came(last.sent_at);
        }
        let end = self.end;
        for (asked, told) in asked.iter().zip(&report.probes) {
            // What hosts say of closed ports is rationed, and its absence tells nothing.
            let of_end = match *asked {
                Asked::Hop { ttl } => self.reached && ttl == end && self.whole.1 > 0,
                Asked::Whole => true,
                _ => false,
            };
            let follows = [(true, &mut self.ceasing), (of_end, &mut self.end_ceasing)];
            for (_, ceasing) in follows.into_iter().filter(|(is, _)| *is) {
                match told.fate {
                    Fate::NotSent => ceasing.not_sent(told.sent_at),
                    Fate::TooBig(_) => {}
                    Fate::Silent => ceasing.unanswered(told.sent_at),
                    Fate::Answered(reply) => ceasing.came(reply.at),
                }
            }
        }
    }

    /// An answer that was only late is no loss, and while the hops are looked for it is as good as
    /// one in time.
    fn take_late(&mut self, report: &RoundReport) {
        let is_search = matches!(self.stage, Stage::Find | Stage::FindByEcho | Stage::Alone);
        for late in &report.late {
            let is_it =
                |(_, kind, sent_at): &(u8, Kind, Mono)| (*kind, *sent_at) == (late.kind, late.sent_at);
            let place = self.unanswered.iter().position(is_it);
            let counted = place.and_then(|place| self.unanswered.remove(place));
            if is_search {
                self.take_late_search(late, counted.is_some());
            } else if let Some((ttl, _, sent_at)) = counted {
                self.hop_mut(ttl).note_late(sent_at);
                if late.ttl == FAR && late.kind == Kind::Echo {
                    self.whole.1 += u32::from(self.whole.1 < self.whole.0);
                }
            }
        }
    }

    /// The destination answers to a TTL that seemed to be too small for it: the path is shorter.
    fn note_nearer_end(&mut self, ttl: u8, kind: Kind, told: &Told) {
        let is_there = |what| matches!(what, What::PortUnreachable | What::EchoReply);
        if ttl < self.end && told.reply().is_some_and(|reply| is_there(reply.what)) {
            (self.end, self.reached) = (ttl, true);
            self.by_echo[usize::from(ttl) - 1] = kind == Kind::Echo;
        }
    }

    fn note_too_big_late(&mut self, told: &Told) {
        if self.stage == Stage::Measure {
            let known = self.mtu;
            self.note_too_big(told);
            if let Some(mtu) = self.mtu.filter(|_| self.mtu != known) {
                self.largest = self.largest.min(mtu);
                for hop in &mut self.logs {
                    hop.order.clear();
                }
            }
        }
    }

    /// Whether it was answered; `None` where it never left this host or was too large.
    pub(super) fn note_exchange(&mut self, ttl: u8, kind: Kind, length: u32, told: &Told) -> Option<bool> {
        let cut_off = self.cut_off;
        if told.fate == Fate::Silent && !cut_off {
            self.unanswered.push_back((ttl, kind, told.sent_at));
            if self.unanswered.len() > MOST_UNANSWERED {
                self.unanswered.pop_front();
            }
        }
        let hop = self.hop_mut(ttl);
        match told.fate {
            Fate::NotSent | Fate::TooBig(_) => None,
            // Nobody waited for it as long as for others: its fate is unknown.
            Fate::Silent if cut_off => None,
            Fate::Silent => {
                hop.note_asked();
                Some(false)
            }
            Fate::Answered(reply) if matches!(reply.what, What::TooBig(_)) => None,
            Fate::Answered(reply) => {
                hop.note_asked();
                hop.note_answer(kind, length, told.sent_at, reply);
                Some(true)
            }
        }
    }

    fn take_whole(&mut self, length: u32, told: &Told) {
        let answered = told.reply().is_some_and(|reply| reply.what == What::EchoReply);
        if matches!(told.fate, Fate::NotSent | Fate::TooBig(_)) {
            return;
        }
        self.whole.0 += 1;
        self.whole.1 += u32::from(answered);
        if self.reached && self.end > 0 {
            self.note_exchange(self.end, Kind::Echo, length, told);
        }
    }

    fn take_tail(&mut self, ttl: u8, bytes: u32, leader: Option<Told>, told: &Told) {
        let Some(leader) = leader.filter(|leader| !matches!(leader.fate, Fate::NotSent | Fate::TooBig(_)))
        else {
            return;
        };
        if told.reply().is_some_and(|reply| matches!(reply.what, What::TooBig(_))) {
            return;
        }
        if let Some(reply) = told.reply() {
            // From the departure of the large one: what the host puts between the two is no part of
            // the path.
            let delay = reply.at - leader.sent_at;
            let behind = leader.reply().is_some_and(|reply| reply.what == What::PortUnreachable);
            self.hop_mut(ttl).note_tail(bytes, delay, behind);
        }
    }

    /// A hop whose answer stays out while something further off answers in the same round rations
    /// its answers.
    fn note_outcomes(
        &mut self,
        outcomes: &[(u8, bool)],
        asked: &[Asked],
        probes: &[Probe],
        report: &RoundReport,
    ) {
        let furthest = asked.iter().zip(&report.probes).filter(|(_, told)| told.reply().is_some());
        let furthest = furthest.filter_map(|(asked, _)| match asked {
            Asked::Hop { ttl } => Some(*ttl),
            Asked::Whole | Asked::Tail { .. } => Some(FAR),
            _ => None,
        });
        let furthest = furthest.max().unwrap_or(0);
        let end = self.end;
        // Nothing is beyond the last one: there its predecessor vouches for the path. For the only
        // hop nobody does.
        let passes = |ttl: u8| furthest > ttl || (ttl == end && end > 1 && furthest + 1 >= end);
        self.note_rations(asked, probes, report, passes);
        let mut limited = false;
        for (ttl, answered) in outcomes {
            let hop = self.hop_mut(*ttl);
            let before = hop.pace.limited;
            hop.note_outcome(*answered, passes(*ttl));
            if hop.pace.limited && !before {
                hop.restart_pace_count();
                limited = true;
            }
        }
        if limited && self.stage == Stage::Measure {
            self.settle_routes();
        }
    }

    /// Takes note of all that hops were asked which are known to ration their answers, trains too:
    /// to whom a probe was sent for another reason, it was a question like any other.
    fn note_rations(
        &mut self,
        asked: &[Asked],
        probes: &[Probe],
        report: &RoundReport,
        passes: impl Fn(u8) -> bool,
    ) {
        for ((asked, probe), told) in asked.iter().zip(probes).zip(&report.probes) {
            let ttl = match *asked {
                Asked::Find { ttl } | Asked::Hop { ttl } | Asked::Leader { ttl } => ttl,
                Asked::Whole if self.reached => self.end,
                Asked::Tail { .. } | Asked::Train => probe.ttl,
                Asked::Whole | Asked::Ladder { .. } => continue,
            };
            if probe.mute || ttl == 0 || ttl > self.end || probe.kind != self.kind_of(ttl) {
                continue;
            }
            let outcome = match told.fate {
                Fate::NotSent | Fate::TooBig(_) => continue,
                Fate::Answered(reply) if matches!(reply.what, What::TooBig(_)) => continue,
                Fate::Answered(_) => Outcome::Answered,
                Fate::Silent if probe.awaited && passes(ttl) && !self.cut_off => Outcome::Unanswered,
                Fate::Silent => Outcome::Unknown,
            };
            let hop = self.hop_mut(ttl);
            if hop.pace.limited {
                hop.ration.note(told.sent_at, outcome);
            }
        }
    }

    /// What a hop is asked by, as long as nothing else is known of it.
    fn kind_of(&self, ttl: u8) -> Kind {
        if self.is_destination(ttl) && self.whole.1 > 0 { Kind::Echo } else { self.kind_for(ttl) }
    }

    fn take_train(&mut self, report: &RoundReport) {
        self.trains += 1;
        let mut slowest: f64 = 0.0;
        for (ttl, first, last) in self.train.ends.clone() {
            let ends = [first, last].map(|place| report.probes.get(place).and_then(Told::reply));
            let [Some(a), Some(b)] = ends else { continue };
            let bytes = self.train.bytes(first, last);
            let gap = (b.at - a.at).nanos() as f64 / bytes as f64;
            slowest = slowest.max(gap);
            match self.gaps.iter_mut().find(|(known, _)| *known == ttl) {
                Some((_, gaps)) => gaps.0.push(gap),
                None => self.gaps.push((ttl, Gaps(vec![gap]))),
            }
        }
        self.note_slow_train(slowest);
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

fn last_time(told: &Told) -> Mono {
    told.reply().map_or(told.sent_at, |reply| reply.at)
}

/// Nobody at all has answered; a loss must not end it.
const FIND_TRIES: u32 = 3;
const REPEATS: u32 = 3;
/// The largest alone, twice; and twice the others.
const LADDERS: u32 = 4;
/// Probes whose late answer is not taken for a loss.
const MOST_UNANSWERED: usize = 256;
/// One in a hundred on a path that loses a fifth.
const ASKED_IF_IT_IS_THE_END: usize = 3;
/// Of hops that are asked one at a time.
const MOST_ALONE: usize = 10;
/// Sizes between the smallest and the largest.
const SIZES: u32 = 8;
/// Turns between small packets to each hop.
const SMALL_EVERY: u32 = 4;
/// Turns between large echoes, which tell how far apart probes have to be.
const LARGE_EVERY: u32 = 8;
/// Rounds between looks at that.
const SETTLE_EVERY: u32 = 8;
/// What a train takes to pass a slow link.
const TRAIN_MARGIN: Span = Span::from_millis(60);
/// The large packet is at least so many times as long as the small one, so that a link ten times as
/// fast as the one before does not part them.
const LEADER_TO_TAIL: u32 = 12;
/// What sending and reporting may add to a round.
const ROUND_MARGIN: Span = Span::from_millis(20);
const LEAST_ROOM: Span = Span::from_millis(50);
/// In one round of sizes; the count of a round's probes stays far below that of an echo's number.
const MOST_PROBES: usize = 200;
const MOST_SENDING: Span = Span::from_millis(500);

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::super::finding::{HopFlag, PathFlag};
    use super::super::made_up::{SILENT, hops, told};
    use super::super::round::{LateAnswer, Reply};
    use super::*;

    fn on_a_link(rate: u64, passes: u32, millis: i64) -> (Vec<(Mono, u32)>, Hops) {
        on_a_changing_link(|_| rate, passes, millis)
    }

    /// Rounds on a path where packets of up to `passes` bytes are answered after 40 ms and what
    /// they take on a link of `rate` there, which all queue for.
    fn on_a_changing_link(rate: impl Fn(Mono) -> u64, passes: u32, millis: i64) -> (Vec<(Mono, u32)>, Hops) {
        let mut plan = hops(1).plan;
        (plan.max_hops, plan.time, plan.trains) = (30, Span::from_millis(millis), true);
        let mut given_up: Vec<LateAnswer> = Vec::new();
        let mut method = Hops::new(plan);
        let (mut now, mut sent) = (Mono(0), Vec::new());
        let mut free_at = Mono(0);
        while let Some(round) = method.next(now) {
            let mut told = Vec::new();
            for probe in &round.probes {
                now += probe.after;
                sent.push((now, probe.length));
                let begins = free_at.max(now);
                let takes = Span((u64::from(probe.length) * 8_000_000_000 / rate(begins)).cast_signed());
                free_at = begins + takes;
                let at = free_at + Span::from_millis(40);
                let what = if probe.kind == Kind::Echo { What::EchoReply } else { What::PortUnreachable };
                let from = IpAddr::from([192, 0, 2, 9]);
                let (length, ident, stamps) = (Some(probe.length.min(72)), None, None);
                let reply = Reply { at, from, what, length, ident, stamps };
                let fate = if probe.length > passes { Fate::Silent } else { Fate::Answered(reply) };
                told.push(Told { sent_at: now, fate });
            }
            let answered = told.iter().filter_map(|told| Some(told.reply()?.at)).max();
            let is_whole = told.iter().all(|told| told.reply().is_some());
            let until = now + round.patience;
            now = if is_whole { answered.unwrap_or(until).min(until) } else { until };
            let is_in_time = |late: &LateAnswer| late.sent_at + late.rtt <= now;
            let late = given_up.extract_if(.., |late| is_in_time(late)).collect();
            for (told, probe) in told.iter_mut().zip(&round.probes) {
                if let Some(reply) = told.reply().filter(|reply| reply.at > until) {
                    let (rtt, from, what) = (reply.at - told.sent_at, reply.from, reply.what);
                    let (kind, ttl, sent_at) = (probe.kind, probe.ttl, told.sent_at);
                    given_up.push(LateAnswer { kind, ttl, sent_at, rtt, from, what });
                    told.fate = Fate::Silent;
                }
            }
            method.take(&RoundReport { probes: told, late });
        }
        (sent, method)
    }

    fn busiest_second(sent: &[(Mono, u32)]) -> u64 {
        let within =
            |from: Mono| sent.iter().filter(move |(at, _)| *at >= from && *at < from + Span::from_secs(1));
        let sums =
            sent.iter().map(|(from, _)| within(*from).map(|(_, length)| u64::from(*length)).sum::<u64>());
        sums.max().unwrap_or(0) * 8
    }

    #[test]
    fn a_slow_path_is_not_filled_by_looking_at_it() {
        for (rate, passes) in [
            (20_000, 1500),
            (64_000, 1500),
            (300_000, 1500),
            (64_000, 1280),
            (300_000, 1000),
            (2_000_000, 1500),
        ] {
            let (sent, method) = on_a_link(rate, passes, 20_000);
            let busiest = busiest_second(&sent);
            // The first probes, 2 kB, and the first large one are sent before anything is known.
            let allowed = (rate * 125 / 100).max(28_000);
            assert!(busiest <= allowed, "{busiest} bit in a second on {rate}, {passes} B pass");
            let hop = method.hop(1);
            assert!(hop.answered * 100 >= hop.asked * 99, "{} of {} on {rate}", hop.answered, hop.asked);
        }
    }

    #[test]
    fn a_path_that_becomes_ten_times_slower_is_followed_within_two_seconds() {
        for rate in [2_000_000, 10_000_000] {
            let falls_at = Mono(0) + Span::from_secs(5);
            let (sent, method) =
                on_a_changing_link(|at| if at < falls_at { rate } else { rate / 10 }, 1500, 15_000);
            let before: Vec<_> = sent.iter().copied().filter(|(at, _)| *at < falls_at).collect();
            assert!(busiest_second(&before) > rate / 8, "{rate}: it was asked slowly all the time");
            let later = sent.iter().copied().filter(|(at, _)| *at >= falls_at + Span::from_secs(2));
            let busiest = busiest_second(&later.collect::<Vec<_>>());
            assert!(busiest <= rate / 8, "{busiest} bit in a second on {}", rate / 10);
            assert!(method.finding().flags.contains(&PathFlag::PathChanged), "{rate}");
        }
    }

    #[test]
    fn a_destination_that_answers_after_the_search_was_given_up_is_at_the_end_of_the_hops() {
        // A router next door, and 1.2 s to the host behind it; 3 s are half of 6.
        let mut plan = hops(1).plan;
        (plan.max_hops, plan.time) = (30, Span::from_secs(3));
        let mut method = Hops::new(plan);
        let first = method.next(Mono(0)).unwrap();
        let mut told = vec![SILENT; first.probes.len()];
        told[0] = super::super::made_up::told(What::TimeExceeded, 1, 1);
        method.take(&RoundReport::of(told));
        let again = method.next(Mono(0) + Span::from_millis(1_150)).unwrap();
        assert!(again.patience >= Span::from_secs(1), "{}", again.patience);
        // What is rationed is not waited for.
        let awaited: Vec<Kind> = again.probes.iter().filter(|it| it.awaited).map(|it| it.kind).collect();
        assert_eq!(awaited, [Kind::Echo]);
        let late = |ttl: u8, kind, what| LateAnswer {
            kind,
            ttl,
            sent_at: Mono(0),
            rtt: Span::from_millis(1_200),
            from: IpAddr::from([192, 0, 2, 9]),
            what,
        };
        let late = vec![
            late(3, Kind::Udp, What::PortUnreachable),
            late(2, Kind::Udp, What::PortUnreachable),
            late(FAR, Kind::Echo, What::EchoReply),
        ];
        method.take(&RoundReport { probes: vec![SILENT; again.probes.len()], late });
        assert_eq!((method.reached, method.end, method.whole), (true, 2, (2, 1)));
        let hop = &method.finding().hops[1];
        assert_eq!(hop.rtt_min, Some(Span::from_millis(1_200)));
    }

    #[test]
    fn an_answer_that_came_late_is_no_loss() {
        let mut hops = hops(2);
        hops.stage = Stage::Measure;
        hops.note_exchange(1, Kind::Udp, 64, &told(What::TimeExceeded, 1, 1));
        let given_up = Told { sent_at: Mono(5), ..SILENT };
        hops.note_exchange(1, Kind::Udp, 64, &given_up);
        assert_eq!((hops.hop(1).asked, hops.hop(1).answered), (2, 1));
        // Of a part of a train, which was not counted as asked; and of the one that was.
        for (sent_at, answered) in [(Mono(6), 1), (Mono(5), 2), (Mono(5), 2)] {
            let (from, what) = (IpAddr::from([192, 0, 2, 1]), What::TimeExceeded);
            let rtt = Span::from_secs(3);
            let late = vec![LateAnswer { kind: Kind::Udp, ttl: 1, sent_at, rtt, from, what }];
            hops.take(&RoundReport { probes: Vec::new(), late });
            assert_eq!((hops.hop(1).asked, hops.hop(1).answered), (2, answered));
        }
        assert_eq!(hops.patience, Span::from_millis(6100));
    }

    /// Looks for the hops of a path of one, all of whose answers take so long, and says what is
    /// asked next.
    fn search(time: Span, answer_after: i64) -> (Hops, Option<Round>) {
        let mut hops = hops(1);
        (hops.plan.time, hops.end) = (time, 0);
        let first = hops.next(Mono(0)).unwrap();
        hops.take(&RoundReport::of(vec![SILENT; first.probes.len()]));
        let next = hops.next(Mono(0) + Span::from_millis(1010));
        if let Some(round) = next.as_ref().filter(|it| it.patience >= Span::from_millis(answer_after)) {
            let answered = vec![told(What::PortUnreachable, 9, answer_after); round.probes.len()];
            hops.take(&RoundReport::of(answered));
        }
        (hops, next)
    }

    #[test]
    fn a_host_that_takes_more_than_a_second_is_reached_in_the_half_of_six() {
        let (hops, round) = search(Span::from_secs(3), 1200);
        assert!(hops.reached, "{:?}", round.map(|round| round.patience));
    }

    /// One hop: rounds of echoes to it, each answered as `answers` says of its number.
    fn asked(rounds: u64, answers: impl Fn(u64) -> bool) -> Hops {
        let mut hops = hops(1);
        (hops.reached, hops.stage, hops.whole) = (true, Stage::Measure, (1, 1));
        hops.note_exchange(1, Kind::Echo, 64, &told(What::EchoReply, 9, 1));
        for n in 0..rounds {
            let (probe, asked) = hops.whole(LEAST_GAP).unwrap();
            (hops.probes, hops.asked) = (vec![probe], vec![asked]);
            let sent_at = Mono(0) + Span::from_millis(100) * n.cast_signed();
            let fate = match told(What::EchoReply, 9, 1).fate {
                Fate::Answered(reply) if answers(n) => {
                    Fate::Answered(Reply { at: sent_at + Span(9), ..reply })
                }
                _ => Fate::Silent,
            };
            hops.take(&RoundReport::of(vec![Told { sent_at, fate }]));
        }
        hops
    }

    #[test]
    fn a_host_that_falls_silent_for_good_rations_nothing_and_loses_nothing() {
        let found = asked(60, |n| n < 20).finding();
        let ceased = found.ceased.expect("it fell silent");
        assert_eq!((ceased.unanswered, ceased.silent), (40, Span::from_millis(3900)));
        assert_eq!((found.hops[0].asked, found.hops[0].answered), (21, 21));
        assert!(found.hops[0].flags.iter().all(|it| !matches!(it, HopFlag::RateLimited(_))), "{found:?}");
        // An outage that ends.
        let found = asked(60, |n| !(20..40).contains(&n)).finding();
        assert_eq!((found.ceased, found.hops[0].asked - found.hops[0].answered), (None, 20));
        assert!(found.hops[0].flags.iter().all(|it| !matches!(it, HopFlag::RateLimited(_))), "{found:?}");
    }

    #[test]
    fn an_answer_that_came_late_or_was_not_waited_for_is_no_loss() {
        let mut hops = asked(4, |n| n > 0);
        assert_eq!((hops.hop(1).asked, hops.hop(1).answered), (5, 4));
        let sent_at = Mono(0);
        let (from, what) = (IpAddr::from([192, 0, 2, 9]), What::EchoReply);
        let late =
            LateAnswer { kind: Kind::Echo, ttl: FAR, sent_at, rtt: Span::from_millis(1400), from, what };
        hops.take(&RoundReport { probes: Vec::new(), late: vec![late] });
        assert_eq!((hops.hop(1).asked, hops.hop(1).answered), (5, 5));
        hops.cut_off = true;
        assert_eq!(hops.note_exchange(1, Kind::Echo, 64, &SILENT), None);
        assert_eq!(hops.hop(1).asked, 5);
    }

    #[test]
    fn a_destination_whose_first_answer_was_lost_is_not_one_hop_further_away() {
        let mut hops = hops(3);
        hops.reached = true;
        hops.whole = (4, 4);
        hops.note_exchange(1, Kind::Udp, 64, &told(What::TimeExceeded, 1, 1));
        hops.note_exchange(3, Kind::Udp, 64, &told(What::PortUnreachable, 9, 20));
        hops.stage = Stage::Alone;
        hops.silent = hops.silent_hops();
        assert_eq!(hops.silent, [2; ASKED_IF_IT_IS_THE_END]);
        for (fate, end) in [(SILENT, 3), (told(What::EchoReply, 9, 20), 2)] {
            let (probes, asked): (Vec<Probe>, Vec<Asked>) = hops.ask_alone().into_iter().unzip();
            assert_eq!((probes[0].ttl, probes[0].kind), (2, Kind::Echo));
            (hops.asked, hops.probes) = (asked, probes);
            hops.take(&RoundReport::of(vec![fate]));
            assert_eq!((hops.end, hops.reached, hops.is_destination(2)), (end, true, end == 2));
        }
        assert_eq!(hops.ask_alone(), [], "it is known now");
    }
}
