//! Contenders that take turns, and what we claim about the result.

use std::collections::BTreeMap;

use anyhow::Result;

use super::sample::Sample;
use crate::clock::pause;

/// Figures of one run, by name with unit: `("Gbit/s", 41.2)`.
pub(crate) type Reading = Vec<(&'static str, f64)>;

/// One tool with its settings.
pub(crate) struct Contender<'a> {
    pub(crate) name: &'static str,
    pub(crate) run: Box<dyn Fn() -> Result<Reading> + 'a>,
}

/// Several contenders for the same thing.
pub(crate) struct Contest<'a> {
    /// What and where: "4 streams, veth IPv6".
    pub(crate) title: String,
    pub(crate) contenders: Vec<Contender<'a>>,
    pub(crate) claims: Vec<Claim>,
}

/// A figure of one of our contenders that is to be reached.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claim {
    /// Name of our contender.
    pub(crate) ours: &'static str,
    pub(crate) figure: &'static str,
    pub(crate) bound: Bound,
}

/// Against what a figure is held.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Bound {
    /// At least so many times the best of these.
    AtLeast(f64, &'static [&'static str]),
    /// At most so many times the best (smallest) of these.
    AtMost(f64, &'static [&'static str]),
    /// At most this, whatever others do.
    Limit(f64),
    /// At least this, whatever others do.
    Floor(f64),
}

/// Everything that was measured in a contest.
pub(crate) struct Outcome {
    pub(crate) title: String,
    pub(crate) contenders: Vec<Measured>,
    pub(crate) claims: Vec<Claim>,
}

/// All runs of one contender.
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    /// By figure, in the order in which the tool's reading gives them.
    pub(crate) samples: Vec<(&'static str, Sample)>,
    /// Why runs failed, and how many did for that reason.
    pub(crate) failures: BTreeMap<String, u32>,
}

impl Contest<'_> {
    /// Holds `rounds` rounds. The order turns round each time (ABBA), so that a slow drift of the
    /// machine hits all alike. A failed run is counted and told, and the others go on.
    pub(crate) fn hold(self, rounds: u32) -> Outcome {
        let mut measured: Vec<Measured> =
            self.contenders.iter().map(|contender| Measured::new(contender.name)).collect();
        for round in 0..rounds {
            for index in order(self.contenders.len(), round) {
                let contender = &self.contenders[index];
                eprintln!("{}: {} ({}/{rounds})", self.title, contender.name, round + 1);
                measured[index].take(round, (contender.run)());
                pause(SETTLE);
            }
        }
        Outcome { title: self.title, contenders: measured, claims: self.claims }
    }
}

/// Sockets and processes of one run are gone before the next begins.
const SETTLE: std::time::Duration = std::time::Duration::from_millis(200);

fn order(count: usize, round: u32) -> Vec<usize> {
    let forward = 0..count;
    if round.is_multiple_of(2) { forward.collect() } else { forward.rev().collect() }
}

impl Measured {
    fn new(name: &'static str) -> Self {
        Self { name, samples: Vec::new(), failures: BTreeMap::new() }
    }

    fn take(&mut self, round: u32, reading: Result<Reading>) {
        let reading = match reading {
            Ok(reading) => reading,
            Err(error) => return *self.failures.entry(format!("{error:#}")).or_default() += 1,
        };
        for (figure, value) in reading {
            let position = self.samples.iter().position(|(name, _)| *name == figure).unwrap_or_else(|| {
                self.samples.push((figure, Sample::default()));
                self.samples.len() - 1
            });
            self.samples[position].1.push(round, value);
        }
    }

    pub(crate) fn sample(&self, figure: &str) -> Option<&Sample> {
        self.samples.iter().find(|(name, _)| *name == figure).map(|(_, sample)| sample)
    }
}

impl Outcome {
    pub(crate) fn failures(&self) -> usize {
        self.contenders.iter().map(|contender| contender.failures.values().sum::<u32>() as usize).sum()
    }

    pub(crate) fn sample(&self, contender: &str, figure: &str) -> Option<&Sample> {
        self.contenders.iter().find(|measured| measured.name == contender)?.sample(figure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_turns_round_each_time() {
        assert_eq!(order(3, 0), [0, 1, 2]);
        assert_eq!(order(3, 1), [2, 1, 0]);
    }

    #[test]
    fn failed_run_leaves_a_gap_and_its_reason() {
        let turns = std::cell::Cell::new(0);
        let run = || {
            turns.set(turns.get() + 1);
            if turns.get() == 2 {
                Err(anyhow::anyhow!("refused"))
            } else {
                Ok(vec![("x", f64::from(turns.get()))])
            }
        };
        let contenders = vec![Contender { name: "a", run: Box::new(run) }];
        let outcome = Contest { title: "t".into(), contenders, claims: vec![] }.hold(3);
        assert_eq!(outcome.failures(), 1);
        assert_eq!(outcome.sample("a", "x").unwrap().range(), Some((1.0, 3.0)));
        assert_eq!(outcome.contenders[0].failures["refused"], 1);
    }
}
