//! What is amiss with a file's binary interface, compared with the wheel's tag, the named torch and the policy.
//!
//! A finding is an error where loading must fail or a tag promises what does not hold; what works on some machines
//! is a warning.

use super::places::{Way, is_foreign};
use super::policy::{self, Bringer};
use super::symbols::{Linked, Lost, Resolved, is_python};
use super::{Abi, Against, dotted};
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::verify::outcome::{Finding, Topic};

/// Symbols that a message shows.
const SHOWN: usize = 5;

/// One file, with what is known of it.
pub(super) struct Subject<'a> {
    pub(super) label: &'a str,
    pub(super) file: &'a Linked,
    pub(super) resolved: &'a Resolved,
    pub(super) abi: &'a Abi,
}

/// The tags of a wheel's name.
struct Tag<'a> {
    python: &'a str,
    abi: &'a str,
    platforms: Vec<&'a str>,
}

/// Every finding about a file.
pub(super) fn of(subject: &Subject<'_>, against: &Against<'_>) -> Vec<Finding> {
    let tag = against.wheel.and_then(tag);
    let mut findings = Vec::new();
    findings.extend(undefined(subject, against));
    findings.extend(cudart(subject, against));
    findings.extend(cxx_abi(subject, against));
    findings.extend(libraries(subject, against));
    findings.extend(search(subject));
    findings.extend(second_libstdcxx(subject));
    if let Some(tag) = &tag {
        findings.extend(machine(subject, tag));
        findings.extend(manylinux(subject, tag));
    }
    findings.extend(limited(subject, tag.as_ref()));
    findings
}

/// Reads `name-version-python-abi-platform.whl`.
fn tag(wheel: &str) -> Option<Tag<'_>> {
    let stem = wheel.rsplit('/').next()?.strip_suffix(".whl")?;
    let mut parts = stem.rsplitn(4, '-');
    let (platforms, abi, python) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Tag { python, abi, platforms: platforms.split('.').collect() })
}

fn error(code: &'static str, message: String) -> Problem {
    Problem::new(code, Exit::Verify, message)
}

fn undefined(subject: &Subject<'_>, against: &Against<'_>) -> Vec<Finding> {
    let (unlinked, lost): (Vec<&Lost>, Vec<&Lost>) =
        subject.resolved.lost.iter().partition(|lost| !lost.elsewhere.is_empty());
    let torch = against.torch.map(|torch| format!("torch {}", torch.version)).unwrap_or_default();
    let mut findings = Vec::new();
    if !lost.is_empty() {
        let of_torch = lost.iter().any(|lost| lost.of_torch);
        let message = match lost.as_slice() {
            [one] => format!("{} uses `{}`, which nothing in reach exports", subject.label, one.name),
            many => format!("{} uses {} symbols that nothing in reach exports", subject.label, many.len()),
        };
        let mut problem = error("cuwright::verify::undefined_symbol", message);
        for lost in lost.iter().take(SHOWN) {
            let what = if lost.mangled == lost.name {
                format!("`{}`", lost.name)
            } else {
                format!("`{}` ({})", lost.name, lost.mangled)
            };
            problem = match lost.near.as_slice() {
                [] if lost.of_torch => problem.why(format!("{what}: {torch} exports no form of it")),
                [] => problem.why(format!("{what}: not in {}", list(&subject.abi.needed))),
                near => {
                    let forms: Vec<String> =
                        near.iter().map(|(form, library)| format!("`{form}` in {library}")).collect();
                    problem.why(format!("{what}: exported instead is {}", forms.join(", ")))
                }
            };
        }
        if lost.len() > SHOWN {
            problem = problem.why(format!("and {} more", lost.len() - SHOWN));
        }
        problem = if of_torch {
            problem
                .why(format!("the file was compiled against another torch than {torch}"))
                .help(format!("build it again with {torch}, without a cached wheel; or install a wheel made for it"))
        } else {
            problem.help("link the library that defines it, or compile the source that was left out")
        };
        findings.push(Finding::error(Topic::Abi, problem));
    }
    if !unlinked.is_empty() {
        let mut libraries: Vec<String> = unlinked.iter().flat_map(|lost| lost.elsewhere.clone()).collect();
        libraries.sort();
        libraries.dedup();
        let message = format!("{} uses {} without linking it", subject.label, list(&libraries));
        let problem = error("cuwright::verify::unlinked_library", message)
            .why(format!("`{}` is exported there, and the file does not reach it", unlinked[0].name))
            .help(
                "add it to the `libraries` of the extension: it loads only where another module has loaded it globally",
            );
        findings.push(Finding::warning(Topic::Abi, problem));
    }
    findings
}

