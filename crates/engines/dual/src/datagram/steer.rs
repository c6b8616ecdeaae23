//! Watches both versions of a session and goes over to the better one, by rules or by what a
//! callback says.
//!
//! The version in use is seen by what it carries, the other one by probes alone. So that its loss
//! can be told, it gets more of them than the usual ones: up to one every 20 ms, as far as
//! [`Rules::budget`] of what the application sends pays for it. What is in use bears its own
//! traffic's queues and the other one does not, so round trips lean towards the other one.

use netaware_record::{IpVersion, Use};
use netaware_units::{Mono, Span};

use super::Session;
use super::path::Path;
use crate::policy::{Choice, Decision, DecisionLog, Evidence, Metric, NotDone, Observation, Policy, Rules};

/// Rules by which datagrams cannot be steered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "datagrams are not compared by goodput, which their sender sets: use metric round-trip or loss, or use = \"interactive\" or \"media\""
)]
pub struct UnfitRules;

impl UnfitRules {
    /// Whether datagrams can be steered by these.
    ///
    /// # Errors
    /// They cannot.
    pub fn check(rules: Option<&Rules>) -> Result<(), Self> {
        if rules.is_some_and(|rules| rules.metric == Metric::Goodput) { Err(Self) } else { Ok(()) }
    }
}

#[derive(Debug)]
pub(super) struct Steer {
    policy: Policy,
    /// A callback decides; the rules say what is looked at.
    judged: bool,
    /// There is evidence that it has not seen.
    fresh: bool,
    look_at: Mono,
    /// Bytes of probes that may still be spent.
    allowance: f64,
    probed_at: [Option<Mono>; 2],
    samples: [u64; 2],
    log: DecisionLog,
}

impl Steer {
    pub(super) fn look_at(&self) -> Mono {
        self.look_at
    }

    /// The application has sent.
    pub(super) fn spend(&mut self, bytes: usize) {
        let more = bytes as f64 * self.policy.rules().budget;
        self.allowance = (self.allowance + more).min(PROBE_COST * MOST_SAVED);
    }

    pub(super) fn probed(&mut self, now: Mono, ip: IpVersion) {
        self.probed_at[ip.index()] = Some(now);
        self.allowance = (self.allowance - PROBE_COST).max(0.0);
    }

    /// When the version that is not in use gets a further probe.
    pub(super) fn probe_at(&self, ip: IpVersion, current: Option<IpVersion>) -> Option<Mono> {
        let wanted = self.policy.rules().metric == Metric::Loss && current == Some(ip.other());
        let last = self.probed_at[ip.index()].filter(|_| wanted && self.allowance >= PROBE_COST)?;
        Some(last + LEAST_BETWEEN)
    }

    pub(super) fn turned(&mut self, now: Mono) {
        self.policy.switched(now);
        self.look_at = now + self.policy.rules().every;
    }

    fn observe(&mut self, now: Mono, path: &Path) {
        let news = std::mem::replace(&mut self.samples[path.ip.index()], path.samples) != path.samples;
        if path.is_up() && news {
            let (round_trip, loss) = (path.round_trip(), path.loss());
            let (goodput, loss_bounds) = (None, None);
            self.policy.observe(&Observation {
                at: now,
                ip: path.ip,
                goodput,
                round_trip,
                loss,
                loss_bounds,
            });
        }
    }
}

impl Session {
    /// Switches by these rules from now on; `judged` where a callback decides and the rules only
    /// say what is looked at, how often and at what cost. `None` and not judged: no longer by
    /// itself.
    ///
    /// # Errors
    /// The rules do not fit datagrams; what was set before stays.
    pub fn set_policy(&mut self, now: Mono, rules: Option<Rules>, judged: bool) -> Result<(), UnfitRules> {
        UnfitRules::check(rules.as_ref())?;
        let rules = rules.or_else(|| judged.then(|| Rules::of(Use::Media)));
        self.steer = rules.map(|rules| Steer {
            policy: Policy::new(rules),
            judged,
            fresh: false,
            look_at: now + rules.every,
            allowance: 0.0,
            probed_at: [None; 2],
            samples: [0; 2],
            log: DecisionLog::default(),
        });
        Ok(())
    }

    pub(super) fn look(&mut self, now: Mono) {
        let Some(steer) = self.steer.as_mut().filter(|steer| steer.look_at <= now) else { return };
        steer.look_at = now + steer.policy.rules().every;
        self.paths.iter().for_each(|path| steer.observe(now, path));
        steer.fresh = true;
        let Some(present) = self.current.filter(|_| !steer.judged) else { return };
        if let Some(decision) = steer.policy.decide(now, present) {
            self.follow(now, decision);
        }
    }

    fn follow(&mut self, now: Mono, decision: Decision) {
        let not_done = if self.is_turning() {
            Some(NotDone::Unsettled)
        } else {
            self.switch(now, decision.to).err().map(NotDone::from)
        };
        if let Some(steer) = &mut self.steer {
            steer.log.note(Decision { not_done, ..decision });
        }
    }

