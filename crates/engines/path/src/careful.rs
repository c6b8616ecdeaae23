//! A method that sends no more than the path was seen to carry, ends in time, and gives a figure or
//! the reason why there is none.
//!
//! ```text
//!  |||     ||||||||||||        first trains: 3, 12 and 48 packets, as what came allows    (scout)
//!
//!  the method's volleys, each train only when the tokens for it are there                 (tokens)
//!      one that is too much: ||||||     ||||||     ||||||  several questions, one answer
//! ```
//!
//! **Does**: before a [method](Estimator) is built, a few packets show what the path carries about
//! ([`Scout`]); the method is told that ([`Instrument::carried`]). Each of its trains then waits
//! for tokens. They come at 95 % of the fastest rate that was [seen](Carried) lately, and those of
//! three tenths of a second can be saved up (or of a round trip, or of the time of ten packets, if
//! that is longer): over such a time no more than 1.25 times what the path carries is sent, the
//! first train of three packets apart. A train that is larger than all tokens together is cut; the
//! method hears that the rest of it never left. Where a volley lost its last packets, the next one
//! waits until the queue that they may be in must be empty. What would not be back within the time
//! limit is not sent. **Assumes** that what trains carry one after the other they do together.
//! **Biased** towards less load than the path could bear: a path that gathers packets for longer
//! than a train lasts is taken for a slower one. Where much is lost, and less of it when less is
//! sent, a policer is assumed, and tokens come at the rate that it lets through; where as large a
//! share is lost of less, the rate grows again. Where the path becomes far slower in the middle,
//! what was known of it is forgotten, trains go one at a time within the allowed load of what it
//! carries now, and a figure of before is not given. **Published**: RFC 8085 §3.1 asks this of
//! applications over UDP; the numbers are ours.

mod carried;
mod policing;
mod scout;
mod tokens;
mod transit;

use std::fmt;

use netaware_units::{Mono, Span};

use crate::available::TightLink;
use crate::available::sender::{Sender, duration};
use crate::path_change::LevelsByLength;
use crate::{
    Bound, Estimate, Estimator, Flag, Instrument, NoFigure, RateMode, Step, Train, TrainReport, Volley,
    VolleyPatience, VolleyReport,
};

use carried::Carried;
use policing::Policing;
use scout::Scout;
use tokens::Tokens;
use transit::Transits;

/// What a method needs to say anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Packets of the largest size in all.
    pub packets: u32,
    /// Packets of the shortest train that says something.
    pub train: u32,
    /// Volleys, one after the other.
    pub rounds: u32,
}

type Build = Box<dyn FnOnce(&Instrument) -> Box<dyn Estimator>>;

/// A method, and what keeps it from doing harm.
pub struct Careful {
    instrument: Instrument,
    needs: Needs,
    sender: Sender,
    /// Until the path's first packets have come.
    build: Option<Build>,
    method: Option<Box<dyn Estimator>>,
    scout: Scout,
    carried: Carried,
    policing: Policing,
    transits: Transits,
    tokens: Tokens,
    patience: VolleyPatience,
    begin: Option<Mono>,
    now: Mono,
    /// What the method has asked for and is not answered yet.
    serving: Option<Serving>,
    /// What was asked for last, a part of that.
    part: Volley,
    /// A queue that was seen is empty by then.
    drained_at: Mono,
    /// Of this turn, and of the one before.
    came_now: Came,
    came_before: Came,
    /// Something came in a turn before that one.
    has_come_before: bool,
    levels: LevelsByLength,
    bytes: u64,
    packets: u64,
    over: Option<Over>,
}

/// A volley of the method that is sent in parts.
#[derive(Debug)]
struct Serving {
    volley: Volley,
    due: Mono,
    /// Of the trains that have been sent.
    report: VolleyReport,
    began_at: Option<Mono>,
}

/// Why nothing more is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Over {
    Content,
    OutOfTime,
    Hopeless(NoFigure),
}

/// Of all packets so far.
#[derive(Debug, Clone, Copy, Default)]
struct Came {
    sent: u64,
    arrived: u64,
    /// Packets in a row that left and did not come, up to the end, and volleys that they were in.
    silent: u64,
    silent_volleys: u32,
    /// Trains whose packets came at fewer instants than a figure needs.
    batched: u32,
    trains: u32,
    /// The present stretch of packets in a row that were lost, and the longest that something came
    /// behind.
    losing: Stretch,
    longest: Stretch,
    /// Packets of all such stretches in which the path was gone.
    gone: u64,
    /// When the last packet that came left, ns.
    last_at: Option<i64>,
}

/// Packets in a row that were lost.
#[derive(Debug, Clone, Copy, Default)]
struct Stretch {
    packets: u64,
    /// When the first one left, ns.
    from: i64,
    /// From then until the last one left.
    over: Span,
    /// The same from the last packet before them, which came: a bucket would have had a token.
    gone: Span,
}

