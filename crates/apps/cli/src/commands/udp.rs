//! `netaware udp`: a stream of datagrams.

use std::path::PathBuf;

use anyhow::ensure;
use clap::{ArgGroup, Args, ValueEnum};
use netaware_io::stop::StopFlag;
use netaware_prober::{Pace, Progress, Target, UdpRequest};
use netaware_record::{HistogramShape, Record};
use netaware_units::{BitRate, ByteCount, SendRate, Span};
use netaware_wire::control::{MAX_BURST, UdpReceive, UdpSend};

use super::tcp::directions;
use crate::arrival_file;
use crate::exit;
use crate::flags::affinity::{self, Affinity};
use crate::flags::hist::Hist;
use crate::flags::output::{Format, OutputFlags};
use crate::flags::pace::Rate;
use crate::flags::quantity;
use crate::flags::series::SeriesFlags;
use crate::flags::target::TargetFlags;
use crate::measure::{Measurement, Measuring};

const LONG: &str = "\
Sends a stream of datagrams over each IP version in turns and tells what arrived, what the network lost and what a host \
dropped, reordering, duplicates and the gaps between arrivals.

Pace: -b sets a rate, --spacing the time from datagram to datagram, and -b 0 is as fast as this host can. With neither, a \
stream to another HOST runs at 1 Mbit/s as with iperf3, because an unpaced one can hurt everybody on the path; a few \
datagrams go before it, and where the path is seen to carry less, the stream runs at 80 % of that. It runs unpaced when \
--send mmsg or gso asks for batches, or against the responder that netaware starts itself on loopback. A paced stream \
always leaves datagram by datagram.";

fn after() -> String {
    format!(
        "\
Examples:
  netaware udp lab-b -b 100M                        100 Mbit/s for 10 seconds
  netaware udp lab-b --spacing 20us -l 64           one datagram every 20 us
  netaware udp lab-b --scan spacing=0us..100us+10us one measurement per spacing
  netaware udp lab-b --send gso --receive gro       as fast as possible
  netaware udp lab-b -R -b 50M --expect 'udp.loss<0.1%'
  netaware udp lab-b -n 300 -l 1400 --spacing 80us --format udpmon
  netaware udp lab-b --spacing 10ms --burst 50      what queues of a burst

{}",
        exit::HELP
    )
}

/// As iperf3, where the path carries so much.
const CAREFUL: SendRate = SendRate::at_least(1_000_000);
/// How long a stream that ends after `--packets` may take when no `--time` says it.
const PATIENCE_FOR_PACKETS: Span = Span::from_secs(600);

/// How datagrams are handed to the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Send {
    /// One call per datagram
    Single,
    /// Many datagrams per call (sendmmsg)
    Mmsg,
    /// One buffer cut up by the kernel or the card (UDP_SEGMENT)
    Gso,
    /// Paced only: one call per datagram ahead of its time, released by the queueing discipline
    /// (SO_TXTIME, fq)
    LaunchTime,
}

/// How datagrams are taken from the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Receive {
    /// One call per datagram, stamped by the kernel
    Single,
    /// Many datagrams per call (recvmmsg), stamped by the kernel
    Mmsg,
    /// Merged by the kernel (UDP_GRO): no stamp of each, no gaps
    Gro,
}

