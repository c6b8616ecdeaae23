//! What a stream tells its driver.

use netaware_record::IpVersion;
use netaware_units::Span;

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A connection belongs to the stream.
    Up {
        /// Its IP version.
        ip: IpVersion,
        /// Which one of that version.
        generation: u32,
    },
    /// It does no more.
    Down {
        /// Its IP version.
        ip: IpVersion,
        /// Which one of that version.
        generation: u32,
        /// Why.
        why: Loss,
    },
    /// This direction goes another way from now on.
    Turning {
        /// From there.
        from: IpVersion,
        /// To there.
        to: IpVersion,
        /// Why.
        reason: Reason,
        /// First byte that goes there for the first time.
        offset: u64,
        /// Bytes that go there once more.
        again: u64,
    },
    /// The peer has every byte that went the old way.
    Turned {
        /// The new way.
        to: IpVersion,
        /// How long that took.
        took: Span,
    },
    /// A wish of this end has ended.
    WishEnded {
        /// As [`super::Stream::switch`] gave it.
        serial: u32,
        /// How.
        outcome: Outcome,
    },
    /// The answer to a ping.
    Pong {
        /// The connection.
        ip: IpVersion,
        /// That of the ping.
        nonce: u64,
    },
}

/// Why a connection is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Loss {
    /// The system reported its end: reset, closed or failed.
    Ended,
    /// It acknowledged nothing for too long.
    Silent,
    /// The peer gave it up.
    PeerSaid,
    /// There is a later one of the same IP version.
    Replaced,
}

/// Why a direction goes another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// This end wanted it.
    OwnWish,
    /// The peer wanted it.
    PeersWish,
    /// The way it went is lost.
    Loss,
}

/// How a wish ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Both directions go the way wanted, or did already.
    Granted,
    /// The peer wanted the other way at the same time.
    Crossed,
    /// The peer's application holds the stream where it is.
    Held,
    /// The connection wanted is lost.
    Down,
    /// A later wish took its place.
    Superseded,
    /// The stream ended before it had an answer.
    Over,
}

/// Why there can be no wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CannotSwitch {
    /// No connection of that IP version.
    #[error("there is no connection of that IP version")]
    Down,
    /// The application holds the stream.
    #[error("the stream is held where it is")]
    Held,
    /// The stream has ended.
    #[error("the stream has ended")]
    Over,
}

/// How the peer broke the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Violation {
    /// It has what was never sent.
    #[error("the peer acknowledged what was never sent")]
    AcknowledgedUnsent,
    /// It sent more than fits.
    #[error("the peer sent more than it was allowed to")]
    BeyondRoom,
    /// It sent more after its end.
    #[error("the peer sent bytes beyond the end of its stream")]
    BeyondEnd,
    /// It named two ends, or one before what it sent.
    #[error("the peer's stream has two ends")]
    OtherEnd,
    /// More pieces than two connections make.
    #[error("the peer's bytes come in too many pieces")]
    TooManyPieces,
    /// More questions than it took answers for.
    #[error("the peer asks more than it listens")]
    TooMuchAsked,
    /// A wish that came another way than the one that it names.
    #[error("the peer wished for another connection than the one it used")]
    WishElsewhere,
}
