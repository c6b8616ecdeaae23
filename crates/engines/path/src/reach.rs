//! What a host that does not cooperate tells by answering.
//!
//! **Measures** round trips and losses of echoes and of UDP to a closed port, the way in which an
//! echo was lost where the host counts its answers, and the narrowest link there and back from how
//! far apart two echoes sent back to back are answered, where trains of echoes do not say
//! otherwise. **Assumes** that the host answers each question at once; for the way of a loss, that
//! the identification in its IPv4 headers goes up by one per answer within a burst, which complete
//! bursts have to show; for the capacity, that some pair met empty queues (the pairs of least delay
//! are believed), and that no token bucket has more credit than a train is long. Which way queues
//! is [`HostClock`]'s to tell. **Biased**: a host that rations answers looks lossy, so UDP has no
//! loss where it is rationed; the capacity is that of the narrower direction, reads low under load
//! and never higher than this host can send. **Published**: Savage, "Sting", USITS 1999 and Mahajan
//! et al., "User-level Internet path diagnosis" (Tulip), SOSP 2003 (loss by direction from the
//! identification); Kapoor et al., "CapProbe", SIGCOMM 2004 (the pair of least delay).
//!
//! [`Reach`] asks for [`Round`]s as [`crate::hops`] does. A connection over TCP is the system's to
//! open: [`TcpTries`] says when, between the rounds.

mod clock;
mod pairs;
mod tcp;
mod trains;

use std::net::IpAddr;

use netaware_stats::ceasing::{Ceased, Ceasing};
use netaware_stats::interval::Interval;
use netaware_stats::patience::Patience;
use netaware_units::{Mono, Span};

use crate::estimate::Bound;
use crate::hops::{Fate, Kind, Probe, Reply, Round, RoundReport, Told, What};

use pairs::{Narrowest, Pair, are_batched};
use trains::{EchoTrain, LEAST_ANSWERS, Train};

pub use clock::{HostClock, StampSample, WayQueue, WayQueues};
pub use tcp::{TcpAnswer, TcpTries};
pub use trains::Lasting;

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub struct ReachPlan {
    /// The host.
    pub host: IpAddr,
    /// IP length of lone and burst questions, bytes.
    pub smallest: u32,
    /// IP length of paired ones, bytes.
    pub largest: u32,
    /// What the whole may take.
    pub time: Span,
    /// Ends sooner, after so many lone echoes.
    pub count: Option<u32>,
    /// Between the rounds.
    pub gap: Span,
    /// Whether echoes can be sent.
    pub echo: bool,
    /// Whether ICMP timestamps can be sent: over IPv4, where echoes can.
    pub timestamps: bool,
    /// How long answers are waited for at most; see
    /// [`netaware_stats::patience::MOST`].
    pub patience: Span,
    /// Standard error of one stamp of this host's: both answers of a pair have one.
    pub stamp_error: Span,
}

/// One protocol's answers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answers {
    /// Questions that left, but for those behind the last answer of a host that fell silent: of
    /// these nobody knows.
    pub asked: u32,
    /// Answered ones.
    pub answered: u32,
    /// Of the others: an answer came after they had been given up.
    pub late: u32,
    /// Questions that never left this host.
    pub not_sent: u32,
    /// Round trips of lone questions and of the first of each burst, ns, in order.
    pub rtts: Vec<Span>,
    /// What was said, each once.
    pub said: Vec<What>,
    /// Who else answered.
    pub others: Vec<IpAddr>,
    /// The longest that an answer was waited for.
    pub waited: Span,
    /// IP bytes sent.
    pub bytes: u64,
}

/// Which way echoes of bursts were lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByDirection {
    /// There.
    pub forward: u32,
    /// Back.
    pub reverse: u32,
    /// Questions of bursts that could be judged.
    pub of: u32,
}

/// Echoes of which no large ones were answered though small ones were: larger packets vanish.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TooLarge {
    /// IP length of the smallest of them, bytes.
    pub length: u32,
    /// How many were sent, of this length and longer ones.
    pub asked: u32,
    /// The largest length that was answered as a rule, bytes.
    pub answered: Option<u32>,
}

/// What was found out.
#[derive(Debug, Clone, PartialEq)]
pub struct ReachFinding {
    /// Echoes, but for those that were [too large](Self::too_large).
    pub echo: Answers,
    /// Absent where echoes of all lengths are answered.
    pub too_large: Option<TooLarge>,
    /// The longest round trip of an answer, late ones too.
    pub longest: Option<Span>,
    /// IP length of paired echoes, bytes.
    pub paired: u32,
    /// UDP to a closed port.
    pub udp: Answers,
    /// ICMP timestamps.
    pub timestamps: Answers,
    /// What the stamps say; absent where none came.
    pub clock: Option<HostClock>,
    /// Which way echoes were lost; absent where the host does not count so that it can be told.
    pub by_direction: Option<ByDirection>,
    /// The narrowest link, bit/s: of the pairs, as far as trains bear it out.
    pub capacity: Option<(Interval, Bound)>,
    /// What trains make of the pairs' figure; absent where pairs give none.
    pub lasting: Option<Lasting>,
    /// That is a bound because of how far apart this host sends, or of what its stamps err.
    pub host_limited: bool,
    /// Pairs of which both were answered.
    pub pairs: u32,
    /// Whether most pairs' answers were handed over together, so that they tell no capacity.
    pub batched: bool,
    /// Whether UDP is answered so many times a second and no more.
    pub udp_rationed: bool,
    /// The host answered, and then no more until the end.
    pub ceased: Option<Ceased>,
}

