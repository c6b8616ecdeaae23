//! What a transfer came to.

use std::net::SocketAddr;

use netaware_record::IpVersion;
use netaware_stream::Decision;
use netaware_units::{BitRate, Span};

use crate::error::{Broken, Failure};
use crate::gains::Switch;

/// What the policy of `auto` decided, and on which evidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decided {
    /// From the beginning of the transfer.
    pub at: Span,
    /// The decision; its own time is this host's clock.
    pub decision: Decision,
}

/// Of a sender.
#[derive(Debug, Default)]
pub struct SendReport {
    /// Files that were to be sent, and could be read when they were looked for.
    pub files: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Files that the receiver has written.
    pub written: u64,
    /// Files that it had already, with the same content.
    pub present: u64,
    /// Bytes of files that travelled; those that travelled again over another stream count again.
    /// Of a stream that broke only those count that the receiver has acknowledged.
    pub sent: u64,
    /// Bytes that did not travel, because the receiver had them from a transfer that broke off.
    pub resumed: u64,
    /// From the first connection on.
    pub took: Span,
    /// Streams after the first.
    pub reconnects: u32,
    /// Changes of the IP version.
    pub switches: Vec<Switch>,
    /// What the policy of `auto` decided, those decisions included that came to nothing; the first
    /// ten thousand.
    pub decisions: Vec<Decided>,
    /// Shares, in percent, at which it should have switched: the other version was not there in
    /// time, or the transfer was over.
    pub missed: Vec<f64>,
    /// What was not sent.
    pub failures: Vec<Failure>,
    /// Why it ended before all was said.
    pub ended: Option<Broken>,
}

impl SendReport {
    /// Whether everything that was named is there.
    pub fn is_complete(&self) -> bool {
        self.ended.is_none() && self.failures.is_empty()
    }
}

/// What happens while files are sent.
#[derive(Debug)]
pub enum Progress {
    /// So much there is to send.
    Planned {
        /// Files.
        files: u64,
        /// Bytes.
        bytes: u64,
    },
    /// There is a stream, and the receiver takes files.
    Connected,
    /// It goes on.
    Moved {
        /// Bytes that the receiver has, right to the few that go around the files.
        done: u64,
        /// Of so many.
        bytes: u64,
        /// What the receiver acknowledged lately.
        rate: Option<BitRate>,
        /// The IP version in use.
        via: Option<IpVersion>,
    },
    /// A change of the IP version is over.
    Switched(Switch),
    /// The policy of `auto` has decided.
    Decided(Decided),
    /// Something to know.
    Note(String),
}

/// Of one transfer, from the receiver's side.
#[derive(Debug)]
pub struct ReceiveReport {
    /// Who sent.
    pub from: SocketAddr,
    /// Files written.
    pub written: u64,
    /// Files that were there already.
    pub present: u64,
    /// Bytes of files that came.
    pub bytes: u64,
    /// Bytes that were there from a transfer that broke off.
    pub resumed: u64,
    /// From the stream's beginning.
    pub took: Span,
    /// What did not come to be; the first thousand.
    pub failures: Vec<Failure>,
    /// All of those.
    pub failed: u64,
    /// Why it ended before the sender said that this was all.
    pub ended: Option<Broken>,
}

impl ReceiveReport {
    /// Whether everything that was announced is there.
    pub fn is_complete(&self) -> bool {
        self.ended.is_none() && self.failed == 0
    }
}

/// What happens at a receiver.
#[derive(Debug)]
pub enum Event {
    /// A sender has been let in.
    Began {
        /// Which transfer, from 1.
        transfer: u64,
        /// From where.
        from: SocketAddr,
    },
    /// So much it is going to send at most.
    Planned {
        /// Which transfer.
        transfer: u64,
        /// Files.
        files: u64,
        /// Bytes.
        bytes: u64,
    },
    /// So much of it is there.
    Moved {
        /// Which transfer.
        transfer: u64,
        /// Bytes, those that were there already included.
        done: u64,
    },
    /// A transfer is over. One that was not let in has no beginning.
    Ended {
        /// Which transfer.
        transfer: u64,
        /// What came of it.
        report: ReceiveReport,
    },
}
