//! Remembered answers of executables, so that a warm run starts none: `<cache root>/facts-v3/<kind>-<digest>.json`.
//!
//! An answer is keyed by the program's called and canonical path, size, times and inode, and by whatever else the asker says
//! the answer hangs on. A fault of this cache is no error: the program is asked again.

use std::os::unix::fs::MetadataExt as _;
use std::time::UNIX_EPOCH;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use serde::{Serialize, de::DeserializeOwned};

use crate::sys::files;

/// Folder under the cache root; the number goes up when the meaning of an answer changes.
const BUCKET: &str = "facts-v3";

/// The store of answers.
#[derive(Debug, Clone)]
pub struct Facts {
    folder: Option<Utf8PathBuf>,
}

impl Facts {
    /// A store under the cache root; without a root nothing is remembered.
    pub fn new(cache_root: Option<&Utf8Path>) -> Self {
        Self { folder: cache_root.map(|root| root.join(BUCKET)) }
    }

    /// The remembered answer of `program`, else that of `ask`, which is then remembered unless it is an error.
    pub fn remember<T: Serialize + DeserializeOwned, E>(
        &self,
        kind: &str,
        program: &Utf8Path,
        context: &[String],
        ask: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let path = self.folder.as_ref().zip(stamp(program)).map(|(folder, stamp)| {
            let key = files::sha256([&[stamp], context].concat().join("\0").as_bytes());
            folder.join(format!("{kind}-{key}.json"))
        });
        let known = path.as_ref().and_then(|path| fs::read(path).ok());
        if let Some(answer) = known.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            return Ok(answer);
        }
        let answer = ask()?;
        if let (Some(path), Ok(bytes)) = (path, serde_json::to_vec_pretty(&answer)) {
            let _ = files::write_atomic(&path, &bytes);
        }
        Ok(answer)
    }
}

/// What identifies the contents of a file without reading it: `None` where it is not there.
pub fn stamp(path: &Utf8Path) -> Option<String> {
    let canonical = path.canonicalize_utf8().ok()?;
    let metadata = fs::metadata(&canonical).ok()?;
    let mtime = metadata.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    // The time of modification can be set back; the other one cannot.
    let state = format!("{}.{}\0{}", metadata.ctime(), metadata.ctime_nsec(), metadata.ino());
    Some(format!("{path}\0{canonical}\0{}\0{}\0{state}", metadata.len(), mtime.as_nanos()))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn an_answer_is_remembered_until_the_program_changes() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let program = root.join("tool");
        fs::write(&program, "1").unwrap();
        let facts = Facts::new(Some(root));
        let ask = |answer: u32, context: &str| {
            facts.remember("t", &program, &[context.to_owned()], || Ok::<_, Infallible>(answer)).unwrap()
        };
        assert_eq!((ask(1, ""), ask(2, "")), (1, 1));
        assert_eq!(ask(3, "other"), 3);
        fs::write(&program, "22").unwrap();
        assert_eq!(ask(4, ""), 4);
    }

    #[test]
    fn a_broken_store_only_forgets() {
        let facts = Facts::new(Some(Utf8Path::new("/proc/none")));
        let answer = facts.remember("t", Utf8Path::new("/bin/sh"), &[], || Ok::<_, Infallible>(7));
        assert_eq!(answer, Ok(7));
    }
}
