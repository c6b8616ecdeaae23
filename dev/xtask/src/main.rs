//! Tasks of this repository: `cargo xtask --help`. CI runs `cargo xtask ci` and nothing else.

mod checks;
mod comments;
mod deny;
mod fuzz;
mod gate;
mod nextest;
mod nightly;
mod panics;
mod purity;
mod sim;
mod tests;
mod web;

use clap::{Parser, Subcommand};
use xtask::{clock, node, packages, shell};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Tasks of this repository")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Formatting and lints (clippy); runs no test
    Check,
    /// Installs what the gate's tests need, then runs them
    Test,
    /// The gate's tests in network namespaces only (needs root)
    Netns,
    /// Feeds every target below fuzz/ with hostile input
    Fuzz {
        /// Seconds for each target, at least one, as in `cargo xtask fuzz 30`
        #[arg(value_parser = fuzz::seconds)]
        seconds: u32,
    },
    /// Licences, sources and known vulnerabilities of the dependencies
    Deny,
    /// Proves that the base and the engines need no operating system
    Purity,
    /// Compares netaware with iperf3 and similar tools; `cargo xtask bench --help` says how
    #[command(disable_help_flag = true)]
    Bench {
        /// For the program in `dev/bench`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Accuracy of the estimators over the simulator's whole matrix, written to docs/accuracy
    Sim(sim::Sim),
    /// Derives the schemas of records and of the collector's API from the types, and writes the
    /// committed files
    Schemas,
    /// The page: its tests, whether the committed bundle is current, and what a real browser does
    /// with it
    Web,
    /// The gate: everything that a change must pass
    Ci,
    /// Single cells of the table of docs/world.md, as in `cargo xtask world geostationary tcp -R`
    /// (needs root)
    World(nightly::world::World),
    /// Everything that is worth running but too long for every change; writes docs/health.md
    Nightly(nightly::Nightly),
}

fn main() -> anyhow::Result<()> {
    std::env::set_current_dir(shell::root())?;
    match Arguments::parse().task {
        Task::Check => checks::check(),
        Task::Test => tests::all(),
        Task::Netns => tests::namespaces(),
        Task::Fuzz { seconds } => fuzz::run(seconds).map(drop),
        Task::Deny => deny::check().inspect(|()| deny::say_unchecked()),
        Task::Purity => purity::prove(),
        Task::Bench { arguments } => shell::run(cargo_run("netaware-bench").args(arguments)),
        Task::Sim(sim) => sim::run(&sim),
        Task::Schemas => shell::run(&mut cargo_run("netaware-schemas")),
        Task::Web => web::all(),
        Task::Ci => gate::run(),
        Task::World(world) => nightly::world::by_hand(&world),
        Task::Nightly(nightly) => nightly::run(&nightly),
    }
}

/// A program of `dev/` that is built on rooms which the other tasks do not need.
fn cargo_run(package: &str) -> std::process::Command {
    shell::cargo(&["run", "--quiet", "--profile", shell::CHECKED, "--package", package, "--"])
}
