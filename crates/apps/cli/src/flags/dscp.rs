//! `--dscp`: the class in the IP header, by its name or its number.

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
        .or_else(|| text.parse().ok().filter(|value| *value <= 63))
        .ok_or_else(|| format!("'{text}' is neither a name (EF, AF41, CS1, LE, …) nor a number from 0 to 63"))
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
        for bad in ["64", "-1", "AF44", "CS8", "", "0x2e"] {
            assert!(parse(bad).is_err(), "{bad}");
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
