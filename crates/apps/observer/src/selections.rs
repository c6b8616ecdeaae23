//! What is told beside packet reports: how each task chose its packets, and how exact their stamps
//! are.

use std::collections::BTreeMap;

use netaware_passive::digest::DigestSettings;
use netaware_record::passive::ProbeReport;
use netaware_units::Span;
use netaware_wire::ipfix::sightings::{HashSelector, Selection};
use netaware_wire::lmap::Task;

/// What is known of the digest tasks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selectors {
    /// By task. One that was taken away stays: the last of its packets are still on their way.
    by_task: BTreeMap<String, HashSelector>,
    stamp_error: Option<Span>,
}

impl Selectors {
    /// These are the tasks from now on.
    pub(crate) fn learn(&mut self, tasks: &BTreeMap<String, Task>) {
        let selector =
            |(name, task): (&String, &Task)| Some((name.clone(), DigestSettings::of(&task.what)?.selector()));
        self.by_task.extend(tasks.iter().filter_map(selector));
    }

    /// How good the clock was in the last period.
    pub(crate) fn hear(&mut self, report: &ProbeReport) {
        self.stamp_error = report.clock.bound;
    }

    /// Puts what is known into a selection.
    pub(crate) fn fill(&self, selection: &mut Selection) {
        selection.stamp_error = self.stamp_error;
        if let Some(hash) = self.by_task.get(&selection.task) {
            selection.hash = *hash;
        }
    }
}
