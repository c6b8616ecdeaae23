//! Formatting and lints, and whether what nobody builds every day still compiles.

use anyhow::Result;

use crate::comments;
use crate::shell::{CHECKED, cargo, root, run};

pub(crate) fn check() -> Result<()> {
    formatting()?;
    lints()
}

pub(crate) fn formatting() -> Result<()> {
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    comments::check(&root())
}

pub(crate) fn lints() -> Result<()> {
    let which = ["--profile", CHECKED, "--workspace", "--all-targets", "--locked"];
    run(&mut cargo(&[&["clippy"], &which[..], &["--", "-D", "warnings"]].concat()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    #[test]
    fn every_test_that_the_pages_of_bad_input_and_security_name_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut sources = String::new();
        collect(&root.join("crates"), &mut sources);
        for page in ["docs/bad-input.md", "SECURITY.md"] {
            let text = fs::read_to_string(root.join(page)).unwrap();
            let named: Vec<&str> =
                text.split('`').skip(1).step_by(2).filter(|word| word.matches('_').count() > 2).collect();
            assert!(named.len() > 30, "{page}: {named:?}");
            let absent: Vec<&&str> =
                named.iter().filter(|name| !sources.contains(&format!("fn {name}("))).collect();
            assert!(absent.is_empty(), "{page}: {absent:?}");
        }
    }

    fn collect(folder: &Path, into: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, into);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                into.push_str(&fs::read_to_string(&path).unwrap());
            }
        }
    }
}
