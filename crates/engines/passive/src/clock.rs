//! How far the clocks of two points are apart, and how far that can be known.
//!
//! **What it estimates**: clock b minus clock a over time, as straight lines, each with a bound
//! that the truth does not exceed. **Ways**, of which the one with the tightest bound is taken:
//!
//! | method | bound |
//! |---|---|
//! | `same_host` | none needed: one clock |
//! | `clock_daemons` | the sum of what both hosts' daemons say they are off at most |
//! | `traffic_both_ways` | half the smallest round trip of the traffic itself, and the error of the fit |
//! | `active_exchange` | the same of exchanges of our own |
//!
//! **Assumes** that daemons do not lie; where the traffic proves that they do (a packet that
//! arrived before it was sent) they are not believed. **Bias**: half the difference of the smallest
//! delays both ways is unknowable and inside the bound. **Published**: see `clock/fit.rs`;
//! docs/methods/clocks.md.

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
    /// In order of time; where there is no line, the clocks did not run steadily, and delays cannot
    /// be told.
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

    /// The line that holds at an instant; lines that reach an end of the period hold beyond it too,
    /// for stamps on its edges.
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

/// What is known of the two clocks of one pair of points, from which [`ClockBook::estimate`] makes
/// the best of a period.
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

    /// Whether it may have grown from `new`, with packets whose stamps are no further apart than
    /// `longest`.
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

    /// The same where point b asked. Seen from a, the answer is a packet of its own, and the
    /// question the one that came back.
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

    /// The best that can be said of a period. `clocks` are the states that a and b reported of this
    /// time.
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

/// Exchanges come before the packets of their time are settled, hours before after an outage: 16
/// bins in each period of a second for an hour and more, some megabytes for a pair.
const MOST_BINS: usize = 1 << 16;

/// A point stamps by the same clock as another when both are told so by the same running kernel.
fn same_clock(clocks: [&[ClockState]; 2]) -> bool {
    let identity = |states: &[ClockState]| states.last().and_then(|state| state.identity.clone());
    let one = identity(clocks[0]);
    one.is_some() && one == identity(clocks[1])
}

/// The sum of the greatest bounds of both; `None` if either says of any of this time that it does
/// not know, or jumped.
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

/// Fine enough that the smallest delays of a period are in many bins, coarse enough that some
/// hundred are all.
fn bin_width(period: Span) -> Span {
    period / 256
}

#[cfg(test)]
mod tests {
    use super::envelope::{Bin, Limit};
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

    #[test]
    fn a_line_goes_on_to_both_sides_and_one_of_no_length_stays_where_it_is() {
        let line = |until: i64, offset: [i64; 2]| Line {
            from: Wall(100),
            until: Wall(until),
            offset: offset.map(Span),
            bound: Span(5),
        };
        let instants = [50, 100, 150, 153, 200, 400].map(Wall);
        let (rising, falling) = (line(200, [10, 30]), line(200, [30, 10]));
        assert_eq!(instants.map(|at| rising.at(at)), [0, 10, 20, 21, 30, 70].map(Span));
        assert_eq!(instants.map(|at| falling.at(at)), [40, 30, 20, 19, 10, -30].map(Span));
        assert_eq!(line(200, [7, 7]).at(Wall(900)), Span(7));
        assert_eq!(line(100, [5, 9]).at(Wall(300)), Span(5));
    }

    #[test]
    fn lines_hold_where_they_are_and_beyond_the_edges_that_they_reach() {
        let line = |from: i64, until: i64, offset: i64| Line {
            from: Wall(from),
            until: Wall(until),
            offset: [Span(offset); 2],
            bound: Span(until - from),
        };
        let period = Period { from: Wall(100), until: Wall(200) };
        let estimate = |lines: &[Line]| Estimate { lines: lines.to_vec(), ..Estimate::none(period) };
        let some = |offset: i64| Some(Span(offset));

        let whole = estimate(&[line(100, 140, 1), line(150, 200, 2)]);
        let found = [0, 99, 100, 139, 140, 149, 150, 199, 200, 900].map(|at| whole.offset_at(Wall(at)));
        let (one, two) = (some(1), some(2));
        assert_eq!(found, [one, one, one, one, None, None, two, two, two, two]);
        assert_eq!((whole.bound(), whole.middle()), (some(50), two));

        let inside = estimate(&[line(120, 130, 3), line(160, 180, 4)]);
        let found = [99, 110, 120, 129, 130, 179, 180, 200, 900].map(|at| inside.offset_at(Wall(at)));
        assert_eq!(found, [None, None, some(3), some(3), None, some(4), None, None, None]);
        assert_eq!((inside.bound(), inside.middle()), (some(20), some(3)));

        let before = estimate(&[line(40, 80, 5), line(100, 200, 6)]);
        let found = [30, 50, 90, 100].map(|at| before.offset_at(Wall(at)));
        assert_eq!(found, [some(5), some(5), None, some(6)]);

        let nothing = Estimate::none(period);
        assert_eq!((nothing.bound(), nothing.middle(), nothing.offset_at(Wall(150))), (None, None, None));
    }