fn cudart(subject: &Subject<'_>, against: &Against<'_>) -> Option<Finding> {
    let torch = against.torch?;
    let (needs, has) = (subject.abi.cudart?, torch.cuda);
    let library = subject.abi.needed.iter().find(|library| library.starts_with("libcudart.so."))?;
    if has.is_some_and(|cuda| cuda.major == needs) {
        return None;
    }
    let built = has.map_or_else(|| "CPU only".to_owned(), |cuda| format!("for CUDA {cuda}"));
    let release = has.map(|cuda| format!("CUDA {}", cuda.major)).unwrap_or_default();
    let message = format!("{} needs {library}, and torch {} is {built}", subject.label, torch.version);
    let problem = error("cuwright::verify::cudart_major", message)
        .why("a program has one CUDA runtime of one major release, and torch brings its own");
    let problem = if has.is_some() {
        problem.help(format!("build it again with a toolkit of {release}, or install a wheel made for it"))
    } else {
        problem.help("install a torch with CUDA")
    };
    Some(Finding::error(Topic::Abi, problem))
}

fn cxx_abi(subject: &Subject<'_>, against: &Against<'_>) -> Option<Finding> {
    let torch = against.torch?;
    let used = subject.abi.cxx11_abi.filter(|used| *used != torch.cxx11_abi)?;
    let name = |new: bool| if new { "C++11" } else { "the old C++" };
    let message = format!(
        "{} was compiled for {} ABI, and torch {} uses {}",
        subject.label,
        name(used),
        torch.version,
        name(torch.cxx11_abi)
    );
    let value = u8::from(torch.cxx11_abi);
    let problem = error("cuwright::verify::cxx_abi", message)
        .why("functions with strings have other names in the other ABI")
        .help(format!("build with `-D_GLIBCXX_USE_CXX11_ABI={value}`, which torch's own build flags set"));
    Some(Finding::error(Topic::Abi, problem))
}

fn libraries(subject: &Subject<'_>, against: &Against<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (library, way) in &subject.file.closure.ways {
        let bringer = policy::bringer(library);
        if bringer == Some(Bringer::Python) {
            let message = format!("{} links {library}", subject.label);
            let problem = error("cuwright::verify::links_python", message)
                .why("a Python that was built without a shared library cannot load it")
                .help("do not link libpython: an extension finds Python's symbols in the interpreter");
            findings.push(Finding::warning(Topic::Abi, problem));
            continue;
        }
        if way.is_some() {
            continue;
        }
        let message = format!("{} needs {library}, which is not here", subject.label);
        let problem = error("cuwright::verify::missing_library", message);
        match (bringer, against.torch) {
            (Some(Bringer::Torch), Some(torch)) => findings.push(Finding::error(
                Topic::Abi,
                problem
                    .why(format!("torch {} at {} has no such library", torch.version, torch.folder))
                    .help("install a torch with CUDA, or build again with this torch"),
            )),
            (Some(Bringer::Cuda), Some(torch)) if !library.starts_with("libcudart.so.") => {
                findings.push(Finding::warning(
                    Topic::Abi,
                    problem
                        .why(format!("neither the packages beside torch {} nor the system have it", torch.version))
                        .help("install the package of NVIDIA that brings it, or make it part of the wheel"),
                ));
            }
            (None, _) => findings.push(Finding::warning(
                Topic::Abi,
                problem
                    .why("it is in no system that a manylinux tag promises, nor in torch, CUDA or the driver")
                    .help("make it part of the wheel (`auditwheel repair`), or link it statically"),
            )),
            _ => {}
        }
    }
    findings
}

/// Two C++ libraries in one process do not share their locales: streams of the second crash where the first was
/// initialised. Seen with a compiler wrapper that adds `-static-libstdc++`.
fn second_libstdcxx(subject: &Subject<'_>) -> Option<Finding> {
    let linkage = &subject.file.linkage;
    // libstdc++ itself exports this too.
    let itself = linkage.soname.as_deref().is_some_and(|name| name.starts_with("libstdc++.so"));
    if !linkage.own_libstdcxx || itself {
        return None;
    }
    let message = format!("{} brings a libstdc++ of its own, beside the one that torch uses", subject.label);
    let problem = error("cuwright::verify::static_libstdcxx", message)
        .why("it exports `std::locale::classic()`, which only libstdc++ defines")
        .why("code that uses streams, such as `std::ostringstream`, can crash although the file imports")
        .help("build with a compiler that links libstdc++ dynamically: look for `-static-libstdc++` in CXX or LDFLAGS");
    Some(Finding::warning(Topic::Abi, problem))
}

