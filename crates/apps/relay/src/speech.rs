//! The words before the bytes, on either end.

use std::io;
use std::time::Duration;

use netaware_server::Key;
use netaware_stream::AsyncDualStream;
use netaware_units::Span;
use netaware_wire::relay::{
    ANSWER_LEN, Answer, GREETING_LEN, Greeting, REQUEST_LEN, RelayError, Request, RequestHead, Verdict,
};
use netaware_wire::{Token, proof};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

/// Why two relays do not come together.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpeechError {
    /// The stream failed.
    #[error("the other relay is gone: {0}")]
    Io(#[from] io::Error),
    /// Nothing came in time.
    #[error("the other relay says nothing")]
    Silent,
    /// It speaks something else.
    #[error(transparent)]
    Wire(#[from] RelayError),
    /// It wants a key, and there is none.
    #[error("the far relay wants a key; give this one --key-file or NETAWARE_KEY")]
    KeyWanted,
    /// A key was given, and it does not prove to know it.
    #[error("the far relay does not prove that it has the key; start it with the same one")]
    Unproven,
    /// The far end's word.
    #[error("{0}")]
    Refused(Verdict),
    /// No random bits.
    #[error("no random bits: {0}")]
    Random(getrandom::Error),
}

/// The near end: asks for a service and waits until its server is connected.
pub(crate) async fn ask(
    stream: &mut AsyncDualStream,
    key: Option<&Key>,
    service: &str,
) -> Result<(), SpeechError> {
    let mut bytes = [0; GREETING_LEN];
    in_time(WORD, stream.read_exact(&mut bytes)).await?;
    let greeting = Greeting::parse(&bytes)?;
    let nonce = nonce()?;
    let proof = match (key, greeting.key_asked) {
        (Some(key), true) => proof::relay_near(key.bytes(), greeting.nonce, nonce),
        (None, false) => String::new(),
        (None, true) => return Err(SpeechError::KeyWanted),
        (Some(_), false) => return Err(SpeechError::Unproven),
    };
    let request = Request { nonce, proof, service: service.to_owned() }.emit()?;
    in_time(WORD, stream.write_all(&request)).await?;
    let mut bytes = [0; ANSWER_LEN];
    in_time(ANSWER, stream.read_exact(&mut bytes)).await?;
    let answer = Answer::parse(&bytes)?;
    let expected = key.map(|key| proof::relay_far(key.bytes(), greeting.nonce, nonce));
    match answer.verdict {
        Verdict::NoProof => Err(SpeechError::Refused(answer.verdict)),
        _ if expected.is_some_and(|expected| !proof::matches(&expected, &answer.proof)) => {
            Err(SpeechError::Unproven)
        }
        Verdict::Connected => Ok(()),
        refusal => Err(SpeechError::Refused(refusal)),
    }
}

/// The far end: hears what is wanted. `Ok(None)` is somebody who does not know the key; they have
/// been told.
pub(crate) async fn hear(
    stream: &mut AsyncDualStream,
    key: Option<&Key>,
) -> Result<Option<Heard>, SpeechError> {
    let own = nonce()?;
    let greeting = Greeting { key_asked: key.is_some(), nonce: own };
    in_time(WORD, stream.write_all(&greeting.emit())).await?;
    let mut bytes = [0; REQUEST_LEN];
    in_time(WORD, stream.read_exact(&mut bytes)).await?;
    let head = RequestHead::parse(&bytes)?;
    let mut name = vec![0; head.name_len];
    in_time(WORD, stream.read_exact(&mut name)).await?;
    let request = head.finish(&name)?;
    let knows = key.is_none_or(|key| {
        proof::matches(&proof::relay_near(key.bytes(), own, request.nonce), &request.proof)
    });
    if !knows {
        let answer = Answer { verdict: Verdict::NoProof, proof: String::new() };
        in_time(WORD, stream.write_all(&answer.emit())).await?;
        return Ok(None);
    }
    let proof = key.map(|key| proof::relay_far(key.bytes(), own, request.nonce)).unwrap_or_default();
    Ok(Some(Heard { service: request.service, proof }))
}

/// Somebody who may be answered.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) service: String,
    proof: String,
}

impl Heard {
    pub(crate) async fn answer(
        self,
        stream: &mut AsyncDualStream,
        verdict: Verdict,
    ) -> Result<(), SpeechError> {
        let answer = Answer { verdict, proof: self.proof };
        in_time(WORD, stream.write_all(&answer.emit())).await.map(drop)
    }
}

fn nonce() -> Result<Token, SpeechError> {
    let mut nonce = Token::default();
    getrandom::fill(&mut nonce.0).map_err(SpeechError::Random)?;
    Ok(nonce)
}

async fn in_time<T>(span: Duration, work: impl Future<Output = io::Result<T>>) -> Result<T, SpeechError> {
    Ok(timeout(span, work).await.map_err(|_| SpeechError::Silent)??)
}

/// For one word of the other end.
const WORD: Duration = Duration::from_secs(10);
/// How long a far relay tries to reach a server.
pub(crate) const SERVER: Span = Span::from_secs(10);
/// Until the far relay has tried the server.
const ANSWER: Duration = Duration::from_secs(15);
