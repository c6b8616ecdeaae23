//! Who is held against whom, and whether the two agree.

use crate::contest::{Contest, Outcome};
use crate::sample::Sample;
use crate::table::{failures, markdown};

/// A contest whose tools should say the same.
pub(super) struct Comparison<'a> {
    pub(super) contest: Contest<'a>,
    pub(super) figures: Vec<Figure>,
}

/// A comparison with what was measured.
pub(super) struct Held {
    pub(super) outcome: Outcome,
    figures: Vec<Figure>,
}

/// Something that several tools tell.
#[derive(Debug, Clone)]
pub(super) struct Figure {
    /// With unit: "p50 us".
    pub(super) name: &'static str,
    /// Decimals with which it is shown.
    pub(super) decimals: usize,
    /// What it ought to be by arithmetic, if that is known.
    pub(super) truth: Option<f64>,
    /// A peer, and the figure of ours that it is held against.
    pub(super) pairings: Vec<[Told; 2]>,
}

/// A figure as one tool tells it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Told {
    /// What it is called in the table.
    pub(super) label: &'static str,
    /// Name of the contender.
    pub(super) tool: &'static str,
    /// Name in that contender's reading.
    pub(super) figure: &'static str,
    /// What its last printed digit is worth, in the unit of the figure.
    pub(super) resolution: f64,
}

impl Told {
    /// As the tool itself calls it; the resolution is finer than anything that matters.
    pub(super) fn by(tool: &'static str, figure: &'static str) -> Self {
        Self { label: tool, tool, figure, resolution: 0.0 }
    }

    pub(super) fn to(self, resolution: f64) -> Self {
        Self { resolution, ..self }
    }

    pub(super) fn called(self, label: &'static str) -> Self {
        Self { label, ..self }
    }

    fn sample(self, outcome: &Outcome) -> Option<&Sample> {
        outcome.sample(self.tool, self.figure)
    }

    /// Half the range of the runs, no less than the last digit. `None` without a run.
    fn spread(self, outcome: &Outcome) -> Option<f64> {
        let (lo, hi) = self.sample(outcome)?.range()?;
        Some(((hi - lo) / 2.0).max(self.resolution))
    }
}

impl Comparison<'_> {
    pub(super) fn hold(self, runs: u32) -> Held {
        Held { outcome: self.contest.hold(runs), figures: self.figures }
    }
}

const HEAD: [&str; 9] =
    ["path", "figure", "tool", "found", "off truth", "held against", "difference", "both spreads", "agree"];

/// All figures of all comparisons: ours first, then each peer; then what failed.
pub(super) fn table(held: &[Held]) -> String {
    let mut rows = Vec::new();
    for Held { outcome, figures } in held {
        for figure in figures {
            rows.extend(ours(figure).map(|told| lone_row(outcome, figure, told)));
            rows.extend(figure.pairings.iter().map(|pairing| paired_row(outcome, figure, *pairing)));
        }
    }
    let outcomes = held.iter().map(|held| &held.outcome);
    markdown(&HEAD.map(str::to_owned), &rows) + &failures(outcomes)
}

/// Each of our figures once, in the order in which peers are held against them.
fn ours(figure: &Figure) -> impl Iterator<Item = Told> + '_ {
    let all = figure.pairings.iter().enumerate();
    let first = |(index, [_, ours]): (usize, &[Told; 2])| {
        let before = &figure.pairings[..index];
        (!before.iter().any(|[_, earlier]| earlier == ours)).then_some(*ours)
    };
    all.filter_map(first)
}

fn lone_row(outcome: &Outcome, figure: &Figure, told: Told) -> Vec<String> {
    let mut row = first_cells(outcome, figure, told);
    row.extend(["", "", "", ""].map(str::to_owned));
    row
}

fn paired_row(outcome: &Outcome, figure: &Figure, [peer, ours]: [Told; 2]) -> Vec<String> {
    let mut row = first_cells(outcome, figure, peer);
    row.push(ours.label.to_owned());
    row.extend(match judge(outcome, [peer, ours]) {
        None => ["–", "–", "not measured"].map(str::to_owned),
        Some(verdict) => [
            format!("{:+.*}", figure.decimals, verdict.difference),
            format!("{:.*}", figure.decimals, verdict.spreads),
            if verdict.agrees() { "yes" } else { "**no**" }.to_owned(),
        ],
    });
    row
}

