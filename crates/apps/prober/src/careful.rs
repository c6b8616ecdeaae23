//! What a path carries, found out before a stream of which nobody typed the rate.
//!
//! A stream that does not listen to losses harms everybody on a path that it overfills, so it must
//! not run faster than the path was seen to carry. A pair of datagrams and then short trains go
//! over an echo flow: long requests and short answers for what this host sends, short requests and
//! long answers for what the responder sends. Each train is at most twice as fast as the one before
//! was carried, and the last one is what counts. Of a train that lost a part, what came after the
//! first loss counts: before it, a queue or a policer's credit took what the path does not carry
//! for good. The first such train is sent again if at least half of it came. The trains after such
//! a one are slower and longer. **Biased**: jitter stretches a short train and random loss thins
//! it, so the rate leans low, and requests that their own way delays make what the responder sends
//! a lower bound; credit of a policer that is larger than the trains lets them pass, so there it
//! can be high. Where answers are overtaken or come at uneven distances, or the first ones of
//! trains differ by more than a train was stretched and a ping in front of it takes, that is
//! jitter: longer trains follow then, and one whose round trips do not rise was carried.
//! docs/methods/planning.md has the rules with their reasons.

use netaware_io::stop::StopFlag;
use netaware_record::Direction;
use netaware_units::{ByteCount, SendRate, Span};

use crate::echo::{EchoOrder, EchoSizes};
use crate::lane::{self, Lane};
use crate::lease;
use crate::queueing;
use crate::request::Target;

/// What trains have shown of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The path carried so much. Of what the responder sends that is a lower bound.
    Carried(SendRate),
    /// Delays differ by more than the trains lasted: the path carried at least so much.
    AtLeast(SendRate),
    /// What came back shows no rate: [`unknown`] is what may be sent.
    Nothing,
    /// There was nothing to be found out: no flow to ask by, a run that was stopped, or a ceiling
    /// that is no faster than [`unknown`].
    NotAsked,
}

/// The payload rate of datagrams this long where nothing is known of the path: with their headers
/// they make [`UNKNOWN`].
pub(crate) fn unknown(length: u32) -> SendRate {
    let length = u64::from(length.max(1));
    SendRate::at_least(UNKNOWN * length / (length + HEADERS))
}

/// The rate of a stream in this direction: `ceiling`, or less if the path was seen to carry less.
pub(crate) fn rate(
    lane: &mut Lane,
    target: &Target,
    direction: Direction,
    length: u32,
    ceiling: SendRate,
    stop: &StopFlag,
) -> SendRate {
    let ceiling = allowed(lane, ceiling);
    let ramp = climb(lane, target, direction, Ramp::new(ceiling, length.min(LONGEST)), stop);
    let rate = ramp.rate();
    // Without a flow the stream will not come about either, and says why.
    if !lane.is_alive() || ramp.trains == 0 {
        return rate;
    }
    if rate < ceiling {
        let way = direction.name();
        let why = match ramp.carried {
            // Requests for what the responder sends have a way of their own.
            Some(carried) if direction == Direction::Reverse => format!(
                "short trains came at {carried} {way} (the path may carry more, if the way of the requests for \
                 them does not)"
            ),
            Some(carried) => format!("short trains came at {carried} {way} (the path may carry more)"),
            None => format!(
                "too few answers came to datagrams of {} B, so what the path carries {way} is not known",
                ramp.length
            ),
        };
        lane.warn(&format!("no rate was given, and {why}: the stream runs at {rate}; -b sets a rate"));
    }
    let fills = rate.bit_rate().time_for(ByteCount(u64::from(length)));
    if fills > LONGEST_DATAGRAM {
        lane.warn(&format!(
            "a datagram of {length} B leaves at once, in packets that take {fills} at {rate}: while they pass, the \
             path carries nothing else, and a short queue drops some of them; -l sets a shorter length"
        ));
    }
    rate
}

