//! What a host can measure: what its clock, its calls and its network stack cost, what its
//! interfaces are, and the highest rates that it can probe because of that.
//!
//! Three kinds of things, kept apart because they age differently: [`HostTimings`] were measured,
//! and may come from a cache; [`HostFacts`] were read when the record was made; [`HonestRate`]s are
//! arithmetic over both, with the formula beside each.
//!
//! Nothing here is ever made up: a value that could not be had is [`Fact::NotKnown`] and says why.

mod facts;
mod timings;

pub use facts::{
    BufferRange, ClockSteering, CongestionControls, HardwareClock, HostFacts, InterfaceFacts, InterruptLine,
    Moderation, QueueCounts, RingSizes, SocketBuffers, Timestamping,
};
pub use timings::{
    CallTiming, ClockTiming, Effort, HostCall, HostTimings, LoopbackHow, LoopbackMaximum, ObservedModeration,
    StampTiming, WaitHow, WaitTiming,
};

use netaware_units::{BitRate, Span, Wall};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What `netaware host` tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HostAbility {
    /// Where the timings come from.
    pub origin: TimingsOrigin,
    /// What was measured.
    pub timings: HostTimings,
    /// What the system tells.
    pub facts: HostFacts,
    /// The interface whose link and coalescing are among the limits; absent where there are several
    /// to choose from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// What follows: one entry per way of probing and packet size.
    pub honest: Vec<HonestRate>,
}

/// Where timings come from, and what they belong to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct TimingsOrigin {
    /// They were read from the cache, not measured for this record.
    pub cached: bool,
    /// When they were measured, by this host's wall clock.
    pub measured_at: Wall,
    /// The same as RFC 3339 in UTC.
    pub measured_at_utc: String,
    /// How old they were when the record was made.
    pub age: Span,
    /// The file they were read from or written to; absent where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<String>,
    /// The machine that they hold for.
    pub fingerprint: Fingerprint,
}

/// The hardware and the kernel under a measurement. Timings hold for as long as it stays the same.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Fingerprint {
    /// Version of netaware: another one may measure in another way.
    pub software: String,
    /// Processor model.
    pub cpu: String,
    /// Logical processors online.
    pub cores: u32,
    /// Operating system and its version.
    pub kernel: String,
    /// Clock source of the kernel.
    pub clock_source: String,
    /// Hypervisor or container; empty on bare metal.
    pub virtualisation: String,
    /// Hardware interfaces as "name driver MTU", sorted.
    pub interfaces: Vec<String>,
}

impl Fingerprint {
    /// What differs, in words; empty if nothing does.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let (before, now) = (self, other);
        let texts = [
            ("netaware", &before.software, &now.software),
            ("processor", &before.cpu, &now.cpu),
            ("kernel", &before.kernel, &now.kernel),
            ("clock source", &before.clock_source, &now.clock_source),
            ("virtualisation", &before.virtualisation, &now.virtualisation),
        ];
        let changed = texts.into_iter().filter(|(_, before, now)| before != now);
        let mut found: Vec<String> =
            changed.map(|(what, before, now)| format!("{what} was '{before}', is '{now}'")).collect();
        if before.cores != now.cores {
            found.push(format!("cores were {}, are {}", before.cores, now.cores));
        }
        if before.interfaces != now.interfaces {
            let list = |of: &Self| of.interfaces.join("; ");
            found.push(format!("interfaces were '{}', are '{}'", list(before), list(now)));
        }
        found
    }
}

/// A value, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged)]
pub enum Fact<T> {
    /// It could not be had. First of the two, so that what is read back as a value never was an
    /// absence.
    NotKnown(NotKnown),
    /// It is this.
    Known(T),
}

/// Why a value could not be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct NotKnown {
    /// In words.
    pub not_known: String,
    /// Somebody with more privilege would be told.
    #[serde(default)]
    pub needs_privilege: bool,
}

impl<T> Fact<T> {
    /// No value, for this reason.
    pub fn not_known(why: impl Into<String>) -> Self {
        Self::NotKnown(NotKnown { not_known: why.into(), needs_privilege: false })
    }

    /// No value for somebody without privilege.
    pub fn needs_privilege(why: impl Into<String>) -> Self {
        Self::NotKnown(NotKnown { not_known: why.into(), needs_privilege: true })
    }

    /// The value, or this reason.
    pub fn or(value: Option<T>, why: impl Into<String>) -> Self {
        value.map_or_else(|| Self::not_known(why), Self::Known)
    }

    /// The value, if there is one.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::NotKnown(_) => None,
        }
    }

    /// Why there is none.
    pub fn why(&self) -> Option<&NotKnown> {
        match self {
            Self::Known(_) => None,
            Self::NotKnown(why) => Some(why),
        }
    }
}

/// The highest rate at which this host can probe with packets of one size, one way, and what limits
/// it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HonestRate {
    /// How packets are laid out: `sizes`, `pairs`, `chirps`, `trains`, `streams`, `filling`,
    /// `paced` or `bulk`.
    pub way: String,
    /// The methods that probe so, as `netaware` calls them.
    pub methods: Vec<String>,
    /// IP packet, bytes.
    pub packet: u32,
    /// Largest relative error that was allowed, 0..=1.
    pub error: f64,
    /// bit/s of whole IP packets: the smallest of the ceilings.
    pub rate: BitRate,
    /// What that is.
    pub limited_by: Ceiling,
    /// The others, lowest first.
    #[serde(default)]
    pub above: Vec<Ceiling>,
}

/// One reason why a host cannot probe any faster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Ceiling {
    /// `sending`, `receiving`, `stamps`, `clock`, `coalescing`, `pacing`, `memory`, `loopback`,
    /// `ring` or `link`.
    pub by: String,
    /// bit/s of whole IP packets.
    pub rate: BitRate,
    /// The formula with this host's figures in it.
    pub because: String,
}

#[cfg(test)]
mod tests {
    use netaware_units::ByteCount;

    use super::*;

    #[test]
    fn a_fact_is_a_plain_value_or_an_object_with_a_reason() {
        let known: Fact<ByteCount> = Fact::Known(ByteCount(7));
        let absent: Fact<ByteCount> = Fact::needs_privilege("no CAP_NET_ADMIN");
        for (fact, json) in
            [(&known, "7"), (&absent, r#"{"not_known":"no CAP_NET_ADMIN","needs_privilege":true}"#)]
        {
            assert_eq!(serde_json::to_string(fact).unwrap(), json);
            assert_eq!(&serde_json::from_str::<Fact<ByteCount>>(json).unwrap(), fact);
        }
    }

    #[test]
    fn an_absent_structure_is_not_read_back_as_an_empty_one() {
        let absent: Fact<QueueCounts> = Fact::not_known("the driver does not tell");
        let json = serde_json::to_string(&absent).unwrap();
        assert_eq!(serde_json::from_str::<Fact<QueueCounts>>(&json).unwrap(), absent);
    }

    #[test]
    fn a_fingerprint_names_each_thing_that_changed() {
        let one = Fingerprint { cpu: "A".into(), cores: 2, ..Fingerprint::default() };
        assert!(one.differences(&one).is_empty());
        let interfaces = vec!["eth0 virtio_net 9000".to_owned()];
        let other = Fingerprint { cpu: "B".into(), cores: 4, interfaces, ..Fingerprint::default() };
        let found = one.differences(&other);
        assert_eq!(found[0], "processor was 'A', is 'B'");
        assert_eq!(found[1], "cores were 2, are 4");
        assert!(found.len() == 3 && found[2].ends_with("are 'eth0 virtio_net 9000'"), "{found:?}");
    }
}
