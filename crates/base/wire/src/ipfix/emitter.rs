//! Our rows as IPFIX, for any collector.
//!
//! | row | record |
//! |---|---|
//! | [`VolumeRow`] | a flow; its template holds the parts of the key that the row has, so that nothing absent is told as 0 |
//! | [`DelayRow`] | pathDelay…DeltaMicroseconds (530 to 533), packets, and ours: points, matched, lost, unobserved, clock bound, below it |
//! | [`CaptureHealth`] | options about an interface: dropped (133), ignored (164), and ours |
//! | sightings | packet reports, as [`super::sightings`] has them |
//!
//! 530 to 533 are defined for nodes that mark packets (draft-ietf-opsawg-ipfix-on-path-telemetry);
//! here they are delays between two points that only watch, or between sender and reflector. Rows
//! of other kinds have no elements at IANA: they travel as JSON to collectors of ours and are
//! counted as skipped here.

use std::collections::BTreeMap;
use std::net::IpAddr;

use netaware_record::IpVersion;
use netaware_record::passive::{
    CaptureHealth, DelayRow, FlowKey, PacketSighting, Period, Row, TaskRow, VolumeRow,
};
use netaware_units::{Span, Wall};

use super::element::{self as e, own};
use super::message::Writer;
use super::reader::Transport;
use super::sightings::{self, Selection};
use super::template::{Field, Template, VARIABLE};
use super::time;

/// Delays, where there were any.
const DELAY: u16 = 264;
/// Paths without a delay to tell: no packet came through.
const DELAY_NONE: u16 = 265;
/// State of a capture.
const CAPTURE: u16 = 266;
/// Flows: this plus the shape of their key.
const FLOW: u16 = 4096;

/// flowEndReason of a flow that goes on: the report's period is over.
const ACTIVE_TIMEOUT: u8 = 2;
/// flowEndReason of what had no room in the table.
const LACK_OF_RESOURCES: u8 = 5;

/// Over datagrams templates are repeated after so long; a collector may forget them after three
/// times that (RFC 7011 §8.4).
pub const REPEAT: Span = Span::from_secs(60);

/// One session of one domain. Whole messages go to `out` as soon as they are full, the last with
/// [`Self::finish`].
#[derive(Debug, Clone)]
pub struct Emitter {
    writer: Writer,
    transport: Transport,
    announced: BTreeMap<u16, Template>,
    repeat_at: Wall,
    /// Frames that were ignored so far, by interface: the element counts in total.
    ignored: BTreeMap<String, u64>,
    skipped: u64,
}

impl Emitter {
    /// Messages of at most `limit` bytes. What is not known of a path's MTU calls for
    /// [`super::message::MAX_UDP_MESSAGE`] over datagrams.
    pub fn new(domain: u32, limit: usize, transport: Transport) -> Self {
        Self {
            writer: Writer::new(domain, limit),
            transport,
            announced: BTreeMap::new(),
            repeat_at: Wall(i64::MIN),
            ignored: BTreeMap::new(),
            skipped: 0,
        }
    }

    /// Rows that IPFIX has no words for, or that contradict themselves.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The time of what follows. Over datagrams this repeats the templates when they are due.
    pub fn begin(&mut self, at: Wall, out: &mut dyn FnMut(&[u8])) {
        self.writer.set_time(at);
        if self.transport == Transport::Stream || at < self.repeat_at {
            return;
        }
        self.repeat_at = Wall(at.0.saturating_add(REPEAT.nanos()));
        for template in self.announced.values() {
            announce(&mut self.writer, template, out);
        }
    }

    /// Hands out what is waiting.
    pub fn finish(&mut self, out: &mut dyn FnMut(&[u8])) {
        self.writer.finish(out);
    }

    /// A row of any kind.
    pub fn row(&mut self, row: &TaskRow, out: &mut dyn FnMut(&[u8])) {
        match &row.row {
            Row::Volume(volume) => self.volume(volume, out),
            Row::Traffic(traffic) => traffic.top.iter().for_each(|volume| self.volume(volume, out)),
            Row::Delay(delay) => self.delay(delay, row.period, out),
            _ => self.skipped += 1,
        }
    }

