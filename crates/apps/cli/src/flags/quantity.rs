//! Times, sizes and counts as a user of iperf3 types them, and as we prefer them.

use std::ops::RangeInclusive;

use netaware_units::{BitRate, ByteCount, ParseUnitError, Span};
use netaware_wire::control::{MAX_BLOCK_SPACING, MAX_TCP_ECHO, MAX_TCP_LENGTH};
use netaware_wire::datagram::{ECHO_LEN, HEADER_LEN, MAX_PAYLOAD};

/// "10s", "500ms", and "10" for ten seconds, because that is what the same flag means to iperf3.
pub(crate) fn seconds(text: &str) -> Result<Span, ParseUnitError> {
    let text = text.trim();
    let bare = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    if bare { format!("{text}s").parse() } else { text.parse() }
}

/// Reads a time as [`seconds`] does and refuses zero.
pub(crate) fn some_seconds(text: &str) -> Result<Span, String> {
    positive(seconds(text))
}

/// How long a measurement lasts: less than this is over before a path has shown anything, and what
/// would be said of it is about the host.
pub(crate) const MIN_LASTING: Span = Span::from_millis(100);
/// The shortest time for a method that asks in rounds, or that sends trains whose rate depends on
/// what came before.
pub(crate) const MIN_SEARCHING: Span = Span::from_secs(1);

/// Reads a time as [`seconds`] does and refuses one that is too short for a measurement.
pub(crate) fn lasting(text: &str) -> Result<Span, String> {
    at_least(text, MIN_LASTING)
}

/// Reads a time as [`seconds`] does and refuses one that is too short for a search.
pub(crate) fn searching(text: &str) -> Result<Span, String> {
    at_least(text, MIN_SEARCHING)
}