    #[test]
    fn what_is_older_than_the_window_is_forgotten_and_the_rest_stays() {
        let length = Span::from_secs(10);
        assert_eq!(ClockBook::envelope(length), Envelope::new(Span(39_062_500)));
        let of = |seconds: &[i64]| {
            let mut envelope = ClockBook::envelope(length);
            let packet = |at: &i64| envelope.forward(Wall(at * SECOND), Wall(at * SECOND + 7));
            seconds.iter().for_each(packet);
            envelope
        };
        let mut book = ClockBook::new(length, Span::from_secs(64));
        book.learn(&of(&[1, 45, 46, 90]));
        book.active.merge(&of(&[2, 45, 46, 91]));
        book.forget_before(Period { from: Wall(100 * SECOND), until: Wall(110 * SECOND) });
        assert_eq!((&book.traffic, &book.active), (&of(&[46, 90]), &of(&[46, 91])));
        // A period that is longer than the window is kept as a whole.
        let longer = Period { from: Wall(50 * SECOND), until: Wall(300 * SECOND) };
        assert_eq!(book.estimate(longer, [&[], &[]]), Estimate::none(longer));
        assert_eq!((&book.traffic, &book.active), (&of(&[90]), &of(&[91])));
    }

    #[test]
    fn a_book_that_cannot_have_grown_from_another_is_told() {
        let length = Span::from_secs(10);
        let new = ClockBook::new(length, Span::from_secs(64));
        let grown = |traffic: i64, active: i64| {
            let mut book = new.clone();
            book.traffic.forward(Wall(5000), Wall(5000 + traffic));
            book.active.forward(Wall(5000), Wall(5000 + active));
            book
        };
        for (traffic, active, can_follow) in
            [(100, 100, true), (-100, -100, true), (101, 100, false), (100, 101, false), (-101, 0, false)]
        {
            let book = grown(traffic, active);
            assert_eq!(book.can_follow(&new, 100), can_follow, "{traffic} {active}");
        }
        assert!(!grown(0, 0).can_follow(&ClockBook::new(length, Span::from_secs(65)), 100));
    }

    #[test]
    fn an_exchange_says_the_same_whichever_point_asked() {
        // Clock b is 3 ms ahead. A packet takes 20 us from a to b and 30 us back.
        let theta = 3_000_000;
        let asked_by_a = Exchange {
            sent: Wall(0),
            received: Wall(20_000 + theta),
            answered: Wall(30_000 + theta),
            returned: Wall(60_000),
        };
        let asked_by_b = Exchange {
            sent: Wall(theta),
            received: Wall(30_000),
            answered: Wall(40_000),
            returned: Wall(60_000 + theta),
        };
        let mut books = [(); 2].map(|()| ClockBook::new(Span::from_secs(10), Span::from_secs(64)));
        books[0].exchange(&asked_by_a);
        books[1].exchange_back(&asked_by_b);
        for (book, most_at, least_at) in [(&books[0], 0, 60_000), (&books[1], 40_000, 30_000)] {
            let most = Limit { difference: 3_020_000, at: most_at };
            let least = Limit { difference: 2_970_000, at: least_at };
            let found: Vec<Bin> = book.active.limits(0, SECOND).collect();
            assert_eq!(found, [Bin { most: Some(most), least: Some(least) }]);
        }
    }

    #[test]
    fn daemons_are_refuted_only_by_a_difference_beyond_both_bounds() {
        for (offset, bound, refuted) in [
            ([15, 0], 10, false),
            ([16, 0], 10, true),
            ([0, -15], 10, false),
            ([0, -16], 10, true),
            ([-15, 0], 9, true),
        ] {
            let line = Line { from: Wall(0), until: Wall(10), offset: offset.map(Span), bound: Span(5) };
            assert_eq!(contradicts(&line, Span(bound)), refuted, "{offset:?} with {bound}");
        }
        let (told, other) = ([state(5), state(7)], [state(3)]);
        let unsure = [ClockState { synchronised: false, ..state(3) }];
        assert_eq!(by_daemons([&told, &other]), Some(Span::from_micros(10)));
        assert_eq!(by_daemons([&told, &unsure]), None);
    }
}
