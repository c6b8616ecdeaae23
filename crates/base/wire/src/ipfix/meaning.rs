//! What a record of any exporter means here: a flow, a packet, a delay.
//!
//! Exporters differ in which elements they send. Flows need a count of packets or bytes; their
//! times may be absolute in four resolutions, relative to the start of the exporter (which it tells
//! in options or beside them), relative to the message, or absent. Where they are absent the export
//! time stands in and [`Flow::timed`] says so. Uptimes of 32 bits begin anew after 49.7 days: the
//! instant nearest to the export time is taken.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netaware_record::IpVersion;
use netaware_record::passive::{FlowKey, PacketSighting, VolumeRow};
use netaware_units::{ByteCount, Span, Wall};

use super::element::{self as e, own};
use super::reader::{DataRecord, unsigned};
use super::sightings::{self, Said};
use super::time;

/// What a record says.
#[derive(Debug, Clone, PartialEq)]
pub enum Found<'a> {
    /// Packets and bytes of a flow.
    Flow(Flow),
    /// A packet with its digest.
    Packet {
        /// Number of the selection that it belongs to.
        selection: u64,
        /// When and which.
        sighting: PacketSighting,
    },
    /// A packet without a digest but with its first bytes, as softflowd's PSAMP has it.
    Frame(FrameReport<'a>),
    /// Delay between two points, as [`super::Emitter::delay`] writes it.
    Delay(DelayReport),
    /// What a selection looked at and chose.
    Statistics {
        /// Number of the selection.
        selection: u64,
        /// Packets that it was shown.
        observed: u64,
        /// Packets that it chose.
        selected: u64,
    },
    /// Other options; their use is that later records can be understood.
    Options,
    /// Nothing that is understood here.
    Other,
}

/// A flow of whatever exporter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// Key, counts and times.
    pub row: VolumeRow,
    /// Whether the times are the exporter's; if not, they are that of the message.
    pub timed: bool,
    /// flowEndReason: 1 idle, 2 active timeout, 3 end seen, 4 forced, 5 lack of resources.
    pub end_reason: Option<u8>,
}

/// The beginning of a frame or packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameReport<'a> {
    /// Number of the selection.
    pub selection: u64,
    /// When it was seen, if that was said.
    pub at: Option<Wall>,
    /// Its bytes; padding is cut off where the exporter says how many were exported.
    pub bytes: &'a [u8],
    /// Whether they begin with the IP header and not with that of the link.
    pub from_ip: bool,
}

/// Figures of a path as IPFIX carries them, in whole microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DelayReport {
    /// First point.
    pub from: String,
    /// Second point.
    pub to: String,
    /// 4 or 6; 0: both together.
    pub version: u8,
    /// First instant of its period.
    pub since: Wall,
    /// First instant after it.
    pub until: Wall,
    /// Packets seen at the first point.
    pub packets: u64,
    /// Seen at both.
    pub matched: u64,
    /// Lost between them.
    pub lost: u64,
    /// Not known whether lost.
    pub unobserved: u64,
    /// Mean, min, max and sum of the delays, us; `None`: there was none.
    pub delay_us: Option<[u64; 4]>,
    /// What the clocks may add or take; `None`: not known.
    pub clock_bound: Option<Span>,
    /// How many of the delays are smaller than that; `None`: not said.
    pub below_bound: Option<u64>,
}

/// Keeps what records of one session need to be understood.
#[derive(Debug, Clone, Default)]
pub struct Interpreter {
    /// By domain: when the exporter started. As many as a reader has domains.
    started_at: BTreeMap<u32, Wall>,
}

impl Interpreter {
    /// Nothing known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What a record says.
    pub fn interpret<'a>(&mut self, record: &DataRecord<'a>) -> Found<'a> {
        if let Some(millis) = record.number(e::SYSTEM_INIT) {
            self.started_at.insert(record.domain, time::from_millis(millis));
        }
        if record.template.scopes > 0 {
            return options(record);
        }
        let fields = Gathered::of(record);
        if let Some(delay) = delay(record, &fields) {
            return Found::Delay(delay);
        }
        if let Some((selection, sighting)) = sightings::packet(record) {
            return Found::Packet { selection, sighting };
        }
        if let Some(frame) = frame(record) {
            return Found::Frame(frame);
        }
        if fields.packets.is_none() && fields.bytes.is_none() {
            return Found::Other;
        }
        Found::Flow(fields.flow(record.exported_at, self.started_at.get(&record.domain).copied()))
    }
}

fn options<'a>(record: &DataRecord<'a>) -> Found<'a> {
    match sightings::interpret(record) {
        Some((selection, Said::Statistics { observed, selected })) => {
            Found::Statistics { selection, observed, selected }
        }
        _ => Found::Options,
    }
}

