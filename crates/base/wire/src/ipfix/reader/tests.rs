use super::*;
use crate::ipfix::element::{PACKETS, PROTOCOL};
use crate::ipfix::template::{Field, VARIABLE};
use crate::ipfix::{MAX_MESSAGE, Writer};

const NOTHING: [u64; 0] = [];

/// Domain 1, records of one byte in set 256.
struct Exporter {
    writer: Writer,
    at: Wall,
}

impl Exporter {
    fn new() -> Self {
        Self { writer: Writer::new(1, MAX_MESSAGE), at: Wall(1_000_000_000_000) }
    }

    fn message(&mut self, records: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut message = Vec::new();
        self.writer.set_time(self.at);
        for (set, bytes) in records {
            self.writer.record(*set, bytes, &mut |_| panic!("too much for one message"));
        }
        self.writer.finish(&mut |bytes| message.extend_from_slice(bytes));
        message
    }

    fn template(&mut self, template: &Template) -> Vec<u8> {
        let mut bytes = Vec::new();
        template.emit(&mut bytes);
        self.message(&[(template.set(), bytes)])
    }

    fn data(&mut self, values: &[u8]) -> Vec<u8> {
        let records: Vec<_> = values.iter().map(|value| (256, vec![*value])).collect();
        self.message(&records)
    }
}

fn protocol() -> Template {
    Template::data(256, &[Field::of(PROTOCOL, 1)])
}

/// Values of protocolIdentifier and packetDeltaCount that a message shows.
fn shown(reader: &mut Reader, now: Wall, message: &[u8]) -> Vec<u64> {
    let mut values = Vec::new();
    let read = reader.read(now, message, &mut |record| {
        values.extend(record.number(PROTOCOL).or(record.number(PACKETS)));
    });
    assert_eq!(read, Ok(()));
    values
}

#[test]
fn data_before_its_template_is_counted_and_later_data_is_read() {
    let (mut exporter, mut reader) = (Exporter::new(), Reader::new(Transport::Stream));
    let now = exporter.at;
    assert_eq!(shown(&mut reader, now, &exporter.data(&[6])), NOTHING);
    assert_eq!(shown(&mut reader, now, &exporter.template(&protocol())), NOTHING);
    assert_eq!(shown(&mut reader, now, &exporter.data(&[6, 17])), [6, 17]);
    let counts = reader.counts();
    assert_eq!((counts.sets_unknown, counts.records, counts.messages, counts.missing), (1, 2, 3, 0));
}

#[test]
fn a_template_that_changes_in_flight_holds_from_there_on() {
    let (mut exporter, mut reader) = (Exporter::new(), Reader::new(Transport::Stream));
    let now = exporter.at;
    shown(&mut reader, now, &exporter.template(&protocol()));
    assert_eq!(shown(&mut reader, now, &exporter.data(&[6, 17])), [6, 17]);
    shown(&mut reader, now, &exporter.template(&Template::data(256, &[Field::of(PACKETS, 2)])));
    let message = exporter.message(&[(256, vec![1, 0])]);
    assert_eq!(shown(&mut reader, now, &message), [256]);
    assert_eq!((reader.counts().templates_changed, reader.templates()), (1, 1));
}

#[test]
fn withdrawals_hold_for_streams_only() {
    for (transport, expected) in [(Transport::Stream, vec![]), (Transport::Datagrams, vec![6])] {
        for withdrawal in [vec![1, 0, 0, 0], vec![0, 2, 0, 0]] {
            let (mut exporter, mut reader) = (Exporter::new(), Reader::new(transport));
            let now = exporter.at;
            shown(&mut reader, now, &exporter.template(&protocol()));
            shown(&mut reader, now, &exporter.message(&[(TEMPLATE_SET, withdrawal)]));
            assert_eq!(shown(&mut reader, now, &exporter.data(&[6])), expected);
        }
    }
}

#[test]
fn templates_expire_over_datagrams_unless_they_are_repeated() {
    let lifetime = Limits::default().lifetime;
    let half = Span(lifetime.nanos() / 2);
    for (repeated, expected) in [(true, vec![6]), (false, vec![])] {
        let (mut exporter, mut reader) = (Exporter::new(), Reader::new(Transport::Datagrams));
        let begin = exporter.at;
        let after = |halves: i64| Wall(begin.0 + half.nanos() * halves + 2_000_000_000);
        shown(&mut reader, begin, &exporter.template(&protocol()));
        if repeated {
            shown(&mut reader, after(1), &exporter.template(&protocol()));
        }
        assert_eq!(shown(&mut reader, after(2), &exporter.data(&[6])), expected);
        assert_eq!(reader.counts().templates_expired, u64::from(!repeated));
    }
}

