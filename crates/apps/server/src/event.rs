//! What reaches a control session from elsewhere in the responder.

use std::net::TcpStream;
use std::sync::Arc;

use netaware_record::{ReceiverTick, SenderTick};
use netaware_wire::control::EndReport;
use netaware_wire::preface::{Attach, Role};

use crate::admission::{Notice, SessionId};
use crate::flows::Flow;

#[derive(Debug)]
pub(crate) enum Event {
    /// From the admission queue, for the reservation of this ticket.
    Notice(SessionId, Notice),
    /// A connection that presents the session's token; it waits for one byte of answer.
    Connection { role: Role, attach: Attach, stream: TcpStream },
    /// A UDP flow whose address is proven.
    Entered { test: u32, flow: Arc<Flow> },
    /// From a test's thread.
    ReceiverTick { test: u32, tick: ReceiverTick },
    /// From a test's thread.
    SenderTick { test: u32, tick: SenderTick },
    /// From a test's thread.
    VolleyTimes { test: u32, volley: u32, times: Vec<(u64, u64)>, last: bool, unstamped: u64 },
    /// A test's thread is done; absent when it failed in a way that it could not report.
    Ended { test: u32, report: Option<Box<EndReport>> },
}
