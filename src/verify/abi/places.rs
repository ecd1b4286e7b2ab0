//! Where the loader would find a needed library: beside the file, in torch, in the CUDA wheels, in the system.
//!
//! Invariant: a library is found as the loader finds it, by the name that is needed; what a file reaches through others
//! counts too. Nothing outside these places is searched.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use camino::{Utf8Path, Utf8PathBuf};

use super::linkage::{self, Linkage};

/// Folders that every loader searches.
const SYSTEM: [&str; 7] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/usr/lib",
];

/// How a library was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// Through this entry of the file's own search path.
    Search(String),
    /// Among the files of the same input.
    Beside,
    /// In torch or another package of the same Python.
    Package,
    /// In the system.
    System,
}

/// Where to look.
#[derive(Debug)]
pub(super) struct Places {
    siblings: HashMap<String, Utf8PathBuf>,
    packages: Vec<Utf8PathBuf>,
    system: Vec<Utf8PathBuf>,
    known: RefCell<HashMap<Utf8PathBuf, Option<Linkage>>>,
}

/// Everything that a file reaches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Closure {
    /// Libraries that were found, by path.
    pub found: BTreeSet<Utf8PathBuf>,
    /// How each of the file's own needed libraries was found.
    pub ways: Vec<(String, Option<Way>)>,
    /// Libraries that were not found, its own and others'.
    pub missing: BTreeSet<String>,
}

impl Places {
    /// Places for the files of one input: its own libraries, the library folders of packages, further system folders.
    pub(super) fn new(siblings: &[Utf8PathBuf], packages: Vec<Utf8PathBuf>, system: &[Utf8PathBuf]) -> Self {
        let named = siblings.iter().filter_map(|path| Some((path.file_name()?.to_owned(), path.clone())));
        let system = system.iter().cloned().chain(SYSTEM.map(Utf8PathBuf::from)).collect();
        Self { siblings: named.collect(), packages, system, known: RefCell::default() }
    }

    /// Library folders of the packages in a Python's folders: torch's, and those of NVIDIA's wheels.
    pub(super) fn of_packages(torch: Option<&Utf8Path>, site_dirs: &[Utf8PathBuf]) -> Vec<Utf8PathBuf> {
        let mut folders: Vec<Utf8PathBuf> = torch.map(|torch| torch.join("lib")).into_iter().collect();
        for site in site_dirs {
            let parts = site.join("nvidia").read_dir_utf8().into_iter().flatten().flatten();
            let mut found: Vec<Utf8PathBuf> =
                parts.map(|entry| entry.path().join("lib")).filter(|p| p.is_dir()).collect();
            found.sort();
            folders.extend(found);
        }
        folders
    }

    fn libraries(&self, path: &Utf8Path) -> Option<Linkage> {
        if let Some(known) = self.known.borrow().get(path) {
            return known.clone();
        }
        let read = linkage::read_libraries(path);
        self.known.borrow_mut().insert(path.to_owned(), read.clone());
        read
    }

    /// Finds a library that `file` needs.
    fn find(&self, library: &str, file: &Utf8Path, search: &[String]) -> Option<(Utf8PathBuf, Way)> {
        let beside = self.siblings.get(library).map(|path| (path.clone(), Way::Beside));
        let within = |folders: &[Utf8PathBuf], way: &Way| {
            let path = folders.iter().map(|folder| folder.join(library)).find(|path| path.is_file())?;
            Some((path, way.clone()))
        };
        // What a search path adds matters only where nothing else has the library.
        beside.or_else(|| within(&self.packages, &Way::Package)).or_else(|| within(&self.system, &Way::System)).or_else(
            || {
                search.iter().find_map(|entry| {
                    let path = linkage::expand(entry, file).join(library);
                    path.is_file().then(|| (path, Way::Search(entry.clone())))
                })
            },
        )
    }

    /// What `file` reaches.
    pub(super) fn closure(&self, file: &Utf8Path, own: &Linkage) -> Closure {
        let mut closure = Closure::default();
        let mut queue: Vec<(String, Utf8PathBuf, Vec<String>)> = Vec::new();
        for library in &own.needed {
            let found = self.find(library, file, &own.search);
            closure.ways.push((library.clone(), found.as_ref().map(|(_, way)| way.clone())));
            queue.push((library.clone(), file.to_owned(), own.search.clone()));
        }
        while let Some((library, from, search)) = queue.pop() {
            let Some((path, _)) = self.find(&library, &from, &search) else {
                closure.missing.insert(library);
                continue;
            };
            if closure.found.insert(path.clone())
                && let Some(linkage) = self.libraries(&path)
            {
                queue.extend(linkage.needed.into_iter().map(|name| (name, path.clone(), linkage.search.clone())));
            }
        }
        closure
    }
}

/// Whether a search path leads to a fixed place that is not the system's: it exists where the file was built.
pub(super) fn is_foreign(entry: &str) -> bool {
    const SYSTEMS: [&str; 6] = ["/usr/lib", "/lib", "/usr/local/lib", "/usr/local/cuda", "/opt/cuda", "/usr/lib64"];
    let path = Utf8Path::new(entry);
    let system =
        |root: &str| path.starts_with(root) || (root.ends_with("cuda") && entry.starts_with(&format!("{root}-")));
    path.is_absolute() && !SYSTEMS.iter().any(|root| system(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fixed_paths_outside_the_system_are_foreign() {
        for (entry, foreign) in [
            ("/home/me/build/lib", true),
            ("/tmp/pip-build-env-x/overlay/lib", true),
            ("/opt/conda/lib", true),
            ("$ORIGIN/../torch/lib", false),
            ("/usr/lib/x86_64-linux-gnu", false),
            ("/usr/local/cuda-12.4/lib64", false),
            ("/usr/local/cuda/lib64", false),
            ("/library", true),
        ] {
            assert_eq!(is_foreign(entry), foreign, "{entry}");
        }
    }
}
