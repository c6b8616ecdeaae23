//! The page in a real Chromium: what it shows of a fleet that is not well, and tasks that are
//! changed on it.

use std::path::{Path, PathBuf};
use std::process::Command;

use netaware_io::clock;
use netaware_record::passive::{
    CaptureHealth, DelayRow, DelayStatistics, InterfaceCapture, Period, ProbeReport, Row, TaskRow,
};
use netaware_testkit::drawn::{Drawn, Line};
use netaware_units::Span;
use netaware_wire::lmap::{FromProbe, ProbeStatus};
use serde_json::{Value, json};

use super::joined::periods;
use super::metrics::row;
use super::probe::{Probe, report};
use super::{TWO, start};

/// In CI all of it is there, so that a skip hides nothing.
fn is_there(what: &str, path: &Path) -> bool {
    let there = path.exists();
    assert!(there || std::env::var("CI").as_deref() != Ok("true"), "needs {what}");
    if !there {
        eprintln!("SKIPPED: needs {what}");
    }
    there
}

fn chromium() -> Option<Command> {
    let path = std::env::var_os("CHROMIUM").map_or(PathBuf::from("/usr/bin/chromium"), PathBuf::from);
    is_there("Chromium", &path).then(|| Command::new(path))
}

/// Throughput tests that are due every second, and one probe that never comes.
const BULK: &str = r#"
[probes.c]
key_file = "a.key"
address = "192.0.2.3"
[meshes.bulk]
members = ["a", "c"]
method = "tcp"
every = "1s"
[tasks.lag]
on = ["a"]
kind = "measure"
command = "latency"
target = "192.0.2.2"
every = "1h"
options = { time = "5s" }
"#;

fn shown<const N: usize>(line: &Line, columns: [&str; N]) -> [String; N] {
    columns.map(|column| line[column].clone())
}

/// A report of losses of every cause, a clock that jumps in the second one, and packets of a path
/// of which one in a hundred is lost.
fn unwell(sequence: u64, period: Period) -> ProbeReport {
    let mut told = report("a", sequence, period, 0);
    told.captures[0].health = CaptureHealth {
        seen: 12_000,
        lost_ring: 3,
        lost_kernel: 20,
        backlog: Some(4),
        lost_nic: Some(100),
        merged: 7,
        not_ip: 5,
        malformed: 6,
        ..CaptureHealth::default()
    };
    let down = CaptureHealth { seen: 1, link_was_down: true, ..CaptureHealth::default() };
    told.captures.push(InterfaceCapture { interface: "eth1".to_owned(), health: down });
    "chrony".clone_into(&mut told.clock.source);
    told.clock.bound = Some(Span(1_500_000));
    told.clock.stepped = (sequence == 2).then_some(Span(-3_000_000));
    let mut delay = DelayStatistics::default();
    (0..99).for_each(|n| delay.observe(Span(7_000_000 + n * 10_000)));
    let lossy = DelayRow {
        packets: 100,
        lost: 1,
        clock_bound: Some(Span(2_000_000)),
        warnings: vec!["'a' lost 123 packets in its capture".to_owned(), "another".to_owned()],
        ..row(delay)
    };
    told.rows.push(TaskRow::new("owd", period, Row::Delay(Box::new(lossy))));
    told
}

