//! chronyd's monitoring protocol, version 6: the one request that `chronyc tracking` makes.
//!
//! The layout is that of chrony's `candm.h`; all numbers are big-endian. A request is as long as
//! its answer, or chronyd does not answer it. UDP port 323 answers who is on the host; the socket
//! in the file system answers who may write beside it, which also works from another network
//! namespace.

use std::fmt;

use netaware_record::passive::ClockState;

use super::{Places, Taken, ask_udp, ask_unix, own_path, seconds};

/// What chronyd says of the clock; times in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tracking {
    /// Whom it follows: an address or four letters; 0 for nobody.
    pub reference: u32,
    /// Hops from a true clock.
    pub stratum: u16,
    /// 0 to 2: synchronised, 3: not.
    pub leap: u16,
    /// To be added to the clock: positive when it is slow.
    pub correction: f64,
    /// What the clock would gain without being corrected, parts per million.
    pub frequency_ppm: f64,
    /// Round trip to the true clock.
    pub root_delay: f64,
    /// Everything else that may be wrong.
    pub root_dispersion: f64,
}

/// Why an answer is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseError {
    /// Shorter than it must be.
    Short(usize),
    /// Of another version of the protocol.
    Version(u8),
    /// Not an answer, or to another question.
    NotOurs,
    /// chronyd refuses, with this status.
    Refused(u16),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(length) => write!(f, "an answer of chronyd has {ANSWER} bytes, not {length}"),
            Self::Version(version) => write!(f, "chronyd speaks version {version}, not {VERSION}"),
            Self::NotOurs => write!(f, "this answers no question of ours"),
            Self::Refused(status) => write!(f, "chronyd refuses with status {status}"),
        }
    }
}

impl std::error::Error for ParseError {}

impl Tracking {
    /// Reads the answer to the request with this number.
    pub fn parse(answer: &[u8], sequence: u32) -> Result<Self, ParseError> {
        let header = answer.first_chunk::<28>().ok_or(ParseError::Short(answer.len()))?;
        if header[0] != VERSION {
            return Err(ParseError::Version(header[0]));
        }
        let at = |place| u16::from_be_bytes([header[place], header[place + 1]]);
        let ours = u32::from_be_bytes([header[16], header[17], header[18], header[19]]) == sequence;
        if header[1] != ANSWERS || at(4) != TRACKING || !ours {
            return Err(ParseError::NotOurs);
        }
        if at(8) != 0 {
            return Err(ParseError::Refused(at(8)));
        }
        if at(6) != TRACKING_ANSWER {
            return Err(ParseError::NotOurs);
        }
        let body = answer.get(28..ANSWER).ok_or(ParseError::Short(answer.len()))?;
        let word = |place: usize| {
            u32::from_be_bytes([body[place], body[place + 1], body[place + 2], body[place + 3]])
        };
        let half = |place: usize| u16::from_be_bytes([body[place], body[place + 1]]);
        let real = |nth: usize| float(word(40 + 4 * nth));
        Ok(Self {
            reference: word(0),
            stratum: half(24),
            leap: half(26),
            correction: real(0),
            frequency_ppm: real(3),
            root_delay: real(6),
            root_dispersion: real(7),
        })
    }

    /// As reports have it.
    pub fn state(&self) -> ClockState {
        let bound = self.root_dispersion + self.root_delay / 2.0 + self.correction.abs();
        ClockState {
            source: "chrony".to_owned(),
            // A host that follows itself is as right as it happens to be.
            synchronised: self.leap < 3 && self.reference != 0 && self.reference != ITSELF,
            offset: seconds(-self.correction),
            bound: seconds(bound).filter(|bound| self.leap < 3 && self.reference != ITSELF && bound.0 >= 0),
            frequency_ppm: Some(self.frequency_ppm),
            ..ClockState::default()
        }
    }
}

/// chronyd's own 32-bit numbers: 7 bits of exponent, 25 of coefficient, both in two's complement.
fn float(bits: u32) -> f64 {
    let exponent = (bits.cast_signed() >> 25) - 25;
    let coefficient = bits.cast_signed() << 7 >> 7;
    f64::from(coefficient) * f64::from(exponent).exp2()
}

pub(super) fn ask(places: &Places) -> Option<ClockState> {
    let sequence = std::process::id();
    let question = request(sequence);
    let mut tracking = None;
    let mut take = |answer: &[u8]| match Tracking::parse(answer, sequence) {
        Ok(found) => {
            tracking = Some(found);
            Taken::All
        }
        Err(ParseError::NotOurs) => Taken::More,
        Err(_) => Taken::All,
    };
    let udp = places.chrony_udp.iter().any(|address| ask_udp(*address, &question, &mut take).is_ok());
    if !udp && places.chrony_socket.exists() {
        let own = own_path(&places.chrony_socket, "netaware");
        let _ = ask_unix(&places.chrony_socket, &own, &question, &mut take);
    }
    tracking.map(|tracking| tracking.state())
}

fn request(sequence: u32) -> [u8; ANSWER] {
    let mut bytes = [0; ANSWER];
    bytes[0] = VERSION;
    bytes[1] = ASKS;
    bytes[4..6].copy_from_slice(&TRACKING.to_be_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_be_bytes());
    bytes
}

const VERSION: u8 = 6;
const ASKS: u8 = 1;
const ANSWERS: u8 = 2;
/// REQ_TRACKING.
const TRACKING: u16 = 33;
/// RPY_TRACKING.
const TRACKING_ANSWER: u16 = 5;
/// 28 bytes of header, 76 of tracking.
const ANSWER: usize = 104;
/// 127.127.1.1, the local clock.
const ITSELF: u32 = 0x7f7f_0101;

