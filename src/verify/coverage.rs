//! Requested against found: which device code each extension file holds, judged file by file.
//!
//! Invariant: one file's gap is never hidden by another's code, and a file without device code where some is wanted
//! fails, although it may import. Relocatable device code is not counted: no GPU runs it before a device link.

use fatbin::{Kind, Options};
use globset::{Glob, GlobMatcher};

use super::site::ExtensionFile;
use crate::domain::arch::{Arch, ArchSet, Form};
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::recipe::{Verify, Waiver};
use crate::report::FileCoverage;

/// Section of device code that still needs a device link.
const RELOCATABLE: &str = "__nv_relfatbin";

/// The device code of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Path inside the wheel.
    pub file: String,
    /// Archs and forms that the driver can load.
    pub archs: ArchSet,
    /// SASS images.
    pub cubins: usize,
    /// PTX images.
    pub ptx: usize,
    /// What was odd about the file; such a file may hold more than was seen.
    pub oddities: Vec<String>,
}

/// What was judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Every judged file.
    pub files: Vec<FileCoverage>,
    /// Every violation.
    pub problems: Vec<Problem>,
    /// What may hurt.
    pub warnings: Vec<String>,
}

/// Reads the device code of a file, headers only.
///
/// # Errors
/// A file that cannot be opened or is no format that can hold device code.
pub fn read(file: &ExtensionFile) -> Result<Found, Problem> {
    let unreadable = |why: String| {
        let message = format!("{} cannot be read as a library", file.name);
        Problem::new("cuwright::verify::unreadable_file", Exit::Verify, message)
            .why(why)
            .help("build again; a file cut short means that the disk was full or the linker was killed")
    };
    let opened = fs_err::File::open(&file.path).map_err(|error| unreadable(error.to_string()))?;
    let listing = fatbin::list(opened.file(), &Options::default()).map_err(|error| unreadable(error.to_string()))?;
    let mut found = Found { file: file.name.clone(), archs: ArchSet::new(), cubins: 0, ptx: 0, oddities: Vec::new() };
    for image in listing.images().filter(|image| image.section.as_deref() != Some(RELOCATABLE)) {
        let form = match image.kind {
            Kind::Elf | Kind::Cubin => Form::SASS,
            Kind::Ptx => Form::PTX,
            _ => continue,
        };
        found.cubins += usize::from(form.sass);
        found.ptx += usize::from(form.ptx);
        match Arch::from_joined(&format!("{}{}", image.arch.number, image.arch.suffix.as_str())) {
            Some(arch) => found.archs.insert(arch, form),
            None => found.oddities.push(format!("an image names the arch {}, which is none", image.arch)),
        }
    }
    if !listing.complete {
        found.oddities.push("damage or a limit may hide device code".to_owned());
    }
    found.oddities.extend(listing.diagnostics.iter().take(3).map(ToString::to_string));
    Ok(found)
}

/// Judges the files of a wheel against what was requested.
pub fn judge(verify: &Verify, requested: &ArchSet, found: &[Found]) -> Judgement {
    let mut judgement = Judgement::default();
    let globs: Vec<GlobMatcher> = verify.extensions.iter().filter_map(|glob| matcher(glob)).collect();
    for (glob, text) in globs.iter().zip(&verify.extensions) {
        if !found.iter().any(|file| glob.is_match(&file.file)) {
            judgement.problems.push(missing_file(text, found));
        }
    }
    let named = |file: &Found| globs.is_empty() || globs.iter().any(|glob| glob.is_match(&file.file));
    let any_code = found.iter().any(|file| !file.archs.is_empty());
    if globs.is_empty() && found.is_empty() {
        judgement.problems.push(missing_file("*.so", found));
    }
    for file in found.iter().filter(|file| named(file)) {
        let applies = |glob: &str| matcher(glob).is_some_and(|glob| glob.is_match(&file.file));
        let waivers: Vec<&Waiver> = verify.waivers.iter().filter(|waiver| applies(&waiver.file)).collect();
        judgement.files.push(FileCoverage {
            file: file.file.clone(),
            found: file.archs.to_string(),
            cubins: file.cubins,
            ptx: file.ptx,
            waived: waivers.first().map(|waiver| waiver.reason.clone()),
        });
        judgement.warnings.extend(file.oddities.iter().map(|oddity| format!("{}: {oddity}", file.file)));
        let gap = missing(requested, &file.archs, &waivers);
        if gap.is_empty() {
            continue;
        }
        if file.archs.is_empty() {
            // Without globs we cannot know which files are host-only by design, unless no file holds any code.
            if globs.is_empty() && any_code {
                judgement.warnings.push(format!(
                    "{} holds no device code; name the files that must in `verify.extensions`",
                    file.file
                ));
            } else {
                judgement.problems.push(no_code(file, requested));
            }
        } else {
            judgement.problems.push(lacks(file, requested, &gap));
        }
    }
    judgement
}

fn matcher(glob: &str) -> Option<GlobMatcher> {
    Glob::new(glob).ok().map(|glob| glob.compile_matcher())
}