fn at_least(text: &str, least: Span) -> Result<Span, String> {
    match seconds(text) {
        Ok(span) if span < least => Err(format!("{span} is too short to measure anything: {least} at least")),
        Ok(span) => Ok(span),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads the time from one interval line to the next as [`seconds`] does. Zero means that there are
/// no interval lines.
pub(crate) fn interval(text: &str) -> Result<Span, String> {
    match seconds(text) {
        Ok(span) if span < Span::ZERO || (span > Span::ZERO && span < MIN_INTERVAL) => Err(format!(
            "intervals of {span} are too short to count in: {MIN_INTERVAL} at least, or 0 for none"
        )),
        Ok(span) => Ok(span),
        Err(error) => Err(error.to_string()),
    }
}

/// A time with its unit, nothing or more. Zero is zero in every unit and needs none.
pub(crate) fn time(text: &str) -> Result<Span, String> {
    if is_bare_zero(text) {
        return Ok(Span::ZERO);
    }
    match text.parse::<Span>() {
        Ok(span) if span < Span::ZERO => Err("it cannot be less than zero".to_owned()),
        Ok(span) => Ok(span),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads a time as [`time`] does and refuses zero. A bare number is milliseconds to iperf3's flag
/// of the same name, and would be seconds to ours.
pub(crate) fn some_time(text: &str) -> Result<Span, String> {
    if is_bare_zero(text) { Err(ABOVE_ZERO.to_owned()) } else { positive(text.parse()) }
}

/// A time with its unit up to a minute; zero, with or without one, is none.
pub(crate) fn spacing_or_none(text: &str) -> Result<Span, String> {
    let span: Span =
        if text == "0" { Span::ZERO } else { text.parse().map_err(|e: ParseUnitError| e.to_string())? };
    if span > MAX_BLOCK_SPACING {
        Err(format!("'{text}' is more than {MAX_BLOCK_SPACING}"))
    } else {
        Ok(span)
    }
}

/// Ends count in slices that are no shorter.
const MIN_INTERVAL: Span = Span::from_millis(10);

/// Whether a value is zero without a unit, which is zero in every unit.
fn is_bare_zero(text: &str) -> bool {
    text.contains('0') && text.trim().chars().all(|c| matches!(c, '0' | '.'))
}

const ABOVE_ZERO: &str = "it must be more than zero";

fn positive(span: Result<Span, ParseUnitError>) -> Result<Span, String> {
    match span {
        Ok(span) if span.0 > 0 => Ok(span),
        Ok(_) => Err(ABOVE_ZERO.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// A rate of more than nothing.
pub(crate) fn some_rate(text: &str) -> Result<BitRate, String> {
    match text.parse() {
        Ok(BitRate(0)) => Err(ABOVE_ZERO.to_owned()),
        _ if is_bare_zero(text) => Err(ABOVE_ZERO.to_owned()),
        Ok(rate) => Ok(rate),
        Err(error) => Err::<_, ParseUnitError>(error).map_err(|e| e.to_string()),
    }
}

/// A number of bytes, but more than none.
pub(crate) fn some_bytes(text: &str) -> Result<ByteCount, String> {
    match text.parse() {
        Ok(ByteCount(0)) => Err(ABOVE_ZERO.to_owned()),
        Ok(size) => Ok(size),
        Err(error) => Err::<_, ParseUnitError>(error).map_err(|e| e.to_string()),
    }
}

/// Returns the reader of a whole number within these bounds.
pub(crate) fn whole<T>(
    bounds: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: TryFrom<u64> + 'static,
{
    move |text: &str| {
        let number = text.trim().parse::<u64>().ok().filter(|number| bounds.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| not_whole(&bounds))
    }
}

fn not_whole(bounds: &RangeInclusive<u64>) -> String {
    match (bounds.start(), bounds.end()) {
        (least, &u64::MAX) => format!("it must be a whole number, {least} or more"),
        (least, most) => format!("it must be a whole number from {least} to {most}"),
    }
}

/// A socket buffer.
pub(crate) fn buffer(text: &str) -> Result<u32, String> {
    within(text, 1, i32::MAX as u64)
}

/// A block of a byte stream.
pub(crate) fn block(text: &str) -> Result<u32, String> {
    within(text, 1, u64::from(MAX_TCP_LENGTH))
}

/// The payload of a datagram of a stream: its header must fit.
pub(crate) fn datagram(text: &str) -> Result<u32, String> {
    within(text, HEADER_LEN as u64, MAX_PAYLOAD as u64)
}

/// The payload of a request: its stamps must fit.
pub(crate) fn echo(text: &str) -> Result<u32, String> {
    within(text, ECHO_LEN as u64, MAX_PAYLOAD as u64)
}

/// The payload of a request or response, over UDP or TCP.
pub(crate) fn message(text: &str) -> Result<u32, String> {
    within(text, 1, u64::from(MAX_TCP_ECHO))
}

fn within(text: &str, least: u64, most: u64) -> Result<u32, String> {
    let size: ByteCount = text.parse().map_err(|e: ParseUnitError| e.to_string())?;
    match u32::try_from(size.0) {
        Ok(n) if (least..=most).contains(&u64::from(n)) => Ok(n),
        _ => Err(format!("'{text}' is not between {least} and {most} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_is_seconds_and_a_typo_is_not_mended() {
        let rows = [
            ("10", Some(Span::from_secs(10))),
            ("0.5", Some(Span::from_millis(500))),
            ("250ms", Some(Span::from_millis(250))),
            ("2min", Some(Span::from_secs(120))),
            (" 10 ", Some(Span::from_secs(10))),
            ("5m", Some(Span::from_secs(300))),
            ("5M", None),
            ("5MS", None),
            ("5u", None),
            ("m", None),
            ("", None),
            ("-1", None),
            (".", None),
        ];
        for (n, (text, want)) in rows.into_iter().enumerate() {
            assert_eq!(seconds(text).ok(), want, "row {n}: {text}");
        }
        assert!(some_seconds("0").is_err());
        assert!(some_time("3000").is_err(), "3 s to iperf3 are not 50 minutes");
        assert_eq!((some_time("3s"), some_time("0s").is_err()), (Ok(Span::from_secs(3)), true));
    }

    #[test]
    fn a_time_in_which_nothing_can_be_measured_is_refused_in_every_command() {
        assert_eq!((lasting("100ms"), lasting("0.1")), (Ok(MIN_LASTING), Ok(MIN_LASTING)));
        assert_eq!(searching("1"), Ok(MIN_SEARCHING));
        assert_eq!(
            lasting("1us"),
            Err("1.00 us is too short to measure anything: 100 ms at least".to_owned())
        );
        for bad in ["0", "99ms", "1ns", "-1s", ""] {
            assert!(lasting(bad).is_err() && searching(bad).is_err(), "{bad}");
        }
        assert!(searching("999ms").is_err());
    }

    #[test]
    fn an_interval_that_no_end_can_count_in_is_refused_by_its_flag() {
        assert_eq!((interval("0"), interval("10ms")), (Ok(Span::ZERO), Ok(Span::from_millis(10))));
        assert!(interval("1ns").unwrap_err().contains("10.0 ms at least"));
        assert!(interval("-1s").is_err());
    }

    #[test]
    fn nothing_at_all_is_no_amount_to_send() {
        assert_eq!(some_bytes("0"), Err("it must be more than zero".to_owned()));
        assert_eq!(some_bytes("1M"), Ok(ByteCount(1 << 20)));
        assert!(some_bytes("8Mb").unwrap_err().contains("write 1MB, or 8MB if you mean bytes"));
    }

    #[test]
    fn a_zero_is_not_asked_for_its_unit() {
        for zero in ["0", " 0 ", "0.0"] {
            assert_eq!(some_rate(zero), Err(ABOVE_ZERO.to_owned()), "{zero}");
            assert_eq!(some_time(zero), Err(ABOVE_ZERO.to_owned()), "{zero}");
        }
        assert_eq!((time("0"), time("5").is_err()), (Ok(Span::ZERO), true));
        assert!(some_rate("5").unwrap_err().contains("needs a unit"));
        assert!(some_rate(".").is_err() && some_rate("").is_err() && some_time("").is_err());
        assert_eq!(some_rate("0.1k"), Ok(BitRate(100)));
    }

    #[test]
    fn what_is_no_whole_number_is_told_what_would_be_one() {
        let port = whole::<u16>(1..=65_535);
        assert_eq!((port("1"), port("65535")), (Ok(1), Ok(65_535)));
        for bad in ["0", "65536", "-1", "80,443", "abc", "", "1.5", "1e3"] {
            assert_eq!(port(bad), Err("it must be a whole number from 1 to 65535".to_owned()), "{bad}");
        }
        let count = whole::<u64>(1..=u64::MAX);
        assert_eq!(count("18446744073709551615"), Ok(u64::MAX));
        for bad in ["0", "-3", "18446744073709551616"] {
            assert_eq!(count(bad), Err("it must be a whole number, 1 or more".to_owned()), "{bad}");
        }
    }

    #[test]
    fn a_spacing_may_be_nothing_but_not_an_hour() {
        assert_eq!((spacing_or_none("0"), spacing_or_none("0us")), (Ok(Span::ZERO), Ok(Span::ZERO)));
        assert_eq!(spacing_or_none("20us"), Ok(Span::from_micros(20)));
        for bad in ["20", "61s", "1h", "-1us", ""] {
            assert!(spacing_or_none(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_have_the_bounds_of_what_they_are_for() {
        assert_eq!(datagram("1472"), Ok(1472));
        assert_eq!(datagram("64KiB").unwrap_err(), "'64KiB' is not between 24 and 65507 bytes");
        assert_eq!(block("128K"), Ok(131_072));
        assert!(echo("43").is_err() && echo("44B").is_ok());
        assert!(message("0B").is_err() && message("100MB").is_ok() && message("101MB").is_err());
        assert!(buffer("4G").is_err() && buffer("0").is_err());
    }
}
