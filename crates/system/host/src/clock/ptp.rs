//! ptp4l's management messages (IEEE 1588-2008 §15, linuxptp's TIME_STATUS_NP): how far the host is
//! from its master.
//!
//! ptp4l keeps the clock of a network card, or the host's own where it stamps in software; phc2sys
//! carries the former to the latter. Both tell the kernel when they are locked, so the host's clock
//! is taken for synchronised only if the kernel says so too.

use std::fmt;
use std::path::{Path, PathBuf};

use netaware_record::passive::ClockState;
use netaware_units::Span;

use super::{Taken, ask_unix, own_path};

/// A data set that ptp4l told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// CURRENT_DATA_SET.
    Current {
        /// Hops from the grandmaster; 0: it is its own.
        steps: u16,
        /// Half the round trip to the master.
        path_delay: Span,
    },
    /// TIME_STATUS_NP.
    Status {
        /// Clock minus master.
        offset: Span,
        /// Whether there is a grandmaster.
        present: bool,
    },
}

/// Why a message is none of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseError {
    /// Ends early.
    Short(usize),
    /// Not a management response to us, or of something else.
    NotOurs,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(length) => write!(f, "an answer of ptp4l ends after {length} bytes"),
            Self::NotOurs => write!(f, "this answers no question of ours"),
        }
    }
}

impl std::error::Error for ParseError {}

impl Told {
    /// Reads the answer to the question with this number.
    pub fn parse(bytes: &[u8], sequence: u16) -> Result<Self, ParseError> {
        let short = ParseError::Short(bytes.len());
        let (header, data) = bytes.split_first_chunk::<HEADER>().ok_or(short)?;
        let at = |place: usize| u16::from_be_bytes([header[place], header[place + 1]]);
        let ours = header[0] & 0x0f == MANAGEMENT && header[1] & 0x0f == 2 && at(30) == sequence;
        if !ours || header[46] & 0x0f != RESPONSE || at(48) != TLV {
            return Err(ParseError::NotOurs);
        }
        match at(52) {
            CURRENT => {
                let data = data.first_chunk::<18>().ok_or(short)?;
                let (steps, rest) = data.split_first_chunk::<2>().ok_or(short)?;
                let delay = rest.last_chunk::<8>().ok_or(short)?;
                // Nanoseconds with 16 bits behind the point.
                let path_delay = Span(i64::from_be_bytes(*delay) >> 16);
                Ok(Self::Current { steps: u16::from_be_bytes(*steps), path_delay })
            }
            STATUS => {
                let data = data.first_chunk::<50>().ok_or(short)?;
                let offset = data.first_chunk::<8>().ok_or(short)?;
                let present = data[38..42] != [0; 4];
                Ok(Self::Status { offset: Span(i64::from_be_bytes(*offset)), present })
            }
            _ => Err(ParseError::NotOurs),
        }
    }
}

pub(super) fn ask(sockets: &[PathBuf], kernel: Option<&ClockState>) -> Option<ClockState> {
    let socket = sockets.iter().find(|path| path.exists())?;
    let Some(Told::Status { offset, present }) = ask_one(socket, STATUS) else { return None };
    let Some(Told::Current { steps, path_delay }) = ask_one(socket, CURRENT) else { return None };
    let locked = kernel.is_some_and(|kernel| kernel.synchronised);
    let synchronised = present && steps > 0 && locked;
    Some(ClockState {
        source: "ptp4l".to_owned(),
        synchronised,
        offset: Some(offset),
        // Were all of the round trip on one way, the clock would be off by the path delay.
        bound: synchronised.then(|| offset.abs() + path_delay.abs()),
        frequency_ppm: kernel.and_then(|kernel| kernel.frequency_ppm),
        ..ClockState::default()
    })
}

