//! Colour, where it is wanted. Nothing is said by colour alone.

use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};
use clap::builder::StyledStr;

use crate::flags::output::Colour;

/// Puts styles around text, or does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    enabled: bool,
}

impl Paint {
    /// For stdout.
    pub(crate) fn for_stdout(colour: Colour) -> Self {
        let enabled = match colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => {
                // https://no-color.org: set and not empty.
                let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                !refused && !dumb && std::io::stdout().is_terminal()
            }
        };
        Self { enabled }
    }

    /// For a file: plain unless colour is insisted on.
    pub(crate) fn for_file(colour: Colour) -> Self {
        Self { enabled: colour == Colour::Always }
    }

    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { enabled: false };

    #[cfg(test)]
    pub(crate) const VIVID: Self = Self { enabled: true };

    pub(crate) fn heading(self, text: &str) -> String {
        self.with(Style::new().bold(), text)
    }

    /// Evidence and remarks below a figure.
    pub(crate) fn faint(self, text: &str) -> String {
        self.with(Style::new().dimmed(), text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.with(Style::new().fg_color(Some(AnsiColor::Green.into())), text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.with(Style::new().fg_color(Some(AnsiColor::Red.into())), text)
    }

    pub(crate) fn caution(self, text: &str) -> String {
        self.with(Style::new().fg_color(Some(AnsiColor::Yellow.into())), text)
    }

    /// A help text, which comes with styles of its own.
    pub(crate) fn help(self, text: &StyledStr) -> String {
        if self.enabled { text.ansi().to_string() } else { text.to_string() }
    }

    fn with(self, style: Style, text: &str) -> String {
        if self.enabled && !text.trim().is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_paint_adds_nothing() {
        assert_eq!(Paint::PLAIN.bad("x"), "x");
        assert_eq!(Paint::VIVID.bad("x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
