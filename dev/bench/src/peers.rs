//! The tools that take part, one file each: how it is started, and how its output is read.

pub(crate) mod ceiling;
pub(crate) mod iperf2;
pub(crate) mod iperf3;
pub(crate) mod irtt;
pub(crate) mod netaware;
pub(crate) mod nuttcp;
pub(crate) mod ping;
pub(crate) mod qperf;
pub(crate) mod sockperf;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::contest::Contender;
use super::place::Place;
use crate::shell::{cargo, command, run, workspace};

/// Programs that are not simply installed.
pub(crate) struct Tools {
    /// Us; absent when the bench itself is tested.
    netaware: Option<PathBuf>,
    /// The newest iperf3, where one was given.
    iperf3_new: Option<PathBuf>,
    /// The reference program.
    ceiling: PathBuf,
}

impl Tools {
    /// Builds what is ours, and says what is left out.
    pub(crate) fn prepare(
        netaware: Option<PathBuf>,
        peers_only: bool,
        iperf3_new: Option<PathBuf>,
    ) -> Result<Self> {
        let target = target_folder()?;
        let ceiling = build_ceiling(&target)?;
        let netaware = if peers_only { None } else { Some(netaware_program(netaware)?) };
        if iperf3_new.is_none() {
            eprintln!("note: no --iperf3-new PATH given; comparisons with the newest iperf3 are left out");
        }
        Ok(Self { netaware, iperf3_new, ceiling })
    }

    /// Ours, if it takes part.
    pub(crate) fn netaware(&self) -> Option<&Path> {
        self.netaware.as_deref()
    }

    /// The newest iperf3, if it takes part.
    pub(crate) fn iperf3_new(&self) -> Option<&Path> {
        self.iperf3_new.as_deref()
    }

    /// The reference program.
    pub(crate) fn ceiling(&self) -> &Path {
        &self.ceiling
    }
}

/// Us: the program that was given, or a release build of the checkout.
pub(crate) fn netaware_program(given: Option<PathBuf>) -> Result<PathBuf> {
    given.map_or_else(|| build_netaware(&target_folder()?), Ok)
}

fn target_folder() -> Result<PathBuf> {
    let metadata = workspace()?;
    let folder = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    Ok(PathBuf::from(folder))
}

fn build_netaware(target: &Path) -> Result<PathBuf> {
    run(&mut cargo(&["build", "--release", "--locked", "--package", "netaware"]))?;
    Ok(target.join("release/netaware"))
}

fn build_ceiling(target: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(target).context("cannot make the target folder")?;
    let program = target.join("udp_gso_ceiling");
    let path = program.to_str().context("the path of the target folder is not UTF-8")?;
    run(&mut command("cc", &["-O2", "-o", path, "dev/xtask/peers/udp_gso_ceiling.c"]))?;
    Ok(program)
}

/// A contender from a function of the place.
pub(crate) fn contender<'a>(
    name: &'static str,
    place: Place<'a>,
    run: impl Fn(Place<'a>) -> Result<super::contest::Reading> + 'a,
) -> Contender<'a> {
    Contender { name, run: Box::new(move || run(place)) }
}

/// Share of one core in per cent.
pub(crate) fn cpu_percent(cpu_seconds: f64, seconds: f64) -> f64 {
    100.0 * cpu_seconds / seconds
}
