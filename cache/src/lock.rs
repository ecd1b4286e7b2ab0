//! Locks between processes, held by an open file and gone with it, however the process ends.
//!
//! Invariant: a guard that is not degraded locks the file that is at the path now, so a lock file may be deleted by
//! whoever holds it. There is no clock here: waiting is counted in naps, and the caller decides when to stop.
//! A filesystem without locks gives a guard that says so, because a cache without locks still beats no cache.

use crate::disk::{absent_is_none, inode, is_absent, open_plain};
use crate::error::Context;
use crate::layout::Layout;
use crate::{Error, Result, Store};
use fs_err::OpenOptions;
use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long one nap lasts between two attempts at a lock.
const NAP: Duration = Duration::from_millis(50);
/// Attempts at a lock file that is deleted each time before we lock it.
const ATTEMPTS: usize = 100;
/// "No locks available", which std has no name for.
const ENOLCK: i32 = if cfg!(target_os = "linux") { 37 } else { 77 };

/// Whether others may hold the lock at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Any number of holders, none of them exclusive.
    Shared,
    /// One holder.
    Exclusive,
}

/// What the caller says when asked about a lock that is not free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Take a nap and try again.
    Again,
    /// Stop; the call returns [`Error::Busy`].
    GiveUp,
}

/// A held lock. Dropping it releases the lock.
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub struct Guard {
    path: PathBuf,
    mode: Mode,
    degraded: Option<String>,
    _file: Option<Held>,
}

impl Guard {
    /// How it is held.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why this guard locks nothing, where the filesystem cannot lock. Worth a warning.
    pub fn degraded(&self) -> Option<&str> {
        self.degraded.as_deref()
    }
}

impl Store {
    /// Takes a lock, waiting for it. Whenever it is not free, `wait` is told how long we have waited so far,
    /// starting at zero, and decides whether to go on: the place for a message and for a limit.
    pub fn lock(&self, name: &str, mode: Mode, mut wait: impl FnMut(Duration) -> Wait) -> Result<Guard> {
        let mut waited = Duration::ZERO;
        loop {
            if let Some(guard) = self.try_lock(name, mode)? {
                return Ok(guard);
            }
            if wait(waited) == Wait::GiveUp {
                return Err(Error::Busy { path: self.layout().lock_file(name)?, waited });
            }
            std::thread::sleep(NAP);
            waited += NAP;
        }
    }

    /// The file of a lock, to be named in messages.
    pub fn lock_file(&self, name: &str) -> Result<PathBuf> {
        self.layout().lock_file(name)
    }

    /// Takes a lock if it is free now; `None` says that someone holds it.
    pub fn try_lock(&self, name: &str, mode: Mode) -> Result<Option<Guard>> {
        let path = self.layout().lock_file(name)?;
        prepare(self.layout(), mode)?;
        let (file, degraded) = match attempt(&path, mode)? {
            Attempt::Held(file) => (Some(file), None),
            Attempt::Busy => return Ok(None),
            Attempt::Unsupported(reason) => (None, Some(reason)),
        };
        Ok(Some(Guard { path, mode, degraded, _file: file }))
    }
}

/// A reader of a read-only store needs no folders of its own, so only a writer fails here.
fn prepare(layout: &Layout, mode: Mode) -> Result<()> {
    match layout.create() {
        Err(Error::Io { source, .. }) if mode == Mode::Shared && is_read_only(&source) => Ok(()),
        result => result,
    }
}

/// A locked file. Closing it would release the lock too, but not before a child that another thread is just
/// starting has let go of its copy.
#[derive(Debug)]
pub(crate) struct Held(fs_err::File);

impl Drop for Held {
    fn drop(&mut self) {
        // The close that follows is the second chance.
        let _ = self.0.file().unlock();
    }
}

#[derive(Debug)]
pub(crate) enum Attempt {
    Held(Held),
    Busy,
    Unsupported(String),
}

pub(crate) fn attempt(path: &Path, mode: Mode) -> Result<Attempt> {
    attempt_with(path, mode, |file, mode| match mode {
        Mode::Shared => file.try_lock_shared(),
        Mode::Exclusive => file.try_lock(),
    })
}

fn attempt_with(
    path: &Path,
    mode: Mode,
    lock: impl Fn(&std::fs::File, Mode) -> Result<(), TryLockError>,
) -> Result<Attempt> {
    for _ in 0..ATTEMPTS {
        let Some(file) = open(path, mode).context("open the lock file", path)? else {
            return Ok(Attempt::Unsupported("the cache is read-only and holds no lock file".to_owned()));
        };
        match lock(file.file(), mode) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Attempt::Busy),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {
                continue;
            }
            Err(TryLockError::Error(error)) if cannot_lock(&error) => {
                return Ok(Attempt::Unsupported(error.to_string()));
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).context("lock", path);
            }
        }
        // The holder before us may have deleted the file after we opened it. Then we hold a lock that nobody
        // else can see, and must open the new file instead.
        let ours = file.metadata().context("look at the lock file", path)?;
        match fs_err::symlink_metadata(path) {
            Ok(current) if inode(&current) == inode(&ours) => {
                return Ok(Attempt::Held(Held(file)));
            }
            Ok(_) => {}
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(error).context("look at the lock file", path),
        }
    }
    Err(Error::Contended { path: path.to_owned() })
}

/// Opens or creates a lock file. `None` where a reader finds none and cannot make one.
fn open(path: &Path, mode: Mode) -> io::Result<Option<fs_err::File>> {
    let result = open_plain(path, OpenOptions::new().read(true).write(true).create(true).truncate(false));
    match result {
        Ok(file) => Ok(Some(file)),
        Err(error) if mode == Mode::Shared && (is_read_only(&error) || is_absent(&error)) => {
            absent_is_none(open_plain(path, OpenOptions::new().read(true)))
        }
        Err(error) => Err(error),
    }
}

fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

fn cannot_lock(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported || error.raw_os_error() == Some(ENOLCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filesystem_without_locks_is_reported_and_not_an_error() {
        let folder = tempfile::tempdir().unwrap();
        for error in [|| io::Error::from_raw_os_error(ENOLCK), || io::ErrorKind::Unsupported.into()] {
            let attempt =
                attempt_with(&folder.path().join("a"), Mode::Exclusive, |_, _| Err(TryLockError::Error(error())));
            assert!(matches!(attempt, Ok(Attempt::Unsupported(_))));
        }
    }

    #[test]
    fn another_lock_failure_is_an_error_with_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let error =
            attempt_with(&path, Mode::Shared, |_, _| Err(TryLockError::Error(io::ErrorKind::OutOfMemory.into())));
        assert!(matches!(error, Err(Error::Io { path: named, .. }) if named == path));
    }

    #[test]
    fn a_lock_on_a_deleted_or_replaced_file_is_not_taken_for_the_lock() {
        for replace in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a");
            let first = std::cell::Cell::new(true);
            let held = attempt_with(&path, Mode::Exclusive, |file, _| {
                if first.replace(false) {
                    fs_err::remove_file(&path).unwrap();
                    if replace {
                        fs_err::write(&path, "").unwrap();
                    }
                }
                file.try_lock()
            });
            assert!(matches!(held, Ok(Attempt::Held(_))));
            let second = attempt(&path, Mode::Exclusive);
            assert!(matches!(second, Ok(Attempt::Busy)), "{replace}");
        }
    }
}
