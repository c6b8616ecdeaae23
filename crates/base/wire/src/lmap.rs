//! What probes and their controller and collector say to each other, in the terms of LMAP (RFC
//! 7594).
//!
//! A probe (measurement agent) dials out, so it works behind NAT; one TCP connection, TLS if the
//! collector has a certificate, carries control both ways as frames of [`crate::frame`]. It opens
//! with [`PREFACE`], then `Challenge`, `Hello`, `Welcome` or `Refusal`. The reports follow in the
//! same connection: a [`FromProbe::Batch`] announces how many bytes follow it outside of frames:
//! IPFIX messages back to back (packet sightings), then JSON of a `ProbeReport`. The collector
//! answers with [`FromCollector::Taken`] when it is on its disk; until then the probe keeps it on
//! its own. A number is never used twice, so what comes a second time is known and not counted
//! again.
//!
//! Everything that comes is read by [`FromProbe::parse`] or [`FromCollector::parse`], which hold it
//! against bounds and say what is out of them; proofs are those of [`crate::proof::fleet_probe`]
//! and [`crate::proof::fleet_collector`].

mod check;

use std::collections::BTreeMap;

use netaware_units::Wall;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use check::{Fault, MessageError, is_interface, is_name};

/// Characters in the name of a probe, an interface of one, or a task.
pub const MAX_NAME: usize = 63;

/// Tasks in one instruction; with [`crate::frame::MAX_FRAME`] bytes for the whole of it.
pub const MAX_TASKS: usize = 128;

/// Bytes of a filter's text.
pub const MAX_FILTER: usize = 4096;

/// Bytes of an explanation for people.
pub const MAX_WHY: usize = 1024;

/// Interfaces, addresses or abilities that one probe may name.
pub const MAX_LIST: usize = 256;

/// Keys that a volume may ask for: about 120 bytes each.
pub const MOST_KEYS: u32 = 4_000_000;

/// Flows that a task of round-trip times may ask for; each takes from 500 bytes to about 20 KiB.
pub const MOST_FLOWS: u32 = 1_000_000;

/// Sources that a capacity task may ask for: 12 KiB each at most.
pub const MOST_SOURCES: u32 = 20_000;

/// Top talkers that a traffic task may ask for.
pub const MOST_TALKERS: u32 = 1_000;

/// Payload bytes that a digest is made of, at least: fewer do not spread well (RFC 5475 §6.2.4).
pub const LEAST_PAYLOAD: u16 = 4;

/// The same at most: more would only cost time, and no probe captures so much.
pub const MOST_PAYLOAD: u16 = 256;

/// Parts of a volume's key ([`What::Volume`]).
pub const KEY_PARTS: [&str; 8] =
    ["version", "source", "destination", "protocol", "source_port", "destination_port", "dscp", "flow_label"];

/// Measurements that [`What::Measure`] can name; of those that [`fills_path`] one runs at a time.
pub const MEASUREMENTS: [&str; 7] = ["tcp", "udp", "latency", "capacity", "available", "hops", "reach"];

/// Whether one of [`MEASUREMENTS`] loads the path so that nothing else can be measured on it
/// meanwhile: it starts when the collector says so, which knows what else runs on the hosts and
/// links.
pub fn fills_path(measurement: &str) -> bool {
    matches!(measurement, "tcp" | "udp" | "capacity" | "available")
}

/// First bytes of a connection from a probe.
pub const PREFACE: [u8; 8] = *b"NAWprb\x01\n";

/// Port of a collector, TCP: probes, HTTP and everything else.
pub const DEFAULT_PORT: u16 = 14234;

/// Bytes behind one [`FromProbe::Batch`], at most.
pub const MAX_BATCH: u32 = 4 * 1024 * 1024;

/// What a probe says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromProbe {
    /// Who it is, and the proof for the collector's nonce.
    Hello {
        /// Name in the fleet: 1 to 63 of `a-z0-9-`.
        probe: String,
        /// Random, 32 hexadecimal digits, for the collector's own proof.
        nonce: String,
        /// HMAC-SHA-256 under the probe's own key over label, both nonces and the name;
        /// hexadecimal.
        proof: String,
        /// Version of netaware.
        software: String,
        /// What it can do: names of task kinds, `hardware_stamps`, ...
        abilities: Vec<String>,
        /// Its interfaces.
        interfaces: Vec<String>,
        /// Addresses by which others reach it, for meshes.
        addresses: Vec<std::net::IpAddr>,
        /// Number of the instruction that it follows at present.
        instruction: Option<u64>,
        /// Identity of its report counter: made at random with an empty state folder, so that a
        /// probe that was set up anew is not taken for its predecessor; hexadecimal.
        incarnation: String,
    },
    /// It follows this instruction, or why it does not (task by task).
    Following {
        /// Number of the instruction.
        instruction: u64,
        /// Task name to what is wrong.
        refused: BTreeMap<String, String>,
    },
    /// How it is; every ten seconds.
    Status(ProbeStatus),
    /// `ipfix` then `report` bytes follow, outside of frames.
    Batch {
        /// Rises by one with each; kept on disk.
        sequence: u64,
        /// Bytes of IPFIX messages.
        ipfix: u32,
        /// Bytes of JSON of one `netaware_record::passive::ProbeReport`; may be 0: more sightings
        /// of the period follow, and the report comes behind the last of them.
        report: u32,
        /// Names of the digest tasks that have sightings here, each with the `selectionSequenceId`
        /// (IE 301) that stands for it in this batch.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        selections: BTreeMap<String, u64>,
    },
}

