//! The collector's page as people see it: drawn by a real browser, whose document is read back.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Child, Command, Stdio};

use netaware_io::clock;
use netaware_units::Span;

/// What the browser made of the page.
#[derive(Debug)]
pub struct Drawn(String);

/// A line of a table: text by the name of its column.
pub type Line = BTreeMap<String, String>;

/// Killed when dropped, so that a browser that never ends does not outlive its test.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Drawn {
    /// `chromium` opens the page until everything on it has come.
    pub fn of(mut chromium: Command, url: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let [out, complaints] = ["document", "complaints"].map(|name| home.path().join(name));
        chromium
            .args(QUIETLY)
            .arg(format!("--user-data-dir={}", home.path().join("profile").display()))
            .arg(url)
            .env("HOME", home.path())
            .stdin(Stdio::null())
            .stdout(File::create(&out).unwrap())
            .stderr(File::create(&complaints).unwrap());
        let mut browser = Browser(chromium.spawn().unwrap_or_else(|why| panic!("no chromium: {why}")));
        let due = clock::now() + Span::from_secs(60);
        let ended = loop {
            if let Some(ended) = browser.0.try_wait().unwrap() {
                break ended;
            }
            assert!(clock::now() < due, "the page came to no end: {}", read(&complaints));
            clock::sleep(Span::from_millis(20));
        };
        assert!(ended.success(), "{ended}: {}", read(&complaints));
        let drawn = Self(read(&out));
        assert!(drawn.0.contains("data-shown=\"yes\""), "not all of the page has come: {}", drawn.0);
        drawn
    }

    /// The lines of a table.
    pub fn table(&self, id: &str) -> Vec<Line> {
        let after = self.0.split_once(&format!("<table id=\"{id}\">")).map(|(_, after)| after);
        let table = after.and_then(|after| after.split_once("<tbody>")).map(|(_, after)| after);
        let body = table.and_then(|after| after.split_once("</tbody>")).map(|(body, _)| body);
        let body = body.unwrap_or_else(|| panic!("no table '{id}': {}", self.0));
        body.split("<tr").skip(1).map(|line| line.split("<td").skip(1).map(cell).collect()).collect()
    }

    /// The only line of a table in which these columns say this.
    pub fn line(&self, id: &str, with: &[(&str, &str)]) -> Line {
        let lines = self.table(id);
        let is_it =
            |line: &&Line| with.iter().all(|(name, value)| line.get(*name).is_some_and(|it| it == value));
        let ours: Vec<&Line> = lines.iter().filter(is_it).collect();
        let [line] = ours[..] else { panic!("{with:?} in '{id}': {lines:#?}") };
        line.clone()
    }

    /// What stands beside a name in a list of figures.
    pub fn figure(&self, name: &str) -> &str {
        let after = self.0.split_once(&format!("<dt>{name}</dt><dd>")).map(|(_, after)| after);
        after
            .and_then(|after| after.split_once("</dd>"))
            .map_or_else(|| panic!("no {name}: {}", self.0), |it| it.0)
    }

    /// How many bars and lines a picture has.
    pub fn picture(&self, id: &str) -> usize {
        let shapes = self.shapes(id);
        shapes.matches("<rect").count() + shapes.matches("<path").count()
    }

    /// What a picture is made of, as markup.
    pub fn shapes(&self, id: &str) -> &str {
        let after = self.0.split_once(&format!("<svg id=\"{id}\"")).map(|(_, after)| after);
        let picture = after.and_then(|after| after.split_once("</svg>")).map(|(picture, _)| picture);
        picture.unwrap_or_else(|| panic!("no picture '{id}': {}", self.0))
    }
}

fn read(path: &std::path::Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()
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

/// No window, nothing to anybody but the page, and an end when nothing has been asked for in some
/// seconds of the page's own time.
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
