//! What an echo train is asked to do.

use std::fmt;

use netaware_record::Arrivals;
use netaware_units::{Mono, Span};
use netaware_wire::datagram::{HEADER_LEN, MAX_PAYLOAD};
use netaware_wire::echo::{Form, MOST_TO_SHORT, number_bits};

/// When the next request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    /// Closed loop: when the answer has come, or patience has ended.
    PingPong,
    /// Closed loop with so many requests outstanding: each answer, or each end of patience, lets
    /// one more go.
    Pipeline(u32),
    /// Open loop: this long after the previous one was due, whatever became of it.
    Even(Span),
    /// Open loop at exponentially distributed distances.
    Poisson {
        /// Of the distances.
        mean: Span,
        /// The same seed gives the same distances.
        seed: u64,
    },
}

impl Pacing {
    /// The spacing as the result schema has it: zero for a closed loop, the mean where it is
    /// random.
    pub fn spacing(self) -> Span {
        match self {
            Self::PingPong | Self::Pipeline(_) => Span::ZERO,
            Self::Even(spacing) | Self::Poisson { mean: spacing, .. } => spacing,
        }
    }

    /// Requests that a closed loop keeps outstanding.
    pub fn depth(self) -> Option<u32> {
        match self {
            Self::PingPong => Some(1),
            Self::Pipeline(depth) => Some(depth),
            Self::Even(_) | Self::Poisson { .. } => None,
        }
    }

    /// How the requests of an open loop follow each other.
    pub fn arrivals(self) -> Option<Arrivals> {
        match self {
            Self::PingPong | Self::Pipeline(_) => None,
            Self::Even(_) => Some(Arrivals::Even),
            Self::Poisson { .. } => Some(Arrivals::Poisson),
        }
    }

    /// How many of so many requests await an answer at once, at most. The spacing of an open loop
    /// has to be longer than zero.
    fn outstanding(self, patience: Span, count: Option<u64>) -> i64 {
        let at_once = match self.depth() {
            Some(depth) => i64::from(depth),
            None => patience.nanos() / self.spacing().nanos(),
        };
        let all = count.and_then(|count| i64::try_from(count).ok());
        all.map_or(at_once, |all| at_once.min(all))
    }

    /// # Errors
    /// A rhythm in which so many requests cannot be sent with this patience.
    pub fn check(self, patience: Span, count: Option<u64>) -> Result<(), PlanError> {
        if patience <= Span::ZERO {
            return Err(PlanError::Patience);
        }
        if let Some(depth) = self.depth() {
            let allowed = (1..=EchoPlan::MOST_DEPTH).contains(&depth);
            return if allowed { Ok(()) } else { Err(PlanError::Depth(depth)) };
        }
        if self.spacing() <= Span::ZERO {
            return Err(PlanError::Spacing);
        }
        let outstanding = self.outstanding(patience, count);
        if outstanding > EchoPlan::MOST_OUTSTANDING {
            return Err(PlanError::Outstanding(outstanding));
        }
        Ok(())
    }
}

/// The plan of a train.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EchoPlan {
    /// Number of the flow, from its set-up.
    pub flow: u32,
    /// Requests to send; `None` until stopped.
    pub count: Option<u64>,
    /// When the next one goes.
    pub pacing: Pacing,
    /// Payload of each request in bytes, `1..=MAX_PAYLOAD`.
    pub length: usize,
    /// Payload of each answer in bytes, `1..=MAX_PAYLOAD`.
    pub response: usize,
    /// How long an answer is awaited, from the request's departure.
    pub patience: Span,
    /// When the first request is due.
    pub start: Mono,
}