/// How a probe is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProbeStatus {
    /// Batches on its disk that were not taken yet.
    pub waiting_batches: u64,
    /// Bytes of them.
    pub waiting_bytes: u64,
    /// Batches that it gave up for want of room, oldest first, since it started.
    pub given_up: u64,
    /// Scheduled runs that could not start in time, since it started.
    pub missed: u64,
    /// Active tasks that run now.
    pub running: Vec<String>,
    /// Resident memory, bytes.
    pub memory: u64,
    /// CPU time since it started, ns.
    pub cpu_ns: u64,
}

/// What a collector says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromCollector {
    /// Random, 32 hexadecimal digits; the first message.
    Challenge {
        /// For the probe's proof.
        nonce: String,
    },
    /// Let in.
    Welcome {
        /// The collector's proof over both nonces under the same key; hexadecimal.
        proof: String,
        /// Highest batch that is on its disk; the probe goes on with the next and forgets those
        /// before.
        taken: u64,
    },
    /// Not let in, or thrown out; the connection ends.
    Refusal {
        /// Why, for people.
        why: String,
        /// Seconds after which trying again makes sense; `None`: not before something is changed.
        again_after: Option<u32>,
    },
    /// What to do from now on; replaces what was before. Tasks that stay the same go on
    /// undisturbed.
    Instruction(Instruction),
    /// All batches up to this are on its disk.
    Taken {
        /// Highest number.
        sequence: u64,
    },
    /// Permission to run an active task now (throughput: one at a time on each host and link).
    Start {
        /// Task.
        task: String,
        /// Number of this run.
        run: u64,
    },
}

/// All that a probe is to do. Tasks, schedules and suppression as in RFC 7594 §5.4.
///
/// The report channel is not named in it, because a collector cannot send a probe's reports to
/// where the probe itself was not told to trust: it is the connection to each collector that the
/// probe was started with, every period. Each gets every report and its share of the sightings;
/// rows of other tasks go to the first, which is also the one that instructs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Instruction {
    /// Rises with every change.
    pub number: u64,
    /// By name.
    pub tasks: BTreeMap<String, Task>,
    /// Nothing runs while this is set (emergency brake); passive tasks too if `passive`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppression: Option<Suppression>,
    /// Secret of the fleet that digests are seeded with, 32 hexadecimal digits; travels only over
    /// an authenticated connection.
    pub seed: String,
    /// Periods are this long, ms, aligned to the epoch.
    pub period_ms: u32,
}

/// Stops tasks without taking them away.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Suppression {
    /// Names of tasks and meshes, or of what one of them does on one interface (`TASK/INTERFACE`)
    /// or towards one member (`MESH.MEMBER`); empty: all.
    pub tasks: Vec<String>,
    /// Passive ones as well.
    pub passive: bool,
    /// Until, seconds since the epoch; `None`: until told otherwise.
    pub until: Option<i64>,
}

impl Suppression {
    /// Whether it holds for what a task of this name does, now.
    pub fn concerns(&self, task: &str, what: &What, now: Wall) -> bool {
        self.names(task, now) && (self.passive || !what.is_passive())
    }

    /// Whether it holds for an active task of this name now.
    pub fn names(&self, task: &str, now: Wall) -> bool {
        let over = self.until.is_some_and(|until| now.0.div_euclid(1_000_000_000) >= until);
        // What a task does on one of several interfaces has its name and, behind a slash, that of
        // the interface; what a mesh does towards one member has the mesh's and, behind a dot, that
        // member's. A task's own name has neither.
        let whole = task.split(['/', '.']).next().unwrap_or(task);
        !over && (self.tasks.is_empty() || self.tasks.iter().any(|one| one == task || one == whole))
    }
}

/// One task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Interface; `None`: not needed (active tasks), or the probe's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// In tcpdump's language; `None`: everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// What to do.
    #[serde(flatten)]
    pub what: What,
    /// When; `None`: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
}

/// When an active task runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Every so many ms.
    pub every_ms: u64,
    /// The start is moved by a random time of up to this, ms, drawn anew for each run.
    #[serde(default)]
    pub spread_ms: u64,
    /// Seconds since the epoch before which it does not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<i64>,
    /// Seconds since the epoch after which it does not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
}

/// How packets are labelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DigestFunction {
    /// 64 bits by SipHash-1-3: no false matches, and nobody outside the fleet can make them.
    #[default]
    Sip,
    /// 32 bits by BOB (RFC 5475 §6.2.4.1), for joining with others' probes.
    Bob,
}