/// Kinds of rounds, in turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// A lone echo.
    Echo,
    /// One to a closed port.
    Udp,
    /// Two large echoes.
    Pair,
    /// Three small echoes.
    Burst,
    /// A lone timestamp.
    Timestamp,
    /// Many large echoes.
    Train(Train),
}

/// The method.
#[derive(Debug)]
pub struct Reach {
    plan: ReachPlan,
    began_at: Option<Mono>,
    turn: u32,
    asked: Asked,
    lengths: Vec<u32>,
    /// How long the present round is waited for.
    waiting: Span,
    /// IP length of paired echoes, bytes: less than planned where those vanish.
    paired: u32,
    large: Large,
    too_large: Option<TooLarge>,
    /// When the next pair may be sent.
    pair_from: Option<Mono>,
    /// How long the last pair took to come back, where that was long.
    pair_took: Span,
    /// How long the last train took to come back.
    train_took: Span,
    echo: Answers,
    udp: Answers,
    timestamps: Answers,
    stamps: Vec<StampSample>,
    /// When a timestamp was last asked for.
    timestamp_at: Option<Mono>,
    /// Lone echoes asked.
    lone: u32,
    pairs: Vec<Pair>,
    trains: Vec<EchoTrain>,
    /// Identifications of three answers in a row, absent for those that stayed out.
    bursts: Vec<[Option<u16>; 3]>,
    /// When UDP was last asked.
    udp_at: Option<Mono>,
    /// Rounds so far to which nobody answered anything.
    silent: u32,
    /// The longest round trip of an answer that came late.
    longest_late: Option<Span>,
    /// The longest round trip of a paired question.
    longest_large: Option<Span>,
    /// Whether answers cease: of echoes, timestamps and connections, which nobody rations so.
    ceasing: Ceasing,
    /// Questions without an answer since the last one that came: echoes, timestamps, UDP.
    silent_at_end: [u32; 3],
    stopped: bool,
}

/// What became of paired echoes of the present length.
#[derive(Debug, Default)]
struct Large {
    asked: u32,
    answered: u32,
    /// When those left that have no answer.
    silent: Vec<Mono>,
    /// The shortest round trip of the first of a pair.
    rtt: Option<Span>,
}

impl Large {
    /// Somebody answered what had left then.
    fn came_late(&mut self, sent_at: Mono) {
        if let Some(place) = self.silent.iter().position(|at| *at == sent_at) {
            self.silent.swap_remove(place);
            self.answered += 1;
        }
    }
}

impl Reach {
    /// A measurement that has not begun.
    pub fn new(plan: ReachPlan) -> Self {
        Self {
            paired: plan.largest,
            plan,
            began_at: None,
            turn: 0,
            asked: Asked::Echo,
            lengths: Vec::new(),
            waiting: Span::ZERO,
            large: Large::default(),
            too_large: None,
            pair_from: None,
            pair_took: Span::ZERO,
            train_took: Span::ZERO,
            echo: Answers::default(),
            udp: Answers::default(),
            timestamps: Answers::default(),
            stamps: Vec::new(),
            timestamp_at: None,
            lone: 0,
            pairs: Vec::new(),
            trains: Vec::new(),
            bursts: Vec::new(),
            udp_at: None,
            silent: 0,
            longest_late: None,
            longest_large: None,
            ceasing: Ceasing::default(),
            silent_at_end: [0; 3],
            stopped: false,
        }
    }

    /// Give what there is.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// The host answered something that this method did not ask: it is there.
    pub fn heard(&mut self, at: Mono) {
        self.ceasing.came(at);
        self.silent_at_end = [0; 3];
    }

    /// What to send now; `None` when it is over.
    pub fn next(&mut self, now: Mono) -> Option<Round> {
        let began_at = *self.began_at.get_or_insert(now);
        let left = (began_at + self.plan.time).since(now) - MARGIN.min(self.plan.time / 10);
        let enough = self.plan.count.is_some_and(|count| self.lone >= count);
        if self.stopped {
            return None;
        }
        // Last of all: a train leaves the credit of a token bucket spent, which is nobody else's
        // loss then.
        if (enough || left < self.train_time())
            && let Some(pairs) = self.pairs_capacity()
        {
            return self.train(left, pairs);
        }
        if enough {
            return None;
        }
        let (asked, gap) = self.choose(now);
        // What the end of the time would cut off is no loss.
        if left < gap + self.room() {
            return None;
        }
        self.asked = asked;
        self.turn += 1;
        let probe =
            |kind, length, after, awaited| Probe { ttl: TTL, length, kind, after, awaited, mute: false };
        let (small, large) = (self.plan.smallest, self.paired);
        let probes = match self.asked {
            Asked::Echo => vec![probe(Kind::Echo, small, gap, true)],
            Asked::Udp => vec![probe(Kind::Udp, small, gap, true)],
            Asked::Timestamp => vec![probe(Kind::Timestamp, TIMESTAMP, gap, true)],
            Asked::Pair => {
                vec![probe(Kind::Echo, large, gap, true), probe(Kind::Echo, large, Span::ZERO, true)]
            }
            Asked::Burst => {
                let mut burst = vec![probe(Kind::Echo, small, Span::ZERO, true); 3];
                burst[0].after = gap;
                burst
            }
            Asked::Train(_) => return None,
        };
        self.lengths = probes.iter().map(|probe| probe.length).collect();
        let room = left - gap;
        // On a slow path a pair takes far longer than a small question.
        let is_first_pair = self.asked == Asked::Pair && self.large.asked == 0 && self.too_large.is_none();
        let unknown = if is_first_pair { FIRST_PATIENCE } else { Span::ZERO };
        // Where there is little time, the first question has all of it: another one would not be
        // answered sooner.
        let patience =
            if self.turn == 1 && room <= LITTLE_TIME { room } else { self.patience().max(unknown).min(room) };
        self.waiting = patience;
        Some(Round { probes, patience })
    }

