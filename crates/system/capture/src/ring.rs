//! The ring that the kernel fills: blocks of memory that belong to one side at a time.
//!
//! A block's status says whose it is. The kernel hands one over when it is full, or when the retire
//! time has passed and there is a packet in it; we hand it back when all its packets were shown.
//! Blocks come in turn, so one index is all the state.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use netaware_units::{ByteCount, Span};

use crate::slot::{self, Layout, Slot};
use crate::socket::PacketSocket;

/// The shape of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Bytes of a block: a multiple of the page size.
    pub(crate) block: usize,
    pub(crate) blocks: usize,
}

impl Shape {
    /// The ring nearest to `memory` whose blocks hold one packet of `snap` bytes at least. Large
    /// blocks mean few hand-overs; a sixteenth of the ring each leaves the kernel room while one is
    /// read.
    pub(crate) fn of(memory: ByteCount, snap: u32) -> Self {
        let least = (snap as usize + OVERHEAD).next_multiple_of(PAGE);
        let wanted = usize::try_from(memory.0).unwrap_or(usize::MAX).min(MOST);
        let block = (wanted / 16).clamp(PAGE, LARGEST_BLOCK).next_multiple_of(PAGE).max(least);
        Self { block, blocks: (wanted / block).max(2) }
    }
}

/// Memory shared with the kernel.
pub(crate) struct Ring {
    memory: NonNull<u8>,
    shape: Shape,
    layout: Layout,
    /// The block that the kernel hands over next.
    next: usize,
}

// SAFETY: the memory belongs to the mapping alone, and all access needs `&mut self`.
unsafe impl Send for Ring {}

impl Ring {
    /// Sets the ring of a socket up, on which no ring was before and that is not bound.
    pub(crate) fn new(socket: &PacketSocket, shape: Shape, retire: Span, layout: Layout) -> io::Result<Self> {
        let retire_ms = (retire.nanos() / 1_000_000).clamp(1, 10_000) as u32;
        let request = libc::tpacket_req3 {
            tp_block_size: shape.block as u32,
            tp_block_nr: shape.blocks as u32,
            // Without meaning in version 3, but checked: one frame to a page.
            tp_frame_size: PAGE as u32,
            tp_frame_nr: (shape.block / PAGE * shape.blocks) as u32,
            tp_retire_blk_tov: retire_ms,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        socket.set(libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let size = shape.block * shape.blocks;
        // SAFETY: a new mapping of the size that was just set up, at a place that the kernel
        // chooses.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_fd().as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { memory, shape, layout, next: 0 })
    }

    pub(crate) fn blocks(&self) -> usize {
        self.shape.blocks
    }

    /// Whether a block is ours.
    pub(crate) fn is_ready(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Shows the packets of the next block, if it is ours, and hands it back; how many there were.
    pub(crate) fn drain_block(&mut self, see: &mut dyn FnMut(Slot, &[u8])) -> Option<usize> {
        if !self.is_ready() {
            return None;
        }
        let layout = self.layout;
        let block = self.block();
        let packets = word(block, PACKETS);
        let mut at = word(block, FIRST) as usize;
        let mut shown = 0;
        for _ in 0..packets {
            let Some(rest) = block.get_mut(at..) else { break };
            let Some(slot) = slot::read(rest, layout) else { break };
            fetch(rest.get(AHEAD * slot.next..).unwrap_or_default());
            see(slot, &rest[slot.begin..slot.begin + slot.captured]);
            shown += 1;
            if slot.next == 0 {
                break;
            }
            at += slot.next;
        }
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.shape.blocks;
        Some(shown)
    }

    /// The next block's status, which both sides write.
    fn status(&self) -> &AtomicU32 {
        // SAFETY: `next` is less than the number of blocks, so this lies in the mapping; blocks
        // begin on pages, so it is aligned; the kernel writes it as one word.
        unsafe { AtomicU32::from_ptr(self.memory.as_ptr().add(self.next * self.shape.block + STATUS).cast()) }
    }

    /// The next block's bytes. Only while it is ours: the kernel leaves it alone until the status
    /// is given back.
    fn block(&mut self) -> &mut [u8] {
        // SAFETY: within the mapping, as above; ours, as every caller has seen by `is_ready`, and
        // nobody else has a reference into the mapping, since this takes `&mut self`.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.memory.as_ptr().add(self.next * self.shape.block),
                self.shape.block,
            )
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping made by `new`, of this size, to which no reference is left.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.shape.block * self.shape.blocks) };
    }
}

/// Slots between the one that is shown and the one that is fetched: mostly they are equally long.
const AHEAD: usize = 2;
/// Bytes of a slot that tasks look at: its header, and a frame's headers.
const LOOKED_AT: usize = 256;

/// Asks for memory that another core has just written, and that will be looked at soon: waiting for
/// it would cost more than most tasks do.
#[inline]
fn fetch(soon: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in soon[..soon.len().min(LOOKED_AT)].chunks(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has it, and it changes nothing that a program could see.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = soon;
}

fn word(block: &[u8], at: usize) -> u32 {
    block.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

/// `struct tpacket_block_desc`: version, offset to private data, then `struct tpacket_hdr_v1`.
const STATUS: usize = 8;
const PACKETS: usize = 12;
const FIRST: usize = 16;

const PAGE: usize = 4096;
/// Block header, slot header, address, room before the frame; generous.
const OVERHEAD: usize = 256;
const LARGEST_BLOCK: usize = 1 << 20;
/// The kernel's sizes are 32 bits, and nobody needs more.
const MOST: usize = 2 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_have_room_for_a_packet_in_each_of_two_blocks_at_least() {
        let rows = [
            (32 << 20, 256, Shape { block: 1 << 20, blocks: 32 }),
            (64 << 10, 128, Shape { block: 4096, blocks: 16 }),
            (0, 1, Shape { block: 4096, blocks: 2 }),
            (0, 262_144, Shape { block: 266_240, blocks: 2 }),
            (u64::MAX, 256, Shape { block: 1 << 20, blocks: 2048 }),
        ];
        for (memory, snap, want) in rows {
            let shape = Shape::of(ByteCount(memory), snap);
            assert_eq!(shape, want, "{memory} {snap}");
            assert!(shape.block >= snap as usize + OVERHEAD && shape.block.is_multiple_of(PAGE));
        }
    }
}
