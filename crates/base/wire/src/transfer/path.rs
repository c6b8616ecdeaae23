//! The name of an entry below the folder of the receiver.
//!
//! A sender may be hostile, so a name that could lead elsewhere is none: no absolute name, no `..`,
//! no empty part, no NUL. What links do on the way is for the receiver to see to.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Parts with `/` between, each a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EntryPath(String);

/// Why a text names no entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathError {
    /// Nothing, or nothing between two slashes.
    Empty,
    /// It begins with a slash.
    Absolute,
    /// `.` or `..`.
    Dots,
    /// A NUL byte.
    Nul,
    /// Longer than systems take, or deeper than anybody needs.
    TooLong,
    /// The name of a file that is not complete: a receiver's own.
    Partial,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "a part of the name is empty",
            Self::Absolute => "the name is absolute",
            Self::Dots => "the name has '.' or '..' in it",
            Self::Nul => "the name has a NUL byte in it",
            Self::TooLong => "the name is too long or too deep",
            Self::Partial => "such names belong to files that have not come completely",
        })
    }
}

impl std::error::Error for PathError {}

/// Bytes of a whole name.
const MAX_PATH: usize = 4095;
/// Bytes between two slashes.
const MAX_PART: usize = 255;
/// Folders in folders.
const MAX_DEPTH: usize = 256;

impl EntryPath {
    /// The end of the name of every file that has not come completely.
    pub const PARTIAL: &str = ".netaware-part";

    /// Takes a name.
    ///
    /// # Errors
    /// It could lead out of the folder, or no system would take it.
    pub fn new(text: impl Into<String>) -> Result<Self, PathError> {
        let text = text.into();
        if text.starts_with('/') {
            return Err(PathError::Absolute);
        }
        if text.len() > MAX_PATH || text.split('/').count() > MAX_DEPTH {
            return Err(PathError::TooLong);
        }
        text.split('/').try_for_each(check)?;
        Ok(Self(text))
    }

    /// As it stands.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folders on the way, outermost first.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        let folders = self.0.rsplit_once('/').map(|(folders, _)| folders);
        folders.into_iter().flat_map(|folders| folders.split('/'))
    }

    /// The last part.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, name)| name)
    }

    /// Where the file stands until it is complete, beside its place. Always a name that a system
    /// takes.
    pub fn partial_name(&self) -> String {
        let name = self.name();
        let most = MAX_PART - 1 - Self::PARTIAL.len();
        if name.len() <= most {
            return format!(".{name}{}", Self::PARTIAL);
        }
        // Two long names may begin alike: the rest counts by its hash (FNV-1a, which only has to
        // differ).
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        let mut end = most - 17;
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        format!(".{}-{hash:016x}{}", &name[..end], Self::PARTIAL)
    }
}

impl fmt::Display for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for EntryPath {
    type Error = PathError;
    fn try_from(text: String) -> Result<Self, PathError> {
        Self::new(text)
    }
}

impl From<EntryPath> for String {
    fn from(path: EntryPath) -> Self {
        path.0
    }
}

fn check(part: &str) -> Result<(), PathError> {
    match part {
        "" => Err(PathError::Empty),
        "." | ".." => Err(PathError::Dots),
        _ if part.contains('\0') => Err(PathError::Nul),
        _ if part.len() > MAX_PART => Err(PathError::TooLong),
        _ if part.ends_with(EntryPath::PARTIAL) => Err(PathError::Partial),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_none() {
        let rows = [
            ("a", None),
            ("a/b c/..d", None),
            ("..a", None),
            ("", Some(PathError::Empty)),
            ("/etc/passwd", Some(PathError::Absolute)),
            ("a//b", Some(PathError::Empty)),
            ("a/", Some(PathError::Empty)),
            ("..", Some(PathError::Dots)),
            ("a/../../b", Some(PathError::Dots)),
            ("./a", Some(PathError::Dots)),
            ("a\0b", Some(PathError::Nul)),
            (".x.netaware-part", Some(PathError::Partial)),
        ];
        for (text, want) in rows {
            assert_eq!(EntryPath::new(text).err(), want, "{text:?}");
        }
        assert_eq!(EntryPath::new("x".repeat(256)), Err(PathError::TooLong));
        assert_eq!(EntryPath::new("a/".repeat(256) + "a"), Err(PathError::TooLong));
        assert!(serde_json::from_str::<EntryPath>("\"../x\"").is_err());
    }

    #[test]
    fn a_name_comes_apart_into_folders_and_name() {
        let path = EntryPath::new("a/b/c").unwrap();
        assert_eq!((path.folders().collect::<Vec<_>>(), path.name()), (vec!["a", "b"], "c"));
        let path = EntryPath::new("c").unwrap();
        assert_eq!((path.folders().count(), path.partial_name().as_str()), (0, ".c.netaware-part"));
    }

    #[test]
    fn partial_names_of_long_names_fit_and_differ() {
        let [a, b] = ["é".repeat(126) + "a", "é".repeat(126) + "b"]
            .map(|name| EntryPath::new(name).unwrap().partial_name());
        assert!(a != b && a.len() <= MAX_PART && a.ends_with(EntryPath::PARTIAL), "{a} {b}");
    }
}
