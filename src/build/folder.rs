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
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

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
    /// Where the wheel appears.
    pub dist: Utf8PathBuf,
    /// Log of the build system's output.
    pub log: Utf8PathBuf,
}

impl BuildFolder {
    /// Paths for a unit called `name` with `key` below the cache root. Nothing is created.
    pub fn of(cache_root: &Utf8Path, name: &str, key: &str) -> Self {
        let root = cache_root.join(BUCKET).join(key);
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
    /// No wheel or several: what is wrong, and what was found.
    pub fn wheel(&self) -> Result<Utf8PathBuf, (String, String)> {
        let entries = self.dist.read_dir_utf8().map(|entries| entries.filter_map(Result::ok).collect::<Vec<_>>());
        let mut wheels: Vec<Utf8PathBuf> = entries
            .unwrap_or_default()
            .into_iter()
            .map(camino::Utf8DirEntry::into_path)
            .filter(|path| path.extension() == Some("whl") && path.is_file())
            .collect();
        wheels.sort();
        if let [wheel] = wheels.as_slice() {
            return Ok(wheel.clone());
        }
        if wheels.is_empty() {
            let why = format!("there is no `*.whl` in {}, where it was told to put one", self.dist);
            return Err(("setup.py ended well but left no wheel".to_owned(), why));
        }
        let names: Vec<&str> = wheels.iter().filter_map(|wheel| wheel.file_name()).collect();
        let message = format!("setup.py left {} wheels where one is expected", names.len());
        Err((message, names.join(", ")))
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
    fn one_wheel_is_the_wheel_and_anything_else_is_told() {
        let temporary = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temporary.path()).unwrap();
        let folder = BuildFolder::of(root, "x", &"a".repeat(64));
        let message = || folder.wheel().map(|wheel| wheel.file_name().unwrap().to_owned()).map_err(|(what, _)| what);
        assert_eq!(message(), Err("setup.py ended well but left no wheel".to_owned()));
        folder.create().unwrap();
        fs::create_dir(folder.dist.join("folder.whl")).unwrap();
        fs::write(folder.dist.join("a.whl"), "").unwrap();
        assert_eq!(message(), Ok("a.whl".to_owned()));
        fs::write(folder.dist.join("b.whl"), "").unwrap();
        assert_eq!(message(), Err("setup.py left 2 wheels where one is expected".to_owned()));
        let left = leftovers(root, SystemTime::UNIX_EPOCH);
        assert_eq!((left.len(), left[0].age, &left[0].path), (1, Duration::ZERO, &folder.root));
    }
}
