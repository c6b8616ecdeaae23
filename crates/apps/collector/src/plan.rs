//! What a new file would change, probe by probe.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use netaware_wire::lmap::{Instruction, Task};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::instruct;

/// What happens to one task of one probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// It begins.
    Start {
        /// Name.
        task: String,
        /// What it does.
        detail: String,
    },
    /// It ends.
    Stop {
        /// Name.
        task: String,
    },
    /// It ends and begins anew with other words.
    Alter {
        /// Name.
        task: String,
        /// Word, before and after.
        words: Vec<(String, String, String)>,
    },
}

/// What happens to one probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ProbePlan {
    /// Which.
    pub probe: String,
    /// `new`, `gone`, `changed`.
    pub what: String,
    /// Of its tasks; those that stay the same are not here and go on undisturbed.
    pub changes: Vec<Change>,
}

/// All differences; empty if nothing would change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Plan {
    /// By name; probes that nothing changes for are not here.
    pub probes: Vec<ProbePlan>,
    /// Joins that begin, end or change.
    pub joins: Vec<String>,
    /// Other parts of the file that differ.
    pub others: Vec<String>,
}

/// Compares what runs with what would.
pub fn plan(now: &Config, then: &Config) -> Plan {
    let names: BTreeSet<&String> = now.probes.keys().chain(then.probes.keys()).collect();
    let probes = names.into_iter().filter_map(|name| of_probe(now, then, name)).collect();
    Plan { probes, joins: joins(now, then), others: others(now, then) }
}

fn of_probe(now: &Config, then: &Config, name: &str) -> Option<ProbePlan> {
    let tasks = |config: &Config| {
        let known = config.probes.contains_key(name);
        let instruction =
            if known { instruct::instruction(config, name, 0, "") } else { Instruction::default() };
        instruction.tasks
    };
    let (before, after) = (tasks(now), tasks(then));
    let what = match (now.probes.get(name), then.probes.get(name)) {
        (None, _) => "new",
        (_, None) => "gone",
        _ => "changed",
    };
    let changes = changes(&before, &after);
    let keeps = what == "changed" && changes.is_empty() && now.probes.get(name) == then.probes.get(name);
    (!keeps).then(|| ProbePlan { probe: name.to_owned(), what: what.to_owned(), changes })
}

fn changes(before: &BTreeMap<String, Task>, after: &BTreeMap<String, Task>) -> Vec<Change> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let change = |name: &String| match (before.get(name), after.get(name)) {
        (None, Some(new)) => Some(Change::Start { task: name.clone(), detail: detail(new) }),
        (Some(_), None) => Some(Change::Stop { task: name.clone() }),
        (Some(old), Some(new)) if old != new => {
            Some(Change::Alter { task: name.clone(), words: words(old, new) })
        }
        _ => None,
    };
    names.into_iter().filter_map(change).collect()
}

fn flat(task: &Task) -> BTreeMap<String, String> {
    let Ok(serde_json::Value::Object(value)) = serde_json::to_value(task) else { return BTreeMap::new() };
    value
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(word, value)| (word, value.to_string()))
        .collect()
}

fn detail(task: &Task) -> String {
    let mut words = flat(task);
    let kind = words.remove("kind").unwrap_or_default();
    let rest: Vec<_> = words.iter().map(|(word, value)| format!("{word}={value}")).collect();
    format!("{} {}", kind.trim_matches('"'), rest.join(" ")).trim_end().to_owned()
}

fn words(old: &Task, new: &Task) -> Vec<(String, String, String)> {
    let (old, new) = (flat(old), flat(new));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let said = |of: &BTreeMap<String, String>, name: &str| of.get(name).map_or("-".to_owned(), Clone::clone);
    let differ = names.into_iter().filter(|name| old.get(*name) != new.get(*name));
    differ.map(|name| (name.clone(), said(&old, name), said(&new, name))).collect()
}

fn joins(now: &Config, then: &Config) -> Vec<String> {
    let names: BTreeSet<&String> = now.joins.keys().chain(then.joins.keys()).collect();
    let said = |name: &String| match (now.joins.get(name), then.joins.get(name)) {
        (None, Some(_)) => Some(format!("+ {name}")),
        (Some(_), None) => Some(format!("- {name}")),
        (Some(old), Some(new)) => {
            let same = old == new && now.members(&old.points) == then.members(&new.points);
            (!same).then(|| format!("~ {name}"))
        }
        (None, None) => None,
    };
    names.into_iter().filter_map(said).collect()
}

