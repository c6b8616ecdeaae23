//! `collect.toml`: the fleet in one declarative file. What it says is what runs; nothing is set
//! anywhere else.
//!
//! Reading has two steps. [`Config::read`] is about form: names, units, unknown words.
//! [`Config::check`] is about meaning: whether everybody that is named exists, and whether each
//! probe can be told its part. Both say where and what to do.

mod check;
mod names;
#[cfg(feature = "schema")]
mod schema;
mod task;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use netaware_passive::join::{Direction, Expects};
use netaware_store::fleet::without_password;
use netaware_units::Span;
use netaware_wire::lmap::Suppression;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use check::Fault;
pub(crate) use check::is_throughput;
pub use names::{Size, Time};
pub(crate) use names::{interface_of, on_interface, probe_of};
pub use task::TaskRule;
pub(crate) use task::schedule;

/// All of the file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where to listen, TCP; empty: `127.0.0.1` and `::1` at the default port.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "places")]
    pub listen: Vec<SocketAddr>,
    /// Length of a period; 1 s unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<Time>,
    /// File with the secret that digests are seeded from; made at the first start if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_file: Option<PathBuf>,
    /// Fleet store: a file of SQLite or `clickhouse://…`; `fleet.db` in the state folder unless
    /// given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// Bytes on the disk that wait for a store elsewhere, at most; when they are more the oldest
    /// are given up and counted. 4 GiB unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store_buffer: Option<Size>,
    /// Folder for what has to survive a restart; `netaware-collect` beside the file unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PathBuf>,
    /// Where IPFIX of other exporters is taken: `udp://ADDRESS:PORT`, `tcp://ADDRESS:PORT`,
    /// `tls://ADDRESS:PORT`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ipfix: Vec<String>,
    /// Collectors of anybody's that get the delays too, over IPFIX: `tcp://HOST:PORT`,
    /// `tls://HOST:PORT`, `udp://HOST:PORT`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub export: Vec<String>,
    /// Authority that signed the certificates of those with `tls://`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export_ca: Option<PathBuf>,
    /// Which part of the digests this process joins, as in `1/2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// How long figures are kept.
    #[serde(skip_serializing_if = "Retention::is_default")]
    pub retention: Retention,
    /// Who may read and change over HTTP.
    #[serde(skip_serializing_if = "Access::is_default")]
    pub access: Access,
    /// Encryption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Probes by name.
    pub probes: BTreeMap<String, Probe>,
    /// IPFIX exporters of somebody else's that have a name, so that joins can have them as points.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub exporters: BTreeMap<String, ExporterRule>,
    /// Names for several probes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, Vec<String>>,
    /// Tasks by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tasks: BTreeMap<String, TaskRule>,
    /// Active measurements between all members.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub meshes: BTreeMap<String, Mesh>,
    /// Which points' digests are matched, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub joins: BTreeMap<String, JoinRule>,
    /// Stops tasks without taking them away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppression: Option<Suppression>,
}

/// What a collector is told when it is started and no file changes: it is laid over every
/// configuration that it takes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Start {
    /// Where relative paths of every configuration begin; `None`: at the folder above the state
    /// folder.
    pub folder: Option<PathBuf>,
    /// Instead of [`Config::store`]; a relative path begins at `folder`.
    pub store: Option<String>,
    /// Instead of [`Config::shard`].
    pub shard: Option<String>,
    /// Beside [`Config::ipfix`].
    pub ipfix: Vec<String>,
}

/// How long the store keeps rows of each resolution.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// Rows as they come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub periods: Option<Time>,
    /// Rows merged to minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<Time>,
    /// Rows merged to hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hours: Option<Time>,
}

impl Retention {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Tokens for HTTP, each in a file of its own. Without any this host may look, and changes need the
/// token in `admin-token` of the state folder.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Access {
    /// Whoever has it may change everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_token_file: Option<PathBuf>,
    /// Whoever has it may look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_token_file: Option<PathBuf>,
}

impl Access {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Certificate and key, PEM.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The collector's, the chain behind it.
    pub certificate: PathBuf,
    /// Of the certificate.
    pub key: PathBuf,
    /// Authorities whose certificates probes may show; a probe with one that names it needs no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_ca: Option<PathBuf>,
}