/// The payload rate of requests this long on a path that carried so much: 80 % of it, without what
/// the pings of so many sessions take, and no less than half of that.
pub(crate) fn beside_pings(carried: SendRate, length: u32, sessions: usize) -> SendRate {
    let length = u64::from(length.max(1));
    let pings = PINGS * sessions as u64 * length / (length + HEADERS);
    let share = carried.percent(SHARE).bit_rate().0;
    SendRate::at_least(share.saturating_sub(pings).max(share / 2))
}

/// How many datagrams may leave at once in a burst, of so many that were asked for, where the rate
/// is nobody's: at most what the path carries at that rate in [`LONGEST_BURST`], and one at least.
pub(crate) fn burst(asked: u32, length: u32, rate: SendRate) -> u32 {
    let fit = LONGEST_BURST.0.cast_unsigned().saturating_mul(1000) / rate.gap_ps(length).max(1);
    asked.min(u32::try_from(fit).unwrap_or(u32::MAX)).max(1)
}

/// What is said of a burst that was cut, or nothing of one that was not.
pub(crate) fn cut_burst(asked: u32, length: u32, rate: SendRate) -> Option<String> {
    let burst = burst(asked, length, rate);
    let fills = rate.bit_rate().time_for(ByteCount(u64::from(length).saturating_mul(u64::from(asked))));
    (burst < asked).then(|| {
        format!(
            "no rate was given, and {asked} datagrams of {length} B at once fill the path for {fills} at {rate}: \
             --burst is {burst} instead, which takes {LONGEST_BURST} at most; -b sets a rate"
        )
    })
}

/// How long that takes in one direction of a path that carries the ceiling and loses nothing: a
/// pair and a train, each with its answers, and the exchanges around them.
pub(crate) fn lasts(exchange: Span) -> Span {
    lease::exchanges(exchange, 1) + (TRAIN + exchange) * 2
}

/// What the path was seen to carry in this direction, at most `ceiling`.
pub(crate) fn seen(
    lane: &mut Lane,
    target: &Target,
    direction: Direction,
    length: u32,
    ceiling: SendRate,
    stop: &StopFlag,
) -> Seen {
    let ceiling = allowed(lane, ceiling);
    let ramp = climb(lane, target, direction, Ramp::new(ceiling, length.min(LONGEST)), stop);
    match ramp.carried {
        Some(carried) if ramp.is_jittery => Seen::AtLeast(carried),
        Some(carried) => Seen::Carried(carried),
        None if ramp.trains == 0 || stop.is_raised() || !lane.is_alive() => Seen::NotAsked,
        None => Seen::Nothing,
    }
}

/// The ceiling under the cap of the responder's owner, which holds for trains as well.
fn allowed(lane: &mut Lane, ceiling: SendRate) -> SendRate {
    let cap = lane.session().and_then(|session| session.limits.rate);
    cap.map_or(ceiling, |cap| ceiling.min(SendRate::at_least(cap.0)))
}

/// Sends trains until the ramp has seen enough.
fn climb(lane: &mut Lane, target: &Target, direction: Direction, mut ramp: Ramp, stop: &StopFlag) -> Ramp {
    if ramp.is_needless() || stop.is_raised() || !lane.is_alive() {
        return ramp;
    }
    let sizes = sizes(lane, direction, ramp.length);
    let round_trip = lane.round_trip();
    lane::attach_echo(std::slice::from_mut(lane), target, FLOW + round_trip * 20, sizes);
    while let Some(train) = ramp.next().filter(|_| lane.echo.is_some() && !stop.is_raised()) {
        let order = EchoOrder {
            response: sizes.response,
            patience: round_trip * 2 + PATIENCE,
            ..EchoOrder::open_loop(Some(train.count), train.spacing(ramp.length), sizes.request)
        };
        let Some(run) = lane.echo_filling(&order, &mut |_| {}) else { break };
        // Who was stopped did not wait for answers.
        if stop.is_raised() {
            break;
        }
        ramp.observe(train, &run.round.arrivals(order.shown_spacing()));
    }
    if let (Some(flow), Some(session)) = (lane.echo.take(), lane.session())
        && let Err(cause) = flow.close(session)
    {
        lane.fail_to_end("end a UDP flow", cause);
    }
    ramp
}

