//! A distribution of delays in few bytes: about two and a half per bin instead of JSON's fifteen.
//!
//! Numbers are in base 128, low digits first, the top bit set on all but the last; signed ones are
//! folded (0, -1, 1, -2, ...). Bins are (distance from the one before, count). What is read back is
//! checked as if it came from the network: the file may be damaged.

use netaware_record::Histogram;
use netaware_record::passive::DelayStatistics;
use netaware_units::Span;

/// First byte of each; another one means another layout.
const LAYOUT: u8 = 1;

/// Bins at most: HDR of three digits up to an hour has 33,000.
const MOST_BINS: u64 = 1 << 17;

/// The bytes of a distribution in HDR bins of three digits.
pub(super) fn emit(delays: &DelayStatistics) -> Vec<u8> {
    let bins = &delays.histogram.bins;
    let mut out = Vec::with_capacity(48 + 3 * bins.len());
    out.push(LAYOUT);
    put(&mut out, delays.count.into());
    put(&mut out, fold(delays.min.0.into()));
    put(&mut out, fold(delays.max.0.into()));
    put(&mut out, fold(delays.sum_ns));
    out.extend_from_slice(&delays.sum_squares.to_le_bytes());
    put(&mut out, delays.histogram.underflow.into());
    put(&mut out, delays.histogram.overflow.into());
    put(&mut out, bins.len() as u128);
    let mut last = 0;
    for (edge, n) in bins {
        put(&mut out, edge.wrapping_sub(last).into());
        put(&mut out, (*n).into());
        last = *edge;
    }
    out
}

/// The distribution back; `None` if these are not its bytes.
pub(super) fn parse(bytes: &[u8]) -> Option<DelayStatistics> {
    let (layout, mut rest) = bytes.split_first()?;
    let from = &mut rest;
    if *layout != LAYOUT {
        return None;
    }
    let count = get_u64(from)?;
    let min = Span(i64::try_from(unfold(get(from)?)).ok()?);
    let max = Span(i64::try_from(unfold(get(from)?)).ok()?);
    let sum_ns = unfold(get(from)?);
    let (squares, after) = from.split_first_chunk::<8>()?;
    *from = after;
    let (underflow, overflow, bins) = (get_u64(from)?, get_u64(from)?, get_u64(from)?);
    // Two bytes is the least that a bin takes.
    if bins > MOST_BINS || bins > from.len() as u64 / 2 {
        return None;
    }
    let mut edge = 0_u64;
    let mut bin = || {
        edge = edge.wrapping_add(get_u64(from)?);
        Some((edge, get_u64(from)?))
    };
    let bins: Option<Vec<(u64, u64)>> = (0..bins).map(|_| bin()).collect();
    let histogram = Histogram { bins: bins?, digits: Some(3), underflow, overflow, ..Histogram::default() };
    let sum_squares = f64::from_le_bytes(*squares);
    rest.is_empty().then_some(DelayStatistics { count, min, max, sum_ns, sum_squares, histogram })
}

fn fold(n: i128) -> u128 {
    ((n << 1) ^ (n >> 127)).cast_unsigned()
}

fn unfold(n: u128) -> i128 {
    (n >> 1).cast_signed() ^ -(n & 1).cast_signed()
}

fn put(out: &mut Vec<u8>, mut n: u128) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn get(from: &mut &[u8]) -> Option<u128> {
    let mut n = 0_u128;
    for shift in (0..128).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        let digit = u128::from(byte & 0x7f);
        // The nineteenth digit has room for two bits.
        if shift == 126 && digit > 3 {
            return None;
        }
        n |= digit << shift;
        if byte & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}

fn get_u64(from: &mut &[u8]) -> Option<u64> {
    u64::try_from(get(from)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_statistics() -> impl Strategy<Value = DelayStatistics> {
        let bins = prop::collection::btree_map(any::<u64>(), any::<u64>(), 0..50);
        let numbers =
            (any::<u64>(), any::<i64>(), any::<i64>(), any::<i128>(), -1e30..1e30_f64, any::<u64>());
        (numbers, bins).prop_map(|((count, min, max, sum_ns, sum_squares, underflow), bins)| {
            DelayStatistics {
                count,
                min: Span(min),
                max: Span(max),
                sum_ns,
                sum_squares,
                histogram: Histogram {
                    bins: bins.into_iter().collect(),
                    digits: Some(3),
                    underflow,
                    ..Histogram::default()
                },
            }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(delays in any_statistics()) {
            prop_assert_eq!(parse(&emit(&delays)), Some(delays));
        }

        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
            let _ = parse(&[&[LAYOUT], bytes.as_slice()].concat());
        }

        #[test]
        fn a_piece_is_not_the_whole(delays in any_statistics(), cut in any::<prop::sample::Index>()) {
            let bytes = emit(&delays);
            prop_assert_eq!(parse(&bytes[..cut.index(bytes.len())]), None);
        }
    }
}
