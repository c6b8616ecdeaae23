use netaware_record::passive::Period;
use netaware_units::Wall;
use netaware_wire::lmap::FromCollector;

use super::probe::{Probe, report};
use super::{TWO, start};

const PERIOD: Period = Period { from: Wall(1_000_000_000), until: Wall(2_000_000_000) };

#[test]
fn a_probe_with_its_key_is_let_in_and_told_its_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), TWO);
    let mut probe = Probe::join(collector.address, "a");
    let instruction = probe.instruction();
    assert_eq!(instruction.tasks.keys().collect::<Vec<_>>(), ["delay"]);
    assert_eq!((instruction.period_ms, instruction.seed.len()), (1000, 32));
    let view = collector.ask("/api/v1/probes/a");
    assert_eq!((&view["connected"], &view["interfaces"][0]), (&true.into(), &"eth0".into()));
}

#[test]
fn who_lies_about_its_name_is_refused_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), TWO);
    for (name, key) in [("a", "key of b"), ("nobody", "key of a"), ("b", "")] {
        let why = Probe::try_join(collector.address, name, key, 1).err().unwrap();
        assert!(why.starts_with("the collector does not know a probe of this name with this key"), "{why}");
    }
    assert_eq!(collector.ask("/api/v1/probes/a")["counts"]["refused"], 1);
    let mut liar = Probe::join(collector.address, "a");
    let other = serde_json::to_vec(&report("b", 1, PERIOD, 0)).unwrap();
    liar.bytes(1, &[], &other);
    let refusal = liar.hear_until(|message| match message {
        FromCollector::Refusal { why, .. } => Some(why),
        _ => None,
    });
    assert_eq!(refusal, "a report in another probe's name");
    assert_eq!(collector.ask("/api/v1/probes/a")["counts"]["lies"], 1);
    assert_eq!(collector.ask("/api/v1/probes/b")["counts"]["batches"], 0);
}

#[test]
fn a_second_probe_of_a_name_is_told_that_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), TWO);
    let _first = Probe::join(collector.address, "a");
    let why = Probe::try_join(collector.address, "a", "key of a", 2).err().unwrap();
    assert!(why.contains("another probe named 'a' is connected from 127.0.0.1"), "{why}");
    Probe::try_join(collector.address, "a", "key of a", 1).unwrap();
}

#[test]
fn what_comes_again_is_not_counted_again_and_a_restart_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), TWO);
    let mut probe = Probe::join(collector.address, "a");
    for sequence in [1, 2, 2, 1, 5] {
        probe.batch(sequence, PERIOD, &[]);
    }
    probe.until_taken(5);
    let counts = &collector.ask("/api/v1/probes/a")["counts"];
    assert_eq!(
        (&counts["batches"], &counts["duplicates"], &counts["missing"]),
        (&3.into(), &2.into(), &2.into())
    );
    collector.end();

    let collector = start(folder.path(), TWO);
    let mut probe = Probe::join(collector.address, "a");
    assert_eq!(probe.taken, 5);
    probe.batch(5, PERIOD, &[]);
    probe.batch(6, PERIOD, &[]);
    probe.until_taken(6);
    let rows = collector.ask("/api/v1/rows/digests?from=0");
    assert_eq!(rows["items"].as_array().unwrap().len(), 4, "1, 2, 5 and 6, each once");
    let other = Probe::try_join(collector.address, "b", "key of b", 1).unwrap();
    assert_eq!(other.taken, 0);
}

#[test]
fn noise_is_turned_away() {
    use std::io::{ErrorKind, Read, Write};
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), TWO);
    for noise in
        [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"[..], b"SSH-2.0-OpenSSH_9.2\r\n", b"NAWprb\x02\nxxxx"]
    {
        let mut stream = std::net::TcpStream::connect(collector.address).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        stream.write_all(noise).unwrap();
        let mut rest = Vec::new();
        // Closed or reset, and no answer.
        let ended = stream.read_to_end(&mut rest);
        let is_over = ended.as_ref().map_or_else(|why| why.kind() == ErrorKind::ConnectionReset, |_| true);
        assert!(is_over && rest.is_empty(), "{ended:?} {rest:?}");
    }
    Probe::join(collector.address, "a");
}
