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
mod take;
mod tcp;
mod trains;

use std::net::IpAddr;

use netaware_stats::ceasing::{Ceased, Ceasing};
use netaware_stats::interval::Interval;
use netaware_stats::patience::Patience;
use netaware_units::{Mono, Span};

use crate::estimate::Bound;
use crate::hops::{Kind, Probe, Round, What};

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

    /// A SYN of then had no answer, and others had had one. Where the host answers echoes or
    /// timestamps, which show at once whether it is there, that tells of silence like these.
    pub fn missed(&mut self, asked_at: Mono) {
        if self.echo.answered + self.timestamps.answered > 0 {
            self.ceasing.unanswered(asked_at);
        }
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
            && !(self.silent > 0 && self.ceasing.is_suspected())
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
    /// that. Only where echoes have just become silent is it shorter.
    pub fn syn_patience(&self, unanswered: u32) -> Span {
        let wanted = self.waiting(doubled(SYN_PATIENCE, unanswered));
        // A host that has just fallen silent is found out by many questions, not by a long wait.
        if self.ceasing.has_come() && self.silent > 0 {
            return wanted.min(self.plan.patience);
        }
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
        // What it did not answer when it answered nothing else either, it did not ration.
        let unanswered = self.silent_at_end[2].min(self.udp.asked);
        let udp_share = share(&Answers { asked: self.udp.asked - unanswered, ..self.udp.clone() });
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
            // Of a path that was gone trains tell nothing.
            lasting: lasting
                .filter(|it| ceased.is_none() || !matches!(it, Lasting::Unknown | Lasting::Unanswered)),
            pairs: self.pairs.len() as u32,
            batched: are_batched(&self.pairs),
            udp_rationed: rationed,
        }
    }
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
const LEAST_BURSTS: usize = 5;

#[cfg(test)]
mod tests;
