//! Packets that somebody on the path rejected, as ICMP messages about them said.
//!
//! **Measures** the errors that the system handed over about packets that had left, and the packets
//! that were lost up to a second before or after them. **Biased**: systems ration ICMP, so that
//! there are fewer messages than rejected packets, and packets that were lost within that time in
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
    in_words(&all, rejected, runs.map(|run| run.round.counts().lost).sum(), "requests", "measurement")
}

/// A sentence about these errors, and so many of the `lost` packets that were lost while they came;
/// `None` where there were no errors. Their times are those into this `whole`.
pub(crate) fn in_words(
    told: &[SendRefusal],
    rejected: u64,
    lost: u64,
    what: &str,
    whole: &str,
) -> Option<String> {
    let each = |told: &SendRefusal| {
        let messages = if told.count == 1 {
            "one such message".to_owned()
        } else {
            format!("{} such messages", told.count)
        };
        let when = if told.first == told.last {
            format!("at {}", told.first)
        } else {
            format!("between {} and {}", told.first, told.last)
        };
        format!("{messages} came {when} into the {whole}: {}{}", told.cause, meaning(&told.cause))
    };
    let each: Vec<String> = told.iter().map(each).collect();
    let were = if lost == 1 { "was" } else { "were" };
    let fell = match rejected.min(lost) {
        0 => String::new(),
        rejected => format!("{rejected} of the {lost} lost {what} {were} sent when "),
    };
    let each = each.join("; ");
    (!told.is_empty()).then(|| format!("rejected on the way: {fell}ICMP messages came back; {each}"))
}

/// The ICMP messages that the system of this host tells in these words; nothing where it has other
/// words for that error, as for one that another system told.
fn meaning(cause: &str) -> &'static str {
    let number = cause.rsplit_once("(os error ").and_then(|(_, number)| number.strip_suffix(')'));
    let Some(errno) = number.and_then(|number| number.parse::<i32>().ok()) else { return "" };
    let error = io::Error::from_raw_os_error(errno);
    if error.to_string() != cause {
        return "";
    }
    // As systems turn ICMP messages into errors (Linux: `icmp_err_convert`, `icmpv6_err_convert`).
    match error.kind() {
        io::ErrorKind::PermissionDenied if errno != super::EPERM => " (administratively prohibited)",
        io::ErrorKind::ConnectionRefused => " (port unreachable: it is closed)",
        io::ErrorKind::NetworkUnreachable => " (network unreachable)",
        io::ErrorKind::HostUnreachable => " (host unreachable, or administratively prohibited)",
        _ if errno == EMSGSIZE => " (packet too big)",
        _ => "",
    }
}

/// "Message too long", for which there is no [`io::ErrorKind`].
const EMSGSIZE: i32 = if cfg!(target_os = "linux") { 90 } else { 40 };

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
        let want = "rejected on the way: 105 of the 105 lost requests were sent when ICMP messages came back; 9 such \
                    messages came between 2.00 s and 5.50 s into the measurement: filtered";
        assert_eq!(warning(&found).as_deref(), Some(want));
        assert_eq!(warning(&Findings { idle: vec![run(500, 200..305)], ..Findings::default() }), None);
    }

    #[test]
    fn the_errors_of_the_system_are_told_with_their_icmp_message() {
        let cause = io::Error::from_raw_os_error(111).to_string();
        let said = in_words(&[told(&cause, 1, 20, 20)], 0, 0, "packets", "stream").unwrap();
        let want = "rejected on the way: ICMP messages came back; one such message came at 20.0 ms into the stream: ";
        assert!(said.starts_with(want), "{said}");
        assert!(said.contains("(port unreachable: it is closed)"), "{said}");
        assert_eq!((meaning("anything"), in_words(&[], 0, 3, "packets", "stream")), ("", None));
    }

    #[test]
    fn an_error_of_another_system_is_not_explained_by_a_number_of_this_one() {
        assert_eq!(meaning("Something else (os error 111)"), "");
        let own = |errno| meaning(&io::Error::from_raw_os_error(errno).to_string());
        assert_eq!([own(13), own(super::super::EPERM)], [" (administratively prohibited)", ""]);
    }
}
