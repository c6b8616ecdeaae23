//! Decides when a responder that says nothing is gone, and notices when it was this host that was
//! not there to listen.
//!
//! **Measures** the time since the last sign of life: a byte of the control connection, or data of
//! a running transfer that came or was acknowledged. **Assumes** that a path that still moves data
//! is alive, however long the answers to pings wait behind that data. The patience follows the
//! round trip that the pings have had, and that of the oldest one whose answer had not come when
//! something was last heard, so that a slow path is not taken for a dead one, and it lasts until a
//! message that was lost has been sent again four times. **Biased** towards patience: behind a long
//! queue a responder that died is noticed later, after half a minute at most. A host that did not
//! run this program for a while (suspended, stopped, without CPU time) heard nothing in that time
//! and cannot blame the responder: the silence counts from then on.

use std::collections::VecDeque;

use netaware_units::{Mono, Span};
use netaware_wire::control::{SILENCE_LIMIT, silence_limit};

/// See the module. Time is an argument.
#[derive(Debug)]
pub(crate) struct Silence {
    heard_at: Mono,
    /// Time that the host has been suspended since it was started, as last seen.
    asleep: Span,
    /// What the answer to the first message took: the path's round trip until a ping is answered.
    greeting: Span,
    /// The shortest round trip that the connection is known to have had: what a message that is
    /// lost takes follows from it.
    path: Span,
    round_trip: Option<Span>,
    /// Pings without an answer, oldest first.
    asked: VecDeque<(u64, Mono)>,
    /// Since when it has been seen in this silence that this host has lost its network.
    lost_since: Option<Mono>,
}

impl Silence {
    pub(crate) fn new(now: Mono, asleep: Span, greeting: Span) -> Self {
        Self {
            heard_at: now,
            asleep,
            greeting,
            path: Span::ZERO,
            round_trip: None,
            asked: VecDeque::new(),
            lost_since: None,
        }
    }

    /// Over a connection of which the kernel knows this round trip; zero where it does not tell.
    pub(crate) fn over(self, path: Span) -> Self {
        Self { path, ..self }
    }

    /// A sign of life.
    pub(crate) fn heard(&mut self, at: Mono) {
        self.heard_at = self.heard_at.max(at);
    }

    /// A ping leaves.
    pub(crate) fn asked(&mut self, seq: u64, at: Mono) {
        if self.asked.len() == MOST_ASKED {
            self.asked.pop_front();
        }
        self.asked.push_back((seq, at));
    }

    /// Its answer came.
    pub(crate) fn answered(&mut self, seq: u64, at: Mono) {
        while let Some((asked, asked_at)) = self.asked.front().copied().filter(|(asked, _)| *asked <= seq) {
            self.asked.pop_front();
            if asked == seq {
                let took = at - asked_at;
                // As quick to rise as a queue, and slower to fall.
                let before = self.round_trip.unwrap_or(took);
                self.round_trip = Some(if took > before { took } else { (before * 7 + took) / 8 });
            }
        }
    }

    /// The program has waited from `from` to `now` and meant to wait no longer than `meant`.
    /// Returns how long this host did not run it, if it did not.
    pub(crate) fn waited(&mut self, from: Mono, now: Mono, meant: Span, asleep: Span) -> Option<Span> {
        let suspended = (asleep - std::mem::replace(&mut self.asleep, asleep)).or_zero();
        let away = suspended + held_up(now - from - meant).unwrap_or_default();
        (away > HELD_UP).then(|| {
            self.heard(now);
            away
        })
    }

    /// When the oldest question was asked that has no answer yet.
    pub(super) fn owed_since(&self) -> Option<Mono> {
        self.asked.front().map(|(_, asked_at)| *asked_at)
    }

    /// What answers took that came.
    pub(super) fn usual(&self) -> Span {
        self.round_trip.unwrap_or(self.greeting)
    }

    /// What an answer takes: as those that came, or as long as the oldest one that had not come
    /// when something was last heard.
    pub(crate) fn round_trip(&self) -> Span {
        let waiting =
            self.asked.front().map_or(Span::ZERO, |(_, asked_at)| (self.heard_at - *asked_at).or_zero());
        self.usual().max(waiting)
    }

    /// How long the responder may say nothing.
    pub(crate) fn patience(&self) -> Span {
        limit(self.round_trip()).max(silence_limit(self.path)).min(LONGEST)
    }

    /// How long nothing has been heard, if that is too long.
    pub(crate) fn too_long(&self, now: Mono) -> Option<Span> {
        Some(now - self.heard_at).filter(|silence| *silence > self.patience())
    }

    /// How long nothing has been heard, if this host has been without its own network for
    /// [`SILENCE_LIMIT`] of that: however slow the path is, nothing is on its way. `is_lost` is
    /// asked only where nothing comes.
    pub(crate) fn cut_off(&mut self, now: Mono, is_lost: impl FnOnce() -> bool) -> Option<Span> {
        let silence = now - self.heard_at;
        if silence < LOOKS_AFTER || !is_lost() {
            self.lost_since = None;
            return None;
        }
        let since = *self.lost_since.get_or_insert(now);
        (now - since >= SILENCE_LIMIT).then_some(silence)
    }
}

/// How long the responder may say nothing where its answers take so long.
pub(super) fn limit(round_trip: Span) -> Span {
    (SILENCE_LIMIT + round_trip * ROUND_TRIPS).min(LONGEST)
}

/// How long a wait that ended so late held the program up, where that is more than a busy host
/// does.
pub(super) fn held_up(late: Span) -> Option<Span> {
    Some(late).filter(|late| *late > HELD_UP)
}

