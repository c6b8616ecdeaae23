//! The emulated paths, and what follows about them by arithmetic.

use std::cell::Cell;

use anyhow::{Context as _, Result, bail};
use netaware_lab::{Lab, LabOptions, Report, Scenario, Side, scenarios};
use netaware_netns::IpVersion;
use netaware_units::Span;

use crate::contest::{Contender, Reading};
use crate::place::Place;

/// The path that everybody measures, and two that differ from it in one thing each.
pub(super) struct Paths {
    pub(super) plain: EmulatedPath,
    /// Loses some of what is sent, on the way to the server.
    pub(super) lossy: EmulatedPath,
    /// Delays packets unevenly, on the way to the server.
    pub(super) uneven: EmulatedPath,
}

impl Paths {
    pub(super) fn new(bound: Span) -> Result<Self> {
        let path = |name, more: &str| EmulatedPath::new(name, &format!("{PLAIN}{more}"), bound);
        Ok(Self {
            plain: path("plain", "")?,
            lossy: path("1 % loss", &format!("forward = {{ loss = {LOSS} }}\n"))?,
            uneven: path("uneven delay", &format!("forward = {{ jitter = {JITTER} }}\n"))?,
        })
    }

    pub(super) fn bound(&self) -> Span {
        self.plain.bound
    }

    /// How many runs were measured again because the emulator spoiled them.
    pub(super) fn repeated(&self) -> u32 {
        [&self.plain, &self.lossy, &self.uneven].iter().map(|path| path.repeated.get()).sum()
    }
}

/// One path; a lab is made of it for each run.
pub(super) struct EmulatedPath {
    pub(super) name: &'static str,
    scenario: Scenario,
    bound: Span,
    /// Labs so far; each has a seed of its own, so that runs are independent.
    labs: Cell<u64>,
    repeated: Cell<u32>,
}

impl EmulatedPath {
    fn new(name: &'static str, toml: &str, bound: Span) -> Result<Self> {
        let scenario = scenarios::parse(name, toml.to_owned())?.scenario;
        Ok(Self { name, scenario, bound, labs: Cell::new(0), repeated: Cell::new(0) })
    }

    /// A tool that measures this path, each time in a fresh lab.
    pub(super) fn contender<'a>(
        &'a self,
        name: &'static str,
        version: IpVersion,
        run: impl Fn(Place<'_>) -> Result<Reading> + 'a,
    ) -> Contender<'a> {
        let run = move || {
            let believed = believed(self.bound, || self.measure(version, &run))?;
            self.repeated.set(self.repeated.get() + believed.spoiled);
            Ok(believed.reading)
        };
        Contender { name, run: Box::new(run) }
    }

    fn measure(
        &self,
        version: IpVersion,
        run: impl Fn(Place<'_>) -> Result<Reading>,
    ) -> Result<(Reading, Report)> {
        self.labs.set(self.labs.get() + 1);
        let options = LabOptions {
            prefix: PREFIX.to_owned(),
            scenario_name: self.name.to_owned(),
            seed: self.labs.get(),
            ..LabOptions::default()
        };
        let lab = Lab::up(&self.scenario, &options)?;
        let reading = run(Place::in_lab(&lab, version))?;
        Ok((reading, lab.end()?))
    }

    /// What a TCP that keeps the link full carries, in Mbit/s: full segments, with timestamps (RFC
    /// 7323).
    pub(super) fn tcp_goodput(&self, version: IpVersion) -> Result<f64> {
        const TCP_HEADER: u32 = 20 + 12;
        let version = recorded(version);
        let capacity = self.scenario.capacity(Side::A, version, MTU).context("nothing gets through")?;
        let payload = f64::from(MTU - version.header_len() - TCP_HEADER);
        Ok(capacity.0 as f64 / 1e6 * payload / f64::from(MTU))
    }

    /// Round trip of a lone UDP datagram (or ICMP echo) of that payload, in microseconds.
    pub(super) fn round_trip_us(&self, version: IpVersion, payload: u32) -> Result<f64> {
        const UDP_HEADER: u32 = 8;
        let version = recorded(version);
        let length = payload + UDP_HEADER + version.header_len();
        let delay = self.scenario.base_rtt(version, length).context("nothing gets through")?;
        Ok(delay.0 as f64 / 1e3)
    }
}

