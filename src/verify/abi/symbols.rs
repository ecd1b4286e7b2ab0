//! Undefined symbols against what the libraries in reach export, and the nearest form of each that nobody exports.
//!
//! Invariant: each library is read once for all files of an input, and only names that matter are kept in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use camino::{Utf8Path, Utf8PathBuf};

use super::linkage::{self, Linkage};
use super::places::Closure;
use crate::domain::symbol::{demangle, is_torch, needle, stem};

/// One file and what it reaches.
#[derive(Debug)]
pub(super) struct Linked {
    /// Where it lies.
    pub path: Utf8PathBuf,
    /// How it is linked.
    pub linkage: Linkage,
    /// What it reaches.
    pub closure: Closure,
}

/// A symbol that nothing in reach exports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lost {
    /// As source code writes it.
    pub name: String,
    /// As the linker writes it.
    pub mangled: String,
    /// Whether it belongs to torch.
    pub of_torch: bool,
    /// Libraries of torch that export exactly this, although the file does not reach them.
    pub elsewhere: Vec<String>,
    /// Other forms of the same function, with the library that exports each.
    pub near: Vec<(String, String)>,
}

/// What was found for one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Resolved {
    /// Symbols that fail.
    pub lost: Vec<Lost>,
    /// Symbols that could come from a library that is not here.
    pub unjudged: usize,
}

/// Near forms that are worth showing.
const NEAR: usize = 3;
/// Lost symbols that are looked into; a file for another torch has hundreds.
const LOOKED_INTO: usize = 64;

/// The symbols that the loader must find somewhere: those without a library of their own, but for Python's.
fn sought(linkage: &Linkage) -> impl Iterator<Item = &str> {
    let names = linkage.undefined.iter().filter(|symbol| symbol.library.is_none()).map(|symbol| symbol.name.as_str());
    names.filter(|name| !is_python(name) && !matches!(*name, "_DYNAMIC" | "_GLOBAL_OFFSET_TABLE_"))
}

/// Whether the interpreter exports a symbol.
pub(super) fn is_python(name: &str) -> bool {
    name.starts_with("Py") || name.starts_with("_Py")
}

/// Resolves the symbols of all files of an input. `torch` is the folder of torch's libraries.
pub(super) fn resolve(files: &[Linked], torch: Option<&Utf8Path>) -> Vec<Resolved> {
    let wanted: BTreeSet<&str> = files.iter().flat_map(|file| sought(&file.linkage)).collect();
    let torch_libraries = torch.map(libraries_in).unwrap_or_default();
    let mut libraries: BTreeSet<&Utf8PathBuf> = files.iter().flat_map(|file| &file.closure.found).collect();
    libraries.extend(files.iter().map(|file| &file.path));
    libraries.extend(&torch_libraries);
    let exporters = exporters(&wanted, &libraries);
    let mut resolved: Vec<Resolved> = Vec::new();
    for file in files {
        let scope = scope(file, files);
        let mut one = Resolved::default();
        for name in sought(&file.linkage) {
            let from = exporters.get(name).map(Vec::as_slice).unwrap_or_default();
            if from.iter().any(|path| scope.contains(*path)) {
                continue;
            }
            let demangled = demangle(name);
            let of_torch = is_torch(&demangled);
            let unknown = if of_torch { torch.is_none() } else { !file.closure.missing.is_empty() };
            if unknown {
                one.unjudged += 1;
                continue;
            }
            let elsewhere = from.iter().filter(|path| torch_libraries.contains(**path)).map(|path| file_name(path));
            let elsewhere = elsewhere.collect();
            one.lost.push(Lost { name: demangled, mangled: name.to_owned(), of_torch, elsewhere, near: Vec::new() });
        }
        resolved.push(one);
    }
    near_forms(&mut resolved, &libraries);
    resolved
}

fn file_name(path: &Utf8Path) -> String {
    path.file_name().unwrap_or(path.as_str()).to_owned()
}

fn libraries_in(folder: &Utf8Path) -> BTreeSet<Utf8PathBuf> {
    let entries = folder.read_dir_utf8().into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path().to_owned())
        .filter(|path| path.as_str().contains(".so") && path.is_file())
        .collect()
}

/// What the loader searches for a file's symbols: what it reaches, and what those reach that load it.
fn scope<'a>(file: &'a Linked, all: &'a [Linked]) -> BTreeSet<&'a Utf8PathBuf> {
    let mut scope: BTreeSet<&Utf8PathBuf> = file.closure.found.iter().chain([&file.path]).collect();
    for other in all.iter().filter(|other| other.closure.found.contains(&file.path)) {
        scope.extend(other.closure.found.iter().chain([&other.path]));
    }
    scope
}

/// Which libraries export each wanted name.
fn exporters<'a>(
    wanted: &BTreeSet<&'a str>,
    libraries: &BTreeSet<&'a Utf8PathBuf>,
) -> HashMap<&'a str, Vec<&'a Utf8PathBuf>> {
    let by_bytes: HashMap<&[u8], &'a str> = wanted.iter().map(|name| (name.as_bytes(), *name)).collect();
    let mut exporters: HashMap<&str, Vec<&Utf8PathBuf>> = HashMap::new();
    for library in libraries {
        let _ = linkage::exports(library, |name| {
            if let Some(name) = by_bytes.get(name) {
                exporters.entry(name).or_default().push(library);
            }
        });
    }
    exporters
}

/// Fills in other forms of the functions that nobody exports.
fn near_forms(resolved: &mut [Resolved], libraries: &BTreeSet<&Utf8PathBuf>) {
    let mut by_needle: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let alone = |lost: &&mut Lost| lost.elsewhere.is_empty();
    for lost in resolved.iter_mut().flat_map(|one| one.lost.iter_mut().filter(alone).take(LOOKED_INTO)) {
        let stem = stem(&lost.name);
        if let Some(needle) = needle(stem) {
            by_needle.entry(needle).or_default().insert(stem.to_owned());
        }
    }
    if by_needle.is_empty() {
        return;
    }
    let mut forms: HashMap<String, Vec<(String, String)>> = HashMap::new();
    for library in libraries {
        let _ = linkage::exports(library, |name| {
            let Ok(name) = std::str::from_utf8(name) else { return };
            for (needle, stems) in &by_needle {
                if !name.starts_with("_Z") || !name.contains(needle.as_str()) {
                    continue;
                }
                let demangled = demangle(name);
                if let Some(stem) = stems.get(stem(&demangled)) {
                    let known = forms.entry(stem.clone()).or_default();
                    let form = (demangled, file_name(library));
                    if known.len() < NEAR && !known.contains(&form) {
                        known.push(form);
                    }
                }
            }
        });
    }
    for lost in resolved.iter_mut().flat_map(|one| &mut one.lost) {
        lost.near = forms.get(stem(&lost.name)).cloned().unwrap_or_default();
        lost.near.retain(|(form, _)| *form != lost.name);
    }
}
