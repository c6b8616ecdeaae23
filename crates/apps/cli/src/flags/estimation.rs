//! Flags of everything that estimates a path's rate from trains.

use clap::Args;
use netaware_prober::{Directions, EstimationRequest};
use netaware_units::{Share, Span};

use super::quantity;

/// How far, how long, how much.
#[derive(Debug, Args)]
pub(crate) struct EstimationFlags {
    /// HOST sends, this host receives
    #[arg(short = 'R', long, conflicts_with = "bidir")]
    reverse: bool,
    /// Both ways, one after the other
    #[arg(long)]
    bidir: bool,
    /// What each IP version and direction may take [default: 30s]
    #[arg(short, long, value_name = "TIME", value_parser = quantity::searching)]
    time: Option<Span>,
    /// Share of the path that the trains may use on average: 10% or 0.1 [default: 10%, or all of it
    /// where the method fills the path]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    max_load: Option<f64>,
    /// Largest IP packet, 576B..9000B [default: what fits the path]
    #[arg(long, value_name = "SIZE", value_parser = packet)]
    packet: Option<u32>,
    /// Of random distances, where the method has such: the same seed gives the same ones
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = quantity::whole::<u64>(0..=u64::MAX))]
    seed: u64,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<Share>() {
        Ok(Share(share)) if share > 0.0 => Ok(share),
        Ok(_) => Err("it must be a share above 0 and up to 100 %, as in '10%' or '0.1'".to_owned()),
        Err(error) => Err(error.to_string()),
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

impl EstimationFlags {
    /// The time that was asked for.
    pub(crate) fn time(&self) -> Option<Span> {
        self.time
    }

    pub(crate) fn fill(&self, request: EstimationRequest) -> EstimationRequest {
        let directions = match (self.reverse, self.bidir) {
            (true, _) => Directions::Reverse,
            (_, true) => Directions::Both,
            _ => Directions::Forward,
        };
        EstimationRequest {
            directions,
            time: self.time.unwrap_or(request.time),
            max_load: self.max_load.unwrap_or(request.max_load),
            packet: self.packet,
            seed: self.seed,
            ..request
        }
    }
}
