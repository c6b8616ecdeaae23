//! Pictures by the command line: of what was just measured, of a series, and what happens when
//! there is none.

use std::path::Path;
use std::process::{Command, Output};

use netaware_record::{Record, SeriesKind, SeriesPoint};
use netaware_store::Store;
use netaware_testkit::program::{netaware_path, output};
use tempfile::TempDir;
use uuid::Uuid;

fn netaware(home: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(netaware_path());
    command.current_dir(home.path()).args(arguments).args(["--store", "r.db"]);
    for variable in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
        command.env(variable, home.path());
    }
    output(&mut command)
}

/// The record that the golden JSON of the renderer holds.
fn record(n: u64) -> Record {
    let golden = include_str!("../../src/snapshots/netaware__render__tests__test_json.snap");
    let (_, json) = golden.split_once("\n---\n").unwrap();
    let record: Record = serde_json::from_str(json).unwrap();
    Record { id: Uuid::from_u128(record.id.as_u128() + u128::from(n)), ..record }
}

fn save(home: &Path, records: impl Iterator<Item = Record>) {
    let store = Store::open(home.join("r.db")).unwrap();
    records.for_each(|record| store.save(&record).unwrap());
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_matrix_measured_here_is_drawn() {
    let home = tempfile::tempdir().unwrap();
    let measured =
        netaware(&home, &["matrix", "-4", "--bytes", "10kB", "--blocks", "1kB,5kB", "--runs", "1", "-q"]);
    assert!(measured.status.success(), "{}", text(&measured.stderr));
    let drawn = netaware(&home, &["results", "plot", "last"]);
    assert_eq!(text(&drawn.stdout), "wrote netaware-last.svg\n", "{}", text(&drawn.stderr));
    let svg = std::fs::read_to_string(home.path().join("netaware-last.svg")).unwrap();
    assert!(svg.contains("throughput over block size") && svg.contains("IPv4 UDP"));
}

#[test]
fn a_series_is_drawn_by_its_id_and_by_its_last_record() {
    let home = tempfile::tempdir().unwrap();
    let id = Uuid::from_u128(0x0200_0000_0000_7000_8000_0000_0000_0001);
    let of = |index: u64| {
        let mut record = record(index);
        record.started_at.0 += i64::try_from(index).unwrap() * 1_000_000_000;
        let point = [("streams".to_owned(), (1 << index).to_string())].into();
        record.series = Some(SeriesPoint { id, kind: SeriesKind::Scan, index, planned: 3, point });
        record
    };
    save(home.path(), (0..3).map(of));
    let drawn = netaware(&home, &["results", "plot", "0200", "--output", "s.png"]);
    assert_eq!(text(&drawn.stdout), "wrote s.png\n", "{}", text(&drawn.stderr));
    assert!(std::fs::read(home.path().join("s.png")).unwrap().starts_with(b"\x89PNG"));
    let last = netaware(&home, &["results", "plot", "last", "--output", "-"]);
    assert!(text(&last.stdout).contains("scan over streams"));
    let one = netaware(&home, &["results", "plot", &of(2).id.to_string(), "--output", "-"]);
    assert!(text(&one.stdout).contains("distribution of round trips"));
}

#[test]
fn what_cannot_be_drawn_is_refused_in_one_sentence() {
    let home = tempfile::tempdir().unwrap();
    save(home.path(), std::iter::once(record(0)));
    let rows = [
        (
            &["last", "--what", "block"][..],
            "no picture of kind 'block' can be made of this 'test' result: use --what histogram",
        ),
        (&["0200"], "no result with the id 0200"),
        (&["last", "--output", "a.gif"], "'a.gif' must end in .svg or .png"),
        (&["last", "--output", "none/a.svg"], "cannot write none/a.svg"),
        (&["last", "--size", "10x10"], "it must be from 480x320 to 4096x4096"),
    ];
    for (words, why) in rows {
        let refused = netaware(&home, &[&["results", "plot"], words].concat());
        assert_eq!(refused.status.code(), Some(2), "{words:?}");
        assert!(text(&refused.stderr).contains(why), "{words:?}: {}", text(&refused.stderr));
        assert!(refused.stdout.is_empty());
    }
}
