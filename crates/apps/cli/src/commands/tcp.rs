//! `netaware tcp`: bulk TCP with every knob.

use anyhow::ensure;
use clap::{ArgGroup, Args};
use netaware_io::stop::StopFlag;
use netaware_prober::{Directions, Progress, Target, TcpRequest};
use netaware_record::Bottleneck;
use netaware_record::Record;
use netaware_units::{ByteCount, Span};
use netaware_wire::control::MAX_STREAMS;

use crate::exit;
use crate::flags::affinity::{self, Affinity};
use crate::flags::bottleneck;
use crate::flags::output::OutputFlags;
use crate::flags::pace::Rate;
use crate::flags::quantity;
use crate::flags::series::SeriesFlags;
use crate::flags::target::TargetFlags;
use crate::measure::{Measurement, Measuring};

const LONG: &str = "\
Measures TCP throughput as the receiver counts it, over each IP version in turns. The start is left out until slow start \
is over (or for --omit), and the result says who was the limit. Flags mean what they mean to iperf3; a bare number for \
-t, -i or -O is seconds.

With --block-spacing one block leaves every so often, to the streams in turn; a stream that cannot take its block is \
passed over, so none holds up the others. --bottleneck tells the rate of the narrowest link, against which the transfer \
time ratio of RFC 6349 is taken.";

fn after() -> String {
    format!(
        "\
Examples:
  netaware tcp lab-b                 10 seconds to lab-b over each IP version
  netaware tcp lab-b -R -P 4         from lab-b, four streams
  netaware tcp lab-b --bidir -4      both ways at once, IPv4 only
  netaware tcp lab-b -n 1GiB -C bbr  one gibibyte with BBR
  netaware tcp lab-b -l 1000 --block-spacing 100us --blocks 10000 -P 2
  netaware tcp lab-b --expect 'tcp.up>900Mbit/s' --format json

{}",
        exit::HELP
    )
}

/// How long a transfer that ends after `--bytes` or `--blocks` may take when no `--time` says it.
const PATIENCE_FOR_BYTES: Span = Span::from_secs(600);

/// Measure TCP throughput
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = after())]
#[command(group = ArgGroup::new("way").args(["reverse", "bidir"]))]
#[command(group = ArgGroup::new("amount").args(["bytes", "blocks"]))]
#[command(group = ArgGroup::new("pace").args(["rate", "block_spacing"]))]
#[command(group = ArgGroup::new("handing").args(["zerocopy", "block_spacing"]))]
pub(crate) struct Tcp {
    #[command(flatten)]
    target: TargetFlags,
    /// How long to send over each IP version [default: 10s]
    #[arg(short, long, value_name = "TIME", value_parser = quantity::lasting)]
    time: Option<Span>,
    /// End after so much payload over each IP version (or after --time, 10min without)
    #[arg(short = 'n', long, value_name = "SIZE", value_parser = quantity::some_bytes)]
    bytes: Option<ByteCount>,
    /// End after so many blocks of --length over each IP version, all streams together
    #[arg(long, value_name = "N", value_parser = quantity::whole::<u64>(1..=u64::MAX))]
    blocks: Option<u64>,
    /// Send one block each TIME, to the streams in turn: 100us; 0 is no wait
    #[arg(long, value_name = "TIME", value_parser = quantity::spacing_or_none)]
    block_spacing: Option<Span>,
    /// Parallel streams
    #[arg(short = 'P', long, value_name = "N", default_value = "1", value_parser = quantity::whole::<u16>(1..=u64::from(MAX_STREAMS)))]
    streams: u16,
    /// Bytes per write [default: what has proven fastest]
    #[arg(short, long, value_name = "SIZE", value_parser = quantity::block)]
    length: Option<u32>,
    /// HOST sends, this host receives
    #[arg(short = 'R', long)]
    reverse: bool,
    /// Both ways at the same time
    #[arg(long)]
    bidir: bool,
    /// Payload rate of all streams together; 0 is no limit
    #[arg(short = 'b', long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Socket buffers instead of the kernel's tuning
    #[arg(short, long, value_name = "SIZE", value_parser = quantity::buffer)]
    window: Option<u32>,
    /// Send small segments at once (TCP_NODELAY)
    #[arg(short = 'N', long, visible_alias = "no-delay")]
    nodelay: bool,
    /// Largest segment (TCP_MAXSEG)
    #[arg(short = 'M', long, visible_alias = "set-mss", value_name = "BYTES", value_parser = quantity::whole::<u32>(88..=65_495))]
    mss: Option<u32>,
    /// Congestion control of the sender: cubic, bbr, …
    #[arg(short = 'C', long, value_name = "NAME")]
    congestion: Option<String>,
    /// Time between interval lines; 0 shows none
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = quantity::interval)]
    interval: Span,
    /// Leave out exactly so much at the start instead of waiting for the end of slow start
    #[arg(short = 'O', long, value_name = "TIME", value_parser = quantity::seconds)]
    omit: Option<Span>,
    /// Bind the threads that move data here to this core; a second number, for the other host, is
    /// ignored
    #[arg(short = 'A', long, visible_alias = "affinity", value_name = "N[,M]")]
    cpu_affinity: Option<Affinity>,
    /// Send without copying from user space
    #[arg(short = 'Z', long)]
    zerocopy: bool,
    /// Show each stream, and keep its TCP over time in the record
    #[arg(long)]
    per_stream: bool,
    /// Rate of the narrowest link, for the transfer time ratio of RFC 6349; BYTES is what it counts
    /// beside each IP packet: 38 for Ethernet (the default), 0 for none
    #[arg(long, value_name = "RATE[,BYTES]", value_parser = bottleneck::parse)]
    bottleneck: Option<Bottleneck>,
    #[command(flatten)]
    series: SeriesFlags,
    #[command(flatten)]
    output: OutputFlags,
}

