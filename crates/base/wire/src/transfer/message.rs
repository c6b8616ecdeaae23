//! What both ends say.

use serde::{Deserialize, Serialize};

use super::{Digest, EntryPath};
use crate::Token;

/// Permissions of an entry: read, write and execute of owner, group and others. What gives rights
/// away beyond these (set user, set group, sticky) does not travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "u32", into = "u32")]
pub struct Mode(u32);

impl Mode {
    /// Of all bits, those that travel.
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl From<u32> for Mode {
    fn from(bits: u32) -> Self {
        Self(bits & 0o777)
    }
}

impl From<Mode> for u32 {
    fn from(mode: Mode) -> Self {
        mode.0
    }
}

/// When an entry was last changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(i64, u32)", into = "(i64, u32)")]
pub struct Stamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds beyond, below a second.
    pub nanos: u32,
}

impl TryFrom<(i64, u32)> for Stamp {
    type Error = &'static str;
    fn try_from((seconds, nanos): (i64, u32)) -> Result<Self, &'static str> {
        if nanos < 1_000_000_000 { Ok(Self { seconds, nanos }) } else { Err("nanoseconds beyond a second") }
    }
}

impl From<Stamp> for (i64, u32) {
    fn from(stamp: Stamp) -> Self {
        (stamp.seconds, stamp.nanos)
    }
}

/// From the sender.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SenderMessage {
    /// Opens the transfer.
    Hello {
        /// [`super::TRANSFER_VERSION`].
        version: u16,
        /// "netaware 0.1.0".
        software: String,
        /// For the receiver's proof.
        nonce: Token,
    },
    /// Answers a challenge.
    Authenticate {
        /// [`crate::proof::sender`] in hexadecimal.
        proof: String,
    },
    /// How much there is to come at most, for who watches.
    Plan {
        /// Files.
        files: u64,
        /// Bytes of them.
        bytes: u64,
    },
    /// A folder.
    Directory {
        /// Its number, higher than those before.
        entry: u64,
        /// Its name.
        path: EntryPath,
    },
    /// A file.
    File {
        /// Its number, higher than those before.
        entry: u64,
        /// Its name.
        path: EntryPath,
        /// Its length.
        bytes: u64,
        /// Its permissions.
        mode: Mode,
        /// Its time.
        mtime: Stamp,
    },
    /// What was announced so far is all that comes into a folder: its permissions and its time.
    Seal {
        /// The number of this, higher than those before.
        entry: u64,
        /// The folder's name.
        path: EntryPath,
        /// Its permissions.
        mode: Mode,
        /// Its time.
        mtime: Stamp,
    },
    /// Chunks of a file follow.
    Begin {
        /// Of which.
        entry: u64,
        /// From there: nothing, or as much as the receiver has.
        from: u64,
    },
    /// That was the whole file.
    End {
        /// Which.
        entry: u64,
        /// Of all its bytes.
        digest: Digest,
    },
    /// A file cannot be read, has changed meanwhile, or is not wanted there.
    GiveUp {
        /// Which.
        entry: u64,
    },
    /// Nothing more is announced.
    Finish,
    /// The sender is there, and reads.
    Wait,
}

impl SenderMessage {
    /// The `type` of each.
    pub const TYPES: &[&str] = &[
        "hello",
        "authenticate",
        "plan",
        "directory",
        "file",
        "seal",
        "begin",
        "end",
        "give_up",
        "finish",
        "wait",
    ];
}

/// What a receiver has of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Have {
    /// So many bytes from its start, at least one.
    pub bytes: u64,
    /// Of these.
    pub digest: Digest,
    /// They stand in the file's place, and no other file comes there.
    #[serde(default)]
    pub complete: bool,
}

/// How an entry came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    /// It has come, and what came is what was sent.
    Written,
    /// It was there already.
    Present,
}

/// Why an entry does not come to be, or a transfer does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// Something else stands there under that name.
    Exists,
    /// A link, or no folder where one has to be.
    NotAFolder,
    /// Another transfer brings it.
    Busy,
    /// The system says no; the text tells.
    System,
    /// What came is not what was sent.
    Digest,
    /// The sender gave it up.
    GivenUp,
    /// The version of the protocol.
    Version,
    /// The proof does not fit the key.
    Key,
    /// Not what was to be said then.
    Protocol,
    /// A code of a later version.
    #[serde(other)]
    Unknown,
}

