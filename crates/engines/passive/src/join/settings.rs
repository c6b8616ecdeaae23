//! What a join is asked to join.

use std::fmt;

use netaware_units::Span;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Place of a point in [`JoinSettings::points`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PointId(pub u8);

/// How it is known which way a packet went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The point with the higher TTL saw it first; where they are equal, the one with the earlier
    /// corrected stamp did.
    #[default]
    ByHops,
    /// The tasks' filter lets only packets from the first to the second point pass.
    Given,
}

/// Which packets of the first point must come to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Expects {
    /// All that the tasks' filter lets pass: the loss is exact.
    #[default]
    Everything,
    /// All but those that a third point saw: for meshes with one filter for all. A packet that only
    /// its first point saw is then counted as lost towards every other, for nobody knows where it
    /// went: loss reads high.
    NothingSeenElsewhere,
}

/// Two points in the order in which packets pass them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// First point.
    pub from: String,
    /// Second point.
    pub to: String,
    /// How that order is known.
    #[serde(default)]
    pub direction: Direction,
    /// What counts as lost.
    #[serde(default)]
    pub expects: Expects,
}

impl Pair {
    /// By hops, and everything is expected.
    pub fn new(from: impl Into<String>, to: impl Into<String>) -> Self {
        Self {
            from: from.into(),
            to: to.into(),
            direction: Direction::default(),
            expects: Expects::default(),
        }
    }
}

/// Everything that a join must know beforehand. All collectors that share a join must have the
/// same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JoinSettings {
    /// Names of the points, 2 to [`Self::MOST_POINTS`].
    pub points: Vec<String>,
    /// Which to compare; empty: each with each, both ways.
    pub pairs: Vec<Pair>,
    /// Length of a row's period, aligned to the epoch by the clock of the first point.
    pub period: Span,
    /// How long a packet may take (Tmax); what comes later is late and was lost.
    pub patience: Span,
    /// How much longer is waited to see that a packet was late. A packet that comes later still is
    /// taken for another.
    pub lateness: Span,
    /// How far the clocks of two points may be apart at most.
    pub clocks_apart: Span,
    /// How long the report of a point is waited for that is silent or only stays behind, by the
    /// collector's clock; then its time counts as unobserved.
    pub report_patience: Span,
    /// Sightings in memory at most, 24 bytes each; beyond, the oldest eighth is settled at once,
    /// and what has no partner yet is given up and counted.
    pub most_sightings: usize,
    /// Into how many equal ranges digests are divided for IPDV and reordering, which compare
    /// neighbours of one range only. As many as collectors share the join (or a multiple); 1
    /// compares all.
    pub lanes: u16,
    /// Which of how many equal ranges of the digest space ([`super::shard_of`]) is joined here, the
    /// first being 0. Of other ranges only the clock sample ([`super::is_clock_sample`]) is used,
    /// for the clocks.
    pub part: (u16, u16),
    /// How long the clocks' line is fitted over, at least a period.
    pub clock_window: Span,
}

impl Default for JoinSettings {
    /// Ten-second rows, three seconds' patience, clocks within a second, 24 million sightings (0.6
    /// GB).
    fn default() -> Self {
        Self {
            points: Vec::new(),
            pairs: Vec::new(),
            period: Span::from_secs(10),
            patience: Span::from_secs(3),
            lateness: Span::from_secs(3),
            clocks_apart: Span::from_secs(1),
            report_patience: Span::from_secs(30),
            most_sightings: 24_000_000,
            lanes: 1,
            part: (0, 1),
            clock_window: Span::from_secs(64),
        }
    }
}

impl JoinSettings {
    /// A packet's path is a bit set.
    pub const MOST_POINTS: usize = 64;

