//! Words of the file that stand for numbers.

use std::fmt;

use netaware_units::{ByteCount, Span};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The probe of a point: a point is a probe, or an interface of one as in `bern/eth0`.
pub(crate) fn probe_of(point: &str) -> &str {
    point.split_once('/').map_or(point, |(probe, _)| probe)
}

/// The interface of a point that is one.
pub(crate) fn interface_of(point: &str) -> Option<&str> {
    point.split_once('/').map(|(_, interface)| interface)
}

/// What a task does on one interface, as the probe is told: `TASK/INTERFACE`.
pub(crate) fn on_interface(name: &str, interface: Option<&str>) -> String {
    interface.map_or_else(|| name.to_owned(), |interface| format!("{name}/{interface}"))
}

/// A time with its unit, as in `"10min"`; days too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Span);

impl Time {
    /// Whole milliseconds.
    pub fn millis(self) -> u64 {
        u64::try_from(self.0.0 / 1_000_000).unwrap_or(0)
    }
}

impl fmt::Display for Time {
    /// In the largest unit that it is a whole number of, so that it reads back as it was.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.0;
        let units =
            [("d", DAY), ("h", DAY / 24), ("min", DAY / 1440), ("s", 1_000_000_000), ("ms", 1_000_000)];
        let unit = units.into_iter().find(|(_, size)| nanos != 0 && nanos % size == 0);
        match unit {
            Some((name, size)) => write!(f, "{}{name}", nanos / size),
            None => write!(f, "{nanos}ns"),
        }
    }
}

impl std::str::FromStr for Time {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let span = text.parse::<Span>().map_err(|why| why.to_string())?;
        if span.0 > 0 { Ok(Self(span)) } else { Err(format!("'{text}' is no time that passes")) }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// Bytes, as in `"4GiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub ByteCount);

impl fmt::Display for Size {
    /// In the largest unit that it is a whole number of, so that it reads back as it was.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.0;
        let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        match units.into_iter().find(|(_, size)| bytes != 0 && bytes.is_multiple_of(*size)) {
            Some((name, size)) => write!(f, "{}{name}", bytes / size),
            None => write!(f, "{bytes}B"),
        }
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(de::Error::custom)
    }
}

/// `2/4`: the second of four parts, numbered from 1; gives index from 0 and number of parts.
pub(super) fn shard(text: &str) -> Option<(u32, u32)> {
    let (index, parts) = text.split_once('/')?;
    let (index, parts): (u32, u32) = (index.parse().ok()?, parts.parse().ok()?);
    (1..=parts).contains(&index).then(|| (index - 1, parts)).filter(|_| parts <= MAX_SHARDS)
}

const DAY: i64 = 86_400_000_000_000;
const MAX_SHARDS: u32 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_back_as_they_were_written() {
        for text in ["7d", "36h", "90min", "1s", "1500ms", "20000ns"] {
            let time: Time = text.parse().unwrap();
            assert_eq!(time.to_string().parse::<Time>().unwrap(), time, "{text}");
        }
        assert_eq!("36h".parse::<Time>().unwrap().to_string(), "36h");
        assert_eq!("48h".parse::<Time>().unwrap().to_string(), "2d");
        assert!("0s".parse::<Time>().is_err() && "10".parse::<Time>().is_err());
        assert!("5M".parse::<Time>().is_err(), "five months, or five minutes");
    }

    #[test]
    fn sizes_read_back_as_they_were_written() {
        for (text, bytes) in [("4GiB", 4 << 30), ("1536KiB", 1536 << 10), ("1000B", 1000)] {
            let size = Size(text.parse().unwrap());
            assert_eq!((size.0.0, size.to_string().as_str()), (bytes, text));
        }
    }

    #[test]
    fn a_shard_is_one_of_its_parts() {
        assert_eq!(shard("1/1"), Some((0, 1)));
        assert_eq!(shard("2/2"), Some((1, 2)));
        for text in ["0/2", "3/2", "1", "a/b", "1/257", "-1/2"] {
            assert_eq!(shard(text), None, "{text}");
        }
    }
}
