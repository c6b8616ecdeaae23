//! IPv6 minus IPv4, and what follows from it.

use std::io::{self, Write};

use netaware_record::{Comparison, Direction, Interval, Metric, MetricComparison, Preference, VersionResult};

use crate::render::figures::{self, decimals};
use crate::render::paint::Paint;
use crate::render::paragraph;
use crate::render::table::padded;

const WIDTHS: [usize; 3] = [33, 15, 19];

pub(super) fn write(
    out: &mut dyn Write,
    found: &Comparison,
    versions: &[VersionResult],
    paint: Paint,
) -> io::Result<()> {
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
    for reason in reasons(&found.metrics).into_iter().chain(not_compared(&found.metrics, versions)) {
        writeln!(out, "{}", paint.faint(&paragraph("    ", &reason)))?;
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
        // The reason says itself that nothing is decided.
        let text = if verdict.because.starts_with("not decided: ") {
            verdict.because.clone()
        } else {
            format!("{advice}: {}", verdict.because)
        };
        let shown = paragraph(&lead, text.trim_end_matches([':', ' ']));
        let decided = matches!(verdict.prefer, Preference::V4 | Preference::V6);
        let painted = if decided { shown.replacen(advice, &paint.good(advice), 1) } else { shown };
        writeln!(out, "{painted}")?;
    }
    Ok(())
}

/// Why a difference whose interval is clear of zero is none that is shown. Metrics with the same
/// reason share a sentence.
fn reasons(metrics: &[MetricComparison]) -> Vec<String> {
    let mut said: Vec<(String, Vec<String>)> = Vec::new();
    let unshown = |m: &&MetricComparison| m.favours == Preference::NoDifferenceShown && m.is_clear();
    for m in metrics.iter().filter(unshown) {
        let needed = MetricComparison::needed(m.margin, m.rounds);
        let why = match &m.doubt {
            Some(doubt) => doubt.clone(),
            None if m.difference.estimate.abs() <= m.margin => "less than matters to anybody".to_owned(),
            None if m.difference.estimate.abs() <= needed => {
                format!(
                    "of a single round only a difference of more than {} counts",
                    amount(m.metric, needed)
                )
            }
            None => continue,
        };
        match said.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(name(m.metric, m.direction)),
            None => said.push((why, vec![name(m.metric, m.direction)])),
        }
    }
    said.into_iter().map(|(why, names)| format!("{}: {why}", names.join("; "))).collect()
}

/// The transfers that both versions have a rate of, and that were too short to tell how it
/// scatters.
fn not_compared(metrics: &[MetricComparison], versions: &[VersionResult]) -> Option<String> {
    let [v4, v6] = versions else { return None };
    let has = |version: &VersionResult, is_single: bool, way: Direction| {
        version.tcp.iter().any(|tcp| {
            tcp.goodput.is_some() && (tcp.streams == 1) == is_single && tcp.pedigree.direction == way
        })
    };
    let ways = [Direction::Forward, Direction::Reverse];
    let kinds = ways.into_iter().flat_map(|way| [(Metric::TcpSingle, way), (Metric::TcpParallel, way)]);
    let missing = kinds.filter(|(metric, way)| {
        let is_single = *metric == Metric::TcpSingle;
        let is_compared = metrics.iter().any(|m| (m.metric, m.direction) == (*metric, *way));
        !is_compared && has(v4, is_single, *way) && has(v6, is_single, *way)
    });
    let names: Vec<String> = missing.map(|(metric, way)| name(metric, way)).collect();
    (!names.is_empty()).then(|| {
        format!("not compared: {}: too little of it counts to tell how the rate varies", names.join("; "))
    })
}

/// "TCP, one stream, up".
fn name(metric: Metric, way: Direction) -> String {
    match way {
        Direction::RoundTrip => metric.name().to_owned(),
        way => format!("{}, {}", metric.name(), way.name()),
    }
}

