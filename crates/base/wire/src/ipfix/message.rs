//! Messages and the sets in them (RFC 7011 §3.1 to §3.3).
//!
//! ```text
//!  0 version 10 (2)   2 length (2)   4 export time, s since 1970 (4)   8 sequence (4)   12 observation domain (4)
//!  then sets: 0 set id (2)   2 length with this head (2)   4 records, and fewer bytes of padding than a record
//! ```
//!
//! Set 2 holds templates, 3 options templates, 256 and above data. The sequence counts data records
//! (those of options too), not messages, and is that of the first record in the message.

use std::fmt;

use netaware_units::Wall;

use super::time;

/// Bytes of the head of a message.
pub const HEADER_LEN: usize = 16;
/// Bytes of the head of a set.
pub const SET_HEADER_LEN: usize = 4;
/// The longest message: its length has 16 bits.
pub const MAX_MESSAGE: usize = 65_535;
/// The longest message over UDP where the path's MTU is not known (RFC 7011 §10.3.3).
pub const MAX_UDP_MESSAGE: usize = 512;
/// What stands in the first two bytes.
pub const VERSION: u16 = 10;
/// Set of templates.
pub const TEMPLATE_SET: u16 = 2;
/// Set of options templates.
pub const OPTIONS_TEMPLATE_SET: u16 = 3;
/// First set of data.
pub const FIRST_DATA_SET: u16 = 256;

/// Head of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the message, this head included.
    pub length: u16,
    /// When it left, s since 1970.
    pub exported_at: u32,
    /// Data records of this domain and session before this message, modulo 2³².
    pub sequence: u32,
    /// Observation domain.
    pub domain: u32,
}

/// Why bytes are no message, or a message cannot be read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageError {
    /// It ends before its head or its length.
    Short,
    /// Another version: 9 and 5 are NetFlow.
    Version(u16),
    /// The length is less than a head, or not that of the datagram.
    Length(u16),
    /// A set's length is less than its head or more than what is left.
    SetLength(u16),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => write!(f, "an IPFIX message ends too early"),
            Self::Version(version) => write!(f, "version {version} is not IPFIX, which is 10"),
            Self::Length(length) => write!(f, "{length} is no length of this IPFIX message"),
            Self::SetLength(length) => write!(f, "{length} is no length of a set here"),
        }
    }
}

impl std::error::Error for MessageError {}

impl Header {
    /// Reads a head.
    ///
    /// # Errors
    /// Too short, another version, or a length less than the head.
    pub fn parse(bytes: &[u8]) -> Result<Self, MessageError> {
        let head: &[u8; HEADER_LEN] = bytes.first_chunk().ok_or(MessageError::Short)?;
        let [v0, v1, l0, l1, ..] = *head;
        let version = u16::from_be_bytes([v0, v1]);
        if version != VERSION {
            return Err(MessageError::Version(version));
        }
        let length = u16::from_be_bytes([l0, l1]);
        if usize::from(length) < HEADER_LEN {
            return Err(MessageError::Length(length));
        }
        let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        Ok(Self { length, exported_at: word(4), sequence: word(8), domain: word(12) })
    }

    /// Writes a head.
    pub fn emit(&self) -> [u8; HEADER_LEN] {
        let mut head = [0; HEADER_LEN];
        head[..2].copy_from_slice(&VERSION.to_be_bytes());
        head[2..4].copy_from_slice(&self.length.to_be_bytes());
        head[4..8].copy_from_slice(&self.exported_at.to_be_bytes());
        head[8..12].copy_from_slice(&self.sequence.to_be_bytes());
        head[12..].copy_from_slice(&self.domain.to_be_bytes());
        head
    }
}

/// A message, and what follows it.
pub type Cut<'a> = (&'a [u8], &'a [u8]);

