//! What a path carries, found out before a stream of which nobody typed the rate.
//!
//! A stream that does not listen to losses harms everybody on a path that it overfills, so it must
//! not run faster than the path was seen to carry. A pair of datagrams and then short trains go
//! over an echo flow: long requests and short answers for what this host sends, short requests and
//! long answers for what the responder sends. Each train is at most twice as fast as the one before
//! was carried, and the last one is what counts. **Biased**: jitter stretches a short train, so the
//! rate leans low; credit of a policer lets a train pass, so there it can be high.
//! docs/methods/planning.md has the rules with their reasons.

use netaware_io::stop::StopFlag;
use netaware_record::Direction;
use netaware_units::{BitRate, ByteCount, SendRate, Span};

use crate::echo::{EchoOrder, EchoSizes};
use crate::lane::{self, Lane};
use crate::lease;
use crate::request::Target;

/// The rate of a stream in this direction: `ceiling`, or less if the path was seen to carry less.
pub(crate) fn rate(
    lane: &mut Lane,
    target: &Target,
    direction: Direction,
    length: u32,
    ceiling: SendRate,
    stop: &StopFlag,
) -> SendRate {
    let length = length.min(LONGEST);
    let ramp = climb(lane, target, direction, Ramp::new(ceiling, length), stop);
    let rate = ramp.rate();
    // Without a flow the stream will not come about either, and says why.
    if rate < ceiling && lane.is_alive() && ramp.trains > 0 {
        let way = direction.name();
        let why = match ramp.carried {
            Some(carried) => format!("the path was seen to carry {carried} {way}"),
            None => format!(
                "no answer came to datagrams of {length} B, so what the path carries {way} is not known"
            ),
        };
        lane.warn(&format!("no rate was given, and {why}: the stream runs at {rate}; -b sets a rate"));
    }
    rate
}

/// How long that takes in one direction of a path that carries the ceiling and loses nothing: a
/// pair and a train, each with its answers, and the exchanges around them.
pub(crate) fn lasts(exchange: Span) -> Span {
    lease::exchanges(exchange, 1) + (TRAIN + exchange) * 2
}

/// What the path was seen to carry in this direction, at most `ceiling`; `None` where no answer
/// came.
pub(crate) fn carried(
    lane: &mut Lane,
    target: &Target,
    direction: Direction,
    length: u32,
    ceiling: SendRate,
    stop: &StopFlag,
) -> Option<SendRate> {
    climb(lane, target, direction, Ramp::new(ceiling, length.min(LONGEST)), stop).carried
}

