//! What a simulation said, beside what is true: for people, and as JSON.

use std::io::{self, Write};

use netaware_record::{MtuFinding, Record};
use netaware_sim::methods::{Figure, Found, Spread, Unit, WaySummary, spread};
use netaware_units::{BitRate, Span};
use serde_json::json;

use super::paint::Paint;
use super::table::Table;
use super::{figures, paragraph};

/// One or more runs of a method over a scenario.
pub(crate) struct Report<'a> {
    pub(crate) scenario: &'a str,
    pub(crate) about: &'a str,
    pub(crate) method: &'static str,
    /// By seed; each with the same IP versions.
    pub(crate) runs: &'a [(u64, Vec<Found>)],
    /// Of a single run, where the schema of records has a place for it.
    pub(crate) record: Option<&'a Record>,
}

/// For people, 80 columns wide.
pub(crate) fn text(out: &mut dyn Write, report: &Report<'_>, paint: Paint) -> io::Result<()> {
    let title = format!("netaware simulate {} {}", report.scenario, report.method);
    writeln!(out, "{}", paint.heading(&paragraph("", &title)))?;
    writeln!(out, "{}", paragraph("  ", report.about))?;
    match report.runs {
        [] => Ok(()),
        [(seed, found)] => {
            let elapsed = found.first().map_or(Span::ZERO, |found| found.elapsed);
            writeln!(out, "  seed {seed}, {elapsed} of virtual time")?;
            single(out, found, report.method, paint)
        }
        [(first, _), ..] => {
            writeln!(out, "  {} seeds from {first}", figures::count(report.runs.len() as u64))?;
            many(out, report, paint)
        }
    }
}

fn single(out: &mut dyn Write, found: &[Found], method: &str, paint: Paint) -> io::Result<()> {
    let estimates = found.iter().any(|found| found.figures.iter().any(|figure| figure.estimate.is_some()));
    let columns = found.iter().flat_map(|found| {
        let version = found.version.name().to_owned();
        if estimates { vec![version, "in truth".to_owned()] } else { vec![version] }
    });
    let mut table = Table::new(out, paint, columns.collect());
    table.section(&method.to_uppercase().replace('-', " "))?;
    let rows = found.first().map_or(0, |found| found.figures.len());
    for row in 0..rows {
        let figures: Vec<&Figure> = found.iter().filter_map(|found| found.figures.get(row)).collect();
        let Some(name) = figures.first().map(|figure| figure.name) else { continue };
        let cells: Vec<Option<String>> = figures
            .iter()
            .flat_map(|figure| {
                let truth = shown(figure.unit, figure.truth);
                if estimates { vec![shown(figure.unit, figure.estimate), truth] } else { vec![truth] }
            })
            .collect();
        table.row(name, &cells)?;
    }
    for found in found {
        remarks(out, found)?;
    }
    Ok(())
}

/// What no figure says: where packets went, and what a search found out.
fn remarks(out: &mut dyn Write, found: &Found) -> io::Result<()> {
    let version = found.version.name();
    if let Some(finding) = found.result.path.as_ref().and_then(|path| words(path.mtu_finding)) {
        writeln!(out, "\n{}", paragraph("  ", &format!("{version}: {finding}")))?;
    }
    for (direction, way) in [("up", &found.forward), ("down", &found.reverse)] {
        if way.lost + way.copies + way.not_sent > 0 {
            writeln!(out, "\n{}", paragraph("  ", &format!("{version} {direction}: {}", fates(way))))?;
        }
    }
    Ok(())
}

fn words(finding: MtuFinding) -> Option<&'static str> {
    match finding {
        MtuFinding::Unknown => None,
        MtuFinding::Confirmed => Some("packets as large as the first link takes pass"),
        MtuFinding::Learnt => Some("a router said that larger packets are too big, and the host learnt it"),
        MtuFinding::BlackHole => Some("larger packets vanish without an answer: TCP stalls on such a path"),
    }
}

fn fates(way: &WaySummary) -> String {
    let mut parts = vec![format!("{} of {} lost", figures::count(way.lost), figures::count(way.sent))];
    parts.extend(way.causes.iter().map(|(cause, n)| format!("{cause} {}", figures::count(*n))));
    if way.copies > 0 {
        parts.push(format!("{} copies", figures::count(way.copies)));
    }
    if way.not_sent > 0 {
        parts.push(format!("{} too big for the host to send", figures::count(way.not_sent)));
    }
    parts.join("; ")
}

