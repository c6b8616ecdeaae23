//! Numbers as TOML writes them.

use toml::de::{DeInteger, DeValue};

/// `None` when it does not fit.
pub(super) fn integer(given: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(given.as_str(), given.radix()).ok()
}

/// An integer or a float; `None` for anything else.
pub(super) fn real(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(given) => integer(given).map(|number| number as f64),
        DeValue::Float(given) => given.as_str().parse().ok(),
        _ => None,
    }
}
