//! The lines through a scan over size, and what their slopes mean.

use std::io::{self, Write};

use netaware_prober::size_fit::{Grows, Meaning, SizeFit, SizeLine, SizeScan, meaning};
use netaware_units::Span;

use super::figures::decimals;
use super::paint::Paint;
use super::wrap::{WIDTH, lines};

/// As [`write`], as text; nothing for a scan of anything but size.
pub(crate) fn text(scan: &SizeScan, paint: Paint) -> String {
    let mut lines = Vec::new();
    match write(&mut lines, scan, paint) {
        Ok(()) => String::from_utf8(lines).unwrap_or_default(),
        Err(_) => String::new(),
    }
}

/// The fits that the points of a scan allow; nothing where it is none over size.
fn write(out: &mut dyn Write, scan: &SizeScan, paint: Paint) -> io::Result<()> {
    let fits = scan.fits();
    let (Some(first), false) = (scan.first(), fits.is_empty()) else { return Ok(()) };
    writeln!(out, "\n{}", paint.heading("LATENCY AGAINST SIZE"))?;
    for fit in &fits {
        indented(out, "  ", &about(fit))?;
        indented(out, "    ", &format!("medians: {}", slope(&fit.median)))?;
        indented(out, "    ", &format!("smallest: {}", slope(&fit.smallest)))?;
        for sentence in sentences(&meaning(fit, first)) {
            indented(out, "    ", &sentence)?;
        }
    }
    Ok(())
}

fn indented(out: &mut dyn Write, indent: &str, text: &str) -> io::Result<()> {
    for line in lines(text, WIDTH - indent.len()) {
        writeln!(out, "{indent}{line}")?;
    }
    Ok(())
}

/// "IPv4, UDP: response of 64 B to 1.43 KiB in 88 steps, one packet each".
fn about(fit: &SizeFit) -> String {
    let over = if fit.method.ends_with("tcp") { "TCP" } else { "UDP" };
    let what = match fit.grows {
        Grows::Request => "request",
        Grows::Response => "response",
        Grows::Both => "request and response",
    };
    let packets = match fit.one_packet {
        Some(true) => ", one packet each",
        Some(false) => ", several packets each",
        None => "",
    };
    let mut of = vec![fit.version.name().to_owned(), over.to_owned()];
    of.extend(fit.others.iter().map(|(name, value)| format!("{name} {value}")));
    let (of, points) = (of.join(", "), fit.points);
    format!("{of}: {what} of {} B to {} B, {points} points{packets}", fit.from.0, fit.to.0)
}

fn slope(line: &SizeLine) -> String {
    let between = line.interval.map_or_else(
        || "too few points for bounds".to_owned(),
        |bounds| {
            let digits = decimals((bounds.hi - bounds.lo) / 2e3).max(5);
            format!("{:.digits$} to {:.digits$} at 95 %", bounds.lo / 1e3, bounds.hi / 1e3)
        },
    );
    let at_zero = Span::from_nanos(line.intercept_ns.round() as i64);
    format!("{:.5} us/byte ({between}), {at_zero} at 0 B", line.slope / 1e3)
}

fn sentences(told: &Meaning) -> Vec<String> {
    let mut sentences = Vec::new();
    let crossings = if told.crossings == 2 { ", crossed there and back," } else { "" };
    sentences.push(told.one_stage.map_or_else(
        || "the slope is not above zero: size made no difference that shows".to_owned(),
        |rate| format!("a single store-and-forward stage{crossings} would run at {rate}"),
    ));
    for cost in &told.known {
        let each = format!("{}: {:.5} us/byte", cost.what, cost.ns_per_byte / 1e3);
        let stages =
            cost.stages.map_or_else(String::new, |stages| format!(", {stages:.2} of these make the slope"));
        sentences.push(each + &stages);
    }
    if !told.unknown.is_empty() {
        sentences.push(format!("not known here: {}", told.unknown.join(", ")));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use netaware_record::{DelaySummary, Record, SeriesKind, SeriesPoint};
    use netaware_units::{BitRate, ByteCount};

    use super::*;
    use crate::render::fixture;

    /// 100 us and 8 ns per byte of the response, over a link of 1 Gbit/s.
    fn scan() -> Vec<Record> {
        let point = |n: u64| {
            let (size, mut record) = (64 + 64 * n, fixture::latency());
            record.series = Some(SeriesPoint {
                id: record.id,
                kind: SeriesKind::Scan,
                index: n,
                planned: 20,
                point: BTreeMap::from([("response".to_owned(), format!("{size}B"))]),
            });
            record.prober.nics[0].speed = Some(BitRate(1_000_000_000));
            record.prober.memory_copy_ns_per_byte = Some(0.0812);
            for latency in record.versions.iter_mut().filter_map(|version| version.latency.as_mut()) {
                let rtt = Span::from_micros(100) + Span(8) * size.cast_signed();
                latency.response = Some(ByteCount(size));
                latency.rtt =
                    Some(DelaySummary { min: rtt, p50: rtt + Span(500), ..DelaySummary::default() });
            }
            record
        };
        (0..20).map(point).collect()
    }

    fn text(records: &[Record]) -> String {
        let (mut out, mut scan) = (Vec::new(), SizeScan::default());
        for record in records {
            scan.observe(record);
        }
        write(&mut out, &scan, Paint::PLAIN).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_scan_over_size_ends_with_its_slopes_and_their_meaning() {
        let text = text(&scan());
        insta::assert_snapshot!("size_fit", text);
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }

    #[test]
    fn records_that_are_no_scan_over_size_say_nothing() {
        assert_eq!(text(&[fixture::latency(), fixture::latency()]), "");
        assert_eq!(text(&[]), "");
    }
}
