//! What a test runs, and for how long: from the round trips and the rates that it found, and from
//! the time that is left.
//!
//! docs/methods/planning.md has the rules with their reasons. Everything here is arithmetic: the
//! same path and the same request give the same plan. **Biased**: a path whose rate is not known
//! yet is taken for one of [`USUAL_RATE`], so slow start is given too little time on a faster path;
//! the transfer then says that it was still speeding up, and the next one gets more.

use netaware_stats::patience;
use netaware_units::{BitRate, SendRate, Span};

use crate::queueing::served_every;

/// What a person asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask {
    pub(super) rounds: u16,
    pub(super) streams: u16,
    pub(super) tcp: bool,
    pub(super) udp: bool,
}

impl Ask {
    /// What of it this path can have.
    fn on(self, known: &PathKnown) -> Self {
        Self { udp: self.udp && known.has_udp, ..self }
    }
}

/// What is known of the path of one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PathKnown {
    /// Without load.
    pub(super) round_trip: Span,
    /// What the faster direction was seen to carry.
    pub(super) rate: Option<SendRate>,
    /// TCP was still speeding up, so the path can carry more than `rate`.
    pub(super) is_lower_bound: bool,
    /// By how much the end of the last TCP transfer came after its plan: mostly a queue that
    /// drained. Absent before the first.
    pub(super) drain: Option<Span>,
    /// The same of the last transfer alone, whether it is believed or not.
    pub(super) last_drain: Option<Span>,
    /// By how much phases ended later than their durations and a few round trips explain: a lost
    /// segment of an exchange costs more than a round trip.
    pub(super) late: Span,
    /// How long the last TCP transfer took to warm up, with one stream and with several.
    pub(super) warm_up: [Option<WarmUp>; 2],
    /// A flow of datagrams is open: without one there is nothing that takes time for UDP.
    pub(super) has_udp: bool,
}

/// One direction of one version's turn: what is run of it, and what is known of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) known: PathKnown,
    pub(super) extent: Extent,
}

/// What a transfer showed of how long TCP takes to fill the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WarmUp {
    /// It was over after that.
    Took(Span),
    /// It was not over when the transfer ended, which lasted so long.
    NotOver(Span),
}

impl PathKnown {
    pub(super) fn new(round_trip: Span) -> Self {
        Self {
            round_trip,
            rate: None,
            is_lower_bound: false,
            drain: None,
            last_drain: None,
            late: Span::ZERO,
            warm_up: [None; 2],
            has_udp: true,
        }
    }

    fn at_most(self, round_trip: Span) -> Self {
        Self { round_trip: self.round_trip.min(round_trip), ..self }
    }
}

/// How much of a turn in one direction is run. What saves most and costs a reader least goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Extent {
    /// TCP with several streams alone.
    SeveralStreams,
    /// And UDP.
    WithoutOneStream,
    /// And TCP with one stream: everything.
    Whole,
}

/// One transfer of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    OneStream,
    SeveralStreams,
    Udp,
}

impl Phase {
    /// Shares of a turn. Several streams disturb each other longest before their sum is steady;
    /// UDP's gaps and losses settle sooner than TCP's rate.
    fn share(self) -> i64 {
        match self {
            Self::OneStream => 25,
            Self::SeveralStreams => 55,
            Self::Udp => 20,
        }
    }

    /// The shortest that says something.
    fn least(self, ask: Ask, known: &PathKnown) -> Span {
        match self {
            Self::OneStream => tcp_least(known, 1),
            Self::SeveralStreams => tcp_least(known, ask.streams),
            Self::Udp => (known.round_trip * 2).clamp(SHORTEST, LONGEST_LEAST_UDP),
        }
    }

    /// As long as it must be to say more than that TCP was still speeding up.
    fn well(self, ask: Ask, known: &PathKnown) -> Span {
        match self {
            Self::OneStream => tcp_well(known, 1),
            Self::SeveralStreams => tcp_well(known, ask.streams),
            Self::Udp => self.least(ask, known),
        }
    }

    /// As long as it must be to add something to an earlier one of its kind. One that warmed up has
    /// shown a rate, by which the least is enough.
    fn useful(self, ask: Ask, known: &PathKnown) -> Span {
        let Some(streams) = self.streams(ask) else { return self.least(ask, known) };
        match known.warm_up[kind(streams)] {
            Some(WarmUp::NotOver(lasted)) => self.least(ask, known).max(lasted * 3 / 2),
            Some(WarmUp::Took(_)) => self.least(ask, known).max(SHOWS_WARM_UP),
            None => self.well(ask, known),
        }
    }

