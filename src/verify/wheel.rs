//! What a wheel says of itself against what it holds: file name, `WHEEL`, `METADATA` and the files inside.
//!
//! Facts are gathered from the unpacked wheel by [`facts`]; [`judge`] is pure. How symbols and versions fit the tags is
//! asked in `abi`. Formats: packaging.python.org, "Binary distribution format" and "Platform compatibility tags".

mod tags;

use std::collections::BTreeSet;
use std::str::FromStr as _;

use camino::Utf8Path;
use pep440_rs::{Version, VersionSpecifiers};

use self::tags::{Module, Name, Suffix, Tag, module, parse_name};
use super::outcome::{Finding, Topic};
use super::site::ExtensionFile;
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::domain::requirement::{Requirement, normalise};
use crate::domain::toolchain::Torch;
use crate::sys::files;

/// The format of a binary, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Linux.
    Elf,
    /// Windows.
    Pe,
    /// macOS.
    MachO,
}

impl Format {
    fn of(path: &Utf8Path) -> Option<Self> {
        match files::head(path)? {
            [0x7f, b'E', b'L', b'F'] => Some(Self::Elf),
            [b'M', b'Z', ..] => Some(Self::Pe),
            [0xcf | 0xce, 0xfa, 0xed, 0xfe] | [0xca, 0xfe, 0xba, 0xbe] => Some(Self::MachO),
            _ => None,
        }
    }

    fn system(self) -> &'static str {
        match self {
            Self::Elf => "Linux",
            Self::Pe => "Windows",
            Self::MachO => "macOS",
        }
    }

    /// Whether wheels for `platform` hold such files.
    fn fits(self, platform: &str) -> bool {
        match self {
            Self::Elf => platform.contains("linux"),
            Self::Pe => platform.starts_with("win"),
            Self::MachO => platform.starts_with("macosx") || platform.starts_with("ios"),
        }
    }
}

/// What was read of a wheel.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The file's name.
    pub name: String,
    /// Name and version of each `.dist-info` folder.
    pub dist_info: Vec<String>,
    /// `WHEEL`, where it is there.
    pub wheel: Option<String>,
    /// `METADATA`, where it is there.
    pub metadata: Option<String>,
    /// Binaries by their path in the wheel.
    pub binaries: Vec<(String, Format)>,
}

/// What the wheel was built with or must work with, as far as that is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beside<'a> {
    /// torch's full version.
    pub torch: Option<&'a str>,
    /// Major CUDA release that torch was built for.
    pub cuda: Option<u16>,
}

impl<'a> Beside<'a> {
    /// What a wheel must agree with, of a torch.
    pub fn of(torch: Option<&'a Torch>) -> Self {
        let cuda = torch.and_then(|torch| torch.cuda).map(|cuda| cuda.major);
        Self { torch: torch.map(|torch| torch.version.as_str()), cuda }
    }
}

