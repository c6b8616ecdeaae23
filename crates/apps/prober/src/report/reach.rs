//! A host that does not cooperate, as the record has it.

use netaware_path::Bound;
use netaware_path::hops::What;
use netaware_path::reach::{Answers, HostClock, ReachFinding, WayQueue, WayQueues};
use netaware_probe::summary::of_delays;
use netaware_record::{
    Direction, Health, IpVersion, Layer, Pedigree, QueuedWay, RateBound, ReachCapacity, ReachLoss,
    ReachProtocol, ReachQueue, ReachQueues, ReachResult,
};
use netaware_units::{ByteCount, ClockSource, Span};

use crate::estimation::interval;
use crate::reach::{ReachInstrument, TcpTries};
use crate::report::path_rates::ability;

/// With what.
pub(crate) struct Asked {
    /// Paired echoes, bytes.
    pub(crate) packet: u32,
    pub(crate) udp_port: u16,
    pub(crate) took: Span,
}

/// One result per protocol that was tried.
pub(crate) fn results(
    version: IpVersion,
    found: &ReachFinding,
    tcp: Option<&TcpTries>,
    asked: &Asked,
    instrument: &ReachInstrument,
) -> Vec<ReachResult> {
    let Asked { packet, udp_port, took } = *asked;
    let mut results = Vec::new();
    if found.echo.asked > 0 {
        let mut echo = of_answers(version, ReachProtocol::Echo, &found.echo, took);
        echo.by_direction =
            found.by_direction.map(|by| ReachLoss { forward: by.forward, reverse: by.reverse, of: by.of });
        echo.capacity = found.capacity.as_ref().map(|(rate, bound)| ReachCapacity {
            rate: interval(rate),
            bound: match bound {
                Bound::None => RateBound::None,
                Bound::AtLeast => RateBound::AtLeast,
                Bound::AtMost => RateBound::AtMost,
            },
            pairs: found.pairs,
            packet,
        });
        if found.capacity.is_some() {
            echo.host.clone_from(&instrument.host);
        }
        if found.host_limited {
            echo.flags.push("host_limited".to_owned());
            let because = instrument.host.as_ref().map(|host| format!(": {}", ability(host)));
            let because = because.unwrap_or_default();
            echo.remarks.push(format!("host-limited: this host sends or stamps pairs no better{because}"));
        }
        if found.batched {
            echo.flags.push("batched".to_owned());
            let why = "answers are handed over in batches (interrupt coalescing): pairs tell no capacity";
            echo.remarks.push(why.to_owned());
        }
        results.push(echo);
    }
    if found.timestamps.asked > 0 {
        results.push(of_timestamps(version, found, took));
    }
    results.extend(tcp.filter(|tcp| tcp.asked > 0).map(|tcp| of_tcp(version, tcp, took)));
    if found.udp.asked > 0 {
        let mut udp = of_answers(version, ReachProtocol::Udp, &found.udp, took);
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
    }
    results
}

fn of_timestamps(version: IpVersion, found: &ReachFinding, took: Span) -> ReachResult {
    let mut result = of_answers(version, ReachProtocol::Timestamp, &found.timestamps, took);
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

fn of_answers(version: IpVersion, protocol: ReachProtocol, of: &Answers, took: Span) -> ReachResult {
    let silent = of.answered == 0;
    let (mut flags, mut remarks) = (Vec::new(), Vec::new());
    if silent {
        flags.push("silent".to_owned());
        remarks.push("never answered".to_owned());
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
        answers: of.said.iter().map(|said| word(*said).to_owned()).collect(),
        others: of.others.iter().map(ToString::to_string).collect(),
        loss: (!silent).then(|| loss(of.asked, of.answered)),
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

fn of_tcp(version: IpVersion, tcp: &TcpTries, took: Span) -> ReachResult {
    let answered = tcp.accepted + tcp.refused;
    let said = [("accepted", tcp.accepted), ("refused", tcp.refused), ("unreachable", tcp.unreachable)];
    let (flags, remarks) = match (answered, tcp.unreachable) {
        (0, 0) => (vec!["silent".to_owned()], vec!["never answered: filtered, or nobody there".to_owned()]),
        (0, _) => (vec!["filtered".to_owned()], vec!["a router says that it goes no further".to_owned()]),
        _ if tcp.by_kernel < answered => (Vec::new(), vec![BY_PROGRAM.to_owned()]),
        _ => (Vec::new(), Vec::new()),
    };
    let all_by_kernel = answered > 0 && tcp.by_kernel == answered;
    let clock = if all_by_kernel { ClockSource::Kernel } else { ClockSource::Application };
    ReachResult {
        pedigree: pedigree(version, clock),
        protocol: ReachProtocol::Tcp,
        port: Some(tcp.port),
        asked: tcp.asked,
        answered,
        answers: said.into_iter().filter(|(_, n)| *n > 0).map(|(word, _)| word.to_owned()).collect(),
        others: Vec::new(),
        // The system repeats a SYN that got no answer: what is left unanswered after that is no loss of one packet.
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