    /// Of TCP.
    fn streams(self, ask: Ask) -> Option<u16> {
        match self {
            Self::OneStream => Some(1),
            Self::SeveralStreams => Some(ask.streams),
            Self::Udp => None,
        }
    }

    /// What is missing in this duration for twice the time of a transfer of this kind that was
    /// still warming up when it ended.
    pub(super) fn prolonged(self, ask: Ask, known: &PathKnown, duration: Span) -> Span {
        let Some(streams) = self.streams(ask) else { return Span::ZERO };
        match known.warm_up[kind(streams)] {
            Some(WarmUp::NotOver(lasted)) => (lasted * 2 - duration).or_zero(),
            _ => Span::ZERO,
        }
    }

    /// What people call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OneStream => "TCP with one stream",
            Self::SeveralStreams => "TCP with several streams",
            Self::Udp => "UDP",
        }
    }

    /// What is added to it by opening, attaching, starting and ending.
    pub(super) fn overhead(self, known: &PathKnown) -> Span {
        let exchanges = TRANSFER_OVERHEAD + known.round_trip * TRANSFER_ROUND_TRIPS;
        match self {
            Self::OneStream | Self::SeveralStreams => {
                exchanges + known.drain.unwrap_or(known.round_trip).max(known.late)
            }
            Self::Udp => exchanges + patience::after_the_end(known.round_trip) + known.late,
        }
    }
}

impl Extent {
    /// The transfers of a turn in one direction, in order.
    pub(super) fn phases(self, ask: Ask) -> Vec<Phase> {
        let all = [
            (Phase::OneStream, ask.tcp && self == Self::Whole),
            (Phase::SeveralStreams, ask.tcp),
            // Without TCP there is nothing else to leave UDP out for.
            (Phase::Udp, ask.udp && (self > Self::SeveralStreams || !ask.tcp)),
        ];
        all.into_iter().filter_map(|(phase, is_run)| is_run.then_some(phase)).collect()
    }

    /// What is run in both directions of one version in one round, at the least.
    fn cost(self, ask: Ask, known: &PathKnown) -> Span {
        self.direction_cost(ask, known) * 2
    }

    /// The same in one direction.
    pub(super) fn direction_cost(self, ask: Ask, known: &PathKnown) -> Span {
        self.direction(ask, known, |phase| phase.least(ask, known))
    }

    /// The same where each transfer is long enough to warm up.
    fn direction_well(self, ask: Ask, known: &PathKnown) -> Span {
        self.direction(ask, known, |phase| phase.well(ask, known))
    }

    /// The same where each transfer adds something to an earlier one of its kind.
    fn direction_useful(self, ask: Ask, known: &PathKnown) -> Span {
        self.direction(ask, known, |phase| phase.useful(ask, known))
    }

    fn direction(self, ask: Ask, known: &PathKnown, lasts: impl Fn(Phase) -> Span) -> Span {
        self.phases(ask.on(known)).into_iter().map(|phase| lasts(phase) + phase.overhead(known)).sum()
    }

    /// The next smaller one.
    pub(super) fn less(self) -> Self {
        if self == Self::Whole { Self::WithoutOneStream } else { Self::SeveralStreams }
    }

    /// What a reader misses.
    pub(super) fn left_out(self, ask: Ask) -> Option<&'static str> {
        match self {
            Self::Whole => None,
            _ if !ask.tcp => None,
            Self::SeveralStreams if ask.udp => Some("TCP with one stream, UDP"),
            Self::WithoutOneStream | Self::SeveralStreams => Some("TCP with one stream"),
        }
    }
}

/// What will be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) rounds: u16,
    pub(super) extent: Extent,
    /// Blocks of idle latency per version.
    pub(super) blocks: u16,
    /// From now on, at the least.
    pub(super) cost: Span,
    /// From now on, by plan: what is left over makes transfers longer.
    pub(super) takes: Span,
    /// From now on, if everything that was asked for were run.
    pub(super) whole: Span,
    /// The same on a path whose queues fill and which loses a segment now and then.
    pub(super) enough: Span,
}

