//! The golden tables of accuracy: every estimator over every cell of the simulator's matrix, into
//! docs/accuracy.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result};
use clap::Args;

use crate::shell::{self, cargo, output};

const FOLDER: &str = "docs/accuracy";

#[derive(Debug, Args)]
pub(crate) struct Sim {
    /// Methods, comma between
    #[arg(long, default_value = "capacity,available", value_delimiter = ',')]
    methods: Vec<String>,
    /// Seeds of each cell
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// What all may take; a cell that takes more than its share has fewer seeds, but five at least
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
    /// Print instead of writing docs/accuracy
    #[arg(long)]
    print: bool,
}

/// Makes them anew.
pub(crate) fn run(sim: &Sim) -> Result<()> {
    let share = sim.minutes as f64 * 60.0 / sim.methods.len().max(1) as f64;
    shell::run(&mut cargo(&[
        "build",
        "--release",
        "--locked",
        "-p",
        "netaware-sim",
        "--example",
        "accuracy",
    ]))?;
    for method in &sim.methods {
        let (seeds, seconds) = (sim.seeds.to_string(), share.to_string());
        let run = ["run", "--release", "--locked", "-p", "netaware-sim", "--example", "accuracy", "--"];
        let table = output(&mut cargo(&[&run[..], &[method, &seeds, &seconds]].concat()))?;
        if sim.print {
            print!("{table}");
            continue;
        }
        let file = format!("{FOLDER}/{method}.md");
        fs::create_dir_all(FOLDER).with_context(|| format!("could not make {FOLDER}"))?;
        fs::write(&file, page(method, sim, &table)).with_context(|| format!("could not write {file}"))?;
        eprintln!("wrote {file}");
    }
    Ok(())
}

fn page(method: &str, sim: &Sim, table: &str) -> String {
    let mut text = format!("# Accuracy of {method}\n\n");
    let _ = writeln!(
        text,
        "Over the paths of `crates/system/sim/src/cells.rs`, in the simulator: name of a cell is rate, load, kind of cross \
         traffic, period of the receiver's interrupts, shape. Errors are relative to the truth, sizes of them but for the bias; \
         a cell with **!** misses its target. `held`: the truth lay in the interval, or the bound allowed it. `misled`: more \
         than 20 % off without a flag. Made by `cargo xtask sim --methods {method} --seeds {} --minutes {}`.\n",
        sim.seeds, sim.minutes
    );
    text + table
}
