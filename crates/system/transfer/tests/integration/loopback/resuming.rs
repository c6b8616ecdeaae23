//! What broke off goes on.

use std::fs;
use std::path::Path;

use netaware_io::stop::StopFlag;
use netaware_transfer::{Broken, Progress, SendReport};

use super::ends::{Ends, noise, sent_with};

const LARGE: usize = 192 << 20;

/// Sends until some of it has moved.
fn broken_off(ends: &Ends, file: &Path) -> SendReport {
    let stop = StopFlag::new();
    let report = sent_with(&ends.request(&[file]), &stop, |progress| {
        if let Progress::Moved { done, .. } = progress
            && done > 8 << 20
        {
            stop.raise();
        }
    });
    assert!(matches!(report.ended, Some(Broken::Stopped)), "{report:?}");
    report
}

#[test]
fn a_transfer_that_broke_off_goes_on_where_it_was() {
    let ends = Ends::new();
    let content = noise(3, LARGE);
    let file = ends.put("large", &content);
    let partial = ends.target.path().join(".large.netaware-part");
    // On a fast host all of it may have left before the sender hears that it is to stop: then there is nothing to go on with.
    let resumed = (0..10).any(|_| {
        broken_off(&ends, &file);
        let report = ends.send(&[&file]);
        assert!(ends.got("large") == content && !partial.exists());
        fs::remove_file(ends.target.path().join("large")).unwrap();
        let went_on = report.resumed > 0 && report.sent + report.resumed == LARGE as u64;
        assert!(report.is_complete() && (report.present == 1 || went_on), "{report:?}");
        report.present == 0
    });
    assert!(resumed, "ten times nothing was left to send");
}

#[test]
fn a_damaged_partial_file_is_found_and_sent_anew() {
    let ends = Ends::new();
    let content = noise(4, 1 << 20);
    let file = ends.put("file", &content);
    let partial = ends.target.path().join(".file.netaware-part");
    let mut damaged = content[..700_000].to_vec();
    damaged[123_456] ^= 1;
    for (there, resumed) in [(damaged, 0), (content[..700_000].to_vec(), 700_000), (noise(9, 2 << 20), 0)] {
        fs::write(&partial, &there).unwrap();
        let mut notes = 0;
        let report = sent_with(&ends.request(&[&file]), &StopFlag::new(), |progress| {
            notes += u32::from(matches!(progress, Progress::Note(_)));
        });
        assert!(report.is_complete() && report.resumed == resumed, "{report:?}");
        assert_eq!(notes > 0, resumed == 0 && there.len() < content.len());
        assert!(ends.got("file") == content && !partial.exists());
        fs::remove_file(ends.target.path().join("file")).unwrap();
    }
}

#[test]
fn whole_content_that_lacked_only_its_name_is_not_sent_again() {
    let ends = Ends::new();
    let content = noise(5, 1 << 20);
    let file = ends.put("file", &content);
    fs::write(ends.target.path().join(".file.netaware-part"), &content).unwrap();
    let report = ends.send(&[&file]);
    assert_eq!((report.is_complete(), report.sent, report.resumed), (true, 0, 1 << 20), "{report:?}");
    assert!(ends.got("file") == content);
}
