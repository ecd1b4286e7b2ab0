//! The folder a unit is built in, and what a killed predecessor may have left there.
//!
//! ```text
//! build-v1/<key>/
//!     src/     copy of the source tree, patches applied
//!     dist/    where setup.py puts the wheel
//! logs-v1/<name>-<key, 12 digits>.log
//! ```
//!
//! Invariant: the caller holds the key's lock. A folder found here is then a leftover of a dead cuwright; compilers
//! that outlived it are killed before the folder goes, since they would write into the new one.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use crate::sys::{files, processes};

/// Paths of one build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildFolder {
    /// The folder itself.
    pub root: Utf8PathBuf,
    /// Copy of the source tree.
    pub source: Utf8PathBuf,
    /// Where the wheel appears.
    pub dist: Utf8PathBuf,
    /// Log of the build system's output.
    pub log: Utf8PathBuf,
}

impl BuildFolder {
    /// Paths for a unit called `name` with `key` below the cache root. Nothing is created.
    pub fn of(cache_root: &Utf8Path, name: &str, key: &str) -> Self {
        let root = cache_root.join("build-v1").join(key);
        let short = key.get(..12).unwrap_or(key);
        let log = cache_root.join("logs-v1").join(format!("{name}-{short}.log"));
        Self { source: root.join("src"), dist: root.join("dist"), root, log }
    }

    /// Makes an empty folder, after removing a leftover and the processes that still work in it.
    /// Returns how many such processes were stopped.
    pub fn create(&self) -> io::Result<usize> {
        let stopped = if self.root.exists() { processes::kill_working_in(&self.root) } else { 0 };
        files::remove_tree(&self.root)?;
        fs::create_dir_all(&self.dist)?;
        if let Some(folder) = self.log.parent() {
            fs::create_dir_all(folder)?;
        }
        Ok(stopped)
    }

    /// Removes the folder; the log stays.
    pub fn remove(&self) -> io::Result<()> {
        files::remove_tree(&self.root)
    }

    /// The one wheel in `dist`.
    ///
    /// # Errors
    /// No wheel or several, in words.
    pub fn wheel(&self) -> Result<Utf8PathBuf, String> {
        let entries = self.dist.read_dir_utf8().map_err(|error| format!("{}: {error}", self.dist))?;
        let mut wheels: Vec<Utf8PathBuf> = entries
            .filter_map(Result::ok)
            .map(camino::Utf8DirEntry::into_path)
            .filter(|path| path.extension() == Some("whl"))
            .collect();
        wheels.sort();
        match wheels.len() {
            1 => Ok(wheels.remove(0)),
            0 => Err("the build left no wheel in its output folder".to_owned()),
            many => Err(format!("the build left {many} wheels in its output folder")),
        }
    }
}