/// Chooses how much fits `left`: fewer rounds before fewer phases, and one round of transfers that
/// are long enough before two of transfers that never leave slow start. One round over TCP with
/// several streams is always run, however long it takes. On short paths phases cost so little that
/// one round of all of them is run whatever the budget.
pub(super) fn plan(ask: Ask, paths: &[PathKnown], left: Span) -> Plan {
    let blocks = idle_blocks(paths, left);
    let idle = idle_time(paths, blocks);
    let rounds_cost = |rounds: u16, extent: Extent| -> Span {
        paths.iter().map(|known| extent.cost(ask, known)).sum::<Span>() * i64::from(rounds)
    };
    let rounds_well = |rounds: u16| -> Span {
        let each: Span = paths.iter().map(|known| Extent::Whole.direction_well(ask, known) * 2).sum();
        each * i64::from(rounds)
    };
    let near: Vec<PathKnown> = paths.iter().map(|known| known.at_most(NEAR)).collect();
    let near_whole: Span = near.iter().map(|known| Extent::Whole.cost(ask, known)).sum();
    let allowed = left.max(idle_time(&near, blocks) + near_whole);
    let asked = ask.rounds.max(1);
    let by_rounds = (1..=asked).rev().map(|rounds| (rounds, Extent::Whole));
    let by_phases = [(1, Extent::WithoutOneStream), (1, Extent::SeveralStreams)];
    let mut choices = by_rounds.chain(by_phases);
    let fits = choices.find(|(rounds, extent)| match rounds {
        1 => idle + rounds_cost(1, *extent) <= allowed,
        _ => idle + rounds_well(*rounds) <= left,
    });
    let (rounds, extent) = fits.unwrap_or((1, Extent::SeveralStreams));
    let cost = idle + rounds_cost(rounds, extent);
    let fills = ask.tcp || ask.udp;
    let whole = idle_time(paths, MOST_BLOCKS) + rounds_well(asked);
    let of_tcp = Extent::Whole.phases(ask).iter().filter(|phase| phase.streams(ask).is_some()).count();
    let ends = i64::try_from(of_tcp * 2 * paths.len()).unwrap_or(i64::MAX) * i64::from(asked);
    Plan {
        rounds,
        extent,
        blocks,
        cost,
        takes: if fills { left.max(cost) } else { cost },
        whole,
        enough: whole + whole / 10 + USUAL_END * ends,
    }
}

/// The durations of the transfers of the first of the steps that are `ahead`; what `left` exceeds
/// their least cost by is shared out evenly among them.
pub(super) fn durations(ask: Ask, ahead: &[Step], left: Span) -> Vec<(Phase, Span)> {
    let Some(Step { known, extent }) = ahead.first() else { return Vec::new() };
    let spare = (left - needed(ask, ahead)).or_zero() / i64::try_from(ahead.len()).unwrap_or(1);
    let phases = extent.phases(ask.on(known));
    let least: Vec<Span> = phases.iter().map(|phase| phase.least(ask, known)).collect();
    let mut pot = least.iter().copied().sum::<Span>() + spare;
    // Where there is time for it, each is long enough to warm up, or to add something.
    let of = |lasts: &dyn Fn(&Phase) -> Span| phases.iter().map(lasts).collect::<Vec<Span>>();
    let wanted = [of(&|phase| phase.well(ask, known)), of(&|phase| phase.useful(ask, known))];
    let fits = |wanted: &Vec<Span>| wanted.iter().copied().sum::<Span>() <= pot;
    let least = wanted.into_iter().find(fits).unwrap_or(least);
    let mut given = least.clone();
    // A phase whose share is below its least keeps its least; the others share the rest.
    let mut sharing: Vec<usize> = (0..phases.len()).collect();
    loop {
        let shares: i64 = sharing.iter().map(|index| phases[*index].share()).sum();
        let share = |index: usize| pot * phases[index].share() / shares.max(1);
        let short = sharing.iter().position(|index| share(*index) < least[*index]);
        let Some(short) = short else {
            for index in &sharing {
                given[*index] = share(*index);
            }
            break;
        };
        pot -= least[sharing.remove(short)];
    }
    phases.into_iter().zip(given).collect()
}