fn ask_one(socket: &Path, what: u16) -> Option<Told> {
    let sequence = (std::process::id() & 0xffff) as u16 ^ what;
    let mut told = None;
    let take = |bytes: &[u8]| match Told::parse(bytes, sequence) {
        Ok(found) => {
            told = Some(found);
            Taken::All
        }
        Err(_) => Taken::More,
    };
    ask_unix(socket, &own_path(socket, "netaware"), &question(sequence, what), take).ok()?;
    told
}

/// A GET with no data, to all ports.
fn question(sequence: u16, what: u16) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[0] = MANAGEMENT;
    bytes[1] = 2;
    bytes[2..4].copy_from_slice(&(HEADER as u16).to_be_bytes());
    bytes[30..32].copy_from_slice(&sequence.to_be_bytes());
    // Control field and interval that management messages have.
    bytes[32..34].copy_from_slice(&[4, 0x7f]);
    bytes[34..44].fill(0xff);
    bytes[48..50].copy_from_slice(&TLV.to_be_bytes());
    bytes[50..52].copy_from_slice(&2_u16.to_be_bytes());
    bytes[52..54].copy_from_slice(&what.to_be_bytes());
    bytes
}

/// Common header 34, management 14, TLV 6.
const HEADER: usize = 54;
const MANAGEMENT: u8 = 0x0d;
const RESPONSE: u8 = 2;
const TLV: u16 = 1;
const CURRENT: u16 = 0x2001;
const STATUS: u16 = 0xc000;

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    fn answer(question: &[u8], steps: u16, offset_ns: i64, delay_ns: i64) -> Vec<u8> {
        let mut bytes = question.to_vec();
        bytes[46] = RESPONSE;
        if question[52..54] == CURRENT.to_be_bytes() {
            bytes.extend(steps.to_be_bytes());
            bytes.extend((offset_ns << 16).to_be_bytes());
            bytes.extend((delay_ns << 16).to_be_bytes());
        } else {
            bytes.extend(offset_ns.to_be_bytes());
            bytes.extend([0; 30]);
            bytes.extend(1_u32.to_be_bytes());
            bytes.extend([7; 8]);
        }
        bytes
    }

    fn asked(steps: u16, kernel_locked: bool) -> ClockState {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ptp4l");
        let daemon = UnixDatagram::bind(&path).unwrap();
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 512];
            for _ in 0..2 {
                let (length, from) = daemon.recv_from(&mut buffer).unwrap();
                let bytes = answer(&buffer[..length], steps, -250, 1_500);
                daemon.send_to(&bytes, from.as_pathname().unwrap()).unwrap();
            }
        });
        let kernel = ClockState { synchronised: kernel_locked, ..ClockState::default() };
        let state = ask(&[folder.path().join("none"), path], Some(&kernel)).unwrap();
        thread.join().unwrap();
        state
    }

    #[test]
    fn a_locked_host_is_off_by_the_path_delay_at_most() {
        let state = asked(1, true);
        assert!(state.synchronised);
        assert_eq!((state.offset, state.bound), (Some(Span(-250)), Some(Span(1_750))));
    }

    #[test]
    fn a_card_that_is_locked_says_nothing_of_a_host_that_is_not() {
        assert_eq!((asked(1, false).synchronised, asked(1, false).bound), (false, None));
        assert!(!asked(0, true).synchronised, "it is its own master");
    }

    #[test]
    fn messages_that_end_early_or_are_of_others_are_refused() {
        for what in [CURRENT, STATUS] {
            let good = answer(&question(5, what), 1, 2, 3);
            assert!(Told::parse(&good, 5).is_ok());
            assert_eq!(Told::parse(&good, 6), Err(ParseError::NotOurs));
            for length in 0..good.len() {
                assert_eq!(Told::parse(&good[..length], 5), Err(ParseError::Short(length)), "{what:x}");
            }
            assert_eq!(Told::parse(&question(5, what), 5), Err(ParseError::NotOurs), "our own question");
        }
    }
}
