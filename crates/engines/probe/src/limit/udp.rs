//! Who limited a UDP stream.

use netaware_record::{Limit, LimitedBy, LossSplit, Outcome, UdpReceiverEnd, UdpSenderEnd};
use netaware_units::{BitRate, Span};

use super::cpu::CpuLoad;
use super::{Across, percent, percent_finely};

/// What both ends saw of one stream, or of several whose counts were added up.
#[derive(Debug, Clone, Copy)]
pub struct UdpEvidence<'a> {
    /// The sending end.
    pub sender: &'a UdpSenderEnd,
    /// The receiving end.
    pub receiver: &'a UdpReceiverEnd,
    /// Payload rate aimed at; `None` for as fast as possible.
    pub planned: Option<BitRate>,
    /// Payload rate that left; `None` where too little left to have one.
    pub sent_rate: Option<BitRate>,
    /// What went missing, and where.
    pub loss: &'a LossSplit,
    /// What lies between the ends.
    pub across: Across,
    /// The worst of both ends in all rounds.
    pub outcome: Outcome,
}

/// Weighs the evidence. The first rule that applies decides: loss, by where it happened; datagrams
/// that the sender's system refused, or whose fate nobody knows, for which nobody is blamed; a
/// sender behind its plan; else the plan itself, or the sender if it had none.
pub fn udp_limit(evidence: &UdpEvidence<'_>) -> Limit {
    lossy(evidence)
        .or_else(|| refused(evidence))
        .or_else(|| unobserved(evidence))
        .or_else(|| stood_still(evidence))
        .or_else(|| behind(evidence))
        .or_else(|| cut_short(evidence))
        .unwrap_or_else(|| as_planned(evidence))
}

fn lossy(evidence: &UdpEvidence<'_>) -> Option<Limit> {
    let loss = evidence.loss;
    let ratio = loss.ratio.map(|ratio| ratio.estimate).filter(|ratio| *ratio > NEGLIGIBLE_LOSS)?;
    let text = format!(
        "{} of {} datagrams lost ({}), {}{}",
        loss.lost,
        evidence.sender.sent.saturating_sub(loss.unknown),
        percent_finely(ratio),
        loss.host.map_or_else(
            || "nobody knows how many of them inside the receiving host".to_owned(),
            |host| format!("{host} of them by the receiving host's own count")
        ),
        beside(loss.unknown)
    );
    let receiver = evidence.receiver;
    let elapsed = receiver.elapsed.max(evidence.sender.elapsed);
    let stood = super::stood_still(receiver.stood_still, elapsed);
    // Loopback loses nothing on the way; where the counters are short of it, the host lost it all
    // the same.
    if evidence.across == Across::Network {
        match loss.network.zip(loss.host) {
            None => {
                let stood = stood.map(|stood| format!("; {}", super::did_not_run("receiver", stood)));
                return Some(Limit::new(LimitedBy::Unknown, text + &stood.unwrap_or_default()));
            }
            Some((network, host)) if network > host => return Some(Limit::new(LimitedBy::Network, text)),
            Some(_) => {}
        }
    }
    if let Some(stood) = stood {
        let text = format!("{text}; {}", super::did_not_run("receiver", stood));
        return Some(Limit::new(LimitedBy::Unknown, text));
    }
    let cpu = CpuLoad::of_told(evidence.receiver.cpu.as_ref());
    let drops = evidence.receiver.drops;
    let [socket, stack, nic] = [drops.socket, drops.stack, drops.nic].map(Option::unwrap_or_default);
    let (by, where_lost) = if nic > socket.max(stack) && evidence.across == Across::Network {
        // A full receive ring, or frames longer than the device takes.
        let text = format!("; {nic} at its network device, before any socket");
        (LimitedBy::Unknown, text)
    } else if cpu.is_saturated(SATURATED) {
        (LimitedBy::ReceiverCpu, String::new())
    } else {
        (LimitedBy::SocketBuffer, String::new())
    };
    Some(Limit::new(by, format!("{text}{where_lost}; receiver's {}", cpu.describe())))
}

