//! `netaware lab`: a path on this host that does what a scenario says.

mod down;
mod exec;
mod hold;
mod list;
mod run;
mod scenarios;
mod up;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use netaware_lab::{Side, TruthDetail, TruthFile};

use crate::exit::Exit;
use crate::flags::quantity;

const LONG: &str = "\
Makes two hosts on this machine (network namespaces) and a path between them that does what a scenario says: rate, delay, \
queues, loss, cross traffic, over IPv4 and IPv6. Nothing leads out of it. Needs root, and Linux.

The hosts know each other as 'a' and 'b' (a4, a6, b4, b6 for one IP version) and the routers as 'r1', 'r2', …";

const AFTER: &str = "\
Examples:
  netaware lab scenarios                    what there is by name
  netaware lab up bufferbloat
  netaware lab exec a ping -c 3 b
  netaware lab down
  netaware lab run mine.toml -- netaware test b ::: netaware serve

'lab run' ends with the exit code of its first program.";

/// Try things on a path of which the truth is known (root)
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = AFTER)]
pub(crate) struct Lab {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Bring a lab up; it stays until 'lab down'
    Up(up::Up),
    /// Run a program on host a or b of a lab
    Exec(exec::Exec),
    /// Bring a lab up, run a program in it, and take it down
    Run(run::Run),
    /// Remove a lab, also after a crash
    Down(down::Down),
    /// List labs and how well their emulators do
    List(list::List),
    /// List the scenarios that come with netaware, or show one
    Scenarios(scenarios::Scenarios),
    /// What 'lab up' leaves running
    #[command(hide = true)]
    Hold(hold::Hold),
}

impl Lab {
    /// Does it.
    ///
    /// # Errors
    /// One sentence for the person who typed it.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        match &self.action {
            Action::Up(up) => up.run(),
            Action::Exec(exec) => exec.run(),
            Action::Run(run) => run.run(),
            Action::Down(down) => down.run(),
            Action::List(list) => list.run(),
            Action::Scenarios(scenarios) => scenarios.run(),
            Action::Hold(hold) => hold.run(),
        }
    }
}

/// Which lab.
#[derive(Debug, Clone, Args)]
struct Prefix {
    /// Name of the lab: its hosts are the namespaces NAME-a and NAME-b
    #[arg(long, value_name = "NAME", default_value = "lab")]
    prefix: String,
}

/// How the path behaves and what is written about it.
#[derive(Debug, Clone, Args)]
struct PathFlags {
    /// Seed of everything random: loss, jitter, cross traffic
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = quantity::whole::<u64>(0..=u64::MAX))]
    seed: u64,
    /// Write what really happened to this file: one JSON object per line
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// How much of it: intervals of 100 ms, or packets, too
    #[arg(long, value_enum, value_name = "DETAIL", default_value_t, hide_possible_values = true)]
    truth_detail: Detail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Detail {
    #[default]
    Intervals,
    Packets,
}

impl Detail {
    fn word(self) -> &'static str {
        match self {
            Self::Intervals => "intervals",
            Self::Packets => "packets",
        }
    }
}

impl PathFlags {
    fn truth(&self) -> Option<TruthFile> {
        let detail = match self.truth_detail {
            Detail::Intervals => TruthDetail::Intervals,
            Detail::Packets => TruthDetail::Packets,
        };
        self.truth.clone().map(|path| TruthFile { path, detail })
    }
}

/// One of the two hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Host {
    /// The near one
    A,
    /// The far one
    B,
}

impl From<Host> for Side {
    fn from(host: Host) -> Self {
        match host {
            Host::A => Self::A,
            Host::B => Self::B,
        }
    }
}
