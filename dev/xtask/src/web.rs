//! The page: its tests, its bundle, and what a real browser does with it.
//!
//! The bundle is committed, so that a build of the program needs no Node; here it is made anew and compared.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::node::{in_web, install};
use crate::shell::{CHECKED, command, output, root, run, workspace};
use crate::{packages, tests};

/// Installs what the page's tests need, then runs [`checks`].
pub(crate) fn all() -> Result<()> {
    packages::ensure(packages::FOR_WEB)?;
    install()?;
    checks()
}

/// The page's types and tests, whether its bundle is current, and what a browser does with it.
pub(crate) fn checks() -> Result<()> {
    npm(&["run", "check"])?;
    npm(&["test"])?;
    npm(&["run", "build"])?;
    is_current()?;
    in_a_browser()
}

/// Every scene of the page in Chromium, then the page in Firefox, as far as its tests coming to their end.
pub(crate) fn browsers() -> Result<()> {
    packages::ensure(&[packages::FOR_WEB, &["firefox-esr"]].concat())?;
    install()?;
    let mut chromium = in_web("npm", &["run", "browser"]);
    run(chromium.env("NETAWARE", built()?).env("SCENES", "all"))?;
    let mut firefox = in_web("npm", &["run", "firefox"]);
    run(firefox.env("NETAWARE", built()?))
}

/// Whether what has just been built is what is committed.
fn is_current() -> Result<()> {
    let changed = output(command("git", &["status", "--porcelain", "--", "web/dist"]).current_dir(root()))?;
    ensure!(changed.is_empty(), "web/dist is not what web/src builds to; commit it:\n{changed}");
    Ok(())
}

/// The program serves, Chromium measures.
fn in_a_browser() -> Result<()> {
    let mut browser = in_web("npm", &["run", "browser"]);
    run(browser.env("NETAWARE", built()?))
}

/// The program, built together with the tests: alone it wants fewer features of what it is built on, and all of that
/// would be built again.
fn built() -> Result<PathBuf> {
    tests::build()?;
    let target = workspace()?["target_directory"].as_str().map(PathBuf::from).unwrap_or_default();
    Ok(target.join(CHECKED).join("netaware"))
}

fn npm(arguments: &[&str]) -> Result<()> {
    run(&mut in_web("npm", arguments))
}
