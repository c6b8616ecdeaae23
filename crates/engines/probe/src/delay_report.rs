//! From exchanges to the published delay of a path.
//!
//! **Measures** round trip, its variation, and the application's view of both; of an open loop also
//! the delay from when each request was due, which a sender that was held up cannot shorten.
//! **Assumes** that the responder's own time is what it says; where it claims the impossible
//! nothing is taken out. **Biased**: lost requests have no delay, so every figure is conditional on
//! arrival within patience and leans low on a lossy path. The responder's send stamp is its
//! program's, so the time from there to its wire stays in the round trip; answers too short for
//! stamps leave all of its time in. PDV refers to the smallest round trip of *all* rounds; if no
//! request met empty queues it leans low. IPDV and jitter are of round trips, not one-way, and pair
//! only neighbours of the same round that were both answered. **Published**: RFC 2681, RFC 3393
//! with RFC 5481 (IPDV, PDV), RFC 3550 §6.4.1 (jitter; per request sent in order, not per arrival),
//! "coordinated omission" after Gil Tene, round trips per minute after
//! draft-ietf-ippm-responsiveness (there from TCP, TLS and HTTP exchanges, here from UDP alone).

use std::cmp::Reverse;
use std::ops::{Range, RangeInclusive};

use netaware_record::{
    DelaySummary, DelayTail, Direction, ExchangeTotal, Health, HistogramShape, IpVersion, LatencyResult,
    Layer, LoadedLatency, Pedigree,
};
use netaware_stats::variation::{RtpJitter, ipdv, pdv};
use netaware_units::{BitRate, ByteCount, ClockSource, Mono, Span};

use crate::echo::{EchoCounts, EchoEvent, Exchange, Pacing};
use crate::outage::{self, Outages, Train};
use crate::{hops, summary};

/// Takes in the exchanges of one train: 48 bytes for each.
#[derive(Debug, Clone, Default)]
pub struct EchoLog {
    samples: Vec<Sample>,
    clocks: Option<Clocks>,
    /// An answer came without the responder's stamps.
    untold: bool,
    hops_forward: Option<u8>,
    hops_reverse: Option<u8>,
    /// Numbers of requests that never left.
    not_sent: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    seq: u64,
    /// By the program's clock.
    sent_at: Mono,
    rtt: Span,
    application: Span,
    from_due: Span,
    /// Negative when unknown, to keep the sample small.
    responder: Span,
}

impl Sample {
    fn came_at(&self) -> Mono {
        self.sent_at + self.application
    }
}

/// The worst clock and the largest stamp error of what was logged.
#[derive(Debug, Clone, Copy)]
struct Clocks {
    local: ClockSource,
    responder: ClockSource,
    error: Span,
}

impl Clocks {
    fn worse(self, other: Self) -> Self {
        Self {
            local: self.local.min(other.local),
            responder: self.responder.min(other.responder),
            error: self.error.max(other.error),
        }
    }
}

impl EchoLog {
    /// Takes note of an event; of other ones than these the counts have all that matters.
    pub fn observe(&mut self, event: &EchoEvent) {
        match event {
            EchoEvent::Answered(exchange) => self.push(exchange),
            EchoEvent::NotSent { seq, .. } => self.not_sent.push(*seq),
            _ => {}
        }
    }

    /// Takes note of an exchange.
    pub fn push(&mut self, exchange: &Exchange) {
        self.samples.push(Sample {
            seq: exchange.seq,
            sent_at: exchange.tx_application,
            rtt: exchange.rtt(),
            application: exchange.rtt_application(),
            from_due: exchange.rtt_from_due(),
            responder: exchange.responder.unwrap_or(UNKNOWN),
        });
        self.untold |= !exchange.responder_told;
        let error = exchange.tx.error + exchange.rx.error;
        let clocks = Clocks { local: exchange.clock(), responder: exchange.responder_clock, error };
        self.clocks = Some(self.clocks.map_or(clocks, |before| before.worse(clocks)));
        self.hops_forward = exchange.ttl_forward.and_then(hops::from_ttl).or(self.hops_forward);
        self.hops_reverse = exchange.ttl_reverse.and_then(hops::from_ttl).or(self.hops_reverse);
    }

