//! The kinds of pictures, and which fits what.

mod block;
mod histogram;
mod intervals;
mod option;
mod over;
mod size;
mod spacing;
mod time;

use anyhow::bail;
use clap::ValueEnum;
use netaware_record::Outcome;

use super::picture::{Panel, Picture};
use super::source::Source;
use crate::render::figures::instant;

/// What to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Rate over spacing of a udp scan, with loss
    Spacing,
    /// Round trip over size of a latency scan, with a fitted line
    Size,
    /// The main figures over the scanned option
    Option,
    /// The main figures over the time of a repeated measurement
    Time,
    /// Throughput over block size of a matrix
    Block,
    /// Rate over time within one tcp or udp result
    Intervals,
    /// The distribution of round trips or of gaps between datagrams
    Histogram,
}

/// What a kind makes of a source.
#[derive(Debug)]
struct Sketch {
    /// "rate over spacing".
    what: String,
    panels: Vec<Panel>,
    remarks: Vec<String>,
}

impl Kind {
    /// The first that fits is shown when none is asked for.
    const ALL: [Self; 7] =
        [Self::Spacing, Self::Size, Self::Option, Self::Time, Self::Block, Self::Intervals, Self::Histogram];

    fn word(self) -> &'static str {
        match self {
            Self::Spacing => "spacing",
            Self::Size => "size",
            Self::Option => "option",
            Self::Time => "time",
            Self::Block => "block",
            Self::Intervals => "intervals",
            Self::Histogram => "histogram",
        }
    }

    /// `None` when it does not fit, or has nothing to show.
    fn sketch(self, source: &Source) -> Option<Sketch> {
        let mut sketch = match (self, source) {
            (Self::Spacing, Source::Series(series)) => spacing::sketch(series),
            (Self::Size, Source::Series(series)) => size::sketch(series),
            (Self::Option, Source::Series(series)) => option::sketch(series),
            (Self::Time, Source::Series(series)) => time::sketch(series),
            (Self::Block, Source::One(record)) => block::sketch(record),
            (Self::Intervals, Source::One(record)) => intervals::sketch(record),
            (Self::Histogram, Source::One(record)) => histogram::sketch(record),
            _ => None,
        }?;
        sketch.panels.retain(|panel| !panel.is_empty());
        (!sketch.panels.is_empty()).then_some(sketch)
    }
}

/// The picture of a source, of the kind asked for or of the one that fits best.
///
/// # Errors
/// The kind does not fit, or none does; the sentence says which would.
pub(crate) fn picture(source: &Source, kind: Option<Kind>) -> anyhow::Result<Picture> {
    let of = |kind: Kind| kind.sketch(source);
    if let Some(sketch) = kind.map_or_else(|| Kind::ALL.into_iter().find_map(of), of) {
        return Ok(titled(source, sketch));
    }
    let fitting: Vec<&str> =
        Kind::ALL.into_iter().filter(|kind| of(*kind).is_some()).map(Kind::word).collect();
    let thing = match source {
        Source::One(record) => format!("this '{}' result", record.command),
        Source::Series(series) => format!("this series of '{}' results", series.command),
    };
    match (kind, fitting.as_slice()) {
        (Some(kind), [_, ..]) => {
            bail!(
                "no picture of kind '{}' can be made of {thing}: use --what {}",
                kind.word(),
                fitting.join(" or ")
            )
        }
        _ => bail!("no picture can be made of {thing}: it has no figures over time, size or any option"),
    }
}

/// Says what is not in the picture, or not to its end.
fn cut(source: &Source) -> Option<String> {
    match source {
        Source::One(record) => {
            let said = "the measurement failed: this is what was measured before";
            (record.outcome == Outcome::Failed).then(|| said.to_owned())
        }
        Source::Series(series) => match series.points.iter().filter(|point| !point.is_whole).count() {
            0 => None,
            1 => Some("1 point is left out or incomplete, because it failed".to_owned()),
            cut => Some(format!("{cut} points are left out or incomplete, because they failed")),
        },
    }
}

fn titled(source: &Source, sketch: Sketch) -> Picture {
    let (host, at, label) = match source {
        Source::One(record) => (&record.request.host, &record.started_at_utc, &record.label),
        Source::Series(series) => (&series.host, &series.started_at, &series.label),
    };
    let host = if host.is_empty() { "loopback" } else { host };
    let mut parts = vec![instant(at)];
    parts.extend(label.iter().map(|label| format!("\u{201c}{label}\u{201d}")));
    parts.extend(sketch.remarks);
    parts.extend(cut(source));
    Picture {
        title: format!("netaware {} {host}: {}", source.command(), sketch.what),
        subtitle: parts.join(" \u{b7} "),
        panels: sketch.panels,
    }
}
