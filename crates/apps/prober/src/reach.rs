//! `netaware reach`: what a host answers that runs nothing for us.

use std::collections::BTreeMap;
use std::thread;

use netaware_host::{CoreDemand, CpuSnapshot};
use netaware_io::clock;
use netaware_io::handshake::{AnswerEar, Handshake};
use netaware_io::options::SocketOptions;
use netaware_io::stop::StopFlag;
use netaware_io::zone::ZonedIp;
use netaware_path::reach::{Reach, ReachFinding, ReachPlan, TcpAnswer, TcpTries};
use netaware_record::{CpuUse, HonestRate, Record};
use netaware_stats::patience;
use netaware_units::{ClockSource, Span};

use crate::alone::{Alone, Turn, UDP_HEADER};
use crate::departures::Departures;
use crate::dial::SENT_AGAIN_BY;
use crate::host::{self, During, Known};
use crate::progress::Progress;
use crate::report;
use crate::request::Target;
use crate::stage::OWN_HOST;

/// What to find out.
#[derive(Debug, Clone)]
pub struct ReachRequest {
    /// Whom; its port is where UDP goes and nobody is expected.
    pub target: Target,
    /// What the whole may take, shared out over the versions.
    pub time: Span,
    /// Ends sooner, after so many lone echoes over each version.
    pub count: Option<u32>,
    /// Between questions.
    pub gap: Span,
    /// Where TCP connects to; absent leaves TCP out.
    pub tcp_port: Option<u16>,
    /// Largest IP packet of pairs, bytes; absent: what fits the path.
    pub packet: Option<u32>,
}

