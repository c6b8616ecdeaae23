//! `netaware lab list`: what is up, and how well it does.

use std::fmt::Write as _;
use std::io::Write as _;

use clap::Args;
use netaware_lab::{Addresses, LabState, Side};
use netaware_record::IpVersion;
use serde_json::json;

use crate::exit::Exit;
use crate::flags::output::TextOrJson;
use crate::sink;

#[derive(Debug, Args)]
pub(super) struct List {
    /// text or json
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, hide_possible_values = true)]
    format: TextOrJson,
}

impl List {
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let labs = LabState::all();
        let mut out = sink::stdout();
        if self.format == TextOrJson::Json {
            let all: Vec<_> = labs.iter().map(as_json).collect();
            writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
            return Ok(Exit::Done);
        }
        if labs.is_empty() {
            eprintln!("no labs");
        }
        for lab in &labs {
            write!(out, "{}", as_text(lab))?;
        }
        Ok(Exit::Done)
    }
}

fn standing(lab: &LabState) -> &'static str {
    if lab.is_running() { "running" } else { "left behind" }
}

fn as_text(lab: &LabState) -> String {
    let LabState { prefix, scenario, seed, holder, .. } = lab;
    let mut text = format!("{prefix}  {}  {scenario}, seed {seed}, process {}\n", standing(lab), holder.pid);
    if let Some(report) = lab.report() {
        let _ = writeln!(text, "  {report}");
    }
    text
}

fn as_json(lab: &LabState) -> serde_json::Value {
    let addresses = Addresses::new(lab.hops);
    let host = |side| [IpVersion::V4, IpVersion::V6].map(|version| addresses.host(side, version).to_string());
    json!({
        "prefix": lab.prefix, "standing": standing(lab), "scenario": lab.scenario, "about": lab.about,
        "seed": lab.seed, "pid": lab.holder.pid, "since": lab.since, "hops": lab.hops, "mtu": lab.mtu,
        "a": host(Side::A), "b": host(Side::B), "report": lab.report(),
    })
}
