//! What records look like (RFC 7011 §3.4): templates, templates of options, and withdrawals.

use super::message::{OPTIONS_TEMPLATE_SET, TEMPLATE_SET};

/// A length that says that each record brings its own (RFC 7011 §7).
pub const VARIABLE: u16 = 65_535;

/// Fields without bytes in one template: with more, records are no longer in proportion to the work
/// that they make.
pub const MOST_EMPTY: usize = 16;

/// One field of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Field {
    /// Information element, without the enterprise bit.
    pub element: u16,
    /// Bytes in each record, or [`VARIABLE`].
    pub length: u16,
    /// Private enterprise number; 0: IANA's elements.
    pub enterprise: u32,
}

impl Field {
    /// One of IANA's.
    pub const fn of(element: u16, length: u16) -> Self {
        Self { element, length, enterprise: 0 }
    }

    /// One of ours.
    pub const fn own(element: u16, length: u16) -> Self {
        Self { element, length, enterprise: super::element::ENTERPRISE }
    }
}

/// What the records of a set look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Set that carries such records, 256 at least.
    pub id: u16,
    /// The first so many fields say what a record of options is about; 0: no options.
    pub scopes: u16,
    /// In order.
    pub fields: Vec<Field>,
}

impl Template {
    /// Flows and packets.
    pub fn data(id: u16, fields: &[Field]) -> Self {
        Self { id, scopes: 0, fields: fields.to_vec() }
    }

    /// Options about `scopes` fields.
    pub fn options(id: u16, scopes: u16, fields: &[Field]) -> Self {
        Self { id, scopes, fields: fields.to_vec() }
    }

    /// Bytes of the shortest record: a variable length takes one byte at least.
    pub fn shortest(&self) -> usize {
        let least = |field: &Field| if field.length == VARIABLE { 1 } else { usize::from(field.length) };
        self.fields.iter().map(least).sum()
    }

    /// Which set it is announced in.
    pub fn set(&self) -> u16 {
        if self.scopes == 0 { TEMPLATE_SET } else { OPTIONS_TEMPLATE_SET }
    }

    /// Writes it as a record of [`Self::set`].
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend(self.id.to_be_bytes());
        out.extend((self.fields.len() as u16).to_be_bytes());
        if self.scopes > 0 {
            out.extend(self.scopes.to_be_bytes());
        }
        for field in &self.fields {
            let enterprise = u16::from(field.enterprise != 0) << 15;
            out.extend((field.element | enterprise).to_be_bytes());
            out.extend(field.length.to_be_bytes());
            if field.enterprise != 0 {
                out.extend(field.enterprise.to_be_bytes());
            }
        }
    }
}

/// One record of a set of templates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Announcement {
    /// From now on such a set looks like this.
    Template(Template),
    /// No longer (RFC 7011 §8.1).
    Withdrawal(u16),
    /// None of this kind any longer.
    WithdrawAll,
}

/// Why a template cannot be used. What follows it in its set cannot be found and is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateError {
    /// The set ends within it.
    Short,
    /// Its number is that of no data set.
    Id(u16),
    /// More scopes than fields, or options without a scope.
    Scopes,
    /// Its records have no bytes, so that there would be any number of them; or more than
    /// [`MOST_EMPTY`] of its fields have none, so that a byte of data would stand for thousands of
    /// fields to look at.
    Empty,
}

/// Reads the announcements of a set; ends after an error and at the padding.
#[derive(Debug, Clone)]
pub struct Announcements<'a> {
    left: &'a [u8],
    options: bool,
}

/// The announcements in a set with this id, 2 or 3.
pub fn announcements(set: u16, body: &[u8]) -> Announcements<'_> {
    Announcements { left: body, options: set == OPTIONS_TEMPLATE_SET }
}

