//! The Unix socket between stand-ins and coordinator, in the launcher's folder.
//!
//! A socket's path may have 107 bytes, and build folders are deeper than that: the folder is opened, and the path goes
//! through its descriptor.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

const NAME: &str = "socket";

/// Connects to whoever listens in `folder`.
pub(super) fn connect(folder: &Path) -> io::Result<UnixStream> {
    let (_open, path) = through(folder)?;
    UnixStream::connect(path)
}

/// Listens in `folder`.
pub(super) fn listen(folder: &Path) -> io::Result<UnixListener> {
    let (_open, path) = through(folder)?;
    UnixListener::bind(path)
}

fn through(folder: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let open = rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd())).join(NAME);
    Ok((open, path))
}
