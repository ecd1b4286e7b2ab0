//! What an entry says about itself: `manifest.json`.
//!
//! Invariant: the format number is read before anything else, and a newer one stops the reading. Within one format,
//! newer revisions may only add fields, which older readers skip. Whether the claims are true is checked in `entry`.

use crate::{Error, Key};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// The newest format that this version reads, and the one it writes.
pub(crate) const FORMAT: u64 = 1;
const REVISION: u64 = 0;
/// Most bytes of a manifest, and of the inputs beside it: hundreds of times what a build writes.
pub(crate) const LARGEST: u64 = 1 << 20;

/// The manifest of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct Manifest {
    /// Readers refuse a greater number than they know.
    pub format: u64,
    /// Counts additions that old readers may skip.
    pub revision: u64,
    /// The key that the entry was committed under.
    pub key: Key,
    /// When it was committed, in seconds since 1970.
    pub created: u64,
    /// The sha256 of `inputs.json`.
    pub inputs_sha256: Key,
    /// The sha256 of `meta` as canonical JSON.
    pub meta_sha256: Key,
    /// All files, sorted by name.
    pub files: Vec<FileRecord>,
    /// Whatever the caller wanted to keep with the artifact.
    pub meta: Value,
}

/// One file of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct FileRecord {
    /// Its name, with `/` between folders.
    pub name: String,
    /// Its length in bytes.
    pub size: u64,
    /// The digest of its bytes.
    pub sha256: Key,
}

impl Manifest {
    pub(crate) fn new(
        key: Key,
        created: u64,
        inputs_sha256: Key,
        meta: Value,
        meta_sha256: Key,
        files: Vec<FileRecord>,
    ) -> Self {
        Self { format: FORMAT, revision: REVISION, key, created, inputs_sha256, meta_sha256, files, meta }
    }
}

pub(crate) enum Parsed {
    Known(Box<Manifest>),
    Newer(u64),
    Unreadable(String),
}

pub(crate) fn parse(bytes: &[u8]) -> Parsed {
    /// All that a reader may assume of a format that it does not know.
    #[derive(Deserialize)]
    struct Head {
        format: u64,
    }
    match serde_json::from_slice::<Head>(bytes) {
        Err(error) => Parsed::Unreadable(error.to_string()),
        Ok(Head { format }) if format > FORMAT => Parsed::Newer(format),
        Ok(Head { format: 0 }) => Parsed::Unreadable("there is no format 0".to_owned()),
        Ok(_) => match serde_json::from_slice(bytes) {
            Ok(manifest) => Parsed::Known(Box::new(manifest)),
            Err(error) => Parsed::Unreadable(error.to_string()),
        },
    }
}

/// A name is a relative path of plain steps, so that it can never point outside the entry.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    let why = if name.is_empty() {
        "the name is empty"
    } else if name.contains(['\0', '\\']) {
        "the name holds a backslash or a zero byte"
    } else if name.split('/').any(|step| matches!(step, "" | "." | "..")) {
        "the name is not a plain relative path"
    } else {
        return Ok(());
    };
    Err(Error::BadFile { path: PathBuf::from(name), why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_entry_are_refused() {
        for good in ["a", "a/b.so", "ü ñ", "...", "a..b"] {
            assert!(check_name(good).is_ok(), "{good:?} was refused");
        }
        for bad in ["", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\\b", "a\0"] {
            assert!(check_name(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn a_newer_format_is_recognised_whatever_else_it_holds() {
        let parsed = parse(br#"{"format": 2, "files": "elsewhere", "key": 7}"#);
        assert!(matches!(parsed, Parsed::Newer(2)));
    }

    #[test]
    fn rubbish_is_unreadable() {
        for bytes in [&b""[..], b"{", b"{}", b"[]", b"null", b"{\"format\":0}", b"{\"format\":1}", b"\xff"] {
            assert!(matches!(parse(bytes), Parsed::Unreadable(_)), "{bytes:?}");
        }
    }
}
