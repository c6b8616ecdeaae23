//! Scans and repetitions as a person runs them: what is saved, what a failure or an interrupt
//! leaves, how it goes on.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use netaware_io::clock;
use netaware_record::{Outcome, Record, SeriesKind};
use netaware_store::{Among, Filter, Store};
use netaware_testkit::program::{Finished, Program, Responder, free_port, netaware, run, signal};
use netaware_units::Span;

const PATIENCE: Span = Span::from_secs(60);
/// Over in some tens of milliseconds per point.
const SHORT: [&str; 6] = ["127.0.0.1", "-c", "5", "-i", "1ms", "-q"];

/// A folder with a store, and a responder to measure to.
struct Place {
    folder: tempfile::TempDir,
    responder: Responder,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), responder: Responder::start(&[]) }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn arguments<'a>(&self, command: &'a str, port: &'a str, more: &[&'a str]) -> Vec<String> {
        let store = self.file("store.db").display().to_string();
        let fixed = [&[command], &SHORT[..], &["--port", port, "--store", &store], more].concat();
        fixed.into_iter().map(str::to_owned).collect()
    }

    /// Runs `latency` against the responder to its end.
    fn latency(&self, more: &[&str]) -> Finished {
        let port = self.responder.port();
        let arguments = self.arguments("latency", &port, more);
        run(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), PATIENCE)
    }

    /// The records of the newest series, in the order of its points.
    fn records(&self) -> Vec<Record> {
        let store = Store::open(self.file("store.db")).unwrap();
        let id = store.series("last").unwrap().id;
        let mut records = Vec::new();
        store
            .each(&Filter { series: Among::Of(id), ..Filter::default() }, |record| {
                records.push(record);
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
        records
    }

    fn results(&self, arguments: &[&str]) -> Finished {
        let store = self.file("store.db").display().to_string();
        run(&[&["results"], arguments, &["--store", &store]].concat(), PATIENCE)
    }
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn index(record: &Record) -> u64 {
    record.series.as_ref().unwrap().index
}

#[test]
fn each_combination_of_a_scan_is_a_record_and_a_row() {
    let place = Place::new();
    let csv = place.file("scan.csv").display().to_string();
    let scan = ["--scan", "length=64,100", "--scan", "count=3..5+1", "-4", "--label", "hall B"];
    // The count is scanned, so it must not be given; the last word of a repeated flag would not do.
    let refused = place.latency(&[&scan[..], &["--format", "csv", "--output", &csv]].concat()).exits_with(2);
    assert!(refused.stderr.contains("--count is given and scanned"), "{}", refused.stderr);
    assert!(!place.file("scan.csv").exists());

    let scan = ["--scan", "length=64,100", "--scan", "timeout=1s..3s+1s", "-4", "--label", "hall B"];
    place.latency(&[&scan[..], &["--format", "csv", "--output", &csv]].concat()).exits_with(0);
    let rows = lines(Path::new(&csv));
    assert_eq!(rows.len(), 1 + 6, "{rows:#?}");
    assert!(rows[0].contains("series,index,scan_length,scan_timeout_ns,version"), "{}", rows[0]);
    let records = place.records();
    let points: Vec<(u64, &str, &str)> = records
        .iter()
        .map(|record| {
            let series = record.series.as_ref().unwrap();
            assert_eq!(
                (series.kind, series.planned, record.label.as_deref()),
                (SeriesKind::Scan, 6, Some("hall B"))
            );
            (series.index, series.point["length"].as_str(), series.point["timeout"].as_str())
        })
        .collect();
    let want = [
        (0, "64", "1s"),
        (1, "64", "2s"),
        (2, "64", "3s"),
        (3, "100", "1s"),
        (4, "100", "2s"),
        (5, "100", "3s"),
    ];
    assert_eq!(points, want);
    for record in &records {
        let latency = record.versions[0].latency.as_ref().unwrap();
        assert_eq!(latency.payload.0.to_string(), record.series.as_ref().unwrap().point["length"]);
    }

    let again = place.latency(&[&scan[..], &["--format", "csv", "--output", &csv]].concat()).exits_with(2);
    assert!(again.stderr.contains("is there already"), "{}", again.stderr);
    place.latency(&[&scan[..], &["--format", "csv", "--output", &csv, "--append"]].concat()).exits_with(0);
    let rows = lines(Path::new(&csv));
    assert_eq!(rows.iter().filter(|row| row.starts_with("id,")).count(), 1);
    assert_eq!(rows.len(), 1 + 12);
    let other = ["--scan", "length=64", "--format", "csv", "--output", &csv, "--append"];
    assert!(place.latency(&other).exits_with(2).stderr.contains("other columns"));

    let listed = place.results(&["list", "--label", "hall B"]).exits_with(0).stdout;
    assert_eq!(listed.matches("hall B, scan, 6 of 6 points").count(), 2, "{listed}");
    let shown = place.results(&["show", "last", "--format", "ndjson"]).exits_with(0).stdout;
    let shown: Vec<Record> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(shown, place.records());
    let refused = place.results(&["delete", "last"]).exits_with(2);
    assert!(refused.stderr.contains("belongs to the series"), "{}", refused.stderr);
    let points = place.results(&["list", "--series", "last"]).exits_with(0).stdout;
    assert_eq!(points.matches("hall B, point ").count(), 6, "{points}");
    let exported = place.results(&["export", "--label", "hall B", "--format", "csv"]).exits_with(0).stdout;
    assert_eq!(exported.lines().count(), 1 + 12);
}

#[test]
fn a_scan_over_size_ends_with_its_slopes_and_their_meaning() {
    let place = Place::new();
    let scan = ["--scan", "response=100B..1100B+200B", "--transport", "both"];
    let finished = place.latency(&scan).exits_with(0);
    assert!(finished.stdout.contains("LATENCY AGAINST SIZE"), "{finished:#?}");
    for over in ["IPv4, UDP", "IPv4, TCP"] {
        let about = format!("{over}: response of 100 B to 1100 B, 6 points, one packet each");
        assert!(finished.stdout.contains(&about), "{about}: {finished:#?}");
    }
    assert!(finished.stdout.contains("not known here: the prober's link rate"), "{finished:#?}");
    assert!(finished.stdout.contains("a memory copy on the prober: 0.0"), "{finished:#?}");
    // What is over no size has no slope, and rows for programs stay rows.
    let finished = place.latency(&["--scan", "timeout=1s,2s"]).exits_with(0);
    assert!(!finished.stdout.contains("SIZE"), "{finished:#?}");
    let finished = place.latency(&["--scan", "response=100B,200B", "--format", "csv"]).exits_with(0);
    assert_eq!(finished.stdout.lines().count(), 3, "{finished:#?}");
}

#[test]
fn an_interrupted_scan_goes_on_where_it_was() {
    let place = Place::new();
    let csv = place.file("scan.csv").display().to_string();
    let port = place.responder.port();
    let scan = ["--scan", "length=64..163+1", "-4", "--format", "csv", "--output", &csv];
    let arguments = place.arguments("latency", &port, &scan);
    let started = Program::start(netaware(&arguments.iter().map(String::as_str).collect::<Vec<_>>()));
    let due = clock::now() + PATIENCE;
    while lines(Path::new(&csv)).len() < 4 {
        assert!(clock::now() < due, "nothing was measured: {}", started.complained());
        clock::sleep(Span::from_millis(5));
    }
    signal("INT", started.id());
    let ended = started.finish_within(Span::from_secs(10)).exits_with(0);
    let before = place.records().len();
    assert!((3..100).contains(&before), "{before} records; {}", ended.stderr);
    let (_, command) = ended.stderr.split_once("continue with: netaware ").expect("it says how to go on");
    let resume: Vec<&str> = command.lines().next().unwrap().split(' ').collect();
    assert_eq!(&resume[..2], &["latency", "--resume"], "{command}");

    let wrong = run(&[&resume[..], &["-4"]].concat(), PATIENCE).exits_with(2);
    assert!(wrong.stderr.contains("leave out --ipv4"), "{}", wrong.stderr);
    let wrong = run(&[&["udp"], &resume[1..]].concat(), PATIENCE).exits_with(2);
    assert!(wrong.stderr.contains("netaware latency --resume"), "{}", wrong.stderr);

    run(&[&resume[..], &["-q", "--format", "csv", "--output", &csv, "--append"]].concat(), PATIENCE)
        .exits_with(0);
    let records = place.records();
    let indices: Vec<u64> = records.iter().map(index).collect();
    assert_eq!(indices, (0..100).collect::<Vec<_>>(), "each point once");
    assert!(records.iter().all(|record| record.outcome == Outcome::Complete));
    let rows = lines(Path::new(&csv));
    assert_eq!(rows.iter().filter(|row| row.starts_with("id,")).count(), 1);
    let fields: BTreeSet<usize> = rows.iter().map(|row| row.split(',').count()).collect();
    assert_eq!(fields.len(), 1, "whole lines");
}

#[test]
fn a_point_that_fails_is_recorded_and_measured_again_by_resume() {
    let place = Place::new();
    let (good, bad) = (place.responder.port(), free_port());
    let scan = format!("port={good},{bad},{good}");
    let store = place.file("store.db").display().to_string();
    let line =
        [&["latency"], &SHORT[..], &["--store", &store, "--scan", &scan, "--connect-timeout", "1s"]].concat();
    let ended = run(&line, PATIENCE).exits_with(0);
    assert!(ended.stderr.contains("failed points: 1 (2)"), "{}", ended.stderr);
    let outcomes: Vec<Outcome> = place.records().iter().map(|record| record.outcome).collect();
    assert_eq!(outcomes, [Outcome::Complete, Outcome::Failed, Outcome::Complete]);
    assert!(place.records()[1].versions[0].unreachable.is_some());

    let responder = Program::start(netaware(&["serve", "--port", &bad.to_string()]));
    let due = clock::now() + PATIENCE;
    while std::net::TcpStream::connect(("127.0.0.1", bad)).is_err() {
        assert!(clock::now() < due, "{}", responder.complained());
        clock::sleep(Span::from_millis(10));
    }
    run(&["latency", "--resume", "last", "-q", "--store", &store], PATIENCE).exits_with(0);
    let records = place.records();
    assert_eq!(records.len(), 3, "the failed attempt is replaced");
    assert!(records.iter().all(|record| record.outcome == Outcome::Complete));
}

#[test]
fn a_series_of_which_nothing_was_measured_exits_with_2_and_a_missed_threshold_with_1() {
    let place = Place::new();
    let nobody = free_port().to_string();
    let more = ["--scan", "length=64,100", "--connect-timeout", "500ms"];
    let arguments = place.arguments("latency", &nobody, &more);
    let ended = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), PATIENCE).exits_with(2);
    assert!(ended.stderr.contains("failed points: 2 (1, 2)"), "{}", ended.stderr);
    let missed = place.latency(&["--scan", "length=64,100", "--expect", "rtt.p50<1ns"]).exits_with(1);
    assert!(missed.stderr.contains("points that missed a threshold: 2 (1, 2)"), "{}", missed.stderr);
}

