use std::fmt::Write as _;

use netaware_units::Span;
use proptest::prelude::*;

use super::tlv::{Facts, Question, Questions, kind, places, reflect, told};
use super::*;

fn key() -> Key {
    Key::new(*b"sesame").unwrap()
}

const REQUEST: Request = Request {
    seq: 0x0102_0304,
    // 2023-11-14 22:13:20.5 UTC.
    sent_at: Timestamp(0xe8fe_6f80_8000_0000),
    error: ErrorEstimate { synchronised: true, format: TimeFormat::Ntp, scale: 20, multiplier: 3 },
    ssid: 0xabcd,
};

fn reply() -> Reply {
    Reply {
        seq: 7,
        sent_at: Wall(1_700_000_001_250_000_000),
        error: ErrorEstimate { synchronised: false, format: TimeFormat::Ptp, scale: 1, multiplier: 9 },
        ssid: 0xabcd,
        received_at: Wall(1_700_000_001_000_000_001),
        request_seq: REQUEST.seq,
        request_sent_at: REQUEST.sent_at,
        request_error: REQUEST.error,
        request_ttl: 61,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes everything");
        text
    })
}

#[test]
fn an_open_request_has_the_bytes_of_the_standard() {
    let mut out = [0xff; 44];
    REQUEST.emit(&mut out, None);
    let want = "01020304e8fe6f8080000000 9403 abcd".replace(' ', "") + &"00".repeat(28);
    assert_eq!(hex(&out), want);
    assert_eq!(Request::parse(&out, None), Ok(REQUEST));
}

#[test]
fn an_open_reply_has_the_bytes_of_the_standard() {
    let mut out = [0xff; 44];
    reply().emit(&mut out, None);
    let want =
        "00000007 6553f1010ee6b280 4109 abcd 6553f10100000001 01020304 e8fe6f8080000000 9403 0000 3d 000000";
    assert_eq!(hex(&out), want.replace(' ', ""));
    assert_eq!(Reply::parse(&out, None), Ok(reply()));
}

#[test]
fn proven_packets_have_their_fields_at_the_standards_places() {
    let key = key();
    let mut out = [0xff; 112];
    REQUEST.emit(&mut out, Some(&key));
    assert_eq!(hex(&out[..28]), "01020304".to_owned() + &"00".repeat(12) + "e8fe6f80800000009403abcd");
    assert_eq!(out[28..96], [0; 68]);
    // Computed with Python's hmac over the 96 bytes before.
    assert_eq!(hex(&out[96..]), PROOF);
    assert_eq!(Request::parse(&out, Some(&key)), Ok(REQUEST));
    reply().emit(&mut out, Some(&key));
    let places = [(0, "00000007"), (16, "6553f1010ee6b280"), (24, "4109abcd"), (32, "6553f10100000001")];
    let more = [(48, "01020304"), (64, "e8fe6f8080000000"), (72, "9403"), (80, "3d")];
    for (at, want) in places.into_iter().chain(more) {
        assert_eq!(hex(&out[at..at + want.len() / 2]), want, "at {at}");
    }
    assert_eq!(Reply::parse(&out, Some(&key)), Ok(reply()));
    out[90] ^= 1;
    assert_eq!(Reply::parse(&out, Some(&key)), Err(StampError::Proof));
    assert_eq!(Reply::parse(&out, Some(&Key::new(*b"other").unwrap())), Err(StampError::Proof));
    assert_eq!(Reply::parse(&out[..111], Some(&key)), Err(StampError::Short));
}

/// Of the request under the key `sesame`.
const PROOF: &str = "55134592e4ca5487d02cf27dd8d9e4e6";

#[test]
fn twamp_is_answered_with_as_many_bytes_as_it_sent() {
    let mut out = [0; 41];
    reply().emit(&mut out, None);
    assert_eq!(Reply::parse(&out, None), Ok(reply()));
    assert_eq!(Request::parse(&out[..40], None), Err(StampError::Short));
}

