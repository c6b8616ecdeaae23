//! `netaware lab scenarios`: the paths that come with netaware.

use std::io::Write;

use clap::Args;
use netaware_lab::scenarios;

use crate::exit::Exit;
use crate::sink;

#[derive(Debug, Args)]
pub(super) struct Scenarios {
    /// Print this scenario (TOML) instead of the list
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

impl Scenarios {
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let mut out = sink::stdout();
        if let Some(name) = &self.name {
            write!(out, "{}", scenarios::load(name)?.text)?;
            return Ok(Exit::Done);
        }
        let widest = scenarios::bundled().iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, _) in scenarios::bundled() {
            let about = scenarios::load(name)?.scenario.about;
            writeln!(out, "{name:<widest$}  {about}")?;
        }
        Ok(Exit::Done)
    }
}
