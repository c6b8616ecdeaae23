//! One task of the file: where it runs, when, and what it does, in the words of the protocol.

use netaware_wire::lmap::{Schedule, Task, What};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::check::is_throughput;
use super::names::Time;

/// A task and who does it.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRule {
    /// Probes and groups.
    pub on: Vec<String>,
    /// Interface; that of the probe unless given.
    pub interface: Option<String>,
    /// In tcpdump's language.
    pub filter: Option<String>,
    /// How often, for tasks that send; always unless given.
    pub every: Option<Time>,
    /// The start is moved by up to this.
    pub spread: Option<Time>,
    /// What it does.
    pub what: What,
}

impl TaskRule {
    /// Whether it fills a path, and so starts only when the collector says so.
    pub(crate) fn is_throughput(&self) -> bool {
        matches!(&self.what, What::Measure { command, .. } if is_throughput(command))
    }

    /// As the probe is told.
    pub fn task(&self, own_interface: Option<&String>) -> Task {
        let passive = !matches!(self.what, What::Stamp { .. } | What::Measure { .. });
        let inherited = own_interface.filter(|_| passive);
        Task {
            interface: self.interface.as_ref().or(inherited).cloned(),
            filter: self.filter.clone(),
            what: self.what.clone(),
            schedule: schedule(self.every.filter(|_| !self.is_throughput()), self.spread),
        }
    }
}

/// `None` is always.
pub(crate) fn schedule(every: Option<Time>, spread: Option<Time>) -> Option<Schedule> {
    let every_ms = every?.millis();
    Some(Schedule { every_ms, spread_ms: spread.map_or(0, Time::millis), from: None, until: None })
}

/// What stands beside the words of the kind.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "TaskFrame"))]
pub(super) struct Frame {
    on: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interface: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    filter: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    every: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spread: Option<Time>,
}

const FRAME: [&str; 5] = ["on", "interface", "filter", "every", "spread"];

/// Numbers that hardly anybody wants to think about.
pub(super) const USUAL: &[(&str, &str, i64)] = &[
    ("volume", "keys", 10_000),
    ("traffic", "slice_ms", 100),
    ("traffic", "top", 20),
    ("digest", "payload", 40),
    ("rtt", "flows", 10_000),
    ("marking", "block_ms", 1_000),
    ("capacity", "sources", 1_000),
    ("stamp", "interval_ns", 10_000_000),
    ("stamp", "length", 44),
];

impl<'de> Deserialize<'de> for TaskRule {
    /// A flattened enum would take any misspelt word in silence; here each word has to be known.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut own = toml::Table::deserialize(deserializer)?;
        let frame: toml::Table = FRAME.iter().filter_map(|word| own.remove_entry(*word)).collect();
        let frame: Frame = frame.try_into().map_err(de::Error::custom)?;
        let kind = own.get("kind").and_then(toml::Value::as_str).unwrap_or_default().to_owned();
        for (_, word, value) in USUAL.iter().filter(|(of, _, _)| *of == kind) {
            own.entry(*word).or_insert_with(|| toml::Value::Integer(*value));
        }
        if kind == "digest" {
            own.entry("share").or_insert(toml::Value::Float(1.0));
        }
        let what: What = own.clone().try_into().map_err(|why: toml::de::Error| {
            de::Error::custom(format!("a task of the kind '{kind}': {}", why.message()))
        })?;
        let known = toml::Table::try_from(&what).map_err(de::Error::custom)?;
        if let Some(word) = own.keys().find(|word| !known.contains_key(*word)) {
            let words: Vec<_> = known.keys().map(String::as_str).chain(FRAME).collect();
            let words = words.join(", ");
            return Err(de::Error::custom(format!("a task has no '{word}' here; there are {words}")));
        }
        let Frame { on, interface, filter, every, spread } = frame;
        Ok(Self { on, interface, filter, every, spread, what })
    }
}

impl Serialize for TaskRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Whole<'a> {
            #[serde(flatten)]
            frame: Frame,
            #[serde(flatten)]
            what: &'a What,
        }
        let Self { on, interface, filter, every, spread, what } = self.clone();
        Whole { frame: Frame { on, interface, filter, every, spread }, what: &what }.serialize(serializer)
    }
}
