//! The right to run throughput tests, from one session's point of view.

use netaware_record::Outcome;
use netaware_units::{Mono, Span};
use netaware_wire::Token;
use netaware_wire::control::{ErrorCode, LEASE_IS_OVER, LEASE_WAS_IDLE, ServerMessage};

use super::{Action, Session, State};
use crate::admission::{IDLE, Notice};
use crate::plan;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Permit {
    None,
    Waiting,
    Held {
        until: Mono,
    },
    /// Given back, or over; throughput tests are still winding down.
    Returning {
        /// What has been asked for meanwhile, which has to wait until they have.
        next: Option<Wish>,
    },
}

/// A reservation that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wish {
    expected: Span,
    join: Option<Token>,
}

impl Permit {
    pub(super) fn deadline(self) -> Option<Mono> {
        match self {
            Self::Held { until } => Some(until),
            _ => None,
        }
    }

    pub(super) fn is_something(self) -> bool {
        self != Self::None
    }

    pub(super) fn is_held(self) -> bool {
        matches!(self, Self::Held { .. })
    }
}

impl Session<'_> {
    /// News from the admission queue.
    pub(crate) fn noticed(&mut self, now: Mono, notice: Notice) {
        if notice == Notice::ProberLives {
            if let State::Open { heard_at } = &mut self.state {
                *heard_at = now;
            }
            return;
        }
        if notice == Notice::Idle {
            // A test that was opened meanwhile is a use of it.
            if self.permit.is_held() && self.tests.is_empty() {
                self.say_error(ErrorCode::Lease, LEASE_WAS_IDLE, None);
                self.give_back();
            }
            return;
        }
        if self.permit != Permit::Waiting {
            return;
        }
        match notice {
            Notice::ProberLives | Notice::Idle => {}
            Notice::Queued { place, expected_wait } => {
                self.say(ServerMessage::Queued { place, expected_wait });
            }
            Notice::Admitted { reservation, lease } => {
                self.permit = Permit::Held { until: now + lease };
                self.say(ServerMessage::Admitted { reservation, lease });
            }
            Notice::NothingToJoin => {
                self.permit = Permit::None;
                self.say_error(ErrorCode::Lease, "the reservation to join is over, or full", None);
            }
        }
    }

    /// How long this session may hold a reservation without an open test: messages that go there
    /// and back between two tests take their time on a slow path.
    pub(crate) fn may_idle(&self, now: Mono) -> Span {
        IDLE + self.patience_now(now, IDLE_ROUND_TRIPS, Span::ZERO)
    }

    /// Whether this session has used its reservation since this was asked last: a test is open or
    /// was opened, or what the last one has left in the path's queues still travels to the prober.
    pub(crate) fn takes_use(&mut self, now: Mono) -> bool {
        let has_opened = std::mem::take(&mut self.has_opened);
        has_opened || !self.tests.is_empty() || now < self.drained_by
    }

    pub(super) fn reserve(&mut self, expected: Span, join: Option<Token>) {
        match self.permit {
            Permit::None => {
                self.permit = Permit::Waiting;
                self.actions.push_back(Action::Reserve { expected, join });
            }
            Permit::Returning { next: None } => {
                self.permit = Permit::Returning { next: Some(Wish { expected, join }) };
            }
            Permit::Waiting | Permit::Held { .. } | Permit::Returning { next: Some(_) } => {
                let why = "this session has asked for a reservation already";
                self.say_error(ErrorCode::State, why, None);
            }
        }
    }

    /// Without a reservation this is no error: the lease may have ended while the message
    /// travelled.
    pub(super) fn release(&mut self) {
        if self.permit.is_something() {
            self.give_back();
        }
    }

    pub(super) fn wake_reservation(&mut self, now: Mono) {
        if self.permit.deadline().is_some_and(|until| until <= now) {
            self.say_error(ErrorCode::Lease, LEASE_IS_OVER, None);
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        self.permit = Permit::Returning { next: None };
        self.halt_all(Some(Outcome::Interrupted), |test| plan::needs_reservation(&test.plan));
        self.leave_when_idle();
    }

    pub(super) fn leave_when_idle(&mut self) {
        let busy = self.tests.values().any(|test| plan::needs_reservation(&test.plan));
        let Permit::Returning { next } = self.permit else { return };
        if busy {
            return;
        }
        self.permit = Permit::None;
        self.actions.push_back(Action::Leave);
        // Whoever goes away wants no place any more.
        if let Some(Wish { expected, join }) = next.filter(|_| matches!(self.state, State::Open { .. })) {
            self.reserve(expected, join);
        }
    }
}

/// From the report of one test to the opening of the next, with a path MTU learnt in between.
const IDLE_ROUND_TRIPS: i64 = 8;
