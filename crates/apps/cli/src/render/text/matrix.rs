//! Short transfers: a table per protocol, totals and block sizes down, IPv4 beside IPv6.

use std::io::{self, Write};

use netaware_record::{Direction, Interval, MatrixCell, MatrixProtocol, MatrixResult, VersionResult};
use netaware_units::{ByteCount, Span};

use crate::render::figures::{NONE, percent, significant};
use crate::render::paint::Paint;
use crate::render::paragraph;
use crate::render::table::padded;

/// Columns of total and block, and of what one version has: time, sent, received, spread, lost; 79
/// in all.
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
    let how = "Medians of the runs, rates in Mbit/s of payload; +-%: half of the range of rcvd; lost in % of bytes, of all runs together. Time and sent are the \
               sender's: TCP until the receiver has confirmed all, UDP until the last datagram was handed over. Rcvd \
               is the receiver's, without what its first read brought; - where all came at once.";
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
            let cell = result.and_then(|result| Some((result, result.cells.iter().find(of)?)));
            cell.map_or_else(
                || [NONE; 5].map(str::to_owned),
                |(result, cell)| figures(&Ends::of(cell, result)),
            )
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
        line.extend(figures.iter().zip(FIGURES).map(|(text, width)| apart(text, width)));
    }
    line
}

/// A figure that is too long makes its line longer, and does not run into the one before it.
fn apart(text: &str, width: usize) -> String {
    format!(" {}", right(text, width - 1))
}

fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.chars().count())))
}

/// A rate in Mbit/s that leaves a space in its column: less than 0.1 has fewer digits there.
fn rate(bits: f64, width: usize) -> String {
    let (mbits, room) = (bits / 1e6, width - 1);
    let text = significant(mbits);
    if text.len() <= room || mbits >= 1.0 {
        return text;
    }
    // "0." takes two.
    let decimals = room - 2;
    let text = format!("{mbits:.decimals$}");
    if text.bytes().any(|digit| matches!(digit, b'1'..=b'9')) { text } else { TOO_LITTLE.to_owned() }
}

/// Less than the narrower column of rates has digits for.
const TOO_LITTLE: &str = "<.001";

/// Of a cell, by what an end does and not by who asked.
struct Ends<'a> {
    sending_time: Option<&'a Interval>,
    sent: Option<&'a Interval>,
    received: Option<&'a Interval>,
    /// Over all runs whose other end reported; bytes.
    bytes_sent: ByteCount,
    bytes_lost: ByteCount,
    /// TCP kept bytes back in each of these runs: what became of them is unknown, and they are not
    /// among those sent.
    is_cut_off: bool,
}

impl<'a> Ends<'a> {
    fn of(cell: &'a MatrixCell, result: &MatrixResult) -> Self {
        let client = (cell.client_time.as_ref(), cell.client_throughput.as_ref());
        let server = (cell.server_time.as_ref(), cell.server_throughput.as_ref());
        let heard = || cell.runs.iter().filter_map(|run| Some((run, run.server.as_ref()?)));
        let bytes_lost = heard().map(|(run, _)| run.lost).sum();
        let is_cut_off = heard().all(|(run, _)| run.undelivered > ByteCount(0));
        let direction = result.pedigree.direction;
        let bytes_sent = heard().filter_map(|(run, _)| run.settled(direction)).sum();
        let ((sending_time, sent), (_, received)) =
            if direction == Direction::Reverse { (server, client) } else { (client, server) };
        Self { sending_time, sent, received, bytes_sent, bytes_lost, is_cut_off }
    }
}

