//! Rows other than delays, added up by the minute and by the hour.
//!
//! They come as JSON and a view takes the figures out of it, so that ClickHouse can add them up.
//! There is one list of columns for all kinds ([`SUMS`]); those of other kinds stay empty, which
//! costs next to nothing on the disk. What is not a number that adds up (slices of a time, top
//! talkers) is kept as lists that join, and put in order by whoever reads ([`Sums::row`]).

use std::collections::BTreeMap;

use netaware_record::Histogram;
use netaware_record::passive::{
    CaptureLoss, DelayStatistics, DigestRow, FlowKey, Row, RttRow, TrafficRow, VolumeRow,
};
use netaware_units::{ByteCount, Span, Wall};
use serde::Deserialize;

use super::quoted;
use crate::fleet::Kind;
use crate::fleet::merge::MOST_SLICES;

/// Kinds that are added up; the others are kept as they came until they go.
pub(super) const SUMMED: [Kind; 4] = [Kind::Volume, Kind::Traffic, Kind::Rtt, Kind::Digests];

/// What rows of a span have in common to be added up: name, type, and where it stands in a raw row.
const KEYS: [(&str, &str, &str); 7] = [
    ("kind", "LowCardinality(String)", "kind"),
    ("task", "LowCardinality(String)", "task"),
    ("origin", "LowCardinality(String)", "origin"),
    ("key", "String", "JSONExtractRaw(json, 'key')"),
    ("method", "LowCardinality(String)", "j.method"),
    ("slice", "Int64", "j.slice"),
    ("rest", "Bool", "j.rest"),
];

/// What is added up: name, type, how, and where it stands in a raw row.
const SUMS: [(&str, &str, &str, &str); 36] = [
    ("from_at", "DateTime64(9, 'UTC')", "min", "rows.at"),
    ("until", "DateTime64(9, 'UTC')", "max", "rows.until"),
    ("packets", "UInt64", "sum", "j.packets"),
    ("bytes", "UInt64", "sum", "j.bytes"),
    ("packets_error", "UInt64", "sum", "j.packets_error"),
    ("first_at", "Int64", "min", "j.first_at"),
    ("last_at", "Int64", "max", "j.last_at"),
    ("link_bytes", "UInt64", "sum", "j.link_bytes"),
    ("sent_link_bytes", "UInt64", "sum", "j.sent_link_bytes"),
    // A mean is of slices, so each row counts as often as it has some.
    ("utilised", "Float64", "sum", "ifNull(j.utilisation, 0) * length(j.slices)"),
    ("sliced", "UInt64", "sum", "length(j.slices)"),
    ("unrated", "UInt64", "sum", "toUInt64(isNull(j.utilisation))"),
    (
        "slices",
        "Array(Tuple(Int64, Array(UInt64)))",
        "groupArrayArray",
        "if(empty(j.slices), [], [(toUnixTimestamp64Nano(rows.at), j.slices)])",
    ),
    ("sizes", BINS, "sumMap", "(j.sizes.bins.1, j.sizes.bins.2)"),
    ("sizes_under", "UInt64", "sum", "j.sizes.underflow"),
    ("sizes_over", "UInt64", "sum", "j.sizes.overflow"),
    ("most", "UInt64", "max", "length(j.top)"),
    // Talkers are told apart by the text of their keys; bytes, packets, packets' error.
    (
        "top",
        "Tuple(Array(String), Array(UInt64), Array(UInt64), Array(UInt64))",
        "sumMap",
        "(talkers, j.top.bytes, j.top.packets, j.top.packets_error)",
    ),
    ("top_first", "Tuple(Array(String), Array(Int64))", "minMap", "(talkers, j.top.first_at)"),
    ("top_last", "Tuple(Array(String), Array(Int64))", "maxMap", "(talkers, j.top.last_at)"),
    ("delay_count", "UInt64", "sum", "j.delay.count"),
    ("delay_min", "Nullable(Int64)", "min", "if(j.delay.count = 0, NULL, j.delay.min)"),
    ("delay_max", "Nullable(Int64)", "max", "if(j.delay.count = 0, NULL, j.delay.max)"),
    ("delay_sum", "Int128", "sum", "j.delay.sum_ns"),
    ("delay_squares", "Float64", "sum", "j.delay.sum_squares"),
    ("delay_under", "UInt64", "sum", "j.delay.histogram.underflow"),
    ("delay_over", "UInt64", "sum", "j.delay.histogram.overflow"),
    ("delay_bins", BINS, "sumMap", "(j.delay.histogram.bins.1, j.delay.histogram.bins.2)"),
    ("observed", "UInt64", "sum", "j.observed"),
    ("selected", "UInt64", "sum", "j.selected"),
    ("unusable", "UInt64", "sum", "j.unusable"),
    ("given_up", "UInt64", "sum", "j.given_up"),
    ("cut", "UInt64", "sum", "j.cut"),
    ("capture_lost", "UInt64", "sum", "j.capture_lost.packets"),
    ("capture_merged", "UInt64", "sum", "j.capture_lost.merged"),
    ("capture_doubtful", "UInt64", "sum", "toUInt64(j.capture_lost.doubtful)"),
];

