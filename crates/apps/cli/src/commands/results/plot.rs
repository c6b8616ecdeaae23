//! `netaware results plot`: a picture of a result or of a series.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::Place;
use crate::exit::Exit;
use crate::plot::source::Source;
use crate::plot::{self, Kind, Size};
use crate::sink::{self, Sink};

const LONG: &str = "\
Draws a result, or all results of a series, as SVG or PNG. Without --what the picture follows from what was measured:

  spacing    rate over spacing of a udp scan, log by log with its 1/t line, and loss
  size       round trip over size of a latency scan, with a fitted line
  option     rate, loss and round trip over any other scanned option
  time       the same over the time of a repeated measurement
  block      throughput over block size of a matrix
  intervals  rate over time within one tcp or udp result
  histogram  the distribution of round trips or of gaps between datagrams

IPv4 is blue and IPv6 is vermilion in all of them.";

/// Draw a saved result or series as SVG or PNG
#[derive(Debug, Args)]
#[command(long_about = LONG)]
pub(super) struct Plot {
    /// ID of a result or of a series, its beginning, or 'last': the newest result, or the series
    /// that it belongs to
    #[arg(value_name = "ID")]
    id: String,
    /// File to write, .svg or .png; '-' writes SVG to stdout [default: netaware-ID.svg]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What to show: spacing, size, option, time, block, intervals or histogram [default: what
    /// fits]
    #[arg(long, value_enum, value_name = "KIND", hide_possible_values = true)]
    what: Option<Kind>,
    /// Width and height in pixels [default: 1200x750, higher with many panels]
    #[arg(long, value_name = "WxH")]
    size: Option<Size>,
    #[command(flatten)]
    place: Place,
}

impl Plot {
    /// Reads, draws, writes.
    ///
    /// # Errors
    /// Nothing has the ID, the kind does not fit, or the file cannot be written.
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let source = Source::find(&self.place.read()?, &self.id)?;
        let picture = plot::picture(&source, self.what)?;
        let size = self.size.unwrap_or_else(|| Size::usual(picture.panels.len()));
        let path = match &self.output {
            Some(path) if path.as_os_str() == "-" => {
                Sink::Stdout.write(plot::to_svg(&picture, size)?.as_bytes())?;
                return Ok(Exit::Done);
            }
            Some(path) => path.clone(),
            None => PathBuf::from(format!("netaware-{}.svg", self.id)),
        };
        plot::save(&picture, size, &path)?;
        writeln!(sink::stdout(), "wrote {}", path.display())?;
        Ok(Exit::Done)
    }
}
