//! Timings and facts as the derivation wants them, and its answers as a record has them.

use netaware_path::honest::{Ceiling, CostBySize, HonestRate, HostCosts, Way};
use netaware_record::{HostCall, HostTimings, InterfaceFacts, LoopbackHow, WaitHow};
use netaware_units::{BitRate, Span};

use super::known::largest_burst;

/// What a host was measured to cost; `through` is the interface whose link and coalescing count.
pub(super) fn of(timings: &HostTimings, through: Option<&InterfaceFacts>) -> HostCosts {
    let stamps = timings.stamps.known();
    let clock = timings.clock.read_ns;
    // A send is stamped before it begins, so from one to the next there is a reading too.
    let send = CostBySize::new(calls(timings, HostCall::Send).map(|(packet, ns)| (packet, ns + clock)));
    HostCosts {
        clock_read: clock,
        clock_resolution: nanos(timings.clock.resolution),
        stamp_error: stamps.map_or(0.0, |stamps| nanos(stamps.error)),
        kernel_stamps: stamps.is_some_and(|stamps| stamps.by_kernel),
        send,
        receive: CostBySize::new(calls(timings, HostCall::ReceiveStamped)),
        bulk: CostBySize::new(bulk(timings)),
        pacing: timings.waits.iter().find(|wait| wait.how == WaitHow::Paced).map(|wait| nanos(wait.p99)),
        memory_copy: timings.memory_copy_ns_per_byte.known().copied(),
        coalescing: through.and_then(coalescing),
        ring: through.and_then(ring),
        link: through.and_then(|facts| facts.link.known()).map(|rate| rate.0 as f64),
        largest_burst: largest_burst(timings.receive_room.known().copied()),
    }
}

/// The period at which a card hands over arrivals: what was seen, else what is configured.
pub(super) fn coalescing(facts: &InterfaceFacts) -> Option<f64> {
    let configured = facts.moderation.known().map(|moderation| moderation.receive_wait);
    let period = facts.observed_period.known().copied().or(configured)?;
    Some(nanos(period)).filter(|period| *period > 0.0)
}

/// Packets of the receiving ring.
pub(super) fn ring(facts: &InterfaceFacts) -> Option<f64> {
    facts.rings.known().map(|rings| f64::from(rings.receive))
}

/// All ways, with packets of the sizes that were timed.
pub(super) fn table(costs: &HostCosts, timings: &HostTimings) -> Vec<netaware_record::HonestRate> {
    let sizes: Vec<u32> = calls(timings, HostCall::Send).map(|(packet, _)| packet).collect();
    HonestRate::table(costs, &sizes, ERROR).iter().map(entry).collect()
}

/// One way with packets of one size.
pub(super) fn row(costs: &HostCosts, way: Way, packet: u32) -> Option<netaware_record::HonestRate> {
    HonestRate::of(costs, way, packet, ERROR).as_ref().map(entry)
}

fn entry(of: &HonestRate) -> netaware_record::HonestRate {
    let ceiling = |of: &Ceiling| netaware_record::Ceiling {
        by: of.by.to_owned(),
        rate: BitRate(of.rate as u64),
        because: of.because.clone(),
    };
    let limit = ceiling(of.limit());
    netaware_record::HonestRate {
        way: of.way.name().to_owned(),
        methods: of.way.methods().iter().map(|name| (*name).to_owned()).collect(),
        packet: of.packet,
        error: of.error,
        rate: limit.rate,
        limited_by: limit,
        above: of.ceilings.iter().skip(1).map(ceiling).collect(),
    }
}

fn calls(timings: &HostTimings, call: HostCall) -> impl Iterator<Item = (u32, f64)> {
    let of_kind = timings.calls.iter().filter(move |timing| timing.call == call);
    of_kind.map(|timing| (timing.payload + HEADERS, timing.median_ns))
}

/// Time for each datagram at the highest rate that came through, whichever number of cores it took.
fn bulk(timings: &HostTimings) -> Vec<(u32, f64)> {
    let mut best: Vec<(u32, f64)> = Vec::new();
    for run in timings.loopback.iter().filter(|run| run.how == LoopbackHow::UdpSegmented) {
        let each = run.packets_per_second.map_or(0.0, |rate| 1e9 / rate);
        match best.iter_mut().find(|(size, _)| *size == run.payload + HEADERS) {
            Some((_, known)) => *known = known.min(each),
            None => best.push((run.payload + HEADERS, each)),
        }
    }
    best
}

