//! The first rounds: how long the path is, who answers, what fits, how long answers and how far apart probes should be.

use netaware_units::Span;

use super::method::{Asked, Hops, Stage};
use super::round::{Fate, Kind, Probe, RoundReport, Told, What};
use super::trains::FAR;

impl Hops {
    /// One small packet for each possible hop, and an echo for the destination.
    pub(super) fn find(&mut self, kind: Kind) -> Vec<(Probe, Asked)> {
        let length = self.plan.smallest;
        let hops = (1..=self.plan.max_hops).map(|ttl| {
            let probe = Probe { ttl, length, kind, after: SURVEY_GAP, awaited: true, mute: false };
            (probe, Asked::Find { ttl })
        });
        let mut asked: Vec<_> = hops.collect();
        if kind == Kind::Udp {
            asked.extend(self.whole(SURVEY_GAP));
        }
        asked
    }

    /// A small echo to the destination, where there is a socket for it.
    pub(super) fn whole(&self, after: Span) -> Option<(Probe, Asked)> {
        let probe = Probe {
            ttl: FAR,
            length: self.plan.smallest,
            kind: Kind::Echo,
            after,
            awaited: true,
            mute: false,
        };
        self.plan.echo.then_some((probe, Asked::Whole))
    }

    /// Every hop once with a packet of `length`.
    pub(super) fn each_hop(&self, length: u32, after: Span) -> Vec<(Probe, Asked)> {
        let hops = (1..=self.end).filter_map(|ttl| self.alone(ttl, length, after));
        hops.chain(self.whole(after)).collect()
    }

    /// The usual packet sizes, largest first, to the furthest that answers.
    pub(super) fn ladder(&self) -> Vec<(Probe, Asked)> {
        let lengths =
            std::iter::once(self.plan.largest).chain(LADDER).filter(|length| *length <= self.plan.largest);
        // Hosts ration what they say of closed ports, so the furthest router is a better witness than the host.
        let routers = if self.reached { self.end - 1 } else { self.end };
        let router = (1..=routers).rev().find(|ttl| self.hop(*ttl).answered > 0);
        let far = if self.echo_answers() {
            Some((FAR, Kind::Echo))
        } else {
            router.or((self.end > 0).then_some(self.end)).map(|ttl| (ttl, self.kind_for(ttl)))
        };
        let Some((ttl, kind)) = far else { return Vec::new() };
        // With each length a small one: if those stay out as well, it is not for their length.
        let small = self.plan.smallest;
        lengths
            .flat_map(|length| [length, small])
            .map(|length| {
                let probe = Probe { ttl, length, kind, after: LADDER_GAP, awaited: true, mute: false };
                (probe, Asked::Ladder { length })
            })
            .collect()
    }

    /// Reads a round of [`Hops::find`].
    pub(super) fn take_find(&mut self, asked: &[Asked], report: &RoundReport) {
        let stories: Vec<(u8, Told)> = asked
            .iter()
            .zip(&report.probes)
            .filter_map(|(asked, told)| match asked {
                Asked::Find { ttl } => Some((*ttl, *told)),
                _ => None,
            })
            .collect();
        let ends_at = |what: fn(What) -> bool| {
            let there = stories.iter().filter(|(_, told)| told.reply().is_some_and(|reply| what(reply.what)));
            there.map(|(ttl, _)| *ttl).min()
        };
        let reached = ends_at(|what| matches!(what, What::PortUnreachable | What::EchoReply));
        let refused = ends_at(|what| what == What::Refused);
        let furthest = stories.iter().filter(|(_, told)| told.reply().is_some()).map(|(ttl, _)| *ttl).max();
        if let Some(ttl) = reached {
            (self.end, self.reached) = (ttl, true);
        } else if !self.reached {
            self.end = self.end.max(refused.or(furthest).unwrap_or(0));
            self.refused = self.refused || refused.is_some();
        }
        let kind = if self.stage == Stage::FindByEcho { Kind::Echo } else { Kind::Udp };
        let end = self.end;
        for (ttl, told) in stories.into_iter().filter(|(ttl, _)| *ttl <= end) {
            self.note_exchange(ttl, kind, self.plan.smallest, &told);
            if kind == Kind::Echo && told.reply().is_some() && self.hop(ttl).answered <= 1 {
                self.by_echo[usize::from(ttl) - 1] = true;
            }
        }
        let longest = report.probes.iter().filter_map(Told::rtt).max();
        if let Some(longest) = longest {
            self.patience = (longest * 2 + PATIENCE_MARGIN).min(FIRST_PATIENCE);
        }
    }