impl fmt::Debug for Careful {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { needs, carried, tokens, over, .. } = self;
        f.debug_struct("Careful")
            .field("needs", needs)
            .field("carried", carried)
            .field("tokens", tokens)
            .field("came", &self.came())
            .field("over", over)
            .finish_non_exhaustive()
    }
}

impl Careful {
    /// `build` is called when the path's first packets have come, with the instrument as they leave
    /// it: with less time, trains that are no longer than the path bears, and what it carried.
    pub fn new(
        instrument: &Instrument,
        needs: Needs,
        build: impl FnOnce(&Instrument) -> Box<dyn Estimator> + 'static,
    ) -> Self {
        Self {
            instrument: instrument.clone(),
            needs,
            sender: Sender::new(instrument),
            build: Some(Box::new(build)),
            method: None,
            scout: Scout::default(),
            carried: Carried::default(),
            policing: Policing::default(),
            transits: Transits::default(),
            tokens: Tokens::new(instrument),
            patience: VolleyPatience::new(instrument.rtt),
            begin: None,
            now: Mono(0),
            serving: None,
            part: Volley::default(),
            drained_at: Mono(0),
            came_now: Came::default(),
            came_before: Came::default(),
            has_come_before: false,
            levels: LevelsByLength::default(),
            bytes: 0,
            packets: 0,
            over: None,
        }
    }

    /// A measurement that follows a path begins its next turn: what was lost in turns before the
    /// last one is forgotten, for the figure is hardly of these.
    pub fn begin_turn(&mut self) {
        self.has_come_before |= self.came_before.arrived > 0;
        self.came_before = self.came_now.next_turn();
        self.policing.begin_turn();
    }

    /// What came in this turn and in the one before.
    fn came(&self) -> Came {
        self.came_now.and(&self.came_before)
    }

    /// The time limit is so near that nothing more would be back within it.
    pub fn is_out_of_time(&self) -> bool {
        self.over == Some(Over::OutOfTime)
    }

    /// Ends it as at the time limit: no more of its trains can leave. The method has what there is
    /// of the volley that is under way.
    pub fn cut_short(&mut self, now: Mono) {
        self.now = self.now.max(now);
        self.hand_over(self.now);
        self.over.get_or_insert(Over::OutOfTime);
    }

    /// The figure as far as it is known, or why there is none.
    ///
    /// # Errors
    /// Nothing can be said; the error is the reason.
    pub fn conclusion(&self) -> Result<Estimate, NoFigure> {
        let answer = self.method.as_ref().and_then(Estimator::answer);
        let is_open =
            answer.as_ref().is_some_and(|it| it.bound != Bound::AtLeast && it.rate.lo <= LEAST_RATE);
        if is_open && self.came().lost() > BLURRING_LOSS {
            // That nothing or more is left is what loss makes of any rate.
            let lossy = NoFigure::TooLossy(self.came().lost());
            return Err(self.policed().or(self.silence()).or(self.interrupted()).unwrap_or(lossy));
        }
        match answer.map(|answer| sound(self.carried_at_least(answer))) {
            // It is of the path as it was, or of trains that were handed over at once.
            Some(Some(answer)) if self.is_of_a_faster_path(&answer) => {
                Err(self.slower().or_else(|| self.slow_at_the_end()).unwrap_or(NoFigure::Undecided))
            }
            Some(Some(answer)) => Ok(self.with_cost(answer)),
            _ if self.reason().is_some() => Err(self.reason().unwrap_or(NoFigure::Undecided)),
            // Trains of two paths contradict each other.
            _ if self.levels.changed() => Err(NoFigure::PathChanged),
            Some(None) => Err(NoFigure::NothingLeft),
            None => Err(NoFigure::Undecided),
        }
    }

    /// The path became far slower in the middle of this measurement, and still is.
    fn has_fallen(&self) -> bool {
        // A measurement that follows a path goes on after that, and sees the path as it is.
        self.came_slowly_lately() && self.carried.fell(&self.transits).is_some()
    }

    /// Trains came far more slowly than earlier ones, for whatever reason.
    fn came_slowly_lately(&self) -> bool {
        self.carried.fell_at().is_some_and(|at| self.now.since(at) <= self.instrument.time_limit)
    }

    /// Trains came lately more slowly than this figure says that the path carries.
    fn is_of_a_faster_path(&self, answer: &Estimate) -> bool {
        let said = match answer.bound {
            Bound::AtMost => answer.rate.hi,
            Bound::None | Bound::AtLeast => answer.rate.lo,
        };
        let lately = self.carried.fastest().filter(|_| self.came_slowly_lately());
        let at_the_end = self.carried.slow_at_the_end(&self.transits).map(|(_, to)| to);
        [lately, at_the_end].into_iter().flatten().any(|rate| said > rate * ABOVE_ALL)
    }

    /// A lower bound is no more than what trains were seen to pass at, however many of their
    /// packets were handed over at once.
    fn carried_at_least(&self, mut answer: Estimate) -> Estimate {
        let fastest = self.transits.fastest().filter(|_| answer.bound == Bound::AtLeast);
        if let Some(fastest) = fastest.filter(|fastest| *fastest < answer.rate.lo) {
            answer.rate.lo = fastest;
            answer.rate.estimate = fastest;
        }
        answer
    }

