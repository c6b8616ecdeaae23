//! Below each section: how its figures came about, and what the instrument did wrong meanwhile.

use std::io;

use netaware_record::{Health, IpVersion, Layer, Pedigree};

use super::Sheet;
use crate::render::figures::{count, load};

/// Below this it is the usual noise of a shared host.
const STEAL_WORTH_TELLING: f64 = 0.02;

/// Who waits for such a core is late.
const BUSY_WORTH_TELLING: f64 = 0.95;

/// From here on a figure is flagged for it.
const DENIED_WORTH_TELLING: f64 = 0.05;

/// One line per pedigree that no section above has told, one per version whose instrument was not
/// healthy.
pub(super) fn remarks(
    sheet: &mut Sheet<'_>,
    pedigrees: &[&Pedigree],
    healths: &[(IpVersion, &Health)],
) -> io::Result<()> {
    for line in pedigrees.iter().map(|pedigree| sentence(pedigree)) {
        if !sheet.told.contains(&line) {
            sheet.table.remark("how: ", &line)?;
            sheet.told.push(line);
        }
    }
    let mut said: Vec<String> = Vec::new();
    for (version, health) in healths {
        // Sections of transfers have rows of their own for the processors.
        let faults = if health.prober_process.is_some() { faults_alone(health) } else { faults(health) };
        let line = format!("{}: {faults}", version.name());
        if !faults.is_empty() && !said.contains(&line) {
            sheet.table.remark("instrument, ", &line)?;
            said.push(line);
        }
    }
    Ok(())
}

fn sentence(pedigree: &Pedigree) -> String {
    let layer = match pedigree.layer {
        Layer::Payload => "payload",
        Layer::Ip => "IP",
        Layer::L2 => "layer 2",
    };
    let uncertainty = match pedigree.uncertainty.as_str() {
        "" => String::new(),
        words => format!("; {words}"),
    };
    format!("{}, {layer} bytes, {} clock{uncertainty}", pedigree.method, pedigree.clock.name())
}

/// What went wrong with it, in words; empty where nothing did.
fn faults(health: &Health) -> String {
    let mut faults = Vec::new();
    if let Some(late) = health.late_sends.filter(|late| *late > 0) {
        let worst = health.worst_lateness.map_or_else(String::new, |worst| format!(", worst {worst}"));
        faults.push(format!("{} late sends{worst}", count(late)));
    }
    let counted = [
        (health.not_sent, "never left this host"),
        (health.host_drops, "dropped inside the receiving host"),
        (health.stamp_fallbacks, "without a kernel timestamp"),
    ];
    faults.extend(counted.iter().filter_map(|(n, what)| {
        let n = n.filter(|n| *n > 0)?;
        Some(format!("{} {what}", count(n)))
    }));
    if let Some(steal) = health.steal.filter(|steal| *steal > STEAL_WORTH_TELLING) {
        faults.push(format!("{} of the CPU withheld by the hypervisor", load(steal)));
    }
    faults.join(", ")
}

/// The same of what no other row tells the processors of.
pub(super) fn faults_alone(health: &Health) -> String {
    let processors = [
        ("this host", None, health.prober_denied, health.prober_busiest_core),
        ("HOST", health.responder_steal, health.responder_denied, health.responder_busiest_core),
    ];
    let of = |(whose, steal, denied, core): (&str, Option<f64>, Option<f64>, Option<f64>)| {
        let told = |share: Option<f64>, least: f64| share.filter(|share| *share > least).map(load);
        [
            told(steal, STEAL_WORTH_TELLING)
                .map(|steal| format!("{steal} of the CPU of {whose} withheld by a hypervisor")),
            told(denied, DENIED_WORTH_TELLING)
                .map(|denied| format!("{whose} waited for a core {denied} of the time")),
            told(core, BUSY_WORTH_TELLING).map(|busy| format!("a core of {whose} {busy} busy")),
        ]
    };
    let faults = [faults(health)].into_iter().filter(|faults| !faults.is_empty());
    faults.chain(processors.into_iter().flat_map(of).flatten()).collect::<Vec<_>>().join(", ")
}
