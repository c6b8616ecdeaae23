//! Figures that nobody measured, for peers of older versions.
//!
//! They are absent in our own structures. Versions before that demand a number for some of them and
//! take zero for unknown, so zero is what is sent; who reads it here takes it for unknown, too.

use netaware_record::{SenderTick, StreamEnd};
use serde::ser::{Error, SerializeSeq as _};
use serde::{Serialize, Serializer};
use serde_json::Value;

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
    ];
    filled(streams, DEMANDED, to)
}

pub(super) fn sender_ticks<S: Serializer>(ticks: &[SenderTick], to: S) -> Result<S::Ok, S::Error> {
    filled(ticks, &["retransmits", "rtt", "cwnd"], to)
}

fn filled<T: Serialize, S: Serializer>(
    items: &[T],
    demanded: &'static [&'static str],
    to: S,
) -> Result<S::Ok, S::Error> {
    let mut sequence = to.serialize_seq(Some(items.len()))?;
    for item in items {
        let mut value = serde_json::to_value(item).map_err(S::Error::custom)?;
        if let Value::Object(fields) = &mut value {
            for name in demanded {
                fields.entry(*name).or_insert_with(|| 0.into());
            }
        }
        sequence.serialize_element(&value)?;
    }
    sequence.end()
}

#[cfg(test)]
mod tests {
    use netaware_record::{SenderTick, StreamEnd};
    use netaware_units::Span;

    use crate::control::ServerMessage;
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
}
