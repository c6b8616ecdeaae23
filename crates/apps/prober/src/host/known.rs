//! What is known of this host before it estimates anything.

use netaware_io::clock;
use netaware_io::volley::{self, Calibration};
use netaware_io::zone::ZonedIp;
use netaware_path::honest::{CostBySize, HostCosts, Way};
use netaware_record::{Direction, Effort, Fact, HonestRate, StampTiming};
use netaware_units::{ByteCount, Span};

use super::costs::{self, with_headers};
use super::is_busy;

/// Half of what the queues of most access lines hold, and a train that most receive buffers take.
const LARGEST_BURST: u64 = 200_000;
/// Ten packets: what a host says of itself that is below is not believed.
const LEAST_BURST: u64 = 15_000;

/// What this host can do.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// Of sends and stamps.
    pub(crate) calibration: Calibration,
    costs: HostCosts,
}

/// From what `netaware host` has kept, if it belongs to this host as it is and was measured while
/// nobody else kept it busy; else from a short calibration, which is kept by nobody, since it knows
/// sends and stamps only.
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
    from_kept.unwrap_or_else(|| Known::of(volley::stamp_timing()))
}

impl Known {
    /// Of a host without loopback nothing is known.
    fn of(timing: Option<StampTiming>) -> Self {
        let calibration = timing.map_or(Calibration::USUAL, Calibration::from);
        let costs = HostCosts {
            clock_read: 0.0,
            clock_resolution: 0.0,
            stamp_error: calibration.stamp_error.nanos() as f64,
            kernel_stamps: timing.is_none_or(|timing| timing.by_kernel),
            send: CostBySize::new([(CALIBRATED, calibration.send_gap.nanos() as f64)]),
            receive: CostBySize::default(),
            bulk: CostBySize::default(),
            pacing: None,
            memory_copy: None,
            coalescing: None,
            ring: None,
            link: None,
            largest_burst: largest_burst(timing.and_then(|timing| timing.room)),
        };
        Self { calibration, costs }
    }

    /// Standard error of the time between a departure and an arrival by this host's own stamps.
    pub(crate) fn round_trip_error(&self) -> Span {
        Span((self.calibration.stamp_error.or_zero().nanos() as f64 * std::f64::consts::SQRT_2) as i64)
    }

    /// Most bytes of a train in this direction: no more than a receive buffer of whoever receives
    /// holds, as far as that is told.
    pub(crate) fn largest_burst(&self, direction: Direction, there: Option<ByteCount>) -> u64 {
        if direction == Direction::Reverse { self.costs.largest_burst } else { largest_burst(there) }
    }

    /// The same host with the link and the coalescing of the interface that owns this address.
    pub(crate) fn through(&self, local: Option<ZonedIp>) -> Self {
        let name = local.and_then(|local| netaware_host::interface_for(local.at(0)));
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

/// IP bytes of a train that a receiver with this room takes as a whole. Nobody's word makes trains
/// useless.
pub(super) fn largest_burst(room: Option<ByteCount>) -> u64 {
    room.map_or(LARGEST_BURST, |room| with_headers(room.0)).clamp(LEAST_BURST, LARGEST_BURST)
}

/// The IP packet that a calibration sends, bytes.
const CALIBRATED: u32 = 1428;

#[cfg(test)]
mod tests {
    use netaware_units::BitRate;

    use super::*;

    #[test]
    fn a_calibration_alone_names_what_limits_each_method() {
        let timing = StampTiming { by_kernel: true, error: Span(1000), send_gap: Span(1500), room: None };
        let known = Known::of(Some(timing));
        let trains = known.honest("curve", 1500).unwrap();
        assert_eq!((trains.limited_by.by.as_str(), trains.rate), ("sending", BitRate(8_000_000_000)));
        let pairs = known.honest("spruce", 1500).unwrap();
        // 12,000 bit in 28.28 us.
        assert_eq!(pairs.limited_by.by, "stamps");
        assert!((pairs.rate.0 as f64 / 424.264e6 - 1.0).abs() < 1e-4, "{pairs:?}");
    }

    #[test]
    fn trains_are_bounded_by_the_buffer_of_whoever_receives() {
        let known = Known::of(None);
        assert_eq!(known.largest_burst(Direction::Reverse, None), LARGEST_BURST);
        let room = |bytes| StampTiming {
            room: Some(ByteCount(bytes)),
            ..StampTiming { by_kernel: true, error: Span(1000), send_gap: Span(1500), room: None }
        };
        let known = Known::of(Some(room(73_600)));
        let both =
            |there| [Direction::Forward, Direction::Reverse].map(|way| known.largest_burst(way, there));
        assert_eq!(both(None), [LARGEST_BURST, 75_000]);
        assert_eq!(both(Some(ByteCount(147_200))), [150_000, 75_000]);
        assert_eq!(both(Some(ByteCount(u64::MAX))), [LARGEST_BURST, 75_000]);
        assert_eq!(both(Some(ByteCount(1))), [LEAST_BURST, 75_000], "nobody's word makes trains useless");
    }

    #[test]
    fn stamps_of_a_program_are_known_as_such() {
        let timing = StampTiming { by_kernel: false, error: Span(1000), send_gap: Span(1500), room: None };
        assert!(!Known::of(Some(timing)).costs.kernel_stamps);
    }

    #[test]
    fn hops_are_told_by_sizes_and_reach_by_pairs() {
        let timing = StampTiming { by_kernel: true, error: Span(1000), send_gap: Span(1500), room: None };
        let known = Known::of(Some(timing));
        assert_eq!(known.round_trip_error(), Span(1414));
        let [hops, reach] = ["hops", "reach"].map(|method| known.honest(method, 1500).unwrap());
        assert_eq!([hops.way.as_str(), reach.way.as_str()], ["sizes", "pairs"]);
        // 8 x 1436 bytes in sqrt(8) us over 5 %.
        assert!((hops.rate.0 as f64 / 203.1e6 - 1.0).abs() < 1e-3, "{hops:?}");
        assert_eq!(hops.limited_by.by, "stamps");
    }

    #[test]
    fn without_an_address_no_interface_adds_its_limits() {
        let known = Known::of(None);
        assert_eq!(known.through(None).costs, known.costs);
    }
}
