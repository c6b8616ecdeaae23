//! Licences, bans and sources of the dependencies by `deny.toml`, and their known holes.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

use crate::shell::{cargo, output, run, works};

/// Installs cargo-deny if it is missing (about three minutes on two cores, from source), then asks
/// it.
///
/// The list of known vulnerabilities is a git repository elsewhere. If it is out of reach, that
/// part cannot be checked: this is no failure, because it depends on the network and not on the
/// change, and [`say_unchecked`] says it at the end.
pub(crate) fn check() -> Result<()> {
    ensure_tool()?;
    run(&mut cargo(&["deny", "--locked", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"]))?;
    match output(&mut cargo(&["deny", "--locked", "check", "advisories"])) {
        Err(error) if is_out_of_reach(&error.to_string()) => {
            UNCHECKED.store(true, Ordering::Relaxed);
            Ok(())
        }
        checked => checked.map(drop),
    }
}

/// Says what the last [`check`] could not check, if there is something.
pub(crate) fn say_unchecked() {
    if UNCHECKED.load(Ordering::Relaxed) {
        println!("NOT CHECKED: known vulnerabilities of the dependencies: their list could not be fetched");
    }
}

static UNCHECKED: AtomicBool = AtomicBool::new(false);

/// Installs cargo-deny from source if it is missing.
pub(crate) fn ensure_tool() -> Result<()> {
    if works(&mut cargo(&["deny", "--version"])) {
        return Ok(());
    }
    eprintln!("installing cargo-deny");
    run(&mut cargo(&["install", "cargo-deny", "--locked", "--version", "^0.20"]))
}

fn is_out_of_reach(error: &str) -> bool {
    error.contains("failed to fetch advisory database")
}

#[cfg(test)]
mod claims {
    use super::*;

    #[test]
    fn only_a_missing_list_is_forgiven() {
        assert!(is_out_of_reach("[ERROR] failed to fetch advisory database https://example.org with cli: …"));
        assert!(!is_out_of_reach("error[vulnerability]: use after free in example 0.1.0"));
    }
}