/// The first row of a figure would do to tell its truth, but a table can be cut and sorted.
fn first_cells(outcome: &Outcome, figure: &Figure, told: Told) -> Vec<String> {
    let median = told.sample(outcome).and_then(Sample::median);
    let off = match (median, figure.truth) {
        (Some(median), Some(truth)) => {
            format!("{:+.*} of {truth:.*}", figure.decimals, median - truth, figure.decimals)
        }
        _ => "–".to_owned(),
    };
    let found = show(told.sample(outcome), figure.decimals);
    vec![outcome.title.clone(), figure.name.to_owned(), told.label.to_owned(), found, off]
}

fn show(sample: Option<&Sample>, decimals: usize) -> String {
    match sample.and_then(|sample| Some((sample.median()?, sample.range()?))) {
        None => "–".to_owned(),
        Some((median, (lo, hi))) => format!("{median:.decimals$} [{lo:.decimals$} .. {hi:.decimals$}]"),
    }
}

/// The peer against us.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Verdict {
    /// Of the medians: the peer's less ours.
    difference: f64,
    /// Both spreads together.
    spreads: f64,
}

impl Verdict {
    fn agrees(self) -> bool {
        self.difference.abs() <= self.spreads
    }
}

/// `None` when either gave no figure.
fn judge(outcome: &Outcome, [peer, ours]: [Told; 2]) -> Option<Verdict> {
    let median = |told: Told| told.sample(outcome).and_then(Sample::median);
    Some(Verdict {
        difference: median(peer)? - median(ours)?,
        spreads: peer.spread(outcome)? + ours.spread(outcome)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::{Contender, Reading};

    /// Tools that tell these values, one per round.
    fn outcome(tools: &[(&'static str, &[f64])]) -> Outcome {
        let told = |values: &[f64]| {
            let left = std::cell::RefCell::new(values.to_vec());
            move || -> anyhow::Result<Reading> { Ok(vec![("ms", left.borrow_mut().remove(0))]) }
        };
        let contenders =
            tools.iter().map(|(name, values)| Contender { name, run: Box::new(told(values)) }).collect();
        Contest { title: "plain, IPv4".into(), contenders, claims: vec![] }
            .hold(tools[0].1.len().try_into().unwrap())
    }

    fn pair(resolution: f64) -> [Told; 2] {
        [Told::by("ping", "ms").to(resolution), Told::by("netaware", "ms")]
    }

    #[test]
    fn medians_may_differ_by_both_half_ranges_together() {
        let near = outcome(&[("netaware", &[10.0, 10.5, 11.0]), ("ping", &[11.25, 11.5, 11.75])]);
        let verdict = judge(&near, pair(0.0)).unwrap();
        assert_eq!(verdict, Verdict { difference: 1.0, spreads: 0.75 });
        assert!(!verdict.agrees());
        let wider = outcome(&[("netaware", &[10.0, 10.5, 11.0]), ("ping", &[11.0, 11.5, 12.0])]);
        assert!(judge(&wider, pair(0.0)).unwrap().agrees(), "exactly the sum is still within it");
    }

    #[test]
    fn tool_cannot_be_held_to_more_than_it_prints() {
        let coarse = outcome(&[("netaware", &[20.04]), ("ping", &[20.1])]);
        assert!(!judge(&coarse, pair(0.0)).unwrap().agrees());
        assert!(judge(&coarse, pair(0.1)).unwrap().agrees());
    }

    #[test]
    fn who_told_nothing_is_not_judged() {
        assert_eq!(judge(&outcome(&[("netaware", &[1.0])]), pair(0.0)), None);
    }

    #[test]
    fn ours_stand_once_above_the_peers_and_every_row_has_every_column() {
        let figure = Figure {
            name: "ms",
            decimals: 1,
            truth: Some(10.0),
            pairings: vec![pair(0.0), pair(0.0), [Told::by("irtt", "ms"), pair(0.0)[1]]],
        };
        let outcome = outcome(&[("netaware", &[10.5]), ("ping", &[11.5])]);
        let text = table(&[Held { outcome, figures: vec![figure] }]);
        let rows: Vec<Vec<&str>> =
            text.lines().map(|line| line.split('|').map(str::trim).collect()).collect();
        assert!(rows.iter().all(|row| row.len() == HEAD.len() + 2), "{text}");
        let tools: Vec<&str> = rows[2..].iter().map(|row| row[3]).collect();
        assert_eq!(tools, ["netaware", "ping", "ping", "irtt"]);
        assert_eq!(
            rows[3][4..10],
            ["11.5 [11.5 .. 11.5]", "+1.5 of 10.0", "netaware", "+1.0", "0.0", "**no**"]
        );
        assert_eq!(rows[5][9], "not measured");
    }
}
