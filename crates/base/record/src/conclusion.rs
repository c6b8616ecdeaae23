//! What a measurement came to: the one rule behind its outcome, its exit code, and what is said of
//! it in every format.
//!
//! A version that is marked as unreachable, or of which a phase failed, counts only if no other
//! version was measured whole: that one of two IP versions is missing or broken is a result, and
//! the record says why. Of the versions that count, the worst end of a phase is the end of the
//! whole. Where nothing was measured at all, nothing is complete; nor is it where one of the things
//! that were asked for has a figure over no version, and what was lost from the first packet to the
//! last has none.

use std::fmt;

use crate::{Direction, MatrixResult, Outcome, Record, TcpResult, VersionResult};

/// The option of a record that names what the plan left out, and said so.
pub const LEFT_OUT: &str = "left-out";

/// One of the things that a measurement is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Round trips.
    Latency,
    /// Rates over TCP.
    Tcp,
    /// Streams over UDP.
    Udp,
    /// Cells of a matrix.
    Matrix,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Latency => "the round trip",
            Self::Tcp => "the rate over TCP",
            Self::Udp => "UDP",
            Self::Matrix => "the matrix",
        })
    }
}

/// What a measurement came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// Measured, and every expectation held. It may have been shortened on request.
    Measured,
    /// Measured, and an expectation did not hold or could not be judged.
    Missed,
    /// Nothing was measured, or the other end or the path failed before the end.
    Failed,
}

impl Record {
    /// What it came to, for an exit code.
    pub fn conclusion(&self) -> Conclusion {
        if self.outcome == Outcome::Failed || !self.is_measured() {
            Conclusion::Failed
        } else if self.expectations.iter().all(|expectation| expectation.held) {
            Conclusion::Measured
        } else {
            Conclusion::Missed
        }
    }

    /// Makes the outcome no better than what was measured allows: the worst end of a phase that
    /// counts, and `failed` where nothing was measured and no one asked to stop.
    pub fn settle(&mut self) {
        let reached = self.versions.iter().filter(|v| v.unreachable.is_none() && v.is_measured());
        let worst = reached.map(|version| version.phase_outcomes().max().unwrap_or_default());
        // The best of the versions: one that failed does not count beside one that did not.
        let phases = if worst.clone().any(|outcome| outcome != Outcome::Failed) {
            worst.filter(|outcome| *outcome != Outcome::Failed).max().unwrap_or_default()
        } else {
            worst.max().unwrap_or_default()
        };
        let has_all = || self.asked().into_iter().all(|asked| self.has_figure_of(asked));
        let least = if self.outcome == Outcome::Interrupted || (self.is_measured() && has_all()) {
            Outcome::Complete
        } else {
            Outcome::Failed
        };
        self.outcome = self.outcome.max(phases).max(least);
    }

    /// At least one IP version was measured, and not lost on the way; of a host, something that
    /// limits rates.
    pub fn is_measured(&self) -> bool {
        match &self.ability {
            Some(ability) => !ability.honest.is_empty(),
            None => self.versions.iter().any(|v| v.unreachable.is_none() && v.is_measured()),
        }
    }

    /// What it was asked for, without what the plan left out. Commands with figures of their own,
    /// as those of path rates, are not in it.
    fn asked(&self) -> Vec<Asked> {
        let option = |name: &str| self.request.options.get(name).map(String::as_str);
        let left_out = option(LEFT_OUT).unwrap_or_default();
        let is_left_out = |name: &str| left_out.split(", ").any(|left| left == name);
        let wants = |name: &str| option(&name.to_lowercase()) == Some("true") && !is_left_out(name);
        match self.command.as_str() {
            "test" => [(Asked::Latency, true), (Asked::Tcp, wants("TCP")), (Asked::Udp, wants("UDP"))]
                .into_iter()
                .filter_map(|(asked, is_wanted)| is_wanted.then_some(asked))
                .collect(),
            "latency" => vec![Asked::Latency],
            "tcp" => vec![Asked::Tcp],
            "udp" => vec![Asked::Udp],
            "matrix" => vec![Asked::Matrix],
            _ => Vec::new(),
        }
    }

    /// A version that was not lost on the way has a figure of it.
    fn has_figure_of(&self, asked: Asked) -> bool {
        self.versions.iter().any(|v| v.unreachable.is_none() && v.has_figure_of(asked))
    }

    /// What was asked for and has no figure over a version that was reached, a sentence each.
    pub fn missing(&self) -> Vec<String> {
        if self.outcome == Outcome::Interrupted {
            return Vec::new();
        }
        let asked = self.asked();
        // One that was lost on the way has figures of what went before.
        let reached =
            self.versions.iter().filter(|version| version.unreachable.is_none() || version.has_figures());
        let missing = reached.flat_map(|version| {
            let name = version.version.name();
            let without = asked.iter().filter(|asked| !version.has_figure_of(**asked));
            let whole = without.map(|asked| match version.went_in_vain(*asked) {
                Some(what) => format!("{name}: nothing came {what} that were sent"),
                None => format!("{name}: there is no figure of {asked}"),
            });
            let ways = self.missing_ways(version).into_iter();
            let ways = ways.map(|what| format!("{name}: there is no figure of {what}"));
            whole.chain(ways).collect::<Vec<_>>()
        });
        missing.collect()
    }

