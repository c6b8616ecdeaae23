//! The schema as JSON text.
//!
//! serde compiles the code that reads or writes a type in the crate that asks for it, and a record is made of hundreds of
//! types. So every crate reads and writes documents by these functions, which are compiled here once. A call of
//! `serde_json` for one of these types elsewhere compiles all of it again: seconds of every build.

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

    /// Writes it over several lines, indented by two spaces, without the end of the last line.
    ///
    /// # Errors
    /// As [`Self::write_json`].
    fn write_json_pretty(&self, out: &mut dyn Write) -> serde_json::Result<()>;

    /// Returns it as a JSON value, to be changed or to be part of another one.
    ///
    /// # Errors
    /// It holds something that JSON cannot hold.
    fn to_value(&self) -> serde_json::Result<serde_json::Value>;

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

            fn write_json_pretty(&self, out: &mut dyn Write) -> serde_json::Result<()> {
                serde_json::to_writer_pretty(out, self)
            }

            fn to_value(&self) -> serde_json::Result<serde_json::Value> {
                serde_json::to_value(self)
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
    fn document_that_is_cut_off_is_refused() {
        assert!(Row::from_json(b"{\"kind\":\"volume\"").is_err());
        assert!(Record::from_json(b"").is_err());
    }
}
