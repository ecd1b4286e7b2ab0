//! Locks of torch's run-time extension builds: a file named `lock` that torch waits for without end.
//!
//! torch removes it when it is done. One that a killed process left behind blocks every later import.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use crate::sys::{Env, clock, env_vars as vars, processes};

/// One lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TorchLock {
    /// The file.
    pub path: Utf8PathBuf,
    /// How long it has been there.
    pub age: Duration,
    /// The process that has it open: id and command.
    pub holder: Option<(i32, String)>,
}

/// Where torch builds extensions.
pub fn folder(env: &Env) -> Option<Utf8PathBuf> {
    if let Some(folder) = env.get(vars::TORCH_EXTENSIONS_DIR) {
        return Some(env.absolute(Utf8Path::new(folder)));
    }
    let caches = env.get(vars::XDG_CACHE_HOME).map(Utf8PathBuf::from);
    let caches = caches.or_else(|| env.get(vars::HOME).map(|home| Utf8Path::new(home).join(".cache")))?;
    Some(caches.join("torch_extensions"))
}

/// Every lock, in the order of their names.
pub fn all(env: &Env) -> Vec<TorchLock> {
    let Some(folder) = folder(env) else { return Vec::new() };
    // `py311_cu130/name/lock`, and one level less where the folder is named by the variable.
    let entries = walkdir::WalkDir::new(folder).max_depth(3).sort_by_file_name().into_iter().flatten();
    let locks = entries.filter(|entry| entry.file_name() == "lock" && entry.file_type().is_file());
    locks
        .filter_map(|entry| {
            let modified = entry.metadata().ok()?.modified().ok()?;
            let path = Utf8PathBuf::from_path_buf(entry.into_path()).ok()?;
            let age = clock::now().duration_since(modified).unwrap_or_default();
            let holder = processes::holding(&path).into_iter().find(|process| !process.ended);
            Some(TorchLock { holder: holder.map(|process| (process.pid, process.argv.join(" "))), path, age })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::*;

    #[test]
    fn a_held_lock_has_a_holder_and_a_left_one_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        for name in ["py311_cu130/a/lock", "py311_cu130/b/lock", "py311_cu130/b/other"] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), "").unwrap();
        }
        let open = fs::File::open(root.join("py311_cu130/a/lock")).unwrap();
        let found = all(&Env::of("/", [("TORCH_EXTENSIONS_DIR", root.as_str())]));
        let held: Vec<bool> = found.iter().map(|lock| lock.holder.is_some()).collect();
        assert_eq!(held, [true, false]);
        assert!(found.iter().all(|lock| lock.age < Duration::from_mins(1)));
        drop(open);
        let home = Env::of("/", [("HOME", "/h")]);
        assert_eq!(super::folder(&home), Some("/h/.cache/torch_extensions".into()));
    }
}