/// Cuts the first message off a stream. `None`: more bytes are needed, at most [`MAX_MESSAGE`] in
/// all.
///
/// # Errors
/// What comes is not IPFIX; a stream cannot be found back into.
pub fn first(stream: &[u8]) -> Result<Option<Cut<'_>>, MessageError> {
    match Header::parse(stream) {
        Ok(head) => Ok(stream.split_at_checked(usize::from(head.length))),
        Err(MessageError::Short) if stream.first().is_none_or(|high| *high == 0) => Ok(None),
        Err(MessageError::Short) => Err(MessageError::Version(u16::from(stream[0]) << 8)),
        Err(error) => Err(error),
    }
}

/// A set as it lies in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Set<'a> {
    /// What is in it.
    pub id: u16,
    /// Without its head.
    pub body: &'a [u8],
}

/// The sets of a message's body; ends with the first whose length cannot be.
#[derive(Debug, Clone)]
pub struct Sets<'a>(&'a [u8]);

/// The sets of a whole message.
pub fn sets(message: &[u8]) -> Sets<'_> {
    Sets(message.get(HEADER_LEN..).unwrap_or_default())
}

impl<'a> Iterator for Sets<'a> {
    type Item = Result<Set<'a>, MessageError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.0);
        let Some(&[i0, i1, l0, l1]) = bytes.first_chunk() else {
            return Some(Err(MessageError::Short));
        };
        let length = u16::from_be_bytes([l0, l1]);
        let whole = usize::from(length);
        if whole < SET_HEADER_LEN || whole > bytes.len() {
            return Some(Err(MessageError::SetLength(length)));
        }
        self.0 = &bytes[whole..];
        Some(Ok(Set { id: u16::from_be_bytes([i0, i1]), body: &bytes[SET_HEADER_LEN..whole] }))
    }
}

/// Fills messages with records, one session and domain. Whatever is full goes to `out`, which gets
/// whole messages.
#[derive(Debug, Clone)]
pub struct Writer {
    domain: u32,
    limit: usize,
    sequence: u32,
    records: u32,
    exported_at: u32,
    message: Vec<u8>,
    /// Set being filled, and where it begins.
    set: Option<(u16, usize)>,
    too_long: u64,
}

impl Writer {
    /// Messages of this domain of at most `limit` bytes, which is put between [`MAX_UDP_MESSAGE`]
    /// and [`MAX_MESSAGE`].
    pub fn new(domain: u32, limit: usize) -> Self {
        let limit = limit.clamp(MAX_UDP_MESSAGE, MAX_MESSAGE);
        let message = Vec::with_capacity(limit);
        Self { domain, limit, sequence: 0, records: 0, exported_at: 0, message, set: None, too_long: 0 }
    }

    /// When the messages say that they left; holds from the next message on.
    pub fn set_time(&mut self, at: Wall) {
        self.exported_at = time::to_seconds(at);
    }

    /// Data records handed out or waiting, modulo 2³².
    pub fn sequence(&self) -> u32 {
        self.sequence.wrapping_add(self.records)
    }

    /// Records that were longer than a message and were left out.
    pub fn too_long(&self) -> u64 {
        self.too_long
    }

    /// Adds one record to a set of this id. Templates are records of sets 2 and 3.
    pub fn record(&mut self, set: u16, record: &[u8], out: &mut dyn FnMut(&[u8])) {
        if HEADER_LEN + SET_HEADER_LEN + record.len() > self.limit {
            self.too_long += 1;
            return;
        }
        let fits = |writer: &Self| {
            let opens = if writer.set.is_some_and(|(id, _)| id == set) { 0 } else { SET_HEADER_LEN };
            writer.message.len().max(HEADER_LEN) + opens + record.len() <= writer.limit
        };
        if !fits(self) {
            self.finish(out);
        }
        self.open(set);
        self.message.extend_from_slice(record);
        self.records += u32::from(set >= FIRST_DATA_SET);
    }

    /// Hands out what is waiting.
    pub fn finish(&mut self, out: &mut dyn FnMut(&[u8])) {
        self.close();
        if self.message.len() <= HEADER_LEN {
            return;
        }
        let head = Header {
            length: self.message.len() as u16,
            exported_at: self.exported_at,
            sequence: self.sequence,
            domain: self.domain,
        };
        self.message[..HEADER_LEN].copy_from_slice(&head.emit());
        out(&self.message);
        self.message.clear();
        self.sequence = self.sequence.wrapping_add(self.records);
        self.records = 0;
    }

