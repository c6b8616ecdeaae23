//! What active tasks found last, of each probe and task: for the page and /metrics. All that they
//! ever found is in the store.

use std::collections::BTreeMap;
use std::sync::Mutex;

use netaware_record::passive::{ProbeReport, Row};
use netaware_record::{Direction, Headline, HeadlineValue, IpVersion, Outcome, VersionResult};
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
    /// How it ended.
    pub outcome: Outcome,
    /// IP versions over which something failed or broke off; what was not measured to its end is
    /// not among the figures.
    pub failed: Vec<IpVersion>,
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
            let failed = failed_versions(&record.versions);
            let text = text_of(&headlines, record.outcome, &failed);
            let view = LatestView {
                probe: probe.to_owned(),
                task: row.task.clone(),
                peer: peer_of(config, &row.task),
                method: record.command.clone(),
                at: row.period.until,
                outcome: record.outcome,
                failed,
                figures: headlines.iter().map(FigureView::from).collect(),
                text,
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

impl LatestView {
    /// Whether something of it failed or broke off.
    pub(crate) fn has_failed(&self) -> bool {
        self.outcome == Outcome::Failed || !self.failed.is_empty()
    }
}

/// The IP versions over which something failed or broke off.
///
/// One that could not be reached at all is not among them: a host need not have both, and where
/// nothing was reached the record has failed.
fn failed_versions(versions: &[VersionResult]) -> Vec<IpVersion> {
    versions.iter().filter(|it| it.broke_off()).map(|it| it.version).collect()
}

/// What was found, in a sentence.
fn text_of(headlines: &[Headline], outcome: Outcome, failed: &[IpVersion]) -> String {
    let said: Vec<String> = headlines.iter().map(ToString::to_string).collect();
    let found = if said.is_empty() { "nothing was found".to_owned() } else { said.join(", ") };
    match outcome {
        Outcome::Failed => format!("failed: {found}"),
        Outcome::Complete | Outcome::Interrupted if failed.is_empty() => found,
        Outcome::Complete | Outcome::Interrupted => {
            let over: Vec<&str> = failed.iter().map(|version| version.name()).collect();
            format!("{found}; failed or broke off over {}", over.join(" and "))
        }
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
    use netaware_record::{FailedPhase, RateBound, Reach, Unreachable};

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
        assert_eq!(text_of(&[found], Outcome::Complete, &[]), "tcp up over IPv4: 93.1 Mbit/s");
        assert_eq!(text_of(&[found], Outcome::Failed, &[]), "failed: tcp up over IPv4: 93.1 Mbit/s");
        assert_eq!(text_of(&[], Outcome::Failed, &[IpVersion::V4]), "failed: nothing was found");
        assert_eq!(
            text_of(&[found], Outcome::Complete, &[IpVersion::V6]),
            "tcp up over IPv4: 93.1 Mbit/s; failed or broke off over IPv6"
        );
    }

    #[test]
    fn a_version_that_broke_off_is_marked_and_one_that_was_never_there_is_not() {
        let whole = VersionResult::new(IpVersion::V4);
        let phase = FailedPhase { stage: "send trains".into(), reason: "no answer".into() };
        let broken = VersionResult { failed_phases: vec![phase], ..VersionResult::new(IpVersion::V6) };
        let why = Unreachable { stage: "connect".into(), reason: "no answer".into(), advice: String::new() };
        let absent = VersionResult { unreachable: Some(why), ..VersionResult::new(IpVersion::V6) };
        let lost = VersionResult { reach: Some(Reach::default()), ..absent.clone() };
        assert_eq!(failed_versions(&[whole.clone(), lost]), [IpVersion::V6], "before its first figure");
        assert_eq!(failed_versions(&[whole.clone(), broken]), [IpVersion::V6]);
        assert!(failed_versions(&[whole, absent]).is_empty());
    }

    #[test]
    fn the_other_end_is_the_one_that_the_file_names() {
        let config = Config::read(FLEET).unwrap();
        let peers = ["once", "bulk.b", "bulk.c", "gone"].map(|task| peer_of(&config, task));
        assert_eq!(peers, [Some("b".to_owned()), Some("b".to_owned()), None, None]);
    }
}
