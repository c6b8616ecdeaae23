//! A host that does not cooperate, as the record has it.

use netaware_path::hops::What;
use netaware_path::reach::{Answers, HostClock, Lasting, ReachFinding, TooLarge, WayQueue, WayQueues};
use netaware_path::{Bound, Disturbance, Level, NEAR};
use netaware_probe::summary::of_delays;
use netaware_record::{
    Direction, Health, IpVersion, Layer, Pedigree, QueuedWay, RateBound, ReachCapacity, ReachLoss,
    ReachProtocol, ReachQueue, ReachQueues, ReachResult,
};
use netaware_stats::interval::Interval as Rate;
use netaware_units::{BitRate, ByteCount, ClockSource, Span};

use crate::estimation::interval;
use crate::reach::{ReachInstrument, TcpPort};
use crate::report::path_rates::{ability, busy_cause};

/// With what.
pub(crate) struct Asked {
    pub(crate) udp_port: u16,
    pub(crate) took: Span,
    /// Why questions never left this host, if some did not (errno).
    pub(crate) refused: Option<i32>,
    /// It was to end after so many lone echoes.
    pub(crate) count: Option<u32>,
}

/// One result per protocol that was tried.
pub(crate) fn results(
    version: IpVersion,
    found: &ReachFinding,
    tcp: Option<&TcpPort>,
    asked: &Asked,
    instrument: &ReachInstrument,
) -> Vec<ReachResult> {
    let Asked { udp_port, took, refused, count } = *asked;
    let disturbance = instrument.during.disturbance(Direction::RoundTrip, 0.0);
    let mut results = Vec::new();
    if found.echo.asked + found.echo.not_sent > 0 {
        let mut echo = of_answers(version, ReachProtocol::Echo, &found.echo, found.longest, took);
        if let Some(too_large) = found.too_large {
            echo.flags.push(TOO_LARGE.to_owned());
            echo.remarks.push(vanish(too_large));
        }
        echo.by_direction =
            found.by_direction.map(|by| ReachLoss { forward: by.forward, reverse: by.reverse, of: by.of });
        let told = found.capacity.map(|(rate, bound)| disturbance.on_rate(rate, bound));
        echo.capacity = told.map(|(rate, bound)| ReachCapacity {
            rate: interval(&rate),
            bound: match bound {
                Bound::None => RateBound::None,
                Bound::AtLeast => RateBound::AtLeast,
                Bound::AtMost => RateBound::AtMost,
            },
            pairs: found.pairs,
            packet: found.paired,
        });
        if found.capacity.is_some() {
            echo.host.clone_from(&instrument.host);
        }
        // A host that sends far faster sets no such figure.
        let able = instrument.host.as_ref().map_or(0.0, |host| host.rate.0 as f64);
        let is_near = found.capacity.is_none_or(|(rate, _)| rate.estimate >= able * NEAR);
        if found.host_limited && is_near {
            echo.flags.push("host_limited".to_owned());
            let because = instrument.host.as_ref().map(|host| format!(": {}", ability(host)));
            let because = because.unwrap_or_default();
            echo.remarks.push(format!("host-limited: this host sends or stamps pairs no better{because}"));
        } else if found.host_limited {
            echo.flags.push("unsettled".to_owned());
            let why = "pairs left or came too far apart this time to tell more, though this host can do better; the figure is a \
                       lower bound";
            echo.remarks.push(why.to_owned());
        }
        if found.batched {
            echo.flags.push("batched".to_owned());
            let why = "answers are handed over in batches (interrupt coalescing): pairs tell no capacity";
            echo.remarks.push(why.to_owned());
        }
        if let Some(why) = few_pairs(found, count) {
            echo.flags.push("unconfirmed".to_owned());
            echo.remarks.push(why);
        }
        // A bound that is the host's has its reason already.
        let is_told =
            |it: &Lasting| !found.host_limited || !matches!(it, Lasting::Confirmed | Lasting::Faster(_));
        let lasting = found.lasting.filter(is_told);
        if let Some((flag, remark)) = lasting.and_then(|lasting| borne_out(lasting, found.capacity)) {
            echo.flags.push(flag.to_owned());
            echo.remarks.push(remark);
        }
        results.push(echo);
    }
    if found.timestamps.asked + found.timestamps.not_sent > 0 {
        results.push(of_timestamps(version, found, took));
    }
    results.extend(
        tcp.filter(|tcp| tcp.tries.asked + tcp.tries.not_sent > 0)
            .map(|tcp| of_tcp(version, tcp, found.longest, took)),
    );
    if found.udp.asked + found.udp.not_sent > 0 {
        let mut udp = of_answers(version, ReachProtocol::Udp, &found.udp, found.longest, took);
        udp.port = Some(udp_port);
        if found.udp_rationed {
            udp.loss = None;
            udp.flags.push("rate_limited".to_owned());
            udp.remarks.push("the host rations its answers: no loss can be told".to_owned());
        }
        results.push(udp);
    }
    for result in &mut results {
        result.health = instrument.during.health();
        note_not_sent(result, refused);
    }
    if disturbance.level() > Level::Quiet {
        tell(&disturbance, &mut results);
    }
    results
}

