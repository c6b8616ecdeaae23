//! How fast to send: `-b` for a rate, where 0 means as fast as possible, as in iperf3.

use std::str::FromStr;

use netaware_units::{BitRate, ParseUnitError, SendRate};

/// The value of `-b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rate {
    Unlimited,
    Limited(SendRate),
}

impl Rate {
    /// For requests in which no rate means no limit.
    pub(crate) fn limit(self) -> Option<SendRate> {
        match self {
            Self::Unlimited => None,
            Self::Limited(rate) => Some(rate),
        }
    }
}

impl FromStr for Rate {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        if text.trim() == "0" {
            return Ok(Self::Unlimited);
        }
        text.parse().map(|rate: BitRate| SendRate::new(rate).map_or(Self::Unlimited, Self::Limited))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_no_limit_and_a_rate_needs_its_unit() {
        assert_eq!("0".parse(), Ok(Rate::Unlimited));
        assert_eq!("0Mbit/s".parse(), Ok(Rate::Unlimited));
        assert_eq!("10M".parse(), Ok(Rate::Limited(SendRate::at_least(10_000_000))));
        assert!("10".parse::<Rate>().is_err());
        assert!("10MBps".parse::<Rate>().is_err(), "not a tenth of what was typed");
        assert!("0MBps".parse::<Rate>().is_err());
    }
}