/// Whether all paths are so short that leaving out phases saves little.
pub(super) fn are_near(ahead: &[Step]) -> bool {
    ahead.iter().all(|step| step.known.round_trip <= NEAR)
}

/// How many transfers the steps have.
pub(super) fn transfers(ask: Ask, ahead: &[Step]) -> usize {
    ahead.iter().map(|step| step.extent.phases(ask.on(&step.known)).len()).sum()
}

/// What is ahead takes at the least.
pub(super) fn needed(ask: Ask, ahead: &[Step]) -> Span {
    ahead.iter().map(|step| step.extent.direction_cost(ask, &step.known)).sum()
}

/// The same where each transfer is long enough to warm up.
pub(super) fn needed_well(ask: Ask, ahead: &[Step]) -> Span {
    ahead.iter().map(|step| step.extent.direction_well(ask, &step.known)).sum()
}

/// What is run of the rounds behind the present one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Later {
    pub(super) rounds: usize,
    /// Of the first of them. Where it is not whole there is no other.
    pub(super) extent: Extent,
}

/// How much of the `later` rounds, of which each has the paths of its steps, fits `left` behind the
/// steps `before` them: as many as add something to what has been measured, or a part of one. One
/// that is about to begin, so that there is nothing before it, is run where TCP with several
/// streams fits at all: the time would be wasted.
pub(super) fn later_rounds(ask: Ask, before: &[Step], later: &[Vec<PathKnown>], left: Span) -> Later {
    let spare = left - needed(ask, before);
    let cost = |rounds: usize, of: &dyn Fn(&PathKnown) -> Span| -> Span {
        later.iter().take(rounds).flatten().map(of).sum()
    };
    let whole = (1..=later.len()).rev().map(|rounds| (rounds, Extent::Whole));
    let parts = [Extent::WithoutOneStream, Extent::SeveralStreams].map(|extent| (1, extent));
    let is_useful = |(rounds, extent): &(usize, Extent)| {
        cost(*rounds, &|known| extent.direction_useful(ask, known)) <= spare
    };
    let mut choices = whole.chain(parts.into_iter().filter(|_| !later.is_empty()));
    if let Some((rounds, extent)) = choices.find(is_useful) {
        return Later { rounds, extent };
    }
    let least = cost(1, &|known| Extent::SeveralStreams.direction_cost(ask, known));
    let is_run = before.is_empty() && !later.is_empty() && least <= spare;
    Later { rounds: usize::from(is_run), extent: Extent::SeveralStreams }
}

/// How much of a round fits `left` that nobody planned, with the paths of its steps: it has to add
/// something to what has been measured.
pub(super) fn another_round(ask: Ask, paths: &[PathKnown], left: Span) -> Option<Extent> {
    let all = [Extent::Whole, Extent::WithoutOneStream, Extent::SeveralStreams];
    let fits =
        |extent: &Extent| paths.iter().map(|known| extent.direction_useful(ask, known)).sum::<Span>() <= left;
    all.into_iter().find(fits)
}

/// By how much TCP needs longer to warm up than was planned, over all paths, with the longest that
/// was seen and what had been planned of it; `None` where it does not.
pub(super) fn slower_warm_up(
    ask: Ask,
    now: &[PathKnown],
    planned: &[PathKnown],
) -> Option<(Span, Span, Span)> {
    let mut over = Span::ZERO;
    let mut longest: Option<(Span, Span)> = None;
    for (now, planned) in now.iter().zip(planned) {
        for phase in [Phase::OneStream, Phase::SeveralStreams] {
            let Some(streams) = phase.streams(ask) else { continue };
            let Some(WarmUp::Took(took) | WarmUp::NotOver(took)) = now.warm_up[kind(streams)] else {
                continue;
            };
            let was_planned =
                slow_start(planned, streams) + planned.round_trip * (FLAT_ROUNDS + COUNTED_ROUNDS);
            over += (phase.useful(ask, now) - phase.well(ask, planned)).or_zero();
            if took > was_planned && longest.is_none_or(|(longest, _)| took > longest) {
                longest = Some((took, was_planned));
            }
        }
    }
    let (took, planned) = longest.filter(|_| over > Span::ZERO)?;
    Some((over, took, planned))
}

