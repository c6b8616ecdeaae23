//! What all tasks have in common: they are shown packets, and asked from time to time what they
//! found.

use netaware_record::passive::{PacketSighting, Period, Row};
use netaware_units::BitRate;
use netaware_wire::lmap::What;
use thiserror::Error;

use crate::capacity::CapacityWatch;
use crate::digest::{DigestSettings, DigestWatch};
use crate::marking::MarkingWatch;
use crate::rtt::RttWatch;
use crate::traffic::TrafficWatch;
use crate::volume::VolumeWatch;
use crate::{Observed, Seed};

/// One running task. Its memory is bounded, whatever it is shown.
pub trait Watch: Send {
    /// Takes one packet into account. Stamps need not rise: rings of several cores are read one
    /// after the other.
    fn observe(&mut self, seen: &Observed<'_>);

    /// Says what was found since the last call, and begins anew. `period` is what the packets since
    /// then belong to.
    fn close(&mut self, period: Period, found: &mut Found);

    /// Hands out what need not wait for the end of a period: sightings, if there are `least` or
    /// more. They change places with `empty`, whose memory takes the next ones. Who calls this
    /// every few ms keeps memory small.
    fn drain(&mut self, least: usize, empty: &mut Vec<PacketSighting>) {
        let _ = (least, empty);
    }

    /// Nothing comes any more, as at a file's end: the next [`Self::close`] keeps nothing back for
    /// packets that might still come.
    fn end(&mut self) {}

    /// The interface is another than it was (MTU, speed).
    fn link(&mut self, link: Link) {
        let _ = link;
    }
}

/// What tasks found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// Figures.
    pub rows: Vec<Row>,
    /// Packets for the join, in the order they were seen.
    pub sightings: Vec<PacketSighting>,
}

/// What is known of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Link {
    /// Longest IP packet; what is longer was merged by offloads. `None`: nothing is taken for
    /// merged.
    pub mtu: Option<u32>,
    /// Speed; `None`: not known, and no utilisation is told.
    pub rate: Option<BitRate>,
}

impl Link {
    /// Whether a packet of this length (bytes from the IP header on) is several packets that were
    /// merged before it was seen.
    pub fn merged(&self, length: u32) -> bool {
        self.mtu.is_some_and(|mtu| length > mtu)
    }
}

/// The task that an instruction describes.
pub fn watch(what: &What, seed: &Seed, link: &Link) -> Result<Box<dyn Watch>, TaskError> {
    Ok(match what {
        What::Volume { by, prefix, keys } => Box::new(VolumeWatch::new(by, *prefix, *keys, seed)?),
        What::Traffic { slice_ms, top } => Box::new(TrafficWatch::new(*slice_ms, *top, seed, *link)?),
        What::Digest { share, payload, function, initialiser } => {
            let (share, payload, function) = (*share, *payload, *function);
            let settings = DigestSettings { share, payload, function, initialiser: *initialiser };
            Box::new(DigestWatch::new(&settings, seed, *link)?)
        }
        What::Rtt { flows } => Box::new(RttWatch::new(*flows, seed)?),
        What::Marking { colour_bit, delay_bit, block_ms } => {
            Box::new(MarkingWatch::new(*colour_bit, *delay_bit, *block_ms)?)
        }
        What::Capacity { sources } => Box::new(CapacityWatch::new(*sources, seed, *link)?),
        What::Stamp { .. } | What::Measure { .. } => return Err(TaskError::Active),
    })
}

/// Why a task cannot run.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum TaskError {
    /// It sends packets of its own: nothing to watch.
    #[error("this task sends packets of its own, it does not watch any")]
    Active,
    /// A part of the key that there is not.
    #[error(
        "packets cannot be counted by {0:?}: it is version, source, destination, protocol, source_port, destination_port, dscp or flow_label"
    )]
    KeyPart(String),
    /// A number beyond its limits.
    #[error("{name} is {value}, it must be from {least} to {most}")]
    OutOfRange {
        /// Its name in the task.
        name: &'static str,
        /// What was given.
        value: f64,
        /// Smallest.
        least: f64,
        /// Largest.
        most: f64,
    },
    /// One bit cannot be both.
    #[error("bit {0} of the DSCP cannot carry the colour and the delay mark at once")]
    SameBit(u8),
}