/// Only the direction in question gets long datagrams. A responder with a cap on its rate sends no
/// answers that are longer than their requests.
fn sizes(lane: &mut Lane, direction: Direction, length: u32) -> EchoSizes {
    let is_capped = lane.session().is_some_and(|session| session.limits.rate.is_some());
    let short = SHORT.min(length);
    match direction {
        Direction::Reverse if is_capped => EchoSizes::equal(length),
        Direction::Reverse => EchoSizes { request: short, response: length },
        Direction::RoundTrip => EchoSizes::equal(length),
        Direction::Forward => EchoSizes { request: length, response: short },
    }
}

/// Requests at a payload rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Train {
    count: u64,
    rate: SendRate,
}

impl Train {
    fn spacing(self, length: u32) -> Span {
        let nanos = self.rate.gap_ps(length) / 1000;
        Span(i64::try_from(nanos).unwrap_or(i64::MAX)).max(Span(1))
    }

    /// From the first request to the last.
    fn span(self, length: u32) -> Span {
        self.spacing(length) * i64::try_from(self.count.saturating_sub(1)).unwrap_or(i64::MAX)
    }

    fn share(self, part: u64, whole: u64) -> SendRate {
        let bits = u128::from(self.rate.bit_rate().0) * u128::from(part) / u128::from(whole.max(1));
        SendRate::at_least(u64::try_from(bits).unwrap_or(u64::MAX))
    }

    /// The payload rate at which the train was carried, by the number of each answer and when it
    /// came: no faster than the answers came, than the train was sent, and than the share that came
    /// after the first loss allows. One more than came is not ruled out there, and where fewer than
    /// two came in all, one is not.
    fn carried(self, length: u32, answers: &[(u64, Span)]) -> SendRate {
        let times = || answers.iter().map(|(_, at)| *at);
        let came = answers.len() as u64;
        let (Some(first), Some(last)) = (times().min(), times().max()) else {
            return self.share(1, self.count);
        };
        if came < 2 {
            return self.share(1, self.count);
        }
        let took = (last - first).max(self.span(length)).max(Span(1));
        let bits = u128::from(came - 1) * u128::from(length) * 8 * 1_000_000_000;
        let rate = bits / u128::from(took.0.cast_unsigned());
        let rate = SendRate::at_least(u64::try_from(rate).unwrap_or(u64::MAX)).min(self.rate);
        let Some(lost) = self.first_lost(answers) else { return rate };
        let came_after = answers.iter().filter(|(number, _)| *number > lost).count() as u64;
        rate.min(self.share(came_after + 1, self.count - lost))
    }

    /// Whether all of a long train came, and took no longer towards its end.
    fn came_steadily(self, length: u32, answers: &[(u64, Span)]) -> bool {
        let spacing = self.spacing(length);
        let delay = |(number, at): &(u64, Span)| (*at - spacing * number.cast_signed()).nanos() as f64;
        let delays: Vec<f64> = answers.iter().map(delay).collect();
        let is_whole = self.count >= MIN_AFTER_LOSS && delays.len() as u64 == self.count;
        is_whole && queueing::rise(&delays) < RISING
    }

    /// The number of the first request without an answer.
    fn first_lost(self, answers: &[(u64, Span)]) -> Option<u64> {
        (0..self.count).find(|number| answers.iter().all(|(answered, _)| answered != number))
    }
}

