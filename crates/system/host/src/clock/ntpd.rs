//! ntpd's variables by NTP control messages (mode 6, RFC 9327): what `ntpq -c rv` asks.

use std::fmt;
use std::net::SocketAddr;

use netaware_record::passive::ClockState;
use netaware_units::Span;

use super::{Taken, ask_udp, seconds};

/// A piece of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// System status word: the upper two bits are the leap indicator, 3 for "not synchronised".
    pub status: u16,
    /// Where its text begins in the whole.
    pub offset: u16,
    /// Whether others follow.
    pub more: bool,
    /// Its text.
    pub text: &'a [u8],
}

/// Why a datagram is no piece of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseError {
    /// Shorter than its header, or than it says.
    Short(usize),
    /// No answer to a question of ours.
    NotOurs,
    /// ntpd refuses.
    Refused,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(length) => write!(f, "an answer of ntpd ends after {length} bytes"),
            Self::NotOurs => write!(f, "this answers no question of ours"),
            Self::Refused => write!(f, "ntpd refuses to tell its variables"),
        }
    }
}

impl std::error::Error for ParseError {}

impl<'a> Piece<'a> {
    /// Reads a datagram that answers the question with this number.
    pub fn parse(bytes: &'a [u8], sequence: u16) -> Result<Self, ParseError> {
        let short = ParseError::Short(bytes.len());
        let (header, rest) = bytes.split_first_chunk::<12>().ok_or(short)?;
        let at = |place| u16::from_be_bytes([header[place], header[place + 1]]);
        if header[0] & 7 != CONTROL
            || header[1] & RESPONSE == 0
            || header[1] & 0x1f != READ
            || at(2) != sequence
        {
            return Err(ParseError::NotOurs);
        }
        if header[1] & ERROR != 0 {
            return Err(ParseError::Refused);
        }
        let text = rest.get(..usize::from(at(10))).ok_or(short)?;
        Ok(Self { status: at(4), offset: at(8), more: header[1] & MORE != 0, text })
    }
}

/// An answer that comes in pieces, in any order.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    text: Vec<u8>,
    filled: usize,
    whole: Option<usize>,
    status: u16,
}

impl Variables {
    /// Adds a piece; `true` when nothing is missing any more. What lies beyond 8 KiB is left out.
    pub fn add(&mut self, piece: Piece<'_>) -> bool {
        let from = usize::from(piece.offset);
        let until = from + piece.text.len();
        if until > LONGEST {
            return false;
        }
        if self.text.len() < until {
            self.text.resize(until, 0);
        }
        self.text[from..until].copy_from_slice(piece.text);
        self.filled += piece.text.len();
        self.status = piece.status;
        if !piece.more {
            self.whole = Some(until);
        }
        self.whole.is_some_and(|whole| self.filled >= whole)
    }

    /// The number of that name.
    pub fn number(&self, name: &str) -> Option<f64> {
        let text = String::from_utf8_lossy(&self.text);
        let of_name = |pair: &str| {
            let (key, value) = pair.split_once('=')?;
            (key.trim() == name).then(|| value.trim().parse().ok())?
        };
        text.split(',').find_map(of_name).filter(|number: &f64| number.is_finite())
    }

    /// As reports have it. The variables are milliseconds; `offset` is what the clock lacks.
    pub fn state(&self) -> ClockState {
        let millis = |name| self.number(name).and_then(|value| seconds(value / 1e3));
        let synchronised = self.status >> 14 != 3;
        let offset = millis("offset");
        let bound = millis("rootdisp")
            .zip(millis("rootdelay"))
            .map(|(dispersion, delay)| dispersion + Span(delay.0 / 2) + offset.unwrap_or(Span::ZERO).abs());
        ClockState {
            source: "ntpd".to_owned(),
            synchronised,
            offset: offset.map(|offset| -offset),
            bound: bound.filter(|bound| synchronised && bound.0 >= 0),
            frequency_ppm: self.number("frequency"),
            ..ClockState::default()
        }
    }
}

pub(super) fn ask(at: SocketAddr) -> Option<ClockState> {
    let sequence = (std::process::id() & 0xffff) as u16;
    let mut question = [0; 12];
    question[0] = VERSION << 3 | CONTROL;
    question[1] = READ;
    question[2..4].copy_from_slice(&sequence.to_be_bytes());
    let mut variables = Variables::default();
    let take = |bytes: &[u8]| match Piece::parse(bytes, sequence) {
        Ok(piece) if variables.add(piece) => Taken::All,
        Ok(_) | Err(_) => Taken::More,
    };
    ask_udp(at, &question, take).ok()?;
    Some(variables.state())
}