fn frame<'a>(record: &DataRecord<'a>) -> Option<FrameReport<'a>> {
    let section = record.value(e::FRAME_SECTION);
    let bytes = section.or_else(|| record.value(e::IP_SECTION))?;
    let exported = record.number(e::SECTION_OCTETS).map_or(bytes.len(), |octets| octets as usize);
    let times = [e::SEEN_NANOS, e::SEEN_MICROS, e::SEEN_MILLIS, e::SEEN_SECONDS];
    let mut times = times.into_iter().filter_map(|element| Some((element, record.number(element)?)));
    let at = times.next().map(|(element, number)| sightings::seen_at(element, number, record.exported_at));
    Some(FrameReport {
        selection: record.number(e::SELECTION_SEQUENCE).unwrap_or(0),
        at,
        bytes: &bytes[..exported.min(bytes.len())],
        from_ip: section.is_none(),
    })
}

fn delay(record: &DataRecord<'_>, fields: &Gathered) -> Option<DelayReport> {
    let own = |element| {
        let mut all = record.fields();
        all.find(|(field, _)| field.enterprise == e::ENTERPRISE && field.element == element).map(|(_, v)| v)
    };
    let count = |element| own(element).and_then(unsigned);
    // Which stands in delays and in nothing else.
    let to = own(own::TO)?;
    let figures = [e::DELAY_MEAN, e::DELAY_MIN, e::DELAY_MAX, e::DELAY_SUM].map(|e| record.number(e));
    let delay_us = figures.iter().all(Option::is_some).then(|| figures.map(Option::unwrap_or_default));
    let (since, until, _) = fields.times.resolve(record.exported_at, None);
    Some(DelayReport {
        from: sightings::text(own(own::FROM)?),
        to: sightings::text(to),
        version: record.number(e::VERSION).unwrap_or(0) as u8,
        since,
        until,
        packets: fields.packets?,
        matched: count(own::MATCHED)?,
        lost: count(own::LOST)?,
        unobserved: count(own::UNOBSERVED)?,
        delay_us,
        clock_bound: count(own::CLOCK_BOUND).filter(|ns| *ns != u64::MAX).map(|ns| Span(ns as i64)),
        below_bound: count(own::BELOW_BOUND),
    })
}

/// Fields of a flow record, whichever of them there are.
#[derive(Debug, Clone, Default)]
struct Gathered {
    key: FlowKey,
    packets: Option<u64>,
    bytes: Option<u64>,
    packets_error: u64,
    rest: bool,
    end_reason: Option<u8>,
    times: Times,
}

/// When a flow began and ended, in the exporter's words: element and number.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    start: Option<(u16, u64)>,
    end: Option<(u16, u64)>,
    lasted: Option<Span>,
}

impl Gathered {
    fn of(record: &DataRecord<'_>) -> Self {
        let mut gathered = Self::default();
        for (field, value) in record.fields() {
            match field.enterprise {
                0 => gathered.take(field.element, value),
                e::ENTERPRISE => gathered.take_own(field.element, value),
                _ => {}
            }
        }
        gathered
    }

    fn take(&mut self, element: u16, value: &[u8]) {
        let key = &mut self.key;
        let number = unsigned(value);
        match element {
            e::OCTETS => self.bytes = number,
            e::PACKETS => self.packets = number,
            // Where an exporter tells both, the change since the last report counts.
            e::OCTETS_TOTAL => self.bytes = self.bytes.or(number),
            e::PACKETS_TOTAL => self.packets = self.packets.or(number),
            e::SOURCE_V4 | e::SOURCE_V6 | e::SOURCE_V4_NETWORK | e::SOURCE_V6_NETWORK => {
                key.source = address(value).or(key.source);
            }
            e::DESTINATION_V4 | e::DESTINATION_V6 | e::DESTINATION_V4_NETWORK | e::DESTINATION_V6_NETWORK => {
                key.destination = address(value).or(key.destination);
            }
            e::PROTOCOL => key.protocol = number.map(|n| n as u8),
            e::SOURCE_PORT | e::UDP_SOURCE_PORT | e::TCP_SOURCE_PORT => {
                key.source_port = number.map(|n| n as u16);
            }
            e::DESTINATION_PORT | e::UDP_DESTINATION_PORT | e::TCP_DESTINATION_PORT => {
                key.destination_port = number.map(|n| n as u16);
            }
            e::VERSION => {
                key.version = match number {
                    Some(4) => Some(IpVersion::V4),
                    Some(6) => Some(IpVersion::V6),
                    _ => None,
                }
            }
            e::CLASS_OF_SERVICE => key.dscp = number.map(|octet| octet as u8 >> 2),
            e::DSCP => key.dscp = number.map(|n| n as u8 & 0x3f),
            e::FLOW_LABEL => key.flow_label = number.map(|n| n as u32 & 0xf_ffff),
            e::SOURCE_V4_PREFIX | e::SOURCE_V6_PREFIX => key.source_prefix = number.map(|n| n as u8),
            e::DESTINATION_V4_PREFIX | e::DESTINATION_V6_PREFIX => {
                key.destination_prefix = number.map(|n| n as u8);
            }
            e::END_REASON => self.end_reason = number.map(|n| n as u8),
            _ => self.times.take(element, number),
        }
    }

