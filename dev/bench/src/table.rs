//! Markdown tables of a section: first what we claim, then everything that was measured.

use std::fmt::Write as _;

use super::contest::{Bound, Claim, Measured, Outcome};
use super::sample::Sample;

/// The text of one section; `lead` says how long things ran.
pub(crate) fn section(outcomes: &[Outcome], lead: &str) -> String {
    let mut text = format!("{lead}; median [smallest .. largest]. A ratio is formed within each round.\n\n");
    let claims =
        outcomes.iter().flat_map(|outcome| outcome.claims.iter().map(move |claim| row(outcome, claim)));
    let claims: Vec<Vec<String>> = claims.collect();
    if !claims.is_empty() {
        let head = ["contest", "figure", "netaware", "held against", "ratio", "target", "reached"];
        text += &markdown(&head.map(str::to_owned), &claims);
        text.push('\n');
    }
    text += &everything(outcomes);
    text += &failures(outcomes);
    text
}

fn row(outcome: &Outcome, claim: &Claim) -> Vec<String> {
    let ours = outcome.sample(claim.ours, claim.figure);
    let verdict = judge(outcome, claim);
    let figure = if claim.ours == "netaware" {
        claim.figure.to_owned()
    } else {
        format!("{}, {}", claim.ours.trim_start_matches("netaware "), claim.figure)
    };
    vec![
        outcome.title.clone(),
        figure,
        show(ours),
        verdict.against,
        show(verdict.ratio.as_ref()),
        verdict.target,
        verdict.reached.map_or("not measured", |reached| if reached { "yes" } else { "**no**" }).to_owned(),
    ]
}

struct Verdict {
    against: String,
    ratio: Option<Sample>,
    target: String,
    /// By the median; `None` when either side gave no figure.
    reached: Option<bool>,
}

fn judge(outcome: &Outcome, claim: &Claim) -> Verdict {
    let ours = outcome.sample(claim.ours, claim.figure);
    match claim.bound {
        Bound::AtLeast(times, peers) => {
            let best = best_of(outcome, claim.figure, peers, |a, b| a > b);
            compared(ours, best, format!("≥ {times} ×"), |ratio| ratio >= times)
        }
        Bound::AtMost(times, peers) => {
            let best = best_of(outcome, claim.figure, peers, |a, b| a < b);
            compared(ours, best, format!("≤ {times} ×"), |ratio| ratio <= times)
        }
        Bound::Floor(least) => Verdict {
            against: String::new(),
            ratio: None,
            target: format!("≥ {}", number(least)),
            reached: ours.and_then(Sample::median).map(|median| median >= least),
        },
        Bound::Limit(limit) => Verdict {
            against: String::new(),
            ratio: None,
            target: format!("≤ {}", number(limit)),
            reached: ours.and_then(Sample::median).map(|median| median <= limit),
        },
    }
}

fn compared(
    ours: Option<&Sample>,
    best: Option<(&Measured, &Sample)>,
    target: String,
    holds: impl Fn(f64) -> bool,
) -> Verdict {
    let against =
        best.map_or(String::new(), |(peer, sample)| format!("{} {}", peer.name, show(Some(sample))));
    let ratio = ours.zip(best).map(|(ours, (_, theirs))| ours.ratio(theirs));
    let reached = ratio.as_ref().and_then(Sample::median).map(holds);
    Verdict { against, ratio, target, reached }
}

/// The peer with the best median.
fn best_of<'a>(
    outcome: &'a Outcome,
    figure: &str,
    peers: &[&str],
    better: impl Fn(f64, f64) -> bool,
) -> Option<(&'a Measured, &'a Sample)> {
    let named = outcome.contenders.iter().filter(|contender| peers.contains(&contender.name));
    let measured =
        named.filter_map(|peer| Some((peer, peer.sample(figure)?, peer.sample(figure)?.median()?)));
    let best = measured.reduce(|best, other| if better(other.2, best.2) { other } else { best });
    best.map(|(peer, sample, _)| (peer, sample))
}

/// One row for each contender, one column for each figure.
fn everything(outcomes: &[Outcome]) -> String {
    let mut figures: Vec<&str> = Vec::new();
    for (figure, _) in outcomes.iter().flat_map(|outcome| &outcome.contenders).flat_map(|one| &one.samples) {
        if !figures.contains(figure) {
            figures.push(figure);
        }
    }
    let head: Vec<String> = ["contest", "tool"].iter().chain(&figures).map(|&word| word.to_owned()).collect();
    let mut rows = Vec::new();
    for outcome in outcomes {
        for contender in &outcome.contenders {
            let name = [outcome.title.clone(), contender.name.to_owned()];
            let values = figures.iter().map(|figure| show(contender.sample(figure)));
            rows.push(name.into_iter().chain(values).collect());
        }
    }
    markdown(&head, &rows)
}

