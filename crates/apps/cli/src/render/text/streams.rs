//! Each stream of a TCP transfer, where somebody asked for them.

use std::io;

use netaware_record::{StreamEnd, TcpResult};

use super::Sheet;
use crate::render::figures::count;

/// One line per stream below the figures of all: what both ends moved in how many calls, and TCP at
/// its end. Shown when the record has samples over time, which are only taken when asked for.
pub(super) fn table(sheet: &mut Sheet<'_>, result: &TcpResult) -> io::Result<()> {
    let Some(sender) = &result.sender else { return Ok(()) };
    let senders = &sender.streams;
    let samples = senders.iter().map(|stream| stream.samples.len()).max().unwrap_or(0);
    if samples == 0 {
        return Ok(());
    }
    let title = format!("{} stream", result.pedigree.version.name());
    let heads = ["given", "writes", "read", "reads", "resent", "RTT", "cwnd"];
    sheet.table.line(&row(&title, &heads.map(str::to_owned)))?;
    for stream in senders {
        let readers = result.receiver.iter().flat_map(|end| &end.streams);
        let read = readers.into_iter().find(|other| other.index == stream.index);
        sheet.table.line(&row(&format!("  {}", stream.index + 1), &cells(stream, read)))?;
    }
    let kept = format!("samples of each stream over time in the record (--format json): {samples}");
    sheet.table.remark("", &kept)
}

fn cells(sender: &StreamEnd, receiver: Option<&StreamEnd>) -> [String; 7] {
    let unknown = || "-".to_owned();
    [
        sender.bytes.to_string(),
        count(sender.calls),
        receiver.map_or_else(unknown, |end| end.bytes.to_string()),
        receiver.map_or_else(unknown, |end| count(end.calls)),
        sender.retransmits.map_or_else(unknown, count),
        sender.rtt.map_or_else(unknown, |rtt| rtt.to_string()),
        sender.cwnd.map_or_else(unknown, |cwnd| cwnd.to_string()),
    ]
}

/// The label left, the cells right, within 80 columns.
fn row(label: &str, cells: &[String; 7]) -> String {
    const WIDTHS: [usize; 7] = [9, 8, 9, 8, 7, 9, 9];
    let label = format!("{label:<LABEL$}");
    cells.iter().zip(WIDTHS).fold(label, |line, (cell, width)| format!("{line} {cell:>width$}"))
}

const LABEL: usize = 12;
