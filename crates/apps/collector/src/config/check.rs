//! Whether a file can be meant: every name exists, every number fits, every probe can be told its
//! part.

use std::collections::BTreeMap;
use std::fmt;

use netaware_ipfix::{Over, Target};
use netaware_passive::join::{Direction, Ledger};
use netaware_passive::marking::MarkingJoin;
use netaware_wire::lmap::{self, What};

use super::{ALL, Config, JoinRule, Mesh, Time, names};
use crate::instruct;
use crate::joins::setup;

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// As in `tasks.delay`.
    pub place: String,
    /// What is wrong, and what would be right.
    pub why: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.why)
    }
}

/// What a mesh can measure.
const METHODS: [&str; 8] = ["stamp", "latency", "tcp", "udp", "capacity", "available", "hops", "reach"];

/// Whether two of them at one host would measure each other.
pub(crate) fn is_throughput(method: &str) -> bool {
    lmap::fills_path(method)
}

impl Config {
    /// Everything that is wrong, empty if it can be run.
    pub fn check(&self) -> Vec<Fault> {
        let mut faults = Faults { config: self, found: Vec::new() };
        faults.frame();
        faults.probes();
        faults.exporters();
        faults.export();
        faults.groups();
        faults.tasks();
        for (name, mesh) in &self.meshes {
            faults.mesh(name, mesh);
        }
        for (name, join) in &self.joins {
            faults.join(name, join);
        }
        faults.suppression();
        // What a probe is told is only looked at when all names are known.
        if faults.found.is_empty() {
            faults.instructions();
        }
        faults.found
    }
}

struct Faults<'a> {
    config: &'a Config,
    found: Vec<Fault>,
}

