//! The records of a scan from which the lines of delay against size are drawn: as many as a fit needs, without what it does
//! not look at, however long the scan.

use netaware_record::{LatencyResult, Record, SeriesKind};

use crate::render::{Paint, size_fit};

/// Points that a fit goes by; of a longer scan every second, third, …, since each pair of them has its slope.
const MOST_POINTS: u64 = 2_000;

/// Fed with one record after the other.
#[derive(Debug, Default)]
pub(crate) struct SizeScan {
    records: Vec<Record>,
}

impl SizeScan {
    /// Keeps what a fit needs of a point of a scan of `latency`.
    pub(crate) fn observe(&mut self, record: &Record) {
        let Some(series) = record.series.as_ref().filter(|series| series.kind == SeriesKind::Scan) else {
            return;
        };
        let every = series.planned.div_ceil(MOST_POINTS).max(1);
        if record.command == "latency" && series.index.is_multiple_of(every) {
            self.records.push(without_details(record));
        }
    }

    /// The lines that the points allow; nothing for a scan of anything but size.
    pub(crate) fn lines(&self, paint: Paint) -> String {
        let mut lines = Vec::new();
        match size_fit::write(&mut lines, &self.records, paint) {
            Ok(()) => String::from_utf8(lines).unwrap_or_default(),
            Err(_) => String::new(),
        }
    }
}

fn without_details(record: &Record) -> Record {
    let mut kept = record.clone();
    let results = kept
        .versions
        .iter_mut()
        .flat_map(|version| version.latency.iter_mut().chain(&mut version.latency_tcp));
    results.for_each(|result: &mut LatencyResult| {
        result.histogram = None;
        result.bins = None;
    });
    kept.warnings.clear();
    kept
}

#[cfg(test)]
mod tests {
    use netaware_record::SeriesPoint;
    use netaware_units::{ByteCount, Span};
    use uuid::Uuid;

    use super::*;
    use crate::render::fixture;

    /// 100 us and 8 ns per byte.
    fn point(index: u64, planned: u64) -> Record {
        let size = 64 + index;
        let point = [("length".to_owned(), size.to_string())].into();
        let series = SeriesPoint { id: Uuid::nil(), kind: SeriesKind::Scan, index, planned, point };
        let mut record = Record { series: Some(series), ..fixture::latency() };
        for latency in record.versions.iter_mut().filter_map(|version| version.latency.as_mut()) {
            latency.payload = ByteCount(size);
            let rtt = latency.rtt.as_mut().unwrap();
            (rtt.p50, rtt.min) = (Span(100_000 + 8 * size as i64), Span(90_000 + 8 * size as i64));
        }
        record
    }

    #[test]
    fn a_scan_over_size_ends_with_its_slope() {
        let mut scan = SizeScan::default();
        (0..20).for_each(|index| scan.observe(&point(index, 20)));
        let lines = scan.lines(Paint::PLAIN);
        assert!(lines.contains("LATENCY AGAINST SIZE") && lines.contains("0.00800 us/byte"), "{lines}");
    }

    #[test]
    fn a_long_scan_is_thinned_and_other_records_are_none_of_it() {
        let mut scan = SizeScan::default();
        (0..50).for_each(|index| scan.observe(&point(index, 10 * MOST_POINTS)));
        assert_eq!(scan.records.len(), 5);
        let mut none = SizeScan::default();
        none.observe(&fixture::latency());
        none.observe(&fixture::udp());
        assert_eq!(none.lines(Paint::PLAIN), "");
    }
}
