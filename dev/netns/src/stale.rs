//! Names of namespaces, and how those of a killed test run are found again.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::NetnsError;
use crate::tool::run;

const PREFIX: &str = "netaware";

/// Of what this process makes, each has a number of its own.
pub(crate) fn next_number() -> u32 {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    COUNTER.fetch_add(1, Ordering::Relaxed)
}

/// `netaware-<process>-<number>-<name>-<side>`: unique on this host as long as the process lives.
pub(crate) fn namespace_name(number: u32, name: &str, side: &str) -> String {
    let harmless: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect();
    format!("{PREFIX}-{}-{number}-{harmless}-{side}", std::process::id())
}

/// Removes the namespaces that test runs left behind when they were killed, and says which. Those
/// of living processes stay.
pub fn remove_stale() -> Result<Vec<String>, NetnsError> {
    let listed = run("ip", &["netns", "list"])?;
    let names = listed.lines().filter_map(|line| line.split_whitespace().next());
    let stale: Vec<String> = names.filter(|name| is_stale(name, process_lives)).map(str::to_owned).collect();
    for name in &stale {
        run("ip", &["netns", "delete", name])?;
        let _ = fs::remove_dir_all(Path::new("/etc/netns").join(name));
    }
    Ok(stale)
}

fn is_stale(name: &str, lives: impl Fn(u32) -> bool) -> bool {
    let mut parts = name.split('-');
    let ours = parts.next() == Some(PREFIX);
    let owner = parts.next().and_then(|id| id.parse().ok());
    ours && owner.is_some_and(|id| !lives(id))
}

fn process_lives(id: u32) -> bool {
    Path::new("/proc").join(id.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_namespaces_of_dead_processes_are_stale() {
        let dead = |_| false;
        let alive = |_| true;
        assert!(is_stale("netaware-77-0-shape-left", dead));
        assert!(!is_stale("netaware-77-0-shape-left", alive));
        assert!(!is_stale("somebody-77-0-else", dead));
        assert!(!is_stale("netaware", dead));
    }

    #[test]
    fn name_with_a_slash_stays_one_file_name() {
        assert!(!namespace_name(0, "../up", "left").contains('/'));
    }
}
