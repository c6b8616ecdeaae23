//! UDP flows: who may attach one, and what a datagram that has arrived deserves.
//!
//! ```text
//! prober                      responder
//!   | Knock (token, test)  ->    |   known? nothing is stored
//!   |    <-  Cookie              |   computed from the secret, the address and the test
//!   | Enter (… cookie)     ->    |   right, and from that very address? now there is a flow
//!   |    <-  Entered (flow)      |   said again as often as it is asked for
//! ```
//!
//! Nothing is sent to an address that has not echoed its cookie, except the cookie itself, which is
//! shorter than the knock and needs a session's token. Everything that is not answered is counted
//! by reason.
//!
//! A request below 24 bytes has no room for its flow's number and belongs to the flow of the
//! address that it comes from, if that flow's plan is of such requests. Whoever forges that address
//! draws answers for it, so the plan keeps them short.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use netaware_io::zone::ZonedIp;
use netaware_wire::datagram::{ANSWER_LEN, DatagramError, ECHO_LEN, HEADER_LEN, Header, Kind, Setup};
use netaware_wire::header::HeaderFields;
use netaware_wire::{Token, proof};

use crate::meter::Meter;

/// The flow of one test, once its address is proven.
#[derive(Debug)]
pub(crate) struct Flow {
    /// In every datagram's header.
    pub(crate) number: u32,
    /// The prober's proven address.
    pub(crate) peer: SocketAddr,
    /// The address here that the prober spoke to; absent where the system does not tell.
    pub(crate) local: Option<IpAddr>,
    /// Echo requests answered.
    pub(crate) answered: AtomicU64,
    /// What its prober wants in the IP header of what is sent to it.
    pub(crate) header: HeaderFields,
    /// Holds its echoes to the owner's caps, where there are any.
    pub(crate) meter: Option<Arc<Meter>>,
    purpose: Purpose,
}

impl Flow {
    /// The address here that the prober spoke to, on the link over which it came if the address is
    /// valid on that link only.
    pub(crate) fn spoken_to(&self) -> Option<ZonedIp> {
        let link = ZonedIp::of(self.peer).zone();
        self.local.map(|local| ZonedIp::from(local).within(link))
    }
}

/// What a flow is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Requests up to this length are answered, with this DSCP; with so many bytes, or with as many
    /// as they have.
    Echo { longest: usize, response: Option<usize>, dscp: u8 },
    /// A stream has a socket of its own from its start on.
    Stream,
}

impl Purpose {
    /// Whether its requests are too short to name their flow.
    fn is_of_short_requests(self) -> bool {
        matches!(self, Self::Echo { longest, .. } if longest < HEADER_LEN)
    }
}

/// What to do with a datagram.
#[derive(Debug)]
pub(crate) enum Deed {
    /// Send these bytes back.
    Answer([u8; ANSWER_LEN]),
    /// Send these bytes back, and tell the session that its flow is here.
    Welcome([u8; ANSWER_LEN], Token, u32, Arc<Flow>),
    /// An echo request of this flow, to be answered with so many bytes and this DSCP.
    Echo { flow: Arc<Flow>, response: usize, dscp: u8 },
    /// Nothing.
    Drop,
}

/// The flows of all sessions; shared by the reflecting threads and the control sessions.
#[derive(Debug)]
pub(crate) struct FlowTable {
    secret: [u8; 32],
    inner: Mutex<Inner>,
    /// Datagrams dropped, by [`Reason`].
    dropped: [AtomicU64; Reason::ALL.len()],
}

#[derive(Debug, Default)]
struct Inner {
    /// Tests that may attach a flow. Bounded by sessions and the tests of each.
    expected: HashMap<(Token, u32), Expected>,
    flows: HashMap<u32, Arc<Flow>>,
    /// Numbers of the flows of short requests.
    short: HashMap<SocketAddr, u32>,
    /// Numbers are given out in an order that nobody can predict, so that a number guessed is a
    /// number refused.
    drawn: u32,
}

