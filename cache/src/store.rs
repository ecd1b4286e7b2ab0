//! The store as its users hold it: open, look up, stage.
//!
//! Invariant: looking up never needs a lock and never returns an unchecked byte; a damaged entry is moved out of
//! sight in one rename, and only if it is still the very folder that was found damaged. Waiting, listing and
//! removing are in `lock`, `listing` and `gc`.

use crate::disk::{Identity, is_absent, remove_any, touch};
use crate::entry::{Found, read_and_verify};
use crate::error::Context;
use crate::layout::{LAST_USED, Layout, MANIFEST};
use crate::scratch::{Scratch, sweep};
use crate::{Damage, Entry, Error, Key, Result, Staging};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Looks at an entry that others replace while we look.
const ATTEMPTS: usize = 8;

/// A store of artifacts under one folder. Cheap to clone, and free to use from many threads and processes.
#[derive(Debug, Clone)]
pub struct Store {
    layout: Layout,
}

/// What [`Store::get`] found.
#[derive(Debug)]
#[must_use]
pub enum Lookup {
    /// The entry, each byte of it checked.
    Hit(Entry),
    /// There is no such entry.
    Miss,
    /// There was an entry, but it was damaged. It counts as a miss.
    Evicted {
        /// What was wrong with it.
        reason: Damage,
        /// Why it could not be moved away and is still there, ignored, as in a read-only store.
        left: Option<Error>,
    },
    /// There is an entry in a format newer than this version knows. It counts as a miss and was not touched.
    Newer {
        /// The format found.
        format: u64,
    },
}

impl Store {
    /// Opens the store under `root`, an absolute path. Nothing is created before something is stored or locked.
    /// Removes what killed processes left behind.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self> {
        let layout = Layout::new(root.into());
        let root = layout.root();
        match fs_err::metadata(root) {
            Ok(found) if !found.is_dir() => {
                return Err(io::ErrorKind::NotADirectory.into()).context("open the cache in", root);
            }
            Err(error) if !is_absent(&error) => {
                return Err(error).context("open the cache in", root);
            }
            _ => {}
        }
        sweep(&layout);
        Ok(Self { layout })
    }

    /// The folder that the store lives in.
    pub fn root(&self) -> &Path {
        self.layout.root()
    }

    /// Finds the entry of `key` and checks it, byte by byte. A hit counts as a use at `now`.
    pub fn get(&self, key: &Key, now: SystemTime) -> Result<Lookup> {
        let folder = self.layout.entry(key);
        for _ in 0..ATTEMPTS {
            let Some(seen) = Identity::of(&folder).context("look at", &folder)? else {
                return Ok(Lookup::Miss);
            };
            let reason = match read_and_verify(&folder, key)? {
                Found::Nothing => return Ok(Lookup::Miss),
                Found::Newer(format) => return Ok(Lookup::Newer { format }),
                Found::Entry(entry) => {
                    self.touch(key, now);
                    return Ok(Lookup::Hit(*entry));
                }
                Found::Damaged(reason) => reason,
            };
            // What looks like damage may be an entry that was removed or replaced under our eyes.
            match self.move_aside(key, &seen) {
                Ok(true) => return Ok(Lookup::Evicted { reason, left: None }),
                Ok(false) => {}
                Err(error) => {
                    let left = Some(error);
                    return Ok(Lookup::Evicted { reason, left });
                }
            }
        }
        Err(Error::Contended { path: folder })
    }

    /// Starts a new artifact. The caller should hold the key's lock ([`Key::lock_name`]), so that nobody builds
    /// it twice, and must have looked it up after taking that lock.
    pub fn stage(&self, key: &Key) -> Result<Staging> {
        Staging::new(self, key)
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Notes a use. The time of the last use only steers gc, so failing to note it is no failure.
    pub(crate) fn touch(&self, key: &Key, now: SystemTime) {
        let _ = touch(&self.layout.entry(key).join(LAST_USED), now);
    }

    /// Takes an entry out of sight and deletes it, if it is still the folder that was `seen`. False if not.
    pub(crate) fn move_aside(&self, key: &Key, seen: &Identity) -> Result<bool> {
        let folder = self.layout.entry(key);
        if Identity::of(&folder).context("look at", &folder)?.as_ref() != Some(seen) {
            return Ok(false);
        }
        self.take_away(&folder, seen)
    }

    /// The second half of [`Store::move_aside`], which still holds its promise if the folder was replaced since.
    fn take_away(&self, folder: &Path, seen: &Identity) -> Result<bool> {
        let scratch = match Scratch::new(&self.layout) {
            // Moving needs a new folder, and gc must work on a full disk above all.
            Err(error) if error.io_kind().is_some_and(is_full) => {
                return delete_in_place(folder).map(|()| true);
            }
            result => result?,
        };
        let aside = scratch.path().join("entry");
        match fs_err::rename(folder, &aside) {
            Ok(()) => {}
            Err(error) if is_absent(&error) => return Ok(false),
            // A folder of a lower image layer cannot be renamed, only deleted.
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                return delete_in_place(folder).map(|()| true);
            }
            Err(error) => return Err(error).context("move the entry out of the way", folder),
        }
        let moved = Identity::of(&aside).context("look at", &aside)?;
        if !moved.is_some_and(|moved| moved.same_inode(seen)) {
            // Between the look and the rename someone put a new entry there. Give it back; should yet another
            // stand there by now, that one is as good.
            let _ = fs_err::rename(&aside, folder);
            return Ok(false);
        }
        // It can no longer be read. What cannot be deleted now is left to the next sweep.
        let _ = scratch.close();
        Ok(true)
    }
}