    /// That the path became slower, with what it carried and what it carries.
    fn slower(&self) -> Option<NoFigure> {
        let (from, to) = self.carried.fell(&self.transits).filter(|_| self.has_fallen())?;
        Some(NoFigure::Slower { from, to })
    }

    /// The same of the last trains alone, which nothing followed.
    fn slow_at_the_end(&self) -> Option<NoFigure> {
        let (from, to) = self.carried.slow_at_the_end(&self.transits)?;
        Some(NoFigure::Slower { from, to })
    }

    /// What the first trains cost counts, too.
    fn with_cost(&self, mut answer: Estimate) -> Estimate {
        (answer.bytes, answer.packets) = (self.bytes, self.packets);
        answer.took = answer.took.max(self.took());
        let is_cut = self.over == Some(Over::OutOfTime) && !answer.flags.contains(&Flag::CutShort);
        answer.flags.extend(is_cut.then_some(Flag::CutShort));
        if let Some((from, to)) = self.carried.fell(&self.transits).filter(|_| self.has_fallen()) {
            answer.flags.insert(0, Flag::Slower { from, to });
        }
        answer = self.as_far_as_it_lasts(answer);
        if let Some(Stretch { packets, over, .. }) = self.came().outage() {
            answer.flags.push(Flag::Interrupted { packets, over });
        }
        if self.came().lost() > TOLD_LOSS && !answer.flags.iter().any(|flag| matches!(flag, Flag::Lossy(_))) {
            answer.flags.push(Flag::Lossy(self.came().lost()));
        }
        answer
    }

    /// What trains pass at is no figure where losses leave it open whether that lasts: all that is
    /// known then is what came all the same.
    fn as_far_as_it_lasts(&self, mut answer: Estimate) -> Estimate {
        let has = |answer: &Estimate, of: fn(&Flag) -> bool| answer.flags.iter().any(of);
        if has(&answer, |flag| matches!(flag, Flag::Shaped { .. })) {
            return answer;
        }
        let held = self.carried.policed().filter(|_| self.came().outage().is_none());
        let held = held.filter(|rate| *rate < answer.rate.lo);
        if let Some(policed) = held {
            // Short trains passed, and what lasted was lost until less was sent.
            answer.rate.lo = policed;
            let is_told = has(&answer, |flag| *flag == Flag::Ambiguous);
            answer.flags.extend((!is_told).then_some(Flag::Ambiguous));
        }
        let is_shown = self.policing.is_shown();
        let peak = if answer.bound == Bound::AtLeast { answer.rate.lo } else { answer.rate.estimate };
        let lasts = self.policing.lasts().filter(|lasts| *lasts < LASTING * peak);
        match (answer.bound, lasts) {
            (Bound::AtMost, Some(_)) if is_shown => answer.flags.push(Flag::Policed { peak }),
            (Bound::None | Bound::AtLeast, Some(lasts)) if is_shown => {
                answer.flags.retain(|flag| *flag != Flag::Ambiguous);
                answer.flags.push(Flag::Policed { peak });
                (answer.rate.lo, answer.bound) = (lasts, Bound::AtLeast);
            }
            (Bound::None | Bound::AtLeast, Some(lasts)) if self.loses_much() => {
                (answer.rate.lo, answer.bound) = (answer.rate.lo.min(lasts), Bound::AtLeast);
            }
            _ => {}
        }
        let is_wide = answer.rate.hi > WIDE * answer.rate.lo && answer.rate.lo > LEAST_RATE;
        let is_told = has(&answer, |flag| *flag == Flag::Ambiguous);
        if answer.bound == Bound::None && is_wide && is_told && self.is_doubtful() {
            // Where packets are lost, what passed may not last, and nothing is known of the middle.
            // Otherwise the answer that fits best stays, with the interval of all.
            answer.bound = Bound::AtLeast;
        }
        if answer.bound == Bound::AtLeast {
            answer.rate.estimate = answer.rate.lo.min(answer.rate.estimate);
        }
        answer
    }

    /// Whether packets were lost, or a test of the answer came at less in the end.
    fn is_doubtful(&self) -> bool {
        self.came().lost() > 0.0 || self.method.as_ref().is_some_and(Estimator::may_not_last)
    }

    /// So much is lost, and not in one stretch, that it may be chance's or a policer's.
    fn loses_much(&self) -> bool {
        self.came().lost() > UNCERTAIN_LOSS && self.came().outage().is_none()
    }

    fn took(&self) -> Span {
        self.begin.map_or(Span::ZERO, |begin| self.now.since(begin))
    }

