//! Derives the schemas that the product prints and serves from its types, and writes them where the
//! product takes them from: `cargo xtask schemas`. So the product is built without what derives
//! them, and a change of a schema shows in its diff.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Serialize as _;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

/// A committed schema.
struct Document {
    /// Below the top folder of the checkout.
    file: &'static str,
    derive: fn() -> Value,
}

const DOCUMENTS: [Document; 2] = [
    Document { file: "crates/base/record/schema.json", derive: netaware_record::derived_json_schema },
    Document { file: "crates/apps/collector/openapi.json", derive: netaware_collector::derived_openapi },
];

impl Document {
    fn path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(self.file)
    }

    /// A line for each value, so that a change shows in a diff, but not indented, since the product
    /// carries it.
    fn text(&self) -> Result<String> {
        let mut text = Vec::new();
        let lines = PrettyFormatter::with_indent(b"");
        (self.derive)().serialize(&mut Serializer::with_formatter(&mut text, lines))?;
        text.push(b'\n');
        Ok(String::from_utf8(text)?)
    }
}

fn main() -> Result<()> {
    for document in &DOCUMENTS {
        let text = document.text()?;
        // A file that is written again has everything above it compiled again.
        if std::fs::read_to_string(document.path()).is_ok_and(|committed| committed == text) {
            println!("{} is current", document.file);
            continue;
        }
        std::fs::write(document.path(), text)
            .with_context(|| format!("could not write {}", document.file))?;
        println!("wrote {}", document.file);
    }
    Ok(())
}

#[cfg(test)]
mod claims {
    use super::*;

    #[test]
    fn committed_schemas_are_those_of_the_types() {
        for document in &DOCUMENTS {
            let committed = std::fs::read_to_string(document.path()).unwrap();
            let is_current = committed == document.text().unwrap();
            assert!(is_current, "{} is old: run cargo xtask schemas", document.file);
        }
    }
}
