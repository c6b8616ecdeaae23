//! What the reports of rounds come to.

use netaware_units::Mono;

use super::super::ration::Outcome;
use super::super::round::{Fate, Kind, Probe, RoundReport, Told, What};
use super::super::trains::{FAR, Gaps};
use super::{Asked, Hops, Stage};

impl Hops {
    /// Takes in what became of the last round.
    pub fn take(&mut self, report: &RoundReport) {
        let asked = std::mem::take(&mut self.asked);
        let (probes, last) = (std::mem::take(&mut self.probes), report.probes.iter().map(last_time).max());
        self.now = last.map_or(self.now, |at| at.max(self.now));
        if let Some(rtt) = report.longest_late() {
            self.follow(rtt);
        }
        if matches!(self.stage, Stage::Ladder | Stage::Large)
            && let Some(rtt) = report.probes.iter().filter_map(Told::rtt).max()
        {
            self.follow(rtt);
        }
        self.take_late(report);
        self.follow_answers(&asked, &probes, report);
        match self.stage {
            Stage::Find | Stage::FindByEcho => self.take_find(&asked, report),
            Stage::Ladder => self.take_ladder(&asked, report),
            Stage::Trains => self.take_train(report),
            Stage::Measure if !self.stopped => self.note_slower(&asked, &probes, report),
            _ => {}
        }
        let mut leader = None;
        let mut outcomes: Vec<(u8, bool)> = Vec::new();
        for ((asked, probe), told) in asked.iter().zip(&probes).zip(&report.probes) {
            self.note_too_big_late(told);
            match *asked {
                Asked::Hop { ttl } => {
                    self.note_nearer_end(ttl, probe.kind, told);
                    if let Some(answered) = self.note_exchange(ttl, probe.kind, probe.length, told) {
                        outcomes.push((ttl, answered));
                    }
                }
                Asked::Whole => self.take_whole(probe.length, told),
                Asked::Leader { ttl } => {
                    leader = Some(*told);
                    self.hop_mut(ttl).note_leader(told.reply().is_some());
                    if told.reply().is_some() {
                        self.note_exchange(ttl, probe.kind, probe.length, told);
                    }
                }
                Asked::Tail { ttl, bytes } => {
                    self.take_tail(ttl, bytes, leader.take(), told);
                }
                Asked::Find { .. } | Asked::Ladder { .. } | Asked::Train => {}
            }
        }
        self.note_outcomes(&outcomes, &asked, &probes, report);
    }

    /// Takes note of who answers and when.
    fn follow_answers(&mut self, asked: &[Asked], probes: &[Probe], report: &RoundReport) {
        if let Some(last) = report.probes.last().filter(|_| !report.late.is_empty()) {
            self.ceasing.came(last.sent_at);
            self.end_ceasing.came(last.sent_at);
        }
        let end = self.end;
        let nobody = report.probes.iter().all(|told| told.reply().is_none());
        for ((asked, probe), told) in asked.iter().zip(probes).zip(&report.probes) {
            let is_echo = probe.kind == Kind::Echo && self.whole.1 > 0;
            // What hosts say of closed ports is rationed, and its absence tells nothing.
            let of_end = match *asked {
                Asked::Hop { ttl } => self.reached && ttl == end && self.whole.1 > 0,
                Asked::Whole => true,
                // While sizes are measured, most of what the destination is asked is this.
                Asked::Tail { .. } => is_echo,
                // Those may drown behind large packets; not where nobody else answers either.
                Asked::Ladder { .. } | Asked::Train => {
                    is_echo && nobody && probe.length == self.plan.smallest
                }
                _ => false,
            };
            let follows = [(true, &mut self.ceasing), (of_end, &mut self.end_ceasing)];
            for (_, ceasing) in follows.into_iter().filter(|(is, _)| *is) {
                match told.fate {
                    Fate::NotSent => ceasing.not_sent(told.sent_at),
                    Fate::TooBig(_) => {}
                    Fate::Silent => ceasing.unanswered(told.sent_at),
                    Fate::Answered(reply) => ceasing.came(reply.at),
                }
            }
        }
    }

