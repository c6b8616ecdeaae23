//! A measurement as a process: `netaware COMMAND TARGET --OPTION VALUE …`, its record read from its
//! output.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Command, Stdio};

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_record::{Document as _, Record};
use netaware_units::Span;

/// This program. Not the name it was started by: that may lie where somebody else can write, or in
/// a folder that only who started it can enter.
const PROGRAM: &str = "/proc/self/exe";
/// Longest run.
const PATIENCE: Span = Span::from_secs(900);
/// Longest record that is read.
const OUTPUT: u64 = 3 * 1024 * 1024;

/// What is read of a complaint.
const COMPLAINT: u64 = 4096;

/// Options that an instruction may set: what is measured and how. None that name files, repeat,
/// print or keep.
const ALLOWED: [&str; 43] = [
    "arrivals",
    "bidir",
    "blocks",
    "burst",
    "bytes",
    "congestion",
    "connect-timeout",
    "count",
    "depth",
    "dscp",
    "flow-label",
    "gap",
    "interval",
    "ipv4",
    "ipv6",
    "length",
    "link-rate",
    "max-hops",
    "max-load",
    "method",
    "mss",
    "no-tcp",
    "no-trains",
    "nodelay",
    "omit",
    "packet",
    "packets",
    "per-hop",
    "port",
    "rate",
    "request",
    "response",
    "reverse",
    "seed",
    "sizes",
    "spacing",
    "streams",
    "tcp-port",
    "time",
    "timeout",
    "transport",
    "ttl",
    "window",
];

/// Why an instruction cannot ask for this; `None`: it can.
pub fn refusal(command: &str, target: &str, options: &BTreeMap<String, String>) -> Option<String> {
    if !netaware_wire::lmap::MEASUREMENTS.contains(&command) {
        return Some(format!("there is no measurement '{command}'"));
    }
    if target.starts_with('-') {
        return Some(format!("'{target}' is no host"));
    }
    let unknown = options.keys().find(|name| ALLOWED.binary_search(&name.as_str()).is_err())?;
    Some(format!("'{unknown}' is no option that an instruction may set; those are: {}", ALLOWED.join(", ")))
}

fn arguments(command: &str, target: &str, options: &BTreeMap<String, String>) -> Vec<String> {
    let mut words = vec![command.to_owned(), target.to_owned()];
    for (name, value) in options {
        // "--name=value", so that a value never becomes a flag.
        words.push(if value.is_empty() { format!("--{name}") } else { format!("--{name}={value}") });
    }
    words.extend(["--format=json".to_owned(), "--no-save".to_owned(), "--quiet".to_owned()]);
    words
}

/// The process. The key that the probe shares with its collector is not for whoever answers it.
fn measurement(command: &str, target: &str, options: &BTreeMap<String, String>) -> Command {
    let mut child = Command::new(PROGRAM);
    netaware_private::without_secrets(&mut child);
    child
        .args(arguments(command, target, options))
        // Settings are those of whoever started the probe: this one may not even be allowed to read
        // them.
        .env_remove("HOME")
        .env_remove("XDG_CONFIG_HOME")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    child
}

/// Runs it.
///
/// # Errors
/// It could not be started, was stopped, or yielded no record.
pub(super) fn run(
    command: &str,
    target: &str,
    options: &BTreeMap<String, String>,
    stop: &StopFlag,
) -> Result<Box<Record>, String> {
    if let Some(why) = refusal(command, target, options) {
        return Err(why);
    }
    let mut child = measurement(command, target, options)
        .spawn()
        .map_err(|error| format!("cannot start 'netaware {command}': {error}"))?;
    let reader = child.stdout.take().map(|output| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            // What is longer is no record of ours.
            let _ = output.take(OUTPUT + 1).read_to_end(&mut text);
            text
        })
    });
    let complaints = child.stderr.take().map(|output| {
        std::thread::spawn(move || {
            let (mut text, mut output) = (Vec::new(), output);
            let _ = output.by_ref().take(COMPLAINT).read_to_end(&mut text);
            // What nobody reads would hold it up.
            drop(std::io::copy(&mut output, &mut std::io::sink()));
            text
        })
    });
    let ended = wait(&mut child, stop);
    let text = reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
    let complained = complaints.and_then(|reader| reader.join().ok()).unwrap_or_default();
    ended?;
    if text.len() as u64 > OUTPUT {
        return Err(format!("'netaware {command}' yielded a record of more than 3 MiB"));
    }
    let record = Record::from_json(&text);
    record
        .map(Box::new)
        .map_err(|_| format!("'netaware {command} {target}' could not measure{}", reason(&complained)))
}

/// The first line of what a program complained of, without what could move a cursor.
fn reason(complained: &[u8]) -> String {
    let text = String::from_utf8_lossy(complained);
    let first =
        text.lines().map(|line| line.trim().trim_start_matches("error: ")).find(|line| !line.is_empty());
    first.map_or_else(String::new, |line| format!(": {}", netaware_record::excerpt(line, 200)))
}

fn wait(child: &mut Child, stop: &StopFlag) -> Result<(), String> {
    let deadline = clock::now() + PATIENCE;
    let failed = |error: std::io::Error| format!("cannot wait for a measurement: {error}");
    loop {
        if child.try_wait().map_err(failed)?.is_some() {
            return Ok(());
        }
        let late = clock::now() > deadline;
        if late || stop.is_raised() {
            // It may be gone by now.
            drop(child.kill());
            child.wait().map_err(failed)?;
            return Err(
                if late { "a measurement did not end within 15 minutes" } else { "stopped" }.to_owned()
            );
        }
        clock::sleep(Span::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_list_is_sorted_so_that_it_can_be_searched() {
        assert!(ALLOWED.is_sorted());
    }

    #[test]
    fn a_complaint_is_told_by_its_first_line() {
        let rows = [
            (
                "error: unexpected argument '--interval' found\n\n  tip: x\n",
                ": unexpected argument '--interval' found",
            ),
            ("\n  a\u{1b}[2Jb\n", ": a\u{fffd}[2Jb"),
            ("", ""),
        ];
        for (complained, want) in rows {
            assert_eq!(reason(complained.as_bytes()), want);
        }
    }

    #[test]
    fn a_measurement_does_not_find_the_probes_key_in_its_environment() {
        let child = measurement("tcp", "lab-b", &options(&[("time", "5s")]));
        for name in netaware_private::SECRET_VARIABLES {
            let is_removed = |(variable, value): (&std::ffi::OsStr, Option<&std::ffi::OsStr>)| {
                variable == name && value.is_none()
            };
            assert!(child.get_envs().any(is_removed), "{name}");
        }
    }

    #[test]
    fn an_instruction_cannot_name_files_or_smuggle_flags() {
        assert_eq!(refusal("tcp", "lab-b", &options(&[("time", "5s"), ("reverse", "")])), None);
        for name in ["output", "store", "key-file", "log", "scan", "every", "format", "-o", "time=1 --output"]
        {
            let why = refusal("tcp", "lab-b", &options(&[(name, "x")]));
            assert!(why.is_some_and(|why| why.contains("no option")), "{name}");
        }
        assert!(refusal("tcp", "--output=x", &options(&[])).is_some());
        assert!(refusal("serve", "x", &options(&[])).is_some());
        let words = arguments("udp", "b", &options(&[("rate", "--output=x"), ("reverse", "")]));
        assert_eq!(words[..4], ["udp", "b", "--rate=--output=x", "--reverse"]);
    }
}
