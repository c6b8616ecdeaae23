//! What a slope says about the path: compared with the links, copies and buses whose cost is known.

use netaware_record::{HostInfo, Record};
use netaware_units::BitRate;

use super::{Grows, SizeFit};

/// A slope in terms of what may have caused it.
#[derive(Debug, Clone, PartialEq)]
pub struct Meaning {
    /// How often a byte more crosses each stage: twice where request and response grow.
    pub crossings: u32,
    /// The rate of a single stage that would cost as much by itself; absent for a slope that is not
    /// above zero.
    pub one_stage: Option<BitRate>,
    /// What is known to be on the way, the prober's first.
    pub known: Vec<KnownCost>,
    /// What nobody here knows.
    pub unknown: Vec<String>,
}

/// A stage whose cost is known.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownCost {
    /// "prober's eth0, 1.00 Gbit/s", "a memory copy on the prober".
    pub what: String,
    /// ns per byte of message growth, all crossings together.
    pub ns_per_byte: f64,
    /// How many such stages would make the whole slope; absent for a slope that is not above zero.
    pub stages: Option<f64>,
}

/// Reads the slope of the smallest round trips, which hold least queueing, with what a record of
/// the scan knows of the hosts.
pub fn meaning(fit: &SizeFit, record: &Record) -> Meaning {
    let crossings = if fit.grows == Grows::Both { 2 } else { 1 };
    let slope = Some(fit.smallest.slope).filter(|slope| *slope > 0.0);
    let cost = |what: String, each: f64| {
        let ns_per_byte = each * f64::from(crossings);
        KnownCost { what, ns_per_byte, stages: slope.map(|slope| slope / ns_per_byte) }
    };
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    let hosts = [("prober", Some(&record.prober)), ("responder", record.responder.as_ref())];
    for (name, host) in &hosts {
        let links = link_rates(*host);
        if links.is_empty() {
            unknown.push(format!("the {name}'s link rate"));
        }
        for (link, rate) in links {
            known.push(cost(format!("the {name}'s {link}, {rate}"), NS_PER_BYTE_AT_1_BPS / rate.0 as f64));
        }
    }
    for (name, host) in &hosts {
        match host.and_then(|host| host.memory_copy_ns_per_byte).filter(|copy| *copy > 0.0) {
            Some(copy) => known.push(cost(format!("a memory copy on the {name}"), copy)),
            None => unknown.push(format!("memory copies on the {name}")),
        }
    }
    unknown.push("the buses of both hosts".to_owned());
    let one_stage = slope.map(|slope| BitRate((NS_PER_BYTE_AT_1_BPS * f64::from(crossings) / slope) as u64));
    Meaning { crossings, one_stage, known, unknown }
}

/// Interfaces that claim a rate. A virtual one claims whatever its driver was written to say, which
/// limits nothing.
fn link_rates(host: Option<&HostInfo>) -> Vec<(String, BitRate)> {
    let nics = host.into_iter().flat_map(|host| &host.nics);
    let real = nics.filter(|nic| !VIRTUAL.contains(&nic.driver.as_str()));
    real.filter_map(|nic| Some((nic.name.clone(), nic.speed.filter(|rate| rate.0 > 0)?))).collect()
}

/// Eight bits in nanoseconds.
const NS_PER_BYTE_AT_1_BPS: f64 = 8e9;
/// Drivers without a wire behind them.
const VIRTUAL: [&str; 4] = ["veth", "tun", "bridge", "dummy"];
