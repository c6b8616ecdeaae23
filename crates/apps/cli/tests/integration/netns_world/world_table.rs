//! The whole table of paths and commands, four cells side by side. Takes the better part of an
//! hour; `cargo xtask nightly --only world` runs it and writes docs/world.md, and
//! `cargo xtask world PATH COMMAND` runs single cells.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;

use netaware_lab::EmulatorCore;
use netaware_netns::permitted;
use netaware_testkit::world::judge::{Found, Verdict};
use netaware_testkit::world::{Ask, WorldPath, cell, kept, paths};

/// Labs at the same time.
const SIDE_BY_SIDE: usize = 4;
/// The variables that choose paths and commands, separated by commas; all of them without.
const ONLY_PATH: &str = "NETAWARE_WORLD_PATH";
const ONLY_COMMAND: &str = "NETAWARE_WORLD_COMMAND";
/// The variable that names the file to which each cell adds a line. What cells printed is kept in
/// the folder `records` beside it.
const CELLS: &str = "NETAWARE_WORLD_CELLS";

type Place = (WorldPath, Ask);

#[test]
#[ignore = "takes the better part of an hour: cargo xtask nightly --only world"]
fn every_command_on_every_path_does_no_harm_and_says_nothing_wrong() {
    if !permitted() {
        return;
    }
    let (fast, slow): (Vec<Place>, Vec<Place>) =
        chosen().into_iter().partition(|(path, _)| cell::is_fast(path));
    assert!(fast.len() + slow.len() > 0, "no path and command of these names");
    let bad = Mutex::new(Vec::new());
    let waiting = Mutex::new(slow.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().unwrap().next();
                    let Some((path, ask)) = next else { return };
                    // Asked before the list is locked, or the others would wait.
                    let why = ask_for(&path, ask, EmulatorCore::Shared);
                    bad.lock().unwrap().extend(why);
                }
            });
        }
    });
    for (path, ask) in fast {
        let why = ask_for(&path, ask, EmulatorCore::Own);
        bad.lock().unwrap().extend(why);
    }
    let bad = bad.into_inner().unwrap();
    assert!(bad.is_empty(), "{} cells are wrong or do harm:\n{}", bad.len(), bad.join("\n"));
}

fn chosen() -> Vec<Place> {
    let is_chosen = |variable, name: &str| {
        std::env::var(variable)
            .map_or(true, |only| only.is_empty() || only.split(',').any(|only| only == name))
    };
    let places = paths().into_iter().flat_map(|path| Ask::ALL.map(|ask| (path.clone(), ask)));
    places
        .filter(|(path, ask)| is_chosen(ONLY_PATH, path.name) && is_chosen(ONLY_COMMAND, ask.name()))
        .collect()
}

/// Runs a cell and notes what came of it; the reasons if it is wrong, does harm or cannot be run.
fn ask_for(path: &WorldPath, ask: Ask, core: EmulatorCore) -> Option<String> {
    let place = format!("{}, {}", path.name, ask.name());
    if let Some(reason) = path.senseless(ask) {
        note(path, ask, "-", "", reason);
        return None;
    }
    let Ok(found) = catch_unwind(AssertUnwindSafe(|| cell::run(path, ask, Some(core)))) else {
        note(path, ask, "not run", "", "the lab or a program panicked");
        return Some(format!("{place}: not run"));
    };
    let (verdict, why) = (found.judgement.verdict, found.judgement.reasons.join("; "));
    let took = found.found.took.map(|took| format!("{:.1} s", took.secs_f64())).unwrap_or_default();
    println!("{place}: {} {took} {why}", verdict.word());
    keep(path, ask, &found.found);
    note(path, ask, verdict.word(), &took, &why);
    (verdict >= Verdict::Wrong).then(|| format!("{place}: {}: {why}", verdict.word()))
}

fn keep(path: &WorldPath, ask: Ask, found: &Found) {
    let Some(file) = std::env::var_os(CELLS) else { return };
    kept::keep(&Path::new(&file).with_file_name("records"), path, ask, found).unwrap();
}

fn note(path: &WorldPath, ask: Ask, verdict: &str, took: &str, why: &str) {
    let Some(file) = std::env::var_os(CELLS) else { return };
    let why = why.replace(['\t', '\n', '|'], " ");
    let line = format!("{}\t{}\t{verdict}\t{took}\t{why}\n", path.name, ask.name());
    let opened = OpenOptions::new().create(true).append(true).open(&file);
    opened.and_then(|mut file| file.write_all(line.as_bytes())).unwrap();
}
