//! Deep queues, whose draining takes as long as the transfer.

use netaware_netns::permitted;
use netaware_record::Outcome;
use netaware_units::Span;

use super::{holds, only, over};

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn slow_paths_with_deep_queues_are_measured_and_drained_in_every_direction() {
    if !permitted() {
        return;
    }
    let ways: [&[&str]; 4] =
        [&["-t", "8s"], &["-R", "-t", "8s"], &["-P", "4", "-R", "-t", "8s"], &["--bidir", "-t", "8s"]];
    for (rate, link) in [("64kbit/s", 64_000.0), ("128kbit/s", 128_000.0)] {
        for way in ways {
            // 8 s by the plan; what the queue holds takes 11 s at 64 kbit/s and is said in the
            // record.
            let (record, report) = over(rate, "90kB", way, Span::from_secs(40));
            assert_eq!(record.outcome, Outcome::Complete, "{rate} {way:?}: {record:#?}, {report}");
            for tcp in record.versions.iter().flat_map(|version| &version.tcp) {
                if way[0] != "--bidir" {
                    holds(tcp, link);
                }
            }
        }
    }
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn at_20_kbit_per_s_a_transfer_still_ends_with_its_rate() {
    if !permitted() {
        return;
    }
    for way in [&["-t", "10s"][..], &["-R", "-t", "10s"]] {
        let (record, _) = over("20kbit/s", "30kB", way, Span::from_secs(60));
        let tcp = only(&record);
        assert_eq!(record.outcome, Outcome::Complete, "{way:?}: {record:#?}");
        assert!(tcp.goodput.is_some_and(|rate| (10_000..=20_000).contains(&rate.0)), "{tcp:#?}");
    }
}
