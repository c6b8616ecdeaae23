//! Where packets go from a stage: on, back as an answer, or to their end.

use super::draw::generator;
use super::filter::Seen;
use super::pace::{PerByte, ps};
use super::probes::Probes;
use super::receiver::Receiver;
use super::server::{Carried, OFFERED};
use super::stage::{Inbox, Stage};
use super::time_queue::TimeQueue;
use crate::scenario::{Answers, Protocol};
use crate::source::{Outcome, Source};
use crate::truth::LinkTruth;
use crate::{Answer, DropCause, Fate, Kind, Side};
use netaware_record::IpVersion;
use netaware_stats::rng::SplitMix64;
use netaware_units::{BitRate, Mono, Span};

/// What a source of cross traffic has to know, and be told, of its packets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lane {
    /// Hop behind which they leave.
    pub(super) leave: usize,
    /// How long a responsive source needs to hear of their end; `None` for one that does not
    /// listen.
    pub(super) back: Option<u64>,
}

/// A router's willingness to answer.
#[derive(Debug, Clone)]
pub(super) struct Router {
    answers: Answers,
    per_answer: PerByte,
    /// When all answers that may be sent at once are available again.
    full_at: u128,
    rng: SplitMix64,
}

impl Router {
    pub(super) fn new(answers: Answers, seed: u64, number: usize) -> Self {
        // A rate of 1 answer per second is 8000 "bit/s" of answers of 1000 "bytes": thousandths are
        // kept.
        let per_answer = PerByte::of(BitRate((answers.rate * 8000.0) as u64));
        Self { answers, per_answer, full_at: 0, rng: generator(seed, &[2, number as u64]) }
    }

    pub(super) fn reseed(&mut self, seed: u64, number: usize) {
        self.rng = generator(seed, &[2, number as u64]);
    }

    /// When the answer to a packet that came at `at` leaves; `None` without an answer.
    fn answers_at(&mut self, at: u64) -> Option<u64> {
        if self.answers.silent {
            return None;
        }
        if self.answers.rate > 0.0 {
            let now = u128::from(at) << 32;
            let one = self.per_answer.fine(1000);
            let spare = one * u128::from(self.answers.burst.max(1) - 1);
            if self.full_at > now + spare {
                return None;
            }
            self.full_at = self.full_at.max(now) + one;
        }
        let jitter = (self.rng.unit() * ps(self.answers.jitter) as f64) as u64;
        Some(at + ps(self.answers.delay) + jitter)
    }
}

/// Fates that are decided but not yet told: deliveries at A, at B, and drops.
#[derive(Debug, Clone)]
pub(super) struct Fates(pub(super) [TimeQueue<Fate>; 3]);

impl Fates {
    /// Of how many offered packets: those of further copies are left out.
    pub(super) fn originals(&self) -> usize {
        let fates = self.0.iter().flat_map(TimeQueue::iter);
        fates.filter(|fate| !matches!(fate, Fate::Delivered { duplicate: true, .. })).count()
    }
}

/// Puts a nanosecond on it: never before it happened.
pub(super) fn mono(at: u64) -> Mono {
    Mono(at.div_ceil(1000))
}

/// Everything outside a stage that its packets touch.
pub(super) struct Outlet<'a> {
    pub(super) from: Side,
    pub(super) probes: &'a mut Probes,
    pub(super) fates: &'a mut Fates,
    pub(super) routers: &'a mut [Router],
    pub(super) truth: &'a mut LinkTruth,
    pub(super) lanes: &'a [Lane],
    pub(super) next: Option<&'a mut Inbox>,
    pub(super) receiver: &'a mut Option<Receiver>,
    /// For sources: instant, tag, what became of the packet.
    pub(super) outcomes: &'a mut Vec<(u64, u32, Outcome)>,
    /// For the other direction: instant, slot, router.
    pub(super) answers: &'a mut Vec<(u64, u32, usize)>,
}

