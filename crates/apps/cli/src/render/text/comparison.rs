//! IPv6 minus IPv4, and what follows from it.

use std::io::{self, Write};

use netaware_record::{Comparison, Direction, Interval, Metric, MetricComparison, Preference};

use crate::render::figures::{self, decimals};
use crate::render::paint::Paint;
use crate::render::paragraph;
use crate::render::table::padded;

const WIDTHS: [usize; 3] = [33, 15, 19];

pub(super) fn write(out: &mut dyn Write, found: &Comparison, paint: Paint) -> io::Result<()> {
    if !found.metrics.is_empty() {
        let titles = line(["IPv6 MINUS IPv4", "difference", "95 % interval"], "better");
        writeln!(out, "\n{}", paint.heading(&titles))?;
    }
    for metric in &found.metrics {
        row(out, metric, paint)?;
    }
    if found.metrics.iter().any(|m| m.host_limited) {
        writeln!(out, "{}", paint.faint("    * set by a host, not by the network"))?;
    }
    if !found.verdicts.is_empty() {
        writeln!(out, "\n{}", paint.heading("VERDICT"))?;
    }
    for verdict in &found.verdicts {
        let advice = match verdict.prefer {
            Preference::V4 => "prefer IPv4",
            Preference::V6 => "prefer IPv6",
            Preference::NoDifferenceShown => "no difference shown",
            Preference::NotCompared => "not compared",
        };
        let lead = format!("  {}", padded(verdict.purpose.name(), 15));
        let text = format!("{advice}: {}", verdict.because);
        let shown = paragraph(&lead, text.trim_end_matches([':', ' ']));
        let decided = matches!(verdict.prefer, Preference::V4 | Preference::V6);
        let painted = if decided { shown.replacen(advice, &paint.good(advice), 1) } else { shown };
        writeln!(out, "{painted}")?;
    }
    Ok(())
}

fn row(out: &mut dyn Write, m: &MetricComparison, paint: Paint) -> io::Result<()> {
    let direction = match m.direction {
        Direction::RoundTrip => String::new(),
        way => format!(", {}", way.name()),
    };
    let mark = if m.host_limited { "*" } else { "" };
    let name = format!("  {}{direction}{mark}", m.metric.name());
    let (difference, bounds) = difference(m);
    let better = match m.favours {
        Preference::V4 => "IPv4",
        Preference::V6 => "IPv6",
        Preference::NoDifferenceShown => "none shown",
        Preference::NotCompared => "not compared",
    };
    let decided = matches!(m.favours, Preference::V4 | Preference::V6);
    let painted = if decided { paint.good(better) } else { better.to_owned() };
    writeln!(out, "{}", line([&name, &difference, &bounds], &painted))
}

fn line(cells: [&str; 3], last: &str) -> String {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(WIDTHS) {
        line.push_str(&padded(cell, width - 1));
        line.push(' ');
    }
    line + last
}

/// The estimate with its unit, and the bounds in the same unit.
fn difference(m: &MetricComparison) -> (String, String) {
    let Interval { estimate, lo, hi, .. } = m.difference;
    let largest = lo.abs().max(hi.abs()).max(estimate.abs());
    let (unit, scale) = match m.metric {
        Metric::TcpSingle | Metric::TcpParallel => figures::rate_unit(largest),
        Metric::UdpLoss => ("%", 0.01),
        _ => figures::time_unit(largest),
    };
    let decimals = decimals((hi - lo) / 2.0 / scale).min(3);
    let shown = |value: f64| {
        let text = format!("{:+.decimals$}", value / scale);
        // "-0.0" says less than "0.0".
        if text.trim_start_matches(['+', '-']).chars().all(|c| matches!(c, '0' | '.')) {
            text.trim_start_matches(['+', '-']).to_owned()
        } else {
            text
        }
    };
    (format!("{} {unit}", shown(estimate)), format!("{} .. {}", shown(lo), shown(hi)))
}