/// What is said of the end of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Promise {
    /// When it is to be over by plan, since its beginning.
    pub(super) ends: Span,
    /// Until when transfers are made to fill it, since its beginning. The end may be put off
    /// because something took long; what proves to be left of that time then is nobody's wish.
    pub(super) fills: Span,
    /// What was announced, with a margin that transfers leave.
    pub(super) announced: Span,
    /// By how much that may be exceeded.
    pub(super) tolerance: Span,
    /// How often it was said that the test takes longer than asked for.
    pub(super) said: u8,
}

/// What to do about what is still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// It is in time.
    Fits,
    /// That it takes longer is announced, and this is promised instead.
    Takes(Promise),
    /// What is next is left out.
    TooLong,
}

impl Promise {
    /// As it stands once a phase has announced by itself that all of it takes `total`.
    pub(super) fn or_announced(self, total: Span) -> Self {
        if total <= self.longest() {
            return self;
        }
        Self { announced: total, said: self.said + 1, ..self }
    }

    /// What nobody minds.
    fn longest(&self) -> Span {
        self.ends.max(self.announced) + self.tolerance
    }

    /// Whether what is still to come is in time.
    pub(super) fn holds(&self, done: Span, rest: Span) -> bool {
        done + rest <= self.longest()
    }

    /// Whether what is still to come, `rest` by plan, is in time; it may be `late` by as much as
    /// transfers so far have been. A time that was announced once is
    /// believed: the second one has a quarter of the rest in hand. There is a third one only for
    /// what a test must not lack, and not for what `may_be_left_out`.
    pub(super) fn judge(self, done: Span, rest: Span, late: Span, may_be_left_out: bool) -> Rest {
        match () {
            () if self.holds(done, rest) => Rest::Fits,
            () if self.said < MAX_SAID || !may_be_left_out => {
                let announced = done + rest * 5 / 4 + late;
                Rest::Takes(Self { ends: done + rest, announced, said: self.said + 1, ..self })
            }
            () => Rest::TooLong,
        }
    }
}

/// By how much each phase will be late, as far as setting up has shown, which took so long: lost
/// segments of its exchanges cost as much in those of a transfer. What hosts and the search for the
/// MTU vary by is not counted.
pub(super) fn late_after_set_up(paths: &[PathKnown], took: Span) -> Span {
    let over = (took - set_up(paths) * 3 / 2).or_zero() / i64::try_from(paths.len().max(1)).unwrap_or(1);
    (over * TRANSFER_ROUND_TRIPS / SET_UP_ROUND_TRIPS).min(MOST_LATE_UNSEEN)
}

/// What a UDP stream took beyond its duration that its exchanges do not explain.
pub(super) fn late(known: &PathKnown, over: Span) -> Span {
    (over - Phase::Udp.overhead(&PathKnown { late: Span::ZERO, ..*known })).or_zero()
}

/// Where the warm-up of a transfer with so many streams is in [`PathKnown::warm_up`].
pub(super) fn kind(streams: u16) -> usize {
    usize::from(streams > 1)
}

/// The part of what a TCP transfer took beyond its duration that its exchanges do not explain.
fn drain(known: &PathKnown, over: Span) -> Span {
    (over - TRANSFER_OVERHEAD - known.round_trip * TRANSFER_ROUND_TRIPS).or_zero()
}

/// What the ends of further transfers are taken for, one having taken `over` beyond its duration: a
/// lost segment costs one transfer much and the next one nothing, so that more than a second, or
/// ten round trips, is believed only when it was seen twice in a row. Returns whether it was.
pub(super) fn learn_drain(known: &mut PathKnown, over: Span) -> bool {
    let seen = drain(known, over);
    let usual = MOST_LATE_UNSEEN.max(known.round_trip * USUAL_DRAIN_ROUND_TRIPS);
    let credible = usual.max(known.last_drain.unwrap_or_default());
    let before = known.drain.unwrap_or_default() / 2;
    known.drain = Some(seen.min(credible).max(before));
    known.last_drain = Some(seen);
    seen <= credible
}

/// The time that TCP needs to fill a path: from the initial window on the window doubles in each
/// round trip until it holds the bandwidth-delay product (RFC 5681 §3.1, RFC 6928).
pub(super) fn slow_start(known: &PathKnown, streams: u16) -> Span {
    let rate = match known.rate {
        None => USUAL_RATE,
        Some(rate) if known.is_lower_bound => rate.bit_rate().percent(BOUND_PERCENT),
        Some(rate) => rate.bit_rate(),
    };
    let product = (f64_of(rate) / 8.0 * known.round_trip.or_zero().secs_f64()).min(LARGEST_WINDOW);
    let windows = product / (INITIAL_WINDOW * f64::from(streams.max(1)));
    let doublings = windows.max(1.0).log2().ceil() as i64;
    known.round_trip.or_zero() * doublings
}

