//! Figures that nobody measured, for peers of older versions.
//!
//! They are absent in our own structures. Versions before that demand a number for some of them and
//! take zero for unknown, so zero is what is sent. Where zero is never a true value, who reads it
//! here takes it for unknown, too; where it is one, the report names what was filled in
//! (`untold`).

use netaware_record::{SenderTick, StreamEnd, StreamSample};
use serde::ser::{Error, SerializeSeq as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::EndReport;

pub(super) fn streams<S: Serializer>(streams: &[StreamEnd], to: S) -> Result<S::Ok, S::Error> {
    const DEMANDED: &[&str] = &[
        "retransmits",
        "rtt",
        "rtt_var",
        "min_rtt",
        "cwnd",
        "send_window",
        "mss",
        "path_mtu",
        "busy",
        "window_limited",
        "buffer_limited",
        "send_buffer",
        "receive_buffer",
        "thread_cpu",
    ];
    filled(streams, DEMANDED, to)
}

pub(super) fn sender_ticks<S: Serializer>(ticks: &[SenderTick], to: S) -> Result<S::Ok, S::Error> {
    filled(ticks, &["retransmits", "rtt", "cwnd"], to)
}

pub(super) fn samples<S: Serializer>(samples: &[StreamSample], to: S) -> Result<S::Ok, S::Error> {
    filled(samples, &["acked", "cwnd", "rtt", "retransmits"], to)
}

/// A report has what every end of its kind has, and parts that are demanded whole.
pub(super) fn report<S: Serializer>(report: &EndReport, to: S) -> Result<S::Ok, S::Error> {
    let mut value = serde_json::to_value(report).map_err(S::Error::custom)?;
    if let EndReport::UdpReceiver(_) = report {
        let mut untold = Vec::new();
        for (part, demanded) in UDP_RECEIVER {
            let Some(fields) = value.pointer_mut(part) else { continue };
            untold.extend(
                demanded.iter().filter(|name| fields[**name].is_null()).map(|name| format!("{part}/{name}")),
            );
            fill(fields, demanded);
        }
        if !untold.is_empty() {
            value["untold"] = untold.into();
        }
    }
    let (gaps, moments): (&[_], &[_]) = (&["planned", "sd_ns"], &["sigma", "skew", "kurtosis"]);
    let parts: [(&str, &[&'static str]); 6] = [
        ("/cpu", &["busiest_thread"]),
        ("/gaps", gaps),
        ("/bursts/arrived_over", gaps),
        ("/delay_variation", &["sd"]),
        ("/bins/moments", moments),
        ("/histogram/moments", moments),
    ];
    for (part, demanded) in parts {
        if let Some(part) = value.pointer_mut(part) {
            fill(part, demanded);
        }
    }
    value.serialize(to)
}

/// Of these counts zero is a usual value, so that what was filled in is named beside them.
const UDP_RECEIVER: [(&str, &[&str]); 2] =
    [("", &["duplicates", "reordered", "calls"]), ("/drops", &["socket", "stack", "nic"])];

/// Takes back what the other end filled in and says that it did.
pub(super) fn read_report<'de, D: Deserializer<'de>>(from: D) -> Result<EndReport, D::Error> {
    let mut value = Value::deserialize(from)?;
    let untold = value.as_object_mut().and_then(|fields| fields.remove("untold"));
    let names = untold.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for (part, name) in names.filter_map(|path| path.rsplit_once('/')) {
        // Only counts that may be absent: a peer cannot take away what is demanded.
        let is_ours = UDP_RECEIVER.iter().any(|(ours, all)| *ours == part && all.contains(&name));
        if let Some(fields) = value.pointer_mut(part).filter(|_| is_ours).and_then(Value::as_object_mut) {
            fields.remove(name);
        }
    }
    serde_json::from_value(value).map_err(serde::de::Error::custom)
}

fn fill(value: &mut Value, demanded: &[&'static str]) {
    if let Value::Object(fields) = value {
        for name in demanded {
            fields.entry(*name).or_insert_with(|| 0.into());
        }
    }
}

fn filled<T: Serialize, S: Serializer>(
    items: &[T],
    demanded: &'static [&'static str],
    to: S,
) -> Result<S::Ok, S::Error> {
    let mut sequence = to.serialize_seq(Some(items.len()))?;
    for item in items {
        let mut value = serde_json::to_value(item).map_err(S::Error::custom)?;
        fill(&mut value, demanded);
        sequence.serialize_element(&value)?;
    }
    sequence.end()
}

#[cfg(test)]
mod tests {
    use netaware_record::{
        CpuUse, DelaySummary, GapSummary, HostDrops, Outcome, SenderTick, StreamEnd, StreamSample,
        UdpReceiverEnd,
    };
    use netaware_units::Span;

    use crate::control::{EndReport, ServerMessage};
    use crate::frame::{self, Message as _};

    #[test]
    fn an_older_peer_finds_every_number_that_it_demands_and_ours_reads_what_was_meant() {
        let stream = StreamEnd { rtt: Some(Span(7)), ..StreamEnd::default() };
        let messages = [
            ServerMessage::StreamEnds { test: 1, streams: vec![stream] },
            ServerMessage::SenderTicks { test: 1, ticks: vec![SenderTick::default()] },
        ];
        for message in messages {
            let bytes = frame::emit(&message).unwrap();
            let json: serde_json::Value = serde_json::from_slice(&bytes[4..]).unwrap();
            let list = json.get("streams").or(json.get("ticks")).unwrap();
            assert_eq!(list[0]["cwnd"], 0, "{json}");
            match ServerMessage::from_value(json).unwrap() {
                ServerMessage::StreamEnds { streams, .. } => {
                    assert_eq!((streams[0].rtt, streams[0].cwnd), (Some(Span(7)), None));
                }
                ServerMessage::SenderTicks { ticks, .. } => {
                    assert_eq!((ticks[0].rtt, ticks[0].cwnd), (None, None));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn an_older_peer_finds_every_number_of_a_report_and_ours_reads_what_was_meant() {
        let end = UdpReceiverEnd {
            received: 5,
            drops: HostDrops { socket: Some(3), ..HostDrops::default() },
            gaps: Some(GapSummary::default()),
            delay_variation: Some(DelaySummary { count: 1, ..DelaySummary::default() }),
            cpu: Some(CpuUse { cores: 2, ..CpuUse::default() }),
            ..UdpReceiverEnd::default()
        };
        let report = EndReport::UdpReceiver(end);
        let message = ServerMessage::Finished { test: 1, outcome: Outcome::Complete, report };
        let bytes = frame::emit(&message).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&bytes[4..]).unwrap();
        let told = &json["report"];
        for demanded in ["duplicates", "reordered", "calls"] {
            assert_eq!(told[demanded], 0, "{told}");
        }
        assert_eq!(told["drops"], serde_json::json!({"socket": 3, "stack": 0, "nic": 0}));
        assert_eq!((&told["cpu"]["busiest_thread"], &told["gaps"]["planned"]), (&0.into(), &0.into()));
        assert_eq!((&told["gaps"]["sd_ns"], &told["delay_variation"]["sd"]), (&0.into(), &0.into()));
        let ServerMessage::Finished { report: EndReport::UdpReceiver(end), .. } =
            ServerMessage::from_value(json).unwrap()
        else {
            panic!("another message");
        };
        assert_eq!((end.calls, end.jitter, end.receive_buffer), (None, None, None));
        assert_eq!((end.gaps.unwrap().sd_ns, end.delay_variation.unwrap().sd), (None, None));
        assert_eq!((end.cpu.unwrap().busiest_thread, end.gaps.unwrap().planned), (None, None));
        assert_eq!(end.drops, HostDrops { socket: Some(3), ..HostDrops::default() });
        assert_eq!((end.duplicates, end.reordered), (None, None));

        let samples = vec![StreamSample { at: Span(4), ..StreamSample::default() }];
        let message = ServerMessage::StreamSamples { test: 1, stream: 0, samples: samples.clone() };
        let bytes = frame::emit(&message).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&bytes[4..]).unwrap();
        assert_eq!(json["samples"][0]["rtt"], 0, "{json}");
        let ServerMessage::StreamSamples { samples: read, .. } = ServerMessage::from_value(json).unwrap()
        else {
            panic!("another message");
        };
        assert_eq!((read[0].rtt, read[0].cwnd), (None, None));
    }
}