#[test]
fn what_a_reflector_has_answered_is_told_from_what_a_sender_asks() {
    for (mode, key) in [(Mode::Unauthenticated, None), (Mode::Authenticated, Some(key()))] {
        // TLVs behind the base packet say nothing of it.
        let mut packet = [0x5a; 150];
        REQUEST.emit(&mut packet, key.as_ref());
        assert!(!looks_reflected(&packet, mode), "{mode:?}");
        reply().emit(&mut packet, key.as_ref());
        assert!(looks_reflected(&packet, mode), "{mode:?}");
        // An answer that was answered looks like one again.
        Reply { request_sent_at: Timestamp(1), ..reply() }.emit(&mut packet, key.as_ref());
        assert!(looks_reflected(&packet, mode), "{mode:?}");
    }
    let mut of_twamp = [0; 41];
    reply().emit(&mut of_twamp, None);
    assert!(looks_reflected(&of_twamp, Mode::Unauthenticated));
}

#[test]
fn random_padding_of_twamp_is_no_answer_and_an_answer_with_odd_bytes_is_no_padding() {
    let with = |padding: [u8; 27]| {
        let mut packet = [0; 41];
        packet[..14].copy_from_slice(b"\0\0\0\x07\xe8\xfe\x6f\x80\x80\0\0\0\x94\x03");
        packet[14..].copy_from_slice(&padding);
        looks_reflected(&packet, Mode::Unauthenticated)
    };
    assert!(!with([0; 27]) && !with([0x5a; 27]) && !with([0xff; 27]));
    // Where an answer has zeros: bytes 38 and 39.
    let mut unused = [0x5a; 27];
    unused[24..26].fill(0);
    assert!(with(unused));
    // It came to the reflector a day before it left there, and a second sooner than that.
    for (received, want) in [(0xe8fe_6f80_u32 - 86_400, true), (0xe8fe_6f80 - 86_401, false)] {
        let mut padding = [0x5a; 27];
        padding[2..6].copy_from_slice(&received.to_be_bytes());
        assert_eq!(with(padding), want, "{received:x}");
    }
    // One byte alone.
    for at in 2..27 {
        let mut padding = [0; 27];
        padding[at] = 1;
        assert_eq!(with(padding), at != 24 && at != 25, "{at}");
    }
}

#[test]
fn each_byte_that_a_proven_sender_leaves_zero_makes_an_answer_of_its_packet() {
    for at in 28..96 {
        let mut packet = [0; 112];
        packet[at] = 1;
        assert!(looks_reflected(&packet, Mode::Authenticated), "{at}");
    }
    let mut packet = [1; 112];
    packet[28..96].fill(0);
    assert!(!looks_reflected(&packet, Mode::Authenticated));
}

#[test]
fn the_proof_is_the_last_16_bytes_of_the_base_packet() {
    let mut packet = [0; 113];
    packet[96..112].copy_from_slice(&[3; 16]);
    assert_eq!(proof_in(&packet), Some(u128::from_be_bytes([3; 16])));
    assert_eq!(proof_in(&packet[..111]), None);
}

#[test]
fn a_multiplier_of_zero_is_refused() {
    let mut out = [0; 44];
    REQUEST.emit(&mut out, None);
    out[13] = 0;
    assert_eq!(Request::parse(&out, None), Err(StampError::ErrorEstimate));
}

const WANTED: [Question; 5] = [
    Question::SameClock([7; 16]),
    Question::Counters,
    Question::ClassOfService(46),
    Question::TimestampInformation,
    Question::Location,
];

const FACTS: Facts<'_> = Facts {
    ports: (862, 40_000),
    dscp: Some(10),
    ecn: 2,
    highest_dscp: 63,
    received: 5,
    sent: 4,
    synchronised_by: 1,
    stamped_in: 2,
    stamped_out: 2,
    run_of_kernel: Some(b"run"),
};

