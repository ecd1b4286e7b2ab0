//! Checks what a build looked at against this machine now, in about a millisecond for a thousand paths.
//!
//! Beside each entry lie the stamps that its paths had when they were last found unchanged; only what has another stamp is
//! read again. A stamp is no proof of the first kind: it is size, times and inode, as in git's index.

use camino::Utf8Path;
use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::look::{self, Digests, Stamp};
use crate::domain::reads::{Reads, Seen};
use crate::sys::files;

/// Folder below the cache root.
pub(super) const BUCKET: &str = "checks-v1";

/// Where the stamps of an entry are kept.
#[derive(Debug, Clone, Copy)]
pub struct Memo<'a> {
    /// Root of all caches.
    pub cache_root: &'a Utf8Path,
    /// The entry's key.
    pub key: &'a str,
    /// Digest of the list of paths, so that the stamps of another list are not taken for these.
    pub reads: &'a str,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stamps {
    reads: String,
    stamps: Vec<Stamp>,
}

impl Memo<'_> {
    fn file(&self) -> camino::Utf8PathBuf {
        self.cache_root.join(BUCKET).join(format!("{}.json", self.key))
    }

    fn load(&self) -> Vec<Stamp> {
        let stamps: Option<Stamps> = fs::read(self.file()).ok().and_then(|text| serde_json::from_slice(&text).ok());
        stamps.filter(|stamps| stamps.reads == self.reads).unwrap_or_default().stamps
    }

    fn keep(&self, stamps: Vec<Stamp>) {
        if let Ok(text) = serde_json::to_vec(&Stamps { reads: self.reads.to_owned(), stamps }) {
            let _ = files::write_atomic(&self.file(), &text);
        }
    }
}

/// Whether everything is as the build found it; `machine` is this one, `path` the `PATH` of a build here.
///
/// # Errors
/// The first difference, in words.
pub fn check(reads: &Reads, machine: &str, path: &str, memo: Memo<'_>) -> Result<(), String> {
    if let Some(local) = reads.local.as_ref().filter(|local| local.machine != machine) {
        return Err(format!("it is valid on another machine only: {}", local.reasons.join("; ")));
    }
    for (name, was) in &reads.programs {
        let now = look::program(name, path);
        if now != *was {
            let shown = |program: &Option<_>| program.as_ref().map_or("nothing".to_owned(), ToString::to_string);
            return Err(format!("`{name}` on PATH is {}, was {}", shown(&now), shown(was)));
        }
    }
    let known = memo.load();
    let mut known = known.into_iter();
    let mut digests: Option<Digests> = None;
    let (mut stamps, mut stale) = (Vec::with_capacity(reads.paths.len()), false);
    for (path, seen) in &reads.paths {
        if matches!(seen, Seen::There | Seen::Missing) {
            if path.exists() != (*seen == Seen::There) {
                return Err(words(path, seen));
            }
            continue;
        }
        let Some(stamp) = look::stamp(path) else { return Err(words(path, seen)) };
        if known.next() != Some(stamp) || stamp == [0; 4] {
            let digests = digests.get_or_insert_with(|| Digests::load(memo.cache_root));
            if look::again(path, seen, digests) != *seen {
                digests.keep();
                return Err(words(path, seen));
            }
            stale = true;
        }
        stamps.push(stamp);
    }
    if stale {
        memo.keep(stamps);
    }
    if let Some(digests) = digests {
        digests.keep();
    }
    Ok(())
}

/// Keeps the stamps of paths that were just looked at.
pub fn remember(reads: &Reads, memo: Memo<'_>) {
    let followed = reads.paths.iter().filter(|(_, seen)| !matches!(seen, Seen::There | Seen::Missing));
    memo.keep(followed.map(|(path, _)| look::stamp(path).unwrap_or_default()).collect());
}

fn words(path: &Utf8Path, seen: &Seen) -> String {
    let there = path.exists();
    match seen {
        Seen::Missing => format!("{path} is there now, and was not when it was built"),
        _ if !there => format!("{path} is gone"),
        Seen::Names(_) => format!("{path} holds other files than when it was built"),
        _ => format!("{path} has changed since it was built"),
    }
}
