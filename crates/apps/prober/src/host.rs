//! `netaware host`: what this host can measure, and what it can probe because of that.
//!
//! Timings are measured once and kept for as long as the machine stays the same; what the system
//! tells is read each time. Nothing leaves this host.

mod costs;
mod during;
mod known;

use std::path::Path;

use netaware_host::{CpuSnapshot, Kept, Miss, ModerationSnapshot};
use netaware_io::stop::StopFlag;
use netaware_io::{clock, instrument};
use netaware_record::{
    Effort, Fact, HostAbility, HostFacts, HostTimings, Outcome, Record, Request, SCHEMA_VERSION,
    TimingsOrigin,
};
use netaware_units::{Mono, Span, Wall};

use crate::progress::{Progress, Watch};
use crate::report;

pub(crate) use during::During;
pub(crate) use known::{Known, known};

/// How the file of timings is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheUse {
    /// What it holds is good, if it belongs to this host; what is measured is kept.
    #[default]
    Normal,
    /// Measured anew, and kept.
    Refresh,
    /// Neither read nor written.
    Ignore,
}

/// What is wanted.
#[derive(Debug, Clone, Default)]
pub struct HostRequest {
    /// What may be spent on it.
    pub effort: Effort,
    /// Whether what is known is good enough.
    pub cache: CacheUse,
    /// The interface to tell of, and whose link and coalescing limit rates; absent: those with
    /// hardware.
    pub interface: Option<String>,
}

/// The interface asked for is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no interface '{name}' here: try {}", .known.join(", "))]
pub struct NoSuchInterface {
    /// As asked for.
    pub name: String,
    /// Those there are.
    pub known: Vec<String>,
}

/// Measures, or reads what was measured, and derives.
///
/// # Errors
/// The interface asked for is not there.
pub fn host(
    request: &HostRequest,
    stop: &StopFlag,
    progress: &mut dyn FnMut(Progress),
) -> Result<Record, NoSuchInterface> {
    let interfaces = interfaces(request.interface.as_deref())?;
    let (began_at, started_at) = (clock::now(), clock::wall());
    let fingerprint = netaware_host::fingerprint();
    let place = netaware_host::default_cache().filter(|_| request.cache != CacheUse::Ignore);
    let mut warnings = Vec::new();
    let found = place.as_deref().filter(|_| request.cache == CacheUse::Normal).and_then(|path| {
        let found = netaware_host::kept(path, &fingerprint, started_at, request.effort);
        found.map_err(|miss| warnings.extend(told(path, &miss))).ok()
    });
    let cached = found.is_some();
    let kept = found.unwrap_or_else(|| {
        let timings = measure(request.effort, &interfaces, stop, progress);
        Kept::new(started_at, fingerprint.clone(), timings)
    });
    let mut cache = place.map(|path| path.display().to_string());
    if !cached && !kept.timings.cut_short {
        warnings.extend(keep(&mut cache, &kept));
    }
    if request.cache == CacheUse::Normal && cache.is_none() {
        warnings
            .push("what was measured is not kept: neither XDG_CACHE_HOME nor HOME can be used".to_owned());
    }
    warnings.extend(complaints(&kept.timings));
    let facts = facts(&interfaces, &kept.timings);
    let through = (facts.interfaces.len() == 1).then(|| facts.interfaces[0].name.clone());
    let costs = costs::of(&kept.timings, through.as_deref().and_then(|_| facts.interfaces.first()));
    let outcome = if stop.is_raised() { Outcome::Interrupted } else { Outcome::Complete };
    let ability = HostAbility {
        origin: origin(cached, cache, started_at, &kept),
        honest: costs::table(&costs, &kept.timings),
        timings: kept.timings,
        facts,
        through,
    };
    let mut record = record(request, began_at, started_at, outcome, ability, warnings);
    record.settle();
    Ok(record)
}

fn interfaces(asked: Option<&str>) -> Result<Vec<String>, NoSuchInterface> {
    let Some(name) = asked else { return Ok(netaware_host::interfaces_of_interest()) };
    let known = netaware_host::all_interfaces();
    if known.iter().any(|one| one == name) {
        Ok(vec![name.to_owned()])
    } else {
        Err(NoSuchInterface { name: name.to_owned(), known })
    }
}

