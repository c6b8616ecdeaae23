//! What the main job says of loopback on a machine that does nothing else. Nightly runs it ten
//! times.

use netaware_record::Side;
use netaware_testkit::program::run;
use netaware_units::Span;

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn on_loopback_the_host_limits_tcp_and_the_promised_time_is_kept() {
    let finished = run(&["test", "--format", "json"], Span::from_secs(40)).exits_with(0);
    assert!(finished.took < Span::from_secs(25), "about 15 s were promised: {}", finished.took);
    let record = finished.record();
    let limits: Vec<_> = record.versions.iter().flat_map(|it| &it.tcp).map(|it| &it.limit).collect();
    assert_eq!(limits.len(), 8, "one stream and several, up and down, over both versions");
    for limit in limits {
        assert_eq!(limit.side, Side::Host, "{limit:#?}");
    }
}