fn figures(ends: &Ends<'_>) -> [String; 5] {
    let rate = |of: Option<&Interval>, width: usize| {
        of.map_or_else(|| NONE.to_owned(), |of| rate(of.estimate, width))
    };
    let time =
        ends.sending_time.map_or_else(|| NONE.to_owned(), |i| Span(i.estimate.round() as i64).to_string());
    [
        time,
        rate(ends.sent, FIGURES[1]),
        rate(ends.received, FIGURES[2]),
        ends.received.map_or_else(|| NONE.to_owned(), spread),
        lost(ends),
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

fn lost(ends: &Ends<'_>) -> String {
    match ends.bytes_lost.0 as f64 / ends.bytes_sent.0 as f64 {
        _ if ends.is_cut_off => NONE.to_owned(),
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
    use netaware_record::{MatrixEnd, MatrixRun};

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
    fn who_sends_is_told_by_the_direction() {
        let median = |estimate| Some(Interval { estimate, lo: estimate, hi: estimate, confidence: 0.0 });
        let end =
            |bytes| MatrixEnd { bytes: ByteCount(bytes), calls: Some(1), elapsed: None, throughput: None };
        let mut result = crate::render::fixture::matrix().versions[0].matrix[0].clone();
        let run = MatrixRun {
            client: Some(end(1000)),
            server: Some(end(800)),
            lost: ByteCount(200),
            ..result.cells[0].runs[0].clone()
        };
        result.cells[0] = MatrixCell {
            client_time: median(1e6),
            client_throughput: median(8e6),
            server_time: median(2e6),
            server_throughput: median(4e6),
            runs: vec![run],
            ..result.cells[0].clone()
        };
        let told = |result: &MatrixResult| figures(&Ends::of(&result.cells[0], result));
        result.pedigree.direction = Direction::Forward;
        assert_eq!(told(&result), ["1.00 ms", "8.00", "4.00", "-", "20.0"]);
        result.pedigree.direction = Direction::Reverse;
        assert_eq!(told(&result), ["2.00 ms", "4.00", "8.00", "-", "25.0"]);
    }

    /// Large packets vanished, 50 of 9000 bytes arrived, and the cell said that 0 % were lost.
    #[test]
    fn a_cell_of_which_no_run_was_delivered_does_not_say_that_nothing_was_lost() {
        let mut result = crate::render::fixture::matrix().versions[0].matrix[0].clone();
        let whole = result.cells[0].runs[0].clone();
        let end = |bytes| Some(MatrixEnd { bytes: ByteCount(bytes), ..MatrixEnd::default() });
        let cut_off =
            MatrixRun { client: end(9_000), server: end(50), undelivered: ByteCount(8_950), ..whole.clone() };
        let mut said = |runs: &[&MatrixRun]| {
            result.cells[0].runs = runs.iter().copied().cloned().collect();
            lost(&Ends::of(&result.cells[0], &result))
        };
        assert_eq!(said(&[&cut_off, &cut_off]), NONE);
        assert_eq!(said(&[&whole, &cut_off]), "0");
    }

    /// "27.00.0128" was 27.0 Mbit/s sent and 0.0128 received.
    #[test]
    fn rates_of_slow_paths_do_not_run_into_each_other() {
        let rows = [
            (12_800.0, 7, "0.0128"),
            (12_800.0, 6, "0.013"),
            (189_000.0, 6, "0.189"),
            (1_280.0, 6, "0.001"),
            (128.0, 6, "<.001"),
            (27e6, 6, "27.0"),
            (10_370e6, 6, "10370"),
        ];
        for (bits, width, want) in rows {
            assert_eq!(rate(bits, width), want);
        }
        let figures = ["1.16 ms", "103700", "123456", "-", "0"].map(str::to_owned);
        let line = line(["1 kB", "50 B"], [figures].into_iter());
        assert_eq!(line, "   1 kB    50 B  1.16 ms 103700 123456    -    0");
    }

    #[test]
    fn the_spread_of_one_run_is_unknown() {
        let of = |lo, hi, confidence| spread(&Interval { estimate: 10.0, lo, hi, confidence });
        let found = [of(9.0, 12.0, 0.75), of(10.0, 10.0, 0.0), of(10.0, 10.0, 0.5), of(0.0, 300.0, 0.75)];
        assert_eq!(found, ["15", "-", "0", ">999"]);
    }
}
