//! `netaware collect`: controller and collector of a fleet of probes.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use netaware_collector::{Answer, Client, Collector, Config, Files, Judge, Start, folder_of, plan};
use netaware_confine::Confinement;
use netaware_store::fleet::without_password;

use crate::confinement;
use crate::exit::Exit;
use crate::flags::key;
use crate::flags::logging::Logging;
use crate::signals;
use crate::sink;

const LONG: &str = "\
Tells a fleet of probes what to watch and measure, takes what they find, and joins what several of them saw of the same \
packets to one-way delay, loss and jitter. The fleet is described in one file, collect.toml; probes dial in ('netaware \
probe'). The same port serves a page, an HTTP API and /metrics.";

const AFTER: &str = "\
Examples:
  netaware collect check                 is collect.toml all right?
  netaware collect run                   run it until a signal ends it
  netaware collect run --store clickhouse://127.0.0.1/netaware
  netaware collect plan --token-file netaware-collect/admin-token
                                         what would change, probe by probe
  netaware collect apply --token-file netaware-collect/admin-token
                                         change it, without a restart
  netaware collect apply --at https://collect.example --ca ca.pem --token-file token

Changes need the admin token: that of access.admin_token_file, or else admin-token in the collector's state folder. Without a \
token in collect.toml the page, the API and /metrics answer this host only.

Exit codes:
  0  done, or ended by a signal
  2  the file is wrong, or the collector could not start or be reached";

/// Collect what a fleet of probes finds, and tell them what to do
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = AFTER)]
pub(crate) struct Collect {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Check(Check),
    Plan(Plan),
    Apply(Apply),
    Run(Run),
}

/// Say whether the file can be run, and what is wrong with it
#[derive(Debug, Args)]
struct Check {
    #[command(flatten)]
    file: File,
}

/// Print what the file would change in the collector that runs
#[derive(Debug, Args)]
struct Plan {
    #[command(flatten)]
    file: File,
    #[command(flatten)]
    place: Place,
}

/// Make the collector that runs take the file
#[derive(Debug, Args)]
struct Apply {
    #[command(flatten)]
    file: File,
    #[command(flatten)]
    place: Place,
}

/// Run the collector
#[derive(Debug, Args)]
struct Run {
    #[command(flatten)]
    file: File,
    /// Keep what comes here instead of where the file says: a file of SQLite, or
    /// clickhouse://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE
    #[arg(long, value_name = "PLACE")]
    store: Option<String>,
    /// Join only this part of the digests, as in 1/2: the first of two collectors that share the
    /// join
    #[arg(long, value_name = "N/M")]
    shard: Option<String>,
    /// Take IPFIX of other exporters here, as in udp://:4739, tcp:// or tls:// (may be given
    /// several times)
    #[arg(long, value_name = "PLACE")]
    ipfix: Vec<String>,
    #[command(flatten)]
    logging: Logging,
}

#[derive(Debug, Args)]
struct File {
    /// The fleet's file
    #[arg(short, long, value_name = "FILE", default_value = "collect.toml")]
    config: PathBuf,
}

#[derive(Debug, Args)]
struct Place {
    /// Where the collector answers: http://HOST:PORT or https://HOST:PORT
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:14234")]
    at: String,
    /// File with the admin token: that of access.admin_token_file, or else admin-token in the
    /// collector's state folder
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// PEM file of the authority that signed the collector's certificate, or of the certificate
    /// itself; for https://
    #[arg(long, value_name = "FILE", conflicts_with = "fingerprint")]
    ca: Option<PathBuf>,
    /// SHA-256 of the collector's certificate, 64 hexadecimal digits; for https://
    #[arg(long, value_name = "HEX")]
    fingerprint: Option<String>,
}

impl Collect {
    /// Does it.
    ///
    /// # Errors
    /// One sentence (or one for each thing that is wrong with the file).
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        match &self.action {
            Action::Check(check) => check.run(),
            Action::Plan(plan) => plan.run(),
            Action::Apply(apply) => apply.run(),
            Action::Run(run) => run.run(),
        }
    }
}

fn load(path: &Path) -> anyhow::Result<Config> {
    let config = Config::load(path).with_context(|| path.display().to_string())?;
    if config.store.as_deref().is_some_and(|place| without_password(place) != place) {
        // The file holds the password of the store.
        key::warn_if_exposed(path);
    }
    Ok(config)
}

impl Check {
    fn run(&self) -> anyhow::Result<Exit> {
        let config = load(&self.file.config)?;
        let (probes, tasks) = (config.probes.len(), config.tasks.len() + config.meshes.len());
        say(&format!("{}: {probes} probes, {tasks} tasks and meshes\n", self.file.config.display()))?;
        Ok(Exit::Done)
    }
}