/// Sends trains until the ramp has seen enough.
fn climb(lane: &mut Lane, target: &Target, direction: Direction, mut ramp: Ramp, stop: &StopFlag) -> Ramp {
    let sizes = sizes(lane, direction, ramp.length);
    let round_trip = lane.round_trip();
    lane::attach_echo(std::slice::from_mut(lane), target, FLOW + round_trip * 20, sizes);
    while let Some(train) = ramp.next().filter(|_| lane.echo.is_some() && !stop.is_raised()) {
        let order = EchoOrder {
            response: sizes.response,
            patience: round_trip * 2 + PATIENCE,
            ..EchoOrder::open_loop(Some(train.count), train.spacing(ramp.length), sizes.request)
        };
        let Some(run) = lane.echo(&order) else { break };
        ramp.observe(train, &run.round.arrivals(order.shown_spacing()));
    }
    if let (Some(flow), Some(session)) = (lane.echo.take(), lane.session())
        && let Err(cause) = flow.close(session)
    {
        lane.fail("end a UDP flow", cause);
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
}

impl Ramp {
    fn new(ceiling: SendRate, length: u32) -> Self {
        Self { ceiling, length, carried: None, next: Some(ceiling), trains: 0 }
    }

    fn next(&self) -> Option<Train> {
        let rate = self.next.filter(|_| self.trains < MAX_TRAINS)?;
        let count = if self.carried.is_none() {
            2
        } else {
            let bits = u128::from(rate.bit_rate().0) * u128::from(TRAIN.0.cast_unsigned()) / 1_000_000_000;
            let fit = bits / (u128::from(self.length.max(1)) * 8) + 1;
            u64::try_from(fit).unwrap_or(MAX_COUNT).clamp(MIN_COUNT, MAX_COUNT)
        };
        Some(Train { count, rate })
    }

    /// Takes note of when the answers of a train came, since its beginning.
    fn observe(&mut self, train: Train, arrivals: &[Span]) {
        self.trains += 1;
        let Some(seen) = arrival_rate(arrivals, self.length) else {
            // A pair may get lost anywhere; a train of which nothing comes is an answer.
            self.next = self.next.filter(|_| self.carried.is_none() && self.trains < MAX_SILENT);
            return;
        };
        let seen = seen.min(train.rate);
        let is_first = self.carried.replace(seen).is_none();
        let was_carried = seen.bit_rate().percent(ENOUGH) >= train.rate.bit_rate();
        let is_at_the_top = train.rate >= self.ceiling;
        let goes_on = is_first || (was_carried && !is_at_the_top);
        self.next = goes_on.then(|| seen.percent(200).min(self.ceiling));
    }

    /// The ceiling if it is at most 1.25 times what was carried; otherwise 80 % of that.
    fn rate(&self) -> SendRate {
        match self.carried {
            None => UNKNOWN.min(self.ceiling),
            Some(carried) if carried.percent(ENOUGH) >= self.ceiling => self.ceiling,
            Some(carried) => carried.percent(SHARE),
        }
    }
}

/// The payload rate at which datagrams came. One alone has no rate.
fn arrival_rate(arrivals: &[Span], length: u32) -> Option<SendRate> {
    let (first, last) = (arrivals.iter().min()?, arrivals.iter().max()?);
    let after_the_first = arrivals.len() as u64 - 1;
    if after_the_first == 0 {
        return None;
    }
    let took = (*last - *first).max(Span(1));
    BitRate::mean(ByteCount(after_the_first * u64::from(length)), took).and_then(SendRate::new)
}

/// Longer datagrams are fragments of about this length on the path, and a pair of them would take
/// long on a slow one.
const LONGEST: u32 = 1452;
/// Room for the stamps of an echo.
const SHORT: u32 = 44;
/// A train lasts about so long, so that jitter of some milliseconds does not count.
const TRAIN: Span = Span::from_millis(100);
const MIN_COUNT: u64 = 3;
const MAX_COUNT: u64 = 64;
const MAX_TRAINS: u32 = 10;
/// Pairs without an answer, each of which takes patience.
const MAX_SILENT: u32 = 3;
/// A stream may be 1.25 times as fast as what was seen to be carried.
const ENOUGH: u64 = 125;
const SHARE: u64 = 80;
/// Where nothing came back. What is lost of a stream at this rate, one datagram of full length each
/// 0.7 s, fills no path.
const UNKNOWN: SendRate = SendRate::at_least(16_000);
/// Three datagrams of full length take 1.7 s on 20 kbit/s.
const PATIENCE: Span = Span::from_secs(1);
/// All trains together, on a path without delay.
const FLOW: Span = Span::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    const CEILING: SendRate = SendRate::at_least(1_000_000);

    /// What the trains show of a link of this rate with a drop-tail queue of so many datagrams.
    fn over(rate: u64, length: u32, queue: usize) -> Ramp {
        let mut ramp = Ramp::new(CEILING, length);
        while let Some(train) = ramp.next() {
            let on_link = SendRate::at_least(rate).gap_ps(length + 28) / 1000;
            let (mut free_at, mut arrivals) = (0, Vec::new());
            for n in 0..train.count {
                let at = n * train.spacing(length).0.cast_unsigned();
                if free_at > at + on_link * queue as u64 {
                    continue;
                }
                free_at = free_at.max(at) + on_link;
                arrivals.push(Span(free_at.cast_signed()));
            }
            ramp.observe(train, &arrivals);
        }
        ramp
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
            ramp.observe(train, &[Span::from_millis(3)]);
        }
        assert_eq!((ramp.rate(), ramp.trains), (UNKNOWN, MAX_SILENT));
        // After a pair that came, a train that did not is no reason to go on.
        let mut ramp = Ramp::new(CEILING, 1452);
        ramp.observe(ramp.next().unwrap(), &[Span::from_millis(3), Span::from_millis(203)]);
        ramp.observe(ramp.next().unwrap(), &[]);
        assert_eq!((ramp.next(), ramp.rate()), (None, SendRate::at_least(46_464)));
    }

    #[test]
    fn jitter_in_a_pair_is_not_the_rate_of_the_path() {
        let mut ramp = Ramp::new(CEILING, 1452);
        ramp.observe(ramp.next().unwrap(), &[Span::from_millis(3), Span::from_millis(63)]);
        while let Some(train) = ramp.next() {
            let spacing = train.spacing(1452);
            let arrivals: Vec<Span> = (0..train.count.cast_signed()).map(|n| spacing * n).collect();
            ramp.observe(train, &arrivals);
        }
        assert_eq!(ramp.rate(), CEILING, "{ramp:?}");
    }
}
