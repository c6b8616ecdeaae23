//! What a test may ask for: hard limits of the program, and caps of the owner.
//!
//! A plan is either taken as it stands or refused with the reason. It is never trimmed to fit: the prober would then
//! report a figure for something that it did not ask.
//!
//! Echo tests run beside everything else, so their plans bound what one exchange may move: over UDP what a short request
//! draws, over TCP 64 KiB each way. Longer exchanges over TCP fill the path and wait for their turn as bulk does.

use netaware_record::{Direction, HistogramShape};
use netaware_units::{BitRate, ByteCount, Span};
use netaware_wire::control::{
    ErrorCode, Limits, MAX_BLOCK_SPACING, MAX_BURST, MAX_STREAMS, MAX_TCP_ECHO, MAX_TCP_ECHO_BESIDE,
    MAX_TCP_LENGTH, TcpPlan, TestPlan, UdpPlan,
};
use netaware_wire::datagram::{ECHO_LEN, HEADER_LEN, MAX_PAYLOAD};
use netaware_wire::echo::MOST_TO_SHORT;
use netaware_wire::header::HeaderFields;

/// Why a plan is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

/// Whether a plan moves as much as it can, so that it must be alone.
pub(crate) fn needs_reservation(plan: &TestPlan) -> bool {
    match plan {
        TestPlan::Tcp(_) | TestPlan::Udp(_) => true,
        TestPlan::TcpEcho { length, response, .. } => longest(*length, *response) > MAX_TCP_ECHO_BESIDE,
        TestPlan::UdpEcho { .. } => false,
    }
}

/// Whether a plan is of requests and responses, answered from the moment it is ready.
pub(crate) fn is_echo(plan: &TestPlan) -> bool {
    matches!(plan, TestPlan::UdpEcho { .. } | TestPlan::TcpEcho { .. })
}

fn longest(request: u32, response: Option<u32>) -> u32 {
    request.max(response.unwrap_or(0))
}

/// The longest the test runs.
pub(crate) fn duration(plan: &TestPlan) -> Span {
    match plan {
        TestPlan::UdpEcho { duration, .. } | TestPlan::TcpEcho { duration, .. } => *duration,
        TestPlan::Tcp(plan) => plan.alone.or_zero() + plan.duration.or_zero(),
        TestPlan::Udp(plan) => plan.duration,
    }
}

/// Checks a plan.
pub(crate) fn check(plan: &TestPlan, limits: &Limits) -> Result<(), Refusal> {
    let asked = duration(plan);
    within("duration", asked.0, 1, LONGEST.0)?;
    if let Some(cap) = limits.duration.filter(|cap| asked > *cap) {
        return Err(over_cap("duration", &cap));
    }
    match plan {
        TestPlan::UdpEcho { length, response, dscp, .. } => {
            check_udp_echo(*length, *response)?;
            check_exchange(*length, *response, limits)?;
            within("dscp", *dscp, 0, 63)
        }
        TestPlan::TcpEcho { length, response, .. } => {
            // Without a length of its own the response is the request, which must then be held whole.
            let most = if response.is_some() { MAX_TCP_ECHO } else { MAX_TCP_ECHO_BESIDE };
            within("length", *length, 1, most)?;
            optional("response", *response, 1, MAX_TCP_ECHO)?;
            check_exchange(*length, *response, limits)
        }
        TestPlan::Tcp(plan) => check_tcp(plan, limits),
        TestPlan::Udp(plan) => check_udp(plan, limits),
    }
}

fn check_udp_echo(length: u32, response: Option<u32>) -> Result<(), Refusal> {
    let most = MAX_PAYLOAD as u32;
    let Some(response) = response else { return within("length", length, ECHO_LEN as u32, most) };
    within("length", length, 1, most)?;
    let drawn = if (length as usize) < HEADER_LEN { MOST_TO_SHORT as u32 } else { most };
    within("response", response, 1, drawn)
}