/// One probe.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Probe {
    /// File with its key; without one it needs a certificate of `tls.client_ca` with its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Where its tasks watch unless they say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// By which others reach it: needed in meshes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Its responder, if that is not at the default port of `address`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responder: Option<String>,
    /// Its STAMP reflector, if that is not at port 862 of `address`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stamp: Option<String>,
    /// Links by name that carry its traffic: no two throughput tests on one of them at a time.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub links: BTreeSet<String>,
    /// Where it stands, degrees north and east, for the map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<(f64, f64)>,
}

/// Addresses with ports; one of a single link has its interface behind it.
fn places<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<SocketAddr>, D::Error> {
    let written = Vec::<String>::deserialize(from)?;
    written
        .iter()
        .map(|text| netaware_io::zone::parse_socket(text).map_err(serde::de::Error::custom))
        .collect()
}

/// By what an exporter is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ExporterRule {
    /// Where its messages come from.
    pub address: IpAddr,
    /// Its observation domain, where one address has several; all of them unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<u32>,
}

/// An active measurement from each member to each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Mesh {
    /// Probes and groups.
    pub members: Vec<String>,
    /// `stamp`, `latency`, `tcp`, `udp`, `capacity`, `available`, `hops` or `reach`.
    pub method: String,
    /// How often each pair is measured; not for `stamp`, which runs always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Time>,
    /// The start is moved by up to this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Time>,
    /// Time between packets, `stamp` only; 10 ms unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Time>,
    /// UDP payload of a packet, bytes, `stamp` only; 44 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u16>,
    /// Longest that a run may hold its hosts; unless given, 2 min or what its options let it take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<Time>,
    /// Options of the measurement by their long names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
}

/// Points whose sightings of the same packets are put together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JoinRule {
    /// The task of digests, or of alternate marking, that all points run that are probes; none
    /// where all are exporters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// Probes, groups, interfaces of probes (`bern/eth1`) and exporters.
    pub points: Vec<String>,
    /// Ordered pairs that are wanted; every one of the points unless given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<(String, String)>,
    /// Which packets of one point must come to another; `nothing_seen_elsewhere` unless given where
    /// each of three and more points is compared with each other, otherwise `everything`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expects: Option<Expects>,
    /// How it is known which way a packet went: `by_hops` unless given; `given`: the tasks' filter
    /// lets only packets of the named `pairs` pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// How far the clocks of two points may be apart at most; 1 s unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks_apart: Option<Time>,
    /// Sightings in memory at most, 24 bytes each; 24 million unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_sightings: Option<usize>,
    /// Into how many equal ranges digests are divided for delay variation and reordering, a
    /// multiple of the collectors that share the joins; as many as they are unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<u16>,
    /// How long a packet may be on its way before it is lost (Tmax of RFC 7679); 2 s unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<Time>,
    /// How long reports of probes may be late; 15 s unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_patience: Option<Time>,
}

/// Why a file is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// It is not in the form.
    #[error("{why}")]
    Form {
        /// Line, column and what is wrong there.
        why: String,
    },
    /// It cannot be meant.
    #[error("{} thing{} wrong:{}", .0.len(), if .0.len() == 1 { " is" } else { "s are" }, listed(.0))]
    Meaning(Vec<Fault>),
}

fn listed(faults: &[Fault]) -> String {
    faults.iter().flat_map(|fault| ["\n  ".to_owned(), fault.to_string()]).collect()
}

impl Config {
    /// The longest file, bytes.
    pub const MAX: usize = 4 << 20;

    /// Reads text and checks it.
    ///
    /// # Errors
    /// It is not in the form, or cannot be meant.
    pub fn read(text: &str) -> Result<Self, ReadError> {
        if text.len() > Self::MAX {
            return Err(ReadError::Form { why: "it is longer than 4 MiB".into() });
        }
        let config: Self = toml::from_str(text).map_err(|why| ReadError::Form { why: why.to_string() })?;
        let faults = config.check();
        if faults.is_empty() { Ok(config) } else { Err(ReadError::Meaning(faults)) }
    }

