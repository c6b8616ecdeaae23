//! The schema as JSON text.
//!
//! serde compiles the code that reads or writes a type in the crate that asks for it, and a record
//! is made of hundreds of types. So every crate reads and writes documents by these functions,
//! which are compiled here once. A call of `serde_json` for one of these types elsewhere compiles
//! all of it again: seconds of every build.

use std::io::Write;

use crate::Record;
use crate::passive::{ProbeReport, Row, TaskRow};

/// A type of the schema that is a JSON document of its own.
pub trait Document: Sized {
    /// Reads it from JSON text.
    ///
    /// # Errors
    /// The text is not JSON, or not this document.
    fn from_json(text: &[u8]) -> serde_json::Result<Self>;

    /// Writes it on one line, without the end of the line.
    ///
    /// # Errors
    /// It holds something that JSON cannot hold, or `out` fails.
    fn write_json(&self, out: &mut dyn Write) -> serde_json::Result<()>;

    /// Returns what [`Self::write_json`] writes.
    ///
    /// # Errors
    /// It holds something that JSON cannot hold.
    fn to_json(&self) -> serde_json::Result<String> {
        let mut out = Vec::with_capacity(USUAL_LENGTH);
        self.write_json(&mut out)?;
        // JSON is UTF-8, so nothing is ever replaced.
        Ok(String::from_utf8(out).unwrap_or_default())
    }

    /// Returns it over several lines, indented by two spaces, without the end of the last line.
    ///
    /// # Errors
    /// It holds something that JSON cannot hold.
    fn to_json_pretty(&self) -> serde_json::Result<String> {
        self.to_json().map(|text| indented(&text))
    }
}

/// Sets JSON text without white space over several lines. A second form of every type, compiled for
/// this alone, would cost seconds of every build.
fn indented(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    let mut characters = text.chars().peekable();
    let new_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(character) = characters.next() {
        match character {
            _ if in_text => {
                in_text = escaped || character != '"';
                escaped = !escaped && character == '\\';
                out.push(character);
            }
            '{' | '[' => {
                out.push(character);
                if matches!(characters.peek(), Some('}' | ']')) {
                    out.extend(characters.next());
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(character);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                in_text = character == '"';
                out.push(character);
            }
        }
    }
    out
}

macro_rules! documents {
    ($($document:ty),* $(,)?) => { $(
        impl Document for $document {
            fn from_json(text: &[u8]) -> serde_json::Result<Self> {
                serde_json::from_slice(text)
            }

            fn write_json(&self, out: &mut dyn Write) -> serde_json::Result<()> {
                serde_json::to_writer(out, self)
            }
        }
    )* };
}

documents!(Record, ProbeReport, Row, TaskRow);

/// Room for a record of a usual length, bytes.
const USUAL_LENGTH: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_indented_as_serde_json_would() {
        let value = serde_json::json!({
            "empty": [[], {}], "quoted": "a \"b\": [1, 2], \\", "list": [1, { "x": null }, "\\\\"], "n": -1.5e300, "€": {}
        });
        assert_eq!(indented(&value.to_string()), serde_json::to_string_pretty(&value).unwrap());
        assert_eq!(indented("7"), "7");
    }

    #[test]
    fn document_that_is_cut_off_is_refused() {
        assert!(Row::from_json(b"{\"kind\":\"volume\"").is_err());
        assert!(Record::from_json(b"").is_err());
    }
}