    /// The defaults for these points.
    pub fn of(points: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { points: points.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// The point of that name.
    pub fn point(&self, name: &str) -> Option<PointId> {
        let at = self.points.iter().position(|point| point == name)?;
        u8::try_from(at).ok().map(PointId)
    }

    /// Sightings of one digest within this span are of one packet: a packet may be late, and clocks
    /// apart on either side.
    pub(crate) fn window(&self) -> i64 {
        (self.patience + self.lateness + self.clocks_apart * 2).0
    }

    /// Whether packets with this digest make rows here.
    #[inline]
    pub fn is_joined_here(&self, digest: u64) -> bool {
        super::is_of_part(digest, self.part)
    }

    /// With lanes others may have other digests, or one is to find what several would: clocks are
    /// known from the sample that all have.
    pub(crate) fn is_shared(&self) -> bool {
        self.lanes > 1
    }

    /// Cells of a link and IP version: one for each lane, and one for the clock sample where the
    /// join is shared.
    pub(crate) fn cells(&self) -> usize {
        usize::from(self.lanes) + usize::from(self.is_shared())
    }

    pub(crate) fn links(&self) -> Result<Vec<Link>, SettingsError> {
        self.check()?;
        let mut links: Vec<Link> = Vec::new();
        if self.pairs.is_empty() {
            for (a, from) in self.points.iter().enumerate() {
                for to in &self.points[a + 1..] {
                    self.add(&mut links, &Pair::new(from, to))?;
                    self.add(&mut links, &Pair::new(to, from))?;
                }
            }
        }
        for pair in &self.pairs {
            self.add(&mut links, pair)?;
        }
        Ok(links)
    }

    fn check(&self) -> Result<(), SettingsError> {
        if !(2..=Self::MOST_POINTS).contains(&self.points.len()) {
            return Err(SettingsError::Points(self.points.len()));
        }
        if let Some(twice) =
            self.points.iter().enumerate().find(|(at, name)| self.points[..*at].contains(name))
        {
            return Err(SettingsError::Twice(twice.1.clone()));
        }
        let longest = Span::from_secs(86_400);
        for (what, span, least) in [
            ("period", self.period, Span::from_millis(1)),
            ("patience", self.patience, Span(1)),
            ("lateness", self.lateness, Span::ZERO),
            ("clocks_apart", self.clocks_apart, Span::ZERO),
            ("report_patience", self.report_patience, Span::ZERO),
            ("clock_window", self.clock_window, Span::ZERO),
        ] {
            if span < least || span > longest {
                return Err(SettingsError::Span { what, span });
            }
        }
        if self.lanes == 0 || self.most_sightings < 1024 {
            return Err(SettingsError::Zero);
        }
        if self.part.0 >= self.part.1 || !self.lanes.is_multiple_of(self.part.1) {
            return Err(SettingsError::Part { part: self.part, lanes: self.lanes });
        }
        Ok(())
    }

    fn add(&self, links: &mut Vec<Link>, pair: &Pair) -> Result<(), SettingsError> {
        let find = |name: &String| self.point(name).ok_or_else(|| SettingsError::Unknown(name.clone()));
        let (from, to) = (find(&pair.from)?.0, find(&pair.to)?.0);
        if from == to {
            return Err(SettingsError::Same(pair.from.clone()));
        }
        let forward = usize::from(from > to);
        let (a, b) = (from.min(to), from.max(to));
        let at = links.iter().position(|link| (link.a, link.b) == (a, b)).unwrap_or_else(|| {
            links.push(Link { a, b, wanted: [None; 2], given: false });
            links.len() - 1
        });
        let link = &mut links[at];
        let given = pair.direction == Direction::Given;
        if link.wanted[forward].is_some() || (link.wanted[1 - forward].is_some() && (link.given || given)) {
            return Err(SettingsError::Contradiction(pair.from.clone(), pair.to.clone()));
        }
        link.wanted[forward] = Some(pair.expects);
        link.given = given;
        Ok(())
    }
}

/// Two points whatever the order, `a < b`; direction 0 is from `a` to `b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) a: u8,
    pub(crate) b: u8,
    pub(crate) wanted: [Option<Expects>; 2],
    /// Only the one wanted direction exists.
    pub(crate) given: bool,
}

impl Link {
    /// First point of a direction.
    pub(crate) fn from(self, direction: usize) -> u8 {
        [self.a, self.b][direction]
    }

