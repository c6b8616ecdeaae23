//! One connection to a collector, from the first byte to the last.

use std::io;
use std::time::Duration;

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_units::{Mono, Span};
use netaware_wire::Token;
use netaware_wire::frame::{self, FrameError};
use netaware_wire::lmap::{FromCollector, FromProbe, MessageError, PREFACE};
use netaware_wire::proof;

use super::channel::Channel;
use super::{Heard, Link, held, nonce};
use crate::buffer::BufferError;

/// For each answer of the handshake.
const HANDSHAKE: Span = Span::from_secs(10);
/// A batch that is not taken within this was sent to nobody.
const TAKE: Span = Span::from_secs(60);
const STATUS: Span = Span::from_secs(10);
/// Bytes that may be under way: enough for 80 ms at 1 Gbit/s, and two of the longest batches.
const UNDER_WAY: u64 = 10 << 20;
/// A batch that is appended waits no longer than this before it is sent.
const LOOK: Duration = Duration::from_millis(50);
/// Messages of a later version that are let pass in one connection.
const UNKNOWN: u32 = 1000;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error("cannot reach the collector at {address}: {source}")]
    Dial { address: String, source: io::Error },
    #[error("the connection to the collector broke: {0}")]
    Connection(io::Error),
    #[error("the collector closed the connection")]
    Closed,
    #[error("the collector takes nothing")]
    Slow,
    #[error("the collector does not answer")]
    Silent,
    #[error("TLS with the collector failed: {0}")]
    Tls(String),
    #[error("what answers there is no collector of ours: {0}")]
    Protocol(String),
    #[error("what answers there does not have this probe's key; nothing was sent to it")]
    WrongKey,
    #[error("the collector refused this probe: {why}")]
    Refused { why: String, again_after: Option<u32> },
    #[error("the folder of this probe is older than what the collector has of it; it begins anew")]
    Behind,
    #[error("{0}")]
    Buffer(#[from] BufferError),
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
    #[error("the probe is gone")]
    Deserted,
}

impl Broken {
    /// What the other end asked for, or what makes sense; `None`: the usual wait.
    pub(super) fn again_after(&self) -> Option<Span> {
        match self {
            Self::Refused { again_after: Some(seconds), .. } => {
                Some(Span::from_secs(i64::from(*seconds).clamp(1, 3600)))
            }
            // Something has to be changed there first; somebody may do so while this runs.
            Self::Refused { again_after: None, .. } => Some(Span::from_secs(60)),
            _ => None,
        }
    }
}

/// Dials, joins, works. `Ok`: told to stop. `joined` is set once the collector has let us in.
pub(super) fn run(link: &Link, stop: &StopFlag, joined: &mut bool) -> Result<(), Broken> {
    let mut channel = Channel::dial(&link.address, &link.trust)?;
    let taken = shake_hands(link, &mut channel)?;
    resume(link, taken)?;
    *joined = true;
    tell(link, Heard::Joined(link.index))?;
    let mut session = Session {
        link,
        channel,
        sent: taken,
        taken,
        under_way: Vec::new(),
        following: None,
        status_at: clock::now(),
        unknown: 0,
    };
    session.channel.wait_at_most(LOOK)?;
    session.work(stop)
}

fn shake_hands(link: &Link, channel: &mut Channel) -> Result<u64, Broken> {
    channel.send(&PREFACE)?;
    let theirs = match answer(channel)? {
        FromCollector::Challenge { nonce } => token(&nonce)?,
        FromCollector::Refusal { why, again_after } => return Err(Broken::Refused { why, again_after }),
        _ => return Err(Broken::Protocol("it does not begin with a challenge".to_owned())),
    };
    let (ours, binding) = (nonce().map_err(Broken::Random)?, channel.binding()?);
    let key = link.identity.key.as_ref().map_or(&[][..], proof::Key::bytes);
    let name = &link.identity.probe;
    let hello = FromProbe::Hello {
        probe: name.clone(),
        nonce: ours.to_string(),
        proof: proof::fleet_probe(key, theirs, ours, name, &binding),
        software: env!("CARGO_PKG_VERSION").to_owned(),
        abilities: link.identity.abilities.clone(),
        interfaces: link.identity.interfaces.clone(),
        addresses: link.identity.addresses.clone(),
        instruction: held(&link.shared.said).following.as_ref().map(|(number, _)| *number),
        incarnation: held(&link.shared.buffer).incarnation().to_string(),
    };
    say(channel, &hello)?;
    match answer(channel)? {
        FromCollector::Welcome { proof, taken } => {
            let expected = proof::fleet_collector(key, theirs, ours, name, &binding);
            if proof::matches(&expected, &proof) { Ok(taken) } else { Err(Broken::WrongKey) }
        }
        FromCollector::Refusal { why, again_after } => Err(Broken::Refused { why, again_after }),
        _ => Err(Broken::Protocol("it neither welcomes nor refuses".to_owned())),
    }
}

/// What the collector has is forgotten. If it has more than was ever numbered here, the folder is
/// an old copy.
fn resume(link: &Link, taken: u64) -> Result<(), Broken> {
    let mut buffer = held(&link.shared.buffer);
    if taken >= buffer.next() {
        buffer.start_anew()?;
        return Err(Broken::Behind);
    }
    buffer.taken(taken);
    Ok(())
}

fn token(text: &str) -> Result<Token, Broken> {
    text.parse().map_err(|_| Broken::Protocol("a nonce is none".to_owned()))
}

