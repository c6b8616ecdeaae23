//! When a measurement broke off: nothing came from an instant on until the end of what was asked.
//!
//! One question without an answer is lost. Many in a row at the very end, over a longer time than
//! an answer is waited for and than paths are usually silent, tell of no loss: the path, the other
//! end or this host's own interface is gone, and what became of these questions nobody observed.
//! The same in the midst, followed by answers, is an outage that ended, and its questions are lost.
//!
//! **Assumes** that whoever is asked has answered before: silence from the beginning is another
//! matter. **Biased**: a path that is gone for less than [`USUAL_SILENCE`] at the end is taken for
//! one that lost a few packets, and an outage that was about to end for one that lasts.

use netaware_units::{Mono, Span};

/// Follows questions and answers in the order in which they become known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ceasing {
    began_at: Option<Mono>,
    came_at: Option<Mono>,
    /// The first and the last question since, sent or not.
    silent: Option<(Mono, Mono)>,
    unanswered: u64,
    not_sent: u64,
    /// Questions that were asked only to find out whether anything still comes, and until when.
    tries: u64,
    tried_until: Option<Mono>,
}

/// A measurement that broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceased {
    /// From the first question to the last answer.
    pub after: Span,
    /// From the first question without an answer since then to the last one.
    pub silent: Span,
    /// Of these, so many left.
    pub unanswered: u64,
    /// And so many never left this host.
    pub not_sent: u64,
}

impl Ceasing {
    /// Of a measurement that begins now.
    pub fn beginning(at: Mono) -> Self {
        Self { began_at: Some(at), ..Self::default() }
    }

    /// An answer came, in time or late.
    pub fn came(&mut self, at: Mono) {
        self.began_at.get_or_insert(at);
        *self = Self { began_at: self.began_at, came_at: self.came_at.max(Some(at)), ..Self::default() };
    }

    /// A question of then has no answer, and nothing that was asked later has one either.
    pub fn unanswered(&mut self, asked_at: Mono) {
        self.unanswered += 1;
        self.silent_at(asked_at);
    }

    /// A question that was due then never left this host.
    pub fn not_sent(&mut self, due_at: Mono) {
        self.not_sent += 1;
        self.silent_at(due_at);
    }

    /// After the silence it was tried whether anything still comes, and nothing did: evidence for
    /// the silence, which counts neither as a question nor for how long it is said to have lasted.
    #[must_use]
    pub fn tried_in_vain(self, tries: Self) -> Self {
        let until = tries.silent.map(|(_, until)| until);
        Self {
            tries: self.tries + tries.unanswered + tries.not_sent,
            tried_until: self.tried_until.max(until),
            ..self
        }
    }

    fn silent_at(&mut self, at: Mono) {
        self.began_at.get_or_insert(at);
        let (from, until) = self.silent.unwrap_or((at, at));
        self.silent = Some((from.min(at), until.max(at)));
    }

    /// The same, and then another part of the measurement.
    #[must_use]
    pub fn and_then(self, later: Self) -> Self {
        let began_at = self.began_at.or(later.began_at);
        if later.came_at.is_some() {
            return Self { began_at, ..later };
        }
        let silent = match (self.silent, later.silent) {
            (Some((from, a)), Some((b, until))) => Some((from.min(b), until.max(a))),
            (one, other) => one.or(other),
        };
        Self {
            began_at,
            came_at: self.came_at,
            silent,
            unanswered: self.unanswered + later.unanswered,
            not_sent: self.not_sent + later.not_sent,
            tries: self.tries + later.tries,
            tried_until: self.tried_until.max(later.tried_until),
        }
    }

    /// Whether anything has come.
    pub fn has_come(&self) -> bool {
        self.came_at.is_some()
    }

    /// Questions in a row without an answer, up to now.
    pub fn in_a_row(&self) -> u64 {
        self.unanswered + self.not_sent
    }

    /// Whether there are so many of them that chance alone hardly makes them.
    pub fn is_suspected(&self) -> bool {
        self.has_come() && self.in_a_row() >= MIN_SILENT
    }

