//! The command line without a network: exit codes, help, settings, saved results, and a reader who
//! goes away.

use std::path::Path;
use std::process::{Command, Stdio};

use netaware_record::Record;
use netaware_store::Store;
use netaware_testkit::program::{netaware_path, output};
use tempfile::TempDir;

/// The binary in an empty home, with nothing of the user's settings.
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

/// Exit code, stdout, stderr.
fn run(home: &TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    finished(&mut netaware(home, arguments))
}

fn finished(command: &mut Command) -> (Option<i32>, String, String) {
    let output = output(command);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The record that the golden JSON of the renderer holds.
fn saved_record() -> Record {
    let golden = include_str!("../../src/snapshots/netaware__render__tests__test_json.snap");
    let (_, json) = golden.split_once("\n---\n").unwrap();
    serde_json::from_str(json).unwrap()
}

#[test]
fn help_and_version_succeed_and_mistakes_exit_with_2() {
    let home = tempfile::tempdir().unwrap();
    let rows: &[(&[&str], i32)] = &[
        (&["--help"], 0),
        (&["--version"], 0),
        (&["help", "test"], 0),
        (&["tcp", "--help"], 0),
        (&[], 2),
        (&["measure"], 2),
        (&["tcp", "--sideways"], 2),
        (&["udp", "h", "-b", "1M", "--spacing", "1ms"], 2),
        (&["test", "h", "--format", "csv"], 2),
        (&["test", "::1", "-4"], 2),
        (&["latency", "h", "--key-file", "missing"], 2),
        (&["results", "show", "last"], 2),
        (&["results", "plot", "last"], 2),
        (&["matrix", "h", "--bytes", "100", "--blocks", "1kB"], 2),
        (&["completions", "tcsh"], 2),
        (&["man", "ftp"], 2),
        (&["host", "--interface", "no-such"], 2),
        (&["host", "--refresh", "--no-cache"], 2),
        (&["host", "--format", "udpmon"], 2),
        (&["host", "lab-b"], 2),
        (&["host", "--expect", "host.speed>1M"], 2),
        (&["lab", "scenarios"], 0),
        (&["lab", "scenarios", "three-hops"], 0),
        (&["lab", "up", "no-such-path"], 2),
        (&["lab", "up", "three-hops", "--prefix", "../x"], 2),
        (&["lab", "run", "three-hops", "--", "true", ":::"], 2),
        (&["lab", "exec", "--prefix", "nobodys", "a", "true"], 2),
        (&["simulate", "idle-1g", "latency"], 0),
        (&["simulate", "idle-1g", "path-mtu", "-6", "--format", "json"], 0),
        (&["simulate", "idle-1g", "stream", "-t", "1s", "--runs", "3"], 0),
        (&["simulate", "idle-1g"], 2),
        (&["simulate", "no-such-path", "latency"], 2),
        (&["simulate", "world/blip-2s", "latency", "-t", "8s"], 0),
        (&["simulate", "world/udp-blocked", "latency"], 2),
        (&["simulate", "world/nat64", "latency"], 2),
        (&["simulate", "idle-1g", "capacity"], 2),
        (&["simulate", "idle-1g", "path-mtu", "--count", "3"], 2),
    ];
    for (arguments, want) in rows {
        let (code, out, err) = run(&home, arguments);
        assert_eq!(code, Some(*want), "{arguments:?}: {err}");
        assert_eq!(out.is_empty(), *want != 0, "{arguments:?}");
    }
}

#[test]
fn a_malformed_scenario_is_told_with_file_line_and_field() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("mine.toml"), "about = \"x\"\n[[hop]]\nrate = \"0bit/s\"\n").unwrap();
    let commands: [&[&str]; 3] = [
        &["lab", "up", "mine.toml"],
        &["lab", "run", "mine.toml", "--", "true"],
        &["simulate", "mine.toml", "latency"],
    ];
    for command in commands {
        let (code, _, err) = run(&home, command);
        assert_eq!(code, Some(2));
        assert!(err.starts_with("error: mine.toml: line 3, ") && err.contains("rate"), "{err}");
    }
}

