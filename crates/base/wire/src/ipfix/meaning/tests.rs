use super::*;
use crate::ipfix::template::{Field, Template};

const SECOND: i64 = 1_000_000_000;
const EXPORTED: Wall = Wall(1_795_440_000 * SECOND);

fn found(interpreter: &mut Interpreter, scopes: u16, fields: &[(u16, Vec<u8>)]) -> Found<'static> {
    let template = Box::leak(Box::new(Template {
        id: 256,
        scopes,
        fields: fields.iter().map(|(element, value)| Field::of(*element, value.len() as u16)).collect(),
    }));
    let bytes: Vec<u8> = fields.iter().flat_map(|(_, value)| value.clone()).collect();
    let record = DataRecord { domain: 1, exported_at: EXPORTED, template, bytes: bytes.leak() };
    interpreter.interpret(&record)
}

fn flow(interpreter: &mut Interpreter, fields: &[(u16, Vec<u8>)]) -> Flow {
    let mut all = vec![(e::PACKETS, vec![3]), (e::OCTETS, vec![1, 0])];
    all.extend_from_slice(fields);
    match found(interpreter, 0, &all) {
        Found::Flow(flow) => flow,
        other => panic!("{other:?}"),
    }
}

/// Elements with their numbers, first and last instant.
type Case<'a> = (&'a [(u16, u64)], Wall, Wall);

#[test]
fn times_of_all_kinds_are_understood() {
    let mut interpreter = Interpreter::new();
    let number = |n: u64| n.to_be_bytes().to_vec();
    let at = |seconds: i64| Wall(EXPORTED.0 + seconds * SECOND);
    let unix = 1_795_440_000_u64;
    let cases: [Case<'_>; 7] = [
        (&[(e::START_SECONDS, unix - 9), (e::END_SECONDS, unix - 8)], at(-9), at(-8)),
        (&[(e::START_MILLIS, (unix - 9) * 1000), (e::END_MILLIS, (unix - 8) * 1000)], at(-9), at(-8)),
        (&[(e::START_NANOS, time::to_ntp(at(-9))), (e::END_NANOS, time::to_ntp(at(-8)))], at(-9), at(-8)),
        (&[(e::START_DELTA, 9_000_000), (e::END_DELTA, 8_000_000)], at(-9), at(-8)),
        (&[(e::START_SECONDS, unix - 9), (e::DURATION_MILLIS, 1000)], at(-9), at(-8)),
        (&[(e::END_SECONDS, unix - 8)], at(-8), at(-8)),
        (&[(e::START_NANOS, time::to_ntp(at(-9))), (e::START_SECONDS, 7)], at(-9), at(-9)),
    ];
    for (told, first, last) in cases {
        let fields: Vec<_> = told.iter().map(|(element, n)| (*element, number(*n))).collect();
        let flow = flow(&mut interpreter, &fields);
        assert_eq!((flow.row.first_at, flow.row.last_at, flow.timed), (first, last, true), "{told:?}");
    }
    assert!(!flow(&mut interpreter, &[]).timed);
}

#[test]
fn uptimes_need_the_exporters_start_and_survive_their_wrap() {
    let mut interpreter = Interpreter::new();
    let uptimes = |first: u32, last: u32| {
        [(e::START_UPTIME, first.to_be_bytes().to_vec()), (e::END_UPTIME, last.to_be_bytes().to_vec())]
    };
    assert!(!flow(&mut interpreter, &uptimes(1, 2)).timed);
    // 50 days ago: the uptime has begun anew 300 s after 49.7 days.
    let days = 50_i64 * 86_400_000;
    let started = (EXPORTED.0 / 1_000_000 - days) as u64;
    let options = [(e::METERING_PROCESS, vec![0, 0, 0, 1]), (e::SYSTEM_INIT, started.to_be_bytes().to_vec())];
    assert_eq!(found(&mut interpreter, 1, &options), Found::Options);
    let now = days as u32;
    let row = flow(&mut interpreter, &uptimes(now - 5000, now - 1000)).row;
    assert_eq!((row.first_at.0, row.last_at.0), (EXPORTED.0 - 5 * SECOND, EXPORTED.0 - SECOND));
}

#[test]
fn keys_are_taken_from_whichever_elements_there_are() {
    let mut interpreter = Interpreter::new();
    let row = flow(
        &mut interpreter,
        &[
            (e::SOURCE_V4, vec![192, 0, 2, 1]),
            (e::DESTINATION_V4, vec![198, 51, 100, 2]),
            (e::SOURCE_V4_PREFIX, vec![0]),
            (e::PROTOCOL, vec![6]),
            (e::SOURCE_PORT, vec![0x30, 0x39]),
            (e::TCP_DESTINATION_PORT, vec![1, 187]),
            (e::CLASS_OF_SERVICE, vec![0xb8]),
        ],
    )
    .row;
    let expected = FlowKey {
        version: Some(IpVersion::V4),
        source: Some("192.0.2.1".parse().unwrap()),
        destination: Some("198.51.100.2".parse().unwrap()),
        protocol: Some(6),
        source_port: Some(12345),
        destination_port: Some(443),
        dscp: Some(46),
        ..FlowKey::default()
    };
    assert_eq!((row.key, row.packets, row.bytes), (expected, 3, ByteCount(256)));
}

#[test]
fn a_frame_section_is_cut_to_what_was_exported() {
    let mut interpreter = Interpreter::new();
    let fields = [
        (e::SELECTION_SEQUENCE, vec![0, 0, 0, 0, 0, 0, 0, 9]),
        (e::SEEN_MICROS, time::to_ntp(EXPORTED).to_be_bytes().to_vec()),
        (e::SECTION_OCTETS, vec![0, 3]),
        (e::FRAME_SECTION, vec![1, 2, 3, 0, 0]),
    ];
    let Found::Frame(frame) = found(&mut interpreter, 0, &fields) else { panic!("no frame") };
    assert_eq!((frame.selection, frame.bytes, frame.from_ip), (9, &[1, 2, 3][..], false));
    assert_eq!(frame.at, Some(EXPORTED));
}

#[test]
fn records_without_counts_are_no_flows() {
    let mut interpreter = Interpreter::new();
    assert_eq!(found(&mut interpreter, 0, &[(e::PROTOCOL, vec![6])]), Found::Other);
}
