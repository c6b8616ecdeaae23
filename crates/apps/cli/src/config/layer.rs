//! One source of settings, and how a setting becomes words of a command line.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction};

use super::Chosen;

/// Of every variable that means us.
pub(super) const PREFIX: &str = "NETAWARE_";

/// By long flag name.
pub(super) type Layer = BTreeMap<String, Setting>;

/// A value, or several for a flag that may be repeated, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) values: Vec<String>,
    /// "netaware.toml: tcp.rate" or "NETAWARE_RATE".
    pub(super) origin: String,
}

impl Setting {
    /// `--rate=5M`; for a switch `--reverse` or nothing; for a counter as many as it says.
    pub(super) fn words(&self, action: Option<&ArgAction>, long: &str) -> Vec<String> {
        let first = self.values.first().map_or("", String::as_str);
        match action {
            Some(ArgAction::SetTrue) => match truth(first) {
                Some(true) => vec![format!("--{long}")],
                Some(false) => Vec::new(),
                // Refused by the parser, which says that the flag takes no value.
                None => vec![format!("--{long}={first}")],
            },
            Some(ArgAction::Count) => match (first.parse::<u8>(), truth(first)) {
                (Ok(n), _) => vec![format!("--{long}"); usize::from(n)],
                (_, Some(true)) => vec![format!("--{long}")],
                (_, Some(false)) => Vec::new(),
                _ => vec![format!("--{long}={first}")],
            },
            _ => self.values.iter().map(|value| format!("--{long}={value}")).collect(),
        }
    }
}

fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" | "" => Some(false),
        _ => None,
    }
}

/// `save = false` is `no-save = true`, where the command has both.
pub(super) fn insert(layer: &mut Layer, chosen: &Chosen<'_>, long: &str, setting: Setting) {
    let negated = format!("no-{long}");
    let off = setting.values.first().is_some_and(|value| truth(value) == Some(false));
    if off && chosen.flag(&negated).is_some() {
        layer.insert(negated, Setting { values: vec!["true".to_owned()], ..setting });
    } else {
        layer.insert(long.to_owned(), setting);
    }
}

/// The variables that name flags of the command. Others are left alone: they may belong to another
/// command or program.
pub(super) fn environment(variables: &BTreeMap<String, String>, chosen: &Chosen<'_>) -> Layer {
    let mut layer = Layer::new();
    for long in chosen.configurable().filter_map(Arg::get_long) {
        let name = chosen.variable(long);
        if let Some(value) = variables.get(&name).filter(|value| !value.is_empty()) {
            insert(&mut layer, chosen, long, Setting { values: vec![value.clone()], origin: name });
        }
    }
    layer
}
