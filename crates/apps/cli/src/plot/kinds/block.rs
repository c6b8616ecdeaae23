//! Throughput of short transfers over block size, at the server: one panel per total, the largest
//! on top, a line for each protocol and IP version, whiskers from the slowest to the fastest run.

use netaware_record::{MatrixCell, MatrixProtocol, Record, VersionResult};
use netaware_units::ByteCount;

use super::Sketch;
use crate::plot::picture::{Layer, Mark, Panel, Scale, ScaleKind, Shape, Stroke};
use crate::plot::unit::Unit;

pub(super) fn sketch(record: &Record) -> Option<Sketch> {
    let cells = record.versions.iter().flat_map(|v| &v.matrix).flat_map(|result| &result.cells);
    let mut totals: Vec<ByteCount> =
        cells.filter(|cell| cell.server_throughput.is_some()).map(|cell| cell.bytes).collect();
    totals.sort_unstable_by(|a, b| b.cmp(a));
    totals.dedup();
    totals.truncate(MOST_PANELS);
    let panels: Vec<Panel> = totals.iter().map(|total| panel(record, *total)).collect();
    let remarks = vec!["at the server; median, slowest and fastest run".to_owned()];
    (!panels.is_empty()).then(|| Sketch { what: "throughput over block size".into(), panels, remarks })
}

fn panel(record: &Record, total: ByteCount) -> Panel {
    let mut layers = Vec::new();
    for version in &record.versions {
        for result in &version.matrix {
            let cells: Vec<&MatrixCell> = result.cells.iter().filter(|cell| cell.bytes == total).collect();
            let whiskers = cells.iter().filter_map(|cell| {
                let found = cell.server_throughput.as_ref()?;
                Some([(cell.block.0 as f64, found.lo), (cell.block.0 as f64, found.hi)])
            });
            layers.push(Layer::silent(version.version, Mark::Whiskers, whiskers.flatten().collect()));
            let line = cells
                .iter()
                .filter_map(|cell| Some((cell.block.0 as f64, cell.server_throughput.as_ref()?.estimate)));
            layers.push(Layer::new(
                name(version, result.protocol),
                version.version,
                mark(result.protocol),
                line.collect(),
            ));
        }
    }
    let x = Scale::new("block size", Unit::Size, ScaleKind::Logarithmic);
    let y = Scale::new(
        format!("throughput of {}", Unit::Size.write(total.0 as f64)),
        Unit::Rate,
        ScaleKind::Logarithmic,
    );
    Panel { weight: 1, x, y, layers }
}

fn name(version: &VersionResult, protocol: MatrixProtocol) -> String {
    format!("{} {}", version.version.name(), protocol.name())
}

fn mark(protocol: MatrixProtocol) -> Mark {
    match protocol {
        MatrixProtocol::Tcp => Mark::Dotted(Shape::Disc, Stroke::Solid),
        MatrixProtocol::TcpNodelay => Mark::Dotted(Shape::Cross, Stroke::Dashed),
        MatrixProtocol::Udp => Mark::Dotted(Shape::Square, Stroke::Fine),
    }
}

/// More would be stripes.
const MOST_PANELS: usize = 4;
