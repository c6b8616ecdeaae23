//! What an echo train is asked to do.

use std::fmt;

use netaware_units::{Mono, Span};
use netaware_wire::datagram::{ECHO_LEN, MAX_PAYLOAD};

/// When the next request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    /// Closed loop: when the answer has come, or patience has ended.
    PingPong,
    /// Open loop: this long after the previous one was due, whatever became of it.
    Even(Span),
}

impl Pacing {
    /// The spacing as the result schema has it: zero for ping-pong.
    pub fn spacing(self) -> Span {
        match self {
            Self::PingPong => Span::ZERO,
            Self::Even(spacing) => spacing,
        }
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
    /// Payload of each request in bytes, `ECHO_LEN..=MAX_PAYLOAD`; answers are as long.
    pub length: usize,
    /// How long an answer is awaited, from the request's departure.
    pub patience: Span,
    /// When the first request is due.
    pub start: Mono,
}

/// Why a plan cannot be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanError {
    /// The length leaves no room for the stamps, or exceeds a datagram.
    Length(usize),
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
                write!(f, "a request of {given} B is not within {ECHO_LEN} to {MAX_PAYLOAD} B")
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

    pub(super) fn check(&self) -> Result<(), PlanError> {
        if !(ECHO_LEN..=MAX_PAYLOAD).contains(&self.length) {
            return Err(PlanError::Length(self.length));
        }
        if self.patience <= Span::ZERO {
            return Err(PlanError::Patience);
        }
        let Pacing::Even(spacing) = self.pacing else { return Ok(()) };
        if spacing <= Span::ZERO {
            return Err(PlanError::Spacing);
        }
        let outstanding = self.patience / spacing.nanos();
        if outstanding.nanos() > Self::MOST_OUTSTANDING {
            return Err(PlanError::Outstanding(outstanding.nanos()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_that_cannot_be_carried_out_are_refused() {
        let plan = EchoPlan {
            flow: 1,
            count: Some(10),
            pacing: Pacing::Even(Span::from_millis(5)),
            length: 64,
            patience: Span::from_secs(1),
            start: Mono(0),
        };
        let rows = [
            (plan, Ok(())),
            (EchoPlan { length: ECHO_LEN - 1, ..plan }, Err(PlanError::Length(ECHO_LEN - 1))),
            (EchoPlan { length: MAX_PAYLOAD + 1, ..plan }, Err(PlanError::Length(MAX_PAYLOAD + 1))),
            (EchoPlan { pacing: Pacing::Even(Span::ZERO), ..plan }, Err(PlanError::Spacing)),
            (EchoPlan { patience: Span(-1), ..plan }, Err(PlanError::Patience)),
            (EchoPlan { pacing: Pacing::Even(Span(1)), ..plan }, Err(PlanError::Outstanding(1_000_000_000))),
            (EchoPlan { pacing: Pacing::PingPong, patience: Span(i64::MAX), ..plan }, Ok(())),
        ];
        for (n, (plan, want)) in rows.into_iter().enumerate() {
            assert_eq!(plan.check(), want, "row {n}");
        }
    }
}
