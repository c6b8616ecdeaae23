//! Who is here and what they do, for the owner's eyes.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use netaware_units::Mono;
use netaware_wire::control::TestPlan;
use netaware_wire::{OwnerToken, Token};

use crate::admission::SessionId;

/// Holds only sessions that stand, so their cap bounds it.
#[derive(Debug, Default)]
pub(crate) struct Roster(Mutex<HashMap<Token, Guest>>);

/// A session.
#[derive(Debug, Clone)]
pub(crate) struct Guest {
    pub(crate) peer: SocketAddr,
    /// As it called itself.
    pub(crate) software: String,
    pub(crate) since: Mono,
    /// Opens the owner's view. Absent where no key has been proved, or not over TLS.
    pub(crate) owner: Option<OwnerToken>,
    /// Of its reservation, waiting or held.
    pub(crate) ticket: Option<SessionId>,
    /// Tests that are set up or run, with when they were opened.
    pub(crate) tests: BTreeMap<u32, (Occupation, Mono)>,
}

/// What kind of test it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Occupation {
    TcpDown,
    TcpUp,
    UdpDown,
    UdpUp,
    Latency,
    Trains,
}

impl Occupation {
    /// As the guest sees directions.
    pub(crate) fn of(plan: &TestPlan) -> Self {
        use netaware_record::Direction::Reverse;
        match plan {
            TestPlan::Tcp(plan) if plan.direction == Reverse => Self::TcpDown,
            TestPlan::Tcp(_) => Self::TcpUp,
            TestPlan::Udp(plan) if plan.direction == Reverse => Self::UdpDown,
            TestPlan::Udp(_) => Self::UdpUp,
            TestPlan::UdpEcho { .. } | TestPlan::TcpEcho { .. } => Self::Latency,
            TestPlan::Trains(_) => Self::Trains,
        }
    }
}

impl Roster {
    pub(crate) fn enter(&self, token: Token, guest: Guest) {
        self.locked().insert(token, guest);
    }

    pub(crate) fn leave(&self, token: Token) {
        self.locked().remove(&token);
    }

    /// Changes what is known of a session; nothing if it does not stand.
    pub(crate) fn note(&self, token: Token, change: impl FnOnce(&mut Guest)) {
        if let Some(guest) = self.locked().get_mut(&token) {
            change(guest);
        }
    }

    /// Whether a session stands that was given this token of the owner. A session's own token,
    /// which goes over the network in the clear, opens nothing.
    pub(crate) fn knows_owner(&self, token: OwnerToken) -> bool {
        self.locked().values().any(|guest| guest.owner == Some(token))
    }

    /// Who came first is first.
    pub(crate) fn guests(&self) -> Vec<Guest> {
        let mut guests: Vec<Guest> = self.locked().values().cloned().collect();
        guests.sort_by_key(|guest| guest.since);
        guests
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Token, Guest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_without_the_owners_token_opens_nothing_and_one_that_ended_no_longer() {
        let guest = |owner| Guest {
            peer: "192.0.2.1:9".parse().unwrap(),
            software: String::new(),
            since: Mono(0),
            owner,
            ticket: None,
            tests: BTreeMap::new(),
        };
        let (roster, owner) = (Roster::default(), OwnerToken([7; 32]));
        roster.enter(Token([1; 16]), guest(None));
        assert!(!roster.knows_owner(owner));
        roster.enter(Token([2; 16]), guest(Some(owner)));
        assert!(roster.knows_owner(owner) && !roster.knows_owner(OwnerToken([1; 32])));
        roster.leave(Token([2; 16]));
        assert!(!roster.knows_owner(owner));
    }
}
