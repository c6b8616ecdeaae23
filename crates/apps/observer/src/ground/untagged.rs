//! Filters of single tasks, run on frames as the kernel's own filters see them: without the
//! outermost VLAN tag.
//!
//! The kernel takes that tag out of a frame before it runs filters, and the capture puts it back. A
//! task's filter must not decide otherwise than the kernel would: which of the two runs depends on
//! what other tasks there are.

use std::cell::RefCell;

use crate::watch::station::Matcher;

/// `whole`, run on each frame without its outermost tag.
pub(super) fn behind(whole: Matcher) -> Matcher {
    // One for all frames: tagged ones may be all there are.
    let copy = RefCell::new(Vec::new());
    Box::new(move |frame, wire_length| {
        if !is_tagged(frame) {
            return whole(frame, wire_length);
        }
        let mut bare = copy.borrow_mut();
        bare.clear();
        bare.extend_from_slice(&frame[..ADDRESSES]);
        bare.extend_from_slice(&frame[ADDRESSES + TAG..]);
        whole(&bare, wire_length.saturating_sub(TAG as u32))
    })
}

fn is_tagged(frame: &[u8]) -> bool {
    frame.len() >= ADDRESSES + TAG && KINDS.contains(&[frame[ADDRESSES], frame[ADDRESSES + 1]])
}

/// Both addresses of an Ethernet frame, bytes.
const ADDRESSES: usize = 12;
/// A tag, bytes.
const TAG: usize = 4;
/// 802.1Q and 802.1ad: what the kernel takes out.
const KINDS: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];

#[cfg(test)]
mod tests {
    use super::*;

    /// Two addresses, then `rest`.
    fn frame(rest: &[u8]) -> Vec<u8> {
        [&[2; 12][..], rest].concat()
    }

    /// Wants IPv4 behind the addresses, in a frame of 100 bytes.
    fn plain() -> Matcher {
        Box::new(|frame, wire_length| frame.get(12..14) == Some(&[8, 0]) && wire_length == 100)
    }

    #[test]
    fn a_filter_that_does_not_ask_for_tags_runs_on_the_frame_without_the_outermost() {
        let matcher = behind(plain());
        let rows: [(&[u8], u32, bool); 6] = [
            (&[8, 0, 0x45], 100, true),
            (&[0x81, 0, 0, 7, 8, 0, 0x45], 104, true),
            (&[0x88, 0xa8, 0, 7, 8, 0, 0x45], 104, true),
            // The inner of two stays, as for the kernel.
            (&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 8, 0], 108, false),
            (&[0x86, 0xdd, 0x60], 100, false),
            (&[0x81, 0, 0], 100, false),
        ];
        for (n, (rest, wire_length, want)) in rows.into_iter().enumerate() {
            assert_eq!(matcher(&frame(rest), wire_length), want, "row {n}");
        }
    }
}