#[test]
fn a_million_templates_take_no_more_than_the_bound_and_harm_no_earlier_one() {
    let (mut exporter, mut reader) = (Exporter::new(), Reader::new(Transport::Stream));
    let now = exporter.at;
    shown(&mut reader, now, &exporter.template(&protocol()));
    let floods: Vec<_> = (0..13)
        .map(|part| {
            let template = |n: u16| Template::data(257 + part * 5000 + n, &[Field::of(PROTOCOL, 1)]);
            let records: Vec<_> = (0..5000)
                .map(|n| {
                    let mut bytes = Vec::new();
                    template(n).emit(&mut bytes);
                    (TEMPLATE_SET, bytes)
                })
                .collect();
            exporter.message(&records)
        })
        .collect();
    for flood in floods.iter().cycle().take(200) {
        shown(&mut reader, now, flood);
    }
    let limits = Limits::default();
    assert_eq!(reader.templates(), limits.templates);
    assert!(reader.counts().templates_refused > 900_000);
    assert_eq!(shown(&mut reader, now, &exporter.data(&[6])), [6]);
}

#[test]
fn fields_are_bounded_too() {
    let limits = Limits { fields: 10, ..Limits::default() };
    let (mut exporter, mut reader) = (Exporter::new(), Reader::with_limits(Transport::Stream, limits));
    let now = exporter.at;
    let wide = |id, count| Template::data(id, &vec![Field::of(PROTOCOL, 1); count]);
    shown(&mut reader, now, &exporter.template(&wide(300, 8)));
    shown(&mut reader, now, &exporter.template(&wide(301, 3)));
    assert_eq!((reader.templates(), reader.counts().templates_refused), (1, 1));
    shown(&mut reader, now, &exporter.template(&wide(300, 7)));
    shown(&mut reader, now, &exporter.template(&wide(301, 3)));
    assert_eq!((reader.templates(), reader.counts().templates_refused), (2, 1));
}

#[test]
fn domains_are_bounded_and_apart() {
    let mut reader = Reader::new(Transport::Stream);
    let template = Exporter::new().template(&protocol());
    for domain in 0..100_u32 {
        let mut message = template.clone();
        message[12..16].copy_from_slice(&domain.to_be_bytes());
        shown(&mut reader, Wall(0), &message);
    }
    let limit = Limits::default().domains;
    assert_eq!((reader.templates(), reader.counts().domains_refused), (limit, 100 - limit as u64));
}

#[test]
fn lost_repeated_and_replayed_messages_are_counted() {
    let (mut exporter, mut reader) = (Exporter::new(), Reader::new(Transport::Datagrams));
    let now = exporter.at;
    shown(&mut reader, now, &exporter.template(&protocol()));
    let messages: Vec<_> = (0..100).map(|n| exporter.data(&[n, n])).collect();
    exporter.at = Wall(now.0 + 2_000_000_000);
    let newer = exporter.data(&[200]);
    assert_eq!(shown(&mut reader, now, &messages[0]), [0, 0]);
    assert_eq!(shown(&mut reader, now, &messages[3]), [3, 3]);
    assert_eq!(reader.counts().missing, 4);
    assert_eq!(shown(&mut reader, now, &messages[2]), [2, 2]);
    assert_eq!(shown(&mut reader, now, &messages[2]), NOTHING);
    for (n, message) in messages.iter().enumerate().skip(4) {
        assert_eq!(shown(&mut reader, now, message), [n as u64, n as u64]);
    }
    assert_eq!(shown(&mut reader, now, &newer), [200]);
    assert_eq!(shown(&mut reader, now, &messages[0]), NOTHING);
    let counts = reader.counts();
    assert_eq!((counts.missing, counts.late, counts.duplicates, counts.replays), (2, 1, 1, 1));
}

#[test]
fn records_that_end_too_early_end_their_set_only() {
    let (mut exporter, mut reader) = (Exporter::new(), Reader::new(Transport::Stream));
    let now = exporter.at;
    shown(&mut reader, now, &exporter.template(&protocol()));
    shown(
        &mut reader,
        now,
        &exporter.template(&Template::data(300, &[Field::of(82, VARIABLE), Field::of(4, 1)])),
    );
    let message = exporter.message(&[(300, vec![1, b'x', 6]), (300, vec![9, b'x', 6]), (256, vec![17])]);
    assert_eq!(shown(&mut reader, now, &message), [6, 17]);
    assert_eq!(reader.counts().records_bad, 1);
}

#[test]
fn bad_messages_and_reserved_sets_are_counted() {
    let (mut exporter, mut reader) = (Exporter::new(), Reader::new(Transport::Stream));
    let mut long = exporter.template(&protocol());
    long.push(0);
    let v9 = [&[0, 9][..], &[0; 30]].concat();
    let reserved = exporter.message(&[(7, vec![0; 4])]);
    let mut see = |_: &DataRecord<'_>| panic!("nothing to see");
    assert!(matches!(reader.read(Wall(0), &long, &mut see), Err(MessageError::Length(_))));
    assert_eq!(reader.read(Wall(0), &v9, &mut see), Err(MessageError::Version(9)));
    assert_eq!(reader.read(Wall(0), &[], &mut see), Err(MessageError::Short));
    assert_eq!(reader.read(Wall(0), &reserved, &mut see), Ok(()));
    assert_eq!((reader.counts().messages_bad, reader.counts().sets_reserved), (3, 1));
}
