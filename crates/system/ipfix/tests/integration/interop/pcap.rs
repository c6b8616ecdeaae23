//! A capture file in the classic format, and frames to put into it.

use std::path::Path;

use netaware_units::Wall;

/// Ethernet, microseconds.
pub(crate) struct Capture(Vec<u8>);

impl Capture {
    pub(crate) fn new() -> Self {
        let words = [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 65_535, 1];
        Self(words.into_iter().flat_map(u32::to_le_bytes).collect())
    }

    pub(crate) fn add(&mut self, at: Wall, frame: &[u8]) {
        let length = frame.len() as u32;
        let micros = at.0.rem_euclid(1_000_000_000) / 1000;
        let words = [(at.0 / 1_000_000_000) as u32, micros as u32, length, length];
        self.0.extend(words.into_iter().flat_map(u32::to_le_bytes));
        self.0.extend_from_slice(frame);
    }

    pub(crate) fn write(&self, file: &Path) {
        std::fs::write(file, &self.0).expect("the file can be written");
    }
}

/// A frame with a UDP datagram.
pub(crate) fn datagram(version: u8, source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let mut udp = [source, destination, 8 + payload.len() as u16, 0].map(u16::to_be_bytes).concat();
    udp.extend_from_slice(payload);
    frame(version, 17, &udp)
}

/// A frame with a TCP segment.
pub(crate) fn segment(version: u8, source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let mut tcp = [source, destination, 0, 1, 0, 1, 0x5010, 1000, 0, 0].map(u16::to_be_bytes).concat();
    tcp.extend_from_slice(payload);
    frame(version, 6, &tcp)
}

fn frame(version: u8, protocol: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = [2; 12].to_vec();
    if version == 4 {
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((20 + body.len() as u16).to_be_bytes());
        frame.extend([0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    } else {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend((body.len() as u16).to_be_bytes());
        frame.extend([protocol, 64]);
        for last in [1, 2] {
            frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
    }
    frame.extend_from_slice(body);
    frame
}
