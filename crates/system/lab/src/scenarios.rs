//! The scenarios that come with netaware, and those of the user.

use std::io::Read as _;
use std::path::Path;

use netaware_netmodel::{Scenario, ScenarioError};

include!(concat!(env!("OUT_DIR"), "/bundled.rs"));

/// A scenario with its text, by which it can be handed to another process.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Name of a bundled one, else the file as it was given.
    pub name: String,
    /// TOML.
    pub text: String,
    /// What it says.
    pub scenario: Scenario,
}

/// Why there is no scenario.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Neither a file nor a bundled scenario.
    #[error(
        "there is no scenario '{0}': it is neither a file nor a name that `netaware lab scenarios` lists"
    )]
    Unknown(String),
    /// The file cannot be read.
    #[error("could not read {file}: {source}")]
    Unreadable {
        /// As given.
        file: String,
        /// What the system answered.
        source: std::io::Error,
    },
    /// It says something that cannot be.
    #[error("{file}: {source}")]
    Malformed {
        /// As given.
        file: String,
        /// Line, column, field and what is wrong.
        source: ScenarioError,
    },
}

/// Name and text of every bundled scenario, by name.
pub fn bundled() -> &'static [(&'static str, &'static str)] {
    BUNDLED
}

/// Reads a scenario: a file if there is one of that name, else a bundled one (with or without
/// ".toml").
///
/// # Errors
/// There is none, or it is malformed; the file is named.
pub fn load(name: &str) -> Result<Loaded, LoadError> {
    if Path::new(name).is_file() {
        return parse(name, read(name)?);
    }
    let bare = name.strip_suffix(".toml").unwrap_or(name);
    let found = BUNDLED.iter().find(|(bundled, _)| *bundled == bare);
    let (name, text) = found.ok_or_else(|| LoadError::Unknown(name.to_owned()))?;
    parse(name, (*text).to_owned())
}

/// Parses a scenario; `name` is what errors call it.
///
/// # Errors
/// It is malformed.
pub fn parse(name: &str, text: String) -> Result<Loaded, LoadError> {
    match Scenario::parse(&text) {
        Ok(scenario) => Ok(Loaded { name: name.to_owned(), text, scenario }),
        Err(source) => Err(LoadError::Malformed { file: name.to_owned(), source }),
    }
}

/// A little more than the parser takes is read, so that it is the parser who says that it is too
/// much.
fn read(file: &str) -> Result<String, LoadError> {
    let most = netaware_netmodel::scenario::bounds::TEXT as u64 + 1;
    let mut text = String::new();
    std::fs::File::open(file)
        .and_then(|open| open.take(most).read_to_string(&mut text))
        .map_err(|source| LoadError::Unreadable { file: file.to_owned(), source })?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bundled_scenario_is_found_by_its_name_and_is_sound() {
        for (name, text) in bundled() {
            let loaded = load(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!((loaded.name.as_str(), loaded.text.as_str()), (*name, *text));
            assert!(load(&format!("{name}.toml")).is_ok());
        }
    }

    #[test]
    fn what_is_neither_a_file_nor_bundled_is_named() {
        let error = load("no-such-path").unwrap_err().to_string();
        assert!(error.contains("'no-such-path'") && error.contains("lab scenarios"), "{error}");
    }

    #[test]
    fn a_mistake_is_told_with_the_file() {
        let error = parse("mine.toml", "hop = 3".to_owned()).unwrap_err().to_string();
        assert!(error.starts_with("mine.toml: line "), "{error}");
    }
}