/// Lower edges and counts.
const BINS: &str = "Tuple(Array(UInt64), Array(UInt64))";

/// What a view takes out of a row's JSON in one go; what a kind does not have comes out as nothing.
const READ: &str = "Tuple(packets UInt64, bytes UInt64, packets_error UInt64, first_at Int64, last_at Int64, rest Bool,
    link_bytes UInt64, sent_link_bytes UInt64, utilisation Nullable(Float64), slices Array(UInt64), slice Int64,
    sizes Tuple(bins Array(Tuple(UInt64, UInt64)), underflow UInt64, overflow UInt64),
    top Array(Tuple(bytes UInt64, packets UInt64, packets_error UInt64, first_at Int64, last_at Int64)), method String,
    delay Tuple(count UInt64, min Int64, max Int64, sum_ns Int128, sum_squares Float64,
                histogram Tuple(bins Array(Tuple(UInt64, UInt64)), underflow UInt64, overflow UInt64)),
    observed UInt64, selected UInt64, unusable UInt64, given_up UInt64, cut UInt64,
    capture_lost Tuple(packets UInt64, merged UInt64, doubtful Bool))";

/// Each talker as the text of `[key, rest]`.
const TALKERS: &str =
    "arrayMap(t -> concat('[', JSONExtractRaw(t, 'key'), ',', JSONExtractRaw(t, 'rest'), ']'),
    JSONExtractArrayRaw(json, 'top'))";

/// The columns of a table of sums.
pub(super) fn columns() -> String {
    let keys = KEYS.iter().map(|(name, kind, _)| format!("{name} {kind}"));
    let sums =
        SUMS.iter().map(|(name, kind, how, _)| format!("{name} SimpleAggregateFunction({how}, {kind})"));
    format!("at DateTime64(9, 'UTC'), {}", keys.chain(sums).collect::<Vec<_>>().join(", "))
}

/// The question that a view asks of the rows that come; `span` names the beginning of the time that
/// they are added up to, as `at`.
pub(super) fn view(span: &str, source: &str) -> String {
    let keys = KEYS.iter().map(|(name, _, from)| format!("{from} AS {name}"));
    let sums = SUMS.iter().map(|(name, _, how, from)| format!("{how}({from}) AS {name}"));
    format!(
        "WITH JSONExtract(json, {}) AS j, {TALKERS} AS talkers SELECT {span}, {}
         FROM {source} WHERE kind IN ({}) GROUP BY at, {}",
        quoted(READ),
        keys.chain(sums).collect::<Vec<_>>().join(", "),
        summed(),
        key_names(),
    )
}

/// The kinds as a list of literals.
pub(super) fn summed() -> String {
    SUMMED.map(|kind| quoted(kind.name())).join(", ")
}