#[test]
fn slips_are_told_before_anything_is_measured() {
    let place = Place::new();
    let rows: &[(&[&str], &str)] = &[
        (&["--scan", "lenght=1,2"], "no option --lenght"),
        (&["--scan", "length=0..100+10"], "'0' for '--length"),
        (&["--scan", "length=64,x"], "'x' for '--length"),
        (&["--scan", "spacing=1ms,2ms"], "--spacing is given and scanned"),
        (&["--scan", "length=64,100", "--every", "1s"], "cannot be used with"),
        (&["--times", "3"], "--every"),
        (&["--resume", "last"], "leave out"),
        (&["--scan", "length=64,100", "--append"], "--output"),
    ];
    for (more, want) in rows {
        let ended = place.latency(more).exits_with(2);
        assert!(ended.stderr.contains(want), "{more:?}: {}", ended.stderr);
        assert!(ended.stdout.is_empty(), "{more:?}");
    }
    assert!(place.results(&["list"]).stderr.contains("no results saved yet"));
}

#[test]
fn a_repetition_keeps_to_its_times_and_sums_up() {
    let place = Place::new();
    let every = Span::from_secs(1);
    let ended = place.latency(&["--every", "1s", "--times", "4"]).exits_with(0);
    let records = place.records();
    assert_eq!(records.iter().map(index).collect::<Vec<_>>(), [0, 1, 2, 3], "{}", ended.stderr);
    for late in lateness(&place, every) {
        assert!((Span::ZERO..every).contains(&late), "{late} after its time; {}", ended.stderr);
    }
    assert!(ended.stdout.contains("OVER THE WHOLE RUN"), "{}", ended.stdout);
    let shown = place.results(&["show", "last"]).exits_with(0).stdout;
    assert!(shown.contains("OVER THE WHOLE RUN") && shown.contains("variance"), "{shown}");
}