/// `value`, if it lies within the limits.
pub(crate) fn within(name: &'static str, value: u32, least: u32, most: u32) -> Result<u32, TaskError> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(TaskError::OutOfRange { name, value: value.into(), least: least.into(), most: most.into() })
}

#[cfg(test)]
mod tests {
    use netaware_wire::lmap::DigestFunction;

    use super::*;

    #[test]
    fn every_passive_task_can_be_made_and_no_active_one() {
        let (seed, link) = (Seed::new([1; 16]), Link::default());
        let sip = DigestFunction::Sip;
        let passive = [
            What::Volume { by: vec!["source".into()], prefix: Some((24, 64)), keys: 10 },
            What::Traffic { slice_ms: 100, top: 10 },
            What::Digest { share: 0.5, payload: 20, function: sip, initialiser: None },
            What::Rtt { flows: 10 },
            What::Marking { colour_bit: 0, delay_bit: Some(1), block_ms: 1000 },
            What::Capacity { sources: 10 },
        ];
        for what in passive {
            assert!(watch(&what, &seed, &link).is_ok(), "{what:?}");
        }
        let stamp = What::Stamp { target: "x".into(), interval_ns: 1, length: 44, peer: None, version: None };
        assert_eq!(watch(&stamp, &seed, &link).err(), Some(TaskError::Active));
    }

    #[test]
    fn impossible_tasks_are_refused_with_their_reason() {
        let (seed, link, sip) = (Seed::new([1; 16]), Link::default(), DigestFunction::Sip);
        let cases = [
            (
                What::Volume { by: vec!["colour".into()], prefix: None, keys: 10 },
                "cannot be counted by \"colour\"",
            ),
            (What::Volume { by: vec![], prefix: None, keys: 0 }, "keys is 0"),
            (What::Volume { by: vec![], prefix: Some((33, 64)), keys: 1 }, "prefix is 33"),
            (What::Traffic { slice_ms: 0, top: 10 }, "slice_ms is 0"),
            (What::Digest { share: f64::NAN, payload: 20, function: sip, initialiser: None }, "share is NaN"),
            (What::Digest { share: 0.0, payload: 20, function: sip, initialiser: None }, "share is 0"),
            (What::Digest { share: 1.0, payload: 2, function: sip, initialiser: None }, "payload is 2"),
            (What::Rtt { flows: 0 }, "flows is 0"),
            (What::Marking { colour_bit: 6, delay_bit: None, block_ms: 1000 }, "colour_bit is 6"),
            (What::Marking { colour_bit: 1, delay_bit: Some(1), block_ms: 1000 }, "bit 1 of the DSCP"),
            (What::Capacity { sources: 0 }, "sources is 0"),
        ];
        for (what, why) in cases {
            let refused = watch(&what, &seed, &link).err().map(|error| error.to_string());
            assert!(refused.as_ref().is_some_and(|text| text.contains(why)), "{what:?}: {refused:?}");
        }
    }

    #[test]
    fn limits_are_within_them_and_what_is_beyond_says_so() {
        for (value, is_within) in [(4_u32, false), (5, true), (9, true), (10, false)] {
            let beyond = TaskError::OutOfRange { name: "x", value: value.into(), least: 5.0, most: 9.0 };
            assert_eq!(within("x", value, 5, 9), if is_within { Ok(value) } else { Err(beyond) });
        }
    }

    #[test]
    fn only_what_is_longer_than_the_mtu_was_merged() {
        let link = Link { mtu: Some(1500), rate: None };
        assert!(!link.merged(1500) && link.merged(1501) && !Link::default().merged(u32::MAX));
    }
}