    /// A flow.
    pub fn volume(&mut self, row: &VolumeRow, out: &mut dyn FnMut(&[u8])) {
        let Some(shape) = Shape::of(row) else {
            self.skipped += 1;
            return;
        };
        let id = FLOW + shape.0;
        self.know(id, || Template::data(id, &shape.fields()), out);
        self.writer.record(id, &flow(row), out);
    }

    /// Delay between two points.
    pub fn delay(&mut self, row: &DelayRow, period: Period, out: &mut dyn FnMut(&[u8])) {
        let id = if row.delay.count == 0 { DELAY_NONE } else { DELAY };
        self.know(id, || delay_template(id), out);
        self.writer.record(id, &delay(row, period), out);
    }

    /// What a capture lost in its last period.
    pub fn capture(&mut self, interface: &str, health: &CaptureHealth, out: &mut dyn FnMut(&[u8])) {
        self.know(CAPTURE, capture_template, out);
        if !self.ignored.contains_key(interface) {
            self.ignored.insert(interface.to_owned(), 0);
        }
        let ignored = self.ignored.get_mut(interface).map_or(0, |total| {
            *total = total.wrapping_add(health.not_ip + health.malformed);
            *total
        });
        let mut record = Vec::new();
        sightings::name(interface, &mut record);
        let counts = [
            health.seen,
            health.seen_bytes.0,
            health.lost(),
            ignored,
            health.merged,
            health.reports_given_up,
        ];
        for count in counts {
            record.extend(count.to_be_bytes());
        }
        self.writer.record(CAPTURE, &record, out);
    }

    /// What chose the packets that follow.
    pub fn selection(&mut self, selection: &Selection, out: &mut dyn FnMut(&[u8])) {
        for template in sightings::templates() {
            self.know(template.id, || template.clone(), out);
        }
        sightings::emit_options(selection, &mut self.writer, out);
    }

    /// A packet.
    pub fn packet(&mut self, selection: u64, sighting: &PacketSighting, out: &mut dyn FnMut(&[u8])) {
        self.know(sightings::PACKETS, || sightings::templates()[0].clone(), out);
        self.writer.record(sightings::PACKETS, &sightings::report(selection, sighting), out);
    }

    /// Announces a template before its first use.
    fn know(&mut self, id: u16, template: impl FnOnce() -> Template, out: &mut dyn FnMut(&[u8])) {
        if !self.announced.contains_key(&id) {
            let template = template();
            announce(&mut self.writer, &template, out);
            self.announced.insert(id, template);
        }
    }
}

fn announce(writer: &mut Writer, template: &Template, out: &mut dyn FnMut(&[u8])) {
    let mut record = Vec::new();
    template.emit(&mut record);
    writer.record(template.set(), &record, out);
}

/// Which parts of its key a flow has, one bit for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape(u16);

const VERSION: u16 = 1;
const SOURCE: u16 = 1 << 1;
const SOURCE_PREFIX: u16 = 1 << 2;
const DESTINATION: u16 = 1 << 3;
const DESTINATION_PREFIX: u16 = 1 << 4;
const PROTOCOL: u16 = 1 << 5;
const SOURCE_PORT: u16 = 1 << 6;
const DESTINATION_PORT: u16 = 1 << 7;
const DSCP: u16 = 1 << 8;
const FLOW_LABEL: u16 = 1 << 9;
const V6: u16 = 1 << 10;
/// The row is not exact, or the rest.
const DOUBT: u16 = 1 << 11;

