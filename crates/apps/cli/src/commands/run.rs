//! `netaware run`: becomes a program whose TCP connections try both IP versions.

mod shim;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::Context;
use clap::{Args, ValueEnum};

use self::shim::{Program, find_program};
use crate::exit::Exit;

const LONG: &str = "\
Runs a program so that its TCP connections try both IP versions of a host, as RFC 8305 has it: where the address that the program \
asks for does not answer within 250 ms, or fails, the addresses of the other version are tried beside it, and the program gets the \
connection that comes up first. The other end needs nothing. It works by a shared library that is loaded into the program \
before the others (LD_PRELOAD); docs/guide/existing-programs.md tells what it does, and what it leaves alone.";

const AFTER: &str = "\
Examples:
  netaware run -- curl -6 http://lab-b/
  netaware run --verbose -- python3 client.py
  netaware run --prefer 4 -- psql -h lab-b

The library is looked for in $NETAWARE_SHIM (a file), beside this program, and in ../lib and ../lib/netaware from there.

Exit codes:
  those of the program
  2  it could not be started, or the command line is wrong";

/// A version, as these flags name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Version {
    /// IPv4
    #[value(name = "4")]
    V4,
    /// IPv6
    #[value(name = "6")]
    V6,
}

impl Version {
    fn digit(self) -> &'static str {
        match self {
            Self::V4 => "4",
            Self::V6 => "6",
        }
    }
}

/// Run a program so that its TCP connections try both IP versions
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = AFTER)]
pub(crate) struct Run {
    /// Try this IP version first, instead of the one that the program asks for
    #[arg(long, value_enum, value_name = "4|6", hide_possible_values = true, conflicts_with = "only")]
    prefer: Option<Version>,
    /// Use this IP version alone; connections for which it has no address fail
    #[arg(long, value_enum, value_name = "4|6", hide_possible_values = true)]
    only: Option<Version>,
    /// Tell on stderr of each connection which addresses were tried, who won, and when
    #[arg(short, long)]
    verbose: bool,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

impl Run {
    /// Becomes the program.
    ///
    /// # Errors
    /// The library is not found, or the program cannot be started.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let library = shim::find()?;
        let (name, arguments) = self.program.split_first().context("there is no program")?;
        if let Some(why) = find_program(name).map(|path| shim::kind(&path)).and_then(Program::left_alone) {
            eprintln!("note: '{}' {why}; its connections are left as they are", name.to_string_lossy());
        }
        let mut preload = library.into_os_string();
        if let Some(others) = std::env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        // Only returns when it failed.
        let error = self.command(name, arguments, &preload).exec();
        Err(error).with_context(|| format!("cannot start '{}'", name.to_string_lossy()))
    }

    /// The program with the library before the others, and without our secrets, which are none of
    /// its business.
    fn command(&self, name: &OsStr, arguments: &[OsString], preload: &OsStr) -> Command {
        let mut command = Command::new(name);
        netaware_private::without_secrets(&mut command);
        command.args(arguments).env(PRELOAD, preload).env(ORDER, self.order());
        command
    }

    /// As the library reads it.
    fn order(&self) -> String {
        let mut words = vec!["race".to_owned()];
        words.extend(self.prefer.map(|version| format!("prefer={}", version.digit())));
        words.extend(self.only.map(|version| format!("only={}", version.digit())));
        words.extend(self.verbose.then(|| "verbose".to_owned()));
        words.join(",")
    }
}

const PRELOAD: &str = "LD_PRELOAD";
/// Read by the library.
const ORDER: &str = "NETAWARE_RUN";

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        run: Run,
    }

    fn run(words: &str) -> Result<Run, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace()));
        line.map(|line| line.run).map_err(|e| e.to_string())
    }

    #[test]
    fn flags_behind_the_program_are_the_programs() {
        let run = run("--prefer 4 curl -v --only 6").unwrap();
        assert_eq!(run.order(), "race,prefer=4");
        assert_eq!(run.program, ["curl", "-v", "--only", "6"]);
    }

    #[test]
    fn the_program_does_not_find_our_key_in_its_environment() {
        let run = run("--prefer 4 curl -v").unwrap();
        let command = run.command(OsStr::new("curl"), &run.program[1..], OsStr::new("shim.so"));
        let given: Vec<_> = command.get_envs().filter_map(|(name, value)| Some((name, value?))).collect();
        assert_eq!(
            given,
            [(OsStr::new(PRELOAD), OsStr::new("shim.so")), (OsStr::new(ORDER), OsStr::new("race,prefer=4"))]
        );
        for name in netaware_private::SECRET_VARIABLES {
            assert!(command.get_envs().any(|removed| removed == (OsStr::new(name), None)), "{name}");
        }
    }

    #[test]
    fn one_version_can_be_wanted_in_one_way() {
        assert_eq!(run("--only 6 -v -- x").unwrap().order(), "race,only=6,verbose");
        assert!(run("--only 6 --prefer 4 -- x").is_err());
        assert!(run("--only 5 -- x").is_err());
        assert!(run("").is_err());
    }
}
