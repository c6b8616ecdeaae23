//! Why a transfer, or a file of it, does not come to its end.

use std::io;
use std::path::PathBuf;

use netaware_stream::ConnectError;
use netaware_units::Span;
use netaware_wire::transfer::RefusalCode;

/// Why there is no more to be said over a stream.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The stream has failed or ended too soon.
    #[error("the connection broke: {0}")]
    Stream(io::Error),
    /// The other end says nothing, though there is a connection.
    #[error("the other end has said nothing for {0}")]
    Silent(Span),
    /// The other end ends the transfer.
    #[error("the other end ends the transfer: {why}")]
    Refused {
        /// Why.
        code: RefusalCode,
        /// Its words.
        why: String,
    },
    /// This end ends it, and has said why.
    #[error("turned away: {0}")]
    TurnedAway(String),
    /// The other end wants a proof of a key, and there is none here.
    #[error("the receiver wants a key: give it with --key-file or NETAWARE_KEY")]
    KeyNeeded,
    /// The other end has not proven that it knows the key.
    #[error("the receiver does not know the key: it is another one, or set up without --key-file")]
    FalseReceiver,
    /// What came is nothing that this protocol has.
    #[error("{0}")]
    Protocol(String),
    /// The other end does not encrypt, or is not who it has to be.
    #[error("TLS: {0}")]
    Tls(String),
    /// This end was told to stop.
    #[error("interrupted")]
    Stopped,
}

impl Broken {
    /// Whether the same command, given again, goes on where this one ended.
    pub fn can_go_on(&self) -> bool {
        self.is_passing() || matches!(self, Self::Stopped)
    }

    /// Whether the same may go well over another stream.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Stream(_) | Self::Silent(_) | Self::Refused { code: RefusalCode::Busy, .. })
    }
}

/// Why nothing was sent at all, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// A file that was named cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// It would have no name at the receiver.
    #[error("{} cannot be sent: {why}", path.display())]
    Name {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// There was never a stream.
    #[error("{0}{advice}", advice = advice(.0))]
    Connect(#[from] ConnectError),
    /// What was done until then stands in the report.
    #[error("{0}")]
    Broken(#[from] Broken),
    /// This host has no random numbers, no memory file or the like.
    #[error("{0}")]
    Host(io::Error),
}

/// What to look at where a host was tried and no stream came to be.
fn advice(why: &ConnectError) -> &'static str {
    match why {
        ConnectError::Failed { .. } => "; is 'netaware receive' running there, and the port open?",
        _ => "",
    }
}

/// Why one entry did not come to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its name, as it was sent.
    pub path: String,
    /// Why.
    pub why: String,
}
