//! Tasks as the command line describes them.

use clap::{Args, ValueEnum};
use netaware_units::Span;
use netaware_wire::lmap::{DigestFunction, KEY_PARTS, Task, What};

use crate::flags::quantity;

const TASKS: &str = "Tasks";

/// Kinds of tasks that need no other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Kind {
    /// Packets and bytes by --by
    Volume,
    /// Rate over time, sizes, top talkers
    Traffic,
    /// Round-trip times of TCP and QUIC
    Rtt,
    /// Capacity from spacing of packets
    Capacity,
    /// Alternate-marking counters (RFC 9341)
    Marking,
    /// Packet digests (needs a second point and a collector to mean more than counts)
    Digest,
}

/// What each kind needs to know.
#[derive(Debug, Args)]
pub(crate) struct TaskFlags {
    /// What to do (several at once are fine): volume, traffic, rtt, capacity, marking, digest
    #[arg(value_name = "TASK", value_enum, hide_possible_values = true, conflicts_with = "collector")]
    kinds: Vec<Kind>,
    /// Only packets that this lets through, in tcpdump's language (needs libpcap)
    #[arg(short, long, value_name = "FILTER", help_heading = TASKS, conflicts_with = "collector")]
    filter: Option<String>,
    /// volume: count packets together that agree in these: version, source, destination, protocol, source_port,
    /// destination_port, dscp, flow_label
    #[arg(long, value_name = "PART[,PART…]", value_delimiter = ',', value_parser = KEY_PARTS, hide_possible_values = true, help_heading = TASKS)]
    by: Vec<String>,
    /// volume: prefixes of this length instead of addresses, IPv4 and IPv6
    #[arg(long, value_name = "N,N", value_parser = prefix, help_heading = TASKS)]
    prefix: Option<(u8, u8)>,
    /// volume, rtt, capacity: keys, flows or sources in memory at most
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = TASKS)]
    keys: u32,
    /// traffic: slice of the rate over time
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = quantity::time, help_heading = TASKS)]
    slice: Span,
    /// volume, traffic: print so many of the largest
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=1000), help_heading = TASKS)]
    pub(crate) top: u32,
    /// digest: share of packets, chosen by their content, the same everywhere
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, help_heading = TASKS)]
    share: f64,
    /// marking: length of a block
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::time, help_heading = TASKS)]
    block: Span,
    /// marking: bit of the DSCP that is the colour, 0 the lowest
    #[arg(long, value_name = "BIT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=5), help_heading = TASKS)]
    colour_bit: u8,
    /// marking: bit of the DSCP for delay
    #[arg(long, value_name = "BIT", value_parser = clap::value_parser!(u8).range(0..=5), help_heading = TASKS)]
    delay_bit: Option<u8>,
}

fn prefix(text: &str) -> Result<(u8, u8), String> {
    let wrong = || format!("'{text}' is not two lengths as in 24,64");
    let (four, six) = text.split_once(',').ok_or_else(wrong)?;
    match (four.parse(), six.parse()) {
        (Ok(four), Ok(six)) if four <= 32 && six <= 128 => Ok((four, six)),
        _ => Err(wrong()),
    }
}

impl TaskFlags {
    /// By name; without any, volume.
    pub(crate) fn tasks(&self) -> Vec<(String, Task)> {
        let mut kinds = self.kinds.clone();
        if kinds.is_empty() {
            kinds.push(Kind::Volume);
        }
        kinds.sort_unstable();
        kinds.dedup();
        let task = |kind| {
            let what = self.what(kind);
            let name = what.kind().to_owned();
            (name, Task { interface: None, filter: self.filter.clone(), what, schedule: None })
        };
        kinds.into_iter().map(task).collect()
    }

    fn what(&self, kind: Kind) -> What {
        let ms = |span: Span| u32::try_from(span.0 / 1_000_000).unwrap_or(u32::MAX);
        match kind {
            Kind::Volume => What::Volume { by: self.by.clone(), prefix: self.prefix, keys: self.keys },
            Kind::Traffic => What::Traffic { slice_ms: ms(self.slice), top: self.top },
            Kind::Rtt => What::Rtt { flows: self.keys },
            Kind::Capacity => What::Capacity { sources: self.keys },
            Kind::Marking => What::Marking {
                colour_bit: self.colour_bit,
                delay_bit: self.delay_bit,
                block_ms: ms(self.block),
            },
            Kind::Digest => {
                What::Digest { share: self.share, payload: PAYLOAD, function: DigestFunction::Sip }
            }
        }
    }
}

/// Bytes of payload that go into a digest; enough to tell the packets of a flow apart.
const PAYLOAD: u16 = 40;