    /// An answer that was only late is no loss, and while the hops are looked for it is as good as
    /// one in time.
    fn take_late(&mut self, report: &RoundReport) {
        let is_search = matches!(self.stage, Stage::Find | Stage::FindByEcho | Stage::Alone);
        for late in &report.late {
            let is_it =
                |(_, kind, sent_at): &(u8, Kind, Mono)| (*kind, *sent_at) == (late.kind, late.sent_at);
            let place = self.unanswered.iter().position(is_it);
            let counted = place.and_then(|place| self.unanswered.remove(place));
            if is_search {
                self.take_late_search(late, counted.is_some());
            } else if let Some((ttl, _, sent_at)) = counted {
                self.hop_mut(ttl).note_late(sent_at);
                if late.ttl == FAR && late.kind == Kind::Echo {
                    self.whole.1 += u32::from(self.whole.1 < self.whole.0);
                }
            }
        }
    }

    /// The destination answers to a TTL that seemed to be too small for it: the path is shorter.
    fn note_nearer_end(&mut self, ttl: u8, kind: Kind, told: &Told) {
        let is_there = |what| matches!(what, What::PortUnreachable | What::EchoReply);
        if ttl < self.end && told.reply().is_some_and(|reply| is_there(reply.what)) {
            (self.end, self.reached) = (ttl, true);
            self.by_echo[usize::from(ttl) - 1] = kind == Kind::Echo;
        }
    }

    fn note_too_big_late(&mut self, told: &Told) {
        if self.stage == Stage::Measure {
            let known = self.mtu;
            self.note_too_big(told);
            if let Some(mtu) = self.mtu.filter(|_| self.mtu != known) {
                self.largest = self.largest.min(mtu);
                for hop in &mut self.logs {
                    hop.order.clear();
                }
            }
        }
    }

    /// Whether it was answered; `None` where it never left this host or was too large.
    pub(in crate::hops) fn note_exchange(
        &mut self,
        ttl: u8,
        kind: Kind,
        length: u32,
        told: &Told,
    ) -> Option<bool> {
        let cut_off = self.is_cut_off();
        if told.fate == Fate::Silent && !cut_off {
            self.unanswered.push_back((ttl, kind, told.sent_at));
            if self.unanswered.len() > MOST_UNANSWERED {
                self.unanswered.pop_front();
            }
        }
        let hop = self.hop_mut(ttl);
        match told.fate {
            Fate::NotSent | Fate::TooBig(_) => None,
            // Nobody waited for it as long as for others: its fate is unknown.
            Fate::Silent if cut_off => None,
            Fate::Silent => {
                hop.note_asked();
                Some(false)
            }
            Fate::Answered(reply) if matches!(reply.what, What::TooBig(_)) => None,
            Fate::Answered(reply) => {
                hop.note_asked();
                hop.note_answer(kind, length, told.sent_at, reply);
                Some(true)
            }
        }
    }

    fn take_whole(&mut self, length: u32, told: &Told) {
        let answered = told.reply().is_some_and(|reply| reply.what == What::EchoReply);
        if matches!(told.fate, Fate::NotSent | Fate::TooBig(_)) {
            return;
        }
        self.whole.0 += 1;
        self.whole.1 += u32::from(answered);
        self.whole_silent = if answered { 0 } else { self.whole_silent + 1 };
        if self.reached && self.end > 0 {
            self.note_exchange(self.end, Kind::Echo, length, told);
        }
    }

    fn take_tail(&mut self, ttl: u8, bytes: u32, leader: Option<Told>, told: &Told) {
        let Some(leader) = leader.filter(|leader| !matches!(leader.fate, Fate::NotSent | Fate::TooBig(_)))
        else {
            return;
        };
        if told.reply().is_some_and(|reply| matches!(reply.what, What::TooBig(_))) {
            return;
        }
        if let Some(reply) = told.reply() {
            // From the departure of the large one: what the host puts between the two is no part of
            // the path.
            let delay = reply.at - leader.sent_at;
            let behind = leader.reply().is_some_and(|reply| reply.what == What::PortUnreachable);
            self.hop_mut(ttl).note_tail(bytes, delay, behind);
        }
    }

