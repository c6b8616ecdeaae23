//! `netaware owd`: delay and loss of each way.

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;
use netaware_io::stop::StopFlag;
use netaware_prober::{OwdRequest, Progress, Slowing, Target, owd};
use netaware_record::Record;
use netaware_stats::patience::Waiting;
use netaware_units::Span;
use netaware_wire::proof::Key;
use netaware_wire::stamp::Mode;

use crate::exit;
use crate::flags::output::OutputFlags;
use crate::flags::reflector::ReflectorFlags;
use crate::flags::series::SeriesFlags;
use crate::flags::{key, quantity};
use crate::measure::{Measurement, Measuring};

const LONG: &str = "\
Sends STAMP packets (RFC 8762) to a reflector on HOST and tells for each way, over both IP versions at once: one-way delay, its \
variation, what was lost, reordered and duplicated there. Beside each one-way delay stands how far the two clocks may be \
off: by what they say of themselves, or at most by half of the round trip. 'netaware serve --stamp' is a reflector, as are \
many routers. A bare number for -t, -i or -W is seconds.";

fn after() -> String {
    format!(
        "\
Examples:
  netaware owd lab-b                        100 packets a second for 10 s
  netaware owd lab-b -c 100 -i 100ms --port 8620
  netaware owd lab-b --key-file key         with proof of a shared key
  netaware owd router.example.org -l 44B    the bare packets of RFC 8762
  netaware owd lab-b --expect 'owd.up.p95<20ms' --expect 'owd.down.loss<0.1%'

{}",
        exit::HELP
    )
}

/// Measure one-way delay and loss, each way
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = after())]
pub(crate) struct Owd {
    #[command(flatten)]
    target: ReflectorFlags,
    /// Packets over each IP version [default: as many as fit --time]
    #[arg(short, long, value_name = "N", value_parser = quantity::whole::<u64>(1..=100_000_000))]
    count: Option<u64>,
    /// How long to send
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = quantity::lasting, conflicts_with = "count")]
    time: Span,
    /// Time from packet to packet [default: 10ms, longer where the path carries less]
    #[arg(short, long, value_name = "TIME", value_parser = quantity::some_seconds)]
    interval: Option<Span>,
    /// UDP payload: 44B, or 48B and more, which lets questions to the reflector travel along
    /// [default: 128B; 220B with a key]
    #[arg(short, long, value_name = "SIZE", value_parser = quantity::datagram)]
    length: Option<u32>,
    /// After how long without an answer a packet is lost [default: four of the longest round trips
    /// so far, 1s at least; 5s before the first answer]
    #[arg(short = 'W', long, value_name = "TIME", value_parser = quantity::some_seconds)]
    timeout: Option<Span>,
    /// File with a key that the reflector shares; packets prove it. The variable NETAWARE_KEY can
    /// hold the key instead
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    #[command(flatten)]
    series: SeriesFlags,
    #[command(flatten)]
    output: OutputFlags,
}

impl Owd {
    fn key(&self) -> anyhow::Result<Option<Key>> {
        Ok(key::read(self.key_file.as_deref())?.map(Key::new).transpose()?)
    }

    fn length(&self, key: Option<&Key>) -> usize {
        let usual = if key.is_some() { WITH_KEY } else { USUAL };
        self.length.map_or(usual, |length| length as usize)
    }

    fn count(&self) -> u64 {
        let interval = self.interval.unwrap_or(USUAL_INTERVAL);
        let fitting = self.time.nanos() / interval.nanos().max(1);
        self.count.unwrap_or(fitting.max(1).cast_unsigned())
    }
}

impl Measuring for Owd {
    fn check(&self) -> anyhow::Result<()> {
        let key = self.key()?;
        let (least, length) = (Mode::of(key.as_ref()).base_len(), self.length(key.as_ref()));
        ensure!(
            length >= least,
            "the shortest packet has {least} B{}",
            if key.is_some() { " with a key" } else { "" }
        );
        Ok(())
    }

    fn measurement(&self) -> Measurement<'_> {
        Measurement {
            command: "owd",
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
        // Read and held against the length by `check`.
        let key = self.key().ok().flatten();
        let length = self.length(key.as_ref());
        let usual = OwdRequest::new(target);
        let request = OwdRequest {
            count: self.count(),
            interval: self.interval.unwrap_or(USUAL_INTERVAL),
            slowing: match (self.interval, self.count) {
                (Some(_), _) => Slowing::Never,
                (None, Some(_)) => Slowing::KeepsCount,
                (None, None) => Slowing::KeepsTime,
            },
            length,
            patience: self.timeout.unwrap_or(usual.patience),
            waiting: self.timeout.map_or(usual.waiting, |_| Waiting::Exactly),
            key,
            ..usual
        };
        owd(&request, stop, progress)
    }
}

/// Room for all questions.
const USUAL: usize = 128;
const USUAL_INTERVAL: Span = Span::from_millis(10);
/// The same with proofs.
const WITH_KEY: usize = 220;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        owd: Owd,
    }

    fn owd(words: &str) -> Owd {
        Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace())).unwrap().owd
    }

    #[test]
    fn flags_become_a_flow() {
        assert_eq!((owd("h").count(), owd("h").length(None)), (1000, 128));
        assert_eq!(owd("h -t 2s -i 100ms").count(), 20);
        assert_eq!(owd("h -c 7").count(), 7);
        assert_eq!(owd("h").target.0.target(None).unwrap().port, 862);
        assert_eq!(owd("h:8620").target.0.target(None).unwrap().port, 8620);
        let error = owd("h:861 -p 862").target.0.target(None).unwrap_err().to_string();
        assert_eq!(error, "HOST says port 861 and --port says 862: give one of them");
        assert!(owd("h -l 43").check().unwrap_err().to_string().contains("44 B"));
        assert!(owd("h -l 44").check().is_ok());
    }
}
