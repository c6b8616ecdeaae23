//! The command line of a series: taken apart into the words that say what to measure and those that
//! say where the output goes, and put together again for each point.

use anyhow::{Context, anyhow, bail};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};

use super::scan::Point;
use crate::cli::Cli;
use crate::measure::Measuring;

/// Options that say where the output goes and how it looks. They are no part of a plan: whoever
/// continues a series gives them anew.
const PRESENTATION: &[&str] =
    &["format", "output", "append", "quiet", "verbose", "color", "save", "no-save", "store", "resume"];

/// Which words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Plan,
    Presentation,
}

impl Part {
    fn of(arg: &Arg) -> Self {
        let is_presentation = arg.get_long().is_some_and(|long| PRESENTATION.contains(&long));
        if is_presentation { Self::Presentation } else { Self::Plan }
    }
}

/// The arguments of one part that were given, as words that read the same again.
///
/// # Errors
/// A value is no Unicode and cannot be kept.
pub(super) fn words(command: &Command, matches: &ArgMatches, part: Part) -> anyhow::Result<Vec<String>> {
    let (mut words, mut operands) = (Vec::new(), Vec::new());
    for arg in command.get_arguments().filter(|arg| Part::of(arg) == part) {
        if !is_given(matches, arg.get_id().as_str()) || matches!(arg.get_long(), Some("help" | "version")) {
            continue;
        }
        let values: Vec<String> = matches
            .get_raw(arg.get_id().as_str())
            .into_iter()
            .flatten()
            .map(|value| value.to_str().map(str::to_owned))
            .collect::<Option<_>>()
            .with_context(|| {
                format!("the value of {} is no Unicode, so the series cannot be kept", arg.get_id())
            })?;
        match (arg.get_long(), arg.get_action()) {
            (None, _) => operands.extend(values),
            (Some("resume"), _) => {}
            (Some(long), ArgAction::SetTrue) => words.push(format!("--{long}")),
            (Some(long), ArgAction::Count) => {
                let times = usize::from(matches.get_count(arg.get_id().as_str()));
                words.extend(vec![format!("--{long}"); times]);
            }
            (Some(long), _) => words.extend(values.iter().map(|value| format!("--{long}={value}"))),
        }
    }
    if !operands.is_empty() {
        words.push("--".to_owned());
        words.extend(operands);
    }
    Ok(words)
}

/// Long names of the options of a part that were given, and "HOST".
pub(super) fn given(command: &Command, matches: &ArgMatches, part: Part) -> Vec<String> {
    command
        .get_arguments()
        .filter(|arg| Part::of(arg) == part && is_given(matches, arg.get_id().as_str()))
        .map(|arg| {
            arg.get_long().map_or_else(|| arg.get_id().as_str().to_uppercase(), |long| format!("--{long}"))
        })
        .collect()
}

/// Whether an option, by its long name, was given a value.
pub(super) fn has_value(command: &Command, matches: &ArgMatches, long: &str) -> bool {
    let arg = command.get_arguments().find(|arg| arg.get_long() == Some(long));
    arg.is_some_and(|arg| is_given(matches, arg.get_id().as_str()))
}

fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// Reads the line of each point.
pub(super) struct Line {
    whole: Command,
    /// "netaware udp" and the words of both parts.
    head: [String; 2],
    tail: Vec<String>,
}

impl Line {
    pub(super) fn new(command: &str, presentation: Vec<String>, plan: &[String]) -> Self {
        let tail = presentation.into_iter().chain(plan.iter().cloned()).collect();
        Self { whole: Cli::command(), head: ["netaware".to_owned(), command.to_owned()], tail }
    }

    /// The command with the values of `point`.
    ///
    /// # Errors
    /// In one line what the parser says against it.
    pub(super) fn at(&mut self, point: &Point) -> anyhow::Result<Box<dyn Measuring>> {
        let values = point.iter().map(|(name, value)| format!("--{name}={value}"));
        let line = self.head.iter().cloned().chain(values).chain(self.tail.iter().cloned());
        let read =
            self.whole.try_get_matches_from_mut(line).and_then(|matches| Cli::from_arg_matches(&matches));
        match read {
            Ok(cli) => {
                cli.command.into_measuring().ok_or_else(|| anyhow!("'{}' measures nothing", self.head[1]))
            }
            Err(error) => {
                let text = error.to_string();
                bail!("{}", text.lines().next().unwrap_or("").trim_start_matches("error: "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(line: &str) -> (Vec<String>, Vec<String>) {
        let whole = Cli::command();
        let matches = whole.clone().try_get_matches_from(line.split_whitespace()).unwrap();
        let (name, of) = matches.subcommand().unwrap();
        let leaf = whole.find_subcommand(name).unwrap();
        (words(leaf, of, Part::Plan).unwrap(), words(leaf, of, Part::Presentation).unwrap())
    }

    #[test]
    fn a_line_is_kept_without_what_only_says_where_its_output_goes() {
        let (plan, presentation) = parts(
            "netaware udp lab-b -4 -b 5M -R --scan length=64,128 --expect loss<1% --label x --format csv -q --store a.db",
        );
        assert_eq!(
            plan.join(" "),
            "--ipv4 --reverse --rate=5M --scan=length=64,128 --expect=loss<1% --label=x -- lab-b"
        );
        assert_eq!(presentation.join(" "), "--format=csv --store=a.db --quiet");
    }

    #[test]
    fn what_was_kept_reads_the_same_again() {
        let (plan, presentation) = parts("netaware tcp ::1 -P 4 -t 1 -N --every 10s --times 3 -A 0,1");
        let line = Line::new("tcp", presentation, &plan).at(&Vec::new()).unwrap();
        assert_eq!((line.series().times, line.measurement().command), (Some(3), "tcp"));
        let again = format!("netaware tcp {}", plan.join(" "));
        assert_eq!(parts(&again).0, plan);
    }

    #[test]
    fn a_points_values_are_judged_by_their_options() {
        let (plan, presentation) = parts("netaware udp lab-b --scan length=1,64");
        let mut line = Line::new("udp", presentation, &plan);
        assert!(line.at(&vec![("length".to_owned(), "64".to_owned())]).is_ok());
        let error = line.at(&vec![("length".to_owned(), "1".to_owned())]).err().unwrap().to_string();
        assert!(error.starts_with("invalid value '1' for '--length <SIZE>'"), "{error}");
        let (plan, presentation) = parts("netaware udp lab-b -b 5M");
        let error = Line::new("udp", presentation, &plan).at(&vec![("spacing".to_owned(), "1us".to_owned())]);
        assert!(error.err().unwrap().to_string().contains("cannot be used with"));
    }
}
