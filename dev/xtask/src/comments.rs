//! How wide a comment may be.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

const WIDEST: usize = 100;
const FOLDERS: [&str; 3] = ["crates", "dev", "fuzz"];

/// # Errors
/// A comment is wider than [`WIDEST`] columns, or a file cannot be read.
pub(crate) fn check(root: &Path) -> Result<()> {
    let mut sources = Vec::new();
    for folder in FOLDERS {
        collect(&root.join(folder), &mut sources)?;
    }
    sources.sort();
    let mut wide = Vec::new();
    for path in sources {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        wide.extend(wide_lines(&text).map(|line| format!("{name}:{line}")));
    }
    if !wide.is_empty() {
        bail!("comments wider than {WIDEST} columns; break their lines: {}", wide.join(", "));
    }
    Ok(())
}

/// Numbers of the lines, from 1, whose comment is prose and too wide. A comment behind code on the
/// same line is rustfmt's matter.
fn wide_lines(text: &str) -> impl Iterator<Item = usize> {
    text.lines().enumerate().filter(|(_, line)| is_wide_prose(line)).map(|(index, _)| index + 1)
}

/// Tables and drawings may be as wide as they must be: a row of a table begins with `|`, and a
/// drawing has two spaces side by side.
fn is_wide_prose(line: &str) -> bool {
    let Some(text) = line.trim_start().strip_prefix("//") else { return false };
    let text = text.trim_start_matches(['/', '!']);
    let is_drawn = text.trim_start().starts_with('|') || text.contains("  ");
    line.chars().count() > WIDEST && !is_drawn
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            // What cargo builds, and what nobody wrote here.
            if !path.ends_with("target") {
                collect(&path, into)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comment(start: &str, columns: usize) -> String {
        format!("{start}{}", "x".repeat(columns - start.len()))
    }

    #[test]
    fn a_comment_of_a_hundred_columns_fits_and_one_of_a_hundred_and_one_does_not() {
        for start in ["// ", "/// ", "//! ", "        // "] {
            let text = format!("{}\nlet a = 1;\n{}\n", comment(start, 100), comment(start, 101));
            assert_eq!(wide_lines(&text).collect::<Vec<_>>(), [3], "{start:?}");
        }
    }

    #[test]
    fn code_tables_and_drawings_may_be_wider() {
        let rows =
            [comment("let a = ", 109), comment("/// | `a` | ", 130), comment("//!  left ──►  right ", 120)];
        assert_eq!(wide_lines(&rows.join("\n")).count(), 0);
    }
}