    /// The train is done.
    pub fn finish(mut self, counts: EchoCounts) -> EchoRound {
        self.samples.sort_unstable_by_key(|sample| sample.seq);
        self.not_sent.sort_unstable();
        EchoRound { log: self, counts, ..EchoRound::default() }
    }

    /// Round trips so far, for progress.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether nothing has been answered yet.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }
}

/// One train that is done.
#[derive(Debug, Clone, Default)]
pub struct EchoRound {
    /// In the order sent.
    log: EchoLog,
    counts: EchoCounts,
    lasted: Option<Span>,
    /// The same until the last answer.
    answered_within: Option<Span>,
    /// Numbers of requests of which nobody knows what became, in order, as far as they are known.
    /// Requests after the last answer need not be among them.
    unknown: Vec<u64>,
    /// Requests that were answered when the responder's program went on after a standstill, in
    /// order: their round trips tell nothing of the path, and what the application met all the
    /// same.
    untimed: Vec<Sample>,
    /// Numbers of requests among which the path rejected some.
    rejected: Vec<RangeInclusive<u64>>,
}

impl EchoRound {
    /// The same round, in which the path rejected some of the requests with these numbers: lost
    /// ones among them are in no outage.
    #[must_use]
    pub fn rejected_among(self, rejected: Vec<RangeInclusive<u64>>) -> Self {
        Self { rejected, ..self }
    }

    /// How many lost requests the path rejected; zero where it is not known which were lost.
    pub fn rejected(&self) -> u64 {
        self.not_lost_at_all().map_or(0, |(numbers, sent)| {
            let with = outage::and_rejected(&numbers, sent, &self.rejected);
            with.len().saturating_sub(numbers.len()) as u64
        })
    }

    /// The same round, which took this long from the first request's hand-over to the last verdict.
    #[must_use]
    pub fn lasting(self, lasted: Span) -> Self {
        Self { lasted: Some(lasted), ..self }
    }

    /// The same round, whose last answer came this long after the first request's hand-over.
    #[must_use]
    pub fn answered_within(self, span: Span) -> Self {
        Self { answered_within: Some(span), ..self }
    }

    /// The same round, of whose last requests, which count as lost, nobody knows what became of
    /// this many. The wait for their answers is no time of any exchange.
    #[must_use]
    pub fn not_knowing_of(mut self, requests: u64) -> Self {
        let unknown = requests.min(self.counts.lost);
        if unknown > 0 && self.answered_within.is_some() {
            self.lasted = self.answered_within;
        }
        self.counts.lost -= unknown;
        self.counts.abandoned += unknown;
        self
    }

    /// The same round, in which nobody knows what became of these requests that count as lost.
    /// Answers of so many of them came late.
    #[must_use]
    pub fn not_knowing_those(mut self, numbers: &[u64], late: u64) -> Self {
        let unknown = (numbers.len() as u64).min(self.counts.lost);
        self.counts.lost -= unknown;
        self.counts.abandoned += unknown;
        self.counts.late = self.counts.late.saturating_sub(late);
        self.unknown.extend(numbers);
        self.unknown.sort_unstable();
        self
    }

    /// Leaves out the round trips of requests that waited for the responder's program to go on,
    /// as far as its own time is not taken out of them. No answer leaves a program that does not
    /// run, so these times are among the longest ones without an answer. The counts stay, and so
    /// does what the application met. Says how many requests these are.
    pub fn leave_out_of(&mut self, times: &[Stopped]) -> u64 {
        let mut came: Vec<Mono> = self.log.samples.iter().map(Sample::came_at).collect();
        came.sort_unstable();
        // Before the first request was sent no answer was to come.
        let Some(asked_at) = self.log.samples.iter().map(|sample| sample.sent_at).min() else { return 0 };
        let silences: Vec<Silence> = times.iter().flat_map(|time| time.silences(asked_at, &came)).collect();
        let has_waited = |sample: &Sample| {
            sample.responder == UNKNOWN
                && silences.iter().any(|one| one.met(sample.sent_at, sample.came_at()))
        };
        let before = self.untimed.len();
        self.untimed.extend(self.log.samples.iter().filter(|sample| has_waited(sample)));
        self.untimed.sort_unstable_by_key(|sample| sample.seq);
        self.log.samples.retain(|sample| !has_waited(sample));
        (self.untimed.len() - before) as u64
    }