    /// Whether it broke off, on a path where an answer is waited for so long.
    pub fn ceased(&self, patience: Span) -> Option<Ceased> {
        let (began_at, came_at) = (self.began_at?, self.came_at?);
        let (from, until) = self.silent?;
        let ceased = Ceased {
            after: came_at.since(began_at).or_zero(),
            silent: until.since(from),
            unanswered: self.unanswered,
            not_sent: self.not_sent,
        };
        let questions = ceased.unanswered + ceased.not_sent + self.tries;
        let silent = self.tried_until.map_or(ceased.silent, |tried| tried.since(from).max(ceased.silent));
        let usual = USUAL_SILENCE.max(patience);
        // Whoever waits for each answer before the next question asks few of them.
        let is_long = questions >= MIN_SLOW && silent >= usual * 2;
        ((questions >= MIN_SILENT && silent >= usual) || is_long).then_some(ceased)
    }
}

/// Radios change cells and routes change in less.
pub const USUAL_SILENCE: Span = Span::from_secs(1);
/// A few may be lost one by one.
const MIN_SILENT: u64 = 4;
const MIN_SLOW: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono(ms * 1_000_000)
    }

    /// Asked every 10 ms; `answered` of the number of the question.
    fn asked(count: u64, answered: impl Fn(u64) -> bool) -> Ceasing {
        let mut ceasing = Ceasing::beginning(at(0));
        for n in 0..count {
            if answered(n) { ceasing.came(at(n * 10)) } else { ceasing.unanswered(at(n * 10)) }
        }
        ceasing
    }

    #[test]
    fn a_path_that_is_gone_for_good_is_not_one_that_loses() {
        let ceased = asked(300, |n| n < 100).ceased(Span::from_secs(1)).unwrap();
        let times = (Span::from_millis(990), Span::from_millis(1990));
        assert_eq!(((ceased.after, ceased.silent), ceased.unanswered), (times, 200));
        // Waited for longer than that; a moment at the end; an outage that ended; never an answer.
        assert_eq!(asked(300, |n| n < 100).ceased(Span::from_secs(2)), None);
        assert_eq!(asked(300, |n| n < 250).ceased(Span::ZERO), None);
        assert_eq!(asked(900, |n| !(100..700).contains(&n)).ceased(Span::ZERO), None);
        assert_eq!(asked(300, |_| false).ceased(Span::ZERO), None);
    }

    #[test]
    fn three_questions_that_each_waited_for_long_are_silence_as_well() {
        let silent = |apart: u64| {
            let mut ceasing = asked(10, |_| true);
            (1..=3).for_each(|n| ceasing.unanswered(at(100 + n * apart)));
            ceasing.ceased(Span::from_millis(500))
        };
        assert_eq!(silent(1000).unwrap().unanswered, 3);
        assert_eq!(silent(900), None);
    }

    #[test]
    fn two_questions_and_two_tries_without_an_answer_are_silence_as_well() {
        let mut ceasing = asked(10, |_| true);
        for ms in [1200, 2200] {
            ceasing.unanswered(at(ms));
        }
        assert_eq!(ceasing.ceased(Span::from_secs(1)), None, "two may be lost");
        let mut tries = Ceasing::beginning(at(3200));
        for ms in [3200, 3250] {
            tries.unanswered(at(ms));
        }
        let ceased = ceasing.tried_in_vain(tries).ceased(Span::from_secs(1)).unwrap();
        assert_eq!((ceased.unanswered, ceased.silent), (2, Span::from_secs(1)));
        assert_eq!(ceasing.tried_in_vain(tries).and_then(asked(1, |_| true)).ceased(Span::ZERO), None);
    }

    #[test]
    fn what_an_interface_that_is_down_did_not_send_is_silence_as_well() {
        let mut ceasing = asked(100, |_| true);
        (100..300).for_each(|n| ceasing.not_sent(at(n * 10)));
        let ceased = ceasing.ceased(Span::from_secs(1)).unwrap();
        assert_eq!((ceased.not_sent, ceased.unanswered), (200, 0));
    }

    #[test]
    fn silence_is_added_up_over_the_parts_of_a_measurement_until_something_comes() {
        let silent = |from: u64| {
            let mut part = Ceasing::beginning(at(from));
            (0..4).for_each(|n| part.unanswered(at(from + n * 200)));
            part
        };
        let parts = asked(10, |_| true).and_then(silent(1000)).and_then(silent(2000));
        let ceased = parts.ceased(Span::from_secs(1)).unwrap();
        assert_eq!((ceased.silent, ceased.unanswered), (Span::from_millis(1600), 8));
        assert_eq!(parts.and_then(asked(1, |_| true)).ceased(Span::ZERO), None);
    }
}
