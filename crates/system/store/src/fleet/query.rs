//! What can be asked of a fleet's store, and what comes back. Answers are bounded: a page at a
//! time.

use netaware_record::IpVersion;
use netaware_record::passive::{CaptureLoss, ClockState, DelayRow, InterfaceCapture, Period, Row};
use netaware_units::{Span, Wall};
use serde::{Deserialize, Serialize};

use super::FleetError;
use super::merge::DelaySum;

/// Items on one page at most, however many were asked for.
pub const MOST_ITEMS: u32 = 10_000;

/// Which delays, and how fine.
#[derive(Debug, Clone, PartialEq)]
pub struct DelayQuery {
    /// Rows that begin in it.
    pub period: Period,
    /// Only this ordered pair of points.
    pub pair: Option<(String, String)>,
    /// Only of this task.
    pub task: Option<String>,
    /// Only of this IP version; `None`: of each, apart.
    pub version: Option<IpVersion>,
    /// `passive` or `active`; `None`: both, apart.
    pub method: Option<String>,
    /// Rows that begin in the same span of this length (counted from the epoch) are added up; zero:
    /// rows as they are kept. Where rows have become coarser with age than this, they stay as they
    /// are.
    pub resolution: Span,
    /// Points on a page, [`MOST_ITEMS`] at most.
    pub limit: u32,
    /// Where the last page ended.
    pub after: Option<Cursor>,
}

impl Default for DelayQuery {
    /// All there is, as it is kept.
    fn default() -> Self {
        Self {
            period: ALWAYS,
            pair: None,
            task: None,
            version: None,
            method: None,
            resolution: Span::ZERO,
            limit: MOST_ITEMS,
            after: None,
        }
    }
}

/// All time that has a name.
const ALWAYS: Period = Period { from: Wall(0), until: Wall(i64::MAX) };

/// Delays of one pair in one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DelayPoint {
    /// The task.
    pub task: String,
    /// From the beginning of the first row in it to the end of the last.
    pub period: Period,
    /// Rows that were added up.
    pub rows: u64,
    /// The figures.
    pub row: DelayRow,
}

/// Which rows other than delays.
#[derive(Debug, Clone, PartialEq)]
pub struct RowQuery {
    /// What kind.
    pub kind: Kind,
    /// Rows that begin in it.
    pub period: Period,
    /// Only of this task.
    pub task: Option<String>,
    /// Only of this probe.
    pub probe: Option<String>,
    /// Rows on a page, [`MOST_ITEMS`] at most.
    pub limit: u32,
    /// Where the last page ended.
    pub after: Option<Cursor>,
}

impl RowQuery {
    /// All of a kind.
    pub fn of(kind: Kind) -> Self {
        Self { kind, period: ALWAYS, task: None, probe: None, limit: MOST_ITEMS, after: None }
    }
}

/// What a row is, by the names that [`Row`] has in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Packets and bytes by key.
    Volume,
    /// Rate, sizes, top talkers.
    Traffic,
    /// Round-trip times at one point.
    Rtt,
    /// Blocks of alternate marking.
    Marking,
    /// Capacities.
    Capacity,
    /// What digest tasks chose.
    Digests,
    /// Delays between two points.
    Delay,
    /// Points that packets of a join passed.
    Paths,
    /// Whole records of active tasks.
    Active,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Volume,
        Self::Traffic,
        Self::Rtt,
        Self::Marking,
        Self::Capacity,
        Self::Digests,
        Self::Delay,
        Self::Paths,
        Self::Active,
    ];

    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Volume => "volume",
            Self::Traffic => "traffic",
            Self::Rtt => "rtt",
            Self::Marking => "marking",
            Self::Capacity => "capacity",
            Self::Digests => "digests",
            Self::Delay => "delay",
            Self::Paths => "paths",
            Self::Active => "active",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Of a row.
    pub fn of(row: &Row) -> Self {
        match row {
            Row::Volume(_) => Self::Volume,
            Row::Traffic(_) => Self::Traffic,
            Row::Rtt(_) => Self::Rtt,
            Row::Marking(_) => Self::Marking,
            Row::Capacity(_) => Self::Capacity,
            Row::Digests(_) => Self::Digests,
            Row::Delay(_) => Self::Delay,
            Row::Paths(_) => Self::Paths,
            Row::Active(_) => Self::Active,
        }
    }
}

/// A row as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredRow {
    /// Who saw it.
    pub probe: String,
    /// The task.
    pub task: String,
    /// Its time.
    pub period: Period,
    /// The figures.
    pub row: Row,
    /// How far they lean low: what the capture behind them lost in that time.
    #[serde(default, skip_serializing_if = "CaptureLoss::is_nothing")]
    pub lost: CaptureLoss,
}

/// A page of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// For the next page; `None`: this was the last.
    pub next: Option<Cursor>,
}