fn beside(unknown: u64) -> String {
    if unknown > 0 { format!("; the fate of {unknown} more is unknown") } else { String::new() }
}

/// The system of the sender did not take what was due: no host was slow, and what the path would
/// have carried is not known.
fn refused(evidence: &UdpEvidence<'_>) -> Option<Limit> {
    let sender = evidence.sender;
    let planned = sender.sent.saturating_add(sender.not_sent);
    let worst = sender.refusals.iter().max_by_key(|refusal| refusal.not_sent)?;
    let refused: u64 = sender.refusals.iter().map(|refusal| refusal.not_sent).sum();
    let enough = refused > 0 && refused.min(sender.not_sent) as f64 > planned as f64 * TOLERATED;
    enough.then(|| {
        let text = format!(
            "{} of {planned} datagrams were not sent; the sender's system refused: {}",
            sender.not_sent, worst.cause
        );
        Limit::new(LimitedBy::Unknown, text)
    })
}

fn unobserved(evidence: &UdpEvidence<'_>) -> Option<Limit> {
    let (unknown, sent) = (evidence.loss.unknown, evidence.sender.sent);
    (unknown as f64 > sent as f64 * TOLERATED).then(|| {
        let text = format!(
            "the fate of {unknown} of {sent} datagrams is unknown: the receiver's reports ended before the \
             stream; {} of the others lost",
            evidence.loss.lost
        );
        Limit::new(LimitedBy::Unknown, text)
    })
}

/// A stream that broke off, or whose end nobody reported.
fn cut_short(evidence: &UdpEvidence<'_>) -> Option<Limit> {
    let sender = evidence.sender;
    let (lost, beside) = (evidence.loss.lost, beside(evidence.loss.unknown));
    let text = if sender.outcome == Outcome::Failed {
        let elapsed = sender.elapsed;
        format!(
            "the stream ended early, after {} datagrams in {elapsed}; {lost} of them lost{beside}",
            sender.sent
        )
    } else if evidence.outcome == Outcome::Failed {
        format!(
            "the measurement broke off before both ends had reported; {lost} of the {} datagrams known to have been \
             sent lost{beside}",
            sender.sent
        )
    } else {
        return None;
    };
    Some(Limit::new(LimitedBy::Unknown, text))
}

/// A sender most of whose missing datagrams were due in one pause, in which its thread did not run:
/// it was stopped or suspended, and neither its work nor a queue was too much for it.
fn stood_still(evidence: &UdpEvidence<'_>) -> Option<Limit> {
    let sender = evidence.sender;
    pause(sender).map(|pause| {
        let text = format!(
            "{} of {} datagrams were not sent, most of them in one pause of the sender of {pause}: it was stopped or \
             suspended, or got no core; its {}",
            sender.not_sent,
            sender.sent.saturating_add(sender.not_sent),
            CpuLoad::of_told(sender.cpu.as_ref()).describe()
        );
        Limit::new(LimitedBy::Unknown, text)
    })
}

/// The one pause of a sender in which most of what it did not send was due, and in which its thread
/// did not run.
pub fn pause(sender: &UdpSenderEnd) -> Option<Span> {
    let plan = sender.sent.saturating_add(sender.not_sent);
    if sender.not_sent as f64 <= plan as f64 * TOLERATED {
        return None;
    }
    // A pause that lasted to the end has no datagram behind it: the sender woke so late.
    let gap = sender.gaps.as_ref().map_or(Span::ZERO, |gaps| gaps.max);
    let pause = gap.max(sender.worst_lateness);
    let missing = sender.elapsed.max(pause).secs_f64() * sender.not_sent as f64 / plan as f64;
    let cpu = CpuLoad::of_told(sender.cpu.as_ref());
    // Of a slow stream each datagram is far from the next.
    let spacing = sender.gaps.as_ref().and_then(|gaps| gaps.planned).unwrap_or_default();
    let is_one = pause >= LONG_PAUSE.max(spacing * SPACINGS) && pause.secs_f64() >= missing * MOST;
    (is_one && cpu.pressure() < SPARE).then_some(pause)
}