/// Which train is next, and what the trains have shown.
#[derive(Debug, Clone)]
struct Ramp {
    ceiling: SendRate,
    length: u32,
    /// What the last train was carried at.
    carried: Option<SendRate>,
    next: Option<SendRate>,
    trains: u32,
    /// Trains that lost what the path did not carry. After one faster ones are not tried any more.
    overruns: u32,
    /// A train of which at least half came was sent again.
    has_repeated: bool,
    /// The shortest and the longest time that the first answer of a train took.
    firsts: Option<(Span, Span)>,
    /// The shortest and the longest time from an answer to the next one.
    gaps: Option<(Span, Span)>,
    /// Delays differ by more than what a train's answers show of the path.
    is_jittery: bool,
}

impl Ramp {
    fn new(ceiling: SendRate, length: u32) -> Self {
        Self {
            ceiling,
            length,
            carried: None,
            next: Some(ceiling),
            trains: 0,
            overruns: 0,
            has_repeated: false,
            firsts: None,
            gaps: None,
            is_jittery: false,
        }
    }

    /// What every path is given needs no trains.
    fn is_needless(&self) -> bool {
        self.ceiling <= unknown(self.length)
    }

    fn next(&self) -> Option<Train> {
        let rate = self.next.filter(|_| self.trains < MAX_TRAINS)?;
        let count = if self.carried.is_none() {
            2
        } else {
            let bits = u128::from(rate.bit_rate().0) * u128::from(TRAIN.0.cast_unsigned()) / 1_000_000_000;
            let fit = bits / (u128::from(self.length.max(1)) * 8) + 1;
            let fits_long = Train { count: MIN_AFTER_LOSS, rate }.span(self.length) <= LONGEST_TRAIN;
            let is_long = self.overruns > 0 || (self.is_jittery && fits_long);
            let at_least = if is_long { MIN_AFTER_LOSS } else { MIN_COUNT };
            u64::try_from(fit).unwrap_or(MAX_COUNT).clamp(at_least, MAX_COUNT)
        };
        Some(Train { count, rate })
    }

    /// Takes note of which requests of a train were answered, and of when, since its beginning.
    fn observe(&mut self, train: Train, answers: &[(u64, Span)]) {
        self.trains += 1;
        if self.carried.is_none() && answers.len() < 2 {
            // A pair may get lost anywhere.
            self.next = self.next.filter(|_| self.trains < MAX_SILENT);
            return;
        }
        let was_jittery = self.is_jittery;
        let is_whole = train.first_lost(answers).is_none();
        let mut seen = train.carried(self.length, answers);
        let shows_jitter = is_whole && self.shows_jitter(train, seen, answers);
        if was_jittery && train.came_steadily(self.length, answers) {
            seen = train.rate;
        }
        let is_first = self.carried.replace(seen).is_none();
        let was_carried = seen.bit_rate().percent(ENOUGH) >= train.rate.bit_rate();
        self.is_jittery |= shows_jitter && !was_carried;
        let is_at_the_top = train.rate >= self.ceiling;
        if !was_carried && !is_whole {
            if !is_first && !self.has_repeated && answers.len() as u64 * 2 >= train.count {
                // A queue or a policer drops as many again; a burst of loss is over by then.
                (self.has_repeated, self.next) = (true, Some(train.rate));
                return;
            }
            self.overruns += 1;
            let slower = seen.min(train.rate.percent(SLOWER));
            // A path that loses at random does so at every rate.
            self.next = (self.overruns < MAX_OVERRUNS).then_some(slower);
            if seen <= unknown(self.length).percent(200) {
                // What passes now and then is no rate.
                (self.carried, self.next) = (None, None);
            }
            return;
        }
        let has_just_shown_jitter = self.is_jittery && !was_jittery;
        let goes_on =
            is_first || has_just_shown_jitter || (was_carried && !is_at_the_top && self.overruns == 0);
        // Jitter says little of the path, which may have what every one is given.
        let least = if self.is_jittery { unknown(self.length) } else { SendRate::MIN };
        self.next = goes_on.then(|| seen.percent(200).max(least).min(self.ceiling));
    }

