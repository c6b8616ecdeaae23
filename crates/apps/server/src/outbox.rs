//! Bytes that wait to be sent on a control connection. Bounded: who does not read is closed, not
//! buffered for.

/// See the module.
#[derive(Debug)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
    most: usize,
}

/// The other end does not read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

impl Outbox {
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::new(), sent: 0, most: MOST }
    }

    /// From now on holds what a throughput test has to tell, which needs an admission that few have
    /// at a time.
    pub(crate) fn widen(&mut self) {
        self.most = MOST_WITH_TESTS;
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Overflow> {
        if self.waiting().len() + bytes.len() > self.most {
            return Err(Overflow);
        }
        if self.sent > 0 && self.bytes.len() + bytes.len() > self.bytes.capacity() {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// For what can wait: half of it is left to what cannot.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting().len() < self.most / 2
    }

    pub(crate) fn waiting(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }

    /// `count` of the waiting bytes have been sent.
    pub(crate) fn advance(&mut self, count: usize) {
        self.sent += count;
        if self.sent >= self.bytes.len() {
            self.clear();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.sent = 0;
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
    }
}

const MOST: usize = 64 << 10;
/// The ends of 512 streams in both directions, with longest errors, the samples of one, and a while
/// of ticks.
pub(crate) const MOST_WITH_TESTS: usize = 3 << 20;
const KEPT: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_as_they_went_in() {
        let mut outbox = Outbox::new();
        let mut out = Vec::new();
        for n in 0..2000_u32 {
            outbox.push(&n.to_be_bytes()).unwrap();
            let part = outbox.waiting().len().min(3 + (n as usize % 3));
            out.extend_from_slice(&outbox.waiting()[..part]);
            outbox.advance(part);
        }
        out.extend_from_slice(outbox.waiting());
        let want: Vec<u8> = (0..2000_u32).flat_map(u32::to_be_bytes).collect();
        assert_eq!(out, want);
    }

    #[test]
    fn who_does_not_read_overflows_at_the_bound() {
        let mut outbox = Outbox::new();
        outbox.push(&vec![0; MOST]).unwrap();
        assert_eq!(outbox.push(&[0]), Err(Overflow));
        outbox.widen();
        assert_eq!(outbox.push(&[0]), Ok(()));
        outbox.advance(MOST + 1);
        assert!(outbox.is_empty() && outbox.bytes.capacity() <= KEPT);
    }
}
