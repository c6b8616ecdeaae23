//! Why a scenario was refused, and where.

use thiserror::Error;

/// The first thing that is wrong with a scenario. Its text is for the person who wrote the file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {}{problem}{}", at_field(.field), would_do(.right))]
pub struct ScenarioError {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// "hop[2].forward.rate"; empty when the text is no TOML.
    pub field: String,
    /// What is wrong.
    pub problem: String,
    /// What would be right; empty when nobody can know.
    pub right: String,
}

fn at_field(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!("{field}: ") }
}

fn would_do(right: &str) -> String {
    if right.is_empty() { String::new() } else { format!("; {right} would do") }
}

impl ScenarioError {
    /// About the text at `offset` (bytes).
    pub(super) fn at(text: &str, offset: usize, field: &str, problem: String, right: String) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            field: field.to_owned(),
            problem,
            right,
        }
    }
}
