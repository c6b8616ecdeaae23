//! Flag over environment over file over default, merged once, before anything else looks at them.
//!
//! Every long flag of a command is also a key of `netaware.toml` and a variable:
//! `--connect-timeout` is `connect-timeout` and `NETAWARE_CONNECT_TIMEOUT`. The merge happens on
//! the command line itself: what the files and the environment say is put in front of what was
//! typed, so one parser reads everything and no value has two ways in.
//!
//! ```toml
//! port = 14300          # for every command that has --port
//! [tcp]
//! streams = 8           # for `netaware tcp` only; stronger than the same key above
//! ```
//!
//! The file in the present folder counts only if nobody but this user and root can have written it:
//! who starts a program beside a file of somebody else must not measure, or serve, by his settings.
//!
//! Flags that exclude each other form a group (`--rate` and `--spacing`): a stronger layer that
//! sets one of them silences the whole group in the weaker ones.

mod file;
mod layer;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use layer::{Layer, Setting};

use crate::flags::host::Host;

/// Whose folder a file of settings is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The user's own folder of configuration.
    Own,
    /// The present one. It may be anybody's, so the file counts only if nobody but this user and
    /// root can have written it.
    Present,
}

/// Where settings may come from, weakest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    pub(crate) files: Vec<(Place, PathBuf)>,
    /// Name and value.
    pub(crate) environment: BTreeMap<String, String>,
}

impl Sources {
    /// `netaware.toml` in the user's configuration folder, then in the present one, then
    /// `NETAWARE_*`.
    pub(crate) fn of_this_process() -> Self {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = set("XDG_CONFIG_HOME")
            .filter(|folder| folder.is_absolute())
            .or_else(|| set("HOME").map(|home| home.join(".config")));
        let user = folder.map(|folder| folder.join("netaware/netaware.toml"));
        // Values that are no Unicode cannot be meant for us.
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name.starts_with(layer::PREFIX))
            .collect();
        let user = user.map(|file| (Place::Own, file));
        let present = (Place::Present, PathBuf::from("netaware.toml"));
        Self { files: user.into_iter().chain([present]).collect(), environment }
    }
}

/// What is said about files of settings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// Files that settings were taken from.
    read: Vec<PathBuf>,
    /// Files that do not count, each with the reason.
    ignored: Vec<String>,
}

impl Notes {
    fn warn(&self) {
        for ignored in &self.ignored {
            eprintln!("warning: {ignored}");
        }
    }

    fn name_files(&self) {
        for path in &self.read {
            eprintln!("settings are read from {}", path.display());
        }
    }
}

/// `typed` with the settings of all sources put in, ready for the real parse.
///
/// # Errors
/// A file that cannot be read, a key that no command has, or a value that its flag refuses; each
/// named with its file.
pub(crate) fn merged(
    command: &Command,
    typed: &[OsString],
    matches: &ArgMatches,
    sources: &Sources,
    notes: &mut Notes,
) -> anyhow::Result<Vec<OsString>> {
    let chosen = Chosen::new(command, matches);
    if chosen.configurable().next().is_none() {
        return Ok(typed.to_vec());
    }
    let mut layers = Vec::new();
    for (place, path) in &sources.files {
        if let Some(text) = file::text(*place, path, notes)? {
            layers.extend(file::layers(path, &text, command, &chosen)?);
        }
    }
    layers.push(layer::environment(&sources.environment, &chosen));
    let mut kept: BTreeMap<String, Setting> = BTreeMap::new();
    for layer in layers {
        chosen.check(command, &layer)?;
        for name in layer.keys() {
            chosen.silence(&mut kept, name);
        }
        kept.extend(layer);
    }
    for name in chosen.typed().into_iter().chain(chosen.scanned()) {
        chosen.silence(&mut kept, &name);
    }
    if chosen.host_has_port() {
        chosen.silence(&mut kept, "port");
    }
    let (head, tail) = typed.split_at((1 + chosen.path.len()).min(typed.len()));
    let settings = kept.iter().flat_map(|(name, setting)| setting.words(chosen.action(name), name));
    Ok(head.iter().cloned().chain(settings.map(OsString::from)).chain(tail.iter().cloned()).collect())
}

