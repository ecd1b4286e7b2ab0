//! Where everything lies under the root that the caller gave.
//!
//! Invariant: this file alone knows a name on disk, and `README.md` shows the same tree. What the files hold is
//! said in `manifest`; which of them may be read is decided in `entry`.
//!
//! ```text
//! <root>/
//! ├── CACHEDIR.TAG                backup tools skip the folder
//! ├── artifacts-v1/               a new layout gets a new bucket
//! │   └── 9f/                     the first two digits of the key
//! │       └── 9f86…0a08/          one entry, named by its whole key
//! │           ├── manifest.json   written last; without it the entry does not exist
//! │           ├── inputs.json     what the key stands for, as canonical JSON
//! │           ├── last-used       empty; its mtime is the time of the last hit
//! │           └── files/          the artifact, by the names in the manifest
//! ├── tmp/                        on the same filesystem, so that one rename publishes
//! │   ├── 4242-0/                 an entry being staged or being deleted
//! │   └── 4242-0.lock             held by its owner; free once the owner is dead
//! └── locks/                      always empty files; only the lock on them counts
//!     ├── store.lock              shared by builds, exclusive for gc and remove
//!     └── key-9f86…0a08.lock      held by the one builder of a key
//! ```

use crate::disk::open_plain;
use crate::error::Context;
use crate::{Error, Key, Result};
use fs_err::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// The name of the lock on the whole store: builds share it, removal wants it alone.
pub const STORE_LOCK: &str = "store";

pub(crate) const KEY_LOCK_PREFIX: &str = "key-";
pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const INPUTS: &str = "inputs.json";
pub(crate) const LAST_USED: &str = "last-used";
pub(crate) const FILES: &str = "files";
pub(crate) const LOCK_SUFFIX: &str = ".lock";

const BUCKET: &str = "artifacts-v1";
const TAG: &str = "CACHEDIR.TAG";
/// Fixed by the convention for cache folders; tools look for exactly this.
const TAG_SIGNATURE: &str = "Signature: 8a477f597d28d172789f06886806bc55";

#[derive(Debug, Clone)]
pub(crate) struct Layout {
    root: PathBuf,
}

impl Layout {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn bucket(&self) -> PathBuf {
        self.root.join(BUCKET)
    }

    /// The folder that holds all entries whose keys start alike.
    pub(crate) fn shard(&self, key: &Key) -> PathBuf {
        self.bucket().join(&key.as_str()[..2])
    }

    pub(crate) fn entry(&self, key: &Key) -> PathBuf {
        self.shard(key).join(key.as_str())
    }

    pub(crate) fn tmp(&self) -> PathBuf {
        self.root.join("tmp")
    }

    pub(crate) fn locks(&self) -> PathBuf {
        self.root.join("locks")
    }

    pub(crate) fn lock_file(&self, name: &str) -> Result<PathBuf> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || name.len() > 200 || !name.bytes().all(plain) {
            return Err(Error::BadLockName { name: name.to_owned() });
        }
        Ok(self.locks().join(format!("{name}{LOCK_SUFFIX}")))
    }

    /// Creates what every writer needs. Readers never call this, so a read-only store can be read.
    pub(crate) fn create(&self) -> Result<()> {
        for folder in [self.bucket(), self.tmp(), self.locks()] {
            fs_err::create_dir_all(&folder).context("create the cache folder", &folder)?;
        }
        let tag = self.root.join(TAG);
        mark(&tag).context("mark the cache folder", &tag)
    }
}

/// Writes the tag, unless it is there.
fn mark(tag: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    if let Ok(file) = open_plain(tag, options.read(true)) {
        let mut found = Vec::new();
        file.take(TAG_SIGNATURE.len() as u64).read_to_end(&mut found)?;
        if found == TAG_SIGNATURE.as_bytes() {
            return Ok(());
        }
    }
    let mut file = open_plain(tag, options.write(true).create(true).truncate(false))?;
    file.set_len(0)?;
    writeln!(
        file,
        "{TAG_SIGNATURE}\n# Built artifacts of cuwright. All of it can be built again, so it may be deleted."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Vec<&str> {
        let bare = text.lines().map(|line| line.strip_prefix("//! ").unwrap_or(line));
        bare.skip_while(|line| *line != "```text").skip(1).take_while(|line| *line != "```").collect()
    }

    #[test]
    fn the_readme_shows_the_same_tree_as_this_file() {
        let here = tree(include_str!("layout.rs"));
        assert!(here.len() > 10);
        assert_eq!(here, tree(include_str!("../README.md")));
    }

    #[test]
    fn a_lock_name_cannot_leave_the_lock_folder() {
        let layout = Layout::new(PathBuf::from("root"));
        assert!(layout.lock_file(STORE_LOCK).is_ok());
        for bad in ["", ".", "..", "a/b", "a.lock", "ä", "a\0", &"x".repeat(201)] {
            assert!(layout.lock_file(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
