//! `netaware matrix`: short transfers by block size.

use anyhow::{bail, ensure};
use clap::{Args, ValueEnum};
use netaware_io::stop::StopFlag;
use netaware_prober::{MatrixRequest, Pairs, Progress, Target};
use netaware_record::{MatrixProtocol, Record};
use netaware_units::{ByteCount, Span};
use netaware_wire::control::MAX_TCP_LENGTH;

use crate::exit;
use crate::flags::output::OutputFlags;
use crate::flags::quantity;
use crate::flags::series::SeriesFlags;
use crate::flags::target::TargetFlags;
use crate::measure::{Measurement, Measuring};

const LONG: &str = "\
Sends short transfers of several sizes in blocks of several sizes with TCP, TCP_NODELAY and UDP, over each IP version in \
turns, and tells time and throughput at both ends: where do small writes cost, and with which protocol?

By default these 17 pairs, three times each (1 kB is 1000 bytes; UDP takes blocks of 50 kB for the last):

  1 kB    in blocks of 50, 100, 500 B and 1 kB
  10 kB   in blocks of 50, 100, 500 B, 1, 5 and 10 kB
  100 kB  in blocks of 50, 100, 500 B, 1, 5, 10 and 100 kB

A UDP block is one datagram: at least 24 B, at most 65,507 B.";

fn after() -> String {
    format!(
        "\
Examples:
  netaware matrix lab-b                             all 17 pairs, three runs
  netaware matrix lab-b --protocols tcp,udp --runs 9
  netaware matrix lab-b --bytes 1MB --blocks 100B,1kB,10kB,100kB
  netaware matrix lab-b --format csv                every run a row
  netaware results plot last                        throughput by block size

{}",
        exit::HELP
    )
}

/// More would fill a record of gigabytes.
const MOST_TRANSFERS: u64 = 20_000;
/// A transfer is a short one.
const MOST_BYTES: u64 = 1_000_000_000;

/// What carries the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Protocol {
    /// TCP, which may join small blocks
    Tcp,
    /// TCP that sends each block at once
    TcpNodelay,
    /// A datagram per block
    Udp,
}

impl From<Protocol> for MatrixProtocol {
    fn from(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Tcp => Self::Tcp,
            Protocol::TcpNodelay => Self::TcpNodelay,
            Protocol::Udp => Self::Udp,
        }
    }
}

/// Measure short transfers by protocol, total and block size
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = after())]
pub(crate) struct Matrix {
    #[command(flatten)]
    target: TargetFlags,
    /// tcp, tcp-nodelay and udp, or some of them [default: all]
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',', hide_possible_values = true)]
    protocols: Vec<Protocol>,
    /// Totals: every one in every block that is not larger [default with --blocks: 1kB,10kB,100kB]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = total)]
    bytes: Vec<ByteCount>,
    /// Block sizes [default with --bytes: 50B,100B,500B,1kB,5kB,10kB,100kB]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = block)]
    blocks: Vec<ByteCount>,
    /// How often each is run over each IP version
    #[arg(long, value_name = "N", default_value = "3", value_parser = quantity::whole::<u16>(1..=1000))]
    runs: u16,
    /// End a transfer that takes longer
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::some_seconds)]
    patience: Span,
    #[command(flatten)]
    series: SeriesFlags,
    #[command(flatten)]
    output: OutputFlags,
}

fn total(text: &str) -> Result<ByteCount, String> {
    size(text, MOST_BYTES)
}

fn block(text: &str) -> Result<ByteCount, String> {
    size(text, u64::from(MAX_TCP_LENGTH))
}

fn size(text: &str, most: u64) -> Result<ByteCount, String> {
    match text.parse::<ByteCount>() {
        Ok(size) if (1..=most).contains(&size.0) => Ok(size),
        Ok(_) => Err(format!("it must be between 1 and {most} bytes")),
        Err(error) => Err(error.to_string()),
    }
}

impl Measuring for Matrix {
    fn check(&self) -> anyhow::Result<()> {
        check(&self.request(Target::new("")))
    }

