//! Looks at a path as a build would, and remembers what large numbers of files held when they were looked at before.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use crate::domain::reads::Seen;
use crate::sys::{clock, files};

/// Files above this are told apart by their size and time.
const LARGE: u64 = 64 << 20;
/// A file that changed this recently, in nanoseconds, may change again without another time.
const RECENT: i128 = 2_000_000_000;

/// What tells whether a file or folder is still the one that was looked at: size, modification, change of state, inode.
pub(super) type Stamp = [u64; 4];

/// The stamp of what stands at `path`, links followed; nothing where there is nothing. One that may not be believed yet
/// is all zeros.
pub(super) fn stamp(path: &Utf8Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    let changed = nanoseconds(found.ctime(), found.ctime_nsec());
    let now = clock::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    if i128::try_from(now).is_ok_and(|now| now - changed < RECENT) {
        return Some([0; 4]);
    }
    // Seconds and parts of a second together, cut to what a number holds: only equality counts.
    let cut = |time: i128| u64::try_from(time.rem_euclid(i128::from(u64::MAX))).unwrap_or_default();
    Some([found.len(), cut(nanoseconds(found.mtime(), found.mtime_nsec())), cut(changed), found.ino()])
}

/// Digests of files by path and stamp.
#[derive(Debug, Default)]
pub(super) struct Digests {
    file: Utf8PathBuf,
    known: BTreeMap<String, (Stamp, String)>,
    changed: bool,
}

impl Digests {
    /// Those that were kept below the cache root.
    pub(super) fn load(cache_root: &Utf8Path) -> Self {
        let file = cache_root.join(super::check::BUCKET).join("digests.json");
        let known = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        Self { file, known, changed: false }
    }

    /// What a build sees that reads `path`.
    pub(super) fn contents(&mut self, path: &Utf8Path) -> Seen {
        let Ok(found) = std::fs::metadata(path) else { return Seen::Missing };
        if !found.is_file() {
            return Seen::There;
        }
        if found.len() > LARGE {
            let modified = found.modified().ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
            return Seen::Large(found.len(), modified.unwrap_or_default().as_nanos());
        }
        let stamp = stamp(path).unwrap_or_default();
        if let Some((_, digest)) = self.known.get(path.as_str()).filter(|(old, _)| *old == stamp && stamp != [0; 4]) {
            return Seen::Contents(digest.clone());
        }
        // What is there and cannot be read gave the build nothing.
        let Ok(digest) = files::sha256_file(path) else { return Seen::There };
        if stamp != [0; 4] {
            self.known.insert(path.to_string(), (stamp, digest.clone()));
            self.changed = true;
        }
        Seen::Contents(digest)
    }

    /// Keeps what was learnt. A fault only costs time later.
    pub(super) fn keep(&self) {
        if self.changed
            && let Ok(text) = serde_json::to_vec(&self.known)
        {
            let _ = files::write_atomic(&self.file, &text);
        }
    }
}

/// What a build sees that lists `path`.
pub(super) fn names(path: &Utf8Path) -> Seen {
    let Ok(entries) = std::fs::read_dir(path) else {
        return if path.exists() { Seen::There } else { Seen::Missing };
    };
    // Python writes these while it reads the sources beside them.
    let mut names: Vec<_> =
        entries.flatten().map(|entry| entry.file_name()).filter(|name| name != "__pycache__").collect();
    names.sort();
    let text = names.iter().map(|name| name.to_string_lossy().into_owned()).collect::<Vec<_>>().join("\0");
    Seen::Names(files::sha256(text.as_bytes()))
}

/// The same look again, as `seen` tells which it was.
pub(super) fn again(path: &Utf8Path, seen: &Seen, digests: &mut Digests) -> Seen {
    match seen {
        Seen::Contents(_) | Seen::Large(..) => digests.contents(path),
        Seen::Names(_) => names(path),
        Seen::There | Seen::Missing if path.exists() => Seen::There,
        Seen::There | Seen::Missing => Seen::Missing,
    }
}

/// The first program called `name` in the folders of `path`.
pub(super) fn program(name: &str, path: &str) -> Option<Utf8PathBuf> {
    let folders = path.split(':').filter(|folder| folder.starts_with('/'));
    folders.map(|folder| Utf8Path::new(folder).join(name)).find(|program| {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::metadata(program).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}
