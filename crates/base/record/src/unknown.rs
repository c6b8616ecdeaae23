//! Figures that nobody measured.
//!
//! They are absent. Older versions wrote zero, which for these figures was never measured: a round
//! trip takes time, and a segment has a size.

use serde::{Deserialize, Deserializer};

use crate::{CpuUse, UdpReceiverEnd};

/// Reads a figure, or an end, of which zero (the default) means that nobody told.
pub(crate) fn zero_is_unknown<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default + PartialEq,
{
    Ok(Option::<T>::deserialize(from)?.filter(|value| *value != T::default()))
}

/// Reads the CPU time of an end: an empty one of older versions, in which zeros stand and not even
/// a core is counted, was never measured.
pub(crate) fn cpu<'de, D: Deserializer<'de>>(from: D) -> Result<Option<CpuUse>, D::Error> {
    let told = Option::<CpuUse>::deserialize(from)?;
    Ok(told.filter(|cpu| cpu.cores > 0 || cpu.busiest_thread.is_some()))
}

/// Reads the receiving end of a UDP stream: one that neither received anything nor used any CPU is
/// what older versions wrote of an end that never reported.
pub(crate) fn udp_receiver<'de, D>(from: D) -> Result<Option<UdpReceiverEnd>, D::Error>
where
    D: Deserializer<'de>,
{
    let told = Option::<UdpReceiverEnd>::deserialize(from)?;
    Ok(told.filter(|end| end.received > 0 || end.cpu.is_some() || end.receive_buffer.is_some()))
}

#[cfg(test)]
mod tests {
    use netaware_units::{ByteCount, Span};

    use crate::{
        CpuUse, Health, HostDrops, LossSplit, SenderTick, StreamEnd, StreamSample, TcpEnd, UdpReceiverEnd,
        UdpResult,
    };

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
        let streams = ["retransmits", "rtt", "min_rtt", "cwnd", "mss", "busy", "bytes_sent"];
        for name in streams.iter().chain(&["first_read", "thread_cpu", "thread_waiting"]) {
            assert_eq!(json.get(name), None, "{name}");
        }
        let end = TcpEnd { cpu: Some(CpuUse { cores: 2, ..CpuUse::default() }), ..TcpEnd::default() };
        let json = serde_json::to_value(&end).unwrap();
        assert_eq!(json["cpu"].get("process_user"), None);
        assert_eq!(serde_json::from_value::<TcpEnd>(json).unwrap(), end);
        let never_reported = serde_json::to_value(TcpEnd::default()).unwrap();
        assert_eq!(never_reported.get("cpu"), None);
    }

    #[test]
    fn what_nobody_counted_at_a_receiver_is_written_as_nothing_and_not_as_zero() {
        let nothing = serde_json::json!({});
        assert_eq!(serde_json::to_value(HostDrops::default()).unwrap(), nothing);
        assert_eq!(serde_json::to_value(Health::default()).unwrap(), nothing);
        let json = serde_json::to_value(UdpReceiverEnd::default()).unwrap();
        let counts = ["duplicates", "reordered", "reorder_extent", "foreign", "jitter", "calls", "cpu"];
        for name in counts.iter().chain(&["receive_buffer"]) {
            assert_eq!(json.get(*name), None, "{name}");
        }
        let json = serde_json::to_value(LossSplit { unknown: 7, ..LossSplit::default() }).unwrap();
        assert_eq!(json, serde_json::json!({"lost": 0, "unknown": 7}));
        let json = serde_json::to_value(StreamSample { at: Span(3), ..StreamSample::default() }).unwrap();
        assert_eq!(json, serde_json::json!({"at": 3}));
    }

    #[test]
    fn drops_add_up_as_far_as_somebody_counted_them() {
        let rows = [
            ((None, None, None), None),
            ((Some(0), None, None), Some(0)),
            ((Some(4), Some(6), Some(3)), Some(9)),
            ((Some(7), Some(6), None), Some(7)),
            ((None, None, Some(2)), Some(2)),
            ((Some(u64::MAX), None, Some(2)), Some(u64::MAX)),
        ];
        for ((socket, stack, nic), want) in rows {
            assert_eq!(HostDrops { socket, stack, nic }.total(), want, "{socket:?} {stack:?} {nic:?}");
        }
    }

    #[test]
    fn an_end_that_older_versions_wrote_as_zeros_is_read_as_one_that_never_reported() {
        let cpu = r#"{"process_user":0.0,"process_system":0.0,"busiest_thread":0.0,"busiest_core":null,
            "host":null,"softirq":null,"steal":null,"cores":0}"#;
        let receiver = format!(
            r#"{{"outcome":"complete","elapsed":0,"received":0,"bytes":0,"duplicates":0,"reordered":0,
            "highest":0,"drops":{{"socket":0,"stack":0,"nic":0}},"jitter":0,"calls":0,"cpu":{cpu}}}"#
        );
        let sender = format!(
            r#"{{"outcome":"complete","elapsed":0,"sent":0,"not_sent":0,"bytes":0,"late":0,
            "worst_lateness":0,"calls":0,"cpu":{cpu}}}"#
        );
        let old = format!(
            r#"{{"pedigree":{{"method":"udp-stream","layer":"payload","direction":"reverse","version":"IPv4",
            "clock":"application","uncertainty":""}},"outcome":"failed","payload":1472,"sent_rate":0,"goodput":0,
            "exchanges":{{"clearing":0,"fetching":0}},"sent":0,"not_sent":0,"received":0,"packets_per_second":0.0,
            "loss":{{"lost":0,"host":0,"network":0}},"duplicates":0,"reordered":0,"sender":{sender},
            "receiver":{receiver},"limit":{{"by":"unknown","side":"unknown","evidence":""}},
            "health":{{"late_sends":0,"worst_lateness":0,"not_sent":0,"host_drops":0,"stamp_fallbacks":0}}}}"#
        );
        let read: UdpResult = serde_json::from_str(&old).unwrap();
        assert_eq!((&read.sender, &read.receiver), (&None, &None));
        assert_eq!((read.sent_rate, read.goodput, read.packets_per_second), (None, None, None));
        let measured =
            old.replace("\"received\":0", "\"received\":5").replace("\"goodput\":0", "\"goodput\":9");
        let read: UdpResult = serde_json::from_str(&measured).unwrap();
        assert_eq!((read.goodput.map(|rate| rate.0), read.received), (Some(9), 5));
        let receiver = read.receiver.unwrap();
        assert_eq!((receiver.received, receiver.drops.socket, receiver.cpu), (5, Some(0), None));
        // Written again it is the same.
        let again = serde_json::to_value(&receiver).unwrap();
        assert_eq!(serde_json::from_value::<UdpReceiverEnd>(again).unwrap(), receiver);
    }
}