#[cfg(test)]
pub(super) mod tests {
    use std::net::UdpSocket;

    use netaware_units::Span;

    use super::*;

    fn bits(value: f64) -> u32 {
        // The coefficient as large as fits in 25 bits with its sign.
        let mut exponent = 0;
        let mut coefficient = value;
        while coefficient != 0.0 && coefficient.abs() < f64::from(1 << 23) && exponent > -63 {
            coefficient *= 2.0;
            exponent -= 1;
        }
        let field = ((exponent + 25) as u32) << 25;
        field | (coefficient.round() as i32).cast_unsigned() & 0x01ff_ffff
    }

    fn answer(tracking: &Tracking, sequence: u32) -> Vec<u8> {
        let mut bytes = vec![0; ANSWER];
        bytes[0] = VERSION;
        bytes[1] = ANSWERS;
        bytes[4..6].copy_from_slice(&TRACKING.to_be_bytes());
        bytes[6..8].copy_from_slice(&TRACKING_ANSWER.to_be_bytes());
        bytes[16..20].copy_from_slice(&sequence.to_be_bytes());
        bytes[28..32].copy_from_slice(&tracking.reference.to_be_bytes());
        bytes[52..54].copy_from_slice(&tracking.stratum.to_be_bytes());
        bytes[54..56].copy_from_slice(&tracking.leap.to_be_bytes());
        let reals = [
            (0, tracking.correction),
            (3, tracking.frequency_ppm),
            (6, tracking.root_delay),
            (7, tracking.root_dispersion),
        ];
        for (nth, value) in reals {
            bytes[68 + 4 * nth..72 + 4 * nth].copy_from_slice(&bits(value).to_be_bytes());
        }
        bytes
    }

    pub(in super::super) fn serve_once(socket: &UdpSocket, tracking: &Tracking) {
        let mut buffer = [0; 512];
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!(length, ANSWER, "a shorter request is not answered");
        assert_eq!((buffer[0], buffer[1], buffer[5]), (6, 1, 33));
        let sequence = u32::from_be_bytes([buffer[8], buffer[9], buffer[10], buffer[11]]);
        // One of somebody else comes before.
        socket.send_to(&answer(tracking, sequence ^ 1), from).unwrap();
        socket.send_to(&answer(tracking, sequence), from).unwrap();
    }

    const GOOD: Tracking = Tracking {
        reference: 0x5bbd_591f,
        stratum: 2,
        leap: 0,
        correction: 0.000_012,
        frequency_ppm: -12.5,
        root_delay: 0.020,
        root_dispersion: 0.001,
    };

    #[test]
    fn numbers_of_chrony_are_read() {
        // 1.0 as chrony writes it: coefficient 2^24 does not fit, so 2^23 with exponent 2.
        for (wire, want) in [(0x0480_0000, 1.0), (0, 0.0), (0x0500_0000, -2.0)] {
            assert!((float(wire) - want).abs() < 1e-12, "{wire:x}: {}", float(wire));
        }
        for value in [1.0, -1.0, 0.5, 1e-9, -3.25e-6, 12_345.678] {
            assert!((float(bits(value)) / value - 1.0).abs() < 1e-6, "{value}: {}", float(bits(value)));
        }
    }

    #[test]
    fn the_bound_is_dispersion_half_the_delay_and_what_is_being_corrected() {
        let found = Tracking::parse(&answer(&GOOD, 7), 7).unwrap();
        assert_eq!((found.stratum, found.leap, found.reference), (2, 0, GOOD.reference));
        let state = found.state();
        assert!(state.synchronised);
        assert!((state.bound.unwrap() - Span::from_micros(11_012)).abs() < Span(10), "{state:?}");
        // It is slow, so the clock minus the truth is negative.
        assert!((state.offset.unwrap() + Span::from_micros(12)).abs() < Span(10));
    }

    #[test]
    fn a_host_that_follows_itself_or_nobody_is_not_synchronised() {
        for tracking in [
            Tracking { reference: ITSELF, ..GOOD },
            Tracking { reference: 0, ..GOOD },
            Tracking { leap: 3, ..GOOD },
        ] {
            assert!(!tracking.state().synchronised);
        }
    }

    #[test]
    fn other_answers_say_what_they_are() {
        let good = answer(&GOOD, 7);
        let changed = |place: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[place] = byte;
            Tracking::parse(&bytes, 7).unwrap_err()
        };
        assert_eq!(changed(0, 5), ParseError::Version(5));
        assert_eq!(changed(1, 1), ParseError::NotOurs);
        assert_eq!(changed(7, 6), ParseError::NotOurs);
        assert_eq!(changed(9, 2), ParseError::Refused(2));
        assert_eq!(Tracking::parse(&good, 8), Err(ParseError::NotOurs));
        for length in 0..ANSWER {
            assert_eq!(Tracking::parse(&good[..length], 7), Err(ParseError::Short(length)));
        }
    }

    #[test]
    fn a_daemon_in_the_file_system_is_asked_where_udp_is_not_served() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chronyd.sock");
        let daemon = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 512];
            let (_, from) = daemon.recv_from(&mut buffer).unwrap();
            let sequence = u32::from_be_bytes([buffer[8], buffer[9], buffer[10], buffer[11]]);
            daemon.send_to(&answer(&GOOD, sequence), from.as_pathname().unwrap()).unwrap();
        });
        let state =
            ask(&Places { chrony_udp: Vec::new(), chrony_socket: path, ..Places::default() }).unwrap();
        thread.join().unwrap();
        assert!(state.synchronised);
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            1,
            "only the daemon's own socket is left"
        );
    }
}
