//! Packets that one probe saw, as PSAMP packet reports (RFC 5476 §6.4) with what makes them
//! readable (§6.5).
//!
//! A batch is a transport session of its own, as a file is (RFC 5655 §8): it begins with its
//! templates, and sequence numbers begin at
//! 0. So it may be kept, sent again, and read by anybody without what was sent before. One batch
//!    holds any number of selections, one for each digest task of the probe.
//!
//! A report takes 24 bytes:
//!
//! ```text
//!  template 256   selectionSequenceId 301 (4)   observationTimeNanoseconds 325 (8)   digestHashValue 326 (8)
//!                 ipTotalLength 224 (2)   ipTTL 192 (1)   ipVersion 60 (1)
//! ```
//!
//! so 57 go into a message of 1400 bytes and 2728 into the longest. The selection of each stands
//! before it in options: interface and selector of the selection (257), what the selector does
//! (258), how many packets it saw and chose (259), how accurate the stamps are (260). The hash's
//! initial value (hashInitialiserValue) stays out: it is the fleet's secret.

use std::collections::BTreeMap;
use std::fmt;

use netaware_record::passive::PacketSighting;
use netaware_units::{Span, Wall};

use super::element as e;
use super::message::{self, MessageError, Writer};
use super::reader::{Counts, DataRecord, Limits, Reader, Transport, unsigned};
use super::template::{Field, Template, VARIABLE};
use super::time;

/// Bytes of one packet report.
pub const REPORT_LEN: usize = 24;
/// A batch holds no more selections.
pub const MAX_SELECTIONS: usize = 1024;
/// Names are cut off there.
pub const MAX_NAME: usize = 255;

/// selectorAlgorithm of hash-based filtering with BOB (RFC 5477 §8.2.2).
pub const BOB: u16 = 6;

pub(super) const PACKETS: u16 = 256;
pub(super) const SELECTION: u16 = 257;
pub(super) const SELECTOR: u16 = 258;
pub(super) const STATISTICS: u16 = 259;
pub(super) const ACCURACY: u16 = 260;

/// What chose packets, and where.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Number within the batch (selectionSequenceId); 32 bits are sent.
    pub sequence: u64,
    /// The task (selectorName).
    pub task: String,
    /// Where (interfaceName).
    pub interface: String,
    /// Packets that it was shown (selectorIdTotalPktsObserved), of the batch's time.
    pub observed: u64,
    /// Packets that it chose (selectorIdTotalPktsSelected), of the batch's time.
    pub selected: u64,
    /// How.
    pub hash: HashSelector,
    /// A stamp is no further from true time than this, by the word of what keeps the clock; how
    /// long a packet took from the wire to its stamp is not in it. `None`: not known.
    pub stamp_error: Option<Span>,
}

/// Parameters of hash-based selection (RFC 5477 §8.3). The secret part is not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HashSelector {
    /// Such as [`BOB`]; 0: not said.
    pub algorithm: u16,
    /// First byte of the IP payload that goes into the hash.
    pub payload_offset: u16,
    /// How many.
    pub payload_size: u16,
    /// Smallest and largest value of the hash.
    pub output: (u64, u64),
    /// Smallest and largest value that is chosen.
    pub selected: (u64, u64),
}

/// A batch as it came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// Observation domain.
    pub domain: u32,
    /// Selections in order of their number, each with its packets in the order in which they came.
    pub selections: Vec<(Selection, Vec<PacketSighting>)>,
    /// Records that were neither packet reports nor options of theirs, or were packet reports
    /// without a digest or a time.
    pub ignored: u64,
    /// What was wrong.
    pub counts: Counts,
}

/// Why a batch cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchError {
    /// Not IPFIX messages back to back.
    Message(MessageError),
    /// The last message ends too early.
    Short,
    /// More than [`MAX_SELECTIONS`].
    Selections,
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(error) => error.fmt(f),
            Self::Short => write!(f, "a batch ends within a message"),
            Self::Selections => write!(f, "a batch has more than {MAX_SELECTIONS} selections"),
        }
    }
}

impl std::error::Error for BatchError {}

