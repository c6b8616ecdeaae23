//! TLVs of a request.

use super::super::hmac::Tag;
use super::answer::prove;
use super::{HEADER, UNKNOWN, kind, places};
use crate::proof::Key;

/// What a sender may ask of a reflector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Whether it reads our clock; the random bytes.
    SameClock([u8; 16]),
    /// How many it received and sent.
    Counters,
    /// With which marks requests arrive; replies are to leave with this DSCP.
    ClassOfService(u8),
    /// What synchronises its clock.
    TimestampInformation,
    /// Which ports it sees.
    Location,
}

impl Question {
    /// Bytes with its header.
    pub const fn whole_len(self) -> usize {
        HEADER + self.value_len()
    }

    const fn value_len(self) -> usize {
        match self {
            Self::SameClock(_) => 32,
            Self::Counters => 12,
            Self::ClassOfService(_) | Self::TimestampInformation | Self::Location => 4,
        }
    }

    const fn kind(self) -> u8 {
        match self {
            Self::SameClock(_) => kind::SAME_CLOCK,
            Self::Counters => kind::DIRECT_MEASUREMENT,
            Self::ClassOfService(_) => kind::CLASS_OF_SERVICE,
            Self::TimestampInformation => kind::TIMESTAMP_INFORMATION,
            Self::Location => kind::LOCATION,
        }
    }

    /// The value is zero otherwise.
    fn fill(self, value: &mut [u8], sent: u32) {
        match self {
            Self::SameClock(nonce) => value[..16].copy_from_slice(&nonce),
            Self::Counters => value[..4].copy_from_slice(&sent.to_be_bytes()),
            Self::ClassOfService(dscp) => value[0] = dscp << 2,
            Self::TimestampInformation | Self::Location => {}
        }
    }
}

/// The questions that fit into requests of one length, the first ones before the others; extra
/// padding is what is left.
#[derive(Debug, Clone, Default)]
pub struct Questions(Vec<Question>);

/// Bytes that all questions take, with a proof if there is a key.
pub fn room_for(questions: &[Question], key: Option<&Key>) -> usize {
    questions.iter().map(|question| question.whole_len()).sum::<usize>()
        + key.map_or(0, |_| HEADER + Tag::LEN)
}

impl Questions {
    /// Those of `wanted` that fit into `room` bytes. Not even extra padding fits into 1 to 3 bytes:
    /// then the last one is left out.
    pub fn fitting(wanted: &[Question], room: usize, key: Option<&Key>) -> Self {
        let mut fitting: Vec<Question> = Vec::new();
        for question in wanted {
            if room_for(&fitting, key) + question.whole_len() <= room {
                fitting.push(*question);
            }
        }
        while !fitting.is_empty() && (1..HEADER).contains(&(room - room_for(&fitting, key))) {
            fitting.pop();
        }
        Self(fitting)
    }

    /// Whether this one is among them.
    pub fn ask(&self, is_it: impl Fn(&Question) -> bool) -> bool {
        self.0.iter().any(is_it)
    }

    /// Writes them over `area`, which is all that follows the base packet, for the request with
    /// this number; so many were sent with it.
    ///
    /// # Panics
    /// When `area` is shorter than what they were fitted for.
    pub fn emit(&self, area: &mut [u8], key: Option<&Key>, number: u32, sent: u32) {
        area.fill(0);
        let mut at = 0;
        for question in &self.0 {
            header(area, at, question.kind(), question.value_len());
            question.fill(&mut area[at + HEADER..at + question.whole_len()], sent);
            at += question.whole_len();
        }
        if key.is_some() && area.len() >= at + HEADER + Tag::LEN {
            header(area, at, kind::HMAC, Tag::LEN);
            at += HEADER + Tag::LEN;
        }
        if let Some(padding) = (area.len() - at).checked_sub(HEADER) {
            header(area, at, kind::EXTRA_PADDING, padding);
        }
        if let Some(key) = key {
            let found: Vec<_> = places(area).filter_map(Result::ok).collect();
            prove(area, found.into_iter(), key, number);
        }
    }
}

fn header(area: &mut [u8], at: usize, kind: u8, len: usize) {
    area[at] = UNKNOWN;
    area[at + 1] = kind;
    area[at + 2..at + HEADER].copy_from_slice(&(len as u16).to_be_bytes());
}
