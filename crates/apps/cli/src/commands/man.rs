//! `netaware man`: manual pages, made from the same text as `--help`.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_mangen::Man as Page;

use crate::cli::Cli;
use crate::exit::Exit;
use crate::sink::Sink;

const AFTER: &str = "\
Examples:
  netaware man | man -l -
  netaware man tcp | man -l -
  netaware man --dir ~/.local/share/man/man1";

/// Print a manual page (roff)
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Man {
    /// The page of this command instead of the overview
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
    /// Write all pages into this folder instead of one to stdout
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    dir: Option<PathBuf>,
}

impl Man {
    /// Prints or writes.
    ///
    /// # Errors
    /// There is no such command, or the folder cannot be written.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        if let Some(dir) = &self.dir {
            std::fs::create_dir_all(dir)
                .with_context(|| format!("cannot make the folder {}", dir.display()))?;
            clap_mangen::generate_to(Cli::command(), dir)
                .with_context(|| format!("cannot write to {}", dir.display()))?;
            return Ok(Exit::Done);
        }
        let mut page = Vec::new();
        self.page()?.render(&mut page)?;
        Sink::Stdout.write(&page)?;
        Ok(Exit::Done)
    }

    fn page(&self) -> anyhow::Result<Page> {
        let mut all = Cli::command();
        all.build();
        let Some(name) = &self.command else { return Ok(Page::new(all)) };
        let one =
            all.find_subcommand(name).with_context(|| format!("there is no command 'netaware {name}'"))?;
        Ok(Page::new(one.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roff(command: Option<&str>) -> String {
        let man = Man { command: command.map(str::to_owned), dir: None };
        let mut page = Vec::new();
        man.page().unwrap().render(&mut page).unwrap();
        String::from_utf8(page).unwrap()
    }

    #[test]
    fn the_pages_are_as_agreed() {
        insta::assert_snapshot!("man", roff(None));
        insta::assert_snapshot!("man_tcp", roff(Some("tcp")));
    }

    #[test]
    fn an_unknown_command_has_no_page() {
        let man = Man { command: Some("ftp".into()), dir: None };
        assert_eq!(man.page().err().unwrap().to_string(), "there is no command 'netaware ftp'");
    }
}
