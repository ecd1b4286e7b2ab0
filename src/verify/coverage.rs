//! Requested against found: which device code each extension file holds, judged file by file.
//!
//! Invariant: one file's gap is never hidden by another's code, and a file without device code where some is wanted
//! fails, although it may import. Machine code counts for exactly its arch; which GPUs run it is judged in `fate`.

use globset::{Glob, GlobMatcher};

use super::found::Found;
use crate::compat::rules::{self, Runs};
use crate::domain::arch::{Arch, ArchSet, Form};
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::recipe::{Verify, Waiver};
use crate::report::FileCoverage;

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

/// Judges the files of one input against what was requested.
pub fn judge(verify: &Verify, requested: &ArchSet, found: &[Found]) -> Judgement {
    let mut judgement = Judgement::default();
    let globs = globs(verify);
    judgement.problems.extend(absent(verify, found));
    for file in found.iter().filter(|file| is_judged(&globs, file)) {
        let waivers = waivers(verify, file);
        judgement.files.push(FileCoverage {
            file: file.file.clone(),
            found: file.archs.to_string(),
            cubins: file.cubins,
            ptx: file.ptx,
            waived: waivers.first().map(|waiver| waiver.reason.clone()),
        });
        judgement.warnings.extend(oddities(file));
        if let Some(problem) = damaged(file) {
            judgement.problems.push(problem);
            continue;
        }
        match lack(verify, requested, file, found) {
            Some(Lack::Problem(problem)) => judgement.problems.push(problem),
            Some(Lack::Warning(warning)) => judgement.warnings.push(warning),
            None => {}
        }
    }
    judgement
}

/// What a file lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    /// It fails.
    Problem(Problem),
    /// It may be right.
    Warning(String),
}

/// What `file` lacks of `requested`; `all` are the files of the same input.
pub fn lack(verify: &Verify, requested: &ArchSet, file: &Found, all: &[Found]) -> Option<Lack> {
    let gap = missing(requested, &file.archs, &waivers(verify, file));
    if gap.is_empty() {
        return partial(requested, file).map(Lack::Warning);
    }
    if !file.archs.is_empty() {
        return Some(Lack::Problem(lacks(file, requested, &gap)));
    }
    Some(without_code(verify, &format!("wanted {requested}"), file, all))
}

/// A file without device code: without globs we cannot know which files are host-only by design, unless none holds any.
pub fn without_code(verify: &Verify, wanted: &str, file: &Found, all: &[Found]) -> Lack {
    if verify.extensions.is_empty() && all.iter().any(|file| !file.archs.is_empty()) {
        return Lack::Warning(format!(
            "{} holds no device code; name the files that must in `verify.extensions`",
            file.file
        ));
    }
    Lack::Problem(no_code(file, wanted))
}

/// The globs of files that must hold code; none means every file.
pub fn globs(verify: &Verify) -> Vec<GlobMatcher> {
    verify.extensions.iter().filter_map(|glob| matcher(glob)).collect()
}

/// Whether a file is judged by its device code.
pub fn is_judged(globs: &[GlobMatcher], file: &Found) -> bool {
    globs.is_empty() || globs.iter().any(|glob| file.is_named(glob))
}

/// The waivers that hold for a file; together they excuse what any of them does.
pub fn waivers<'a>(verify: &'a Verify, file: &Found) -> Vec<&'a Waiver> {
    let holds = |waiver: &&Waiver| matcher(&waiver.file).is_some_and(|glob| file.is_named(&glob));
    verify.waivers.iter().filter(holds).collect()
}

/// Whether a waiver excuses that a GPU of `arch` finds no code.
pub fn excuses(waiver: &Waiver, arch: Arch) -> bool {
    waiver.arch == "all" || waiver.arch.parse::<ArchSet>().is_ok_and(|archs| archs.get(arch).is_some())
}

