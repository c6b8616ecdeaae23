//! Shares of a whole.

use std::str::FromStr;

use crate::scaled::{ParseUnitError, split};

/// A share from 0 to 1, typed as "0.1%" or "0.001".
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = ParseUnitError;
    /// Reads "10%" and "0.1". A bare 1 is refused because it could be 1 % or all of it, and so is
    /// more than all.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let (number, suffix) = split(text)?;
        let given = text.trim().to_owned();
        let value = number.value();
        match suffix {
            "%" if value <= 100.0 => Ok(Self(value / 100.0)),
            "" if value < 1.0 => Ok(Self(value)),
            "%" => Err(ParseUnitError::OtherUnit { given, instead: "is more than 100 %".to_owned() }),
            "" if value <= 100.0 => {
                let typed = number.text;
                let instead = format!("is a share without its sign: write {typed}%, or 100% for all of it");
                Err(ParseUnitError::OtherUnit { given, instead })
            }
            _ => Err(ParseUnitError::UnknownUnit { given, expected: "%, as in '0.1%' (or '0.001')" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_without_a_sign_is_neither_one_per_cent_nor_all() {
        let rows = [
            ("0", Ok(0.0)),
            ("0%", Ok(0.0)),
            ("0.001", Ok(0.001)),
            ("0.1%", Ok(0.001)),
            (" 10 % ", Ok(0.1)),
            ("100%", Ok(1.0)),
            ("1", Err("'1' is a share without its sign: write 1%, or 100% for all of it")),
            ("5", Err("'5' is a share without its sign: write 5%, or 100% for all of it")),
            ("101%", Err("'101%' is more than 100 %")),
            ("200", Err("'200' needs a unit: %, as in '0.1%' (or '0.001')")),
            ("1e-3", Err("'1e-3' has an exponent: write the number in digits")),
            ("-1%", Err("'-1%' is negative, which this cannot be")),
            ("NaN", Err("'NaN' does not start with a decimal number")),
            ("%", Err("'%' does not start with a decimal number")),
            ("", Err("'' does not start with a decimal number")),
        ];
        for (text, want) in rows {
            let found = text.parse::<Share>().map(|share| share.0).map_err(|error| error.to_string());
            assert_eq!(found, want.map_err(str::to_owned), "{text}");
        }
    }
}
