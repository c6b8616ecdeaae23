use clap::CommandFactory;

use super::*;
use crate::cli::Cli;

/// The merged line for `typed`, with these files (weakest first) and variables.
fn line(typed: &str, files: &[&str], variables: &[(&str, &str)]) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let mut sources = Sources::default();
    for (n, text) in files.iter().enumerate() {
        let path = folder.path().join(format!("{n}.toml"));
        std::fs::write(&path, text).unwrap();
        sources.files.push((Place::Own, path));
    }
    sources.environment = variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let typed: Vec<OsString> = typed.split_whitespace().map(OsString::from).collect();
    let command = Cli::command();
    let first = command.clone().try_get_matches_from(&typed).map_err(|e| e.to_string())?;
    let merged = merged(&command, &typed, &first, &sources, &mut Notes::default());
    let merged = merged.map_err(|e| format!("{e:#}"))?;
    command.clone().try_get_matches_from(&merged).map_err(|e| e.to_string())?;
    let words: Vec<_> = merged.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    Ok(words.join(" ").replace(&*folder.path().to_string_lossy(), ""))
}

fn error(typed: &str, file: &str) -> String {
    let text = line(typed, &[file], &[]).unwrap_err();
    text.rsplit_once("/0.toml").map_or(text.clone(), |(_, rest)| format!("FILE{rest}"))
}

#[test]
fn flag_over_environment_over_file_over_default() {
    type Row<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, &'a str)], &'a str);
    let file = "port = 1\n[tcp]\nstreams = 8\n";
    let env = [("NETAWARE_PORT", "2")];
    let rows: &[Row<'_>] = &[
        ("netaware tcp h", &[], &[], "netaware tcp h"),
        ("netaware tcp h", &[file], &[], "netaware tcp --port=1 --streams=8 h"),
        ("netaware udp h", &[file], &[], "netaware udp --port=1 h"),
        ("netaware tcp h", &[file], &env, "netaware tcp --port=2 --streams=8 h"),
        ("netaware tcp h -p 3", &[file], &env, "netaware tcp --streams=8 h -p 3"),
        ("netaware tcp h -P4", &[file], &[], "netaware tcp --port=1 h -P4"),
        ("netaware tcp h", &[file, "port = 9"], &[], "netaware tcp --port=9 --streams=8 h"),
    ];
    for (n, (typed, files, variables, want)) in rows.iter().enumerate() {
        assert_eq!(line(typed, files, variables).as_deref(), Ok(*want), "row {n}");
    }
}

/// `netaware hops 192.0.2.1:99` was refused for a `--port` that nobody had typed.
#[test]
fn a_port_of_a_setting_is_not_held_against_that_of_the_host() {
    let file = "port = 14300\n[tcp]\nstreams = 8\n";
    let rows = [
        ("netaware hops 192.0.2.1:99", "netaware hops 192.0.2.1:99"),
        ("netaware reach [::1]:99", "netaware reach [::1]:99"),
        ("netaware owd h:99", "netaware owd h:99"),
        ("netaware send file h:99", "netaware send file h:99"),
        ("netaware tcp h:99", "netaware tcp --streams=8 h:99"),
        // Two typed ports are left for the command, which refuses them.
        ("netaware hops h:99 -p 98", "netaware hops h:99 -p 98"),
        ("netaware hops h", "netaware hops --port=14300 h"),
        ("netaware hops ::1", "netaware hops --port=14300 ::1"),
    ];
    for (typed, want) in rows {
        assert_eq!(line(typed, &[file], &[]).as_deref(), Ok(want), "{typed}");
        assert_eq!(line(typed, &[file], &[("NETAWARE_PORT", "14300")]).as_deref(), Ok(want), "{typed}");
    }
    // A value that is not used is judged all the same.
    assert!(line("netaware hops h:99", &["port = 'x'"], &[]).is_err());
}

#[test]
fn a_commands_table_is_stronger_than_the_general_key() {
    assert_eq!(
        line("netaware tcp h", &["port = 1\n[tcp]\nport = 2"], &[]).as_deref(),
        Ok("netaware tcp --port=2 h")
    );
}