    fn take_own(&mut self, element: u16, value: &[u8]) {
        match (element, unsigned(value)) {
            (own::PACKETS_ERROR, Some(error)) => self.packets_error = error,
            (own::REST, Some(rest)) => self.rest = rest == 1,
            _ => {}
        }
    }

    fn flow(self, exported_at: Wall, started_at: Option<Wall>) -> Flow {
        let mut key = self.key;
        let of_address = |address: IpAddr| if address.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        key.version = key.version.or_else(|| key.source.or(key.destination).map(of_address));
        key.source_prefix = shorter(key.source_prefix, key.source);
        key.destination_prefix = shorter(key.destination_prefix, key.destination);
        let (first_at, last_at, timed) = self.times.resolve(exported_at, started_at);
        let row = VolumeRow {
            key,
            packets: self.packets.unwrap_or(0),
            bytes: ByteCount(self.bytes.unwrap_or(0)),
            first_at,
            last_at,
            packets_error: self.packets_error,
            rest: self.rest,
        };
        Flow { row, timed, end_reason: self.end_reason }
    }
}

impl Times {
    fn take(&mut self, element: u16, number: Option<u64>) {
        let Some(number) = number else { return };
        match element {
            e::START_NANOS
            | e::START_MICROS
            | e::START_MILLIS
            | e::START_SECONDS
            | e::START_UPTIME
            | e::START_DELTA => {
                keep_finest(&mut self.start, element, number);
            }
            e::END_NANOS | e::END_MICROS | e::END_MILLIS | e::END_SECONDS | e::END_UPTIME | e::END_DELTA => {
                keep_finest(&mut self.end, element, number);
            }
            e::DURATION_MILLIS => self.lasted = Some(span(number, 1_000_000)),
            e::DURATION_MICROS => self.lasted = Some(span(number, 1_000)),
            _ => {}
        }
    }

    /// First and last instant, and whether the exporter told them.
    fn resolve(self, exported_at: Wall, started_at: Option<Wall>) -> (Wall, Wall, bool) {
        let instant = |told: Option<(u16, u64)>| instant(told?, exported_at, started_at);
        let lasted = self.lasted.unwrap_or(Span::ZERO).nanos();
        let (first, last) = match (instant(self.start), instant(self.end)) {
            (Some(first), Some(last)) => (first, last),
            (Some(first), None) => (first, Wall(first.0.saturating_add(lasted))),
            (None, Some(last)) => (Wall(last.0.saturating_sub(lasted)), last),
            (None, None) => return (exported_at, exported_at, false),
        };
        (first, last, true)
    }
}

/// Where an exporter tells a time twice, the finer one is kept: those elements have the greater
/// numbers, but for the two that are relative to the message.
fn keep_finest(kept: &mut Option<(u16, u64)>, element: u16, number: u64) {
    let rank = |element: u16| if matches!(element, e::START_DELTA | e::END_DELTA) { 0 } else { element };
    if kept.is_none_or(|(before, _)| rank(before) < rank(element)) {
        *kept = Some((element, number));
    }
}

fn instant((element, number): (u16, u64), exported_at: Wall, started_at: Option<Wall>) -> Option<Wall> {
    Some(match element {
        e::START_NANOS | e::END_NANOS => time::from_ntp(number, exported_at),
        e::START_MICROS | e::END_MICROS => time::from_ntp_micros(number, exported_at),
        e::START_MILLIS | e::END_MILLIS => time::from_millis(number),
        e::START_SECONDS | e::END_SECONDS => time::from_seconds(number),
        e::START_DELTA | e::END_DELTA => Wall(exported_at.0.saturating_sub(span(number, 1000).nanos())),
        _ => since_start(started_at?, number as u32, exported_at),
    })
}

/// Milliseconds since the exporter's start, modulo 2³², nearest to the export time.
fn since_start(started_at: Wall, uptime_ms: u32, exported_at: Wall) -> Wall {
    let now_ms = exported_at.0.saturating_sub(started_at.0) / 1_000_000;
    let ms = now_ms + i64::from(uptime_ms.wrapping_sub(now_ms as u32) as i32);
    Wall(started_at.0.saturating_add(ms.saturating_mul(1_000_000)))
}

fn span(number: u64, nanos: i64) -> Span {
    Span(i64::try_from(number).unwrap_or(i64::MAX).saturating_mul(nanos))
}

fn address(value: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(value) {
        return Some(Ipv4Addr::from(v4).into());
    }
    <[u8; 16]>::try_from(value).ok().map(|v6| Ipv6Addr::from(v6).into())
}

/// A prefix length only where it says more than the address.
fn shorter(prefix: Option<u8>, address: Option<IpAddr>) -> Option<u8> {
    let whole = if address?.is_ipv4() { 32 } else { 128 };
    // Exporters that know no prefix send 0 beside a whole address.
    prefix.filter(|length| (1..whole).contains(length))
}

#[cfg(test)]
mod tests;