impl Shape {
    /// `None`: addresses of two versions.
    fn of(row: &VolumeRow) -> Option<Self> {
        let FlowKey { source, destination, .. } = row.key;
        if let (Some(source), Some(destination)) = (source, destination)
            && source.is_ipv4() != destination.is_ipv4()
        {
            return None;
        }
        let key = &row.key;
        let bits = [
            (VERSION, key.version.is_some()),
            (SOURCE, source.is_some()),
            (SOURCE_PREFIX, source.is_some() && key.source_prefix.is_some()),
            (DESTINATION, destination.is_some()),
            (DESTINATION_PREFIX, destination.is_some() && key.destination_prefix.is_some()),
            (PROTOCOL, key.protocol.is_some()),
            (SOURCE_PORT, key.source_port.is_some()),
            (DESTINATION_PORT, key.destination_port.is_some()),
            (DSCP, key.dscp.is_some()),
            (FLOW_LABEL, key.flow_label.is_some()),
            (V6, source.or(destination).is_some_and(|address| address.is_ipv6())),
            (DOUBT, row.rest || row.packets_error > 0),
        ];
        Some(Self(bits.iter().filter(|(_, there)| *there).map(|(bit, _)| bit).sum()))
    }

    fn has(self, bit: u16) -> bool {
        self.0 & bit != 0
    }

    /// In the order in which [`flow`] writes.
    fn fields(self) -> Vec<Field> {
        let v6 = self.has(V6);
        let pick = |prefix: u16, [v4, v4_net, v6_whole, v6_net]: [u16; 4]| match (v6, self.has(prefix)) {
            (false, false) => Field::of(v4, 4),
            (false, true) => Field::of(v4_net, 4),
            (true, false) => Field::of(v6_whole, 16),
            (true, true) => Field::of(v6_net, 16),
        };
        let prefix = |v4, of_v6| Field::of(if v6 { of_v6 } else { v4 }, 1);
        let sources = [e::SOURCE_V4, e::SOURCE_V4_NETWORK, e::SOURCE_V6, e::SOURCE_V6_NETWORK];
        let destinations =
            [e::DESTINATION_V4, e::DESTINATION_V4_NETWORK, e::DESTINATION_V6, e::DESTINATION_V6_NETWORK];
        let keys = [
            (VERSION, Field::of(e::VERSION, 1)),
            (SOURCE, pick(SOURCE_PREFIX, sources)),
            (SOURCE_PREFIX, prefix(e::SOURCE_V4_PREFIX, e::SOURCE_V6_PREFIX)),
            (DESTINATION, pick(DESTINATION_PREFIX, destinations)),
            (DESTINATION_PREFIX, prefix(e::DESTINATION_V4_PREFIX, e::DESTINATION_V6_PREFIX)),
            (PROTOCOL, Field::of(e::PROTOCOL, 1)),
            (SOURCE_PORT, Field::of(e::SOURCE_PORT, 2)),
            (DESTINATION_PORT, Field::of(e::DESTINATION_PORT, 2)),
            (DSCP, Field::of(e::CLASS_OF_SERVICE, 1)),
            (FLOW_LABEL, Field::of(e::FLOW_LABEL, 4)),
        ];
        let mut fields: Vec<Field> =
            keys.into_iter().filter(|(bit, _)| self.has(*bit)).map(|(_, f)| f).collect();
        fields.extend([
            Field::of(e::PACKETS, 8),
            Field::of(e::OCTETS, 8),
            Field::of(e::START_NANOS, 8),
            Field::of(e::END_NANOS, 8),
            // Milliseconds as well: collectors in use know no finer times.
            Field::of(e::START_MILLIS, 8),
            Field::of(e::END_MILLIS, 8),
            Field::of(e::END_REASON, 1),
        ]);
        if self.has(DOUBT) {
            fields.extend([Field::own(own::PACKETS_ERROR, 8), Field::own(own::REST, 1)]);
        }
        fields
    }
}

