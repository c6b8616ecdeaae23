//! What packets carry in their IP header: the class by its name or number (`--dscp`), as the TOS
//! byte (`--tos`) or as its precedence bits (`--precedence`), and the flow label (`--flow-label`).

use netaware_wire::header::MAX_FLOW_LABEL;

/// RFC 2474, 2597, 3246, 5865, 8622; "BE" is what people call the default class.
const NAMES: &[(&str, u8)] = &[
    ("DF", 0),
    ("BE", 0),
    ("LE", 1),
    ("CS0", 0),
    ("CS1", 8),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("CS2", 16),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("CS3", 24),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("CS4", 32),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("CS5", 40),
    ("VA", 44),
    ("EF", 46),
    ("CS6", 48),
    ("CS7", 56),
];

/// 0..=63.
pub(crate) fn parse(text: &str) -> Result<u8, String> {
    let named = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, value)| *value);
    named
        .or_else(|| number(text).and_then(|value| u8::try_from(value).ok()).filter(|value| *value <= 63))
        .ok_or_else(|| format!("'{text}' is neither a name (EF, AF41, CS1, LE, …) nor a number from 0 to 63"))
}

/// The TOS byte of RFC 791, decimal or 0x…, as the DSCP in its upper six bits (RFC 2474 §3).
pub(crate) fn tos(text: &str) -> Result<u8, String> {
    let byte = number(text)
        .and_then(|byte| u8::try_from(byte).ok())
        .ok_or_else(|| format!("'{text}' is no byte: 0 to 255 or 0x00 to 0xff"))?;
    if byte & 3 != 0 {
        return Err(format!(
            "the two lowest bits of '{text}' belong to ECN, which TCP sets: use {:#04x}",
            byte & !3
        ));
    }
    Ok(byte >> 2)
}

/// The three bits of precedence of RFC 791, 0..=7, as the DSCP that selects the same class (RFC
/// 2474 §4.2.2).
pub(crate) fn precedence(text: &str) -> Result<u8, String> {
    let bits = number(text).and_then(|bits| u8::try_from(bits).ok()).filter(|bits| *bits <= 7);
    bits.map(|bits| bits << 3).ok_or_else(|| format!("'{text}' is no precedence: 0 to 7"))
}

/// A flow label of IPv6, decimal or 0x….
pub(crate) fn flow_label(text: &str) -> Result<u32, String> {
    number(text).filter(|label| (1..=MAX_FLOW_LABEL).contains(label)).ok_or_else(|| {
        format!("'{text}' is no flow label: 1 to {MAX_FLOW_LABEL} or 0x1 to {MAX_FLOW_LABEL:#x}")
    })
}

fn number(text: &str) -> Option<u32> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    // The parsers of numbers take a sign; nobody means one here. A zero in front is octal to iperf3
    // and ping.
    match hexadecimal {
        Some(digits) if digits.bytes().all(|b| b.is_ascii_hexdigit()) => u32::from_str_radix(digits, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => None,
        None if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_mean_the_same() {
        let rows =
            [("EF", Some(46)), ("ef", Some(46)), ("AF41", Some(34)), ("CS1", Some(8)), ("63", Some(63))];
        for (text, want) in rows {
            assert_eq!(parse(text).ok(), want, "{text}");
        }
        assert_eq!(parse("0x2e"), Ok(46), "as iperf3 reads it");
        // 056 is 46 to iperf3.
        for bad in ["64", "-1", "+46", "056", "AF44", "CS8", "", "0x40"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn older_spellings_mean_the_same_class() {
        assert_eq!((tos("0xb8"), tos("184"), parse("EF")), (Ok(46), Ok(46), Ok(46)));
        assert_eq!((precedence("5"), precedence("0x5"), parse("CS5")), (Ok(40), Ok(40), Ok(40)));
        assert_eq!((tos("0"), precedence("7")), (Ok(0), Ok(56)));
        assert_eq!(
            tos("0xb9").unwrap_err(),
            "the two lowest bits of '0xb9' belong to ECN, which TCP sets: use 0xb8"
        );
        for bad in ["256", "0x100", "0x", "", "+4", "-1", "x", "0x+4", "0270"] {
            assert!(tos(bad).is_err(), "{bad}");
        }
        assert!(precedence("8").is_err() && precedence("").is_err());
    }

    #[test]
    fn a_flow_label_has_twenty_bits_and_is_not_zero() {
        assert_eq!((flow_label("0xfffff"), flow_label("17")), (Ok(0xf_ffff), Ok(17)));
        for bad in ["0", "0x0", "0x100000", "1048576", "label", ""] {
            assert!(flow_label(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn assured_forwarding_follows_its_formula() {
        for class in 1..=4_u8 {
            for drop in 1..=3_u8 {
                assert_eq!(parse(&format!("AF{class}{drop}")), Ok(8 * class + 2 * drop));
            }
        }
    }
}
