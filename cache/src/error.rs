//! Every way in which the store can fail, as one enum.
//!
//! Invariant: a failure of the disk names the path and keeps the operating system's error as its source.
//! Damage found in an entry is no error but a [`crate::Lookup`]; how an error is shown is the caller's business.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the store could not do what was asked. None of these leaves a half-written entry that could be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk refused: full, read-only, no permission, broken.
    #[error("failed to {action} {}", .path.display())]
    Io {
        /// What was being done, in the infinitive.
        action: &'static str,
        /// The file or folder it was done to.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Text that should be a whole key is not one.
    #[error("{text:?} is not a key: expected 64 lower-case hex digits")]
    BadKey {
        /// The text as given.
        text: String,
    },
    /// Text that should be the start of a key is not.
    #[error("{text:?} is not the start of a key: expected 1 to 64 lower-case hex digits")]
    BadPrefix {
        /// The text as given.
        text: String,
    },
    /// A staged file has a name or a kind that an entry cannot hold.
    #[error("cannot store {}: {why}", .path.display())]
    BadFile {
        /// The offending file or name.
        path: PathBuf,
        /// Which rule it breaks.
        why: &'static str,
    },
    /// A lock name that could leave the lock folder or clash with another.
    #[error("{name:?} cannot name a lock: use letters, digits, `-` and `_`")]
    BadLockName {
        /// The name as given.
        name: String,
    },
    /// Canonical JSON holds integers only, because fractions have no single spelling.
    #[error("the number {number} at {pointer:?} is not a 64-bit integer")]
    NotInteger {
        /// Where it stands, as a JSON pointer.
        pointer: String,
        /// The number as given.
        number: String,
    },
    /// The caller gave up waiting for a lock.
    #[error("another process still holds {} after {waited:?}", .path.display())]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// Time slept so far.
        waited: Duration,
    },
    /// The entry was written in a format that this version does not know, so it is left alone.
    #[error("{} has entry format {format}, newer than the known format {known}", .path.display())]
    NewerFormat {
        /// The entry's folder.
        path: PathBuf,
        /// The format found.
        format: u64,
        /// The newest format that this version reads.
        known: u64,
    },
    /// Something was to be removed without the exclusive lock on this very store.
    #[error("removing needs the exclusive lock {}", .path.display())]
    NotExclusive {
        /// The lock that has to be held.
        path: PathBuf,
    },
    /// Other processes changed this place faster than we could look at it.
    #[error("gave up on {}: it changes at every attempt", .path.display())]
    Contended {
        /// The place in question.
        path: PathBuf,
    },
}

impl Error {
    /// The kind of disk failure, so that a caller can tell a full disk from a read-only one.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { source, .. } => Some(source.kind()),
            _ => None,
        }
    }
}

/// Turns a bare I/O result into one that says what was being done, and to what.
pub(crate) trait Context<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { action, path: path.to_owned(), source })
    }
}
