//! Below each section: how its figures came about, and what the instrument did wrong meanwhile.

use std::io;

use netaware_record::{Health, IpVersion, Layer, Pedigree};

use super::Sheet;
use crate::render::figures::{count, load};

/// Below this it is the usual noise of a shared host.
const STEAL_WORTH_TELLING: f64 = 0.02;

/// Who waits for such a core is late.
const BUSY_WORTH_TELLING: f64 = 0.95;

/// One line per pedigree that no section above has told, one per version whose instrument was not healthy.
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
        let faults = faults(health);
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
    if health.late_sends > 0 {
        faults.push(format!("{} late sends, worst {}", count(health.late_sends), health.worst_lateness));
    }
    let counted = [
        (health.not_sent, "never left this host"),
        (health.host_drops, "dropped inside the receiving host"),
        (health.stamp_fallbacks, "without a kernel timestamp"),
    ];
    faults.extend(counted.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", count(*n))));
    if let Some(steal) = health.steal.filter(|steal| *steal > STEAL_WORTH_TELLING) {
        faults.push(format!("{} of the CPU withheld by the hypervisor", load(steal)));
    }
    faults.join(", ")
}

/// The same of what this host found alone, and for which no other row tells of its processors.
pub(super) fn faults_alone(health: &Health) -> String {
    let busy = health.prober_busiest_core.filter(|busy| *busy > BUSY_WORTH_TELLING);
    let busy = busy.map(|busy| format!("a core of this host {} busy", load(busy)));
    [faults(health)]
        .into_iter()
        .filter(|faults| !faults.is_empty())
        .chain(busy)
        .collect::<Vec<_>>()
        .join(", ")
}