#[test]
fn a_simulation_gives_the_same_bytes_for_the_same_seed() {
    let home = tempfile::tempdir().unwrap();
    let of = |seed: &str| {
        let arguments = ["simulate", "loaded-100m", "latency", "--format", "json", "--seed", seed];
        let (code, out, err) = run(&home, &arguments);
        assert_eq!((code, err.as_str()), (Some(0), ""));
        out
    };
    let first = of("5");
    assert_eq!(first, of("5"));
    assert_ne!(first, of("6"));
    let whole: serde_json::Value = serde_json::from_str(&first).unwrap();
    let record: Record = serde_json::from_value(whole["record"].clone()).unwrap();
    assert_eq!((record.command.as_str(), record.versions.len()), ("latency", 2));
}

#[test]
fn settings_reach_a_simulation_too() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("netaware.toml"), "[simulate]\nseed = 9\nruns = 2\n").unwrap();
    let (code, out, err) = run(&home, &["simulate", "idle-1g", "latency", "-4"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("2 seeds from 9"), "{out}");
}

#[test]
fn a_mistake_in_a_settings_file_names_file_and_key() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("netaware.toml"), "[tcp]\nstreems = 4\n").unwrap();
    let (code, _, err) = run(&home, &["tcp", "h"]);
    assert_eq!(code, Some(2));
    assert_eq!(
        err,
        "error: settings: netaware.toml: unknown key tcp.streems: 'netaware tcp' has no flag --streems\n"
    );
}

#[test]
fn a_neighbours_settings_in_the_present_folder_are_ignored_with_the_reason() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("netaware.toml");
    std::fs::write(&file, "[simulate]\nseed = 9\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    let words = ["simulate", "idle-1g", "latency", "-4", "--runs", "1"];
    let (code, _, err) = run(&home, &words);
    assert_eq!(code, Some(0), "{err}");
    let warned = err.contains("netaware.toml is ignored: it can be written by every user");
    assert!(warned && err.contains("warning: "), "{err}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(!run(&home, &words).2.contains("ignored"));
}

#[test]
fn a_key_file_that_a_neighbour_can_read_is_warned_about() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = tempfile::tempdir().unwrap();
    let key = home.path().join("key");
    let advice = format!("run chmod 600 {}", key.display());
    // All of them fail for another reason, once they have the key.
    let lines: [&[&str]; 3] = [
        &["latency", "127.0.0.1", "-p", "1", "-t", "100ms", "--no-save"],
        &["serve", "--cert", "missing", "--cert-key", "missing"],
        &["receive", ".", "--cert", "missing", "--cert-key", "missing"],
    ];
    for mode in [0o600, 0o640, 0o644] {
        std::fs::write(&key, "sesame").unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        for line in lines {
            let (code, _, err) = run(&home, &[line, &["--key-file", key.to_str().unwrap()]].concat());
            assert_eq!(code, Some(2), "{line:?}: {err}");
            assert_eq!(err.contains(&advice), mode != 0o600, "{line:?}, {mode:o}: {err}");
            assert!(!err.contains("sesame"), "{line:?}: {err}");
        }
    }
}

#[test]
fn settings_come_from_the_users_folder_then_the_present_one_then_the_environment() {
    let home = tempfile::tempdir().unwrap();
    let place = |name: &str| home.path().join(name);
    save(&place("c.db"), &saved_record());
    let list = || netaware(&home, &["results", "list", "--format", "json"]);
    assert_eq!(finished(&mut list()).1, "[]\n");
    std::fs::create_dir(place("netaware-config")).unwrap();
    std::fs::create_dir_all(place("netaware-config/netaware")).unwrap();
    std::fs::write(place("netaware-config/netaware/netaware.toml"), "store = 'c.db'\n").unwrap();
    let in_user_folder = || {
        let mut command = list();
        command.env("XDG_CONFIG_HOME", place("netaware-config"));
        command
    };
    assert!(finished(&mut in_user_folder()).1.contains("lab-b"));
    std::fs::write(place("netaware.toml"), "store = 'a.db'\n").unwrap();
    assert_eq!(finished(&mut in_user_folder()).1, "[]\n");
    assert!(finished(in_user_folder().env("NETAWARE_STORE", "c.db")).1.contains("lab-b"));
    // A file that is named on the command line has to be there.
    let (code, out, err) = finished(in_user_folder().env("NETAWARE_STORE", "c.db").args(["--store", "a.db"]));
    assert_eq!((code, out.as_str(), err.as_str()), (Some(2), "", "error: no file of results at a.db\n"));
    assert!(!place("a.db").exists(), "listing makes no file");
}

