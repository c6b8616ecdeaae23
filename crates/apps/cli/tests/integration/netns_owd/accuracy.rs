//! How near delays are to the truth, with the emulator at its best.

use super::*;

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn delays_of_each_way_exceed_the_paths_by_microseconds() {
    if !permitted() {
        return;
    }
    let (record, report) = over_a_lossy_path();
    let own = report.lateness_p50.unwrap_or_default() + report.oversleep_p99.unwrap_or_default();
    println!("the lab's lateness: {own}");
    let late = late(&record, Span::from_micros(100), Span::from_micros(20) + own);
    assert!(late.is_empty(), "{}\n{report}", late.join("\n"));
}
