//! Rate over time within one transfer, slice by slice. A version's turns follow each other on its
//! own time: the turns of the other version lie in the gaps.

use netaware_record::{Direction, IpVersion, ReceiverTick, Record};
use netaware_units::{BitRate, Span};

use super::Sketch;
use crate::plot::picture::{Layer, Mark, Panel, Scale, ScaleKind, Shape, Stroke};
use crate::plot::unit::Unit;

pub(super) fn sketch(record: &Record) -> Option<Sketch> {
    let transfers = transfers(record);
    let few = transfers.iter().all(|transfer| transfer.ticks.len() <= FEW);
    let rate = |tick: &ReceiverTick| BitRate::mean(tick.bytes, tick.length).map(|rate| rate.0 as f64);
    let rates: Vec<Layer> = transfers.iter().map(|transfer| transfer.layer(few, rate)).collect();
    let x = Scale::new("time of the version's own turns", Unit::Time, ScaleKind::FromZero);
    let y = Scale::new("received payload", Unit::Rate, ScaleKind::FromZero);
    let mut panels = vec![Panel { weight: 5, x: x.clone(), y, layers: rates }];
    let lossy = |t: &&Transfer<'_>| t.is_udp;
    let losses: Vec<Layer> = transfers.iter().filter(lossy).map(|t| t.layer(few, loss)).collect();
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
    fn layer(&self, few: bool, value: impl Fn(&ReceiverTick) -> Option<f64>) -> Layer {
        let is_second = self.direction == Direction::Reverse;
        let (shape, stroke) =
            if is_second { (Shape::Square, Stroke::Dashed) } else { (Shape::Disc, Stroke::Solid) };
        let mark = if few { Mark::Dotted(shape, stroke) } else { Mark::Line(stroke) };
        Layer::new(self.name.clone(), self.version, mark, self.points(value))
    }

    /// Each slice at its middle; every turn is a piece of line.
    fn points(&self, value: impl Fn(&ReceiverTick) -> Option<f64>) -> Vec<(f64, f64)> {
        let mut points = Vec::with_capacity(self.ticks.len());
        let mut began = Span::ZERO;
        // A clock that starts again begins another turn.
        for turn in self.ticks.chunk_by(|before, after| before.end < after.end) {
            for tick in without_tail(turn) {
                let middle = began + tick.end - tick.length / 2;
                points.push((middle.secs_f64(), value(tick).unwrap_or(f64::NAN)));
            }
            began += turn.last().map_or(Span::ZERO, |tick| tick.end);
            points.push((f64::NAN, f64::NAN));
        }
        points
    }
}

/// A receiver listens on after the end of a stream: that silence is no rate of zero.
fn without_tail(turn: &[ReceiverTick]) -> &[ReceiverTick] {
    let mut silence = Span::ZERO;
    let silent = turn.iter().rev().take_while(|tick| {
        silence += tick.length;
        tick.bytes.0 == 0 && silence <= LISTENING
    });
    &turn[..turn.len() - silent.count()]
}

/// Of what was expected in the slice; late datagrams that fill older holes make none negative.
fn loss(tick: &ReceiverTick) -> Option<f64> {
    let lost = tick.lost.max(0) as f64;
    let expected = lost + tick.packets as f64;
    (expected > 0.0).then(|| lost / expected)
}

/// Slices up to which each has a mark.
const FEW: usize = 60;
/// 300 ms for datagrams, and the slice that the end falls into.
const LISTENING: Span = Span::from_millis(400);

#[cfg(test)]
mod tests {
    use super::*;
    use netaware_units::ByteCount;

    #[test]
    fn the_silence_after_the_end_is_left_out_and_a_longer_one_stays() {
        let turn = |bytes: &[u64]| -> Vec<ReceiverTick> {
            let tick = |n: usize| ReceiverTick {
                end: Span::from_millis(100 * (n as i64 + 1)),
                length: Span::from_millis(100),
                bytes: ByteCount(bytes[n]),
                ..ReceiverTick::default()
            };
            (0..bytes.len()).map(tick).collect()
        };
        assert_eq!(without_tail(&turn(&[5, 0, 5, 0, 0, 0])).len(), 3);
        assert_eq!(without_tail(&turn(&[5, 0, 0, 0, 0, 0, 0])).len(), 3, "the path has died");
        assert!(without_tail(&[]).is_empty());
    }
}
