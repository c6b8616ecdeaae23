//! The page `docs/health.md`: one row per suite, and a section for each suite that has more to
//! report. The parts between its markers are replaced; the rest of the page is written by people.

use std::fmt::{self, Write as _};
use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

const FILE: &str = "docs/health.md";

/// What one run of a suite leaves in the table.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) suite: String,
    pub(super) date: String,
    pub(super) commit: String,
    pub(super) ran: usize,
    pub(super) held: usize,
    pub(super) took: Duration,
    pub(super) remark: String,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { suite, date, commit, ran, held, took, remark } = self;
        let (minutes, seconds) = (took.as_secs() / 60, took.as_secs() % 60);
        let remark = remark.replace('|', "/").replace('\n', " ");
        write!(
            f,
            "| {suite} | {date} | {commit} | {ran} | {held} | {minutes} min {seconds:02} s | {remark} |"
        )
    }
}

/// The text of a page.
pub(super) struct Page(String);

/// Replaces one part of another page.
pub(super) fn replace_part(file: &str, part: &str, text: &str) -> Result<()> {
    let read = fs::read_to_string(file).with_context(|| format!("could not read {file}"))?;
    let mut page = Page(read);
    page.replace(part, text.trim_end());
    fs::write(file, &page.0).with_context(|| format!("could not write {file}"))
}

impl Page {
    pub(super) fn read() -> Result<Self> {
        Ok(Self(fs::read_to_string(FILE).with_context(|| format!("could not read {FILE}"))?))
    }

    pub(super) fn write(&self) -> Result<()> {
        fs::write(FILE, &self.0).with_context(|| format!("could not write {FILE}"))
    }

    /// Replaces the row of a suite, and its section if it has one.
    pub(super) fn put(&mut self, row: &Row, section: Option<&str>) {
        let start = format!("| {} |", row.suite);
        let mut lines: Vec<String> = self.between("suites").lines().map(str::to_owned).collect();
        match lines.iter_mut().find(|line| line.starts_with(&start)) {
            Some(line) => *line = row.to_string(),
            None => lines.push(row.to_string()),
        }
        self.replace("suites", &lines.join("\n"));
        if let Some(section) = section {
            self.replace(&row.suite, section.trim_end());
        }
    }

    fn range(&self, part: &str) -> Option<std::ops::Range<usize>> {
        let (begin, end) = (format!("<!-- begin {part} -->\n"), format!("\n<!-- end {part} -->"));
        let from = self.0.find(&begin)? + begin.len();
        // An empty part has its two markers on neighbouring lines.
        let to = self.0[from - 1..].find(&end)? + from - 1;
        Some(from..to.max(from))
    }

    fn between(&self, part: &str) -> &str {
        self.range(part).map_or("", |range| &self.0[range])
    }

    fn replace(&mut self, part: &str, text: &str) {
        match self.range(part) {
            Some(range) if self.0[..range.end].ends_with('\n') && range.is_empty() => {
                self.0.insert_str(range.start, &format!("{text}\n"));
            }
            Some(range) => self.0.replace_range(range, text),
            None => {
                // Writing to a string cannot fail.
                let _ = write!(self.0, "\n## {part}\n\n<!-- begin {part} -->\n{text}\n<!-- end {part} -->\n");
            }
        }
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod claims {
    use super::*;

    fn row(suite: &str, held: usize) -> Row {
        let took = Duration::from_secs(125);
        let (date, commit) = ("2026-11-26".to_owned(), "abc".to_owned());
        Row { suite: suite.to_owned(), date, commit, ran: 9, held, took, remark: "a | b".to_owned() }
    }

    #[test]
    fn suite_that_runs_again_replaces_its_row_and_leaves_the_others() {
        let head = "| suite |\n|---|";
        let mut page = Page(format!("above\n<!-- begin suites -->\n{head}\n<!-- end suites -->\nbelow\n"));
        page.put(&row("long", 8), None);
        page.put(&row("fuzz", 9), None);
        page.put(&row("long", 9), None);
        let long = "| long | 2026-11-26 | abc | 9 | 9 | 2 min 05 s | a / b |";
        assert!(
            page.0.starts_with(&format!("above\n<!-- begin suites -->\n{head}\n{long}\n| fuzz |")),
            "{page}"
        );
        assert_eq!(page.0.matches("| long |").count(), 1);
        assert!(page.0.ends_with("<!-- end suites -->\nbelow\n"), "{page}");
    }

    #[test]
    fn section_is_replaced_and_made_where_there_is_none() {
        let mut page = Page("<!-- begin suites -->\n<!-- end suites -->\n".to_owned());
        page.put(&row("accuracy", 9), Some("first\n"));
        page.put(&row("accuracy", 9), Some("second\n"));
        let section = "## accuracy\n\n<!-- begin accuracy -->\nsecond\n<!-- end accuracy -->\n";
        assert!(page.0.ends_with(section), "{page}");
        assert!(page.0.starts_with("<!-- begin suites -->\n| accuracy |"), "{page}");
    }
}
