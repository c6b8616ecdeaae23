//! Where the calling thread stands among the others.

use crate::priority;

/// Whether the calling thread runs before all ordinary ones. Without the privilege for it the
/// thread stays an ordinary one, which on a busy host loses the core for some milliseconds at a
/// time; it is asked for once.
#[derive(Debug, Default)]
pub(super) struct Standing {
    raised: bool,
    refused: bool,
}

impl Standing {
    pub(super) fn is_raised(&self) -> bool {
        self.raised
    }

    /// Before the ordinary threads, or one of them again.
    pub(super) fn set(&mut self, first: bool) {
        if first != self.raised && !(first && self.refused) {
            let done = if first { priority::raise() } else { priority::lower() };
            self.raised = if done { first } else { self.raised };
            self.refused |= first && !done;
        }
    }
}
