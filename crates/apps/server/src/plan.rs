//! What a test may ask for: hard limits of the program, and caps of the owner.
//!
//! A plan is either taken as it stands or refused with the reason. It is never trimmed to fit: the
//! prober would then report a figure for something that it did not ask.
//!
//! Echo tests run beside everything else, so their plans bound what one exchange may move: over UDP
//! what a short request draws, over TCP 64 KiB each way. Longer exchanges over TCP fill the path
//! and wait for their turn as bulk does.

use netaware_record::{Direction, HistogramShape};
use netaware_units::{BitRate, ByteCount, Span};
use netaware_wire::control::{
    ErrorCode, Limits, MAX_BLOCK_SPACING, MAX_BURST, MAX_CHANNEL_PAYLOAD, MAX_ROUND_TRIP, MAX_STREAMS,
    MAX_TCP_ECHO, MAX_TCP_ECHO_BESIDE, MAX_TCP_LENGTH, TcpPlan, TestPlan, TrainsPlan, UdpPlan, UdpReceive,
    UdpSend,
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

/// A cap that echoes are held to while they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cap {
    Rate,
    Bytes,
}

/// Whether a plan moves as much as it can, so that it must be alone.
pub(crate) fn needs_reservation(plan: &TestPlan) -> bool {
    match plan {
        TestPlan::Tcp(_) | TestPlan::Udp(_) | TestPlan::Trains(_) => true,
        TestPlan::TcpEcho { length, response, .. } => longest(*length, *response) > MAX_TCP_ECHO_BESIDE,
        TestPlan::UdpEcho { .. } => false,
    }
}

/// Whether a plan is of requests and responses, answered from the moment it is ready.
pub(crate) fn is_echo(plan: &TestPlan) -> bool {
    matches!(plan, TestPlan::UdpEcho { .. } | TestPlan::TcpEcho { .. })
}

/// What a throughput test moves by its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) direction: Direction,
    pub(crate) rate: Option<BitRate>,
    /// Of a test that nobody counts while it runs.
    pub(crate) bytes: ByteCount,
}

/// Which way the payload of a throughput test goes, at which rate, and how much of it.
pub(crate) fn planned(plan: &TestPlan) -> Planned {
    let none = ByteCount(0);
    match plan {
        TestPlan::Tcp(plan) => {
            Planned { direction: plan.direction, rate: plan.rate.or_else(|| spaced_rate(plan)), bytes: none }
        }
        TestPlan::Udp(plan) => {
            let bytes = if plan.direction == Direction::Reverse { bytes_of(plan) } else { None };
            Planned { direction: plan.direction, rate: plan.rate(), bytes: bytes.unwrap_or(none) }
        }
        TestPlan::Trains(plan) => Planned { direction: plan.direction, rate: None, bytes: none },
        TestPlan::UdpEcho { .. } | TestPlan::TcpEcho { .. } => {
            Planned { direction: Direction::RoundTrip, rate: None, bytes: none }
        }
    }
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
        TestPlan::Trains(plan) => plan.duration,
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
            // Without a length of its own the response is the request, which must then be held
            // whole.
            let most = if response.is_some() { MAX_TCP_ECHO } else { MAX_TCP_ECHO_BESIDE };
            within("length", *length, 1, most)?;
            optional("response", *response, 1, MAX_TCP_ECHO)?;
            check_exchange(*length, *response, limits)
        }
        TestPlan::Tcp(plan) => check_tcp(plan, limits),
        TestPlan::Udp(plan) => check_udp(plan, limits),
        TestPlan::Trains(plan) => check_trains(plan, limits),
    }
}

fn check_udp_echo(length: u32, response: Option<u32>) -> Result<(), Refusal> {
    let most = MAX_PAYLOAD as u32;
    let Some(response) = response else { return within("length", length, ECHO_LEN as u32, most) };
    within("length", length, 1, most)?;
    let drawn = if (length as usize) < HEADER_LEN { MOST_TO_SHORT as u32 } else { most };
    within("response", response, 1, drawn)
}

/// What one exchange moves, against the owner's caps. How many there will be nobody knows, so these
/// are held while the test runs ([`crate::meter`]). An exchange that draws more than it brings, or
/// fills the path by itself, must also fit a cap on bytes, and a cap on the rate allows none.
fn check_exchange(length: u32, response: Option<u32>, limits: &Limits) -> Result<(), Refusal> {
    let draws = response.is_some_and(|response| response > length);
    if !draws && longest(length, response) <= MAX_PAYLOAD as u32 {
        return Ok(());
    }
    let moved = ByteCount(u64::from(length) + u64::from(response.unwrap_or(length)));
    if let Some(cap) = limits.bytes.filter(|cap| moved > *cap) {
        return Err(over_cap("bytes", &cap));
    }
    limits.rate.map_or(Ok(()), |cap| Err(over_cap("rate", &cap)))
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
    plan.block_spacing.and_then(|spacing| BitRate::mean(ByteCount(plan.length.into()), spacing))
}

/// Whether the fields asked for can be set.
pub(crate) fn check_header(header: &HeaderFields) -> Result<(), Refusal> {
    header.fault().map_or(Ok(()), |fault| Err(bad(fault)))
}

