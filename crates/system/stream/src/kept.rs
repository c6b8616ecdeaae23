//! Bytes that may have to be sent again.
//!
//! They lie in a file in memory, in blocks: the kernel sends from there by reference (`sendfile`),
//! so keeping costs no copy that a plain socket would not make as well. A block freed last is used
//! first, while it is in the processor's cache. It may still be queued on a connection that was
//! left: what is sent from it then are bytes that the peer has, which it drops by their offsets.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::ftruncate;
use rustix::io::{pread, pwrite};

use crate::system::{self, LARGE_PAGE};

/// Bytes of the stream from `begin` to `end`.
#[derive(Debug)]
pub(crate) struct Kept {
    file: OwnedFd,
    /// Where in the file each block of the stream is, beginning with the one that holds `begin`.
    blocks: VecDeque<u64>,
    free: Vec<u64>,
    made: u64,
    begin: u64,
    end: u64,
}

/// Bytes of the stream, in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// There in the file.
    Kept { at: u64, length: usize },
    /// The peer has had them for so long that their place may be another's; what follows is kept.
    Forgotten { length: usize },
}

impl Kept {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            file: system::file_in_memory()?,
            blocks: VecDeque::new(),
            free: Vec::new(),
            made: 0,
            begin: 0,
            end: 0,
        })
    }

    pub(crate) fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Bytes kept.
    pub(crate) fn len(&self) -> u64 {
        self.end - self.begin
    }

    /// Puts bytes behind the others.
    ///
    /// # Errors
    /// No memory.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let before = self.end;
        let appended = self.append_parts(bytes);
        if appended.is_err() {
            self.end = before;
        }
        appended
    }

    fn append_parts(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.end >= self.first_block() + self.blocks.len() as u64 * BLOCK {
                let block = self.take_block()?;
                self.blocks.push_back(block);
            }
            let (at, room) = self.place(self.end);
            let part = bytes.len().min(room as usize);
            let written = pwrite(&self.file, &bytes[..part], at)?;
            self.end += written as u64;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    fn take_block(&mut self) -> io::Result<u64> {
        if let Some(block) = self.free.pop() {
            return Ok(block);
        }
        let first = self.made;
        let count = if first < SMALL { 1 } else { LARGE_PAGE / BLOCK };
        ftruncate(&self.file, (first + count) * BLOCK)?;
        if first >= SMALL {
            // Where there is no large page, it is done in small ones.
            system::in_large_page(&self.file, first * BLOCK);
        }
        self.made += count;
        self.free.extend((first + 1..self.made).rev());
        Ok(first)
    }

    /// The first blocks are for streams that never keep much: where there are others, these are
    /// given back.
    fn free_block(&mut self, block: u64) {
        if block >= SMALL || self.made <= SMALL {
            self.free.push(block);
        } else if system::give_back(&self.file, block * BLOCK, BLOCK).is_err() {
            self.free.insert(0, block);
        }
    }

    /// The peer has everything before `offset`.
    pub(crate) fn forget_before(&mut self, offset: u64) {
        let offset = offset.min(self.end);
        let blocks = offset / BLOCK - self.begin / BLOCK;
        for _ in 0..blocks {
            if let Some(block) = self.blocks.pop_front() {
                self.free_block(block);
            }
        }
        self.begin = self.begin.max(offset);
    }

    /// The stream's bytes from `offset` on, which were put here once: how many of at most `most`
    /// are to be had in a row, and where.
    pub(crate) fn piece(&self, offset: u64, most: u32) -> Piece {
        debug_assert!(offset < self.end, "bytes that never came");
        let first = self.first_block();
        if offset < first {
            return Piece::Forgotten { length: (first - offset).min(u64::from(most)) as usize };
        }
        let (at, room) = self.place(offset);
        Piece::Kept { at, length: room.min(u64::from(most)).min(self.end - offset) as usize }
    }

    /// Copies the bytes from `offset` on; those that are forgotten are left as they are.
    pub(crate) fn copy(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < out.len() {
            let left = (out.len() - done) as u32;
            done += match self.piece(offset + done as u64, left) {
                Piece::Kept { at, length } => pread(&self.file, &mut out[done..done + length], at)?,
                Piece::Forgotten { length } => length,
            };
        }
        Ok(())
    }

    /// Of the stream, where the first block begins.
    fn first_block(&self) -> u64 {
        self.begin / BLOCK * BLOCK
    }

    /// In the file, and how far its block goes from there.
    fn place(&self, offset: u64) -> (u64, u64) {
        let block = self.blocks[(offset / BLOCK - self.begin / BLOCK) as usize];
        let within = offset % BLOCK;
        (block * BLOCK + within, BLOCK - within)
    }
}

