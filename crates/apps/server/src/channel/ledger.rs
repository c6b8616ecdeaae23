//! Which datagrams have left and which wait in SCTP for its congestion window.
//!
//! SCTP tells neither, so they are counted where they come out: a packet of known overhead holds a
//! known number of chunks of one length. With one datagram waiting at most, each leaves in a packet
//! of its own.

use netaware_units::ByteCount;

/// Counts one stream's datagrams, all of one length.
#[derive(Debug)]
pub(super) struct Ledger {
    /// Bytes of a DATA chunk with its payload, padded (RFC 9260 §3.3.1).
    chunk: usize,
    written: u64,
    left: u64,
    refused: u64,
}

impl Ledger {
    pub(super) fn new(length: ByteCount) -> Self {
        let chunk = DATA_HEADER + (length.0 as usize).next_multiple_of(4);
        Self { chunk, written: 0, left: 0, refused: 0 }
    }

    /// One more was given to SCTP.
    pub(super) fn wrote(&mut self) {
        self.written += 1;
    }

    /// SCTP had no room for it.
    pub(super) fn took_back(&mut self) {
        self.written -= 1;
    }

    /// A packet came out of the stack and was handed to the system, or refused by it.
    pub(super) fn packet(&mut self, packet: &[u8], has_left: bool) {
        if packet.first() != Some(&APPLICATION_DATA) {
            return;
        }
        let chunks = packet.len().saturating_sub(DTLS_OVERHEAD + SCTP_HEADER) / self.chunk;
        let chunks = (chunks as u64).min(self.waiting());
        if has_left { self.left += chunks } else { self.refused += chunks }
    }

    /// Given to SCTP and not seen again: these wait for its window.
    pub(super) fn waiting(&self) -> u64 {
        self.written - self.left - self.refused
    }

    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Numbered, and refused by the system on their way out.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }
}

/// DTLS 1.2 with AES-GCM: record 13, nonce 8, tag 16 (RFC 6347, RFC 5288). With other ciphers it is
/// less, by fewer bytes than any chunk has.
const DTLS_OVERHEAD: usize = 13 + 8 + 16;
const SCTP_HEADER: usize = 12;
const DATA_HEADER: usize = 16;
/// Content type of a DTLS record.
const APPLICATION_DATA: u8 = 23;

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(payload: usize) -> Vec<u8> {
        vec![APPLICATION_DATA; DTLS_OVERHEAD + SCTP_HEADER + payload]
    }

    #[test]
    fn chunks_are_counted_as_they_leave_and_control_is_not() {
        let mut ledger = Ledger::new(ByteCount(50));
        ledger.packet(&packet(500), true);
        assert_eq!(ledger.left(), 0, "nothing was written yet");
        for _ in 0..5 {
            ledger.wrote();
        }
        ledger.packet(&packet(16), true);
        ledger.packet(&[22; 300], true);
        assert_eq!((ledger.waiting(), ledger.left()), (5, 0));
        ledger.packet(&packet(68), true);
        ledger.packet(&packet(2 * 68 + 16), true);
        ledger.packet(&packet(68), false);
        assert_eq!((ledger.waiting(), ledger.left(), ledger.refused()), (1, 3, 1));
    }
}