/// From the receiver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReceiverMessage {
    /// Asks for the proof of knowing the key.
    Challenge {
        /// To be proven with.
        nonce: Token,
    },
    /// Files may be announced.
    Welcome {
        /// [`super::TRANSFER_VERSION`].
        version: u16,
        /// "netaware 0.1.0".
        software: String,
        /// [`crate::proof::receiver`], where there was a challenge.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proof: Option<String>,
    },
    /// A file can come.
    Ready {
        /// Which.
        entry: u64,
        /// What is there of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        have: Option<Have>,
    },
    /// An entry is done.
    Done {
        /// Which.
        entry: u64,
        /// How.
        how: Done,
    },
    /// An entry does not come to be.
    Refused {
        /// Which.
        entry: u64,
        /// Why.
        code: RefusalCode,
        /// The same for people, at most 200 characters.
        why: String,
    },
    /// Everything that came is on the disk.
    Finished,
    /// The transfer ends.
    Error {
        /// Why.
        code: RefusalCode,
        /// The same for people, at most 200 characters.
        why: String,
    },
    /// The receiver is there, and works.
    Wait,
}

impl ReceiverMessage {
    /// The `type` of each.
    pub const TYPES: &[&str] =
        &["challenge", "welcome", "ready", "done", "refused", "finished", "error", "wait"];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame;

    #[test]
    fn every_message_comes_back_as_it_was() {
        let path = EntryPath::new("a/b").unwrap();
        let (mode, mtime) = (Mode::from(0o640), Stamp { seconds: -5, nanos: 7 });
        let digest = Digest([9; 32]);
        let sent = [
            SenderMessage::Hello { version: 1, software: "s".into(), nonce: Token([1; 16]) },
            SenderMessage::Authenticate { proof: "p".into() },
            SenderMessage::Plan { files: 1, bytes: 2 },
            SenderMessage::Directory { entry: 0, path: path.clone() },
            SenderMessage::File { entry: 1, path: path.clone(), bytes: 3, mode, mtime },
            SenderMessage::Seal { entry: 2, path, mode, mtime },
            SenderMessage::Begin { entry: 1, from: 1 },
            SenderMessage::End { entry: 1, digest },
            SenderMessage::GiveUp { entry: 1 },
            SenderMessage::Finish,
            SenderMessage::Wait,
        ];
        assert_eq!(sent.len(), SenderMessage::TYPES.len());
        for message in sent {
            let bytes = frame::emit(&message).unwrap();
            assert_eq!(SenderMessage::parse(&bytes[4..]), Ok(message));
        }
        let received = [
            ReceiverMessage::Challenge { nonce: Token([1; 16]) },
            ReceiverMessage::Welcome { version: 1, software: "s".into(), proof: None },
            ReceiverMessage::Ready { entry: 1, have: Some(Have { bytes: 1, digest, complete: true }) },
            ReceiverMessage::Done { entry: 1, how: Done::Present },
            ReceiverMessage::Refused { entry: 1, code: RefusalCode::Exists, why: "w".into() },
            ReceiverMessage::Finished,
            ReceiverMessage::Error { code: RefusalCode::Key, why: "w".into() },
            ReceiverMessage::Wait,
        ];
        assert_eq!(received.len(), ReceiverMessage::TYPES.len());
        for message in received {
            let bytes = frame::emit(&message).unwrap();
            assert_eq!(ReceiverMessage::parse(&bytes[4..]), Ok(message));
        }
    }

    #[test]
    fn what_gives_rights_away_or_makes_no_time_is_left_out_or_refused() {
        let file = |mode: u32, nanos: u64| {
            format!(
                "{{\"type\":\"file\",\"entry\":1,\"path\":\"a\",\"bytes\":1,\"mode\":{mode},\"mtime\":[0,{nanos}]}}"
            )
        };
        let Ok(SenderMessage::File { mode, .. }) = SenderMessage::parse(file(0o106_755, 0).as_bytes()) else {
            panic!("a file")
        };
        assert_eq!(mode.bits(), 0o755);
        assert!(SenderMessage::parse(file(0o644, 1_000_000_000).as_bytes()).is_err());
        let later = r#"{"type":"refused","entry":1,"code":"full_moon","why":"x"}"#;
        let Ok(ReceiverMessage::Refused { code, .. }) = ReceiverMessage::parse(later.as_bytes()) else {
            panic!("a refusal")
        };
        assert_eq!(code, RefusalCode::Unknown);
    }
}