/// Sums of a table as a question, with the columns of a raw row: the figures are the JSON of
/// [`Sums`]. A sum has no number of its origin; the text of what it adds up stands where a raw row
/// has its incarnation, so that a page can end between two.
pub(super) fn read(table: &str, which: &str) -> String {
    let (names, types): (Vec<String>, Vec<String>) = figures().unzip();
    let sums: Vec<String> =
        SUMS.iter().map(|(name, _, how, _)| format!("{how}(t.{name}) AS {name}")).collect();
    format!(
        "SELECT at, from_at, until, toString(origin) AS origin, toString(task) AS task,
                toJSONString(CAST(({}), {})) AS json,
                concat(task, ' ', key, ' ', method, ' ', toString(slice), ' ', toString(rest)) AS incarnation,
                toUInt64(0) AS sequence, toUInt64(0) AS position
         FROM (SELECT t.at AS at, {keys}, {} FROM {table} AS t WHERE {which} GROUP BY t.at, {keys})",
        names.join(", "),
        quoted(&format!("Tuple({})", types.join(", "))),
        sums.join(", "),
        keys = key_names(),
    )
}

/// What [`Sums`] is read from: how it is asked for, and its name with its type.
fn figures() -> impl Iterator<Item = (String, String)> {
    let keys = KEYS.iter().map(|(name, kind, _)| (*name, *kind));
    let sums = SUMS.iter().map(|(name, kind, ..)| (*name, *kind));
    keys.skip_while(|(name, _)| *name != "key").chain(sums.skip_while(|(name, _)| *name != "packets")).map(
        |(name, kind)| match kind {
            // JSON has no number that wide.
            "Int128" => (format!("toString({name})"), format!("{name} String")),
            _ => (name.to_owned(), format!("{name} {kind}")),
        },
    )
}

/// Names of what is not added up, beside the time.
pub(super) fn key_names() -> String {
    KEYS.map(|(name, ..)| name).join(", ")
}

/// The figures of a sum, of whatever kind.
#[derive(Debug, Deserialize)]
pub(super) struct Sums {
    key: String,
    method: String,
    slice: i64,
    rest: bool,
    packets: u64,
    bytes: u64,
    packets_error: u64,
    first_at: i64,
    last_at: i64,
    link_bytes: u64,
    sent_link_bytes: u64,
    utilised: Option<f64>,
    sliced: u64,
    unrated: u64,
    slices: Vec<(i64, Vec<u64>)>,
    sizes: Bins,
    sizes_under: u64,
    sizes_over: u64,
    most: u64,
    top: (Vec<String>, Vec<u64>, Vec<u64>, Vec<u64>),
    top_first: (Vec<String>, Vec<i64>),
    top_last: (Vec<String>, Vec<i64>),
    delay_count: u64,
    delay_min: Option<i64>,
    delay_max: Option<i64>,
    delay_sum: String,
    /// JSON has no word for what is not finite.
    delay_squares: Option<f64>,
    delay_under: u64,
    delay_over: u64,
    delay_bins: Bins,
    observed: u64,
    selected: u64,
    unusable: u64,
    given_up: u64,
    cut: u64,
    capture_lost: u64,
    capture_merged: u64,
    /// Rows of which it was not known.
    capture_doubtful: u64,
}

type Bins = (Vec<u64>, Vec<u64>);

impl Sums {
    /// What the captures behind them lost.
    pub(super) fn lost(&self) -> CaptureLoss {
        let doubtful = self.capture_doubtful > 0;
        CaptureLoss { packets: self.capture_lost, merged: self.capture_merged, doubtful }
    }

    /// The row of that kind that they are; `None`: there is none, or a part of it is not what it
    /// should be.
    pub(super) fn row(self, kind: Kind) -> Option<Row> {
        match kind {
            Kind::Volume => self.volume().map(Row::Volume),
            Kind::Traffic => self.traffic().map(Row::Traffic),
            Kind::Rtt => self.rtt().map(Row::Rtt),
            Kind::Digests => Some(Row::Digests(DigestRow {
                observed: self.observed,
                selected: self.selected,
                unusable: self.unusable,
                given_up: self.given_up,
                cut: self.cut,
            })),
            Kind::Marking | Kind::Capacity | Kind::Delay | Kind::Paths | Kind::Active => None,
        }
    }

