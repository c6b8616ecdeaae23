//! How far the clocks of two points are apart, and how far that can be known.
//!
//! **What it estimates**: clock b minus clock a over time, as straight lines, each with a bound that the truth does not exceed.
//! **Ways**, of which the one with the tightest bound is taken:
//!
//! | method | bound |
//! |---|---|
//! | `same_host` | none needed: one clock |
//! | `clock_daemons` | the sum of what both hosts' daemons say they are off at most |
//! | `traffic_both_ways` | half the smallest round trip of the traffic itself, and the error of the fit |
//! | `active_exchange` | the same of exchanges of our own |
//!
//! **Assumes** that daemons do not lie; where the traffic proves that they do (a packet that arrived before it was sent) they are
//! not believed. **Bias**: half the difference of the smallest delays both ways is unknowable and inside the bound.
//! **Published**: see `clock/fit.rs`; docs/methods/clocks.md.

mod envelope;
mod fit;
mod segments;

use netaware_record::passive::{ClockState, Period};
use netaware_units::{Span, Wall};
use serde::{Deserialize, Serialize};

pub use envelope::{Envelope, Exchange};
use segments::Segment;

/// How an estimate came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Both points have the same clock.
    SameHost,
    /// Both are kept by daemons that say how far they may be off.
    ClockDaemons,
    /// From packets that were seen at both.
    TrafficBothWays,
    /// From exchanges of our own.
    ActiveExchange,
    /// Nothing is known.
    None,
}

impl Method {
    /// As records have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::SameHost => "same_host",
            Self::ClockDaemons => "clock_daemons",
            Self::TrafficBothWays => "traffic_both_ways",
            Self::ActiveExchange => "active_exchange",
            Self::None => "none",
        }
    }
}

/// Clock b minus clock a in one span, as a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// First instant, by clock a.
    pub from: Wall,
    /// First instant after it.
    pub until: Wall,
    /// The difference at both.
    pub offset: [Span; 2],
    /// The truth is no further from the line than this.
    pub bound: Span,
}

impl Line {
    /// Clock b minus clock a at an instant of clock a.
    #[inline]
    pub fn at(&self, at: Wall) -> Span {
        let (rise, run) = (self.offset[1] - self.offset[0], self.until.since(self.from));
        if rise == Span::ZERO || run.0 <= 0 {
            return self.offset[0];
        }
        let along = at.since(self.from).0 as f64 / run.0 as f64;
        self.offset[0] + Span((rise.0 as f64 * along).round() as i64)
    }
}

/// What is known of two clocks in one period.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// How.
    pub method: Method,
    /// Of which time, by clock a.
    pub period: Period,
    /// In order of time; where there is no line, the clocks did not run steadily, and delays cannot be told.
    pub lines: Vec<Line>,
    /// The clocks' daemons claimed to know, and the traffic proves them wrong.
    pub daemons_refuted: bool,
}

impl Estimate {
    /// Nothing is known.
    pub fn none(period: Period) -> Self {
        Self { method: Method::None, period, lines: Vec::new(), daemons_refuted: false }
    }

    /// The same offset all the time.
    pub fn steady(method: Method, period: Period, offset: Span, bound: Span) -> Self {
        let line = Line { from: period.from, until: period.until, offset: [offset; 2], bound };
        Self { method, period, lines: vec![line], daemons_refuted: false }
    }

    /// The greatest bound of all lines; `None` without any.
    pub fn bound(&self) -> Option<Span> {
        self.lines.iter().map(|line| line.bound).max()
    }

    /// Clock b minus clock a at an instant of clock a.
    #[inline]
    pub fn offset_at(&self, at: Wall) -> Option<Span> {
        self.line_at(at).map(|line| line.at(at))
    }

    /// The line that holds at an instant; lines that reach an end of the period hold beyond it too, for stamps on its edges.
    #[inline]
    pub fn line_at(&self, at: Wall) -> Option<&Line> {
        let place = self.lines.partition_point(|line| line.until <= at);
        match self.lines.get(place) {
            Some(line) if line.from <= at => Some(line),
            Some(first) if place == 0 && at < self.period.from && first.from <= self.period.from => {
                Some(first)
            }
            None if at >= self.period.until => {
                self.lines.last().filter(|last| last.until >= self.period.until)
            }
            _ => None,
        }
    }

    /// The difference in the middle of the period, or of the line that comes first.
    pub fn middle(&self) -> Option<Span> {
        let middle = Wall(i64::midpoint(self.period.from.0, self.period.until.0));
        self.offset_at(middle).or_else(|| self.lines.first().map(|line| line.offset[0]))
    }
}

