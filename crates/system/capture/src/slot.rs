//! One packet's place in the ring, and what stands there.
//!
//! ```text
//! tpacket3_hdr 48 | sockaddr_ll 20 | … | virtio_net_hdr 10 | frame
//!                                                           ^ tp_mac from the slot's beginning
//! ```
//!
//! Layout: Linux `uapi/linux/if_packet.h`, `uapi/linux/virtio_net.h`, and `tpacket_rcv` in
//! `net/packet/af_packet.c`.

use std::mem::size_of;

use netaware_units::{ClockSource, Wall};

/// Room that the kernel is asked to leave before each frame, for the tag that it took out.
pub(crate) const TAG_ROOM: u32 = 4;
/// `struct virtio_net_hdr` as it stands before frames.
const OFFLOAD_HEADER: usize = 10;
const HEADER: usize = size_of::<libc::tpacket3_hdr>();
/// `sll_pkttype` within `struct sockaddr_ll`.
const PACKET_TYPE: usize = 10;
/// Destination and source address: what stands before a tag.
const ADDRESSES: usize = 12;
const TAG: u16 = 0x8100;

/// What a slot says; the frame itself stays in the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) at: Wall,
    pub(crate) stamped_by: ClockSource,
    pub(crate) outgoing: bool,
    /// Where the frame lies, from the slot's beginning.
    pub(crate) begin: usize,
    pub(crate) captured: usize,
    pub(crate) wire_length: u32,
    /// Payload bytes of one segment where the frame is of several; 0 for ordinary ones.
    pub(crate) segment_size: u16,
    /// To the next slot; 0 behind the last.
    pub(crate) next: usize,
}

/// Which optional parts the slots of a ring have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Frames have a header that tells of offloads before them.
    pub(crate) offload_header: bool,
    /// Frames begin with Ethernet addresses, so a tag can be put back.
    pub(crate) ethernet: bool,
}

/// Reads the slot at the beginning of `bytes`, which reach to the end of the block, and puts a VLAN
/// tag that the kernel took out back where it was. `None` for what the kernel never writes: a slot
/// that reaches beyond its block.
#[inline]
pub(crate) fn read(bytes: &mut [u8], layout: Layout) -> Option<Slot> {
    let head: libc::tpacket3_hdr = header(bytes)?;
    let (mut begin, mut captured) = (usize::from(head.tp_mac), head.tp_snaplen as usize);
    if begin < HEADER + PACKET_TYPE + 1 || begin.checked_add(captured)? > bytes.len() {
        return None;
    }
    let segment_size = if layout.offload_header {
        let offload: &[u8; OFFLOAD_HEADER] = bytes[..begin].last_chunk()?;
        let kind = offload[1];
        if kind == 0 { 0 } else { u16::from_ne_bytes([offload[4], offload[5]]) }
    } else {
        0
    };
    let outgoing = bytes[HEADER + PACKET_TYPE] == libc::PACKET_OUTGOING;
    let mut wire_length = head.tp_len;
    if head.tp_status & libc::TP_STATUS_VLAN_VALID != 0 && layout.ethernet && captured >= ADDRESSES {
        let kind =
            if head.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0 { head.hv1.tp_vlan_tpid } else { TAG };
        begin = put_tag(bytes, begin, kind, head.hv1.tp_vlan_tci as u16)?;
        captured += 4;
        wire_length = wire_length.saturating_add(4);
    }
    let by_card = head.tp_status & libc::TP_STATUS_TS_RAW_HARDWARE != 0;
    Some(Slot {
        at: Wall(i64::from(head.tp_sec) * 1_000_000_000 + i64::from(head.tp_nsec)),
        stamped_by: if by_card { ClockSource::Nic } else { ClockSource::Kernel },
        outgoing,
        begin,
        captured,
        wire_length,
        segment_size,
        next: head.tp_next_offset as usize,
    })
}

