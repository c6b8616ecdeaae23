//! Whether this process may make namespaces, and what a test does if it may not.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt;

/// Whether a test that needs namespaces can run. If not, it says on stderr that it is skipped, and
/// the caller returns.
///
/// # Panics
/// When it cannot run and `CI=true`: there a skipped test would pass for a tested one.
pub fn permitted() -> bool {
    match verdict(is_root(), std::env::var("CI").as_deref() == Ok("true")) {
        Verdict::Run => true,
        Verdict::Skip => {
            eprintln!("SKIPPED: needs root to make network namespaces; run `cargo xtask netns` as root");
            note();
            false
        }
        Verdict::Fail => panic!("needs root to make network namespaces, and CI=true: a skip would hide that"),
    }
}

/// A line for each test that is skipped, in the file that the runner names, so that it can count
/// them: it does not show what a test prints that has not failed.
fn note() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let opened = OpenOptions::new().create(true).append(true).open(&file);
    let written = opened.and_then(|mut file| file.write_all(b"skipped\n"));
    written.unwrap_or_else(|error| {
        panic!("could not note in {} that a test is skipped: {error}", file.display())
    });
}

/// The variable with which `cargo xtask` names the file.
const FILE: &str = "NETAWARE_SKIPPED";

#[derive(Debug, PartialEq)]
enum Verdict {
    Run,
    Skip,
    Fail,
}

fn verdict(root: bool, ci: bool) -> Verdict {
    match (root, ci) {
        (true, _) => Verdict::Run,
        (false, false) => Verdict::Skip,
        (false, true) => Verdict::Fail,
    }
}

/// The owner of `/proc/self` is the effective user of this process.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_root_a_test_skips_at_home_and_fails_in_ci() {
        assert_eq!(verdict(false, false), Verdict::Skip);
        assert_eq!(verdict(false, true), Verdict::Fail);
        assert_eq!(verdict(true, true), Verdict::Run);
    }
}
