//! The bytes of packets that are on their way, within a bound.
//!
//! A released slot keeps its bytes for a while (`linger`), because a duplicate may come after the
//! packet itself. The id of a packet holds the slot and how often the slot was used before, so an
//! id that is too old finds nothing instead of somebody else's bytes.

use std::collections::VecDeque;

use netaware_units::{Mono, Span};

use crate::packet::Header;

/// Packets on their way.
pub(crate) struct Slab {
    slots: Vec<Slot>,
    /// Oldest first, with the instant from which the slot may be used again.
    released: VecDeque<(Mono, u32)>,
    most: usize,
    slot_bytes: usize,
    linger: Span,
}

struct Slot {
    bytes: Box<[u8]>,
    length: usize,
    header: Option<Header>,
    origin: Origin,
    used: u32,
}

/// How a packet came to be here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// So many were taken up to this one.
    pub(crate) number: u64,
    /// How long it lay in its host's device before it was taken; `None` where nobody knows.
    pub(crate) waited: Option<Span>,
}

/// A packet on its way.
pub(crate) struct Stored<'a> {
    pub(crate) header: Header,
    /// As it was given to [`Slab::keep`].
    pub(crate) origin: Origin,
    pub(crate) bytes: &'a mut [u8],
}

impl Slab {
    /// Room for `most_bytes` in packets of up to `slot_bytes`. Memory is taken when it is first
    /// needed.
    pub(crate) fn new(most_bytes: usize, slot_bytes: usize, linger: Span) -> Self {
        let most = (most_bytes / slot_bytes.max(1)).clamp(1, u32::MAX as usize);
        Self { slots: Vec::new(), released: VecDeque::new(), most, slot_bytes, linger }
    }

    /// A slot that is free at `now`, for bytes to be read into; it stays free until [`Self::keep`].
    pub(crate) fn vacancy(&mut self, now: Mono) -> Option<u32> {
        match self.released.front() {
            Some((from, slot)) if *from <= now => Some(*slot),
            _ if self.slots.len() < self.most => {
                let slot = self.slots.len() as u32;
                let bytes = vec![0; self.slot_bytes].into_boxed_slice();
                self.slots.push(Slot { bytes, length: 0, header: None, origin: Origin::default(), used: 0 });
                self.released.push_front((Mono(0), slot));
                Some(slot)
            }
            _ => None,
        }
    }

    /// The bytes of a vacancy.
    pub(crate) fn buffer(&mut self, vacancy: u32) -> &mut [u8] {
        &mut self.slots[vacancy as usize].bytes
    }

    /// Takes the slot that [`Self::vacancy`] just named; the id is the packet's name from now on.
    /// `origin` is kept with it.
    pub(crate) fn keep(&mut self, vacancy: u32, length: usize, header: Header, origin: Origin) -> u64 {
        let taken = self.released.pop_front();
        debug_assert_eq!(taken.map(|(_, slot)| slot), Some(vacancy));
        let slot = &mut self.slots[vacancy as usize];
        slot.used = slot.used.wrapping_add(1);
        (slot.length, slot.header) = (length.min(slot.bytes.len()), Some(header));
        slot.origin = origin;
        u64::from(slot.used) << 32 | u64::from(vacancy)
    }

    /// A packet by its id; `None` when its slot has been used again.
    pub(crate) fn find(&mut self, id: u64) -> Option<Stored<'_>> {
        let slot = self.slots.get_mut((id & 0xffff_ffff) as usize)?;
        let header = slot.header.filter(|_| u64::from(slot.used) == id >> 32)?;
        Some(Stored { header, origin: slot.origin, bytes: &mut slot.bytes[..slot.length] })
    }

    /// Its fate is told: to be called once for each id.
    pub(crate) fn release(&mut self, id: u64, now: Mono) {
        if self.find(id).is_some() {
            self.released.push_back((now + self.linger, (id & 0xffff_ffff) as u32));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::made;

    fn store(slab: &mut Slab, now: Mono, payload: usize) -> Option<u64> {
        let bytes = made::udp("10.77.0.1".parse().unwrap(), "10.77.0.2".parse().unwrap(), 9, payload);
        let slot = slab.vacancy(now)?;
        slab.buffer(slot)[..bytes.len()].copy_from_slice(&bytes);
        Some(slab.keep(slot, bytes.len(), Header::parse(&bytes).unwrap(), Origin::default()))
    }

    #[test]
    fn the_bound_holds_and_a_released_slot_is_used_again() {
        let mut slab = Slab::new(300, 100, Span::ZERO);
        let ids: Vec<u64> = (0..3).filter_map(|n| store(&mut slab, Mono(1), n)).collect();
        assert_eq!((ids.len(), store(&mut slab, Mono(1), 3)), (3, None));
        slab.release(ids[1], Mono(2));
        let again = store(&mut slab, Mono(2), 4).unwrap();
        assert_ne!(again, ids[1]);
        assert_eq!(slab.find(again).unwrap().bytes.len(), 32);
        assert!(slab.find(ids[1]).is_none(), "an old name finds nothing");
    }

    #[test]
    fn released_bytes_linger_for_a_duplicate() {
        let mut slab = Slab::new(200, 100, Span(10));
        let first = store(&mut slab, Mono(0), 1).unwrap();
        slab.release(first, Mono(5));
        let second = store(&mut slab, Mono(6), 2).unwrap();
        assert!(slab.find(first).is_some() && slab.find(second).is_some());
        assert_eq!(store(&mut slab, Mono(14), 3), None);
        assert!(store(&mut slab, Mono(15), 3).is_some());
        assert!(slab.find(first).is_none());
    }

    #[test]
    fn a_vacancy_that_is_not_taken_stays_free() {
        let mut slab = Slab::new(100, 100, Span::ZERO);
        assert_eq!(slab.vacancy(Mono(0)), slab.vacancy(Mono(0)));
        assert!(store(&mut slab, Mono(0), 1).is_some());
    }
}
