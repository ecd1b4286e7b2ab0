//! The few file operations that need care: opening, durable writes, hashing, and telling one folder from its successor.
//!
//! Invariant: what these return was synced or read to the end, and nothing is read or written through a symbolic link in
//! place of a file of ours. Which files matter is decided by the callers.

use crate::Key;
use crate::key::finish;
use fs_err::OpenOptions;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt};
use std::path::Path;
use std::time::SystemTime;

/// Which folder stood at a path when we looked. A path alone cannot tell an entry from its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    inode: (u64, u64),
    modified: (i64, i64),
}

impl Identity {
    pub(crate) fn of(path: &Path) -> io::Result<Option<Self>> {
        Ok(absent_is_none(fs_err::symlink_metadata(path))?
            .map(|found| Self { inode: inode(&found), modified: (found.mtime(), found.mtime_nsec()) }))
    }

    /// True for the same folder even after a rename, which may touch its times.
    pub(crate) fn same_inode(&self, other: &Self) -> bool {
        self.inode == other.inode
    }
}

pub(crate) fn inode(found: &std::fs::Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// A missing file is often an answer and not a failure.
pub(crate) fn absent_is_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Nothing is at the path, or one of the folders on the way is no folder.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Opens a file of ours. A symbolic link is not followed, and a pipe not waited for: whoever can write to the cache folder
/// must neither choose which file is written to, nor stop every build.
pub(crate) fn open_plain(path: &Path, options: &mut OpenOptions) -> io::Result<fs_err::File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = options.custom_flags(flags.bits().cast_signed()).open(path);
    let found = match &opened {
        Ok(file) => file.metadata()?,
        // What the system says of a link or a pipe ("too many levels", "no such device") explains nothing.
        Err(_) => match fs_err::symlink_metadata(path) {
            Ok(found) => found,
            Err(_) => return opened,
        },
    };
    if found.is_file() { opened } else { Err(not_plain(&found)) }
}

fn not_plain(found: &std::fs::Metadata) -> io::Error {
    let kind = found.file_type();
    let what = if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a regular file; remove it"))
}

/// The size and sha256 of a file. With `durable`, its bytes are on the disk when this returns.
pub(crate) fn hash_file(path: &Path, durable: bool) -> io::Result<(u64, Key)> {
    let mut file = open_plain(path, OpenOptions::new().read(true))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut size = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                hasher.update(&buffer[..count]);
                size += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if durable {
        file.sync_all()?;
    }
    Ok((size, finish(hasher)))
}

/// Writes a file that must not exist yet, and syncs it.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes the names inside a folder durable, where the filesystem has a notion of that.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    match fs_err::File::open(path)?.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        result => result,
    }
}

/// Sets the mtime of a marker file, creating it where needed.
pub(crate) fn touch(path: &Path, now: SystemTime) -> io::Result<()> {
    let file = open_plain(path, OpenOptions::new().write(true).create(true).truncate(false))?;
    file.file().set_modified(now)
}

/// Deletes a folder, a file or a link, whichever it is. Nothing there is fine.
pub(crate) fn remove_any(path: &Path) -> io::Result<()> {
    let Some(found) = absent_is_none(fs_err::symlink_metadata(path))? else {
        return Ok(());
    };
    let removed = if found.is_dir() { fs_err::remove_dir_all(path) } else { fs_err::remove_file(path) };
    absent_is_none(removed).map(|_| ())
}
