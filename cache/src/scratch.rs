//! Folders in `tmp/` for work that nobody may see yet, or no longer.
//!
//! Invariant: the lock beside a folder is taken before the folder exists and released after it is gone, so a folder
//! whose lock is free belongs to a dead process. Neither age nor process id is ever evidence. Where the filesystem
//! cannot lock, a folder has no lock file and is never swept: losing disk space is better than losing a build.

use crate::disk::remove_any;
use crate::error::Context;
use crate::layout::{LOCK_SUFFIX, Layout};
use crate::lock::{Attempt, Held, Mode, attempt};
use crate::{Error, Result};
use std::io;
use std::path::{Path, PathBuf};

/// More live folders of one process than this means that something is wrong.
const MOST: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    lock: Option<(PathBuf, Held)>,
    gone: bool,
}

impl Scratch {
    pub(crate) fn new(layout: &Layout) -> Result<Self> {
        Self::new_with(layout, attempt)
    }

    fn new_with(layout: &Layout, attempt: impl Fn(&Path, Mode) -> Result<Attempt>) -> Result<Self> {
        layout.create()?;
        let process = std::process::id();
        for number in 0..MOST {
            let path = layout.tmp().join(format!("{process}-{number}"));
            let lock_path = lock_beside(&path);
            let lock = match attempt(&lock_path, Mode::Exclusive)? {
                Attempt::Held(file) => Some((lock_path, file)),
                Attempt::Busy => continue,
                Attempt::Unsupported(_) => {
                    remove_any(&lock_path).context("remove the useless lock", &lock_path)?;
                    None
                }
            };
            match fs_err::create_dir(&path) {
                Ok(()) => {
                    return Ok(Self { path, lock, gone: false });
                }
                // Left by a dead process with our id; the next sweep takes it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    if let Some((lock_path, _file)) = &lock {
                        // A full disk is likely here, and the first error is the one worth telling.
                        let _ = remove_any(lock_path);
                    }
                    return Err(error).context("create the staging folder", &path);
                }
            }
        }
        Err(Error::Contended { path: layout.tmp() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder now has another name and must not be deleted under its old one, which may be in use again.
    pub(crate) fn moved_away(&mut self) {
        self.gone = true;
    }

    /// Deletes the folder and says whether that worked, which a mere drop cannot.
    pub(crate) fn close(mut self) -> Result<()> {
        self.clear()
    }

    fn clear(&mut self) -> Result<()> {
        if !self.gone {
            remove_any(&self.path).context("delete the staging folder", &self.path)?;
            self.gone = true;
        }
        // Only after the folder: a folder without its lock file would never be swept.
        if let Some((path, file)) = self.lock.take() {
            remove_any(&path).context("delete the staging lock", &path)?;
            drop(file);
        }
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be deleted now is left to the next sweep, as after a crash.
        let _ = self.clear();
    }
}

/// Removes what dead processes left in `tmp/`, and returns how many folders that were. What resists is skipped:
/// it costs space and can never be read as an entry.
pub(crate) fn sweep(layout: &Layout) -> usize {
    let Ok(names) = fs_err::read_dir(layout.tmp()) else {
        return 0;
    };
    names
        .flatten()
        .filter_map(|name| {
            let lock_path = name.path();
            Some((folder_beside(&lock_path)?, lock_path))
        })
        .filter(|(folder, lock_path)| {
            let Ok(Attempt::Held(_file)) = attempt(lock_path, Mode::Exclusive) else {
                return false;
            };
            remove_any(folder).and_then(|()| remove_any(lock_path)).is_ok()
        })
        .count()
}

fn lock_beside(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(LOCK_SUFFIX);
    name.into()
}

fn folder_beside(lock: &Path) -> Option<PathBuf> {
    let name = lock.file_name()?.to_str()?.strip_suffix(LOCK_SUFFIX)?;
    Some(lock.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_locks_a_folder_is_never_swept_but_still_removed_by_its_owner() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::new(root.path().to_owned());
        let without_locks = |path: &Path, _| {
            fs_err::write(path, "").unwrap();
            Ok(Attempt::Unsupported("no locks".to_owned()))
        };
        let scratch = Scratch::new_with(&layout, without_locks).unwrap();
        let second = Scratch::new_with(&layout, without_locks).unwrap();
        assert_ne!(scratch.path(), second.path());
        assert!(!lock_beside(scratch.path()).exists());
        assert_eq!(sweep(&layout), 0);
        assert!(scratch.path().is_dir());
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists() && second.path().is_dir());
    }

    #[test]
    fn a_folder_left_under_our_own_process_id_is_not_reused() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::new(root.path().to_owned());
        let first = Scratch::new(&layout).unwrap();
        let stale = first.path().to_owned();
        drop(first);
        fs_err::create_dir(&stale).unwrap();
        fs_err::write(stale.join("old"), "").unwrap();
        let scratch = Scratch::new(&layout).unwrap();
        assert_ne!(scratch.path(), stale);
        assert_eq!(sweep(&layout), 1);
        assert!(scratch.path().is_dir() && !stale.exists());
    }
}