    /// Whether the answers of a whole train, carried at the rate `seen`, show jitter rather than a
    /// rate. One was overtaken; or the first ones, which nothing but a ping of the session is in
    /// front of, differ from train to train by more than this one was stretched and the ping takes;
    /// or they come at distances that differ, while a slow path makes all of them alike.
    fn shows_jitter(&mut self, train: Train, seen: SendRate, answers: &[(u64, Span)]) -> bool {
        let [(_, first), .., (_, last)] = answers else { return false };
        let widened = |known: Option<(Span, Span)>, more: Span| {
            known.map_or((more, more), |(least, most)| (least.min(more), most.max(more)))
        };
        let firsts = widened(self.firsts, *first);
        self.firsts = Some(firsts);
        for pair in answers.windows(2) {
            self.gaps = Some(widened(self.gaps, pair[1].1 - pair[0].1));
        }
        let stretched = *last - *first - train.span(self.length);
        let is_spread = stretched > Span::ZERO && firsts.1 - firsts.0 > stretched + ping(seen, self.length);
        let is_uneven = self.gaps.is_some_and(|(least, most)| most > least * UNEVEN);
        queueing::is_overtaken(answers) || is_spread || is_uneven
    }

    /// The ceiling if it is at most 1.25 times what was carried; otherwise 80 % of that.
    fn rate(&self) -> SendRate {
        match self.carried {
            None => unknown(self.length).min(self.ceiling),
            Some(carried) if carried.percent(ENOUGH) >= self.ceiling => self.ceiling,
            Some(carried) => carried.percent(SHARE),
        }
    }
}

/// What a ping of a session and what acknowledges one take together, at this payload rate of
/// datagrams this long.
fn ping(rate: SendRate, length: u32) -> Span {
    let length = u64::from(length.max(1));
    let on_link = SendRate::at_least(rate.bit_rate().0 * (length + HEADERS) / length);
    on_link.bit_rate().time_for(ByteCount(PINGS / 8))
}