fn save(path: &Path, record: &Record) {
    Store::open(path).unwrap().save(record).unwrap();
}

#[test]
fn a_saved_result_is_listed_shown_in_every_form_and_deleted() {
    let home = tempfile::tempdir().unwrap();
    let record = saved_record();
    save(&home.path().join("netaware/results.db"), &record);
    let (_, listed, _) = run(&home, &["results", "list"]);
    assert!(listed.contains("019a2b3c-4d5e-7f60") && listed.contains("lab-b"), "{listed}");
    let (code, text, _) = run(&home, &["results", "show", "019a2b3c"]);
    assert_eq!(code, Some(0));
    assert!(text.contains("VERDICT") && !text.contains('\u{1b}'), "no colour without a terminal");
    let (_, vivid, _) = run(&home, &["results", "show", "last", "--color", "always"]);
    assert!(vivid.contains('\u{1b}'));
    let (_, json, _) = run(&home, &["results", "show", "last", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), record);
    let (code, _, err) = run(&home, &["results", "show", "last", "--format", "csv"]);
    assert_eq!(
        (code, err.as_str()),
        (Some(2), "error: a 'test' result has no CSV form: use --format json\n")
    );
    let (_, deleted, _) = run(&home, &["results", "delete", "last"]);
    assert_eq!(deleted, format!("deleted {}\n", record.id));
    assert_eq!(run(&home, &["results", "show", "last"]).0, Some(2));
}

#[test]
fn a_responder_that_cannot_keep_results_says_so_before_it_listens() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("notes.txt"), "notes ".repeat(1000)).unwrap();
    let (code, out, err) = run(&home, &["serve", "--port", "0", "--results=notes.txt"]);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
    assert!(err.starts_with("error: --results=notes.txt: "), "{err}");
}

#[test]
fn a_file_of_results_that_is_none_is_refused_and_named() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("notes.txt"), "notes ".repeat(1000)).unwrap();
    let (code, _, err) = run(&home, &["results", "list", "--store", "notes.txt"]);
    assert_eq!(code, Some(2));
    assert!(err.starts_with("error: notes.txt is no database"), "{err}");
}

#[test]
fn a_reader_who_goes_away_is_no_error() {
    let home = tempfile::tempdir().unwrap();
    for arguments in [&["schema"][..], &["man"], &["completions", "bash"], &["help", "test"]] {
        let mut child = Command::new(netaware_path())
            .args(arguments)
            .current_dir(home.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn every_shell_has_completions_and_every_command_a_page() {
    let home = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, script, _) = run(&home, &["completions", shell]);
        assert_eq!(code, Some(0));
        assert!(script.contains("connect-timeout"), "{shell}");
    }
    assert_eq!(run(&home, &["man", "--dir", "pages"]).0, Some(0));
    for page in
        ["netaware.1", "netaware-serve.1", "netaware-test.1", "netaware-results-show.1", "netaware-host.1"]
    {
        assert!(home.path().join("pages").join(page).exists(), "{page}");
    }
}

#[test]
fn the_schema_that_is_printed_describes_a_saved_record() {
    let home = tempfile::tempdir().unwrap();
    let (_, schema, _) = run(&home, &["schema"]);
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    assert!(schema.is_valid(&serde_json::to_value(saved_record()).unwrap()));
}
