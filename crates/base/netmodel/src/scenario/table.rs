//! A TOML table that knows where it stands in the text and what has been asked of it.

use std::ops::Range;

use netaware_units::{BitRate, ByteCount, Share, Span};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ScenarioError;
use super::number::{integer, real};

/// Every question marks its key as known; `finish` refuses the rest.
pub(super) struct Table<'t> {
    text: &'t str,
    entries: &'t DeTable<'t>,
    path: String,
    offset: usize,
    known: Vec<&'static str>,
}

/// One value and its place.
#[derive(Clone)]
pub(super) struct Field<'t> {
    text: &'t str,
    value: &'t Spanned<DeValue<'t>>,
    path: String,
}

type Read<T> = Result<T, ScenarioError>;

impl<'t> Table<'t> {
    pub(super) fn root(text: &'t str, table: &'t DeTable<'t>) -> Self {
        Self { text, entries: table, path: String::new(), offset: 0, known: Vec::new() }
    }

    pub(super) fn get(&mut self, key: &'static str) -> Option<Field<'t>> {
        self.known.push(key);
        let value = self.entries.get(key)?;
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Some(Field { text: self.text, value, path })
    }

    /// Reads a field if it is there.
    pub(super) fn read<T>(
        &mut self,
        key: &'static str,
        how: impl FnOnce(Field<'t>) -> Read<T>,
    ) -> Read<Option<T>> {
        self.get(key).map(how).transpose()
    }

    /// A field that must be there; `right` is an example.
    pub(super) fn need(&mut self, key: &'static str, right: &str) -> Read<Field<'t>> {
        match self.get(key) {
            Some(field) => Ok(field),
            None => Err(self.problem(format!("has no '{key}'"), right)),
        }
    }

    /// About the table as a whole.
    pub(super) fn problem(&self, problem: String, right: &str) -> ScenarioError {
        ScenarioError::at(self.text, self.offset, &self.path, problem, right.to_owned())
    }

    /// Refuses fields that nobody asked for.
    pub(super) fn finish(self) -> Read<()> {
        let keys = self.entries.keys().map(|key| (key.span().start, key.get_ref().as_ref()));
        let Some((offset, key)) = keys.filter(|(_, key)| !self.known.contains(key)).min() else {
            return Ok(());
        };
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{}", self.path, key) };
        let right = format!("one of {}", self.known.join(", "));
        Err(ScenarioError::at(self.text, offset, &path, "is no field of this table".to_owned(), right))
    }
}

impl<'t> Field<'t> {
    pub(super) fn problem(&self, problem: impl Into<String>, right: impl Into<String>) -> ScenarioError {
        ScenarioError::at(self.text, self.span().start, &self.path, problem.into(), right.into())
    }

    fn span(&self) -> Range<usize> {
        self.value.span()
    }

    fn is_a(&self, right: &str) -> ScenarioError {
        let given = match self.value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a bare integer",
            DeValue::Float(_) => "a bare number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.problem(format!("is {given}"), right)
    }

    pub(super) fn table(&self) -> Read<Table<'t>> {
        let DeValue::Table(entries) = self.value.get_ref() else { return Err(self.is_a("a table")) };
        let (text, path, offset) = (self.text, self.path.clone(), self.span().start);
        Ok(Table { text, entries, path, offset, known: Vec::new() })
    }

    pub(super) fn is_table(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::Table(_))
    }

    pub(super) fn is_string(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::String(_))
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::Array(_))
    }

    /// Items, `least` to `most` of them.
    pub(super) fn list(&self, least: usize, most: usize) -> Read<Vec<Field<'t>>> {
        let DeValue::Array(items) = self.value.get_ref() else { return Err(self.is_a("a list")) };
        if items.len() < least || items.len() > most {
            return Err(self.problem(format!("has {} entries", items.len()), format!("{least} to {most}")));
        }
        let item = |(n, value)| Field { text: self.text, value, path: format!("{}[{n}]", self.path) };
        Ok(items.iter().enumerate().map(item).collect())
    }

    pub(super) fn text(&self, right: &str) -> Read<&'t str> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text),
            _ => Err(self.is_a(right)),
        }
    }

    pub(super) fn flag(&self) -> Read<bool> {
        match self.value.get_ref() {
            DeValue::Boolean(flag) => Ok(*flag),
            _ => Err(self.is_a("true or false")),
        }
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Read<T> {
        let right = || {
            let quoted: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            quoted.join(" or ")
        };
        let given = self.text(&right())?;
        let found = words.iter().find(|(word, _)| *word == given);
        found.map(|(_, value)| *value).ok_or_else(|| self.problem(format!("is \"{given}\""), right()))
    }

    pub(super) fn integer(&self, range: std::ops::RangeInclusive<i64>) -> Read<i64> {
        let right = || format!("a whole number from {} to {}", range.start(), range.end());
        let DeValue::Integer(given) = self.value.get_ref() else { return Err(self.is_a(&right())) };
        match integer(given) {
            Some(number) if range.contains(&number) => Ok(number),
            _ => Err(self.problem(format!("is {given}"), right())),
        }
    }

    /// A finite number between two others, both included.
    pub(super) fn number(&self, least: f64, most: f64) -> Read<f64> {
        let right = || format!("a number from {least} to {most}");
        let given = real(self.value.get_ref()).ok_or_else(|| self.is_a(&right()))?;
        if given >= least && given <= most {
            return Ok(given);
        }
        Err(self.problem(format!("is {given}"), right()))
    }

    /// A share: 0.01, or "1%".
    pub(super) fn probability(&self) -> Read<f64> {
        const RIGHT: &str = "a probability from 0 to 1, or \"0%\" to \"100%\",";
        let given = match self.value.get_ref() {
            DeValue::String(text) => {
                text.contains('%').then(|| text.parse::<Share>().ok()).flatten().map(|share| share.0)
            }
            value => real(value),
        };
        match given {
            Some(share) if (0.0..=1.0).contains(&share) => Ok(share),
            Some(share) => Err(self.problem(format!("is {share}"), RIGHT)),
            None => Err(self.is_a(RIGHT)),
        }
    }

    /// Never negative.
    pub(super) fn span_up_to(&self, least: Span, most: Span) -> Read<Span> {
        let span = self.quantity::<Span>("a time such as \"20us\"")?;
        if span < least || span > most {
            return Err(self.problem(format!("is {span}"), format!("a time from {least} to {most}")));
        }
        Ok(span)
    }

    /// May begin with a minus.
    pub(super) fn signed_span(&self, most: Span) -> Read<Span> {
        let text = self.text("a time such as \"-3ms\"")?;
        let (sign, size) = match text.trim().strip_prefix('-') {
            Some(size) => (-1, size),
            None => (1, text),
        };
        let span: Span = size.parse().map_err(|error| self.problem(format!("{error}"), ""))?;
        if span > most {
            return Err(self.problem(format!("is {text}"), format!("a time from -{most} to {most}")));
        }
        Ok(span * sign)
    }

    pub(super) fn rate(&self, least: BitRate, most: BitRate) -> Read<BitRate> {
        let rate = self.quantity::<BitRate>("a rate such as \"100Mbit/s\"")?;
        if rate < least || rate > most {
            let given = if rate.0 == 0 { "is zero".to_owned() } else { format!("is {rate}") };
            return Err(self.problem(given, format!("a rate from {least} to {most}")));
        }
        Ok(rate)
    }

    /// A bare integer counts bytes.
    pub(super) fn bytes(&self, least: u64, most: u64) -> Read<u64> {
        let right = || format!("a size from {least} to {most} bytes");
        let bytes = match self.value.get_ref() {
            DeValue::Integer(given) => integer(given).and_then(|number| u64::try_from(number).ok()),
            _ => Some(self.quantity::<ByteCount>("a size such as \"64KiB\"")?.0),
        };
        match bytes {
            Some(bytes) if (least..=most).contains(&bytes) => Ok(bytes),
            Some(bytes) => Err(self.problem(format!("is {bytes} bytes"), right())),
            None => Err(self.problem("is negative", right())),
        }
    }

    fn quantity<T>(&self, right: &str) -> Read<T>
    where
        T: std::str::FromStr<Err = netaware_units::ParseUnitError>,
    {
        let text = self.text(right)?;
        if text.trim_start().starts_with('-') {
            return Err(self.problem(format!("is negative: \"{text}\""), right));
        }
        text.parse().map_err(|error| self.problem(format!("{error}"), ""))
    }
}
