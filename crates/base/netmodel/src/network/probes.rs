//! The offered packets that are under way.

use netaware_record::IpVersion;

use crate::{Answer, Kind, Packet, Side};

/// One of them. Queues carry only its slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probe {
    pub(super) packet: Packet,
    pub(super) kind: Kind,
    pub(super) from: Side,
    pub(super) offered_at: u64,
    pub(super) duplicate: bool,
    pub(super) corrupted_bit: Option<u32>,
    /// Which of the parallel links of the hop that it crossed last it took, from 0.
    pub(super) member: u16,
    /// It has become an ICMP error on its way back, sent by this router, to which it had come by
    /// this member.
    pub(super) answer: Option<(usize, u16, Answer)>,
}

impl Probe {
    /// Bytes of IP packet now: an error quotes the header and 8 bytes over IPv4 (RFC 792), and as
    /// much as fits in 1280 over IPv6 (RFC 4443 §2.4).
    pub(super) fn length(&self) -> u32 {
        match (self.answer, self.packet.version) {
            (None, _) => self.packet.length,
            (Some(_), IpVersion::V4) => 56,
            (Some(_), IpVersion::V6) => (self.packet.length.saturating_add(48)).min(1280),
        }
    }
}

/// Slots are used again, so that a long run allocates nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Probes {
    slots: Vec<Probe>,
    free: Vec<u32>,
    /// Live slots that hold copies.
    copies: usize,
}

impl Probes {
    pub(super) fn insert(&mut self, probe: Probe) -> u32 {
        self.copies += usize::from(probe.duplicate);
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = probe;
            return slot;
        }
        self.slots.push(probe);
        (self.slots.len() - 1) as u32
    }

    #[inline]
    pub(super) fn get(&mut self, slot: u32) -> &mut Probe {
        &mut self.slots[slot as usize]
    }

    pub(super) fn take(&mut self, slot: u32) -> Probe {
        self.free.push(slot);
        let probe = self.slots[slot as usize];
        self.copies -= usize::from(probe.duplicate);
        probe
    }

    /// Packets without their copies.
    pub(super) fn originals(&self) -> usize {
        self.slots.len() - self.free.len() - self.copies
    }
}