    /// A hop whose answer stays out while something further off answers in the same round rations
    /// its answers.
    fn note_outcomes(
        &mut self,
        outcomes: &[(u8, bool)],
        asked: &[Asked],
        probes: &[Probe],
        report: &RoundReport,
    ) {
        let furthest = asked.iter().zip(&report.probes).filter(|(_, told)| told.reply().is_some());
        let furthest = furthest.filter_map(|(asked, _)| match asked {
            Asked::Hop { ttl } => Some(*ttl),
            Asked::Whole | Asked::Tail { .. } => Some(FAR),
            _ => None,
        });
        let furthest = furthest.max().unwrap_or(0);
        let end = self.end;
        // Nothing is beyond the last one: there its predecessor vouches for the path. For the only
        // hop nobody does.
        let passes = |ttl: u8| furthest > ttl || (ttl == end && end > 1 && furthest + 1 >= end);
        self.note_rations(asked, probes, report, passes);
        let mut limited = false;
        for (ttl, answered) in outcomes {
            let hop = self.hop_mut(*ttl);
            let before = hop.pace.limited;
            hop.note_outcome(*answered, passes(*ttl));
            if hop.pace.limited && !before {
                hop.restart_pace_count();
                limited = true;
            }
        }
        if limited && self.stage == Stage::Measure {
            self.settle_routes();
        }
    }

    /// Takes note of all that hops were asked which are known to ration their answers, trains too:
    /// to whom a probe was sent for another reason, it was a question like any other.
    fn note_rations(
        &mut self,
        asked: &[Asked],
        probes: &[Probe],
        report: &RoundReport,
        passes: impl Fn(u8) -> bool,
    ) {
        for ((asked, probe), told) in asked.iter().zip(probes).zip(&report.probes) {
            let ttl = match *asked {
                Asked::Find { ttl } | Asked::Hop { ttl } | Asked::Leader { ttl } => ttl,
                Asked::Whole if self.reached => self.end,
                Asked::Tail { .. } | Asked::Train => probe.ttl,
                Asked::Whole | Asked::Ladder { .. } => continue,
            };
            if probe.mute || ttl == 0 || ttl > self.end || probe.kind != self.kind_of(ttl) {
                continue;
            }
            let outcome = match told.fate {
                Fate::NotSent | Fate::TooBig(_) => continue,
                Fate::Answered(reply) if matches!(reply.what, What::TooBig(_)) => continue,
                Fate::Answered(_) => Outcome::Answered,
                Fate::Silent if probe.awaited && passes(ttl) && !self.is_cut_off() => Outcome::Unanswered,
                Fate::Silent => Outcome::Unknown,
            };
            let hop = self.hop_mut(ttl);
            if hop.pace.limited {
                hop.ration.note(told.sent_at, outcome);
            }
        }
    }

    /// What a hop is asked by, as long as nothing else is known of it.
    fn kind_of(&self, ttl: u8) -> Kind {
        if self.is_destination(ttl) && self.whole.1 > 0 { Kind::Echo } else { self.kind_for(ttl) }
    }

    fn take_train(&mut self, report: &RoundReport) {
        self.trains += 1;
        let (mut slowest, mut departed): (f64, Option<f64>) = (0.0, None);
        for (ttl, first, last) in self.train.ends.clone() {
            let ends = [first, last].map(|place| report.probes.get(place).and_then(Told::reply));
            let [Some(a), Some(b)] = ends else { continue };
            let bytes = self.train.bytes(first, last);
            let gap = (b.at - a.at).nanos() as f64 / bytes as f64;
            slowest = slowest.max(gap);
            let sent_at = |place: usize| report.probes.get(place).map(|told| told.sent_at);
            if let (Some(first), Some(last)) = (sent_at(first), sent_at(last)) {
                departed.get_or_insert((last - first).nanos() as f64 / bytes as f64);
            }
            match self.gaps.iter_mut().find(|(known, _)| *known == ttl) {
                Some((_, gaps)) => gaps.0.push(gap),
                None => self.gaps.push((ttl, Gaps(vec![gap]))),
            }
        }
        self.departures.0.extend(departed);
        self.note_slow_train(slowest);
    }
}

fn last_time(told: &Told) -> Mono {
    told.reply().map_or(told.sent_at, |reply| reply.at)
}

/// Probes whose late answer is not taken for a loss.
const MOST_UNANSWERED: usize = 256;