fn others(now: &Config, then: &Config) -> Vec<String> {
    let rows = [
        ("listen", now.listen == then.listen),
        ("period", now.period() == then.period()),
        ("store", now.store == then.store),
        ("state", now.state == then.state),
        ("secret_file", now.secret_file == then.secret_file),
        ("ipfix", now.ipfix == then.ipfix),
        ("exporters", now.exporters == then.exporters),
        ("export", (&now.export, &now.export_ca) == (&then.export, &then.export_ca)),
        ("shard", now.shard == then.shard),
        ("retention", now.retention == then.retention),
        ("access", now.access == then.access),
        ("tls", now.tls == then.tls),
        ("suppression", now.suppression == then.suppression),
    ];
    rows.into_iter().filter(|(_, same)| !same).map(|(name, _)| name.to_owned()).collect()
}

impl Plan {
    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        self.probes.is_empty() && self.joins.is_empty() && self.others.is_empty()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return writeln!(f, "nothing changes");
        }
        for probe in &self.probes {
            writeln!(f, "probe {} ({})", probe.probe, probe.what)?;
            for change in &probe.changes {
                match change {
                    Change::Start { task, detail } => writeln!(f, "  + {task}: {detail}")?,
                    Change::Stop { task } => writeln!(f, "  - {task}")?,
                    Change::Alter { task, words } => {
                        writeln!(f, "  ~ {task}")?;
                        for (word, old, new) in words {
                            writeln!(f, "      {word}: {old} -> {new}")?;
                        }
                    }
                }
            }
        }
        for join in &self.joins {
            writeln!(f, "join {join}")?;
        }
        for other in &self.others {
            writeln!(f, "setting ~ {other}")?;
        }
        let (mut start, mut stop, mut alter) = (0, 0, 0);
        for change in self.probes.iter().flat_map(|probe| &probe.changes) {
            match change {
                Change::Start { .. } => start += 1,
                Change::Stop { .. } => stop += 1,
                Change::Alter { .. } => alter += 1,
            }
        }
        writeln!(f, "{} probes: {start} tasks start, {stop} stop, {alter} change", self.probes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = r#"
[probes.bern]
key_file = "k"
address = "192.0.2.2"
[probes.berlin]
key_file = "k"
address = "192.0.2.1"
[groups]
sites = ["bern", "berlin"]
[tasks.delay]
on = ["sites"]
kind = "digest"
[tasks.old]
on = ["berlin"]
kind = "rtt"
[joins.delay]
task = "delay"
points = ["sites"]
"#;

    const AFTER: &str = r#"
[probes.bern]
key_file = "k"
address = "192.0.2.2"
[probes.berlin]
key_file = "k"
address = "192.0.2.1"
[probes.oslo]
key_file = "k"
address = "192.0.2.3"
[groups]
sites = ["bern", "berlin", "oslo"]
[tasks.delay]
on = ["sites"]
kind = "digest"
share = 0.5
filter = "udp"
[joins.delay]
task = "delay"
points = ["sites"]
[meshes.bulk]
members = ["bern", "oslo"]
method = "tcp"
every = "10min"
"#;

    #[test]
    fn the_plan_says_what_happens_to_each_probe() {
        let (before, after) = (Config::read(BEFORE).unwrap(), Config::read(AFTER).unwrap());
        let want = r#"probe berlin (changed)
  ~ delay
      filter: - -> "udp"
      share: 1.0 -> 0.5
  - old
probe bern (changed)
  + bulk.oslo: measure command="tcp" options={} peer="oslo" target="192.0.2.3"
  ~ delay
      filter: - -> "udp"
      share: 1.0 -> 0.5
probe oslo (new)
  + bulk.bern: measure command="tcp" options={} peer="bern" target="192.0.2.2"
  + delay: digest filter="udp" function="sip" payload=40 share=0.5
join ~ delay
3 probes: 3 tasks start, 1 stop, 2 change
"#;
        assert_eq!(plan(&before, &after).to_string(), want);
        assert_eq!(plan(&after, &after).to_string(), "nothing changes\n");
        assert!(plan(&after, &before).to_string().contains("probe oslo (gone)\n  - bulk.bern\n  - delay\n"));
    }
}
