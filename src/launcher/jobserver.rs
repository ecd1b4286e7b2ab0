//! A GNU jobserver for tools that run jobs of their own below a build: make, cargo, `nvcc --jobserver`.
//!
//! The coordinator alone holds the limit, and compilers ask it. The pipe of tokens serves everything else: it always
//! holds as many as there are cores to spare, and what others have taken is counted as in use. A compiler call below
//! make or cargo has a token of its parent's and a slot too; it is *covered*, and counts once.
//!
//! ```text
//! free cores = cores − slots − (tokens taken − covered calls)
//! ```

use std::io;
use std::os::fd::OwnedFd;

use camino::Utf8Path;
use rustix::fs::{CWD, Mode, OFlags};

/// Name of the pipe in a launcher's folder.
pub(super) const NAME: &str = "jobserver";

/// A named pipe of tokens.
#[derive(Debug)]
pub(super) struct Jobserver {
    pipe: OwnedFd,
    cores: u32,
    /// Tokens in the pipe and in others' hands.
    issued: u32,
}

impl Jobserver {
    /// Makes the pipe, with a token for each core but one: whoever takes tokens runs one job without.
    pub(super) fn make(path: &Utf8Path, cores: u32) -> io::Result<Self> {
        rustix::fs::mkfifoat(CWD, path.as_std_path(), Mode::RUSR | Mode::WUSR)?;
        // Open for both, so that neither we nor they ever see its end.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let pipe = rustix::fs::open(path.as_std_path(), flags, Mode::empty())?;
        let mut jobserver = Self { pipe, cores, issued: 0 };
        jobserver.balance(0, 0);
        Ok(jobserver)
    }

    /// Puts as many tokens into the pipe as there are cores to spare beside `slots`, and says how many cores others hold.
    pub(super) fn balance(&mut self, slots: u32, covered: u32) -> u32 {
        let level = self.level();
        let foreign = self.issued.saturating_sub(level).saturating_sub(covered);
        let spare = self.cores.saturating_sub(slots).saturating_sub(foreign).min(self.cores.saturating_sub(1));
        for _ in level..spare {
            self.issued += u32::from(rustix::io::write(&self.pipe, b"+").is_ok());
        }
        for _ in spare..level {
            // One that is gone meanwhile was taken, and counts as such at the next look.
            self.issued -= u32::from(rustix::io::read(&self.pipe, &mut [0; 1]).is_ok_and(|count| count == 1));
        }
        foreign
    }

    /// Forgets tokens that nobody can bring back: a client that was killed keeps what it had.
    pub(super) fn forgive(&mut self) {
        self.issued = self.level();
    }

    fn level(&self) -> u32 {
        rustix::io::ioctl_fionread(&self.pipe).ok().and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(0)
    }
}

/// What `MAKEFLAGS` says of a pipe.
pub(super) fn flags(path: &Utf8Path, cores: u32) -> String {
    format!(" -j{cores} --jobserver-auth=fifo:{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(jobserver: &Jobserver, tokens: usize) -> usize {
        (0..tokens).filter(|_| rustix::io::read(&jobserver.pipe, &mut [0; 1]).is_ok()).count()
    }

    #[test]
    fn slots_and_tokens_share_the_cores() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join(NAME);
        let mut jobserver = Jobserver::make(&path, 8).unwrap();
        assert_eq!(jobserver.level(), 7, "one job needs no token");
        assert_eq!((jobserver.balance(5, 0), jobserver.level()), (0, 3));
        assert_eq!(taken(&jobserver, 2), 2);
        assert_eq!((jobserver.balance(5, 0), jobserver.level()), (2, 1));
        // The same two tokens, when two of the five slots are calls that they were taken for.
        assert_eq!((jobserver.balance(5, 2), jobserver.level()), (0, 3));
        // Nobody brings them back.
        jobserver.forgive();
        assert_eq!((jobserver.balance(0, 0), jobserver.level()), (0, 7));
        assert_eq!((jobserver.balance(8, 0), jobserver.level()), (0, 0));
    }
}