    /// What is kept for trains, at the end.
    fn train_time(&self) -> Span {
        (self.plan.time / 4).min(TRAIN_TIME)
    }

    /// What pairs say alone.
    fn pairs_capacity(&self) -> Option<Narrowest> {
        pairs::capacity(&self.pairs, self.paired, self.plan.stamp_error)
    }

    /// As many echoes as the narrowest link needs a bearable time for.
    fn train(&mut self, left: Span, pairs: Narrowest) -> Option<Round> {
        let kind = *TRAINS.get(self.trains.len())?;
        let bits = f64::from(self.paired) * 8e9;
        let pair = pairs.rate.estimate;
        let known = self.trains.iter().filter_map(|train| train.whole(bits)).fold(pair, f64::max);
        let rate = if kind == Train::Paced { pair } else { known };
        let fitting = nanos(LONGEST_TRAIN) * rate / bits;
        let count = (fitting as usize).clamp(LEAST_ANSWERS, MOST_TRAIN);
        let drain = Span((count as f64 * bits / known) as i64);
        let sending =
            if kind == Train::Paced { Span((count as f64 * bits / pair) as i64) } else { Span::ZERO };
        // Of a second, trains must not send more than the path carries in it.
        let rest = Some(self.train_took.max(drain)).filter(|took| *took > LONG_TRAIN).unwrap_or_default();
        let gap = self.plan.gap.max(TRAIN_GAP).max(rest);
        if drain > LONGEST_DRAIN || left < gap + drain + sending + self.room() {
            return None;
        }
        self.asked = Asked::Train(kind);
        let echo = Probe {
            ttl: TTL,
            length: self.paired,
            kind: Kind::Echo,
            after: Span::ZERO,
            awaited: true,
            mute: false,
        };
        let mut probes = vec![echo; count];
        if kind == Train::Paced {
            // In groups: no host waits for a few microseconds.
            let apart = bits / pair;
            let group = ((nanos(GROUP) / apart).ceil() as usize).clamp(1, count);
            let sending = nanos(pairs.sent_apart).min(apart / 2.0);
            let wait = Span((group as f64 * apart - (group - 1) as f64 * sending) as i64);
            probes.iter_mut().step_by(group).for_each(|probe| probe.after = wait);
        }
        probes[0].after = gap;
        self.lengths = probes.iter().map(|probe| probe.length).collect();
        Some(Round { probes, patience: (self.patience() + drain).min(left - gap - sending) })
    }

    /// Whether it has come to its trains: what else is asked then may fall victim to them.
    pub fn strains(&self) -> bool {
        matches!(self.asked, Asked::Train(_))
    }

    /// What a round needs after it has been sent.
    fn room(&self) -> Span {
        let least = LEAST_ROOM.min(self.plan.time / 4);
        self.longest().map_or(least, |rtt| (rtt * 2).min(self.plan.patience).max(least))
    }

    /// The longest round trip of a lone question so far, late answers too.
    pub fn longest(&self) -> Option<Span> {
        let all = [&self.echo, &self.udp, &self.timestamps];
        all.into_iter().flat_map(|answers| &answers.rtts).max().copied().max(self.longest_late)
    }

    /// Three times the longest round trip so far, and then some: what comes later counts as lost.
    /// While nobody has answered, longer each time: the path may be a slow one.
    fn patience(&self) -> Span {
        self.waiting(doubled(FIRST_PATIENCE, self.silent)).min(self.plan.patience)
    }

    fn waiting(&self, unknown: Span) -> Span {
        Patience::of_rounds(PATIENCE_TIMES, unknown).knowing(self.longest().max(self.longest_large)).span()
    }

    /// The same for the first SYN of all, which is asked at the same time as the first question,
    /// with `left` of all the time: where that is little, it is waited for to the end.
    pub fn first_syn_patience(&self, left: Span) -> Span {
        if left <= LITTLE_TIME { left } else { self.syn_patience(0) }
    }

    /// How long to wait for the answer to a SYN, of which so many had none. No shorter than the
    /// system waits before it sends it again: one that a firewall of this host drops is known by
    /// that.
    pub fn syn_patience(&self, unanswered: u32) -> Span {
        let wanted = self.waiting(doubled(SYN_PATIENCE, unanswered));
        wanted.max(LEAST_SYN_PATIENCE).min(self.plan.patience.max(LEAST_SYN_PATIENCE))
    }

    /// What to ask next, and how long after the round before.
    fn choose(&mut self, now: Mono) -> (Asked, Span) {
        // Most hosts answer echoes, and a time that is short is for one question.
        if self.turn == 0 && self.plan.echo && self.plan.time <= LITTLE_TIME {
            return (Asked::Echo, self.plan.gap.min(self.plan.time / 10));
        }
        // More often than once a second is refused by most hosts.
        let udp_due = self.udp_at.map_or(now, |at| at + UDP_EVERY);
        // A host that answers none of these is asked by other means in between: the patience for an
        // answer that does not come may be longer than that second.
        let in_a_row = self.asked == Asked::Udp && self.plan.echo;
        if (now >= udp_due && !in_a_row) || !self.plan.echo {
            let due = udp_due.max(now);
            self.udp_at = Some(due);
            return (Asked::Udp, (due - now).max(self.plan.gap));
        }
        let asked = match self.turn % 5 {
            1 if self.pair_from.is_none_or(|from| now >= from) => Asked::Pair,
            3 => Asked::Burst,
            4 if self.is_timestamp_due(now) => {
                self.timestamp_at = Some(now);
                Asked::Timestamp
            }
            _ => Asked::Echo,
        };
        let rest = if asked == Asked::Pair { self.pair_took / 2 } else { Span::ZERO };
        (asked, self.plan.gap.max(rest))
    }

