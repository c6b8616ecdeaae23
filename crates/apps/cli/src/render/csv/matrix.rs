//! One line per transfer of a matrix.

use netaware_record::{MatrixCell, MatrixEnd, MatrixResult, MatrixRun, VersionResult};
use netaware_units::ByteCount;

use super::{optional, outcome};

struct Row<'a> {
    result: &'a MatrixResult,
    cell: &'a MatrixCell,
    run: &'a MatrixRun,
}

type Field = fn(&Row<'_>) -> String;

const COLUMNS: &[(&str, Field)] = &[
    ("protocol", |r| r.result.protocol.word().into()),
    ("total_bytes", |r| r.cell.bytes.0.to_string()),
    ("block_bytes", |r| r.cell.block.0.to_string()),
    ("run", |r| (u32::from(r.run.round) + 1).to_string()),
    ("client_ns", |r| client(r, |end| end.elapsed.map(|span| span.0))),
    ("client_bps", |r| client(r, |end| end.throughput.map(|rate| rate.0))),
    ("writes", |r| client(r, |end| end.calls)),
    ("sent_bytes", |r| client(r, |end| Some(end.bytes.0))),
    ("server_ns", |r| server(r, |end| end.elapsed.map(|span| span.0))),
    ("server_bps", |r| server(r, |end| end.throughput.map(|rate| rate.0))),
    ("reads", |r| server(r, |end| end.calls)),
    ("received_bytes", |r| server(r, |end| Some(end.bytes.0))),
    ("lost_bytes", |r| optional(lost(r).map(|bytes| bytes.0))),
    ("lost_in_host_bytes", |r| optional(r.run.lost_in_host.map(|bytes| bytes.0))),
    ("undelivered_bytes", |r| optional(r.run.client.zip(r.run.server).map(|_| r.run.undelivered.0))),
    ("unknown_bytes", |r| client(r, |_| Some(r.run.unknown.0))),
    ("retransmits", |r| optional(r.run.retransmits)),
    ("outcome", |r| outcome(r.run.outcome)),
];

/// Absent where the fate of no byte is known.
fn lost(row: &Row<'_>) -> Option<ByteCount> {
    row.run.client.zip(row.run.server)?;
    let settled = row.run.settled(row.result.pedigree.direction)?;
    Some(row.run.lost).filter(|_| settled > ByteCount(0))
}

fn client<T: ToString>(row: &Row<'_>, of: impl Fn(&MatrixEnd) -> Option<T>) -> String {
    optional(row.run.client.as_ref().and_then(of))
}

fn server<T: ToString>(row: &Row<'_>, of: impl Fn(&MatrixEnd) -> Option<T>) -> String {
    optional(row.run.server.as_ref().and_then(of))
}

pub(super) fn names() -> Vec<&'static str> {
    COLUMNS.iter().map(|(name, _)| *name).collect()
}

/// The fields of each transfer of a version.
pub(super) fn fields(version: &VersionResult) -> Vec<Vec<String>> {
    let cells = version.matrix.iter().flat_map(|result| result.cells.iter().map(move |cell| (result, cell)));
    let rows = cells.flat_map(|(result, cell)| cell.runs.iter().map(move |run| Row { result, cell, run }));
    rows.map(|row| COLUMNS.iter().map(|(_, field)| field(&row)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing arrived over TCP, and the table said that 0 bytes were lost.
    #[test]
    fn a_run_of_which_nothing_arrived_does_not_say_that_nothing_was_lost() {
        let result = crate::render::fixture::matrix().versions[0].matrix[0].clone();
        let cell = &result.cells[0];
        let whole = &cell.runs[0];
        let end = |bytes| Some(MatrixEnd { bytes: ByteCount(bytes), ..MatrixEnd::default() });
        let in_vain =
            MatrixRun { client: end(9_000), server: end(0), undelivered: ByteCount(9_000), ..whole.clone() };
        let said = |run| lost(&Row { result: &result, cell, run });
        assert_eq!((said(whole), said(&in_vain)), (Some(ByteCount(0)), None));
    }
}