    /// That nothing came, or nothing any more.
    fn silence(&self) -> Option<NoFigure> {
        let Came { sent, arrived, silent, silent_volleys, trains, .. } = self.came();
        match (sent, arrived) {
            (0, _) if trains > 0 => Some(NoFigure::NotSent),
            (1.., 0) if self.has_come_before => Some(NoFigure::WentSilent { packets: silent.max(sent) }),
            (1.., 0) => Some(NoFigure::NothingCame { packets: sent }),
            _ if silent_volleys >= SILENT_VOLLEYS => Some(NoFigure::WentSilent { packets: silent }),
            // There was no time for another volley, and the last one was long.
            _ if self.over.is_some() && silent >= SILENT_PACKETS => {
                Some(NoFigure::WentSilent { packets: silent })
            }
            _ => None,
        }
    }

    /// That trains lose what comes behind their first packets. A policer drops the last ones, too,
    /// and that is no silence.
    fn policed(&self) -> Option<NoFigure> {
        let came = self.came().arrived > 0 && self.came().silent_volleys == 0;
        let lasts = self.policing.lasts().filter(|_| came && self.policing.is_shown())?;
        Some(NoFigure::Policed { lost: self.came().lost(), lasts })
    }

    /// The sentence that the path was gone for a while.
    fn interrupted(&self) -> Option<NoFigure> {
        self.came().outage().map(|it| NoFigure::Interrupted { packets: it.packets, over: it.over })
    }

    /// What kept the method from a figure, as far as that is certain.
    fn reason(&self) -> Option<NoFigure> {
        let Came { batched, trains, .. } = self.came();
        // A path that went silent is the reason of whatever else was found of it.
        if let Some(silence) = self.silence() {
            return Some(silence);
        }
        if self.over.is_none() {
            return Some(NoFigure::Stopped);
        }
        if let Some(policed) = self.policed() {
            return Some(policed);
        }
        if let Some(Over::Hopeless(why)) = self.over {
            return Some(why);
        }
        if self.came().lost() > MUCH_LOSS {
            return Some(self.interrupted().unwrap_or(NoFigure::TooLossy(self.came().lost())));
        }
        if let Some(slower) = self.slower() {
            return Some(slower);
        }
        let limit = self.instrument.time_limit;
        let enough = self.enough();
        let is_short = enough.is_some_and(|enough| enough > limit) || self.took() * 5 > limit * 4;
        if self.over == Some(Over::OutOfTime) || is_short {
            // More time than there was, at least.
            let enough = enough.map(|enough| enough.max(limit * 3 / 2));
            return Some(NoFigure::TooShort { carried: self.carried.fastest(), enough });
        }
        (batched * 2 > trains).then_some(NoFigure::Batched)
    }

    /// An estimate of the time limit with which the method would have had a figure: what its
    /// packets take at the load that is allowed, or at the rate at which tokens come if that is
    /// less, the round trips of its volleys, and a fifth more. It assumes that the path stays as
    /// first trains found it. It is a time and no rate: tokens come as they do with any limit, so
    /// whoever takes this time sends no more than 1.25 times what the path was seen to carry.
    fn enough(&self) -> Option<Span> {
        let load = self.max_load();
        let bits = f64::from(self.needs.packets) * self.sender.bits();
        let rate = (load * self.carried.fastest()?).min(tokens::FILL * self.carried.rate()?);
        let sending = Span::from_secs_f64(bits / rate);
        let rounds = self.instrument.rtt * i64::from(self.needs.rounds) * 2;
        Some((sending + rounds) * 6 / 5)
    }

    /// Share of what the path carries that the method may send on average.
    fn max_load(&self) -> f64 {
        match self.instrument.max_load {
            load if load.is_finite() => load.clamp(0.001, 1.0),
            _ => 0.1,
        }
    }

    /// The method keeps the load that is allowed by what first trains found. If the path has become
    /// far slower since, what it asks for is more than that: it waits until the part that left `at`
    /// is no more than the allowed share of what the path carries now. One slow volley is enough
    /// for that, and costs no more than this wait if the path is as fast as before by then.
    fn keep_load(&mut self, at: Mono) {
        // Behind a policer it is the share of what lasts, whatever the credit lets through.
        let is_uncertain = self.policing.is_shown() || self.loses_much();
        let policed = self.policing.lasts().filter(|_| is_uncertain);
        let slower = self.carried.slower().into_iter().chain(policed).reduce(f64::min);
        let Some(rate) = slower else { return };
        let takes = Span::from_secs_f64(self.part.bytes() as f64 * 8.0 / (rate * self.max_load()));
        let longest = if self.carried.fell_at().is_some() { takes } else { LONGEST_DOUBT };
        self.drained_at = self.drained_at.max(at + takes.min(longest));
    }

    /// The instrument for the method, now that something is known.
    fn measured(&self, now: Mono) -> Instrument {
        let used = self.begin.map_or(Span::ZERO, |begin| now.since(begin));
        let longest = self.tokens.depth(self.carried.fastest()) as u64;
        Instrument {
            largest_burst: self.instrument.largest_burst.min(longest),
            time_limit: (self.instrument.time_limit - used).or_zero(),
            carried: self.carried.fastest(),
            ..self.instrument.clone()
        }
    }

