//! Which address to try next, and when: Happy Eyeballs version 2 (RFC 8305), or one IP version
//! alone, or a connection of each.
//!
//! **Differs** from the RFC: addresses of one family are taken in the order in which the resolver
//! gave them (§4 leaves the sorting to RFC 6724, which the system's resolver has done), and the
//! history of earlier connections (§4) is not kept.

use std::collections::VecDeque;
use std::net::IpAddr;

use netaware_record::IpVersion;
use netaware_units::{Mono, Span};

/// Which connections are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The first that comes up.
    First,
    /// One, of this IP version.
    Only(IpVersion),
    /// One of each IP version, the first one as soon as can be.
    Each,
}

/// Numbers attempts.
pub type Attempt = usize;

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Begin a connection to this address.
    Try(Attempt, IpAddr),
    /// Nothing before that time unless something happens; without a time, until something happens.
    Wait(Option<Mono>),
    /// What can be had is there; attempts still under way are of no use.
    Done,
    /// Nothing came up and nothing is left to try.
    Failed,
}

/// The order and the times of attempts.
#[derive(Debug, Clone)]
pub struct Connect {
    wanted: Wanted,
    /// Tried first.
    preferred: IpVersion,
    families: [Family; 2],
    attempts: Vec<(IpVersion, Fate)>,
    /// When the last attempt began, as long as it has not failed.
    staggered_from: Option<Mono>,
    last: Option<IpVersion>,
}

#[derive(Debug, Clone)]
struct Family {
    ip: IpVersion,
    answer: Answer,
    untried: VecDeque<IpAddr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Awaited,
    Came(Mono),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    UnderWay,
    Up,
    Failed,
}

impl Connect {
    /// Nothing is resolved yet.
    pub fn new(wanted: Wanted, preferred: IpVersion) -> Self {
        let preferred = if let Wanted::Only(ip) = wanted { ip } else { preferred };
        let family = |ip| Family { ip, answer: Answer::Awaited, untried: VecDeque::new() };
        Self {
            wanted,
            preferred,
            families: [family(preferred), family(preferred.other())],
            attempts: Vec::new(),
            staggered_from: None,
            last: None,
        }
    }

    /// The resolver has answered for one IP version, maybe with nothing. Those of the other version
    /// are left out.
    pub fn resolved(&mut self, now: Mono, ip: IpVersion, addresses: &[IpAddr]) {
        let family = self.family_mut(ip);
        let fitting = addresses.iter().filter(|address| address.is_ipv6() == (ip == IpVersion::V6));
        family.untried.extend(fitting.take(MOST_ADDRESSES));
        family.answer = Answer::Came(now);
    }

    /// An attempt has led to a connection. If another one is wanted, nothing is left to be fair to.
    pub fn came_up(&mut self, attempt: Attempt) {
        self.end(attempt, Fate::Up);
        self.staggered_from = None;
    }

    /// An attempt has failed; the next one begins at once (RFC 8305 §5).
    pub fn failed(&mut self, attempt: Attempt) {
        self.end(attempt, Fate::Failed);
        if attempt + 1 == self.attempts.len() {
            self.staggered_from = None;
        }
    }

    fn end(&mut self, attempt: Attempt, fate: Fate) {
        if let Some((_, known)) = self.attempts.get_mut(attempt).filter(|(_, known)| *known == Fate::UnderWay)
        {
            *known = fate;
        }
    }

    /// What to do now; to be asked again after each [`Step::Try`].
    pub fn step(&mut self, now: Mono) -> Step {
        let done = match self.wanted {
            Wanted::First => self.has(IpVersion::V4) || self.has(IpVersion::V6),
            Wanted::Only(ip) => self.has(ip),
            Wanted::Each => self.has(IpVersion::V4) && self.has(IpVersion::V6),
        };
        if done {
            return Step::Done;
        }
        match self.next_family() {
            Some(ip) => self.try_or_wait(now, ip),
            None if self.is_hopeless() && self.attempts.iter().any(|(_, fate)| *fate == Fate::Up) => {
                Step::Done
            }
            None if self.is_hopeless() => Step::Failed,
            None => Step::Wait(None),
        }
    }

    fn try_or_wait(&mut self, now: Mono, ip: IpVersion) -> Step {
        let waits = [self.resolution_delay(ip), self.staggered_from.map(|at| at + ATTEMPT_DELAY)];
        if let Some(until) = waits.into_iter().flatten().max().filter(|until| *until > now) {
            return Step::Wait(Some(until));
        }
        let Some(address) = self.family_mut(ip).untried.pop_front() else { return Step::Wait(None) };
        self.last = Some(ip);
        self.staggered_from = Some(now);
        self.attempts.push((ip, Fate::UnderWay));
        Step::Try(self.attempts.len() - 1, address)
    }

    /// The other family's addresses wait a little for those of the preferred one (RFC 8305 §3).
    fn resolution_delay(&self, ip: IpVersion) -> Option<Mono> {
        let [preferred, second] = &self.families;
        let first_try = self.attempts.is_empty() && ip == second.ip && self.is_wanted(preferred.ip);
        match (preferred.answer, second.answer) {
            (Answer::Awaited, Answer::Came(at)) if first_try => Some(at + RESOLUTION_DELAY),
            _ => None,
        }
    }

