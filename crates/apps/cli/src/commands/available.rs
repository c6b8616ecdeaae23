//! `netaware available`: what other traffic leaves of the path.

use anyhow::ensure;
use clap::{Args, ValueEnum};
use netaware_io::stop::StopFlag;
use netaware_prober::{AvailableMethod, Estimation, EstimationRequest, Follow, Progress, Target, estimate};
use netaware_record::Record;
use netaware_units::{BitRate, Span};

use crate::exit;
use crate::flags::estimation::EstimationFlags;
use crate::flags::output::OutputFlags;
use crate::flags::quantity;
use crate::flags::series::SeriesFlags;
use crate::flags::target::TargetFlags;
use crate::measure::{Measurement, Measuring};

const LONG: &str = "\
Estimates the available bandwidth of the path, what other traffic leaves of its tightest link, over each IP version in \
turns, without filling it. The rate is that of whole IP packets. The methods 'maximum' and 'maximum-c' do fill it, and tell \
the highest rate at which packets came (RFC 9097).";

fn after() -> String {
    format!(
        "\
Examples:
  netaware available lab-b                    to lab-b
  netaware available lab-b -R --method curve  from lab-b, in five seconds
  netaware available lab-b --method spruce --link-rate 100Mbit/s
  netaware available lab-b --watch            until stopped, a line every 10 seconds
  netaware available lab-b --every 1min --for 1h --output hour.csv --format csv

{}",
        exit::HELP
    )
}

/// Estimate what other traffic leaves of the path
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = after())]
pub(crate) struct Available {
    #[command(flatten)]
    target: TargetFlags,
    /// auto (curve, confirmed by slops), curve, slops, chirp, spruce, maximum, maximum-c [default:
    /// auto]
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    method: Option<Method>,
    /// Rate of the tight link, for spruce
    #[arg(long, value_name = "RATE", value_parser = quantity::some_rate)]
    link_rate: Option<BitRate>,
    /// Follow the path until stopped, or for --time: IP versions and directions take turns, each
    /// with a line per --interval; the method is then chirp, unless another is named
    #[arg(long, conflicts_with_all = ["scan", "every", "lasting", "times", "resume"])]
    watch: bool,
    /// From figure to figure with --watch
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = quantity::some_seconds, requires = "watch", conflicts_with_all = ["scan", "every", "resume"])]
    interval: Span,
    #[command(flatten)]
    estimation: EstimationFlags,
    #[command(flatten)]
    series: SeriesFlags,
    #[command(flatten)]
    output: OutputFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    Auto,
    Curve,
    Slops,
    Chirp,
    Spruce,
    Maximum,
    MaximumC,
}

impl Available {
    fn method(&self) -> AvailableMethod {
        let usual = if self.watch { Method::Chirp } else { Method::Auto };
        match self.method.unwrap_or(usual) {
            Method::Auto => AvailableMethod::Automatic,
            Method::Curve => AvailableMethod::Curve,
            Method::Slops => AvailableMethod::Slops,
            Method::Chirp => AvailableMethod::Chirp,
            Method::Spruce => AvailableMethod::Spruce(self.link_rate.unwrap_or_default()),
            Method::Maximum => AvailableMethod::MaximumB,
            Method::MaximumC => AvailableMethod::MaximumC,
        }
    }

    fn request(&self, target: Target) -> EstimationRequest {
        let request =
            self.estimation.fill(EstimationRequest::new(target, Estimation::Available(self.method())));
        if !self.watch {
            return request;
        }
        let follow = Follow { interval: self.interval, lasting: self.estimation.time() };
        let usual = EstimationRequest::new(request.target.clone(), request.estimation).time;
        EstimationRequest { follow: Some(follow), time: request.time.min(usual), ..request }
    }
}

impl Measuring for Available {
    fn check(&self) -> anyhow::Result<()> {
        let is_spruce = self.method == Some(Method::Spruce);
        ensure!(
            is_spruce == self.link_rate.is_some(),
            "--link-rate is the rate of the tight link, which --method spruce has to know and no other takes"
        );
        ensure!(
            !self.watch || !matches!(self.method, Some(Method::Maximum | Method::MaximumC)),
            "--watch with a method that fills the path would leave nothing to others: use chirp, curve, slops or spruce"
        );
        Ok(())
    }

    fn measurement(&self) -> Measurement<'_> {
        Measurement {
            command: "available",
            target: &self.target,
            output: &self.output,
            intervals: self.watch,
            notes: Vec::new(),
        }
    }

    fn series(&self) -> &SeriesFlags {
        &self.series
    }

    fn measure(&self, target: Target, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
        estimate(&self.request(target), stop, progress)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        available: Available,
    }

    /// What they belong to excludes the option that was given, so the parser did not miss it.
    #[test]
    fn options_of_a_series_and_of_a_watch_are_not_taken_silently_by_the_other() {
        let parses = |words: &str| {
            Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace()))
                .map(|line| line.available)
        };
        for good in ["h --watch -t 5", "h --watch --interval 2", "h --every 5 --for 5"] {
            assert!(parses(good).is_ok(), "{good}");
        }
        for bad in [
            "h --watch --for 5",
            "h --watch --times 2",
            "h --every 5 --interval 2",
            "h --scan time=5,6 --interval 2",
            "h --interval 2",
        ] {
            assert!(parses(bad).is_err(), "{bad}");
        }
    }
}