    fn volume(self) -> Option<VolumeRow> {
        Some(VolumeRow {
            key: serde_json::from_str(&self.key).ok()?,
            packets: self.packets,
            bytes: ByteCount(self.bytes),
            first_at: Wall(self.first_at),
            last_at: Wall(self.last_at),
            packets_error: self.packets_error,
            rest: self.rest,
        })
    }

    fn traffic(mut self) -> Option<TrafficRow> {
        let top = self.talkers()?;
        let is_rated = self.unrated == 0 && self.sliced > 0;
        self.slices.sort_unstable_by_key(|(at, _)| *at);
        let slices = self.slices.into_iter().flat_map(|(_, slices)| slices);
        Some(TrafficRow {
            packets: self.packets,
            bytes: ByteCount(self.bytes),
            link_bytes: ByteCount(self.link_bytes),
            sent_link_bytes: ByteCount(self.sent_link_bytes),
            utilisation: self.utilised.filter(|_| is_rated).map(|sum| sum / self.sliced as f64),
            slices: slices.map(ByteCount).take(MOST_SLICES).collect(),
            slice: Span(self.slice),
            sizes: histogram(self.sizes, self.sizes_under, self.sizes_over),
            top,
        })
    }

    /// As many as any part had, most bytes first.
    fn talkers(&mut self) -> Option<Vec<VolumeRow>> {
        let first: BTreeMap<&String, &i64> = self.top_first.0.iter().zip(&self.top_first.1).collect();
        let last: BTreeMap<&String, &i64> = self.top_last.0.iter().zip(&self.top_last.1).collect();
        let (names, bytes, packets, errors) = &self.top;
        let mut talkers = Vec::with_capacity(names.len());
        for (((name, bytes), packets), error) in names.iter().zip(bytes).zip(packets).zip(errors) {
            let (key, rest): (FlowKey, bool) = serde_json::from_str(name).ok()?;
            talkers.push(VolumeRow {
                key,
                packets: *packets,
                bytes: ByteCount(*bytes),
                first_at: Wall(**first.get(name)?),
                last_at: Wall(**last.get(name)?),
                packets_error: *error,
                rest,
            });
        }
        talkers.sort_by_key(|talker| std::cmp::Reverse(talker.bytes.0));
        talkers.truncate(usize::try_from(self.most).unwrap_or(usize::MAX));
        Some(talkers)
    }

    fn rtt(self) -> Option<RttRow> {
        let histogram = histogram(self.delay_bins, self.delay_under, self.delay_over);
        Some(RttRow {
            key: serde_json::from_str(&self.key).ok()?,
            method: self.method,
            delay: DelayStatistics {
                count: self.delay_count,
                min: Span(self.delay_min.unwrap_or(0)),
                max: Span(self.delay_max.unwrap_or(0)),
                sum_ns: self.delay_sum.parse().ok()?,
                sum_squares: self.delay_squares.unwrap_or(0.0),
                histogram: Histogram { digits: Some(3), ..histogram },
            },
        })
    }
}

fn histogram((edges, counts): Bins, underflow: u64, overflow: u64) -> Histogram {
    Histogram { bins: edges.into_iter().zip(counts).collect(), underflow, overflow, ..Histogram::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_are_added_up_are_those_that_a_file_adds_up() {
        let rows = [
            Row::Volume(VolumeRow {
                key: FlowKey::default(),
                packets: 0,
                bytes: ByteCount(0),
                first_at: Wall(0),
                last_at: Wall(0),
                packets_error: 0,
                rest: false,
            }),
            Row::Digests(DigestRow::default()),
            Row::Delay(Box::new(crate::fleet::merge::empty_row())),
        ];
        for row in rows {
            let kind = Kind::of(&row);
            assert_eq!(SUMMED.contains(&kind), crate::fleet::merge::key(&row).is_some(), "{kind:?}");
        }
    }

    #[test]
    fn what_is_read_has_the_names_of_what_is_asked_for() {
        let asked: Vec<String> =
            figures().map(|(_, named)| named.split(' ').next().unwrap_or_default().to_owned()).collect();
        let table = columns();
        assert!(asked.iter().all(|name| table.contains(&format!(" {name} "))), "{table}");
        assert_eq!(asked.len(), 38);
    }
}
