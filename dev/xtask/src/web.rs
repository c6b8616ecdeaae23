//! The page: its tests, its bundle, and what a real browser does with it.
//!
//! The bundle is committed, so that a build of the program needs no Node; here it is made anew and
//! compared.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::node::{in_web, install};
use crate::shell::{CHECKED, command, run, workspace};
use crate::{nextest, packages, tests};

/// Installs what the page's tests need, then runs [`checks`].
pub(crate) fn all() -> Result<()> {
    packages::ensure(packages::FOR_WEB)?;
    nextest::ensure_tool()?;
    install()?;
    checks()
}

/// The page's types and tests, whether its bundle is current, and what a browser does with it.
pub(crate) fn checks() -> Result<()> {
    npm(&["run", "check"])?;
    npm(&["test"])?;
    is_current()?;
    in_a_browser()
}

/// Every scene of the page in Chromium, then the page in Firefox, as far as its tests coming to
/// their end.
pub(crate) fn browsers() -> Result<()> {
    packages::ensure(&[packages::FOR_WEB, &["firefox-esr"]].concat())?;
    install()?;
    let mut chromium = in_web("npm", &["run", "browser"]);
    run(chromium.env("NETAWARE", built()?).env("SCENES", "all"))?;
    let mut firefox = in_web("npm", &["run", "firefox"]);
    run(firefox.env("NETAWARE", built()?))
}

/// Whether the sources build to what is committed. They are built elsewhere: the program carries
/// `web/dist`, and would be compiled again after each build.
fn is_current() -> Result<()> {
    let built = target()?.join("web-dist");
    let built = built.to_string_lossy();
    npm(&["run", "build", "--", "--outDir", &built, "--emptyOutDir"])?;
    run(&mut command("diff", &["--recursive", "--brief", "web/dist", &built]))
        .context("web/dist is not what web/src builds to: run `npm run build` in web, and commit it")
}

/// The program serves, Chromium measures.
fn in_a_browser() -> Result<()> {
    let mut browser = in_web("npm", &["run", "browser"]);
    run(browser.env("NETAWARE", built()?))
}

/// The program, built together with the tests: alone it wants fewer features of what it is built
/// on, and all of that would be built again.
fn built() -> Result<PathBuf> {
    tests::build()?;
    Ok(target()?.join(CHECKED).join("netaware"))
}

fn target() -> Result<PathBuf> {
    Ok(workspace()?["target_directory"].as_str().map(PathBuf::from).unwrap_or_default())
}

fn npm(arguments: &[&str]) -> Result<()> {
    run(&mut in_web("npm", arguments))
}