/// Measure UDP: rate, loss by network and host, gaps
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = after())]
#[command(group = ArgGroup::new("way").args(["reverse", "bidir"]))]
#[command(group = ArgGroup::new("pace").args(["rate", "spacing"]))]
pub(crate) struct Udp {
    #[command(flatten)]
    target: TargetFlags,
    /// How long to send over each IP version [default: 10s]
    #[arg(short, long, value_name = "TIME", value_parser = quantity::lasting)]
    time: Option<Span>,
    /// End after so many datagrams over each IP version (or after --time, 10min without)
    #[arg(short = 'n', long, value_name = "N", value_parser = quantity::whole::<u64>(1..=u64::MAX))]
    packets: Option<u64>,
    /// Payload of each datagram [default: 1452]
    #[arg(short, long, value_name = "SIZE", value_parser = quantity::datagram)]
    length: Option<u32>,
    /// HOST sends, this host receives
    #[arg(short = 'R', long)]
    reverse: bool,
    /// Both ways at the same time
    #[arg(long)]
    bidir: bool,
    /// Payload rate; 0 is as fast as possible
    #[arg(short = 'b', long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Time from datagram to datagram, with its unit: 20us; 0us is as fast as single datagrams go
    #[arg(long, value_name = "TIME", value_parser = quantity::time)]
    spacing: Option<Span>,
    /// Datagrams that leave back to back each time; --spacing is then from burst to burst
    #[arg(long, value_name = "N", default_value = "1", value_parser = quantity::whole::<u32>(1..=u64::from(MAX_BURST)))]
    burst: u32,
    /// Count the times between arrivals in bins of this width, from LOW on (0us), BINS of them
    /// (10000): 1us,100us,500
    #[arg(long, value_name = "WIDTH[,LOW[,BINS]]")]
    hist: Option<Hist>,
    /// Write number, sending time and arrival time of each datagram to this file as CSV (of the
    /// first 1,048,576 arrivals)
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Rates on Ethernet are those of frames with a VLAN tag
    #[arg(long)]
    vlan: bool,
    /// How datagrams leave: single, mmsg (sendmmsg), gso (segmentation offload), or launch-time
    /// (paced by an fq queueing discipline) [default: single when paced, else gso]
    #[arg(long, value_enum, value_name = "HOW", hide_possible_values = true)]
    send: Option<Send>,
    /// How they are taken in: single, mmsg (recvmmsg) or gro (receive offload, without gaps)
    /// [default: single when paced, else gro]
    #[arg(long, value_enum, value_name = "HOW", hide_possible_values = true)]
    receive: Option<Receive>,
    /// Socket buffers
    #[arg(short, long, value_name = "SIZE", value_parser = quantity::buffer)]
    window: Option<u32>,
    /// Time between interval lines; 0 shows none
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = quantity::interval)]
    interval: Span,
    /// Bind the thread that moves data here to this core; a second number, for the other host, is
    /// ignored
    #[arg(short = 'A', long, visible_alias = "affinity", value_name = "N[,M]")]
    cpu_affinity: Option<Affinity>,
    #[command(flatten)]
    series: SeriesFlags,
    #[command(flatten)]
    output: OutputFlags,
}

/// From datagram to datagram, or from burst to burst.
const MAX_GAP: Span = Span::from_secs(60);

impl Measuring for Udp {
    fn check(&self) -> anyhow::Result<()> {
        affinity::check(self.cpu_affinity.map(|cores| cores.local))?;
        self.check_gap()?;
        ensure!(
            self.log.is_none() || !self.series.is_given(),
            "--log holds the arrivals of one measurement: leave it out of a series"
        );
        self.log.as_deref().map_or(Ok(()), arrival_file::reserve)
    }

    fn measurement(&self) -> Measurement<'_> {
        Measurement {
            command: "udp",
            target: &self.target,
            output: &self.output,
            intervals: self.interval > Span::ZERO,
            notes: self.notes(),
        }
    }

    fn series(&self) -> &SeriesFlags {
        &self.series
    }

    fn measure(&self, target: Target, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
        let mut record = netaware_prober::udp(&self.request(target), stop, progress);
        if let Some(log) = &self.log {
            arrival_file::write(log, &mut record);
        }
        record
    }
}

