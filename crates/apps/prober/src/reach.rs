//! `netaware reach`: what a host answers that runs nothing for us.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

use netaware_io::clock;
use netaware_io::hop_socket::{EchoAccess, HopSocket};
use netaware_io::options::{self, ConnectError, SocketOptions};
use netaware_io::stop::StopFlag;
use netaware_path::reach::{Reach, ReachPlan};
use netaware_record::{IpVersion, Record, Unreachable, VersionResult};
use netaware_units::{Mono, Span};

use crate::hops::no_echo;
use crate::progress::{Progress, Watch};
use crate::report::{self, reach as reach_report};
use crate::request::Target;
use crate::resolve::resolve;
use crate::stage::{Cause, Failure};

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
}

impl TcpTries {
    fn answered(&self) -> u32 {
        self.accepted + self.refused
    }

    /// Opens a connection and drops it, whichever way it is answered.
    fn once(&mut self, host: IpAddr, options: &SocketOptions, patience: Span) {
        let to = SocketAddr::new(host, self.port);
        let began_at = clock::now();
        let outcome = options::connect_tcp(to, options, patience);
        let rtt = clock::now() - began_at;
        self.asked += 1;
        match outcome {
            Ok(stream) => {
                options::close_now(&stream);
                self.accepted += 1;
                self.rtts.push(rtt);
            }
            Err(ConnectError::System { source, .. }) => match source.kind() {
                io::ErrorKind::ConnectionRefused => {
                    self.refused += 1;
                    self.rtts.push(rtt);
                }
                io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => self.unreachable += 1,
                _ => {}
            },
            Err(ConnectError::Option { .. }) => {}
        }
    }

    /// Who never answers costs the patience each time.
    fn is_worth_asking(&self) -> bool {
        self.asked < SILENT_TRIES || self.answered() > 0
    }
}

/// Finds out over one version after the other.
pub fn reach(request: &ReachRequest, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
    let opened = report::Opening::now("reach", &request.target, request.options());
    let deadline = clock::now() + request.time;
    let mut watch = Watch::new(request.time, progress);
    watch.phase("look up", None);
    let resolved = resolve(&request.target);
    let mut warnings = Vec::new();
    let mut locals: Vec<IpAddr> = Vec::new();
    let mut versions: Vec<VersionResult> = Vec::new();
    let mut left = request.target.versions.len();
    for version in request.target.versions.iter().copied() {
        let mut result = VersionResult::new(version);
        let address = match &resolved {
            Ok(resolved) => resolved.address(version),
            Err(failure) => Err(failure.clone()),
        };
        let share = (deadline - clock::now()).or_zero() / i64::try_from(left.max(1)).unwrap_or(1);
        left -= 1;
        match address {
            Err(failure) => result.unreachable = Some(failure.unreachable()),
            Ok(_) if stop.is_raised() => {
                result.unreachable = Some(Failure::new("probe", None, Cause::Stopped).unreachable());
            }
            Ok(address) => {
                result.address = Some(address.ip().to_string());
                watch.phase("ask", Some(version));
                let local = over(request, address, share, &mut result, &mut warnings, stop);
                result.local = local.map(|local| local.to_string());
                locals.extend(local);
            }
        }
        versions.push(result);
    }
    report::finish_alone(opened, versions, warnings, &locals, stop)
}

fn over(
    request: &ReachRequest,
    destination: SocketAddr,
    time: Span,
    result: &mut VersionResult,
    warnings: &mut Vec<String>,
    stop: &StopFlag,
) -> Option<IpAddr> {
    let version = result.version;
    let mut socket = match HopSocket::open(destination, &request.target.options) {
        Ok(socket) => socket,
        Err(error) => {
            result.unreachable = Some(Unreachable {
                stage: "probe".to_owned(),
                reason: error.to_string(),
                advice: "check that this host has an address and a route of this version".to_owned(),
            });
            return None;
        }
    };
    if let EchoAccess::Refused(why) = socket.echo() {
        warnings.push(format!("{}: {}", version.name(), no_echo(why)));
    }
    let began_at = clock::now();
    let mut method = Reach::new(plan(request, &socket, destination.ip(), version, time));
    let mut tcp = request.tcp_port.map(|port| TcpTries { port, ..TcpTries::default() });
    let mut tcp_at = Mono(0);
    while let Some(round) = method.next(clock::now()) {
        let report = socket.run(&round, stop);
        method.take(&report);
        if stop.is_raised() {
            method.stop();
            continue;
        }
        let left = (began_at + time).since(clock::now()) - MARGIN;
        let due = clock::now().since(tcp_at) >= TCP_EVERY && left > MARGIN;
        if let Some(tcp) = tcp.as_mut().filter(|tcp| due && tcp.is_worth_asking()) {
            tcp_at = clock::now();
            tcp.once(destination.ip(), &request.target.options, PATIENCE.min(left));
        }
    }
    let took = clock::now() - began_at;
    let found = method.finding();
    let answered = found.echo.answered + found.udp.answered + tcp.as_ref().map_or(0, TcpTries::answered);
    if answered == 0 {
        result.unreachable = Some(Unreachable {
            stage: "probe".to_owned(),
            reason: format!("{} answered neither echo nor TCP nor UDP within {took}", destination.ip()),
            advice: "see with 'netaware hops' how far packets get, or name an open port with --tcp-port"
                .to_owned(),
        });
        return socket.local();
    }
    let packet = largest(request, &socket);
    result.reach_probes =
        reach_report::results(version, &found, tcp.as_ref(), packet, request.target.port, took);
    socket.local()
}

fn plan(
    request: &ReachRequest,
    socket: &HopSocket,
    host: IpAddr,
    version: IpVersion,
    time: Span,
) -> ReachPlan {
    ReachPlan {
        host,
        smallest: version.header_len() + UDP_HEADER + 16,
        largest: largest(request, socket),
        time,
        count: request.count,
        gap: request.gap,
        echo: *socket.echo() == EchoAccess::Granted,
        patience: PATIENCE,
    }
}

fn largest(request: &ReachRequest, socket: &HopSocket) -> u32 {
    let fits = socket.mtu().unwrap_or(USUAL_MTU).clamp(LEAST_MTU, USUAL_MTU);
    request.packet.unwrap_or(fits)
}

const USUAL_MTU: u32 = 1500;
const LEAST_MTU: u32 = 576;
const UDP_HEADER: u32 = 8;
const PATIENCE: Span = Span::from_millis(1000);
const MARGIN: Span = Span::from_millis(50);
const TCP_EVERY: Span = Span::from_millis(250);
const SILENT_TRIES: u32 = 2;
