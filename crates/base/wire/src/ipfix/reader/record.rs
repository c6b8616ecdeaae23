//! One data record: bytes, and the template that says what they are.

use netaware_units::Wall;

use crate::ipfix::template::{Field, Template, VARIABLE};

/// A data record as it lies in its message.
#[derive(Debug, Clone, Copy)]
pub struct DataRecord<'a> {
    /// Observation domain.
    pub domain: u32,
    /// When its message left, to the second.
    pub exported_at: Wall,
    /// What it looks like.
    pub template: &'a Template,
    /// All of it.
    pub bytes: &'a [u8],
}

impl<'a> DataRecord<'a> {
    /// Fields with their values, in order.
    pub fn fields(&self) -> Fields<'a> {
        Fields { fields: self.template.fields.iter(), left: self.bytes }
    }

    /// The first value of one of IANA's elements.
    pub fn value(&self, element: u16) -> Option<&'a [u8]> {
        let mut fields = self.fields();
        fields.find(|(field, _)| field.enterprise == 0 && field.element == element).map(|(_, value)| value)
    }

    /// The first value of one of IANA's elements, as a number.
    pub fn number(&self, element: u16) -> Option<u64> {
        self.value(element).and_then(unsigned)
    }
}

/// Fields of a record; ends early where the record does.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    fields: std::slice::Iter<'a, Field>,
    left: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a Field, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let field = self.fields.next()?;
        let (head, length) = extent(*field, self.left)?;
        let value = self.left.get(head..head + length)?;
        self.left = &self.left[head + length..];
        Some((field, value))
    }
}

/// Big-endian number of 1 to 8 bytes: exporters may leave out leading zeros (RFC 7011 §6.2).
#[inline]
pub fn unsigned(bytes: &[u8]) -> Option<u64> {
    if let Some(bytes) = bytes.as_array() {
        return Some(u64::from_be_bytes(*bytes));
    }
    if let Some(bytes) = bytes.as_array() {
        return Some(u32::from_be_bytes(*bytes).into());
    }
    (1..=8).contains(&bytes.len()).then(|| bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

/// Bytes before a field's value that say its length, and that length.
#[inline]
fn extent(field: Field, bytes: &[u8]) -> Option<(usize, usize)> {
    if field.length != VARIABLE {
        return Some((0, usize::from(field.length)));
    }
    match *bytes {
        [255, high, low, ..] => Some((3, usize::from(u16::from_be_bytes([high, low])))),
        [255, ..] | [] => None,
        [length, ..] => Some((1, usize::from(length))),
    }
}

/// Bytes of the record that begins here; `None`: it ends beyond them.
pub(super) fn length(template: &Template, bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    for field in &template.fields {
        let (head, length) = extent(*field, bytes.get(at..)?)?;
        at += head + length;
    }
    (at <= bytes.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_length_up_to_eight_bytes() {
        let all = 0x0102_0304_0506_0708_u64.to_be_bytes();
        for length in 1..=8_usize {
            let expected = 0x0102_0304_0506_0708_u64 >> (8 * (8 - length));
            assert_eq!(unsigned(&all[..length]), Some(expected));
        }
        assert_eq!((unsigned(&[]), unsigned(&[0; 9])), (None, None));
    }

    #[test]
    fn variable_lengths_have_a_short_and_a_long_form() {
        let template = Template::data(256, &[Field::of(82, VARIABLE), Field::of(4, 1)]);
        let mut long = vec![255, 1, 44];
        long.extend([7; 300]);
        long.push(6);
        for bytes in [&[2, b'e', b'n', 6][..], &[255, 0, 2, b'e', b'n', 6], &[0, 6], &long] {
            assert_eq!(length(&template, bytes), Some(bytes.len()));
            let record = DataRecord { domain: 0, exported_at: Wall(0), template: &template, bytes };
            assert_eq!(record.number(4), Some(6));
            assert_eq!(length(&template, &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(length(&template, &[255, 0]), None);
    }
}
