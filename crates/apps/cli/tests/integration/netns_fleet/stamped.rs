//! A probe's own STAMP packets, of which it says delay and loss itself, watched on their way by the
//! digests of both ends.

use std::collections::BTreeMap;

use netaware_lab::Side;
use netaware_netns::{Transport, permitted, wait_until_bound};
use netaware_record::IpVersion;
use netaware_record::passive::DelayRow;
use netaware_testkit::figures::judge;
use netaware_testkit::program::{Program, netaware_path};
use netaware_units::Span;
use serde_json::Value;

use super::{FLEET, Fleet, why_captures_lack};

const STAMP: u16 = 862;

/// What one method says of the way from a point, by the beginning of the period.
fn periods(rows: &Value, method: &str, from: &str) -> BTreeMap<i64, DelayRow> {
    let is_it =
        |item: &&Value| (&item["row"]["method"], &item["row"]["from"]) == (&method.into(), &from.into());
    let of_it = rows.as_array().unwrap().iter().filter(is_it);
    let row = |item: &Value| serde_json::from_value(item["row"].clone()).unwrap();
    of_it.map(|item| (item["period"]["from"].as_i64().unwrap(), row(item))).collect()
}

fn merged(rows: impl IntoIterator<Item = DelayRow>) -> DelayRow {
    let sum = rows.into_iter().reduce(|mut sum, row| {
        sum.merge(&row);
        sum
    });
    sum.expect("a row at least")
}

fn mean_of(row: &DelayRow) -> f64 {
    row.delay.sum_ns as f64 / row.delay.count as f64
}

#[test]
fn a_stamp_task_and_the_digests_of_its_packets_count_what_the_path_did() {
    if permitted() {
        stamps_and_digests_agree(super::SHARED_CORES_NS[0]);
    }
}

/// Counts are exact in every run; mean delays are within `close_ns` of the lab's own, and of each
/// other's stated bound.
pub(crate) fn stamps_and_digests_agree(close_ns: f64) {
    let fleet = super::start(100, tempfile::tempdir().unwrap());
    let mut serve = fleet.lab.command(Side::B, netaware_path());
    serve.args(["serve", "--stamp"]);
    let reflector = Program::start(serve);
    wait_until_bound(reflector.id(), Transport::Udp, STAMP)
        .unwrap_or_else(|error| panic!("{error}: {}", reflector.complained()));
    fleet.until("both probes watch", Span::from_secs(20), Fleet::watches);
    let target = fleet.lab.address(Side::B, IpVersion::V4);
    let flow = format!(
        "{FLEET}\n[tasks.owd]\non = [\"a\"]\nkind = \"stamp\"\ntarget = \"{target}\"\npeer = \"b\"\n\
         interval_ns = 5000000\nlength = 100\n"
    );
    fleet.tell("PUT", "/api/v1/config", &flow);
    let rows = |it: &Fleet| it.json("/api/v1/delays?from=-1h&version=4&limit=2000")["items"].clone();
    fleet.until("rows of the task", Span::from_secs(30), |it| periods(&rows(it), "active", "a").len() >= 5);
    let applied: Value = serde_json::from_str(&fleet.tell("PUT", "/api/v1/config", FLEET)).unwrap();
    fleet.until("the task has ended", Span::from_secs(20), |it| {
        it.json("/api/v1/probes")[0]["following"] == applied["number"]
    });
    // What it had sent before is under way for less than a period.
    let batches = |it: &Fleet| it.json("/api/v1/probes")[0]["counts"]["batches"].as_u64().unwrap();
    let before = batches(&fleet);
    fleet.until("a further period", Span::from_secs(20), |it| batches(it) >= before + 2);
    fleet.all_is_joined(0);
    if let Some(why) = why_captures_lack(&fleet.json("/api/v1/probes")) {
        return fleet.end_without_captures(&why);
    }
    let rows = rows(&fleet);
    let (truth, report) = fleet.truth();
    let mut far = Vec::new();
    let mut round_trips = [0.0; 2];
    for (from, side) in [("a", Side::A), ("b", Side::B)] {
        let true_one = truth.sum(|packet| (packet.from, packet.version) == (Some(side), Some(IpVersion::V4)));
        let [active, passive] = ["active", "passive"].map(|method| periods(&rows, method, from));
        let all = merged(passive.values().cloned());
        println!("from {from}: {true_one:?}\n  {} periods of {}", active.len(), passive.len());
        assert!(true_one.sent > 300, "{true_one:?}");
        assert_eq!(
            (all.packets, all.lost, all.unobserved),
            (true_one.sent, true_one.sent - true_one.delivered, 0),
            "{all:?}"
        );
        let off = (mean_of(&all) - true_one.mean).abs();
        if off > close_ns {
            far.push(format!("from {from}: digests are {off} ns off"));
        }

        // The task's rows of the time before it was ended may lack packets that had no verdict yet.
        let last = *active.keys().next_back().expect("rows of the task");
        assert!(active.len() >= 5, "{active:?}");
        let [active, passive] = [active, passive].map(|rows| {
            let whole = rows.into_iter().filter(|(period, _)| *period < last);
            merged(whole.map(|(_, row)| row))
        });
        println!("  {active:?}\n  {passive:?}");
        assert_eq!((&*active.to, active.unobserved), (&*passive.to, 0), "{active:?}");
        // The sender's stamp and the capture's are apart, so a packet may be in another period.
        let apart = [(active.packets, passive.packets), (active.lost, passive.lost)];
        let apart = apart.map(|(one, other)| one.abs_diff(other));
        assert!(apart[0] <= 10 && apart[1] <= 2, "{apart:?}: {active:?} {passive:?}");
        // The task states how far its clocks may be apart: its delays are right within that.
        let bound = active.clock_bound.expect("a bound").0 as f64;
        let off = (mean_of(&active) - mean_of(&passive)).abs();
        if off > bound + close_ns {
            far.push(format!("from {from}: the task is {off} ns off, and says {bound} at most"));
        }
        round_trips[0] += mean_of(&active);
        round_trips[1] += mean_of(&passive);
    }
    // The sum of both ways does not depend on the clocks.
    let off = (round_trips[0] - round_trips[1]).abs();
    if off > 2.0 * close_ns {
        far.push(format!("round trips are {off} ns apart: {round_trips:?}"));
    }
    judge(&far, &report, super::LATENESS);
}
