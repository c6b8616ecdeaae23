//! For how long this host did not run the program while it measured: it was stopped, or the host
//! was suspended.
//!
//! **Measures** by how much later than it was to a thread runs again that does nothing else,
//! without its waiting for a core. **Assumes** that what stops this thread stops the others.
//! **Biased** low, by up to [`LOOKS_EVERY`] each time; a time of [`NOTICEABLE`] or less is not
//! seen.

use std::thread;

use netaware_io::absence::Absence;
use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_units::{Mono, Span};

/// Does the work of a thread, and looks beside it for how long the program did not run meanwhile.
pub(crate) fn watching<T>(work: impl FnOnce() -> T) -> (T, Span) {
    let over = StopFlag::new();
    thread::scope(|scope| {
        let look = || {
            away_while(clock::now, || {
                thread::park_timeout(LOOKS_EVERY.to_std());
                !over.is_raised()
            })
        };
        let watch = thread::Builder::new().name("absence".into()).spawn_scoped(scope, look).ok();
        let ending = RaisedAtEnd(&over);
        let done = work();
        drop(ending);
        let away = watch.and_then(|watch| {
            watch.thread().unpark();
            watch.join().ok()
        });
        (done, away.unwrap_or_default())
    })
}

/// The work is over, also where it panicked: nobody looks any more.
struct RaisedAtEnd<'a>(&'a StopFlag);

impl Drop for RaisedAtEnd<'_> {
    fn drop(&mut self) {
        self.0.raise();
    }
}

/// The same by a clock, where `waits` takes [`LOOKS_EVERY`] at most and says whether it goes on.
fn away_while(now: impl Fn() -> Mono, mut waits: impl FnMut() -> bool) -> Span {
    let mut absence = Absence::longer_than(NOTICEABLE);
    loop {
        absence.begin_anew();
        absence.sleeps_until(now() + LOOKS_EVERY);
        let goes_on = waits();
        absence.look(now());
        if !goes_on {
            return absence.total();
        }
    }
}

/// What to say of this host where it did not run the program for so long, and what became of what
/// was due `then`.
pub(crate) fn in_words(away: Span, then: &str) -> Option<String> {
    (away > Span::ZERO).then(|| {
        format!(
            "{DID_NOT_RUN} {away} (it was suspended or stopped); {then}, and what arrived then may have been \
             dropped here"
        )
    })
}

/// How every sentence about that begins.
pub(crate) const DID_NOT_RUN: &str = "this host did not run netaware for";
/// A busy host whose waiting for a core is known and taken off lets a thread run sooner.
const NOTICEABLE: Span = Span::from_millis(200);
const LOOKS_EVERY: Span = Span::from_millis(50);

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// `reach` that was stopped for 1.9 s asked 93 times instead of 138 and said nothing of it, nor
    /// did `latency` after a stop of 1 s.
    #[test]
    fn a_host_that_runs_all_the_time_was_not_away_and_one_that_was_stopped_for_a_second_was() {
        // By how much each look comes late.
        let away = |late_ms: &[i64]| {
            let (now, mut late) = (Cell::new(Mono(1)), late_ms.iter());
            let waits = || {
                let Some(late) = late.next() else { return false };
                now.set(now.get() + LOOKS_EVERY + Span::from_millis(*late));
                true
            };
            away_while(|| now.get(), waits)
        };
        assert_eq!(away(&[0, 1, 0, 100, 199, 0, 199]), Span::ZERO);
        // Some of that this thread may really have waited for a core.
        assert!(away(&[0, 1000, 0]) > Span::from_millis(500));
    }

    #[test]
    fn work_that_is_watched_is_done_and_its_result_returned() {
        assert_eq!(watching(|| 7).0, 7);
    }

    #[test]
    fn a_host_that_was_not_away_says_nothing() {
        assert_eq!(in_words(Span::ZERO, "nothing was asked"), None);
        let said = in_words(Span::from_millis(1900), "nothing was asked").unwrap();
        assert_eq!(
            said,
            "this host did not run netaware for 1.90 s (it was suspended or stopped); nothing was asked, and what \
             arrived then may have been dropped here"
        );
    }
}
