//! `netaware.toml`.

use std::io::{self, ErrorKind};
use std::path::Path;

use anyhow::{Context, bail};
use clap::Command;
use netaware_private::{Settings, read_settings};
use toml::{Table, Value};

use super::layer::{Layer, Setting, insert};
use super::{Chosen, Notes, Place, configurable};

/// The text of a file that counts. One that does not exist says nothing, and one that another user
/// may have written is ignored with a note.
pub(super) fn text(place: Place, path: &Path, notes: &mut Notes) -> anyhow::Result<Option<String>> {
    let read = match place {
        Place::Own => own(path),
        Place::Present => read_settings(path),
    };
    let shown = || std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match read.with_context(|| format!("cannot read {}", path.display()))? {
        Settings::Missing => Ok(None),
        Settings::Ignored(why) => {
            notes.ignored.push(format!("{} is ignored: {why}", shown().display()));
            Ok(None)
        }
        Settings::Text(text) => {
            notes.read.push(shown());
            Ok(Some(text))
        }
    }
}

fn own(path: &Path) -> io::Result<Settings> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Settings::Text(text)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Settings::Missing)
        }
        Err(error) => Err(error),
    }
}

/// What a file says for the chosen command: general keys, then those of the command's own table.
pub(super) fn layers(
    path: &Path,
    text: &str,
    command: &Command,
    chosen: &Chosen<'_>,
) -> anyhow::Result<Vec<Layer>> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        anyhow::anyhow!("{}: {}", path.display(), on_one_line(&error, text))
    })?;
    check_names(path, &table, command)?;
    let (mut general, mut own) = (Layer::new(), Layer::new());
    for (key, value) in &table {
        match value {
            Value::Table(section) if chosen.path.first() == Some(key) => {
                for (key, value) in section {
                    add(&mut own, chosen, path, Some(&chosen.path[0]), key, value)?;
                }
            }
            Value::Table(_) => {}
            _ => add(&mut general, chosen, path, None, key, value)?,
        }
    }
    Ok(vec![general, own])
}

fn on_one_line(error: &toml::de::Error, text: &str) -> String {
    let line = error.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
    let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
    format!("{line}{}", error.message().replace('\n', " "))
}

/// Every key must belong to some command, every table must be one: a slip must not be silently
/// without effect.
fn check_names(path: &Path, table: &Table, command: &Command) -> anyhow::Result<()> {
    let path = path.display();
    for (key, value) in table {
        match (value, command.find_subcommand(key)) {
            (Value::Table(section), Some(of)) => {
                if let Some(bad) = section.keys().find(|key| !has_flag(of, key)) {
                    bail!("{path}: unknown key {key}.{bad}: 'netaware {key}' has no flag --{}", long(bad));
                }
            }
            (Value::Table(_), None) => {
                bail!("{path}: unknown table [{key}]: there is no command 'netaware {key}'")
            }
            _ if !command.get_subcommands().any(|of| has_flag(of, key)) => {
                bail!("{path}: unknown key {key}: no command has a flag --{}", long(key));
            }
            _ => {}
        }
    }
    Ok(())
}

fn has_flag(command: &Command, key: &str) -> bool {
    let long = long(key);
    configurable(command).any(|arg| arg.get_long() == Some(&long))
        || command.get_subcommands().any(|of| has_flag(of, key))
}

/// TOML writers like underscores.
fn long(key: &str) -> String {
    key.replace('_', "-")
}

fn add(
    layer: &mut Layer,
    chosen: &Chosen<'_>,
    path: &Path,
    section: Option<&str>,
    key: &str,
    value: &Value,
) -> anyhow::Result<()> {
    let long = long(key);
    if chosen.flag(&long).is_none() {
        return Ok(());
    }
    let section = section.map(|name| format!("{name}.")).unwrap_or_default();
    let origin = format!("{}: {section}{key}", path.display());
    let values = match value {
        Value::Array(items) => items.iter().map(plain).collect::<Option<Vec<_>>>(),
        single => plain(single).map(|value| vec![value]),
    };
    let Some(values) = values else {
        bail!("{origin}: expected a string, a number, true, false or a list of them")
    };
    insert(layer, chosen, &long, Setting { values, origin });
    Ok(())
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(n) => Some(n.to_string()),
        Value::Float(x) => Some(x.to_string()),
        Value::Boolean(b) => Some(b.to_string()),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => None,
    }
}