    /// Second point of a direction.
    pub(crate) fn to(self, direction: usize) -> u8 {
        [self.b, self.a][direction]
    }
}

/// Why no join can be made of settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingsError {
    /// So many points.
    Points(usize),
    /// A name twice.
    Twice(String),
    /// A pair names a point that is not there.
    Unknown(String),
    /// A pair of one point with itself.
    Same(String),
    /// A pair twice, or both directions where one was said to be the only one.
    Contradiction(String, String),
    /// Too short, or longer than a day.
    Span {
        /// Name of the setting.
        what: &'static str,
        /// What it was set to.
        span: Span,
    },
    /// No lanes, or room for fewer than 1024 sightings.
    Zero,
    /// There is no such part, or lanes that lie in two.
    Part {
        /// Which of how many.
        part: (u16, u16),
        /// As they were set.
        lanes: u16,
    },
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Points(n) => write!(f, "a join has 2 to {} points, not {n}", JoinSettings::MOST_POINTS),
            Self::Twice(name) => write!(f, "the point '{name}' is named twice"),
            Self::Unknown(name) => write!(f, "a pair names '{name}', which is none of the points"),
            Self::Same(name) => write!(f, "the point '{name}' cannot be compared with itself"),
            Self::Contradiction(from, to) => {
                write!(f, "the pair from '{from}' to '{to}' contradicts another of the same two points")
            }
            Self::Span { what, span } => write!(f, "{what} cannot be {span}"),
            Self::Part { part: (index, parts), lanes } => write!(
                f,
                "{} of {parts} is no part whose digests are whole lanes of {lanes}",
                u32::from(*index) + 1
            ),
            Self::Zero => write!(f, "a join needs at least one lane and room for 1024 sightings"),
        }
    }
}

