//! Puts tables into a page of docs/ between markers; whatever a person wrote outside of them stays.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::setting;

/// A page with generated tables in it.
pub(crate) struct Page {
    file: &'static str,
    /// What a new page begins with.
    preface: &'static str,
    /// Debian packages whose versions it tells.
    peers: &'static [&'static str],
}

/// Who is faster.
pub(crate) const BENCHMARKS: Page = Page {
    file: "docs/benchmarks.md",
    preface: BENCHMARKS_PREFACE,
    peers: &["iperf3", "nuttcp", "iperf", "qperf", "sockperf", "irtt"],
};

/// What watching costs; on the same page.
pub(crate) const PASSIVE: Page =
    Page { file: BENCHMARKS.file, preface: BENCHMARKS_PREFACE, peers: &["tcpdump", "libpcap0.8"] };

/// Who says the same.
pub(crate) const AGREEMENT: Page = Page {
    file: "docs/agreement.md",
    preface: AGREEMENT_PREFACE,
    peers: &["iperf3", "nuttcp", "qperf", "sockperf", "irtt", "iputils-ping"],
};

const BENCHMARKS_PREFACE: &str = "\
# Benchmarks

`cargo xtask bench active` runs netaware and the tools of the field in turn, on the same path, in the same run, and
writes the tables between the markers; `cargo xtask bench passive` does so for probes. Only ratios within one run count: the machine is shared. Causes of figures that
are not reached are written by hand, below each table.
";

const AGREEMENT_PREFACE: &str = "\
# Agreement with the tools of the field

`cargo xtask bench agree` has netaware and the tools of the field measure one emulated path whose truth is known, and
writes the tables between the markers. Why two tools do not agree is written by hand, below each table.
";

/// Replaces the part of one section, or appends it.
pub(crate) fn write(page: &Page, key: &str, title: &str, tables: &str) -> Result<()> {
    let Page { file, preface, peers } = *page;
    let path = Path::new(file);
    let old = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => preface.to_owned(),
        Err(error) => return Err(error).with_context(|| format!("could not read {file}")),
    };
    let body = format!("{}.\n\n{}", setting::describe(peers), tables.trim_end());
    fs::create_dir_all("docs").context("could not make docs/")?;
    let new = with_section(&old, key, title, &body);
    fs::write(path, new).with_context(|| format!("could not write {file}"))?;
    eprintln!("wrote section `{key}` of {file}");
    Ok(())
}

fn with_section(document: &str, key: &str, title: &str, body: &str) -> String {
    let (begin, end) = (format!("<!-- begin generated: {key} -->"), format!("<!-- end generated: {key} -->"));
    let block = format!("{begin}\n{body}\n{end}");
    if let Some((before, rest)) = document.split_once(&begin)
        && let Some((_, after)) = rest.split_once(&end)
    {
        return format!("{before}{block}{after}");
    }
    format!("{}\n\n## {title}\n\n{block}\n", document.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_people_survive_a_new_table() {
        let first = with_section("# Top\n", "tcp", "TCP", "old");
        let with_cause = format!("{first}\nCause: copies.\n");
        let second = with_section(&with_cause, "tcp", "TCP", "new");
        assert_eq!(
            second,
            "# Top\n\n## TCP\n\n<!-- begin generated: tcp -->\nnew\n<!-- end generated: tcp -->\n\nCause: copies.\n"
        );
    }

    #[test]
    fn sections_do_not_touch_each_other() {
        let both = with_section(&with_section("", "tcp", "TCP", "a"), "udp", "UDP", "b");
        let changed = with_section(&both, "tcp", "TCP", "c");
        assert!(
            changed.contains("\nc\n") && changed.contains("\nb\n") && !changed.contains("\na\n"),
            "{changed}"
        );
    }
}