impl Faults<'_> {
    fn add(&mut self, place: impl Into<String>, why: impl Into<String>) {
        self.found.push(Fault { place: place.into(), why: why.into() });
    }

    fn frame(&mut self) {
        let period = self.config.period().0;
        if !(100_000_000..=3_600_000_000_000).contains(&period) || period % 1_000_000 != 0 {
            self.add("period", "has to be between 100ms and 1h, in whole milliseconds");
        }
        if self.config.store_buffer.is_some_and(|size| size.0.0 < 65_536) {
            self.add("store_buffer", "has to be at least 64KiB");
        }
        if let Some(shard) = &self.config.shard
            && names::shard(shard).is_none()
        {
            self.add("shard", format!("'{shard}' is no part; write it as in \"1/2\""));
        }
        for place in &self.config.ipfix {
            let is_plain = self.config.tls.is_none();
            match crate::foreign::Place::read(place) {
                None => self.add(
                    "ipfix",
                    format!("'{place}' is not as in \"udp://[::]:4739\", \"tcp://0.0.0.0:4739\" or \"tls://[::]:4740\""),
                ),
                Some(read) if read.over == Over::Tls && is_plain => {
                    self.add("ipfix", format!("'{place}' needs the certificate and key of [tls]"));
                }
                Some(_) => {}
            }
        }
    }

    fn probes(&mut self) {
        let cards = self.config.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        for (name, probe) in &self.config.probes {
            let place = format!("probes.{name}");
            if !lmap::is_name(name) || name == ALL {
                self.add(&place, "a probe is named by 1 to 63 of a-z, 0-9 and '-', and not 'all'");
            }
            if probe.key_file.is_none() && !cards {
                self.add(&place, "needs a key_file, or a tls.client_ca whose certificate names it");
            }
            if probe.position.is_some_and(|(north, east)| north.abs() > 90.0 || east.abs() > 360.0) {
                self.add(&place, "the position is degrees north and east, as in [52.5, 13.4]");
            }
        }
    }

    fn export(&mut self) {
        for text in &self.config.export {
            match text.parse::<Target>() {
                Err(why) => self.add("export", why.to_string()),
                Ok(target) if target.over == Over::Tls && self.config.export_ca.is_none() => {
                    self.add(
                        "export",
                        format!("'{text}' needs 'export_ca', the file of who signed its certificate"),
                    );
                }
                Ok(_) => {}
            }
        }
    }

    fn exporters(&mut self) {
        let config = self.config;
        let mut known = BTreeMap::new();
        for (name, exporter) in &config.exporters {
            let place = format!("exporters.{name}");
            if !lmap::is_name(name) || name == ALL || config.probes.contains_key(name) {
                self.add(
                    &place,
                    "an exporter is named by 1 to 63 of a-z, 0-9 and '-', not as a probe and not 'all'",
                );
            }
            let from = (exporter.address.to_canonical(), exporter.domain);
            if let Some(other) = known.insert(from, name) {
                self.add(&place, format!("has the address of '{other}'; give both their 'domain'"));
            }
        }
    }

    fn groups(&mut self) {
        for (name, members) in &self.config.groups {
            let place = format!("groups.{name}");
            let taken = self.config.probes.contains_key(name) || self.config.exporters.contains_key(name);
            if taken || name == ALL {
                self.add(
                    &place,
                    "is the name of a probe or exporter, or 'all'; a group needs one of its own",
                );
            }
            for member in members.iter().filter(|member| !self.config.probes.contains_key(*member)) {
                self.found.push(Fault { place: place.clone(), why: self.unknown(member, "probe") });
            }
        }
    }

    fn unknown(&self, name: &str, kind: &str) -> String {
        let known: Vec<_> = self.config.probes.keys().map(String::as_str).take(8).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        format!("there is no {kind} '{name}'; probes are: {known}")
    }

    fn list(&mut self, place: &str, list: &[String]) {
        if list.is_empty() {
            self.add(place, "names nobody; name probes or groups, or \"all\"");
        }
        for name in list {
            let known = self.config.probes.contains_key(name) || self.config.groups.contains_key(name);
            if !known && name != ALL {
                let why = self.unknown(name, "probe or group");
                self.add(place, why);
            }
        }
    }

    /// A name that nothing has would stop nothing, and nobody would notice.
    fn suppression(&mut self) {
        let Some(suppression) = &self.config.suppression else { return };
        for name in &suppression.tasks {
            let whole = name.split(['/', '.']).next().unwrap_or(name);
            if !self.config.tasks.contains_key(whole) && !self.config.meshes.contains_key(whole) {
                let known: Vec<_> = self.config.tasks.keys().chain(self.config.meshes.keys()).collect();
                let known: Vec<_> = known.into_iter().map(String::as_str).take(8).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                self.add("suppression", format!("there is no task or mesh '{name}'; there are: {known}"));
            }
        }
    }

    fn tasks(&mut self) {
        for (name, rule) in &self.config.tasks {
            let place = format!("tasks.{name}");
            if name.contains('.') {
                self.add(&place, "a name with a dot belongs to meshes; use '-'");
            }
            self.list(&place, &rule.on);
            if let Err(fault) = rule.task(None).check() {
                self.add(&place, fault.to_string());
            }
            self.spread(&place, rule.every, rule.spread);
            if rule.every.is_some() && instruct::is_passive(&rule.what) {
                self.add(&place, "what watches packets runs always; take 'every' out");
            }
        }
    }

    fn mesh(&mut self, name: &str, mesh: &Mesh) {
        let place = format!("meshes.{name}");
        if name.contains('.') || !lmap::is_name(name) {
            self.add(&place, "a mesh is named by 1 to 63 of a-z, 0-9 and '-'");
        }
        self.list(&place, &mesh.members);
        if !METHODS.contains(&mesh.method.as_str()) {
            self.add(
                &place,
                format!("there is no method '{}'; there are {}", mesh.method, METHODS.join(", ")),
            );
        }
        let stamp = mesh.method == "stamp";
        if stamp && (mesh.every.is_some() || !mesh.options.is_empty()) {
            self.add(
                &place,
                "'stamp' runs always: it has 'interval' and 'length', no 'every' and no 'options'",
            );
        }
        self.spread(&place, mesh.every, mesh.spread);
        if !stamp && mesh.every.is_none() {
            self.add(&place, "needs 'every', as in every = \"10min\"");
        }
        if !stamp && (mesh.interval.is_some() || mesh.length.is_some()) {
            self.add(&place, "'interval' and 'length' belong to 'stamp'; this method has them in 'options'");
        }
        for member in self.config.members(&mesh.members) {
            let Some(probe) = self.config.probes.get(member) else { continue };
            let named = if stamp { probe.stamp.is_some() } else { probe.responder.is_some() };
            if probe.address.is_none() && !named {
                self.add(&place, format!("others cannot reach '{member}': give probes.{member} an address"));
            }
        }
    }

    /// A start that is moved by more than a turn would belong to another.
    fn spread(&mut self, place: &str, every: Option<Time>, spread: Option<Time>) {
        match (every, spread) {
            (None, Some(_)) => self.add(place, "'spread' moves the starts of 'every', which is not there"),
            (Some(every), Some(spread)) if spread > every => {
                self.add(place, format!("'spread' is longer than 'every', {every}"));
            }
            _ => {}
        }
    }

    fn join(&mut self, name: &str, join: &JoinRule) {
        let place = format!("joins.{name}");
        if name.is_empty() || name.starts_with('.') || name.contains(['/', ' ']) || name.len() > 200 {
            self.add(&place, "a join's name is that of a file: no '/', no space, no dot in front");
        }
        let config = self.config;
        let (exporters, others): (Vec<_>, Vec<_>) =
            join.points.iter().cloned().partition(|point| config.exporters.contains_key(point));
        if exporters.is_empty() || !others.is_empty() {
            // A point is a probe, or an interface of one.
            let probes: Vec<String> = others.iter().map(|point| names::probe_of(point).to_owned()).collect();
            self.list(&place, &probes);
            self.interfaces(&place, &others);
            if !self.joinable(&place, &join.task, &probes) {
                return;
            }
        }
        let points = config.members(&join.points);
        if points.len() < 2 {
            self.add(&place, "needs two points at least");
        }
        for end in join.pairs.iter().flat_map(|(from, to)| [from, to]) {
            if !points.contains(end.as_str()) {
                self.add(&place, format!("the pair's '{end}' is not one of the points"));
            }
        }
        self.settings(&place, join);
    }

    fn interfaces(&mut self, place: &str, points: &[String]) {
        let config = self.config;
        for (probe, interface) in points.iter().filter_map(|point| point.split_once('/')) {
            if !config.probes.contains_key(probe) {
                let why = format!("'{probe}/{interface}' is an interface of a probe, and '{probe}' is none");
                self.add(place, why);
            } else if !lmap::is_interface(interface) {
                self.add(place, format!("'{interface}' is no name of an interface"));
            } else if points.iter().any(|point| point == probe) {
                let why = format!(
                    "'{probe}' and '{probe}/{interface}' would see the same packets: name one of them"
                );
                self.add(place, why);
            }
        }
    }

    /// What only the join itself knows: its bounds, and pairs that contradict each other.
    fn settings(&mut self, place: &str, join: &JoinRule) {
        if self.found.iter().any(|fault| fault.place == place) {
            return;
        }
        if let Some(marking) = crate::markings::setup(self.config, join) {
            if let Err(why) = MarkingJoin::new(marking.rule) {
                self.add(place, why.to_string());
            }
            if join.points.iter().any(|point| self.config.exporters.contains_key(point)) {
                self.add(place, "exporters of others report no marked blocks: name probes alone");
            }
            return;
        }
        let is_given = join.direction == Some(Direction::Given);
        if is_given && join.pairs.is_empty() {
            let why = "direction = \"given\" needs 'pairs': the one way that packets between two points go";
            self.add(place, why);
        } else if join.lanes.is_some_and(|lanes| u32::from(lanes) % self.config.shard().1 != 0) {
            self.add(place, "'lanes' has to be a multiple of the collectors that share the joins");
        } else if let Err(why) = Ledger::new(setup(self.config, join).settings) {
            self.add(place, why.to_string());
        }
    }

    /// Whether there is the task; that it makes what can be joined and that all these probes run
    /// it.
    fn joinable(&mut self, place: &str, name: &str, probes: &[String]) -> bool {
        let Some(task) = self.config.tasks.get(name) else {
            let why = match name {
                "" => "needs 'task', the digest task of the points that are probes".to_owned(),
                _ => format!("there is no task '{name}'"),
            };
            self.add(place, why);
            return false;
        };
        if !matches!(task.what, What::Digest { .. } | What::Marking { .. }) {
            let why = "makes no digests; its kind has to be \"digest\" (or \"marking\")";
            self.add(place, format!("the task '{name}' {why}"));
        }
        let doing = self.config.members(&task.on);
        for probe in self.config.members(probes).difference(&doing) {
            self.add(place, format!("'{probe}' does not run the task '{name}'; add it to its 'on'"));
        }
        true
    }

    fn instructions(&mut self) {
        for name in self.config.probes.keys() {
            let instruction = instruct::instruction(self.config, name, 1, &"0".repeat(32));
            let place = format!("probes.{name}");
            if let Err(fault) = instruction.check() {
                self.add(
                    &place,
                    format!("its instruction is out of bounds: {fault} ({} tasks)", instruction.tasks.len()),
                );
            }
            let faults = instruction.faults();
            for (task, fault) in faults {
                self.add(&place, format!("task '{task}': {fault}"));
            }
            let message = lmap::FromCollector::Instruction(instruction.clone());
            if netaware_wire::frame::emit(&message).is_err() {
                self.add(&place, "its instruction is longer than 64 KiB; give it fewer or shorter tasks");
            }
        }
    }
}