    /// What a callback is to judge by; `None` where there is nothing new, or a switch is under way.
    pub fn evidence(&mut self, now: Mono) -> Option<Evidence> {
        let present = self.current?;
        let up = self.paths.each_ref().map(Path::is_up);
        let ready = !self.is_turning() && self.ended.is_none();
        let steer = self.steer.as_mut().filter(|steer| steer.judged && steer.fresh && ready)?;
        steer.fresh = false;
        Some(steer.policy.evidence(now, present, up))
    }

    /// Does what a callback has said.
    pub fn judge(&mut self, now: Mono, choice: Choice) {
        let (Choice::Use(to), Some(present), Some(steer)) = (choice, self.current, &self.steer) else {
            return;
        };
        if steer.judged && to != present {
            let decision = steer.policy.called(now, present);
            self.follow(now, decision);
        }
    }

    /// What was decided and became of it, oldest first; the oldest of very many are dropped.
    pub fn decision(&mut self) -> Option<Decision> {
        self.steer.as_mut()?.log.take()
    }
}

/// Bytes of a probe with its headers of UDP and IPv6.
const PROBE_COST: f64 = 112.0;
/// Probes that can be saved up for later.
const MOST_SAVED: f64 = 20.0;
const LEAST_BETWEEN: Span = Span::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::Standing;
    use crate::policy::VersionEvidence;

    const V4: IpVersion = IpVersion::V4;
    const V6: IpVersion = IpVersion::V6;

    fn mono(millis: i64) -> Mono {
        Mono(0) + Span::from_millis(millis)
    }

    fn steer(rules: Rules) -> Steer {
        Steer {
            policy: Policy::new(rules),
            judged: false,
            fresh: false,
            look_at: mono(0),
            allowance: 0.0,
            probed_at: [None; 2],
            samples: [0; 2],
            log: DecisionLog::default(),
        }
    }

    #[test]
    fn probes_are_paid_for_by_what_is_sent_and_twenty_can_be_saved_up() {
        let mut steer = steer(Rules { budget: 0.5, ..Rules::of(Use::Media) });
        steer.spend(100);
        assert!((steer.allowance - 50.0).abs() < 1e-9, "{}", steer.allowance);
        steer.spend(1_000_000);
        assert!((steer.allowance - 2240.0).abs() < 1e-9, "{}", steer.allowance);
        steer.probed(mono(7), V4);
        assert!((steer.allowance - 2128.0).abs() < 1e-9, "{}", steer.allowance);
        assert_eq!(steer.probed_at, [Some(mono(7)), None]);
        (0..20).for_each(|_| steer.probed(mono(8), V6));
        assert!(steer.allowance.abs() < 1e-9, "{}", steer.allowance);
    }

    #[test]
    fn a_further_probe_follows_the_last_one_where_it_is_of_use_and_paid_for() {
        let by = |metric, allowance| Steer {
            allowance,
            probed_at: [Some(mono(7)); 2],
            ..steer(Rules { metric, ..Rules::of(Use::Media) })
        };
        let paid = by(Metric::Loss, 112.0);
        assert_eq!(paid.probe_at(V4, Some(V6)), Some(mono(27)));
        assert_eq!([paid.probe_at(V6, Some(V6)), paid.probe_at(V4, None)], [None; 2]);
        assert_eq!(by(Metric::Loss, 111.0).probe_at(V4, Some(V6)), None);
        assert_eq!(by(Metric::RoundTrip, 112.0).probe_at(V4, Some(V6)), None);
        let never_probed = Steer { probed_at: [None; 2], ..paid };
        assert_eq!(never_probed.probe_at(V4, Some(V6)), None);
    }

    #[test]
    fn only_news_of_a_version_that_works_is_looked_at_and_a_turn_begins_anew() {
        let mut steer = steer(Rules::of(Use::Media));
        let mut path = Path::new(V4, mono(0));
        path.samples = 1;
        steer.observe(mono(1), &path);
        path.standing = Standing::Up;
        steer.observe(mono(2), &path);
        path.samples = 2;
        steer.observe(mono(3), &path);
        let seen = VersionEvidence {
            up: true,
            observations: 1,
            seen_at: Some(mono(3)),
            goodput: None,
            round_trip: None,
            loss: None,
        };
        let evidence = steer.policy.evidence(mono(4), V4, [true, false]);
        assert_eq!((evidence.v4, evidence.v6.observations, evidence.switched_at), (seen, 0, None));
        steer.turned(mono(1000));
        let evidence = steer.policy.evidence(mono(1001), V4, [true, false]);
        assert_eq!((evidence.v4.observations, evidence.switched_at), (0, Some(mono(1000))));
        assert_eq!(steer.look_at(), mono(1500));
    }
}
