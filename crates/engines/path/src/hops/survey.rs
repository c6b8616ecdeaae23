//! The first rounds: how long the path is, who answers, what fits, how long answers and how far
//! apart probes should be.

use netaware_stats::patience::Patience;
use netaware_units::Span;

use super::method::{Asked, Hops, Stage};
use super::round::{Fate, Kind, LateAnswer, Probe, RoundReport, Told, What};
use super::trains::FAR;

impl Hops {
    /// One small packet for each possible hop, and an echo for the destination.
    pub(super) fn find(&self, kind: Kind) -> Vec<(Probe, Asked)> {
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

    /// The same once more. Who answers is known by the destination's echo: the hops before it are
    /// nearer, and what hosts say of closed ports is rationed, so most of it never comes.
    pub(super) fn find_again(&self) -> Vec<(Probe, Asked)> {
        let mut asked = self.find(Kind::Udp);
        for (probe, what) in &mut asked {
            probe.awaited = !self.plan.echo || *what == Asked::Whole;
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
        // Hosts ration what they say of closed ports, so the furthest router is a better witness
        // than the host.
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

    /// The largest alone while it is not known to pass: on a slow path all lengths at once would
    /// fill it. Then the others, as far apart as they take.
    pub(super) fn climb(&self, turn: u32) -> Vec<(Probe, Asked)> {
        let mut ladder = self.ladder();
        let others = ladder.split_off(ladder.len().min(2));
        if turn < TOP_TRIES {
            return ladder;
        }
        let apart = |(probe, asked): (Probe, Asked)| {
            let after = self.time_of(probe.length).max(probe.after);
            (Probe { after, ..probe }, asked)
        };
        others.into_iter().map(apart).collect()
    }

    /// How long a packet of this length takes at most, as far as that is known: by what one of the
    /// ladder took, or by how long the first probes took together. For as long as that nothing
    /// follows a large packet.
    pub(super) fn time_of(&self, length: u32) -> Span {
        let scaled =
            |bytes: u64, took: Span| took.or_zero().nanos() as f64 * f64::from(length) / bytes as f64;
        let by_ladder = self.ladder_took.map(|(bytes, took)| scaled(u64::from(bytes), took * 11 / 10));
        let by_survey = || {
            let survey = self.survey?;
            let base = self.hop(survey.ttl.clamp(1, self.end.max(1))).rtt(self.plan.smallest)?.0;
            Some(scaled(survey.bytes, survey.sending + (survey.rtt - base).or_zero()))
        };
        let span = by_ladder.or_else(by_survey).map_or(MOST_GAP, |nanos| Span(nanos as i64));
        span.max(LADDER_GAP).min(MOST_GAP)
    }

    /// The last of the first probes that was answered has waited for all before it.
    fn note_survey(&mut self, asked: &[Asked], report: &RoundReport) {
        let Some(last) = report.probes.iter().rposition(|told| told.reply().is_some()) else { return };
        let (first, told) = (report.probes[0], report.probes[last]);
        let (Some(rtt), Some(asked)) = (told.rtt(), asked.get(last)) else { return };
        let ttl = if let Asked::Find { ttl } = asked { *ttl } else { FAR };
        let bytes = u64::from(self.plan.smallest) * (last as u64 + 1);
        self.survey = Some(Survey { ttl, bytes, sending: told.sent_at - first.sent_at, rtt });
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
            // The nearest TTL that it answers to may have been rationed this time.
            self.end = if self.reached { self.end.min(ttl) } else { ttl };
            self.reached = true;
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
        self.note_survey(asked, report);
        let longest = report.probes.iter().filter_map(Told::rtt).max();
        if let Some(longest) = longest.max(report.longest_late()) {
            self.follow(longest);
        }
    }

    /// Reads an answer to a search that had been given up. `counted` says whether its probe counts
    /// as asked already.
    pub(super) fn take_late_search(&mut self, late: &LateAnswer, counted: bool) {
        let (ttl, kind) = (late.ttl, late.kind);
        if ttl == FAR {
            self.whole.1 += u32::from(kind == Kind::Echo && self.whole.1 < self.whole.0);
            return;
        }
        match late.what {
            What::PortUnreachable | What::EchoReply if !self.reached || ttl < self.end => {
                (self.end, self.reached) = (ttl, true);
            }
            What::TimeExceeded if !self.reached => self.end = self.end.max(ttl),
            What::Refused if !self.reached => (self.end, self.refused) = (self.end.max(ttl), true),
            What::TooBig(_) | What::TimestampReply => return,
            _ => {}
        }
        if ttl > self.end {
            return;
        }
        let length = self.plan.smallest;
        let hop = self.hop_mut(ttl);
        if !counted {
            hop.note_asked();
        }
        hop.note_answer(kind, length, late.sent_at, late.reply());
        if kind == Kind::Echo && self.hop(ttl).answered <= 1 {
            self.by_echo[usize::from(ttl) - 1] = true;
        }
    }

    /// Patience follows the longest round trip that was seen, late ones too: a hop behind a slow
    /// link is not a silent one.
    pub(super) fn follow(&mut self, rtt: Span) {
        self.longest = self.longest.max(Some(rtt));
        self.patience = Patience::of_rounds(PATIENCE_TIMES, FIRST_PATIENCE).knowing(self.longest).span();
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
                self.note_ladder(*length, told);
            }
        }
        self.passed = self.passed.max(passed);
    }

    /// How much longer a large packet took than a small one to the furthest hop.
    fn note_ladder(&mut self, length: u32, told: &Told) {
        let base = (1..=self.end).rev().find_map(|ttl| Some(self.hop(ttl).rtt(self.plan.smallest)?.0));
        let (Some(base), Some(rtt)) = (base, told.rtt()) else { return };
        self.ladder_took = Some((length, rtt - base));
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

    /// Probes must not queue behind each other: a tenth more than what the largest takes one way
    /// beyond the smallest, which is more than any link on the way takes for it.
    pub(super) fn settle_gap(&mut self) {
        let far = (1..=self.end).rev().find_map(|ttl| {
            let hop = self.hop(ttl);
            let serial = hop.least_lately(self.largest)? - hop.rtt(self.plan.smallest)?.0;
            let lengths = hop.exchanges.iter().filter(|exchange| exchange.length == self.largest);
            let answer = lengths.filter_map(|exchange| exchange.reply_length).max().unwrap_or(0);
            // An answer as long as the question has taken half of it.
            let share = f64::from(self.largest) / f64::from(self.largest + answer.min(self.largest));
            Some((serial, Span((serial.nanos() as f64 * share) as i64)))
        });
        if let Some((whole, serial)) = far {
            self.serial = whole;
            self.gap = (serial * 11 / 10).max(LEAST_GAP).min(MOST_GAP);
        }
    }
}

/// What the first probes took, of which the last that was answered has waited for all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Survey {
    /// Of that one.
    ttl: u8,
    /// Up to it.
    bytes: u64,
    /// From the first departure to its own.
    sending: Span,
    /// Its own.
    rtt: Span,
}

/// A loss must not make the path look narrow.
const TOP_TRIES: u32 = 2;
/// Before anything is known of the path.
pub(super) const FIRST_PATIENCE: Span = Span::from_millis(1000);
/// Where the destination stayed silent for that long: it may be far, and the hops before it near.
pub(super) const FAR_PATIENCE: Span = Span::from_millis(5000);
/// Longest round trips that an answer is waited for: a path has several hops that never answer, and
/// each is asked in most rounds.
const PATIENCE_TIMES: i64 = 2;
const SURVEY_GAP: Span = Span::from_millis(5);
pub(super) const LADDER_GAP: Span = Span::from_millis(30);
pub(super) const LEAST_GAP: Span = Span::from_millis(2);
/// As long as the largest packet takes at 20 kbit/s, or probes queue behind each other.
pub(super) const MOST_GAP: Span = Span::from_millis(660);
/// MTUs of tunnels and access lines, and what every path takes.
const LADDER: [u32; 7] = [1492, 1480, 1420, 1400, 1280, 1000, 576];
/// RFC 791: nothing believable is smaller.
const LEAST_MTU: u32 = 68;

#[cfg(test)]
mod tests {
    use super::super::made_up::{SILENT, answered, hops, told};
    use super::*;

