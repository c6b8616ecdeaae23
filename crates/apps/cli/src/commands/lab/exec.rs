//! `netaware lab exec`: becomes a program on a host of a lab.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;

use anyhow::{Context, bail};
use clap::Args;
use netaware_lab::{LabError, LabState, check_permission, command};

use super::{Host, Prefix};
use crate::exit::Exit;

#[derive(Debug, Args)]
pub(super) struct Exec {
    #[command(flatten)]
    lab: Prefix,
    /// a or b
    #[arg(value_enum, value_name = "HOST", hide_possible_values = true)]
    host: Host,
    /// The program and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

impl Exec {
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let prefix = &self.lab.prefix;
        let Some(state) = LabState::read(prefix) else {
            return Err(LabError::NotThere { prefix: prefix.clone() }.into());
        };
        check_permission()?;
        if !state.is_running() {
            bail!(
                "the emulator of the lab '{prefix}' does not run: `netaware lab down --prefix {prefix}` clears it away"
            );
        }
        let (program, arguments) = self.program.split_first().context("there is no program")?;
        // Only returns when it failed.
        let error = command(&state, self.host.into(), program).args(arguments).exec();
        Err(error).context("cannot start `ip netns exec`")
    }
}
