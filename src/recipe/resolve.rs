//! [`RawRecipe`] → [`Recipe`]: defaults applied, every value judged, all refusals at once.

use std::ops::Range;
use std::str::FromStr as _;

use toml::Spanned;

use super::matrix::{self, Axis};
use super::parse::{self, Document, Read};
use super::raw::{RawProfile, RawRecipe, RawSource, RawVerify};
use super::{Patch, Profile, Recipe, Source, Targets, ToolchainNeeds, Verify, Waiver, building};
use crate::domain::arch::{ArchSet, Origin, parse_list};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::domain::requirement::{Requirement, contradiction, specifiers};

/// Reads a recipe and judges it: everything that is wrong with its form and its values, in the order of the file.
///
/// # Errors
/// Every mistake, with its place.
pub fn read(document: Document<'_>, patch_text: impl Fn(&str) -> Result<String, String>) -> Result<Recipe, Problems> {
    let Read { recipe: raw, mut problems, left_out } = parse::read(document);
    let Some(raw) = raw else {
        problems.sort_by_key(place);
        return Err(Problems::check(problems).err().unwrap_or_else(|| bug().into()));
    };
    let told: Vec<Range<usize>> = problems.iter().filter_map(|p| Some(p.snippet()?.range.clone())).collect();
    let resolved = resolve(document, raw, patch_text);
    // What follows from a mistake of form is no mistake of its own.
    let follows = |problem: &Problem| match problem.snippet() {
        Some(at) => told.iter().any(|told| told.start <= at.range.start && at.range.end <= told.end),
        None => left_out.iter().any(|name| ["path", "pypi", "git"].contains(&name.as_str())),
    };
    problems.extend(resolved.as_ref().err().into_iter().flatten().filter(|problem| !follows(problem)).cloned());
    problems.sort_by_key(place);
    Problems::check(problems)?;
    resolved
}

fn place(problem: &Problem) -> Option<usize> {
    problem.snippet().map(|snippet| snippet.range.start)
}

fn bug() -> Problem {
    Problem::new("cuwright::bug", Exit::Bug, "a recipe was refused without a reason").help("please report this")
}

/// Applies defaults and judges every value. `patch_text` reads a patch beside the recipe.
///
/// # Errors
/// Everything that is wrong with the values, each with its place.
pub fn resolve(
    document: Document<'_>,
    raw: RawRecipe,
    patch_text: impl Fn(&str) -> Result<String, String>,
) -> Result<Recipe, Problems> {
    let mut found = Vec::new();
    let mut judge = Judge { document, found: &mut found };
    let name = judge.name(&raw.package.name);
    let source = judge.source(&raw.source);
    let patches = judge.patches(&raw.source.patches, patch_text);
    let build = building::build(&mut judge, &raw.build);
    let default_requires = || build.backend.default_requires().iter().map(|&name| name.to_owned()).collect();
    let toolchain = ToolchainNeeds {
        cuda: judge.range(raw.toolchain.cuda.as_ref()),
        torch: judge.range(raw.toolchain.torch.as_ref()),
        python: judge.range(raw.toolchain.python.as_ref()),
        build_requires: match &raw.toolchain.build_requires {
            Some(list) => judge.requirements(list),
            None => default_requires(),
        },
    };
    let matrix = matrix::resolve(&mut judge, &raw.matrix);
    let tried = raw.tried.as_ref().and_then(|tried| building::tried(&mut judge, tried));
    let extensions = raw.verify.extensions.iter().map(|glob| judge.glob(glob)).collect();
    let import = raw.verify.import.as_ref().map(|all| all.iter().map(|module| judge.module(module)).collect());
    let waivers = raw
        .verify
        .waive
        .iter()
        .map(|waiver| Waiver {
            file: judge.glob(&waiver.file),
            arch: judge.waived(&waiver.arch),
            reason: judge.reason(&waiver.reason),
        })
        .collect();
    let requires = judge.requirements(&raw.verify.requires);
    let mut profile = |raw: RawProfile| Profile { arch: judge.archs(&raw.arch), gpus: raw.gpus };
    let profiles = raw.targets.profiles.into_iter().map(|(name, raw)| (name, profile(raw))).collect();
    let targets = Targets { arch: judge.archs(&raw.targets.arch), profiles };
    // In the order of the file, as it is read.
    found.sort_by_key(place);
    Problems::check(found)?;
    let version = match &source {
        Some(Source::Pypi { version, .. }) => Some(raw.package.version.unwrap_or_else(|| version.clone())),
        _ => raw.package.version,
    };
    let source = source.unwrap_or_else(|| Source::Path(".".to_owned()));
    let RawVerify { check, gpu_check, .. } = raw.verify;
    let verify = Verify { extensions, import, check, gpu_check, requires, waivers };
    Ok(Recipe { name, version, source, patches, toolchain, targets, build, verify, matrix, tried })
}