/// Whether a test can be run with these fields: who accepts a TCP connection cannot choose its flow
/// label.
pub(crate) fn check_label(plan: &TestPlan, header: &HeaderFields) -> Result<(), Refusal> {
    let sends_tcp = match plan {
        TestPlan::Tcp(plan) => plan.direction == Direction::Reverse,
        TestPlan::TcpEcho { .. } => true,
        TestPlan::Udp(_) | TestPlan::UdpEcho { .. } | TestPlan::Trains(_) => false,
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
    optional("gap_ps", plan.gap_ps, 1, u64::MAX)?;
    if plan.gap_ps.is_some_and(|gap| gap > LONGEST_GAP_PS) {
        return Err(
            bad("datagrams would leave more than a minute apart: a higher rate is needed".to_owned()),
        );
    }
    optional("settle", plan.settle.map(|settle| settle.0), 0, LONGEST_SETTLE.0)?;
    within("round_trip", plan.round_trip.0, 0, MAX_ROUND_TRIP.0)?;
    within("burst", plan.burst, 1, MAX_BURST)?;
    if plan.histogram.is_some_and(|shape| shape.empty().is_none()) {
        return Err(bad(format!(
            "histogram must have 1 to {} bins wider than nothing",
            HistogramShape::MOST_BINS
        )));
    }
    optional("window", plan.window, 1, MAX_WINDOW)?;
    under_caps(limits, bytes_of(plan), plan.rate())
}

/// What a stream moves at most by its plan, where that is known.
fn bytes_of(plan: &UdpPlan) -> Option<ByteCount> {
    let bytes = plan.packets.map(|packets| ByteCount(packets.saturating_mul(u64::from(plan.length))));
    match plan.direction {
        // Nobody counts while it is sent, so its plan has to end it in time.
        Direction::Reverse => bytes.or_else(|| Some(sent_in_its_time(plan))),
        _ => bytes,
    }
}

/// What a stream without an end of its own sends in its time: without a rate, any amount.
fn sent_in_its_time(plan: &UdpPlan) -> ByteCount {
    let bits =
        plan.rate().map(|rate| u128::from(rate.0) * u128::from(plan.duration.or_zero().0.unsigned_abs()));
    ByteCount(bits.map_or(u64::MAX, |bits| u64::try_from(bits / 8_000_000_000).unwrap_or(u64::MAX)))
}

/// Whether a data channel can carry a plan's flow: each of its datagrams in a packet of its own,
/// sent one by one.
pub(crate) fn check_channel(plan: &TestPlan) -> Result<(), Refusal> {
    let longest = match plan {
        TestPlan::UdpEcho { length, response, .. } => longest(*length, *response),
        TestPlan::Udp(plan) => plan.length,
        TestPlan::TcpEcho { .. } | TestPlan::Tcp(_) | TestPlan::Trains(_) => {
            return Err(bad("a data channel carries no test of this kind".to_owned()));
        }
    };
    if longest as usize > MAX_CHANNEL_PAYLOAD {
        return Err(bad(format!("a data channel carries datagrams of at most {MAX_CHANNEL_PAYLOAD} bytes")));
    }
    match plan {
        TestPlan::Udp(plan)
            if plan.burst > 1 || plan.send != UdpSend::Single || plan.receive != UdpReceive::Single =>
        {
            Err(bad("a data channel sends and receives one by one, without bursts".to_owned()))
        }
        _ => Ok(()),
    }
}

/// What trains do is to exceed the path for a moment: a cap on the rate allows none. Their bytes
/// are counted as they are asked for.
fn check_trains(plan: &TrainsPlan, limits: &Limits) -> Result<(), Refusal> {
    one_way(plan.direction)?;
    within("length", plan.length, HEADER_LEN as u32, MAX_PAYLOAD as u32)?;
    within("dscp", plan.dscp, 0, 63)?;
    under_caps(limits, None, None).map_err(|refusal| Refusal {
        message: format!("{}, and trains exceed any rate for a moment", refusal.message),
        ..refusal
    })
}

fn under_caps(limits: &Limits, bytes: Option<ByteCount>, rate: Option<BitRate>) -> Result<(), Refusal> {
    if let Some(cap) = limits.rate.filter(|cap| rate.is_none_or(|asked| asked > *cap)) {
        return Err(over_cap("rate", &cap));
    }
    match limits.bytes.filter(|cap| bytes.is_some_and(|asked| asked > *cap)) {
        Some(cap) => Err(over_cap("bytes", &cap)),
        None => Ok(()),
    }
}

/// Holds a running test to the owner's caps, whatever its plan said: the other end may not keep to
/// it.
///
/// Judged at each tick, so up to one tick's worth passes before a test is stopped; the rate has a
/// second's worth and a quarter of slack, because a buffer on the path may empty itself at once.
pub(crate) fn exceeded(limits: &Limits, bytes: ByteCount, elapsed: Span) -> Option<Refusal> {
    if let Some(cap) = limits.bytes.filter(|cap| bytes > *cap) {
        return Some(over_cap("bytes", &cap));
    }
    let cap = limits.rate?;
    let allowed = u128::from(cap.0) / 8 * (elapsed.or_zero().0 as u128 + 1_000_000_000) / 1_000_000_000;
    (u128::from(bytes.0) > allowed + allowed / 4).then(|| over_cap("rate", &cap))
}

/// What is said of a running echo test that has reached a cap; `None` where there is none.
pub(crate) fn reached(limits: &Limits, cap: Cap) -> Option<Refusal> {
    match cap {
        Cap::Bytes => limits.bytes.map(|cap| over_cap("bytes", &cap)),
        Cap::Rate => limits.rate.map(|cap| {
            let Refusal { code, message } = over_cap("rate", &cap);
            let message =
                format!("{message} for all echoes together: requests above it wait, or have no answer");
            Refusal { code, message }
        }),
    }
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
/// Longer than any packet lives on a path that can be measured at all.
const LONGEST_SETTLE: Span = Span::from_secs(10);
const MAX_WINDOW: u32 = 1 << 30;

#[cfg(test)]
mod tests;
