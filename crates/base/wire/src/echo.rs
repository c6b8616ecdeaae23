//! Request-responses over UDP of any length, down to one byte.
//!
//! ```text
//! length      begins with                                          the rest
//! 1..=23      the lowest bytes of the number, at most eight        pattern
//! 24..=43     the header of every datagram                         pattern
//! 44..        the header, then 20 bytes for the responder's stamps pattern
//! ```
//!
//! Request and response have the form of their own length each. A short request has no room for its
//! flow's number and belongs to the flow of the address that it comes from; a short response is
//! matched by what it has of the number; a response below 44 bytes has no stamps, so the
//! responder's own time cannot be taken out of its round trip.

use crate::datagram::{DatagramError, ECHO_LEN, EchoStamps, HEADER_LEN, Header, Kind};
use crate::pattern;

/// A request without a flow's number is answered by its address alone, which can be forged. What it
/// draws is therefore bounded: with IP and UDP headers by three times the request.
pub const MOST_TO_SHORT: usize = 64;

/// What a datagram of some length carries beside its pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A part of the number.
    Short,
    /// A header.
    Plain,
    /// A header and stamps.
    Stamped,
}

impl Form {
    /// The form of a datagram with so many bytes of payload.
    pub fn of(length: usize) -> Self {
        match length {
            0..HEADER_LEN => Self::Short,
            HEADER_LEN..ECHO_LEN => Self::Plain,
            _ => Self::Stamped,
        }
    }

    /// Where the pattern begins in a datagram of `length` bytes.
    fn pattern_at(length: usize) -> usize {
        match Self::of(length) {
            Self::Short => length.min(NUMBER_LEN),
            Self::Plain => HEADER_LEN,
            Self::Stamped => ECHO_LEN,
        }
    }
}

/// Bits of its number that a datagram of this length carries.
pub fn number_bits(length: usize) -> u32 {
    if length < HEADER_LEN { 8 * length.min(NUMBER_LEN) as u32 } else { u64::BITS }
}

/// The whole number of which only the lowest `bits` are known: the latest one below `next` that
/// ends in them. `None` if there is none.
pub fn number_from(low: u64, bits: u32, next: u64) -> Option<u64> {
    if bits >= u64::BITS {
        return Some(low);
    }
    let latest = next.checked_sub(1)?;
    let span = 1 << bits;
    let candidate = (latest & !(span - 1)) | (low & (span - 1));
    if candidate <= latest { Some(candidate) } else { candidate.checked_sub(span) }
}

/// Writes a request over all of `out`, which must not be empty.
pub fn emit_request(out: &mut [u8], flow: u32, seq: u64, sent_at: u64) {
    let length = out.len();
    emit(out, &Header { kind: Kind::EchoRequest, flow, seq, sent_at });
    fill_pattern(&mut out[..length], seq);
}

/// What the request in `bytes` says of itself. Of a short one flow and send time are zero, and its
/// number is what it has.
pub fn parse_request(bytes: &[u8]) -> Result<Header, DatagramError> {
    match Form::of(bytes.len()) {
        Form::Short => {
            let seq = short_number(bytes).ok_or(DatagramError::Short)?;
            Ok(Header { kind: Kind::EchoRequest, flow: 0, seq, sent_at: 0 })
        }
        Form::Plain | Form::Stamped => Header::parse(bytes),
    }
}

/// Turns the request in the first `request` bytes of `buf` into its response in the first
/// `response` bytes. `flow` is that of a request too short to say so itself.
///
/// Equal lengths with room for the stamps leave the request's own bytes as they are, so that what
/// was altered on the way there shows to the asker; in all other cases the pattern is made anew.
///
/// # Errors
/// No request, or no room for the response.
pub fn answer(
    buf: &mut [u8],
    request: usize,
    response: usize,
    flow: u32,
    stamps: &EchoStamps,
) -> Result<(), DatagramError> {
    if request == response && Form::of(request) == Form::Stamped {
        return stamps.answer(buf.get_mut(..request).ok_or(DatagramError::Short)?);
    }
    let asked = parse_request(buf.get(..request).ok_or(DatagramError::Short)?)?;
    let out = buf.get_mut(..response).filter(|out| !out.is_empty()).ok_or(DatagramError::Short)?;
    let flow = if Form::of(request) == Form::Short { flow } else { asked.flow };
    emit(out, &Header { kind: Kind::EchoReply, flow, ..asked });
    fill_pattern(out, asked.seq);
    if Form::of(response) == Form::Stamped { stamps.answer(out) } else { Ok(()) }
}

/// A response as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// Flow; absent in a short one.
    pub flow: Option<u32>,
    /// What it has of the number: the lowest [`number_bits`].
    pub seq: u64,
    /// The request's send time, given back; absent where either was short.
    pub sent_at: Option<u64>,
    /// The responder's stamps, where there was room for them.
    pub stamps: Option<EchoStamps>,
}