#[test]
fn every_question_is_answered() {
    for key in [None, Some(key())] {
        let key = key.as_ref();
        let mut area = vec![0; 130];
        Questions::fitting(&WANTED, area.len(), key).emit(&mut area, key, 3, 9);
        let kinds: Vec<u8> = places(&area).map(|place| place.unwrap().kind).collect();
        let proof = key.map(|_| kind::HMAC);
        let want: Vec<u8> = [252, 5, 4, 3, 2].into_iter().chain(proof).chain([1]).collect();
        assert_eq!(kinds, want);
        let asked = reflect(&mut area, &FACTS, key, (3, 2));
        assert_eq!((asked.dscp, asked.unproven, asked.malformed), (46, false, false));
        let told = told(&area, key, 2);
        assert_eq!((told.unknown, told.malformed, told.unproven), (0, false, false));
        let class = told.class.unwrap();
        assert_eq!((class.dscp, class.ecn, class.refused), (10, 2, false));
        let counters = told.counters.unwrap();
        assert_eq!((counters.received, counters.sent), (5, 4));
        assert_eq!(told.same_clock, Some(tlv::same_clock(b"run", &[7; 16])));
        assert_ne!(told.same_clock, Some(tlv::same_clock(b"another", &[7; 16])));
        assert_eq!(told.synchronised_by, Some(1));
        let location = places(&area).flatten().find(|place| place.kind == kind::LOCATION).unwrap();
        assert_eq!(location.value(&area), [862_u16.to_be_bytes(), 40_000_u16.to_be_bytes()].concat());
    }
}

#[test]
fn what_a_reflector_does_not_know_comes_back_unknown() {
    let mut area = [0x80, 200, 0, 2, 5, 6, 0x80, 7, 0, 1, 9];
    let before = area;
    assert!(!reflect(&mut area, &FACTS, None, (0, 0)).malformed);
    assert_eq!(area, before);
    assert_eq!(told(&area, None, 0).unknown, 2);
}

#[test]
fn a_length_that_cannot_be_is_flagged_and_ends_it() {
    let mut area = [0x80, 4, 0, 4, 0xb8, 0, 0, 0, 0x80, 5, 0, 12, 1];
    let asked = reflect(&mut area, &FACTS, None, (0, 0));
    assert_eq!((asked.dscp, asked.malformed), (46, true));
    assert_eq!((area[0], area[8], area[12]), (0, 0xc0, 1));
    // Long enough for its bytes, and wrong for its type.
    let mut area = [0x80, 4, 0, 3, 0xb8, 0, 0];
    assert_eq!(
        reflect(&mut area, &FACTS, None, (0, 0)),
        tlv::Asked { malformed: true, ..Default::default() }
    );
    assert_eq!(area, [0xc0, 4, 0, 3, 0xb8, 0, 0]);
}

#[test]
fn parts_of_a_location_come_back_unknown_and_one_that_is_too_long_malformed() {
    // Ports, a part of two bytes, one without bytes, and one that claims more bytes than there are.
    let mut area = [0, 2, 0, 19, 9, 9, 9, 9, 0, 1, 0, 2, 7, 7, 0, 2, 0, 0, 0x80, 3, 0, 2, 7];
    let asked = reflect(&mut area, &FACTS, None, (0, 0));
    assert_eq!(asked, tlv::Asked::default(), "the location itself is as it has to be");
    let want = [0, 2, 0, 19, 3, 0x5e, 0x9c, 0x40, 0x80, 1, 0, 2, 7, 7, 0x80, 2, 0, 0, 0xc0, 3, 0, 2, 7];
    assert_eq!(area, want);
}

#[test]
fn a_part_that_ends_within_its_head_is_malformed() {
    for tail in 1..4_u8 {
        let mut area = vec![0x80, 2, 0, 4 + tail, 0, 0, 0, 0];
        area.resize(8 + usize::from(tail), 0x80);
        assert!(!reflect(&mut area, &FACTS, None, (0, 0)).malformed);
        assert_eq!((area[0], area[8]), (0, 0xc0), "{tail} bytes");
    }
}