/// The unit of a difference of which this is the largest part, and its size.
fn unit_of(metric: Metric, largest: f64) -> (&'static str, f64) {
    match metric {
        Metric::TcpSingle | Metric::TcpParallel => figures::rate_unit(largest),
        Metric::UdpLoss | Metric::IdleLoss => ("%", 0.01),
        Metric::IdleRtt | Metric::LoadedRtt | Metric::DelayVariation | Metric::Connect => {
            figures::time_unit(largest)
        }
    }
}

/// "12.0 Mbit/s".
fn amount(metric: Metric, value: f64) -> String {
    let (unit, scale) = unit_of(metric, value);
    format!("{:.1} {unit}", value / scale)
}

fn row(out: &mut dyn Write, m: &MetricComparison, paint: Paint) -> io::Result<()> {
    let mark = if m.host_limited { "*" } else { "" };
    let name = format!("  {}{mark}", name(m.metric, m.direction));
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
    let (unit, scale) = unit_of(m.metric, largest);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_clear_of_zero_is_not_none_shown_without_a_reason() {
        let of = |metric, estimate: f64, rounds, doubt: Option<&str>| MetricComparison {
            metric,
            direction: Direction::Reverse,
            v4: 100.0,
            v6: 100.0 + estimate,
            difference: Interval { estimate, lo: estimate - 0.5, hi: estimate + 0.5, confidence: 0.95 },
            pairs: 30,
            rounds,
            margin: 5.0,
            favours: Preference::NoDifferenceShown,
            host_limited: false,
            doubt: doubt.map(str::to_owned),
        };
        let metrics = [
            of(Metric::TcpSingle, 2.0, 2, None),
            of(Metric::TcpParallel, 3.0, 1, None),
            of(Metric::LoadedRtt, 9.0, 1, None),
            of(Metric::UdpLoss, 90.0, 2, Some("the streams had unlike rates")),
            // This one is not clear of zero.
            of(Metric::IdleLoss, 0.1, 2, None),
            MetricComparison { favours: Preference::V4, ..of(Metric::Connect, 90.0, 2, None) },
        ];
        let want = [
            "TCP, one stream, down; TCP, parallel streams, down: less than matters to anybody",
            "round trip under load, down: of a single round only a difference of more than 15.0 ns counts",
            "UDP loss, down: the streams had unlike rates",
        ];
        assert_eq!(reasons(&metrics), want);
    }

    /// "No difference shown", of 28.9 against 2.87 Mbit/s in one round.
    #[test]
    fn a_verdict_that_is_not_decided_is_not_said_to_show_no_difference() {
        let verdict = netaware_record::Verdict {
            purpose: netaware_record::Use::Bulk,
            prefer: Preference::NoDifferenceShown,
            because: "not decided: one round".to_owned(),
        };
        let found = Comparison { metrics: Vec::new(), verdicts: vec![verdict] };
        let mut out = Vec::new();
        write(&mut out, &found, &[], Paint::PLAIN).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("not decided: one round") && !text.contains("no difference"), "{text}");
    }

    #[test]
    fn a_rate_of_both_versions_that_was_not_compared_is_named_with_its_reason() {
        let record = crate::render::fixture::test();
        let of = record.comparison.as_ref().unwrap().metrics[0].clone();
        let mut metrics = Vec::new();
        for direction in [Direction::Forward, Direction::Reverse] {
            for metric in [Metric::TcpSingle, Metric::TcpParallel] {
                metrics.push(MetricComparison { metric, direction, ..of.clone() });
            }
        }
        assert_eq!(not_compared(&metrics, &record.versions), None);
        metrics.retain(|m| (m.metric, m.direction) != (Metric::TcpSingle, Direction::Reverse));
        assert_eq!(
            not_compared(&metrics, &record.versions).unwrap(),
            "not compared: TCP, one stream, down: too little of it counts to tell how the rate varies"
        );
        assert_eq!(not_compared(&metrics, &record.versions[..1]), None);
    }
}
