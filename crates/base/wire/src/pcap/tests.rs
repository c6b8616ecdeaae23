use netaware_units::Wall;
use proptest::prelude::*;

use super::*;
use crate::packet::LinkType;

/// A frame that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kept {
    at: i64,
    wire_length: u32,
    bytes: Vec<u8>,
    link: u32,
    interface: u32,
    outgoing: Option<bool>,
}

fn read_all(file: &[u8]) -> (Vec<Kept>, u64, Option<FileError>) {
    let mut reader = match Reader::new(file) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), 0, Some(error)),
    };
    let mut kept = Vec::new();
    let fault = loop {
        match reader.next() {
            Ok(Some(record)) => kept.push(Kept {
                at: record.at.0,
                wire_length: record.wire_length,
                bytes: record.bytes.to_vec(),
                link: record.link,
                interface: record.interface,
                outgoing: record.outgoing,
            }),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    (kept, reader.lost(), fault)
}

fn record(kept: &Kept) -> Record<'_> {
    Record {
        at: Wall(kept.at),
        wire_length: kept.wire_length,
        bytes: &kept.bytes,
        link: kept.link,
        interface: kept.interface,
        outgoing: kept.outgoing,
    }
}

fn interfaces() -> [Interface; 2] {
    [("lan", LinkType::Ethernet), ("tun0", LinkType::Raw)].map(|(name, link)| Interface {
        name: name.to_owned(),
        link,
        snap: 256,
    })
}

fn write_pcapng(frames: &[Kept]) -> Vec<u8> {
    let mut writer = Writer::pcapng(Vec::new(), &interfaces()).unwrap();
    for kept in frames {
        writer.write(&record(kept)).unwrap();
    }
    writer.finish().unwrap()
}

/// A word, and two half-words together, in one byte order.
type Word = fn(u32) -> [u8; 4];
type Halves = fn(u16, u16) -> u32;

fn words(order: Word, words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| order(*word)).collect()
}

#[test]
fn pcap_is_read_in_both_byte_orders_and_resolutions() {
    let orders: [(Word, u32); 2] = [(u32::to_le_bytes, 2 | 4 << 16), (u32::to_be_bytes, 2 << 16 | 4)];
    for (order, version) in orders {
        for (magic, each) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
            let mut file = words(order, &[magic, version, 0, 0, 96, 1]);
            file.extend(words(order, &[1_700_000_000, 123_456, 3, 60]));
            file.extend([7, 8, 9]);
            let (kept, lost, fault) = read_all(&file);
            assert!(fault.is_none() && lost == 0, "{fault:?}");
            assert_eq!(kept[0].at, 1_700_000_000_000_000_000 + 123_456 * each);
            assert_eq!((kept[0].wire_length, &kept[0].bytes[..], kept[0].link), (60, &[7, 8, 9][..], 1));
        }
    }
}

