//! An entry that was found on disk, and the check that it is what its manifest says.
//!
//! Invariant: damage is a value and never repaired here; only a failing disk is an error. A file counts as whole if
//! it is a plain file, reached through plain folders, with the size and digest of the manifest. What happens to a
//! damaged entry is decided in `store` and `gc`.

use crate::disk::{absent_is_none, hash_file, open_plain};
use crate::error::Context;
use crate::layout::{FILES, INPUTS, MANIFEST};
use crate::manifest::{FileRecord, LARGEST, Manifest, Parsed, check_name, parse};
use crate::{Key, Result, canonical_json, digest};
use fs_err::OpenOptions;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// An artifact in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    folder: PathBuf,
    manifest: Manifest,
    inputs: Value,
}

impl Entry {
    pub(crate) fn new(folder: PathBuf, manifest: Manifest, inputs: Value) -> Self {
        Self { folder, manifest, inputs }
    }

    /// The key it is stored under.
    pub fn key(&self) -> &Key {
        &self.manifest.key
    }

    /// What it says about itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What its key stands for.
    pub fn inputs(&self) -> &Value {
        &self.inputs
    }

    /// The folder that holds the files under their own names. Nothing in it may be changed.
    pub fn folder(&self) -> PathBuf {
        self.folder.join(FILES)
    }

    /// The place of one file, if the entry has a file of this name.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        let known = self.manifest.files.iter().any(|file| file.name == name);
        known.then(|| self.folder().join(name))
    }

    /// All files in the order of their names, each with its place.
    pub fn files(&self) -> impl Iterator<Item = (&FileRecord, PathBuf)> {
        let folder = self.folder();
        self.manifest.files.iter().map(move |file| (file, folder.join(&file.name)))
    }

    pub(crate) fn into_parts(self) -> (Manifest, Value) {
        (self.manifest, self.inputs)
    }
}

/// What is wrong with an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Damage {
    /// The manifest is cut off, or no manifest at all.
    #[error("the manifest cannot be read: {detail}")]
    UnreadableManifest {
        /// What the parser said.
        detail: String,
    },
    /// The manifest is of another entry.
    #[error("the manifest belongs to {found}")]
    OtherKey {
        /// The key in the manifest.
        found: Key,
    },
    /// The manifest's `meta` does not have the recorded digest.
    #[error("the meta data in the manifest was changed")]
    ChangedMeta,
    /// The manifest lists a name that could leave the entry.
    #[error("the manifest lists {name:?}, which is no plain relative path")]
    UnsafeName {
        /// The name as listed.
        name: String,
    },
    /// A symbolic link stands where the entry's folder should be.
    #[error("a symbolic link stands in place of its folder")]
    Link,
    /// The manifest or the inputs are larger than any that this store writes.
    #[error("{name} is larger than {most} bytes")]
    TooLarge {
        /// Its name in the entry.
        name: String,
        /// The largest size that is read.
        most: u64,
    },
    /// Another user made the entry, and could have put anything there.
    #[error("{} belongs to another user (uid {owner})", .path.display())]
    Foreign {
        /// The folder or manifest.
        path: PathBuf,
        /// The uid of its owner.
        owner: u32,
    },
    /// A file is gone.
    #[error("{name} is missing")]
    Missing {
        /// Its name in the entry.
        name: String,
    },
    /// A folder, a link or a device stands where a file should be.
    #[error("{name} is not a plain file")]
    NotAFile {
        /// Its name in the entry.
        name: String,
    },
    /// A file has another length than when it was stored.
    #[error("{name} has size {found} instead of {expected}")]
    WrongSize {
        /// Its name in the entry.
        name: String,
        /// The length in the manifest.
        expected: u64,
        /// The length on disk.
        found: u64,
    },
    /// A file has other bytes than when it was stored.
    #[error("{name} has the sha256 {found} instead of {expected}")]
    WrongDigest {
        /// Its name in the entry.
        name: String,
        /// The digest in the manifest.
        expected: Key,
        /// The digest of what is on disk.
        found: Key,
    },
}

/// What stands in the folder of a key.
#[derive(Debug)]
pub(crate) enum Found {
    Nothing,
    Newer(u64),
    Damaged(Damage),
    Entry(Box<Entry>),
}

/// Reads manifest and inputs, and checks these two, but not the files: fast enough for an overview.
pub(crate) fn read(folder: &Path, key: &Key) -> Result<Found> {
    if absent_is_none(fs_err::symlink_metadata(folder)).context("look at", folder)?.is_some_and(|it| it.is_symlink()) {
        return Ok(Found::Damaged(Damage::Link));
    }
    let path = folder.join(MANIFEST);
    let manifest = match read_plain(folder, MANIFEST).context("read the manifest", &path)? {
        Read::Absent => return Ok(Found::Nothing),
        Read::Special => return Ok(Found::Damaged(not_a_file(MANIFEST))),
        Read::TooLarge => return Ok(Found::Damaged(too_large(MANIFEST))),
        Read::Bytes(bytes) => match parse(&bytes) {
            Parsed::Newer(format) => return Ok(Found::Newer(format)),
            Parsed::Unreadable(detail) => {
                return Ok(Found::Damaged(Damage::UnreadableManifest { detail }));
            }
            Parsed::Known(manifest) => *manifest,
        },
    };
    if manifest.key != *key {
        let found = manifest.key;
        return Ok(Found::Damaged(Damage::OtherKey { found }));
    }
    if canonical_json(&manifest.meta).map(|bytes| digest(&bytes)).ok() != Some(manifest.meta_sha256.clone()) {
        return Ok(Found::Damaged(Damage::ChangedMeta));
    }
    let path = folder.join(INPUTS);
    let inputs = match read_plain(folder, INPUTS).context("read the inputs", &path)? {
        Read::Absent => return Ok(Found::Damaged(missing(INPUTS))),
        Read::Special => return Ok(Found::Damaged(not_a_file(INPUTS))),
        Read::TooLarge => return Ok(Found::Damaged(too_large(INPUTS))),
        Read::Bytes(bytes) => bytes,
    };
    let wrong_inputs = || {
        Found::Damaged(Damage::WrongDigest {
            name: INPUTS.to_owned(),
            expected: manifest.inputs_sha256.clone(),
            found: digest(&inputs),
        })
    };
    if digest(&inputs) != manifest.inputs_sha256 {
        return Ok(wrong_inputs());
    }
    let Ok(value) = serde_json::from_slice(&inputs) else {
        return Ok(wrong_inputs());
    };
    let entry = Entry::new(folder.to_owned(), manifest, value);
    Ok(Found::Entry(Box::new(entry)))
}

