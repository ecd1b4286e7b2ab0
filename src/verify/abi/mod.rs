//! The binary interface of a file: what it needs of the system, of torch, of CUDA and of Python, and what is amiss.
//!
//! No external tool and no process: the ELF tables say all of it. Facts are values for every file; findings come from
//! comparing them with a wheel's tag, the named torch, and policy data with a source (`tables/`).

mod findings;
mod linkage;
mod places;
mod policy;
mod symbols;

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use self::linkage::Linkage;
use self::places::Places;
use self::symbols::{Linked, Resolved, is_python};
use super::outcome::Finding;
pub use crate::domain::symbol::demangle;
use crate::domain::symbol::{is_torch, is_torch_c};
use crate::domain::toolchain::Torch;

/// What a file is linked with and asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Abi {
    /// The machine it runs on, such as `x86_64`.
    pub machine: String,
    /// Libraries it needs.
    pub needed: Vec<String>,
    /// Newest symbol version of each family: `GLIBC`, `GLIBCXX`, `CXXABI` and the like.
    pub versions: BTreeMap<String, String>,
    /// Lowest manylinux level whose systems have all of these, such as `2.28`.
    pub manylinux: Option<String>,
    /// Major release of the CUDA runtime library that it needs.
    pub cudart: Option<u16>,
    /// Its own search path for libraries.
    pub search: Vec<String>,
    /// How it uses torch: `none`, `stable` (the C interface alone) or `c++`.
    pub torch: String,
    /// Whether strings in its torch calls have the C++11 ABI, where any tell.
    pub cxx11_abi: Option<bool>,
    /// The Python module it defines.
    pub module: Option<String>,
    /// How it uses Python: `none`, `limited` (the stable ABI alone) or `full`.
    pub python: String,
    /// First Python whose stable ABI has all that it uses, where it uses no more.
    pub limited_since: Option<String>,
    /// Symbols that nothing in reach exports, as source code writes them.
    pub undefined: Vec<String>,
    /// Symbols that could not be judged, since torch or a needed library is not here.
    pub unjudged: usize,
}

/// What files are judged against.
#[derive(Debug, Clone, Default)]
pub struct Against<'a> {
    /// The wheel's name, for its tag.
    pub wheel: Option<&'a str>,
    /// The torch that they must work with.
    pub torch: Option<&'a Torch>,
    /// Folders of the packages of a Python.
    pub site_dirs: &'a [Utf8PathBuf],
    /// Further folders that the loader searches (`LD_LIBRARY_PATH`).
    pub system: &'a [Utf8PathBuf],
}

/// Judges the files of one input; each is a name for people and a path. A file that is no ELF has neither facts nor
/// findings.
pub fn judge(files: &[(String, Utf8PathBuf)], against: &Against<'_>) -> Vec<(Option<Abi>, Vec<Finding>)> {
    let torch_folder = against.torch.map(|torch| torch.folder.as_path());
    let paths: Vec<Utf8PathBuf> = files.iter().map(|(_, path)| path.clone()).collect();
    let places = Places::new(&paths, Places::of_packages(torch_folder, against.site_dirs), against.system);
    let read = |path: &Utf8PathBuf| {
        let linkage = linkage::read(path)?;
        let closure = places.closure(path, &linkage);
        Some(Linked { path: path.clone(), linkage, closure })
    };
    let linked: Vec<Option<Linked>> = paths.iter().map(read).collect();
    let there: Vec<Linked> = linked.into_iter().flatten().collect();
    let libraries = torch_folder.map(|folder| folder.join("lib"));
    let mut resolved = symbols::resolve(&there, libraries.as_deref()).into_iter();
    let mut known: BTreeMap<&Utf8Path, (&Linked, Resolved)> = BTreeMap::new();
    for file in &there {
        known.insert(&file.path, (file, resolved.next().unwrap_or_default()));
    }
    files
        .iter()
        .map(|(label, path)| match known.get(path.as_path()) {
            Some((file, resolved)) => {
                let abi = facts(&file.linkage, resolved);
                let subject = findings::Subject { label, file, resolved, abi: &abi };
                let findings = findings::of(&subject, against);
                (Some(abi), findings)
            }
            None => (None, Vec::new()),
        })
        .collect()
}

/// Whether a file can be imported as a module, as far as its tables tell.
pub fn may_be_module(path: &Utf8Path) -> bool {
    linkage::read(path).is_none_or(|linkage| linkage.module.is_some())
}

fn facts(linkage: &Linkage, resolved: &Resolved) -> Abi {
    let machine = linkage::machine_name(linkage.machine)
        .map_or_else(|| format!("ELF machine {}", linkage.machine), str::to_owned);
    let all: Vec<&str> = linkage.versions.values().flatten().map(String::as_str).collect();
    let level = policy::satisfied(&all, &machine).ok();
    let of_torch: Vec<(&str, String)> = linkage
        .undefined
        .iter()
        .filter(|symbol| symbol.library.is_none())
        .map(|symbol| (symbol.name.as_str(), demangle(&symbol.name)))
        .filter(|(_, demangled)| is_torch(demangled))
        .collect();
    let torch = match of_torch.iter().all(|(name, _)| is_torch_c(name)) {
        _ if of_torch.is_empty() => "none",
        true => "stable",
        false => "c++",
    };
    let cxx11 = |part: &str| of_torch.iter().any(|(_, demangled)| demangled.contains(part));
    let cxx11_abi = match (cxx11("std::__cxx11::"), cxx11("std::string")) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    };
    let python: Vec<&str> =
        linkage.undefined.iter().map(|symbol| symbol.name.as_str()).filter(|name| is_python(name)).collect();
    let since: Option<Vec<(u32, u32)>> = python.iter().map(|name| policy::stable_since(name)).collect();
    let since = since.and_then(|since| since.into_iter().max());
    Abi {
        machine,
        needed: linkage.needed.clone(),
        versions: newest(&all),
        manylinux: level.map(|level| dotted(&level)),
        cudart: linkage.needed.iter().find_map(|library| cudart_major(library)),
        search: linkage.search.clone(),
        torch: torch.to_owned(),
        cxx11_abi,
        module: linkage.module.clone(),
        python: if python.is_empty() {
            "none"
        } else if since.is_some() {
            "limited"
        } else {
            "full"
        }
        .to_owned(),
        limited_since: since.map(|(major, minor)| format!("{major}.{minor}")),
        undefined: resolved.lost.iter().map(|lost| lost.name.clone()).collect(),
        unjudged: resolved.unjudged,
    }
}

fn newest(versions: &[&str]) -> BTreeMap<String, String> {
    let mut newest: BTreeMap<String, policy::Number> = BTreeMap::new();
    for (family, rest) in versions.iter().filter_map(|version| version.split_once('_')) {
        if let Some(number) = policy::number(rest) {
            let slot = newest.entry(family.to_owned()).or_default();
            *slot = number.max(std::mem::take(slot));
        }
    }
    newest.into_iter().map(|(family, number)| (family, dotted(&number))).collect()
}

fn dotted(number: &[u32]) -> String {
    number.iter().map(ToString::to_string).collect::<Vec<_>>().join(".")
}

/// 11 of `libcudart.so.11.0`.
fn cudart_major(library: &str) -> Option<u16> {
    library.strip_prefix("libcudart.so.")?.split('.').next()?.parse().ok()
}
