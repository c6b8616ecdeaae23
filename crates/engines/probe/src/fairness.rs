//! Were parallel streams treated alike? Jain's fairness index.
//!
//! **Measures** `(Σx)² / (n Σx²)` of the streams' bytes: 1 when all are equal, `1/n` when one has
//! everything. **Assumes** that all streams ran for the same time. **Biased** high for few streams
//! and over long times, which even out what a second would show. **Published**: Jain, Chiu, Hawe,
//! DEC-TR-301, 1984; RFC 5166 §2.3.3.

use netaware_units::ByteCount;

/// The index of what each stream carried; `None` for fewer than two streams, or when nothing was
/// carried.
pub fn jain(bytes: &[ByteCount]) -> Option<f64> {
    let shares = || bytes.iter().map(|bytes| bytes.0 as f64);
    let (sum, squares) = (shares().sum::<f64>(), shares().map(|x| x * x).sum::<f64>());
    (bytes.len() > 1 && squares > 0.0).then(|| sum * sum / (bytes.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_runs_from_one_nth_to_one() {
        let rows: [(&[u64], Option<f64>); 6] = [
            (&[5, 5, 5, 5], Some(1.0)),
            (&[9, 0, 0, 0], Some(0.25)),
            (&[3, 1], Some(0.8)),
            (&[7], None),
            (&[0, 0], None),
            (&[], None),
        ];
        for (bytes, want) in rows {
            let bytes: Vec<_> = bytes.iter().copied().map(ByteCount).collect();
            assert_eq!(jain(&bytes), want, "{bytes:?}");
        }
    }
}