fn flow(row: &VolumeRow) -> Vec<u8> {
    let key = &row.key;
    let mut record = Vec::with_capacity(112);
    record.extend(key.version.map(|version| if version == IpVersion::V4 { 4 } else { 6 }));
    address(key.source, key.source_prefix, &mut record);
    address(key.destination, key.destination_prefix, &mut record);
    record.extend(key.protocol);
    for port in [key.source_port, key.destination_port].into_iter().flatten() {
        record.extend(port.to_be_bytes());
    }
    record.extend(key.dscp.map(|dscp| dscp << 2));
    record.extend(key.flow_label.map(u32::to_be_bytes).iter().flatten());
    let millis = |at: Wall| at.0.div_euclid(1_000_000).max(0) as u64;
    for number in [
        row.packets,
        row.bytes.0,
        time::to_ntp(row.first_at),
        time::to_ntp(row.last_at),
        millis(row.first_at),
        millis(row.last_at),
    ] {
        record.extend(number.to_be_bytes());
    }
    record.push(if row.rest { LACK_OF_RESOURCES } else { ACTIVE_TIMEOUT });
    if row.rest || row.packets_error > 0 {
        record.extend(row.packets_error.to_be_bytes());
        record.push(boolean(row.rest));
    }
    record
}

fn address(address: Option<IpAddr>, prefix: Option<u8>, record: &mut Vec<u8>) {
    match address {
        Some(IpAddr::V4(v4)) => record.extend(v4.octets()),
        Some(IpAddr::V6(v6)) => record.extend(v6.octets()),
        None => return,
    }
    record.extend(prefix);
}

/// RFC 7011 §6.1.5.
fn boolean(truth: bool) -> u8 {
    if truth { 1 } else { 2 }
}

fn delay_template(id: u16) -> Template {
    let mut fields = vec![
        Field::own(own::FROM, VARIABLE),
        Field::own(own::TO, VARIABLE),
        Field::of(e::VERSION, 1),
        Field::of(e::START_NANOS, 8),
        Field::of(e::END_NANOS, 8),
        Field::of(e::PACKETS, 8),
        Field::own(own::MATCHED, 8),
        Field::own(own::LOST, 8),
        Field::own(own::UNOBSERVED, 8),
        Field::own(own::CLOCK_BOUND, 8),
    ];
    if id == DELAY {
        fields.extend([e::DELAY_MEAN, e::DELAY_MIN, e::DELAY_MAX].map(|element| Field::of(element, 4)));
        fields.push(Field::of(e::DELAY_SUM, 8));
        fields.push(Field::own(own::BELOW_BOUND, 8));
    }
    Template::data(id, &fields)
}

fn delay(row: &DelayRow, period: Period) -> Vec<u8> {
    let mut record = Vec::with_capacity(128);
    sightings::name(&row.from, &mut record);
    sightings::name(&row.to, &mut record);
    record.push(match row.version {
        Some(IpVersion::V4) => 4,
        Some(IpVersion::V6) => 6,
        None => 0,
    });
    let bound = row.clock_bound.map_or(u64::MAX, |bound| bound.or_zero().nanos() as u64);
    for number in [
        time::to_ntp(period.from),
        time::to_ntp(period.until),
        row.packets,
        row.matched,
        row.lost,
        row.unobserved,
        bound,
    ] {
        record.extend(number.to_be_bytes());
    }
    let delay = &row.delay;
    if delay.count > 0 {
        // To the nearest microsecond; what the element cannot hold stops at its end (71 minutes).
        let micros = |ns: i128| (ns.max(0) + 500) / 1000;
        let short = |ns: i128| u32::try_from(micros(ns)).unwrap_or(u32::MAX);
        let mean = delay.sum_ns / i128::from(delay.count);
        for ns in [mean, delay.min.nanos().into(), delay.max.nanos().into()] {
            record.extend(short(ns).to_be_bytes());
        }
        record.extend(u64::try_from(micros(delay.sum_ns)).unwrap_or(u64::MAX).to_be_bytes());
        record.extend(row.below_bound.to_be_bytes());
    }
    record
}

fn capture_template() -> Template {
    Template::options(
        CAPTURE,
        1,
        &[
            Field::of(e::INTERFACE_NAME, VARIABLE),
            Field::of(e::PACKETS, 8),
            Field::of(e::LAYER2_OCTETS, 8),
            Field::of(e::DROPPED, 8),
            Field::of(e::IGNORED, 8),
            Field::own(own::MERGED, 8),
            Field::own(own::REPORTS_GIVEN_UP, 8),
        ],
    )
}

#[cfg(test)]
mod tests;
