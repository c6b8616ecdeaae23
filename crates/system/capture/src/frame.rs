//! What a source shows of a packet.

use netaware_units::{ClockSource, Wall};
use netaware_wire::packet::LinkType;

/// One frame as it was captured; its bytes stay where the kernel or the file put them.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// When, by the wall clock of the host that captured; by the card's own clock if
    /// [`Self::stamped_by`] is the card.
    pub at: Wall,
    /// Who stamped.
    pub stamped_by: ClockSource,
    /// `true` when the interface sent it.
    pub outgoing: bool,
    /// Link layer first, as far as the snap length goes, VLAN tags where they are on the wire.
    pub bytes: &'a [u8],
    /// Bytes of the frame on the wire, without checksum.
    pub wire_length: u32,
    /// What `bytes` begin with.
    pub link: LinkType,
    /// Packets on the wire that this frame stands for: more than 1 where an offload merged them
    /// before (or will cut them behind) the capture. From the kernel's own size of segments where
    /// it tells, otherwise from the MTU, and then no more than a guess.
    pub segments: u16,
    /// Number of the interface within a file; 0 for live captures.
    pub interface: u32,
}

impl Frame<'_> {
    /// Whether offloads made one frame of several packets: its digest will be seen nowhere else.
    pub fn is_merged(&self) -> bool {
        self.segments > 1
    }
}