/// The templates of a batch, in order of their numbers.
pub fn templates() -> [Template; 5] {
    [
        Template::data(
            PACKETS,
            &[
                Field::of(e::SELECTION_SEQUENCE, 4),
                Field::of(e::SEEN_NANOS, 8),
                Field::of(e::DIGEST, 8),
                Field::of(e::TOTAL_LENGTH, 2),
                Field::of(e::TTL, 1),
                Field::of(e::VERSION, 1),
            ],
        ),
        Template::options(
            SELECTION,
            1,
            &[
                Field::of(e::SELECTION_SEQUENCE, 4),
                Field::of(e::INTERFACE_NAME, VARIABLE),
                Field::of(e::SELECTOR_ID, 4),
            ],
        ),
        Template::options(
            SELECTOR,
            1,
            &[
                Field::of(e::SELECTOR_ID, 4),
                Field::of(e::SELECTOR_NAME, VARIABLE),
                Field::of(e::ALGORITHM, 2),
                Field::of(e::HASH_OFFSET, 2),
                Field::of(e::HASH_SIZE, 2),
                Field::of(e::HASH_OUTPUT_MIN, 8),
                Field::of(e::HASH_OUTPUT_MAX, 8),
                Field::of(e::HASH_SELECTED_MIN, 8),
                Field::of(e::HASH_SELECTED_MAX, 8),
                Field::of(e::HASH_DIGEST, 1),
            ],
        ),
        Template::options(
            STATISTICS,
            1,
            &[Field::of(e::SELECTION_SEQUENCE, 4), Field::of(e::OBSERVED, 8), Field::of(e::SELECTED, 8)],
        ),
        // RFC 5476 §6.5.4 has the template and the element as scope; what differs here by selection
        // stands in front of them.
        Template::options(
            ACCURACY,
            3,
            &[
                Field::of(e::SELECTION_SEQUENCE, 4),
                Field::of(e::TEMPLATE_ID, 2),
                Field::of(e::ELEMENT_ID, 2),
                Field::of(e::ABSOLUTE_ERROR, 8),
            ],
        ),
    ]
}

/// Writes a batch: messages back to back of at most `limit` bytes each, appended to `out`.
pub fn emit(
    domain: u32,
    exported_at: Wall,
    parts: &[(&Selection, &[PacketSighting])],
    limit: usize,
    out: &mut Vec<u8>,
) {
    let mut writer = Writer::new(domain, limit);
    writer.set_time(exported_at);
    let mut out = |message: &[u8]| out.extend_from_slice(message);
    let mut record = Vec::new();
    for template in templates() {
        record.clear();
        template.emit(&mut record);
        writer.record(template.set(), &record, &mut out);
    }
    for (selection, sightings) in parts {
        emit_options(selection, &mut writer, &mut out);
        for sighting in *sightings {
            writer.record(PACKETS, &report(selection.sequence, sighting), &mut out);
        }
    }
    writer.finish(&mut out);
}

/// A packet report as [`templates`] has it.
pub(super) fn report(selection: u64, sighting: &PacketSighting) -> [u8; REPORT_LEN] {
    let mut record = [0; REPORT_LEN];
    record[..4].copy_from_slice(&(selection as u32).to_be_bytes());
    record[4..12].copy_from_slice(&time::to_ntp(sighting.at).to_be_bytes());
    record[12..20].copy_from_slice(&sighting.digest.to_be_bytes());
    record[20..22].copy_from_slice(&sighting.length.to_be_bytes());
    record[22] = sighting.ttl;
    record[23] = sighting.version;
    record
}

/// The options of a selection as [`templates`] has them.
pub(super) fn emit_options(selection: &Selection, writer: &mut Writer, out: &mut dyn FnMut(&[u8])) {
    let id = (selection.sequence as u32).to_be_bytes();
    let hash = &selection.hash;
    let mut record = id.to_vec();
    name(&selection.interface, &mut record);
    record.extend(id);
    writer.record(SELECTION, &record, out);

    record = id.to_vec();
    name(&selection.task, &mut record);
    for number in [hash.algorithm, hash.payload_offset, hash.payload_size] {
        record.extend(number.to_be_bytes());
    }
    for bound in [hash.output.0, hash.output.1, hash.selected.0, hash.selected.1] {
        record.extend(bound.to_be_bytes());
    }
    // A boolean is 1 or 2 (RFC 7011 §6.1.5): the digest is reported.
    record.push(1);
    writer.record(SELECTOR, &record, out);

    record = id.to_vec();
    record.extend(selection.observed.to_be_bytes());
    record.extend(selection.selected.to_be_bytes());
    writer.record(STATISTICS, &record, out);

    if let Some(error) = selection.stamp_error {
        record = id.to_vec();
        record.extend(PACKETS.to_be_bytes());
        record.extend(e::SEEN_NANOS.to_be_bytes());
        record.extend((error.nanos() as f64).to_be_bytes());
        writer.record(ACCURACY, &record, out);
    }
}