impl Place {
    fn ask(&self, method: &str, path: &str, body: &str) -> anyhow::Result<Answer> {
        let token = match &self.token_file {
            None => None,
            Some(path) => {
                key::warn_if_exposed(path);
                let text = std::fs::read_to_string(path);
                let text = text.with_context(|| format!("cannot read the token in {}", path.display()))?;
                Some(text.trim_end_matches(['\r', '\n']).to_owned())
            }
        };
        let judge = match (&self.ca, &self.fingerprint) {
            (Some(path), _) => Some(Judge::Authority(path)),
            (None, Some(text)) => Some(Judge::Fingerprint(text)),
            (None, None) => None,
        };
        let answer = Client::new(&self.at, token, judge)?.ask(method, path, body)?;
        if answer.status == 200 {
            return Ok(answer);
        }
        let said: Option<serde_json::Value> = serde_json::from_str(&answer.body).ok();
        let why = said.and_then(|said| Some(said.get("error")?.as_str()?.to_owned()));
        bail!("the collector says no ({}): {}", answer.status, why.unwrap_or(answer.body))
    }
}

/// The file as it is sent: as it was written. Its paths are the collector's, and begin where the
/// collector's own file is.
fn text(file: &File) -> anyhow::Result<String> {
    let path = file.config.display();
    let text = std::fs::read_to_string(&file.config).with_context(|| format!("cannot read {path}"))?;
    Config::read(&text).with_context(|| path.to_string())?;
    Ok(text)
}

impl Plan {
    fn run(&self) -> anyhow::Result<Exit> {
        let answer = self.place.ask("POST", "/api/v1/plan", &text(&self.file)?)?;
        let plan: plan::Plan = serde_json::from_str(&answer.body).context("the collector's plan")?;
        say(&plan.to_string())?;
        Ok(Exit::Done)
    }
}

impl Apply {
    fn run(&self) -> anyhow::Result<Exit> {
        let answer = self.place.ask("PUT", "/api/v1/config", &text(&self.file)?)?;
        let applied: serde_json::Value =
            serde_json::from_str(&answer.body).context("the collector's answer")?;
        let plan: plan::Plan =
            serde_json::from_value(applied["plan"].clone()).context("the collector's plan")?;
        say(&format!("{plan}configuration {} runs\n", applied["number"]))?;
        Ok(Exit::Done)
    }
}

impl Run {
    fn run(&self) -> anyhow::Result<Exit> {
        self.logging.start()?;
        let (mut config, start) = (load(&self.file.config)?, self.start()?);
        config.lay_over(&start);
        // Starting starts threads, which are to be confined as well.
        confinement::log(&confinement_of(&config, &folder_of(&self.file.config)).enter());
        let collector = Collector::start_as(config, start)?;
        let stopper = collector.stopper();
        let end = move |by| {
            tracing::info!("{by}: ending; what waits to be joined is settled");
            stopper.stop();
        };
        signals::listen_and(end, |_| ())?;
        if !self.logging.quiet {
            let mut lines = Vec::new();
            for address in collector.addresses() {
                // An address that stands for all of this host's is none to go to.
                let host = if address.ip().is_unspecified() {
                    format!("localhost:{}", address.port())
                } else {
                    address.to_string()
                };
                lines.push(format!("collecting on {address}; page at http://{host}/\n"));
            }
            for (over, address) in collector.ipfix_addresses() {
                lines.push(format!("taking IPFIX at {over}://{address}\n"));
            }
            sink::announce(&lines.concat())?;
        }
        collector.run()?;
        Ok(Exit::Done)
    }
}

impl Run {
    /// A file that is named here is one of this folder, not of the configuration's.
    fn start(&self) -> anyhow::Result<Start> {
        let store = match &self.store {
            Some(place) if !place.contains("://") => {
                let path = std::path::absolute(place).context("--store")?;
                Some(path.display().to_string())
            }
            other => other.clone(),
        };
        let folder = Some(folder_of(&self.file.config));
        Ok(Start { folder, store, shard: self.shard.clone(), ipfix: self.ipfix.clone() })
    }
}

/// Makes the folders that it will write to, since a folder that is not there cannot be allowed. If
/// one cannot be made, the collector says so when it starts.
fn confinement_of(config: &Config, folder: &Path) -> Confinement {
    let Files { reads, mut writes, database } = Files::of(config, folder);
    let beside = database.as_deref().map(confinement::folder_of);
    for made in config.state.iter().chain(&beside) {
        let _ = netaware_private::make_folder(made);
    }
    writes.extend(beside);
    let scratch = netaware_confine::sqlite_scratch().into_iter().collect();
    Confinement { reads, writes, scratch, ..Confinement::default() }
}

fn say(text: &str) -> anyhow::Result<()> {
    let mut out = sink::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("stdout")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_starts_no_program_and_finds_its_folders_made() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::read("").unwrap();
        config.settle(folder.path());
        let confinement = confinement_of(&config, folder.path());
        assert!(confinement.programs.is_none() && confinement.sockets.is_empty());
        assert_eq!(confinement.writes.len(), 2, "state and store: {:?}", confinement.writes);
        assert!(confinement.writes.iter().all(|path| path.is_dir()));
    }
}
