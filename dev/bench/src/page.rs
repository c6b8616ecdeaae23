//! What the page's figures are worth: measured in a real browser, beside the program and beside
//! what the path carries.
//!
//! The page is driven where it lives, by `web/tests/figures.mjs`; here it gets the program and the
//! tools that it needs.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};

use super::peers::netaware_program;
use crate::node::{in_web, install};
use crate::packages;
use crate::shell::{root, run};

#[derive(Debug, Args)]
pub(crate) struct Page {
    /// Rounds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only this part
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// This netaware instead of a release build of the checkout
    #[arg(long, value_name = "PATH")]
    netaware: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// What 50 waiting browsers cost the responder
    Crowd,
    /// First paint over a slow path
    Paint,
    /// As fast as it goes, with TLS and without
    Loopback,
    /// What Lighthouse thinks of it; fails below 95
    Lighthouse,
    /// Rates of shaped paths and the idle round trip, beside `netaware tcp` and `netaware latency`
    Rate,
}

/// Prints the tables; which of them stand in docs/benchmarks.md, and why a figure is missed, is a
/// person's business.
pub(crate) fn measure(options: &Page) -> Result<()> {
    packages::ensure(packages::FOR_WEB)?;
    let program = std::path::absolute(netaware_program(options.netaware.clone())?)?;
    install()?;
    if options.only.is_none_or(|part| part == Part::Lighthouse) {
        lighthouse(&program)?;
    }
    if options.only == Some(Part::Lighthouse) {
        return Ok(());
    }
    let part = options.only.and_then(|part| part.to_possible_value());
    let part = part.as_ref().map_or("all", clap::builder::PossibleValue::get_name);
    let mut figures = in_web("node", &["tests/figures.mjs", part, &options.runs.to_string()]);
    run(figures.env("NETAWARE", program))
}

/// Lighthouse's scores of the page that this program serves; fails where they are low.
fn lighthouse(program: &Path) -> Result<()> {
    for arguments in [&["ci", "--no-audit", "--no-fund"] as &[&str], &["run", "score"]] {
        let mut npm = in_web("npm", arguments);
        run(npm.current_dir(root().join("web/lighthouse")).env("NETAWARE", program))?;
    }
    Ok(())
}