#[test]
fn pcapng_is_read_in_both_byte_orders_with_clocks_and_directions() {
    let orders: [(Word, Halves); 2] = [
        (u32::to_le_bytes, |first, second| u32::from(first) | u32::from(second) << 16),
        (u32::to_be_bytes, |first, second| u32::from(first) << 16 | u32::from(second)),
    ];
    for (order, halves) in orders {
        let mut file = words(order, &[0x0a0d_0d0a, 28, 0x1a2b_3c4d, halves(1, 0), u32::MAX, u32::MAX, 28]);
        // Defaults; 2^-10 s from 100 s on.
        file.extend(words(order, &[1, 20, halves(1, 0), 0, 20]));
        file.extend(words(order, &[1, 44, halves(101, 0), 0, halves(9, 1)]));
        file.extend([0x8a, 0, 0, 0]);
        file.extend(words(order, &[halves(14, 8)]));
        let offset = if order(1) == [1, 0, 0, 0] { [100, 0] } else { [0, 100] };
        file.extend(words(order, &offset));
        file.extend(words(order, &[halves(0, 0), 44]));
        // A block of a kind that nobody knows.
        file.extend(words(order, &[0x0bad, 16, 5, 16]));
        file.extend(words(order, &[6, 36, 0, 0, 5_000_001, 2, 70]));
        file.extend([1, 2, 0, 0]);
        file.extend(words(order, &[36]));
        file.extend(words(order, &[6, 48, 1, 0, 2048, 4, 4]));
        file.extend([1, 2, 3, 4]);
        file.extend(words(order, &[halves(2, 4), 2, halves(0, 0), 48]));
        file.extend(words(order, &[3, 20, 4]));
        file.extend([9; 4]);
        file.extend(words(order, &[20]));
        file.extend(words(order, &[5, 52, 0, 0, 0, halves(5, 8)]));
        file.extend(9_u64.to_le_bytes().iter().rev().take(if offset[0] == 100 { 0 } else { 8 }));
        file.extend(9_u64.to_le_bytes().iter().take(if offset[0] == 100 { 8 } else { 0 }));
        file.extend(words(order, &[halves(7, 8), offset[0] / 100, offset[1] / 100, halves(0, 0), 52]));
        let (kept, lost, fault) = read_all(&file);
        assert!(fault.is_none(), "{fault:?}");
        assert_eq!(kept.len(), 3);
        assert_eq!((kept[0].at, kept[0].wire_length, kept[0].outgoing), (5_000_001_000, 70, None));
        assert_eq!((kept[1].at, kept[1].link, kept[1].outgoing), (102_000_000_000, 101, Some(true)));
        assert_eq!((kept[1].interface, &kept[1].bytes[..]), (1, &[1, 2, 3, 4][..]));
        assert_eq!((kept[2].at, kept[2].interface, &kept[2].bytes[..]), (0, 0, &[9; 4][..]));
        assert_eq!(lost, 10, "9 by the interface, 1 by the system");
    }
}