/// Globs without a file, and an input without any.
pub fn absent(verify: &Verify, found: &[Found]) -> Vec<Problem> {
    if verify.extensions.is_empty() {
        return if found.is_empty() { vec![missing_file("*.so", found)] } else { Vec::new() };
    }
    let lone = |glob: &&String| matcher(glob).is_some_and(|matcher| !found.iter().any(|file| file.is_named(&matcher)));
    verify.extensions.iter().filter(lone).map(|glob| missing_file(glob, found)).collect()
}

/// A file that was not read whole: nothing can be said of what it lacks.
pub fn damaged(file: &Found) -> Option<Problem> {
    let (first, more) = file.hidden.split_first()?;
    let message = format!("{} is damaged, or beyond what is read of a file", file.file);
    let problem = Problem::new("cuwright::verify::damaged_file", Exit::Verify, message).why(first);
    let problem = more.iter().fold(problem, Problem::why);
    Some(
        problem.help(
            "build it again, or copy it again; a file cut short means that a disk was full or a transfer broke off",
        ),
    )
}

/// What was odd about a file, as warnings.
pub fn oddities(file: &Found) -> impl Iterator<Item = String> + '_ {
    file.oddities.iter().map(|oddity| format!("{}: {oddity}", file.file))
}

/// Archs beyond the expected ones.
pub fn extra(file: &Found, expected: &ArchSet) -> Option<Problem> {
    let extra: ArchSet = file
        .archs
        .iter()
        .map(|(arch, form)| {
            let wanted = expected.get(arch).unwrap_or(Form { sass: false, ptx: false });
            (arch, Form { sass: form.sass && !wanted.sass, ptx: form.ptx && !wanted.ptx })
        })
        .collect();
    (!extra.is_empty()).then(|| {
        Problem::new("cuwright::verify::extra_arch", Exit::Verify, format!("{} also holds {extra}", file.file))
            .why(format!("expected {expected}, found {}, and `--strict` is set", file.archs))
            .help("add the archs to `--expect`, or build without them")
    })
}

/// Fatbins of a file that lack what others of it have: some sources were compiled with other flags.
fn partial(requested: &ArchSet, file: &Found) -> Option<String> {
    let total: usize = file.groups.iter().map(|group| group.count).sum();
    let short: Vec<(ArchSet, usize)> = file
        .groups
        .iter()
        .map(|group| {
            let has: ArchSet = group.images.iter().map(|image| (image.arch, form_of(image))).collect();
            (missing(requested, &has, &[]), group.count)
        })
        .filter(|(gap, _)| !gap.is_empty())
        .collect();
    let count: usize = short.iter().map(|(_, count)| count).sum();
    let gap = short.iter().fold(ArchSet::new(), |all, (gap, _)| all.union(gap));
    (count > 0).then(|| {
        format!(
            "{}: {count} of {total} fatbins lack {gap}; sources of their own were compiled with other flags",
            file.file
        )
    })
}

fn form_of(image: &rules::Image) -> Form {
    if image.code == rules::Code::Sass { Form::SASS } else { Form::PTX }
}

fn matcher(glob: &str) -> Option<GlobMatcher> {
    Glob::new(glob).ok().map(|glob| glob.compile_matcher())
}

/// What is requested, not found and not waived.
fn missing(requested: &ArchSet, found: &ArchSet, waivers: &[&Waiver]) -> ArchSet {
    let gap = |(arch, form): (Arch, Form)| {
        let has = found.get(arch).unwrap_or(Form { sass: false, ptx: false });
        let may = waivers.iter().any(|waiver| excuses(waiver, arch));
        (arch, Form { sass: form.sass && !has.sass && !may, ptx: form.ptx && !has.ptx && !may })
    };
    requested.iter().map(gap).collect()
}

/// Nothing where something is wanted.
pub fn no_code(file: &Found, wanted: &str) -> Problem {
    let problem = Problem::new("cuwright::verify::no_device_code", Exit::Verify, format!("no device code; {wanted}"));
    let problem = if file.relocatable > 0 {
        problem
            .why(format!("{} holds relocatable device code only, which no GPU runs before a device link", file.file))
            .help("link with `nvcc -dlink`, or let the build system do it (`CUDA_RESOLVE_DEVICE_SYMBOLS` in CMake)")
    } else if !file.other.is_empty() {
        problem.why(format!("{} holds {} only, which no driver loads as it is", file.file, file.other.join(" and ")))
    } else {
        problem
            .why(format!("{} holds no SASS and no PTX: it was built without CUDA, although it may import", file.file))
            .help("many setup.py files need a switch where no GPU is in sight: set `FORCE_CUDA = \"1\"` in `build.env`")
    };
    problem.help("if the file holds none by design, add a `[[verify.waive]]` with its reason")
}