/// A sender that did not keep to its plan.
fn behind(evidence: &UdpEvidence<'_>) -> Option<Limit> {
    let sender = evidence.sender;
    let planned = evidence.planned.filter(|planned| planned.0 > 0)?;
    let of_plan = (sender.sent + sender.not_sent).max(1) as f64;
    // The rate is that of the time in which datagrams left; what never left was not reached.
    let left = sender.sent as f64 / of_plan;
    let reached = evidence.sent_rate.map(|rate| (rate.0 as f64 / planned.0 as f64).min(left));
    let is_slow = reached.is_some_and(|reached| reached < REACHED);
    // What left late left all the same: a stream that reached its rate is limited by nobody, and
    // the lateness is told with the instrument.
    let not_sent = sender.not_sent as f64 / of_plan;
    if !is_slow && not_sent <= TOLERATED {
        return None;
    }
    let cpu = CpuLoad::of_told(sender.cpu.as_ref());
    // A thread with time to spare that is behind all the same was made to wait by the queues below
    // it, unless a core was full: others' programs kept it from its work then.
    let blocked = is_slow && cpu.pressure() > 0.0 && !cpu.is_saturated(SPARE) && !cpu.has_full_core();
    let by = if blocked { LimitedBy::SocketBuffer } else { LimitedBy::SenderCpu };
    let text = format!(
        "the sender reached {} of {planned}: {} datagrams late, {} not sent; its {}",
        reached.map_or_else(|| "an unknown share".to_owned(), percent),
        sender.late,
        sender.not_sent,
        cpu.describe()
    );
    Some(Limit::new(by, text))
}

fn as_planned(evidence: &UdpEvidence<'_>) -> Limit {
    let sender = evidence.sender;
    match evidence.planned {
        _ if sender.sent == 0 => {
            let why = if sender.outcome == Outcome::Complete { "" } else { " before it was stopped" };
            Limit::new(LimitedBy::Unknown, format!("0 datagrams left the sender{why}"))
        }
        // One datagram alone has no rate.
        Some(_) if sender.sent == 1 => {
            let text = format!("one datagram was sent, and {} of it lost", evidence.loss.lost);
            Limit::new(LimitedBy::RequestedRate, text)
        }
        // Nor has one burst.
        Some(_) if evidence.sent_rate.is_none() => {
            let text = format!(
                "{} datagrams left in one burst, which has no rate, and {} of them lost",
                sender.sent, evidence.loss.lost
            );
            Limit::new(LimitedBy::RequestedRate, text)
        }
        Some(planned) => {
            let how = if sender.outcome == Outcome::Complete {
                "as planned"
            } else {
                "as planned until it was stopped"
            };
            let text = format!(
                "{planned} was sent {how} and {} of {} datagrams lost",
                evidence.loss.lost, sender.sent
            );
            Limit::new(LimitedBy::RequestedRate, text)
        }
        None => {
            let cpu = CpuLoad::of_told(sender.cpu.as_ref());
            let text = format!(
                "sent as fast as it goes, {} of {} datagrams lost; sender's {}",
                evidence.loss.lost,
                sender.sent,
                cpu.describe()
            );
            Limit::new(LimitedBy::SenderCpu, text)
        }
    }
}

/// One datagram of a thousand may get lost without anything being at its limit.
const NEGLIGIBLE_LOSS: f64 = 0.001;
/// As for TCP.
const REACHED: f64 = 0.97;
/// As for TCP.
const SATURATED: f64 = 0.9;
/// A thread below this had time to spare.
const SPARE: f64 = 0.5;
/// Schedulers of hosts that are merely busy give a thread a core sooner than this.
const LONG_PAUSE: Span = Span::from_millis(200);
/// A pause is longer than so many planned distances.
const SPACINGS: i64 = 3;
/// Share of the time that is missing which one pause explains.
const MOST: f64 = 0.7;
/// Share of the plan that may stay at home.
const TOLERATED: f64 = 0.01;

#[cfg(test)]
mod tests {
    use netaware_record::{CpuUse, GapSummary, HostDrops, SendRefusal};

