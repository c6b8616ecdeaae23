//! `netaware completions`: for the shell to load.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::Exit;
use crate::sink::Sink;

const AFTER: &str = "\
Examples:
  netaware completions bash > ~/.local/share/bash-completion/completions/netaware
  netaware completions zsh > \"${fpath[1]}/_netaware\"
  netaware completions fish > ~/.config/fish/completions/netaware.fish";

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Completions {
    /// bash, zsh, fish, elvish or powershell
    #[arg(value_enum, value_name = "SHELL", hide_possible_values = true)]
    shell: Shell,
}

impl Completions {
    /// Prints it.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        // Into memory first: the generator panics when it cannot write.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "netaware", &mut script);
        Sink::Stdout.write(&script)?;
        Ok(Exit::Done)
    }
}
