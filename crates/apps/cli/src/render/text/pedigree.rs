//! Below each section: how its figures came about, and what the instrument did wrong meanwhile.

use std::io;

use netaware_record::{Direction, Health, Layer, Pedigree};
use netaware_units::Span;

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
pub(super) fn remarks(sheet: &mut Sheet<'_>, told: &[(&Pedigree, &Health)]) -> io::Result<()> {
    for (line, names) in by_versions(told) {
        let lead = names.map_or_else(|| "how: ".to_owned(), |names| format!("how, {names}: "));
        let said = format!("{lead}{line}");
        if !sheet.told.contains(&said) {
            sheet.table.remark(&lead, &line)?;
            sheet.told.push(said);
        }
    }
    let mut said: Vec<String> = Vec::new();
    for (pedigree, health) in told {
        let sender = Sender::of(pedigree);
        // Sections of transfers have rows of their own for the processors, where a busy core is one
        // of many figures.
        let is_alone = health.prober_process.is_some();
        let faults = if is_alone { faults_alone(health, sender) } else { faults_beside_rows(health, sender) };
        let line = format!("{}: {faults}", pedigree.version.name());
        if !faults.is_empty() && !said.contains(&line) {
            sheet.table.remark("instrument, ", &line)?;
            said.push(line);
        }
    }
    Ok(())
}

/// Each sentence with the versions that it is of, where there is another one for others.
fn by_versions(told: &[(&Pedigree, &Health)]) -> Vec<(String, Option<String>)> {
    let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
    for (pedigree, _) in told {
        let (line, name) = (sentence(pedigree), pedigree.version.name());
        match lines.iter_mut().find(|(known, _)| *known == line) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => lines.push((line, vec![name])),
        }
    }
    let all = lines.iter().flat_map(|(_, names)| names).collect::<std::collections::BTreeSet<_>>().len();
    lines
        .iter()
        .map(|(line, names)| (line.clone(), (names.len() < all).then(|| names.join(" and "))))
        .collect()
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

/// The end that sends what is measured, whose sends may be late or be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    ThisHost,
    Responder,
}

impl Sender {
    fn of(pedigree: &Pedigree) -> Self {
        if pedigree.direction == Direction::Reverse { Self::Responder } else { Self::ThisHost }
    }

    fn name(self) -> &'static str {
        match self {
            Self::ThisHost => "this host",
            Self::Responder => "HOST",
        }
    }
}

/// What went wrong with it, in words; empty where nothing did.
fn faults(health: &Health, sender: Sender) -> String {
    let mut faults = Vec::new();
    if let Some(late) = health.late_sends.filter(|late| *late > 0) {
        let worst = health.worst_lateness.map_or_else(String::new, |worst| format!(", worst {worst}"));
        let of = if sender == Sender::Responder { " of HOST" } else { "" };
        faults.push(format!("{} late sends{of}{worst}", count(late)));
    }
    let counted = [
        (health.not_sent, format!("never left {}", sender.name())),
        (health.host_drops, "dropped inside the receiving host".to_owned()),
        (health.stamp_fallbacks, "without a kernel timestamp".to_owned()),
    ];
    faults.extend(counted.iter().filter_map(|(n, what)| {
        let n = n.filter(|n| *n > 0)?;
        Some(format!("{} {what}", count(n)))
    }));
    let stood = [("this host", health.prober_stood_still), ("HOST", health.responder_stood_still)];
    let did_not_run =
        |(whose, stood): (&str, Option<Span>)| Some(format!("{whose} did not run for {}", stood?));
    faults.extend(stood.into_iter().filter_map(did_not_run));
    if let Some(steal) = health.steal.filter(|steal| *steal > STEAL_WORTH_TELLING) {
        faults.push(format!("{} of the CPU withheld by the hypervisor", load(steal)));
    }
    faults.join(", ")
}

/// The same with the cores that were busy all the time.
fn faults_beside_rows(health: &Health, sender: Sender) -> String {
    let cores = [("this host", health.prober_busiest_core), ("HOST", health.responder_busiest_core)];
    let faults = [faults(health, sender)].into_iter().filter(|faults| !faults.is_empty());
    faults.chain(cores.into_iter().filter_map(busy_core)).collect::<Vec<_>>().join(", ")
}

fn busy_core((whose, core): (&str, Option<f64>)) -> Option<String> {
    let busy = core.filter(|core| *core > BUSY_WORTH_TELLING).map(load)?;
    Some(format!("a core of {whose} {busy} busy"))
}

/// The same of what no other row tells the processors of.
pub(super) fn faults_alone(health: &Health, sender: Sender) -> String {
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
            busy_core((whose, core)),
        ]
    };
    let faults = [faults(health, sender)].into_iter().filter(|faults| !faults.is_empty());
    faults.chain(processors.into_iter().flat_map(of).flatten()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "Busiest core 100 %" was a row of the transfer, and the line of the instrument said nothing.
    #[test]
    fn a_core_that_was_busy_all_the_time_is_named_beside_the_rows_of_a_transfer() {
        let said = |prober, responder| {
            let health = Health {
                prober_busiest_core: Some(prober),
                responder_busiest_core: Some(responder),
                ..Health::default()
            };
            faults_beside_rows(&health, Sender::ThisHost)
        };
        assert_eq!(said(1.0, 0.5), "a core of this host 100 % busy");
        assert_eq!(said(0.5, 0.97), "a core of HOST 97 % busy");
        assert_eq!(said(0.95, 0.14), "");
    }

    /// HOST's own firewall had refused 945 datagrams, and the text said that they never left this
    /// host.
    #[test]
    fn what_the_responder_did_not_send_is_not_told_of_this_host() {
        let stood = Health { responder_stood_still: Some(Span::from_secs(2)), ..Health::default() };
        assert_eq!(faults(&stood, Sender::ThisHost), "HOST did not run for 2.00 s");
        let worst_lateness = Some(Span::from_millis(10));
        let health =
            Health { late_sends: Some(77), worst_lateness, not_sent: Some(945), ..Health::default() };
        let mut pedigree = crate::render::fixture::udp().versions[0].udp[0].pedigree.clone();
        let mut said = |direction| {
            pedigree.direction = direction;
            faults(&health, Sender::of(&pedigree))
        };
        let of_host = "77 late sends of HOST, worst 10.0 ms, 945 never left HOST";
        assert_eq!(said(Direction::Reverse), of_host);
        let own = "77 late sends, worst 10.0 ms, 945 never left this host";
        assert_eq!([said(Direction::Forward), said(Direction::RoundTrip)], [own; 2]);
    }
}
