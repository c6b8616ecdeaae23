//! Where packets come from: an interface or a file, the same to everybody above.

use netaware_passive::Link as Interface;
use netaware_record::passive::CaptureHealth;
use netaware_units::{Span, Wall};
use netaware_wire::packet::LinkType;

/// A frame, as long as it is being looked at.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// When, by the wall clock.
    pub at: Wall,
    /// Whether the interface sent it.
    pub outgoing: bool,
    /// Packets that it stands for: more than 1 where offloads merged them, as far as the source can tell.
    pub segments: u16,
    /// Link layer first, as far as captured.
    pub bytes: &'a [u8],
    /// Bytes on the wire.
    pub wire_length: u32,
    /// What the first bytes are.
    pub link: LinkType,
}

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
    fn read(&mut self, patience: Span, see: &mut dyn FnMut(Seen<'_>)) -> Result<Read, String>;

    /// What was lost by cause since the last call; the counts of what was seen are the station's.
    fn health(&mut self) -> CaptureHealth;

    /// The interface as it is now, if it may be another than it was at the last call: its speed, as its MTU is the source's own
    /// business ([`Seen::segments`]).
    fn changed_link(&mut self) -> Option<Interface> {
        None
    }

    /// From now on lets only packets through that this filter accepts, in tcpdump's language; `None`: all.
    ///
    /// # Errors
    /// It cannot be used; why, for people.
    fn set_filter(&mut self, filter: Option<&str>) -> Result<(), String>;
}