/// Collects what is wrong with values, each with its place.
pub(super) struct Judge<'a> {
    document: Document<'a>,
    found: &'a mut Vec<Problem>,
}

impl Judge<'_> {
    pub(super) fn refuse(&mut self, at: &Spanned<String>, label: &str, message: String, help: &str) {
        self.refuse_at(at.span(), label, message, help);
    }

    pub(super) fn refuse_at(&mut self, at: std::ops::Range<usize>, label: &str, message: String, help: &str) {
        let snippet = self.document.snippet(at, label);
        self.found.push(Problem::new("cuwright::recipe::invalid_value", Exit::Recipe, message).at(snippet).help(help));
    }

    pub(super) fn matrix_value(&mut self, axis: Axis, value: &Spanned<String>) {
        if let Err((why, help)) = matrix::check_value(axis, value.get_ref()) {
            let message = format!("`{}` is no value of the axis `{}`: {why}", value.get_ref(), axis.name());
            self.refuse(value, "here", message, &help);
        }
    }

    fn name(&mut self, name: &Spanned<String>) -> String {
        let text = name.get_ref();
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if text.is_empty() || !text.chars().all(legal) || text.starts_with('.') {
            let message = format!("`{text}` is no distribution name");
            self.refuse(name, "letters, digits, `-`, `_` and `.` only", message, "name it like the Python project");
        }
        text.clone()
    }

    fn source(&mut self, raw: &RawSource) -> Option<Source> {
        let kinds = [("path", &raw.path), ("pypi", &raw.pypi), ("git", &raw.git)];
        let named: Vec<_> =
            kinds.iter().filter_map(|(kind, value)| value.as_ref().map(|value| (*kind, value))).collect();
        let (kind, value) = match named.as_slice() {
            [] => {
                let problem = Problem::new("cuwright::recipe::no_source", Exit::Recipe, "the recipe names no source")
                    .why("`[source]` has none of `path`, `pypi` and `git`")
                    .help(
                        "add `path = \".\"`, `pypi = \"name==version\"` with its `sha256`, or `git` with its `commit`",
                    );
                self.found.push(problem);
                return None;
            }
            [one] => *one,
            [(first, _), (second, at), ..] => {
                let message = format!("the source has both `{first}` and `{second}`");
                self.refuse(at, "second source", message, "keep exactly one of `path`, `pypi` and `git`");
                return None;
            }
        };
        let pins = [("pypi", "sha256", &raw.sha256), ("git", "commit", &raw.commit)];
        for (owner, name, value) in pins.into_iter().filter(|(owner, ..)| *owner != kind) {
            if let Some(value) = value {
                let message = format!("`{name}` does not go with `{kind}`");
                self.refuse(value, &format!("it pins `{owner}`"), message, &format!("remove `{name}`"));
            }
        }
        match kind {
            "path" => Some(Source::Path(value.get_ref().clone())),
            "pypi" => self.pypi(value, raw.sha256.as_ref()),
            _ => self.git(value, raw.commit.as_ref(), raw.submodules),
        }
    }

    fn git(&mut self, url: &Spanned<String>, commit: Option<&Spanned<String>>, submodules: bool) -> Option<Source> {
        if url.get_ref().is_empty() || url.get_ref().starts_with('-') || url.get_ref().contains(char::is_control) {
            let message = format!("`{}` is no address of a repository", url.get_ref().escape_debug());
            self.refuse(url, "here", message, "write it as `git clone` takes it");
        }
        let Some(commit) = commit else {
            let message = "a `git` source needs the commit".to_owned();
            self.refuse(url, "not pinned", message, "add `commit = \"…\"`; `git ls-remote URL` lists tips");
            return None;
        };
        let id = commit.get_ref().to_ascii_lowercase();
        if !matches!(id.len(), 40 | 64) || !id.bytes().all(|b| b.is_ascii_hexdigit()) {
            let message = format!("`{}` is no full id of a commit", commit.get_ref().escape_debug());
            self.refuse(
                commit,
                "expected 40 hex digits",
                message,
                "a branch or a tag can move; write what it points at",
            );
        }
        Some(Source::Git { url: url.get_ref().clone(), commit: id, submodules })
    }

    fn pypi(&mut self, pypi: &Spanned<String>, sha256: Option<&Spanned<String>>) -> Option<Source> {
        let Some((name, version)) = pypi.get_ref().split_once("==") else {
            let message = format!("`{}` names no exact version", pypi.get_ref());
            self.refuse(pypi, "expected `name==version`", message, "pin it, such as `mmcv==2.2.0`");
            return None;
        };
        let (name, version) = (name.trim().to_owned(), version.trim().to_owned());
        if pep440_rs::Version::from_str(&version).is_err() {
            let message = format!("`{version}` is no version");
            self.refuse(pypi, "after `==`", message, "write a full version, such as `2.2.0`");
        }
        let Some(sha256) = sha256 else {
            let message = "a `pypi` source needs the sha256 of its file".to_owned();
            let help = "add `sha256 = \"…\"`; the index page of the project lists it for each file";
            self.refuse(pypi, "not pinned by digest", message, help);
            return None;
        };
        let digest = sha256.get_ref().to_ascii_lowercase();
        if digest.len() != 64 || !digest.bytes().all(|b| b.is_ascii_hexdigit()) {
            let message = "`sha256` is no sha256 digest".to_owned();
            self.refuse(sha256, "expected 64 hex digits", message, "copy the digest of the .tar.gz from the index");
        }
        Some(Source::Pypi { name, version, sha256: digest })
    }

    fn patches(&mut self, patches: &[Spanned<String>], read: impl Fn(&str) -> Result<String, String>) -> Vec<Patch> {
        let mut result = Vec::new();
        for patch in patches {
            match read(patch.get_ref()) {
                Ok(text) => result.push(Patch { name: patch.get_ref().clone(), text }),
                Err(why) => {
                    let message = format!("the patch `{}` cannot be read: {why}", patch.get_ref());
                    self.refuse(patch, "this file", message, "paths of patches are relative to the recipe's folder");
                }
            }
        }
        result
    }

    fn range(&mut self, range: Option<&Spanned<String>>) -> String {
        let Some(range) = range else { return String::new() };
        let text = range.get_ref();
        match specifiers(text) {
            Err(why) => {
                let message = format!("`{text}` is no version range: {why}");
                self.refuse(range, "here", message, "write a range like `>=2.0,<3`, or `==2.11.0`");
            }
            Ok(parsed) => {
                if let Some(why) = contradiction(&parsed) {
                    let message = format!("no version can satisfy `{text}`");
                    self.refuse(range, &why, message, "keep the bound that is meant, such as `>=2.0,<3`");
                }
            }
        }
        text.clone()
    }

    fn requirements(&mut self, list: &[Spanned<String>]) -> Vec<String> {
        list.iter().map(|text| self.requirement(text)).collect()
    }

    fn requirement(&mut self, text: &Spanned<String>) -> String {
        let why = match text.get_ref().parse::<Requirement>() {
            Ok(one) => contradiction(&one.range),
            Err(error) => Some(error.reason),
        };
        if let Some(why) = why {
            let message = format!("`{}` is no requirement", text.get_ref());
            self.found.push(
                Problem::new("cuwright::recipe::requirement", Exit::Recipe, message)
                    .at(self.document.snippet(text.span(), "here"))
                    .why(why)
                    .help("write it as pip takes it: `numpy`, `setuptools<81`"),
            );
        }
        text.get_ref().clone()
    }

    /// Lists whose words are read later, by the toolkit and the machine; what is no word at all is told now.
    fn archs(&mut self, list: &[Spanned<String>]) -> Vec<String> {
        let origin = Origin::recipe(self.document.origin);
        for item in list {
            let problems = parse_list(&origin, item.get_ref()).err();
            for problem in problems.iter().flatten() {
                let Some(snippet) = problem.snippet() else { continue };
                // Behind the quote, unless something in the text is escaped.
                let start = item.span().start + 1;
                let plain =
                    self.document.text.get(start..).is_some_and(|rest| rest.starts_with(item.get_ref().as_str()));
                let inside = start + snippet.range.start..start + snippet.range.end;
                let range = if plain { inside } else { item.span() };
                self.found.push(problem.clone().at(self.document.snippet(range, snippet.label.clone())));
            }
        }
        list.iter().map(|item| item.get_ref().clone()).collect()
    }

    pub(super) fn variable(&mut self, name: &Spanned<String>) -> String {
        let text = name.get_ref();
        if text.is_empty() || text.contains(|c: char| c == '=' || c.is_whitespace() || c.is_control()) {
            let message = format!("`{}` is no name of an environment variable", text.escape_debug());
            self.refuse(name, "no blanks, no `=`", message, "write only the name, such as `FORCE_CUDA`");
        }
        text.clone()
    }

    pub(super) fn value(&mut self, value: &Spanned<String>) -> String {
        if value.get_ref().contains('\0') {
            let message = "an environment variable cannot hold a NUL".to_owned();
            self.refuse(value, "holds `\\u0000`", message, "remove it");
        }
        value.get_ref().clone()
    }

    pub(super) fn glob(&mut self, glob: &Spanned<String>) -> String {
        if let Err(error) = globset::Glob::new(glob.get_ref()) {
            let message = format!("`{}` is no glob: {}", glob.get_ref(), error.kind());
            self.refuse(glob, "here", message, "write a glob like `mmcv/_ext*.so`");
        }
        glob.get_ref().clone()
    }

    fn module(&mut self, module: &Spanned<String>) -> String {
        let part = |p: &str| {
            !p.is_empty()
                && !p.starts_with(|c: char| c.is_ascii_digit())
                && p.chars().all(|c| c.is_alphanumeric() || c == '_')
        };
        if !module.get_ref().split('.').all(part) {
            let message = format!("`{}` is no module name", module.get_ref());
            self.refuse(module, "not importable", message, "write a dotted name like `mmcv.ops`");
        }
        module.get_ref().clone()
    }

    fn waived(&mut self, arch: &Spanned<String>) -> String {
        let text = arch.get_ref();
        if text != "all" && text.parse::<ArchSet>().is_err() {
            let message = format!("`{text}` is no arch list");
            self.refuse(arch, "here", message, "write archs like `8.6;9.0`, or `all` for a file without device code");
        }
        text.clone()
    }

    fn reason(&mut self, reason: &Spanned<String>) -> String {
        if reason.get_ref().trim().is_empty() {
            let message = "a waiver needs a reason".to_owned();
            self.refuse(reason, "empty", message, "say why the file is right without that code");
        }
        reason.get_ref().clone()
    }
}

#[cfg(test)]
mod tests;
