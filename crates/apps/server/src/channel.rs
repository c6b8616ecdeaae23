//! A page's flows of datagrams: WebRTC data channels on the very port that everything else uses.
//!
//! ```text
//! browser                        reflector                        courier, a thread for each flow
//!   | STUN (ufrag, proof)  ──►      | its ufrag, its IP?     ──►     |  the right proof? this port may be answered
//!   |    ◄─────────────────────────────────────────────────────────  |  answer
//!   | DTLS, SCTP           ──►      | of such a port?        ──►     |  handshakes
//!   | datagrams            ────────────────────────────────────►     |  once the channel is open: a socket of its own,
//!   |                                                                |  connected, so the kernel sorts from here on
//! ```
//!
//! Inside the channel travel the datagrams of docs/protocol.md §4, one in a message, and reports
//! are the same. All of WebRTC is a library's ([`association`]), which does no I/O; which addresses
//! it hears and where it sends to is ours to decide ([`ports`]): only the IP address of the control
//! connection, which TCP has proven, and only the port that held the handshake. What cannot be seen
//! here: copies (DTLS drops them), and what comes after SCTP has given it up
//! (docs/methods/data-channel.md).

mod association;
mod courier;
mod doors;
mod ledger;
mod ports;
mod sender;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

use netaware_io::stop::StopFlag;
use netaware_pool::Place;
use netaware_wire::control::{ChannelEnd, TestPlan, UdpPlan};
use netaware_wire::header::HeaderFields;

use crate::context::Events;
use crate::meter::Meter;
use crate::reflector::Reflector;
use crate::runner::{Reporter, spawn};
use crate::{random, rig};
pub(crate) use association::Certificate;
use association::{Association, Ends};
use courier::Courier;
pub(crate) use doors::Doors;

/// What a channel is opened for.
#[derive(Debug, Clone, PartialEq)]
enum Use {
    /// Requests up to this length are answered, with so many bytes or with as many as they have.
    Echo { longest: usize, response: Option<usize>, dscp: u8 },
    /// A stream, either way.
    Stream(UdpPlan),
}

impl Use {
    /// Of a plan that has been checked; `None` for those that no channel carries.
    fn of(plan: &TestPlan) -> Option<Self> {
        match plan {
            TestPlan::Udp(plan) => Some(Self::Stream(plan.clone())),
            TestPlan::UdpEcho { length, response, dscp, .. } => Some(Self::Echo {
                longest: *length as usize,
                response: response.map(|response| response as usize),
                dscp: *dscp,
            }),
            TestPlan::TcpEcho { .. } | TestPlan::Tcp(_) | TestPlan::Trains(_) => None,
        }
    }
}

/// A flow in a channel, as its session holds it. Dropping it ends the channel.
pub(crate) struct Channel {
    stop: StopFlag,
    go: mpsc::Sender<Reporter>,
    counts: Arc<Counts>,
    is_running: bool,
}

/// What a channel counts as it goes.
#[derive(Debug, Default)]
struct Counts {
    /// Echo requests.
    answered: AtomicU64,
    /// Datagrams dropped in this host, or held back under a cap.
    drops: AtomicU64,
}

impl Channel {
    /// Starts the stream; its end is told by the reporter. The flag ends it early.
    pub(crate) fn run(mut self, reporter: Reporter) -> StopFlag {
        self.is_running = true;
        // Where the courier has gone, the reporter is dropped and so says that nothing ran.
        let _ = self.go.send(reporter);
        self.stop.clone()
    }

    /// Echo requests answered, and datagrams dropped in this host.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.counts.answered.load(Ordering::Acquire), self.counts.drops.load(Ordering::Acquire))
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        if !self.is_running {
            self.stop.raise();
        }
    }
}

/// Everything that a flow needs to know of where it belongs.
pub(crate) struct Belonging {
    pub(crate) test: u32,
    /// Checked by [`crate::plan::check_channel`].
    pub(crate) plan: TestPlan,
    pub(crate) header: HeaderFields,
    /// Where the page's control connection came in: the channel will, too.
    pub(crate) local: SocketAddr,
    /// Where it came from: the channel's datagrams come from the same IP address.
    pub(crate) peer: SocketAddr,
    /// Interfaces whose drops count.
    pub(crate) interfaces: Vec<String>,
    /// Holds its echoes to the owner's caps, where there are any.
    pub(crate) meter: Option<Arc<Meter>>,
    /// Held as long as the channel lives.
    pub(crate) _place: Place,
    pub(crate) events: Events,
}

/// Lets a page open a channel, and gives the end here that it must know.
pub(crate) fn open(
    belonging: Belonging,
    reflector: Arc<Reflector>,
    certificate: &Certificate,
    theirs: &ChannelEnd,
) -> io::Result<(Channel, ChannelEnd)> {
    let Some(purpose) = Use::of(&belonging.plan) else { return Err(io::ErrorKind::InvalidInput.into()) };
    let [ufrag, first, second] = random::tokens().map_err(io::Error::other)?;
    let ours = ChannelEnd {
        ufrag: ufrag.to_string(),
        pwd: format!("{first}{second}"),
        fingerprint: certificate.fingerprint.clone(),
    };
    let page = ports::host_of(belonging.peer);
    let (door, packets) = reflector.doors().open(page, &ours.ufrag);
    let ends = Ends { ours: ours.clone(), theirs: theirs.clone(), local: belonging.local, page };
    let options = match &purpose {
        Use::Stream(plan) => rig::udp_options(plan, belonging.header),
        Use::Echo { dscp, .. } => rig::header_options(HeaderFields { dscp: *dscp, ..belonging.header }),
    };
    let certificate = certificate.clone();
    let (stop, counts) = (StopFlag::new(), Arc::new(Counts::default()));
    let (go, told) = mpsc::channel();
    let channel = Channel { stop: stop.clone(), go, counts: Arc::clone(&counts), is_running: false };
    spawn("netaware-channel", move || {
        match Association::new(reflector, door, packets, &certificate, &ends, options) {
            Ok(association) => Courier { association, belonging, purpose, told, stop, counts }.serve(),
            Err(error) => tracing::warn!(%error, "a data channel cannot be set up"),
        }
    })?;
    Ok((channel, ours))
}

/// At a time: each costs a thread and, at worst, a megabyte or two.
pub(crate) const MOST_CHANNELS: usize = 64;
