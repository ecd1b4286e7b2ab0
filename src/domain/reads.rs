//! What a build looked at outside of its tree and its toolchain: the part of a cache entry that is checked at look-up.
//!
//! Invariant: pure. `build::record` writes it down and checks it against a machine.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

/// Everything that a build looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reads {
    /// What was found at each path.
    pub paths: BTreeMap<Utf8PathBuf, Seen>,
    /// The program that each bare name stood for on the build's `PATH`; nothing where there was none.
    pub programs: BTreeMap<String, Option<Utf8PathBuf>>,
    /// Where the artifact is valid, if not everywhere that the paths say the same.
    pub local: Option<Local>,
}

/// An artifact that is valid on one machine only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Local {
    /// That machine.
    pub machine: String,
    /// What cannot be known of the build, in words.
    pub reasons: Vec<String>,
}

/// What a build found at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Seen {
    /// A file, by the sha256 of its contents.
    Contents(String),
    /// A file too large to be read again and again: its bytes, and its modification in nanoseconds since 1970.
    Large(u64, u128),
    /// A folder whose names were listed, by the sha256 of the sorted names.
    Names(String),
    /// Something that was not read.
    There,
    /// Nothing.
    Missing,
}

impl From<Seen> for String {
    fn from(seen: Seen) -> Self {
        match seen {
            Seen::Contents(sha256) => format!("file {sha256}"),
            Seen::Large(bytes, modified) => format!("large {bytes} {modified}"),
            Seen::Names(sha256) => format!("names {sha256}"),
            Seen::There => "there".to_owned(),
            Seen::Missing => "missing".to_owned(),
        }
    }
}

impl TryFrom<String> for Seen {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut words = text.split(' ');
        let seen = match (words.next(), words.next(), words.next(), words.next()) {
            (Some("file"), Some(sha256), None, None) => Some(Self::Contents(sha256.to_owned())),
            (Some("names"), Some(sha256), None, None) => Some(Self::Names(sha256.to_owned())),
            (Some("large"), Some(bytes), Some(modified), None) => {
                bytes.parse().ok().zip(modified.parse().ok()).map(|(bytes, modified)| Self::Large(bytes, modified))
            }
            (Some("there"), None, None, None) => Some(Self::There),
            (Some("missing"), None, None, None) => Some(Self::Missing),
            _ => None,
        };
        seen.ok_or_else(|| format!("`{text}` says nothing of a path"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_survives_being_written_down() {
        let all =
            [Seen::Contents("ab".into()), Seen::Large(7, 8), Seen::Names("cd".into()), Seen::There, Seen::Missing];
        for seen in all {
            let text = serde_json::to_string(&seen).unwrap();
            assert_eq!(serde_json::from_str::<Seen>(&text).unwrap(), seen);
        }
        for wrong in ["", "file", "there now", "large 1 x", "large 1 2 3"] {
            assert!(Seen::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