    /// Who has never answered some is not asked for more.
    fn is_timestamp_due(&self, now: Mono) -> bool {
        let silent = self.timestamps.answered == 0 && self.timestamps.asked >= SILENT_TIMESTAMPS;
        self.plan.timestamps && !silent && self.timestamp_at.is_none_or(|at| now >= at + TIMESTAMP_EVERY)
    }

    /// Takes in what became of the last round.
    pub fn take(&mut self, report: &RoundReport) {
        let host = self.plan.host;
        self.follow(report);
        for late in &report.late {
            self.large.came_late(late.sent_at);
            let answers = match late.kind {
                Kind::Udp => &mut self.udp,
                Kind::Echo => &mut self.echo,
                Kind::Timestamp => &mut self.timestamps,
            };
            answers.late += u32::from(answers.answered + answers.late < answers.asked);
        }
        self.longest_late = self.longest_late.max(report.longest_late());
        let nobody = report.probes.iter().all(|told| told.fate == Fate::Silent);
        self.silent = if nobody { self.silent + 1 } else { 0 };
        let answers = match self.asked {
            Asked::Udp => &mut self.udp,
            Asked::Timestamp => &mut self.timestamps,
            Asked::Echo | Asked::Pair | Asked::Burst => &mut self.echo,
            Asked::Train(kind) => return self.take_train(kind, report),
        };
        answers.waited = answers.waited.max(self.waiting);
        for (told, length) in report.probes.iter().zip(&self.lengths) {
            if matches!(told.fate, Fate::NotSent | Fate::TooBig(_)) {
                answers.not_sent += u32::from(told.fate == Fate::NotSent);
                continue;
            }
            answers.asked += 1;
            answers.bytes += u64::from(*length);
            let Some(reply) = told.reply() else { continue };
            answers.take(reply, host);
        }
        // The first of a small burst has none of its own in front of it.
        let first = report.probes.first().filter(|first| is_own(first, host)).and_then(Told::rtt);
        if self.asked == Asked::Pair {
            self.large.rtt = first.into_iter().chain(self.large.rtt).min();
        } else {
            answers.rtts.extend(first);
        }
        match (self.asked, &report.probes[..]) {
            (Asked::Echo, _) => self.lone += 1,
            (Asked::Timestamp, [one]) => self.take_stamps(one),
            (Asked::Pair, [first, second]) => {
                self.take_pair(first, second);
                self.follow_large(report);
            }
            (Asked::Burst, [a, b, c]) => {
                self.bursts.push([a, b, c].map(|told| told.reply().and_then(|reply| reply.ident)));
            }
            _ => {}
        }
    }

    /// Takes note of who answers and when. What the host never answered tells nothing.
    fn follow(&mut self, report: &RoundReport) {
        let (kind, answers) = match self.asked {
            Asked::Timestamp => (1, &self.timestamps),
            Asked::Udp => (2, &self.udp),
            Asked::Echo | Asked::Pair | Asked::Burst | Asked::Train(_) => (0, &self.echo),
        };
        let tells = kind != 2 && answers.answered > 0;
        let is_counted = !matches!(self.asked, Asked::Train(_));
        if let Some(last) = report.probes.last().filter(|_| !report.late.is_empty()) {
            self.heard(last.sent_at);
        }
        for told in &report.probes {
            match told.fate {
                Fate::NotSent => self.ceasing.not_sent(told.sent_at),
                Fate::Silent => {
                    self.silent_at_end[kind] += u32::from(is_counted);
                    if tells {
                        self.ceasing.unanswered(told.sent_at);
                    }
                }
                Fate::Answered(reply) if is_own(told, self.plan.host) => self.heard(reply.at),
                Fate::TooBig(_) | Fate::Answered(_) => {}
            }
        }
    }

    fn take_stamps(&mut self, told: &Told) {
        let Some(reply) = told.reply().filter(|_| self.stamps.len() < MOST_STAMPS) else { return };
        if let Some(stamps) = reply.stamps {
            self.stamps.push(StampSample { sent_at: told.sent_at, at: reply.at, stamps });
        }
    }

    fn take_pair(&mut self, first: &Told, second: &Told) {
        let (Some(a), Some(b)) = (first.reply(), second.reply()) else { return };
        let both = [first, second].iter().all(|told| is_own(told, self.plan.host));
        if both && b.at > a.at && self.pairs.len() < MOST_PAIRS {
            self.pairs.push(Pair {
                delay: (a.at - first.sent_at) + (b.at - second.sent_at),
                apart: b.at - a.at,
                sent_apart: second.sent_at - first.sent_at,
            });
        }
    }

