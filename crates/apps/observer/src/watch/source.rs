//! Where packets come from: an interface or a file, the same to everybody above.

use netaware_capture::Frame;
use netaware_passive::Link as Interface;
use netaware_record::passive::CaptureHealth;
use netaware_units::Span;

/// What a read came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// Frames were shown, or the patience ran out.
    More,
    /// There will be no more: a file's end.
    End,
}

/// Packets.
pub trait Source: Send {
    /// Shows what has come; waits for at most `patience` if nothing has.
    ///
    /// # Errors
    /// The source is of no use any more; why, for people.
    fn read(&mut self, patience: Span, see: &mut dyn FnMut(Frame<'_>)) -> Result<Read, String>;

    /// What was lost by cause since the last call; the counts of what was seen are the station's.
    fn health(&mut self) -> CaptureHealth;

    /// The interface as it is now, if it may be another than it was at the last call: its speed, as
    /// its MTU is the source's own business ([`Frame::segments`]).
    fn changed_link(&mut self) -> Option<Interface> {
        None
    }

    /// From now on lets only packets through that this filter accepts, in tcpdump's language;
    /// `None`: all.
    ///
    /// # Errors
    /// It cannot be used; why, for people.
    fn set_filter(&mut self, filter: Option<&str>) -> Result<(), String>;
}
