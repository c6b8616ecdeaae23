//! What cells printed, kept in a folder, so that it can be judged again without running anything.
//!
//! A cell leaves two files: what it printed (`PATH.COMMAND.json`) and what was seen of it from
//! outside (`PATH.COMMAND.beside.json`).

use std::fs;
use std::io;
use std::path::Path;

use netaware_units::Span;
use serde_json::{Value, json};

use super::judge::{Found, Judgement};
use super::{Ask, WorldPath, cell, paths};

/// Keeps what came of a cell.
///
/// # Errors
/// The folder cannot be made or written to.
pub fn keep(folder: &Path, path: &WorldPath, ask: Ask, found: &Found) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let Found { code, stdout, stderr, took, entered, not_read, is_free } = found;
    let beside = json!({"code": code, "took": took.map(|took| took.0), "entered": entered,
        "not_read": not_read, "is_free": is_free, "stderr": stderr});
    fs::write(folder.join(format!("{}.json", name(path, ask))), stdout)?;
    fs::write(folder.join(format!("{}.beside.json", name(path, ask))), format!("{beside:#}\n"))
}

/// Judges all cells that are kept in a folder, in the order of the table.
pub fn judge_again(folder: &Path) -> Vec<(WorldPath, Ask, Found, Judgement)> {
    let places = paths().into_iter().flat_map(|path| Ask::ALL.map(|ask| (path.clone(), ask)));
    places
        .filter_map(|(path, ask)| {
            let found = read(folder, &path, ask)?;
            let judgement = cell::judged(&path, ask, &found);
            Some((path, ask, found, judgement))
        })
        .collect()
}

/// `None` if it is not kept there.
fn read(folder: &Path, path: &WorldPath, ask: Ask) -> Option<Found> {
    let text = |ending: &str| fs::read_to_string(folder.join(format!("{}{ending}", name(path, ask)))).ok();
    let beside: Value = serde_json::from_str(&text(".beside.json")?).ok()?;
    Some(Found {
        code: beside["code"].as_i64().and_then(|code| i32::try_from(code).ok()),
        stdout: text(".json")?,
        stderr: beside["stderr"].as_str()?.to_owned(),
        took: beside["took"].as_i64().map(Span),
        entered: serde_json::from_value(beside["entered"].clone()).ok()?,
        not_read: beside["not_read"].as_u64()?,
        is_free: beside["is_free"].as_bool(),
    })
}

fn name(path: &WorldPath, ask: Ask) -> String {
    format!("{}.{}", path.name, ask.name().replace(' ', ""))
}

#[cfg(test)]
mod tests {
    use netaware_lab::{Entered, EnteredCount};

    use super::*;
    use crate::world::judge::Verdict;

    #[test]
    fn what_was_kept_is_judged_again_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = paths().into_iter().find(|path| path.name == "modem-64k").unwrap();
        let udp = EnteredCount { packets: 7, bytes: 900_000, busiest_second: 900_000 };
        let found = Found {
            code: Some(2),
            stdout: String::new(),
            stderr: "error: nobody answers\n".to_owned(),
            took: Some(Span::from_secs(3)),
            entered: [Entered { udp, ..Entered::default() }, Entered::default()],
            not_read: 3,
            is_free: Some(true),
        };
        keep(folder.path(), &path, Ask::UdpReverse, &found).unwrap();
        let again = judge_again(folder.path());
        assert_eq!(again.len(), 1);
        let (place, ask, kept, judgement) = &again[0];
        assert_eq!((place.name, *ask, kept), ("modem-64k", Ask::UdpReverse, &found));
        assert_eq!(judgement.verdict, Verdict::Harm);
    }
}