    fn measurement(&self) -> Measurement<'_> {
        Measurement {
            command: "matrix",
            target: &self.target,
            output: &self.output,
            intervals: false,
            notes: Vec::new(),
        }
    }

    fn series(&self) -> &SeriesFlags {
        &self.series
    }

    fn measure(&self, target: Target, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
        netaware_prober::matrix(&self.request(target), stop, progress)
    }
}

impl Matrix {
    fn request(&self, target: Target) -> MatrixRequest {
        let defaults = MatrixRequest::new(target);
        let mut protocols: Vec<MatrixProtocol> = self.protocols.iter().map(|given| (*given).into()).collect();
        protocols.sort_unstable();
        protocols.dedup();
        MatrixRequest {
            protocols: if protocols.is_empty() { defaults.protocols } else { protocols },
            pairs: self.pairs(),
            runs: self.runs,
            patience: self.patience,
            ..defaults
        }
    }

    fn pairs(&self) -> Pairs {
        if self.bytes.is_empty() && self.blocks.is_empty() {
            return Pairs::Table;
        }
        let or = |given: &Vec<ByteCount>, default: Vec<u64>| {
            if given.is_empty() { default.into_iter().map(ByteCount).collect() } else { given.clone() }
        };
        let totals = Pairs::TABLE.iter().map(|(bytes, _)| *bytes).collect();
        let blocks = Pairs::TABLE.last().map(|(_, blocks)| blocks.to_vec()).unwrap_or_default();
        Pairs::Each { bytes: or(&self.bytes, totals), blocks: or(&self.blocks, blocks) }
    }
}

fn check(request: &MatrixRequest) -> anyhow::Result<()> {
    let transfers = request.transfers();
    if transfers == 0 {
        bail!("every block of --blocks is larger than every total of --bytes: nothing is left to send");
    }
    ensure!(
        transfers <= MOST_TRANSFERS,
        "that would be {transfers} transfers over each IP version, and {MOST_TRANSFERS} is the most: give fewer --runs, \
         --bytes or --blocks"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        matrix: Matrix,
    }

    fn request(words: &str) -> Result<MatrixRequest, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace()));
        let request = line.map_err(|e| e.to_string())?.matrix.request(Target::new("h"));
        check(&request).map_err(|e| e.to_string())?;
        Ok(request)
    }

    #[test]
    fn without_flags_it_is_the_table() {
        let request = request("h").unwrap();
        assert_eq!((request.pairs.clone(), request.runs), (Pairs::Table, 3));
        assert_eq!(request.protocols, MatrixProtocol::ALL);
        assert_eq!(request.transfers(), 153);
    }

    #[test]
    fn lists_are_read_with_their_units() {
        let request =
            request("h --protocols udp,tcp,udp --bytes 1MB,64KiB --blocks 100,1kB --runs 2").unwrap();
        assert_eq!(request.protocols, [MatrixProtocol::Tcp, MatrixProtocol::Udp]);
        let sizes = |of: &[u64]| of.iter().copied().map(ByteCount).collect::<Vec<_>>();
        let each = Pairs::Each { bytes: sizes(&[1_000_000, 65_536]), blocks: sizes(&[100, 1000]) };
        assert_eq!((request.pairs.clone(), request.transfers()), (each, 16));
    }

    #[test]
    fn one_list_takes_the_other_from_the_table() {
        assert_eq!(request("h --blocks 1kB --protocols tcp").unwrap().transfers(), 9);
        assert_eq!(request("h --bytes 10kB --protocols tcp").unwrap().transfers(), 18);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let rows = [
            ("h --bytes 100 --blocks 1kB", "every block of --blocks is larger"),
            ("h --runs 1000", "that would be 51000 transfers"),
            ("h --runs 0", "it must be a whole number from 1 to 1000"),
            ("h --blocks 2MB", "it must be between 1 and 1048576 bytes"),
            ("h --bytes 2GB", "it must be between 1 and 1000000000 bytes"),
            ("h --bytes 1kB,", "does not start with a decimal number"),
            ("h --protocols sctp", "invalid value 'sctp'"),
            ("h --patience 0", "it must be more than zero"),
        ];
        for (words, why) in rows {
            let error = request(words).unwrap_err();
            assert!(error.contains(why), "{words}: {error}");
        }
    }
}
