//! The paths that estimators of capacity and available bandwidth are held against, with the truth
//! beside them.
//!
//! A [`Cell`] is one combination of rate, load, kind of cross traffic, interrupt coalescing and
//! shape of the path. Every link is Ethernet (38 bytes on top of each IP packet), its queue holds
//! 2,000 packets or 20 ms, and packets are of 1500 bytes, from 10 Gbit/s on of 9000 bytes, those of
//! the cross traffic too. Cross traffic stays on one hop. Propagation is short, and the round trip
//! is added between question and answer ([`crate::estimate`]), so that little is simulated in vain.
//! The hosts stamp like a kernel: 300 ns of error at the sender, 500 ns at the receiver.
//!
//! ```text
//!  One              ══ R,u ══
//!  Three            ══ 4R,u ══ R,u ══ 4R,u ══
//!  Five             ══ 10R,u ══ 2R,u ══ R,u ══ 2R,u ══ 10R,u ══
//!  NarrowNotTight   ══ 10R ══ R ══ T,u ══      T = R (1 + 1/(1-u)) / 2, so available = R (2-u) / 2
//! ```

use std::fmt;

use netaware_netmodel::{Scenario, ScenarioError, Side};
use netaware_path::Instrument;
use netaware_record::IpVersion;
use netaware_units::{BitRate, Span};

use crate::volley::HostNoise;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Of the narrow link, layer 2.
    pub rate: BitRate,
    /// Share of each loaded link that cross traffic takes, per cent.
    pub load: u32,
    /// How it comes.
    pub traffic: Traffic,
    /// Period of the receiver's interrupts.
    pub coalescing: Option<Span>,
    /// Hops.
    pub shape: Shape,
}

/// How cross traffic comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    /// At even distances.
    Cbr,
    /// At exponential distances.
    Poisson,
    /// At Pareto distances with tail 1.5.
    Pareto,
}

/// Hops of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One link.
    One,
    /// Loaded links of four times the rate before and behind.
    Three,
    /// Five loaded links.
    Five,
    /// The link with the least capacity is idle, and another has less available.
    NarrowNotTight,
}

/// What is true of a cell, bit/s of the IP layer with packets of the cell's length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellTruth {
    /// Of the narrow link.
    pub capacity: f64,
    /// Of the tight link, on average.
    pub available: f64,
    /// Of the tight link.
    pub tight_capacity: f64,
}

impl Cell {
    /// The whole matrix: every combination but those that only repeat another (no load has no kind
    /// of traffic, and no tight link).
    pub fn all() -> Vec<Self> {
        let mut cells = Vec::new();
        for rate in RATES.map(BitRate) {
            for coalescing in COALESCING {
                for (load, traffic) in loads() {
                    for shape in [Shape::One, Shape::Three, Shape::Five, Shape::NarrowNotTight] {
                        if load > 0 || shape != Shape::NarrowNotTight {
                            cells.push(Self { rate, load, traffic, coalescing, shape });
                        }
                    }
                }
            }
        }
        cells
    }

    /// Largest IP packet, bytes.
    pub const fn mtu(&self) -> u32 {
        if self.rate.0 >= 10_000_000_000 { 9000 } else { 1500 }
    }