/// Slow start, the rounds that show its end, and some that count.
fn tcp_least(known: &PathKnown, streams: u16) -> Span {
    SHORTEST.max(slow_start(known, streams) + known.round_trip.or_zero() * (FLAT_ROUNDS + COUNTED_ROUNDS))
}

/// The same with a margin: no congestion control doubles in each round trip up to the end of slow
/// start. What an earlier transfer showed counts for more: after its warm-up as much again is
/// measured, and one that was not over takes twice as long the next time.
fn tcp_well(known: &PathKnown, streams: u16) -> Span {
    let rounds = known.round_trip.or_zero() * (FLAT_ROUNDS + COUNTED_ROUNDS);
    let by_rule = (slow_start(known, streams) + rounds) * 2;
    let seen = match known.warm_up[kind(streams)] {
        Some(WarmUp::Took(time) | WarmUp::NotOver(time)) => time * 2,
        None => Span::ZERO,
    };
    tcp_least(known, streams).max(by_rule).max(seen).max(SHOWS_WARM_UP)
}

fn f64_of(rate: BitRate) -> f64 {
    rate.0 as f64
}

/// Blocks of idle latency per version: as many as have their round trips within a tenth of what is
/// left.
pub(super) fn idle_blocks(paths: &[PathKnown], left: Span) -> u16 {
    let each: Span = paths.iter().map(|known| known.round_trip.or_zero()).sum();
    let fit = left.or_zero() / IDLE_PART;
    let blocks = fit.0 / each.0.max(1);
    u16::try_from(blocks.clamp(1, i64::from(MOST_BLOCKS))).unwrap_or(MOST_BLOCKS)
}

pub(super) fn idle_time(paths: &[PathKnown], blocks: u16) -> Span {
    let exchanges = i64::from(blocks) + i64::from(empties_queues(blocks));
    // Requests are datagrams.
    let paths = paths.iter().filter(|known| known.has_udp);
    paths.map(|known| IDLE_SENDING + known.round_trip.or_zero() * exchanges).sum()
}

/// Whether the first of so many blocks waits for queues to be empty. Where there are many, those
/// that are measured later show the path without a queue.
pub(super) fn empties_queues(blocks: u16) -> bool {
    blocks < MOST_BLOCKS
}

/// What everything before the first block takes from the connection on: the reservation, the echo
/// flow and the search for the MTU, one version after the other.
pub(super) fn set_up(paths: &[PathKnown]) -> Span {
    paths.iter().map(|known| SET_UP + known.round_trip.or_zero() * SET_UP_ROUND_TRIPS).sum()
}

/// The rhythm of idle requests: careful at first, closer with each block that shows no queue of its
/// own, so that an unknown path is never filled by what is to measure it idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IdleRhythm {
    spacing: Span,
    asked: u64,
    is_closing_up: bool,
    /// The closest spacing that the path answered without a queue, or the one that it came down to
    /// afterwards.
    carried: Option<Span>,
    /// The distance at which the path let single requests through that were right behind each
    /// other.
    served: Option<Span>,
}

/// One block of idle requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) count: u64,
    pub(super) spacing: Span,
}

impl IdleRhythm {
    pub(super) fn new() -> Self {
        Self { spacing: FIRST_SPACING, asked: 0, is_closing_up: true, carried: None, served: None }
    }

    /// Before the first block, the path let single requests through at this distance, and no
    /// closer. The first block leaves half of the path to the pings of the sessions: all requests
    /// of a block may be on their way before the first answer comes.
    pub(super) fn begin_at(&mut self, served: Span) {
        let fits = (served * 2).min(LONGEST_IDLE_SPACING).max(served * 5 / 4);
        self.served = Some(served);
        self.spacing = self.spacing.max(fits);
    }

    /// The time that a request takes to pass the path, where it is known to be a slow one.
    pub(super) fn slowly_served(&self) -> Option<Span> {
        self.served.filter(|served| *served * 2 > FIRST_SPACING)
    }

