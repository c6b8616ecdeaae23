//! Bytes that may have to be sent again.
//!
//! They lie in a file in memory, in blocks: the kernel sends from there by reference (`sendfile`), so keeping costs no copy that
//! a plain socket would not make as well. A block freed last is used first, while it is in the processor's cache. It may
//! still be queued on a connection that was left: what is sent from it then are bytes that the peer has, which it drops
//! by their offsets.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::ftruncate;
use rustix::io::{pread, pwrite};

use crate::system;

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
        ftruncate(&self.file, (self.made + 1) * BLOCK)?;
        self.made += 1;
        Ok(self.made - 1)
    }

    /// The peer has everything before `offset`.
    pub(crate) fn forget_before(&mut self, offset: u64) {
        let offset = offset.min(self.end);
        let blocks = offset / BLOCK - self.begin / BLOCK;
        for _ in 0..blocks {
            self.free.extend(self.blocks.pop_front());
        }
        self.begin = self.begin.max(offset);
    }

    /// Where in the file the stream's bytes from `offset` on are, and how many of at most `most` are there in a row; `None`
    /// where they are no longer kept.
    pub(crate) fn piece(&self, offset: u64, most: u32) -> Option<(u64, usize)> {
        if offset < self.first_block() || offset >= self.end {
            return None;
        }
        let (at, room) = self.place(offset);
        Some((at, room.min(u64::from(most)).min(self.end - offset) as usize))
    }

    /// Copies the bytes from `offset` on, which are kept.
    pub(crate) fn copy(&self, mut offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < out.len() {
            let left = (out.len() - done) as u32;
            let Some((at, length)) = self.piece(offset, left) else { return Ok(()) };
            let read = pread(&self.file, &mut out[done..done + length], at)?;
            done += read;
            offset += read as u64;
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
        assert_eq!(kept.piece(end, 1), None);
        assert_eq!(kept.piece(0, 1), None);
    }

    #[test]
    fn a_piece_ends_with_its_block() {
        let mut kept = Kept::new().unwrap();
        kept.append(&pattern(0, 300_000)).unwrap();
        assert_eq!(kept.piece(BLOCK - 10, 1000).map(|piece| piece.1), Some(10));
        assert_eq!(kept.piece(299_999, 1000).map(|piece| piece.1), Some(1));
    }
}
