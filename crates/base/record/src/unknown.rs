//! Figures that nobody measured.
//!
//! They are absent. Older versions wrote zero, which for these figures was never measured: a round
//! trip takes time, and a segment has a size.

use serde::{Deserialize, Deserializer};

/// Reads a figure, or an end, of which zero (the default) means that nobody told.
pub(crate) fn zero_is_unknown<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default + PartialEq,
{
    Ok(Option::<T>::deserialize(from)?.filter(|value| *value != T::default()))
}

#[cfg(test)]
mod tests {
    use netaware_units::{ByteCount, Span};

    use crate::{CpuUse, SenderTick, StreamEnd, TcpEnd};

    #[test]
    fn the_zero_of_older_versions_is_read_as_unknown_and_not_as_a_round_trip_of_0_ns() {
        let old = r#"{"end":9,"length":9,"bytes":7,"retransmits":0,"rtt":0,"cwnd":0}"#;
        let tick: SenderTick = serde_json::from_str(old).unwrap();
        assert_eq!((tick.rtt, tick.cwnd, tick.acked), (None, None, None));
        assert_eq!((tick.bytes, tick.retransmits), (ByteCount(7), Some(0)));
        let known: SenderTick = serde_json::from_str(&old.replace("\"rtt\":0", "\"rtt\":5")).unwrap();
        assert_eq!(known.rtt, Some(Span(5)));
    }

    #[test]
    fn what_nobody_measured_is_written_as_nothing_and_not_as_zero() {
        let json = serde_json::to_value(StreamEnd::default()).unwrap();
        for name in ["retransmits", "rtt", "min_rtt", "cwnd", "mss", "busy", "bytes_sent"] {
            assert_eq!(json.get(name), None, "{name}");
        }
        let end = TcpEnd { cpu: Some(CpuUse { cores: 2, ..CpuUse::default() }), ..TcpEnd::default() };
        let json = serde_json::to_value(&end).unwrap();
        assert_eq!(json["cpu"].get("process_user"), None);
        assert_eq!(serde_json::from_value::<TcpEnd>(json).unwrap(), end);
        let never_reported = serde_json::to_value(TcpEnd::default()).unwrap();
        assert_eq!(never_reported.get("cpu"), None);
    }
}