/// One thing after the other: two at a time would be each other's disturbance.
fn measure(
    effort: Effort,
    interfaces: &[String],
    stop: &StopFlag,
    progress: &mut dyn FnMut(Progress),
) -> HostTimings {
    let whole = if effort == Effort::Quick { QUICK } else { FULL };
    let mut watch = Watch::new(whole, progress);
    watch.phase("what others do", None);
    let began_at = clock::now();
    let (cpu, moderation) = (CpuSnapshot::take(), ModerationSnapshot::take(interfaces));
    clock::sleep(IDLE);
    let load = CpuSnapshot::take().use_since(&cpu, clock::now() - began_at).host;
    watch.phase("clock and waits", None);
    let clock_timing = instrument::clock_timing();
    let waits = if stop.is_raised() { Vec::new() } else { instrument::waits(effort) };
    watch.phase("system calls", None);
    let calls = if stop.is_raised() { Vec::new() } else { instrument::calls(effort) };
    let stamps = instrument::stamps(effort);
    let room = instrument::receive_room();
    watch.phase("memory", None);
    let copy = netaware_host::memory_copy_ns_per_byte(clock::now);
    watch.phase("loopback", None);
    let loopback = instrument::loopback(effort, stop);
    let took = clock::now() - began_at;
    let steal = CpuSnapshot::take().use_since(&cpu, took).steal;
    HostTimings {
        effort,
        took,
        cut_short: stop.is_raised(),
        clock: clock_timing,
        waits,
        calls,
        memory_copy_ns_per_byte: Fact::or(copy, "the clock did not move"),
        stamps: Fact::or(stamps, "nothing came back over loopback (127.0.0.1)"),
        receive_room: Fact::or(room, "nothing came back over loopback (127.0.0.1)"),
        loopback,
        moderation: ModerationSnapshot::take(interfaces).since(&moderation, took),
        steal: Fact::or(steal, "/proc/stat cannot be read"),
        load_before: Fact::or(load, "/proc/stat cannot be read"),
    }
}

fn facts(interfaces: &[String], timings: &HostTimings) -> HostFacts {
    let (clock_source, clock_sources) = netaware_host::clock_sources();
    let one = |name: &String| {
        let seen = timings.moderation.iter().find(|seen| seen.interface == *name);
        netaware_host::interface_facts(name, queueing(name), seen)
    };
    HostFacts {
        clock_source,
        clock_sources,
        steering: instrument::clock_steering(),
        hardware_clocks: instrument::hardware_clocks(),
        steal_since_boot: netaware_host::steal(),
        socket_buffers: netaware_host::socket_buffers(),
        congestion: netaware_host::congestion_facts(),
        interfaces: interfaces.iter().map(one).collect(),
    }
}

#[cfg(target_os = "linux")]
fn queueing(interface: &str) -> Fact<Vec<String>> {
    match netaware_io::udp_stream::queueing_disciplines(interface) {
        Ok(kinds) if kinds.is_empty() => Fact::not_known("the kernel names none"),
        Ok(kinds) => Fact::Known(kinds),
        Err(error) => Fact::not_known(format!("the kernel does not tell: {error}")),
    }
}

#[cfg(not(target_os = "linux"))]
fn queueing(_: &str) -> Fact<Vec<String>> {
    Fact::not_known("only Linux is asked")
}

fn told(path: &Path, miss: &Miss) -> Option<String> {
    let path = path.display();
    match miss {
        // To be asked for more than there is is nothing to warn of.
        Miss::Absent | Miss::Rough => None,
        Miss::Broken(why) => Some(format!("{path} cannot be used ({why}): measured again")),
        Miss::Changed(what) => Some(format!("this host has changed ({}): measured again", what.join(", "))),
        Miss::Old(age) if *age < Span::ZERO => {
            Some(format!("{path} is from the future, so the clock was set back: measured again"))
        }
        Miss::Old(age) => Some(format!("{path} is {} days old: measured again", age.nanos() / A_DAY.nanos())),
    }
}

/// A place that cannot be written is none.
fn keep(cache: &mut Option<String>, kept: &Kept) -> Option<String> {
    let path = cache.clone()?;
    let error = netaware_host::keep(Path::new(&path), kept).err()?;
    *cache = None;
    Some(format!(
        "what was measured is not kept, the next run will measure again: cannot write {}: {}; try another XDG_CACHE_HOME",
        error.path.display(),
        error.source
    ))
}