/// What is known of the two clocks of one pair of points, from which [`ClockBook::estimate`] makes the best of a period.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClockBook {
    window: Span,
    traffic: Envelope,
    active: Envelope,
}

impl ClockBook {
    /// Of nothing. `period` is that of the rows, `window` how long a line is fitted over.
    pub fn new(period: Span, window: Span) -> Self {
        let width = bin_width(period);
        Self { window: window.max(period), traffic: Envelope::new(width), active: Envelope::new(width) }
    }

    /// An empty envelope that [`Self::learn`] takes.
    pub fn envelope(period: Span) -> Envelope {
        Envelope::new(bin_width(period))
    }

    /// Whether it may have grown from `new`, with packets whose stamps are no further apart than `longest`.
    pub(crate) fn can_follow(&self, new: &Self, longest: i64) -> bool {
        self.window == new.window
            && self.traffic.can_follow(&new.traffic, longest)
            && self.active.can_follow(&new.active, longest)
    }

    /// Takes what the traffic of a period says.
    pub fn learn(&mut self, traffic: &Envelope) {
        self.traffic.merge(traffic);
    }

    /// Takes an exchange of our own; point a asked.
    pub fn exchange(&mut self, exchange: &Exchange) {
        self.active.exchange(exchange);
        self.active.keep_newest(MOST_BINS);
    }

    /// The same where point b asked. Seen from a, the answer is a packet of its own, and the question the one that came back.
    pub fn exchange_back(&mut self, exchange: &Exchange) {
        self.active.forward(exchange.answered, exchange.returned);
        self.active.reverse(exchange.sent, exchange.received);
        self.active.keep_newest(MOST_BINS);
    }

    /// Forgets what is too old to say anything of this period and later ones.
    pub fn forget_before(&mut self, period: Period) {
        let start = self.start(period);
        self.traffic.forget_before(start);
        self.active.forget_before(start);
    }

    fn start(&self, period: Period) -> Wall {
        Wall(period.until.0.saturating_sub(self.window.0).min(period.from.0))
    }

    /// The best that can be said of a period. `clocks` are the states that a and b reported of this time.
    pub fn estimate(&mut self, period: Period, clocks: [&[ClockState]; 2]) -> Estimate {
        self.forget_before(period);
        let start = self.start(period);
        if same_clock(clocks) {
            return Estimate::steady(Method::SameHost, period, Span::ZERO, Span::ZERO);
        }
        let traffic = (Method::TrafficBothWays, segments::lines(&self.traffic, start, period));
        let active = (Method::ActiveExchange, segments::lines(&self.active, start, period));
        Self::best(period, clocks, [traffic, active])
    }

    fn best(period: Period, clocks: [&[ClockState]; 2], measured: [(Method, Vec<Segment>); 2]) -> Estimate {
        let daemons = by_daemons(clocks);
        let refuted = daemons.is_some_and(|bound| {
            measured.iter().flat_map(|(_, lines)| lines).any(|segment| contradicts(segment, bound))
        });
        let told = daemons
            .filter(|_| !refuted)
            .map(|bound| Estimate::steady(Method::ClockDaemons, period, Span::ZERO, bound));
        let fitted = measured
            .into_iter()
            .filter(|(_, lines)| !lines.is_empty())
            .map(|(method, lines)| Estimate { method, period, lines, daemons_refuted: false });
        let best = told.into_iter().chain(fitted).min_by_key(Estimate::bound);
        Estimate { daemons_refuted: refuted, ..best.unwrap_or_else(|| Estimate::none(period)) }
    }
}

/// Exchanges come before the packets of their time are settled, hours before after an outage: 16 bins in each period of a second for
/// an hour and more, some megabytes for a pair.
const MOST_BINS: usize = 1 << 16;

/// A point stamps by the same clock as another when both are told so by the same running kernel.
fn same_clock(clocks: [&[ClockState]; 2]) -> bool {
    let identity = |states: &[ClockState]| states.last().and_then(|state| state.identity.clone());
    let one = identity(clocks[0]);
    one.is_some() && one == identity(clocks[1])
}

/// The sum of the greatest bounds of both; `None` if either says of any of this time that it does not know, or jumped.
fn by_daemons(clocks: [&[ClockState]; 2]) -> Option<Span> {
    let bound = |states: &[ClockState]| {
        let each =
            states.iter().map(|state| state.bound.filter(|_| state.synchronised && state.stepped.is_none()));
        each.collect::<Option<Vec<Span>>>()?.into_iter().max()
    };
    Some(bound(clocks[0])? + bound(clocks[1])?)
}