const VERSION: u8 = 2;
const CONTROL: u8 = 6;
const RESPONSE: u8 = 0x80;
const ERROR: u8 = 0x40;
const MORE: u8 = 0x20;
/// Read variables; with association 0 those of the system.
const READ: u8 = 2;
const LONGEST: usize = 8192;

#[cfg(test)]
pub(super) mod tests {
    use std::net::UdpSocket;

    use super::*;

    fn piece(sequence: u16, status: u16, offset: u16, more: bool, text: &str) -> Vec<u8> {
        let mut bytes = vec![0x16, RESPONSE | READ | if more { MORE } else { 0 }];
        for field in [sequence, status, 0, offset, text.len() as u16] {
            bytes.extend(field.to_be_bytes());
        }
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// Answers one question in these pieces, the last first.
    pub(in super::super) fn serve_once(socket: &UdpSocket, status: u16, pieces: &[&str]) {
        let mut buffer = [0; 512];
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!((length, buffer[0], buffer[1]), (12, 0x16, 2));
        let sequence = u16::from_be_bytes([buffer[2], buffer[3]]);
        let mut offset: usize = pieces.iter().map(|text| text.len()).sum();
        for (nth, text) in pieces.iter().enumerate().rev() {
            offset -= text.len();
            let bytes = piece(sequence, status, offset as u16, nth + 1 < pieces.len(), text);
            socket.send_to(&bytes, from).unwrap();
        }
    }

    #[test]
    fn pieces_in_any_order_make_the_whole() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = socket.local_addr().unwrap();
        let texts = [
            "version=\"ntpd 4.2.8\", leap=00, stratum=2, rootd",
            "elay=10.500, rootdisp=4.250,\r\n offs",
            "et=0.125, frequency=-3.5",
        ];
        let daemon = std::thread::spawn(move || serve_once(&socket, 0x0615, &texts));
        let state = ask(at).unwrap();
        daemon.join().unwrap();
        assert!(state.synchronised);
        assert_eq!(state.bound, Some(Span::from_micros(4250 + 5250 + 125)));
        assert_eq!((state.offset, state.frequency_ppm), (Some(Span::from_micros(-125)), Some(-3.5)));
    }

    /// What ntpd of NTPsec 1.2.2 answered while it had no server yet.
    #[test]
    fn the_answer_of_a_real_ntpd_is_understood() {
        let text = "leap=3, stratum=16, precision=-24, rootdelay=0.000, rootdisp=1.185,\r\n\
                    refid=INIT, reftime=0x00000000.00000000, tc=0, peer=0, offset=0.000000,\r\n\
                    frequency=0.000000, sys_jitter=0.000000, clk_jitter=0.000060,\r\n\
                    clock=0xeeb17605.39e85692, processor=\"x86_64\",\r\n\
                    system=\"Linux/6.18.44\", version=\"ntpd ntpsec-1.2.2\",\r\n\
                    clk_wander=0.000000, mintc=0\r\n";
        let mut bytes = piece(7, 0xc016, 0, false, text);
        // It sets the leap indicator in the header too, and fills up to a multiple of four.
        bytes[0] |= 0xc0;
        let mut variables = Variables::default();
        assert!(variables.add(Piece::parse(&bytes, 7).unwrap()));
        let state = variables.state();
        assert_eq!((state.source.as_str(), state.synchronised, state.bound), ("ntpd", false, None));
        assert_eq!((state.offset, state.frequency_ppm), (Some(Span::ZERO), Some(0.0)));
        assert_eq!(variables.number("rootdisp"), Some(1.185));
    }

    #[test]
    fn an_alarm_means_no_bound() {
        let bytes = piece(1, 0xc016, 0, false, "rootdelay=0.0, rootdisp=1.0, offset=0.0");
        let mut variables = Variables::default();
        assert!(variables.add(Piece::parse(&bytes, 1).unwrap()));
        let state = variables.state();
        assert_eq!((state.synchronised, state.bound), (false, None));
    }

    #[test]
    fn what_is_no_answer_says_why() {
        let good = piece(9, 0, 0, false, "offset=1.0");
        for length in 0..22 {
            assert_eq!(Piece::parse(&good[..length], 9), Err(ParseError::Short(length)));
        }
        assert_eq!(Piece::parse(&good, 8), Err(ParseError::NotOurs));
        let mut refusing = good.clone();
        refusing[1] |= ERROR;
        assert_eq!(Piece::parse(&refusing, 9), Err(ParseError::Refused));
        let far = piece(9, 0, u16::MAX, false, "x");
        assert!(!Variables::default().add(Piece::parse(&far, 9).unwrap()));
    }
}
