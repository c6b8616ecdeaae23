//! Panics that a test survived.
//!
//! A thread that nobody joins, or a task of an asynchronous runtime, can panic while its test goes
//! on and passes. What it printed is then the only trace.

/// The name of a thread that panics on purpose. Only the panics of such threads are allowed, so any
/// other panic in the same test is still found.
const ON_PURPOSE: &str = "panics on purpose";

/// The first panic in a test's output that was not on purpose: its thread, its place, and the first
/// line of its message.
pub(crate) fn unexpected(output: &str) -> Option<String> {
    let mut lines = output.lines().skip_while(|line| !is_unexpected(line));
    let place = lines.next()?;
    let message = lines.next().unwrap_or_default();
    Some(format!("{place} {message}").trim_end().to_owned())
}

/// Whether Rust prints such a line when a thread panics, and the thread has another name.
fn is_unexpected(line: &str) -> bool {
    let Some(thread) = line.strip_prefix("thread '") else { return false };
    let is_on_purpose = thread.strip_prefix(ON_PURPOSE).is_some_and(|rest| rest.starts_with("' "));
    line.contains(" panicked at ") && !is_on_purpose
}

#[cfg(test)]
mod claims {
    use super::*;

    #[test]
    fn panic_of_any_thread_is_found_with_its_place_and_message() {
        for thread in ["'<unnamed>' (12)", "'tokio-rt-worker' (7)", "'loopback::one' (3)", "'main'"] {
            let place = format!("thread {thread} panicked at src/web.rs:32:9:");
            let output = format!("listening\n\n{place}\nnot a port\nnote: run with `RUST_BACKTRACE=1`\n");
            assert_eq!(unexpected(&output), Some(format!("{place} not a port")));
        }
        let cut_off = "thread 'a' panicked at b.rs:1:1:";
        assert_eq!(unexpected(cut_off).as_deref(), Some(cut_off));
    }

    #[test]
    fn panic_on_purpose_excuses_its_own_thread_alone() {
        let wanted = "thread 'panics on purpose' (12) panicked at src/guard.rs:57:13:\nas it should\n";
        let other = "thread 'tests::one' (11) panicked at src/web.rs:32:9:\nas it should not\n";
        assert_eq!(unexpected(wanted), None);
        let found = Some("thread 'tests::one' (11) panicked at src/web.rs:32:9: as it should not".to_owned());
        assert_eq!(unexpected(&format!("{wanted}\n{other}")), found);
        assert_eq!(unexpected(&format!("{other}\n{wanted}")), found);
        let claims = "thread 'panics on purpose, says it' (12) panicked at src/web.rs:32:9:";
        assert!(unexpected(claims).is_some());
    }

    #[test]
    fn words_about_panics_are_none() {
        for output in ["", "test a ... ok\n", "the thread 'a' panicked at noon", "thread 'a' was ended\n"] {
            assert_eq!(unexpected(output), None, "{output}");
        }
    }
}
