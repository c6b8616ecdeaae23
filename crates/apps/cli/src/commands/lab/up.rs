//! `netaware lab up`: starts the process that holds the lab, and says what there is now.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use clap::Args;
use netaware_lab::scenarios::{self, Loaded};
use netaware_lab::{Addresses, LabState, Side, check_permission, namespace_name};
use netaware_record::IpVersion;

use super::{PathFlags, Prefix};
use crate::exit::Exit;
use crate::sink;

const LONG: &str = "\
Brings a lab up and returns. The path between its hosts runs in the background until 'lab down'. Of how well it does, \
'lab list' tells; SIGUSR1 to its process has the figures written at once.";

#[derive(Debug, Args)]
#[command(long_about = LONG)]
pub(super) struct Up {
    /// A file, or a name from 'netaware lab scenarios'
    #[arg(value_name = "SCENARIO")]
    scenario: String,
    #[command(flatten)]
    lab: Prefix,
    #[command(flatten)]
    path: PathFlags,
}

/// What the holder says on its stdout when it is ready; anything else is why it is not.
pub(super) const READY: &str = "ready";

impl Up {
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let loaded = scenarios::load(&self.scenario)?;
        check_permission()?;
        self.start(&loaded)?;
        let state = LabState::read(&self.lab.prefix).context("the lab is gone again")?;
        write!(sink::stdout(), "{}", described(&state))?;
        Ok(Exit::Done)
    }

    fn start(&self, loaded: &Loaded) -> anyhow::Result<()> {
        let this = std::env::current_exe().context("cannot find this program")?;
        let mut holder = Command::new(this);
        netaware_private::without_secrets(&mut holder);
        holder.args(["lab", "hold", "--prefix", &self.lab.prefix, "--name", &loaded.name]);
        holder.args(["--seed", &self.path.seed.to_string(), "--truth-detail", self.path.truth_detail.word()]);
        if let Some(truth) = &self.path.truth {
            // The holder leaves this folder.
            holder.arg("--truth").arg(std::path::absolute(truth)?);
        }
        holder.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = holder.spawn().context("cannot start the process that holds the lab")?;
        let mut stdin = child.stdin.take().context("no pipe")?;
        let stdout = child.stdout.take().context("no pipe")?;
        stdin.write_all(loaded.text.as_bytes()).context("cannot hand the scenario over")?;
        drop(stdin);
        let mut said = String::new();
        BufReader::new(stdout).read_line(&mut said)?;
        match said.trim_end() {
            READY => Ok(()),
            "" => bail!("the process that holds the lab ended without a word"),
            why => bail!("{why}"),
        }
    }
}

pub(super) fn described(state: &LabState) -> String {
    let LabState { prefix, scenario, about, seed, hops, mtu, .. } = state;
    let addresses = Addresses::new(*hops);
    let mut text = format!("lab '{prefix}' is up: {scenario}, seed {seed}\n  {about}\n\n");
    for (side, name, mtu) in [(Side::A, "a", mtu[0]), (Side::B, "b", mtu[1])] {
        let [v4, v6] = both(|version| addresses.host(side, version));
        let namespace = namespace_name(prefix, side);
        let _ = writeln!(text, "  host {name}   {v4:<14} {v6:<16} namespace {namespace}, MTU {mtu}");
    }
    for hop in 0..addresses.routers() {
        let [v4, v6] = both(|version| addresses.router(hop, version));
        let _ = writeln!(text, "  router r{:<3}{v4:<14} {v6}", hop + 1);
    }
    let option = if prefix == "lab" { String::new() } else { format!(" --prefix {prefix}") };
    let _ = write!(
        text,
        "\ntry:\n  netaware lab exec{option} a ping -c 3 b\n  netaware lab exec{option} a traceroute -n b\n  \
         netaware lab down{option}\n"
    );
    text
}

fn both(address: impl Fn(IpVersion) -> std::net::IpAddr) -> [String; 2] {
    [IpVersion::V4, IpVersion::V6].map(|version| address(version).to_string())
}