/// What one exchange moves, against the owner's caps. How many there will be nobody knows, so a cap on the rate allows no
/// exchange that draws more than it brings, and none that fills the path by itself.
fn check_exchange(length: u32, response: Option<u32>, limits: &Limits) -> Result<(), Refusal> {
    let moved = ByteCount(u64::from(length) + u64::from(response.unwrap_or(length)));
    if let Some(cap) = limits.bytes.filter(|cap| moved > *cap) {
        return Err(over_cap("bytes", &cap));
    }
    let draws = response.is_some_and(|response| response > length);
    match limits.rate.filter(|_| draws || longest(length, response) > MAX_PAYLOAD as u32) {
        Some(cap) => Err(over_cap("rate", &cap)),
        None => Ok(()),
    }
}

fn check_tcp(plan: &TcpPlan, limits: &Limits) -> Result<(), Refusal> {
    one_way(plan.direction)?;
    within("duration", plan.duration.0, 1, LONGEST.0)?;
    within("streams", plan.streams, 1, MAX_STREAMS)?;
    within("length", plan.length, 1, MAX_TCP_LENGTH)?;
    within("alone", plan.alone.0, 0, plan.duration.0)?;
    within("tick", plan.tick.0, SHORTEST_TICK.0, LONGEST_TICK.0)?;
    within("dscp", plan.dscp, 0, 63)?;
    optional("bytes", plan.bytes.map(|bytes| bytes.0), 1, u64::MAX)?;
    optional("rate", plan.rate.map(|rate| rate.0), 1, u64::MAX)?;
    optional("window", plan.window, 1, MAX_WINDOW)?;
    optional("mss", plan.mss, 1, u32::from(u16::MAX))?;
    optional("block_spacing", plan.block_spacing.map(|spacing| spacing.0), 1, MAX_BLOCK_SPACING.0)?;
    if plan.block_spacing.is_some() && (plan.rate.is_some() || plan.zerocopy) {
        return Err(bad("block_spacing goes with neither rate nor zerocopy".to_owned()));
    }
    if let Some(name) = &plan.congestion
        && !is_algorithm_name(name)
    {
        return Err(bad("congestion is no name of an algorithm".to_owned()));
    }
    if let Some(cap) = limits.streams.filter(|cap| plan.streams > *cap) {
        return Err(over_cap("streams", &cap));
    }
    under_caps(limits, plan.bytes, plan.rate.or_else(|| spaced_rate(plan)))
}

/// Payload rate of spaced blocks.
fn spaced_rate(plan: &TcpPlan) -> Option<BitRate> {
    plan.block_spacing.map(|spacing| BitRate::mean(ByteCount(plan.length.into()), spacing))
}

/// Whether the fields asked for can be set.
pub(crate) fn check_header(header: &HeaderFields) -> Result<(), Refusal> {
    header.fault().map_or(Ok(()), |fault| Err(bad(fault)))
}

/// Whether a test can be run with these fields: who accepts a TCP connection cannot choose its flow label.
pub(crate) fn check_label(plan: &TestPlan, header: &HeaderFields) -> Result<(), Refusal> {
    let sends_tcp = match plan {
        TestPlan::Tcp(plan) => plan.direction == Direction::Reverse,
        TestPlan::TcpEcho { .. } => true,
        TestPlan::Udp(_) | TestPlan::UdpEcho { .. } => false,
    };
    if sends_tcp && header.flow_label.is_some() {
        let why = "the responder cannot choose the flow label of a TCP connection that it accepts";
        return Err(bad(why.to_owned()));
    }
    Ok(())
}

