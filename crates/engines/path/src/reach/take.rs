//! What the reports of rounds come to.

use std::net::IpAddr;

use netaware_units::{Mono, Span};

use super::clock::StampSample;
use super::pairs::Pair;
use super::trains::{EchoTrain, Train};
use super::{Answers, Asked, Large, Reach, TooLarge};
use crate::hops::{Fate, Kind, Reply, RoundReport, Told, What};

impl Reach {
    /// Takes in what became of the last round.
    pub fn take(&mut self, report: &RoundReport) {
        let host = self.plan.host;
        self.follow(report);
        for late in &report.late {
            self.large.came_late(late.sent_at);
            let answers = match late.kind {
                Kind::Udp => &mut self.udp,
                Kind::Echo => &mut self.echo,
                Kind::Timestamp => &mut self.timestamps,
            };
            answers.late += u32::from(answers.answered + answers.late < answers.asked);
        }
        self.longest_late = self.longest_late.max(report.longest_late());
        let nobody = report.probes.iter().all(|told| told.fate == Fate::Silent);
        self.silent = if nobody { self.silent + 1 } else { 0 };
        let answers = match self.asked {
            Asked::Udp => &mut self.udp,
            Asked::Timestamp => &mut self.timestamps,
            Asked::Echo | Asked::Pair | Asked::Burst => &mut self.echo,
            Asked::Train(kind) => return self.take_train(kind, report),
        };
        answers.waited = answers.waited.max(self.waiting);
        for (told, length) in report.probes.iter().zip(&self.lengths) {
            if self.stopped && matches!(told.fate, Fate::NotSent | Fate::Silent) {
                // It was not sent any more, or its answer was not waited for.
                continue;
            }
            if matches!(told.fate, Fate::NotSent | Fate::TooBig(_)) {
                answers.not_sent += u32::from(told.fate == Fate::NotSent);
                continue;
            }
            answers.asked += 1;
            answers.bytes += u64::from(*length);
            let Some(reply) = told.reply() else { continue };
            answers.take(reply, host);
        }
        // The first of a small burst has none of its own in front of it.
        let first = report.probes.first().filter(|first| is_own(first, host)).and_then(Told::rtt);
        if self.asked == Asked::Pair {
            self.large.rtt = first.into_iter().chain(self.large.rtt).min();
        } else {
            answers.rtts.extend(first);
        }
        match (self.asked, &report.probes[..]) {
            (Asked::Echo, _) => self.lone += 1,
            (Asked::Timestamp, [one]) => self.take_stamps(one),
            (Asked::Pair, [first, second]) => {
                self.take_pair(first, second);
                self.follow_large(report);
            }
            (Asked::Burst, [a, b, c]) => {
                self.bursts.push([a, b, c].map(|told| told.reply().and_then(|reply| reply.ident)));
            }
            _ => {}
        }
    }

    /// Takes note of who answers and when. What the host never answered tells nothing.
    fn follow(&mut self, report: &RoundReport) {
        let (kind, answers) = match self.asked {
            Asked::Timestamp => (1, &self.timestamps),
            Asked::Udp => (2, &self.udp),
            Asked::Echo | Asked::Pair | Asked::Burst | Asked::Train(_) => (0, &self.echo),
        };
        let tells = kind != 2 && answers.answered > 0;
        let is_counted = !matches!(self.asked, Asked::Train(_));
        if let Some(last) = report.probes.last().filter(|_| !report.late.is_empty()) {
            self.heard(last.sent_at);
        }
        for told in &report.probes {
            match told.fate {
                Fate::NotSent => self.ceasing.not_sent(told.sent_at),
                Fate::Silent => {
                    self.silent_at_end[kind] += u32::from(is_counted);
                    if tells {
                        self.ceasing.unanswered(told.sent_at);
                    }
                }
                Fate::Answered(reply) if is_own(told, self.plan.host) => self.heard(reply.at),
                Fate::TooBig(_) | Fate::Answered(_) => {}
            }
        }
    }

    fn take_stamps(&mut self, told: &Told) {
        let Some(reply) = told.reply().filter(|_| self.stamps.len() < MOST_STAMPS) else { return };
        if let Some(stamps) = reply.stamps {
            self.stamps.push(StampSample { sent_at: told.sent_at, at: reply.at, stamps });
        }
    }

    fn take_pair(&mut self, first: &Told, second: &Told) {
        let (Some(a), Some(b)) = (first.reply(), second.reply()) else { return };
        let both = [first, second].iter().all(|told| is_own(told, self.plan.host));
        if both && b.at > a.at && self.pairs.len() < MOST_PAIRS {
            self.pairs.push(Pair {
                delay: (a.at - first.sent_at) + (b.at - second.sent_at),
                apart: b.at - a.at,
                sent_apart: second.sent_at - first.sent_at,
            });
        }
    }