#[test]
fn a_location_without_room_for_the_ports_and_other_questions_of_wrong_length_are_malformed() {
    for (kind, right) in
        [(kind::TIMESTAMP_INFORMATION, 4), (kind::CLASS_OF_SERVICE, 4), (kind::DIRECT_MEASUREMENT, 12)]
    {
        for length in [right - 1, right, right + 1] {
            let mut area = vec![0x80, kind, 0, length];
            area.resize(4 + usize::from(length), 0);
            let asked = reflect(&mut area, &FACTS, None, (0, 0));
            assert_eq!(asked.malformed, length != right, "{kind}: {length}");
            assert_eq!(area[0], if length == right { 0 } else { 0xc0 }, "{kind}: {length}");
        }
    }
    for (length, malformed) in [(3, true), (4, false), (5, false)] {
        let mut area = vec![0x80, kind::LOCATION, 0, length];
        area.resize(4 + usize::from(length), 0);
        assert_eq!(reflect(&mut area, &FACTS, None, (0, 0)).malformed, malformed, "{length}");
    }
}

#[test]
fn without_the_name_of_its_kernels_run_a_reflector_does_not_know_whose_clock_it_reads() {
    let mut area = vec![0; 36];
    area[1..4].copy_from_slice(&[kind::SAME_CLOCK, 0, 32]);
    let facts = Facts { run_of_kernel: None, ..FACTS };
    assert!(!reflect(&mut area, &facts, None, (0, 0)).malformed);
    assert_eq!((area[0], &area[4..]), (0x80, &[0; 32][..]));
}

#[test]
fn a_dscp_of_no_more_than_what_is_allowed_is_granted_and_what_came_is_told() {
    let answer = |highest_dscp: u8, dscp: Option<u8>| {
        let mut area = [0x80, 4, 0, 4, 46 << 2, 0, 0, 0];
        let facts = Facts { highest_dscp, dscp, ecn: 3, ..FACTS };
        (reflect(&mut area, &facts, None, (0, 0)).dscp, [area[4], area[5]])
    };
    // 46 is 101110; 53, with which it came, is 110101. Then ECN and whether the wish is refused.
    assert_eq!(answer(46, Some(53)), (46, [0b1011_1011, 0b0101_1100]));
    assert_eq!(answer(45, Some(53)), (0, [0b1011_1011, 0b0101_1101]));
    assert_eq!(answer(46, None), (46, [0b1011_1000, 0b0000_1100]));
}

#[test]
fn what_follows_a_proof_is_extra_padding_or_the_proof_is_none() {
    let key = key();
    let proven = |behind: &[u8]| {
        let mut area = vec![0; 36];
        Questions::fitting(&WANTED[1..2], 36, Some(&key)).emit(&mut area, Some(&key), 3, 9);
        area.extend(behind);
        !reflect(&mut area, &FACTS, Some(&key), (3, 2)).unproven
    };
    assert!(proven(&[]) && proven(&[0x80, kind::EXTRA_PADDING, 0, 1, 0]));
    assert!(!proven(&[0x80, kind::CLASS_OF_SERVICE, 0, 4, 0, 0, 0, 0]));
}

#[test]
fn unproven_questions_are_not_answered() {
    let key = key();
    let mut area = vec![0; 110];
    Questions::fitting(&WANTED[1..3], area.len(), Some(&key)).emit(&mut area, Some(&key), 3, 9);
    for (what, number, flip) in [("number", 4, None), ("bytes", 3, Some(6)), ("proof", 3, Some(30))] {
        let mut area = area.clone();
        if let Some(at) = flip {
            area[at] ^= 1;
        }
        let before = area.clone();
        let asked = reflect(&mut area, &FACTS, Some(&key), (number, 2));
        assert_eq!((asked.unproven, asked.dscp), (true, 0), "{what}");
        let differing = area.iter().zip(&before).filter(|(a, b)| a != b).count();
        assert_eq!(differing, 4, "{what}: only the flags of the four TLVs");
        assert!(told(&area, Some(&key), 2).unproven);
    }
    // Without any proof, neither.
    let mut open = vec![0; 40];
    Questions::fitting(&WANTED[1..3], open.len(), None).emit(&mut open, None, 3, 9);
    assert!(reflect(&mut open, &FACTS, Some(&key), (3, 2)).unproven);
}