/// Questions that never left this host are nobody else's silence.
fn note_not_sent(result: &mut ReachResult, refused: Option<i32>) {
    if result.not_sent == 0 {
        return;
    }
    if result.asked == 0 {
        result.flags.retain(|flag| flag != "silent" && flag != "late");
        result.remarks.clear();
    }
    result.flags.push("not_sent".to_owned());
    let why = refused.map(|errno| format!(": {}", super::refusal(errno))).unwrap_or_default();
    result.remarks.push(format!("{}{NOT_SENT}{why}", result.not_sent));
}

/// What to warn of where questions never left this host: the loss is a share of the others.
pub(super) fn kept_in(result: &ReachResult) -> Option<String> {
    let why = result.remarks.iter().find(|remark| remark.contains(NOT_SENT))?;
    Some(format!("{}: {why}", result.protocol.name()))
}

/// How the remark on such questions goes on after their number.
const NOT_SENT: &str = " not sent by this host";

/// That others used this host while it asked: every time is in doubt, and said once.
fn tell(disturbance: &Disturbance, results: &mut [ReachResult]) {
    for result in &mut *results {
        result.flags.push("host_busy".to_owned());
    }
    if let Some(first) = results.first_mut() {
        let cause = busy_cause(disturbance.away);
        let capacity = match first.capacity.as_ref().map(|capacity| capacity.bound) {
            None => "",
            Some(RateBound::None) => ", a capacity's interval too",
            Some(_) => ", a capacity's bound too",
        };
        first.remarks.push(format!("busy host: {cause}; times hold what it waited{capacity}"));
        let is_bound = first.capacity.as_ref().is_some_and(|capacity| capacity.bound != RateBound::None);
        let limited = "host_limited".to_owned();
        if disturbance.level() == Level::Limited && is_bound && !first.flags.contains(&limited) {
            first.flags.push(limited);
        }
    }
}

/// That too few pairs were answered to tell a capacity, where nothing else is the reason: a path
/// that others fill, or a slow one, has room for a pair a second or less.
fn few_pairs(found: &ReachFinding, count: Option<u32>) -> Option<String> {
    // What ceased, batches and trains have sentences of their own.
    let has_reason = found.batched || found.lasting.is_some() || found.ceased.is_some();
    if has_reason || found.capacity.is_some() || found.echo.answered == 0 {
        return None;
    }
    let pairs = match found.pairs {
        0 => "no pair of large echoes was answered".to_owned(),
        1 => "only one pair of large echoes was answered".to_owned(),
        many => format!("only {many} pairs of large echoes were answered"),
    };
    let helps = if count.is_some() { "a higher -c, or a longer -t, helps" } else { "a longer -t helps" };
    Some(format!("{pairs}, which is too few to tell a capacity: {helps}"))
}

