//! A scenario with a seed, and two hosts at its ends.

use netaware_engine::Engine;
use netaware_netmodel::{Network, Scenario, Side, Truth};
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};

use crate::clock::LocalClock;
use crate::drive::{Drive, index};
use crate::echo_responder::EchoResponder;
use crate::run::Run;
use crate::stream::{ProbeStream, StreamFates};

/// A network in which time passes when somebody runs something. Runs follow each other on the same
/// network: what one left under way is still there for the next, as on a real path.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) network: Network,
    pub(crate) clocks: [LocalClock; 2],
    /// Largest IP packet that a host sends, by side and IP version: its own link's, or what routers
    /// told it.
    pub(crate) mtu: [[u32; 2]; 2],
    pub(crate) now: Mono,
    /// Number of the next packet.
    pub(crate) next_id: u64,
    /// Whether something on the path makes copies.
    pub(crate) makes_copies: bool,
}

/// How the datagrams of a run travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Over which IP version.
    pub version: IpVersion,
    /// Whether they may be cut into pieces.
    pub fragments: Fragments,
    /// Distinguishes it from others where parallel links balance by flow.
    pub flow: u64,
    /// When the engine at A is told to stop, from the run's begin.
    pub stop_after: Option<Span>,
    /// When the run is cut off, from its begin.
    pub cut_off_after: Span,
}

impl Flow {
    /// Not to be fragmented, and no end but its own within an hour.
    pub const fn new(version: IpVersion) -> Self {
        Self {
            version,
            fragments: Fragments::Forbidden,
            flow: 1,
            stop_after: None,
            cut_off_after: Span::from_secs(3600),
        }
    }
}

/// Whether datagrams may be cut into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fragments {
    /// "Don't fragment": what exceeds the path MTU that the host knows is refused at once, as Linux
    /// does it with `IP_PMTUDISC_DO`.
    Forbidden,
    /// IPv4 routers may. IPv6 routers never do, so there it is the same as `Forbidden`: the model
    /// has no hosts that fragment.
    Allowed,
}

impl Simulation {
    /// The path of `scenario` at time zero. Equal seeds make equal simulations.
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        let network = Network::new(scenario, seed);
        let clocks = [Side::A, Side::B].map(|side| LocalClock::new(scenario, side, network.clock(side)));
        let own = |side| VERSIONS.map(|version| own_mtu(scenario, side, version));
        let copies = |side| {
            let links = scenario.links(side);
            links.iter().any(|(_, link)| link.wires.iter().any(|wire| wire.duplication > 0.0))
        };
        Self {
            clocks,
            mtu: [own(Side::A), own(Side::B)],
            now: Mono(0),
            next_id: 0,
            makes_copies: copies(Side::A) || copies(Side::B),
            network,
        }
    }

    /// True time.
    pub fn now(&self) -> Mono {
        self.now
    }

    /// What the clock of this host shows now: engines take their instants from it.
    pub fn local_now(&self, side: Side) -> Mono {
        self.clock(side).reading(self.now)
    }

    /// The clock of a host.
    pub fn clock(&self, side: Side) -> &LocalClock {
        &self.clocks[index(side)]
    }

    /// What happened on each link so far.
    pub fn truth(&self) -> &Truth {
        self.network.truth()
    }

    /// Largest IP packet that a host would send now, bytes: that of its own link, or less if
    /// routers said so.
    pub fn known_mtu(&self, side: Side, version: IpVersion) -> u32 {
        self.mtu[index(side)][version_index(version)]
    }

    /// Runs an engine at A against an [`EchoResponder`] at B.
    pub fn run<E: Engine>(&mut self, flow: &Flow, engine: &mut E, on_event: impl FnMut(E::Event)) -> Drive {
        self.run_against(flow, engine, &mut EchoResponder::new(), on_event)
    }

    /// Runs an engine at A against any other at B, until the one at A is done or the run is cut
    /// off. What the one at B reports is dropped.
    pub fn run_against<E: Engine, F: Engine>(
        &mut self,
        flow: &Flow,
        near: &mut E,
        far: &mut F,
        mut on_event: impl FnMut(E::Event),
    ) -> Drive {
        Run::new(self, *flow, near, far).go(&mut on_event)
    }

    /// Sends packets one way, evenly spaced, and tells what became of each.
    pub fn stream(&mut self, stream: &ProbeStream) -> StreamFates {
        stream.run(self)
    }

    /// The same at given instants of true time instead of even ones, at most `stream.count`: what
    /// the packets of a stream that was really sent would have met here.
    pub fn stream_at(&mut self, stream: &ProbeStream, departures: &[Mono]) -> StreamFates {
        stream.run_at(self, departures.iter().copied())
    }

    /// Lets time pass with nothing sent.
    pub fn pass(&mut self, span: Span) {
        self.now += span.or_zero();
        self.network.advance(self.now, &mut |_| {});
    }
}

fn own_mtu(scenario: &Scenario, side: Side, version: IpVersion) -> u32 {
    scenario.links(side).first().map_or(u32::MAX, |(_, link)| link.wire(version).mtu)
}

pub(crate) const fn version_index(version: IpVersion) -> usize {
    match version {
        IpVersion::V4 => 0,
        IpVersion::V6 => 1,
    }
}

const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];
