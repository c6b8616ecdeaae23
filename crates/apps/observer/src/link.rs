//! The connection to a collector: dialled by the probe, and again whenever it breaks.
//!
//! One thread per collector. It shows who it is, hears instructions, and sends batches from the
//! buffer in order, several under way at a time; a batch is forgotten when the collector says that
//! it is on its disk. Whatever breaks (a collector that restarts, lies, is silent or slow, or has
//! the wrong key) ends the connection, is told by [`Heard::Lost`], and is tried again after a wait
//! that doubles up to a minute. Measuring goes on meanwhile.

mod backoff;
mod channel;
mod session;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_io::zone;
use netaware_units::Span;
use netaware_wire::Token;
use netaware_wire::lmap::{DEFAULT_PORT, Instruction, ProbeStatus};
use netaware_wire::proof::Key;

use crate::buffer::Buffer;
use backoff::Backoff;
pub use netaware_tls::{Judge, Trust, TrustError};

/// Where a collector listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectorAddress {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// `tls://` stood before it.
    pub tls: bool,
}

/// Not `[tls://]HOST[:PORT]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a collector is HOST, HOST:PORT or tls://HOST:PORT, IPv6 addresses in brackets: [2001:db8::1]:14234")]
pub struct ParseCollectorError;

impl FromStr for CollectorAddress {
    type Err = ParseCollectorError;

    fn from_str(text: &str) -> Result<Self, ParseCollectorError> {
        let (tls, rest) = match text.split_once("://") {
            Some(("tls", rest)) => (true, rest),
            Some(("tcp", rest)) => (false, rest),
            Some(_) => return Err(ParseCollectorError),
            None => (false, text),
        };
        let (host, port) = if let Some(bracketed) = rest.strip_prefix('[') {
            let (host, port) = bracketed.split_once(']').ok_or(ParseCollectorError)?;
            if !zone::is_v6(host) {
                return Err(ParseCollectorError);
            }
            (
                host,
                if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or(ParseCollectorError)?) },
            )
        } else if zone::is_v6(rest) || rest.parse::<IpAddr>().is_ok() {
            (rest, None)
        } else {
            rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port)))
        };
        let port = port.map_or(Ok(DEFAULT_PORT), str::parse).map_err(|_| ParseCollectorError)?;
        let fits = (1..=253).contains(&host.len())
            && host.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
        if !fits || port == 0 || (host.contains(':') && !zone::is_v6(host)) {
            return Err(ParseCollectorError);
        }
        Ok(Self { host: host.to_owned(), port, tls })
    }
}

impl std::fmt::Display for CollectorAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.tls { "tls://" } else { "" };
        if self.host.contains(':') {
            write!(f, "{scheme}[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{scheme}{}:{}", self.host, self.port)
        }
    }
}

/// Who this probe is; the same towards every collector.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Name in the fleet.
    pub probe: String,
    /// Its key. `None`: it shows a client certificate, and its proofs are made with an empty key.
    pub key: Option<Key>,
    /// What it can do.
    pub abilities: Vec<String>,
    /// Its interfaces.
    pub interfaces: Vec<String>,
    /// Addresses by which others reach it.
    pub addresses: Vec<IpAddr>,
}

/// What a link tells the probe.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// A collector let it in.
    Joined(usize),
    /// What to do from now on.
    Instruction(usize, Box<Instruction>),
    /// Run this task now.
    Start(usize, String, u64),
    /// The connection broke, or could not be made; why, for people.
    Lost(usize, String),
}

/// What the probe says about itself, for whichever connection there is.
#[derive(Debug, Default)]
pub struct Said {
    /// Instruction that is followed, and what of it is refused.
    pub following: Option<(u64, BTreeMap<String, String>)>,
    /// How it is, buffer aside.
    pub status: ProbeStatus,
}

/// What probe and link share.
#[derive(Debug, Clone)]
pub struct Shared {
    /// What waits for the collector.
    pub buffer: Arc<Mutex<Buffer>>,
    /// What is said about the probe.
    pub said: Arc<Mutex<Said>>,
}

impl Shared {
    /// For one collector.
    pub fn new(buffer: Buffer, said: Arc<Mutex<Said>>) -> Self {
        Self { buffer: Arc::new(Mutex::new(buffer)), said }
    }
}

/// A link before it runs.
#[derive(Debug)]
pub struct Link {
    /// Which of the probe's collectors it is.
    pub index: usize,
    /// Where to.
    pub address: CollectorAddress,
    /// Whom to believe.
    pub trust: Trust,
    /// Who it is.
    pub identity: Identity,
    /// What it shares with the probe.
    pub shared: Shared,
    /// Where news go.
    pub news: Sender<Heard>,
}

impl Link {
    /// Dials and works until told to stop; then sends what is waiting if the collector takes it
    /// within a second.
    pub fn run(&self, stop: &StopFlag) {
        let mut backoff = Backoff::new(seed(self.index));
        while !stop.is_raised() {
            let mut joined = false;
            let ended = session::run(self, stop, &mut joined);
            if joined {
                backoff.succeeded();
            }
            let Err(why) = ended else { return };
            tracing::warn!(collector = %self.address, "{why}");
            if self.news.send(Heard::Lost(self.index, why.to_string())).is_err() {
                return;
            }
            let wait = match why.again_after() {
                Some(asked) => backoff.at_least(asked),
                None => backoff.next(),
            };
            sleep(wait, stop);
        }
    }
}

fn sleep(wait: Span, stop: &StopFlag) {
    let until = clock::now() + wait;
    while clock::now() < until && !stop.is_raised() {
        clock::sleep((until - clock::now()).min(Span::from_millis(50)));
    }
}

/// So that a fleet that lost its collector does not come back at one instant.
fn seed(index: usize) -> u64 {
    let mut bytes = [0; 8];
    if getrandom::fill(&mut bytes).is_err() {
        return clock::now().0 ^ index as u64;
    }
    u64::from_ne_bytes(bytes)
}

fn nonce() -> Result<Token, getrandom::Error> {
    let mut token = Token::default();
    getrandom::fill(&mut token.0)?;
    Ok(token)
}

/// A thread that died while it held a lock must not take the probe with it: the value is whole, or
/// counted as damaged.
pub(crate) fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