/// A string of variable length; cut off at [`MAX_NAME`] bytes, between characters.
pub(super) fn name(text: &str, record: &mut Vec<u8>) {
    let text = &text[..text.floor_char_boundary(MAX_NAME)];
    if text.len() < 255 {
        record.push(text.len() as u8);
    } else {
        record.push(255);
        record.extend((text.len() as u16).to_be_bytes());
    }
    record.extend_from_slice(text.as_bytes());
}

/// Reads a whole batch. Memory is in proportion to its bytes: a sighting takes no more than it did
/// there.
///
/// # Errors
/// It is no row of messages, or has too many selections. Damage inside messages is counted instead.
pub fn read(bytes: &[u8]) -> Result<Batch, BatchError> {
    let mut reader = Reader::with_limits(Transport::Stream, Limits { domains: 1, ..Limits::default() });
    let mut batch = Batch::default();
    let mut parts: BTreeMap<u64, Part> = BTreeMap::new();
    let mut overflow = false;
    let mut left = bytes;
    while !left.is_empty() {
        let (one, rest) = message::first(left).map_err(BatchError::Message)?.ok_or(BatchError::Short)?;
        left = rest;
        let mut see = |record: &DataRecord<'_>| {
            batch.domain = record.domain;
            let Some(found) = interpret(record) else {
                batch.ignored += 1;
                return;
            };
            if parts.len() >= MAX_SELECTIONS && !parts.contains_key(&found.0) {
                overflow = true;
                return;
            }
            parts.entry(found.0).or_default().take(found.1);
        };
        // A set of impossible length ends its message only; it is counted.
        let _ = reader.read(Wall(0), one, &mut see);
    }
    if overflow {
        return Err(BatchError::Selections);
    }
    batch.counts = reader.counts();
    batch.selections = Part::finish(parts);
    Ok(batch)
}

/// What a record of options or of a packet says of which selection or selector.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Said {
    Packet(PacketSighting),
    Interface { name: String, selector: u64 },
    Selector { name: String, hash: HashSelector },
    Statistics { observed: u64, selected: u64 },
    StampError(Span),
}

/// One selection while it is put together.
#[derive(Debug, Default)]
struct Part {
    selection: Selection,
    selector: Option<u64>,
    /// What the selector of this number is, whichever selection uses it.
    says: Option<(String, HashSelector)>,
    selects: bool,
    sightings: Vec<PacketSighting>,
}

impl Part {
    fn take(&mut self, said: Said) {
        let selection = &mut self.selection;
        self.selects |= !matches!(said, Said::Selector { .. });
        match said {
            Said::Packet(sighting) => self.sightings.push(sighting),
            Said::Interface { name, selector } => {
                selection.interface = name;
                self.selector = Some(selector);
            }
            Said::Selector { name, hash } => self.says = Some((name, hash)),
            Said::Statistics { observed, selected } => {
                (selection.observed, selection.selected) = (observed, selected);
            }
            Said::StampError(error) => selection.stamp_error = Some(error),
        }
    }

    fn finish(mut parts: BTreeMap<u64, Self>) -> Vec<(Selection, Vec<PacketSighting>)> {
        let selectors: BTreeMap<u64, (String, HashSelector)> =
            parts.iter_mut().filter_map(|(id, part)| Some((*id, part.says.take()?))).collect();
        let finished = parts.into_iter().filter(|(_, part)| part.selects).map(|(sequence, mut part)| {
            part.selection.sequence = sequence;
            if let Some((task, hash)) = selectors.get(&part.selector.unwrap_or(sequence)) {
                part.selection.task.clone_from(task);
                part.selection.hash = *hash;
            }
            (part.selection, part.sightings)
        });
        finished.collect()
    }
}

