//! Short transfers: a table per protocol, totals and block sizes down, IPv4 beside IPv6.

use std::io::{self, Write};

use netaware_record::{Interval, MatrixCell, MatrixProtocol, MatrixResult, VersionResult};
use netaware_units::{ByteCount, Span};

use crate::render::figures::{NONE, percent, significant};
use crate::render::paint::Paint;
use crate::render::paragraph;
use crate::render::table::padded;

/// Columns of total and block, and of what one version has: time, sent, received, spread, lost; 79 in all.
const LABELS: [usize; 2] = [7, 8];
const FIGURES: [usize; 5] = [9, 7, 6, 5, 5];

/// Writes the tables of all versions that have one.
pub(super) fn write(out: &mut dyn Write, versions: &[&VersionResult], paint: Paint) -> io::Result<()> {
    let versions: Vec<&VersionResult> = versions.iter().copied().filter(|v| !v.matrix.is_empty()).collect();
    if versions.is_empty() {
        return Ok(());
    }
    for protocol in MatrixProtocol::ALL {
        let results: Vec<Option<&MatrixResult>> = versions
            .iter()
            .map(|version| version.matrix.iter().find(|result| result.protocol == protocol))
            .collect();
        if results.iter().any(Option::is_some) {
            table(out, protocol, &versions, &results, paint)?;
        }
    }
    let how = "Medians of the runs, rates in Mbit/s of payload; +-%: half of the range of rcvd; lost in % of bytes. Time and sent are the \
               client's: TCP until the server has confirmed all, UDP until the last datagram was handed over. Rcvd \
               is the server's, without what its first read brought; - where all came at once.";
    writeln!(out, "\n{}", paint.faint(&paragraph("    ", how)))
}

fn table(
    out: &mut dyn Write,
    protocol: MatrixProtocol,
    versions: &[&VersionResult],
    results: &[Option<&MatrixResult>],
    paint: Paint,
) -> io::Result<()> {
    let mut heading = padded(protocol.name(), LABELS.iter().sum::<usize>() + 3);
    for version in versions {
        heading.push_str(&padded(version.version.name(), FIGURES.iter().sum()));
    }
    writeln!(out, "\n{}", paint.heading(heading.trim_end()))?;
    let names = ["time", "sent", "rcvd", "+-%", "lost"];
    writeln!(out, "{}", line(["total", "block"], versions.iter().map(|_| names.map(str::to_owned))))?;
    for (bytes, block) in sizes(results) {
        let label = [size(bytes), size(block)];
        let cells = results.iter().map(|result| {
            let of = |cell: &&MatrixCell| (cell.bytes, cell.block) == (bytes, block);
            figures(result.and_then(|result| result.cells.iter().find(of)))
        });
        writeln!(out, "{}", line([&label[0], &label[1]], cells))?;
    }
    Ok(())
}

/// Those of any version, in the order of the plan.
fn sizes(results: &[Option<&MatrixResult>]) -> Vec<(ByteCount, ByteCount)> {
    let cells = results.iter().flatten().flat_map(|result| &result.cells);
    let mut sizes: Vec<_> = cells.map(|cell| (cell.bytes, cell.block)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn line(label: [&str; 2], versions: impl Iterator<Item = [String; 5]>) -> String {
    let mut line: String = label.iter().zip(LABELS).map(|(text, width)| right(text, width)).collect();
    for figures in versions {
        line.extend(figures.iter().zip(FIGURES).map(|(text, width)| right(text, width)));
    }
    line
}

fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.chars().count())))
}

fn figures(cell: Option<&MatrixCell>) -> [String; 5] {
    let Some(cell) = cell else { return [NONE; 5].map(str::to_owned) };
    let rate = |of: Option<&Interval>| of.map_or_else(|| NONE.to_owned(), |i| significant(i.estimate / 1e6));
    let time =
        cell.client_time.map_or_else(|| NONE.to_owned(), |i| Span(i.estimate.round() as i64).to_string());
    [
        time,
        rate(cell.client_throughput.as_ref()),
        rate(cell.server_throughput.as_ref()),
        cell.server_throughput.as_ref().map_or_else(|| NONE.to_owned(), spread),
        lost(cell),
    ]
}

/// Half of the range in per cent of the median; one run has none.
fn spread(of: &Interval) -> String {
    if of.confidence <= 0.0 || of.estimate <= 0.0 {
        return NONE.to_owned();
    }
    match (of.hi - of.lo) / 2.0 / of.estimate * 100.0 {
        percent if percent < 999.5 => format!("{percent:.0}"),
        _ => ">999".to_owned(),
    }
}

/// Over all runs whose server reported.
fn lost(cell: &MatrixCell) -> String {
    let heard = || cell.runs.iter().filter(|run| run.server.is_some());
    let sent: ByteCount = heard().map(|run| run.client.bytes).sum();
    let lost: ByteCount = heard().map(|run| run.lost).sum();
    match lost.0 as f64 / sent.0 as f64 {
        share if share > 0.0 && share < 0.0001 => "<.01".to_owned(),
        share if share.is_finite() => percent(share).trim_end_matches(" %").to_owned(),
        _ => NONE.to_owned(),
    }
}

/// "50 B", "10 kB": decimal, as totals of a matrix are asked for.
fn size(bytes: ByteCount) -> String {
    match bytes.0 {
        n if n >= 1_000_000 && n.is_multiple_of(1_000_000) => format!("{} MB", n / 1_000_000),
        n if n >= 1_000 && n.is_multiple_of(1_000) => format!("{} kB", n / 1_000),
        n => format!("{n} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_decimal_and_exact() {
        let rows = [
            (50, "50 B"),
            (1_000, "1 kB"),
            (65_507, "65507 B"),
            (1_048_576, "1048576 B"),
            (2_000_000, "2 MB"),
        ];
        for (bytes, want) in rows {
            assert_eq!(size(ByteCount(bytes)), want);
        }
    }

    #[test]
    fn the_spread_of_one_run_is_unknown() {
        let of = |lo, hi, confidence| spread(&Interval { estimate: 10.0, lo, hi, confidence });
        let found = [of(9.0, 12.0, 0.75), of(10.0, 10.0, 0.0), of(10.0, 10.0, 0.5), of(0.0, 300.0, 0.75)];
        assert_eq!(found, ["15", "-", "0", ">999"]);
    }
}