    use super::*;
    use crate::loss_split;

    fn cpu(thread: f64) -> CpuUse {
        CpuUse { busiest_thread: Some(thread), busiest_core: Some(thread), cores: 2, ..CpuUse::default() }
    }

    struct Row {
        name: &'static str,
        planned: Option<u64>,
        rate: u64,
        sent: u64,
        not_sent: u64,
        late: u64,
        received: u64,
        host: u64,
        cpus: (f64, f64),
        across: Across,
        want: LimitedBy,
    }

    fn row(name: &'static str, want: LimitedBy) -> Row {
        Row {
            name,
            planned: Some(80_000_000),
            rate: 80_000_000,
            sent: 100_000,
            not_sent: 0,
            late: 0,
            received: 100_000,
            host: 0,
            cpus: (0.3, 0.3),
            across: Across::Network,
            want,
        }
    }

    #[test]
    fn each_stream_gets_its_verdict() {
        use LimitedBy::{Network, ReceiverCpu, RequestedRate, SenderCpu, SocketBuffer, Unknown};
        let rows = [
            row("as planned", RequestedRate),
            Row { received: 99_950, ..row("a few lost", RequestedRate) },
            Row { received: 90_000, ..row("lost on the way", Network) },
            Row { received: 90_000, host: 9_000, cpus: (0.3, 0.95), ..row("dropped, busy", ReceiverCpu) },
            Row { received: 90_000, host: 9_000, ..row("dropped, idle", SocketBuffer) },
            Row { received: 90_000, across: Across::Loopback, ..row("lost on loopback", SocketBuffer) },
            Row { rate: 60_000_000, cpus: (0.98, 0.3), ..row("sender too slow", SenderCpu) },
            Row { rate: 60_000_000, cpus: (0.1, 0.3), ..row("sender made to wait", SocketBuffer) },
            Row { rate: 60_000_000, cpus: (0.0, 0.0), ..row("sender slow, CPU unknown", SenderCpu) },
            Row { not_sent: 3_000, ..row("skipped", SenderCpu) },
            Row { late: 40_000, ..row("late, and all of it sent", RequestedRate) },
            Row { planned: None, cpus: (1.0, 0.6), ..row("as fast as possible", SenderCpu) },
            Row { planned: None, received: 80_000, ..row("as fast as possible, lost", Network) },
            Row { planned: None, sent: 0, received: 0, ..row("nothing", Unknown) },
        ];
        for row in rows {
            let limit = verdict(&row);
            assert_eq!(limit.by, row.want, "{}: {}", row.name, limit.evidence);
        }
    }

    fn verdict(row: &Row) -> Limit {
        let sender = UdpSenderEnd {
            sent: row.sent,
            not_sent: row.not_sent,
            late: row.late,
            cpu: Some(cpu(row.cpus.0)),
            ..UdpSenderEnd::default()
        };
        let receiver = UdpReceiverEnd {
            cpu: Some(cpu(row.cpus.1)),
            received: row.received,
            drops: HostDrops { socket: Some(row.host), ..HostDrops::default() },
            ..UdpReceiverEnd::default()
        };
        udp_limit(&UdpEvidence {
            sender: &sender,
            receiver: &receiver,
            planned: row.planned.map(BitRate),
            sent_rate: Some(BitRate(row.rate)),
            loss: &loss_split::split(row.sent, Some(&receiver)),
            across: row.across,
            outcome: Outcome::Complete,
        })
    }

