//! A TCP result as one line in the column order of tcpmon, for people with scripts and spreadsheets
//! for it.
//!
//! Times are microseconds, the data rate is 10^6 bytes per second of the time in which the data
//! were given to the stack. After the fixed columns come three for each stream: its number from 1,
//! the bytes that the receiver read of it, and in how many reads. Its stream 0, which carries its
//! commands, has no counterpart in the figures. All columns are those of the last round.

use std::fmt::Write;

use netaware_record::TcpResult;
use netaware_units::Span;

/// The columns of one result. What an end did not tell is 0, as there.
pub(crate) fn line(result: &TcpResult) -> String {
    let length = result.blocks.map_or(0, |blocks| blocks.length.0);
    let spacing = result.blocks.and_then(|blocks| blocks.spacing).unwrap_or_default();
    let sender = &result.sender;
    let whole = sender.bytes.0.checked_div(length).unwrap_or(0);
    let loops = sender.spaced.map_or(whole, |kept| kept.written);
    let given = sender.given.unwrap_or_default();
    let each = if loops > 0 { given.micros_f64() / loops as f64 } else { 0.0 };
    // Bytes per microsecond are megabytes per second.
    let rate = if given > Span::ZERO { sender.bytes.0 as f64 / given.micros_f64() } else { 0.0 };
    let received = result.receiver.received.unwrap_or_default();
    let mut line = format!(
        "{length}; {loops}; {each:.4}; {}; {}; {rate:.4}; {};",
        short(spacing),
        short(given),
        short(received)
    );
    for stream in &result.receiver.streams {
        // Writing to a string does not fail.
        let _ = write!(line, " {}:; {}; {};", stream.index + 1, stream.bytes.0, stream.calls);
    }
    line
}

/// Microseconds with as many decimals as there are.
fn short(span: Span) -> String {
    let text = format!("{:.3}", span.micros_f64());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use netaware_record::{SpacedBlocks, StreamEnd, TcpBlocks};
    use netaware_units::ByteCount;

    use super::*;
    use crate::render::fixture;

    fn result() -> TcpResult {
        let mut result = fixture::tcp().versions.remove(0).tcp.remove(0);
        result.blocks = Some(TcpBlocks {
            length: ByteCount(1000),
            spacing: Some(Span::from_micros(100)),
            ..TcpBlocks::default()
        });
        result.sender.bytes = ByteCount(10_000_000);
        result.sender.given = Some(Span::from_micros(871_173));
        result.sender.spaced = Some(SpacedBlocks { written: 10_000, ..SpacedBlocks::default() });
        result.receiver.received = Some(Span::from_micros(871_749));
        let read =
            |index, bytes, calls| StreamEnd { index, bytes: ByteCount(bytes), calls, ..StreamEnd::default() };
        result.receiver.streams = vec![read(0, 5_023_000, 4995), read(1, 4_977_000, 4955)];
        result
    }

    #[test]
    fn the_line_is_the_one_that_the_old_tool_prints_for_the_same_figures() {
        assert_eq!(
            line(&result()),
            "1000; 10000; 87.1173; 100; 871173; 11.4788; 871749; 1:; 5023000; 4995; 2:; 4977000; 4955;"
        );
    }

    #[test]
    fn what_was_not_told_is_zero_and_no_rate_is_infinite() {
        let mut empty = result();
        (empty.sender, empty.receiver) = Default::default();
        empty.blocks = None;
        assert_eq!(line(&empty), "0; 0; 0.0000; 0; 0; 0.0000; 0;");
    }
}
