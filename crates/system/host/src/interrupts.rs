//! Which interrupts a network card raises, how often, and to which cores they go.
//!
//! Measures counts of `/proc/interrupts` (proc(5)). Assumes that an interrupt belongs to an
//! interface if the card lists it (`msi_irqs` in sysfs) or its name holds the interface's. A shared
//! line would count for both; cards of today have their own.
//!
//! [`ModerationSnapshot`] compares interrupts with packets over a time. **Biased**: time without
//! packets is in it, so the period is an upper bound; the kernel polls under load without
//! interrupts, which lengthens it too, and that is how packets are then handed over.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use netaware_record::{Fact, InterruptLine, ObservedModeration};
use netaware_units::Span;

use crate::kernel_file;

/// A line of `/proc/interrupts` with a number.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    number: u32,
    /// By core.
    counts: Vec<(u32, u64)>,
    name: String,
}

impl Line {
    fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    fn busiest(&self) -> Option<u32> {
        self.counts
            .iter()
            .filter(|(_, count)| *count > 0)
            .max_by_key(|(_, count)| *count)
            .map(|(core, _)| *core)
    }

    /// "eth0", "eth0-rx-0", "mlx5_comp0@eth0", but not "eth01".
    fn names(&self, interface: &str) -> bool {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        self.name.match_indices(interface).any(|(at, found)| {
            let before = self.name[..at].chars().next_back();
            let after = self.name[at + found.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
    }
}

/// The interrupts of an interface.
pub(crate) fn of_interface(interface: &str) -> Fact<Vec<InterruptLine>> {
    let Some(text) = kernel_file::read("/proc/interrupts") else {
        return Fact::not_known("/proc/interrupts cannot be read");
    };
    let lines = lines_of(interface, parse(&text));
    if lines.is_empty() {
        return Fact::not_known("no interrupt of /proc/interrupts bears its name or is listed by its device");
    }
    Fact::Known(lines.into_iter().map(told).collect())
}

fn told(line: Line) -> InterruptLine {
    let affinity = |of: &str| kernel_file::read_line(format!("/proc/irq/{}/{of}", line.number));
    let cores = affinity("effective_affinity_list").or_else(|| affinity("smp_affinity_list"));
    InterruptLine {
        number: line.number,
        cores: Fact::or(cores, format!("/proc/irq/{}/smp_affinity_list cannot be read", line.number)),
        busiest_core: line.busiest(),
        count: line.total(),
        name: line.name,
    }
}

fn lines_of(interface: &str, lines: Vec<Line>) -> Vec<Line> {
    let listed = listed_by_device(interface);
    lines.into_iter().filter(|line| listed.contains(&line.number) || line.names(interface)).collect()
}

/// Numbers that the card's device lists. A virtual function's or virtio's device is the parent of
/// what stands in sysfs.
fn listed_by_device(interface: &str) -> BTreeSet<u32> {
    let Some(device) = sysfs_device(interface) else { return BTreeSet::new() };
    let folders = device.ancestors().take(PARENTS);
    let lists = folders.filter_map(|folder| fs::read_dir(folder.join("msi_irqs")).ok());
    let names = lists.take(1).flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}

/// Sysfs shows the network namespace in which it was mounted, so a name there may be somebody
/// else's: the index must agree.
fn sysfs_device(interface: &str) -> Option<PathBuf> {
    if interface.is_empty() || interface.contains('/') || interface.starts_with('.') {
        return None;
    }
    let folder = Path::new("/sys/class/net").join(interface);
    let there: u32 = kernel_file::read_line(folder.join("ifindex"))?.parse().ok()?;
    (there == crate::interface::index_of(interface)?)
        .then(|| folder.join("device").canonicalize().ok())
        .flatten()
}

fn parse(text: &str) -> Vec<Line> {
    let mut lines = text.lines();
    let heading = lines.next().unwrap_or_default();
    let cores: Vec<u32> =
        heading.split_whitespace().filter_map(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
    lines.filter_map(|line| parse_line(line, &cores)).collect()
}

fn parse_line(line: &str, cores: &[u32]) -> Option<Line> {
    let (number, rest) = line.split_once(':')?;
    let number = number.trim().parse().ok()?;
    let mut words = rest.split_whitespace();
    let mut counts = Vec::with_capacity(cores.len());
    for core in cores {
        counts.push((*core, words.next()?.parse().ok()?));
    }
    let name = words.next_back().unwrap_or_default().to_owned();
    Some(Line { number, counts, name })
}

/// Packets and interrupts at one instant.
#[derive(Debug, Clone, Default)]
pub struct ModerationSnapshot {
    /// Of each interface: packets received and sent, interrupts.
    counts: BTreeMap<String, (u64, u64)>,
}

impl ModerationSnapshot {
    /// Reads the counters of these interfaces; those without interrupts of their own are left out.
    pub fn take(interfaces: &[String]) -> Self {
        let packets =
            kernel_file::read("/proc/thread-self/net/dev").map(|text| packets(&text)).unwrap_or_default();
        let lines = kernel_file::read("/proc/interrupts").map(|text| parse(&text)).unwrap_or_default();
        let count = |name: &String| {
            let of = lines_of(name, lines.clone());
            let raised = of.iter().fold(0_u64, |sum, line| sum.saturating_add(line.total()));
            (!of.is_empty()).then_some((name.clone(), (*packets.get(name)?, raised)))
        };
        Self { counts: interfaces.iter().filter_map(count).collect() }
    }

    /// What passed since `earlier`, `window` ago by the caller's clock.
    #[must_use]
    pub fn since(&self, earlier: &Self, window: Span) -> Vec<ObservedModeration> {
        let both = self.counts.iter().filter_map(|(name, now)| Some((name, now, earlier.counts.get(name)?)));
        both.map(|(name, now, before)| ObservedModeration {
            interface: name.clone(),
            window,
            packets: now.0.saturating_sub(before.0),
            interrupts: now.1.saturating_sub(before.1),
        })
        .collect()
    }
}

/// The period of handing over that these counts show, or why they show none.
pub(crate) fn observed_period(seen: Option<&ObservedModeration>) -> Fact<Span> {
    let Some(seen) = seen else {
        return Fact::not_known("its interrupts could not be counted");
    };
    let ObservedModeration { window, packets, interrupts, .. } = seen;
    if *packets < FEWEST_PACKETS || *interrupts == 0 {
        return Fact::not_known(format!(
            "{packets} packets and {interrupts} interrupts in {window}: too few; run it while traffic passes"
        ));
    }
    let each = *packets as f64 / *interrupts as f64;
    if each < FEWEST_IN_A_BATCH {
        return Fact::not_known(format!("{each:.1} packets for each interrupt in {window}: no batches seen"));
    }
    Fact::Known(*window / i64::try_from(*interrupts).unwrap_or(i64::MAX))
}

/// Received and sent packets of `/proc/net/dev` by interface.
fn packets(text: &str) -> BTreeMap<String, u64> {
    let of = |line: &str| {
        let (name, counters) = line.rsplit_once(':')?;
        let mut numbers = counters.split_whitespace().map(str::parse::<u64>);
        let received = numbers.nth(1)?.ok()?;
        let sent = numbers.nth(7)?.ok()?;
        Some((name.trim().to_owned(), received.saturating_add(sent)))
    };
    text.lines().filter_map(of).collect()
}

/// Device, its parent, and that one's.
const PARENTS: usize = 3;
/// Fewer say more of who sent them than of the card.
const FEWEST_PACKETS: u64 = 1000;
const FEWEST_IN_A_BATCH: f64 = 1.5;

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "           CPU0       CPU2\n\
         \u{20}24:          1          0  IO-APIC   5-edge      ACPI:Ged\n\
         \u{20}41:         19         80  PCI-MSIX-0000:00:04.0   1-edge      eth0-rx-0\n\
         \u{20}42:          0          0  GICv3  27 Level     eth01\n\
         NMI:          7          7   Non-maskable interrupts\n";

    #[test]
    fn lines_with_a_number_have_counts_by_core_and_a_name() {
        let lines = parse(TABLE);
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[1], Line { number: 41, counts: vec![(0, 19), (2, 80)], name: "eth0-rx-0".into() });
        assert_eq!((lines[1].total(), lines[1].busiest(), lines[2].busiest()), (99, Some(2), None));
    }

    #[test]
    fn broken_lines_are_left_out() {
        let rows = [
            "",
            "CPU0\n 1: x eth0\n",
            "CPU0 CPU1\n 1: 5\n",
            "CPU0\n 99999999999: 5 a b\n",
            "CPU0\n 1: 99999999999999999999 a b\n",
            "CPU0\n one two three\n",
        ];
        for text in rows {
            assert_eq!(parse(text), [], "{text:?}");
        }
        let bare = parse("CPU0\n 1: 5\n");
        assert_eq!(bare[0].name, "");
        let most = parse("CPU0 CPU1\n 1: 18446744073709551615 1 a\n");
        assert_eq!(most[0].total(), u64::MAX);
    }

    #[test]
    fn an_interrupt_is_an_interfaces_if_its_name_is_a_whole_word_there() {
        let named = |name: &str| Line { number: 1, counts: Vec::new(), name: name.into() }.names("eth0");
        for (name, want) in [
            ("eth0", true),
            ("eth0-rx-0", true),
            ("mlx5_comp0@eth0", true),
            ("i40e-eth0-TxRx-1", true),
            ("eth01", false),
            ("veth0", false),
            ("eth0_x", false),
            ("", false),
        ] {
            assert_eq!(named(name), want, "{name}");
        }
    }

    #[test]
    fn names_that_would_leave_the_folder_have_no_device() {
        for name in ["", "..", "../../etc", "a/b", "nosuchdevice"] {
            assert!(sysfs_device(name).is_none(), "{name:?}");
        }
    }

    #[test]
    fn packets_of_both_ways_are_counted() {
        let text = "Inter-| Receive | Transmit\n face |bytes packets\n  eth0: 100 7 0 0 0 0 0 0 200 5 0 0 0 0 0 0\n x: 1\n";
        assert_eq!(packets(text), BTreeMap::from([("eth0".to_owned(), 12)]));
    }

    fn seen(packets: u64, interrupts: u64) -> ObservedModeration {
        ObservedModeration { interface: "eth0".into(), window: Span::from_secs(1), packets, interrupts }
    }

    #[test]
    fn a_period_is_told_only_if_batches_were_seen() {
        assert_eq!(observed_period(Some(&seen(100_000, 10_000))), Fact::Known(Span::from_micros(100)));
        for (packets, interrupts, why) in
            [(999, 10, "too few"), (5000, 0, "too few"), (5000, 5000, "no batches seen")]
        {
            let fact = observed_period(Some(&seen(packets, interrupts)));
            assert!(fact.why().unwrap().not_known.contains(why), "{fact:?}");
        }
        assert!(observed_period(None).known().is_none());
    }
}