/// Why a plan cannot be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanError {
    /// Request or response is empty, or exceeds a datagram.
    Length(usize),
    /// A response so long to a request so short that its flow's number has no place in it.
    Amplifies(usize),
    /// So many requests would await an answer at once; the shorter of request and response has no
    /// number that large.
    Ambiguous(i64),
    /// Requests outstanding in a closed loop.
    Depth(u32),
    /// Spacing must be longer than zero.
    Spacing,
    /// Patience must be longer than zero.
    Patience,
    /// So many requests would await an answer at once.
    Outstanding(i64),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(given) => {
                write!(f, "a datagram of {given} B is not within 1 to {MAX_PAYLOAD} B")
            }
            Self::Amplifies(response) => write!(
                f,
                "a request below {HEADER_LEN} B draws at most {MOST_TO_SHORT} B, not {response} B: ask for less, or send \
                 {HEADER_LEN} B"
            ),
            Self::Ambiguous(many) => write!(
                f,
                "{many} requests would await their answers at once, more than so short a datagram can number: make it \
                 longer, shorten the patience, or widen the spacing"
            ),
            Self::Depth(given) => {
                write!(f, "{given} requests outstanding are not within 1 to {}", EchoPlan::MOST_DEPTH)
            }
            Self::Spacing => write!(f, "requests need a spacing above zero, or ping-pong"),
            Self::Patience => write!(f, "patience must be longer than zero"),
            Self::Outstanding(many) => write!(
                f,
                "{many} requests would await their answers at once, more than {}: shorten the patience or widen the \
                 spacing",
                EchoPlan::MOST_OUTSTANDING
            ),
        }
    }
}

impl std::error::Error for PlanError {}

impl EchoPlan {
    /// Patience over spacing may be at most this: it bounds the memory of a train to some 30 MiB.
    pub const MOST_OUTSTANDING: i64 = 1 << 16;

    /// Requests that a closed loop may keep outstanding.
    pub const MOST_DEPTH: u32 = 1024;

    /// # Errors
    /// A plan that cannot be carried out; see [`PlanError`].
    pub fn check(&self) -> Result<(), PlanError> {
        for length in [self.length, self.response] {
            if !(1..=MAX_PAYLOAD).contains(&length) {
                return Err(PlanError::Length(length));
            }
        }
        if Form::of(self.length) == Form::Short && self.response > MOST_TO_SHORT {
            return Err(PlanError::Amplifies(self.response));
        }
        self.pacing.check(self.patience, self.count)?;
        let outstanding = self.pacing.outstanding(self.patience, self.count);
        // Half of the numbers, so that an answer that is late is not taken for one that is early.
        if self.number_bits() < u64::BITS && outstanding > 1 << (self.number_bits() - 1) {
            return Err(PlanError::Ambiguous(outstanding));
        }
        Ok(())
    }

    /// Longer patience would have more requests outstanding than a train remembers, or than the
    /// numbers in short answers can tell apart.
    pub(super) fn most_patience(&self) -> Span {
        let bits = self.number_bits();
        let told_apart = if bits < u64::BITS { 1_i64 << (bits - 1).min(32) } else { i64::MAX };
        if self.pacing.depth().is_some() {
            return Span(i64::MAX);
        }
        let outstanding = Self::MOST_OUTSTANDING.min(told_apart);
        if self.count.is_some_and(|count| count <= outstanding.unsigned_abs()) {
            return Span(i64::MAX);
        }
        Span(self.pacing.spacing().nanos().saturating_mul(outstanding))
    }