    /// When the method may begin: as soon as the first trains, of which nobody knew what share of
    /// the path they were, make no more than the load that is allowed. That must leave the method
    /// its time: where it would take more than a part of what is left, the load is above that.
    fn paid_at(&self, now: Mono) -> Mono {
        let (Some(begin), Some(rate)) = (self.begin, self.carried.fastest()) else { return now };
        let earned = Span::from_secs_f64(self.bytes as f64 * 8.0 / (rate * self.max_load()));
        let left = (begin + self.instrument.time_limit).since(now).or_zero();
        now + (begin + earned).since(now).or_zero().min(left / LONGEST_PAYING)
    }

    /// The first trains are over: is there a method for what they have shown?
    fn begin_method(&mut self, now: Mono) {
        let Some(build) = self.build.take() else { return };
        if let Some(rate) = self.carried.fastest() {
            let bytes = f64::from(self.needs.train) * f64::from(self.sender.length);
            if self.tokens.of_window(Some(rate)) * 1.01 < bytes {
                self.over = Some(Over::Hopeless(NoFigure::TooSlow(rate)));
                return;
            }
            let enough = self.enough();
            if enough.is_some_and(|enough| enough > self.instrument.time_limit * FAR_TOO_SHORT) {
                self.over = Some(Over::Hopeless(NoFigure::TooShort { carried: Some(rate), enough }));
                return;
            }
        } else {
            // Where nothing was sent, not even the first packets would have been back in time.
            let short = NoFigure::TooShort { carried: None, enough: None };
            let lossy = NoFigure::TooLossy(self.came().lost());
            let other = if self.came().trains == 0 { short } else { lossy };
            self.over = Some(Over::Hopeless(self.silence().unwrap_or(other)));
            return;
        }
        self.method = Some(build(&self.measured(now)));
    }

    /// When what is sent from `start` on is known of, if nothing is lost.
    fn known_at(&self, start: Mono, volley: &Volley) -> Mono {
        let rate = self.carried.rate().unwrap_or(UNKNOWN_RATE);
        let last = volley.trains.last().map_or(0, |train| u64::from(train.packets) * u64::from(train.length));
        let comes = Span::from_secs_f64(last as f64 * 8.0 / rate);
        // Where packets are lost, some of these will be, too.
        let loss = if self.came().lost() > FEW_LOST { self.patience.now() } else { self.patience.queue() };
        start + planned(volley, self.sender.fastest) + comes + self.instrument.rtt * 3 / 2 + loss + MARGIN
    }

    fn is_in_time(&self, start: Mono, volley: &Volley) -> bool {
        let begin = self.begin.unwrap_or(start);
        self.known_at(start, volley) <= begin + self.instrument.time_limit
    }

    /// The next part of what the method has asked for, and when.
    fn next_part(&mut self, now: Mono) -> Option<(Volley, Mono)> {
        let serving = self.serving.as_ref()?;
        let done = serving.report.trains.len();
        let mut start = now.max(self.drained_at);
        if done == 0 {
            start = start.max(serving.due);
        }
        let (rate, fastest) = (self.carried.rate(), self.sender.fastest);
        let mut tokens = self.tokens.clone();
        let mut trains: Vec<Train> = Vec::new();
        let mut at = start;
        let longest = if self.carried.slower().is_some() { Span::ZERO } else { LONGEST_PART };
        for train in &serving.volley.trains[done..] {
            let mut train = train.clone();
            train.rest = train.rest.or_zero();
            if trains.is_empty() && (done > 0 || train.rest > longest) {
                (start, at, train.rest) = (start + train.rest, at + train.rest, Span::ZERO);
            }
            let cut = tokens.cut(&train, rate, fastest);
            if cut < train.packets {
                shorten(&mut train, cut);
            }
            let lasts = duration(&train, f64::from(train.length) * 8.0, fastest);
            let waits = tokens.wait(at + train.rest, &train, lasts, rate);
            let is_first = trains.is_empty();
            if is_first {
                (start, at) = (start + waits, at + waits);
            } else {
                train.rest += waits;
            }
            let ends = at + train.rest + lasts;
            let is_long = ends.since(start) > longest;
            if is_long && !is_first {
                break;
            }
            tokens.spend(at + train.rest, &train, lasts, rate);
            at = ends;
            trains.push(train);
        }
        let part = Volley { trains };
        (!part.trains.is_empty() && self.is_in_time(start, &part)).then(|| {
            self.tokens = tokens;
            (part, start)
        })
    }

    fn ask(&mut self, volley: Volley, due: Mono) -> Step {
        self.bytes += volley.bytes();
        self.packets += volley.trains.iter().map(|train| u64::from(train.packets)).sum::<u64>();
        self.part = volley.clone();
        Step::Volley { volley, due }
    }

