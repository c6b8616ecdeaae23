//! A window on a stream: as many bytes as one record needs, never more than a bound.

use std::io::{ErrorKind, Read};

use super::{FileError, LONGEST};

pub(super) struct Buffer<R> {
    source: R,
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
}

/// One frame, and room for what stands around it.
const MOST: usize = LONGEST as usize + (64 << 10);
const FIRST: usize = 64 << 10;

impl<R: Read> Buffer<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, bytes: vec![0; FIRST], begin: 0, end: 0 }
    }

    /// The next `length` bytes, which stay unread until [`Self::pass`].
    pub(super) fn peek(&mut self, length: usize) -> Result<&[u8], FileError> {
        if length > MOST {
            return Err(FileError::TooLong(length as u32));
        }
        if self.end - self.begin < length {
            self.fill(length)?;
        }
        Ok(&self.bytes[self.begin..self.begin + length])
    }

    /// `N` bytes, `at` bytes ahead.
    pub(super) fn array<const N: usize>(&mut self, at: usize) -> Result<&[u8; N], FileError> {
        let bytes = self.peek(at + N)?;
        bytes[at..].first_chunk().ok_or(FileError::Cut)
    }

    /// Whether nothing is left.
    pub(super) fn is_over(&mut self) -> Result<bool, FileError> {
        match self.peek(1) {
            Ok(_) => Ok(false),
            Err(FileError::Cut) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Forgets bytes that were peeked at.
    pub(super) fn pass(&mut self, length: usize) {
        self.begin = (self.begin + length).min(self.end);
    }

    /// Bytes that were peeked at, and passes them.
    pub(super) fn take(&mut self, length: usize) -> &[u8] {
        let begin = self.begin;
        self.pass(length);
        &self.bytes[begin..self.begin]
    }

    /// Passes over bytes that need not fit.
    pub(super) fn skip(&mut self, mut length: usize) -> Result<(), FileError> {
        while length > 0 {
            let step = length.min(FIRST);
            self.peek(step)?;
            self.pass(step);
            length -= step;
        }
        Ok(())
    }

    fn fill(&mut self, length: usize) -> Result<(), FileError> {
        self.bytes.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        if self.bytes.len() < length {
            self.bytes.resize(length.next_power_of_two().min(MOST), 0);
        }
        while self.end < length {
            match self.source.read(&mut self.bytes[self.end..]) {
                Ok(0) => return Err(FileError::Cut),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(FileError::Read(error)),
            }
        }
        Ok(())
    }
}
