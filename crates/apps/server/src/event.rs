//! What reaches a control session from elsewhere in the responder.

use std::sync::Arc;

use netaware_io::tcp::{Carriage, Stream};
use netaware_record::{ReceiverTick, SenderTick};
use netaware_wire::control::EndReport;
use netaware_wire::preface::{ATTACHED, Attach, REFUSED, Role};
use tokio::sync::oneshot;

use crate::admission::{Notice, SessionId};
use crate::flows::Flow;
use crate::plan::Cap;
use crate::web::Consent;

#[derive(Debug)]
pub(crate) enum Event {
    /// From the admission queue, for the reservation of this ticket.
    Notice(SessionId, Notice),
    /// A connection that presents the session's token and waits for an answer.
    Connection { welcome: Welcome, attach: Attach, stream: Stream },
    /// A browser's connection of an echo test, which its own task serves if the session agrees.
    Echo { attach: Attach, answer: oneshot::Sender<Option<Consent>> },
    /// A UDP flow whose address is proven.
    Entered { test: u32, flow: Arc<Flow> },
    /// The data channel of a test is open.
    ChannelOpen { test: u32 },
    /// It could not be opened, or broke.
    ChannelLost { test: u32, why: String },
    /// From a test's thread.
    ReceiverTick { test: u32, tick: ReceiverTick },
    /// From a test's thread.
    SenderTick { test: u32, tick: SenderTick },
    /// From a test's thread.
    VolleyTimes { test: u32, volley: u32, times: Vec<(u64, u64)>, last: bool, unstamped: u64 },
    /// A place that the test held was taken away for somebody else's.
    Evicted { test: u32 },
    /// An echo test has reached a cap of the owner's.
    CapReached { test: u32, cap: Cap },
    /// The session's place was.
    SessionEvicted,
    /// A test's thread is done; absent when it failed in a way that it could not report.
    Ended { test: u32, report: Option<Box<EndReport>> },
}

/// Whose connection it is, and how it is answered.
#[derive(Debug)]
pub(crate) enum Welcome {
    /// Answered with one byte.
    Prober(Role),
    /// Answered as HTTP has it.
    BrowserSends { attached: Vec<u8>, refused: Vec<u8> },
    /// Answered as HTTP has it; data are the body.
    BrowserReceives { attached: Vec<u8>, refused: Vec<u8> },
}

impl Welcome {
    pub(crate) fn attached(&self) -> &[u8] {
        match self {
            Self::Prober(_) => &[ATTACHED],
            Self::BrowserSends { attached, .. } | Self::BrowserReceives { attached, .. } => attached,
        }
    }

    pub(crate) fn refused(&self) -> &[u8] {
        match self {
            Self::Prober(_) => &[REFUSED],
            Self::BrowserSends { refused, .. } | Self::BrowserReceives { refused, .. } => refused,
        }
    }

    /// What the payload of a stream comes in.
    pub(crate) fn carriage(&self) -> Carriage {
        match self {
            Self::BrowserSends { .. } => Carriage::WebSocket,
            Self::Prober(_) | Self::BrowserReceives { .. } => Carriage::Plain,
        }
    }

    /// Whether it is a further connection of an echo test, without which the test goes on.
    pub(crate) fn is_echo(&self) -> bool {
        matches!(self, Self::Prober(Role::Echo))
    }
}