    type Change = fn(&mut Hops);
    /// TTL, kind and length.
    type Shape = (u8, Kind, u32);

    #[test]
    fn each_possible_hop_and_the_destination_are_looked_for() {
        let hops = hops(2);
        let probe = |ttl, kind| Probe {
            ttl,
            length: 64,
            kind,
            after: Span::from_millis(5),
            awaited: true,
            mute: false,
        };
        let asked = |kind| [1, 2].map(|ttl| (probe(ttl, kind), Asked::Find { ttl })).to_vec();
        assert_eq!(hops.find(Kind::Echo), asked(Kind::Echo));
        let whole = (probe(FAR, Kind::Echo), Asked::Whole);
        assert_eq!(hops.find(Kind::Udp), [asked(Kind::Udp), vec![whole]].concat());
    }

    #[test]
    fn the_first_answer_of_the_destination_ends_the_path() {
        let mut hops = hops(4);
        hops.end = 0;
        let asked: Vec<Asked> = hops.find(Kind::Udp).into_iter().map(|(_, asked)| asked).collect();
        let probes = vec![
            told(What::TimeExceeded, 1, 10),
            SILENT,
            told(What::PortUnreachable, 9, 30),
            told(What::PortUnreachable, 9, 31),
            told(What::EchoReply, 9, 29),
        ];
        hops.take_find(&asked, &RoundReport::of(probes));
        assert_eq!((hops.end, hops.reached, hops.refused), (3, true, false));
        // Twice the longest round trip, and a tenth of a second.
        assert_eq!(hops.patience, Span::from_millis(162));
        let counts: Vec<(u32, u32)> = hops.logs.iter().map(|log| (log.asked, log.answered)).collect();
        assert_eq!(counts, [(1, 1), (1, 0), (1, 1), (0, 0)]);
        assert_eq!(hops.by_echo, [false; 4]);
    }