fn search(subject: &Subject<'_>) -> Option<Finding> {
    let foreign: Vec<String> = subject.abi.search.iter().filter(|entry| is_foreign(entry)).cloned().collect();
    if foreign.is_empty() {
        return None;
    }
    let only_there: Vec<String> = (subject.file.closure.ways.iter())
        .filter(|(_, way)| matches!(way, Some(Way::Search(entry)) if is_foreign(entry)))
        .map(|(library, _)| library.clone())
        .collect();
    let message = format!("{} searches {} for libraries", subject.label, list(&foreign));
    let problem = error("cuwright::verify::build_path", message).why("that folder exists where the file was built");
    Some(if only_there.is_empty() {
        let problem = problem.help("leave `runtime_library_dirs` and `-Wl,-rpath` out, or use `$ORIGIN`");
        Finding::warning(Topic::Abi, problem)
    } else {
        let problem = problem
            .why(format!("{} is found there and nowhere else", list(&only_there)))
            .help("make the library part of the wheel and use `$ORIGIN`, or link it statically");
        Finding::error(Topic::Abi, problem)
    })
}

fn machine(subject: &Subject<'_>, tag: &Tag<'_>) -> Option<Finding> {
    let linux: Vec<&&str> = tag.platforms.iter().filter(|platform| platform.contains("linux")).collect();
    let fits = |platform: &&&str| platform.ends_with(&format!("_{}", subject.abi.machine));
    if linux.is_empty() || linux.iter().any(fits) {
        return None;
    }
    let message = format!(
        "{} is for {}, and the wheel is tagged {}",
        subject.label,
        subject.abi.machine,
        tag.platforms.join(".")
    );
    let problem =
        error("cuwright::verify::wrong_machine", message).help("build on, or cross-compile for, the tagged machine");
    Some(Finding::error(Topic::Abi, problem))
}

fn manylinux(subject: &Subject<'_>, tag: &Tag<'_>) -> Option<Finding> {
    let promised = tag.platforms.iter().filter_map(|platform| policy::promised(platform)).min()?;
    let real = subject.abi.manylinux.as_deref().and_then(policy::number);
    if real.as_ref().is_some_and(|real| *real <= promised) {
        return None;
    }
    let satisfies =
        real.map_or_else(|| "no level of the table".to_owned(), |real| format!("manylinux_{}_{}", real[0], real[1]));
    let message = format!("{} is tagged {} and satisfies {satisfies} only", subject.label, tag.platforms.join("."));
    let mut problem = error("cuwright::verify::manylinux", message);
    let offends = |version: &&str| match policy::satisfied(&[version], &subject.abi.machine) {
        Ok(level) => level > promised,
        Err(_) => true,
    };
    let versions = subject.file.linkage.versions.values().flatten().map(String::as_str);
    for version in versions.filter(offends).take(SHOWN) {
        let symbols = subject.file.linkage.undefined.iter().filter(|symbol| symbol.version.as_deref() == Some(version));
        let names: Vec<&str> = symbols.map(|symbol| symbol.name.as_str()).take(3).collect();
        problem = problem.why(format!(
            "{version} is newer than glibc {} systems have; needed by {}",
            dotted(&promised),
            names.join(", ")
        ));
    }
    let problem =
        problem.help("build in a container of the tagged level, or tag the wheel as what it is (`auditwheel show`)");
    Some(Finding::error(Topic::Abi, problem))
}

fn limited(subject: &Subject<'_>, tag: Option<&Tag<'_>>) -> Option<Finding> {
    let file_says = subject.label.ends_with(".abi3.so");
    let tag = tag.filter(|tag| tag.abi == "abi3");
    if subject.abi.python == "none" || !(file_says || tag.is_some()) {
        return None;
    }
    let floor = tag.and_then(|tag| {
        let digits = tag.python.split('.').next()?.strip_prefix("cp3")?;
        Some((3, digits.parse::<u32>().ok()?))
    });
    let names = subject.file.linkage.undefined.iter().map(|symbol| symbol.name.as_str()).filter(|name| is_python(name));
    let beyond: Vec<String> = names
        .filter_map(|name| match (policy::stable_since(name), floor) {
            (None, _) => Some(format!("`{name}` is not part of the stable ABI")),
            (Some(since), Some(floor)) if since > floor => {
                Some(format!("`{name}` came with Python {}.{}", since.0, since.1))
            }
            _ => None,
        })
        .collect();
    if beyond.is_empty() {
        return None;
    }
    let promise = tag.map_or_else(|| "named .abi3.so".to_owned(), |tag| format!("tagged {}-abi3", tag.python));
    let message = format!("{} is {promise} and uses more than that", subject.label);
    let mut problem = error("cuwright::verify::limited_api", message);
    for why in beyond.iter().take(SHOWN) {
        problem = problem.why(why);
    }
    if beyond.len() > SHOWN {
        problem = problem.why(format!("and {} more", beyond.len() - SHOWN));
    }
    let problem =
        problem.help("define Py_LIMITED_API for every source and use a binding that supports it, or drop the tag");
    Some(Finding::error(Topic::Abi, problem))
}

fn list(items: &[String]) -> String {
    if items.is_empty() { "no library".to_owned() } else { items.join(", ") }
}