#[inline]
fn header(bytes: &[u8]) -> Option<libc::tpacket3_hdr> {
    let head = bytes.get(..HEADER)?;
    // SAFETY: `head` has exactly the size of the structure, which is plain integers; alignment is
    // not assumed.
    Some(unsafe { std::ptr::read_unaligned(head.as_ptr().cast()) })
}

/// Moves the addresses into the room before the frame; the new beginning.
#[cold]
fn put_tag(bytes: &mut [u8], begin: usize, kind: u16, control: u16) -> Option<usize> {
    let moved = begin.checked_sub(4).filter(|moved| *moved >= HEADER)?;
    bytes.copy_within(begin..begin + ADDRESSES, moved);
    bytes[moved + ADDRESSES..moved + ADDRESSES + 2].copy_from_slice(&kind.to_be_bytes());
    bytes[moved + ADDRESSES + 2..moved + ADDRESSES + 4].copy_from_slice(&control.to_be_bytes());
    Some(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout { offload_header: true, ethernet: true };

    /// A slot as the kernel writes it, with a frame of 60 bytes 0, 1, 2, … at 112.
    fn slot(status: u32, vlan: (u32, u16), offload: (u8, u16)) -> Vec<u8> {
        let mut bytes = vec![0_u8; 112];
        let words = [208, 1_700_000_000, 123_456_789, 60, 1500, status];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&u32::to_ne_bytes(word));
        }
        bytes[24..26].copy_from_slice(&112_u16.to_ne_bytes());
        bytes[32..36].copy_from_slice(&vlan.0.to_ne_bytes());
        bytes[36..38].copy_from_slice(&vlan.1.to_ne_bytes());
        bytes[HEADER + PACKET_TYPE] = libc::PACKET_OUTGOING;
        bytes[103] = offload.0;
        bytes[106..108].copy_from_slice(&offload.1.to_ne_bytes());
        bytes.extend(0..60);
        bytes
    }

    #[test]
    fn a_slot_says_when_what_and_which_way() {
        let mut bytes = slot(libc::TP_STATUS_TS_SOFTWARE, (0, 0), (0, 99));
        let read = read(&mut bytes, LAYOUT).unwrap();
        assert_eq!(read.at, Wall(1_700_000_000_123_456_789));
        assert_eq!((read.stamped_by, read.outgoing, read.next), (ClockSource::Kernel, true, 208));
        assert_eq!((read.begin, read.captured, read.wire_length, read.segment_size), (112, 60, 1500, 0));
    }

    #[test]
    fn merged_frames_and_stamps_of_the_card_are_told() {
        let mut bytes = slot(libc::TP_STATUS_TS_RAW_HARDWARE, (0, 0), (1, 1448));
        let found = read(&mut bytes, LAYOUT).unwrap();
        assert_eq!((found.stamped_by, found.segment_size), (ClockSource::Nic, 1448));
        let without = read(&mut bytes, Layout { offload_header: false, ..LAYOUT }).unwrap();
        assert_eq!(without.segment_size, 0);
    }

    #[test]
    fn a_tag_is_put_back_where_it_was() {
        let status = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        for (status, kind) in [(status, 0x88a8_u16), (libc::TP_STATUS_VLAN_VALID, 0x8100)] {
            let mut bytes = slot(status, (0x6005, 0x88a8), (0, 0));
            let read = read(&mut bytes, LAYOUT).unwrap();
            assert_eq!((read.begin, read.captured, read.wire_length), (108, 64, 1504));
            let frame = &bytes[read.begin..read.begin + read.captured];
            let want: Vec<u8> = (0..12).chain(kind.to_be_bytes()).chain([0x60, 5]).chain(12..60).collect();
            assert_eq!(frame, want);
        }
    }

    #[test]
    fn a_slot_beyond_its_block_is_refused() {
        let mut bytes = slot(0, (0, 0), (0, 0));
        assert!(read(&mut bytes[..171], LAYOUT).is_none());
        assert!(read(&mut bytes[..40], LAYOUT).is_none());
        bytes[24..26].copy_from_slice(&10_u16.to_ne_bytes());
        assert!(read(&mut bytes, LAYOUT).is_none(), "the frame would lie in the header");
    }
}