    /// Takes note of whether large echoes are answered at all. Where they are not though small ones
    /// are, shorter ones are asked from then on.
    fn follow_large(&mut self, report: &RoundReport) {
        // The next one is waited for as long as this one took.
        let longest = report.probes.iter().filter_map(Told::rtt).max();
        self.longest_large = self.longest_large.max(longest);
        for told in report.probes.iter().filter(|told| has_left(told)) {
            self.large.asked += 1;
            match told.fate {
                Fate::Silent => self.large.silent.push(told.sent_at),
                _ => self.large.answered += u32::from(is_own(told, self.plan.host)),
            }
        }
        // As long as a pair takes, the path rests after it: of a second, pairs do not send more
        // than the path carries.
        let last = report.probes.iter().filter_map(Told::reply).map(|reply| reply.at).max();
        let first = report.probes.first().map(|told| told.sent_at);
        if let (Some(first), Some(least)) = (first, self.least()) {
            let came_at = last.unwrap_or(first + self.waiting);
            let took = came_at.since(first) - least;
            self.pair_took = if took > LONG_PAIR { took } else { Span::ZERO };
            self.pair_from = (took > LONG_PAIR).then(|| came_at + took);
        }
        let wanted = if self.too_large.is_some() { MIN_SHORTER } else { MIN_LARGE };
        if self.large.asked < wanted || self.large.answered > 0 || self.echo.answered == 0 {
            return;
        }
        let before = self.too_large.map_or(0, |known| known.asked);
        self.too_large =
            Some(TooLarge { length: self.paired, asked: before + self.large.asked, answered: None });
        if let Some(shorter) = LENGTHS.into_iter().find(|length| *length < self.paired) {
            self.paired = shorter;
        }
        self.large = Large { rtt: self.large.rtt, ..Large::default() };
    }

    /// The shortest round trip of a small question.
    fn least(&self) -> Option<Span> {
        [&self.echo, &self.udp, &self.timestamps].into_iter().flat_map(|of| &of.rtts).min().copied()
    }

    /// What a train loses says nothing of what others lose.
    fn take_train(&mut self, kind: Train, report: &RoundReport) {
        let left: Vec<&Told> = report.probes.iter().filter(|told| has_left(told)).collect();
        self.echo.bytes += left.len() as u64 * u64::from(self.paired);
        let own = left.iter().enumerate().filter(|(_, told)| is_own(told, self.plan.host));
        let mut answers: Vec<_> = own.filter_map(|(number, told)| Some((number, told.reply()?.at))).collect();
        answers.sort_unstable_by_key(|(number, at)| (*at, *number));
        let sent: Vec<Mono> = left.iter().map(|told| told.sent_at).collect();
        if let (Some(first), Some((_, last))) = (sent.first(), answers.last()) {
            self.train_took = (last.since(*first) - self.least().unwrap_or(Span::ZERO)).or_zero();
        }
        self.trains.push(EchoTrain { kind, sent, answers });
    }

    /// What there is so far.
    pub fn finding(&self) -> ReachFinding {
        let mut echo = self.echo.clone();
        // That they do not fit is no loss of what does.
        echo.asked -= self.too_large.map_or(0, |large| large.asked).min(echo.asked - echo.answered);
        if echo.rtts.is_empty() {
            // Few questions had time; that of a large one is longer by what its length takes.
            echo.rtts.extend(self.large.rtt);
        }
        let echo_share = share(&echo);
        let udp_share = share(&self.udp);
        let rationed = self.udp.answered > 0 && udp_share < echo_share.min(0.9) - 0.3;
        let pairs = self.pairs_capacity();
        let lasting = pairs.map(|pairs| {
            let shortest = LEAST_ANSWERS as f64 * f64::from(self.paired) * 8.0 / pairs.rate.estimate;
            if self.trains.is_empty() && shortest > LONGEST_DRAIN.secs_f64() {
                return Lasting::TooSlow;
            }
            trains::lasting(&self.trains, pairs.rate.estimate, self.paired)
        });
        let capacity = pairs.zip(lasting).and_then(|(pairs, lasting)| trains::judged(pairs, lasting));
        let ceased = self.ceasing.ceased(self.patience()).filter(|_| !self.stopped);
        let known = |answers: &Answers, kind: usize| {
            let unknown = ceased.map_or(0, |_| self.silent_at_end[kind]);
            let asked = answers.asked - unknown.min(answers.asked);
            Answers { asked: asked.max(answers.answered), ..answers.clone() }
        };
        ReachFinding {
            ceased,
            echo: known(&echo, 0),
            too_large: self.too_large.map(|large| TooLarge {
                answered: (self.large.answered > 0).then_some(self.paired),
                ..large
            }),
            longest: self.longest(),
            paired: self.paired,
            timestamps: known(&self.timestamps, 1),
            udp: known(&self.udp, 2),
            clock: (!self.stamps.is_empty()).then(|| HostClock::of(&self.stamps)),
            by_direction: by_direction(&self.bursts),
            host_limited: capacity.is_some_and(|found| found.is_host_limited),
            capacity: capacity.map(|found| (found.rate, found.bound)),
            lasting,
            pairs: self.pairs.len() as u32,
            batched: are_batched(&self.pairs),
            udp_rationed: rationed,
        }
    }
}

impl Answers {
    fn take(&mut self, reply: Reply, host: IpAddr) {
        if reply.from != host && !self.others.contains(&reply.from) && self.others.len() < MOST_OTHERS {
            self.others.push(reply.from);
        }
        if !self.said.contains(&reply.what) {
            self.said.push(reply.what);
        }
        // A router that says that it goes no further is no answer of the host's.
        let own = [What::EchoReply, What::TimestampReply, What::PortUnreachable];
        self.answered += u32::from(own.contains(&reply.what));
    }
}

fn has_left(told: &Told) -> bool {
    !matches!(told.fate, Fate::NotSent | Fate::TooBig(_))
}