    /// As a path.
    ///
    /// # Errors
    /// A rate or a load that no scenario may have.
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        let hops = self.links().into_iter().enumerate();
        let hops: String = hops.map(|(number, (rate, load))| self.hop(number, rate, load)).collect();
        let host = self.coalescing.map_or(String::new(), |period| {
            let period = period.nanos();
            format!("[host.b]\nreceive = {{ period = '{period}ns', batch = 64, per_packet = '300ns' }}\n")
        });
        Scenario::parse(&format!("about = '{self}'\n{hops}{host}"))
    }

    fn hop(&self, number: usize, rate: u64, load: u32) -> String {
        let delay = if number == 0 { "10us" } else { "1us" };
        let (mtu, queue) = (self.mtu(), queue(rate, self.mtu()));
        let hop = format!(
            "[[hop]]\nrate = '{rate}bit/s'\ndelay = '{delay}'\noverhead = {OVERHEAD}\nmtu = {mtu}\n\
             queue = {{ packets = {queue} }}\nanswers = {{ delay = '1ms' }}\n"
        );
        if load == 0 {
            return hop;
        }
        let (share, pattern) = (f64::from(load) / 100.0, self.traffic.pattern());
        format!("{hop}[[cross]]\nenter = {number}\nload = {share}\nsizes = {mtu}\n{pattern}")
    }

    /// Bits of IP in each bit of layer 2.
    pub fn ip_share(&self) -> f64 {
        f64::from(self.mtu()) / f64::from(self.mtu() + OVERHEAD)
    }

    /// What an estimator should say.
    pub fn truth(&self) -> CellTruth {
        let ip = self.ip_share();
        let free = |(rate, load): &(u64, u32)| *rate as f64 * f64::from(100 - load) / 100.0;
        let links = self.links();
        let capacity = links.iter().map(|(rate, _)| *rate).min().unwrap_or(0) as f64;
        let tight = links.iter().min_by(|a, b| free(a).total_cmp(&free(b))).copied().unwrap_or((0, 0));
        CellTruth {
            capacity: capacity * ip,
            available: free(&tight) * ip,
            tight_capacity: tight.0 as f64 * ip,
        }
    }

    /// What the hosts are told of themselves. The round trip is 10 ms, the time limit 30 s.
    pub fn instrument(&self) -> Instrument {
        let noise = self.noise();
        Instrument {
            largest: self.mtu(),
            smallest: 200,
            rtt: RTT,
            send_gap: noise.send_gap,
            send_error: noise.send_error,
            receive_error: noise.receive_error,
            largest_burst: queue(self.rate.0, self.mtu()) / 4 * u64::from(self.mtu()),
            max_load: 0.1,
            time_limit: Span::from_secs(30),
            carried: None,
        }
    }

    /// The hosts.
    pub fn noise(&self) -> HostNoise {
        HostNoise {
            send_gap: Span(500),
            send_error: Span(300),
            receive_error: Span(500),
            ..HostNoise::default()
        }
    }

    /// Rate and load of each link, from A.
    fn links(&self) -> Vec<(u64, u32)> {
        let (rate, load) = (self.rate.0, self.load);
        match self.shape {
            Shape::One => vec![(rate, load)],
            Shape::Three => vec![(4 * rate, load), (rate, load), (4 * rate, load)],
            Shape::Five => [10, 2, 1, 2, 10].map(|factor| (factor * rate, load)).to_vec(),
            Shape::NarrowNotTight => {
                let free = u64::from(100 - load.min(99));
                vec![(10 * rate, 0), (rate, 0), (rate / 2 + rate * 50 / free, load)]
            }
        }
    }
}

impl Traffic {
    const fn pattern(self) -> &'static str {
        match self {
            Self::Cbr => "pattern = 'constant'\n",
            Self::Poisson => "pattern = 'poisson'\n",
            Self::Pareto => "pattern = 'pareto'\nalpha = 1.5\n",
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.coalescing.unwrap_or_default().nanos() / 1000;
        let Self { rate, load, traffic, shape, .. } = self;
        write!(f, "{rate} {load} % {traffic:?} {micros} us {shape:?}")
    }
}

fn loads() -> impl Iterator<Item = (u32, Traffic)> {
    let kinds = [Traffic::Cbr, Traffic::Poisson, Traffic::Pareto];
    let loaded = [20, 50, 80].into_iter().flat_map(move |load| kinds.map(|traffic| (load, traffic)));
    std::iter::once((0, Traffic::Cbr)).chain(loaded)
}

/// Packets that wait at most.
fn queue(rate: u64, mtu: u32) -> u64 {
    (rate / 50 / 8 / u64::from(mtu)).max(2000)
}

/// What the model assumes between question and answer.
pub const RTT: Span = Span::from_millis(10);
/// Side that sends in a cell.
pub const FROM: Side = Side::A;
/// Version of its packets.
pub const VERSION: IpVersion = IpVersion::V4;
/// Preamble, header, checksum and gap of Ethernet.
const OVERHEAD: u32 = 38;
const RATES: [u64; 6] =
    [10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000, 40_000_000_000, 100_000_000_000];
const COALESCING: [Option<Span>; 3] = [None, Some(Span::from_micros(50)), Some(Span::from_micros(250))];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_a_scenario_whose_arithmetic_agrees_with_the_cells() {
        let cells = Cell::all();
        assert_eq!(cells.len(), 6 * 3 * (3 + 9 * 4));
        for cell in cells {
            let scenario = cell.scenario().unwrap();
            let capacity = scenario.capacity(FROM, VERSION, cell.mtu()).unwrap().0 as f64;
            let truth = cell.truth();
            assert!((capacity / truth.capacity - 1.0).abs() < 1e-6, "{cell}");
            assert!(truth.available <= truth.capacity && truth.tight_capacity >= truth.capacity, "{cell}");
            let tight_elsewhere = truth.tight_capacity > truth.capacity * 1.01;
            assert_eq!(tight_elsewhere, cell.shape == Shape::NarrowNotTight, "{cell}");
            let used = f64::from(cell.load) / 100.0;
            let available = match cell.shape {
                Shape::NarrowNotTight => truth.capacity * (2.0 - used) / 2.0,
                _ => truth.capacity * (1.0 - used),
            };
            assert!((truth.available / available - 1.0).abs() < 1e-6, "{cell}: {truth:?}");
        }
    }
}