    /// The number of the last request that was answered in time.
    pub fn last_answered(&self) -> Option<u64> {
        self.log.samples.last().map(|sample| sample.seq)
    }

    /// From the first request's hand-over to the last verdict, where that was noted.
    pub fn lasted(&self) -> Option<Span> {
        self.lasted
    }

    /// The same round without the round trips of requests that left more than `at_most` after they
    /// were due; the counts stay. What was to be met when they were due may be over by then.
    #[must_use]
    pub fn left_within(&self, at_most: Span) -> Self {
        let mut round = self.clone();
        round.log.samples.retain(|sample| sample.from_due - sample.application <= at_most);
        round
    }

    /// The train's counts.
    pub fn counts(&self) -> EchoCounts {
        self.counts
    }

    /// Round trips in the order sent, in nanoseconds: samples for the comparison.
    pub fn rtts_ns(&self) -> Vec<f64> {
        self.log.samples.iter().map(|sample| sample.rtt.nanos() as f64).collect()
    }

    /// The number of each request that was answered and when its answer came, in the order of the
    /// requests and since the first one was due, of requests that were due this far apart.
    pub fn arrivals(&self, spacing: Span) -> Vec<(u64, Span)> {
        let due = |seq: u64| spacing * i64::try_from(seq).unwrap_or(i64::MAX);
        let arrival = |sample: &Sample| (sample.seq, due(sample.seq) + sample.from_due);
        self.log.samples.iter().map(arrival).collect()
    }

    /// Outages, of requests this far apart. Requests after the last answer whose fate is not known
    /// are left out, and those that never left met none. `None` where others' fate is not known:
    /// they might be in the rows of those without an answer.
    pub fn outages(&self, spacing: Span) -> Option<Outages> {
        let (numbers, until) = self.not_lost()?;
        Some(Outages::between(numbers, until, spacing))
    }

    /// The same round as a part of a longer measurement: its first request was due then.
    pub fn train(&self, began_at: Mono) -> Option<Train> {
        let (not_lost, sent) = self.not_lost()?;
        Some(Train { began_at, not_lost, sent, silent_at: None, came_at: None })
    }

    /// The numbers of requests that are not lost, or were rejected, in order, and how many there
    /// were.
    fn not_lost(&self) -> Option<(Vec<u64>, u64)> {
        let (numbers, sent) = self.not_lost_at_all()?;
        Some((outage::and_rejected(&numbers, sent, &self.rejected), sent))
    }

    /// The numbers of requests that are not lost, in order, and how many requests there were up to
    /// those at the end of which nobody knows what became. `None` where that is not known of others
    /// as well.
    fn not_lost_at_all(&self) -> Option<(Vec<u64>, u64)> {
        let asked = self.counts.sent() + self.counts.not_sent;
        let mut numbers: Vec<u64> = self.log.samples.iter().map(|sample| sample.seq).collect();
        numbers.extend(self.unknown.iter().chain(&self.log.not_sent));
        numbers.extend(self.untimed.iter().map(|sample| sample.seq));
        numbers.sort_unstable();
        let after_the_last = asked - numbers.last().map_or(0, |last| last + 1).min(asked);
        let abandoned = self.counts.abandoned.saturating_sub(self.unknown.len() as u64);
        let is_known = self.counts.not_sent == self.log.not_sent.len() as u64 && abandoned <= after_the_last;
        is_known.then(|| (numbers, asked - abandoned))
    }

    /// How many requests with these numbers have no round trip here and are not lost.
    fn without_verdict_among(&self, numbers: &Range<u64>) -> u64 {
        let among = |some: &[u64]| count_between(some, numbers, |number| *number);
        let untimed = count_between(&self.untimed, numbers, |sample| sample.seq);
        (among(&self.unknown) + among(&self.log.not_sent) + untimed) as u64
    }

    /// Delay variation of blocks of neighbours, in nanoseconds: 95th percentile minus minimum of
    /// each block of [`VARIATION_BLOCK`] round trips. Samples for the comparison; a rest shorter
    /// than half a block is left out.
    pub fn variation_blocks_ns(&self) -> Vec<f64> {
        let blocks = self.log.samples.chunks(VARIATION_BLOCK);
        let blocks = blocks.filter(|block| block.len() * 2 >= VARIATION_BLOCK);
        blocks.filter_map(|block| spread_ns(block.iter().map(|sample| sample.rtt))).collect()
    }

