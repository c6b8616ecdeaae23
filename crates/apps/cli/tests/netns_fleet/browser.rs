//! The collector's page as people see it: drawn by a real browser, whose document is read back.

use std::collections::BTreeMap;

use netaware_lab::{Lab, Side};
use netaware_units::Span;

use crate::program::Program;

/// What the browser made of the page.
pub(crate) struct Drawn(String);

/// A line of a table: text by the name of its column.
pub(crate) type Line = BTreeMap<String, String>;

impl Drawn {
    /// Opens the page on a host until everything on it has come.
    pub(crate) fn of(lab: &Lab, side: Side, url: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut browser = lab.command(side, "chromium");
        browser.args(QUIETLY).arg(format!("--user-data-dir={}", profile.path().display())).arg(url);
        let ended = Program::start(browser).finish_within(Span::from_secs(60)).exits_with(0);
        let drawn = Self(ended.stdout);
        assert!(drawn.0.contains("data-shown=\"yes\""), "the page came to no end: {}", drawn.0);
        drawn
    }

    /// The lines of a table.
    pub(crate) fn table(&self, id: &str) -> Vec<Line> {
        let after = self.0.split_once(&format!("<table id=\"{id}\">")).map(|(_, after)| after);
        let table = after.and_then(|after| after.split_once("<tbody>")).map(|(_, after)| after);
        let body = table.and_then(|after| after.split_once("</tbody>")).map(|(body, _)| body);
        let body = body.unwrap_or_else(|| panic!("no table '{id}': {}", self.0));
        body.split("<tr").skip(1).map(|line| line.split("<td").skip(1).map(cell).collect()).collect()
    }

    /// What stands beside a name in a list of figures.
    pub(crate) fn figure(&self, name: &str) -> &str {
        let after = self.0.split_once(&format!("<dt>{name}</dt><dd>")).map(|(_, after)| after);
        after
            .and_then(|after| after.split_once("</dd>"))
            .map_or_else(|| panic!("no {name}: {}", self.0), |it| it.0)
    }

    /// Whether a picture has so many bars or lines at least.
    pub(crate) fn picture(&self, id: &str) -> usize {
        let after = self.0.split_once(&format!("<svg id=\"{id}\"")).map(|(_, after)| after);
        let picture = after.and_then(|after| after.split_once("</svg>")).map(|(picture, _)| picture);
        let picture = picture.unwrap_or_else(|| panic!("no picture '{id}': {}", self.0));
        picture.matches("<rect").count() + picture.matches("<path").count()
    }
}

/// ` data-name="min" class="number">1.234 ms</td>`.
fn cell(text: &str) -> (String, String) {
    let read = |text: &str| {
        let (name, after) = text.split_once("data-name=\"")?.1.split_once('"')?;
        let shown = after.split_once('>')?.1.split_once("</td>")?.0;
        Some((name.to_owned(), shown.to_owned()))
    };
    read(text).unwrap_or_else(|| panic!("no cell: {text}"))
}

/// No window, nothing to anybody but the page, and an end when nothing has been asked for in some seconds of the page's own time.
const QUIETLY: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=4000",
    "--dump-dom",
];
