//! Every figure of a run beside its truth, so that one run shows all that is off.

use std::fmt::Write as _;

use netaware_lab::Side;
use netaware_record::{Direction, Interval, IpVersion, Metric, Preference, Use};
use netaware_testkit::figures::judge;
use netaware_units::Span;

use super::super::measured::Measured;

pub(crate) const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

/// What is noted while a run is held against its scenario; told at the end.
pub(crate) struct Ledger<'a> {
    run: &'a Measured,
    lines: String,
    wrong: usize,
}

/// Kernel stamps on both hosts leave these out of a round trip but for some microseconds; what is
/// left is the emulator's.
const SLACK_OF_RTT: Span = Span::from_micros(150);

impl<'a> Ledger<'a> {
    pub(crate) fn of(run: &'a Measured) -> Self {
        Self { run, lines: String::new(), wrong: 0 }
    }

    pub(crate) fn note(&mut self, is_right: bool, text: &str) {
        let _ = writeln!(self.lines, "{} {text}", if is_right { "  " } else { "!!" });
        self.wrong += usize::from(!is_right);
    }

    /// An interval that claims 95 %: five of a hundred may miss, but hardly one by more than half
    /// of its width.
    pub(crate) fn contains(&mut self, what: &str, interval: Interval, truth: f64) {
        let (lo, hi) = (interval.lo, interval.hi);
        let inside = lo <= truth && truth <= hi;
        let half = (hi - lo) / 2.0;
        let text = format!(
            "{what}: {:.4e} in {lo:.4e} ..= {hi:.4e}{}; truth {truth:.4e}, {:+.2} % off",
            interval.estimate,
            if inside { "" } else { " MISSED" },
            (interval.estimate / truth - 1.0) * 100.0
        );
        self.note(lo - half <= truth && truth <= hi + half, &text);
    }

    /// TCP with several streams, both ways: its interval contains the payload rate of the path.
    pub(crate) fn rates(&mut self, version: IpVersion) {
        let run = self.run;
        let count = run.version(version).tcp.iter().filter(|tcp| tcp.streams > 1).count();
        self.note(count == 2, &format!("{}: {count} results of several streams", version.name()));
        for tcp in run.version(version).tcp.iter().filter(|tcp| tcp.streams > 1) {
            let direction = tcp.pedigree.direction;
            let from = if direction == Direction::Forward { Side::A } else { Side::B };
            let what = format!("{} TCP {} x{}", version.name(), direction.name(), tcp.streams);
            let truth = run.payload_rate(from, version);
            match tcp.goodput_interval {
                Some(interval) => self.contains(&what, interval, truth),
                None => {
                    self.note(
                        false,
                        &format!("{what}: no interval for {:?}; truth {truth:.4e}", tcp.goodput),
                    );
                }
            }
        }
    }

    /// The least idle round trip is that of a lone packet.
    pub(crate) fn idle_rtt(&mut self, version: IpVersion, slack: Span) {
        let run = self.run;
        let latency = run.version(version).latency.as_ref();
        let Some(rtt) = latency.and_then(|it| it.rtt) else {
            return self.note(false, &format!("{}: no idle round trip", version.name()));
        };
        let truth = run.base_rtt(version);
        let right = rtt.min >= truth - Span::from_micros(2) && rtt.min <= truth + SLACK_OF_RTT + slack;
        let text = format!("{} idle RTT: least {}, half {}; truth {truth}", version.name(), rtt.min, rtt.p50);
        self.note(right, &text);
    }

    /// Routers, both ways.
    pub(crate) fn hops(&mut self, version: IpVersion) {
        let routers = self.run.scenario.hops.len() as u8 - 1;
        let path = self.run.version(version).path.clone().unwrap_or_default();
        let right = path.hops_forward == Some(routers) && path.hops_reverse == Some(routers);
        let (there, back) = (path.hops_forward, path.hops_reverse);
        self.note(right, &format!("{} hops: {there:?} and {back:?}; truth {routers}", version.name()));
    }

    /// What a path without impairments is judged by, over both versions.
    pub(crate) fn whole(&mut self) {
        for version in VERSIONS {
            self.hops(version);
            self.idle_rtt(version, Span::ZERO);
            self.rates(version);
        }
    }

    /// The advice for one use.
    pub(crate) fn verdict(&mut self, purpose: Use, wanted: Preference) {
        let comparison = self.run.record.comparison.clone().unwrap_or_default();
        let verdict = comparison.verdicts.iter().find(|verdict| verdict.purpose == purpose);
        let right = verdict.is_some_and(|verdict| verdict.prefer == wanted);
        self.note(right, &format!("{}: {verdict:?}; truth {wanted:?}", purpose.name()));
    }

    /// IPv6 minus IPv4 of one metric and direction contains the true difference.
    pub(crate) fn difference(&mut self, metric: Metric, direction: Direction, truth: f64) {
        let comparison = self.run.record.comparison.clone().unwrap_or_default();
        let found = comparison.metrics.iter().find(|it| it.metric == metric && it.direction == direction);
        match found {
            Some(found) => {
                let what = format!("{} {}, IPv6 - IPv4", metric.name(), direction.name());
                self.contains(&what, found.difference, truth);
            }
            None => self.note(false, &format!("{} was not compared", metric.name())),
        }
    }

    /// Ends the test by what was noted.
    ///
    /// # Panics
    /// When something was off although the lab was on time: with everything that was noted.
    pub(crate) fn close(self) {
        let text = format!("{}\n{}   {}", self.run.scenario.about, self.lines, self.run.report);
        println!("{text}");
        let off: Vec<String> = (self.wrong > 0)
            .then(|| format!("{} figures are off:\n{text}", self.wrong))
            .into_iter()
            .collect();
        judge(&off, &self.run.report, self.run.bound);
    }
}