impl Measuring for Tcp {
    fn check(&self) -> anyhow::Result<()> {
        affinity::check(self.cpu_affinity.map(|cores| cores.local))?;
        let both_send = self.reverse || self.bidir;
        if let (Some(omit), time) = (self.omit, self.time()) {
            ensure!(omit < time, "--omit {omit} leaves nothing of the {time} that the transfer lasts");
        }
        ensure!(
            !(both_send && self.target.has_flow_label()),
            "HOST cannot choose the flow label of a TCP connection that it accepts: leave out --flow-label, or -R and --bidir"
        );
        Ok(())
    }

    fn measurement(&self) -> Measurement<'_> {
        Measurement {
            command: "tcp",
            target: &self.target,
            output: &self.output,
            intervals: self.interval > Span::ZERO,
            notes: Vec::new(),
        }
    }

    fn series(&self) -> &SeriesFlags {
        &self.series
    }

    fn measure(&self, target: Target, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
        netaware_prober::tcp(&self.request(target), stop, progress)
    }
}

impl Tcp {
    /// How long the transfer lasts; of one that is limited in bytes, at most.
    fn time(&self) -> Span {
        let is_counted = self.bytes.is_some() || self.blocks.is_some();
        self.time.unwrap_or(if is_counted { PATIENCE_FOR_BYTES } else { TcpRequest::TIME })
    }

    fn request(&self, mut target: Target) -> TcpRequest {
        target.options.window = self.window;
        target.options.mss = self.mss;
        target.options.nodelay = self.nodelay;
        target.options.congestion.clone_from(&self.congestion);
        let defaults = TcpRequest::new(target);
        TcpRequest {
            time: self.time(),
            bytes: self.bytes,
            blocks: self.blocks,
            block_spacing: self.block_spacing.filter(|spacing| *spacing > Span::ZERO),
            streams: self.streams,
            length: self.length,
            directions: directions(self.reverse, self.bidir),
            rate: self.rate.and_then(Rate::limit),
            nodelay: self.nodelay,
            interval: if self.interval > Span::ZERO { self.interval } else { defaults.interval },
            omit: self.omit,
            affinity: affinity::local(self.cpu_affinity),
            zerocopy: self.zerocopy,
            per_stream: self.per_stream,
            bottleneck: self.bottleneck,
            ..defaults
        }
    }
}