    /// The share of requests without an answer in blocks of [`LOSS_BLOCK`] neighbours, from the
    /// first to the last that was answered: how losses scatter over time. A rest shorter than half
    /// a block is left out.
    pub fn loss_blocks(&self) -> Vec<f64> {
        let samples = &self.log.samples;
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Vec::new() };
        let asked = last.seq - first.seq + 1;
        let mut answered = samples.iter().map(|sample| sample.seq - first.seq).peekable();
        let blocks =
            (0..asked).step_by(LOSS_BLOCK as usize).map(|from| (from, (from + LOSS_BLOCK).min(asked)));
        let known = |from: u64, until: u64| {
            let excused = self.without_verdict_among(&(first.seq + from..first.seq + until));
            (until - from) - excused.min(until - from)
        };
        blocks
            .filter_map(|(from, until)| {
                let came = std::iter::from_fn(|| answered.next_if(|seq| *seq < until)).count() as f64;
                let known = known(from, until);
                (known * 2 >= LOSS_BLOCK).then(|| (1.0 - came / known as f64).max(0.0))
            })
            .collect()
    }

    /// How often one or more requests in a row had no answer, between two that had one.
    pub fn loss_runs(&self) -> usize {
        let lost = |pair: &[Sample]| {
            let (from, until) = (pair[0].seq + 1, pair[1].seq);
            until.saturating_sub(from) > self.without_verdict_among(&(from..until.max(from)))
        };
        self.log.samples.windows(2).filter(|pair| lost(pair)).count()
    }

    /// Routers crossed on the way there and back, as far as TTLs told.
    pub fn hops(&self) -> (Option<u8>, Option<u8>) {
        (self.log.hops_forward, self.log.hops_reverse)
    }

    /// Round trips by number sent; one `None` stands for each gap.
    fn series(&self) -> Vec<Option<i64>> {
        let mut series = Vec::with_capacity(self.log.samples.len());
        let mut next = None;
        for sample in &self.log.samples {
            if next.is_some_and(|next| next != sample.seq) {
                series.push(None);
            }
            series.push(Some(sample.rtt.nanos()));
            next = sample.seq.checked_add(1);
        }
        series
    }
}

/// How many of these, in order of their numbers, have one within the range.
fn count_between<T>(some: &[T], numbers: &Range<u64>, number: impl Fn(&T) -> u64) -> usize {
    let below = |end: u64| some.partition_point(|one| number(one) < end);
    below(numbers.end).saturating_sub(below(numbers.start))
}

/// A time in which the responder's program did not run, by the program's clock here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// It did not run for so long.
    pub lasted: Span,
    /// That was after this instant.
    pub from: Mono,
    /// It was over by then.
    pub until: Mono,
}

impl Stopped {
    /// The longest times without an answer, as many as make up the time for which the program did
    /// not run, of answers in the order in which they came. Only what is within the bounds counts
    /// of each, and not what was before the first request. The answer that ends such a time may
    /// come later: what says that the program runs again is sent by another of its threads.
    fn silences(&self, asked_at: Mono, came: &[Mono]) -> Vec<Silence> {
        let mut since = self.from.max(asked_at);
        let mut found: Vec<(Span, Silence)> = Vec::new();
        let first = came.partition_point(|at| *at < since);
        for &went_on_at in &came[first..] {
            if since >= self.until {
                break;
            }
            let over_at = went_on_at.min(self.until);
            found.push((over_at - since, Silence { went_on_at, over_at }));
            since = went_on_at;
        }
        found.sort_by_key(|(length, _)| Reverse(*length));
        let (mut left, enough) = (self.lasted, self.lasted / 10);
        let mut is_needed = |index: usize, length: Span| {
            let is_needed = length > enough && (index == 0 || (left > enough && length >= SHORTEST_STOP));
            left -= length;
            is_needed
        };
        let needed = found.into_iter().enumerate();
        needed.filter_map(|(index, (length, one))| is_needed(index, length).then_some(one)).collect()
    }
}

