//! One reason each why a host cannot probe any faster.

use std::fmt;

use super::HostCosts;
use crate::batching::least_duration;

/// A rate that is not to be exceeded, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Ceiling {
    /// `sending`, `receiving`, `stamps`, `clock`, `coalescing`, `pacing`, `memory`, `loopback`,
    /// `ring` or `link`.
    pub by: &'static str,
    /// bit/s of whole IP packets.
    pub rate: f64,
    /// The formula with figures.
    pub because: String,
}

impl Ceiling {
    pub(super) fn is_usable(&self) -> bool {
        self.rate.is_finite() && self.rate > 0.0
    }
}

/// Packets of one size, whose distances a host has to make or to read.
pub(super) struct Distance<'a> {
    costs: &'a HostCosts,
    packet: u32,
    error: f64,
}

impl<'a> Distance<'a> {
    pub(super) fn new(costs: &'a HostCosts, packet: u32, error: f64) -> Self {
        Self { costs, packet: packet.max(1), error: error.clamp(1e-6, 1.0) }
    }

    /// Packets of the longest train, two or more.
    pub(super) fn longest_train(&self) -> u32 {
        let packets = self.costs.largest_burst / u64::from(self.packet);
        u32::try_from(packets).unwrap_or(u32::MAX).max(2)
    }

    pub(super) fn sending(&self) -> Option<Ceiling> {
        let each = self.costs.send.at(self.packet)?;
        Some(self.every("sending", each, &format!("a packet can leave every {}", Nanos(each))))
    }

    pub(super) fn receiving(&self) -> Option<Ceiling> {
        let each = self.costs.receive.at(self.packet)?;
        Some(self.every("receiving", each, &format!("taking one in costs {}", Nanos(each))))
    }

    pub(super) fn bulk(&self) -> Option<Ceiling> {
        let each = self.costs.bulk.at(self.packet)?;
        Some(self.every("loopback", each, &format!("loopback moved one every {}", Nanos(each))))
    }

    /// Two stamps' error within a distance of so many packets' gaps: sqrt(2) error / ε.
    pub(super) fn stamps(&self, what: &str, gaps: u32) -> Option<Ceiling> {
        let error = some(self.costs.stamp_error)?;
        // The estimators' own rule, without coalescing, which has a ceiling of its own.
        let lasts = least_duration(error, self.error);
        let why =
            format!("two stamps, wrong by {} each, are {} of {}", Nanos(error), self.share(), Nanos(lasts));
        Some(self.lasting("stamps", what, gaps, lasts, &why))
    }

    /// What the largest packet takes longer on one link than the smallest, 8 (L - S) / R, is a
    /// difference of two hops' differences of two round trips, each of two stamps: sqrt(8) error.
    /// That is what one packet of each size says; repeats and sizes between make it less.
    pub(super) fn sizes(&self, smallest: u32) -> Option<Ceiling> {
        let error = some(self.costs.stamp_error)? * 8_f64.sqrt();
        let (more, gap) = (self.packet.checked_sub(smallest)?, error / self.error);
        let because = format!(
            "two hops' round trips of the largest and the smallest packet, wrong by {} together, are {} of {}: 8 x ({} - {smallest}) B / {}",
            Nanos(error),
            self.share(),
            Nanos(gap),
            self.packet,
            Nanos(gap)
        );
        Some(Ceiling { by: "stamps", rate: f64::from(more) * 8e9 / gap, because })
    }

    /// A trend needs a longer distance than a mean: `errors` times what a packet's two stamps err.
    pub(super) fn lasting_stamps(&self, what: &str, gaps: u32, errors: f64) -> Option<Ceiling> {
        let both = some(self.costs.stamp_error)? * std::f64::consts::SQRT_2;
        let why = format!("it lasts {errors} times what a packet's stamps err, {}", Nanos(both));
        Some(self.lasting("stamps", what, gaps, errors * both, &why))
    }

    /// What two readings of the clock can tell apart at all.
    pub(super) fn clock(&self) -> Option<Ceiling> {
        let resolution = some(self.costs.clock_resolution)?;
        let gap = resolution / self.error;
        let why = format!("{}, which two readings tell apart, is {}", Nanos(resolution), self.share());
        Some(self.every("clock", gap, &format!("{why} of {}", Nanos(gap))))
    }

    /// Where the program stamps arrivals, it must have read one packet and the clock before the
    /// next one comes: four calls for a pair.
    pub(super) fn calls(&self) -> Option<Ceiling> {
        if self.costs.kernel_stamps {
            return None;
        }
        let gap = 2.0 * (self.costs.receive.at(self.packet)? + self.costs.clock_read.max(0.0));
        let why = format!("stamps are the program's: two readings and two calls take {}", Nanos(gap));
        Some(self.every("receiving", gap, &why))
    }