    /// Takes note of whether large echoes are answered at all. Where they are not though small ones
    /// are, shorter ones are asked from then on.
    fn follow_large(&mut self, report: &RoundReport) {
        // The next one is waited for as long as this one took.
        let longest = report.probes.iter().filter_map(Told::rtt).max();
        self.longest_large = self.longest_large.max(longest);
        for told in report.probes.iter().filter(|told| has_left(told)) {
            self.large.asked += 1;
            match told.fate {
                Fate::Silent => self.large.silent.push(told.sent_at),
                _ => self.large.answered += u32::from(is_own(told, self.plan.host)),
            }
        }
        // As long as a pair takes, the path rests after it: of a second, pairs do not send more
        // than the path carries.
        let last = report.probes.iter().filter_map(Told::reply).map(|reply| reply.at).max();
        let first = report.probes.first().map(|told| told.sent_at);
        if let (Some(first), Some(least)) = (first, self.least()) {
            let came_at = last.unwrap_or(first + self.waiting);
            let took = came_at.since(first) - least;
            self.pair_took = if took > LONG_PAIR { took } else { Span::ZERO };
            self.pair_from = (took > LONG_PAIR).then(|| came_at + took);
        }
        let wanted = if self.too_large.is_some() { MIN_SHORTER } else { MIN_LARGE };
        if self.large.asked < wanted || self.large.answered > 0 || self.echo.answered == 0 {
            return;
        }
        let before = self.too_large.map_or(0, |known| known.asked);
        self.too_large =
            Some(TooLarge { length: self.paired, asked: before + self.large.asked, answered: None });
        if let Some(shorter) = LENGTHS.into_iter().find(|length| *length < self.paired) {
            self.paired = shorter;
        }
        self.large = Large { rtt: self.large.rtt, ..Large::default() };
    }

    /// The shortest round trip of a small question.
    pub(super) fn least(&self) -> Option<Span> {
        [&self.echo, &self.udp, &self.timestamps].into_iter().flat_map(|of| &of.rtts).min().copied()
    }

    /// What a train loses says nothing of what others lose.
    fn take_train(&mut self, kind: Train, report: &RoundReport) {
        let left: Vec<&Told> = report.probes.iter().filter(|told| has_left(told)).collect();
        self.echo.bytes += left.len() as u64 * u64::from(self.paired);
        let own = left.iter().enumerate().filter(|(_, told)| is_own(told, self.plan.host));
        let mut answers: Vec<_> = own.filter_map(|(number, told)| Some((number, told.reply()?.at))).collect();
        answers.sort_unstable_by_key(|(number, at)| (*at, *number));
        let sent: Vec<Mono> = left.iter().map(|told| told.sent_at).collect();
        if let (Some(first), Some((_, last))) = (sent.first(), answers.last()) {
            self.train_took = (last.since(*first) - self.least().unwrap_or(Span::ZERO)).or_zero();
        }
        self.trains.push(EchoTrain { kind, sent, answers });
    }
}

impl Answers {
    fn take(&mut self, reply: Reply, host: IpAddr) {
        if reply.from != host && !self.others.contains(&reply.from) && self.others.len() < MOST_OTHERS {
            self.others.push(reply.from);
        }
        if !self.said.contains(&reply.what) {
            self.said.push(reply.what);
        }
        // A router that says that it goes no further is no answer of the host's.
        let own = [What::EchoReply, What::TimestampReply, What::PortUnreachable];
        self.answered += u32::from(own.contains(&reply.what));
    }
}

fn has_left(told: &Told) -> bool {
    !matches!(told.fate, Fate::NotSent | Fate::TooBig(_))
}

fn is_own(told: &Told, host: IpAddr) -> bool {
    told.reply().is_some_and(|reply| {
        matches!(reply.what, What::EchoReply | What::TimestampReply)
            || (reply.what == What::PortUnreachable && reply.from == host)
    })
}

const MOST_STAMPS: usize = 10_000;
/// The same of a pair.
const LONG_PAIR: Span = Span::from_millis(400);
/// Large echoes without an answer: so many are hardly lost by chance where small ones are answered.
const MIN_LARGE: u32 = 6;
/// The same of shorter ones.
const MIN_SHORTER: u32 = 2;
/// Lengths that fit tunnels and access lines, and what every path takes; bytes.
const LENGTHS: [u32; 6] = [1492, 1420, 1380, 1280, 1000, 576];
const MOST_PAIRS: usize = 10_000;
const MOST_OTHERS: usize = 8;