#[test]
fn losses_missed_runs_and_clocks_of_every_probe_are_on_the_page() {
    let Some(chromium) = chromium() else { return };
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), &format!("{TWO}{BULK}"));
    let mut a = Probe::join(collector.address, "a");
    a.say(&FromProbe::Following {
        instruction: 1,
        refused: [("delay".into(), "no such device".into())].into(),
    });
    for (sequence, period) in (1..).zip(periods(3)) {
        a.bytes(sequence, &[], &serde_json::to_vec(&unwell(sequence, period)).unwrap());
        a.until_taken(sequence);
    }
    a.say(&FromProbe::Status(ProbeStatus {
        waiting_batches: 2,
        given_up: 8,
        missed: 4,
        ..ProbeStatus::default()
    }));
    // Turns in which the probe that is away could not measure.
    let missed = |of: &str| {
        let runs = collector.ask("/api/v1/runs");
        let run = runs.as_array().unwrap().iter().find(|run| run["probe"] == of).unwrap().clone();
        run["missed"].as_u64().unwrap()
    };
    let until = clock::now() + Span::from_secs(20);
    while missed("c") < 2 {
        assert!(clock::now() < until, "{}", collector.ask("/api/v1/runs"));
        clock::sleep(Span::from_millis(50));
    }
    let before = missed("c");
    let page =
        Drawn::of(chromium, &format!("http://{}/#pair=a%2Cb&task=owd&method=active", collector.address));

    let line = page.line("probes", &[("probe", "a")]);
    let columns =
        ["state", "seen", "lost", "clock", "± clock", "clock steps", "waiting", "given up", "missed"];
    let chrony = "chrony, not synchronised";
    assert_eq!(
        shown(&line, columns),
        ["connected", "36,003", "369", chrony, "1.500 ms", "1", "2", "8", "4"],
        "{line:#?}"
    );
    assert_eq!(line["refused tasks"], "delay: no such device");
    assert_eq!(shown(&page.line("probes", &[("probe", "b")]), ["state", "seen"]), ["away", "0"]);

    let columns =
        ["seen", "lost in ring", "lost in kernel", "lost in card", "merged", "not IP", "malformed", "link"];
    let line = page.line("captures", &[("probe", "a"), ("interface", "eth0")]);
    assert_eq!(shown(&line, columns), ["12,000", "3", "20 (4 in the backlog)", "100", "7", "5", "6", "up"]);
    let line = page.line("captures", &[("probe", "a"), ("interface", "eth1")]);
    assert_eq!(shown(&line, columns), ["1", "0", "0", "not told", "0", "0", "0", "was down"]);

    let line = page.line("runs", &[("probe", "c"), ("task", "bulk.a")]);
    assert_eq!(shown(&line, ["state", "started"]), ["waiting", "0"], "{line:#?}");
    assert!(line["missed"].parse::<u64>().unwrap() >= before, "{line:#?}");
    let line = page.line("tasks", &[("task", "delay")]);
    assert_eq!(shown(&line, ["kind", "on"]), ["digest", "all"]);
    let words = page.line("tasks", &[("task", "lag")])["words"].clone();
    assert!(words.contains(r#"options={"time":"5s"}"#), "{words}");

    let line = page.line("paths", &[("task", "owd")]);
    let columns = ["from", "to", "packets", "min", "max", "± clocks", "loss", "warnings"];
    assert_eq!(
        shown(&line, columns),
        [
            "a",
            "b",
            "300",
            "7.000 ms",
            "7.980 ms",
            "2.000 ms",
            "1.000 %",
            "'a' lost 123 packets in its capture (and 1 more)"
        ]
    );
    let map = page.shapes("map");
    for (class, times) in [("probe-up", 1), ("probe-down", 2), ("edge-bad", 1)] {
        assert_eq!(map.matches(&format!("class=\"{class}\"")).count(), times, "{class}: {map}");
    }
    assert!(
        map.contains("<title>a → b</title>") && map.contains(&format!(">{}</text>", line["mean"])),
        "{map}"
    );
    let clock = page.shapes("clock");
    assert!(clock.contains("<title>last: bound 2.00</title>") && page.picture("clock") == 1, "{clock}");
    assert_eq!(page.figure("± clocks"), "2.000 ms");
}

#[test]
fn a_task_that_is_changed_on_the_page_is_what_the_probe_is_told() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../web").canonicalize().unwrap();
    if !is_there("`npm ci` in web, and Chromium", &web.join("node_modules/playwright-core")) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "sesame\n").unwrap();
    let collector = start(folder.path(), &format!("{TWO}[access]\nadmin_token_file = \"token\"\n"));
    let mut probe = Probe::join(collector.address, "a");
    let first = probe.instruction();
    let used = Command::new("node")
        .arg(web.join("tests/collector.mjs"))
        .args([&format!("http://{}/", collector.address), "sesame"])
        .output()
        .unwrap();
    let complaints = String::from_utf8_lossy(&used.stderr);
    assert!(used.status.success(), "{complaints}");
    let said: Value = serde_json::from_slice(&used.stdout).unwrap();
    let names = |step: &str| -> Vec<&str> {
        said[step]["tasks"].as_array().unwrap().iter().map(|cells| cells[0].as_str().unwrap()).collect()
    };
    let answer = |step: &str| said[step]["answer"].as_str().unwrap().to_owned();

    assert_eq!(
        (&said["opened"]["name"], &said["opened"]["task"]["kind"]),
        (&json!("delay"), &json!("digest"))
    );
    let mut told = Vec::new();
    for (step, tasks) in
        [("changed", vec!["delay"]), ("added", vec!["count", "delay"]), ("ended", vec!["delay"])]
    {
        let next = probe.instruction();
        assert_eq!(answer(step), format!("configuration {}", next.number), "{step}");
        assert_eq!(next.tasks.keys().collect::<Vec<_>>(), tasks, "{step}: what the probe is told");
        assert_eq!(names(step), tasks, "{step}: what the table shows");
        told.push(next);
    }
    assert_ne!(told[0].tasks["delay"], first.tasks["delay"]);
    assert!(json!(told[0].tasks["delay"]).to_string().contains("udp port 5004"), "{:?}", told[0]);
    assert!(said["changed"]["tasks"][0][3].as_str().unwrap().contains("filter=udp port 5004"), "{said:#}");
    // Mistakes are told, and change nothing.
    assert!(answer("refused").contains("nobody"), "{said:#}");
    assert!(!answer("broken").is_empty() && !answer("broken").starts_with("configuration"), "{said:#}");
    assert_eq!([names("refused"), names("broken")], [names("added"), names("added")]);

    let ask = netaware_collector::Client::new(
        &format!("http://{}", collector.address),
        Some("sesame".into()),
        None,
    );
    let tasks: Value =
        serde_json::from_str(&ask.unwrap().ask("GET", "/api/v1/tasks", "").unwrap().body).unwrap();
    assert_eq!(tasks.as_object().unwrap().keys().collect::<Vec<_>>(), ["delay"]);
    assert_eq!(tasks["delay"]["filter"], "udp port 5004");
}