    /// A first train, or the end of them.
    fn next_scout(&mut self, now: Mono) -> Option<Step> {
        let depth = self.tokens.depth(self.carried.rate());
        let packets = self.scout.packets(self.carried.rate(), depth / f64::from(self.sender.length))?;
        let length = self.instrument.largest.max(1);
        let train = Train { packets, length, gaps: crate::Gaps::BackToBack, rest: Span::ZERO };
        let lasts = duration(&train, f64::from(length) * 8.0, self.sender.fastest);
        let carried = if self.scout.is_confirming() { self.carried.fastest() } else { self.carried.rate() };
        let rate = carried.unwrap_or(UNKNOWN_RATE);
        let begins = now.max(self.drained_at);
        // Of the first nobody knows what it costs: it is paid for afterwards.
        let waits = match self.came().trains {
            0 => Span::ZERO,
            _ => self.tokens.wait(begins, &train, lasts, Some(rate)),
        };
        let mut trains = vec![train.clone()];
        if self.scout.is_confirming() {
            let drains = Span::from_secs_f64(f64::from(packets) * self.sender.bits() * 1.2 / rate);
            trains.push(Train { rest: drains, ..train.clone() });
        }
        let volley = Volley { trains };
        // How long the first takes is not known either: on most paths it takes no time at all.
        let is_first = self.came().trains == 0 && self.instrument.time_limit > self.instrument.rtt;
        if !is_first && !self.is_in_time(begins + waits, &volley) {
            return None;
        }
        for train in &volley.trains {
            self.tokens.spend(begins + waits, train, lasts, Some(rate));
        }
        Some(self.ask(volley, begins + waits))
    }

    /// Hands what came of the method's volley over to it, with what did not leave.
    fn hand_over(&mut self, now: Mono) {
        let Some(Serving { volley, mut report, began_at, .. }) = self.serving.take() else { return };
        let took = began_at.map_or(Span::ZERO, |began_at| now.since(began_at));
        let missing = volley.trains.iter().skip(report.trains.len());
        let empty: Vec<TrainReport> = missing.map(not_sent).collect();
        report.trains.extend(empty);
        if let Some(method) = &mut self.method {
            method.take(now, &report, took);
        }
    }

    /// What this part says of loss, of the queue and of the path.
    fn note_passage(&mut self, now: Mono, report: &VolleyReport, took: Span) {
        self.carried.count(now, took, &self.part, report);
        self.policing.observe(&self.part, report);
        self.transits.observe(&self.part, report);
        self.levels.saw(&self.part, report);
        self.note_queue(now, report);
    }

    /// When the queue that this part has filled, or met, is empty again.
    fn note_queue(&mut self, now: Mono, report: &VolleyReport) {
        let rate = self.carried.rate().unwrap_or(UNKNOWN_RATE);
        let (mut waited, mut behind) = (Span::ZERO, 0);
        if let (Some(train), Some(asked)) = (report.trains.last(), self.part.trains.last()) {
            let last = train.arrivals.iter().map(|it| it.number + 1).max().unwrap_or(0);
            let left = train.sent.iter().flatten().count() as u64;
            behind = left.saturating_sub(u64::from(last)) * u64::from(asked.length);
            let delays = train.arrivals.iter().filter_map(|it| {
                let sent = train.sent.get(it.number as usize).copied().flatten()?;
                Some(it.at.saturating_sub(sent))
            });
            let (least, most) =
                delays.fold((i64::MAX, i64::MIN), |(least, most), it| (least.min(it), most.max(it)));
            waited = Span(most.saturating_sub(least)).or_zero().min(MOST_QUEUE);
        }
        // All that came has left the queue. What did not may still be in it.
        let behind = Span::from_secs_f64(behind as f64 * 8.0 / rate).min(MOST_QUEUE);
        if behind > Span::ZERO {
            let patience = self.patience.now();
            self.drained_at = now + (behind + waited - patience).or_zero();
        }
    }
}

impl Estimator for Careful {
    fn next(&mut self, now: Mono) -> Step {
        self.begin.get_or_insert(now);
        self.now = self.now.max(now);
        if self.over.is_some() {
            return Step::Done;
        }
        let mut begins = now;
        if self.build.is_some() {
            if let Some(step) = self.next_scout(now) {
                return step;
            }
            begins = self.paid_at(now);
            self.begin_method(begins);
        }
        if self.over.is_some() {
            return Step::Done;
        }
        if self.serving.is_none() {
            let Some(method) = &mut self.method else { return Step::Done };
            let Step::Volley { volley, due } = method.next(begins) else {
                self.over = Some(Over::Content);
                return Step::Done;
            };
            self.serving = Some(Serving { volley, due, report: VolleyReport::default(), began_at: None });
        }
        let Some((part, due)) = self.next_part(begins) else {
            self.hand_over(now);
            self.over = Some(Over::OutOfTime);
            return Step::Done;
        };
        self.ask(part, due)
    }

