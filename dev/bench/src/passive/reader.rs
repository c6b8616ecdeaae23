//! Programs that watch an interface: how they are started, what they count, and what they cost.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use netaware_netns::{Pair, Running};
use serde_json::Value;
use tempfile::NamedTempFile;

use super::traffic::FILTER;
use crate::clock::{Stopwatch, pause};
use crate::shell::{command, output};

/// A reader that watches the right side of a pair.
pub(crate) struct Reader {
    program: Running,
    kind: Kind,
    said: NamedTempFile,
    complained: NamedTempFile,
    began_ns: u64,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Netaware,
    Tcpdump,
}

/// How netaware watches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watching<'a> {
    pub(crate) tasks: &'a [&'a str],
    pub(crate) filter: &'a str,
    pub(crate) ring: &'a str,
}

/// What a probe of a fleet does: digests and volume.
pub(crate) const USUAL: Watching<'static> =
    Watching { tasks: &["digest", "volume"], filter: FILTER, ring: "32MiB" };

/// What a reader says and what it took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    pub(crate) packets: u64,
    /// What it says it lost.
    pub(crate) lost: u64,
    /// CPU time of all its threads from when it was ready.
    pub(crate) cpu_ns: u64,
    /// The most memory it had, bytes.
    pub(crate) memory: u64,
}

impl Reader {
    /// `netaware probe`, ready.
    pub(crate) fn netaware(program: &Path, pair: &Pair, watching: Watching<'_>) -> Result<Self> {
        let mut probe = on_one_core(pair);
        probe.arg(program).args(["probe", "-i", pair.right().device()]).args(watching.tasks);
        probe.args(["-f", watching.filter, "--ring", watching.ring, "--format", "ndjson"]);
        Self::start(probe, Kind::Netaware, pair)
    }

    /// `tcpdump -w /dev/null` with the same filter, snap length and ring, ready.
    pub(crate) fn tcpdump(pair: &Pair, filter: &str) -> Result<Self> {
        let mut tcpdump = on_one_core(pair);
        tcpdump.args([
            "tcpdump",
            "-i",
            pair.right().device(),
            "-n",
            "-s",
            "256",
            "-B",
            "32768",
            "-Z",
            "root",
        ]);
        tcpdump.args(["-w", "/dev/null", filter]);
        Self::start(tcpdump, Kind::Tcpdump, pair)
    }

    fn start(mut command: std::process::Command, kind: Kind, pair: &Pair) -> Result<Self> {
        let (said, complained) = (NamedTempFile::new()?, NamedTempFile::new()?);
        command.stdin(Stdio::null()).stdout(said.reopen()?).stderr(complained.reopen()?);
        let program = Running::start(&mut command)?;
        let mut reader = Self { program, kind, said, complained, began_ns: 0 };
        reader.wait_until_it_watches(pair)?;
        reader.began_ns = reader.cpu_ns()?;
        Ok(reader)
    }

    /// The kernel lists the sockets that watch interfaces.
    fn wait_until_it_watches(&mut self, pair: &Pair) -> Result<()> {
        let waiting = Stopwatch::start();
        let sockets = format!("/proc/{}/net/packet", self.program.id());
        loop {
            ensure!(self.program.child().try_wait()?.is_none(), "ended at once: {}", self.complaints());
            let listed = fs::read_to_string(&sockets).unwrap_or_default();
            // Our own namespace has the same table until `ip` has become the program.
            let inside = pair.right().processes().contains(&self.program.id());
            if inside && listed.lines().count() > 1 {
                // The filter comes right behind the socket.
                pause(Duration::from_millis(300));
                return Ok(());
            }
            ensure!(waiting.elapsed() < READY_WITHIN, "does not watch: {}", self.complaints());
            pause(Duration::from_millis(10));
        }
    }

    /// Stops it for a while, as a host without time for it would.
    pub(crate) fn hold_up(&self, span: Duration) -> Result<()> {
        self.signal("STOP")?;
        pause(span);
        self.signal("CONT")
    }

    /// Ends it and reads what it counted.
    pub(crate) fn finish(mut self) -> Result<Seen> {
        // What is in the ring is read and the period after it begins.
        pause(Duration::from_millis(500));
        let cpu_ns = self.cpu_ns()?.saturating_sub(self.began_ns);
        let memory = self.memory()?;
        self.signal("INT")?;
        let status = self.program.child().wait().context("waiting for a reader")?;
        ensure!(status.success(), "ended with {status}: {}", self.complaints());
        let (packets, lost) = match self.kind {
            Kind::Netaware => counts_of_probe(&fs::read_to_string(self.said.path())?)?,
            Kind::Tcpdump => counts_of_tcpdump(&self.complaints())?,
        };
        Ok(Seen { packets, lost, cpu_ns, memory })
    }

    fn signal(&self, name: &str) -> Result<()> {
        output(&mut command("sh", &["-c", &format!("kill -{name} {}", self.program.id())])).map(drop)
    }

    fn complaints(&self) -> String {
        fs::read_to_string(self.complained.path()).unwrap_or_default()
    }

    /// Of all its threads, as the scheduler counts it.
    fn cpu_ns(&self) -> Result<u64> {
        let mut sum = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.program.id()))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            let first = text.split_whitespace().next().context("schedstat without a number")?;
            sum += first.parse::<u64>()?;
        }
        Ok(sum)
    }

    fn memory(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.program.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
        let kib = line.split_whitespace().next().context("VmHWM without a number")?.parse::<u64>()?;
        Ok(kib * 1024)
    }
}

/// `taskset` replaces itself by the program that follows.
fn on_one_core(pair: &Pair) -> std::process::Command {
    let mut command = pair.right().command("taskset");
    command.args(["--cpu-list", READERS]);
    command
}

/// The core on which readers are; the sender goes where the kernel likes.
const READERS: &str = "1";

const READY_WITHIN: Duration = Duration::from_secs(10);

fn counts_of_probe(lines: &str) -> Result<(u64, u64)> {
    let (mut seen, mut lost) = (0, 0);
    for line in lines.lines() {
        let report: Value = serde_json::from_str(line).with_context(|| format!("not a report: {line}"))?;
        for capture in report["captures"].as_array().context("a report without captures")? {
            let count = |name: &str| capture[name].as_u64().unwrap_or(0);
            seen += count("seen");
            lost += count("lost_ring") + count("lost_kernel");
        }
    }
    Ok((seen, lost))
}

fn counts_of_tcpdump(words: &str) -> Result<(u64, u64)> {
    let count = |what: &str| {
        let line = words.lines().find(|line| line.contains(what))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let both = count("packets captured").zip(count("dropped by kernel"));
    both.with_context(|| format!("tcpdump did not count: {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_periods_and_captures_add_up() {
        let period = r#"{"captures":[{"seen":5,"lost_ring":1,"lost_kernel":2},{"seen":7}]}"#;
        assert_eq!(counts_of_probe(&format!("{period}\n{period}\n")).unwrap(), (24, 6));
        assert!(counts_of_probe("{}\n").is_err());
    }

    #[test]
    fn tcpdump_counts_at_its_end() {
        let words = "tcpdump: listening on lan\n12 packets captured\n15 packets received by filter\n3 packets dropped by kernel\n";
        assert_eq!(counts_of_tcpdump(words).unwrap(), (12, 3));
        assert!(counts_of_tcpdump("tcpdump: no such device").is_err());
    }
}
