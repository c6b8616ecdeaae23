//! Input for readers of JSON. Random bytes hardly ever are JSON, so most inputs are edits of a text
//! that is.

use libfuzzer_sys::arbitrary;

/// Bytes to read.
#[derive(Debug, arbitrary::Arbitrary)]
pub(crate) enum Text {
    Raw(Vec<u8>),
    Edited { sample: u8, edits: Vec<Edit> },
}

#[derive(Debug, arbitrary::Arbitrary)]
pub(crate) struct Edit {
    at: u16,
    cut: u8,
    put: Put,
}

/// What hurts a reader of numbers, strings and nests.
#[derive(Debug, arbitrary::Arbitrary)]
enum Put {
    Nothing,
    Byte(u8),
    Bytes(Vec<u8>),
    Number(i64),
    Huge,
    Null,
    Nest(u8),
}

impl Text {
    pub(crate) fn bytes(&self, samples: &[&str]) -> Vec<u8> {
        match self {
            Self::Raw(bytes) => bytes.clone(),
            Self::Edited { sample, edits } => {
                let mut bytes = samples[usize::from(*sample) % samples.len()].as_bytes().to_vec();
                edits.iter().for_each(|edit| edit.apply(&mut bytes));
                bytes
            }
        }
    }
}

impl Edit {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let start = usize::from(self.at) % (bytes.len() + 1);
        let end = bytes.len().min(start + usize::from(self.cut));
        bytes.splice(start..end, self.put.bytes());
    }
}

impl Put {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Byte(byte) => vec![*byte],
            Self::Bytes(bytes) => bytes.clone(),
            Self::Number(number) => number.to_string().into_bytes(),
            Self::Huge => b"1e308".to_vec(),
            Self::Null => b"null".to_vec(),
            Self::Nest(depth) => vec![b'['; usize::from(*depth)],
        }
    }
}
