//! When to try again after a transfer broke, and what to tell of it.

use netaware_units::{Mono, Span};

use crate::error::Broken;

/// Tries that got nobody on come at longer and longer intervals, whether a connection came of them
/// or not.
#[derive(Debug)]
pub(crate) struct Retries {
    pause: Span,
    moved_at: Mono,
    told: Option<String>,
}

impl Retries {
    pub(crate) fn new(moved_at: Mono) -> Self {
        Self { pause: FIRST_PAUSE, moved_at, told: None }
    }

    /// A stream broke; what to tell of it, unless the same has been told since anything moved.
    pub(crate) fn broke(&mut self, moved_at: Mono, why: &Broken) -> Option<String> {
        if moved_at > self.moved_at {
            *self = Self::new(moved_at);
        }
        let note = format!("{why}; trying again");
        let is_new = self.told.as_ref() != Some(&note);
        self.told = Some(note.clone());
        is_new.then_some(note)
    }

    /// Before the next try.
    pub(crate) fn pause(&mut self) -> Span {
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        pause
    }
}

/// Between tries at another stream.
const FIRST_PAUSE: Span = Span::from_millis(250);
const LONGEST_PAUSE: Span = Span::from_secs(4);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_that_get_nobody_on_come_less_often_and_are_told_once() {
        let mut retries = Retries::new(Mono(0));
        assert!(retries.broke(Mono(0), &Broken::Stopped).is_some());
        let pauses: Vec<Span> = (0..7).map(|_| retries.pause()).collect();
        assert!(pauses[0] == FIRST_PAUSE && pauses[6] == LONGEST_PAUSE, "{pauses:?}");
        assert_eq!(retries.broke(Mono(0), &Broken::Stopped), None);
        assert_eq!(retries.pause(), LONGEST_PAUSE);
        assert!(retries.broke(Mono(0), &Broken::Silent(LONGEST_PAUSE)).is_some(), "another reason");
        assert!(retries.broke(Mono(1), &Broken::Silent(LONGEST_PAUSE)).is_some(), "it got on meanwhile");
        assert_eq!(retries.pause(), FIRST_PAUSE);
    }
}
