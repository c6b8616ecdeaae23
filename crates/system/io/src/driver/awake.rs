//! Waiting for an answer awake, where it comes so soon that going to sleep and waking would be most
//! of what is measured.
//!
//! Measured in ping-pong on loopback of a virtual machine with two cores (64 B, as the application
//! sees it): asleep p50 62 us and p99 95 us, awake 21 and 35 us. The core is offered to others at
//! each look, so an answering end that the scheduler has put on the same core runs at once instead
//! of waiting for us.

use netaware_units::{Mono, Span};

/// How to wait for what is not there yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnswerWait {
    /// In the system call: costs nothing, and each arrival costs a wake-up.
    #[default]
    Asleep,
    /// Awake after each send for as long as answers usually take, if that is below 200 us;
    /// otherwise asleep. Keeps a core busy. On a host with one core: asleep.
    AwakeForSoonAnswers,
}

/// How long to stay awake after a send.
#[derive(Debug)]
pub(super) struct Awake {
    on: bool,
    /// Moving mean of what answers have taken.
    usual: Span,
    sent_at: Option<Mono>,
}

impl Awake {
    pub(super) fn new(waiting: AnswerWait) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { on: waiting == AnswerWait::AwakeForSoonAnswers && cores > 1, usual: Span::ZERO, sent_at: None }
    }

    pub(super) fn note_sent(&mut self, at: Mono) {
        self.sent_at = Some(at);
    }

    pub(super) fn note_arrival(&mut self, at: Mono) {
        if let Some(sent_at) = self.sent_at.take() {
            self.usual = Span((self.usual.0 * 7 + at.since(sent_at).0) / 8);
        }
    }

    /// Until when an answer is worth staying awake for.
    pub(super) fn until(&self) -> Option<Mono> {
        let sent_at = self.sent_at.filter(|_| self.on && self.usual <= SOON)?;
        Some(sent_at + self.usual * 2 + ALLOWANCE)
    }
}

const SOON: Span = Span::from_micros(200);
const ALLOWANCE: Span = Span::from_micros(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn after(answers: &[i64]) -> Awake {
        let mut awake = Awake { on: true, usual: Span::ZERO, sent_at: None };
        for micros in answers {
            awake.note_sent(Mono(1_000_000));
            awake.note_arrival(Mono(1_000_000) + Span::from_micros(*micros));
        }
        awake
    }

    #[test]
    fn one_stays_awake_for_soon_answers_only() {
        let mut near = after(&[20; 30]);
        assert_eq!(near.until(), None, "nothing was asked");
        near.note_sent(Mono(0));
        let until = near.until().unwrap();
        assert!((80_000..=90_000).contains(&until.0), "{until:?}");
        let mut far = after(&[1000; 30]);
        far.note_sent(Mono(0));
        assert_eq!(far.until(), None);
    }

    #[test]
    fn who_did_not_ask_for_it_sleeps() {
        let mut awake = Awake::new(AnswerWait::Asleep);
        awake.note_sent(Mono(0));
        assert_eq!(awake.until(), None);
    }

    #[test]
    fn an_arrival_that_nothing_was_sent_for_teaches_nothing() {
        let mut awake = after(&[20; 30]);
        awake.note_arrival(Mono(9_000_000_000));
        assert!(awake.usual < Span::from_micros(21));
    }
}