#[test]
fn a_dscp_above_what_is_allowed_is_refused() {
    let mut area = [0x80, 4, 0, 4, 46 << 2, 0, 0, 0];
    let facts = Facts { highest_dscp: 0, ..FACTS };
    assert_eq!(reflect(&mut area, &facts, None, (0, 0)).dscp, 0);
    assert!(told(&area, None, 0).class.unwrap().refused);
}

#[test]
fn questions_fill_any_room_but_three_lengths() {
    for key in [None, Some(key())] {
        let key = key.as_ref();
        for room in (0..200).filter(|room| key.is_none() || *room >= 20) {
            let mut area = vec![0; room];
            Questions::fitting(&WANTED, room, key).emit(&mut area, key, 1, 1);
            let whole = places(&area).all(|place| place.is_ok());
            let left = room - key.map_or(0, |_| 20);
            assert_eq!(whole, !(1..4).contains(&left), "{room}");
        }
    }
}

#[test]
fn each_error_has_a_word_to_count_it_by_and_a_sentence() {
    assert_eq!(StampError::ALL.map(StampError::name), ["short", "proof", "error_estimate"]);
    let sentences = [
        "the packet is shorter than STAMP's",
        "the packet does not prove the key",
        "the packet's error estimate has a multiplier of zero",
    ];
    assert_eq!(StampError::ALL.map(|error| error.to_string()), sentences);
}

proptest! {
    #[test]
    fn whatever_comes_is_taken_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), proven: bool) {
        let key = proven.then(key);
        let _ = Request::parse(&bytes, key.as_ref());
        let _ = Reply::parse(&bytes, key.as_ref());
        let _ = (looks_reflected(&bytes, Mode::of(key.as_ref())), proof_in(&bytes));
        let mut area = bytes.clone();
        reflect(&mut area, &FACTS, key.as_ref(), (1, 2));
        prop_assert_eq!(area.len(), bytes.len());
        let _ = told(&area, key.as_ref(), 2);
    }

    #[test]
    fn packets_survive_the_wire(seq: u32, ssid: u16, s: bool, scale in 0_u8..64, multiplier in 1_u8.., ttl: u8,
                                at in 0_i64..4_000_000_000_000_000_000, dwell in 0_i64..1_000_000_000, odd: u64, proven: bool) {
        let key = proven.then(key);
        let error = ErrorEstimate { synchronised: s, format: TimeFormat::Ntp, scale, multiplier };
        let request = Request { seq, sent_at: Timestamp::new(Wall(at), error.format), error, ssid };
        prop_assert_eq!(request.sent_at.at(error.format), Wall(at));
        let mut out = [0; 112];
        request.emit(&mut out, key.as_ref());
        prop_assert_eq!(Request::parse(&out, key.as_ref()), Ok(request));
        prop_assert!(!looks_reflected(&out, Mode::of(key.as_ref())));
        let reply = Reply { seq: !seq, sent_at: Wall(at + dwell), error, ssid, received_at: Wall(at), request_seq: seq,
                            request_sent_at: Timestamp(odd), request_error: error, request_ttl: ttl };
        reply.emit(&mut out, key.as_ref());
        prop_assert_eq!(Reply::parse(&out, key.as_ref()), Ok(reply));
        prop_assert!(looks_reflected(&out, Mode::of(key.as_ref())));
        prop_assert!(reply.error.span() >= Span::ZERO);
    }
}
