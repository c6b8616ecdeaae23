//! What becomes of a result: how it is shown, kept and judged.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use crate::expect::Threshold;

const OUTPUT: &str = "Output";

/// How a result is written to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people, 80 columns wide
    #[default]
    Text,
    /// The record; `netaware schema` describes it
    Json,
    /// One JSON object per line as it happens; the last one is the record
    Ndjson,
    /// One line per IP version and direction, or per transfer of a matrix; not for test
    Csv,
    /// The one-line records of UDPmon and TCPmon; tcp, udp and latency only
    Udpmon,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Even into a pipe
    Always,
    /// Not at all
    Never,
}

/// The flags.
#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new("keep").args(["save", "no_save"]).multiple(true))]
pub(crate) struct OutputFlags {
    /// How to print the result
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, hide_possible_values = true, help_heading = OUTPUT)]
    pub(crate) format: Format,
    /// Fail with exit code 1 unless this holds for every IP version and direction measured:
    /// rtt.p99<20ms, loss<=0.1%, tcp.down>100Mbit/s, ipv6.udp.loss<1%, … (may be given several
    /// times; `netaware help test` lists the metrics)
    #[arg(long, value_name = "THRESHOLD", help_heading = OUTPUT)]
    pub(crate) expect: Vec<Threshold>,
    /// Keep the result for `netaware results` (the default)
    #[arg(long, overrides_with = "no_save", help_heading = OUTPUT)]
    save: bool,
    /// Do not keep the result
    #[arg(long, overrides_with = "save", help_heading = OUTPUT)]
    no_save: bool,
    /// Keep it in this file instead of netaware/results.db in the user's data folder
    #[arg(long, value_name = "PATH", help_heading = OUTPUT)]
    pub(crate) store: Option<PathBuf>,
    /// Write the result to this file instead of standard output; a file that is there already is
    /// refused
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
    /// Add to the file of --output, without a second heading
    #[arg(long, requires = "output", help_heading = OUTPUT)]
    pub(crate) append: bool,
    /// A word to find and to compare results by: "VPN", "hall B"
    #[arg(long, value_name = "TEXT", value_parser = label, help_heading = OUTPUT)]
    pub(crate) label: Option<String>,
    /// Nothing but the result: no progress, no notes, no interval lines
    #[arg(short, long, help_heading = OUTPUT)]
    pub(crate) quiet: bool,
    /// All there is: every interval and every detail that `netaware results show` shows
    #[arg(short, long, conflicts_with = "quiet", help_heading = OUTPUT)]
    pub(crate) verbose: bool,
    #[command(flatten, next_help_heading = OUTPUT)]
    pub(crate) paint: ColorFlag,
}

/// The longest label, in characters: it has to fit a line of a list.
pub(crate) const LONGEST_LABEL: usize = 64;

/// A label is printed beside figures, so it is one short line without anything that moves a cursor.
pub(crate) fn label(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        Err("it is empty".to_owned())
    } else if text.chars().any(char::is_control) {
        Err("it holds control characters".to_owned())
    } else if text.chars().count() > LONGEST_LABEL {
        Err(format!("it has more than {LONGEST_LABEL} characters"))
    } else {
        Ok(text.to_owned())
    }
}

/// `--color`, of every command that prints for people.
#[derive(Debug, Clone, Args)]
pub(crate) struct ColorFlag {
    /// Colours: auto, always or never
    #[arg(
        long,
        alias = "colour",
        value_enum,
        value_name = "WHEN",
        default_value_t,
        hide_possible_values = true
    )]
    pub(crate) color: Colour,
}

/// Of commands whose answers are no records of measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum TextOrJson {
    #[default]
    Text,
    Json,
}

impl OutputFlags {
    /// Whether to keep the result. A given `--save` stands over a `no-save` that comes from a file.
    pub(crate) fn saves(&self) -> bool {
        self.save || !self.no_save
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: OutputFlags,
    }

    #[test]
    fn a_label_is_one_short_line() {
        assert_eq!(label(" hall B "), Ok("hall B".to_owned()));
        assert_eq!(label(&"é".repeat(64)), Ok("é".repeat(64)));
        for bad in ["", "  ", "a\nb", "a\u{1b}[31m", &"x".repeat(65)] {
            assert!(label(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn adding_needs_a_file_and_quiet_is_not_verbose() {
        let parses = |words: &[&str]| Line::try_parse_from(std::iter::once(&"x").chain(words)).is_ok();
        assert!(parses(&["--output", "a.csv", "--append"]) && parses(&["-v"]));
        assert!(!parses(&["--append"]) && !parses(&["-q", "-v"]));
    }

    #[test]
    fn the_last_word_on_saving_counts() {
        let saves = |words: &[&str]| {
            Line::try_parse_from(std::iter::once(&"x").chain(words)).ok().unwrap().flags.saves()
        };
        assert!(saves(&[]));
        assert!(!saves(&["--no-save"]));
        assert!(saves(&["--no-save", "--save"]));
        assert!(!saves(&["--save", "--no-save"]));
    }
}
