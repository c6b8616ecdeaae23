//! Rate over time within one transfer, slice by slice. A version's turns follow each other on its own time: the turns of
//! the other version lie in the gaps.

use netaware_record::{Direction, IpVersion, ReceiverTick, Record};
use netaware_units::{BitRate, Span};

use super::Sketch;
use crate::plot::picture::{Layer, Mark, Panel, Scale, ScaleKind, Shape, Stroke};
use crate::plot::unit::Unit;

pub(super) fn sketch(record: &Record) -> Option<Sketch> {
    let transfers = transfers(record);
    let rates: Vec<Layer> = transfers
        .iter()
        .map(|t| t.layer(|tick| Some(BitRate::mean(tick.bytes, tick.length).0 as f64)))
        .collect();
    let x = Scale::new("time of the version's own turns", Unit::Time, ScaleKind::FromZero);
    let y = Scale::new("received payload", Unit::Rate, ScaleKind::FromZero);
    let mut panels = vec![Panel { weight: 5, x: x.clone(), y, layers: rates }];
    let lossy = |t: &&Transfer<'_>| t.is_udp;
    let losses: Vec<Layer> = transfers.iter().filter(lossy).map(|t| t.layer(loss)).collect();
    if !losses.is_empty() {
        let y = Scale::new("lost", Unit::Share, ScaleKind::FromZero);
        panels.push(Panel { weight: 3, x, y, layers: losses });
    }
    (!transfers.is_empty()).then(|| Sketch { what: "rate over time".into(), panels, remarks: Vec::new() })
}

struct Transfer<'a> {
    version: IpVersion,
    direction: Direction,
    name: String,
    is_udp: bool,
    ticks: &'a [ReceiverTick],
}

fn transfers(record: &Record) -> Vec<Transfer<'_>> {
    // `test` runs several transfers of each kind one after the other, too short to be followed.
    if !matches!(record.command.as_str(), "tcp" | "udp") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for result in &record.versions {
        let version = result.version;
        let tcp = result.tcp.iter().map(|tcp| (tcp.pedigree.direction, false, &tcp.receiver_ticks));
        let udp = result.udp.iter().map(|udp| (udp.pedigree.direction, true, &udp.ticks));
        for (direction, is_udp, ticks) in tcp.chain(udp).filter(|(_, _, ticks)| !ticks.is_empty()) {
            let name = format!("{} {}", version.name(), direction.name());
            found.push(Transfer { version, direction, name, is_udp, ticks });
        }
    }
    found
}

impl Transfer<'_> {
    fn layer(&self, value: impl Fn(&ReceiverTick) -> Option<f64>) -> Layer {
        let is_second = self.direction == Direction::Reverse;
        let (shape, stroke) =
            if is_second { (Shape::Square, Stroke::Dashed) } else { (Shape::Disc, Stroke::Solid) };
        let mark = if self.ticks.len() <= FEW { Mark::Dotted(shape, stroke) } else { Mark::Line(stroke) };
        Layer::new(self.name.clone(), self.version, mark, self.points(value))
    }

    /// Each slice at its middle. A clock that starts again begins another turn, and another piece of line.
    fn points(&self, value: impl Fn(&ReceiverTick) -> Option<f64>) -> Vec<(f64, f64)> {
        let mut points = Vec::with_capacity(self.ticks.len());
        let (mut before, mut shift) = (Span::ZERO, Span::ZERO);
        for tick in self.ticks {
            if tick.end < before {
                shift += before;
                points.push((f64::NAN, f64::NAN));
            }
            before = tick.end;
            let middle = shift + tick.end - tick.length / 2;
            points.push((middle.secs_f64(), value(tick).unwrap_or(f64::NAN)));
        }
        points
    }
}

/// Of what was expected in the slice; late datagrams that fill older holes make none negative.
fn loss(tick: &ReceiverTick) -> Option<f64> {
    let lost = tick.lost.max(0) as f64;
    let expected = lost + tick.packets as f64;
    (expected > 0.0).then(|| lost / expected)
}

/// Slices up to which each has a mark.
const FEW: usize = 60;