fn check_udp(plan: &UdpPlan, limits: &Limits) -> Result<(), Refusal> {
    one_way(plan.direction)?;
    within("length", plan.length, HEADER_LEN as u32, MAX_PAYLOAD as u32)?;
    within("tick", plan.tick.0, SHORTEST_TICK.0, LONGEST_TICK.0)?;
    within("dscp", plan.dscp, 0, 63)?;
    optional("packets", plan.packets, 1, u64::MAX)?;
    optional("gap_ps", plan.gap_ps, 1, LONGEST_GAP_PS)?;
    within("burst", plan.burst, 1, MAX_BURST)?;
    if plan.histogram.is_some_and(|shape| shape.empty().is_none()) {
        return Err(bad(format!(
            "histogram must have 1 to {} bins wider than nothing",
            HistogramShape::MOST_BINS
        )));
    }
    optional("window", plan.window, 1, MAX_WINDOW)?;
    let bytes = plan.packets.map(|packets| ByteCount(packets.saturating_mul(u64::from(plan.length))));
    under_caps(limits, bytes, plan.rate())
}

fn under_caps(limits: &Limits, bytes: Option<ByteCount>, rate: Option<BitRate>) -> Result<(), Refusal> {
    if let (Some(cap), Some(asked)) = (limits.bytes, bytes)
        && asked > cap
    {
        return Err(over_cap("bytes", &cap));
    }
    match (limits.rate, rate) {
        (Some(cap), None) => Err(over_cap("rate", &cap)),
        (Some(cap), Some(asked)) if asked > cap => Err(over_cap("rate", &cap)),
        _ => Ok(()),
    }
}

/// Holds a running test to the owner's caps, whatever its plan said: the other end may not keep to it.
///
/// Judged at each tick, so up to one tick's worth passes before a test is stopped; the rate has a second's worth and a
/// quarter of slack, because a buffer on the path may empty itself at once.
pub(crate) fn exceeded(limits: &Limits, bytes: ByteCount, elapsed: Span) -> Option<Refusal> {
    if let Some(cap) = limits.bytes.filter(|cap| bytes > *cap) {
        return Some(over_cap("bytes", &cap));
    }
    let cap = limits.rate?;
    let allowed = u128::from(cap.0) / 8 * (elapsed.or_zero().0 as u128 + 1_000_000_000) / 1_000_000_000;
    (u128::from(bytes.0) > allowed + allowed / 4).then(|| over_cap("rate", &cap))
}

fn one_way(direction: Direction) -> Result<(), Refusal> {
    match direction {
        Direction::Forward | Direction::Reverse => Ok(()),
        Direction::RoundTrip => Err(bad("direction must be forward or reverse".to_owned())),
    }
}

fn within<T: PartialOrd + Copy + std::fmt::Display>(
    name: &str,
    value: T,
    low: T,
    high: T,
) -> Result<(), Refusal> {
    if value < low || value > high {
        return Err(bad(format!("{name} is {value}; it must be between {low} and {high}")));
    }
    Ok(())
}

fn optional<T: PartialOrd + Copy + std::fmt::Display>(
    name: &str,
    value: Option<T>,
    low: T,
    high: T,
) -> Result<(), Refusal> {
    value.map_or(Ok(()), |value| within(name, value, low, high))
}

/// `TCP_CA_NAME_MAX` is 16 with the closing zero; names are module names.
fn is_algorithm_name(name: &str) -> bool {
    (1..16).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
}

fn bad(message: String) -> Refusal {
    Refusal { code: ErrorCode::BadMessage, message }
}

fn over_cap(name: &str, cap: &dyn std::fmt::Display) -> Refusal {
    Refusal { code: ErrorCode::Cap, message: format!("the responder's cap for {name} is {cap}") }
}

