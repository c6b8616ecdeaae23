use netaware_record::passive::{DelayStatistics, DigestRow};
use netaware_units::ByteCount;
use proptest::option::of;
use proptest::prelude::*;

use super::*;
use crate::ipfix::message::{self, MAX_MESSAGE, MAX_UDP_MESSAGE};
use crate::ipfix::{Found, Interpreter, Reader};

const NOW: Wall = Wall(1_795_440_000_123_456_789);

fn read<T>(messages: &[Vec<u8>], take: impl Fn(Found<'_>) -> Option<T>) -> (Vec<T>, Reader) {
    let mut reader = Reader::new(Transport::Stream);
    let mut interpreter = Interpreter::new();
    let mut found = Vec::new();
    for message in messages {
        reader.read(NOW, message, &mut |record| found.extend(take(interpreter.interpret(record)))).unwrap();
    }
    (found, reader)
}

fn emitted(limit: usize, fill: impl Fn(&mut Emitter, &mut dyn FnMut(&[u8]))) -> Vec<Vec<u8>> {
    let mut emitter = Emitter::new(1, limit, Transport::Stream);
    let mut messages = Vec::new();
    let mut out = |message: &[u8]| messages.push(message.to_vec());
    emitter.begin(NOW, &mut out);
    fill(&mut emitter, &mut out);
    emitter.finish(&mut out);
    messages
}

fn keys() -> impl Strategy<Value = FlowKey> {
    let address = any::<bool>().prop_flat_map(|v6| {
        let one = move || {
            of(any::<u128>().prop_map(move |bits| {
                if v6 { IpAddr::from(bits.to_be_bytes()) } else { IpAddr::from((bits as u32).to_be_bytes()) }
            }))
        };
        (one(), one(), of(1_u8..32), of(1_u8..32))
    });
    let rest = (of(any::<u8>()), of(any::<u16>()), of(any::<u16>()), of(0_u8..64), of(0_u32..1 << 20));
    (address, rest).prop_map(|((source, destination, source_prefix, destination_prefix), rest)| {
        let of_address = |a: IpAddr| if a.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        FlowKey {
            version: source.or(destination).map(of_address),
            source,
            source_prefix: source.and(source_prefix),
            destination,
            destination_prefix: destination.and(destination_prefix),
            protocol: rest.0,
            source_port: rest.1,
            destination_port: rest.2,
            dscp: rest.3,
            flow_label: rest.4,
        }
    })
}

fn volumes() -> impl Strategy<Value = VolumeRow> {
    let times = (0..2_000_000_000_i64, 0..60_000_000_000_i64);
    (keys(), any::<u64>(), any::<u64>(), times, 0_u64..3, any::<bool>()).prop_map(
        |(key, packets, bytes, (ago, lasted), packets_error, rest)| VolumeRow {
            key,
            packets,
            bytes: ByteCount(bytes),
            first_at: Wall(NOW.0 - ago - lasted),
            last_at: Wall(NOW.0 - ago),
            packets_error,
            rest,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn flows_come_back_as_they_were(
        rows in proptest::collection::vec(volumes(), 1..20),
        limit in MAX_UDP_MESSAGE..MAX_MESSAGE,
    ) {
        let messages = emitted(limit, |emitter, out| rows.iter().for_each(|row| emitter.volume(row, out)));
        let (found, reader) = read(&messages, |found| match found {
            Found::Flow(flow) => Some(flow.row),
            _ => None,
        });
        prop_assert_eq!(found, rows);
        prop_assert_eq!((reader.counts().missing, reader.counts().sets_unknown), (0, 0));
    }
}

fn path(count: u64) -> DelayRow {
    let delay = DelayStatistics {
        count,
        min: Span(1_499),
        max: Span(9_000_600),
        sum_ns: 3_000_000_000 * i128::from(count),
        ..DelayStatistics::default()
    };
    DelayRow {
        from: "left".into(),
        to: "right".into(),
        version: Some(IpVersion::V6),
        method: "passive".into(),
        packets: 10,
        matched: count,
        lost: 3,
        unobserved: 2,
        late: 0,
        duplicates: 0,
        reordered: 0,
        collisions: 0,
        given_up: 0,
        patience: Span::from_secs(1),
        delay,
        ipdv: DelayStatistics::default(),
        offset: Span::ZERO,
        clock_bound: (count > 0).then_some(Span(77)),
        clock_method: "same_host".into(),
        below_bound: count.min(2),
        warnings: Vec::new(),
    }
}

#[test]
fn delays_are_told_in_microseconds_and_only_where_there_are_any() {
    let period = Period { from: Wall(NOW.0 - 10_000_000_000), until: NOW };
    let messages = emitted(512, |emitter, out| {
        emitter.delay(&path(5), period, out);
        emitter.delay(&path(0), period, out);
    });
    let (found, _) = read(&messages, |found| match found {
        Found::Delay(delay) => Some(delay),
        _ => None,
    });
    assert_eq!(found[0].delay_us, Some([3_000_000, 1, 9001, 15_000_000]));
    assert_eq!((found[0].clock_bound, found[1].clock_bound), (Some(Span(77)), None));
    assert_eq!((found[0].below_bound, found[1].below_bound), (Some(2), None));
    assert_eq!((found[1].delay_us, found[1].lost, found[1].unobserved), (None, 3, 2));
    assert_eq!((found[0].from.as_str(), found[0].to.as_str(), found[0].version), ("left", "right", 6));
    assert_eq!((found[0].since, found[0].until), (period.from, period.until));
}

#[test]
fn templates_are_repeated_over_datagrams_only() {
    for (transport, expected) in [(Transport::Stream, 1), (Transport::Datagrams, 3)] {
        let mut emitter = Emitter::new(1, 512, transport);
        let mut templates = 0;
        let mut out = |message: &[u8]| {
            templates += message::sets(message).filter(|set| set.is_ok_and(|set| set.id == 2)).count();
        };
        for step in 0..5 {
            emitter.begin(Wall(NOW.0 + REPEAT.nanos() / 2 * step), &mut out);
            emitter.packet(
                1,
                &PacketSighting { digest: 1, at: NOW, length: 40, ttl: 64, version: 4 },
                &mut out,
            );
            emitter.finish(&mut out);
        }
        assert_eq!(templates, expected);
    }
}

#[test]
fn ignored_frames_are_told_in_total() {
    let health = CaptureHealth { seen: 9, lost_ring: 2, not_ip: 3, malformed: 1, ..CaptureHealth::default() };
    let messages = emitted(512, |emitter, out| {
        for interface in ["a", "b", "a"] {
            emitter.capture(interface, &health, out);
        }
    });
    let mut reader = Reader::new(Transport::Stream);
    let mut told = Vec::new();
    for message in &messages {
        reader
            .read(NOW, message, &mut |record| {
                told.push((record.number(e::DROPPED), record.number(e::IGNORED), record.template.scopes));
            })
            .unwrap();
    }
    assert_eq!(told, [4, 4, 8].map(|ignored| (Some(2), Some(ignored), 1)));
}

#[test]
fn rows_without_elements_are_counted() {
    let mut emitter = Emitter::new(1, 512, Transport::Stream);
    let period = Period { from: NOW, until: NOW };
    let row = TaskRow::new("digests", period, Row::Digests(DigestRow::default()));
    emitter.row(&row, &mut |_| panic!("nothing to send"));
    emitter.finish(&mut |_| panic!("nothing to send"));
    assert_eq!(emitter.skipped(), 1);
}