/// The next message of the handshake.
fn answer(channel: &mut Channel) -> Result<FromCollector, Broken> {
    let deadline = clock::now() + HANDSHAKE;
    loop {
        match channel.next()? {
            Some(body) => {
                return FromCollector::parse(&body).map_err(|why| Broken::Protocol(why.to_string()));
            }
            None if clock::now() > deadline => return Err(Broken::Silent),
            None => {}
        }
    }
}

fn say(channel: &mut Channel, message: &FromProbe) -> Result<(), Broken> {
    channel.send(&frame::emit(message).map_err(|why| Broken::Protocol(why.to_string()))?)
}

fn tell(link: &Link, heard: Heard) -> Result<(), Broken> {
    link.news.send(heard).map_err(|_| Broken::Deserted)
}

/// A batch that was sent.
struct UnderWay {
    sequence: u64,
    length: u64,
    sent_at: Mono,
}

struct Session<'a> {
    link: &'a Link,
    channel: Channel,
    /// Highest batch that was sent in this connection or taken before it.
    sent: u64,
    taken: u64,
    under_way: Vec<UnderWay>,
    /// What the collector was last told of the instruction.
    following: Option<(u64, std::collections::BTreeMap<String, String>)>,
    status_at: Mono,
    unknown: u32,
}

impl Session<'_> {
    fn work(&mut self, stop: &StopFlag) -> Result<(), Broken> {
        let mut last_call = None;
        loop {
            self.say_following()?;
            self.say_status()?;
            let all_sent = self.send_batches()?;
            self.hear()?;
            let now = clock::now();
            if self.under_way.first().is_some_and(|oldest| now - oldest.sent_at > TAKE) {
                return Err(Broken::Silent);
            }
            if stop.is_raised() {
                let until = *last_call.get_or_insert(now + Span::from_secs(1));
                if now > until || (all_sent && self.under_way.is_empty()) {
                    return Ok(());
                }
            }
        }
    }

    fn say_following(&mut self) -> Result<(), Broken> {
        let following = held(&self.link.shared.said).following.clone();
        if following != self.following {
            if let Some((instruction, refused)) = following.clone() {
                say(&mut self.channel, &FromProbe::Following { instruction, refused })?;
            }
            self.following = following;
        }
        Ok(())
    }

    fn say_status(&mut self) -> Result<(), Broken> {
        let now = clock::now();
        if now < self.status_at {
            return Ok(());
        }
        self.status_at = now + STATUS;
        let mut status = held(&self.link.shared.said).status.clone();
        {
            let buffer = held(&self.link.shared.buffer);
            let (batches, bytes) = buffer.waiting();
            (status.waiting_batches, status.waiting_bytes, status.given_up) =
                (batches, bytes.0, buffer.given_up());
        }
        say(&mut self.channel, &FromProbe::Status(status))
    }

    /// Whether nothing is left to send.
    fn send_batches(&mut self) -> Result<bool, Broken> {
        while self.under_way.iter().map(|batch| batch.length).sum::<u64>() < UNDER_WAY {
            let next = {
                let mut buffer = held(&self.link.shared.buffer);
                let next = buffer.after(self.sent);
                if next.is_some() {
                    buffer.sync()?;
                }
                next
            };
            let Some((sequence, batch)) = next else { return Ok(true) };
            let (ipfix, report) = (batch.ipfix.len() as u32, batch.report.len() as u32);
            let head = FromProbe::Batch { sequence, ipfix, report, selections: batch.selections };
            say(&mut self.channel, &head)?;
            self.channel.send(&batch.ipfix)?;
            self.channel.send(&batch.report)?;
            let length = u64::from(ipfix) + u64::from(report);
            self.under_way.push(UnderWay { sequence, length, sent_at: clock::now() });
            self.sent = sequence;
        }
        Ok(false)
    }

    /// Waits once; takes everything that came.
    fn hear(&mut self) -> Result<(), Broken> {
        while let Some(body) = self.channel.next()? {
            match FromCollector::parse(&body) {
                Ok(message) => self.obey(message)?,
                Err(MessageError::Frame(FrameError::UnknownType(_))) if self.unknown < UNKNOWN => {
                    self.unknown += 1;
                }
                Err(why) => return Err(Broken::Protocol(why.to_string())),
            }
            if !self.under_way.is_empty() {
                // What was taken makes room for more.
                return Ok(());
            }
        }
        Ok(())
    }

    fn obey(&mut self, message: FromCollector) -> Result<(), Broken> {
        match message {
            FromCollector::Taken { sequence } => self.took(sequence),
            FromCollector::Instruction(instruction) => {
                tell(self.link, Heard::Instruction(self.link.index, Box::new(instruction)))
            }
            FromCollector::Start { task, run } => tell(self.link, Heard::Start(self.link.index, task, run)),
            FromCollector::Refusal { why, again_after } => Err(Broken::Refused { why, again_after }),
            FromCollector::Challenge { .. } | FromCollector::Welcome { .. } => {
                Err(Broken::Protocol("it begins the handshake a second time".to_owned()))
            }
        }
    }

    fn took(&mut self, sequence: u64) -> Result<(), Broken> {
        if sequence > self.sent {
            // Believing it would throw away what it does not have.
            return Err(Broken::Protocol(format!("it took batch {sequence}, which was never sent")));
        }
        if sequence > self.taken {
            self.taken = sequence;
            self.under_way.retain(|batch| batch.sequence > sequence);
            held(&self.link.shared.buffer).taken(sequence);
        }
        Ok(())
    }
}