/// Probability of [`Paths::lossy`].
pub(super) const LOSS: f64 = 0.01;
/// Extra delays of [`Paths::uneven`] lie evenly between 0 and twice this, in microseconds. 1400
/// bytes occupy the link for longer than that, so no packet overtakes another and each delay is
/// drawn by itself.
pub(super) const MEAN_JITTER_US: f64 = 100.0;

/// The queue holds more than a bandwidth-delay product (125 kB), so that after a loss, when the
/// window falls to 0.7 (cubic) or a half (Reno), the link never runs dry.
const PLAIN: &str = "\
about = \"50 Mbit/s and 10 ms each way, 100 ms of queue\"
[[hop]]
rate = \"50Mbit/s\"
delay = \"10ms\"
queue = { time = \"100ms\" }
";
const JITTER: &str = "{ distribution = \"uniform\", mean = \"100us\" }";
const MTU: u32 = 1500;
const PREFIX: &str = "agree";

/// Removes what a run that was killed has left behind.
pub(super) fn clear() -> Result<()> {
    netaware_lab::down(PREFIX)?;
    Ok(())
}

struct Believed {
    reading: Reading,
    /// Runs before it that do not count.
    spoiled: u32,
}

/// The first run that the emulator did not spoil. A run that failed is not tried again.
fn believed(bound: Span, mut measure: impl FnMut() -> Result<(Reading, Report)>) -> Result<Believed> {
    let mut why = String::new();
    for spoiled in 0..ATTEMPTS {
        let (reading, report) = measure()?;
        match report.why_invalid(bound) {
            None => return Ok(Believed { reading, spoiled }),
            Some(reason) => why = reason,
        }
        eprintln!("  again: {why}");
    }
    bail!("the emulator spoiled {ATTEMPTS} runs, the last because {why}")
}

/// A machine that spoils so many in a row is too busy for an emulator.
const ATTEMPTS: u32 = 6;

fn recorded(version: IpVersion) -> netaware_record::IpVersion {
    match version {
        IpVersion::V4 => netaware_record::IpVersion::V4,
        IpVersion::V6 => netaware_record::IpVersion::V6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> Paths {
        Paths::new(Span::from_micros(200)).unwrap()
    }

    #[test]
    fn truth_follows_from_the_scenario() {
        let plain = paths().plain;
        // 1448 and 1428 of 1500 bytes are payload.
        assert!((plain.tcp_goodput(IpVersion::V4).unwrap() - 50.0 * 1448.0 / 1500.0).abs() < 1e-6);
        assert!((plain.tcp_goodput(IpVersion::V6).unwrap() - 50.0 * 1428.0 / 1500.0).abs() < 1e-6);
        // 92 bytes take 14.72 us at 50 Mbit/s, there and back.
        assert!((plain.round_trip_us(IpVersion::V4, 64).unwrap() - 20_029.44).abs() < 0.01);
    }

    #[test]
    fn other_paths_differ_in_one_thing_and_one_direction() {
        let Paths { plain, lossy, uneven } = paths();
        let wire = |path: &EmulatedPath, side: Side| {
            let hop = &path.scenario.hops[0];
            let link = if side == Side::A { &hop.forward } else { &hop.reverse };
            link.wire(netaware_record::IpVersion::V4).clone()
        };
        assert_eq!(wire(&lossy, Side::B), wire(&plain, Side::B));
        assert_eq!(wire(&uneven, Side::B), wire(&plain, Side::B));
        assert_ne!(wire(&lossy, Side::A), wire(&plain, Side::A));
        assert_ne!(wire(&uneven, Side::A), wire(&plain, Side::A));
        assert!(JITTER.contains(&format!("{MEAN_JITTER_US}us")), "{JITTER}");
    }

    #[test]
    fn spoiled_runs_are_repeated_and_counted() {
        let late = Report { lateness_p99: Some(Span::from_millis(1)), ..Report::default() };
        let mut reports = vec![Report::default(), late.clone(), late.clone()];
        let bound = Span::from_micros(200);
        let told = believed(bound, || Ok((vec![("x", 1.0)], reports.pop().unwrap()))).unwrap();
        assert_eq!((told.reading, told.spoiled), (vec![("x", 1.0)], 2));
        assert!(believed(bound, || Ok((vec![], late.clone()))).is_err());
    }

    #[test]
    fn failed_run_is_not_tried_again() {
        let mut runs = 0;
        let failed = believed(Span::ZERO, || {
            runs += 1;
            bail!("refused")
        });
        assert!(failed.is_err_and(|error| error.to_string() == "refused"));
        assert_eq!(runs, 1);
    }
}