impl ReachRequest {
    /// The usual one.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            time: Span::from_secs(10),
            count: None,
            gap: Span::from_millis(20),
            tcp_port: Some(80),
            packet: None,
        }
    }

    fn options(&self) -> BTreeMap<String, String> {
        let given = [
            ("time", Some(self.time.to_string())),
            ("count", self.count.map(|n| n.to_string())),
            ("gap", Some(self.gap.to_string())),
            ("tcp-port", self.tcp_port.map(|port| port.to_string())),
            ("packet", self.packet.map(|packet| format!("{packet} B"))),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// Attempts to open a connection to a port.
#[derive(Debug, Default)]
pub(crate) struct TcpPort {
    pub(crate) port: u16,
    pub(crate) tries: TcpTries,
    /// Timed by the kernel, of those with a time.
    pub(crate) by_kernel: u32,
    /// Why the last SYN that never left did not (errno).
    pub(crate) refused: Option<i32>,
    /// Silent ones that were given up before the system had sent their SYN again: only by that is
    /// it known that a firewall of this host drops it.
    given_up_early: u32,
    /// Hears refusals, where that is permitted.
    ear: Option<AnswerEar>,
}

impl TcpPort {
    /// Opens a connection and drops it, whichever way it is answered.
    fn once(&mut self, host: ZonedIp, options: &SocketOptions, patience: Span) -> TcpAnswer {
        let began_at = clock::now();
        let to = host.at(self.port);
        let (answer, timed) = match Handshake::attempt(to, options, patience, self.ear.as_mut()) {
            Handshake::Accepted(timed) => (TcpAnswer::Accepted(timed.rtt), Some(timed)),
            Handshake::Refused(timed) => (TcpAnswer::Refused(timed.rtt), Some(timed)),
            Handshake::Unreachable => (TcpAnswer::Unreachable, None),
            Handshake::Silent => (TcpAnswer::Silent, None),
            Handshake::NotSent(why) => {
                self.refused = why.or(self.refused);
                (TcpAnswer::NotSent, None)
            }
        };
        self.tries.waited = self.tries.waited.max(patience);
        self.by_kernel += u32::from(timed.is_some_and(|timed| timed.clock == ClockSource::Kernel));
        self.tries.take(began_at, answer);
        self.given_up_early += u32::from(answer == TcpAnswer::Silent && patience < SENT_AGAIN_BY);
        answer
    }

    /// Once all were tried: where nothing came and this host's own firewall dropped those that were
    /// awaited for long enough to see it, it dropped the others, too.
    fn settle(&mut self) {
        if self.refused == Some(report::EPERM) && self.tries.answered() + self.tries.unreachable == 0 {
            let dropped = std::mem::take(&mut self.given_up_early);
            self.tries.asked -= dropped;
            self.tries.not_sent += dropped;
        }
    }
}

/// Finds out over one version after the other.
pub fn reach(request: &ReachRequest, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
    let (target, options) = (&request.target, request.options());
    let known = host::known();
    Alone { command: "reach", target, options, time: request.time, stop }
        .run(progress, |turn| over(request, &known.through(turn.socket.local()), turn))
}

/// What this host was as an instrument.
pub(crate) struct ReachInstrument {
    pub(crate) during: During,
    /// What it can tell from pairs of echoes.
    pub(crate) host: Option<HonestRate>,
}

fn over(request: &ReachRequest, known: &Known, turn: &mut Turn<'_, '_>) {
    let (version, host) = (turn.result.version, ZonedIp::of(turn.destination));
    turn.watch.phase("ask", Some(version));
    let (cpu, began_at) = (CpuSnapshot::take(), clock::now());
    let (mut departures, mut demand) = (Departures::default(), CoreDemand::default());
    let packet = request.packet.unwrap_or(turn.largest());
    let mut method = Reach::new(plan(request, turn, known, packet));
    let tcp =
        request.tcp_port.map(|port| TcpPort { port, ear: AnswerEar::open(host).ok(), ..TcpPort::default() });
    let options = &request.target.options;
    let end = began_at + turn.time;
    let mut tcp = thread::scope(|scope| {
        // The first is asked at the same time as the first question: on a slow path either takes
        // most of a short time.
        let mut first = tcp.map(|mut tcp| {
            let now = clock::now();
            let left = end.since(now);
            let patience = tcp.tries.due(now, left, method.first_syn_patience(left));
            scope.spawn(move || {
                if let Some(patience) = patience {
                    tcp.once(host, options, patience);
                }
                tcp
            })
        });
        let (mut tcp, mut heard): (Option<TcpPort>, u32) = (None, 0);
        while let Some(round) = method.next(clock::now()) {
            let Turn { socket, stop, .. } = turn;
            let report = demand.during(clock::now, Span::ZERO, || socket.run(&round, stop));
            if turn.stop.is_raised() {
                // What has no answer yet was not waited for.
                method.stop();
            }
            method.take(&report);
            if turn.stop.is_raised() {
                continue;
            }
            departures.observe_round(&round, &report);
            tcp = tcp.or_else(|| first.take_if(|it| it.is_finished())?.join().ok());
            let now = clock::now();
            if let Some(tcp) = &mut tcp
                && !method.strains()
                && let Some(patience) =
                    tcp.tries.due(now, end.since(now), method.syn_patience(tcp.tries.unanswered()))
            {
                let answered = tcp.tries.answered();
                if tcp.once(host, options, patience) == TcpAnswer::Silent && answered > 0 {
                    method.missed(now);
                }
            }
            let answered = tcp.as_ref().map_or(0, |tcp| tcp.tries.answered());
            if answered > heard {
                heard = answered;
                method.heard(clock::now());
            }
        }
        tcp.or_else(|| first.take()?.join().ok())
    });
    if let Some(tcp) = &mut tcp {
        tcp.settle();
    }
    let took = clock::now() - began_at;
    let found = method.finding();
    let icmp = found.echo.answered + found.timestamps.answered;
    let answered = icmp + found.udp.answered + tcp.as_ref().map_or(0, |tcp| tcp.tries.answered());
    let refused = turn.socket.counts().refused.or(tcp.as_ref().and_then(|tcp| tcp.refused));
    if answered == 0 {
        let asked = found.echo.asked + found.udp.asked + found.timestamps.asked;
        // The system does not say what became of a SYN that its own firewall dropped.
        let silent_tcp = tcp.as_ref().is_some_and(|tcp| tcp.tries.asked > 0);
        match refused.filter(|_| asked == 0) {
            Some(errno) if silent_tcp => {
                let why = report::refusal(errno);
                let reason =
                    format!("only TCP could be sent to {host}, and it was not answered within {took}: {why}");
                turn.is_silent(reason, OWN_HOST);
            }
            Some(errno) => turn.sends_nothing(errno),
            None => {
                let advice = turn.advice_on_silence(NOBODY);
                turn.is_silent(silence(&found, &method, tcp.as_ref(), took, host), advice);
            }
        }
        return;
    }
    let cpu = CpuUse { denied: demand.denied(), ..CpuSnapshot::take().use_since(&cpu, took) };
    let instrument =
        ReachInstrument { during: During::new(departures, &cpu), host: known.honest("reach", found.paired) };
    let asked = report::reach::Asked { udp_port: request.target.port, took, refused, count: request.count };
    if let Some(ceased) = found.ceased.filter(|_| !turn.stop.is_raised()) {
        turn.breaks_off(&ceased);
    }
    turn.result.reach_probes = report::reach::results(version, &found, tcp.as_ref(), &asked, &instrument);
}

/// Nobody answered in time; whether somebody did later.
fn silence(found: &ReachFinding, method: &Reach, tcp: Option<&TcpPort>, took: Span, host: ZonedIp) -> String {
    let late = found.echo.late + found.udp.late + found.timestamps.late;
    if late > 0 {
        let rtt = method.longest().unwrap_or_default();
        // Each version has had its share of the time.
        return format!(
            "{host} answers, but only after {rtt}: {took} were too short for this IP version; a longer -t gives it more"
        );
    }
    let asked =
        [found.echo.asked + found.timestamps.asked, tcp.map_or(0, |tcp| tcp.tries.asked), found.udp.asked];
    let [by_echo, by_tcp, by_udp] = asked.map(|times| times > 0);
    let neither = neither(&[("echo", by_echo), ("TCP", by_tcp), ("UDP", by_udp)]);
    format!("{host} answered {neither} within {took}{}", if_asked_once(asked))
}

/// What is to be said of a host that was asked so many times by each means: a single question says
/// little.
fn if_asked_once(asked: [u32; 3]) -> &'static str {
    if asked.into_iter().max() == Some(1) {
        ", and each was asked once: an outage of a moment looks the same, and a longer -t asks again"
    } else {
        ""
    }
}

/// What was asked for in vain; what there was no time to ask is not said to be unanswered.
fn neither(asked: &[(&str, bool)]) -> String {
    let (asked, spared): (Vec<_>, Vec<_>) = asked.iter().copied().partition(|(_, is_asked)| *is_asked);
    let names = |of: &[(&str, bool)], word: &str| {
        of.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(&format!(" {word} "))
    };
    let unanswered = match &asked[..] {
        [] => "nothing".to_owned(),
        [(name, _)] => format!("no {name}"),
        several => format!("neither {}", names(several, "nor")),
    };
    if spared.is_empty() || asked.is_empty() {
        return unanswered;
    }
    format!("{unanswered} (the time was too short to ask by {})", names(&spared, "and"))
}

fn plan(request: &ReachRequest, turn: &Turn<'_, '_>, known: &Known, largest: u32) -> ReachPlan {
    ReachPlan {
        host: turn.destination.ip(),
        smallest: turn.result.version.header_len() + UDP_HEADER + 16,
        largest,
        time: turn.time,
        count: request.count,
        gap: request.gap,
        echo: turn.echo(),
        timestamps: turn.socket.timestamps(),
        patience: patience::MOST,
        stamp_error: known.calibration.stamp_error,
    }
}

const NOBODY: &str = "see with 'netaware hops' how far packets get, or name an open port with --tcp-port";

#[cfg(test)]
mod tests {
    use netaware_path::reach::{TcpAnswer, TcpTries};
    use netaware_units::Mono;

    use super::{TcpPort, if_asked_once, neither};

    /// "0/1, never answered: filtered, or nobody there" directly above "1 not sent by this host".
    #[test]
    fn a_syn_that_was_given_up_early_was_not_sent_where_the_firewall_of_this_host_drops_the_others() {
        let settled = |refused, answers: [TcpAnswer; 2]| {
            let mut port = TcpPort { refused, given_up_early: 1, ..TcpPort::default() };
            for answer in answers {
                port.tries.take(Mono(0), answer);
            }
            port.settle();
            let TcpTries { asked, not_sent, .. } = port.tries;
            (asked, not_sent)
        };
        let dropped = [TcpAnswer::NotSent, TcpAnswer::Silent];
        assert_eq!(settled(Some(1), dropped), (0, 2));
        // A missing route is known at once, and of each.
        assert_eq!(settled(Some(101), dropped), (1, 1));
        assert_eq!(settled(None, [TcpAnswer::Silent, TcpAnswer::Unreachable]), (2, 0));
        assert_eq!(settled(Some(1), [TcpAnswer::Silent, TcpAnswer::Unreachable]), (2, 0));
    }

    /// An outage of two seconds at the begin took a version away, and it was said to be silent.
    #[test]
    fn a_host_that_was_asked_once_may_have_met_an_outage() {
        for asked in [[1, 1, 1], [1, 0, 0], [0, 1, 1]] {
            assert!(if_asked_once(asked).contains("an outage of a moment looks the same"), "{asked:?}");
        }
        assert_eq!([if_asked_once([0, 0, 0]), if_asked_once([2, 1, 0])], ["", ""]);
    }

    #[test]
    fn what_was_not_asked_is_not_said_to_be_unanswered() {
        let said = |echo, tcp, udp| neither(&[("echo", echo), ("TCP", tcp), ("UDP", udp)]);
        assert_eq!(said(true, true, true), "neither echo nor TCP nor UDP");
        assert_eq!(said(false, false, true), "no UDP (the time was too short to ask by echo and TCP)");
        assert_eq!(said(false, true, true), "neither TCP nor UDP (the time was too short to ask by echo)");
        assert_eq!(said(false, false, false), "nothing");
    }
}