    /// The next block, `ahead` being how many there are with it.
    pub(super) fn next(&self, ahead: u16, blocks: u16) -> Block {
        let ahead = u64::from(ahead.max(1));
        let fair = (IDLE_REQUESTS.saturating_sub(self.asked)).div_ceil(ahead);
        let time = IDLE_SENDING / i64::from(blocks.max(1));
        let fit = (time.0 / self.spacing.0.max(1)).max(3).cast_unsigned();
        // At the closest spacing the count is what was promised; before, the time is.
        let count = if self.spacing <= IDLE_SPACING { fair } else { fair.min(fit) };
        Block { count: count.max(1), spacing: self.spacing }
    }

    /// Takes note of a block's round trips, in nanoseconds in the order sent.
    pub(super) fn observe(&mut self, block: Block, rtts_ns: &[f64]) {
        self.asked += block.count;
        if let Some(served) = served_every(block.spacing, block.count, rtts_ns) {
            self.spacing = (block.spacing * 2).max(served * 5 / 4).min(LONGEST_IDLE_SPACING).max(served);
            self.is_closing_up = false;
            self.has_fallen_to(served);
            return;
        }
        if rtts_ns.len() as u64 * 10 < block.count * 9 {
            // Where nothing came at all, the path was out, which says nothing of its rate.
            let came = i64::try_from(rtts_ns.len()).unwrap_or(i64::MAX);
            if came > 0 {
                self.has_fallen_to(block.spacing * block.count.cast_signed() / came);
            }
            return;
        }
        self.carried = Some(self.carried.map_or(block.spacing, |carried| carried.min(block.spacing)));
        if self.is_closing_up {
            let closest = self.slowly_served().map_or(IDLE_SPACING, |served| served * 5 / 4);
            self.spacing = (block.spacing * 2 / 5).max(closest);
        }
    }

    /// The path carries requests no closer than this by now, whatever it carried before.
    fn has_fallen_to(&mut self, spacing: Span) {
        self.carried = self.carried.map(|carried| carried.max(spacing));
    }

    /// The payload rate that idle requests were carried at, both ways.
    pub(super) fn carried(&self, payload: u32) -> Option<SendRate> {
        let spacing = self.carried?;
        let bits = i64::from(payload) * 8 * 1_000_000_000 / spacing.0.max(1);
        SendRate::new(BitRate(bits.max(0).cast_unsigned()))
    }
}

/// What a UDP stream of the test runs at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UdpRate {
    /// At this payload rate.
    At(SendRate),
    /// It is left out, for this reason.
    LeftOut(&'static str),
}

/// What is known of a direction when its UDP stream is due.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Carried {
    /// What a person typed.
    pub(super) typed: Option<SendRate>,
    /// TCP was run in this direction.
    pub(super) had_tcp: bool,
    /// What TCP carried per second once it had warmed up.
    pub(super) tcp: Option<SendRate>,
    /// What TCP carried per second over all of its time.
    pub(super) tcp_mean: Option<SendRate>,
    /// What was received per second of an earlier UDP stream that lost a tenth or more.
    pub(super) lossy_udp: Option<SendRate>,
    /// What idle requests were carried at.
    pub(super) echoes: Option<SendRate>,
}

/// The payload rate of a UDP stream: 80 % of what TCP was seen to carry in this direction, or a
/// careful one that was seen to be carried. Never more than was seen, unless a person typed it: a
/// stream that does not listen to losses harms everybody on a path that it overfills.
pub(super) fn udp_rate(carried: &Carried, datagram: Datagram) -> UdpRate {
    if let Some(typed) = carried.typed {
        return UdpRate::At(typed);
    }
    match (carried.had_tcp, carried.tcp.or(carried.tcp_mean), carried.echoes) {
        (_, Some(seen), _) => {
            let share = datagram.share_of(seen);
            UdpRate::At(carried.lossy_udp.map_or(share, |received| share.min(received)))
        }
        (true, None, _) => UdpRate::LeftOut(
            "TCP carried nothing in this direction, so no rate is known that would not overfill the path; \
             -b gives one",
        ),
        (false, None, Some(seen)) => UdpRate::At(seen.min(CAREFUL_RATE)),
        (false, None, None) => UdpRate::LeftOut(
            "nothing was seen to be carried in this direction, so no rate is known that would not overfill the \
             path; -b gives one",
        ),
    }
}