    #[test]
    fn what_a_receiver_that_was_stopped_did_not_read_is_not_blamed_on_its_buffer() {
        let limit = |stood: Option<Span>| {
            let sender = UdpSenderEnd { sent: 1000, elapsed: Span::from_secs(3), ..UdpSenderEnd::default() };
            let receiver = UdpReceiverEnd {
                received: 400,
                highest: 1000,
                drops: HostDrops { socket: Some(600), ..HostDrops::default() },
                stood_still: stood,
                ..UdpReceiverEnd::default()
            };
            udp_limit(&UdpEvidence {
                sender: &sender,
                receiver: &receiver,
                planned: Some(BitRate(10_000_000)),
                sent_rate: Some(BitRate(10_000_000)),
                loss: &loss_split::split(1000, Some(&receiver)),
                across: Across::Network,
                outcome: Outcome::Complete,
            })
        };
        let stopped = limit(Some(Span::from_secs(2)));
        assert_eq!(stopped.by, LimitedBy::Unknown);
        assert!(
            stopped.evidence.contains("; the receiver did not run for 2.00 s: it was stopped"),
            "{stopped:?}"
        );
        assert_eq!([limit(None).by, limit(Some(Span::ZERO)).by], [LimitedBy::SocketBuffer; 2]);
    }

    #[test]
    fn what_a_network_device_dropped_is_not_blamed_on_a_socket_buffer() {
        let sender = UdpSenderEnd { sent: 1000, ..UdpSenderEnd::default() };
        let drops = HostDrops { socket: Some(0), stack: Some(0), nic: Some(350) };
        let receiver =
            UdpReceiverEnd { received: 650, drops, cpu: Some(cpu(0.1)), ..UdpReceiverEnd::default() };
        let limit = udp_limit(&UdpEvidence {
            sender: &sender,
            receiver: &receiver,
            planned: None,
            sent_rate: None,
            loss: &loss_split::split(1000, Some(&receiver)),
            across: Across::Network,
            outcome: Outcome::Complete,
        });
        assert_eq!(limit.by, LimitedBy::Unknown);
        assert!(
            limit.evidence.contains("350 at its network device, before any socket"),
            "{}",
            limit.evidence
        );
    }

    #[test]
    fn what_just_passes_blames_nobody_and_a_little_more_does() {
        use LimitedBy::{Network, RequestedRate, SenderCpu, SocketBuffer};
        let rows = [
            Row { received: 99_900, ..row("a thousandth lost", RequestedRate) },
            Row { received: 99_899, ..row("more than a thousandth lost", Network) },
            Row { received: 90_000, host: 5_000, ..row("half of it lost in the host", SocketBuffer) },
            Row { received: 90_000, host: 4_999, ..row("less than half of it lost in the host", Network) },
            Row {
                sent: 99_000,
                received: 99_000,
                not_sent: 1_000,
                ..row("a hundredth stayed", RequestedRate)
            },
            Row { sent: 98_999, received: 98_999, not_sent: 1_001, ..row("more stayed", SenderCpu) },
            Row { late: 100_000, ..row("all of it late, and all of it sent", RequestedRate) },
            Row { rate: 77_600_000, ..row("3 % below its rate", RequestedRate) },
            Row { rate: 77_599_999, ..row("more than 3 % below, with time to spare", SocketBuffer) },
            // What stayed at home of a stream that reached its rate was not held up by queues.
            Row { rate: 77_600_000, not_sent: 3_000, ..row("3 % below and skipped", SenderCpu) },
            Row { planned: Some(0), not_sent: 3_000, ..row("no rate to be behind of", RequestedRate) },
        ];
        for row in rows {
            let limit = verdict(&row);
            assert_eq!(limit.by, row.want, "{}: {}", row.name, limit.evidence);
        }
    }

    #[test]
    fn a_sender_whose_core_others_filled_is_not_said_to_have_too_small_a_buffer() {
        let sender = UdpSenderEnd {
            sent: 920,
            cpu: Some(CpuUse { busiest_core: Some(1.0), ..cpu(0.2) }),
            ..UdpSenderEnd::default()
        };
        let receiver = UdpReceiverEnd { received: 920, ..UdpReceiverEnd::default() };
        let limit = udp_limit(&UdpEvidence {
            sender: &sender,
            receiver: &receiver,
            planned: Some(BitRate(1_000_000)),
            sent_rate: Some(BitRate(920_000)),
            loss: &loss_split::split(920, Some(&receiver)),
            across: Across::Network,
            outcome: Outcome::Complete,
        });
        assert_eq!(limit.by, LimitedBy::SenderCpu, "{limit:?}");
    }