fn lacks(file: &Found, requested: &ArchSet, missing: &ArchSet) -> Problem {
    let message = format!("{} lacks device code for {missing}", file.file);
    let mut problem = Problem::new("cuwright::verify::missing_arch", Exit::Verify, message)
        .why(format!("requested {requested}, found {}", file.archs));
    for (fate, gpus) in fates(file, missing) {
        problem = problem.why(format!("a GPU of {gpus} {fate}"));
    }
    problem
        .help("the project sets its own arch flags: look for `-gencode`, `-arch` or an arch variable in its setup.py")
        .help("if that is right for this file, add a `[[verify.waive]]` with its reason")
}

/// How GPUs of the missing archs would fare all the same: each fate with its GPUs.
fn fates(file: &Found, missing: &ArchSet) -> Vec<(String, String)> {
    let mut fates: Vec<(String, String)> = Vec::new();
    for arch in missing.real() {
        let images = file.groups.iter().flat_map(|group| group.images.iter().copied());
        let fate = match rules::best_of(images, arch.capability, None) {
            (Runs::Natively, Some(image)) => format!("would run its {} code all the same", image.arch.sm()),
            (Runs::ByJit { .. }, Some(image)) => {
                format!("would have its {} compiled by the driver at first start", image.arch.compute())
            }
            _ => "would find no code that it runs".to_owned(),
        };
        match fates.iter_mut().find(|(known, _)| *known == fate) {
            Some((_, gpus)) => *gpus = format!("{gpus}, {}", arch.capability),
            None => fates.push((fate, arch.capability.to_string())),
        }
    }
    fates
}

fn missing_file(glob: &str, found: &[Found]) -> Problem {
    let names: Vec<&str> = found.iter().map(|file| file.file.as_str()).collect();
    let holds = if names.is_empty() { "no extension file at all".to_owned() } else { names.join(", ") };
    Problem::new("cuwright::verify::no_extension", Exit::Verify, format!("no file that was built matches `{glob}`"))
        .why(format!("there is {holds}"))
        .help("the project skipped its extension: check the switches in `build.env` and the log of the build")
}

#[cfg(test)]
mod tests {
    use super::super::found::sample as found;
    use super::*;

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
    fn a_gap_says_how_a_gpu_would_fare() {
        let judgement = judge(&verify(&[]), &"8.6;8.9;9.0".parse().unwrap(), &[found("a.so", "8.0+PTX;8.6")]);
        assert_eq!(
            judgement.problems[0].evidence()[1..],
            [
                "a GPU of 8.9 would run its sm_86 code all the same",
                "a GPU of 9.0 would have its compute_80 compiled by the driver at first start"
            ]
        );
    }

    #[test]
    fn fatbins_that_lack_an_arch_are_a_warning() {
        let mut file = found("a.so", "8.6;9.0");
        let other = found("b.so", "8.6");
        file.groups[0].count = 5;
        file.groups.extend(other.groups);
        let judgement = judge(&verify(&[]), &"8.6;9.0".parse().unwrap(), &[file]);
        assert!(judgement.problems.is_empty());
        assert!(judgement.warnings[0].contains("1 of 6 fatbins lack 9.0"), "{:?}", judgement.warnings);
    }

    #[test]
    fn a_form_too_much_is_extra_too() {
        let extra = |expected: &str| extra(&found("a.so", "8.6+PTX;9.0"), &expected.parse().unwrap());
        assert!(extra("8.6+PTX;9.0;12.0").is_none());
        assert!(extra("8.6;9.0").unwrap().message().ends_with("also holds compute_86"));
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