/// What is requested, not found and not waived.
fn missing(requested: &ArchSet, found: &ArchSet, waivers: &[&Waiver]) -> ArchSet {
    if waivers.iter().any(|waiver| waiver.arch == "all") {
        return ArchSet::new();
    }
    let sets = waivers.iter().filter_map(|waiver| waiver.arch.parse::<ArchSet>().ok());
    let excused = sets.fold(ArchSet::new(), |all, set| all.union(&set));
    let mut missing = ArchSet::new();
    for (arch, form) in requested.iter() {
        let has = found.get(arch).unwrap_or(Form { sass: false, ptx: false });
        let may = excused.get(arch).is_some();
        missing.insert(arch, Form { sass: form.sass && !has.sass && !may, ptx: form.ptx && !has.ptx && !may });
    }
    missing
}

fn no_code(file: &Found, requested: &ArchSet) -> Problem {
    Problem::new("cuwright::verify::no_device_code", Exit::Verify, format!("no device code; wanted {requested}"))
        .why(format!("{} holds no SASS and no PTX: it was built without CUDA, although it may import", file.file))
        .help("many setup.py files need a switch where no GPU is in sight: set `FORCE_CUDA = \"1\"` in `build.env`")
        .help("if the file holds none by design, add a `[[verify.waive]]` with its reason")
}

fn lacks(file: &Found, requested: &ArchSet, missing: &ArchSet) -> Problem {
    Problem::new(
        "cuwright::verify::missing_arch",
        Exit::Verify,
        format!("{} lacks device code for {missing}", file.file),
    )
    .why(format!("requested {requested}, found {}", file.archs))
    .help("the project sets its own arch flags: look for `-gencode`, `-arch` or an arch variable in its setup.py")
    .help("if that is right for this file, add a `[[verify.waive]]` with its reason")
}

fn missing_file(glob: &str, found: &[Found]) -> Problem {
    let names: Vec<&str> = found.iter().map(|file| file.file.as_str()).collect();
    let holds = if names.is_empty() { "no extension file at all".to_owned() } else { names.join(", ") };
    Problem::new("cuwright::verify::no_extension", Exit::Verify, format!("no file in the wheel matches `{glob}`"))
        .why(format!("the wheel holds {holds}"))
        .help("the project skipped its extension: check the switches in `build.env` and the log of the build")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, archs: &str) -> Found {
        let archs: ArchSet = if archs.is_empty() { ArchSet::new() } else { archs.parse().unwrap() };
        Found {
            file: file.into(),
            cubins: archs.real().count(),
            ptx: archs.virtuals().count(),
            archs,
            oddities: vec![],
        }
    }

    fn codes(verify: &Verify, requested: &str, files: &[Found]) -> Vec<&'static str> {
        let judgement = judge(verify, &requested.parse().unwrap(), files);
        judgement.problems.iter().map(Problem::code).collect()
    }

    fn verify(globs: &[&str]) -> Verify {
        Verify { extensions: globs.iter().map(|g| (*g).to_owned()).collect(), ..Verify::default() }
    }

    #[test]
    fn a_gap_in_one_file_is_not_hidden_by_another() {
        let files = [found("p/_a.so", "8.6;9.0+PTX"), found("p/_b.so", "8.6;9.0")];
        assert_eq!(codes(&verify(&["p/_*.so"]), "8.6;9.0+PTX", &files), ["cuwright::verify::missing_arch"]);
        assert!(codes(&verify(&["p/_*.so"]), "8.6;9.0", &files).is_empty());
    }

    #[test]
    fn no_device_code_fails_although_a_file_is_there() {
        let files = [found("p/_a.so", "")];
        for globs in [&["p/_*.so"][..], &[]] {
            assert_eq!(codes(&verify(globs), "9.0", &files), ["cuwright::verify::no_device_code"]);
        }
    }

    #[test]
    fn no_extension_at_all_fails() {
        assert_eq!(codes(&verify(&["p/_*.so"]), "9.0", &[]), ["cuwright::verify::no_extension"]);
        assert_eq!(codes(&verify(&[]), "9.0", &[]), ["cuwright::verify::no_extension"]);
    }

    #[test]
    fn a_waiver_excuses_its_file_only() {
        let mut verify = verify(&["p/_*.so"]);
        let waiver = |arch: &str| Waiver { file: "p/_v.so".into(), arch: arch.into(), reason: "by design".into() };
        verify.waivers = vec![waiver("all")];
        let files = [found("p/_a.so", "9.0"), found("p/_v.so", "")];
        assert!(codes(&verify, "9.0", &files).is_empty());
        verify.waivers = vec![waiver("8.6")];
        assert_eq!(codes(&verify, "8.6;9.0", &[found("p/_v.so", "9.0")]), [] as [&str; 0]);
        assert_eq!(codes(&verify, "8.6;9.0", &[found("p/_v.so", "8.6")]), ["cuwright::verify::missing_arch"]);
    }
}
