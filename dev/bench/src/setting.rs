//! Where and when a benchmark ran, as its report tells it.

use std::fs;

use crate::shell::{command, output};

/// One line: date, kernel, CPU, and the versions of these packages.
pub(crate) fn describe(packages: &[&str]) -> String {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let date = output(&mut command("date", &["-u", "+%Y-%m-%d"])).unwrap_or_default();
    let versions = versions(packages).join(", ");
    format!("{}, Linux {}, {}; {versions}", date.trim(), kernel.trim(), processor(&cpus))
}

fn processor(cpuinfo: &str) -> String {
    let models: Vec<&str> = cpuinfo
        .lines()
        .filter(|line| line.starts_with("model name"))
        .filter_map(|line| line.split_once(':'))
        .map(|(_, model)| model.trim())
        .collect();
    format!("{} × {}", models.len(), models.first().unwrap_or(&"unknown CPU"))
}

fn versions(packages: &[&str]) -> Vec<String> {
    let version = |package: &&str| {
        let found = output(&mut command("dpkg-query", &["-W", "-f=${Package} ${Version}", package]));
        found.unwrap_or_else(|_| format!("{package} of unknown version"))
    };
    packages.iter().map(version).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_is_told_with_its_count() {
        let text =
            "processor\t: 0\nmodel name\t: Example 9000\n\nprocessor\t: 1\nmodel name\t: Example 9000\n";
        assert_eq!(processor(text), "2 × Example 9000");
    }
}