    /// Packets within a period have one stamp.
    pub(super) fn coalescing(&self, what: &str, gaps: u32, periods: f64) -> Option<Ceiling> {
        let period = some(self.costs.coalescing?)?;
        let lasts = periods * period;
        let why =
            format!("arrivals are handed over every {}, it has to last {}", Nanos(period), Nanos(lasts));
        Some(self.lasting("coalescing", what, gaps, lasts, &why))
    }

    /// The distance of two packets is wrong by what one of them is late and the other is not.
    pub(super) fn pacing(&self) -> Option<Ceiling> {
        let late = some(self.costs.pacing?)?;
        let gap = late / self.error;
        let why = format!(
            "99 of 100 packets are late by {} at most, {} of {}",
            Nanos(late),
            self.share(),
            Nanos(gap)
        );
        Some(self.every("pacing", gap, &why))
    }

    /// Each byte is copied once between program and kernel. The card fetches it again, which no
    /// system tells the cost of.
    pub(super) fn memory(&self) -> Option<Ceiling> {
        let each = some(self.costs.memory_copy?)?;
        let because = format!("copying costs {each:.3} ns a byte: 8 bit / {each:.3} ns");
        Some(Ceiling { by: "memory", rate: 8e9 / each, because })
    }

    /// What comes within a period has to fit the ring (Jin and Tierney §3.1: the longest period is
    /// N L / rate).
    pub(super) fn ring(&self) -> Option<Ceiling> {
        let (period, ring) = (some(self.costs.coalescing?)?, some(self.costs.ring?)?);
        let because = format!(
            "the ring holds {ring} packets between two interrupts, {} apart: {ring} x 8 x {} B / {}",
            Nanos(period),
            self.packet,
            Nanos(period)
        );
        Some(Ceiling { by: "ring", rate: ring * f64::from(self.packet) * 8e9 / period, because })
    }

    pub(super) fn link(&self) -> Option<Ceiling> {
        let link = some(self.costs.link?)?;
        let (packet, frame) = (self.packet, self.packet.saturating_add(ETHERNET));
        let because = format!("the link carries {packet} B in {frame} B at {}", Bits(link));
        Some(Ceiling { by: "link", rate: link * f64::from(packet) / f64::from(frame), because })
    }

    fn every(&self, by: &'static str, gap: f64, why: &str) -> Ceiling {
        let because = format!("{why}: 8 x {} B / {}", self.packet, Nanos(gap));
        Ceiling { by, rate: f64::from(self.packet) * 8e9 / gap, because }
    }

    fn lasting(&self, by: &'static str, what: &str, gaps: u32, lasts: f64, why: &str) -> Ceiling {
        let times = if gaps == 1 { String::new() } else { format!("{gaps} x ") };
        let because = format!("{what}: {why}: {times}8 x {} B / {}", self.packet, Nanos(lasts));
        Ceiling { by, rate: f64::from(gaps) * f64::from(self.packet) * 8e9 / lasts, because }
    }

    fn share(&self) -> String {
        format!("{} %", (self.error * 1e4).round() / 100.0)
    }
}

fn some(value: f64) -> Option<f64> {
    (value.is_finite() && value > 0.0).then_some(value)
}

/// Three digits of a time.
struct Nanos(f64);

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
        let (unit, scale) = units.into_iter().rev().find(|(_, scale)| self.0 >= *scale).unwrap_or(units[0]);
        let value = self.0 / scale;
        let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
        write!(f, "{value:.decimals$} {unit}")
    }
}

struct Bits(f64);

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", netaware_units::BitRate(self.0 as u64))
    }
}

/// Around an IP packet on Ethernet without a VLAN: header, checksum, preamble, gap between frames;
/// bytes.
const ETHERNET: u32 = 38;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_with_three_digits_in_the_unit_that_fits() {
        let rows = [
            (0.5, "0.50 ns"),
            (9.99, "9.99 ns"),
            (10.0, "10.0 ns"),
            (99.9, "99.9 ns"),
            (100.0, "100 ns"),
            (999.0, "999 ns"),
            (1e3, "1.00 us"),
            (2.5e6, "2.50 ms"),
            (12e9, "12.0 s"),
        ];
        for (nanos, want) in rows {
            assert_eq!(Nanos(nanos).to_string(), want);
        }
    }

    #[test]
    fn only_a_positive_number_is_a_cost_or_a_rate() {
        let values = [2.0, 0.0, -1.0, f64::NAN, f64::INFINITY];
        assert_eq!(values.map(some), [Some(2.0), None, None, None, None]);
        let is_usable = |rate| Ceiling { by: "link", rate, because: String::new() }.is_usable();
        assert_eq!(values.map(is_usable), [true, false, false, false, false]);
    }
}