impl Outlet<'_> {
    /// Takes one from the hop limit.
    pub(super) fn hop_limit_is_over(&mut self, slot: u32) -> bool {
        let probe = self.probes.get(slot);
        if probe.answer.is_some() {
            return false;
        }
        probe.packet.hop_limit = probe.packet.hop_limit.saturating_sub(1);
        probe.packet.hop_limit == 0
    }

    pub(super) fn may_fragment(&mut self, packet: Carried) -> bool {
        let Some(slot) = packet.slot() else { return true };
        let probe = self.probes.get(slot);
        probe.answer.is_some() || (packet.version == IpVersion::V4 && !probe.packet.dont_fragment)
    }

    pub(super) fn flow(&mut self, packet: Carried) -> u64 {
        packet.slot().map_or(u64::from(packet.tag) | 1 << 40, |slot| self.probes.get(slot).packet.flow)
    }

    /// What filters look at. An answer is ICMP, whatever it is about.
    pub(super) fn seen(&mut self, packet: Carried, slot: u32) -> Seen {
        let probe = self.probes.get(slot);
        let icmp = Kind { protocol: Protocol::Icmp, ports: [0; 2], ecn: false, reset: false };
        let kind = if probe.answer.is_some() { icmp } else { probe.kind };
        Seen { version: packet.version, kind, length: packet.length, flow: probe.packet.flow }
    }

    /// The packet crosses a hop by this one of its parallel links.
    pub(super) fn takes_member(&mut self, packet: Carried, member: usize) {
        if let Some(slot) = packet.slot() {
            self.probes.get(slot).member = member as u16;
        }
    }

    /// Whether what a source sends leaves behind this hop and nobody listens for what became of it.
    pub(super) fn ends_here(&self, source: &Source, hop: usize) -> bool {
        let lane = &self.lanes[source.number()];
        lane.leave == hop && lane.back.is_none()
    }

    pub(super) fn corrupt(&mut self, slot: u32, bit: u32) {
        let probe = self.probes.get(slot);
        probe.corrupted_bit = probe.corrupted_bit.or(Some(bit));
    }

    pub(super) fn copy(&mut self, packet: Carried) -> Carried {
        let Some(slot) = packet.slot() else { return packet };
        let mut probe = *self.probes.get(slot);
        probe.duplicate = true;
        Carried { tag: self.probes.insert(probe) | OFFERED, ..packet }
    }

    /// The packet ends; where an offered one is not answered, that is its fate.
    pub(super) fn drop(&mut self, at: u64, hop: usize, packet: Carried, cause: DropCause) {
        self.truth.dropped(at, cause);
        match packet.slot() {
            Some(slot) => self.tell_drop(at, hop, slot, cause),
            None => self.tell_source(at, packet.tag, Outcome::Lost),
        }
    }

    fn tell_drop(&mut self, at: u64, hop: usize, slot: u32, cause: DropCause) {
        let probe = self.probes.take(slot);
        if probe.duplicate {
            return;
        }
        let cause = if probe.answer.is_some() { DropCause::AnswerLost } else { cause };
        let fate = Fate::Dropped { id: probe.packet.id, at: mono(at), hop, cause };
        self.fates.0[2].push(at, fate);
    }

    fn tell_source(&mut self, at: u64, tag: u32, outcome: Outcome) {
        if let Some(back) = self.lanes[(tag >> 16) as usize].back {
            self.outcomes.push((at + back, tag, outcome));
        }
    }

    /// A router does not forward the packet, and says so if it may.
    pub(super) fn refuse(
        &mut self,
        at: u64,
        hop: usize,
        router: usize,
        slot: u32,
        answer: Answer,
        cause: DropCause,
    ) {
        self.truth.dropped(at, cause);
        // Copies are not answered: each offered packet has one fate besides its delivered copies.
        let answers_at =
            if self.probes.get(slot).duplicate { None } else { self.routers[router].answers_at(at) };
        match answers_at {
            Some(answers_at) => {
                let probe = self.probes.get(slot);
                probe.answer = Some((router, probe.member, answer));
                self.answers.push((answers_at, slot, router));
            }
            None => self.tell_drop(at, hop, slot, cause),
        }
    }

    /// The packet is at the far end of the stage's wire at `at`.
    #[inline]
    pub(super) fn pass(&mut self, at: u64, packet: Carried, stage: &Stage) {
        if stage.leads {
            self.truth.left();
        }
        let Some(slot) = packet.slot() else {
            if stage.last_of_hop && self.lanes[(packet.tag >> 16) as usize].leave == stage.hop {
                self.tell_source(at, packet.tag, Outcome::Arrived);
            } else if let Some(next) = &mut self.next {
                next.push(at, packet);
            }
            return;
        };
        match (&mut self.next, &mut self.receiver) {
            (Some(next), _) => next.push(at, packet),
            (None, Some(receiver)) => receiver.push(at, slot),
            (None, None) => hand_over(self.probes, self.fates, self.from, at, slot),
        }
    }
}

/// The receiving host's stack has the packet.
pub(super) fn hand_over(probes: &mut Probes, fates: &mut Fates, from: Side, at: u64, slot: u32) {
    let probe = probes.take(slot);
    let (id, to) = (probe.packet.id, from.other());
    let fate = match probe.answer {
        Some(_) if probe.duplicate => return,
        Some((hop, member, answer)) => Fate::Answered { id, at: mono(at), to, hop, member, answer },
        None => Fate::Delivered {
            id,
            at: mono(at),
            to,
            hop_limit: probe.packet.hop_limit,
            duplicate: probe.duplicate,
            corrupted_bit: probe.corrupted_bit,
            delay: Span((at - probe.offered_at).div_ceil(1000).cast_signed()),
        },
    };
    fates.0[to.index()].push(at, fate);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::pace::SECOND;

    const MS: u64 = 1_000_000_000;
    const ANSWERS: Answers =
        Answers { silent: false, delay: Span::from_millis(1), jitter: Span::ZERO, rate: 10.0, burst: 3 };

    #[test]
    fn a_router_answers_a_burst_at_once_and_then_at_its_rate() {
        let mut router = Router::new(ANSWERS, 1, 0);
        let rows = [
            (SECOND, true),
            (SECOND, true),
            (SECOND, true),
            (SECOND, false),
            (SECOND + 100 * MS - 1, false),
            (SECOND + 100 * MS, true),
            (SECOND + 100 * MS, false),
        ];
        for (row, (at, answers)) in rows.into_iter().enumerate() {
            assert_eq!(router.answers_at(at), answers.then_some(at + MS), "row {row}");
        }
        let mut silent = Router::new(Answers { silent: true, ..ANSWERS }, 1, 0);
        assert_eq!(silent.answers_at(SECOND), None);
    }

    #[test]
    fn answers_are_late_by_anything_up_to_their_jitter() {
        let answers = Answers { jitter: Span::from_millis(10), rate: 0.0, ..ANSWERS };
        let mut router = Router::new(answers, 1, 0);
        let late: Vec<u64> =
            (0..1000).filter_map(|_| router.answers_at(SECOND)).map(|at| at - SECOND - MS).collect();
        let (least, most) = (late.iter().min().copied(), late.iter().max().copied());
        assert_eq!(late.len(), 1000);
        assert!(least.is_some_and(|least| least < MS), "{least:?}");
        assert!(most.is_some_and(|most| (9 * MS..10 * MS).contains(&most)), "{most:?}");
    }
}
