//! 128-bit sums in JSON.
//!
//! As a number while 64 bits hold it, which is nearly always, and as text beyond: serde reads no
//! 128-bit number within a tagged enum, and readers in other languages would round it.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;

pub(crate) fn serialize<S: Serializer>(number: &i128, to: S) -> Result<S::Ok, S::Error> {
    match i64::try_from(*number) {
        Ok(narrow) => to.serialize_i64(narrow),
        Err(_) => to.collect_str(number),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<i128, D::Error> {
    from.deserialize_any(Wide)
}

struct Wide;

impl Visitor<'_> for Wide {
    type Value = i128;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number, as text where 64 bits do not hold it")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<i128, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<i128, E> {
        Ok(number.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<i128, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use netaware_units::Span;

    use crate::passive::{DelayStatistics, FlowKey, Row, RttRow};

    #[test]
    fn rows_with_sums_of_any_width_come_back() {
        for sum_ns in [0, -5, i128::from(u64::MAX), i128::MIN, i128::MAX] {
            let mut delay = DelayStatistics { sum_ns, ..DelayStatistics::default() };
            delay.min = Span(-1);
            let row = Row::Rtt(RttRow { key: FlowKey::default(), method: "spin_bit".into(), delay });
            let json = serde_json::to_string(&row).unwrap();
            assert_eq!(serde_json::from_str::<Row>(&json).unwrap(), row, "{json}");
        }
    }
}