    fn open(&mut self, set: u16) {
        if self.set.is_some_and(|(id, _)| id == set) {
            return;
        }
        self.close();
        if self.message.is_empty() {
            self.message.extend_from_slice(&[0; HEADER_LEN]);
        }
        self.set = Some((set, self.message.len()));
        self.message.extend_from_slice(&set.to_be_bytes());
        self.message.extend_from_slice(&[0; 2]);
    }

    fn close(&mut self) {
        if let Some((_, begin)) = self.set.take() {
            let length = (self.message.len() - begin) as u16;
            self.message[begin + 2..begin + 4].copy_from_slice(&length.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(limit: usize, records: &[(u16, usize)]) -> Vec<Vec<u8>> {
        let mut writer = Writer::new(7, limit);
        writer.set_time(Wall(5_000_000_000));
        let mut messages = Vec::new();
        let mut out = |message: &[u8]| messages.push(message.to_vec());
        for &(set, len) in records {
            writer.record(set, &vec![0xab; len], &mut out);
        }
        writer.finish(&mut out);
        writer.finish(&mut out);
        messages
    }

    #[test]
    fn records_of_one_set_share_its_head() {
        let messages = written(512, &[(256, 3), (256, 3), (257, 1)]);
        assert_eq!(
            messages,
            [[
                &[0, 10, 0, 31, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 7][..],
                &[1, 0, 0, 10, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab],
                &[1, 1, 0, 5, 0xab]
            ]
            .concat()]
        );
    }

    #[test]
    fn the_sequence_counts_data_records_before_the_message() {
        let messages = written(512, &[(2, 400), (256, 400), (256, 90), (257, 400), (256, 1)]);
        let heads: Vec<Header> = messages.iter().map(|m| Header::parse(m).unwrap()).collect();
        assert_eq!(heads.iter().map(|h| h.sequence).collect::<Vec<_>>(), [0, 0, 2]);
        assert!(messages.iter().zip(&heads).all(|(m, h)| m.len() == usize::from(h.length) && m.len() <= 512));
    }

    #[test]
    fn what_fits_into_no_message_is_left_out_and_counted() {
        let mut writer = Writer::new(0, 512);
        writer.record(256, &[0; 493], &mut |_| {});
        assert_eq!((writer.too_long(), writer.sequence()), (1, 0));
        writer.record(256, &[0; 492], &mut |_| {});
        assert_eq!((writer.too_long(), writer.sequence()), (1, 1));
    }

    #[test]
    fn a_stream_is_cut_into_messages() {
        let mut stream = written(512, &[(256, 3)]).concat();
        stream.extend(written(512, &[(257, 1)]).concat());
        let (one, rest) = first(&stream).unwrap().unwrap();
        let (two, rest) = first(rest).unwrap().unwrap();
        assert_eq!((one.len(), two.len(), rest.len()), (23, 21, 0));
        for end in 0..one.len() {
            assert_eq!(first(&one[..end]), Ok(None), "{end}");
        }
        assert_eq!(first(b"GET / HTTP/1.1\r\n"), Err(MessageError::Version(0x4745)));
        assert_eq!(first(b"GE"), Err(MessageError::Version(0x4700)));
        assert_eq!(first(&[0, 10, 0, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Err(MessageError::Length(15)));
    }

    #[test]
    fn sets_that_lie_about_their_length_end_the_message() {
        let mut message = written(512, &[(256, 3), (257, 1)]).concat();
        message[HEADER_LEN + 3] = 3;
        assert_eq!(sets(&message).collect::<Vec<_>>(), [Err(MessageError::SetLength(3))]);
        message[HEADER_LEN + 3] = 200;
        assert_eq!(sets(&message).collect::<Vec<_>>(), [Err(MessageError::SetLength(200))]);
        message[HEADER_LEN + 3] = 9;
        assert_eq!(sets(&message).nth(1), Some(Err(MessageError::Short)));
    }
}