/// What a record says, with the number of the selection, or of the selector where it is about that.
pub(super) fn interpret(record: &DataRecord<'_>) -> Option<(u64, Said)> {
    if record.template.scopes == 0 {
        return packet(record).map(|(selection, sighting)| (selection, Said::Packet(sighting)));
    }
    let about = record.number(e::SELECTION_SEQUENCE);
    if let (None, Some(selector)) = (about, record.number(e::SELECTOR_ID)) {
        let (name, hash) = (text(record.value(e::SELECTOR_NAME)?), hash_selector(record));
        return Some((selector, Said::Selector { name, hash }));
    }
    let about = about?;
    if let Some(name) = record.value(e::INTERFACE_NAME) {
        let selector = record.number(e::SELECTOR_ID).unwrap_or(about);
        return Some((about, Said::Interface { name: text(name), selector }));
    }
    if let Some(observed) = record.number(e::OBSERVED) {
        let selected = record.number(e::SELECTED).unwrap_or(observed);
        return Some((about, Said::Statistics { observed, selected }));
    }
    let error = f64::from_be_bytes(*record.value(e::ABSOLUTE_ERROR)?.first_chunk()?);
    let of_stamps = record.number(e::ELEMENT_ID) == Some(e::SEEN_NANOS.into());
    // As casts do it, absurd numbers stop at the ends, and what is no number is 0: that is no
    // accuracy.
    (of_stamps && error > 0.0).then_some((about, Said::StampError(Span(error as i64))))
}

/// A packet report with at least a time and a digest; ours are of the fastest form, others may have
/// any.
pub(super) fn packet(record: &DataRecord<'_>) -> Option<(u64, PacketSighting)> {
    let mut sighting = PacketSighting { digest: 0, at: Wall(0), length: 0, ttl: 0, version: 0 };
    let (mut selection, mut has_digest, mut has_time) = (0, false, false);
    for (field, value) in record.fields() {
        if field.enterprise != 0 {
            continue;
        }
        let number = unsigned(value);
        match (field.element, number) {
            (e::DIGEST, Some(digest)) => (sighting.digest, has_digest) = (digest, true),
            (e::SELECTION_SEQUENCE, Some(number)) => selection = number,
            (e::TOTAL_LENGTH | e::TOTAL_LENGTH_V4, Some(length)) => {
                sighting.length = length.min(u16::MAX.into()) as u16;
            }
            (e::TTL, Some(ttl)) => sighting.ttl = ttl as u8,
            (e::VERSION, Some(version)) => sighting.version = version as u8,
            (e::SEEN_NANOS | e::SEEN_MICROS | e::SEEN_MILLIS | e::SEEN_SECONDS, Some(number)) => {
                sighting.at = seen_at(field.element, number, record.exported_at);
                has_time = true;
            }
            _ => {}
        }
    }
    (has_digest && has_time).then_some((selection, sighting))
}

/// Meaning of an observation time of any resolution.
pub(super) fn seen_at(element: u16, number: u64, exported_at: Wall) -> Wall {
    match element {
        e::SEEN_NANOS => time::from_ntp(number, exported_at),
        e::SEEN_MICROS => time::from_ntp_micros(number, exported_at),
        e::SEEN_MILLIS => time::from_millis(number),
        _ => time::from_seconds(number),
    }
}

fn hash_selector(record: &DataRecord<'_>) -> HashSelector {
    let number = |element| record.number(element).unwrap_or(0);
    let short = |element| number(element).min(u16::MAX.into()) as u16;
    HashSelector {
        algorithm: short(e::ALGORITHM),
        payload_offset: short(e::HASH_OFFSET),
        payload_size: short(e::HASH_SIZE),
        output: (number(e::HASH_OUTPUT_MIN), number(e::HASH_OUTPUT_MAX)),
        selected: (number(e::HASH_SELECTED_MIN), number(e::HASH_SELECTED_MAX)),
    }
}