#[derive(Debug)]
struct Expected {
    purpose: Purpose,
    header: HeaderFields,
    meter: Option<Arc<Meter>>,
    flow: Option<Arc<Flow>>,
}

/// Why a datagram is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Shorter than its kind needs.
    Short,
    /// Not ours.
    Foreign,
    /// Ours, from another version, or of a kind that only a responder sends.
    Kind,
    /// No session expects it.
    Unknown,
    /// A cookie that does not fit its address.
    Cookie,
    /// A flow's number from another address than the flow's.
    Address,
    /// Longer than the plan said, or of a stream that has not begun or is over.
    Plan,
}

impl Reason {
    pub(crate) const ALL: [Self; 7] =
        [Self::Short, Self::Foreign, Self::Kind, Self::Unknown, Self::Cookie, Self::Address, Self::Plan];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Foreign => "foreign",
            Self::Kind => "kind",
            Self::Unknown => "unknown",
            Self::Cookie => "cookie",
            Self::Address => "address",
            Self::Plan => "plan",
        }
    }
}

impl From<DatagramError> for Reason {
    fn from(error: DatagramError) -> Self {
        match error {
            DatagramError::Short => Self::Short,
            DatagramError::Foreign => Self::Foreign,
            DatagramError::UnknownKind => Self::Kind,
        }
    }
}

