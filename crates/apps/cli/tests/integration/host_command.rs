//! `netaware host` as a stranger runs it: what it prints, how long it takes, what it keeps, and
//! what it does with a cache that is broken or cannot be written.

use std::path::PathBuf;
use std::process::{Command, Output};

use netaware_record::{HostAbility, HostCall, Record};
use netaware_testkit::program::{netaware_path, output};
use tempfile::TempDir;

/// The binary with a cache of its own.
fn netaware(home: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(netaware_path());
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"NETAWARE_") {
            command.env_remove(name);
        }
    }
    command.current_dir(home.path()).args(arguments);
    for variable in ["HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
        command.env(variable, home.path());
    }
    command
}

fn run(home: &TempDir, arguments: &[&str]) -> Output {
    output(&mut netaware(home, arguments))
}

fn record(output: &Output) -> Record {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn ability(record: &Record) -> &HostAbility {
    record.ability.as_deref().unwrap()
}

fn cache(home: &TempDir) -> PathBuf {
    home.path().join("netaware/host.json")
}

const QUICK: [&str; 4] = ["host", "--quick", "--format", "json"];

#[test]
fn it_measures_once_and_remembers_until_told_otherwise() {
    let home = tempfile::tempdir().unwrap();
    let first = run(&home, &QUICK);
    let measured = record(&first);
    assert!(!ability(&measured).origin.cached && cache(&home).exists());
    let schema = serde_json::from_str(netaware_record::JSON_SCHEMA).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&first.stdout).unwrap();
    let errors: Vec<String> =
        schema.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:?}");

    // Every timing is that of the first run to the last digit: nothing was measured again.
    let remembered = record(&run(&home, &QUICK));
    assert!(ability(&remembered).origin.cached && remembered.id != measured.id);
    assert_eq!(ability(&remembered).timings, ability(&measured).timings);
    assert_eq!(ability(&remembered).origin.measured_at, ability(&measured).origin.measured_at);

    // A full measurement is not to be had from a quick one, and `--no-cache` neither reads nor
    // writes.
    let before = std::fs::read(cache(&home)).unwrap();
    let anew = record(&run(&home, &[&QUICK[..], &["--no-cache"]].concat()));
    assert!(!ability(&anew).origin.cached && ability(&anew).origin.cache.is_none());
    assert_eq!(std::fs::read(cache(&home)).unwrap(), before);
    let refreshed = record(&run(&home, &[&QUICK[..], &["--refresh"]].concat()));
    assert!(!ability(&refreshed).origin.cached);
    assert_ne!(std::fs::read(cache(&home)).unwrap(), before);
}

#[test]
fn costs_and_rates_agree_with_each_other() {
    let home = tempfile::tempdir().unwrap();
    let measured = record(&run(&home, &[&QUICK[..], &["--no-cache"]].concat()));
    let ability = ability(&measured);
    let call = |call, payload| {
        let found = ability.timings.calls.iter().find(|it| it.call == call && it.payload == payload);
        found.unwrap_or_else(|| panic!("{call:?} of {payload} B was not timed")).median_ns
    };
    assert!(call(HostCall::Null, 0) < call(HostCall::Send, 1472));
    let row = |way: &str| ability.honest.iter().find(|row| row.way == way && row.packet == 1500).unwrap();
    for way in ["pairs", "chirps", "streams", "trains", "paced", "filling", "bulk"] {
        let row = row(way);
        assert!(row.rate.0 > 0 && row.rate == row.limited_by.rate, "{row:?}");
        assert!(row.above.iter().all(|above| above.rate >= row.rate), "{row:?}");
        assert!(row.limited_by.because.contains("1500 B") || row.limited_by.by == "memory", "{row:?}");
    }
    // What can leave bounds what can be probed, whatever else does.
    let leaves = 12_000e9 / (call(HostCall::Send, 1472) + ability.timings.clock.read_ns);
    for way in ["pairs", "trains", "filling"] {
        assert!(row(way).rate.0 as f64 <= leaves * 1.001, "{way}: {:?}, {leaves}", row(way));
    }
    // A pair is never easier to read than a train that is made of such distances.
    assert!(row("pairs").rate <= row("trains").rate);
}

#[test]
fn a_broken_cache_is_said_and_replaced() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("netaware")).unwrap();
    std::fs::write(cache(&home), "{\"layout\":1,").unwrap();
    let measured = record(&run(&home, &QUICK));
    assert!(!ability(&measured).origin.cached);
    let warning =
        measured.warnings.iter().find(|warning| warning.contains("host.json cannot be used")).unwrap();
    assert!(warning.ends_with("measured again"), "{warning}");
    assert!(ability(&record(&run(&home, &QUICK))).origin.cached);
}

