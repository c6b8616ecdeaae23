use netaware_record::passive::Period;
use netaware_units::Wall;

use super::probe::Probe;
use super::{TWO, start};

/// As many as the descriptors of one process allow for both ends, a thousand at most.
fn how_many() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap_or_default();
    let soft: usize = line.split_whitespace().nth(3).and_then(|word| word.parse().ok()).unwrap_or(1024);
    (soft.saturating_sub(300) / 2).min(1000)
}

#[test]
fn a_thousand_probes_are_served_and_none_is_counted_twice() {
    let count = how_many();
    let folder = tempfile::tempdir().unwrap();
    let mut text = TWO.to_owned();
    for n in 0..count {
        let name = format!("p{n}");
        std::fs::write(folder.path().join(format!("{name}.key")), format!("key of {name}")).unwrap();
        text.extend(["[probes.", &name, "]\nkey_file = \"", &name, ".key\"\n"]);
    }
    let collector = start(folder.path(), &text);
    let mut probes: Vec<Probe> =
        (0..count).map(|n| Probe::join(collector.address, &format!("p{n}"))).collect();
    let period = Period { from: Wall(1), until: Wall(1_000_000_001) };
    for sequence in 1..=3 {
        for probe in &mut probes {
            probe.batch(sequence, period, &[]);
        }
    }
    for probe in &mut probes {
        probe.until_taken(3);
    }
    let views = collector.ask("/api/v1/probes");
    let views = views.as_array().unwrap();
    let taken: u64 = views.iter().map(|view| view["counts"]["batches"].as_u64().unwrap()).sum();
    assert_eq!(taken, 3 * count as u64);
    assert_eq!(views.iter().filter(|view| view["connected"] == true).count(), count);
}