/// Without a cap of the owner's.
const LONGEST: Span = Span::from_secs(7 * 24 * 3600);
const SHORTEST_TICK: Span = Span::from_millis(10);
const LONGEST_TICK: Span = Span::from_secs(60);
/// A datagram a minute; slower is not a stream.
const LONGEST_GAP_PS: u64 = 60_000_000_000_000;
const MAX_WINDOW: u32 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use netaware_wire::control::{UdpReceive, UdpSend};

    fn tcp() -> TcpPlan {
        TcpPlan { streams: 4, length: 128 << 10, ..TcpPlan::new(Direction::Forward, Span::from_secs(10)) }
    }

    fn udp() -> UdpPlan {
        UdpPlan {
            direction: Direction::Reverse,
            duration: Span::from_secs(10),
            packets: None,
            length: 1250,
            gap_ps: Some(1_000_000_000),
            send: UdpSend::Single,
            receive: UdpReceive::Single,
            tick: Span::from_millis(100),
            window: None,
            dscp: 0,
            burst: 1,
            histogram: None,
            log: false,
        }
    }

    fn shape(width: i64, bins: u32) -> HistogramShape {
        HistogramShape { low: Span::ZERO, width: Span(width), bins }
    }

    #[test]
    fn sound_plans_pass() {
        let none = Limits::default();
        assert_eq!(check(&TestPlan::Tcp(tcp()), &none), Ok(()));
        assert_eq!(check(&TestPlan::Udp(udp()), &none), Ok(()));
        let duration = Span::from_secs(5);
        for response in [None, Some(1), Some(64), Some(65_507)] {
            assert_eq!(check(&TestPlan::UdpEcho { length: 64, response, duration, dscp: 46 }, &none), Ok(()));
            assert_eq!(check(&TestPlan::TcpEcho { length: 64, response, duration }, &none), Ok(()));
        }
        assert_eq!(check(&udp_echo(1, Some(64)), &none), Ok(()));
        assert_eq!(check(&tcp_echo(100_000_000, Some(100_000_000)), &none), Ok(()));
    }

    fn udp_echo(length: u32, response: Option<u32>) -> TestPlan {
        TestPlan::UdpEcho { length, response, duration: Span::from_secs(1), dscp: 0 }
    }

    fn tcp_echo(length: u32, response: Option<u32>) -> TestPlan {
        TestPlan::TcpEcho { length, response, duration: Span::from_secs(1) }
    }

    #[test]
    fn long_exchanges_over_tcp_wait_for_their_turn_and_all_others_do_not() {
        let rows = [
            (tcp_echo(65_536, None), false),
            (tcp_echo(1, Some(65_536)), false),
            (tcp_echo(1, Some(65_537)), true),
            (tcp_echo(65_537, Some(1)), true),
            (udp_echo(65_507, Some(65_507)), false),
        ];
        for (n, (plan, waits)) in rows.iter().enumerate() {
            assert_eq!((needs_reservation(plan), is_echo(plan)), (*waits, true), "row {n}");
        }
    }

    #[test]
    fn caps_bound_what_an_exchange_may_draw() {
        let rate = Limits { rate: Some(BitRate(8_000_000)), ..Limits::default() };
        assert_eq!(check(&udp_echo(64, Some(64)), &rate), Ok(()));
        assert_eq!(check(&udp_echo(64, None), &rate), Ok(()));
        assert_eq!(check(&tcp_echo(1_000, Some(1)), &rate), Ok(()));
        let bytes = Limits { bytes: Some(ByteCount(1_000)), ..Limits::default() };
        assert_eq!(check(&udp_echo(500, None), &bytes), Ok(()));
        let rows = [
            (udp_echo(64, Some(65)), &rate, "rate"),
            (tcp_echo(100_000, Some(1)), &rate, "rate"),
            (udp_echo(501, None), &bytes, "bytes"),
            (tcp_echo(1, Some(1_000)), &bytes, "bytes"),
        ];
        for (plan, limits, want) in rows {
            let refusal = check(&plan, limits).unwrap_err();
            assert!(
                refusal.message.starts_with(&format!("the responder's cap for {want} is")),
                "{refusal:?}"
            );
        }
    }

    #[test]
    fn fields_out_of_range_are_named() {
        let rows = [
            ("streams is 0", TestPlan::Tcp(TcpPlan { streams: 0, ..tcp() })),
            ("streams is 513", TestPlan::Tcp(TcpPlan { streams: 513, ..tcp() })),
            ("length is 0", TestPlan::Tcp(TcpPlan { length: 0, ..tcp() })),
            ("length", TestPlan::Tcp(TcpPlan { length: MAX_TCP_LENGTH + 1, ..tcp() })),
            ("duration", TestPlan::Tcp(TcpPlan { duration: Span::ZERO, ..tcp() })),
            ("duration", TestPlan::Tcp(TcpPlan { duration: Span(i64::MAX), ..tcp() })),
            ("duration", TestPlan::Tcp(TcpPlan { duration: Span(-1), ..tcp() })),
            ("alone", TestPlan::Tcp(TcpPlan { alone: Span::from_secs(11), ..tcp() })),
            ("tick", TestPlan::Tcp(TcpPlan { tick: Span::from_millis(9), ..tcp() })),
            ("dscp", TestPlan::Tcp(TcpPlan { dscp: 64, ..tcp() })),
            ("bytes", TestPlan::Tcp(TcpPlan { bytes: Some(ByteCount(0)), ..tcp() })),
            ("direction", TestPlan::Tcp(TcpPlan { direction: Direction::RoundTrip, ..tcp() })),
            ("block_spacing is 0", TestPlan::Tcp(TcpPlan { block_spacing: Some(Span::ZERO), ..tcp() })),
            (
                "block_spacing is 60000000001",
                TestPlan::Tcp(TcpPlan { block_spacing: Some(MAX_BLOCK_SPACING + Span(1)), ..tcp() }),
            ),
            (
                "block_spacing goes",
                TestPlan::Tcp(TcpPlan {
                    block_spacing: Some(second),
                    rate: Some(BitRate(1_000_000)),
                    ..tcp()
                }),
            ),
            (
                "block_spacing goes",
                TestPlan::Tcp(TcpPlan { block_spacing: Some(second), zerocopy: true, ..tcp() }),
            ),
            ("congestion", TestPlan::Tcp(TcpPlan { congestion: Some("cubic; rm".into()), ..tcp() })),
            ("length is 23", TestPlan::Udp(UdpPlan { length: 23, ..udp() })),
            ("length is 65508", TestPlan::Udp(UdpPlan { length: 65_508, ..udp() })),
            ("gap_ps", TestPlan::Udp(UdpPlan { gap_ps: Some(0), ..udp() })),
            ("packets", TestPlan::Udp(UdpPlan { packets: Some(0), ..udp() })),
            ("burst is 0", TestPlan::Udp(UdpPlan { burst: 0, ..udp() })),
            ("burst is 10001", TestPlan::Udp(UdpPlan { burst: 10_001, ..udp() })),
            ("histogram", TestPlan::Udp(UdpPlan { histogram: Some(shape(0, 10)), ..udp() })),
            ("histogram", TestPlan::Udp(UdpPlan { histogram: Some(shape(1, 0)), ..udp() })),
            ("histogram", TestPlan::Udp(UdpPlan { histogram: Some(shape(1, u32::MAX)), ..udp() })),
            ("histogram", TestPlan::Udp(UdpPlan { histogram: Some(shape(i64::MAX, 2)), ..udp() })),
            ("length is 43", udp_echo(43, None)),
            ("length is 0", udp_echo(0, Some(64))),
            ("response is 65;", udp_echo(23, Some(65))),
            ("response is 0", udp_echo(64, Some(0))),
            ("length is 65508", udp_echo(65_508, Some(64))),
            ("length is 65537", tcp_echo(65_537, None)),
            ("length is 100000001", tcp_echo(100_000_001, Some(1))),
            ("response is 100000001", tcp_echo(1, Some(100_000_001))),
        ];
        for (want, plan) in rows {
            let refusal = check(&plan, &Limits::default()).unwrap_err();
            assert!(refusal.message.starts_with(want), "{want}: {}", refusal.message);
            assert_eq!(refusal.code, ErrorCode::BadMessage);
        }
    }

    #[test]
    fn a_cap_names_itself_and_its_value() {
        let limits = Limits {
            duration: Some(Span::from_secs(20)),
            rate: Some(BitRate(10_000_000)),
            bytes: Some(ByteCount(1_000_000)),
            streams: Some(4),
        };
        let rated = TcpPlan { rate: Some(BitRate(10_000_000)), ..tcp() };
        assert_eq!(check(&TestPlan::Tcp(rated.clone()), &limits), Ok(()));
        assert_eq!(check(&TestPlan::Udp(udp()), &limits), Ok(()));
        let rows = [
            ("duration is 20.0 s", TestPlan::Tcp(TcpPlan { duration: Span::from_secs(21), ..rated.clone() })),
            (
                "duration is 20.0 s",
                TestPlan::Tcp(TcpPlan {
                    duration: Span::from_secs(11),
                    alone: Span::from_secs(10),
                    ..rated.clone()
                }),
            ),
            ("rate is 10.0 Mbit/s", TestPlan::Tcp(tcp())),
            ("bytes is", TestPlan::Tcp(TcpPlan { bytes: Some(ByteCount(1_000_001)), ..rated.clone() })),
            ("streams is 4", TestPlan::Tcp(TcpPlan { streams: 5, ..rated })),
            (
                "rate is 10.0 Mbit/s",
                TestPlan::Tcp(TcpPlan { length: 1250, block_spacing: Some(Span::from_micros(999)), ..tcp() }),
            ),
            ("rate is 10.0 Mbit/s", TestPlan::Udp(UdpPlan { gap_ps: Some(999_000_000), ..udp() })),
            ("rate is 10.0 Mbit/s", TestPlan::Udp(UdpPlan { gap_ps: None, ..udp() })),
            ("rate is 10.0 Mbit/s", TestPlan::Udp(UdpPlan { burst: 2, ..udp() })),
            ("bytes is", TestPlan::Udp(UdpPlan { packets: Some(u64::MAX), ..udp() })),
        ];
        for (want, plan) in rows {
            let refusal = check(&plan, &limits).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::Cap);
            let want = format!("the responder's cap for {want}");
            assert!(refusal.message.starts_with(&want), "{want}: {}", refusal.message);
        }
    }

    #[test]
    fn spaced_blocks_have_a_rate_that_caps_hold() {
        let limits = Limits { rate: Some(BitRate(10_000_000)), ..Limits::default() };
        let spaced = TcpPlan { length: 1250, block_spacing: Some(Span::from_millis(1)), ..tcp() };
        assert_eq!(check(&TestPlan::Tcp(spaced), &limits), Ok(()));
    }

    #[test]
    fn only_who_connects_can_choose_a_label_for_tcp() {
        let header = HeaderFields { flow_label: Some(5), ..HeaderFields::default() };
        let duration = Span::from_secs(1);
        let reverse = TestPlan::Tcp(TcpPlan { direction: Direction::Reverse, ..tcp() });
        for plan in [reverse.clone(), TestPlan::TcpEcho { length: 64, duration }] {
            assert!(check_label(&plan, &header).unwrap_err().message.contains("flow label"));
        }
        let udp_echo = TestPlan::UdpEcho { length: 64, duration, dscp: 0 };
        for plan in [TestPlan::Tcp(tcp()), TestPlan::Udp(udp()), udp_echo] {
            assert_eq!(check_label(&plan, &header), Ok(()));
        }
        assert_eq!(check_label(&reverse, &HeaderFields { ttl: Some(3), ..HeaderFields::default() }), Ok(()));
        let wrong = HeaderFields { ttl: Some(0), ..HeaderFields::default() };
        assert!(check_header(&wrong).unwrap_err().message.starts_with("ttl is 0"));
    }

    #[test]
    fn a_test_that_does_not_keep_to_its_plan_is_caught() {
        let limits = Limits { rate: Some(BitRate(8_000_000)), ..Limits::default() };
        let seconds = Span::from_secs;
        assert_eq!(exceeded(&limits, ByteCount(10_000_000), seconds(9)), None);
        assert!(exceeded(&limits, ByteCount(12_600_000), seconds(9)).is_some());
        assert_eq!(exceeded(&Limits::default(), ByteCount(u64::MAX), Span::ZERO), None);
        let limits = Limits { bytes: Some(ByteCount(5)), ..Limits::default() };
        assert!(exceeded(&limits, ByteCount(6), seconds(1)).is_some());
    }
}
