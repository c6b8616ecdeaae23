//! Volleys of trains through a simulated path, one way, and estimators driven to their end on
//! virtual time.
//!
//! ```text
//!  Estimator ──volley──► host noise ──► Network ──► coalescing ──► stamp noise ──report──► Estimator
//!                        (late, stalls)  (links, cross traffic)
//! ```
//!
//! A [`VolleyPath`] is a [`Simulation`] that passes idle time without drawing each packet of the
//! cross traffic ([`idle`]): that is what makes thousands of estimations possible. Its hosts are
//! perfect unless a [`HostNoise`] says otherwise.

mod bank;
mod careful;
mod estimate;
mod host;
mod idle;
mod lived;

use netaware_netmodel::{Fate, Packet, Scenario, Side};
use netaware_path::{Arrival, Train, TrainReport, Volley, VolleyReport};
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};

use crate::simulation::Simulation;

pub use bank::Bank;
pub(crate) use careful::conclude_beside;
pub use careful::{Concluded, conclude};
pub use estimate::{Estimated, estimate};
pub use host::{HostNoise, Stall};

use host::Host;
use idle::Idle;
use lived::Lived;

/// A path and two hosts that send trains from one to the other.
#[derive(Debug)]
pub struct VolleyPath {
    sim: Simulation,
    from: Side,
    version: IpVersion,
    host: Host,
    idle: Option<Idle>,
    bank: Bank,
    lived: Lived,
    /// True time less that of the network, which does not live through what is skipped.
    skipped: Span,
    /// Offered packets without a fate so far.
    under_way: u64,
    /// Longest one-way delay since the path was last at rest.
    longest: Span,
    /// When the last packet was sent, true time.
    last_sent: Mono,
    /// From first to last packets of trains, all together.
    sending: Span,
}

/// What is being filled while a volley is under way.
struct Gathering {
    report: VolleyReport,
    /// Number in the network of each train's first packet.
    firsts: Vec<u64>,
}

impl VolleyPath {
    /// The path of `scenario` from `from` over IPv4, its cross traffic already in full swing where
    /// that is steady. Equal seeds make equal paths.
    pub fn new(scenario: &Scenario, from: Side, seed: u64, noise: HostNoise) -> Self {
        Self::with_bank(scenario, from, seed, noise, Bank::default())
    }

    /// The same with what earlier paths of the scenario have left in their bank;
    /// [`VolleyPath::into_bank`] is for the next.
    pub fn with_bank(scenario: &Scenario, from: Side, seed: u64, noise: HostNoise, bank: Bank) -> Self {
        Self::build(scenario, from, seed, noise, Idle::of(scenario, from, seed), bank)
    }

    /// The same without the short cut through idle time: slower, and the measure for it.
    pub fn without_skipping(scenario: &Scenario, from: Side, seed: u64, noise: HostNoise) -> Self {
        let idle = Idle::of(scenario, from, seed);
        let mut path = Self::build(scenario, from, seed, noise, idle, Bank::default());
        path.idle = None;
        path
    }

    fn build(
        scenario: &Scenario,
        from: Side,
        seed: u64,
        noise: HostNoise,
        idle: Option<Idle>,
        bank: Bank,
    ) -> Self {
        let sim = Simulation::new(scenario, seed);
        let lived = Lived::new(scenario, from, &sim);
        let mut path = Self {
            from,
            version: IpVersion::V4,
            host: Host::new(noise, seed),
            idle,
            bank,
            lived,
            skipped: Span::ZERO,
            under_way: 0,
            longest: Span::ZERO,
            last_sent: Mono(0),
            sending: Span::ZERO,
            sim,
        };
        path.warm_up();
        path
    }

    fn warm_up(&mut self) {
        let Some(idle) = &mut self.idle else { return };
        let warm_up = idle.settle(Span::ZERO);
        if !self.resume(Mono(0)) {
            self.sim.pass(warm_up);
            self.lived.begin(&self.sim);
        }
        self.last_sent = self.now();
    }

    /// What the bank holds now.
    pub fn into_bank(self) -> Bank {
        self.bank
    }

    /// True time, with what was skipped.
    pub fn now(&self) -> Mono {
        self.sim.now + self.skipped
    }

    /// Everything underneath. Its time is the network's: what was skipped is missing from it.
    pub fn simulation(&self) -> &Simulation {
        &self.sim
    }

    /// What cross traffic left of the tightest link on average, over all the time that the network
    /// has lived through; bit/s of layer 2. `None` where rates change or no time has passed.
    pub fn available(&self) -> Option<f64> {
        self.lived.available(&self.sim)
    }

    /// Share of the time in which trains were sent for which stalls had the sender's core, 0..=1; 0
    /// before any was.
    pub fn away(&self) -> f64 {
        (self.host.stalled().secs_f64() / self.sending.secs_f64().max(1e-9)).min(1.0)
    }

    /// When the last packet left.
    pub fn last_sent(&self) -> Mono {
        self.last_sent
    }

    /// Sends a volley from now on and waits until each of its packets has arrived or is lost.
    pub fn run(&mut self, volley: &Volley) -> VolleyReport {
        let report = VolleyReport { trains: vec![TrainReport::default(); volley.trains.len()] };
        let mut gathering = Gathering { report, firsts: Vec::with_capacity(volley.trains.len()) };
        let mut planned = self.now();
        for (number, train) in volley.trains.iter().enumerate() {
            planned += train.rest.or_zero();
            self.pass_gathering(planned, &mut gathering);
            planned = self.send(number, train, planned.max(self.now()), &mut gathering);
        }
        self.wait_for_all(&mut gathering);
        gathering.report
    }

