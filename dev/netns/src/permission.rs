//! Whether this process may make namespaces, and what a test does if it may not.

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
            eprintln!("SKIPPED: needs root to make network namespaces; run `cargo xtask ci` as root");
            false
        }
        Verdict::Fail => panic!("needs root to make network namespaces, and CI=true: a skip would hide that"),
    }
}

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