/// How long after its slot each record began. The series is noted as begun shortly before its first
/// slot.
fn lateness(place: &Place, every: Span) -> Vec<Span> {
    let began_at = Store::open(place.file("store.db")).unwrap().series("last").unwrap().started_at;
    let due = |record: &Record| every * i64::try_from(index(record)).unwrap();
    place.records().iter().map(|record| record.started_at.since(began_at) - due(record)).collect()
}

#[test]
fn a_measurement_longer_than_its_interval_leaves_gaps_and_does_not_shift_the_others() {
    let place = Place::new();
    let port = place.responder.port();
    let store = place.file("store.db").display().to_string();
    // 40 requests, one every 5 ms, are 200 ms at least: three slots pass meanwhile.
    let line = ["latency", "127.0.0.1", "--port", &port, "--store", &store, "-c", "40", "-i", "5ms"];
    let started = Program::start(netaware(&[&line[..], &["--every", "60ms"]].concat()));
    let due = clock::now() + PATIENCE;
    while !place.file("store.db").exists() || place.records_so_far() < 4 {
        assert!(clock::now() < due, "{}", started.complained());
        clock::sleep(Span::from_millis(10));
    }
    signal("INT", started.id());
    let ended = started.finish_within(Span::from_secs(10)).exits_with(0);
    let records = place.records();
    assert!(records.iter().all(|record| record.series.as_ref().unwrap().planned == 0), "it has no end");
    let indices: Vec<u64> = records.iter().map(index).collect();
    assert!(indices.windows(2).take(3).all(|pair| pair[1] >= pair[0] + 3), "{indices:?}");
    assert!(ended.stderr.contains("are gaps"), "{}", ended.stderr);
    assert!(ended.stderr.contains("continue with: netaware latency --resume"), "{}", ended.stderr);
    for late in lateness(&place, Span::from_millis(60)) {
        assert!(late >= Span::ZERO, "a measurement began {late} before its slot");
    }
}

