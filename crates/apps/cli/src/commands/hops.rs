//! `netaware hops`: every link on the way to a host that need not cooperate.

use anyhow::ensure;
use clap::{Args, ValueEnum};
use netaware_io::stop::StopFlag;
use netaware_prober::{CapacityWay, HopsRequest, Progress, Target, hops};
use netaware_record::Record;
use netaware_units::Span;

use crate::exit;
use crate::flags::output::OutputFlags;
use crate::flags::probed::ProbedFlags;
use crate::flags::quantity;
use crate::flags::series::SeriesFlags;
use crate::measure::{Measurement, Measuring};

const LONG: &str = "\
Tells of every hop on the way to HOST who it is, what it loses, how long the round trip and the queues are, and what the link \
in front of it carries, over each IP version in turns. Nobody has to run anything there. Packets of several sizes are made \
to end at each router; the slope of their smallest delays over size gives the links. Trains of packets locate the choke \
point, and show hidden layer-2 devices.";

fn after() -> String {
    format!(
        "\
Examples:
  netaware hops example.org                  both IP versions, 20 s each
  netaware hops example.org -6 -t 60s        longer is better on loaded paths
  netaware hops 192.0.2.1 --max-hops 5 --no-trains
  netaware hops 192.0.2.1 --method tailgating
  netaware hops lab-b --format csv           a row per hop

Needs no privilege; with CAP_NET_RAW, or an ICMP socket by net.ipv4.ping_group_range, a host that ignores UDP is
reached by echoes.

{}",
        exit::HELP
    )
}

/// Measure every hop on the way to a host that runs nothing
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = after())]
#[expect(clippy::struct_field_names, reason = "a field is a flag, and flags are called what people expect")]
pub(crate) struct Hops {
    #[command(flatten)]
    target: ProbedFlags,
    /// auto (direct where a router's answers allow it, tailgating elsewhere), direct, tailgating
    /// [default: auto]
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    method: Option<Way>,
    /// What all of it may take, both IP versions together
    #[arg(short, long, value_name = "TIME", default_value = "40s", value_parser = quantity::searching)]
    time: Span,
    /// Highest hop tried
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = quantity::whole::<u8>(1..=255))]
    max_hops: u8,
    /// IP packet sizes to use, five or more, as in 576B,800B,1000B,1200B,1500B [default: eight that
    /// fit]
    #[arg(long, visible_alias = "size", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    sizes: Vec<u32>,
    /// End sooner, with so many delays behind each hop's capacity
    #[arg(long, value_name = "PROBES", value_parser = quantity::whole::<u32>(1..=u64::from(u32::MAX)))]
    per_hop: Option<u32>,
    /// Do not look for choke points: no bursts are sent
    #[arg(long)]
    no_trains: bool,
    /// Of the order of sizes: the same seed gives the same one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = quantity::whole::<u64>(0..=u64::MAX))]
    seed: u64,
    #[command(flatten)]
    series: SeriesFlags,
    #[command(flatten)]
    output: OutputFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    Auto,
    Direct,
    Tailgating,
}

impl From<Way> for CapacityWay {
    fn from(way: Way) -> Self {
        match way {
            Way::Auto => Self::Automatic,
            Way::Direct => Self::Direct,
            Way::Tailgating => Self::Tailgating,
        }
    }
}

fn size(text: &str) -> Result<u32, String> {
    match text.parse::<netaware_units::ByteCount>() {
        Ok(size) => match u32::try_from(size.0) {
            Ok(size @ 64..=9000) => Ok(size),
            _ => Err("it must be between 64 and 9000 bytes".to_owned()),
        },
        Err(error) => Err(error.to_string()),
    }
}

impl Hops {
    fn request(&self, target: Target) -> HopsRequest {
        HopsRequest {
            time: self.time,
            max_hops: self.max_hops,
            sizes: self.sizes.clone(),
            per_hop: self.per_hop,
            way: self.method.map_or(CapacityWay::Automatic, Into::into),
            trains: !self.no_trains,
            seed: self.seed,
            ..HopsRequest::new(target)
        }
    }
}

impl Measuring for Hops {
    fn check(&self) -> anyhow::Result<()> {
        let mut sizes = self.sizes.clone();
        sizes.sort_unstable();
        sizes.dedup();
        ensure!(
            sizes.is_empty() || sizes.len() >= 5,
            "--sizes: a slope with an interval needs five different sizes or more, and these are {}",
            sizes.len()
        );
        Ok(())
    }

    fn measurement(&self) -> Measurement<'_> {
        Measurement {
            command: "hops",
            target: &self.target.0,
            output: &self.output,
            intervals: false,
            notes: Vec::new(),
        }
    }

    fn series(&self) -> &SeriesFlags {
        &self.series
    }

    fn measure(&self, target: Target, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
        hops(&self.request(target), stop, progress)
    }
}
