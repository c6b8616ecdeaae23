//! Payload that can be checked: bytes that follow from their position, so that an altered or
//! misplaced answer shows.
//!
//! Not random and no secret: what matters is that filling and checking cost no more than a copy.
//! The table is as long as a prime, so that a block moved by any power of two does not fit its new
//! place. A fault that moves bytes by exactly a multiple of [`PERIOD`] goes unnoticed.

/// The pattern repeats after so many bytes.
pub const PERIOD: usize = 4093;

/// Fills `out` with the bytes of exchange number `exchange` from position `offset` of its payload
/// on.
///
/// Only the lowest eight bits of `exchange` count, since the shortest requests carry no more of it.
#[inline]
pub fn fill(out: &mut [u8], exchange: u64, offset: u64) {
    let mut at = place(exchange, offset);
    for chunk in out.chunks_mut(PERIOD) {
        chunk.copy_from_slice(&TABLE[at..at + chunk.len()]);
        // A full chunk ends where it began, one table further.
        at = (at + chunk.len()) % PERIOD;
    }
}

/// Whether `bytes` are what [`fill`] would have written.
#[inline]
pub fn matches(bytes: &[u8], exchange: u64, offset: u64) -> bool {
    let mut at = place(exchange, offset);
    bytes.chunks(PERIOD).all(|chunk| {
        let same = *chunk == TABLE[at..at + chunk.len()];
        at = (at + chunk.len()) % PERIOD;
        same
    })
}

/// Exchanges start 17 bytes apart, so that the answer to a neighbour does not fit.
fn place(exchange: u64, offset: u64) -> usize {
    let start = (exchange & 0xff) * 17 + offset % PERIOD as u64;
    (start % PERIOD as u64) as usize
}

/// Twice the period, so that a chunk of any length up to it can be taken from any place in it.
static TABLE: [u8; 2 * PERIOD] = table();

const fn table() -> [u8; 2 * PERIOD] {
    let mut table = [0; 2 * PERIOD];
    // Marsaglia's xorshift64: no two neighbourhoods alike is all that is asked of it.
    let mut state: u64 = 0x6e65_7461_7761_7265;
    let mut at = 0;
    while at < PERIOD {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        table[at] = state as u8;
        table[at + PERIOD] = state as u8;
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(length: usize, exchange: u64, offset: u64) -> Vec<u8> {
        let mut out = vec![0; length];
        fill(&mut out, exchange, offset);
        out
    }

    #[test]
    fn pieces_make_the_same_bytes_as_the_whole() {
        let whole = filled(20_000, 77, 3);
        for cut in [0, 1, 4092, 4093, 4094, 8186, 12_345] {
            let mut pieces = filled(cut, 77, 3);
            pieces.extend(filled(20_000 - cut, 77, 3 + cut as u64));
            assert_eq!(pieces, whole, "cut at {cut}");
            assert!(matches(&whole[cut..], 77, 3 + cut as u64));
        }
    }

    #[test]
    fn an_altered_byte_or_another_exchange_does_not_fit() {
        let bytes = filled(10_000, 5, 0);
        assert!(matches(&bytes, 5, 0) && matches(&[], 5, 0));
        for at in [0, 4093, 9_999] {
            let mut altered = bytes.clone();
            altered[at] ^= 1;
            assert!(!matches(&altered, 5, 0), "byte {at}");
        }
        for other in (0..256).filter(|other| *other != 5) {
            assert!(!matches(&bytes[..64], other, 0), "exchange {other}");
        }
        for shift in (0..16).map(|power| 1 << power) {
            assert!(!matches(&bytes[..64], 5, shift), "moved by {shift}");
        }
    }

    #[test]
    fn only_eight_bits_of_the_number_count() {
        assert!(matches(&filled(100, 0x1_0007, 9), 7, 9));
    }
}
