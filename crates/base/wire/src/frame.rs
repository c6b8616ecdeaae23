//! Control messages on a stream: a big-endian length, then that many bytes of JSON.

use std::fmt;

/// No control message is longer.
pub const MAX_FRAME: usize = 64 * 1024;

/// Why a frame could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameError {
    /// The announced length exceeds [`MAX_FRAME`].
    TooLong(u32),
    /// The bytes are not JSON.
    NotJson(String),
    /// JSON without a `type`, or with one not known here. It is answered, and the connection goes
    /// on.
    UnknownType(String),
    /// A known type with fields that do not fit.
    BadFields(String),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(len) => {
                write!(f, "a control message of {len} bytes is over the limit of {MAX_FRAME}")
            }
            Self::NotJson(why) => write!(f, "a control message is not JSON: {why}"),
            Self::UnknownType(name) => write!(f, "control messages of type '{name}' are not known"),
            Self::BadFields(why) => write!(f, "a control message does not fit its type: {why}"),
        }
    }
}

impl std::error::Error for FrameError {}

/// A set of messages that travel in frames. Its code for JSON is compiled in this crate, once, and
/// not in every crate that reads or writes such a message.
pub trait Message: Sized {
    /// The types of message that are known, so that a message from a later version is told from a
    /// damaged one.
    const TYPES: &'static [&'static str];

    /// Appends the message as JSON.
    ///
    /// # Errors
    /// It holds something that JSON cannot hold.
    fn write_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()>;

    /// Reads the message from a JSON value.
    ///
    /// # Errors
    /// The fields do not fit the type.
    fn from_value(value: serde_json::Value) -> serde_json::Result<Self>;
}

/// Makes [`Message`]s of enums that serde tags by `type`.
macro_rules! messages {
    ($($message:ty),* $(,)?) => { $(
        impl $crate::frame::Message for $message {
            const TYPES: &'static [&'static str] = <$message>::TYPES;

            fn write_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
                serde_json::to_writer(out, self)
            }

            fn from_value(value: serde_json::Value) -> serde_json::Result<Self> {
                serde_json::from_value(value)
            }
        }
    )* };
}

pub(crate) use messages;

/// Writes a message with its length in front.
///
/// # Errors
/// A message of our own that is too long: the caller must split it.
pub fn emit<M: Message>(message: &M) -> Result<Vec<u8>, FrameError> {
    let mut out = vec![0; 4];
    message.write_json(&mut out).map_err(|e| FrameError::BadFields(e.to_string()))?;
    let len = u32::try_from(out.len() - 4).unwrap_or(u32::MAX);
    if len as usize > MAX_FRAME {
        return Err(FrameError::TooLong(len));
    }
    out[..4].copy_from_slice(&len.to_be_bytes());
    Ok(out)
}

/// Reads the length in front of a frame.
pub fn body_len(header: [u8; 4]) -> Result<usize, FrameError> {
    let len = u32::from_be_bytes(header);
    if len as usize > MAX_FRAME { Err(FrameError::TooLong(len)) } else { Ok(len as usize) }
}

/// Gives meaning to the body of a frame.
///
/// # Errors
/// It is not JSON, not of a type that is known here, or does not fit its type.
pub fn parse<M: Message>(body: &[u8]) -> Result<M, FrameError> {
    let value: serde_json::Value =
        serde_json::from_slice(body).map_err(|e| FrameError::NotJson(short(&e.to_string())))?;
    let name = value.get("type").and_then(serde_json::Value::as_str).unwrap_or("");
    if !M::TYPES.contains(&name) {
        return Err(FrameError::UnknownType(short(name)));
    }
    M::from_value(value).map_err(|e| FrameError::BadFields(short(&e.to_string())))
}

/// What a stranger wrote is repeated in logs and answers only so far, without control characters.
fn short(text: &str) -> String {
    netaware_record::excerpt(text, 120)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::ClientMessage;

    #[test]
    fn a_length_over_the_limit_is_refused_before_anything_is_allocated() {
        assert_eq!(body_len([0, 1, 0, 0]), Ok(MAX_FRAME));
        assert_eq!(body_len([0xff; 4]), Err(FrameError::TooLong(u32::MAX)));
    }

    #[test]
    fn errors_tell_the_future_from_damage() {
        let parse = |text: &str| parse::<ClientMessage>(text.as_bytes());
        assert!(matches!(parse("{"), Err(FrameError::NotJson(_))));
        assert!(matches!(parse("{\"type\":\"teleport\"}"), Err(FrameError::UnknownType(_))));
        assert!(matches!(parse("[]"), Err(FrameError::UnknownType(_))));
        assert!(matches!(parse("{\"type\":\"start\",\"test\":-1}"), Err(FrameError::BadFields(_))));
        assert!(parse("{\"type\":\"ping\",\"seq\":1,\"colour\":\"red\"}").is_ok());
    }
}