/// Without its manifest an entry does not exist, so the manifest goes first.
fn delete_in_place(folder: &Path) -> Result<()> {
    let manifest = folder.join(MANIFEST);
    if let Err(error) = fs_err::remove_file(&manifest)
        && !is_absent(&error)
    {
        return Err(error).context("delete", &manifest);
    }
    remove_any(folder).context("delete", folder)
}

fn is_full(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest;
    use serde_json::json;

    /// A store with one entry.
    fn store(root: &Path) -> (Store, Key, PathBuf) {
        let store = Store::open(root).unwrap();
        let key = digest(b"a");
        commit(&store, &key);
        let folder = store.layout.entry(&key);
        (store, key, folder)
    }

    fn commit(store: &Store, key: &Key) {
        let staging = store.stage(key).unwrap();
        staging.commit(json!({}), json!({}), SystemTime::UNIX_EPOCH).unwrap();
    }

    #[test]
    fn an_entry_that_replaced_the_one_we_saw_is_not_moved() {
        let root = tempfile::tempdir().unwrap();
        let (store, key, folder) = store(root.path());
        let seen = Identity::of(&folder).unwrap().unwrap();
        // The same inode again but written at another time, as when the disk reuses the number of a deleted folder.
        let handle = fs_err::File::open(&folder).unwrap();
        handle.file().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert!(!store.move_aside(&key, &seen).unwrap());
        assert!(folder.join(MANIFEST).exists());
    }

    #[test]
    fn an_entry_that_appears_just_before_the_move_is_given_back() {
        let root = tempfile::tempdir().unwrap();
        let (store, key, folder) = store(root.path());
        let seen = Identity::of(&folder).unwrap().unwrap();
        // Kept elsewhere, so that its inode cannot be reused.
        fs_err::rename(&folder, root.path().join("old")).unwrap();
        commit(&store, &key);
        assert!(!store.take_away(&folder, &seen).unwrap());
        assert!(folder.join(MANIFEST).exists());
    }

    #[test]
    fn the_entry_that_we_saw_is_moved() {
        let root = tempfile::tempdir().unwrap();
        let (store, key, folder) = store(root.path());
        let seen = Identity::of(&folder).unwrap().unwrap();
        assert!(store.move_aside(&key, &seen).unwrap());
        assert!(!folder.exists());
    }
}