/// What a task does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum What {
    /// Packets and bytes by key.
    Volume {
        /// Parts of the key, of [`KEY_PARTS`]; empty: all packets together.
        #[serde(default)]
        by: Vec<String>,
        /// Prefix lengths instead of whole addresses, IPv4 and IPv6.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefix: Option<(u8, u8)>,
        /// Keys in memory at most; those with the most packets stay.
        keys: u32,
    },
    /// Rate, sizes, top talkers.
    Traffic {
        /// Slice of the rate over time, ms.
        slice_ms: u32,
        /// How many top talkers.
        top: u32,
    },
    /// Packet digests for delay between points.
    Digest {
        /// Share of packets, 0..1: hash-selected, so the same packets everywhere.
        share: f64,
        /// Payload bytes that go into the digest.
        payload: u16,
        /// The hash.
        #[serde(default)]
        function: DigestFunction,
        /// Where BOB begins (hashInitialiserValue), for probes that do not have the fleet's seed;
        /// `None`: made from the seed. Which packets are chosen comes from the seed all the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initialiser: Option<u32>,
    },
    /// Round-trip times of TCP and QUIC.
    Rtt {
        /// Flows in memory at most.
        flows: u32,
    },
    /// Alternate-marking counters.
    Marking {
        /// Bit of the DSCP that is the colour, 0 the lowest.
        colour_bit: u8,
        /// Bit of the DSCP for double marking.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay_bit: Option<u8>,
        /// Block length, ms.
        block_ms: u32,
    },
    /// Capacity from spacing.
    Capacity {
        /// Sources in memory at most.
        sources: u32,
    },
    /// Our own flow of STAMP packets to another probe or any STAMP reflector.
    Stamp {
        /// Where: name or address, port 862 unless given.
        target: String,
        /// Between packets, ns.
        interval_ns: u64,
        /// UDP payload, bytes, 44 at least.
        length: u16,
        /// Name of the probe at the other end, if it is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer: Option<String>,
        /// 4 or 6; `None`: both, where the name has both.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<u8>,
    },
    /// A measurement of ours towards a responder, with its options.
    Measure {
        /// Which of [`MEASUREMENTS`].
        command: String,
        /// Responder.
        target: String,
        /// Options by their long names.
        #[serde(default)]
        options: BTreeMap<String, String>,
        /// Name of the probe at the other end, if it is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suppression_holds_for_those_it_names_until_its_time() {
        let watches = What::Rtt { flows: 10 };
        let sends =
            What::Stamp { target: "x".into(), interval_ns: 1_000_000, length: 44, peer: None, version: None };
        let held = |tasks: &[&str], passive, until| Suppression {
            tasks: tasks.iter().map(ToString::to_string).collect(),
            passive,
            until,
        };
        // Suppression, task, what it does, now in ms, whether it is held.
        let table = [
            (1, held(&[], false, None), "flow", &sends, 0, true),
            (2, held(&[], false, None), "count", &watches, 0, false),
            (3, held(&[], true, None), "count", &watches, 0, true),
            (4, held(&[], true, None), "flow", &sends, 0, true),
            (5, held(&["flow"], true, None), "flow", &sends, 0, true),
            (6, held(&["flow"], true, None), "flows", &sends, 0, false),
            (7, held(&["flow"], true, None), "count", &watches, 0, false),
            (8, held(&["count"], false, None), "count", &watches, 0, false),
            (9, held(&["other", "count"], true, None), "count", &watches, 0, true),
            (10, held(&["count"], true, None), "count/eth0.5", &watches, 0, true),
            (11, held(&["count/eth0.5"], true, None), "count/eth0.5", &watches, 0, true),
            (12, held(&["count/eth0.5"], true, None), "count/eth0", &watches, 0, false),
            (13, held(&["count/eth0.5"], true, None), "count", &watches, 0, false),
            (14, held(&["speed"], false, None), "speed.oslo", &sends, 0, true),
            (15, held(&["speed.oslo"], false, None), "speed.oslo", &sends, 0, true),
            (16, held(&["speed.oslo"], false, None), "speed.bern", &sends, 0, false),
            (17, held(&[], false, Some(100)), "flow", &sends, 99_999, true),
            (18, held(&[], false, Some(100)), "flow", &sends, 100_000, false),
            (19, held(&["flow"], false, Some(100)), "flow", &sends, 99_999, true),
            (20, held(&["flow"], false, Some(100)), "flow", &sends, 100_001, false),
            (21, held(&[], false, Some(-1)), "flow", &sends, -1_001, true),
            (22, held(&[], false, Some(-1)), "flow", &sends, -1_000, false),
        ];
        for (row, suppression, task, what, now_ms, expected) in table {
            let now = Wall(now_ms * 1_000_000);
            assert_eq!(suppression.concerns(task, what, now), expected, "row {row}");
        }
    }
}
