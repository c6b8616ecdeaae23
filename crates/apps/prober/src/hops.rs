//! `netaware hops`: what each hop towards a host is like. Nobody at the far end has to cooperate.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use netaware_io::clock;
use netaware_io::hop_socket::{EchoAccess, HopSocket};
use netaware_io::stop::StopFlag;
use netaware_path::hops::{CapacityWay, Hops, HopsPlan, Stage};
use netaware_record::{IpVersion, Record, Unreachable, VersionResult};
use netaware_units::{Mono, Span};

use crate::progress::{Progress, Watch};
use crate::report::{self, hops as hops_report};
use crate::request::Target;
use crate::resolve::resolve;
use crate::stage::{Cause, Failure};

/// What to find out.
#[derive(Debug, Clone)]
pub struct HopsRequest {
    /// Towards whom; its port is where UDP probes go and nobody is expected.
    pub target: Target,
    /// What the whole may take, shared out over the versions.
    pub time: Span,
    /// Highest TTL tried.
    pub max_hops: u8,
    /// IP lengths to use; empty chooses by what answers look like.
    pub sizes: Vec<u32>,
    /// Ends sooner with so many delays per hop.
    pub per_hop: Option<u32>,
    /// How capacity is come by.
    pub way: CapacityWay,
    /// Whether choke points are looked for.
    pub trains: bool,
    /// Of the order of sizes.
    pub seed: u64,
}

impl HopsRequest {
    /// The usual one.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            time: Span::from_secs(40),
            max_hops: 30,
            sizes: Vec::new(),
            per_hop: None,
            way: CapacityWay::Automatic,
            trains: true,
            seed: 1,
        }
    }

    fn options(&self) -> BTreeMap<String, String> {
        let way = match self.way {
            CapacityWay::Automatic => "auto",
            CapacityWay::Direct => "direct",
            CapacityWay::Tailgating => "tailgating",
        };
        let sizes: Vec<String> = self.sizes.iter().map(|size| format!("{size}B")).collect();
        let given = [
            ("method", Some(way.to_owned())),
            ("time", Some(self.time.to_string())),
            ("max-hops", Some(self.max_hops.to_string())),
            ("sizes", (!sizes.is_empty()).then(|| sizes.join(","))),
            ("per-hop", self.per_hop.map(|n| n.to_string())),
            ("no-trains", (!self.trains).then(|| "yes".to_owned())),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    fn plan(&self, socket: &HopSocket, version: IpVersion, time: Span) -> HopsPlan {
        let header = version.header_len();
        let largest = socket.mtu().unwrap_or(USUAL_MTU).clamp(LEAST_MTU, USUAL_MTU);
        HopsPlan {
            max_hops: self.max_hops,
            smallest: header + UDP_HEADER + 16,
            largest,
            tail: header + UDP_HEADER + 4,
            header,
            sizes: self.sizes.clone(),
            time,
            per_hop: self.per_hop,
            way: self.way,
            echo: *socket.echo() == EchoAccess::Granted,
            trains: self.trains,
            stamp_error: STAMP_ERROR,
            seed: self.seed,
        }
    }
}

/// Finds out over one version after the other: two at a time would be each other's traffic.
pub fn hops(request: &HopsRequest, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
    let opened = report::Opening::now("hops", &request.target, request.options());
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
                let local = over(request, address, share, &mut result, &mut warnings, stop, &mut watch);
                result.local = local.map(|local| local.to_string());
                locals.extend(local);
            }
        }
        versions.push(result);
    }
    report::finish_alone(opened, versions, warnings, &locals, stop)
}

/// One version; its result goes into `result`. Gives the host's own address.
fn over(
    request: &HopsRequest,
    destination: SocketAddr,
    time: Span,
    result: &mut VersionResult,
    warnings: &mut Vec<String>,
    stop: &StopFlag,
    watch: &mut Watch<'_>,
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
    let mut method = Hops::new(request.plan(&socket, version, time));
    let mut told_at = Mono(0);
    while let Some(round) = method.next(clock::now()) {
        if clock::now().since(told_at) > TOLD_EVERY {
            told_at = clock::now();
            watch.phase(stage(method.stage()), Some(version));
        }
        let report = socket.run(&round, stop);
        method.take(&report);
        if stop.is_raised() {
            method.stop();
        }
    }
    let took = clock::now() - began_at;
    let found = method.finding();
    let nobody = found.hops.iter().all(|hop| hop.answered == 0);
    if nobody {
        result.unreachable = Some(Unreachable {
            stage: "probe".to_owned(),
            reason: format!("no hop towards {} answered within {took}", destination.ip()),
            advice: "check the route and whether a firewall drops UDP or ICMP; --port names another UDP port"
                .to_owned(),
        });
        return socket.local();
    }
    result.hops = Some(hops_report::result(version, &found, socket.counts(), took));
    socket.local()
}

/// What is missing without echoes, and what to do about it.
pub(crate) fn no_echo(why: &str) -> String {
    format!(
        "no ICMP echo ({why}): a destination that ignores UDP stays silent; CAP_NET_RAW, or a group of yours in \
         net.ipv4.ping_group_range, gives it"
    )
}

fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Find | Stage::FindByEcho | Stage::Alone | Stage::Repeat => "find hops",
        Stage::Ladder | Stage::Large => "largest packets",
        Stage::Measure => "sizes",
        Stage::Trains | Stage::Done => "trains",
    }
}

const USUAL_MTU: u32 = 1500;
const LEAST_MTU: u32 = 576;
const UDP_HEADER: u32 = 8;
/// Of a smallest delay: what the way through two kernels may differ between sizes, measured on loopback as below 1 us.
const STAMP_ERROR: Span = Span::from_nanos(700);
const TOLD_EVERY: Span = Span::from_millis(100);