impl FlowTable {
    /// `secret` and the start of the numbers are random.
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        Self { secret, inner: Mutex::default(), dropped: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// Lets `test` of the session with `token` attach a flow.
    pub(crate) fn expect(&self, token: Token, test: u32, purpose: Purpose, header: HeaderFields) {
        self.expect_metered(token, test, purpose, header, None);
    }

    /// The same with what holds its echoes to the owner's caps.
    pub(crate) fn expect_metered(
        &self,
        token: Token,
        test: u32,
        purpose: Purpose,
        header: HeaderFields,
        meter: Option<Arc<Meter>>,
    ) {
        self.lock().expected.insert((token, test), Expected { purpose, header, meter, flow: None });
    }

    /// Forgets a test and its flow.
    pub(crate) fn forget(&self, token: Token, test: u32) -> Option<Arc<Flow>> {
        let mut inner = self.lock();
        let flow = inner.expected.remove(&(token, test))?.flow?;
        inner.flows.remove(&flow.number);
        if flow.purpose.is_of_short_requests() {
            inner.short.remove(&flow.peer);
        }
        Some(flow)
    }

    /// Judges a datagram that came from `from` to the address `local` of this host.
    pub(crate) fn judge(&self, bytes: &[u8], from: SocketAddr, local: Option<IpAddr>) -> Deed {
        self.consider(bytes, from, local).unwrap_or_else(|reason| {
            self.count(reason);
            Deed::Drop
        })
    }

    /// How many datagrams were dropped for `reason`.
    pub(crate) fn dropped(&self, reason: Reason) -> u64 {
        self.dropped[reason as usize].load(Ordering::Relaxed)
    }

    fn count(&self, reason: Reason) {
        self.dropped[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn consider(&self, bytes: &[u8], from: SocketAddr, local: Option<IpAddr>) -> Result<Deed, Reason> {
        if bytes.len() < HEADER_LEN {
            return self.short_echo(bytes, from);
        }
        let header = Header::parse(bytes)?;
        match header.kind {
            Kind::EchoRequest => self.echo(&header, bytes, from),
            Kind::Knock | Kind::Enter => self.set_up(&header, bytes, from, local),
            Kind::Data | Kind::End => Err(Reason::Plan),
            Kind::Cookie | Kind::Entered | Kind::EchoReply => Err(Reason::Kind),
        }
    }

    fn echo(&self, header: &Header, bytes: &[u8], from: SocketAddr) -> Result<Deed, Reason> {
        let flow = self.lock().flows.get(&header.flow).cloned().ok_or(Reason::Unknown)?;
        if flow.peer != from {
            return Err(Reason::Address);
        }
        match flow.purpose {
            Purpose::Echo { longest, .. } if bytes.len() > longest => Err(Reason::Plan),
            Purpose::Echo { response: Some(response), dscp, .. } => Ok(Deed::Echo { flow, response, dscp }),
            Purpose::Echo { response: None, .. } if bytes.len() < ECHO_LEN => Err(Reason::Short),
            Purpose::Echo { response: None, dscp, .. } => {
                Ok(Deed::Echo { flow, response: bytes.len(), dscp })
            }
            Purpose::Stream => Err(Reason::Plan),
        }
    }

    fn short_echo(&self, bytes: &[u8], from: SocketAddr) -> Result<Deed, Reason> {
        let inner = self.lock();
        let number = inner.short.get(&from).filter(|_| !bytes.is_empty()).ok_or(Reason::Short)?;
        let flow = inner.flows.get(number).cloned().ok_or(Reason::Unknown)?;
        match flow.purpose {
            Purpose::Echo { longest, response: Some(response), dscp } if bytes.len() <= longest => {
                Ok(Deed::Echo { flow, response, dscp })
            }
            _ => Err(Reason::Plan),
        }
    }

    fn set_up(
        &self,
        header: &Header,
        bytes: &[u8],
        from: SocketAddr,
        local: Option<IpAddr>,
    ) -> Result<Deed, Reason> {
        let setup = Setup::parse(header, bytes)?;
        let Setup { token, test, .. } = setup;
        // A stream's own socket is bound to the address that was spoken to, which must be one
        // host's.
        if local.is_some_and(|local| local.is_multicast()) {
            return Err(Reason::Address);
        }
        let mut inner = self.lock();
        let Inner { expected, flows, short, drawn } = &mut *inner;
        let expected = expected.get_mut(&(token, test)).ok_or(Reason::Unknown)?;
        let cookie = proof::cookie(&self.secret, from, token, test);
        if header.kind == Kind::Knock {
            let answer = Setup { token: Token::default(), test, cookie };
            return Ok(Deed::Answer(answer.emit_answer(Kind::Cookie, 0)));
        }
        if setup.cookie != cookie {
            return Err(Reason::Cookie);
        }
        let entered = |flow: &Flow| {
            Setup { token: Token::default(), test, cookie }.emit_answer(Kind::Entered, flow.number)
        };
        match &expected.flow {
            Some(flow) if flow.peer == from => Ok(Deed::Answer(entered(flow))),
            Some(_) => Err(Reason::Address),
            // Two flows of requests that say only where they come from could not be told apart.
            None if expected.purpose.is_of_short_requests() && short.contains_key(&from) => {
                Err(Reason::Address)
            }
            None => {
                let number = self.draw(drawn, |number| flows.contains_key(&number));
                let (purpose, header, meter) = (expected.purpose, expected.header, expected.meter.clone());
                let answered = AtomicU64::new(0);
                let flow = Arc::new(Flow { number, peer: from, local, answered, header, meter, purpose });
                flows.insert(number, Arc::clone(&flow));
                if purpose.is_of_short_requests() {
                    short.insert(from, number);
                }
                expected.flow = Some(Arc::clone(&flow));
                Ok(Deed::Welcome(entered(&flow), token, test, flow))
            }
        }
    }

    /// A number that is not taken. It is no secret, its address guards it; it is only kept from
    /// being guessed in order.
    fn draw(&self, drawn: &mut u32, taken: impl Fn(u32) -> bool) -> u32 {
        loop {
            *drawn = drawn.wrapping_add(1);
            let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
            let Token(mixed) = proof::cookie(&self.secret, nowhere, Token::default(), *drawn);
            let number = u32::from_be_bytes([mixed[0], mixed[1], mixed[2], mixed[3]]);
            if number != 0 && !taken(number) {
                return number;
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