/// How a probe was, over a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeSummary {
    /// Its name.
    pub probe: String,
    /// Identity of its report counter, of the last report.
    pub incarnation: String,
    /// Reports of this time.
    pub reports: u64,
    /// Numbers between the first and the last of them that are missing: on their way, given up, or
    /// lost with a probe's disk.
    pub missing: u64,
    /// Packets that its tasks were shown in this time.
    pub seen: u64,
    /// Packets that it should have seen and did not.
    pub lost: u64,
    /// Of the last report: its number.
    pub sequence: u64,
    /// Of the last report: its time.
    pub period: Period,
    /// Of the last report: its interfaces.
    pub captures: Vec<InterfaceCapture>,
    /// Of the last report: its clock.
    pub clock: ClockState,
}

/// What a task yielded, over a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSummary {
    /// Its name.
    pub task: String,
    /// What it yields.
    pub kind: Kind,
    /// The probe, or the collector for what it made itself.
    pub origin: String,
    /// Rows that are kept.
    pub rows: u64,
    /// Beginning of the first.
    pub first: Wall,
    /// Beginning of the last.
    pub last: Wall,
}

/// Where a page ended. Opaque: a text to be handed back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(String);

impl Cursor {
    /// From what an earlier page gave.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// To be handed out.
    pub fn as_text(&self) -> &str {
        &self.0
    }

    pub(super) fn of<K: Serialize>(key: &K) -> Self {
        let json = serde_json::to_vec(key).unwrap_or_default();
        let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0');
        Self(json.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect())
    }

    pub(super) fn key<K: for<'a> Deserialize<'a>>(&self) -> Result<K, FleetError> {
        let text = Some(&self.0)
            .filter(|text| text.len() <= 8192 && text.len().is_multiple_of(2) && text.is_ascii());
        let text = text.ok_or(FleetError::Cursor)?;
        let byte = |at: usize| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let json: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
        json.and_then(|json| serde_json::from_slice(&json).ok()).ok_or(FleetError::Cursor)
    }
}

/// What makes a point of delays: the beginning of its span, then what is not added up. Points are
/// given in this order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct PointKey {
    /// Beginning of the span, ns since the epoch.
    pub(super) bucket: i64,
    pub(super) task: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) method: String,
    /// 4, 6 or 0 for both together.
    pub(super) version: u8,
}

/// 0: both together.
pub(super) fn version_number(version: Option<IpVersion>) -> u8 {
    match version {
        None => 0,
        Some(IpVersion::V4) => 4,
        Some(IpVersion::V6) => 6,
    }
}

pub(super) fn version_of(number: u8) -> Option<IpVersion> {
    match number {
        4 => Some(IpVersion::V4),
        6 => Some(IpVersion::V6),
        _ => None,
    }
}

/// The beginning of the span of length `resolution` that holds `at`.
pub(super) fn bucket(at: Wall, resolution: Span) -> i64 {
    if resolution.0 <= 1 { at.0 } else { at.0 - at.0.rem_euclid(resolution.0) }
}

/// The first `limit` points, and where to go on if there are more.
pub(super) fn page_of(mut items: Vec<(PointKey, DelaySum)>, limit: usize) -> Page<DelayPoint> {
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|(key, _)| Cursor::of(key));
    let point = |(key, sum): (PointKey, DelaySum)| DelayPoint {
        task: key.task,
        period: sum.period,
        rows: sum.rows,
        row: sum.row,
    };
    Page { items: items.into_iter().map(point).collect(), next }
}

/// Summaries of one life of a probe each (its counter began anew with each), by name and then by
/// time, made one for each probe.
pub(super) fn lives(each: Vec<ProbeSummary>) -> Vec<ProbeSummary> {
    let mut probes: Vec<ProbeSummary> = Vec::new();
    for newer in each {
        match probes.last_mut().filter(|older| older.probe == newer.probe) {
            Some(older) => {
                *older = ProbeSummary {
                    reports: older.reports.saturating_add(newer.reports),
                    missing: older.missing.saturating_add(newer.missing),
                    seen: older.seen.saturating_add(newer.seen),
                    lost: older.lost.saturating_add(newer.lost),
                    ..newer
                };
            }
            None => probes.push(newer),
        }
    }
    probes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_and_a_made_up_one_is_refused() {
        let key = (5_i64, "täsk".to_owned());
        let cursor = Cursor::from_text(Cursor::of(&key).as_text());
        assert_eq!(cursor.key::<(i64, String)>().unwrap(), key);
        for text in ["", "5", "zz", "+1", "é1", "7b", &"00".repeat(5000)] {
            assert!(Cursor::from_text(text).key::<(i64, String)>().is_err(), "{text}");
        }
    }

    #[test]
    fn kinds_have_the_names_of_rows() {
        for kind in Kind::ALL {
            assert_eq!(Kind::named(kind.name()), Some(kind));
        }
        let row = Row::Digests(netaware_record::passive::DigestRow::default());
        assert_eq!(serde_json::to_value(&row).unwrap()["kind"], Kind::of(&row).name());
    }

    #[test]
    fn spans_begin_at_multiples() {
        assert_eq!(bucket(Wall(61_500_000_000), Span::from_secs(60)), 60_000_000_000);
        assert_eq!(bucket(Wall(-1), Span::from_secs(60)), -60_000_000_000);
        assert_eq!(bucket(Wall(7), Span::ZERO), 7);
    }
}