    /// Directions of which another version has a figure, and this one, which has others of the
    /// kind, has none.
    fn missing_ways(&self, version: &VersionResult) -> Vec<String> {
        let tcp = |of: &VersionResult, way: Direction| {
            of.tcp.iter().any(|tcp| tcp.pedigree.direction == way && tcp.has_rate())
        };
        let udp = |of: &VersionResult, way: Direction| of.udp.iter().any(|udp| udp.pedigree.direction == way);
        let others = || self.versions.iter().filter(|other| other.version != version.version);
        let mut missing = Vec::new();
        for way in [Direction::Reverse, Direction::Forward] {
            let has_tcp = version.has_figure_of(Asked::Tcp);
            if has_tcp && !tcp(version, way) && others().any(|other| tcp(other, way)) {
                missing.push(format!("the rate over TCP {}", way.name()));
            }
            let has_udp = version.has_figure_of(Asked::Udp);
            if has_udp && !udp(version, way) && others().any(|other| udp(other, way)) {
                missing.push(format!("UDP {}", way.name()));
            }
        }
        missing
    }

    /// There is something to show and to keep, be it of a version that was lost on the way.
    pub fn has_figures(&self) -> bool {
        self.ability.is_some() || self.versions.iter().any(VersionResult::has_figures)
    }
}

impl VersionResult {
    /// Some phase has a result, be it an empty one.
    pub fn has_figures(&self) -> bool {
        let has_delay = self.latency.is_some() || self.latency_tcp.is_some();
        let has_bulk = !self.tcp.is_empty() || !self.udp.is_empty() || !self.matrix.is_empty();
        let has_rate = self.path_rates.iter().any(|rate| rate.rate.is_some());
        has_delay || has_bulk || has_rate || self.hops.is_some() || self.has_answers()
    }

    fn has_answers(&self) -> bool {
        !self.reach_probes.is_empty() || self.owd.is_some()
    }

    /// Something left this host or came to it, so that there is something to say of the path.
    fn is_measured(&self) -> bool {
        let metrics = [Asked::Latency, Asked::Tcp, Asked::Udp, Asked::Matrix];
        metrics.into_iter().any(|asked| self.has_figure_of(asked) || self.went_in_vain(asked).is_some())
            || self.path_rates.iter().any(|rate| rate.rate.is_some())
            || self.owd.as_ref().is_some_and(|owd| owd.sent > 0)
            || self.hops.is_some()
            || !self.reach_probes.is_empty()
    }

    fn has_figure_of(&self, asked: Asked) -> bool {
        match asked {
            Asked::Latency => {
                let delays = [&self.latency, &self.latency_tcp];
                delays.into_iter().flatten().any(|latency| latency.received > 0)
            }
            Asked::Tcp => self.tcp.iter().any(TcpResult::has_rate),
            Asked::Udp => self.udp.iter().any(|udp| udp.received > 0),
            Asked::Matrix => self.matrix.iter().any(MatrixResult::has_whole_run),
        }
    }

    /// What was sent where all of it was lost: that is a finding, and no figure of what the path
    /// carries.
    fn went_in_vain(&self, asked: Asked) -> Option<&'static str> {
        if self.has_figure_of(asked) {
            return None;
        }
        match asked {
            Asked::Latency => {
                let delays = [&self.latency, &self.latency_tcp];
                let asked = || delays.into_iter().flatten().filter(|latency| latency.settled() > 0);
                let is_late = asked().any(|latency| latency.late > 0);
                let what = if is_late { "in time of the requests" } else { "of the requests" };
                asked().next().map(|_| what)
            }
            Asked::Udp => self.udp.iter().any(|udp| udp.sent > 0).then_some("of the datagrams"),
            Asked::Tcp | Asked::Matrix => None,
        }
    }

    /// How its bulk phases ended, those that could not be run included. Runs of a matrix are left
    /// out: those that are not complete are in none of its figures.
    fn phase_outcomes(&self) -> impl Iterator<Item = Outcome> {
        let tcp = self.tcp.iter().map(|tcp| tcp.outcome);
        let failed = self.failed_phases.iter().map(|_| Outcome::Failed);
        tcp.chain(self.udp.iter().map(|udp| udp.outcome)).chain(failed)
    }
}

impl MatrixResult {
    /// Figures are those of runs that moved all of their bytes.
    fn has_whole_run(&self) -> bool {
        self.cells.iter().flat_map(|cell| &cell.runs).any(|run| run.outcome == Outcome::Complete)
    }
}

impl TcpResult {
    /// It has what it was run for: a rate, or of a transfer of so many bytes those.
    fn has_rate(&self) -> bool {
        let has_bytes = self.bytes.is_some_and(|bytes| bytes.0 > 0);
        has_bytes && (self.goodput.is_some() || self.planned.is_none())
    }
}
