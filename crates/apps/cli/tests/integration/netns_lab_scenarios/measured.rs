//! One run of `netaware test` from host A to a responder on host B of a lab.

use netaware_lab::{Lab, LabOptions, Report, Scenario, Side};
use netaware_record::{IpVersion, Record, VersionResult};
use netaware_testkit::lab;
use netaware_units::Span;

/// What was found, and on what path.
pub(crate) struct Measured {
    pub(crate) scenario: Scenario,
    pub(crate) record: Record,
    pub(crate) report: Report,
    /// How late the lab may have been, at most, for figures to be judged.
    pub(crate) bound: Span,
}

/// One in a hundred packets later than this would show in the figures: it is what they are judged
/// to.
const BOUND: Span = Span::from_micros(250);

/// Over a bundled scenario.
pub(crate) fn over(name: &str, arguments: &[&str]) -> Measured {
    over_within(BOUND, name, arguments)
}

/// The same with a bound of its own: where jitter lets a hundred packets go at one instant, they
/// are handed over one by one.
pub(crate) fn over_within(bound: Span, name: &str, arguments: &[&str]) -> Measured {
    run(name, lab::bundled(name), bound, arguments)
}

/// Over a path that only a test needs.
pub(crate) fn over_text(name: &str, text: &str, arguments: &[&str]) -> Measured {
    run(name, lab::scenario(text), BOUND, arguments)
}

fn run(name: &str, scenario: Scenario, bound: Span, arguments: &[&str]) -> Measured {
    let options = LabOptions { scenario_name: name.to_owned(), ..lab::options() };
    let lab = lab::start(&scenario, &options);
    let record = test(&lab, arguments);
    Measured { scenario, record, report: lab.end().unwrap(), bound }
}

fn test(lab: &Lab, arguments: &[&str]) -> Record {
    let _responder = lab::responder(lab, &[]);
    let prober = lab::prober(lab, &[&["test", "b", "--format", "json"], arguments].concat());
    prober.finish_within(Span::from_secs(90)).exits_with(0).record()
}

impl Measured {
    /// What was learnt over one version.
    pub(crate) fn version(&self, version: IpVersion) -> &VersionResult {
        let found = self.record.versions.iter().find(|it| it.version == version);
        found.unwrap_or_else(|| panic!("no {}", version.name()))
    }

    /// What full segments of TCP carry at the rate of the path.
    pub(crate) fn payload_rate(&self, from: Side, version: IpVersion) -> f64 {
        let mtu = self.scenario.path_mtu(from, version).min(1500);
        let capacity = self.scenario.capacity(from, version, mtu).expect("packets of the path's MTU pass").0;
        capacity as f64 * f64::from(mtu - version.header_len() - TCP_HEADER) / f64::from(mtu)
    }

    /// The round trip of a lone probe of the latency phase.
    pub(crate) fn base_rtt(&self, version: IpVersion) -> Span {
        let payload = self.version(version).latency.as_ref().map_or(0, |it| it.payload.0 as u32);
        self.scenario.base_rtt(version, payload + 8 + version.header_len()).expect("probes pass")
    }
}

/// TCP with timestamps.
const TCP_HEADER: u32 = 32;