    /// Families take turns, beginning with the preferred one (RFC 8305 §4, First Address Family
    /// Count 1).
    fn next_family(&self) -> Option<IpVersion> {
        let first = self.last.map_or(self.preferred, IpVersion::other);
        [first, first.other()]
            .into_iter()
            .find(|ip| self.is_wanted(*ip) && !self.has(*ip) && !self.family(*ip).untried.is_empty())
    }

    fn is_hopeless(&self) -> bool {
        let awaited = |family: &Family| {
            self.is_wanted(family.ip) && !self.has(family.ip) && family.answer == Answer::Awaited
        };
        let under_way = |(ip, fate): &(IpVersion, Fate)| *fate == Fate::UnderWay && !self.has(*ip);
        !self.families.iter().any(awaited) && !self.attempts.iter().any(under_way)
    }

    fn is_wanted(&self, ip: IpVersion) -> bool {
        !matches!(self.wanted, Wanted::Only(only) if only != ip)
    }

    fn has(&self, ip: IpVersion) -> bool {
        self.attempts.contains(&(ip, Fate::Up))
    }

    fn family(&self, ip: IpVersion) -> &Family {
        &self.families[usize::from(ip != self.preferred)]
    }

    fn family_mut(&mut self, ip: IpVersion) -> &mut Family {
        &mut self.families[usize::from(ip != self.preferred)]
    }
}

/// RFC 8305 §8: Resolution Delay.
const RESOLUTION_DELAY: Span = Span::from_millis(50);
/// RFC 8305 §8: Connection Attempt Delay.
const ATTEMPT_DELAY: Span = Span::from_millis(250);
/// Of each IP version; a name with more of them is not believed to mean all.
const MOST_ADDRESSES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(n: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, n])
    }

    fn v6(n: u16) -> IpAddr {
        IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, n])
    }

    fn at(millis: i64) -> Mono {
        Mono(0) + Span::from_millis(millis)
    }

    fn both(wanted: Wanted) -> Connect {
        let mut connect = Connect::new(wanted, IpVersion::V6);
        connect.resolved(at(0), IpVersion::V6, &[v6(1), v6(2)]);
        connect.resolved(at(0), IpVersion::V4, &[v4(1), v4(2)]);
        connect
    }

    #[test]
    fn families_take_turns_a_quarter_of_a_second_apart() {
        let mut connect = both(Wanted::First);
        assert_eq!(connect.step(at(0)), Step::Try(0, v6(1)));
        assert_eq!(connect.step(at(1)), Step::Wait(Some(at(250))));
        assert_eq!(connect.step(at(250)), Step::Try(1, v4(1)));
        assert_eq!(connect.step(at(500)), Step::Try(2, v6(2)));
        assert_eq!(connect.step(at(750)), Step::Try(3, v4(2)));
        assert_eq!(connect.step(at(1000)), Step::Wait(None));
        connect.came_up(1);
        assert_eq!(connect.step(at(1001)), Step::Done);
    }

    #[test]
    fn a_failure_does_not_wait() {
        let mut connect = both(Wanted::First);
        assert_eq!(connect.step(at(0)), Step::Try(0, v6(1)));
        connect.failed(0);
        assert_eq!(connect.step(at(3)), Step::Try(1, v4(1)));
        assert_eq!(connect.step(at(3)), Step::Wait(Some(at(253))));
    }

    #[test]
    fn the_second_family_waits_fifty_milliseconds_for_the_first() {
        let mut connect = Connect::new(Wanted::First, IpVersion::V6);
        assert_eq!(connect.step(at(0)), Step::Wait(None));
        connect.resolved(at(10), IpVersion::V4, &[v4(1)]);
        assert_eq!(connect.step(at(10)), Step::Wait(Some(at(60))));
        connect.resolved(at(40), IpVersion::V6, &[v6(1)]);
        assert_eq!(connect.step(at(40)), Step::Try(0, v6(1)));
        assert_eq!(connect.step(at(290)), Step::Try(1, v4(1)));
    }

    #[test]
    fn one_version_alone_never_tries_the_other() {
        let mut connect = both(Wanted::Only(IpVersion::V4));
        assert_eq!(connect.step(at(0)), Step::Try(0, v4(1)));
        connect.failed(0);
        assert_eq!(connect.step(at(1)), Step::Try(1, v4(2)));
        connect.failed(1);
        assert_eq!(connect.step(at(2)), Step::Failed);
    }

    #[test]
    fn one_of_each_goes_on_after_the_first_and_is_content_with_what_there_is() {
        let mut connect = both(Wanted::Each);
        assert_eq!(connect.step(at(0)), Step::Try(0, v6(1)));
        connect.came_up(0);
        assert_eq!(connect.step(at(20)), Step::Try(1, v4(1)));
        assert_eq!(connect.step(at(20)), Step::Wait(Some(at(270))));
        connect.failed(1);
        assert_eq!(connect.step(at(260)), Step::Try(2, v4(2)));
        connect.failed(2);
        assert_eq!(connect.step(at(270)), Step::Done);
    }

    #[test]
    fn no_address_at_all_is_a_failure_and_foreign_ones_do_not_count() {
        let mut connect = Connect::new(Wanted::First, IpVersion::V6);
        connect.resolved(at(0), IpVersion::V6, &[v4(1)]);
        assert_eq!(connect.step(at(0)), Step::Wait(None));
        connect.resolved(at(1), IpVersion::V4, &[]);
        assert_eq!(connect.step(at(1)), Step::Failed);
    }
}
