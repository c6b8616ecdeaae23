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

/// The columns of one result. What an end did not tell is a dash.
pub(crate) fn line(result: &TcpResult) -> String {
    let length = result.blocks.map(|blocks| blocks.length.0);
    // Without one, blocks follow each other at once.
    let spacing = result.blocks.and_then(|blocks| blocks.spacing).unwrap_or_default();
    let sender = result.sender.as_ref();
    let bytes = sender.map(|end| end.bytes.0);
    let whole = || bytes?.checked_div(length?);
    let loops = sender.and_then(|end| end.spaced).map(|kept| kept.written).or_else(whole);
    let given = sender.and_then(|end| end.given);
    let per = |what: Option<f64>, over: Option<f64>| {
        known(
            what.zip(over).filter(|(_, over)| *over > 0.0).map(|(what, over)| format!("{:.4}", what / over)),
        )
    };
    let micros = given.map(Span::micros_f64);
    let each = per(micros, loops.map(|loops| loops as f64));
    // Bytes per microsecond are megabytes per second.
    let rate = per(bytes.map(|bytes| bytes as f64), micros);
    let received = result.receiver.as_ref().and_then(|end| end.received);
    let mut line = format!(
        "{}; {}; {each}; {}; {}; {rate}; {};",
        known(length),
        known(loops),
        short(spacing),
        known(given.map(short)),
        known(received.map(short))
    );
    for stream in result.receiver.iter().flat_map(|end| &end.streams) {
        // Writing to a string does not fail.
        let _ = write!(line, " {}:; {}; {};", stream.index + 1, stream.bytes.0, stream.calls);
    }
    line
}

fn known(figure: Option<impl ToString>) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| figure.to_string())
}

/// Microseconds with as many decimals as there are.
fn short(span: Span) -> String {
    let text = format!("{:.3}", span.micros_f64());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use netaware_record::{SpacedBlocks, StreamEnd, TcpBlocks, TcpEnd};
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
        result.sender = Some(TcpEnd {
            bytes: ByteCount(10_000_000),
            given: Some(Span::from_micros(871_173)),
            spaced: Some(SpacedBlocks { written: 10_000, ..SpacedBlocks::default() }),
            ..TcpEnd::default()
        });
        let read =
            |index, bytes, calls| StreamEnd { index, bytes: ByteCount(bytes), calls, ..StreamEnd::default() };
        result.receiver = Some(TcpEnd {
            received: Some(Span::from_micros(871_749)),
            streams: vec![read(0, 5_023_000, 4995), read(1, 4_977_000, 4955)],
            ..TcpEnd::default()
        });
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
    fn what_was_not_told_is_a_dash_and_not_zero() {
        let mut empty = result();
        (empty.sender, empty.receiver) = Default::default();
        empty.blocks = None;
        assert_eq!(line(&empty), "-; -; -; 0; -; -; -;");
    }
}
