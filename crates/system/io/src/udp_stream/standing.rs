//! Where the calling thread stands among the others.

use crate::priority::{self, Permit, Permits};

/// Whether the calling thread runs before all ordinary ones. Without the privilege or a permit for
/// it the thread stays an ordinary one, which on a busy host loses the core for some milliseconds
/// at a time. The privilege is asked for once, a permit again and again.
#[derive(Debug)]
pub(super) struct Standing {
    permits: Permits,
    /// Held while the thread is raised.
    permit: Option<Permit>,
    is_refused: bool,
}

impl Standing {
    /// Stands for the calling thread, which is an ordinary one.
    pub(super) fn new(permits: Permits) -> Self {
        Self { permits, permit: None, is_refused: false }
    }

    pub(super) fn is_raised(&self) -> bool {
        self.permit.is_some()
    }

    /// Returns whether the thread is raised and may take no more than a share of its core.
    pub(super) fn is_bounded(&self) -> bool {
        self.permit.as_ref().is_some_and(Permit::is_bounded)
    }

    /// Before the ordinary threads, or one of them again.
    pub(super) fn set(&mut self, first: bool) {
        if !first {
            if self.permit.is_some() && priority::lower() {
                self.permit = None;
            }
        } else if self.permit.is_none() && !self.is_refused {
            let Some(permit) = self.permits.take() else { return };
            self.is_refused = !priority::raise();
            self.permit = (!self.is_refused).then_some(permit);
        }
    }

    /// Makes the thread an ordinary one, which it stays.
    pub(super) fn give_up(&mut self) {
        self.is_refused = true;
        self.set(false);
    }
}

impl Drop for Standing {
    /// The permit must not be free before the thread is an ordinary one.
    fn drop(&mut self) {
        self.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_gave_its_priority_up_does_not_take_it_again() {
        let permits = Permits::one();
        let mut standing = Standing::new(permits.clone());
        standing.give_up();
        standing.set(true);
        assert!(!standing.is_raised() && permits.take().is_some());
    }

    #[test]
    fn a_stream_without_a_permit_stays_ordinary_whatever_the_privilege() {
        let permits = Permits::one();
        let held = permits.take();
        let mut standing = Standing::new(permits);
        standing.set(true);
        assert!(!standing.is_raised() && held.is_some());
    }
}
