//! Bytes that came before anybody read them, or beyond a gap.

use std::collections::VecDeque;

/// By their offsets; nothing before `read`.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// The first one holds `read`; absent where nothing came yet.
    blocks: VecDeque<Option<Box<[u8]>>>,
    read: u64,
    spare: Option<Box<[u8]>>,
}

impl Inbox {
    /// Where to put bytes that come from `offset` on: at least one, at most `most`. Not before what
    /// was read.
    pub(crate) fn slot(&mut self, offset: u64, most: usize) -> &mut [u8] {
        let index = (offset / BLOCK - self.read / BLOCK) as usize;
        if self.blocks.len() <= index {
            self.blocks.resize_with(index + 1, || None);
        }
        let within = (offset % BLOCK) as usize;
        let until = (within + most).min(BLOCK as usize);
        let spare = &mut self.spare;
        let block = self.blocks[index]
            .get_or_insert_with(|| spare.take().unwrap_or_else(|| vec![0; BLOCK as usize].into()));
        &mut block[within..until]
    }

    /// Copies what is read now; `available` bytes are here without a gap.
    pub(crate) fn read(&mut self, available: u64, out: &mut [u8]) -> usize {
        let mut done = 0;
        while done < out.len() && (done as u64) < available {
            let within = (self.read % BLOCK) as usize;
            let most = (BLOCK as usize - within).min(out.len() - done);
            let count = most.min((available - done as u64) as usize);
            // What is not here came at once, to somebody who read it then.
            let Some(Some(block)) = self.blocks.front() else { break };
            out[done..done + count].copy_from_slice(&block[within..within + count]);
            done += count;
            self.skip(count as u64);
        }
        done
    }

    /// So many bytes are read, or were read without coming through here.
    pub(crate) fn skip(&mut self, bytes: u64) {
        let passed = (self.read + bytes) / BLOCK - self.read / BLOCK;
        for _ in 0..passed {
            if let Some(Some(block)) = self.blocks.pop_front() {
                self.spare = Some(block);
            }
        }
        self.read += bytes;
    }
}

const BLOCK: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn put(inbox: &mut Inbox, mut offset: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let slot = inbox.slot(offset, bytes.len());
            let count = slot.len();
            slot.copy_from_slice(&bytes[..count]);
            offset += count as u64;
            bytes = &bytes[count..];
        }
    }

    #[test]
    fn what_came_out_of_order_is_read_in_order() {
        let bytes: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
        let mut inbox = Inbox::default();
        put(&mut inbox, 200_000, &bytes[200_000..]);
        // These came at once, to somebody who read them.
        inbox.skip(70_000);
        put(&mut inbox, 70_000, &bytes[70_000..200_000]);
        let mut out = vec![0; 300_000];
        assert_eq!(inbox.read(230_000, &mut out), 230_000);
        assert_eq!(out[..230_000], bytes[70_000..]);
        assert_eq!(inbox.read(0, &mut out), 0);
    }
}
