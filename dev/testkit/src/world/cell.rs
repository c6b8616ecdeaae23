//! Runs one command over one path of the world, in a lab of its own.

use std::io::{Read as _, Write as _};
use std::net::{Ipv6Addr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use netaware_io::clock;
use netaware_lab::{EmulatorCore, Lab, LabOptions, Scenario, Side};
use netaware_units::Span;

use super::judge::{Found, Judgement, judge};
use super::truth::Truth;
use super::{Ask, Event, WorldPath};
use crate::lab::{self, PORT, options, prober, start};
use crate::program::{Program, Responder, netaware_path, signal};

/// What came of a cell.
#[derive(Debug, Clone)]
pub struct Cell {
    /// What was printed, and what entered the path.
    pub found: Found,
    /// What is said of it.
    pub judgement: Judgement,
}

/// Runs a command over a path and judges it. The emulator runs on `core`, or where the runner wants
/// it.
///
/// # Panics
/// If the lab does not come up, or a program panicked.
pub fn run(path: &WorldPath, ask: Ask, core: Option<EmulatorCore>) -> Cell {
    let scenario = scenario(path);
    let usual = options();
    let core = core.unwrap_or(usual.core);
    let lab = start(&scenario, &LabOptions { scenario_name: path.name.to_owned(), core, ..usual });
    let found = measure(path, ask, lab);
    let judgement = judged(path, ask, &found);
    Cell { found, judgement }
}

/// Judges what came of a command over a path.
///
/// # Panics
/// If the path's scenario cannot be read.
pub fn judged(path: &WorldPath, ask: Ask, found: &Found) -> Judgement {
    let mut truth = Truth::of(&scenario(path));
    if path.event() == Event::Captive {
        // Something answers there, and it is not who is asked for.
        truth.versions.iter_mut().for_each(|version| version.is_reachable = false);
    }
    let suspended = if path.event() == Event::Suspended { SUSPENDED } else { Span::ZERO };
    judge(ask, &truth, found, suspended)
}

fn scenario(path: &WorldPath) -> Scenario {
    Scenario::parse(path.text).unwrap_or_else(|error| panic!("{}: {error}", path.name))
}

/// Whether a path carries so much that its lab needs the machine for itself.
pub fn is_fast(path: &WorldPath) -> bool {
    const FAST: u64 = 150_000_000;
    let truth = Scenario::parse(path.text).map(|scenario| Truth::of(&scenario));
    truth.is_ok_and(|truth| [0, 1].iter().any(|direction| truth.carries(*direction).0 >= FAST))
}

/// Asserts that a command over a path did no harm, was in time, and printed nothing that is not
/// true.
///
/// # Panics
/// If it did not, with every reason and what it printed.
#[track_caller]
pub fn holds(name: &str, ask: Ask) {
    let path = super::paths().into_iter().find(|path| path.name == name);
    let path = path.unwrap_or_else(|| panic!("there is no path {name}"));
    let Cell { found, judgement } = run(&path, ask, None);
    let is_good = judgement.verdict <= super::judge::Verdict::Flagged;
    let word = judgement.verdict.word();
    assert!(is_good, "{name}, {}: {word}: {}\n{found:#?}", ask.name(), judgement.reasons.join("; "));
    println!("{name}, {}: {word} in {:?}", ask.name(), found.took);
}

fn measure(path: &WorldPath, ask: Ask, lab: Lab) -> Found {
    let is_over = AtomicBool::new(false);
    let (mut finished, mut is_free, mut printed) = (None, None, <[String; 2]>::default());
    std::thread::scope(|scope| {
        let responder = match path.event() {
            Event::Captive => {
                let portal = lab.within(Side::B, || TcpListener::bind((Ipv6Addr::UNSPECIFIED, PORT)));
                let portal = portal.unwrap_or_else(|error| panic!("the portal does not listen: {error}"));
                let is_over = &is_over;
                scope.spawn(move || answer_with_http(&portal, is_over));
                None
            }
            _ => Some(lab::responder(&lab, &["--stamp"])),
        };
        let words = [ask.words(), &["--format", "json", "--no-save"]].concat();
        let mut program = prober(&lab, &words);
        if path.event() == Event::Suspended {
            suspend(&mut program);
        }
        finished = program.finished_within(LONGEST);
        if finished.is_none() {
            printed = [program.printed(), program.complained()];
        }
        // A program that still runs is ended before somebody else asks for its place.
        drop(program);
        is_free =
            responder.filter(|_| ask.needs_responder()).map(|responder| is_free_again(&lab, &responder));
        is_over.store(true, Ordering::Relaxed);
    });
    let report = lab.end().unwrap_or_else(|error| panic!("{error}"));
    let took = finished.as_ref().map(|it| it.took);
    let code = finished.as_ref().and_then(|it| it.code);
    let [stdout, stderr] = finished.map_or(printed, |it| [it.stdout, it.stderr]);
    Found {
        code,
        stdout,
        stderr,
        took,
        entered: [report.entered_from_a, report.entered_from_b],
        not_read: report.own_drops.not_read,
        is_free,
    }
}

/// Stops a program for a while, unless it ends before.
fn suspend(program: &mut Program) {
    if program.finished_within(BEFORE_SUSPENDED).is_none() {
        signal("STOP", program.id());
        clock::sleep(SUSPENDED);
        signal("CONT", program.id());
    }
}

/// Asks from host B itself, so that the path has no part in it.
fn is_free_again(lab: &Lab, responder: &Responder) -> bool {
    let mut command = lab.command(Side::B, netaware_path());
    command.args(["tcp", "127.0.0.1", "-4", "-n", "10kB", "-p", &responder.port()]);
    let finished = Program::start(command).finished_within(FREE_WITHIN);
    finished.is_some_and(|finished| finished.code == Some(0))
}

/// Answers whoever connects as a captive portal does, whatever it is asked.
fn answer_with_http(portal: &TcpListener, is_over: &AtomicBool) {
    const PAGE: &[u8] = b"HTTP/1.1 302 Found\r\nLocation: http://portal.example/\r\nContent-Length: 0\r\n\
                          Connection: close\r\n\r\n";
    if portal.set_nonblocking(true).is_err() {
        return;
    }
    while !is_over.load(Ordering::Relaxed) {
        let Ok((mut client, _)) = portal.accept() else {
            clock::sleep(Span::from_millis(5));
            continue;
        };
        let _ = client.set_nonblocking(false);
        let _ = client.set_read_timeout(Some(Duration::from_millis(300)));
        let _ = client.read(&mut [0; 1024]);
        let _ = client.write_all(PAGE);
    }
}

/// A command that still runs then is ended: longer than any of them says that it takes. On 20
/// kbit/s `test` says more than three minutes.
const LONGEST: Span = Span::from_secs(300);
const BEFORE_SUSPENDED: Span = Span::from_secs(2);
const SUSPENDED: Span = Span::from_secs(6);
/// 5 s, and what the short command takes by itself.
const FREE_WITHIN: Span = Span::from_secs(6);
