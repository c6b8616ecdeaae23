//! What becomes of each packet.

use std::ops::Range;

use netaware_units::{Span, Stamp, Wall};
use netaware_wire::stamp::{ErrorEstimate, StampError};

/// One packet there and its answer back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StampExchange {
    /// Number, from 0.
    pub seq: u64,
    /// T1: it left, by our clock.
    pub sent_at: Wall,
    /// T2: it came, by the reflector's clock.
    pub received_at: Wall,
    /// T3: the answer left, by the reflector's clock.
    pub answered_at: Wall,
    /// T4: the answer came, by our clock.
    pub came_at: Wall,
    /// Who took T1.
    pub tx: Stamp,
    /// Who took T4.
    pub rx: Stamp,
    /// How good the reflector says that its clock is.
    pub error: ErrorEstimate,
    /// TTL that the reflector saw; 255 may mean that it does not know.
    pub ttl_forward: u8,
    /// TTL that the answer came with.
    pub ttl_reverse: Option<u8>,
    /// A packet sent later came to the reflector earlier (RFC 4737 §3).
    pub reordered_forward: bool,
    /// An answer sent later came earlier.
    pub reordered_reverse: bool,
}

impl StampExchange {
    /// T2 - T1: one-way delay there, plus the reflector's clock minus ours.
    pub fn forward_apparent(&self) -> Span {
        self.received_at.since(self.sent_at)
    }

    /// T4 - T3: one-way delay back, minus the reflector's clock minus ours.
    pub fn reverse_apparent(&self) -> Span {
        self.came_at.since(self.answered_at)
    }

    /// Time inside the reflector, by its clock.
    pub fn dwell(&self) -> Span {
        self.answered_at.since(self.received_at)
    }

    /// Round trip without the reflector's time: no clock is compared with another.
    pub fn rtt(&self) -> Span {
        self.came_at.since(self.sent_at) - self.dwell()
    }
}

/// Consecutive packets without an answer, and on which way they went. `count - forward - reverse`
/// of them: not known, or `inside`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostRun {
    /// Number of the first.
    pub seq: u64,
    /// When the first was sent.
    pub sent_at: Wall,
    /// How many.
    pub count: u64,
    /// Among them were so many more that never left this host.
    pub not_sent: u64,
    /// On the way there.
    pub forward: u64,
    /// On the way back.
    pub reverse: u64,
    /// Neither: they came to the reflector, or would have, while its program did not run.
    pub inside: u64,
}

impl LostRun {
    /// Their numbers.
    pub fn numbers(&self) -> Range<u64> {
        self.seq..self.seq.saturating_add(self.count).saturating_add(self.not_sent)
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StampEvent {
    /// Answered in time. Told in order of numbers.
    Answered(StampExchange),
    /// Not answered in time. Told in order of numbers, as soon as a later answer tells the way.
    Lost(LostRun),
    /// Never left this host.
    NotSent {
        /// Number.
        seq: u64,
    },
    /// Not judged, because the flow was stopped before patience was over.
    Abandoned {
        /// How many that left, answered ones behind the first without a verdict among them.
        count: u64,
        /// How many behind that first one never left.
        not_sent: u64,
    },
    /// Answered after it had been given up; stays lost.
    Late {
        /// Number.
        seq: u64,
    },
    /// The reflector answered it long after it had come: its program did not run meanwhile.
    HeldUp {
        /// Number.
        seq: u64,
        /// For so long, by the reflector's clock.
        dwell: Span,
    },
    /// One more answer.
    Copy {
        /// Number.
        seq: u64,
        /// Doubled on the way there, as the reflector answered twice; else on the way back.
        forward: bool,
    },
    /// The reflector says that packets were doubled on the way there: it had so many more a second
    /// time, and did not answer these.
    Doubled {
        /// How many.
        count: u64,
    },
    /// Answers are waited for so long from now on, as the path shows. A flow with a fixed patience
    /// never says so.
    Patience(Span),
    /// The reflector counts from zero again: it was restarted, or forgot the session.
    Restarted,
}

/// `asked = not_sent + answered + lost + abandoned` in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StampCounts {
    /// Packets planned up to now.
    pub asked: u64,
    /// Never left.
    pub not_sent: u64,
    /// Answered in time.
    pub answered: u64,
    /// Not answered in time.
    pub lost: u64,
    /// Of these, on the way there.
    pub lost_forward: u64,
    /// Of these, on the way back.
    pub lost_reverse: u64,
    /// Of the lost: the answer came after all.
    pub late: u64,
    /// Not judged.
    pub abandoned: u64,
    /// Doubled on the way there.
    pub forward_copies: u64,
    /// Doubled on the way back.
    pub reverse_copies: u64,
    /// What came and was nothing of this flow.
    pub ignored: Ignored,
}

/// Datagrams that were no answer, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ignored {
    /// No packet of STAMP.
    pub foreign: u64,
    /// Another key, or altered.
    pub unproven: u64,
    /// Of no packet of ours.
    pub unasked: u64,
    /// Of a packet so long ago that its fate is forgotten.
    pub forgotten: u64,
}

impl Ignored {
    pub(super) fn count(&mut self, error: StampError) {
        match error {
            StampError::Proof => self.unproven += 1,
            StampError::Short | StampError::ErrorEstimate => self.foreign += 1,
        }
    }
}

impl StampCounts {
    pub(super) fn add_lost(&mut self, run: &LostRun) {
        self.not_sent += run.not_sent;
        self.lost += run.count;
        self.lost_forward += run.forward;
        self.lost_reverse += run.reverse;
    }

    /// Lost, and nobody knows on which way.
    pub fn lost_somewhere(&self) -> u64 {
        self.lost - self.lost_forward - self.lost_reverse
    }
}
