//! `netaware capacity`: the rate of the narrowest link.

use clap::{Args, ValueEnum};
use netaware_io::stop::StopFlag;
use netaware_prober::{CapacityMethod, Estimation, EstimationRequest, Progress, Target, estimate};
use netaware_record::Record;

use crate::exit;
use crate::flags::estimation::EstimationFlags;
use crate::flags::output::OutputFlags;
use crate::flags::series::SeriesFlags;
use crate::flags::target::TargetFlags;
use crate::measure::{Measurement, Measuring};

const LONG: &str = "\
Estimates the capacity of the path, the rate of its narrowest link, over each IP version in turns, from how far trains of \
packets are spread. The rate is that of whole IP packets. Nothing is filled for longer than a train; the mean load stays \
below --max-load.";

fn after() -> String {
    format!(
        "\
Examples:
  netaware capacity lab-b                    to lab-b, in seconds
  netaware capacity lab-b -R                 from lab-b
  netaware capacity lab-b --method pathrate  modes of many pairs, for loaded paths
  netaware capacity lab-b --expect 'capacity.up>90Mbit/s'

{}",
        exit::HELP
    )
}

/// Estimate the rate of the path's narrowest link
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = after())]
pub(crate) struct Capacity {
    #[command(flatten)]
    target: TargetFlags,
    /// auto (bulk, then pathrate where it leaves doubt), bulk, pathrate [default: auto]
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    method: Option<Method>,
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
    Bulk,
    Pathrate,
}

impl From<Method> for CapacityMethod {
    fn from(method: Method) -> Self {
        match method {
            Method::Auto => Self::Automatic,
            Method::Bulk => Self::Bulk,
            Method::Pathrate => Self::Pathrate,
        }
    }
}

impl Capacity {
    fn request(&self, target: Target) -> EstimationRequest {
        let method = self.method.map_or(CapacityMethod::Automatic, Into::into);
        self.estimation.fill(EstimationRequest::new(target, Estimation::Capacity(method)))
    }
}

impl Measuring for Capacity {
    fn measurement(&self) -> Measurement<'_> {
        Measurement {
            command: "capacity",
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
        estimate(&self.request(target), stop, progress)
    }
}
