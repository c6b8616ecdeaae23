//! `netaware reach`: what a host answers that runs nothing for us.

use clap::{ArgGroup, Args};
use netaware_io::stop::StopFlag;
use netaware_prober::{Progress, ReachRequest, Target, reach};
use netaware_record::Record;
use netaware_units::Span;

use crate::exit;
use crate::flags::output::OutputFlags;
use crate::flags::probed::ProbedFlags;
use crate::flags::quantity;
use crate::flags::series::SeriesFlags;
use crate::measure::{Measurement, Measuring};

const LONG: &str = "\
Asks HOST with ICMP echoes, with TCP connections that it may accept or refuse, with UDP to a closed port, and over IPv4 for its \
clock by ICMP timestamps, over each IP version in turns: latency and loss, the way that was lossy where the host counts its \
answers, the way that queues where it tells its clock, and a rough capacity from echoes in pairs. Nobody has to run anything \
there.";

fn after() -> String {
    format!(
        "\
Examples:
  netaware reach example.org                 both IP versions, 5 s each
  netaware reach example.org --tcp-port 443
  netaware reach 192.0.2.1 -c 100 --gap 100ms
  netaware reach lab-b --expect 'reach.loss<1%'

Echoes need CAP_NET_RAW or an ICMP socket by net.ipv4.ping_group_range,
timestamps and the way of a loss CAP_NET_RAW; TCP and UDP need nothing.

{}",
        exit::HELP
    )
}

/// Measure what a host answers that runs nothing
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = after())]
#[command(group = ArgGroup::new("tcp_way").args(["tcp_port", "no_tcp"]))]
pub(crate) struct Reach {
    #[command(flatten)]
    target: ProbedFlags,
    /// Port that TCP connects to; a refusal is an answer too
    #[arg(long, value_name = "PORT", default_value_t = 80, value_parser = quantity::whole::<u16>(1..=65_535))]
    tcp_port: u16,
    /// Leave TCP out
    #[arg(long)]
    no_tcp: bool,
    /// What all of it may take, both IP versions together
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = quantity::searching)]
    time: Span,
    /// End sooner, after so many lone echoes over each IP version
    #[arg(short, long, value_name = "N", value_parser = quantity::whole::<u32>(1..=u64::from(u32::MAX)))]
    count: Option<u32>,
    /// Between questions
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = gap)]
    gap: Span,
    /// IP packet size of pairs, 576B..9000B [default: what fits the path]
    #[arg(long, value_name = "SIZE", value_parser = packet)]
    packet: Option<u32>,
    #[command(flatten)]
    series: SeriesFlags,
    #[command(flatten)]
    output: OutputFlags,
}

fn gap(text: &str) -> Result<Span, String> {
    match quantity::time(text)? {
        gap if gap < Span::from_millis(1) => {
            Err("a host that is asked more often rations its answers".to_owned())
        }
        gap if gap > Span::from_secs(10) => Err("it must be 10 s or less".to_owned()),
        gap => Ok(gap),
    }
}

fn packet(text: &str) -> Result<u32, String> {
    match text.parse::<netaware_units::ByteCount>() {
        Ok(size) => match u32::try_from(size.0) {
            Ok(size @ 576..=9000) => Ok(size),
            _ => Err("it must be between 576 and 9000 bytes".to_owned()),
        },
        Err(error) => Err(error.to_string()),
    }
}

impl Measuring for Reach {
    fn measurement(&self) -> Measurement<'_> {
        Measurement {
            command: "reach",
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
        let request = ReachRequest {
            time: self.time,
            count: self.count,
            gap: self.gap,
            tcp_port: (!self.no_tcp).then_some(self.tcp_port),
            packet: self.packet,
            ..ReachRequest::new(target)
        };
        reach(&request, stop, progress)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        reach: Reach,
    }

    #[test]
    fn a_port_of_tcp_is_not_taken_silently_where_tcp_is_left_out() {
        let parses = |words: &str| {
            Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace())).map(|line| line.reach)
        };
        assert_eq!(parses("h --no-tcp").map(|reach| reach.no_tcp).ok(), Some(true));
        assert_eq!(parses("h --tcp-port 443").map(|reach| reach.tcp_port).ok(), Some(443));
        assert!(parses("h --no-tcp --tcp-port 443").is_err());
        assert!(parses("h --gap 0").unwrap_err().to_string().contains("rations its answers"));
    }
}
