//! Lines of the page: a label with a text, or a label with a column of figures per packet size.

use std::io::{self, Write};

use netaware_record::Fact;

use super::shown;
use crate::render::paint::Paint;
use crate::render::paragraph;
use crate::render::table::padded;
use crate::render::wrap::{WIDTH, lines};

pub(super) struct Sheet<'a> {
    out: &'a mut dyn Write,
    paint: Paint,
    full: bool,
    /// Names of what only somebody with more privilege is told.
    pub(super) privileged: Vec<String>,
}

impl<'a> Sheet<'a> {
    pub(super) fn new(out: &'a mut dyn Write, paint: Paint, full: bool) -> Self {
        Self { out, paint, full, privileged: Vec::new() }
    }

    /// All there is, and not the overview.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// An empty line, and a heading with the names of columns.
    pub(super) fn section(&mut self, title: &str, columns: &[String]) -> io::Result<()> {
        let line = with_columns(&padded(title, LABEL), columns.iter().map(String::as_str));
        writeln!(self.out, "\n{}", self.paint.heading(&line))
    }

    /// A label and a text that may be long.
    pub(super) fn text(&mut self, label: &str, text: &str) -> io::Result<()> {
        let lead = padded(&format!("{INDENT}{label}"), TEXT);
        writeln!(self.out, "{}", paragraph(&lead, text))
    }

    /// A fact, with its reason where it is not known; `whose` goes before the label in the list of
    /// what needs privilege.
    pub(super) fn fact<T>(
        &mut self,
        whose: &str,
        label: &str,
        fact: &Fact<T>,
        show: impl FnOnce(&T) -> String,
    ) -> io::Result<()> {
        if fact.why().is_some_and(|why| why.needs_privilege) {
            self.privileged.push(format!("{whose} {label}").trim().to_owned());
        }
        self.text(label, &shown(fact, show))
    }

    /// A label and a figure per column; `None` is none.
    pub(super) fn columns(&mut self, label: &str, cells: &[Option<String>]) -> io::Result<()> {
        let labels = lines(label, LABEL - INDENT.len() - 1);
        let (last, before) =
            labels.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
        for line in before {
            writeln!(self.out, "{INDENT}{line}")?;
        }
        let cells = cells.iter().map(|cell| cell.as_deref().unwrap_or("-"));
        writeln!(self.out, "{}", with_columns(&padded(&format!("{INDENT}{last}"), LABEL), cells))
    }

    /// Below a line, over the whole width.
    pub(super) fn remark(&mut self, text: &str) -> io::Result<()> {
        for line in lines(text, WIDTH - REMARK.len()) {
            writeln!(self.out, "{}", self.paint.faint(&format!("{REMARK}{line}")))?;
        }
        Ok(())
    }
}

fn with_columns<'a>(label: &str, cells: impl Iterator<Item = &'a str>) -> String {
    let mut line = label.to_owned();
    for cell in cells {
        let gap = COLUMN.saturating_sub(cell.chars().count());
        line.push_str(&" ".repeat(gap));
        line.push_str(cell);
    }
    line.trim_end().to_owned()
}

const INDENT: &str = "  ";
const REMARK: &str = "    ";
/// Of lines with columns, the indent included.
const LABEL: usize = 26;
const COLUMN: usize = 13;
/// Of lines with a text.
const TEXT: usize = 20;
