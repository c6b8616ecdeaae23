//! What is said of a version over which nothing came any more until the end of what was asked.

use std::net::SocketAddr;

use netaware_io::zone::ZonedIp;
use netaware_record::{Direction, Unreachable};
use netaware_stats::ceasing::Ceased;
use netaware_units::Span;

use crate::report;
use crate::stage::OWN_HOST;

/// Why it was not measured to its end. `asked` names the questions; `local` is this host's address,
/// whose interface may be down, and `to` the other end, to which it may let nothing out, and the
/// round trip of the path there. `refused` is what the system said of questions that it did not
/// send.
pub(crate) fn unreachable(
    ceased: &Ceased,
    asked: &str,
    local: Option<ZonedIp>,
    to: Option<(SocketAddr, Span)>,
    refused: Option<String>,
) -> Unreachable {
    let lost_network = local.and_then(|local| netaware_host::lost_network(local.at(0)));
    let is_own = lost_network.is_some();
    let mostly_kept_in = ceased.not_sent > ceased.unanswered;
    let told = refused.filter(|_| mostly_kept_in);
    let looked_for = || {
        let (from, (to, round_trip)) = local.zip(to)?;
        report::refused_here(from, to, round_trip)
    };
    let barred = || told.or_else(looked_for);
    let barred = if is_own { None } else { barred() };
    let advice = if is_own {
        "bring it up, and try again"
    } else if barred.is_some() {
        OWN_HOST
    } else {
        "a way there or back has failed, or the other end has: try again, and see whether it still answers"
    };
    let (stage, advice) = ("measure".to_owned(), advice.to_owned());
    let barred = barred.map(|why| format!("this host lets no packets out to the other end: {why}"));
    Unreachable { stage, reason: reason(ceased, asked, lost_network.or(barred).as_deref()), advice }
}

/// The same where this host did not run the program for so long while most of them were due.
pub(crate) fn stopped_here(ceased: &Ceased, asked: &str, away: Span) -> Unreachable {
    let why = format!("this host did not run netaware for {away} (it was suspended or stopped)");
    Unreachable {
        stage: "measure".to_owned(),
        reason: reason(ceased, asked, Some(&why)),
        advice: "keep this host awake while it measures".to_owned(),
    }
}

/// Why nothing came any more of the trains of a flow, while the control connection lives on.
pub(crate) fn trains(ceased: &Ceased, direction: Direction, local: Option<ZonedIp>) -> Unreachable {
    let lost_network = local.and_then(|local| netaware_host::lost_network(local.at(0)));
    let kept_in = ceased.unanswered == 0;
    let advice = if lost_network.is_some() {
        "bring it up, and try again"
    } else if kept_in && direction != Direction::Reverse {
        OWN_HOST
    } else if kept_in {
        "see whether a firewall of the responder's host drops them on their way out, and try again"
    } else {
        "something on the way began to drop the trains, or an address translator gave their flow another port: try again"
    };
    let reason = trains_reason(ceased, direction, lost_network.as_deref());
    Unreachable { stage: "send trains".to_owned(), reason, advice: advice.to_owned() }
}

fn trains_reason(ceased: &Ceased, direction: Direction, lost_network: Option<&str>) -> String {
    let Ceased { after, silent, unanswered, not_sent } = *ceased;
    let why = lost_network.map(|why| format!("{why}: ")).unwrap_or_default();
    let fate = match (unanswered, not_sent) {
        (0, not_sent) => format!("the last {not_sent}, due over {silent}, never left their host"),
        (unanswered, 0) => format!("the last {unanswered}, sent over {silent}, did not arrive"),
        (unanswered, not_sent) => format!(
            "of the last {}, due over {silent}, {not_sent} never left their host, and {unanswered} did not arrive",
            unanswered + not_sent
        ),
    };
    let way = direction.name();
    format!(
        "{why}no packet of the trains {way} came any more after {after}: {fate}; figures are of the time until then"
    )
}

fn reason(ceased: &Ceased, asked: &str, lost_network: Option<&str>) -> String {
    let Ceased { after, silent, unanswered, not_sent } = *ceased;
    let why = lost_network.map(|why| format!("{why}: ")).unwrap_or_default();
    let fate = match (unanswered, not_sent) {
        (0, not_sent) => format!("the last {not_sent} {asked}, due over {silent}, were not sent"),
        (unanswered, 0) => format!("the last {unanswered} {asked}, sent over {silent}, had no answer"),
        (unanswered, not_sent) => format!(
            "of the last {} {asked}, due over {silent}, {not_sent} were not sent, and {unanswered} had no answer",
            unanswered + not_sent
        ),
    };
    let unknown = if unanswered > 0 { "; what became of them is unknown" } else { "" };
    format!("{why}nothing came any more after {after}: {fate}{unknown}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trains_that_broke_off_say_since_when_and_which_way() {
        let (after, silent) = (Span::from_secs(1), Span::from_secs(2));
        let said = |unanswered, not_sent| {
            trains_reason(&Ceased { after, silent, unanswered, not_sent }, Direction::Forward, None)
        };
        let way = Direction::Forward.name();
        assert_eq!(
            said(576, 0),
            format!(
                "no packet of the trains {way} came any more after 1.00 s: the last 576, sent over 2.00 s, did not \
                 arrive; figures are of the time until then"
            )
        );
        assert!(
            said(0, 585).contains("the last 585, due over 2.00 s, never left their host"),
            "{}",
            said(0, 585)
        );
        assert!(said(4, 20).contains("of the last 24, due over 2.00 s, 20 never left"), "{}", said(4, 20));
    }

    #[test]
    fn what_broke_off_says_since_when_and_what_was_not_sent() {
        let ceased = |unanswered, not_sent| Ceased {
            after: Span::from_secs(1),
            silent: Span::from_secs(2),
            unanswered,
            not_sent,
        };
        assert_eq!(
            reason(&ceased(182, 0), "requests", None),
            "nothing came any more after 1.00 s: the last 182 requests, sent over 2.00 s, had no answer; what became \
             of them is unknown"
        );
        assert_eq!(
            reason(&ceased(0, 212), "requests", Some("interface va of this host is down")),
            "interface va of this host is down: nothing came any more after 1.00 s: the last 212 requests, due over \
             2.00 s, were not sent"
        );
        assert_eq!(
            reason(&ceased(2, 10), "packets", None),
            "nothing came any more after 1.00 s: of the last 12 packets, due over 2.00 s, 10 were not sent, and 2 had \
             no answer; what became of them is unknown"
        );
    }
}
