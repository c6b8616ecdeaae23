//! Which refusals are logged: whoever comes a million times must not fill the disk with the log.

use std::sync::{Mutex, PoisonError};

use netaware_units::{Mono, Span};

/// Counts the refusals of the present minute.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<Minute>);

#[derive(Debug, Default)]
struct Minute {
    began_at: Option<Mono>,
    logged: u32,
}

impl Refusals {
    /// Returns whether one more is logged.
    pub(crate) fn is_logged(&self, now: Mono) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).admit(now)
    }
}

impl Minute {
    fn admit(&mut self, now: Mono) -> bool {
        if self.began_at.is_none_or(|began| now - began >= Span::from_secs(60)) {
            *self = Self { began_at: Some(now), logged: 0 };
        }
        let is_admitted = self.logged < A_MINUTE;
        self.logged += u32::from(is_admitted);
        is_admitted
    }
}

const A_MINUTE: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// The far relay wrote a line for each connection of a stranger.
    #[test]
    fn a_flood_of_strangers_does_not_fill_the_log() {
        let refusals = Refusals::default();
        assert_eq!((0..1000).filter(|n| refusals.is_logged(Mono(*n))).count(), 20);
        assert!(refusals.is_logged(Mono(0) + Span::from_secs(60)));
    }
}
