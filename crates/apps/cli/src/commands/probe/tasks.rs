//! Tasks as the command line describes them.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use netaware_units::{Share, Span};
use netaware_wire::Token;
use netaware_wire::lmap::{
    DigestFunction, KEY_PARTS, LEAST_PAYLOAD, MOST_KEYS, MOST_PAYLOAD, MOST_SOURCES, Task, What,
};

use crate::flags::{key, quantity};

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
    /// volume: count packets together that agree in these: version, source, destination, protocol,
    /// source_port, destination_port, dscp, flow_label
    #[arg(long, value_name = "PART[,PART…]", value_delimiter = ',', value_parser = KEY_PARTS, hide_possible_values = true, help_heading = TASKS)]
    by: Vec<String>,
    /// volume: prefixes of this length instead of addresses, IPv4 and IPv6
    #[arg(long, value_name = "N,N", value_parser = prefix, help_heading = TASKS)]
    prefix: Option<(u8, u8)>,
    /// volume, rtt, capacity: keys, flows or sources in memory at most [default: 100000, capacity:
    /// 20000]
    #[arg(long, value_name = "N", value_parser = quantity::whole::<u32>(1..=u64::from(MOST_KEYS)), help_heading = TASKS)]
    keys: Option<u32>,
    /// traffic: slice of the rate over time
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = quantity::time, help_heading = TASKS)]
    slice: Span,
    /// volume, traffic: print so many of the largest
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = quantity::whole::<u32>(0..=1000), help_heading = TASKS)]
    pub(crate) top: u32,
    /// digest: share of packets, chosen by their content, the same everywhere
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = share, help_heading = TASKS)]
    share: f64,
    /// digest: hash; sip (64 bits) or bob (32 bits, RFC 5475, for joining with probes of others)
    #[arg(long, value_enum, value_name = "HASH", default_value_t, hide_possible_values = true, help_heading = TASKS)]
    function: Function,
    /// digest: payload bytes that are hashed; the same everywhere
    #[arg(long, value_name = "N", default_value_t = PAYLOAD, value_parser = payload, help_heading = TASKS)]
    payload: u16,
    /// digest: file with the secret that digests and the choice of packets are made from, 32
    /// hexadecimal digits; the same everywhere [default: zeros]
    #[arg(long, value_name = "FILE", conflicts_with = "collector", help_heading = TASKS)]
    seed_file: Option<PathBuf>,
    /// digest: where BOB begins, as a number (0x… is hexadecimal) [default: from the secret]
    #[arg(long, value_name = "N", value_parser = initialiser, help_heading = TASKS)]
    initialiser: Option<u32>,
    /// marking: length of a block
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::time, help_heading = TASKS)]
    block: Span,
    /// marking: bit of the DSCP that is the colour, 0 the lowest
    #[arg(long, value_name = "BIT", default_value_t = 0, value_parser = quantity::whole::<u8>(0..=5), help_heading = TASKS)]
    colour_bit: u8,
    /// marking: bit of the DSCP for delay
    #[arg(long, value_name = "BIT", value_parser = quantity::whole::<u8>(0..=5), help_heading = TASKS)]
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

/// Hashes by the names that collect.toml has for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Function {
    #[default]
    Sip,
    Bob,
}

fn share(text: &str) -> Result<f64, String> {
    let per_cent = || text.parse::<Share>().ok().map(|share| share.0);
    let share = text.trim().parse::<f64>().ok().or_else(per_cent);
    let share = share.filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "it must be a share above 0 and up to 1, as in '0.01' or '1%'".to_owned())
}

fn payload(text: &str) -> Result<u16, String> {
    let wrong = || format!("it is {LEAST_PAYLOAD} to {MOST_PAYLOAD} bytes");
    text.parse().ok().filter(|bytes| (LEAST_PAYLOAD..=MOST_PAYLOAD).contains(bytes)).ok_or_else(wrong)
}

