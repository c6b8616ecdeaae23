//! A histogram with bins of equal width, as UDPmon prints it: a spreadsheet takes the lines as they
//! are.

use std::io::{self, Write};

use netaware_record::Histogram;

use crate::render::figures::NONE;
use crate::render::paint::Paint;

/// `title` says what was counted. Bins without entries between filled ones are shown, so that a
/// plot has no holes; outside of those there are none.
pub(super) fn write(out: &mut dyn Write, title: &str, histogram: &Histogram, paint: Paint) -> io::Result<()> {
    writeln!(out, "\n{}", paint.heading(&format!("Histogram: {title}, us")))?;
    let entries: u64 = histogram.bins.iter().map(|(_, count)| count).sum();
    writeln!(
        out,
        "  counts {entries}  underflows {}  overflows {}",
        histogram.underflow, histogram.overflow
    )?;
    let shown = |figure: Option<f64>| figure.map_or_else(|| NONE.to_owned(), |it| format!("{it:.3}"));
    if let Some(m) = histogram.moments {
        writeln!(
            out,
            "  mean {:.3}  sigma {}  skew {}  kurtosis {}",
            m.mean / 1e3,
            shown(m.sigma.map(|ns| ns / 1e3)),
            shown(m.skew),
            shown(m.kurtosis)
        )?;
        let [q25, median, q75] = [m.q25, m.median, m.q75].map(|ns| shown(ns.map(|ns| ns / 1e3)));
        writeln!(out, "  quartiles {q25}  {median}  {q75}")?;
    }
    let width = histogram.width.map_or(0, |width| width.0.max(0).cast_unsigned());
    let mut expected = None;
    for (edge, count) in &histogram.bins {
        let from = expected.filter(|from| width > 0 && (edge - from) / width <= MOST_EMPTY).unwrap_or(*edge);
        for empty in (from..*edge).step_by(usize::try_from(width.max(1)).unwrap_or(usize::MAX)) {
            writeln!(out, "  {:>12} ; {:>10}", micros(empty), 0)?;
        }
        writeln!(out, "  {:>12} ; {count:>10}", micros(*edge))?;
        expected = Some(edge.saturating_add(width));
    }
    Ok(())
}

/// Longer stretches of empty bins are left out: nobody reads ten thousand zeros.
const MOST_EMPTY: u64 = 20;

fn micros(ns: u64) -> String {
    let text = format!("{}.{:03}", ns / 1000, ns % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use netaware_record::HistogramShape;
    use netaware_units::Span;

    #[test]
    fn filled_bins_and_the_empty_ones_between_are_shown() {
        let shape = HistogramShape { low: Span::from_micros(100), width: Span::from_micros(1), bins: 100 };
        let mut filled = shape.empty().unwrap();
        for ns in [50_000, 101_500, 101_999, 104_000, 150_000, 300_000] {
            filled.observe(ns);
        }
        let mut out = Vec::new();
        write(&mut out, "time between arrivals", &Histogram::from(&filled), Paint::PLAIN).unwrap();
        let text = String::from_utf8(out).unwrap();
        insta::assert_snapshot!("bins", text);
    }
}
