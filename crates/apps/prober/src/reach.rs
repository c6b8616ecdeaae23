//! `netaware reach`: what a host answers that runs nothing for us.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use netaware_host::CpuSnapshot;
use netaware_io::clock;
use netaware_io::handshake::{AnswerEar, Handshake};
use netaware_io::options::SocketOptions;
use netaware_io::stop::StopFlag;
use netaware_path::reach::{Reach, ReachPlan};
use netaware_record::{HonestRate, Record};
use netaware_units::{ClockSource, Mono, Span};

use crate::alone::{Alone, Turn, UDP_HEADER};
use crate::departures::Departures;
use crate::host::{self, During, Known};
use crate::progress::Progress;
use crate::report;
use crate::request::Target;

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

/// Attempts to open a connection.
#[derive(Debug, Default)]
pub(crate) struct TcpTries {
    pub(crate) port: u16,
    pub(crate) asked: u32,
    pub(crate) rtts: Vec<Span>,
    pub(crate) accepted: u32,
    pub(crate) refused: u32,
    /// ICMP said why not.
    pub(crate) unreachable: u32,
    /// Timed by the kernel, of those with a time.
    pub(crate) by_kernel: u32,
    /// Hears refusals, where that is permitted.
    ear: Option<AnswerEar>,
}

impl TcpTries {
    fn answered(&self) -> u32 {
        self.accepted + self.refused
    }

    /// Opens a connection and drops it, whichever way it is answered.
    fn once(&mut self, host: IpAddr, options: &SocketOptions, patience: Span) {
        self.asked += 1;
        let timed = match Handshake::attempt(
            SocketAddr::new(host, self.port),
            options,
            patience,
            self.ear.as_mut(),
        ) {
            Handshake::Accepted(timed) => {
                self.accepted += 1;
                timed
            }
            Handshake::Refused(timed) => {
                self.refused += 1;
                timed
            }
            Handshake::Unreachable => return self.unreachable += 1,
            Handshake::Silent => return,
        };
        self.by_kernel += u32::from(timed.clock == ClockSource::Kernel);
        self.rtts.push(timed.rtt);
    }

    /// Who never answers costs the patience each time.
    fn is_worth_asking(&self) -> bool {
        self.asked < SILENT_TRIES || self.answered() > 0
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
    let (version, host) = (turn.result.version, turn.destination.ip());
    turn.watch.phase("ask", Some(version));
    let (cpu, began_at) = (CpuSnapshot::take(), clock::now());
    let mut departures = Departures::default();
    let packet = request.packet.unwrap_or(turn.largest());
    let mut method = Reach::new(plan(request, turn, known, packet));
    let mut tcp = request.tcp_port.map(|port| TcpTries {
        port,
        ear: AnswerEar::open(host).ok(),
        ..TcpTries::default()
    });
    let mut tcp_at = Mono(0);
    while let Some(round) = method.next(clock::now()) {
        let report = turn.socket.run(&round, turn.stop);
        method.take(&report);
        if turn.stop.is_raised() {
            method.stop();
            continue;
        }
        departures.observe_round(&round, &report);
        let left = (began_at + turn.time).since(clock::now()) - MARGIN;
        let due = clock::now().since(tcp_at) >= TCP_EVERY && left > MARGIN;
        if let Some(tcp) = tcp.as_mut().filter(|tcp| due && tcp.is_worth_asking()) {
            tcp_at = clock::now();
            tcp.once(host, &request.target.options, PATIENCE.min(left));
        }
    }
    let took = clock::now() - began_at;
    let found = method.finding();
    let icmp = found.echo.answered + found.timestamps.answered;
    let answered = icmp + found.udp.answered + tcp.as_ref().map_or(0, TcpTries::answered);
    if answered == 0 {
        turn.is_silent(format!("{host} answered neither echo nor TCP nor UDP within {took}"), NOBODY);
        return;
    }
    let instrument = ReachInstrument {
        during: During::new(departures, &CpuSnapshot::take().use_since(&cpu, took)),
        host: known.honest("reach", packet),
    };
    let asked = report::reach::Asked { packet, udp_port: request.target.port, took };
    turn.result.reach_probes = report::reach::results(version, &found, tcp.as_ref(), &asked, &instrument);
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
        patience: PATIENCE,
        stamp_error: known.calibration.stamp_error,
    }
}

const NOBODY: &str = "see with 'netaware hops' how far packets get, or name an open port with --tcp-port";
const PATIENCE: Span = Span::from_millis(1000);
const MARGIN: Span = Span::from_millis(50);
const TCP_EVERY: Span = Span::from_millis(250);
const SILENT_TRIES: u32 = 2;