/// Bytes of IP packets that hold this much payload in full ones.
pub(super) fn with_headers(payload: u64) -> u64 {
    (payload / u64::from(FULL - HEADERS)).saturating_mul(u64::from(FULL))
}

fn nanos(span: Span) -> f64 {
    span.nanos() as f64
}

/// Of what is probed: see `netaware_path::honest`.
pub(super) const ERROR: f64 = 0.05;
/// IPv4 and UDP. Over IPv6 the same payload makes packets 20 bytes longer.
const HEADERS: u32 = 28;
const FULL: u32 = 1500;

#[cfg(test)]
mod tests {
    use netaware_record::{
        CallTiming, ClockTiming, Effort, Fact, LoopbackMaximum, Moderation, StampTiming, WaitTiming,
    };
    use netaware_units::ByteCount;

    use super::*;

    fn call(call: HostCall, payload: u32, median_ns: f64) -> CallTiming {
        CallTiming { call, payload, batch: 1, samples: 9, median_ns, p99_ns: median_ns }
    }

    fn timings() -> HostTimings {
        let run = |cores, packets| LoopbackMaximum {
            how: LoopbackHow::UdpSegmented,
            cores,
            flows: 1,
            payload: 1472,
            packets_per_second: Some(packets),
            rate: BitRate(0),
            lost: None,
            took: Span::from_secs(1),
        };
        let lateness = WaitTiming {
            how: WaitHow::Paced,
            asked: Span::from_micros(100),
            samples: 9,
            mean_ns: 60.0,
            sd_ns: 100.0,
            p50: Span(50),
            p99: Span(300),
            max: Span(900),
        };
        HostTimings {
            effort: Effort::Full,
            took: Span::from_secs(6),
            cut_short: false,
            clock: ClockTiming { read_ns: 30.0, resolution: Span(20), claimed: Span(1) },
            waits: vec![lateness],
            calls: vec![
                call(HostCall::Null, 0, 120.0),
                call(HostCall::Send, 1472, 1470.0),
                call(HostCall::ReceiveStamped, 1472, 400.0),
            ],
            memory_copy_ns_per_byte: Fact::Known(0.1),
            stamps: Fact::Known(StampTiming {
                by_kernel: true,
                error: Span(1000),
                send_gap: Span(1500),
                room: None,
            }),
            receive_room: Fact::Known(ByteCount(73_600)),
            loopback: vec![run(1, 2e6), run(2, 4e6)],
            moderation: Vec::new(),
            steal: Fact::Known(0.0),
            load_before: Fact::Known(0.0),
        }
    }

    #[test]
    fn a_send_costs_its_call_and_a_reading_of_the_clock() {
        let costs = of(&timings(), None);
        assert_eq!(costs.send.at(1500), Some(1500.0));
        assert_eq!((costs.receive.at(1500), costs.pacing), (Some(400.0), Some(300.0)));
        // The better of the two runs.
        assert_eq!(costs.bulk.at(1500), Some(250.0));
        // 50 datagrams of payload are 75,000 bytes of packets.
        assert_eq!(costs.largest_burst, 75_000);
    }

    #[test]
    fn the_table_is_of_the_sizes_that_were_timed() {
        let table = table(&of(&timings(), None), &timings());
        assert_eq!(table.len(), Way::ALL.len());
        let trains = table.iter().find(|row| row.way == "trains").unwrap();
        assert_eq!(
            (trains.packet, trains.rate, trains.limited_by.by.as_str()),
            (1500, BitRate(8_000_000_000), "sending")
        );
        assert!(trains.above.iter().all(|ceiling| ceiling.rate >= trains.rate));
    }

    #[test]
    fn what_was_seen_of_coalescing_counts_before_what_is_configured() {
        let nothing = || Fact::not_known("not asked");
        let mut facts = netaware_host::interface_facts("nosuchdevice", nothing(), None);
        assert_eq!(coalescing(&facts), None);
        let wait = |micros| Moderation {
            receive_wait: Span::from_micros(micros),
            receive_packets: 0,
            send_wait: Span::ZERO,
            send_packets: 0,
            adaptive: true,
        };
        facts.moderation = Fact::Known(wait(50));
        assert_eq!(coalescing(&facts), Some(50_000.0));
        facts.observed_period = Fact::Known(Span::from_micros(120));
        assert_eq!(coalescing(&facts), Some(120_000.0));
        facts.observed_period = Fact::not_known("idle");
        facts.moderation = Fact::Known(wait(0));
        assert_eq!(coalescing(&facts), None);
    }
}