/// A time without an answer in which the responder's program did not run.
#[derive(Debug, Clone, Copy)]
struct Silence {
    /// When the first answer after it came.
    went_on_at: Mono,
    /// Requests that left later were not on their way in it.
    over_at: Mono,
}

impl Silence {
    /// Whether a request that left and was answered then was on its way.
    fn met(self, sent_at: Mono, came_at: Mono) -> bool {
        sent_at < self.over_at && came_at >= self.went_on_at
    }
}

/// What the figures must say about themselves.
#[derive(Debug, Clone)]
pub struct Context {
    /// Name of the method: "latency" over UDP, "latency-tcp" over a TCP connection.
    pub method: &'static str,
    /// Over which IP version.
    pub version: IpVersion,
    /// Payload of a request.
    pub payload: ByteCount,
    /// Payload of a response.
    pub response: ByteCount,
    /// When requests went.
    pub pacing: Pacing,
    /// Planned spacing, the longest where rounds differ; zero for a closed loop.
    pub spacing: Span,
    /// Bins of equal width that somebody wants beside the logarithmic ones.
    pub bins: Option<HistogramShape>,
    /// After how long a request counted as lost.
    pub patience: Span,
    /// What the instrument did wrong; `not_sent` is filled from the counts.
    pub health: Health,
}

/// The delay over all `rounds`, trains with the same plan over the same IP version.
pub fn latency(rounds: &[EchoRound], context: &Context) -> LatencyResult {
    let samples = || rounds.iter().flat_map(|round| &round.log.samples);
    // What waited for a responder that did not run is the application's delay, and not the path's.
    let met = || rounds.iter().flat_map(|round| round.log.samples.iter().chain(&round.untimed));
    let rtts: Vec<Span> = samples().map(|sample| sample.rtt).collect();
    let held: Vec<Span> = samples().map(|sample| sample.responder).filter(|held| *held != UNKNOWN).collect();
    // A gap between rounds: the last request of one and the first of the next are no neighbours.
    let series: Vec<Option<i64>> =
        rounds.iter().flat_map(|round| round.series().into_iter().chain([None])).collect();
    let sum = |count: fn(&EchoCounts) -> u64| rounds.iter().map(|round| count(&round.counts)).sum();
    let pedigree = pedigree(rounds, context, held.len() < rtts.len());
    let health = Health { not_sent: Some(sum(|counts| counts.not_sent)), ..context.health.clone() };
    // In a closed loop a request is due when the one before has its verdict: nothing to correct.
    let from_due: Option<Vec<Span>> =
        context.pacing.arrivals().map(|_| met().map(|sample| sample.from_due).collect());
    LatencyResult {
        pedigree,
        payload: context.payload,
        response: Some(context.response).filter(|response| *response != context.payload),
        depth: context.pacing.depth(),
        arrivals: context.pacing.arrivals(),
        spacing: context.spacing,
        sent: sum(EchoCounts::sent),
        not_sent: sum(|counts| counts.not_sent),
        received: sum(|counts| counts.received),
        lost: sum(|counts| counts.lost),
        unknown: sum(|counts| counts.abandoned),
        late: sum(|counts| counts.late),
        reordered: sum(|counts| counts.reordered),
        duplicates: sum(|counts| counts.duplicates),
        bad: sum(EchoCounts::bad),
        patience: context.patience,
        rtt: summary::of_delays(&rtts),
        rtt_application: summary::of_delays(&met().map(|sample| sample.application).collect::<Vec<_>>()),
        rtt_from_due: from_due.as_deref().and_then(summary::of_delays),
        tail: tail(&rtts),
        tail_from_due: from_due.as_deref().and_then(tail),
        total: total(rounds, context),
        responder: summary::of_delays(&held),
        ipdv: successive(&series),
        pdv: excess(&series),
        jitter: jitter(&series),
        histogram: summary::histogram_of(&rtts),
        bins: context.bins.and_then(|shape| summary::bins_of(&rtts, shape)),
        health,
    }
}

/// `None` without samples, and when there are too few for any of them.
fn tail(delays: &[Span]) -> Option<DelayTail> {
    summary::tail_of(delays).filter(|tail| *tail != DelayTail::default())
}