/// Large enough that a system call for each costs nothing, small enough to stay in a cache.
const BLOCK: u64 = 256 * 1024;
/// Blocks in pages of the usual size; a stream that needs more sends much, and gets large ones.
const SMALL: u64 = LARGE_PAGE / BLOCK;

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(from: u64, count: usize) -> Vec<u8> {
        (from..from + count as u64).map(|n| (n % 251) as u8).collect()
    }

    #[test]
    fn bytes_stay_until_they_are_forgotten_and_blocks_are_used_again() {
        let mut kept = Kept::new().unwrap();
        let mut end = 0;
        for round in 0..50_u64 {
            let count = 100_000 + (round * 7919 % 90_000) as usize;
            kept.append(&pattern(end, count)).unwrap();
            end += count as u64;
            kept.forget_before(end.saturating_sub(300_000));
            let from = end - 200_000.min(end);
            let mut out = vec![0; (end - from) as usize];
            kept.copy(from, &mut out).unwrap();
            assert_eq!(out, pattern(from, out.len()));
        }
        assert!(kept.made <= 4, "{} blocks for 300 kB", kept.made);
        let first = kept.first_block();
        assert_eq!(kept.piece(0, 1), Piece::Forgotten { length: 1 });
        assert_eq!(kept.piece(first - 10, 1000), Piece::Forgotten { length: 10 });
        let mut out = vec![0; 1000];
        kept.copy(first - 10, &mut out).unwrap();
        assert_eq!((&out[..10], &out[10..]), (&[0; 10][..], &pattern(first, 990)[..]));
    }

    #[test]
    fn bytes_are_the_same_in_large_pages_and_small_ones_are_given_back() {
        let mut kept = Kept::new().unwrap();
        let all = pattern(0, 6_000_000);
        kept.append(&all).unwrap();
        assert_eq!(kept.made, 3 * SMALL);
        let mut out = vec![0; all.len()];
        kept.copy(0, &mut out).unwrap();
        assert!(out == all);
        kept.forget_before(6_000_000);
        let small = kept.free.iter().filter(|block| **block < SMALL).count();
        assert_eq!((small, kept.free.len() as u64 + kept.blocks.len() as u64), (0, 2 * SMALL));
        let status = rustix::fs::fstat(&kept.file).unwrap();
        assert!(status.st_blocks as u64 * 512 <= 2 * LARGE_PAGE, "{} blocks on", status.st_blocks);
        kept.append(&pattern(6_000_000, 3_000_000)).unwrap();
        let mut out = vec![0; 3_000_000];
        kept.copy(6_000_000, &mut out).unwrap();
        assert!(out == pattern(6_000_000, 3_000_000) && kept.made == 3 * SMALL);
    }

    #[test]
    fn a_piece_ends_with_its_block() {
        let mut kept = Kept::new().unwrap();
        kept.append(&pattern(0, 300_000)).unwrap();
        assert_eq!(kept.piece(BLOCK - 10, 1000), Piece::Kept { at: BLOCK - 10, length: 10 });
        assert_eq!(kept.piece(299_999, 1000), Piece::Kept { at: 299_999, length: 1 });
    }
}