#[test]
fn a_stronger_layer_silences_the_whole_group() {
    let file = "[udp]\nrate = '5M'\n";
    assert_eq!(
        line("netaware udp h --spacing 1ms", &[file], &[]).as_deref(),
        Ok("netaware udp h --spacing 1ms")
    );
    assert_eq!(
        line("netaware udp h", &[file], &[("NETAWARE_SPACING", "1ms")]).as_deref(),
        Ok("netaware udp --spacing=1ms h")
    );
    assert_eq!(line("netaware udp h -6", &["ipv4 = true"], &[]).as_deref(), Ok("netaware udp h -6"));
    assert_eq!(line("netaware udp h --save", &["save = false"], &[]).as_deref(), Ok("netaware udp h --save"));
}

#[test]
fn what_is_scanned_is_not_taken_from_a_file() {
    let file = "[udp]\nrate = '5M'\nlength = 64\n";
    assert_eq!(
        line("netaware udp h --scan spacing=1us,2us --scan length=64,128", &[file], &[]).as_deref(),
        Ok("netaware udp h --scan spacing=1us,2us --scan length=64,128")
    );
}

#[test]
fn switches_counters_and_lists_become_words() {
    let rows = [
        ("netaware tcp", "reverse = true", "netaware tcp --reverse"),
        ("netaware tcp", "reverse = false", "netaware tcp"),
        ("netaware tcp", "save = false", "netaware tcp --no-save"),
        ("netaware tcp", "connect_timeout = '1s'", "netaware tcp --connect-timeout=1s"),
        ("netaware tcp", "expect = ['tcp>1M', 'rpm>9']", "netaware tcp --expect=tcp>1M --expect=rpm>9"),
        ("netaware serve", "[serve]\nverbose = 2", "netaware serve --verbose --verbose"),
        ("netaware results list", "[results]\nlimit = 5", "netaware results list --limit=5"),
    ];
    for (typed, file, want) in rows {
        assert_eq!(line(typed, &[file], &[]).as_deref(), Ok(want), "{file}");
    }
}

#[test]
fn every_mistake_names_the_file_and_the_key() {
    let rows = [
        ("prot = 1", "FILE: unknown key prot: no command has a flag --prot"),
        ("[tcp]\nspacing = '1ms'", "FILE: unknown key tcp.spacing: 'netaware tcp' has no flag --spacing"),
        ("[ftp]\nport = 1", "FILE: unknown table [ftp]: there is no command 'netaware ftp'"),
        (
            "port = 'x'",
            "FILE: port: invalid value 'x' for '--port <PORT>': it must be a whole number from 1 to 65535",
        ),
        (
            "port = 70000",
            "FILE: port: invalid value '70000' for '--port <PORT>': it must be a whole number from 1 to 65535",
        ),
        (
            "reverse = 'perhaps'",
            "FILE: reverse: unexpected value 'perhaps' for '--reverse' found; no more were expected",
        ),
        ("port = 1979-05-27", "FILE: port: expected a string, a number, true, false or a list of them"),
        ("a = 1\nb = = 2", "FILE: line 2: "),
    ];
    for (file, want) in rows {
        let got = error("netaware tcp h", file);
        assert!(got.starts_with(want), "{file}: {got}");
    }
}

#[test]
fn a_mistake_in_another_commands_key_is_still_found_but_its_value_is_not_judged() {
    assert!(line("netaware tcp h", &["[udp]\nrate = 'fast'"], &[]).is_ok());
    assert!(line("netaware tcp h", &["[udp]\nrat = '5M'"], &[]).is_err());
}

#[test]
fn commands_without_settings_do_not_need_a_sound_file() {
    assert_eq!(line("netaware schema", &["nonsense"], &[]).as_deref(), Ok("netaware schema"));
}

#[test]
fn the_file_of_results_is_not_the_store_of_a_fleet() {
    let env = [("NETAWARE_STORE", "results.db"), ("NETAWARE_FLEET_STORE", "fleet.db")];
    for (typed, want) in [
        ("netaware collect run", "netaware collect run --store=fleet.db"),
        ("netaware results delays", "netaware results delays --store=fleet.db"),
        ("netaware results list", "netaware results list --store=results.db"),
    ] {
        assert_eq!(line(typed, &[], &env).as_deref(), Ok(want));
    }
}