    #[test]
    fn who_answers_echoes_alone_is_asked_by_echoes_from_then_on() {
        let mut hops = hops(5);
        hops.end = 0;
        let asked = [1, 2, 3, 4, 5].map(|ttl| Asked::Find { ttl });
        let silence = [SILENT; 4].to_vec();
        let probes = [vec![told(What::TimeExceeded, 1, 10)], silence].concat();
        hops.take_find(&asked, &RoundReport::of(probes));
        assert_eq!((hops.end, hops.reached), (1, false));
        hops.stage = Stage::FindByEcho;
        let probes = vec![
            told(What::TimeExceeded, 1, 10),
            SILENT,
            told(What::TimeExceeded, 3, 12),
            told(What::EchoReply, 9, 14),
            told(What::EchoReply, 9, 14),
        ];
        hops.take_find(&asked, &RoundReport::of(probes));
        assert_eq!((hops.end, hops.reached), (4, true));
        assert_eq!(hops.by_echo, [false, false, true, true, false]);
    }

    #[test]
    fn a_path_that_is_refused_ends_where_it_is() {
        let mut hops = hops(3);
        hops.end = 0;
        let asked = [1, 2, 3].map(|ttl| Asked::Find { ttl });
        let probes =
            vec![told(What::TimeExceeded, 1, 10), told(What::Refused, 2, 10), told(What::Refused, 2, 2_000)];
        hops.take_find(&asked, &RoundReport::of(probes));
        assert_eq!((hops.end, hops.reached, hops.refused), (2, false, true));
        // Longer than before anything was known: a path of two seconds is slow, not silent.
        assert_eq!(hops.patience, Span::from_millis(4100));
    }

    #[test]
    fn the_largest_packet_is_looked_for_at_the_furthest_router_that_answers() {
        let with_small_ones = |ttl: u8, kind: Kind, lengths: &[u32]| -> Vec<Shape> {
            lengths.iter().flat_map(|length| [(ttl, kind, *length), (ttl, kind, 64)]).collect()
        };
        let all = [1500, 1492, 1480, 1420, 1400, 1280, 1000, 576];
        let rows: [(Change, Vec<Shape>); 6] = [
            (|hops| hops.reached = true, with_small_ones(2, Kind::Udp, &all)),
            (|_| {}, with_small_ones(3, Kind::Udp, &all)),
            (|hops| hops.by_echo[2] = true, with_small_ones(3, Kind::Echo, &all)),
            (|hops| hops.whole = (10, 7), with_small_ones(FAR, Kind::Echo, &all)),
            (|hops| hops.plan.largest = 1400, with_small_ones(3, Kind::Udp, &[1400, 1400, 1280, 1000, 576])),
            (|hops| hops.end = 0, Vec::new()),
        ];
        for (row, (change, want)) in rows.into_iter().enumerate() {
            let mut hops = hops(3);
            hops.logs.iter_mut().for_each(|log| log.answered = 1);
            change(&mut hops);
            let ladder = hops.ladder();
            let found: Vec<Shape> = ladder.iter().map(|(it, _)| (it.ttl, it.kind, it.length)).collect();
            assert_eq!(found, want, "row {row}");
            assert!(ladder.iter().all(|(it, asked)| *asked == Asked::Ladder { length: it.length }));
        }
        // Who has never answered is asked where nobody else is.
        let mut quiet = hops(3);
        assert_eq!(quiet.ladder()[0].0.ttl, 3);
        quiet.logs[1].answered = 1;
        assert_eq!(quiet.ladder()[0].0.ttl, 2);
    }