/// What trains say against the pairs, as a word and a sentence.
fn borne_out(lasting: Lasting, capacity: Option<(Rate, Bound)>) -> Option<(&'static str, String)> {
    let told = |rate: f64| BitRate(rate.max(0.0) as u64);
    let ends = if capacity.is_some() { "so the figure is a bound" } else { "so no capacity is told" };
    Some(match lasting {
        Lasting::Faster(rate) => {
            let of = told(rate);
            let why = "a link that sends in slots or bunches (LTE, Wi-Fi), or several in parallel";
            ("pairs_slow", format!("trains pass at {of} and more, faster than pairs, {ends}: {why}"))
        }
        Lasting::Slower(rate) => {
            let of = told(rate);
            let why = "a token bucket, a ration of answers, batches at the host, or much other traffic";
            ("not_sustained", format!("trains come through at {of}, slower than pairs, {ends}: {why}"))
        }
        Lasting::Unknown => {
            let why = "no train of echoes could be sent as fast as pairs say";
            ("unconfirmed", format!("{why}, so no capacity is told: give it more time, or a quieter host"))
        }
        Lasting::TooSlow => {
            let why = "the path is so slow that a train of echoes would fill it for most of a second, so none was sent";
            ("unconfirmed", format!("{why}, and no capacity is told: pairs alone do not see a token bucket"))
        }
        Lasting::Unanswered => {
            let why = "nothing of a train of echoes was answered, so no capacity is told";
            ("unconfirmed", format!("{why}: a ration of answers, or the host fell silent before"))
        }
        Lasting::Confirmed => {
            let (_, bound) = capacity?;
            if bound == Bound::None {
                return None;
            }
            ("unsettled", "pairs differ by more than a fifth, so the figure is a lower bound".to_owned())
        }
    })
}

fn of_timestamps(version: IpVersion, found: &ReachFinding, took: Span) -> ReachResult {
    let mut result = of_answers(version, ReachProtocol::Timestamp, &found.timestamps, found.longest, took);
    "extremes of all answers, in whole steps of the host's clock"
        .clone_into(&mut result.pedigree.uncertainty);
    if result.answered == 0 {
        result.remarks = vec!["the host does not answer timestamps".to_owned()];
    }
    let disbelief = match found.clock {
        None => return result,
        Some(HostClock::Believed(ways)) => {
            if ways.stepped {
                result.flags.push("clock_stepped".to_owned());
                let of = format!("the host's clock was set: {} answers in a row were used", ways.samples);
                result.remarks.push(of);
            }
            result.queues = Some(queues(&ways));
            return result;
        }
        Some(HostClock::Few) => {
            ("too_few", "too few timestamps to see whether the host's clock moves as ours does")
        }
        Some(HostClock::LittleEndian) => {
            ("little_endian", "the host's timestamps have their bytes in the wrong order: not believed")
        }
        Some(HostClock::NonStandard) => {
            ("non_standard", "the host marks its timestamps as no time of day: not believed")
        }
        Some(HostClock::Unsteady) => {
            ("unsteady", "the host's clock does not move as ours does: not believed")
        }
        Some(HostClock::Ambiguous) => (
            "ambiguous",
            "the host's clock was set, or neither way was ever free when the other was: no way told",
        ),
    };
    result.flags.push(disbelief.0.to_owned());
    result.remarks.push(disbelief.1.to_owned());
    result
}

fn queues(of: &WayQueues) -> ReachQueues {
    let way = |of: WayQueue| ReachQueue { median: of.median, p90: of.p90, max: of.max };
    ReachQueues {
        queued: QueuedWay::of(of.forward.is_queue(of.resolution), of.reverse.is_queue(of.resolution)),
        forward: way(of.forward),
        reverse: way(of.reverse),
        resolution: of.resolution,
        drift_ppm: of.drift_ppm,
        samples: of.samples,
    }
}

/// The word of records for large echoes that vanish.
pub(crate) const TOO_LARGE: &str = "too_large";

/// From which length on nothing came.
fn vanish(of: TooLarge) -> String {
    let passed = match of.answered {
        Some(length) => format!("those of {length} bytes were"),
        None => "small ones were".to_owned(),
    };
    format!(
        "no echo of {} bytes or more was answered ({} asked), and {passed}: larger packets do not fit the path or are filtered; \
         they are not counted as lost",
        of.length, of.asked
    )
}

/// That no answer was waited for as long as this path takes: silence says nothing then.
fn hurried(waited: Span, longest: Option<Span>) -> Option<String> {
    let longest = longest.filter(|longest| waited < *longest * 3 / 2)?;
    Some(format!(
        "no answer within {waited}, and a round trip took up to {longest}: the time was too short to tell whether it answers; a \
         longer -t helps"
    ))
}

