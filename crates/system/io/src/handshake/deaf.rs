//! Systems whose raw sockets are not given TCP's segments.

use std::io;

use netaware_units::Mono;

use crate::zone::ZonedIp;

/// Never made.
#[derive(Debug)]
pub enum AnswerEar {}

impl AnswerEar {
    /// Refused.
    ///
    /// # Errors
    /// Always.
    pub fn open(_: ZonedIp) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "hearing TCP's segments needs Linux"))
    }

    pub(super) fn answer(&mut self, _: u16, _: u16, _: Mono) -> Option<Mono> {
        match *self {}
    }
}
