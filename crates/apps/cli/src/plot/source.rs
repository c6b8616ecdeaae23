//! What a picture is made of: one record, or what a picture needs of each record of a series.
//!
//! A scan may have a hundred thousand points and each record some kilobytes, so a series is read
//! record by record and only its figures are kept: about 300 bytes a point.

mod readings;

use std::ops::ControlFlow;

use anyhow::bail;
use netaware_record::{Record, SeriesKind};
use netaware_store::{Among, Filter, Found, Store};

use super::unit::Unit;

pub(crate) use readings::{Carrier, Figure, Reading, Way};

/// One or many.
#[derive(Debug)]
pub(crate) enum Source {
    One(Box<Record>),
    Series(Series),
}

/// The figures of a series.
#[derive(Debug, Default)]
pub(crate) struct Series {
    /// `tcp`, `udp`, `latency`, …
    pub(crate) command: String,
    pub(crate) host: String,
    pub(crate) label: Option<String>,
    /// Of the first record, RFC 3339.
    pub(crate) started_at: String,
    pub(crate) kind: Option<SeriesKind>,
    pub(crate) planned: u64,
    /// The scanned options.
    pub(crate) options: Vec<ScanOption>,
    /// By their place in the plan, each place once.
    pub(crate) points: Vec<Point>,
}

/// An option that a scan varied.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScanOption {
    pub(crate) name: String,
    /// Absent for one whose values are no numbers.
    pub(crate) unit: Option<Unit>,
    /// Its values that are no numbers.
    words: Vec<String>,
}

/// What a point had for an option.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Given {
    Number(f64),
    /// Position among the option's words.
    Word(usize),
    Nothing,
}

/// One record of a series.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    pub(crate) index: u64,
    /// Wall time, ns; the clock may have been stepped between two points.
    pub(crate) at: i64,
    /// In the order of [`Series::options`].
    pub(crate) options: Vec<Given>,
    pub(crate) readings: Vec<Reading>,
    /// Nothing failed or broke off: what did is not among the readings.
    pub(crate) is_whole: bool,
}

impl Source {
    /// What an ID of `netaware results` stands for. `last` is the newest record, or the series that
    /// it belongs to.
    ///
    /// # Errors
    /// Nothing or several things have the ID, or the file cannot be read.
    pub(crate) fn find(store: &Store, id: &str) -> anyhow::Result<Self> {
        let id = match store.resolve(id)? {
            Found::Record(id) => return Ok(Self::One(Box::new(store.get(&id.to_string())?))),
            Found::Series(id) => id,
        };
        let mut series = Series::default();
        let of_series = Filter { series: Among::Of(id), ..Filter::default() };
        store.each(&of_series, |record| {
            series.take(&record);
            ControlFlow::Continue(())
        })?;
        if series.points.is_empty() {
            bail!("the series {id} has no results yet");
        }
        series.settle();
        Ok(Self::Series(series))
    }

    pub(crate) fn command(&self) -> &str {
        match self {
            Self::One(record) => &record.command,
            Self::Series(series) => &series.command,
        }
    }
}

impl Series {
    /// Adds a record, in any order.
    pub(crate) fn take(&mut self, record: &Record) {
        let Some(place) = &record.series else { return };
        if self.started_at.is_empty() || record.started_at_utc < self.started_at {
            self.started_at.clone_from(&record.started_at_utc);
        }
        self.command.clone_from(&record.command);
        self.host.clone_from(&record.request.host);
        self.label.clone_from(&record.label);
        self.kind = Some(place.kind);
        self.planned = self.planned.max(place.planned);
        let mut options = vec![Given::Nothing; self.options.len()];
        for (name, text) in &place.point {
            let read = Unit::read(text);
            let at = self.option(name, read.map(|(_, unit)| unit));
            options.resize(self.options.len(), Given::Nothing);
            options[at] = read.map_or_else(|| self.options[at].word(text), |(value, _)| Given::Number(value));
        }
        let (readings, is_whole) = readings::of(record);
        let (index, at) = (place.index, record.started_at.0);
        self.points.push(Point { index, at, options, readings, is_whole });
    }

    fn option(&mut self, name: &str, unit: Option<Unit>) -> usize {
        if let Some(at) = self.options.iter().position(|option| option.name == name) {
            let known = &mut self.options[at].unit;
            // "8" and "8 B" do not share an axis, but zero needs no unit.
            if *known == Some(Unit::Number) || known.is_none() {
                *known = unit.or(*known);
            }
            return at;
        }
        self.options.push(ScanOption { name: name.to_owned(), unit, words: Vec::new() });
        self.options.len() - 1
    }

    /// Once all are in: in the order of the plan; of a place that was measured again the later
    /// record counts.
    pub(crate) fn settle(&mut self) {
        let width = self.options.len();
        self.points.sort_by_key(|point| (point.index, point.at));
        self.points.reverse();
        self.points.dedup_by_key(|point| point.index);
        self.points.reverse();
        self.points.iter_mut().for_each(|point| point.options.resize(width, Given::Nothing));
    }

    /// Whoever has this figure anywhere, IPv4 first.
    pub(crate) fn ways(&self, figure: Figure) -> Vec<Way> {
        let readings = self.points.iter().flat_map(|point| &point.readings);
        let mut ways: Vec<Way> =
            readings.filter(|reading| reading.figure == figure).map(|reading| reading.way).collect();
        ways.sort_unstable();
        ways.dedup();
        ways
    }
}

impl ScanOption {
    fn word(&mut self, text: &str) -> Given {
        let known = self.words.iter().position(|word| word == text);
        Given::Word(known.unwrap_or_else(|| {
            self.words.push(text.to_owned());
            self.words.len() - 1
        }))
    }

    /// "rate 10 Mbit/s", "congestion bbr".
    pub(crate) fn say(&self, given: Given) -> Option<String> {
        let value = match given {
            Given::Number(value) => self.unit.unwrap_or(Unit::Number).write(value),
            Given::Word(at) => self.words.get(at)?.clone(),
            Given::Nothing => return None,
        };
        Some(format!("{} {value}", self.name))
    }
}

impl Given {
    /// Not a number where it is a word or nothing.
    pub(crate) fn number(self) -> f64 {
        match self {
            Self::Number(value) => value,
            Self::Word(_) | Self::Nothing => f64::NAN,
        }
    }
}

impl Point {
    /// Not a number where it was not measured.
    pub(crate) fn value(&self, figure: Figure, way: Way) -> f64 {
        let is_it = |r: &&Reading| r.figure == figure && r.way == way;
        self.readings.iter().find(is_it).map_or(f64::NAN, |reading| reading.value)
    }
}