/// Of `results`: commands that read what `collect` stores.
const OF_A_FLEET: &[&str] = &["delays", "probes", "tasks", "active"];

/// The command that was typed, down to its last subcommand.
pub(crate) struct Chosen<'a> {
    /// "results", "list".
    path: Vec<String>,
    leaf: &'a Command,
    matches: &'a ArgMatches,
}

impl<'a> Chosen<'a> {
    fn new(command: &'a Command, matches: &'a ArgMatches) -> Self {
        let mut chosen = Self { path: Vec::new(), leaf: command, matches };
        while let Some((name, matches)) = chosen.matches.subcommand() {
            let Some(leaf) = chosen.leaf.find_subcommand(name) else { break };
            chosen.path.push(name.to_owned());
            (chosen.leaf, chosen.matches) = (leaf, matches);
        }
        chosen
    }

    /// Flags that a file or a variable may set.
    fn configurable(&self) -> impl Iterator<Item = &'a Arg> {
        configurable(self.leaf)
    }

    /// The variable that stands for a flag. The store of a fleet is not the file of results, which
    /// `NETAWARE_STORE` names.
    fn variable(&self, long: &str) -> String {
        let is_a_fleets = match self.path.first().map(String::as_str) {
            Some("collect") => true,
            Some("results") => self.path.get(1).is_some_and(|name| OF_A_FLEET.contains(&name.as_str())),
            _ => false,
        };
        let name = if is_a_fleets && long == "store" { "fleet-store" } else { long };
        format!("{}{}", layer::PREFIX, name.to_ascii_uppercase().replace('-', "_"))
    }

    fn flag(&self, long: &str) -> Option<&'a Arg> {
        self.configurable().find(|arg| arg.get_long() == Some(long))
    }

    fn action(&self, long: &str) -> Option<&'a ArgAction> {
        self.flag(long).map(Arg::get_action)
    }

    /// Long names of the flags on the command line.
    fn typed(&self) -> Vec<String> {
        let is_typed =
            |arg: &&Arg| self.matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
        self.configurable().filter(is_typed).filter_map(|arg| arg.get_long().map(str::to_owned)).collect()
    }

    /// Long names of the flags that `--scan` on the command line gives values to.
    fn scanned(&self) -> Vec<String> {
        let scans = self.matches.try_get_many::<String>("scan").ok().flatten().into_iter().flatten();
        scans.filter_map(|scan| Some(scan.split_once('=')?.0.to_owned())).collect()
    }

    /// Whether HOST on the command line is HOST:PORT. Such a port is stronger than `port` of a file
    /// or of the environment, just as a typed `--port` is.
    fn host_has_port(&self) -> bool {
        let host = self.matches.try_get_one::<Host>("host").ok().flatten();
        host.is_some_and(|host| host.port.is_some())
    }

    /// Removes a flag and the others of its groups from what weaker layers said.
    fn silence(&self, kept: &mut BTreeMap<String, Setting>, long: &str) {
        kept.remove(long);
        let Some(id) = self.flag(long).map(Arg::get_id) else { return };
        // clap's derive makes a group of every struct, named like the type; ours are in lower case.
        let ours = |name: &str| name.starts_with(|c: char| c.is_ascii_lowercase());
        let groups = self.leaf.get_groups().filter(|group| ours(group.get_id().as_str()));
        for group in groups.filter(|group| group.get_args().any(|member| member == id)) {
            for member in group.get_args() {
                let arg = self.leaf.get_arguments().find(|arg| arg.get_id() == member);
                if let Some(long) = arg.and_then(Arg::get_long) {
                    kept.remove(long);
                }
            }
        }
    }

    /// Gives each value to its flag alone, so that a refusal can name where it came from.
    fn check(&self, command: &Command, layer: &Layer) -> anyhow::Result<()> {
        for (name, setting) in layer {
            let words = setting.words(self.action(name), name);
            let line = std::iter::once("netaware".to_owned()).chain(self.path.iter().cloned()).chain(words);
            match command.clone().try_get_matches_from(line) {
                Err(error) if error.kind() != ErrorKind::MissingRequiredArgument => {
                    let text = error.to_string();
                    let first = text.lines().next().unwrap_or("").trim_start_matches("error: ");
                    bail!("{}: {first}", setting.origin);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn configurable(command: &Command) -> impl Iterator<Item = &Arg> {
    let for_people = |arg: &&Arg| !matches!(arg.get_long(), None | Some("help" | "version"));
    command.get_arguments().filter(for_people)
}

/// The command line, read.
pub(crate) struct Parsed {
    /// As typed.
    pub(crate) typed: ArgMatches,
    /// With the settings of all other sources.
    pub(crate) merged: ArgMatches,
}

impl Parsed {
    /// Whether a flag of the last subcommand is on the command line, and not only in a setting.
    pub(crate) fn is_typed(&self, id: &str) -> bool {
        let mut matches = &self.typed;
        while let Some((_, below)) = matches.subcommand() {
            matches = below;
        }
        matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine)
    }
}

/// Reads the arguments of this process together with all other sources.
///
/// # Errors
/// As [`merged`]; a [`clap::Error`] for a refused command line, and for help and version, which the
/// parser answers itself.
pub(crate) fn parsed(command: Command, typed: &[OsString], sources: &Sources) -> anyhow::Result<Parsed> {
    let first =
        command.clone().try_get_matches_from(typed).map_err(|error| refusal(&command, typed, error))?;
    let mut notes = Notes::default();
    let line = merged(&command, typed, &first, sources, &mut notes);
    notes.warn();
    let line = line.context("settings")?;
    let merged = if line == typed { first.clone() } else { command.try_get_matches_from(line)? };
    if is_verbose(&merged) {
        notes.name_files();
    }
    Ok(Parsed { typed: first, merged })
}

/// Whether the last subcommand has its `--verbose`, which is a switch or a counter.
fn is_verbose(matches: &ArgMatches) -> bool {
    let mut matches = matches;
    while let Some((_, below)) = matches.subcommand() {
        matches = below;
    }
    let counted = matches.try_get_one::<u8>("verbose").ok().flatten();
    let switched = matches.try_get_one::<bool>("verbose").ok().flatten();
    counted.is_some_and(|times| *times > 0) || switched.is_some_and(|is_on| *is_on)
}

/// The error that says most about a refused command line.
///
/// The parser takes "-5M" behind an option for flags of that name and says that there are none.
/// Joined to its option it is a value, of which the option's own reader says what is wrong.
fn refusal(command: &Command, typed: &[OsString], error: clap::Error) -> clap::Error {
    let joined = with_negatives_joined(typed);
    if joined.len() == typed.len() {
        return error;
    }
    match command.clone().try_get_matches_from(joined) {
        Err(of_value) if of_value.kind() == ErrorKind::ValueValidation => of_value,
        _ => error,
    }
}

/// The command line with each negative number joined to the option before it: "-b=-5M".
fn with_negatives_joined(typed: &[OsString]) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut has_options = true;
    for word in typed {
        let text = word.to_str().unwrap_or_default();
        has_options &= text != "--";
        let is_value =
            has_options && is_negative(text) && words.last().is_some_and(|option| is_option(option));
        if is_value && let Some(option) = words.last_mut() {
            option.push("=");
            option.push(word);
        } else {
            words.push(word.clone());
        }
    }
    words
}

/// Whether a word is a negative number; "-4" and "-6" alone are flags.
fn is_negative(word: &str) -> bool {
    let number = word.strip_prefix('-').map(|number| number.strip_prefix('.').unwrap_or(number));
    number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
        && !matches!(word, "-4" | "-6")
}

/// Whether a word is an option that may have its value in the next word.
fn is_option(word: &OsStr) -> bool {
    word.to_str().is_some_and(|word| word.starts_with('-') && word != "-" && !word.contains('='))
}

#[cfg(test)]
mod tests;
