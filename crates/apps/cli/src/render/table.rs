//! Rows of figures with one column per IP version.

use std::io::{self, Write};

use super::figures::NONE;
use super::paint::Paint;
use super::wrap::{WIDTH, lines};

/// Columns of the label, its indent included.
const LABEL: usize = 26;
const INDENT: &str = "  ";
const REMARK: &str = "    ";

/// Writes sections of a table: a heading, then rows. Rows without any figure are left out.
pub(crate) struct Table<'a> {
    out: &'a mut dyn Write,
    paint: Paint,
    /// "IPv4", "IPv6".
    names: Vec<String>,
    width: usize,
}

impl<'a> Table<'a> {
    pub(crate) fn new(out: &'a mut dyn Write, paint: Paint, names: Vec<String>) -> Self {
        let width = (WIDTH - LABEL) / names.len().max(1);
        Self { out, paint, names, width }
    }

    /// An empty line and the heading, with the columns' names to the right.
    pub(crate) fn section(&mut self, title: &str) -> io::Result<()> {
        let mut line = padded(title, LABEL);
        for name in &self.names {
            line.push_str(&padded(name, self.width));
        }
        writeln!(self.out, "\n{}", self.paint.heading(line.trim_end()))
    }

    /// One cell per column; `None` shows that nothing was measured there.
    pub(crate) fn row(&mut self, label: &str, cells: &[Option<String>]) -> io::Result<()> {
        self.painted_row(label, cells, |_, text| text.to_owned())
    }

    /// As [`Table::row`], each line of a cell coloured by `paint(column, text)`, which must not
    /// change its width.
    pub(crate) fn painted_row(
        &mut self,
        label: &str,
        cells: &[Option<String>],
        paint: impl Fn(usize, &str) -> String,
    ) -> io::Result<()> {
        if cells.iter().all(Option::is_none) {
            return Ok(());
        }
        let cell = |text: &Option<String>| lines(text.as_deref().unwrap_or(NONE), self.width - 1);
        let columns: Vec<Vec<String>> = cells.iter().map(cell).collect();
        let labels = lines(label, LABEL - INDENT.len() - 1);
        let height = columns.iter().map(Vec::len).max().unwrap_or(1).max(labels.len());
        for n in 0..height {
            let label = labels.get(n).map_or("", String::as_str);
            let mut line = padded(&format!("{INDENT}{label}"), LABEL);
            for (column, lines) in columns.iter().enumerate() {
                let text = lines.get(n).map_or("", String::as_str);
                let gap = " ".repeat(self.width.saturating_sub(text.chars().count()));
                line.push_str(&paint(column, text));
                line.push_str(&gap);
            }
            writeln!(self.out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// A line with columns of its own, below the rows.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{INDENT}{}", text.trim_end())
    }

    /// A remark below a row, over the whole width.
    pub(crate) fn remark(&mut self, lead: &str, text: &str) -> io::Result<()> {
        let lines = lines(&format!("{lead}{text}"), WIDTH - REMARK.len());
        for line in lines.iter().map(|line| format!("{REMARK}{line}")) {
            let line = line.as_str();
            writeln!(self.out, "{}", self.paint.faint(line))?;
        }
        Ok(())
    }
}

/// Filled up with spaces; never cut.
pub(crate) fn padded(text: &str, width: usize) -> String {
    let used = text.chars().count();
    format!("{text}{}", " ".repeat(width.saturating_sub(used)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_wrap_and_rows_without_figures_vanish() {
        let mut out = Vec::new();
        let mut table = Table::new(&mut out, Paint::PLAIN, vec!["IPv4".into(), "IPv6".into()]);
        table.section("PATH").unwrap();
        table.row("nothing", &[None, None]).unwrap();
        table.row("something", &[Some("a cell with more words than fit".into()), None]).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "\nPATH                      IPv4                       IPv6\n  \
             something               a cell with more words     -\n                          than fit\n"
        );
    }
}