/// `None` unless every round told how long it took, or when nothing has a verdict or no time has
/// passed.
fn total(rounds: &[EchoRound], context: &Context) -> Option<ExchangeTotal> {
    let time = rounds.iter().map(|round| round.lasted).sum::<Option<Span>>()?;
    let sum = |count: fn(&EchoCounts) -> u64| rounds.iter().map(|round| count(&round.counts)).sum::<u64>();
    let settled = Some(sum(|counts| counts.received + counts.lost)).filter(|settled| *settled > 0)?;
    let received = ByteCount(sum(|counts| counts.received).saturating_mul(context.response.0));
    Some(ExchangeTotal {
        time,
        per_exchange_ns: time.nanos() as f64 / settled as f64,
        response_rate: BitRate::mean(received, time)?,
    })
}

/// The same delay, taken under load, against the idle one.
pub fn under_load(latency: LatencyResult, idle: Option<&LatencyResult>) -> LoadedLatency {
    let idle_median = idle.and_then(|idle| idle.rtt).map(|rtt| rtt.p50);
    let rise = latency.rtt.and_then(|rtt| Some(rtt.p50 - idle_median?));
    let mean = latency.rtt.map(|rtt| rtt.mean.secs_f64()).filter(|mean| *mean > 0.0);
    LoadedLatency { rise, round_trips_per_minute: mean.map(|mean| 60.0 / mean), latency }
}

fn pedigree(rounds: &[EchoRound], context: &Context, claims: bool) -> Pedigree {
    let clocks = rounds.iter().filter_map(|round| round.log.clocks).reduce(Clocks::worse);
    let uncertainty = clocks.map_or_else(
        || "nothing was answered".to_owned(),
        |clocks| {
            let error = match clocks.error {
                Span::ZERO if clocks.local == ClockSource::Application => {
                    "stamps are the program's, taken when it came round to it".to_owned()
                }
                error => format!("stamps off by up to {error}"),
            };
            let stamps = format!("exact order statistics; {error}");
            if rounds.iter().any(|round| round.log.untold) {
                return format!("{stamps}; responder's time in it: its answers carry no stamps");
            }
            let held = format!("responder's time taken out between its {} and its", clocks.responder.name());
            let doubt = if claims { "; some of its claims were impossible and left in" } else { "" };
            format!("{stamps}; {held} application stamp{doubt}")
        },
    );
    Pedigree {
        method: context.method.to_owned(),
        layer: Layer::Payload,
        direction: Direction::RoundTrip,
        version: context.version,
        clock: clocks.map_or(ClockSource::Application, |clocks| clocks.local),
        uncertainty,
    }
}

fn successive(series: &[Option<i64>]) -> Option<DelaySummary> {
    let steps: Vec<Span> = ipdv(series).into_iter().map(|step| Span(step).abs()).collect();
    summary::of_delays(&steps)
}

fn excess(series: &[Option<i64>]) -> Option<DelaySummary> {
    let excess = pdv(series).into_iter().map(|excess| Span(i64::try_from(excess).unwrap_or(i64::MAX)));
    // One delay alone does not vary.
    summary::of_delays(&excess.collect::<Vec<_>>()).filter(|it| it.count > 1)
}

fn jitter(series: &[Option<i64>]) -> Option<Span> {
    let mut jitter = RtpJitter::new();
    for delay in series {
        jitter.observe(*delay);
    }
    jitter.value().map(|nanos| Span::from_nanos(nanos.round() as i64))
}

fn spread_ns(delays: impl Iterator<Item = Span>) -> Option<f64> {
    let summary = summary::of_delays(&delays.collect::<Vec<_>>())?;
    Some((summary.p95 - summary.min).nanos() as f64)
}

/// Round trips of which one sample of delay variation is made: the 95th percentile of twenty is
/// near their largest.
pub const VARIATION_BLOCK: usize = 20;
/// A burst of losses lasts over some neighbours, and hundreds of requests make tens of these.
const LOSS_BLOCK: u64 = 10;
/// A responder says nothing of a program that was stopped for less than twice as long.
const SHORTEST_STOP: Span = Span::from_millis(250);
/// Stands for "the responder did not tell"; what it tells is never negative.
const UNKNOWN: Span = Span(-1);

#[cfg(test)]
mod tests;
