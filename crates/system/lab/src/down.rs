//! Removes labs, whoever made them and however they ended; safe to repeat.

use netaware_netmodel::Side;
use netaware_units::Span;

use crate::namespace::{self, Owner};
use crate::state::{self, LabState};
use crate::system::Signal;
use crate::{LabError, Report, permission};

/// What `down` found and did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Removed {
    /// Whether there was anything.
    pub was_there: bool,
    /// The last report of the emulator, if one was left.
    pub report: Option<Report>,
    /// Namespaces with our names that others have made; they were left alone.
    pub foreign: Vec<String>,
}

/// Removes the lab of this prefix: its emulator, every process on its hosts, and the hosts. Nothing
/// there is no error.
///
/// # Errors
/// It belongs to a living program that made it for itself, or the system refuses something.
pub fn down(prefix: &str) -> Result<Removed, LabError> {
    state::check_prefix(prefix)?;
    if !state::is_claimed(prefix) {
        return Ok(Removed::default());
    }
    permission::check()?;
    let Some(state) = LabState::read(prefix) else {
        // Killed between taking the prefix and writing down why: nothing was made yet.
        state::unclaim(prefix)?;
        return Ok(Removed { was_there: true, ..Removed::default() });
    };
    let before = state.report();
    end_holder(&state)?;
    let foreign = remove(&state)?;
    let report = state::take_farewell(prefix).or(before);
    Ok(Removed { was_there: true, report, foreign })
}

/// Removes all labs of this host that no living program holds for itself; gives each prefix with
/// what came of it.
pub fn down_all() -> Vec<(String, Result<Removed, LabError>)> {
    let mut prefixes = state::prefixes();
    prefixes.sort();
    prefixes.into_iter().map(|prefix| (prefix.clone(), down(&prefix))).collect()
}

/// Removes a lab that a program or `netaware lab run` made for itself and left behind, killed:
/// nobody else has a use for it. What `netaware lab up` made stays, as a person may still be
/// looking at it.
pub(crate) fn clear_orphan(prefix: &str) -> Result<(), LabError> {
    let Some(state) = LabState::read(prefix) else { return Ok(()) };
    if !state.holding.stays_behind() && !state.holder.lives() {
        remove(&state)?;
    }
    Ok(())
}

/// Tells the holder to end, and takes the lab from it if it does not.
fn end_holder(state: &LabState) -> Result<(), LabError> {
    let pid = state.holder.pid;
    if pid == std::process::id() {
        return Ok(());
    }
    let Some(holder) = state.holder.hold() else { return Ok(()) };
    if !state.holding.ends_when_told() {
        return Err(LabError::Held { prefix: state.prefix.clone(), pid });
    }
    for (signal, patience) in [(Signal::End, PATIENCE), (Signal::Kill, PATIENCE)] {
        holder.signal(signal);
        if holder.await_end(patience) {
            return Ok(());
        }
    }
    Err(LabError::WillNotEnd { prefix: state.prefix.clone(), pid })
}

/// Removes what a state names, and the state last; gives the namespaces that are not ours.
pub(crate) fn remove(state: &LabState) -> Result<Vec<String>, LabError> {
    // Somebody may have removed it, and made another one, since the state was read.
    if LabState::read(&state.prefix).is_some_and(|now| now.mark != state.mark) {
        return Ok(Vec::new());
    }
    let mut foreign = Vec::new();
    for side in [Side::A, Side::B] {
        let name = namespace::name(&state.prefix, side);
        if namespace::remove(&name, &state.mark, state.phase)? == Owner::Foreign {
            foreign.push(name);
        }
    }
    state::unclaim(&state.prefix)?;
    Ok(foreign)
}

const PATIENCE: Span = Span::from_secs(5);
