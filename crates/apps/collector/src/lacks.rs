//! What never came of a probe's sightings, though its own reports take them for sent.
//!
//! Batches that the probe gave up (its disk was full), records that could not be read, stamps that
//! no join takes: those packets were seen, and whoever is not told so takes them for lost by the
//! network. So they count as lost by the probe, in the report that comes next and in the [`AHEAD`]
//! behind it: an interface that is ahead of another has sightings of later periods in the same
//! batch. Leans to `unobserved`: the batch may have held nothing of those periods.
//!
//! A report says itself how many batches were given up since the one before (`reports_given_up`),
//! but not of which time. The numbers that were left out do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A probe sends its report of a period when an interface has closed the next but one, at the
/// latest.
const AHEAD: usize = 2;

/// See the module. By probe, whatever its incarnation: one that numbers its batches anew sends the
/// same batches.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Lacks(BTreeMap<String, [u64; AHEAD + 1]>);

impl Lacks {
    /// So many batches, records or stamps did not come since this probe's last report.
    pub(crate) fn add(&mut self, probe: &str, lacking: u64) {
        if lacking > 0 {
            let since = self.0.entry(probe.to_owned()).or_default();
            since[0] = since[0].saturating_add(lacking);
        }
    }

    /// What the report that has come lacks.
    pub(crate) fn of_report(&mut self, probe: &str) -> u64 {
        let Some(lacking) = self.0.get_mut(probe) else { return 0 };
        let sum = lacking.iter().fold(0_u64, |sum, one| sum.saturating_add(*one));
        lacking.rotate_right(1);
        lacking[0] = 0;
        if *lacking == [0; AHEAD + 1] {
            self.0.remove(probe);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_is_in_the_next_report_and_in_those_whose_sightings_may_have_been_ahead() {
        let mut lacks = Lacks::default();
        lacks.add("a", 2);
        lacks.add("b", 0);
        assert_eq!([lacks.of_report("a"), lacks.of_report("b")], [2, 0]);
        lacks.add("a", 5);
        let told: Vec<u64> = (0..5).map(|_| lacks.of_report("a")).collect();
        assert_eq!(told, [7, 7, 5, 0, 0]);
        assert!(lacks.0.is_empty());
    }
}