fn is_own(told: &Told, host: IpAddr) -> bool {
    told.reply().is_some_and(|reply| {
        matches!(reply.what, What::EchoReply | What::TimestampReply)
            || (reply.what == What::PortUnreachable && reply.from == host)
    })
}

fn nanos(span: Span) -> f64 {
    span.nanos() as f64
}

fn share(answers: &Answers) -> f64 {
    f64::from(answers.answered) / f64::from(answers.asked.max(1))
}

/// Complete bursts show whether the host counts by one; then a burst without its middle shows
/// whether the host counted it.
fn by_direction(bursts: &[[Option<u16>; 3]]) -> Option<ByDirection> {
    let complete = bursts.iter().filter_map(|burst| match burst {
        [Some(a), Some(b), Some(c)] => Some(b.wrapping_sub(*a) == 1 && c.wrapping_sub(*b) == 1),
        _ => None,
    });
    let complete: Vec<bool> = complete.collect();
    let counting = complete.iter().filter(|counts| **counts).count();
    if complete.len() < LEAST_BURSTS || counting * 10 < complete.len() * 9 {
        return None;
    }
    let mut found = ByDirection { of: complete.len() as u32, ..ByDirection::default() };
    for burst in bursts {
        if let [Some(a), None, Some(c)] = burst {
            match c.wrapping_sub(*a) {
                1 => found.forward += 1,
                2 => found.reverse += 1,
                _ => continue,
            }
            found.of += 1;
        }
    }
    Some(found)
}

/// Where hosts' own packets start: no path is longer.
const TTL: u8 = 64;
/// Of a timestamp: IP header, ICMP header, three stamps.
const TIMESTAMP: u32 = 40;
const TIMESTAMP_EVERY: Span = Span::from_millis(100);
const SILENT_TIMESTAMPS: u32 = 5;
const MOST_STAMPS: usize = 10_000;
const UDP_EVERY: Span = Span::from_millis(1100);
/// At most kept for trains.
const TRAIN_TIME: Span = Span::from_millis(1500);
/// In this order: the first tells how long those back to back may be, and a short time has one of
/// each kind.
const TRAINS: [Train; 5] = [Train::Fast, Train::Paced, Train::Fast, Train::Fast, Train::Paced];
/// Beyond the credit of usual token buckets: 192 kB of 1500 bytes each.
const MOST_TRAIN: usize = 128;
/// Within which packets of a paced train are sent as they come.
const GROUP: Span = Span::from_micros(500);
/// What a train may hold up others on the narrowest link.
const LONGEST_TRAIN: Span = Span::from_millis(100);
/// No train that takes longer: a path so slow would be filled by it.
const LONGEST_DRAIN: Span = Span::from_millis(700);
/// One that took longer is followed by a rest.
const LONG_TRAIN: Span = Span::from_millis(400);
/// The same of a pair.
const LONG_PAIR: Span = Span::from_millis(400);
/// Large echoes without an answer: so many are hardly lost by chance where small ones are answered.
const MIN_LARGE: u32 = 6;
/// The same of shorter ones.
const MIN_SHORTER: u32 = 2;
/// Lengths that fit tunnels and access lines, and what every path takes; bytes.
const LENGTHS: [u32; 6] = [1492, 1420, 1380, 1280, 1000, 576];
/// Between trains: what one has left in a queue is gone by then.
const TRAIN_GAP: Span = Span::from_millis(50);
const MARGIN: Span = Span::from_millis(20);
const LEAST_ROOM: Span = Span::from_millis(20);
/// Nothing else could be asked and answered in it on a slow path.
const LITTLE_TIME: Span = Span::from_secs(2);
/// Twice as long with each of these, five times at most.
fn doubled(first: Span, times: u32) -> Span {
    first * (1 << times.min(5))
}

