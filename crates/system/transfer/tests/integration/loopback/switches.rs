//! Changes of the IP version that a person wants.

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_record::IpVersion;
use netaware_transfer::{Progress, Reason, Wanted};
use netaware_units::Span;

use super::ends::{Ends, noise, sent_with};

#[test]
fn each_share_changes_the_version_and_loses_nothing() {
    let ends = Ends::new();
    let content = noise(7, 256 << 20);
    let file = ends.put("file", &content);
    let mut request = ends.request(&[&file]);
    request.switch = "4,at=40%,at=80%".parse().unwrap();
    // Both connections are there before the first share.
    let mut waited = false;
    let report = sent_with(&request, &StopFlag::new(), |progress| {
        if matches!(progress, Progress::Moved { .. }) && !waited {
            waited = true;
            clock::sleep(Span::from_secs(1));
        }
    });
    assert!(report.is_complete() && report.missed.is_empty(), "{report:?}");
    let wanted: Vec<_> =
        report.switches.iter().filter(|it| it.reason == Reason::OwnWish).map(|it| it.to).collect();
    assert_eq!(wanted[wanted.len() - 2..], [IpVersion::V6, IpVersion::V4], "{report:?}");
    assert!(ends.got("file") == content);
}

#[test]
fn a_switch_that_cannot_be_is_told() {
    let ends = Ends::new();
    let file = ends.put("file", &noise(8, 1 << 20));
    let mut request = ends.request(&[&file]);
    (request.wanted, request.switch) = (Wanted::Only(IpVersion::V6), "at=50%".parse().unwrap());
    let report = sent_with(&request, &StopFlag::new(), |_| {});
    assert_eq!((report.is_complete(), &report.missed[..]), (true, &[50.0][..]), "{report:?}");
}
