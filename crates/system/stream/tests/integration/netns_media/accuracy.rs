//! Where the policy for media goes in real time.

use netaware_stream::{Decision, Event, Reason};

use super::*;

/// Sends over IPv4 for so long, or until half a second after the first decision; returns what was
/// decided, and where it went for that.
fn decided(lab: &Lab, span: Span) -> (Vec<Decision>, Vec<IpVersion>) {
    let (mut decisions, mut went) = (Vec::new(), Vec::new());
    let began_at = clock::now();
    media(lab, None, |opener, now| {
        decisions.extend(opener.decisions());
        went.extend(opener.happened().into_iter().filter_map(|it| match it.event {
            Event::Turning { to, reason: Reason::OwnWish, .. } => Some(to),
            _ => None,
        }));
        let decided = decisions.first().is_some_and(|it: &Decision| now - it.at > Span::from_millis(500));
        decided || now - began_at > span
    });
    println!("{decisions:?} {went:?}");
    (decisions, went)
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn media_stays_away_from_a_version_that_loses_more() {
    if !permitted() {
        return;
    }
    let lab = lab("3%", "10%");
    let (decisions, went) = decided(&lab, Span::from_secs(30));
    lab.end().unwrap();
    assert!(decisions.is_empty() && went.is_empty(), "{decisions:?} {went:?}");
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn media_goes_to_a_version_that_loses_less() {
    if !permitted() {
        return;
    }
    let lab = lab("5%", "0.05%");
    let (decisions, went) = decided(&lab, Span::from_secs(50));
    lab.end().unwrap();
    let [decision] = decisions[..] else { panic!("{decisions:?} {went:?}") };
    assert_eq!(went, [IpVersion::V6]);
    assert!((0.02..0.09).contains(&decision.present) && decision.other < 0.01, "{decision:?}");
}
