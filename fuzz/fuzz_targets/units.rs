//! What a person types for a time, a rate or a size.
#![no_main]

use std::fmt::Display;
use std::str::FromStr;

use libfuzzer_sys::fuzz_target;
use netaware_units::{BitRate, ByteCount, ParseUnitError, Span};

fuzz_target!(|text: &str| {
    read::<Span>(text);
    read::<BitRate>(text);
    read::<ByteCount>(text);
});

fn read<T: FromStr<Err = ParseUnitError> + Display>(text: &str) {
    match text.parse::<T>() {
        Ok(value) => assert!(value.to_string().contains(|c: char| c.is_ascii_digit())),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