/// Longer datagrams are fragments of about this length on the path, and a pair of them would take
/// long on a slow one.
const LONGEST: u32 = 1452;
/// Room for the stamps of an echo.
const SHORT: u32 = 44;
/// Of IPv6 and UDP, the longer ones.
const HEADERS: u64 = 48;
/// A train lasts about so long, so that jitter of some milliseconds does not count.
const TRAIN: Span = Span::from_millis(100);
const MIN_COUNT: u64 = 3;
/// After a train that lost a part: more than usual policers have credit for.
const MIN_AFTER_LOSS: u64 = 16;
/// A ping between two answers does not make their distance so much longer than another one.
const UNEVEN: i64 = 3;
/// One that is long because of jitter.
const LONGEST_TRAIN: Span = Span::from_secs(3);
/// Delays of a long train that rise by this much more often than they fall are those of a queue: a
/// path that is half as fast as the train makes them, if its jitter is no longer than the train.
const RISING: f64 = 0.3;
const MAX_OVERRUNS: u32 = 4;
const MAX_COUNT: u64 = 64;
const MAX_TRAINS: u32 = 10;
/// Pairs without an answer, each of which takes patience.
const MAX_SILENT: u32 = 3;
/// A stream may be 1.25 times as fast as what was seen to be carried.
const ENOUGH: u64 = 125;
const SHARE: u64 = 80;
/// What a session's pings take each way, bit/s: each second a ping or its answer, and what
/// acknowledges the other one.
const PINGS: u64 = 1200;
/// A train that follows one that was too fast.
const SLOWER: u64 = 75;
/// Where nothing is known of a path, bit/s with headers. What is lost of a stream at this rate, one
/// datagram of full length each 0.75 s, fills no path.
const UNKNOWN: u64 = 16_000;
/// Three datagrams of full length take 1.7 s on 20 kbit/s.
const PATIENCE: Span = Span::from_secs(1);
/// All trains together, on a path without delay.
const FLOW: Span = Span::from_secs(20);
/// A burst fills a queue for no longer than this where nobody typed the rate.
const LONGEST_BURST: Span = Span::from_millis(100);
/// A path is not filled by one datagram for longer without a word.
const LONGEST_DATAGRAM: Span = Span::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const CEILING: SendRate = SendRate::at_least(1_000_000);

    /// What trains of datagrams of this length show of a path: `passes` has when a datagram comes
    /// that leaves at a time in ns, both since the beginning; between trains there is a second.
    fn shown_by(length: u32, passes: impl FnMut(u64) -> Option<u64>) -> Ramp {
        shown_up_to(CEILING, length, passes)
    }

    fn shown_up_to(ceiling: SendRate, length: u32, mut passes: impl FnMut(u64) -> Option<u64>) -> Ramp {
        let mut ramp = Ramp::new(ceiling, length);
        let mut starts_at = 0;
        while let Some(train) = ramp.next() {
            let sent = (0..train.count).map(|n| (n, n * train.spacing(length).0.cast_unsigned()));
            let came = sent.filter_map(|(n, at)| Some((n, passes(starts_at + at)? - starts_at)));
            let answers: Vec<_> = came.map(|(n, at)| (n, Span(at.cast_signed()))).collect();
            ramp.observe(train, &answers);
            let last = answers.iter().map(|(_, at)| *at).max().unwrap_or(Span::ZERO);
            starts_at += (last.max(train.span(length)) + Span::from_secs(1)).0.cast_unsigned();
        }
        ramp
    }

    /// A link of this rate with a drop-tail queue of so many datagrams.
    fn over(rate: u64, length: u32, queue: usize) -> Ramp {
        let on_link = SendRate::at_least(rate).gap_ps(length + 28) / 1000;
        let mut free_at = 0;
        shown_by(length, move |at| {
            let has_room = free_at <= at + on_link * queue as u64;
            free_at = if has_room { free_at.max(at) + on_link } else { free_at };
            has_room.then_some(free_at)
        })
    }

    /// A policer of this rate with so many bytes of credit, on a fast link.
    fn behind_a_policer(rate: u64, length: u32, credit: u64) -> Ramp {
        let (mut tokens, mut filled_at) = (credit * 1_000_000_000, 0);
        let packet = u64::from(length + 28) * 1_000_000_000;
        shown_by(length, move |at| {
            tokens = (tokens + (at - filled_at) * rate / 8).min(credit * 1_000_000_000);
            filled_at = at;
            let passes = tokens >= packet;
            tokens -= if passes { packet } else { 0 };
            passes.then_some(at + 1_000_000)
        })
    }

    fn with_headers(ramp: &Ramp) -> u64 {
        ramp.rate().bit_rate().0 * u64::from(ramp.length + 28) / u64::from(ramp.length)
    }

    #[test]
    fn a_train_of_which_a_policer_took_the_tail_was_not_carried() {
        for rate in [20_000, 30_000, 60_000, 64_000, 128_000, 256_000] {
            for credit in [3_000, 4_500, if rate < 200_000 { 9_000 } else { 6_000 }] {
                let ramp = behind_a_policer(rate, 1452, credit);
                let sent = with_headers(&ramp);
                assert!(sent * 100 <= rate * 125, "{sent} on {rate}, {credit} B of credit: {ramp:?}");
                assert!(sent * 4 >= rate, "{sent} on {rate}, {credit} B of credit: {ramp:?}");
            }
        }
    }

    #[test]
    fn a_pair_at_the_ceiling_does_not_speak_for_a_train_that_did_not_come() {
        let millis = Span::from_millis;
        for answers in [&[][..], &[(0, millis(3))]] {
            let mut ramp = Ramp::new(CEILING, 1452);
            ramp.observe(ramp.next().unwrap(), &[(0, millis(3)), (1, millis(14))]);
            while let Some(train) = ramp.next() {
                ramp.observe(train, answers);
            }
            assert_eq!((ramp.rate(), ramp.carried), (unknown(1452), None), "{ramp:?}");
            assert!(ramp.trains <= 4, "{ramp:?}");
        }
    }

    #[test]
    fn losses_at_random_make_the_rate_lean_low_and_do_not_make_it_nothing() {
        for (every, at_least) in [(10, 800_000), (5, 200_000), (3, 50_000)] {
            let mut number = 0;
            let ramp = shown_by(1452, |at| {
                number += 1;
                (number % every != 0).then_some(at + 20_000_000)
            });
            let rate = ramp.rate().bit_rate().0;
            assert!((at_least..=1_000_000).contains(&rate), "{rate} with one of {every} lost: {ramp:?}");
        }
    }

    #[test]
    fn a_burst_of_loss_in_one_train_is_not_the_rate_of_the_path() {
        let mut number = 0;
        let ramp = shown_by(1452, |at| {
            number += 1;
            (!(5..9).contains(&number)).then_some(at + 4_000_000)
        });
        assert_eq!((ramp.rate(), ramp.trains), (CEILING, 3), "{ramp:?}");
    }

    /// 64 datagrams, 93 kB, left at once on a path that had just been seen to carry 152 kbit/s.
    #[test]
    fn a_burst_of_which_nobody_typed_the_rate_does_not_fill_a_slow_path() {
        let of = |rate, asked| burst(asked, 1452, SendRate::at_least(rate));
        assert_eq!([of(121_000, 64), of(1_000_000, 64), of(1_000_000, 4), of(8_000, 1)], [1, 8, 4, 1]);
        assert_eq!(cut_burst(4, 1452, CEILING), None);
        let said = cut_burst(64, 1452, CEILING).unwrap();
        assert!(said.contains("64 datagrams of 1452 B at once fill the path for 743 ms"), "{said}");
        assert!(said.contains("--burst is 8 instead, which takes 100 ms at most"), "{said}");
    }

    #[test]
    fn what_goes_where_nothing_is_known_counts_its_headers() {
        assert_eq!([44, 64, 1452].map(|length| unknown(length).bit_rate().0), [7652, 9142, 15_488]);
        // A ceiling that is no faster needs nothing to be found out.
        assert!(Ramp::new(SendRate::MIN, 1452).is_needless() && !Ramp::new(CEILING, 1452).is_needless());
    }

    #[test]
    fn a_rate_that_nobody_typed_does_not_overfill_a_slow_path() {
        for (rate, queue) in [(20_000, 5), (20_000, 50), (64_000, 5), (384_000, 10), (700_000, 10)] {
            for length in [64, 512, 1452] {
                let ramp = over(rate, length, queue);
                let on_link = ramp.rate().bit_rate().0 * u64::from(length + 28) / u64::from(length);
                assert!(on_link * 100 <= rate * 125, "{on_link} on {rate} with {length} B: {ramp:?}");
                assert!(on_link * 2 >= rate, "{on_link} on {rate} with {length} B: {ramp:?}");
            }
        }
    }

    #[test]
    fn a_path_that_carries_the_usual_rate_gets_it_after_two_trains() {
        for (rate, length) in
            [(1_600_000, 1452), (10_000_000, 64), (1_000_000_000, 24), (1_000_000_000, 1452)]
        {
            let ramp = over(rate, length, 10);
            assert_eq!((ramp.rate(), ramp.trains), (CEILING, 2), "{rate}, {length} B: {ramp:?}");
        }
    }

    #[test]
    fn a_path_of_which_nothing_came_is_not_taken_for_a_fast_one() {
        let mut ramp = Ramp::new(CEILING, 1452);
        while let Some(train) = ramp.next() {
            ramp.observe(train, &[(0, Span::from_millis(3))]);
        }
        assert_eq!((ramp.rate(), ramp.trains), (unknown(1452), MAX_SILENT));
        // After a pair that came slowly, a train that did not come leaves nothing to go by.
        let mut ramp = Ramp::new(CEILING, 1452);
        ramp.observe(ramp.next().unwrap(), &[(0, Span::from_millis(3)), (1, Span::from_millis(203))]);
        ramp.observe(ramp.next().unwrap(), &[]);
        while let Some(train) = ramp.next() {
            ramp.observe(train, &[]);
        }
        assert_eq!(ramp.rate(), unknown(1452));
    }

    /// What each datagram in turn is held back by on a path that lets them overtake each other, ms.
    const JITTER: [u64; 16] = [40, 310, 95, 12, 180, 520, 66, 230, 150, 5, 410, 120, 75, 270, 33, 200];

    /// A link of this rate whose datagrams of 92 bytes are held back by [`JITTER`] behind it.
    fn behind_jitter(rate: u64) -> Ramp {
        let on_link = SendRate::at_least(rate).gap_ps(92) / 1000;
        let (mut free_at, mut number) = (0, 0);
        shown_up_to(SendRate::at_least(51_200), 64, move |at| {
            free_at = free_at.max(at) + on_link;
            number += 1;
            Some(free_at + JITTER[number % JITTER.len()] * 1_000_000)
        })
    }

    /// 10 Mbit/s with jitter of 150 ms got a request each 225 ms: trains "came at 2.84 kbit/s".
    #[test]
    fn jitter_between_the_answers_of_a_train_is_not_the_rate_of_the_path() {
        let ramp = behind_jitter(10_000_000);
        assert!(ramp.is_jittery, "{ramp:?}");
        assert_eq!(ramp.rate(), SendRate::at_least(51_200), "{ramp:?}");
        // A slow path that has jitter as well is not overfilled.
        let ramp = behind_jitter(20_000);
        assert!(ramp.is_jittery && with_headers(&ramp) <= 25_000, "{ramp:?}");
    }

    #[test]
    fn answers_at_equal_distances_are_those_of_a_slow_path_and_no_jitter() {
        let ramp = over(8_000, 64, 50);
        assert!(!ramp.is_jittery && with_headers(&ramp) <= 8_000, "{ramp:?}");
    }

    /// A ping takes some 90 ms on 8 kbit/s, and three datagrams are stretched by as much.
    #[test]
    fn a_ping_in_front_of_a_train_is_not_the_jitter_of_the_path() {
        let behind = |waits: i64| {
            let mut ramp = Ramp::new(CEILING, 64);
            let came = |first: i64, count: u64| -> Vec<_> {
                (0..count).map(|n| (n, Span::from_millis(first + 92 * n.cast_signed()))).collect()
            };
            let pair = ramp.next().unwrap();
            ramp.observe(pair, &came(92, pair.count));
            let train = ramp.next().unwrap();
            ramp.observe(train, &came(92 + waits, train.count));
            ramp
        };
        for waits in [0, 90, 100, 180] {
            let ramp = behind(waits);
            assert!(!ramp.is_jittery && with_headers(&ramp) <= 8_000, "{waits} ms: {ramp:?}");
        }
        assert!(behind(400).is_jittery, "no ping takes so long at the rate that was seen");
    }

    #[test]
    fn jitter_in_a_pair_is_not_the_rate_of_the_path() {
        let mut ramp = Ramp::new(CEILING, 1452);
        ramp.observe(ramp.next().unwrap(), &[(0, Span::from_millis(3)), (1, Span::from_millis(63))]);
        while let Some(train) = ramp.next() {
            let spacing = train.spacing(1452);
            let answers: Vec<_> = (0..train.count).map(|n| (n, spacing * n.cast_signed())).collect();
            ramp.observe(train, &answers);
        }
        assert_eq!(ramp.rate(), CEILING, "{ramp:?}");
    }
}