#[test]
fn a_resumed_repetition_keeps_its_timetable() {
    let place = Place::new();
    let port = place.responder.port();
    let arguments = place.arguments("latency", &port, &["--every", "250ms", "--times", "24"]);
    let started = Program::start(netaware(&arguments.iter().map(String::as_str).collect::<Vec<_>>()));
    let due = clock::now() + PATIENCE;
    while !place.file("store.db").exists() || place.records_so_far() < 2 {
        assert!(clock::now() < due, "{}", started.complained());
        clock::sleep(Span::from_millis(10));
    }
    signal("INT", started.id());
    started.finish_within(Span::from_secs(10)).exits_with(0);
    let before = place.records().len();
    // More than one slot passes before it goes on.
    clock::sleep(Span::from_millis(600));
    let store = place.file("store.db").display().to_string();
    let resumed = run(&["latency", "--resume", "last", "--store", &store], PATIENCE).exits_with(0);
    let records = place.records();
    let indices: Vec<u64> = records.iter().map(index).collect();
    assert!(records.len() > before, "{}", resumed.stderr);
    assert!(
        indices.windows(2).all(|pair| pair[0] < pair[1]) && indices.iter().all(|n| *n < 24),
        "{indices:?}"
    );
    assert!(indices[before] > indices[before - 1] + 1, "slots passed meanwhile: {indices:?}");
    assert!(resumed.stderr.contains("while the series did not run"), "{}", resumed.stderr);
    for late in lateness(&place, Span::from_millis(250)) {
        assert!(late >= Span::ZERO, "a measurement began {late} before its slot");
    }
    let n = resumed
        .stdout
        .lines()
        .find(|line| line.trim().starts_with("IPv4  "))
        .unwrap()
        .split_whitespace()
        .nth(1);
    assert_eq!(n, Some(records.len().to_string().as_str()), "the whole run: {}", resumed.stdout);
}