fn of_answers(
    version: IpVersion,
    protocol: ReachProtocol,
    of: &Answers,
    longest: Option<Span>,
    took: Span,
) -> ReachResult {
    let none_in_time = of.answered == 0;
    let (mut flags, mut remarks) = (Vec::new(), Vec::new());
    if let Some(hurried) = hurried(of.waited, longest).filter(|_| none_in_time && of.late == 0) {
        flags.push("late".to_owned());
        remarks.push(hurried);
    } else if none_in_time && of.late == 0 {
        flags.push("silent".to_owned());
        remarks.push("never answered".to_owned());
    } else if none_in_time {
        flags.push("late".to_owned());
        remarks
            .push("answered, but only when no answer was waited for any more: a longer -t helps".to_owned());
    }
    if of.said.contains(&What::Refused) {
        flags.push("filtered".to_owned());
        remarks.push("a router says that it goes no further".to_owned());
    }
    ReachResult {
        pedigree: pedigree(version, ClockSource::Kernel),
        protocol,
        port: None,
        asked: of.asked,
        answered: of.answered,
        late: of.late,
        not_sent: of.not_sent,
        answers: of.said.iter().map(|said| word(*said).to_owned()).collect(),
        others: of.others.iter().map(ToString::to_string).collect(),
        loss: (!none_in_time).then(|| loss(of.asked, of.answered + of.late)),
        by_direction: None,
        rtt: of_delays(&of.rtts),
        capacity: None,
        queues: None,
        bytes: ByteCount(of.bytes),
        took,
        health: Health::default(),
        host: None,
        flags,
        remarks,
    }
}

fn of_tcp(version: IpVersion, port: &TcpPort, longest: Option<Span>, took: Span) -> ReachResult {
    let TcpPort { tries: tcp, by_kernel, .. } = port;
    let (answered, by_kernel) = (tcp.answered(), *by_kernel);
    let said = [("accepted", tcp.accepted), ("refused", tcp.refused), ("unreachable", tcp.unreachable)];
    let hurried = hurried(tcp.waited, longest);
    let (flags, remarks) = match (answered, tcp.unreachable) {
        (0, 0) if hurried.is_some() => (vec!["late".to_owned()], hurried.into_iter().collect()),
        (0, 0) => (vec!["silent".to_owned()], vec!["never answered: filtered, or nobody there".to_owned()]),
        (0, _) => (vec!["filtered".to_owned()], vec!["a router says that it goes no further".to_owned()]),
        _ if by_kernel < answered => (Vec::new(), vec![BY_PROGRAM.to_owned()]),
        _ => (Vec::new(), Vec::new()),
    };
    let all_by_kernel = answered > 0 && by_kernel == answered;
    let clock = if all_by_kernel { ClockSource::Kernel } else { ClockSource::Application };
    ReachResult {
        pedigree: pedigree(version, clock),
        protocol: ReachProtocol::Tcp,
        port: Some(port.port),
        asked: tcp.asked,
        answered,
        late: 0,
        not_sent: tcp.not_sent,
        answers: said.into_iter().filter(|(_, n)| *n > 0).map(|(word, _)| word.to_owned()).collect(),
        others: Vec::new(),
        // The system repeats a SYN that got no answer: what is left unanswered after that is no
        // loss of one packet.
        loss: None,
        by_direction: None,
        rtt: of_delays(&tcp.rtts),
        capacity: None,
        queues: None,
        bytes: ByteCount(u64::from(tcp.asked) * u64::from(version.header_len() + SYN)),
        took,
        health: Health::default(),
        host: None,
        flags,
        remarks,
    }
}

fn pedigree(version: IpVersion, clock: ClockSource) -> Pedigree {
    Pedigree {
        method: "reach".to_owned(),
        layer: Layer::Ip,
        direction: Direction::RoundTrip,
        version,
        clock,
        uncertainty:
            "order statistics of all answers; capacity the median of the pairs of least delay, 95 % interval"
                .to_owned(),
    }
}

fn loss(asked: u32, answered: u32) -> f64 {
    f64::from(asked.saturating_sub(answered)) / f64::from(asked.max(1))
}

fn word(said: What) -> &'static str {
    match said {
        What::EchoReply => "echo_reply",
        What::TimestampReply => "timestamp_reply",
        What::PortUnreachable => "port_unreachable",
        What::TimeExceeded => "time_exceeded",
        What::Refused => "unreachable",
        What::TooBig(_) => "too_big",
    }
}