#[test]
fn a_cache_of_another_machine_is_not_believed() {
    let home = tempfile::tempdir().unwrap();
    record(&run(&home, &QUICK));
    let mut kept: serde_json::Value = serde_json::from_slice(&std::fs::read(cache(&home)).unwrap()).unwrap();
    kept["fingerprint"]["cpu"] = "a processor that nobody has".into();
    std::fs::write(cache(&home), kept.to_string()).unwrap();
    let measured = record(&run(&home, &QUICK));
    assert!(!ability(&measured).origin.cached);
    let told = measured
        .warnings
        .iter()
        .any(|it| it.starts_with("this host has changed (processor was 'a processor"));
    assert!(told, "{:?}", measured.warnings);
}

#[test]
fn a_cache_that_cannot_be_written_is_a_warning() {
    let home = tempfile::tempdir().unwrap();
    // A file where the folder should be keeps everybody out, root too.
    std::fs::write(home.path().join("file"), "").unwrap();
    let mut command = netaware(&home, &QUICK);
    let output = output(command.env("XDG_CACHE_HOME", home.path().join("file")));
    let measured = record(&output);
    let warned = measured.warnings.iter().any(|it| it.contains("not kept") && it.contains("XDG_CACHE_HOME"));
    assert!(warned && ability(&measured).origin.cache.is_none(), "{:?}", measured.warnings);
}

#[test]
fn each_form_tells_the_same_and_text_fits_eighty_columns() {
    let home = tempfile::tempdir().unwrap();
    let measured = record(&run(&home, &QUICK));
    let of = |more: &[&str]| {
        let output = run(&home, &[&["host", "--quick"][..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for text in [of(&[]), of(&["-v"])] {
        assert!(text.contains("HIGHEST RATES") && text.contains("MOST OVER LOOPBACK"), "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "too wide: {line}");
        }
    }
    let csv = of(&["--format", "csv"]);
    let mut lines = csv.lines();
    assert!(lines.next().unwrap().ends_with("way,methods,packet_bytes,error,rate_bps,limited_by,because"));
    assert_eq!(lines.count(), ability(&measured).honest.len());
    let ndjson = of(&["--format", "ndjson", "-q"]);
    let last: Record = serde_json::from_str(ndjson.lines().last().unwrap()).unwrap();
    assert_eq!(ability(&last).honest, ability(&measured).honest);
}

#[test]
fn a_result_is_saved_and_shown_and_listed_like_any_other() {
    let home = tempfile::tempdir().unwrap();
    let measured = record(&run(&home, &QUICK));
    let id = measured.id.to_string();
    let listed = run(&home, &["results", "list"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains(&id[..18]), "{listed:?}");
    for form in ["text", "json", "ndjson", "csv"] {
        let shown = run(&home, &["results", "show", &id, "--format", form]);
        assert_eq!(shown.status.code(), Some(0), "{form}: {}", String::from_utf8_lossy(&shown.stderr));
        let word = if form == "text" { "HIGHEST RATES" } else { "trains" };
        assert!(String::from_utf8_lossy(&shown.stdout).contains(word), "{form}");
    }
}

#[test]
fn thresholds_decide_the_exit_code() {
    let home = tempfile::tempdir().unwrap();
    record(&run(&home, &QUICK));
    for (threshold, want) in [("host.trains>1kbit/s", 0), ("host.trains>1000Tbit/s", 1), ("rtt.p50<1s", 1)] {
        let output = run(&home, &["host", "--quick", "--expect", threshold]);
        assert_eq!(
            output.status.code(),
            Some(want),
            "{threshold}: {}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
}

#[test]
fn an_interface_is_chosen_by_name_and_a_wrong_one_told_with_those_there_are() {
    let home = tempfile::tempdir().unwrap();
    let measured = record(&run(&home, &[&QUICK[..], &["--interface", "lo"]].concat()));
    let ability = ability(&measured);
    assert_eq!((ability.facts.interfaces.len(), ability.through.as_deref()), (1, Some("lo")));
    let output = run(&home, &["host", "--interface", "eth9999"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(error.starts_with("error: --interface: there is no interface 'eth9999' here: try "), "{error}");
    assert!(error.contains("lo") && error.lines().count() == 1, "{error}");
}
