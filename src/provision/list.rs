//! Lists and removes provisioned environments.
//!
//! Invariant: an environment in use is never removed; its users hold its lock.

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use super::{environment, faults};
use crate::domain::{exit::Exit, problem::Problem};
use crate::sys::lock::Lock;

/// One provisioned environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Content address.
    pub digest: String,
    /// Python version.
    pub python: String,
    /// torch version.
    pub torch: Option<String>,
    /// nvcc version.
    pub cuda: Option<String>,
    /// Size on disk; files shared with uv's cache count in full.
    pub bytes: u64,
    /// Seconds since 1970.
    pub created: u64,
    /// Seconds since 1970.
    pub last_used: u64,
    /// Pinned packages.
    pub packages: Vec<String>,
}

/// Every complete environment, the latest used first.
pub fn list(root: &Utf8Path) -> Vec<Listed> {
    let Ok(entries) = root.join(environment::BUCKET).read_dir_utf8() else { return Vec::new() };
    let mut found: Vec<Listed> = entries
        .flatten()
        .filter_map(|entry| {
            let manifest = environment::manifest(entry.path())?;
            Some(Listed {
                last_used: environment::last_used(entry.path()).unwrap_or(manifest.created),
                digest: manifest.digest,
                python: manifest.python,
                torch: manifest.torch,
                cuda: manifest.cuda,
                bytes: manifest.bytes,
                created: manifest.created,
                packages: manifest.packages,
            })
        })
        .collect();
    found.sort_by(|a, b| (b.last_used, &a.digest).cmp(&(a.last_used, &b.digest)));
    found
}

/// The toolkits of all complete environments: digest and `CUDA_HOME`.
pub fn toolkits(root: &Utf8Path) -> Vec<(String, Utf8PathBuf)> {
    let home = |listed: &Listed| root.join(environment::BUCKET).join(&listed.digest).join("cuda");
    let found = list(root).into_iter().map(|listed| (listed.digest.clone(), home(&listed)));
    found.filter(|(_, home)| home.join("bin/nvcc").exists()).collect()
}

/// The folder of all provisioned environments, where `place` is in one of them.
pub fn folder_of(place: &Utf8Path) -> Option<&Utf8Path> {
    place.ancestors().skip(1).find(|folder| folder.file_name() == Some(environment::BUCKET))
}

/// The package folders of all complete environments.
pub fn sites(root: &Utf8Path) -> Vec<Utf8PathBuf> {
    let folder = |listed: Listed| root.join(environment::BUCKET).join(listed.digest);
    list(root).into_iter().filter_map(|listed| Some(environment::manifest(&folder(listed))?.site)).collect()
}

/// Keeps the environment that a `CUDA_HOME` belongs to, if it is one of ours.
pub fn lease(root: &Utf8Path, home: &Utf8Path) -> Option<Lock> {
    let inside = home.strip_prefix(root.join(environment::BUCKET)).ok()?;
    let folder = root.join(environment::BUCKET).join(inside.components().next()?);
    Lock::shared(&environment::lock_path(&folder)).ok()
}

/// Removes the environment whose digest begins with `prefix`.
pub fn remove(root: &Utf8Path, prefix: &str) -> Result<Listed, Problem> {
    let all = list(root);
    let mut matching = all.iter().filter(|listed| !prefix.is_empty() && listed.digest.starts_with(prefix));
    let (first, second) = (matching.next(), matching.next());
    let Some(found) = first.filter(|_| second.is_none()) else {
        let count = if first.is_some() { "more than one environment" } else { "no environment" };
        let message = format!("{count} begins with `{prefix}`");
        let problem = Problem::new("cuwright::provision::no_such_environment", Exit::Usage, message);
        let shown =
            all.iter().map(|listed| format!("{} torch {}", listed.digest, listed.torch.as_deref().unwrap_or("-")));
        return Err(shown.fold(problem, Problem::why).help("see `cuwright toolchain list`"));
    };
    let folder = root.join(environment::BUCKET).join(&found.digest);
    let disk = |error| faults::disk(folder.as_str(), &error);
    let Some(_alone) = Lock::try_exclusive(&environment::lock_path(&folder)).map_err(disk)? else {
        let message = format!("environment {} is in use", found.digest);
        return Err(Problem::new("cuwright::provision::in_use", Exit::Toolchain, message)
            .why("a running build holds its lock")
            .help("wait for the build, then try again"));
    };
    environment::erase(&folder).map_err(disk)?;
    Ok(found.clone())
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::*;

    fn environment(root: &Utf8Path, digest: &str) -> Utf8PathBuf {
        let folder = root.join(environment::BUCKET).join(digest);
        let manifest = environment::Manifest {
            digest: digest.into(),
            root: folder.clone(),
            python: "3.11.7".into(),
            base: "/p".into(),
            torch: Some("2.11.0".into()),
            cuda: Some("13.0.88".into()),
            site: folder.clone(),
            packages: Vec::new(),
            bytes: 5,
            created: 1,
        };
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("cuwright-environment.json"), serde_json::to_vec(&manifest).unwrap()).unwrap();
        folder
    }

    #[test]
    fn removal_takes_one_unused_environment() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let first = environment(root, "aa11");
        environment(root, "aa22");
        fs::create_dir_all(root.join(environment::BUCKET).join("half")).unwrap();
        assert_eq!(list(root).len(), 2);
        let code = |prefix: &str| remove(root, prefix).map(|l| l.digest).map_err(|problem| problem.code());
        assert_eq!(code("aa"), Err("cuwright::provision::no_such_environment"));
        assert_eq!(code(""), Err("cuwright::provision::no_such_environment"));
        assert_eq!(code("b"), Err("cuwright::provision::no_such_environment"));
        let used = Lock::shared(&environment::lock_path(&first)).unwrap();
        assert_eq!(code("aa1"), Err("cuwright::provision::in_use"));
        drop(used);
        assert_eq!(code("aa1"), Ok("aa11".into()));
        assert_eq!(list(root).len(), 1);
        assert!(list(&root.join("none")).is_empty());
    }
}