impl Udp {
    fn request(&self, mut target: Target) -> UdpRequest {
        target.options.window = self.window;
        let defaults = UdpRequest::new(target);
        let limit = if self.packets.is_some() { PATIENCE_FOR_PACKETS } else { defaults.time };
        let pace = self.pace();
        UdpRequest {
            time: self.time.unwrap_or(limit),
            packets: self.packets,
            length: self.length.unwrap_or(defaults.length),
            directions: directions(self.reverse, self.bidir),
            pace,
            send: self.sending(pace),
            receive: self.receiving(pace),
            burst: self.burst,
            histogram: self.histogram(),
            log: self.log.is_some(),
            vlan: self.vlan,
            window: self.window,
            interval: if self.interval > Span::ZERO { self.interval } else { defaults.interval },
            affinity: affinity::local(self.cpu_affinity),
            ..defaults
        }
    }

    /// A rate, or a spacing, at which datagrams follow each other after more than a minute is no
    /// stream.
    fn check_gap(&self) -> anyhow::Result<()> {
        let length = self.length.unwrap_or_else(|| UdpRequest::new(Target::new("")).length);
        let size = ByteCount(u64::from(length) * u64::from(self.burst));
        if let Some(Rate::Limited(rate)) = self.rate {
            let least = BitRate::mean(size, MAX_GAP).map_or(1, |rate| rate.0 + 1);
            ensure!(
                rate.bit_rate().0 >= least,
                "-b {rate}: the next datagram of {} would leave after {}; with -l {length} the least is {}",
                ByteCount(length.into()),
                rate.bit_rate().time_for(size),
                BitRate(least)
            );
        }
        if let Some(spacing) = self.spacing {
            ensure!(spacing <= MAX_GAP, "--spacing {spacing} is more than {MAX_GAP}");
        }
        Ok(())
    }

    fn pace(&self) -> Pace {
        match (self.rate, self.spacing) {
            (Some(Rate::Limited(rate)), _) => Pace::Rate(rate),
            (Some(Rate::Unlimited), _) | (None, Some(Span::ZERO)) => Pace::Unlimited,
            (None, Some(spacing)) => Pace::Spacing(spacing),
            (None, None) if self.asks_for_batches() || self.target.is_own() => Pace::Unlimited,
            (None, None) => Pace::AtMost(CAREFUL),
        }
    }

    /// UDPmon's record has its moments, so it is counted for that too.
    fn histogram(&self) -> Option<HistogramShape> {
        let for_the_record = (self.output.format == Format::Udpmon).then(Hist::micros);
        self.hist.or(for_the_record).map(|hist| hist.0)
    }

    /// Batches make sense only without a pace, so asking for them is asking for none.
    fn asks_for_batches(&self) -> bool {
        matches!(self.send, Some(Send::Mmsg | Send::Gso))
    }

    fn sending(&self, pace: Pace) -> UdpSend {
        match (pace, self.send) {
            // A spacing of nothing is UDPmon's: no wait between datagrams that leave one by one.
            (Pace::Unlimited, None) if self.spacing.is_some() => UdpSend::Single,
            (Pace::Unlimited, None | Some(Send::Gso)) => UdpSend::Gso,
            (Pace::Unlimited, Some(Send::Mmsg)) => UdpSend::Mmsg,
            (Pace::Rate(_) | Pace::AtMost(_) | Pace::Spacing(_), Some(Send::LaunchTime)) => {
                UdpSend::LaunchTime
            }
            _ => UdpSend::Single,
        }
    }

    fn receiving(&self, pace: Pace) -> UdpReceive {
        match (self.receive, pace) {
            // Only datagrams that are stamped one by one have gaps to count.
            (Some(Receive::Mmsg), _) => UdpReceive::Mmsg,
            (None, Pace::Unlimited) if self.wants_each_arrival() => UdpReceive::Mmsg,
            (Some(Receive::Gro), _) | (None, Pace::Unlimited) => UdpReceive::Gro,
            (Some(Receive::Single) | None, _) => UdpReceive::Single,
        }
    }

    fn wants_each_arrival(&self) -> bool {
        self.histogram().is_some() || self.log.is_some() || self.spacing.is_some()
    }