    fn take(&mut self, now: Mono, report: &VolleyReport, took: Span) {
        self.now = self.now.max(now);
        self.came_now.observe(report);
        self.patience.observe(report);
        if self.build.is_some() {
            let beyond = took - self.instrument.rtt * 3 / 2;
            let seen = self.scout.observe(&self.part, report, beyond);
            let came = report.trains.first().map_or(0, |train| train.arrivals.len() as u32);
            if let Some(rate) = seen {
                self.carried.saw_first(came, rate);
            }
            self.note_passage(now, report, took);
            if let Some(bytes) = self.scout.fits() {
                self.carried.forget_loss();
                self.tokens.fit(bytes);
            }
            return;
        }
        self.carried.observe(now, &self.part, report);
        self.note_passage(now, report, took);
        self.keep_load(Mono(now.0.saturating_sub(took.nanos().max(0).unsigned_abs())));
        let Some(serving) = &mut self.serving else { return };
        serving.began_at.get_or_insert(Mono(now.0.saturating_sub(took.nanos().max(0).unsigned_abs())));
        let done = serving.report.trains.len();
        for (train, of) in report.trains.iter().zip(&serving.volley.trains[done..]) {
            let mut train = train.clone();
            // What was cut off has not left.
            train.sent.resize(of.packets as usize, None);
            serving.report.trains.push(train);
        }
        if serving.report.trains.len() >= serving.volley.trains.len() {
            self.hand_over(now);
        }
    }

    fn answer(&self) -> Option<Estimate> {
        self.conclusion().ok()
    }

    /// Of trains that lived on a credit, or were dropped for the lack of it, it says nothing.
    fn tight_link(&self) -> Option<TightLink> {
        let is_policed = |answer: &Estimate| answer.flags.iter().any(|it| matches!(it, Flag::Policed { .. }));
        let known = !self.conclusion().is_ok_and(|answer| is_policed(&answer));
        self.method.as_ref().filter(|_| known)?.tight_link()
    }

    fn modes(&self) -> Vec<RateMode> {
        self.method.as_ref().map_or_else(Vec::new, Estimator::modes)
    }
}

/// Packets of a volley that left behind the last one that came.
fn behind_the_last(report: &VolleyReport) -> u64 {
    let mut silent = 0;
    for train in report.trains.iter().rev() {
        let last = train.arrivals.iter().map(|arrival| arrival.number as usize + 1).max();
        silent += train.sent.iter().skip(last.unwrap_or(0)).flatten().count() as u64;
        if last.is_some() {
            break;
        }
    }
    silent
}

impl Came {
    fn observe(&mut self, report: &VolleyReport) {
        let sent: u64 = report.trains.iter().map(|train| train.sent.iter().flatten().count() as u64).sum();
        let came: u64 = report.trains.iter().map(|train| train.arrivals.len() as u64).sum();
        self.sent += sent;
        self.arrived += came;
        self.trains += report.trains.len() as u32;
        if came > 0 {
            (self.silent, self.silent_volleys) = (behind_the_last(report), 0);
        } else if sent > 0 {
            self.silent += sent;
            self.silent_volleys += 1;
        }
        for train in &report.trains {
            self.observe_stretches(train);
            let first = train.arrivals.first().map_or(0, |it| it.at);
            let is_batched =
                train.arrivals.len() >= 3 && train.arrivals.iter().all(|it| (it.at - first).abs() < BATCH);
            self.batched += u32::from(is_batched);
        }
    }

    fn observe_stretches(&mut self, train: &TrainReport) {
        let mut came = vec![false; train.sent.len()];
        for arrival in &train.arrivals {
            if let Some(came) = came.get_mut(arrival.number as usize) {
                *came = true;
            }
        }
        for (sent, came) in train.sent.iter().zip(came).filter_map(|(sent, came)| Some(((*sent)?, came))) {
            if came {
                self.end_stretch();
                self.last_at = Some(sent);
            } else {
                let from = if self.losing.packets == 0 { sent } else { self.losing.from };
                let over = Span(sent.saturating_sub(from)).or_zero();
                let gone = Span(sent.saturating_sub(self.last_at.unwrap_or(from))).or_zero();
                self.losing = Stretch { packets: self.losing.packets + 1, from, over, gone };
            }
        }
    }

    /// Counts from nothing, and returns what was counted. What was going on is over: nothing is
    /// sent between turns, and that is no silence of the path.
    fn next_turn(&mut self) -> Self {
        let mut done = std::mem::take(self);
        done.end_stretch();
        (self.silent, self.silent_volleys) = (done.silent, done.silent_volleys);
        done
    }

    /// Both together; this is the later one.
    fn and(&self, before: &Self) -> Self {
        let is_longest = self.longest.packets >= before.longest.packets;
        Self {
            sent: self.sent + before.sent,
            arrived: self.arrived + before.arrived,
            batched: self.batched + before.batched,
            trains: self.trains + before.trains,
            gone: self.gone + before.gone,
            longest: if is_longest { self.longest } else { before.longest },
            ..*self
        }
    }

    /// The packets that were lost up to here are a stretch.
    fn end_stretch(&mut self) {
        if self.losing.packets > self.longest.packets {
            self.longest = self.losing;
        }
        if self.losing.gone >= SHORTEST_OUTAGE {
            self.gone += self.losing.packets;
        }
        self.losing = Stretch::default();
    }