impl Reply {
    /// Reads a response whose length is as asked for, to a request of `request` bytes.
    ///
    /// # Errors
    /// Not a response.
    pub fn parse(bytes: &[u8], request: usize) -> Result<Self, DatagramError> {
        if Form::of(bytes.len()) == Form::Short {
            let seq = short_number(bytes).ok_or(DatagramError::Short)?;
            return Ok(Self { flow: None, seq, sent_at: None, stamps: None });
        }
        let header = Header::parse(bytes)?;
        if header.kind != Kind::EchoReply {
            return Err(DatagramError::Foreign);
        }
        let stamps = if bytes.len() < ECHO_LEN { None } else { Some(EchoStamps::parse(bytes)?) };
        let sent_at = (Form::of(request) != Form::Short).then_some(header.sent_at);
        Ok(Self { flow: Some(header.flow), seq: header.seq, sent_at, stamps })
    }
}

/// Whether the pattern of a response came back as it should be.
pub fn is_intact(bytes: &[u8], seq: u64) -> bool {
    let at = Form::pattern_at(bytes.len());
    pattern::matches(bytes.get(at..).unwrap_or_default(), seq, at as u64)
}

/// Everything before the pattern; the room for stamps is left empty.
fn emit(out: &mut [u8], header: &Header) {
    match Form::of(out.len()) {
        Form::Short => {
            let number = out.len().min(NUMBER_LEN);
            out[..number].copy_from_slice(&header.seq.to_be_bytes()[NUMBER_LEN - number..]);
        }
        Form::Plain => header.emit(out),
        Form::Stamped => {
            header.emit(out);
            out[HEADER_LEN..ECHO_LEN].fill(0);
        }
    }
}

fn fill_pattern(out: &mut [u8], seq: u64) {
    let at = Form::pattern_at(out.len());
    pattern::fill(&mut out[at..], seq, at as u64);
}

fn short_number(bytes: &[u8]) -> Option<u64> {
    let number = bytes.get(..bytes.len().min(NUMBER_LEN)).filter(|number| !number.is_empty())?;
    Some(number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Bytes of a whole number.
const NUMBER_LEN: usize = 8;

#[cfg(test)]
mod tests {
    use netaware_units::RemoteMono;

    use super::*;

    const STAMPS: EchoStamps =
        EchoStamps { received_at: RemoteMono(10), answered_at: RemoteMono(12), ttl: 60, kernel_stamp: true };

    /// The response to request 300 of flow 9.
    fn exchange(request: usize, response: usize) -> Vec<u8> {
        let mut buf = vec![0xee; 70_000];
        emit_request(&mut buf[..request], 9, 300, 77);
        answer(&mut buf, request, response, 9, &STAMPS).unwrap();
        buf.truncate(response);
        buf
    }

    const LENGTHS: [usize; 10] = [1, 2, 7, 8, 23, 24, 43, 44, 1472, 65_507];

    #[test]
    fn every_pair_of_lengths_makes_an_exchange_that_can_be_matched_and_checked() {
        for request in LENGTHS {
            for response in LENGTHS {
                let bytes = exchange(request, response);
                let reply = Reply::parse(&bytes, request).unwrap();
                let bits = number_bits(request).min(number_bits(response));
                assert_eq!(number_from(reply.seq, bits, 301), Some(300), "{request} and {response}");
                assert_eq!(reply.sent_at.is_some(), request >= HEADER_LEN && response >= HEADER_LEN);
                assert_eq!(reply.stamps, (response >= ECHO_LEN).then_some(STAMPS));
                assert_eq!(reply.flow.is_some(), response >= HEADER_LEN);
                assert!(is_intact(&bytes, 300), "{request} and {response}");
                assert!(response < 45 || !is_intact(&bytes, 301));
            }
        }
    }

    #[test]
    fn an_echo_of_equal_length_gives_back_the_requests_own_bytes() {
        let mut buf = vec![0; 100];
        emit_request(&mut buf, 9, 300, 77);
        buf[60] ^= 1;
        answer(&mut buf, 100, 100, 9, &STAMPS).unwrap();
        assert!(!is_intact(&buf, 300), "what was altered on the way there must show");
    }

    #[test]
    fn a_number_is_the_latest_that_ends_as_seen() {
        let rows = [
            (0xff, 8, 0x200, Some(0x1ff)),
            (0x00, 8, 0x200, Some(0x100)),
            (0x05, 8, 0x105, Some(0x05)),
            (0x04, 8, 0x105, Some(0x104)),
            (0x05, 8, 5, None),
            (0x00, 8, 0, None),
            (7, 64, 3, Some(7)),
        ];
        for (low, bits, next, want) in rows {
            assert_eq!(number_from(low, bits, next), want, "{low:#x} below {next:#x}");
        }
    }

    #[test]
    fn noise_is_no_request_and_no_response() {
        assert_eq!(parse_request(b""), Err(DatagramError::Short));
        assert_eq!(parse_request(&[0; 30]), Err(DatagramError::Foreign));
        assert_eq!(Reply::parse(b"", 1), Err(DatagramError::Short));
        let mut request = [0; 64];
        emit_request(&mut request, 1, 2, 3);
        assert_eq!(Reply::parse(&request, 64), Err(DatagramError::Foreign));
        assert_eq!(answer(&mut [0; 10], 4, 11, 1, &STAMPS), Err(DatagramError::Short));
        assert_eq!(answer(&mut [0; 10], 11, 4, 1, &STAMPS), Err(DatagramError::Short));
    }
}