#[test]
fn interfaces_of_further_sections_are_numbered_on() {
    let frame = Kept { at: 5, wire_length: 1, bytes: vec![1], link: 101, interface: 1, outgoing: None };
    let one = write_pcapng(std::slice::from_ref(&frame));
    let (kept, ..) = read_all(&[&one[..], &one].concat());
    assert_eq!(kept.iter().map(|kept| kept.interface).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn losses_stay_with_the_file() {
    let mut writer = Writer::pcapng(Vec::new(), &interfaces()).unwrap();
    writer.lost(0, 1, 2).unwrap();
    writer.lost(0, 3, 4).unwrap();
    writer.lost(1, 10, 0).unwrap();
    assert_eq!(read_all(&writer.finish().unwrap()).1, 17, "totals: the last of each interface");
}

#[test]
fn each_fault_is_told_behind_what_was_read_before() {
    let good = Kept { at: 1, wire_length: 4, bytes: vec![1; 4], link: 1, interface: 0, outgoing: None };
    let file = write_pcapng(std::slice::from_ref(&good));
    let with = |more: &[u8]| read_all(&[&file[..], more].concat());
    let le = |list: &[u32]| words(u32::to_le_bytes, list);
    let rows: Vec<(&str, Vec<u8>)> = vec![
        ("Cut", le(&[6, 36])),
        ("Block(6)", le(&[6, 8, 8])),
        ("Block(6)", le(&[6, 34, 0, 0])),
        ("Block(6)", le(&[6, 32, 9, 0, 0, 0, 0, 32])),
        ("Block(6)", le(&[6, 32, 0, 0, 0, 4, 4, 32])),
        ("TooLong(262145)", le(&[6, 32, 0, 0, 0, 262_145, 4, 32])),
        ("TooLong(4294967292)", le(&[6, 0xffff_fffc, 0, 0])),
        ("Cut", le(&[77, 0xffff_fffc, 0, 0])),
        ("Resolution(20)", le(&[1, 28, 1, 0, 9 | 1 << 16, 20, 28])),
        ("Version(2)", le(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 2, 0, 0, 28])),
        ("NotACapture", le(&[0x0a0d_0d0a, 28, 0x1234_5678, 1, 0, 0, 28])),
    ];
    for (want, more) in rows {
        let (kept, _, fault) = with(&more);
        assert_eq!(kept, std::slice::from_ref(&good), "{want}");
        assert_eq!(format!("{:?}", fault.unwrap()), want);
    }
    for start in [&b""[..], b"GIF8", b"\xd4\xc3\xb2"] {
        assert!(matches!(read_all(start).2, Some(FileError::NotACapture)), "{start:?}");
    }
    let old = words(u32::to_le_bytes, &[0xa1b2_c3d4, 1 | 4 << 16, 0, 0, 96, 1]);
    assert!(matches!(read_all(&old).2, Some(FileError::Version(1))));
}

#[test]
fn the_longest_frame_is_read_and_one_of_a_byte_more_is_refused() {
    for (length, is_read) in [(LONGEST, true), (LONGEST + 1, false)] {
        let bytes = vec![7; length as usize];
        let frame = Kept { at: 5, wire_length: length, bytes, link: 1, interface: 0, outgoing: None };
        let mut pcap = Writer::pcap(Vec::new(), LinkType::Ethernet, length).unwrap();
        pcap.write(&record(&frame)).unwrap();
        for file in [write_pcapng(std::slice::from_ref(&frame)), pcap.finish().unwrap()] {
            let (kept, _, fault) = read_all(&file);
            if is_read {
                assert!(fault.is_none() && kept == std::slice::from_ref(&frame), "{fault:?}");
            } else {
                assert!(kept.is_empty(), "{} frames", kept.len());
                assert!(matches!(fault, Some(FileError::TooLong(most)) if most == length), "{fault:?}");
            }
        }
    }
}

#[test]
fn too_many_interfaces_are_refused() {
    let many = vec![interfaces()[0].clone(); MOST_INTERFACES + 1];
    let file = Writer::pcapng(Vec::new(), &many).unwrap().finish().unwrap();
    assert!(matches!(read_all(&file).2, Some(FileError::TooManyInterfaces)));
}

fn frames() -> impl Strategy<Value = Vec<Kept>> {
    let frame = (
        0..4_000_000_000_000_000_000_i64,
        prop::collection::vec(any::<u8>(), 0..80),
        0..100_u32,
        any::<bool>(),
        prop::option::of(any::<bool>()),
    );
    let kept = frame.prop_map(|(at, bytes, beyond, second, outgoing)| Kept {
        at,
        wire_length: bytes.len() as u32 + beyond,
        bytes,
        link: if second { 101 } else { 1 },
        interface: u32::from(second),
        outgoing,
    });
    prop::collection::vec(kept, 0..20)
}

proptest! {
    #[test]
    fn what_was_written_is_read(frames in frames()) {
        let file = write_pcapng(&frames);
        let (kept, lost, fault) = read_all(&file);
        prop_assert!(fault.is_none() && lost == 0);
        prop_assert_eq!(&kept, &frames);
        // And written again it is the same file.
        prop_assert_eq!(write_pcapng(&kept), file);

        let mut writer = Writer::pcap(Vec::new(), LinkType::Ethernet, 256).unwrap();
        frames.iter().try_for_each(|kept| writer.write(&record(kept))).unwrap();
        let (kept, _, fault) = read_all(&writer.finish().unwrap());
        prop_assert!(fault.is_none());
        let plain = |kept: &Kept| Kept { link: 1, interface: 0, outgoing: None, ..kept.clone() };
        prop_assert_eq!(kept, frames.iter().map(plain).collect::<Vec<_>>());
    }

    #[test]
    fn no_edit_breaks_the_reader(
        frames in frames(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        kept in any::<prop::sample::Index>(),
    ) {
        let mut file = write_pcapng(&frames);
        for (at, byte) in edits {
            let place = at.index(file.len());
            file[place] = byte;
        }
        file.truncate(kept.index(file.len() + 1));
        let (kept, ..) = read_all(&file);
        prop_assert!(kept.iter().all(|kept| kept.bytes.len() as u32 <= kept.wire_length));
    }
}
