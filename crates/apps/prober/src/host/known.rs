//! What is known of this host before it estimates anything.

use std::net::IpAddr;

use netaware_io::clock;
use netaware_io::volley::{self, Calibration};
use netaware_path::honest::{CostBySize, HostCosts, Way};
use netaware_record::{Direction, Effort, Fact, HonestRate};
use netaware_units::Span;

use super::{costs, is_busy};

/// Half of what the queues of most access lines hold, and a train that most receive buffers take.
pub(super) const LARGEST_BURST: u64 = 200_000;

/// What this host can do.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// Of sends and stamps.
    pub(crate) calibration: Calibration,
    costs: HostCosts,
}

/// From what `netaware host` has kept, if it belongs to this host as it is and was measured while nobody else kept it
/// busy; else from a short calibration, which is kept by nobody, since it knows sends and stamps only.
pub(crate) fn known() -> Known {
    let fingerprint = netaware_host::fingerprint();
    let place = netaware_host::default_cache();
    let kept =
        place.and_then(|path| netaware_host::kept(&path, &fingerprint, clock::wall(), Effort::Quick).ok());
    let idle = kept.filter(|kept| !is_busy(&kept.timings));
    let from_kept = idle.and_then(|kept| {
        let calibration = Calibration::from(*kept.timings.stamps.known()?);
        Some(Known { calibration, costs: costs::of(&kept.timings, None) })
    });
    from_kept.unwrap_or_else(|| Known::of(volley::calibrate()))
}

impl Known {
    fn of(calibration: Calibration) -> Self {
        let costs = HostCosts {
            clock_read: 0.0,
            clock_resolution: 0.0,
            stamp_error: calibration.stamp_error.nanos() as f64,
            kernel_stamps: true,
            send: CostBySize::new([(CALIBRATED, calibration.send_gap.nanos() as f64)]),
            receive: CostBySize::default(),
            bulk: CostBySize::default(),
            pacing: None,
            memory_copy: None,
            coalescing: None,
            ring: None,
            link: None,
            largest_burst: LARGEST_BURST,
        };
        Self { calibration, costs }
    }

    /// Standard error of the time between a departure and an arrival by this host's own stamps.
    pub(crate) fn round_trip_error(&self) -> Span {
        Span((self.calibration.stamp_error.or_zero().nanos() as f64 * std::f64::consts::SQRT_2) as i64)
    }

    /// Most bytes of a train in this direction: towards this host no more than a receive buffer of its holds. What the
    /// other host's holds it does not tell.
    pub(crate) fn largest_burst(&self, direction: Direction) -> u64 {
        if direction == Direction::Reverse { self.costs.largest_burst } else { LARGEST_BURST }
    }

    /// The same host with the link and the coalescing of the interface that owns this address.
    pub(crate) fn through(&self, local: Option<IpAddr>) -> Self {
        let name = local.and_then(netaware_host::interface_for);
        let Some(name) = name else { return self.clone() };
        let facts = netaware_host::interface_facts(&name, Fact::not_known("not asked"), None);
        let costs = HostCosts {
            link: facts.link.known().map(|rate| rate.0 as f64),
            coalescing: costs::coalescing(&facts),
            ring: costs::ring(&facts),
            ..self.costs.clone()
        };
        Self { costs, ..self.clone() }
    }

    /// The highest rate that this host can probe in the way of a method, and what limits it.
    pub(crate) fn honest(&self, method: &str, packet: u32) -> Option<HonestRate> {
        costs::row(&self.costs, Way::of_method(method), packet)
    }
}

/// The IP packet that a calibration sends, bytes.
const CALIBRATED: u32 = 1428;

#[cfg(test)]
mod tests {
    use netaware_units::BitRate;

    use super::*;

    #[test]
    fn a_calibration_alone_names_what_limits_each_method() {
        let known = Known::of(Calibration { send_gap: Span(1500), stamp_error: Span(1000) });
        let trains = known.honest("curve", 1500).unwrap();
        assert_eq!((trains.limited_by.by.as_str(), trains.rate), ("sending", BitRate(8_000_000_000)));
        let pairs = known.honest("spruce", 1500).unwrap();
        // 12,000 bit in 28.28 us.
        assert_eq!(pairs.limited_by.by, "stamps");
        assert!((pairs.rate.0 as f64 / 424.264e6 - 1.0).abs() < 1e-4, "{pairs:?}");
    }

    #[test]
    fn hops_are_told_by_sizes_and_reach_by_pairs() {
        let known = Known::of(Calibration { send_gap: Span(1500), stamp_error: Span(1000) });
        assert_eq!(known.round_trip_error(), Span(1414));
        let [hops, reach] = ["hops", "reach"].map(|method| known.honest(method, 1500).unwrap());
        assert_eq!([hops.way.as_str(), reach.way.as_str()], ["sizes", "pairs"]);
        // 8 x 1436 bytes in sqrt(8) us over 5 %.
        assert!((hops.rate.0 as f64 / 203.1e6 - 1.0).abs() < 1e-3, "{hops:?}");
        assert_eq!(hops.limited_by.by, "stamps");
    }

    #[test]
    fn only_trains_towards_this_host_are_bounded_by_its_buffer() {
        let mut known = Known::of(Calibration::USUAL);
        assert_eq!(known.largest_burst(Direction::Reverse), LARGEST_BURST);
        known.costs.largest_burst = 75_000;
        let both = [Direction::Forward, Direction::Reverse].map(|way| known.largest_burst(way));
        assert_eq!(both, [LARGEST_BURST, 75_000]);
    }

    #[test]
    fn without_an_address_no_interface_adds_its_limits() {
        let known = Known::of(Calibration::USUAL);
        assert_eq!(known.through(None).costs, known.costs);
    }
}
