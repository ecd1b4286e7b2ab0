//! File locks between cuwright processes: shared while something is used, exclusive while it is made or removed.
//!
//! A lock is advisory and ends with its last open file, also after `kill -9`. A child that gets the file as standard
//! input keeps the lock for as long as it runs. Where the file system knows no locks, everything counts as locked.

use std::fs::TryLockError;
use std::io;
use std::time::Duration;

use camino::Utf8Path;
use fs_err as fs;

use super::signals;

/// Time between two tries at a lock that somebody has. A wait inside the system would not end with a deferred signal.
const NAP: Duration = Duration::from_millis(50);

/// A held lock; dropping it lets go.
#[derive(Debug)]
pub struct Lock(fs::File);

impl Lock {
    /// Takes `path` for several holders at once; waits for a maker.
    pub fn shared(path: &Utf8Path) -> io::Result<Self> {
        let file = open(path)?;
        wait(&file, std::fs::File::try_lock_shared)?;
        Ok(Self(file))
    }

    /// Takes `path` for one holder; `waiting` is called once if somebody else has it.
    pub fn exclusive(path: &Utf8Path, waiting: impl FnOnce()) -> io::Result<Self> {
        let file = open(path)?;
        match file.file().try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                waiting();
                wait(&file, std::fs::File::try_lock)?;
            }
            Err(TryLockError::Error(error)) => degrade(Err(error))?,
        }
        Ok(Self(file))
    }

    /// Takes `path` for one holder, or `None` if somebody has it.
    pub fn try_exclusive(path: &Utf8Path) -> io::Result<Option<Self>> {
        let file = open(path)?;
        match file.file().try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => degrade(Err(error)).map(|()| Some(Self(file))),
        }
    }

    /// Another handle of the same lock, to hand to a child.
    pub fn handle(&self) -> io::Result<std::fs::File> {
        self.0.file().try_clone()
    }
}

/// Tries until nobody has it, or a signal asks us to stop.
fn wait(file: &fs::File, attempt: impl Fn(&std::fs::File) -> Result<(), TryLockError>) -> io::Result<()> {
    loop {
        match attempt(file.file()) {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if signals::caught() => return Err(signals::interrupted()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(NAP),
            Err(TryLockError::Error(error)) => return degrade(Err(error)),
        }
    }
}

fn open(path: &Utf8Path) -> io::Result<fs::File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)
}

/// Network file systems without locks are used as they are: one user at a time is by far the usual case there.
fn degrade(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_share_and_a_maker_is_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("a/x.lock");
        let first = Lock::shared(&path).unwrap();
        let second = Lock::shared(&path).unwrap();
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
        drop((first, second));
        let alone = Lock::exclusive(&path, || panic!("nobody has it")).unwrap();
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
        let child = alone.handle().unwrap();
        drop(alone);
        assert!(Lock::try_exclusive(&path).unwrap().is_none(), "a handle keeps the lock");
        drop(child);
        assert!(Lock::try_exclusive(&path).unwrap().is_some());
    }
}