const BY_PROGRAM: &str = "some or all timed by the program, whose wait for a core is in it: CAP_NET_RAW times refusals by the kernel";
/// A TCP header with the options that Linux sends.
const SYN: u32 = 40;

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use netaware_path::reach::{Reach, ReachPlan};

    use super::*;

    #[test]
    fn a_host_that_answers_late_is_not_one_that_never_answers() {
        let flags = |late| {
            let answers = Answers { asked: 2, late, ..Answers::default() };
            of_answers(IpVersion::V4, ReachProtocol::Echo, &answers, None, Span::from_secs(8)).flags
        };
        assert_eq!((flags(0), flags(1)), (vec!["silent".to_owned()], vec!["late".to_owned()]));
    }

    #[test]
    fn a_port_that_was_not_waited_for_is_not_said_to_be_filtered() {
        let waited = Span::from_millis(950);
        let mut port = TcpPort::default();
        (port.tries.asked, port.tries.waited) = (2, waited);
        let said = |rtt| of_tcp(IpVersion::V4, &port, Some(rtt), Span::from_secs(5));
        let near = said(Span::from_millis(20));
        assert!(near.flags == ["silent"] && near.remarks[0].contains("filtered"), "{near:?}");
        let far = said(Span::from_secs(2));
        assert!(far.flags == ["late"] && far.remarks[0].contains("time was too short"), "{far:?}");
        let answers = Answers { asked: 1, waited, ..Answers::default() };
        let longest = Some(Span::from_secs(2));
        let udp = of_answers(IpVersion::V4, ReachProtocol::Udp, &answers, longest, Span::from_secs(5));
        assert_eq!((udp.flags, udp.loss), (vec!["late".to_owned()], None));
    }

    #[test]
    fn a_port_that_nothing_was_sent_to_is_not_said_to_be_silent() {
        for longest in [None, Some(Span::from_secs(2))] {
            let mut port = TcpPort::default();
            port.tries.not_sent = 2;
            let mut said = of_tcp(IpVersion::V4, &port, longest, Span::from_secs(3));
            note_not_sent(&mut said, Some(1));
            assert_eq!((said.asked, said.not_sent, &said.flags[..]), (0, 2, &["not_sent".to_owned()][..]));
            assert!(said.remarks.len() == 1 && said.remarks[0].starts_with("2 not sent by this host: "));
            let warning = kept_in(&said).unwrap();
            assert!(warning.starts_with("TCP SYN: 2 not sent by this host: "), "{warning}");
        }
        let all_left = of_tcp(IpVersion::V4, &TcpPort::default(), None, Span::from_secs(3));
        assert_eq!(kept_in(&all_left), None);
    }

    /// On a path of 2 Mbit/s with a queue of 4 s IPv6 had a capacity from five pairs, and IPv4 had
    /// neither one nor a reason.
    #[test]
    fn a_capacity_that_is_missing_for_want_of_pairs_has_its_reason() {
        let plan = ReachPlan {
            host: IpAddr::from([192, 0, 2, 9]),
            smallest: 60,
            largest: 1500,
            time: Span::from_secs(5),
            count: None,
            gap: Span::from_millis(20),
            echo: true,
            timestamps: false,
            patience: Span::from_secs(1),
            stamp_error: Span::ZERO,
        };
        let nothing = Reach::new(plan).finding();
        let echo = Answers { asked: 27, answered: 27, ..Answers::default() };
        let with = |pairs| ReachFinding { pairs, echo: echo.clone(), ..nothing.clone() };
        assert_eq!(
            few_pairs(&with(4), None).as_deref(),
            Some(
                "only 4 pairs of large echoes were answered, which is too few to tell a capacity: a longer -t helps"
            )
        );
        assert!(
            few_pairs(&with(1), Some(3))
                .is_some_and(|why| why.ends_with(": a higher -c, or a longer -t, helps"))
        );
        assert!(few_pairs(&with(0), None).is_some_and(|why| why.starts_with("no pair of large echoes was")));
        // Where there is another reason, or nothing came at all, this is none.
        let batched = ReachFinding { batched: true, ..with(4) };
        let slow = ReachFinding { lasting: Some(Lasting::TooSlow), ..with(5) };
        for other in [batched, slow, nothing] {
            assert_eq!(few_pairs(&other, None), None, "{other:?}");
        }
    }

    #[test]
    fn the_length_from_which_on_nothing_came_is_named() {
        let said = |answered| vanish(TooLarge { length: 1400, asked: 14, answered });
        assert!(said(Some(1380)).starts_with(
            "no echo of 1400 bytes or more was answered (14 asked), and those of 1380 bytes were: "
        ));
        assert!(said(None).contains("and small ones were"));
    }
}