/// Why runs failed, one line each; empty if none did.
pub(crate) fn failures<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        for contender in &outcome.contenders {
            for (reason, count) in &contender.failures {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "- {}, {}: {count} failed: {reason}", outcome.title, contender.name);
            }
        }
    }
    if text.is_empty() { text } else { format!("\nFailed runs:\n\n{text}") }
}

fn show(sample: Option<&Sample>) -> String {
    let Some((sample, median)) = sample.and_then(|sample| Some((sample, sample.median()?))) else {
        return "–".to_owned();
    };
    match sample.range() {
        Some((lo, hi)) if lo < hi => format!("{} [{} .. {}]", number(median), number(lo), number(hi)),
        _ => number(median),
    }
}

/// Three or four significant digits, with a unit prefix from a hundred thousand on.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1e5 => format!("{:.3} M", value / 1e6),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.4}"),
    }
}

/// Padded, so that it reads well in a terminal too.
pub(crate) fn markdown(head: &[String], rows: &[Vec<String>]) -> String {
    let cells =
        |column: usize| rows.iter().chain([&head.to_vec()]).map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..head.len()).map(|column| cells(column).unwrap_or(0)).collect();
    let line = |row: &[String]| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!(" {cell:<width$} "));
        format!("|{}|\n", cells.collect::<Vec<_>>().join("|"))
    };
    let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
    let body: String = rows.iter().map(|row| line(row)).collect();
    format!("{}{}{body}", line(head), line(&rule))
}

#[cfg(test)]
mod tests {
    use super::super::contest::{Contender, Contest, Reading};
    use super::*;

    fn outcome(claims: Vec<Claim>) -> Outcome {
        let fixed = |name, reading: Reading| Contender { name, run: Box::new(move || Ok(reading.clone())) };
        let contenders = vec![
            fixed("netaware", vec![("Gbit/s", 50.0), ("loss %", 0.0)]),
            fixed("iperf3", vec![("Gbit/s", 40.0), ("loss %", 1.5)]),
            fixed("nuttcp", vec![("Gbit/s", 30.0)]),
        ];
        Contest { title: "loopback".into(), contenders, claims }.hold(1)
    }

    fn claim(figure: &'static str, bound: Bound) -> Claim {
        Claim { ours: "netaware", figure, bound }
    }

    #[test]
    fn claim_is_held_against_the_best_peer() {
        let more = claim("Gbit/s", Bound::AtLeast(1.2, &["iperf3", "nuttcp"]));
        let less = claim("Gbit/s", Bound::AtMost(1.2, &["iperf3", "nuttcp"]));
        let measured = outcome(vec![]);
        assert_eq!(row(&measured, &more)[3..], ["iperf3 40.0", "1.25", "≥ 1.2 ×", "yes"]);
        assert_eq!(row(&measured, &less)[3..], ["nuttcp 30.0", "1.67", "≤ 1.2 ×", "**no**"]);
    }

    #[test]
    fn absolute_limit_needs_no_peer() {
        let none = claim("loss %", Bound::Limit(0.0));
        assert_eq!(row(&outcome(vec![]), &none)[2..], ["0", "", "–", "≤ 0", "yes"]);
    }

    #[test]
    fn absolute_floor_needs_no_peer() {
        let rate = |least| claim("Gbit/s", Bound::Floor(least));
        assert_eq!(row(&outcome(vec![]), &rate(45.0))[2..], ["50.0", "", "–", "≥ 45.0", "yes"]);
        assert_eq!(row(&outcome(vec![]), &rate(55.0))[6], "**no**");
    }

    #[test]
    fn absent_peer_is_no_verdict() {
        let newest = claim("Gbit/s", Bound::AtLeast(1.0, &["iperf3 newest"]));
        assert_eq!(row(&outcome(vec![]), &newest)[6], "not measured");
    }

    #[test]
    fn every_row_has_every_column() {
        let text = section(&[outcome(vec![claim("Gbit/s", Bound::Limit(1.0))])], "1 round");
        let tables = text.lines().filter(|line| line.starts_with('|'));
        let columns: Vec<usize> = tables.map(|line| line.matches('|').count()).collect();
        assert_eq!(columns, [8, 8, 8, 5, 5, 5, 5, 5]);
        assert!(text.contains("| loopback | nuttcp   | 30.0   | –      |"), "{text}");
    }
}
