//! What active tasks found last, of each probe and task: for the page and /metrics. All that they
//! ever found is in the store.

use std::collections::BTreeMap;
use std::sync::Mutex;

use netaware_record::passive::{ProbeReport, Row};
use netaware_record::{Direction, Headline, HeadlineValue, IpVersion, Outcome};
use netaware_units::Wall;
use netaware_wire::lmap::What;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::held;
use crate::instruct::run_name;

/// What one task of one probe found last, as the HTTP API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct LatestView {
    /// The probe that measured.
    pub probe: String,
    /// Its task.
    pub task: String,
    /// The probe at the other end, where the file names it.
    pub peer: Option<String>,
    /// What was measured: `tcp`, `udp`, `latency`, `capacity`, `available`, `hops` or `reach`.
    pub method: String,
    /// When it ended.
    pub at: Wall,
    /// Its main figures; none: it found nothing.
    pub figures: Vec<FigureView>,
    /// The same as a sentence.
    pub text: String,
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct FigureView {
    /// `tcp`, `udp.loss`, `rtt.p50`, ...
    pub name: String,
    /// Of which IP version.
    pub version: IpVersion,
    /// Which way.
    pub direction: Direction,
    /// `bit/s`, `s` or `1`.
    pub unit: String,
    /// In that unit.
    pub value: f64,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Latest(Mutex<BTreeMap<(String, String), LatestView>>);

impl Latest {
    /// Takes what a report has of active tasks.
    pub(crate) fn report(&self, report: &ProbeReport, probe: &str, config: &Config) {
        for row in &report.rows {
            let Row::Active(record) = &row.row else { continue };
            let headlines = record.headlines();
            let view = LatestView {
                probe: probe.to_owned(),
                task: row.task.clone(),
                peer: peer_of(config, &row.task),
                method: record.command.clone(),
                at: row.period.until,
                figures: headlines.iter().map(FigureView::from).collect(),
                text: text_of(&headlines, record.outcome),
            };
            held(&self.0).insert((probe.to_owned(), row.task.clone()), view);
        }
    }

    /// Forgets what is asked for no more.
    pub(crate) fn follow(&self, config: &Config) {
        held(&self.0).retain(|(probe, task), _| {
            config.probes.contains_key(probe)
                && (config.tasks.contains_key(task) || mesh_peer(config, task).is_some())
        });
    }

    pub(crate) fn views(&self) -> Vec<LatestView> {
        held(&self.0).values().cloned().collect()
    }
}

impl From<&Headline> for FigureView {
    fn from(headline: &Headline) -> Self {
        let (unit, value) = match headline.value {
            HeadlineValue::Rate(rate) => ("bit/s", rate),
            HeadlineValue::Time(span) => ("s", span.0 as f64 / 1e9),
            HeadlineValue::Share(share) => ("1", share),
        };
        let (name, unit) = (headline.name.to_owned(), unit.to_owned());
        Self { name, version: headline.version, direction: headline.direction, unit, value }
    }
}

/// What was found, in a sentence.
fn text_of(headlines: &[Headline], outcome: Outcome) -> String {
    let said: Vec<String> = headlines.iter().map(ToString::to_string).collect();
    let found = if said.is_empty() { "nothing was found".to_owned() } else { said.join(", ") };
    match outcome {
        Outcome::Failed => format!("failed: {found}"),
        Outcome::Complete | Outcome::Interrupted => found,
    }
}

fn peer_of(config: &Config, task: &str) -> Option<String> {
    let named = config.tasks.get(task).and_then(|rule| match &rule.what {
        What::Measure { peer, .. } => peer.clone(),
        _ => None,
    });
    named.or_else(|| mesh_peer(config, task))
}

/// The member that a task of a mesh measures towards.
fn mesh_peer(config: &Config, task: &str) -> Option<String> {
    config.meshes.iter().find_map(|(name, mesh)| {
        let mut members = config.members(&mesh.members).into_iter();
        members.find(|member| run_name(name, member) == task).map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use netaware_record::RateBound;

    use super::*;

    const FLEET: &str = r#"
[probes.a]
key_file = "k"
address = "192.0.2.1"
[probes.b]
key_file = "k"
address = "192.0.2.2"
[tasks.once]
on = ["a"]
kind = "measure"
command = "latency"
target = "192.0.2.2"
peer = "b"
every = "10s"
[meshes.bulk]
members = ["all"]
method = "tcp"
every = "60s"
"#;

    #[test]
    fn a_task_that_failed_is_said_to_have_failed() {
        let found = Headline {
            name: "tcp",
            version: IpVersion::V4,
            direction: Direction::Forward,
            value: HeadlineValue::Rate(93.1e6),
            bound: RateBound::None,
        };
        assert_eq!(text_of(&[found], Outcome::Complete), "tcp up over IPv4: 93.1 Mbit/s");
        assert_eq!(text_of(&[found], Outcome::Failed), "failed: tcp up over IPv4: 93.1 Mbit/s");
        assert_eq!(text_of(&[], Outcome::Failed), "failed: nothing was found");
    }

    #[test]
    fn the_other_end_is_the_one_that_the_file_names() {
        let config = Config::read(FLEET).unwrap();
        let peers = ["once", "bulk.b", "bulk.c", "gone"].map(|task| peer_of(&config, task));
        assert_eq!(peers, [Some("b".to_owned()), Some("b".to_owned()), None, None]);
    }
}