    /// The longest stretch, where most of what was lost was lost in such: the path was gone for a
    /// while.
    fn outage(&self) -> Option<Stretch> {
        let lost = self.sent.saturating_sub(self.arrived);
        let is_most = self.gone * 4 >= lost * 3 && self.gone >= SILENT_PACKETS;
        (is_most && self.longest.gone >= SHORTEST_OUTAGE).then_some(self.longest)
    }

    /// Share of what left, 0..=1.
    fn lost(&self) -> f64 {
        self.sent.saturating_sub(self.arrived) as f64 / self.sent.max(1) as f64
    }
}

/// An answer that says something: no bound that every path keeps, no rate below nothing.
fn sound(mut answer: Estimate) -> Option<Estimate> {
    let rate = &mut answer.rate;
    if [rate.estimate, rate.lo, rate.hi].iter().any(|value| value.is_nan()) || rate.hi <= LEAST_RATE {
        return None;
    }
    rate.lo = rate.lo.max(0.0);
    match answer.bound {
        Bound::AtLeast if rate.lo <= LEAST_RATE => None,
        Bound::AtMost if !rate.hi.is_finite() => None,
        Bound::None if !rate.hi.is_finite() && rate.lo <= LEAST_RATE => None,
        // Several answers fit, of which this one fits best.
        Bound::None if rate.estimate > LEAST_RATE && answer.flags.contains(&Flag::Ambiguous) => Some(answer),
        // All that is known is how much it is at most.
        Bound::None if rate.lo <= LEAST_RATE => {
            answer.bound = Bound::AtMost;
            rate.estimate = if rate.estimate <= LEAST_RATE { rate.hi } else { rate.estimate };
            Some(answer)
        }
        Bound::AtMost if rate.estimate <= LEAST_RATE => {
            rate.estimate = rate.hi;
            Some(answer)
        }
        _ => Some(answer),
    }
}

/// A train that does not leave.
fn not_sent(train: &Train) -> TrainReport {
    TrainReport { sent: vec![None; train.packets as usize], arrivals: Vec::new() }
}

fn shorten(train: &mut Train, packets: u32) {
    train.packets = packets.max(1);
    if let crate::Gaps::Each(gaps) = &mut train.gaps {
        gaps.truncate(train.packets as usize - 1);
    }
}

fn planned(volley: &Volley, fastest: f64) -> Span {
    let one = |train: &Train| train.rest.or_zero() + duration(train, f64::from(train.length) * 8.0, fastest);
    volley.trains.iter().map(one).sum()
}

/// A volley that takes longer is sent in parts: what a part was sent for may have become far less
/// meanwhile, and only its report says so.
const LONGEST_PART: Span = Span::from_secs(2);
/// One slow volley costs no more than that if the path is as fast as before.
const LONGEST_DOUBT: Span = Span::from_secs(10);
/// Part of the time that is left which may be spent on waiting until first trains are paid for.
const LONGEST_PAYING: i64 = 8;
/// Times what the path carries above which a figure is not of this path.
const ABOVE_ALL: f64 = 1.25;
/// bit/s of a path of which nothing has come yet.
const UNKNOWN_RATE: f64 = 2e4;
/// For the last packet, and for the hosts.
const MARGIN: Span = Span::from_millis(20);
/// A queue that holds more than that is waited for no longer.
const MOST_QUEUE: Span = Span::from_secs(5);
/// Volleys of which nothing came after others: loss alone would hardly have taken them.
const SILENT_VOLLEYS: u32 = 2;
/// So many packets in a row, up to the end.
const SILENT_PACKETS: u64 = 16;
/// Packets in a row that are lost over less time may have met a queue that was full, or a policer.
const SHORTEST_OUTAGE: Span = Span::from_millis(50);
/// Loss above this keeps trains from coming whole.
const MUCH_LOSS: f64 = 0.1;
/// Loss above this leaves no lower end where a method sees none.
const BLURRING_LOSS: f64 = 0.05;
/// Loss above this may be chance's or a policer's: what lasts is not what trains pass at.
const UNCERTAIN_LOSS: f64 = 0.15;
/// What came between losses is the figure's rate if it is no less than this of it.
const LASTING: f64 = 0.7;
/// Times its lower end at which the upper end of a doubtful interval leaves nothing but a bound.
const WIDE: f64 = 4.0;
/// Loss above this is said with every figure.
const TOLD_LOSS: f64 = 0.1;
/// bit/s; a rate below is nothing.
const LEAST_RATE: f64 = 1.0;
/// ns; packets that come closer than that came at once.
const BATCH: i64 = 1_000;
/// Times the limit that a method would need, beyond which it is not begun.
const FAR_TOO_SHORT: i64 = 8;
/// Share of lost packets from which on the next volley is likely to lose one.
const FEW_LOST: f64 = 0.005;

#[cfg(test)]
mod tests;