    /// A responder stopped for 0.7 s of 5 s.
    #[test]
    fn a_sender_that_was_stopped_is_not_limited_by_a_cpu_that_ran_2_percent() {
        let of = |longest, not_sent| {
            let gaps = GapSummary { max: Span::from_millis(longest), ..GapSummary::default() };
            let sender = UdpSenderEnd {
                sent: 1853,
                not_sent,
                elapsed: Span::from_secs(5),
                gaps: Some(gaps),
                cpu: Some(CpuUse { busiest_core: Some(1.0), ..cpu(0.02) }),
                ..UdpSenderEnd::default()
            };
            let receiver = UdpReceiverEnd { received: 1853, ..UdpReceiverEnd::default() };
            udp_limit(&UdpEvidence {
                sender: &sender,
                receiver: &receiver,
                planned: Some(BitRate(5_000_000)),
                sent_rate: Some(BitRate(4_300_000)),
                loss: &loss_split::split(1853, Some(&receiver)),
                across: Across::Network,
                outcome: Outcome::Complete,
            })
        };
        let stopped = of(705, 300);
        assert_eq!(stopped.by, LimitedBy::Unknown);
        assert!(stopped.evidence.contains("in one pause of the sender of 705 ms"), "{stopped:?}");
        assert_eq!(of(40, 300).by, LimitedBy::SenderCpu, "many pauses on a full core");
        assert_eq!(of(250, 900).by, LimitedBy::SenderCpu, "one pause of many");
    }

    #[test]
    fn a_sender_that_kept_most_at_home_is_not_said_to_have_reached_its_rate() {
        let sender =
            UdpSenderEnd { sent: 121, not_sent: 326, cpu: Some(cpu(0.1)), ..UdpSenderEnd::default() };
        let receiver = UdpReceiverEnd { received: 121, ..UdpReceiverEnd::default() };
        let limit = udp_limit(&UdpEvidence {
            sender: &sender,
            receiver: &receiver,
            planned: Some(BitRate(22_800_000)),
            sent_rate: Some(BitRate(23_000_000)),
            loss: &loss_split::split(121, Some(&receiver)),
            across: Across::Network,
            outcome: Outcome::Complete,
        });
        assert!(limit.evidence.starts_with("the sender reached 27 % of 22.8 Mbit/s"), "{limit:?}");
    }

    #[test]
    fn a_stream_whose_measurement_failed_is_not_said_to_have_been_sent_as_planned() {
        let sender = UdpSenderEnd { sent: 130, ..UdpSenderEnd::default() };
        let receiver = UdpReceiverEnd { received: 130, observed: Some(130), ..UdpReceiverEnd::default() };
        let of = |outcome| {
            udp_limit(&UdpEvidence {
                sender: &sender,
                receiver: &receiver,
                planned: Some(BitRate(1_000_000)),
                sent_rate: Some(BitRate(1_000_000)),
                loss: &loss_split::split(130, Some(&receiver)),
                across: Across::Network,
                outcome,
            })
        };
        assert_eq!(of(Outcome::Complete).by, LimitedBy::RequestedRate);
        let want = "the measurement broke off before both ends had reported; 0 of the 130 datagrams known to have \
                    been sent lost";
        assert_eq!(of(Outcome::Failed), Limit::new(LimitedBy::Unknown, want));
    }

    /// Of a stream of 517 datagrams.
    fn outage(sender: &UdpSenderEnd, observed: Option<u64>, received: u64) -> Limit {
        let receiver = UdpReceiverEnd { received, observed, ..UdpReceiverEnd::default() };
        udp_limit(&UdpEvidence {
            sender,
            receiver: &receiver,
            planned: Some(BitRate(1_000_000)),
            sent_rate: Some(BitRate(1_000_000)),
            loss: &loss_split::split(sender.sent, Some(&receiver)),
            across: Across::Network,
            outcome: Outcome::Complete,
        })
    }