    /// Reads what [`Hops::ladder`] brought: sets the largest packet.
    pub(super) fn take_ladder(&mut self, asked: &[Asked], report: &RoundReport) {
        let mut passed = None;
        for (asked, told) in asked.iter().zip(&report.probes) {
            let Asked::Ladder { length } = asked else { continue };
            self.note_too_big(told);
            if *length == self.plan.smallest {
                self.controls.0 += 1;
                self.controls.1 += u32::from(told.reply().is_some());
            } else if told.reply().is_some_and(|reply| !matches!(reply.what, What::TooBig(_) | What::Refused))
            {
                passed = passed.max(Some(*length));
            }
        }
        self.passed = self.passed.max(passed);
    }

    /// A router or this host says what fits.
    pub(super) fn note_too_big(&mut self, told: &Told) {
        let said = match told.fate {
            Fate::TooBig(mtu) => Some(mtu),
            Fate::Answered(reply) => match reply.what {
                What::TooBig(mtu) => Some(mtu),
                _ => None,
            },
            _ => None,
        };
        if let Some(mtu) = said.filter(|mtu| *mtu >= LEAST_MTU && *mtu < self.plan.largest) {
            self.mtu = Some(self.mtu.map_or(mtu, |known| known.min(mtu)));
        }
    }

    /// What the ladder came to.
    pub(super) fn settle_largest(&mut self) {
        if self.controls.1 * 10 < self.controls.0 * 9 {
            self.passed = None;
        }
        let largest = self.passed.or(self.mtu).unwrap_or(self.plan.largest);
        self.largest = self.mtu.map_or(largest, |mtu| largest.max(mtu));
        if let Some(passed) = self.passed.filter(|passed| *passed < self.plan.largest) {
            // The ladder has gaps: what a router says is exact.
            self.mtu = Some(self.mtu.unwrap_or(passed));
        }
    }

    /// Probes must not queue behind each other: a tenth more than what the largest takes one way beyond the smallest, which is
    /// more than any link on the way takes for it.
    pub(super) fn settle_gap(&mut self) {
        let far = (1..=self.end).rev().find_map(|ttl| {
            let hop = self.hop(ttl);
            let serial = hop.rtt(self.largest)?.0 - hop.rtt(self.plan.smallest)?.0;
            let lengths = hop.exchanges.iter().filter(|exchange| exchange.length == self.largest);
            let answer = lengths.filter_map(|exchange| exchange.reply_length).max().unwrap_or(0);
            // An answer as long as the question has taken half of it.
            let share = f64::from(self.largest) / f64::from(self.largest + answer.min(self.largest));
            Some(Span((serial.nanos() as f64 * share) as i64))
        });
        if let Some(serial) = far {
            self.gap = (serial * 11 / 10).max(LEAST_GAP).min(MOST_GAP);
        }
    }
}

/// Before anything is known of the path.
pub(super) const FIRST_PATIENCE: Span = Span::from_millis(1000);
const PATIENCE_MARGIN: Span = Span::from_millis(100);
const SURVEY_GAP: Span = Span::from_millis(5);
pub(super) const LADDER_GAP: Span = Span::from_millis(30);
pub(super) const LEAST_GAP: Span = Span::from_millis(2);
const MOST_GAP: Span = Span::from_millis(200);
/// MTUs of tunnels and access lines, and what every path takes.
const LADDER: [u32; 7] = [1492, 1480, 1420, 1400, 1280, 1000, 576];
/// RFC 791: nothing believable is smaller.
const LEAST_MTU: u32 = 68;