    #[test]
    fn what_a_router_passed_on_has_passed_and_small_ones_beside_it_are_counted() {
        let mut hops = hops(3);
        let asked = [1500, 64, 1400, 64, 1420, 64].map(|length| Asked::Ladder { length });
        let passed = told(What::TimeExceeded, 3, 20);
        let probes =
            vec![told(What::TooBig(1492), 2, 10), passed, passed, SILENT, told(What::Refused, 2, 10), passed];
        hops.take_ladder(&asked, &RoundReport::of(probes));
        assert_eq!((hops.passed, hops.controls, hops.mtu), (Some(1400), (3, 2), Some(1492)));
    }

    #[test]
    fn a_path_mtu_is_believed_if_it_is_smaller_and_not_too_small() {
        let rows = [
            (Fate::TooBig(1400), Some(1400)),
            (told(What::TooBig(1300), 2, 10).fate, Some(1300)),
            (Fate::TooBig(67), None),
            (Fate::TooBig(68), Some(68)),
            (Fate::TooBig(1499), Some(1499)),
            (Fate::TooBig(1500), None),
            (told(What::TimeExceeded, 2, 10).fate, None),
            (Fate::Silent, None),
        ];
        for (fate, mtu) in rows {
            let mut hops = hops(1);
            hops.note_too_big(&Told { fate, ..SILENT });
            assert_eq!(hops.mtu, mtu, "{fate:?}");
        }
        let mut hops = hops(1);
        for mtu in [1400, 1300, 1450] {
            hops.note_too_big(&Told { fate: Fate::TooBig(mtu), ..SILENT });
        }
        assert_eq!(hops.mtu, Some(1300));
    }

    #[test]
    fn the_largest_that_passed_counts_if_nine_of_ten_small_ones_passed_beside_it() {
        // Passed, said by a router, small ones: what is used, and what is told.
        let rows = [
            (Some(1500), None, (10, 10), (1500, None)),
            (Some(1400), None, (10, 9), (1400, Some(1400))),
            (Some(1400), None, (10, 8), (1500, None)),
            (Some(1400), Some(1450), (10, 10), (1450, Some(1450))),
            (None, Some(1280), (10, 10), (1280, Some(1280))),
            (None, None, (0, 0), (1500, None)),
        ];
        for (passed, mtu, controls, want) in rows {
            let mut hops = hops(1);
            (hops.passed, hops.mtu, hops.controls) = (passed, mtu, controls);
            hops.settle_largest();
            assert_eq!((hops.largest, hops.mtu), want, "{passed:?} {mtu:?} {controls:?}");
        }
    }

    #[test]
    fn probes_are_as_far_apart_as_the_largest_takes_one_way_and_a_tenth_more() {
        // It takes 20 ms longer there and back; the smallest round trip of each size counts.
        let rows = [
            (30, 56, 21_208_225),
            // An answer as long as the question took half of it, and a longer one no more.
            (30, 1500, 11_000_000),
            (30, 2000, 11_000_000),
            (11, 1500, 2_000_000),
            (400, 1500, 214_500_000),
            // 20 kbit/s, and slower than that.
            (610, 56, 636_246_785),
            (900, 56, 660_000_000),
        ];
        for (millis, reply, gap) in rows {
            let mut hops = hops(2);
            hops.logs[0].exchanges.extend(answered(Kind::Udp, 64, 56, &[12, 10]));
            hops.logs[0].exchanges.extend(answered(Kind::Udp, 1500, reply, &[millis + 7, millis]));
            // The further hop has not answered the largest.
            hops.logs[1].exchanges.extend(answered(Kind::Udp, 64, 56, &[20]));
            hops.settle_gap();
            assert_eq!(hops.gap, Span(gap), "{millis} ms, {reply} B");
        }
    }
}
