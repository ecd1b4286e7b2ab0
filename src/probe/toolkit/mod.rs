//! Finds CUDA toolkits and asks their nvcc what it is.
//!
//! What looks like a toolkit and is none is returned with the reason: a runtime without nvcc, a list of folders, a
//! `bin` folder. Which of them fits is not decided here.

mod ask;
mod places;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use super::facts::{self, Facts};
use crate::domain::toolchain::{HostBounds, Toolkit};
use crate::sys::Env;

pub use ask::parse_version;
pub use places::candidates;
use places::installed;

/// A place where a toolkit may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Root that would be exported as `CUDA_HOME`.
    pub home: Utf8PathBuf,
    /// How it was found.
    pub origin: String,
    /// Whether the user named it by a variable.
    pub named: bool,
}

/// A toolkit, and whether it can be exported as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The toolkit.
    pub toolkit: Toolkit,
    /// Whether the user named it by a variable.
    pub named: bool,
    /// Where its parts are, if not where torch and `CMake` look for them: it needs a shape first.
    pub parts: Option<Parts>,
}

/// Where the parts of a toolkit are that is no `CUDA_HOME` yet, as in wheels and conda environments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// Its root.
    pub home: Utf8PathBuf,
    /// Folder with `cuda_runtime.h`.
    pub include: Utf8PathBuf,
    /// Folders with the CUDA runtime's libraries.
    pub libraries: Vec<Utf8PathBuf>,
}

/// A candidate that is no usable toolkit, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The place.
    pub candidate: Candidate,
    /// Why it is out, as half a sentence.
    pub reason: String,
}

/// Looks into one candidate.
pub fn describe(candidate: &Candidate, env: &Env, facts: &Facts) -> Result<Found, Rejected> {
    let home = &candidate.home;
    let refuse = |reason: String| Rejected { candidate: candidate.clone(), reason };
    no_home(home).map_or(Ok(()), |reason| Err(refuse(reason)))?;
    let nvcc = home.join("bin/nvcc");
    let include = headers(home).ok_or_else(|| refuse("holds nvcc but no cuda_runtime.h".to_owned()))?;
    let host_config = fs::read_to_string(include.join("crt/host_config.h")).unwrap_or_default();
    let libraries = runtime_folders(home);
    let runtime = runtime(home);
    if runtime.is_empty() {
        return Err(refuse("holds nvcc but no CUDA runtime (libcudart)".to_owned()));
    }
    let answer = facts.remember("nvcc", &nvcc, &[], || ask::ask(&nvcc, env)).map_err(refuse)?;
    let toolkit = Toolkit {
        home: home.clone(),
        nvcc: answer.version,
        gpu_codes: answer.gpu_codes,
        gpu_archs: answer.gpu_archs,
        host_bounds: host_bounds(&host_config),
        origin: candidate.origin.clone(),
    };
    let complete = runtime.iter().any(|name| name == "libcudart.so") && include == home.join("include");
    let parts = (!complete).then(|| Parts { home: home.clone(), include, libraries });
    Ok(Found { toolkit, named: candidate.named, parts })
}

/// Why a path is no root of a toolkit, as half a sentence.
fn no_home(home: &Utf8Path) -> Option<String> {
    if !home.exists() {
        let list = home.as_str().contains(':');
        let why = if list { "is a list of folders; it must name one" } else { "does not exist" };
        return Some(why.to_owned());
    }
    if !home.is_dir() {
        return Some("is a file; it must name the folder that holds bin/nvcc".to_owned());
    }
    if home.join("bin/nvcc").exists() {
        return None;
    }
    if home.ends_with("bin") && home.join("nvcc").exists() {
        let parent = home.parent().unwrap_or(home);
        return Some(format!("is the bin folder of a toolkit; it must name {parent}"));
    }
    Some(places::without_nvcc(home))
}

/// `#if __GNUC__ > 15` and `(__clang_major__ >= 21)`, or `> 20`, whichever the header has.
fn host_bounds(header: &str) -> HostBounds {
    let after = |pattern: &str| {
        let (_, rest) = header.split_once(pattern)?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..digits].parse::<u32>().ok()
    };
    let above = || after("__clang_major__ > ").map(|newest| newest + 1);
    HostBounds { gcc_max: after("#if __GNUC__ > "), clang_below: after("__clang_major__ >= ").or_else(above) }
}

/// The folder with `cuda_runtime.h`: conda keeps it under `targets/`.
fn headers(home: &Utf8Path) -> Option<Utf8PathBuf> {
    let targets = installed(&home.join("targets"), "");
    let folders = std::iter::once(home.join("include")).chain(targets.into_iter().map(|target| target.join("include")));
    folders.into_iter().find(|folder| folder.join("cuda_runtime.h").exists())
}

/// Where the CUDA runtime may be: beside nvcc, under `targets/`, or where Debian keeps libraries.
fn runtime_folders(home: &Utf8Path) -> Vec<Utf8PathBuf> {
    let targets = installed(&home.join("targets"), "").into_iter().map(|target| target.join("lib"));
    let machine = home.join("lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
    let folders = [home.join("lib64"), home.join("lib")].into_iter().chain(targets).chain([machine]);
    folders.filter(|folder| folder.is_dir()).collect()
}

/// The names of the CUDA runtime's library files.
fn runtime(home: &Utf8Path) -> Vec<String> {
    let entries = runtime_folders(home).into_iter().filter_map(|folder| folder.read_dir_utf8().ok()).flatten();
    let names = entries.flatten().map(|entry| entry.file_name().to_owned());
    names.filter(|name| name.starts_with("libcudart.so")).collect()
}

/// Identity of a toolkit's nvcc for keys of what is made from it.
pub fn stamp(home: &Utf8Path) -> Option<String> {
    facts::stamp(&home.join("bin/nvcc"))
}

#[cfg(test)]
mod tests;