    /// Lets time pass, up to `at`.
    pub fn pass_to(&mut self, at: Mono) {
        let mut nothing = Gathering { report: VolleyReport::default(), firsts: Vec::new() };
        self.pass_gathering(at, &mut nothing);
    }

    /// Sends one train that begins at `start`; gives the plan of its last packet.
    fn send(&mut self, number: usize, train: &Train, start: Mono, into: &mut Gathering) -> Mono {
        let first = self.sim.next_id;
        into.firsts.push(first);
        self.sim.next_id += u64::from(train.packets);
        into.report.trains[number].sent.reserve(train.packets as usize);
        self.host.begin(start);
        let fits = train.length <= self.sim.known_mtu(self.from, self.version);
        let mut told_at = self.sim.now;
        for n in 0..train.packets {
            let at = self.host.depart(train, n).max(self.now());
            if !fits {
                into.report.trains[number].sent.push(None);
                continue;
            }
            let reading = self.sim.clock(self.from).reading(at);
            let leaves = at + self.host.unseen();
            let here = leaves - self.skipped;
            // Nothing here depends on what arrives, so time may pass in slices.
            if here.since(told_at) >= SLICE {
                self.advance(here, into);
                told_at = here;
            }
            self.offer(here, first + u64::from(n), train.length);
            self.last_sent = leaves;
            into.report.trains[number].sent.push(Some(self.host.send_stamp(reading)));
        }
        self.sending += self.last_sent.since(start).or_zero();
        self.host.planned()
    }

    fn offer(&mut self, here: Mono, id: u64, length: u32) {
        let version = self.version;
        let packet = Packet { id, version, length, hop_limit: 64, flow: 1, dont_fragment: true };
        self.sim.network.offer(here, self.from, packet);
        self.sim.now = here;
        self.under_way += 1;
    }

    /// Time of the network.
    fn advance(&mut self, here: Mono, into: &mut Gathering) {
        self.sim.now = self.sim.now.max(here);
        let Self { sim, from, host, skipped, under_way, longest, .. } = self;
        let clock = &sim.clocks[crate::drive::index(from.other())];
        sim.network.advance(sim.now, &mut |fate| match fate {
            Fate::Delivered { duplicate: true, .. } => {}
            Fate::Delivered { id, at, corrupted_bit, delay, .. } => {
                *under_way = under_way.saturating_sub(1);
                *longest = (*longest).max(delay);
                let at = host.receive_stamp(clock.reading(at + *skipped));
                if corrupted_bit.is_none() {
                    into.arrived(id, at);
                }
            }
            Fate::Answered { .. } | Fate::Dropped { .. } => *under_way = under_way.saturating_sub(1),
        });
    }

    fn wait_for_all(&mut self, into: &mut Gathering) {
        let until = self.sim.now + LONGEST_WAIT;
        while self.under_way > 0 {
            let Some(next) = self.sim.network.next_event().filter(|next| *next <= until) else { break };
            self.advance(next, into);
        }
    }

    /// Goes on at `at`, true time, from a state of the bank; false if there are too few.
    fn resume(&mut self, at: Mono) -> bool {
        let Some(idle) = &mut self.idle else { return false };
        let Some((network, now)) = self.bank.draw(&mut idle.rng) else { return false };
        self.lived.end(&self.sim);
        (self.sim.network, self.sim.now) = (network, now);
        // Even traffic has more phases than the bank has states.
        self.sim.pass(idle.shift());
        self.skipped = at - self.sim.now;
        self.lived.begin(&self.sim);
        true
    }

    /// Lives through the time until all is at rest and as before, then skips the rest of it.
    fn pass_gathering(&mut self, at: Mono, into: &mut Gathering) {
        while self.under_way > 0 && self.idle.is_some() {
            let next = self.sim.network.next_event().filter(|next| *next + self.skipped <= at);
            let Some(next) = next else { break };
            self.advance(next, into);
        }
        let left = at.since(self.now()).or_zero();
        if let Some(idle) = self.idle.as_mut().filter(|_| self.under_way == 0) {
            let settle = idle.settle(self.longest);
            if left > settle {
                self.longest = Span::ZERO;
                if self.resume(at) {
                    return;
                }
                self.advance(self.sim.now + settle, into);
                self.bank.keep(&self.sim.network, self.sim.now);
                self.skipped += left - settle;
                return;
            }
        }
        self.advance(self.sim.now + left, into);
    }
}

impl Gathering {
    fn arrived(&mut self, id: u64, at: i64) {
        // An earlier volley's, or a later train's than any so far: neither is one of ours.
        let Some(train) = self.firsts.partition_point(|first| *first <= id).checked_sub(1) else { return };
        let number = (id - self.firsts[train]) as u32;
        self.report.trains[train].arrivals.push(Arrival { number, at });
    }
}

/// Time passes in steps of this while packets are offered.
const SLICE: Span = Span::from_micros(200);
/// A packet that has not arrived by then is left under way.
const LONGEST_WAIT: Span = Span::from_secs(60);

#[cfg(test)]
mod tests;