/// It was said that '-5' is an unexpected argument, with the advice to write '-- -5'.
#[test]
fn a_negative_value_is_refused_as_a_value_of_its_option() {
    let said = |line: &str| {
        let typed: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let command = Cli::command();
        let error = command.clone().try_get_matches_from(&typed).unwrap_err();
        refusal(&command, &typed, error).to_string()
    };
    let rows = [
        ("udp h -b -5M", "'-5M' for '--rate <RATE>': '-5M' is negative, which this cannot be"),
        ("udp h --rate -.5M", "'-.5M' for '--rate <RATE>': '-.5M' is negative, which this cannot be"),
        ("udp h -l -1", "'-1' for '--length <SIZE>': '-1' is negative, which this cannot be"),
        ("tcp h -t -1s", "'-1s' for '--time <TIME>': '-1s' is negative, which this cannot be"),
        ("tcp h -Rt -1s", "'-1s' for '--time <TIME>': '-1s' is negative, which this cannot be"),
        ("tcp h -t -4s", "'-4s' for '--time <TIME>': '-4s' is negative, which this cannot be"),
        ("tcp h -n -3", "'-3' for '--bytes <SIZE>': '-3' is negative, which this cannot be"),
        ("tcp h -P -2", "'-2' for '--streams <N>': it must be a whole number from 1 to 512"),
        ("latency h -c -1", "'-1' for '--count <N>': it must be a whole number, 1 or more"),
        // There is no option whose value it could be, or it is a flag.
        ("udp h -5", "unexpected argument '-5'"),
        ("udp h -R -5M", "unexpected argument '-5'"),
        ("tcp h -t -4", "a value is required for '--time <TIME>'"),
    ];
    for (line, want) in rows {
        let found = said(&format!("netaware {line}"));
        assert!(found.contains(want), "{line}: {found}");
    }
    // What follows "--" is for another program.
    let run = ["netaware", "run", "--", "sleep", "-1", "-b", "-5"].map(OsString::from);
    assert_eq!(with_negatives_joined(&run), run);
}

/// Root's `serve` took the key of whoever had left a file in the folder that it was started in.
#[cfg(unix)]
#[test]
fn a_neighbours_file_in_the_present_folder_gives_root_no_key() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("netaware.toml");
    std::fs::write(&path, "[serve]\nkey-file = '/tmp/his.key'\nverbose = true\n").unwrap();
    let sources = Sources { files: vec![(Place::Present, path.clone())], ..Sources::default() };
    let typed = ["netaware", "serve"].map(OsString::from);
    let command = Cli::command();
    let first = command.clone().try_get_matches_from(&typed).unwrap();
    let read = |file: u32, above: u32| {
        for (path, mode) in [(path.as_path(), file), (folder.path(), above)] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let mut notes = Notes::default();
        let line = merged(&command, &typed, &first, &sources, &mut notes).unwrap();
        (line, notes)
    };
    let ignored = |why: &str| Notes {
        ignored: vec![format!("{} is ignored: {why}", path.display())],
        ..Notes::default()
    };
    let rows = [
        (0o644, 0o1777, "its folder can be written by every user"),
        (0o644, 0o775, "its folder can be written by its group"),
        (0o666, 0o755, "it can be written by every user"),
        (0o660, 0o700, "it can be written by its group"),
    ];
    for (file, above, why) in rows {
        assert_eq!(read(file, above), (typed.to_vec(), ignored(why)), "{file:o} in {above:o}");
    }
    // The user's own file counts, and is named where that is asked for.
    let (line, notes) = read(0o644, 0o755);
    assert_eq!(line.len(), 4, "{line:?}");
    assert_eq!(notes, Notes { read: vec![path.clone()], ..Notes::default() });
    let verbose = |line: &[OsString]| is_verbose(&command.clone().try_get_matches_from(line).unwrap());
    assert!(verbose(&line) && !verbose(&typed));
}

#[test]
fn every_kind_of_verbose_is_known() {
    let verbose = |line: &str| is_verbose(&Cli::command().try_get_matches_from(line.split(' ')).unwrap());
    assert!(verbose("netaware serve -v") && verbose("netaware serve -vv") && !verbose("netaware serve"));
    assert!(verbose("netaware tcp h -v") && !verbose("netaware tcp h") && !verbose("netaware schema"));
}