impl std::error::Error for SettingsError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_pairs_each_is_compared_with_each_both_ways() {
        let links = JoinSettings::of(["a", "b", "c"]).links().unwrap();
        let all = [Some(Expects::Everything); 2];
        let want = [(0, 1), (0, 2), (1, 2)].map(|(a, b)| Link { a, b, wanted: all, given: false });
        assert_eq!(links, want);
    }

    #[test]
    fn a_pair_against_the_order_of_points_is_the_second_direction() {
        let pairs = vec![Pair { direction: Direction::Given, ..Pair::new("b", "a") }];
        let links = JoinSettings { pairs, ..JoinSettings::of(["a", "b"]) }.links().unwrap();
        assert_eq!(links[0].wanted, [None, Some(Expects::Everything)]);
        assert_eq!((links[0].from(1), links[0].to(1), links[0].given), (1, 0, true));
    }

    #[test]
    fn settings_that_cannot_be_say_why() {
        let points = JoinSettings::of(["a", "b"]);
        let given = |from: &str, to: &str| Pair { direction: Direction::Given, ..Pair::new(from, to) };
        let rows = [
            (JoinSettings::of(["a"]), SettingsError::Points(1)),
            (JoinSettings::of(["a", "a"]), SettingsError::Twice("a".into())),
            (
                JoinSettings { pairs: vec![Pair::new("a", "x")], ..points.clone() },
                SettingsError::Unknown("x".into()),
            ),
            (
                JoinSettings { pairs: vec![Pair::new("a", "a")], ..points.clone() },
                SettingsError::Same("a".into()),
            ),
            (
                JoinSettings { pairs: vec![given("a", "b"), given("b", "a")], ..points.clone() },
                SettingsError::Contradiction("b".into(), "a".into()),
            ),
            (JoinSettings { lanes: 0, ..points.clone() }, SettingsError::Zero),
            (
                JoinSettings { part: (2, 2), lanes: 2, ..points.clone() },
                SettingsError::Part { part: (2, 2), lanes: 2 },
            ),
            (
                JoinSettings { part: (0, 2), lanes: 3, ..points.clone() },
                SettingsError::Part { part: (0, 2), lanes: 3 },
            ),
            (
                JoinSettings { period: Span::ZERO, ..points },
                SettingsError::Span { what: "period", span: Span::ZERO },
            ),
        ];
        for (settings, want) in rows {
            assert_eq!(settings.links().unwrap_err(), want);
            assert!(!want.to_string().is_empty());
        }
    }

    #[test]
    fn a_window_holds_patience_lateness_and_clocks_apart_on_either_side() {
        let settings = JoinSettings {
            patience: Span(5),
            lateness: Span(7),
            clocks_apart: Span(11),
            ..JoinSettings::of(["a", "b"])
        };
        assert_eq!(settings.window(), 5 + 7 + 2 * 11);
        for (lanes, is_shared, cells) in [(1, false, 1), (2, true, 3), (4, true, 5)] {
            let settings = JoinSettings { lanes, ..settings.clone() };
            assert_eq!((settings.is_shared(), settings.cells()), (is_shared, cells), "{lanes} lanes");
        }
    }

    #[test]
    fn the_least_and_the_most_of_each_setting_are_allowed_and_nothing_beyond() {
        let points = JoinSettings::of(["a", "b"]);
        let many = |points: usize| JoinSettings::of((0..points).map(|point| point.to_string()));
        let day = 86_400_000_000_000;
        for settings in [
            JoinSettings { period: Span(1_000_000), patience: Span(1), ..points.clone() },
            JoinSettings { period: Span(day), patience: Span(day), ..points.clone() },
            JoinSettings { lateness: Span::ZERO, most_sightings: 1024, ..points.clone() },
            JoinSettings { part: (1, 2), lanes: 4, ..points.clone() },
            many(64),
        ] {
            assert!(settings.links().is_ok(), "{settings:?}");
        }
        let span = |what: &'static str, span: i64| SettingsError::Span { what, span: Span(span) };
        for (settings, want) in [
            (JoinSettings { period: Span(999_999), ..points.clone() }, span("period", 999_999)),
            (JoinSettings { period: Span(day + 1), ..points.clone() }, span("period", day + 1)),
            (JoinSettings { patience: Span::ZERO, ..points.clone() }, span("patience", 0)),
            (JoinSettings { lateness: Span(-1), ..points.clone() }, span("lateness", -1)),
            (JoinSettings { most_sightings: 1023, ..points }, SettingsError::Zero),
            (many(65), SettingsError::Points(65)),
        ] {
            assert_eq!(settings.links(), Err(want));
        }
    }

    #[test]
    fn both_directions_of_two_points_are_one_link_unless_one_is_given() {
        let given = |from: &str, to: &str| Pair { direction: Direction::Given, ..Pair::new(from, to) };
        let links = |pairs: &[Pair]| {
            JoinSettings { pairs: pairs.to_vec(), ..JoinSettings::of(["a", "b", "c"]) }.links()
        };
        let (all, few) = (Some(Expects::Everything), Some(Expects::NothingSeenElsewhere));
        let back = Pair { expects: Expects::NothingSeenElsewhere, ..Pair::new("c", "a") };
        let want = [
            Link { a: 0, b: 2, wanted: [all, few], given: false },
            Link { a: 0, b: 1, wanted: [None, all], given: true },
        ];
        assert_eq!(links(&[Pair::new("a", "c"), given("b", "a"), back]).unwrap(), want);
        for (one, other) in [
            (Pair::new("a", "b"), Pair::new("a", "b")),
            (given("a", "b"), Pair::new("b", "a")),
            (Pair::new("a", "b"), given("b", "a")),
        ] {
            let want = SettingsError::Contradiction(other.from.clone(), other.to.clone());
            assert_eq!(links(&[one, other]), Err(want));
        }
    }

    #[test]
    fn reasons_are_sentences() {
        let name = || "a".to_owned();
        for (why, text) in [
            (SettingsError::Points(1), "a join has 2 to 64 points, not 1"),
            (SettingsError::Twice(name()), "the point 'a' is named twice"),
            (SettingsError::Unknown(name()), "a pair names 'a', which is none of the points"),
            (SettingsError::Same(name()), "the point 'a' cannot be compared with itself"),
            (
                SettingsError::Contradiction(name(), "b".to_owned()),
                "the pair from 'a' to 'b' contradicts another of the same two points",
            ),
            (SettingsError::Span { what: "period", span: Span(5) }, "period cannot be 5 ns"),
            (
                SettingsError::Part { part: (2, 2), lanes: 3 },
                "3 of 2 is no part whose digests are whole lanes of 3",
            ),
            (SettingsError::Zero, "a join needs at least one lane and room for 1024 sightings"),
        ] {
            assert_eq!(why.to_string(), text);
        }
    }
}
