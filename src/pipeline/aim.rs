//! What is asked for, understood: targets, versions and the number of jobs. Judged before anything is looked for on this
//! machine or fetched, so that a mistake costs nothing.

use pep440_rs::VersionSpecifiers;

use super::load::Loaded;
use super::{Context, Request, detect, site};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems, Snippet, nearest};
use crate::domain::release::{Takes, Versioned};
use crate::plan::{self, jobs::Bound};
use crate::preflight;
use crate::recipe::{Profile, Recipe};
use crate::sys::env_vars::TORCH_CUDA_ARCH_LIST;
use crate::targets::{self, Facts, Listed, Selected};

/// What is known before there is a toolchain.
#[derive(Debug)]
pub struct Early {
    /// The targets, unless a word among them needs the toolkit.
    pub selected: Option<Selected>,
    /// What is said about the number of jobs.
    pub bound: Bound,
}

/// Everything that can be known to fail before a download, at once.
///
/// # Errors
/// Targets, versions or a number of jobs that cannot be read, no target at all, what is not the recipe's to set, a full
/// disk.
pub fn early(context: &Context<'_>, loaded: &Loaded, request: &Request) -> Result<Early, Problems> {
    let mut problems = plan::reserved(&loaded.recipe);
    let selected = match select(context, loaded, request, Facts::default()) {
        // Words that need the toolkit are read again later.
        Err(found) => {
            problems.extend(beyond_toolkit(&found));
            None
        }
        Ok(selected) => Some(selected),
    };
    let bound = Bound::read(request.jobs, context.env).map_err(|problem| problems.push(problem)).unwrap_or_default();
    problems.extend(versions(request).err().iter().flatten().cloned());
    problems.extend(preflight::full(&site::disks(context)));
    Problems::check(problems).map(|()| Early { selected, bound })
}

/// The problems that no toolkit mends.
fn beyond_toolkit(problems: &Problems) -> Vec<Problem> {
    problems.iter().filter(|problem| problem.code() != targets::NEEDS_TOOLKIT).cloned().collect()
}

/// Whether some target is named by a word that only the chosen toolkit or torch can expand.
pub(super) fn needs_toolkit(request: &Request, recipe: &Recipe) -> bool {
    let profile = request.profile.as_ref().and_then(|name| recipe.targets.profiles.get(name));
    let lists = [&request.archs, profile.map_or(&recipe.targets.arch, |profile| &profile.arch)];
    let chosen = lists.into_iter().find(|list| !list.is_empty());
    chosen.is_some_and(|list| list.iter().any(|item| item.chars().any(char::is_alphabetic)))
}

/// Chooses the targets for a unit.
///
/// # Errors
/// An unreadable list, an unknown profile, or no target at all.
pub fn select(
    context: &Context<'_>,
    loaded: &Loaded,
    request: &Request,
    facts: Facts<'_>,
) -> Result<Selected, Problems> {
    let targets = &loaded.recipe.targets;
    let profile = request.profile.as_deref().map(|name| profile(loaded, name)).transpose()?;
    let label = request.profile.as_ref().map(|name| format!("profile {name} of {}", loaded.origin)).unwrap_or_default();
    let asked = targets::Request {
        arch: &request.archs,
        arch_name: request.archs_from.as_deref(),
        gpus: &request.gpus,
        profile: profile.map(|profile| Listed { name: &label, arch: &profile.arch, gpus: &profile.gpus }),
        recipe: Some(Listed { name: &loaded.origin, arch: &targets.arch, gpus: &[] }),
        inherited: context.env.get(TORCH_CUDA_ARCH_LIST).map(|value| (TORCH_CUDA_ARCH_LIST, value)),
    };
    targets::select(&asked, facts, || detect::detected(context)).map_err(|problems| problems.map(|p| placed(p, loaded)))
}

/// Lists of a recipe are judged item by item; this points at the item in the file instead.
fn placed(problem: Problem, loaded: &Loaded) -> Problem {
    let Some(snippet) = problem.snippet().filter(|snippet| snippet.origin.ends_with(&loaded.origin)).cloned() else {
        return problem;
    };
    let section = loaded.text.find("targets").unwrap_or_default();
    let quoted = ['"', '\''].map(|quote| format!("{quote}{}{quote}", snippet.text));
    let found = quoted.iter().find_map(|item| loaded.text[section..].find(item.as_str()));
    let Some(start) = found.map(|at| section + at + 1) else { return problem };
    let range = start + snippet.range.start..start + snippet.range.end;
    problem.at(Snippet { origin: loaded.origin.clone(), text: loaded.text.clone(), range, label: snippet.label })
}

/// A target profile of a recipe.
///
/// # Errors
/// The recipe has none of that name.
pub fn profile<'a>(loaded: &'a Loaded, name: &str) -> Result<&'a Profile, Problem> {
    let profiles = &loaded.recipe.targets.profiles;
    profiles.get(name).ok_or_else(|| {
        let names: Vec<&str> = profiles.keys().map(String::as_str).collect();
        let problem = Problem::new(
            "cuwright::target::no_profile",
            Exit::Usage,
            format!("the recipe has no target profile `{name}`"),
        );
        let problem = match nearest(name, names.iter().copied()) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem,
        };
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        problem.why(format!("profiles of {}: {known}", loaded.origin)).help("add it as `[targets.profiles.NAME]`")
    })
}

/// The versions that flags or a cell of a matrix ask for.
#[derive(Debug)]
pub struct Versions {
    /// `--torch`.
    pub torch: Option<VersionSpecifiers>,
    /// `--cuda`.
    pub cuda: Option<VersionSpecifiers>,
}

/// Reads the versions that are asked for.
///
/// # Errors
/// Each that names none.
pub fn versions(request: &Request) -> Result<Versions, Problems> {
    let mut problems = Vec::new();
    let mut read = |product: Versioned, flag: &str, asked: Option<&String>| {
        let text = asked?;
        let read = product.range(text).map_err(|why| product.refuse(flag, text, &why, Takes::Range));
        read.map_err(|problem| problems.push(problem)).ok()
    };
    let torch = read(Versioned::Torch, "--torch", request.torch.as_ref());
    let cuda = read(Versioned::Cuda, "--cuda", request.cuda.as_ref());
    Problems::check(problems).map(|()| Versions { torch, cuda })
}