/// Others used so much of the host that its costs were not its own.
fn is_busy(timings: &HostTimings) -> bool {
    timings.load_before.known().is_some_and(|load| *load > BUSY)
}

/// What makes timings worse than the host is.
fn complaints(timings: &HostTimings) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(load) = timings.load_before.known().filter(|_| is_busy(timings)) {
        found.push(format!(
            "other programs kept the processors {:.0} % busy: costs read higher and maxima lower than this host's; \
             try --refresh when it is idle",
            load * 100.0
        ));
    }
    if let Some(steal) = timings.steal.known().filter(|steal| **steal > STOLEN) {
        found.push(format!("the hypervisor withheld {:.1} % of the CPU time meanwhile", steal * 100.0));
    }
    if timings.cut_short {
        found
            .push("ended early on request: what was not measured is missing, and nothing is kept".to_owned());
    }
    found
}

fn origin(cached: bool, cache: Option<String>, now: Wall, kept: &Kept) -> TimingsOrigin {
    TimingsOrigin {
        cached,
        measured_at: kept.measured_at,
        measured_at_utc: report::utc(kept.measured_at),
        age: now.since(kept.measured_at),
        cache,
        fingerprint: kept.fingerprint.clone(),
    }
}

fn record(
    request: &HostRequest,
    began_at: Mono,
    started_at: Wall,
    outcome: Outcome,
    ability: HostAbility,
    warnings: Vec<String>,
) -> Record {
    let effort = if request.effort == Effort::Quick { "quick" } else { "full" };
    let options = [("effort", Some(effort.to_owned())), ("interface", request.interface.clone())];
    let options = options.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    Record {
        schema: SCHEMA_VERSION,
        id: report::id_at(started_at),
        software: env!("CARGO_PKG_VERSION").to_owned(),
        command: "host".to_owned(),
        started_at,
        started_at_utc: report::utc(started_at),
        elapsed: clock::now() - began_at,
        outcome,
        request: Request { options, ..Request::default() },
        label: None,
        series: None,
        prober: netaware_host::describe(&[]),
        responder: None,
        versions: Vec::new(),
        comparison: None,
        ability: Some(Box::new(ability)),
        expectations: Vec::new(),
        warnings,
    }
}

/// For a person who waits.
const QUICK: Span = Span::from_millis(2500);
const FULL: Span = Span::from_secs(9);
/// Long enough for shares of cores to mean something.
const IDLE: Span = Span::from_millis(200);
/// Share of the processors that others may use without a word.
const BUSY: f64 = 0.25;
const STOLEN: f64 = 0.01;
const A_DAY: Span = Span::from_secs(24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_an_error_with_those_that_are() {
        let request = HostRequest { interface: Some("no such".into()), ..HostRequest::default() };
        let error = host(&request, &StopFlag::new(), &mut |_| {}).unwrap_err();
        assert!(error.to_string().starts_with("there is no interface 'no such' here: try lo"), "{error}");
    }

    #[test]
    fn reasons_for_measuring_again_are_told_but_for_the_ordinary_ones() {
        let told = |miss: Miss| told(Path::new("/c/host.json"), &miss);
        assert_eq!((told(Miss::Absent), told(Miss::Rough)), (None, None));
        let rows = [
            (Miss::Broken("EOF".into()), "/c/host.json cannot be used (EOF): measured again"),
            (
                Miss::Changed(vec!["cores were 2, are 4".into()]),
                "this host has changed (cores were 2, are 4): measured again",
            ),
            (Miss::Old(A_DAY * 31), "/c/host.json is 31 days old: measured again"),
            (Miss::Old(-A_DAY), "/c/host.json is from the future, so the clock was set back: measured again"),
        ];
        for (miss, want) in rows {
            assert_eq!(told(miss).as_deref(), Some(want));
        }
    }

    #[test]
    fn a_stopped_measurement_says_so_and_keeps_nothing() {
        let stop = StopFlag::new();
        stop.raise();
        let request =
            HostRequest { effort: Effort::Quick, cache: CacheUse::Ignore, interface: Some("lo".into()) };
        let record = host(&request, &stop, &mut |_| {}).unwrap();
        assert_eq!(record.outcome, Outcome::Interrupted);
        let ability = record.ability.unwrap();
        assert!(ability.timings.cut_short && ability.timings.loopback.is_empty());
        assert_eq!(ability.origin.cache, None);
    }
}