/// An answer may wait behind a queue that is still growing, and be lost once.
const ROUND_TRIPS: i64 = 4;
/// Whoever waits longer than this for a path is better told that it is of no use.
const LONGEST: Span = Span::from_secs(30);
/// A busy host lets a program wait for a core, but not so long.
pub(super) const HELD_UP: Span = Span::from_millis(1500);
/// A silence as long as this happens on a path that works, so that it is not asked for before.
const LOOKS_AFTER: Span = Span::from_secs(1);
/// Those of a minute.
const MOST_ASKED: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono(ms * 1_000_000)
    }

    #[test]
    fn on_a_quick_path_silence_lasts_four_seconds() {
        let mut silence = Silence::new(at(0), Span::ZERO, Span::ZERO);
        for seq in 1..=10 {
            silence.asked(seq, at(seq * 1000));
            silence.answered(seq, at(seq * 1000 + 20));
            silence.heard(at(seq * 1000 + 20));
        }
        assert_eq!(silence.patience(), SILENCE_LIMIT + Span::from_millis(80));
        assert_eq!(silence.too_long(at(14_000)), None);
        assert!(silence.too_long(at(14_200)).is_some());
    }

    #[test]
    fn two_retransmission_time_outs_on_a_lossy_path_of_300_ms_are_not_a_dead_responder() {
        let far = Span::from_millis(300);
        let mut silence = Silence::new(at(0), Span::ZERO, far).over(far);
        silence.asked(1, at(0));
        silence.answered(1, at(300));
        silence.heard(at(300));
        // Time-outs of 0.6, 1.2 and 2.4 s after a ping that leaves 0.7 s later.
        assert_eq!(silence.too_long(at(1000 + 600 + 1200 + 2400 + 300)), None);
        assert_eq!(silence.too_long(at(300 + 7800)), None);
        assert!(silence.too_long(at(300 + 7801)).is_some());
        // On a quick path it is as before.
        let near = Silence::new(at(0), Span::ZERO, Span::from_millis(20)).over(Span::from_millis(20));
        assert!(near.too_long(at(4_081)).is_some());
    }

    /// A run of 10 s ended after 20 s, although it knew that this host's interface was down.
    #[test]
    fn a_network_that_this_host_has_lost_is_not_waited_for_as_a_slow_path_is() {
        let mut silence = Silence::new(at(0), Span::ZERO, Span::from_secs(3));
        assert_eq!(silence.cut_off(at(900), || unreachable!("it is not looked so soon")), None);
        assert_eq!(silence.cut_off(at(1000), || true), None);
        assert_eq!(silence.cut_off(at(4900), || true), None);
        assert_eq!(silence.too_long(at(5000)), None);
        assert_eq!(silence.cut_off(at(5000), || true), Some(Span::from_secs(5)));
        // It came back, and went again.
        assert_eq!(silence.cut_off(at(5250), || false), None);
        assert_eq!(silence.cut_off(at(5500), || true), None);
    }

    #[test]
    fn a_queue_that_holds_the_answers_up_is_not_silence_while_data_arrive() {
        // 64 kbit/s behind a queue of minutes: no ping is ever answered.
        let mut silence = Silence::new(at(0), Span::ZERO, Span::ZERO);
        for second in 1..=20 {
            silence.asked(second, at(second * 1000));
            for slice in 0..10 {
                silence.heard(at(second * 1000 + slice * 100));
                assert_eq!(silence.too_long(at(second * 1000 + slice * 100)), None);
            }
        }
        // When the transfer is over, what is left of the queue has its time, and not for ever.
        assert_eq!(silence.too_long(at(45_000)), None);
        assert!(silence.too_long(at(52_000)).is_some());
    }

    #[test]
    fn before_the_first_pong_the_greeting_says_how_far_away_the_responder_is() {
        let mut silence = Silence::new(at(0), Span::ZERO, Span::from_secs(9));
        silence.asked(1, at(0));
        assert_eq!(silence.too_long(at(9_000)), None);
        let mut near = Silence::new(at(0), Span::ZERO, Span::from_millis(20));
        near.asked(1, at(0));
        assert!(near.too_long(at(4_081)).is_some());
    }

    #[test]
    fn a_link_that_is_cut_is_noticed_although_its_pings_grow_old() {
        let mut silence = Silence::new(at(0), Span::ZERO, Span::ZERO);
        silence.asked(1, at(1000));
        silence.answered(1, at(1600));
        silence.heard(at(1600));
        for seq in 2..60 {
            silence.asked(seq, at(seq * 1000));
        }
        assert_eq!(silence.too_long(at(1600 + 6400)), None);
        assert!(silence.too_long(at(1600 + 6401)).is_some());
    }

    #[test]
    fn a_program_that_was_stopped_blames_nobody_for_the_silence() {
        let wait = Span::from_millis(250);
        let mut silence = Silence::new(at(0), Span::ZERO, Span::ZERO);
        assert_eq!(silence.waited(at(0), at(250), wait, Span::ZERO), None);
        // A busy host.
        assert_eq!(silence.waited(at(250), at(1_500), wait, Span::ZERO), None);
        // Stopped: the clock goes on.
        assert_eq!(silence.waited(at(1_500), at(7_750), wait, Span::ZERO), Some(Span::from_secs(6)));
        assert_eq!(silence.too_long(at(7_750)), None);
        assert_eq!(silence.too_long(at(11_750)), None);
        // Suspended: the clock stands still, the one that counts suspension does not.
        let slept = Span::from_secs(600);
        assert_eq!(silence.waited(at(11_750), at(12_000), wait, slept), Some(slept));
        assert_eq!(silence.waited(at(12_000), at(12_250), wait, slept), None);
        assert!(silence.too_long(at(16_001)).is_some());
    }
}