    /// Reads a file; relative paths in it start at its folder.
    ///
    /// # Errors
    /// As [`Config::read`], or the file cannot be read.
    pub fn load(path: &Path) -> Result<Self, ReadError> {
        let read = std::fs::read_to_string(path);
        let text = read.map_err(|source| ReadError::File { path: path.to_owned(), source })?;
        let mut config = Self::read(&text)?;
        config.settle(&folder_of(path));
        Ok(config)
    }

    /// Lays what a collector was started with over what the file says. Doing it again changes
    /// nothing.
    pub fn lay_over(&mut self, start: &Start) {
        for (mine, its) in [(&mut self.store, &start.store), (&mut self.shard, &start.shard)] {
            if its.is_some() {
                mine.clone_from(its);
            }
        }
        for place in &start.ipfix {
            if !self.ipfix.contains(place) {
                self.ipfix.push(place.clone());
            }
        }
    }

    /// Makes every relative path start at `folder`.
    pub fn settle(&mut self, folder: &Path) {
        let tls = self.tls.iter_mut().flat_map(|tls| [&mut tls.certificate, &mut tls.key]);
        for path in tls {
            *path = folder.join(&path);
        }
        let optional = [
            Some(&mut self.secret_file),
            Some(&mut self.export_ca),
            Some(&mut self.access.admin_token_file),
            Some(&mut self.access.read_token_file),
            self.tls.as_mut().map(|tls| &mut tls.client_ca),
        ];
        let keys = self.probes.values_mut().map(|probe| &mut probe.key_file);
        for path in optional.into_iter().flatten().chain(keys).flatten() {
            *path = folder.join(&path);
        }
        let state = self.state.take().unwrap_or_else(|| PathBuf::from("netaware-collect"));
        let state = folder.join(state);
        let store = self.store.take().unwrap_or_else(|| state.join("fleet.db").display().to_string());
        let is_file = !store.contains("://");
        self.store = Some(if is_file { folder.join(store).display().to_string() } else { store });
        self.secret_file.get_or_insert_with(|| state.join("secret"));
        self.state = Some(state);
    }

    /// As text that [`Config::read`] takes.
    ///
    /// # Errors
    /// A value that TOML has no form for.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }

    /// The same for people and files: with `***` for the password of the store.
    ///
    /// # Errors
    /// As [`Config::to_toml`].
    pub fn shown(&self) -> Result<String, toml::ser::Error> {
        let store = self.store.as_deref().map(without_password);
        Self { store, ..self.clone() }.to_toml()
    }

    /// Probes that a list of probes and groups means, `all` included, each once.
    pub fn members<'a>(&'a self, list: &'a [String]) -> BTreeSet<&'a str> {
        let mut members = BTreeSet::new();
        for name in list {
            if name == ALL {
                members.extend(self.probes.keys().map(String::as_str));
            } else if let Some(group) = self.groups.get(name) {
                members.extend(group.iter().map(String::as_str));
            } else {
                members.insert(name.as_str());
            }
        }
        members
    }

    /// Where a probe runs a task: on the interfaces by which joins of it have that probe as a
    /// point; `None` stands for the task's own.
    pub(crate) fn places<'a>(&'a self, task: &str, probe: &str) -> BTreeSet<Option<&'a str>> {
        let joins = self.joins.values().filter(|join| join.task == task);
        let points = joins.flat_map(|join| self.members(&join.points));
        let places: BTreeSet<_> = points.filter(|point| probe_of(point) == probe).map(interface_of).collect();
        if places.is_empty() { BTreeSet::from([None]) } else { places }
    }

    /// Length of a period.
    pub fn period(&self) -> Span {
        self.period.map_or(Span::from_secs(1), |time| time.0)
    }

    /// Index and number of parts; `(0, 1)` is all.
    pub fn shard(&self) -> (u32, u32) {
        self.shard.as_deref().and_then(names::shard).unwrap_or((0, 1))
    }
}

/// Where relative paths of a file begin.
pub fn folder_of(file: &Path) -> PathBuf {
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    absolute.parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// The group of all probes.
pub const ALL: &str = "all";

#[cfg(test)]
mod tests;