/// How long the datagrams of a stream are, and what IP and UDP add.
#[derive(Debug, Clone, Copy)]
pub(super) struct Datagram {
    pub(super) payload: u32,
    pub(super) headers: u32,
}

impl Datagram {
    /// 80 % of what TCP carried, both counted as a link counts them: short datagrams have more
    /// headers than TCP's segments.
    fn share_of(self, tcp: SendRate) -> SendRate {
        let share = tcp.percent(UDP_PERCENT);
        let (payload, whole) = (u128::from(self.payload), u128::from(self.payload + self.headers));
        let on_link = u128::from(share.bit_rate().0) * SEGMENT_ON_LINK / SEGMENT;
        let payload_rate = u64::try_from(on_link * payload / whole.max(1)).unwrap_or(u64::MAX);
        share.min(SendRate::at_least(payload_rate))
    }
}

/// The UDP stream runs at this share of what TCP carried.
pub(super) const UDP_PERCENT: u64 = 80;
/// Without a TCP figure to go by, UDP runs at the rate of iperf3's default at most.
const CAREFUL_RATE: SendRate = SendRate::at_least(1_000_000);
/// Payload of a full TCP segment with timestamps in 1500 bytes of IP.
const SEGMENT: u128 = 1448;
const SEGMENT_ON_LINK: u128 = 1500;
/// Shorter transfers say nothing, whatever the budget.
const SHORTEST: Span = Span::from_millis(200);
/// Of TCP, where there is time for it: six slices of 50 ms, of which three without growth show that
/// slow start is over.
const SHOWS_WARM_UP: Span = Span::from_millis(300);
/// Of a stream that waits for no answers, on a long path.
const LONGEST_LEAST_UDP: Span = Span::from_secs(1);
/// What opening, attaching and ending one transfer costs on a short path.
const TRANSFER_OVERHEAD: Span = Span::from_millis(60);
/// And the round trips of it: open, connect, attach, start, end.
const TRANSFER_ROUND_TRIPS: i64 = 5;
/// What reserving, attaching and the search for the MTU cost on a short path, and their round
/// trips.
const SET_UP: Span = Span::from_millis(250);
const SET_UP_ROUND_TRIPS: i64 = 8;
/// Before a phase has shown how late it is, it is taken for no later than that.
const MOST_LATE_UNSEEN: Span = Span::from_secs(1);
/// Queues of slow paths hold seconds, and their round trips are long, too.
const USUAL_DRAIN_ROUND_TRIPS: i64 = 10;
/// A person is told no more often that a test takes longer.
const MAX_SAID: u8 = 2;
/// Up to here a round trip is short: each phase costs little more than its shortest duration.
const NEAR: Span = Span::from_millis(50);
/// What full queues and lost segments add to the end of a TCP transfer of a usual path. The plan
/// does without, since it sees them when they come; a time that is called enough has to hold.
const USUAL_END: Span = Span::from_millis(250);
/// What an unknown path is taken for.
const USUAL_RATE: BitRate = BitRate(100_000_000);
/// A rate that TCP had reached while it was still speeding up: two more doublings are expected.
const BOUND_PERCENT: u64 = 400;
/// Bytes in flight at first: ten segments (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0 * SEGMENT as f64;
/// Socket buffers of usual hosts hold no more, so slow start ends there at the latest.
const LARGEST_WINDOW: f64 = 6e6;
/// Rounds without growth that show the end of slow start, as the warm-up rule wants them.
const FLAT_ROUNDS: i64 = 3;
const COUNTED_ROUNDS: i64 = 2;
/// Idle latency is taken in so many blocks per version, with so many requests in all.
const MOST_BLOCKS: u16 = 8;
const IDLE_REQUESTS: u64 = 200;
/// What sending them takes, all blocks of a version together.
const IDLE_SENDING: Span = Span::from_millis(1200);
/// The closest spacing, and the first: 15 kbit/s.
const IDLE_SPACING: Span = Span::from_millis(5);
const FIRST_SPACING: Span = Span::from_millis(50);
const LONGEST_IDLE_SPACING: Span = Span::from_millis(400);
/// Of what is left, the round trips of idle blocks may take one in so many.
const IDLE_PART: i64 = 10;

#[cfg(test)]
mod tests;
