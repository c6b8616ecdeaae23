//! Routers crossed, guessed from the TTL that is left.
//!
//! **Measures** nothing: it subtracts. **Assumes** that the sender started at the next common
//! initial value at or above what arrived: 32, 64, 128 or 255. **Biased** when a host starts
//! elsewhere, and low where a tunnel hides routers. **Published**: RFC 791 (each router takes at
//! least one off), RFC 8200 §3; the initial values as collected by Jin, Wang, Shin, "Hop-count
//! filtering", CCS 2003. Paths of more than 32 hops exist but are rarer than senders that start at
//! 32.

/// Routers between sender and receiver of a packet that arrived with `ttl`; `None` for 0, which no
/// packet arrives with.
pub fn from_ttl(ttl: u8) -> Option<u8> {
    let initial = INITIAL_TTLS.into_iter().find(|initial| ttl <= *initial)?;
    (ttl > 0).then(|| initial - ttl)
}

/// Old Windows; Linux, BSD, macOS; Windows; routers and Solaris.
const INITIAL_TTLS: [u8; 4] = [32, 64, 128, 255];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_common_initial_value_is_assumed() {
        let rows =
            [(64, Some(0)), (63, Some(1)), (52, Some(12)), (128, Some(0)), (110, Some(18)), (255, Some(0))];
        let more =
            [(240, Some(15)), (32, Some(0)), (30, Some(2)), (1, Some(31)), (0, None), (129, Some(126))];
        for (ttl, want) in rows.into_iter().chain(more) {
            assert_eq!(from_ttl(ttl), want, "ttl {ttl}");
        }
    }
}