fn initialiser(text: &str) -> Result<u32, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| format!("'{text}' is no number of 32 bits, such as 2587859519 or 0x9a3f9a3f"))
}

impl TaskFlags {
    /// The secret of the digests.
    ///
    /// # Errors
    /// The file cannot be read, or holds something else.
    pub(crate) fn seed(&self) -> anyhow::Result<String> {
        let Some(path) = &self.seed_file else { return Ok("0".repeat(32)) };
        key::warn_if_exposed(path);
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let digits = text.trim();
        if digits.parse::<Token>().is_err() {
            bail!("{} does not hold 32 hexadecimal digits", path.display());
        }
        Ok(digits.to_owned())
    }

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
        let most = |usual| self.keys.unwrap_or(usual);
        match kind {
            Kind::Volume => What::Volume { by: self.by.clone(), prefix: self.prefix, keys: most(KEYS) },
            Kind::Traffic => What::Traffic { slice_ms: ms(self.slice), top: self.top },
            Kind::Rtt => What::Rtt { flows: most(KEYS) },
            Kind::Capacity => What::Capacity { sources: most(MOST_SOURCES) },
            Kind::Marking => What::Marking {
                colour_bit: self.colour_bit,
                delay_bit: self.delay_bit,
                block_ms: ms(self.block),
            },
            Kind::Digest => {
                let function = match self.function {
                    Function::Sip => DigestFunction::Sip,
                    Function::Bob => DigestFunction::Bob,
                };
                let (share, payload, initialiser) = (self.share, self.payload, self.initialiser);
                What::Digest { share, payload, function, initialiser }
            }
        }
    }
}

/// Keys and flows unless `--keys` says otherwise: far more than most links show in a period.
const KEYS: u32 = 100_000;
/// Bytes of payload that go into a digest; enough to tell the packets of a flow apart.
const PAYLOAD: u16 = 40;

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;
    use netaware_passive::{Link, Seed, watch};

    use super::super::tests::probe;
    use super::*;

    #[test]
    fn every_kind_can_be_made_as_it_comes_without_flags() {
        for kind in Kind::value_variants() {
            let flags = probe("").unwrap().tasks;
            let what = flags.what(*kind);
            assert!(what.check().is_ok(), "{what:?}");
            let made = watch(&what, &Seed::new([1; 16]), &Link::default());
            assert!(made.is_ok(), "{what:?}: {:?}", made.err());
        }
    }

    #[test]
    fn a_hash_is_as_it_was_asked_for_and_its_secret_comes_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seed");
        std::fs::write(&path, "00112233445566778899aabbccddeeff\n").unwrap();
        let line = format!(
            "digest --function bob --payload 16 --initialiser 0x9a3f9a3f --seed-file {}",
            path.display()
        );
        let flags = probe(&line).unwrap().tasks;
        let (function, initialiser) = (DigestFunction::Bob, Some(0x9a3f_9a3f));
        let what = What::Digest { share: 1.0, payload: 16, function, initialiser };
        assert_eq!(flags.tasks()[0].1.what, what);
        assert_eq!(flags.seed().unwrap(), "00112233445566778899aabbccddeeff");
        std::fs::write(&path, "secret").unwrap();
        let why = flags.seed().unwrap_err().to_string();
        assert!(why.contains("32 hexadecimal digits") && !why.contains("secret"), "{why}");
        let (_, task) = probe("digest --initialiser 7").unwrap().tasks().remove(0);
        assert_eq!(task.check().unwrap_err().field, "initialiser", "SipHash has none");
        assert!(probe("digest --payload 3").unwrap_err().contains("4 to 256"));
    }

    #[test]
    fn more_sources_than_the_engine_takes_are_refused_and_not_cut() {
        let (_, task) = probe("capacity --keys 20001").unwrap().tasks().remove(0);
        assert_eq!(task.check().unwrap_err().field, "sources");
    }
}