    #[test]
    fn a_stream_that_ended_early_is_not_said_to_have_been_sent_as_planned() {
        let refusal = SendRefusal {
            cause: "Network is unreachable".into(),
            count: 26,
            not_sent: 26,
            ..SendRefusal::default()
        };
        let rows = [
            (
                UdpSenderEnd { sent: 491, not_sent: 26, refusals: vec![refusal], ..UdpSenderEnd::default() },
                None,
                491,
                "26 of 517 datagrams were not sent; the sender's system refused: Network is unreachable",
            ),
            (
                UdpSenderEnd { sent: 517, ..UdpSenderEnd::default() },
                Some(200),
                200,
                "the fate of 317 of 517 datagrams is unknown: the receiver's reports ended before the stream; 0 of the \
                 others lost",
            ),
            (
                UdpSenderEnd {
                    outcome: Outcome::Failed,
                    sent: 171,
                    elapsed: Span::from_secs(2),
                    ..UdpSenderEnd::default()
                },
                None,
                171,
                "the stream ended early, after 171 datagrams in 2.00 s; 0 of them lost",
            ),
        ];
        for (sender, observed, received, want) in rows {
            assert_eq!(outage(&sender, observed, received), Limit::new(LimitedBy::Unknown, want));
        }
    }

    #[test]
    fn loss_is_blamed_on_nobody_where_the_receiving_host_never_told_what_it_dropped() {
        let sender = UdpSenderEnd { sent: 1000, ..UdpSenderEnd::default() };
        let limit = outage(&sender, None, 900);
        let want =
            "100 of 1000 datagrams lost (10.00 %), nobody knows how many of them inside the receiving host";
        assert_eq!(limit, Limit::new(LimitedBy::Unknown, want));
    }

    #[test]
    fn one_datagram_has_no_rate_and_is_not_a_sender_that_reached_0_percent() {
        let sender = UdpSenderEnd { sent: 1, ..UdpSenderEnd::default() };
        let receiver = UdpReceiverEnd { received: 1, ..UdpReceiverEnd::default() };
        let limit = udp_limit(&UdpEvidence {
            sender: &sender,
            receiver: &receiver,
            planned: Some(BitRate(1_000_000)),
            sent_rate: None,
            loss: &loss_split::split(1, Some(&receiver)),
            across: Across::Network,
            outcome: Outcome::Complete,
        });
        assert_eq!(limit.by, LimitedBy::RequestedRate, "{limit:?}");
        assert_eq!(limit.evidence, "one datagram was sent, and 0 of it lost", "it was sent at no rate");
    }

    #[test]
    fn the_evidence_says_in_figures_what_decided() {
        use LimitedBy::{Network, ReceiverCpu, RequestedRate, SenderCpu, Unknown};
        let busy = "busiest thread ran 95 %, busiest core 95 %";
        let lost = "10000 of 100000 datagrams lost (10.00 %)";
        let rows = [
            (
                Row { received: 90_000, ..row("", Network) },
                format!("{lost}, 0 of them by the receiving host's own count"),
            ),
            (
                Row { received: 90_000, host: 9_000, cpus: (0.3, 0.95), ..row("", ReceiverCpu) },
                format!("{lost}, 9000 of them by the receiving host's own count; receiver's {busy}"),
            ),
            (
                Row { rate: 60_000_000, late: 7, not_sent: 2, cpus: (0.95, 0.3), ..row("", SenderCpu) },
                format!("the sender reached 75 % of 80.0 Mbit/s: 7 datagrams late, 2 not sent; its {busy}"),
            ),
            (
                Row { received: 99_950, ..row("", RequestedRate) },
                "80.0 Mbit/s was sent as planned and 50 of 100000 datagrams lost".to_owned(),
            ),
            (
                Row { planned: None, cpus: (0.95, 0.3), ..row("", SenderCpu) },
                format!("sent as fast as it goes, 0 of 100000 datagrams lost; sender's {busy}"),
            ),
            (
                Row { planned: None, sent: 0, received: 0, ..row("", Unknown) },
                "0 datagrams left the sender".to_owned(),
            ),
        ];
        for (row, evidence) in rows {
            assert_eq!(verdict(&row), Limit::new(row.want, evidence));
        }
    }
}
