//! ClickHouse's RowBinary: values one after the other, little-endian, lengths in base 128.

use netaware_record::passive::{DelayStatistics, InterfaceCapture, ProbeReport, Row, TaskRow};

use super::schema::Table;
use crate::fleet::merge::{self, DelaySum};
use crate::fleet::query::version_number;
use crate::fleet::{Kind, Origin, figures};

/// Rows of one table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Rows {
    pub(super) count: u64,
    pub(super) bytes: Vec<u8>,
}

/// Which row of which batch it is: the end of each key, which makes copies of a row fall together.
fn identity(out: &mut Vec<u8>, origin: &Origin<'_>, position: usize) {
    text(out, origin.name);
    text(out, origin.incarnation);
    out.extend(origin.sequence.to_le_bytes());
    out.extend((position as u32).to_le_bytes());
}

/// In the order of [`Table::Reports`]'s columns.
pub(super) fn report(
    rows: &mut Rows,
    origin: &Origin<'_>,
    report: &ProbeReport,
) -> Result<(), serde_json::Error> {
    let total =
        |of: fn(&InterfaceCapture) -> u64| report.captures.iter().map(of).fold(0, u64::saturating_add);
    let out = &mut rows.bytes;
    out.extend(report.period.from.0.to_le_bytes());
    out.extend(report.period.until.0.to_le_bytes());
    out.extend(total(|capture| capture.health.seen).to_le_bytes());
    out.extend(total(|capture| capture.health.lost()).to_le_bytes());
    text(out, &serde_json::to_string(&report.captures)?);
    text(out, &serde_json::to_string(&report.clock)?);
    identity(out, origin, 0);
    rows.count += 1;
    Ok(())
}

/// The table of a row and its bytes there.
pub(super) fn row(
    rows: &mut [Rows; Table::COUNT],
    origin: &Origin<'_>,
    position: usize,
    row: &TaskRow,
) -> Result<(), serde_json::Error> {
    if let Row::Delay(figures) = &row.row {
        let sum = DelaySum::of(row.period, 1, figures.as_ref().clone());
        let rows = &mut rows[Table::Delays as usize];
        delay(&mut rows.bytes, origin, &row.task, &sum);
        identity(&mut rows.bytes, origin, position);
        rows.count += 1;
        return Ok(());
    }
    let json = figures::emit(row)?;
    let rows = &mut rows[Table::Rows as usize];
    let out = &mut rows.bytes;
    text(out, Kind::of(&row.row).name());
    out.extend(row.period.from.0.to_le_bytes());
    out.extend(row.period.until.0.to_le_bytes());
    text(out, &row.task);
    text(out, &json);
    identity(out, origin, position);
    rows.count += 1;
    Ok(())
}

/// In the order of `schema::DELAY_KEYS` and `schema::DELAY_SUMS`.
fn delay(out: &mut Vec<u8>, origin: &Origin<'_>, task: &str, sum: &DelaySum) {
    let row = &sum.row;
    out.extend(sum.period.from.0.to_le_bytes());
    text(out, task);
    text(out, &row.from);
    text(out, &row.to);
    text(out, &row.method);
    out.push(version_number(row.version));
    out.extend(sum.period.from.0.to_le_bytes());
    out.extend(sum.period.until.0.to_le_bytes());
    out.extend(sum.rows.to_le_bytes());
    for count in merge::counts(row) {
        out.extend(count.to_le_bytes());
    }
    out.extend(row.patience.0.to_le_bytes());
    out.extend(sum.period.until.0.to_le_bytes());
    out.extend(row.offset.0.to_le_bytes());
    optional(out, row.clock_bound.map(|bound| bound.0));
    out.extend(u64::from(row.clock_bound.is_none()).to_le_bytes());
    length(out, 1);
    text(out, &row.clock_method);
    length(out, row.warnings.len());
    for warning in &row.warnings {
        text(out, warning);
    }
    length(out, 1);
    text(out, origin.name);
    for delays in [&row.delay, &row.ipdv] {
        statistics(out, delays);
    }
}

fn statistics(out: &mut Vec<u8>, delays: &DelayStatistics) {
    let some = delays.count > 0;
    out.extend(delays.count.to_le_bytes());
    optional(out, some.then_some(delays.min.0));
    optional(out, some.then_some(delays.max.0));
    out.extend(delays.sum_ns.to_le_bytes());
    out.extend(delays.sum_squares.to_le_bytes());
    out.extend(delays.histogram.underflow.to_le_bytes());
    out.extend(delays.histogram.overflow.to_le_bytes());
    let bins = &delays.histogram.bins;
    length(out, bins.len());
    for (edge, _) in bins {
        out.extend(edge.to_le_bytes());
    }
    length(out, bins.len());
    for (_, n) in bins {
        out.extend(n.to_le_bytes());
    }
}

fn optional(out: &mut Vec<u8>, number: Option<i64>) {
    out.push(u8::from(number.is_none()));
    if let Some(number) = number {
        out.extend(number.to_le_bytes());
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    length(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

fn length(out: &mut Vec<u8>, mut n: usize) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_in_base_128() {
        for (n, want) in [(0, &[0][..]), (127, &[127]), (128, &[0x80, 1]), (300, &[0xac, 2])] {
            let mut out = Vec::new();
            length(&mut out, n);
            assert_eq!(out, want, "{n}");
        }
    }

    #[test]
    fn nothing_has_no_extremes() {
        let mut out = Vec::new();
        statistics(&mut out, &DelayStatistics::default());
        assert_eq!(out.len(), 8 + 1 + 1 + 16 + 8 + 8 + 8 + 1 + 1);
        assert_eq!(out[8..10], [1, 1]);
    }
}
