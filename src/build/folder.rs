//! The folder a unit is built in, and what a killed predecessor may have left there.
//!
//! ```text
//! build-v1/<key>/
//!     src/     copy of the source tree, patches applied
//!     work/    what lies between sources and results: CMake's binary folder, Bazel's output root
//!     stage/   what CMake installs, what Bazel made
//!     dist/    the artifact
//!     home/    empty; what the build takes for the user's home
//!     reads/   what its processes looked at
//! logs-v1/<name>-<key, 12 digits>.log
//! ```
//!
//! Invariant: the caller holds the key's lock. A folder found here is then a leftover of a dead cuwright; compilers
//! that outlived it are killed before the folder goes, since they would write into the new one.

use std::io;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use crate::plan::Places;
use crate::sys::{files, processes};

/// All build folders, below the cache root.
const BUCKET: &str = "build-v1";

/// Paths of one build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildFolder {
    /// The folder itself.
    pub root: Utf8PathBuf,
    /// Copy of the source tree.
    pub source: Utf8PathBuf,
    /// Files in between.
    pub work: Utf8PathBuf,
    /// Where a tree of files is put together.
    pub stage: Utf8PathBuf,
    /// Where the artifact appears.
    pub dist: Utf8PathBuf,
    /// The build's home.
    pub home: Utf8PathBuf,
    /// Log of the build system's output.
    pub log: Utf8PathBuf,
}

impl BuildFolder {
    /// Paths for a unit called `name` with `key` below the cache root. Nothing is created.
    pub fn of(cache_root: &Utf8Path, name: &str, key: &str) -> Self {
        let root = cache_root.join(BUCKET).join(key);
        let short = key.get(..12).unwrap_or(key);
        let log = cache_root.join("logs-v1").join(format!("{name}-{short}.log"));
        let [source, work, stage, dist, home] = ["src", "work", "stage", "dist", "home"].map(|name| root.join(name));
        Self { root, source, work, stage, dist, home, log }
    }

    /// Makes an empty folder, after removing a leftover and the processes that still work in it.
    /// Returns how many such processes were stopped.
    pub fn create(&self) -> io::Result<usize> {
        let stopped = if self.root.exists() { processes::kill_working_in(&self.root) } else { 0 };
        files::remove_tree(&self.root)?;
        for folder in [&self.work, &self.stage, &self.dist, &self.home] {
            fs::create_dir_all(folder)?;
        }
        if let Some(folder) = self.log.parent() {
            fs::create_dir_all(folder)?;
        }
        files::remove_file(&self.log)?;
        Ok(stopped)
    }

    /// Removes the folder; the log stays.
    pub fn remove(&self) -> io::Result<()> {
        files::remove_tree(&self.root)
    }

    /// As the plan wants it.
    pub fn places(&self) -> Places<'_> {
        Places { source: &self.source, work: &self.work, stage: &self.stage, dist: &self.dist, home: &self.home }
    }
}

/// A build folder that may belong to nobody any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Its key.
    pub key: String,
    /// The folder.
    pub path: Utf8PathBuf,
    /// Time since something was last made in it; zero where the clock went backwards.
    pub age: Duration,
}

/// Every build folder below the cache root. Whether one is in use, only its key's lock can tell.
pub fn leftovers(cache_root: &Utf8Path, now: SystemTime) -> Vec<Leftover> {
    let entries =
        cache_root.join(BUCKET).read_dir_utf8().map(|entries| entries.filter_map(Result::ok).collect::<Vec<_>>());
    let leftover = |entry: camino::Utf8DirEntry| {
        let modified = entry.metadata().ok()?.modified().ok()?;
        let age = now.duration_since(modified).unwrap_or_default();
        Some(Leftover { key: entry.file_name().to_owned(), path: entry.into_path(), age })
    };
    entries.unwrap_or_default().into_iter().filter_map(leftover).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_found_by_their_key() {
        let temporary = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temporary.path()).unwrap();
        let folder = BuildFolder::of(root, "x", &"a".repeat(64));
        assert_eq!(leftovers(root, SystemTime::UNIX_EPOCH), []);
        folder.create().unwrap();
        let left = leftovers(root, SystemTime::UNIX_EPOCH);
        assert_eq!((left.len(), left[0].age, &left[0].path), (1, Duration::ZERO, &folder.root));
    }
}