    /// What a person may not expect of the pace chosen.
    fn notes(&self) -> Vec<&'static str> {
        let mut notes = Vec::new();
        let paced = self.pace() != Pace::Unlimited;
        if self.rate.is_none() && self.spacing.is_none() && paced {
            notes.push(
                "no rate given: 1 Mbit/s, as iperf3 does, or less where the path is seen to carry less; -b 0 is as fast as \
                 possible",
            );
        }
        if paced && self.asks_for_batches() {
            notes.push("a paced stream leaves datagram by datagram: --send has no effect");
        }
        if !paced && self.burst > 1 {
            notes.push("an unpaced stream is one burst: --burst has no effect without a rate or a spacing");
        }
        if self.receive == Some(Receive::Gro) && self.histogram().is_some() {
            notes.push("merged datagrams have no gaps: --hist has no effect with --receive gro");
        }
        if !paced && self.send == Some(Send::LaunchTime) {
            notes.push("an unpaced stream has no times to keep: --send launch-time has no effect");
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        udp: Udp,
    }

    fn udp(words: &str) -> Result<Udp, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace()));
        line.map(|line| line.udp).map_err(|e| e.to_string())
    }

    #[test]
    fn the_pace_decides_how_datagrams_leave_and_arrive() {
        use {UdpReceive as R, UdpSend as S};
        let careful = Pace::AtMost(CAREFUL);
        let rows = [
            ("h", careful, S::Single, R::Single),
            ("", Pace::Unlimited, S::Gso, R::Gro),
            ("h -b 0", Pace::Unlimited, S::Gso, R::Gro),
            ("h -b 5M", Pace::Rate(SendRate::at_least(5_000_000)), S::Single, R::Single),
            (
                "h -b 5M --send gso --receive gro",
                Pace::Rate(SendRate::at_least(5_000_000)),
                S::Single,
                R::Gro,
            ),
            ("h --spacing 20us", Pace::Spacing(Span::from_micros(20)), S::Single, R::Single),
            ("h --send gso --receive gro", Pace::Unlimited, S::Gso, R::Gro),
            ("h --send mmsg --receive mmsg", Pace::Unlimited, S::Mmsg, R::Mmsg),
            ("h --send single", careful, S::Single, R::Single),
            ("h -b 0 --send single --receive single", Pace::Unlimited, S::Single, R::Single),
            ("h --spacing 0us", Pace::Unlimited, S::Single, R::Mmsg),
            ("h -b 0 --hist 1us", Pace::Unlimited, S::Gso, R::Mmsg),
            ("h --spacing 1ms --format udpmon", Pace::Spacing(Span::from_millis(1)), S::Single, R::Single),
        ];
        for (n, (words, pace, send, receive)) in rows.into_iter().enumerate() {
            let r = udp(words).unwrap().request(Target::new("h"));
            assert_eq!((r.pace, r.send, r.receive), (pace, send, receive), "row {n}: {words}");
        }
    }

    #[test]
    fn what_is_not_obvious_is_said() {
        assert_eq!(udp("h").unwrap().notes().len(), 1);
        assert_eq!(udp("h -b 5M --send gso").unwrap().notes().len(), 1);
        for silent in ["", "h -b 5M", "h --send gso", "h --spacing 1ms"] {
            assert!(udp(silent).unwrap().notes().is_empty(), "{silent}");
        }
    }

    #[test]
    fn flags_reach_the_request() {
        let r = udp("h -t 5 -n 1000 -l 64 --bidir -w 1M -A 1").unwrap().request(Target::new("h"));
        assert_eq!((r.time, r.packets, r.length), (Span::from_secs(5), Some(1000), 64));
        assert_eq!((r.window, r.affinity), (Some(1 << 20), vec![1]));
    }

    #[test]
    fn contradictions_and_odd_values_are_refused() {
        for bad in [
            "h -b 1M --spacing 1ms",
            "h --spacing 5",
            "h --burst 0",
            "h -n 0",
            "h -l 23",
            "h --send gro",
            "h --hist 5",
        ] {
            assert!(udp(bad).is_err(), "{bad}");
        }
    }
}