/// Text of somebody else: no longer than [`MAX_NAME`], without what is not printable.
pub(super) fn text(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(MAX_NAME)];
    String::from_utf8_lossy(bytes).chars().filter(|c| netaware_record::is_printable(*c)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ipfix::MAX_MESSAGE;

    const NOW: Wall = Wall(1_795_440_000_123_456_789);

    fn selection(sequence: u64) -> Selection {
        Selection {
            sequence,
            task: format!("delay-{sequence}"),
            interface: "eth0".into(),
            observed: 1000,
            selected: 10,
            hash: HashSelector {
                algorithm: BOB,
                payload_offset: 0,
                payload_size: 32,
                output: (0, u32::MAX.into()),
                selected: (17, 42_949_672),
            },
            stamp_error: Some(Span(1500)),
        }
    }

    fn sighting(n: u64) -> PacketSighting {
        PacketSighting {
            digest: n.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            at: Wall(NOW.0 + n as i64 * 1001),
            length: (40 + n % 1460) as u16,
            ttl: 64 - (n % 7) as u8,
            version: if n.is_multiple_of(2) { 4 } else { 6 },
        }
    }

    fn emitted(parts: &[(&Selection, &[PacketSighting])], limit: usize) -> Vec<u8> {
        let mut out = Vec::new();
        emit(9, NOW, parts, limit, &mut out);
        out
    }

    #[test]
    fn a_report_has_these_bytes() {
        let seen = PacketSighting {
            digest: 0x0102_0304_0506_0708,
            at: Wall(500_000_000),
            length: 1500,
            ttl: 63,
            version: 6,
        };
        let expected = [
            &[0, 0, 0, 3, 0x83, 0xaa, 0x7e, 0x80, 0x80, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8][..],
            &[0x05, 0xdc, 63, 6],
        ];
        assert_eq!(report(3, &seen)[..], expected.concat());
    }

    #[test]
    fn fifty_seven_reports_go_into_a_message_of_1400_bytes() {
        let seen: Vec<_> = (0..1000).map(sighting).collect();
        let bytes = emitted(&[(&selection(1), &seen)], 1400);
        let mut left = &bytes[..];
        let mut lengths = Vec::new();
        while let Ok(Some((one, rest))) = message::first(left) {
            lengths.push((one.len() - message::HEADER_LEN - message::SET_HEADER_LEN) / REPORT_LEN);
            left = rest;
        }
        assert_eq!((left.len(), lengths.len()), (0, 18));
        assert_eq!(lengths[1..lengths.len() - 1], vec![57; lengths.len() - 2]);
    }

    #[test]
    fn a_batch_without_a_packet_still_says_what_was_looked_at() {
        let idle = selection(4);
        let batch = read(&emitted(&[(&idle, &[])], MAX_MESSAGE)).unwrap();
        assert_eq!((batch.domain, batch.selections), (9, vec![(idle, vec![])]));
    }

    #[test]
    fn what_a_batch_is_cut_short_or_damaged_by_is_told() {
        let bytes = emitted(&[(&selection(1), &[sighting(1)])], MAX_MESSAGE);
        assert_eq!(read(&bytes[..bytes.len() - 1]), Err(BatchError::Short));
        assert_eq!(read(b"{\"probe\":"), Err(BatchError::Message(MessageError::Version(0x7b00))));
        assert_eq!(read(&[]), Ok(Batch::default()));
    }

    #[test]
    fn selections_are_bounded() {
        let many: Vec<Selection> = (0..=MAX_SELECTIONS as u64).map(selection).collect();
        let parts: Vec<(&Selection, &[PacketSighting])> = many.iter().map(|s| (s, &[][..])).collect();
        assert_eq!(read(&emitted(&parts, MAX_MESSAGE)), Err(BatchError::Selections));
        assert_eq!(read(&emitted(&parts[1..], MAX_MESSAGE)).unwrap().selections.len(), MAX_SELECTIONS);
    }

    #[test]
    fn a_sequence_gap_within_a_batch_is_counted() {
        let seen: Vec<_> = (0..200).map(sighting).collect();
        let mut bytes = emitted(&[(&selection(1), &seen)], 1400);
        let (first, rest) = message::first(&bytes).unwrap().unwrap();
        let (second, _) = message::first(rest).unwrap().unwrap();
        let cut = first.len()..first.len() + second.len();
        bytes.drain(cut);
        assert_eq!(read(&bytes).unwrap().counts.missing, 57);
    }

    /// Reads a record of the template that has this place among ours.
    fn said(place: usize, fields: &[&[u8]]) -> Option<(u64, Said)> {
        let (templates, bytes) = (templates(), fields.concat());
        let template = &templates[place];
        interpret(&DataRecord { domain: 9, exported_at: NOW, template, bytes: &bytes })
    }

    #[test]
    fn an_accuracy_is_above_zero_and_that_of_the_stamps() {
        let accuracy = |element: u16, error: f64| {
            said(4, &[&[0, 0, 0, 7, 1, 0], &element.to_be_bytes(), &error.to_be_bytes()])
        };
        assert_eq!(accuracy(e::SEEN_NANOS, 1500.0), Some((7, Said::StampError(Span(1500)))));
        assert_eq!(accuracy(e::SEEN_NANOS, 1e300), Some((7, Said::StampError(Span(i64::MAX)))));
        for error in [0.0, -1.0, f64::NAN] {
            assert_eq!(accuracy(e::SEEN_NANOS, error), None, "{error}");
        }
        assert_eq!(accuracy(e::DIGEST, 1500.0), None);
    }

    #[test]
    fn an_interface_without_a_selector_has_that_of_its_own_number() {
        let name = || "eth0".to_owned();
        let with = said(1, &[&[0, 0, 0, 7, 4], b"eth0", &[0, 0, 0, 9]]);
        assert_eq!(with, Some((7, Said::Interface { name: name(), selector: 9 })));
        let template = Template::options(
            300,
            1,
            &[Field::of(e::SELECTION_SEQUENCE, 4), Field::of(e::INTERFACE_NAME, VARIABLE)],
        );
        let bytes = [&[0, 0, 0, 7, 4][..], b"eth0"].concat();
        let record = DataRecord { domain: 9, exported_at: NOW, template: &template, bytes: &bytes };
        assert_eq!(interpret(&record), Some((7, Said::Interface { name: name(), selector: 7 })));
    }

    #[test]
    fn a_report_without_a_digest_or_a_time_is_no_sighting() {
        let digest = (Field::of(e::DIGEST, 1), 5);
        let seen = (Field::of(e::SEEN_SECONDS, 1), 3);
        let is_sighting = |fields: &[(Field, u8)]| {
            let (fields, bytes): (Vec<Field>, Vec<u8>) = fields.iter().copied().unzip();
            let template = Template::data(300, &fields);
            packet(&DataRecord { domain: 9, exported_at: NOW, template: &template, bytes: &bytes }).is_some()
        };
        assert!(is_sighting(&[digest, seen]));
        assert!(!is_sighting(&[digest]) && !is_sighting(&[seen]));
        // A private element of the same number is something else.
        let private = (Field::own(e::DIGEST, 1), 5);
        assert!(!is_sighting(&[private, seen]));
    }

    #[test]
    fn the_length_of_a_jumbogram_is_the_largest_that_a_sighting_has() {
        let fields = [Field::of(e::DIGEST, 1), Field::of(e::SEEN_SECONDS, 1), Field::of(e::TOTAL_LENGTH, 4)];
        let template = Template::data(300, &fields);
        let length = |length: u32| {
            let bytes = [&[5, 3][..], &length.to_be_bytes()].concat();
            let record = DataRecord { domain: 9, exported_at: NOW, template: &template, bytes: &bytes };
            packet(&record).map(|(_, sighting)| (sighting.length, sighting.at))
        };
        let at = Wall(3_000_000_000);
        assert_eq!(length(1500), Some((1500, at)));
        assert_eq!(length(65_536), Some((65_535, at)));
    }

    #[test]
    fn a_name_is_cut_off_between_characters_and_says_its_length_in_one_byte_or_three() {
        let named = |text: &str| {
            let mut record = Vec::new();
            name(text, &mut record);
            record
        };
        assert_eq!(named(&"a".repeat(254)), [&[254][..], &[b'a'; 254]].concat());
        let longest = [&[255, 0, 255][..], &[b'a'; 255]].concat();
        assert_eq!(named(&"a".repeat(255)), longest);
        assert_eq!(named(&"a".repeat(256)), longest);
        // 254 bytes and a letter of two.
        let cut = "a".repeat(254) + "\u{e9}";
        assert_eq!(named(&cut), [&[254][..], &[b'a'; 254]].concat());
        assert_eq!(text(&[b'a'; 256]), "a".repeat(255));
        assert_eq!(text(b"a\x1b[2J\nb"), "a[2Jb");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn what_was_emitted_is_read(
            counts in proptest::collection::vec(0_u64..300, 1..4),
            limit in 512_usize..70_000,
            accurate in any::<bool>(),
        ) {
            let parts: Vec<(Selection, Vec<PacketSighting>)> = counts.iter().enumerate().map(|(n, count)| {
                let stamp_error = accurate.then_some(Span(7));
                (Selection { stamp_error, ..selection(n as u64) }, (0..*count).map(sighting).collect())
            }).collect();
            let borrowed: Vec<(&Selection, &[PacketSighting])> = parts.iter().map(|(s, p)| (s, &p[..])).collect();
            let batch = read(&emitted(&borrowed, limit)).unwrap();
            prop_assert_eq!(batch.ignored, 0);
            prop_assert_eq!(batch.counts.missing, 0);
            prop_assert_eq!(batch.selections, parts);
        }

        #[test]
        fn damage_never_panics(position in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let seen: Vec<_> = (0..60).map(sighting).collect();
            let mut bytes = emitted(&[(&selection(1), &seen)], 512);
            let at = position.index(bytes.len());
            bytes[at] = byte;
            if let Ok(batch) = read(&bytes) {
                prop_assert!(batch.selections.iter().map(|(_, seen)| seen.len()).sum::<usize>() <= bytes.len());
            }
        }
    }
}