/// What `-R` and `--bidir` say; clap has seen to it that not both are given.
pub(super) fn directions(reverse: bool, bidir: bool) -> Directions {
    match (reverse, bidir) {
        (_, true) => Directions::Both,
        (true, false) => Directions::Reverse,
        (false, false) => Directions::Forward,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use netaware_units::BitRate;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        tcp: Tcp,
    }

    fn request(words: &str) -> Result<TcpRequest, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace()));
        line.map(|line| line.tcp.request(Target::new("h"))).map_err(|e| e.to_string())
    }

    #[test]
    fn an_iperf3_users_line_means_the_same_here() {
        let r = request("h -p 99 -t 5 -P 4 -R -l 128K -w 4M -N -M 1400 -C bbr -i 0.5 -O 2 -A 1 -Z -b 1G")
            .unwrap();
        assert_eq!((r.time, r.streams, r.directions), (Span::from_secs(5), 4, Directions::Reverse));
        assert_eq!((r.length, r.target.options.window), (Some(131_072), Some(4 << 20)));
        assert_eq!((r.target.options.mss, r.nodelay), (Some(1400), true));
        assert_eq!(r.target.options.congestion.as_deref(), Some("bbr"));
        assert_eq!((r.interval, r.omit), (Span::from_millis(500), Some(Span::from_secs(2))));
        assert_eq!(
            (r.affinity, r.zerocopy, r.rate),
            (vec![1], true, Some(netaware_units::SendRate::at_least(1_000_000_000)))
        );
    }

    #[test]
    fn bytes_end_a_transfer_that_has_no_time() {
        let r = request("h -n 1GiB").unwrap();
        assert_eq!((r.bytes, r.time), (Some(ByteCount(1 << 30)), PATIENCE_FOR_BYTES));
        assert_eq!(request("h -n 1M -t 3").unwrap().time, Span::from_secs(3));
        assert_eq!(request("h").unwrap().time, Span::from_secs(10));
    }

    #[test]
    fn blocks_and_their_spacing_reach_the_request() {
        let r = request("h -l 1000 --block-spacing 100us --blocks 10000 -P 2 --per-stream").unwrap();
        assert_eq!((r.blocks, r.block_spacing), (Some(10_000), Some(Span::from_micros(100))));
        assert_eq!(
            (r.bytes_in_all(), r.time, r.per_stream),
            (Some(ByteCount(10_000_000)), PATIENCE_FOR_BYTES, true)
        );
        for none in ["h --block-spacing 0", "h --block-spacing 0us"] {
            assert_eq!(request(none).unwrap().block_spacing, None, "{none}");
        }
        let link = request("h --bottleneck 10M,0").unwrap().bottleneck.unwrap();
        assert_eq!((link.rate, link.overhead), (BitRate(10_000_000), 0));
        assert_eq!(request("h -P 512 -l 8 -w 64KiB").unwrap().streams, 512);
    }

    #[test]
    fn an_omitted_start_leaves_something_of_the_transfer() {
        let check = |words: &str| {
            let line = Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace())).unwrap();
            line.tcp.check().map_err(|error| error.to_string())
        };
        let nothing =
            |omit, time| Err(format!("--omit {omit} leaves nothing of the {time} that the transfer lasts"));
        assert_eq!(check("h -O 5 -t 2"), nothing("5.00 s", "2.00 s"));
        assert_eq!(check("h -O 1s -t 1s"), nothing("1.00 s", "1.00 s"));
        assert_eq!(check("h -O 10"), nothing("10.0 s", "10.0 s"));
        assert_eq!((check("h -O 1 -t 2"), check("h -O 10 -n 1G")), (Ok(()), Ok(())));
    }

    #[test]
    fn what_clashes_is_refused() {
        let rows = [
            ("h -n 1M --blocks 5", "--bytes <SIZE>' cannot be used with '--blocks <N>"),
            ("h -b 1M --block-spacing 1ms", "--rate <RATE>' cannot be used with '--block-spacing <TIME>"),
            ("h -Z --block-spacing 1ms", "--zerocopy' cannot be used with '--block-spacing <TIME>"),
        ];
        for (words, want) in rows {
            let error = request(words).unwrap_err();
            assert!(error.contains(want), "{words}: {error}");
        }
    }

    #[test]
    fn directions_exclude_each_other() {
        assert_eq!(request("h --bidir").unwrap().directions, Directions::Both);
        assert!(request("h --bidir -R").unwrap_err().contains("cannot be used with"));
    }

    #[test]
    fn no_intervals_is_still_measured_in_intervals() {
        assert_eq!(request("h -i 0").unwrap().interval, Span::from_secs(1));
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for bad in [
            "h --blocks 0",
            "h --block-spacing 61s",
            "h -P 513",
            "h -P 0",
            "h -t 0",
            "h -M 10",
            "h -l 0",
            "h -l 17MiB",
            "h -w 4G",
            "h -b fast",
            "h -A x",
        ] {
            assert!(request(bad).is_err(), "{bad}");
        }
    }
}