impl Announcements<'_> {
    fn number(&mut self) -> Result<u16, TemplateError> {
        let (head, rest) = self.left.split_first_chunk().ok_or(TemplateError::Short)?;
        self.left = rest;
        Ok(u16::from_be_bytes(*head))
    }

    fn field(&mut self) -> Result<Field, TemplateError> {
        let element = self.number()?;
        let length = self.number()?;
        let mut enterprise = 0;
        if element >> 15 == 1 {
            enterprise = u32::from(self.number()?) << 16 | u32::from(self.number()?);
        }
        Ok(Field { element: element & 0x7fff, length, enterprise })
    }

    fn read(&mut self) -> Result<Announcement, TemplateError> {
        let id = self.number()?;
        let count = self.number()?;
        if count == 0 {
            let all = if self.options { OPTIONS_TEMPLATE_SET } else { TEMPLATE_SET };
            return match id {
                id if id == all => Ok(Announcement::WithdrawAll),
                0..=255 => Err(TemplateError::Id(id)),
                id => Ok(Announcement::Withdrawal(id)),
            };
        }
        if id < 256 {
            return Err(TemplateError::Id(id));
        }
        let scopes = if self.options { self.number()? } else { 0 };
        if scopes > count || (self.options && scopes == 0) {
            return Err(TemplateError::Scopes);
        }
        // Each field takes four bytes: no more is allocated than came.
        if usize::from(count) * 4 > self.left.len() {
            return Err(TemplateError::Short);
        }
        let fields = (0..count).map(|_| self.field()).collect::<Result<Vec<_>, _>>()?;
        let template = Template { id, scopes, fields };
        let empty = template.fields.iter().filter(|field| field.length == 0).count();
        if template.shortest() == 0 || empty > MOST_EMPTY {
            return Err(TemplateError::Empty);
        }
        Ok(Announcement::Template(template))
    }
}

impl Iterator for Announcements<'_> {
    type Item = Result<Announcement, TemplateError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Fewer bytes than the shortest announcement, or zeros, are padding.
        if self.left.len() < 4 || (self.left.len() < 8 && self.left.iter().all(|byte| *byte == 0)) {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.left = &[];
        }
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: u16, body: &[u8]) -> Vec<Result<Announcement, TemplateError>> {
        announcements(set, body).collect()
    }

    #[test]
    fn templates_come_back_as_they_were() {
        let data = Template::data(256, &[Field::of(8, 4), Field::own(3, VARIABLE)]);
        let options = Template::options(300, 1, &[Field::of(301, 8), Field::of(82, VARIABLE)]);
        for template in [&data, &options] {
            let mut body = Vec::new();
            template.emit(&mut body);
            template.emit(&mut body);
            body.extend([0; 3]);
            let same = Ok(Announcement::Template(template.clone()));
            assert_eq!(read(template.set(), &body), [same.clone(), same]);
        }
        let mut golden = Vec::new();
        data.emit(&mut golden);
        assert_eq!(golden, [1, 0, 0, 2, 0, 8, 0, 4, 0x80, 3, 0xff, 0xff, 0, 0, 0x7e, 0xd9]);
    }

    #[test]
    fn withdrawals_are_told_apart() {
        assert_eq!(read(2, &[1, 5, 0, 0]), [Ok(Announcement::Withdrawal(261))]);
        assert_eq!(read(2, &[0, 2, 0, 0]), [Ok(Announcement::WithdrawAll)]);
        assert_eq!(read(3, &[0, 3, 0, 0]), [Ok(Announcement::WithdrawAll)]);
        assert_eq!(read(3, &[0, 2, 0, 0]), [Err(TemplateError::Id(2))]);
    }

    #[test]
    fn a_byte_of_data_does_not_stand_for_thousands_of_fields_to_look_at() {
        let announced = |empty: usize| {
            let mut fields = vec![Field::of(7, 0); empty];
            fields.push(Field::of(4, 1));
            let mut body = Vec::new();
            Template::data(256, &fields).emit(&mut body);
            read(2, &body).remove(0)
        };
        assert!(matches!(announced(MOST_EMPTY), Ok(Announcement::Template(_))));
        assert_eq!(announced(MOST_EMPTY + 1), Err(TemplateError::Empty));
        assert_eq!(announced(16_000), Err(TemplateError::Empty));
    }

    #[test]
    fn what_no_record_can_look_like_is_refused() {
        let cases: [(u16, &[u8], TemplateError); 7] = [
            (2, &[1, 0, 0, 1, 0, 8, 0, 0], TemplateError::Empty),
            (2, &[0, 99, 0, 1, 0, 8, 0, 4], TemplateError::Id(99)),
            (2, &[1, 0, 0, 2, 0, 8, 0, 4], TemplateError::Short),
            (2, &[1, 0, 0, 1, 0x80, 8, 0, 4, 0, 0], TemplateError::Short),
            (2, &[1, 0, 0xff, 0xff, 0, 8, 0, 4], TemplateError::Short),
            (3, &[1, 0, 0, 1, 0, 2, 0, 8, 0, 4], TemplateError::Scopes),
            (3, &[1, 0, 0, 1, 0, 0, 0, 8, 0, 4], TemplateError::Scopes),
        ];
        for (set, body, error) in cases {
            assert_eq!(read(set, body), [Err(error)], "{body:?}");
        }
    }
}