#[test]
fn a_killed_series_leaves_whole_lines_and_all_it_measured() {
    let place = Place::new();
    let csv = place.file("scan.csv").display().to_string();
    let port = place.responder.port();
    let scan = ["--scan", "length=64..1063+1", "-4", "--format", "csv", "--output", &csv];
    let arguments = place.arguments("latency", &port, &scan);
    let started = Program::start(netaware(&arguments.iter().map(String::as_str).collect::<Vec<_>>()));
    let due = clock::now() + PATIENCE;
    while lines(Path::new(&csv)).len() < 6 {
        assert!(clock::now() < due, "nothing was measured: {}", started.complained());
        clock::sleep(Span::from_millis(5));
    }
    signal("KILL", started.id());
    assert_eq!(started.finish_within(Span::from_secs(5)).code, None);
    let text = std::fs::read_to_string(&csv).unwrap();
    assert!(text.ends_with('\n'));
    let fields: BTreeSet<usize> = text.lines().map(|row| row.split(',').count()).collect();
    assert_eq!(fields.len(), 1, "{text}");
    let saved = place.records().len();
    assert!(saved >= text.lines().count() - 1, "{saved} saved, {} rows", text.lines().count() - 1);
}

#[test]
fn two_labels_are_compared() {
    let place = Place::new();
    place.latency(&["--every", "1s", "--times", "3", "--label", "VPN", "-4"]).exits_with(0);
    place.latency(&["--every", "1s", "--times", "3", "--label", "hall B", "-4"]).exits_with(0);
    let compared = place.results(&["compare", "VPN", "hall B"]).exits_with(0).stdout;
    assert!(compared.contains("A  VPN, ") && compared.contains("rtt.p50"), "{compared}");
    assert!(compared.lines().all(|line| line.chars().count() <= 80), "{compared}");
    let json = place.results(&["compare", "VPN", "hall B", "--format", "json"]).exits_with(0).stdout;
    let pairs: serde_json::Value = serde_json::from_str(&json).unwrap();
    let p50 = pairs.as_array().unwrap().iter().find(|pair| pair["metric"] == "rtt.p50").unwrap();
    let of = |key: &str| p50[key].as_f64().unwrap();
    assert!((of("median_b") - of("median_a") - of("difference")).abs() < 1e-3, "{p50}");
    let of_interval = |key: &str| p50["interval"][key].as_f64().unwrap();
    assert!(of_interval("lo") <= of("difference") && of("difference") <= of_interval("hi"), "{p50}");
    let none = place.results(&["compare", "VPN", "hall C"]).exits_with(2);
    assert!(none.stderr.contains("'hall C' is no label"), "{}", none.stderr);
}

#[test]
fn a_series_says_where_it_stands_when_asked() {
    let place = Place::new();
    let port = place.responder.port();
    let store = place.file("store.db").display().to_string();
    let line = ["latency", "127.0.0.1", "--port", &port, "--store", &store, "-c", "100", "-i", "5ms", "-4"];
    let started = Program::start(netaware(&[&line[..], &["--scan", "length=64..83+1"]].concat()));
    let due = clock::now() + PATIENCE;
    while !place.file("store.db").exists() || place.records_so_far() < 2 {
        assert!(clock::now() < due, "{}", started.complained());
        clock::sleep(Span::from_millis(10));
    }
    signal("USR1", started.id());
    while !started.complained().contains("netaware: point ") {
        assert!(clock::now() < due, "{}", started.complained());
        clock::sleep(Span::from_millis(10));
    }
    let said = started.complained();
    signal("INT", started.id());
    started.finish_within(Span::from_secs(10)).exits_with(0);
    assert!(said.contains(" of 20, length ") && said.contains("left in all"), "{said}");
}

impl Place {
    fn records_so_far(&self) -> usize {
        let store = Store::open(self.file("store.db")).unwrap();
        store.list(&Filter::default(), 100).map_or(0, |list| list.len())
    }
}
