//! Packets that somebody on the path rejected, as ICMP messages about them said.
//!
//! **Measures** the errors that the system handed over about packets that had left, and the lost
//! packets in the rows of losses during which they came. **Biased**: systems ration ICMP, so that
//! there are fewer messages than rejected packets, and packets of the same rows that were lost in
//! another way are counted with them.

use std::io;

use netaware_record::SendRefusal;

use super::Findings;
use crate::request::Transport;

/// The warning of one version about its requests.
pub(super) fn warning(found: &Findings) -> Option<String> {
    let beside = found.tcp.iter().filter_map(|round| round.load.as_ref());
    let runs = found.idle.iter().chain(beside).filter(|run| run.transport == Transport::Udp);
    let began_at = runs.clone().map(|run| run.began_at).min()?;
    let mut all: Vec<SendRefusal> = Vec::new();
    for run in runs.clone() {
        let since = run.began_at - began_at;
        for told in &run.rejections {
            let (first, last) = (since + told.first, since + told.last);
            match all.iter_mut().find(|known| known.cause == told.cause) {
                None => all.push(SendRefusal { first, last, ..told.clone() }),
                Some(known) => {
                    known.count = known.count.saturating_add(told.count);
                    (known.first, known.last) = (known.first.min(first), known.last.max(last));
                }
            }
        }
    }
    let rejected = runs.clone().map(|run| run.round.rejected()).sum();
    in_words(&all, rejected, runs.map(|run| run.round.counts().lost).sum(), "requests")
}

/// A sentence about these errors, and so many of the `lost` packets that were lost while they came;
/// `None` where there were no errors.
pub(crate) fn in_words(told: &[SendRefusal], rejected: u64, lost: u64, what: &str) -> Option<String> {
    let each = |told: &SendRefusal| {
        let when = if told.first == told.last {
            format!("at {}", told.first)
        } else {
            format!("from {} to {}", told.first, told.last)
        };
        format!("{} {when} into the measurement: {}{}", told.count, told.cause, meaning(&told.cause))
    };
    let each: Vec<String> = told.iter().map(each).collect();
    let were = if lost == 1 { "was" } else { "were" };
    let fell = match rejected.min(lost) {
        0 => String::new(),
        rejected => format!("{rejected} of the {lost} lost {what} {were} sent when "),
    };
    let each = each.join("; ");
    (!told.is_empty()).then(|| format!("rejected on the way: {fell}ICMP messages came back, {each}"))
}

/// The ICMP messages that the system tells in these words.
fn meaning(cause: &str) -> &'static str {
    let known = MEANINGS.iter().find(|(errno, _)| io::Error::from_raw_os_error(*errno).to_string() == cause);
    known.map_or("", |(_, meaning)| *meaning)
}

/// As Linux turns ICMP messages into errors (`icmp_err_convert`, `icmpv6_err_convert`).
const MEANINGS: [(i32, &str); 5] = [
    (13, " (administratively prohibited)"),
    (90, " (packet too big)"),
    (101, " (network unreachable)"),
    (111, " (port unreachable: it is closed)"),
    (113, " (host unreachable, or administratively prohibited)"),
];

#[cfg(test)]
mod tests {
    use netaware_probe::outage;
    use netaware_units::Span;

    use super::super::outages::tests::run;
    use super::*;
    use crate::echo::EchoRun;

    fn told(cause: &str, count: u64, first: i64, last: i64) -> SendRefusal {
        let [first, last] = [first, last].map(Span::from_millis);
        SendRefusal { cause: cause.to_owned(), count, not_sent: 0, first, last }
    }

    /// Of 105 requests that a filter rejected was only said that nothing came.
    #[test]
    fn requests_that_icmp_said_were_rejected_are_told_with_its_reason() {
        let denied = "filtered";
        let ms = Span::from_millis;
        let during = outage::rejected(ms(2000), ms(2990), ms(10));
        let one = EchoRun { rejections: vec![told(denied, 7, 2000, 2990)], ..run(500, 200..305) };
        let round = one.round.clone().rejected_among(vec![during]);
        let later = EchoRun {
            began_at: one.began_at + Span::from_secs(5),
            rejections: vec![told(denied, 2, 500, 500)],
            ..run(100, 0..0)
        };
        let found = Findings { idle: vec![EchoRun { round, ..one }, later], ..Findings::default() };
        let want = "rejected on the way: 105 of the 105 lost requests were sent when ICMP messages came back, 9 from \
                    2.00 s to 5.50 s into the measurement: filtered";
        assert_eq!(warning(&found).as_deref(), Some(want));
        assert_eq!(warning(&Findings { idle: vec![run(500, 200..305)], ..Findings::default() }), None);
    }

    #[test]
    fn the_errors_of_the_system_are_told_with_their_icmp_message() {
        let cause = io::Error::from_raw_os_error(111).to_string();
        let said = in_words(&[told(&cause, 1, 20, 20)], 0, 0, "packets").unwrap();
        assert!(
            said.starts_with("rejected on the way: ICMP messages came back, 1 at 20.0 ms into "),
            "{said}"
        );
        assert!(said.contains("(port unreachable: it is closed)"), "{said}");
        assert_eq!((meaning("anything"), in_words(&[], 0, 3, "packets")), ("", None));
    }
}
