//! Tests that cannot be judged, because the machine or the emulator spoiled the run.
//!
//! Such a test has neither passed nor failed. It reports its reason and ends; the runner counts it
//! and fails if there are more than a few of them. A run is never repeated.
//!
//! ```no_run
//! # use netaware_units::Span;
//! # fn ends(report: netaware_lab::Report) {
//! if let Some(why) = report.why_invalid(Span::from_millis(1)) {
//!     return netaware_testkit::inconclusive(why);
//! }
//! # }
//! ```

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write as _;

/// Notes that the calling test cannot be judged, and why. The test must return right after it.
///
/// Only what depends on the machine's time may be left out this way. Counts, bytes, order, exit
/// codes and flags are asserted before, in every run.
///
/// # Panics
/// If the runner named a file for such notes and it cannot be written: a note that is lost would
/// look like a pass.
pub fn inconclusive(reason: impl Display) {
    let reason = reason.to_string().replace(['\n', '\t'], " ");
    let test = name();
    println!("INCONCLUSIVE {test}: {reason}");
    let Some(file) = std::env::var_os(FILE) else { return };
    let opened = OpenOptions::new().create(true).append(true).open(&file);
    // One write per line: other tests append to the same file at the same time.
    let written = opened.and_then(|mut file| file.write_all(format!("{test}\t{reason}\n").as_bytes()));
    written.unwrap_or_else(|error| panic!("could not note in {} that {test}: {error}", file.display()));
}

/// The path of the calling test, as the test harness names its thread. A test that runs on the main
/// thread has its name from nextest.
fn name() -> String {
    let thread = std::thread::current();
    match thread.name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => std::env::var("NEXTEST_TEST_NAME").unwrap_or_else(|_| "a test without a name".to_owned()),
    }
}

/// The variable with which `cargo xtask` names the file.
const FILE: &str = "NETAWARE_INCONCLUSIVE";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_is_named_by_its_path() {
        assert_eq!(name(), "inconclusive::tests::test_is_named_by_its_path");
    }
}
