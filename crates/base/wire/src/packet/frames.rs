//! Frames built by hand for tests: written independently of the readers beside it.

pub(crate) fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    v4_with(&[], 0x4000, protocol, payload)
}

pub(crate) fn v4_with(options: &[u8], fragment: u16, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let header = 20 + options.len();
    let length = ((header + payload.len()) as u16).to_be_bytes();
    let bits = fragment.to_be_bytes();
    let mut bytes = vec![0x40 | (header / 4) as u8, 0xb9, length[0], length[1], 0x12, 0x34, bits[0], bits[1]];
    bytes.extend([57, protocol, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2]);
    bytes.extend(options);
    bytes.extend(payload);
    bytes
}

pub(crate) fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16).to_be_bytes();
    let mut bytes = vec![0x6b, 0x91, 0x23, 0x45, length[0], length[1], next, 58];
    bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    bytes.extend(payload);
    bytes
}

pub(crate) fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() + 8) as u16;
    let words = [source, destination, length, 0xbeef];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    bytes.extend(payload);
    bytes
}

pub(crate) fn tcp(options: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x01, 0xbb, 0x30, 0x39, 1, 2, 3, 4, 5, 6, 7, 8];
    bytes.extend([(((20 + options.len()) / 4) << 4) as u8, 0x18, 0x7f, 0xff, 0, 0, 0, 0]);
    bytes.extend(options);
    bytes.extend(payload);
    bytes
}

/// `tags` are pairs of EtherType and identifier, outermost first.
pub(crate) fn ethernet(tags: &[(u16, u16)], packet: &[u8]) -> Vec<u8> {
    let kind = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
    ethernet_of(tags, kind, packet)
}

pub(crate) fn ethernet_of(tags: &[(u16, u16)], kind: u16, packet: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    for (tag, id) in tags {
        bytes.extend(tag.to_be_bytes());
        bytes.extend((0x6000 | id).to_be_bytes());
    }
    bytes.extend(kind.to_be_bytes());
    bytes.extend(packet);
    bytes
}
