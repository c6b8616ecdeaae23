//! `netaware hops`: what each hop towards a host is like. Nobody at the far end has to cooperate.

use std::collections::BTreeMap;

use netaware_host::{CoreDemand, CpuSnapshot};
use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_io::zone::ZonedIp;
use netaware_path::hops::{CapacityWay, Hops, HopsPlan, Stage};
use netaware_record::{CpuUse, Direction, HonestRate, Record};
use netaware_units::{Mono, Span};

use crate::alone::{Alone, Turn, UDP_HEADER};
use crate::departures::Departures;
use crate::host::{self, During, Known};
use crate::progress::Progress;
use crate::report;
use crate::request::Target;

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

    fn plan(&self, turn: &Turn<'_, '_>, known: &Known) -> HopsPlan {
        let header = turn.result.version.header_len();
        HopsPlan {
            max_hops: self.max_hops,
            smallest: header + UDP_HEADER + 16,
            largest: turn.largest(),
            tail: header + UDP_HEADER + 4,
            header,
            sizes: self.sizes.clone(),
            time: turn.time,
            per_hop: self.per_hop,
            way: self.way,
            echo: turn.echo(),
            trains: self.trains,
            stamp_error: known.round_trip_error().max(STAMP_ERROR),
            send_gap: known.calibration.send_gap,
            seed: self.seed,
        }
    }
}

/// Finds out over one version after the other.
pub fn hops(request: &HopsRequest, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
    let (target, options) = (&request.target, request.options());
    let known = host::known();
    Alone { command: "hops", target, options, time: request.time, stop }
        .run(progress, |turn| over(request, &known.through(turn.socket.local()), turn))
}

fn over(request: &HopsRequest, known: &Known, turn: &mut Turn<'_, '_>) {
    let version = turn.result.version;
    let (cpu, began_at) = (CpuSnapshot::take(), clock::now());
    let (mut departures, mut demand) = (Departures::default(), CoreDemand::default());
    let plan = request.plan(turn, known);
    let stamp_error = plan.stamp_error;
    let mut method = Hops::new(plan);
    let mut told_at = Mono(0);
    while let Some(round) = method.next(clock::now()) {
        if clock::now().since(told_at) > TOLD_EVERY {
            told_at = clock::now();
            turn.watch.phase(stage(method.stage()), Some(version));
        }
        let Turn { socket, stop, .. } = turn;
        let report = demand.during(clock::now, Span::ZERO, || socket.run(&round, stop));
        // What has not left then, or has no answer yet, is nobody's fault.
        if turn.stop.is_raised() {
            method.stop();
        } else {
            departures.observe_round(&round, &report);
        }
        method.take(&report);
    }
    let took = clock::now() - began_at;
    let mut found = method.finding();
    if found.hops.iter().all(|hop| hop.answered == 0) {
        if found.packets == 0 {
            let reason = format!(
                "the time was too short to ask anything: looking for up to {} hops takes {} and the way back",
                request.max_hops,
                method.search()
            );
            return turn.is_silent(reason, "give it more time with -t, or look for fewer with --max-hops");
        }
        let reason = format!("no hop towards {} answered within {took}", ZonedIp::of(turn.destination));
        let refused = turn.socket.counts().refused.filter(|_| found.hops.iter().all(|hop| hop.asked == 0));
        if let Some(errno) = refused {
            return turn.sends_nothing(errno);
        }
        let advice = turn.advice_on_silence(NOBODY);
        return turn.is_silent(reason, advice);
    }
    let cpu = CpuUse { denied: demand.denied(), ..CpuSnapshot::take().use_since(&cpu, took) };
    let during = During::new(departures, &cpu);
    during.disturbance(Direction::RoundTrip, 0.0).on_hops(&mut found);
    let instrument = HopsInstrument { stamp_error, during, host: known.honest("hops", found.largest) };
    if let Some(ceased) = found.ceased.filter(|_| !turn.stop.is_raised()) {
        turn.breaks_off(&ceased);
    }
    turn.result.hops = Some(report::hops::result(version, &found, turn.socket.counts(), took, &instrument));
}

/// What this host was as an instrument.
pub(crate) struct HopsInstrument {
    /// Of a round trip.
    pub(crate) stamp_error: Span,
    pub(crate) during: During,
    /// What it can tell of links by sizes.
    pub(crate) host: Option<HonestRate>,
}

fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Find | Stage::FindByEcho | Stage::Alone | Stage::Repeat => "find hops",
        Stage::Ladder | Stage::Large => "largest packets",
        Stage::Measure => "sizes",
        Stage::Trains | Stage::Done => "trains",
    }
}

const NOBODY: &str =
    "check the route and whether a firewall drops UDP or ICMP; --port names another UDP port";
/// Of a smallest delay, at least: what the way through two kernels may differ between sizes,
/// measured on loopback as below 1 us.
const STAMP_ERROR: Span = Span::from_nanos(700);
const TOLD_EVERY: Span = Span::from_millis(100);