/// Like [`read`], and then the owner, and every file byte by byte. An overview shows the entries of others, too; only
/// what is served has to be one's own.
pub(crate) fn read_and_verify(folder: &Path, key: &Key) -> Result<Found> {
    let found = read(folder, key)?;
    let Found::Entry(entry) = &found else {
        return Ok(found);
    };
    for path in [folder.to_owned(), folder.join(MANIFEST)] {
        let Some(there) = absent_is_none(fs_err::symlink_metadata(&path)).context("look at", &path)? else {
            return Ok(Found::Nothing);
        };
        let owner = there.uid();
        if !is_trusted(owner, rustix::process::geteuid().as_raw()) {
            return Ok(Found::Damaged(Damage::Foreign { path, owner }));
        }
    }
    let files = entry.folder();
    for file in &entry.manifest.files {
        if let Some(damage) = verify(&files, file)? {
            return Ok(Found::Damaged(damage));
        }
    }
    Ok(found)
}

/// One's own, and those of root, who can replace everything anyway.
fn is_trusted(owner: u32, user: u32) -> bool {
    owner == user || owner == 0
}

fn verify(files: &Path, record: &FileRecord) -> Result<Option<Damage>> {
    let name = &record.name;
    if check_name(name).is_err() {
        return Ok(Some(Damage::UnsafeName { name: name.clone() }));
    }
    let path = files.join(name);
    let size = match kind(files, name).context("look at", &path)? {
        Kind::Absent => return Ok(Some(missing(name))),
        Kind::Special => return Ok(Some(not_a_file(name))),
        Kind::Plain(size) => size,
    };
    // The length is free to compare, and spares reading a large file that was cut off.
    let (size, sha256) = if size == record.size {
        match absent_is_none(hash_file(&path, false)).context("read", &path)? {
            Some((size, sha256)) => (size, Some(sha256)),
            None => return Ok(Some(missing(name))),
        }
    } else {
        (size, None)
    };
    Ok(match sha256 {
        Some(found) if size == record.size && found != record.sha256 => {
            Some(Damage::WrongDigest { name: name.clone(), expected: record.sha256.clone(), found })
        }
        Some(_) if size == record.size => None,
        _ => Some(Damage::WrongSize { name: name.clone(), expected: record.size, found: size }),
    })
}

enum Kind {
    Absent,
    Special,
    Plain(u64),
}

/// Follows `name` step by step below `base`, and accepts no link on the way.
fn kind(base: &Path, name: &str) -> io::Result<Kind> {
    let mut path = base.to_owned();
    let mut steps = name.split('/').peekable();
    while let Some(step) = steps.next() {
        path.push(step);
        let Some(found) = absent_is_none(fs_err::symlink_metadata(&path))? else {
            return Ok(Kind::Absent);
        };
        match steps.peek() {
            Some(_) if found.is_dir() => {}
            None if found.is_file() => return Ok(Kind::Plain(found.len())),
            _ => return Ok(Kind::Special),
        }
    }
    Ok(Kind::Absent)
}

enum Read {
    Absent,
    Special,
    TooLarge,
    Bytes(Vec<u8>),
}

fn read_plain(folder: &Path, name: &str) -> io::Result<Read> {
    match kind(folder, name)? {
        Kind::Absent => return Ok(Read::Absent),
        Kind::Special => return Ok(Read::Special),
        Kind::Plain(_) => {}
    }
    let Some(file) = absent_is_none(open_plain(&folder.join(name), OpenOptions::new().read(true)))? else {
        return Ok(Read::Absent);
    };
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok(if bytes.len() as u64 > LARGEST { Read::TooLarge } else { Read::Bytes(bytes) })
}

fn too_large(name: &str) -> Damage {
    let name = name.to_owned();
    Damage::TooLarge { name, most: LARGEST }
}

fn missing(name: &str) -> Damage {
    let name = name.to_owned();
    Damage::Missing { name }
}

fn not_a_file(name: &str) -> Damage {
    let name = name.to_owned();
    Damage::NotAFile { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_oneself_and_of_root_are_trusted() {
        assert!(is_trusted(1000, 1000) && is_trusted(0, 1000) && is_trusted(0, 0));
        assert!(!is_trusted(1001, 1000) && !is_trusted(1000, 0));
    }
}
