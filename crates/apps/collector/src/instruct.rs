//! From the file to what one probe is told.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hmac::{Hmac, KeyInit, Mac};
use netaware_wire::lmap::{Instruction, Task, What};
use sha2::Sha256;

use crate::config::{Config, Mesh, is_throughput, on_interface};

/// Whether it watches packets rather than sends some.
pub(crate) fn is_passive(what: &What) -> bool {
    !matches!(what, What::Stamp { .. } | What::Measure { .. })
}

/// All that the probe of that name is to do.
pub fn instruction(config: &Config, probe: &str, number: u64, seed: &str) -> Instruction {
    let mut tasks = BTreeMap::new();
    let own = config.probes.get(probe).and_then(|probe| probe.interface.as_ref());
    for (name, rule) in &config.tasks {
        if !config.members(&rule.on).contains(probe) {
            continue;
        }
        for place in config.places(name, probe) {
            let task = rule.task(own);
            let interface = place.map(str::to_owned).or(task.interface.clone());
            tasks.insert(on_interface(name, place), Task { interface, ..task });
        }
    }
    for (name, mesh) in &config.meshes {
        let members = config.members(&mesh.members);
        if members.contains(probe) {
            let others = members.iter().filter(|other| **other != probe);
            tasks.extend(others.map(|other| (run_name(name, other), toward(config, mesh, other))));
        }
    }
    Instruction {
        number,
        tasks,
        suppression: config.suppression.clone(),
        seed: seed.to_owned(),
        period_ms: u32::try_from(config.period().0 / 1_000_000).unwrap_or(u32::MAX),
    }
}

/// Name of a mesh's task towards one member.
pub(crate) fn run_name(mesh: &str, to: &str) -> String {
    format!("{mesh}.{to}")
}

fn toward(config: &Config, mesh: &Mesh, other: &str) -> Task {
    let probe = config.probes.get(other);
    let address = probe.and_then(|probe| probe.address).map(literal);
    let peer = Some(other.to_owned());
    let what = if mesh.method == "stamp" {
        What::Stamp {
            target: probe.and_then(|probe| probe.stamp.clone()).or(address).unwrap_or_default(),
            interval_ns: mesh.interval.map_or(10_000_000, |time| time.0.0.unsigned_abs()),
            length: mesh.length.unwrap_or(44),
            peer,
            version: None,
        }
    } else {
        What::Measure {
            command: mesh.method.clone(),
            target: probe.and_then(|probe| probe.responder.clone()).or(address).unwrap_or_default(),
            options: mesh.options.clone(),
            peer,
        }
    };
    // What fills a path starts when the collector says so, and only then.
    let own = mesh.every.filter(|_| !is_throughput(&mesh.method));
    let schedule = crate::config::schedule(own, mesh.spread);
    Task { interface: None, filter: None, what, schedule }
}

/// Without brackets: a colon in it is no port's then.
fn literal(address: IpAddr) -> String {
    address.to_string()
}

/// The digests' seed, made from the fleet's secret so that it can be told to probes without telling
/// the secret: 32 hexadecimal digits.
pub fn seed(secret: &[u8]) -> String {
    use std::fmt::Write;
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return "0".repeat(32) };
    mac.update(b"netaware digest seed 1");
    let digest = mac.finalize().into_bytes();
    digest.iter().take(16).fold(String::with_capacity(32), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLEET: &str = r#"
[probes.a]
key_file = "a.key"
address = "192.0.2.1"
interface = "eth1"
[probes.b]
key_file = "b.key"
address = "2001:db8::2"
stamp = "b.example:8620"
[probes.c]
key_file = "c.key"
[tasks.delay]
on = ["all"]
kind = "digest"
[meshes.owd]
members = ["a", "b"]
method = "stamp"
[meshes.bulk]
members = ["a", "b"]
method = "tcp"
every = "10min"
options = { duration = "5s" }
"#;

    #[test]
    fn each_probe_is_told_its_part_and_no_more() {
        let config = Config::read(FLEET).unwrap();
        let names = |probe| -> Vec<String> { instruction(&config, probe, 3, "").tasks.into_keys().collect() };
        assert_eq!(names("a"), ["bulk.b", "delay", "owd.b"]);
        assert_eq!(names("b"), ["bulk.a", "delay", "owd.a"]);
        assert_eq!(names("c"), ["delay"]);
        let of_a = instruction(&config, "a", 3, "").tasks;
        assert_eq!(of_a["delay"].interface.as_deref(), Some("eth1"));
        assert!(matches!(&of_a["owd.b"].what, What::Stamp { target, .. } if target == "b.example:8620"));
        assert!(matches!(&of_a["bulk.b"].what, What::Measure { target, .. } if target == "2001:db8::2"));
        assert_eq!(of_a["bulk.b"].schedule, None);
    }

    #[test]
    fn a_probe_whose_interfaces_are_points_runs_the_task_on_each() {
        let join = "[joins.j]\ntask = \"delay\"\npoints = [\"a/lan\", \"a/wan\", \"b\"]\n";
        let config = Config::read(&format!("{FLEET}{join}")).unwrap();
        let tasks = |probe| -> Vec<(String, Option<String>)> {
            let all = instruction(&config, probe, 3, "").tasks.into_iter();
            all.filter(|(name, _)| name.starts_with("delay"))
                .map(|(name, task)| (name, task.interface))
                .collect()
        };
        let on = |name: &str, interface: &str| (name.to_owned(), Some(interface.to_owned()));
        assert_eq!(tasks("a"), [on("delay/lan", "lan"), on("delay/wan", "wan")]);
        assert_eq!(tasks("b"), [("delay".to_owned(), None)]);
        assert_eq!(tasks("c"), [("delay".to_owned(), None)]);
    }

    #[test]
    fn seeds_differ_as_secrets_do_and_stay_the_same() {
        assert_eq!(seed(b"one"), seed(b"one"));
        assert_ne!(seed(b"one"), seed(b"two"));
        assert_eq!(seed(b"one").len(), 32);
    }
}
