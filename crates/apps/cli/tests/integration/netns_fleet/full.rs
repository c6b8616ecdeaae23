//! A collector whose disk fills up while probes report: the probes keep what is refused, and
//! nothing is lost.

use std::path::PathBuf;

use netaware_netns::{Star, permitted};
use netaware_units::Span;

use super::sites::{FLOW, Sites};

/// The size of the disk on which the store and the state folder are.
const DISK: &str = "12m";
const DISK_BYTES: usize = 12 << 20;

/// A gauge or counter of the collector's own.
fn metric(sites: &Sites, name: &str) -> u64 {
    let text = sites.ask("/metrics");
    let name = format!("netaware_collector_{name} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&name));
    line.and_then(|value| value.parse::<f64>().ok()).unwrap_or_else(|| panic!("no {name}: {text}")) as u64
}

/// Takes all room that is left on the collector's disk; returns the path of what takes it.
fn fill(sites: &Sites) -> PathBuf {
    let path = sites.disk().join("ballast");
    let mut file = std::fs::File::create(&path).unwrap();
    let mut written = 0;
    for piece in [1 << 16, 1 << 12] {
        while std::io::Write::write_all(&mut file, &vec![1; piece]).is_ok() {
            written += piece;
            assert!(written <= DISK_BYTES, "this is not the small disk");
        }
    }
    path
}

#[test]
fn what_a_full_disk_refuses_stays_with_the_probes_and_comes_when_there_is_room() {
    if !permitted() {
        return;
    }
    let join = format!(
        "[tasks.delay]
on = [\"all\"]
kind = \"digest\"
filter = \"ip and udp port {FLOW}\"
[joins.path]
task = \"delay\"
points = [\"bern\", \"oslo\"]
pairs = [[\"bern\", \"oslo\"]]
patience = \"500ms\"
clocks_apart = \"100ms\"
report_patience = \"1min\"
"
    );
    let names = ["bern", "oslo"];
    let mut sites = Sites::start_on_a_disk_of(DISK, &names, &names, &join);
    sites.drop_doomed();
    sites.probe("bern", |star: &Star| &star.sites()[0]);
    sites.probe("oslo", |star| &star.sites()[1]);
    sites.watch(2);
    assert_eq!((metric(&sites, "store_up"), metric(&sites, "store_failures_total")), (1, 0));
    sites.flow(200, |_| {});

    let ballast = fill(&sites);
    // Reports go on meanwhile, and so does the traffic.
    sites.flow(600, |_| {});
    sites.until("the store refuses", Span::from_secs(30), |it| metric(it, "store_up") == 0);
    let trouble = sites.json("/api/v1/health")["trouble"].as_str().unwrap().to_owned();
    assert!(trouble.contains("full"), "{trouble}");
    let failures = metric(&sites, "store_failures_total");
    assert!(failures > 0);
    let told =
        |it: &Sites| it.complaints().iter().all(|said| said.contains("the collector's store takes nothing"));
    sites.until("both probes are told", Span::from_secs(30), told);
    sites.flow(200, |_| {});
    // What came meanwhile was refused as well.
    sites.until("it refuses again", Span::from_secs(30), |it| metric(it, "store_failures_total") > failures);

    std::fs::remove_file(ballast).unwrap();
    sites.until("all is joined", Span::from_secs(60), |it| {
        it.captures_lost() || (it.is_settled() && it.joined() >= 1000)
    });
    assert_eq!((metric(&sites, "store_up"), metric(&sites, "rows_given_up_total")), (1, 0));
    if sites.captures_lost() {
        return sites.end_without_captures("bern", "oslo", [1000, 950]);
    }
    let row = sites.delay("bern", "oslo");
    println!("{row:?}");
    assert_eq!((row.packets, row.matched, row.lost, row.unobserved), (1000, 950, 50, 0));
    let probes = sites.json("/api/v1/probes");
    assert_eq!(probes.as_array().unwrap().len(), 2);
    for probe in probes.as_array().unwrap() {
        let counts = ["missing", "lies"].map(|name| probe["counts"][name].as_u64());
        assert_eq!((counts, probe["given_up"].as_u64()), ([Some(0); 2], Some(0)), "{probe:#}");
        assert!(probe["counts"]["connections"].as_u64() > Some(1), "it came back: {probe:#}");
    }
}
