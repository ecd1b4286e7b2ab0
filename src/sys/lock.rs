//! File locks between cuwright processes: shared while something is used, exclusive while it is made or removed.
//!
//! A lock is advisory and ends with its last open file, also after `kill -9`. A child that gets the file as standard
//! input keeps the lock for as long as it runs. Where the file system knows no locks, everything counts as locked.

use std::fs::TryLockError;
use std::io;
use std::time::Duration;

use camino::Utf8Path;
use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::OFlags;

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
    // Whoever can write to the folder must not choose what is opened, nor let us wait for the other end of a pipe.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = fs::OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true).custom_flags(flags.bits().cast_signed());
    let opened = options.open(path);
    let found = match &opened {
        Ok(file) => file.metadata()?,
        Err(_) => match fs::symlink_metadata(path) {
            Ok(found) => found,
            Err(_) => return opened,
        },
    };
    if found.is_file() {
        return opened;
    }
    let what = if found.is_symlink() { "a symbolic link" } else { "no regular file" };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("the lock file {path} is {what}; remove it")))
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

    #[test]
    fn what_stands_in_place_of_a_lock_file_is_named_and_neither_followed_nor_waited_for() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        fs::os::unix::fs::symlink(root.join("elsewhere"), root.join("link")).unwrap();
        mknodat(CWD, root.join("pipe").as_std_path(), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        fs::create_dir(root.join("folder")).unwrap();
        for name in ["link", "pipe", "socket", "folder"] {
            let path = root.join(name);
            let errors = [
                Lock::shared(&path).map(drop),
                Lock::exclusive(&path, || {}).map(drop),
                Lock::try_exclusive(&path).map(drop),
            ];
            for error in errors {
                assert!(error.unwrap_err().to_string().contains(path.as_str()), "{name}");
            }
        }
        assert!(!root.join("elsewhere").exists());
    }
}