fn many(out: &mut dyn Write, report: &Report<'_>, paint: Paint) -> io::Result<()> {
    for (title, spread) in spreads(report) {
        let estimates = spread.iter().any(|spread| spread.estimates > 0);
        let columns: &[&str] = if estimates { &["median", "5 %", "95 %", "in truth"] } else { &["median"] };
        let mut table = Table::new(out, paint, columns.iter().map(|&name| name.to_owned()).collect());
        table.section(&format!("{}, {title}", report.method.to_uppercase().replace('-', " ")))?;
        for Spread { name, unit, median, p5, p95, truth, .. } in spread {
            let cells = if estimates { vec![median, p5, p95, truth] } else { vec![truth] };
            let cells: Vec<Option<String>> = cells.into_iter().map(|value| shown(unit, value)).collect();
            table.row(name, &cells)?;
        }
    }
    Ok(())
}

/// By IP version.
fn spreads(report: &Report<'_>) -> Vec<(&'static str, Vec<Spread>)> {
    let versions = report.runs.first().map_or(0, |(_, found)| found.len());
    let of = |at: usize| {
        let found: Vec<&Found> = report.runs.iter().filter_map(|(_, found)| found.get(at)).collect();
        let runs: Vec<&[Figure]> = found.iter().map(|found| &found.figures[..]).collect();
        Some((found.first()?.version.name(), spread(&runs)))
    };
    (0..versions).filter_map(of).collect()
}

fn shown(unit: Unit, value: Option<f64>) -> Option<String> {
    let value = value?;
    Some(match unit {
        Unit::Nanoseconds => Span(value.round() as i64).to_string(),
        Unit::BitsPerSecond => BitRate(value.round() as u64).to_string(),
        Unit::Share => figures::percent(value),
        Unit::Bytes => format!("{value} B"),
        Unit::Count => figures::count(value.round() as u64),
    })
}

/// One object.
pub(crate) fn json(out: &mut dyn Write, report: &Report<'_>) -> io::Result<()> {
    let mut whole = json!({
        "simulation": 1,
        "scenario": report.scenario,
        "about": report.about,
        "method": report.method,
    });
    match report.runs {
        [(seed, found)] => {
            whole["seed"] = json!(seed);
            whole["versions"] = json!(found);
        }
        runs => {
            let spreads = spreads(report).into_iter();
            whole["spread"] =
                spreads.map(|(version, figures)| json!({ "version": version, "figures": figures })).collect();
            whole["runs"] =
                runs.iter().map(|(seed, found)| json!({ "seed": seed, "versions": found })).collect();
        }
    }
    if let Some(record) = report.record {
        whole["record"] = json!(record);
    }
    serde_json::to_writer_pretty(&mut *out, &whole)?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use netaware_record::IpVersion;
    use netaware_sim::Scenario;
    use netaware_sim::methods::{self, LatencyAsk, Method, Pacing};

    use super::*;
    use netaware_stats::patience::Waiting;

    const LOSSY: &str = "about = 'half of it is lost'\n[[hop]]\nrate = '100Mbit/s'\ndelay = '5ms'\n\
                         forward = { loss = '50%' }\n[[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\nmtu = 1400\n";

    fn runs(method: &Method, seeds: u64) -> Vec<(u64, Vec<Found>)> {
        let scenario = Scenario::parse(LOSSY).unwrap();
        let found = |seed| {
            let version = |version| methods::run(&scenario, seed, version, method).unwrap();
            [IpVersion::V4, IpVersion::V6].map(version).to_vec()
        };
        (0..seeds).map(|seed| (seed, found(seed))).collect()
    }

    fn page(method: &Method, seeds: u64) -> String {
        let runs = runs(method, seeds);
        let (about, name) = ("half of it is lost", method.name());
        let report = Report { scenario: "mine.toml", about, method: name, runs: &runs, record: None };
        let mut out = Vec::new();
        text(&mut out, &report, Paint::PLAIN).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn latency() -> Method {
        Method::Latency(LatencyAsk {
            count: Some(50),
            time: None,
            pacing: Pacing::Even(Span::from_millis(10)),
            length: 64,
            response: 64,
            patience: Span::from_secs(1),
            waiting: Waiting::Exactly,
        })
    }

    #[test]
    fn each_method_has_its_page() {
        let stream = methods::StreamAsk {
            from: netaware_sim::Side::A,
            count: 100,
            spacing: Span::from_millis(1),
            length: 64,
        };
        insta::assert_snapshot!("simulated_latency", page(&latency(), 1));
        insta::assert_snapshot!("simulated_path_mtu", page(&Method::PathMtu, 1));
        insta::assert_snapshot!("simulated_stream", page(&Method::Stream(stream), 1));
        insta::assert_snapshot!("simulated_runs", page(&latency(), 20));
    }

    #[test]
    fn no_line_is_wider_than_80_columns() {
        for seeds in [1, 3] {
            for line in page(&latency(), seeds).lines() {
                assert!(line.chars().count() <= 80 && line.trim_end() == line, "{line}");
            }
        }
    }
}
