//! Reads the tags of wheels and of module files: which Python, which ABI, which platform.

use std::collections::BTreeSet;

/// The parts of a wheel's file name.
pub(super) struct Name<'a> {
    pub(super) package: &'a str,
    pub(super) version: &'a str,
    pub(super) tags: BTreeSet<Tag>,
}

/// One combination of Python, ABI and platform.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tag {
    pub(super) python: String,
    pub(super) abi: String,
    pub(super) platform: String,
}

impl Tag {
    /// Reads `cp311-cp311-linux_x86_64`; parts with dots stand for every combination.
    pub(super) fn all(text: &str) -> Option<BTreeSet<Self>> {
        let [python, abi, platform] = *text.split('-').collect::<Vec<_>>().as_slice() else { return None };
        let mut tags = BTreeSet::new();
        for python in python.split('.') {
            for abi in abi.split('.') {
                for platform in platform.split('.') {
                    let owned = |part: &str| part.to_ascii_lowercase();
                    tags.insert(Self { python: owned(python), abi: owned(abi), platform: owned(platform) });
                }
            }
        }
        Some(tags)
    }

    /// `(3, 11)` of `cp311`; `None` of `py3` and of other implementations.
    pub(super) fn release(&self) -> Option<(u32, u32)> {
        let digits = self.python.strip_prefix("cp")?;
        Some((digits.get(..1)?.parse().ok()?, digits.get(1..)?.parse().ok()?))
    }
}

pub(super) fn parse_name(file: &str) -> Option<Name<'_>> {
    let stem = file.rsplit('/').next()?.strip_suffix(".whl")?;
    let parts: Vec<&str> = stem.split('-').collect();
    let (package, version, tags) = match *parts.as_slice() {
        [package, version, ..] if matches!(parts.len(), 5 | 6) => {
            (package, version, parts[parts.len() - 3..].join("-"))
        }
        _ => return None,
    };
    Some(Name { package, version, tags: Tag::all(&tags)? })
}

/// A module and the Pythons that import a file of it.
pub(super) struct Module<'f> {
    pub(super) file: &'f str,
    pub(super) stem: &'f str,
    pub(super) suffix: Suffix,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Suffix {
    /// `cpython-311-…`, `cp311-win_amd64`: one release, and whether it is the free-threaded build.
    One((u32, u32), bool),
    /// `abi3`, or no tag at all: every release.
    Every,
}

pub(super) fn module(file: &str) -> Option<Module<'_>> {
    let extension = ["so", "pyd"].into_iter().find_map(|suffix| file.strip_suffix(suffix)?.strip_suffix('.'))?;
    let folder = file.rfind('/').map_or(0, |slash| slash + 1);
    let (stem, tag) = match extension[folder..].split_once('.') {
        Some((name, tag)) => (&file[..folder + name.len()], tag),
        None => (extension, ""),
    };
    let digits = tag.strip_prefix("cpython-").or_else(|| tag.strip_prefix("cp"));
    let suffix = match digits.and_then(|rest| rest.split('-').next()) {
        Some(digits) => {
            let threaded = digits.ends_with('t');
            let digits = digits.trim_end_matches(|c: char| c.is_ascii_lowercase());
            Suffix::One((digits.get(..1)?.parse().ok()?, digits.get(1..)?.parse().ok()?), threaded)
        }
        None => Suffix::Every,
    };
    Some(Module { file, stem, suffix })
}
