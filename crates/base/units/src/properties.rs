//! What holds for every value: what is printed reads back as what was printed.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use proptest::prelude::*;

use crate::{BitRate, ByteCount, Share, Span};

/// Printing rounds to three digits or more; what was printed then reads and prints as it is.
fn reads_back<T: Display + FromStr + Copy>(value: T, number: impl Fn(T) -> u64) -> Result<(), TestCaseError>
where
    T::Err: Debug,
{
    let shown = value.to_string();
    let read: T = shown.parse().unwrap();
    let (was, is) = (number(value) as f64, number(read) as f64);
    prop_assert!((is - was).abs() <= was * 0.005, "{shown}: {was} became {is}");
    let again: T = read.to_string().parse().unwrap();
    prop_assert_eq!(number(again), number(read), "{}", shown);
    Ok(())
}

proptest! {
    #[test]
    fn what_is_printed_reads_back_as_it_was_printed(bits in 0..62_u32, low in any::<u64>()) {
        let value = low & ((2 << bits) - 1);
        reads_back(BitRate(value), |rate| rate.0)?;
        reads_back(ByteCount(value), |size| size.0)?;
        reads_back(Span(value.cast_signed()), |span| span.0.cast_unsigned())?;
    }

    #[test]
    fn whole_numbers_of_a_unit_are_exact(number in 0..1_000_000_u64, digits in 0..1000_u64) {
        prop_assert_eq!(format!("{number}kbit/s").parse(), Ok(BitRate(number * 1000)));
        prop_assert_eq!(format!("{number}.{digits:03}kbps").parse(), Ok(BitRate(number * 1000 + digits)));
        prop_assert_eq!(format!("{number}KiB").parse(), Ok(ByteCount(number * 1024)));
        prop_assert_eq!(format!("{number}.{digits:03}kB").parse(), Ok(ByteCount(number * 1000 + digits)));
        let span = Span((number * 1000 + digits).cast_signed());
        prop_assert_eq!(format!("{number}.{digits:03}us").parse(), Ok(span));
    }

    #[test]
    fn no_text_breaks_a_parser(text in ".{0,24}", tail in "[0-9._]{0,30} ?[a-zA-Zµμ%/,]{0,6}") {
        for text in [text, tail] {
            let _ = (text.parse::<BitRate>(), text.parse::<ByteCount>());
            let _ = text.parse::<Span>();
            prop_assert!(text.parse::<Share>().is_ok_and(|s| (0.0..=1.0).contains(&s.0)) || text.parse::<Share>().is_err());
        }
    }
}
