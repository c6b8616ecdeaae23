//! The first words: versions, and the proofs where there is a key. The key never travels.

use std::io;

use netaware_io::clock;
use netaware_units::{Mono, Span};
use netaware_wire::Token;
use netaware_wire::proof::{self, Key};
use netaware_wire::transfer::{ReceiverMessage, RefusalCode, SenderMessage, TRANSFER_VERSION};

use crate::channel::{Came, Channel};
use crate::error::Broken;

/// From the sender's side.
pub(crate) fn introduce(channel: &mut Channel, key: Option<&Key>, patience: Span) -> Result<(), Broken> {
    let deadline = clock::now() + patience;
    let nonce = random()?;
    let look = &mut in_time(deadline, patience);
    let hello = SenderMessage::Hello { version: TRANSFER_VERSION, software: software(), nonce };
    channel.say(&hello, look)?;
    let mut expected = None;
    loop {
        match hear_receiver(channel, deadline, patience)? {
            ReceiverMessage::Challenge { nonce: theirs } => {
                let key = key.ok_or(Broken::KeyNeeded)?.bytes();
                let binding = channel.binding()?;
                expected = Some(proof::receiver(key, theirs, nonce, &binding));
                let proof = proof::sender(key, theirs, nonce, &binding);
                channel.say(&SenderMessage::Authenticate { proof }, look)?;
            }
            ReceiverMessage::Welcome { proof: given, .. } => {
                return match (key, expected, given) {
                    (None, ..) => Ok(()),
                    (Some(_), Some(expected), Some(given)) if proof::matches(&expected, &given) => Ok(()),
                    _ => Err(Broken::FalseReceiver),
                };
            }
            ReceiverMessage::Wait => {}
            ReceiverMessage::Error { code, why } => return Err(Broken::Refused { code, why: plain(&why) }),
            _ => return Err(Broken::Protocol("the receiver says something else than welcome".into())),
        }
    }
}

/// From the receiver's side, until the sender has proven that it knows the key, where there is one.
/// Who does not know it gets the challenge and an error, and nothing else. Returns the receiver's
/// own proof, which goes with the [`welcome`].
pub(crate) fn admit(
    channel: &mut Channel,
    key: Option<&Key>,
    patience: Span,
) -> Result<Option<String>, Broken> {
    let deadline = clock::now() + patience;
    let look = &mut in_time(deadline, patience);
    let SenderMessage::Hello { version, nonce, .. } = hear_sender(channel, deadline, patience)? else {
        return refuse(channel, RefusalCode::Protocol, "say hello first");
    };
    if version != TRANSFER_VERSION {
        let why = format!("this receiver speaks version {TRANSFER_VERSION} of file transfers, not {version}");
        return refuse(channel, RefusalCode::Version, &why);
    }
    let mut own = None;
    if let Some(key) = key {
        let challenge = random()?;
        channel.say(&ReceiverMessage::Challenge { nonce: challenge }, look)?;
        let SenderMessage::Authenticate { proof } = hear_sender(channel, deadline, patience)? else {
            return refuse(channel, RefusalCode::Key, "a proof of the key is wanted");
        };
        let binding = channel.binding()?;
        if !proof::matches(&proof::sender(key.bytes(), challenge, nonce, &binding), &proof) {
            return refuse(channel, RefusalCode::Key, "the proof does not fit this receiver's key");
        }
        own = Some(proof::receiver(key.bytes(), challenge, nonce, &binding));
    }
    Ok(own)
}

/// Lets a sender in.
pub(crate) fn welcome(channel: &mut Channel, proof: Option<String>, patience: Span) -> Result<(), Broken> {
    let look = &mut in_time(clock::now() + patience, patience);
    channel.say(&ReceiverMessage::Welcome { version: TRANSFER_VERSION, software: software(), proof }, look)
}

/// Has no room for a sender: it may come again.
pub(crate) fn turn_away(channel: &mut Channel, why: &str) -> Result<(), Broken> {
    refuse(channel, RefusalCode::Busy, why)
}

/// Says why, and ends it.
fn refuse<T>(channel: &mut Channel, code: RefusalCode, why: &str) -> Result<T, Broken> {
    let patience = Span::from_secs(2);
    let look = &mut in_time(clock::now() + patience, patience);
    channel.say(&ReceiverMessage::Error { code, why: why.to_owned() }, look)?;
    Err(Broken::TurnedAway(why.to_owned()))
}

fn hear_receiver(channel: &mut Channel, until: Mono, patience: Span) -> Result<ReceiverMessage, Broken> {
    let body = hear(channel, until, patience)?;
    ReceiverMessage::parse(&body).map_err(|why| Broken::Protocol(why.to_string()))
}

fn hear_sender(channel: &mut Channel, until: Mono, patience: Span) -> Result<SenderMessage, Broken> {
    let body = hear(channel, until, patience)?;
    SenderMessage::parse(&body).map_err(|why| Broken::Protocol(why.to_string()))
}

fn hear(channel: &mut Channel, until: Mono, patience: Span) -> Result<Vec<u8>, Broken> {
    match channel.next(until)? {
        Some(Came::Message(body)) => Ok(body),
        Some(Came::Chunk(_)) => Err(Broken::Protocol("a file comes before anything was said".into())),
        None => Err(Broken::Silent(patience)),
    }
}

/// Ends a wait at the deadline.
fn in_time(deadline: Mono, patience: Span) -> impl FnMut(&netaware_stream::DualStream) -> Result<(), Broken> {
    move |_| if clock::now() < deadline { Ok(()) } else { Err(Broken::Silent(patience)) }
}

/// What the other end says is printed, without anything that moves a cursor.
pub(crate) fn plain(text: &str) -> String {
    netaware_record::excerpt(text, 200)
}

fn software() -> String {
    format!("netaware {}", env!("CARGO_PKG_VERSION"))
}

fn random() -> Result<Token, Broken> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|why| Broken::Stream(io::Error::other(why.to_string())))?;
    Ok(Token(bytes))
}
