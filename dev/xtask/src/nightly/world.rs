//! The table of paths of the world and measuring commands: run by one test
//! (`netns_world::world_table`), which leaves a line for each cell, and written to docs/world.md.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use super::{Findings, health};
use crate::nextest::{self, Suite};
use crate::shell::{CHECKED, cargo, root, run};
use crate::tests;

/// Single cells of the table, by hand.
#[derive(Debug, Args)]
pub(crate) struct World {
    /// A path: a file of scenarios/world without its ending; all of them if it is left out
    path: Option<String>,
    /// A command as the table names it: test, latency, tcp, tcp -R, udp, ...; all of them if it is
    /// left out
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
    /// Run nothing, and judge again what cells of an earlier run left in this folder:
    /// target/nextest/world/records
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["path", "command"])]
    again: Option<PathBuf>,
}

/// Runs the cells that were asked for and prints what came of each. Writes no page.
///
/// # Errors
/// Nothing compiles, or a cell is wrong or does harm.
pub(crate) fn by_hand(world: &World) -> Result<()> {
    if let Some(folder) = &world.again {
        let judge = [
            "run",
            "--locked",
            "--profile",
            CHECKED,
            "-p",
            "netaware-testkit",
            "--example",
            "judge_again",
            "--",
        ];
        return run(cargo(&judge).arg(folder));
    }
    let build = ["nextest", "run", "--no-run", "--workspace", "--lib", "--bins", "--tests", "--locked"];
    run(&mut cargo(&[&build[..], &["--cargo-profile", CHECKED]].concat()))?;
    tests::sweep()?;
    let command = world.command.join(" ");
    let path = world.path.as_deref().unwrap_or_default();
    let is_good = nextest::run_asked(
        Suite::World,
        &[(PATH, OsStr::new(path)), (COMMAND, OsStr::new(&command)), (CELLS, fresh()?.as_os_str())],
    )?;
    if !is_good {
        bail!("not every cell held; the reasons are above");
    }
    Ok(())
}

/// Runs all of them and writes the table.
///
/// # Errors
/// Nothing compiles, no cell was run, or the page cannot be written.
pub(super) fn nightly() -> Result<Findings> {
    tests::build()?;
    tests::sweep()?;
    let file = fresh()?;
    nextest::run_asked(Suite::World, &[(CELLS, file.as_os_str())])?;
    let text = fs::read_to_string(&file).context("no cell left a line")?;
    let cells: Vec<Cell> = text.lines().filter_map(Cell::parse).collect();
    if cells.is_empty() {
        bail!("no cell was run");
    }
    health::replace_part(PAGE, "table", &table(&cells))?;
    let run = cells.iter().filter(|cell| cell.verdict != "-");
    let count = |words: &[&str]| run.clone().filter(|cell| words.contains(&cell.verdict.as_str())).count();
    let (wrong, harm, late) = (count(&["wrong", "not run"]), count(&["harm"]), count(&["too long"]));
    let failure =
        (wrong + harm > 0).then(|| format!("{wrong} cells are wrong, {harm} do harm, {late} take too long"));
    Ok(Findings { ran: run.clone().count(), held: count(&["held", "flagged"]), failure, section: None })
}

/// The file for the lines of cells, without those of an earlier run.
fn fresh() -> Result<PathBuf> {
    let file = root().join("target/nextest/world/cells.tsv");
    if file.exists() {
        fs::remove_file(&file).with_context(|| format!("could not remove {}", file.display()))?;
    }
    Ok(file)
}

const PATH: &str = "NETAWARE_WORLD_PATH";
const COMMAND: &str = "NETAWARE_WORLD_COMMAND";
const CELLS: &str = "NETAWARE_WORLD_CELLS";
const PAGE: &str = "docs/world.md";
const COLUMNS: [&str; 14] = [
    "test",
    "latency",
    "tcp",
    "tcp -R",
    "tcp --bidir",
    "udp",
    "udp -R",
    "udp --bidir",
    "matrix",
    "capacity",
    "available",
    "owd",
    "reach",
    "hops",
];

/// A line that the test left.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cell {
    path: String,
    command: String,
    verdict: String,
    took: String,
    why: String,
}

impl Cell {
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split('\t').map(str::to_owned);
        let mut next = || parts.next();
        Some(Self { path: next()?, command: next()?, verdict: next()?, took: next()?, why: next()? })
    }

    fn is_good(&self) -> bool {
        matches!(self.verdict.as_str(), "held" | "flagged" | "-")
    }
}

fn table(cells: &[Cell]) -> String {
    let mut rows: BTreeMap<&str, BTreeMap<&str, &Cell>> = BTreeMap::new();
    for cell in cells {
        rows.entry(&cell.path).or_default().insert(&cell.command, cell);
    }
    let mut text = format!("| path | {} |\n|---|{}\n", COLUMNS.join(" | "), "---|".repeat(COLUMNS.len()));
    for (path, commands) in &rows {
        let _ = write!(text, "| `{path}` |");
        for column in COLUMNS {
            let word = commands.get(column).map_or("", |cell| &cell.verdict);
            let shown = if commands.get(column).is_none_or(|cell| cell.is_good()) {
                word.to_owned()
            } else {
                format!("**{word}**")
            };
            let _ = write!(text, " {shown} |");
        }
        text.push('\n');
    }
    let bad: Vec<&Cell> = cells.iter().filter(|cell| !cell.is_good()).collect();
    if !bad.is_empty() {
        text.push_str("\n| path | command | verdict | took | why |\n|---|---|---|---|---|\n");
    }
    for Cell { path, command, verdict, took, why } in bad {
        let why = why.chars().take(MOST_SHOWN).collect::<String>();
        let _ = writeln!(text, "| `{path}` | {command} | {verdict} | {took} | {why} |");
    }
    let mut senseless: Vec<String> = cells
        .iter()
        .filter(|cell| cell.verdict == "-")
        .map(|cell| format!("- `{}`, {}: {}.", cell.path, cell.command, cell.why))
        .collect();
    senseless.sort();
    if !senseless.is_empty() {
        let _ = write!(text, "\nNot asked, because it makes no sense there:\n\n{}\n", senseless.join("\n"));
    }
    text
}

/// Letters of a reason.
const MOST_SHOWN: usize = 300;

#[cfg(test)]
mod claims {
    use super::*;

    fn cell(line: &str) -> Cell {
        Cell::parse(&line.replace(' ', "\t").replace('_', " ")).unwrap()
    }

    #[test]
    fn table_has_a_row_for_each_path_and_a_line_for_each_bad_cell() {
        let cells = [
            cell("lte test held 9.1_s x"),
            cell("lte tcp_-R wrong 4_s 3_of_4"),
            cell("adsl owd -  no_clock"),
        ];
        let text = table(&cells);
        assert!(text.contains("| `lte` | held |  |  | **wrong** |"), "{text}");
        assert!(text.contains("| `lte` | tcp -R | wrong | 4 s | 3 of 4 |"), "{text}");
        assert!(text.contains("- `adsl`, owd: no clock."), "{text}");
        assert!(text.find("| `adsl` |") < text.find("| `lte` | held"), "{text}");
    }

    #[test]
    fn line_that_is_cut_is_left_out() {
        assert_eq!(Cell::parse("lte\ttest\theld"), None);
    }
}