/// Longest round trips that an answer is waited for: there is one host, and what comes later than
/// that misses its pair or burst.
const PATIENCE_TIMES: i64 = 3;
/// While nobody has answered anything.
const FIRST_PATIENCE: Span = Span::from_secs(1);
/// The same for a SYN.
const SYN_PATIENCE: Span = Span::from_millis(1500);
/// Linux sends a SYN again after a second.
const LEAST_SYN_PATIENCE: Span = Span::from_secs(1);
const MOST_PAIRS: usize = 10_000;
const MOST_OTHERS: usize = 8;
const LEAST_BURSTS: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hops::{HostStamps, LateAnswer};

    fn plan() -> ReachPlan {
        ReachPlan {
            host: IpAddr::from([192, 0, 2, 9]),
            smallest: 60,
            largest: 1500,
            time: Span::from_secs(10),
            count: None,
            gap: Span::from_millis(10),
            echo: true,
            timestamps: false,
            patience: Span::from_secs(1),
            stamp_error: Span::ZERO,
        }
    }

    /// A host 10 ms away behind a link of `ns` per byte; `answers` says whether a question gets an
    /// answer, by kind and number.
    fn run(plan: ReachPlan, ns: f64, answers: impl Fn(Kind, u32) -> bool) -> ReachFinding {
        let host = plan.host;
        let mut reach = Reach::new(plan);
        let (mut now, mut counter, mut ident) = (Mono(1_000_000_000), 0_u32, 0_u16);
        while let Some(round) = reach.next(now) {
            let mut probes = Vec::new();
            let mut free = Mono(0);
            for probe in &round.probes {
                now = now + probe.after + Span::from_micros(2);
                counter += 1;
                let left = now.max(free) + Span((f64::from(probe.length) * ns) as i64);
                free = left;
                let answered = answers(probe.kind, counter);
                ident = ident.wrapping_add(1);
                let what = match probe.kind {
                    Kind::Echo => What::EchoReply,
                    Kind::Timestamp => What::TimestampReply,
                    Kind::Udp => What::PortUnreachable,
                };
                let at = left + Span::from_millis(10);
                let ms = (left.0 / 1_000_000) as u32;
                let stamps =
                    (probe.kind == Kind::Timestamp).then_some(HostStamps { receive: ms, transmit: ms });
                let reply = Reply { at, from: host, what, length: None, ident: Some(ident), stamps };
                let fate = if answered { Fate::Answered(reply) } else { Fate::Silent };
                probes.push(Told { sent_at: now, fate });
            }
            let silent = probes.iter().any(|told| told.fate == Fate::Silent);
            now += if silent { round.patience } else { Span::from_millis(12) };
            reach.take(&RoundReport::of(probes));
        }
        reach.finding()
    }

    #[test]
    fn in_a_short_time_the_first_question_is_listened_for_to_its_end() {
        // 1.45 s are half of 3 s; the round trip of a satellite with its queue takes 1.2 s.
        let mut reach = Reach::new(ReachPlan { time: Span::from_millis(1450), ..plan() });
        let round = reach.next(Mono(0)).unwrap();
        assert_eq!((round.probes[0].kind, round.probes.len()), (Kind::Echo, 1));
        assert!(round.patience > Span::from_millis(1400), "{}", round.patience);
        assert_eq!(reach.first_syn_patience(Span::from_millis(1400)), Span::from_millis(1400));
        assert_eq!(reach.first_syn_patience(Span::from_secs(9)), reach.syn_patience(0));
    }

    #[test]
    fn twenty_milliseconds_are_time_to_ask_a_host_that_is_near() {
        let mut reach = Reach::new(ReachPlan { time: Span::from_millis(10), ..plan() });
        assert!(reach.next(Mono(0)).is_some());
    }

    #[test]
    fn a_host_that_falls_silent_for_good_is_not_one_that_loses() {
        let found = run(plan(), 80.0, |_, n| n < 300);
        let ceased = found.ceased.expect("it fell silent");
        assert!(ceased.silent > Span::from_secs(1) && ceased.unanswered >= 4, "{ceased:?}");
        // One echo of a burst or pair may be the last that was answered.
        assert!(found.echo.asked - found.echo.answered <= 2, "{:?}", found.echo);
        // An outage that ends, and a host that never answered.
        assert_eq!(run(plan(), 80.0, |_, n| !(100..120).contains(&n)).ceased, None);
        assert_eq!(run(plan(), 80.0, |_, _| false).ceased, None);
    }

    #[test]
    fn a_healthy_host_has_its_round_trip_no_loss_and_a_capacity() {
        let found = run(plan(), 800.0, |_, _| true);
        assert!(found.echo.asked > 100 && found.echo.asked == found.echo.answered);
        assert_eq!(found.echo.rtts[0], Span::from_millis(10) + Span::from_micros(48));
        let (rate, bound) = found.capacity.unwrap();
        assert!((rate.estimate / 1e7 - 1.0).abs() < 0.01 && bound == Bound::None, "{rate:?}");
        assert_eq!(found.by_direction.map(|it| (it.forward, it.reverse)), Some((0, 0)));
        assert!(!found.udp_rationed);
    }

    #[test]
    fn a_fast_link_is_told_from_large_packets() {
        // The host sends each 2 us, which for 9000 bytes is 36 Gbit/s.
        let found = run(ReachPlan { largest: 9000, ..plan() }, 0.6, |_, _| true);
        let (rate, bound) = found.capacity.unwrap();
        assert!(bound == Bound::None && (rate.estimate / 13.3e9 - 1.0).abs() < 0.01, "{rate:?}");
    }

    #[test]
    fn what_the_stamps_err_widens_the_capacity_until_it_is_a_bound_that_says_so() {
        // 1500 bytes each 120 us.
        let with = |error| run(ReachPlan { stamp_error: error, ..plan() }, 80.0, |_, _| true);
        let [fine, coarse, blunt] = [0, 7, 70].map(|us| with(Span::from_micros(us)));
        let rate = |of: &ReachFinding| of.capacity.unwrap().0;
        assert!(coarse.capacity.unwrap().1 == Bound::None && rate(&coarse).contains(1e8), "{coarse:?}");
        assert!(rate(&coarse).width() > rate(&fine).width() + 1e7, "{:?} {:?}", rate(&coarse), rate(&fine));
        let (rate, bound) = blunt.capacity.unwrap();
        assert!(bound == Bound::AtLeast && rate.lo <= 1e8, "{rate:?}");
        assert_eq!([fine, coarse, blunt].map(|it| it.host_limited), [false, false, true]);
    }

    #[test]
    fn answers_that_come_in_batches_tell_no_capacity() {
        let found = run(plan(), 0.8, |_, _| true);
        assert_eq!((found.capacity, found.batched), (None, true));
    }

    #[test]
    fn echoes_lost_on_the_way_back_were_counted() {
        let found = run(plan(), 80.0, |kind, n| kind == Kind::Udp || n % 9 != 0);
        let by = found.by_direction.unwrap();
        assert!(by.reverse > 0 && by.forward == 0, "{by:?}");
        assert!(found.echo.answered < found.echo.asked);
    }

    #[test]
    fn a_host_that_rations_unreachables_is_not_called_lossy() {
        let found = run(plan(), 80.0, |kind, n| kind == Kind::Echo || n < 4);
        assert!(found.udp_rationed, "{:?}", found.udp);
    }

    #[test]
    fn timestamps_are_asked_for_seldom_and_believed_once_they_move() {
        let found = run(ReachPlan { timestamps: true, ..plan() }, 80.0, |_, _| true);
        assert!((50..=100).contains(&found.timestamps.asked), "{}", found.timestamps.asked);
        assert_eq!(
            (found.timestamps.answered, &found.timestamps.said[..]),
            (found.timestamps.asked, &[What::TimestampReply][..])
        );
        assert!(matches!(found.clock, Some(HostClock::Believed(_))), "{:?}", found.clock);
        assert!(found.capacity.is_some() && found.by_direction.is_some());
    }

    #[test]
    fn a_host_that_does_not_answer_timestamps_is_soon_left_alone() {
        let found = run(ReachPlan { timestamps: true, ..plan() }, 80.0, |kind, _| kind != Kind::Timestamp);
        assert_eq!((found.timestamps.asked, found.timestamps.answered, found.clock), (5, 0, None));
        assert_eq!(found.echo.asked, found.echo.answered);
    }

    /// Rounds to a host behind a link of `rate`, all in one queue, 10 ms away; packets longer than
    /// `passes` vanish. What was sent when, and what was found.
    fn on_a_link(rate: u64, passes: u32, seconds: i64) -> (Vec<(Mono, u32)>, ReachFinding) {
        let plan = ReachPlan { time: Span::from_secs(seconds), patience: Span::from_secs(10), ..plan() };
        let host = plan.host;
        let mut reach = Reach::new(plan);
        let (mut now, mut sent, mut free_at) = (Mono(1_000_000_000), Vec::new(), Mono(0));
        let mut given_up: Vec<LateAnswer> = Vec::new();
        while let Some(round) = reach.next(now) {
            let mut told = Vec::new();
            for probe in &round.probes {
                now = now + probe.after + Span::from_micros(2);
                sent.push((now, probe.length));
                free_at =
                    free_at.max(now) + Span((u64::from(probe.length) * 8_000_000_000 / rate).cast_signed());
                let at = free_at + Span::from_millis(10);
                let what = if probe.kind == Kind::Udp { What::PortUnreachable } else { What::EchoReply };
                let reply = Reply { at, from: host, what, length: None, ident: None, stamps: None };
                let fate = if probe.length > passes { Fate::Silent } else { Fate::Answered(reply) };
                told.push(Told { sent_at: now, fate });
            }
            let until = now + round.patience;
            for (told, probe) in told.iter_mut().zip(&round.probes) {
                if let Some(Reply { at, from, what, .. }) = told.reply().filter(|reply| reply.at > until) {
                    let (rtt, sent_at, kind, ttl) = (at - told.sent_at, told.sent_at, probe.kind, probe.ttl);
                    given_up.push(LateAnswer { kind, ttl, sent_at, rtt, from, what });
                    told.fate = Fate::Silent;
                }
            }
            let answered = told.iter().map(|told| Some(told.reply()?.at)).collect::<Option<Vec<_>>>();
            now = answered.and_then(|all| all.into_iter().max()).unwrap_or(until);
            let late = given_up.extract_if(.., |late| late.sent_at + late.rtt <= now).collect();
            reach.take(&RoundReport { probes: told, late });
        }
        (sent, reach.finding())
    }

    #[test]
    fn a_slow_path_is_not_filled_by_pairs_and_trains() {
        for rate in [30_000, 64_000, 100_000, 140_000, 192_000, 250_000, 400_000, 1_000_000] {
            let (sent, _) = on_a_link(rate, 1500, 10);
            let within = |from: Mono| {
                let until = from + Span::from_secs(1);
                sent.iter().filter(move |(at, _)| *at >= from && *at < until).map(|(_, length)| *length)
            };
            let busiest = sent.iter().map(|(from, _)| within(*from).sum::<u32>()).max().unwrap();
            // The first pair is sent before anything is known.
            let allowed = (rate * 125 / 100).max(30_000);
            assert!(u64::from(busiest) * 8 <= allowed, "{} bit in a second on {rate}", busiest * 8);
        }
    }

    #[test]
    fn large_echoes_that_do_not_fit_the_path_are_no_loss_and_their_length_is_told() {
        let (_, found) = on_a_link(10_000_000, 1380, 5);
        assert!(found.echo.asked == found.echo.answered && found.echo.asked > 50, "{:?}", found.echo);
        let too_large = found.too_large.unwrap();
        assert_eq!((too_large.length, too_large.answered, found.paired), (1420, Some(1380), 1380));
        let (rate, bound) = found.capacity.unwrap();
        assert!((rate.estimate / 1e7 - 1.0).abs() < 0.01 && bound == Bound::None, "{rate:?}");
        // A host that loses half of what it is asked answers some of the large ones.
        let lossy = run(plan(), 80.0, |_, n| n % 2 == 0);
        assert_eq!(lossy.too_large, None);
    }

    #[test]
    fn an_echo_that_was_answered_has_a_round_trip_however_few_there_were() {
        // No time for more than two questions.
        let found = run(ReachPlan { time: Span::from_millis(90), ..plan() }, 80.0, |_, _| true);
        assert!(found.echo.answered > 0 && !found.echo.rtts.is_empty(), "{:?}", found.echo);
    }

    #[test]
    fn without_echoes_udp_is_all_there_is_and_silence_ends_in_time() {
        let found = run(ReachPlan { echo: false, ..plan() }, 80.0, |_, _| false);
        assert!(found.echo.asked == 0 && found.udp.asked > 5 && found.udp.answered == 0);
        assert_eq!(found.capacity, None);
    }
}