/// Reads the facts of a wheel, called `path`, that is unpacked in `root`.
pub fn facts(path: &str, root: &Utf8Path, extensions: &[ExtensionFile]) -> Facts {
    let entries = root.read_dir_utf8().into_iter().flatten().flatten();
    let mut dist_info: Vec<String> =
        entries.filter_map(|entry| Some(entry.file_name().strip_suffix(".dist-info")?.to_owned())).collect();
    dist_info.sort();
    let read = |file: &str| {
        let folder = root.join(format!("{}.dist-info", dist_info.first()?));
        fs_err::read(folder.join(file)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let (wheel, metadata) = (read("WHEEL"), read("METADATA"));
    let binaries = extensions.iter().filter_map(|file| Some((file.name.clone(), Format::of(&file.path)?))).collect();
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    Facts { name, dist_info, wheel, metadata, binaries }
}

/// Everything in which a wheel contradicts itself or what it was built with.
pub fn judge(facts: &Facts, beside: Beside<'_>) -> Vec<Finding> {
    let Some(name) = parse_name(&facts.name) else {
        let message = format!("{} is not named as a wheel must be", facts.name);
        let why = "a wheel's name is NAME-VERSION-PYTHON-ABI-PLATFORM.whl";
        return vec![error("cuwright::verify::wheel_name", message, why, "rename it, or build it again")];
    };
    let mut findings = Vec::new();
    findings.extend(dist_info(facts, &name));
    let mut tags = name.tags.clone();
    match facts.wheel.as_deref() {
        Some(text) => {
            let inside: BTreeSet<Tag> = fields(text, "Tag").filter_map(Tag::all).flatten().collect();
            if !inside.is_empty() && inside != name.tags {
                findings.push(tags_differ(facts, &name.tags, &inside));
            }
            tags.extend(inside);
            findings.extend(pure(facts, text));
        }
        None => findings.push(missing(facts, "WHEEL")),
    }
    findings.extend(platforms(facts, &tags));
    findings.extend(pythons(facts, &tags));
    match facts.metadata.as_deref() {
        Some(text) => {
            findings.extend(identity(facts, &name, text));
            findings.extend(requires_python(facts, &name.tags, text));
            findings.extend(requires_dist(facts, text, beside));
        }
        None => findings.push(missing(facts, "METADATA")),
    }
    findings
}

fn error(code: &'static str, message: String, why: &str, help: &str) -> Finding {
    Finding::error(Topic::Wheel, Problem::new(code, Exit::Verify, message).why(why).help(help))
}

fn missing(facts: &Facts, file: &str) -> Finding {
    let message = format!("{} has no {file}", facts.name);
    error(
        "cuwright::verify::wheel_incomplete",
        message,
        "installers need it, in the .dist-info folder",
        "build the wheel again",
    )
}

/// Values of a field of `WHEEL` or of the head of `METADATA`.
fn fields<'t>(text: &'t str, field: &'t str) -> impl Iterator<Item = &'t str> {
    // The description follows the first blank line and may hold anything.
    let head = text.lines().take_while(|line| !line.trim().is_empty());
    head.filter_map(move |line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case(field).then(|| value.trim())
    })
}

fn dist_info(facts: &Facts, name: &Name<'_>) -> Option<Finding> {
    let fits = |folder: &String| {
        let (package, version) = folder.split_once('-').unwrap_or((folder, ""));
        normalise(package) == normalise(name.package) && same_version(version, name.version)
    };
    if facts.dist_info.len() == 1 && fits(&facts.dist_info[0]) {
        return None;
    }
    let found = match facts.dist_info.as_slice() {
        [] => "no .dist-info folder".to_owned(),
        all => format!("{}.dist-info", all.join(".dist-info, ")),
    };
    let message = format!("{} does not hold one .dist-info folder of its own name and version", facts.name);
    Some(error(
        "cuwright::verify::wheel_incomplete",
        message,
        &format!("it holds {found}"),
        "build the wheel again; do not rename wheels by hand",
    ))
}

fn same_version(one: &str, other: &str) -> bool {
    let read = |text: &str| Version::from_str(&text.replace('_', "+")).ok();
    one == other || read(one).is_some_and(|version| Some(version) == read(other))
}

fn tags_differ(facts: &Facts, name: &BTreeSet<Tag>, inside: &BTreeSet<Tag>) -> Finding {
    let message = format!("{} is tagged otherwise in its WHEEL file than in its name", facts.name);
    error(
        "cuwright::verify::wheel_tags",
        message,
        &format!("the name says {}, WHEEL says {}", show(name), show(inside)),
        "build the wheel again, or retag it with `wheel tags`, which changes both",
    )
}

fn show(tags: &BTreeSet<Tag>) -> String {
    let texts: Vec<String> = tags.iter().map(|tag| format!("{}-{}-{}", tag.python, tag.abi, tag.platform)).collect();
    texts.join(", ")
}

fn pure(facts: &Facts, wheel: &str) -> Option<Finding> {
    let pure = fields(wheel, "Root-Is-Purelib").any(|value| value.eq_ignore_ascii_case("true"));
    let (file, _) = facts.binaries.first().filter(|_| pure)?;
    let message = format!("{} says that it is pure Python, and holds {file}", facts.name);
    Some(error(
        "cuwright::verify::wheel_platform",
        message,
        "`Root-Is-Purelib: true` in WHEEL sends its files where other platforms look too",
        "declare the extension modules to the build system, so that it makes a platform wheel",
    ))
}

/// Every platform of the tags must be one that the binaries are for.
fn platforms(facts: &Facts, tags: &BTreeSet<Tag>) -> Option<Finding> {
    let wrong = |(file, format): &(String, Format)| {
        let tag = tags.iter().find(|tag| !format.fits(&tag.platform))?;
        Some((file.clone(), *format, tag.platform.clone()))
    };
    let (file, format, platform) = facts.binaries.iter().find_map(wrong)?;
    let message = format!("{} is tagged for `{platform}` and holds a {} binary", facts.name, format.system());
    Some(error(
        "cuwright::verify::wheel_platform",
        message,
        &format!("{file} is for {}", format.system()),
        "build the wheel for the platform of its files, or tag it as what it is",
    ))
}

/// Every Python of the tags must find a file of every module.
fn pythons(facts: &Facts, tags: &BTreeSet<Tag>) -> Option<Finding> {
    let modules: Vec<Module<'_>> = facts.binaries.iter().filter_map(|(file, _)| module(file)).collect();
    for tag in tags {
        let Some(release) = tag.release() else { continue };
        let threaded = tag.abi.ends_with('t') && tag.abi.starts_with("cp");
        // `cp38-abi3` promises every later Python, so a file for one release alone breaks it.
        let served = |suffix: &Suffix| match suffix {
            Suffix::Every => true,
            Suffix::One(one, t) => tag.abi != "abi3" && *one == release && *t == threaded,
        };
        let lost = modules
            .iter()
            .find(|module| !modules.iter().any(|other| other.stem == module.stem && served(&other.suffix)));
        if let Some(module) = lost {
            let message = format!(
                "{} is tagged {}-{} and {} is for another Python",
                facts.name, tag.python, tag.abi, module.file
            );
            return Some(error(
                "cuwright::verify::wheel_python",
                message,
                "Python imports a module file by the tag in its name",
                "build the wheel with the Python that it is tagged for",
            ));
        }
    }
    None
}

fn identity(facts: &Facts, name: &Name<'_>, metadata: &str) -> Option<Finding> {
    let (package, version) = (fields(metadata, "Name").next()?, fields(metadata, "Version").next()?);
    if normalise(package) == normalise(name.package) && same_version(version, name.version) {
        return None;
    }
    let message = format!("{} is {package} {version} by its METADATA", facts.name);
    Some(error(
        "cuwright::verify::wheel_name",
        message,
        "pip refuses a wheel whose name and METADATA differ",
        "build the wheel again; do not rename wheels by hand",
    ))
}

fn requires_python(facts: &Facts, tags: &BTreeSet<Tag>, metadata: &str) -> Option<Finding> {
    let text = fields(metadata, "Requires-Python").next()?;
    let range = VersionSpecifiers::from_str(text).ok()?;
    // `>3.11.2` leaves out some patch releases only: one that fits is enough.
    let fits = |(major, minor): (u32, u32)| {
        [0, 99].iter().any(|patch| range.contains(&Version::new([major, minor, *patch].map(u64::from))))
    };
    let tag = tags.iter().find(|tag| tag.abi != "abi3" && tag.release().is_some_and(|release| !fits(release)))?;
    let message = format!("{} is tagged {} and requires Python {text}", facts.name, tag.python);
    Some(error(
        "cuwright::verify::wheel_requires",
        message,
        "`Requires-Python` in METADATA keeps pip from installing it on the Python that it is for",
        "correct `requires-python` of the project, or build with a Python within it",
    ))
}

fn requires_dist(facts: &Facts, metadata: &str, beside: Beside<'_>) -> Vec<Finding> {
    let wrong = |text: &str, with: String| {
        let message = format!("{} requires `{text}` and was built with {with}", facts.name);
        error(
            "cuwright::verify::wheel_requires",
            message,
            "`Requires-Dist` in METADATA makes pip replace what it was built with",
            "correct the requirements of the project, or build with what they name",
        )
    };
    let all = fields(metadata, "Requires-Dist").filter_map(|text| Some((text, text.parse::<Requirement>().ok()?)));
    let mut findings = Vec::new();
    // A marker may leave it out here, and only an installer can tell.
    for (text, requirement) in all.filter(|(_, requirement)| !requirement.conditional) {
        if let ("torch", Some(torch)) = (requirement.name.as_str(), beside.torch) {
            let release = torch.split('+').next().unwrap_or(torch);
            if !requirement.accepts(torch) && !requirement.accepts(release) {
                findings.push(wrong(text, format!("torch {torch}")));
            }
        }
        let major = requirement.name.strip_prefix("nvidia-").and_then(|rest| rest.rsplit_once("-cu"));
        if let (Some((_, major)), Some(cuda)) = (major, beside.cuda)
            && major.parse::<u16>().is_ok_and(|major| major != cuda)
        {
            findings.push(wrong(text, format!("CUDA {cuda}")));
        }
    }
    findings
}

#[cfg(test)]
mod tests;