/// Whether no difference within `bound` is one that the traffic allows.
fn contradicts(line: &Segment, bound: Span) -> bool {
    line.offset.iter().any(|offset| offset.abs() > bound + line.bound)
}

/// Fine enough that the smallest delays of a period are in many bins, coarse enough that some hundred are all.
fn bin_width(period: Span) -> Span {
    period / 256
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;
    const PERIOD: Period = Period { from: Wall(0), until: Wall(10 * SECOND) };

    fn state(bound_us: i64) -> ClockState {
        ClockState {
            source: "chrony".into(),
            synchronised: true,
            bound: Some(Span::from_micros(bound_us)),
            ..ClockState::default()
        }
    }

    fn book_with_traffic(offset: i64, delay: i64) -> ClockBook {
        let mut book = ClockBook::new(Span::from_secs(10), Span::from_secs(64));
        let mut traffic = ClockBook::envelope(Span::from_secs(10));
        for at in (0..10 * SECOND).step_by(10_000_000) {
            traffic.forward(Wall(at), Wall(at + delay + offset));
            traffic.reverse(Wall(at + offset), Wall(at + delay));
        }
        book.learn(&traffic);
        book
    }

    #[test]
    fn the_tightest_bound_is_taken() {
        let rows = [
            (1000, 10_000, Method::TrafficBothWays),
            (1, 10_000, Method::ClockDaemons),
            (0, 500_000_000, Method::ClockDaemons),
        ];
        for (bound_us, delay, want) in rows {
            let told = [state(bound_us)];
            let found = book_with_traffic(0, delay).estimate(PERIOD, [&told, &told]);
            assert_eq!(found.method, want, "{found:?}");
            assert!(!found.daemons_refuted);
        }
    }

    #[test]
    fn daemons_that_the_traffic_refutes_are_not_believed() {
        let told = [state(100)];
        let found = book_with_traffic(50_000_000, 5_000_000).estimate(PERIOD, [&told, &told]);
        assert_eq!((found.method, found.daemons_refuted), (Method::TrafficBothWays, true));
        let offset = found.offset_at(Wall(5 * SECOND)).unwrap();
        assert!((offset - Span::from_millis(50)).abs() < Span::from_micros(10), "{offset}");
    }

    #[test]
    fn one_kernel_has_one_clock() {
        let here = [ClockState { identity: Some("boot".into()), ..ClockState::default() }];
        let there = [ClockState { identity: Some("other".into()), ..ClockState::default() }];
        let mut book = ClockBook::new(Span::from_secs(10), Span::from_secs(64));
        assert_eq!(book.estimate(PERIOD, [&here, &here]).method, Method::SameHost);
        assert_eq!(book.estimate(PERIOD, [&here, &there]).method, Method::None);
        assert_eq!(book.estimate(PERIOD, [&[], &[]]).bound(), None);
    }

    #[test]
    fn a_daemon_that_jumped_or_does_not_know_is_no_help() {
        let good = [state(5)];
        let jumped = [state(5), ClockState { stepped: Some(Span(2)), ..state(5) }];
        let silent = [ClockState { bound: None, ..state(5) }];
        assert_eq!(by_daemons([&good, &good]), Some(Span::from_micros(10)));
        for bad in [&jumped[..], &silent[..]] {
            assert_eq!(by_daemons([&good, bad]), None);
        }
        assert_eq!(by_daemons([&good, &[]]), None);
    }

    #[test]
    fn exchanges_serve_where_traffic_goes_one_way_only() {
        let mut book = ClockBook::new(Span::from_secs(10), Span::from_secs(64));
        for at in (0..10 * SECOND).step_by(100_000_000) {
            let theta = 3_000_000;
            book.exchange(&Exchange {
                sent: Wall(at),
                received: Wall(at + 20_000 + theta),
                answered: Wall(at + 30_000 + theta),
                returned: Wall(at + 60_000),
            });
        }
        let found = book.estimate(PERIOD, [&[], &[]]);
        assert_eq!(found.method, Method::ActiveExchange);
        let off = found.offset_at(Wall(SECOND)).unwrap() - Span(3_000_000);
        assert!(
            off.abs() <= found.bound().unwrap() && found.bound().unwrap() < Span::from_micros(30),
            "{found:?}"
        );
    }
}