    /// Bits of a request's number that its answer can repeat.
    pub(super) fn number_bits(&self) -> u32 {
        number_bits(self.length).min(number_bits(self.response))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_that_cannot_be_carried_out_are_refused() {
        let plan = EchoPlan {
            flow: 1,
            count: None,
            pacing: Pacing::Even(Span::from_millis(5)),
            length: 64,
            response: 64,
            patience: Span::from_secs(1),
            start: Mono(0),
        };
        let tiny = EchoPlan { length: 1, response: 64, pacing: Pacing::Even(Span::from_millis(50)), ..plan };
        let rows = [
            (plan, Ok(())),
            (tiny, Ok(())),
            (EchoPlan { length: 0, ..plan }, Err(PlanError::Length(0))),
            (EchoPlan { response: MAX_PAYLOAD + 1, ..plan }, Err(PlanError::Length(MAX_PAYLOAD + 1))),
            (EchoPlan { response: 65, ..tiny }, Err(PlanError::Amplifies(65))),
            (EchoPlan { response: 65, length: HEADER_LEN, ..plan }, Ok(())),
            (EchoPlan { pacing: Pacing::Even(Span::from_millis(5)), ..tiny }, Err(PlanError::Ambiguous(200))),
            (EchoPlan { pacing: Pacing::Pipeline(128), ..tiny }, Ok(())),
            (EchoPlan { pacing: Pacing::Pipeline(129), ..tiny }, Err(PlanError::Ambiguous(129))),
            (EchoPlan { pacing: Pacing::Pipeline(0), ..plan }, Err(PlanError::Depth(0))),
            (EchoPlan { pacing: Pacing::Pipeline(1025), ..plan }, Err(PlanError::Depth(1025))),
            (EchoPlan { pacing: Pacing::Even(Span::ZERO), ..plan }, Err(PlanError::Spacing)),
            (
                EchoPlan { pacing: Pacing::Poisson { mean: Span(-1), seed: 1 }, ..plan },
                Err(PlanError::Spacing),
            ),
            (EchoPlan { patience: Span(-1), ..plan }, Err(PlanError::Patience)),
            (EchoPlan { pacing: Pacing::Even(Span(1)), ..plan }, Err(PlanError::Outstanding(1_000_000_000))),
            (EchoPlan { pacing: Pacing::PingPong, patience: Span(i64::MAX), ..plan }, Ok(())),
        ];
        for (n, (plan, want)) in rows.into_iter().enumerate() {
            assert_eq!(plan.check(), want, "row {n}");
        }
    }

    #[test]
    fn patience_may_be_so_many_spacings_and_no_more() {
        let most = EchoPlan::MOST_OUTSTANDING;
        assert_eq!(Pacing::Even(Span(2)).check(Span(2 * most + 1), None), Ok(()));
        let refused = Err(PlanError::Outstanding(most + 1));
        assert_eq!(Pacing::Even(Span(2)).check(Span(2 * most + 2), None), refused);
        assert_eq!(Pacing::Poisson { mean: Span(2), seed: 1 }.check(Span(2 * most + 2), None), refused);
    }

    /// Two requests of 1 B were refused, because 1000 of them would await their answers at once.
    #[test]
    fn no_more_requests_await_an_answer_than_are_sent() {
        let plan = |count| EchoPlan {
            flow: 1,
            count: Some(count),
            pacing: Pacing::Even(Span::from_millis(1)),
            length: 1,
            response: 1,
            patience: Span::from_secs(1),
            start: Mono(0),
        };
        assert_eq!([2, 128].map(|count| plan(count).check()), [Ok(()); 2]);
        assert_eq!(plan(129).check(), Err(PlanError::Ambiguous(129)));
        assert_eq!(plan(5_000).check(), Err(PlanError::Ambiguous(1_000)));
        assert_eq!(plan(2).most_patience(), Span(i64::MAX));
        assert_eq!(plan(129).most_patience(), Span::from_millis(128));
        let close = Pacing::Even(Span::from_micros(1));
        assert_eq!(close.check(Span::from_secs(1), Some(2)), Ok(()));
    }

    #[test]
    fn every_reason_is_a_sentence_for_whoever_made_the_plan() {
        let rows = [
            (PlanError::Length(0), "a datagram of 0 B is not within 1 to 65507 B"),
            (
                PlanError::Amplifies(65),
                "a request below 24 B draws at most 64 B, not 65 B: ask for less, or send 24 B",
            ),
            (
                PlanError::Ambiguous(200),
                "200 requests would await their answers at once, more than so short a datagram can number: \
                 make it longer, shorten the patience, or widen the spacing",
            ),
            (PlanError::Depth(1025), "1025 requests outstanding are not within 1 to 1024"),
            (PlanError::Spacing, "requests need a spacing above zero, or ping-pong"),
            (PlanError::Patience, "patience must be longer than zero"),
            (
                PlanError::Outstanding(65_537),
                "65537 requests would await their answers at once, more than 65536: \
                 shorten the patience or widen the spacing",
            ),
        ];
        for (error, words) in rows {
            assert_eq!(error.to_string(), words);
        }
    }
}
