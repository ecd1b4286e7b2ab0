//! One unit up to its key: targets, toolchain, preflight, source, environment. Compiles nothing.

use std::str::FromStr as _;

use cache::Key;
use camino::Utf8Path;
use pep440_rs::VersionSpecifiers;

use super::load::Loaded;
use super::{Context, Request, detect, site, source, toolchain};
use crate::build::{bazel, patch};
use crate::compat::support::{self, Compiler};
use crate::domain::arch::ArchSet;
use crate::domain::arch::dialect::Consumer;
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems, Snippet, nearest};
use crate::domain::requirement::{self, Requirement};
use crate::domain::toolchain::{Considered, Toolchain};
use crate::key::{self, KeyInputs};
use crate::plan::jobs::{Machine, Width};
use crate::plan::{self, Environment, Fate, Jobs};
use crate::preflight::{self, Site};
use crate::recipe::{Backend, Profile, Recipe};
use crate::report::Stage;
use crate::source::Tree;
use crate::sys::env_vars::{CUDA_HOME, TORCH_CUDA_ARCH_LIST};
use crate::sys::lock::Lock;
use crate::sys::machine;
use crate::targets::{self, Facts, Listed, Selected};

/// A unit that is ready to be built or restored.
#[derive(Debug)]
pub struct Prepared {
    /// The recipe.
    pub recipe: Recipe,
    /// The targets.
    pub archs: ArchSet,
    /// Why these targets.
    pub archs_why: Vec<String>,
    /// The toolchain.
    pub toolchain: Toolchain,
    /// Why this toolchain.
    pub toolchain_why: Vec<String>,
    /// Everything that was looked at for it.
    pub considered: Vec<Considered>,
    /// The source tree.
    pub source: Tree,
    /// The build's environment.
    pub environment: Environment,
    /// How many compile jobs.
    pub jobs: Jobs,
    /// What the key is made of.
    pub inputs: KeyInputs,
    /// The key.
    pub key: Key,
    _leases: Vec<Lock>,
}

impl Prepared {
    /// Applies the recipe's patches below `source`.
    ///
    /// # Errors
    /// A patch that does not apply.
    pub fn apply_patches(&self, context: &Context<'_>, source: &Utf8Path) -> Result<(), Problem> {
        patch::apply(&self.recipe.patches, source, context.env)
    }
}

/// Prepares a unit.
///
/// # Errors
/// Everything that is knowable before compiling.
pub fn prepare(context: &Context<'_>, loaded: Loaded, request: &Request) -> Result<Prepared, Problems> {
    let name = loaded.recipe.name.clone();
    // Nothing that can be known to fail may cost a download first.
    let early = match select(context, &loaded, request, Facts::default()) {
        // Words that need the toolkit are read again below.
        Err(problems) => Problems::check(beyond_toolkit(&problems)).map(|()| None)?,
        Ok(selected) => Some(selected),
    };
    patch::program(&loaded.recipe.patches, context.env)?;
    if loaded.recipe.build.backend == Backend::Bazel {
        bazel::program(context.env)?;
    }
    let known = source::known(&loaded)?;
    let archs = early.as_ref().map(|selected| &selected.set);
    let chosen = choose(context, &loaded.recipe, request, archs)?;
    let toolchain = chosen.toolchain;
    context.stage(&name, Stage::Toolchain, describe(&toolchain));
    // Who does not read torch's list is not bound by it.
    let with_torch = loaded.recipe.build.archs.has(Consumer::Torch);
    let facts = Facts {
        compiler: Some(Compiler { version: toolchain.toolkit.nvcc, gpu_codes: toolchain.toolkit.codes() }),
        torch: Some(toolchain.torch.version.as_str()).filter(|_| with_torch),
        torch_accepts: accepted(&toolchain).filter(|_| with_torch),
    };
    let selected = match early {
        Some(selected) if !needs_toolkit(request, &loaded.recipe) => selected,
        _ => select(context, &loaded, request, facts)?,
    };
    tell_targets(context, &name, &selected);
    for missing in &chosen.unmet {
        context.warn(&name, format!("the import check needs {missing}, which {} lacks", toolchain.python.executable));
    }
    let machine = Machine { cores: machine::cores(), memory: machine::available_memory(context.env) };
    let width = Width::read(flags(context, &loaded.recipe), selected.set.len());
    let each = plan::jobs::memory(&loaded.recipe, context.env);
    let jobs = plan::jobs(machine, each, &width, request.jobs, !request.no_launcher);
    if let Some(warning) = &jobs.warning {
        context.warn(&name, warning.as_str());
    }
    let inherited = plan::inherited(Some(&loaded.recipe), context.env, selected.inherited);
    let disks = site::disks(context);
    let compilers = site::compilers(&toolchain, context);
    let here = site::here(context.env);
    let site = Site {
        available: Some(&chosen.available),
        compilers: &compilers,
        reasons: &selected.why,
        gpus: here.as_ref().map(|here| here.gpus.clone()).unwrap_or_default(),
        here,
        disks: &disks,
        jobs: jobs.count,
    };
    let mut report = preflight::check(&loaded.recipe, &toolchain, &selected.set, &site);
    if site.gpus.is_empty() && report.problems.iter().any(|problem| problem.code() == support::UNSUPPORTED) {
        // What the driver says is worth the wait now: it may tell what was meant.
        let gpus = detect::detected(context).gpus.into_iter().map(|(capability, _)| capability).collect();
        report = preflight::check(&loaded.recipe, &toolchain, &selected.set, &Site { gpus, ..site });
    }
    let (problems, warnings) = plan::inherited::judge(&loaded.recipe, &toolchain, &inherited);
    report.problems.extend(problems);
    report.warnings.extend(warnings);
    report.warnings.extend(site::foreign_headers(&inherited, &toolchain));
    let environment =
        plan::environment(&loaded.recipe, &toolchain, &selected.set, jobs.count, context.env, selected.inherited);
    let environment = match environment {
        Ok(environment) => environment,
        Err(problems) => {
            // What torch's spelling cannot hold is often what torch refuses: said once.
            let new = problems.iter().filter(|new| report.problems.iter().all(|known| known.code() != new.code()));
            report.problems.extend(new.cloned().collect::<Vec<_>>());
            plan::Environment::default()
        }
    };
    for warning in &report.warnings {
        context.warn(&name, warning.as_str());
    }
    Problems::check(report.problems)?;
    for (variable, value) in &environment.cleared {
        context.warn(&name, format!("{variable}={value} of the environment does not reach the build"));
    }
    for one in inherited.iter().filter(|one| one.fate != Fate::Cleared) {
        context.note(&name, one.to_string());
    }
    let source = source::obtain(context, &name, known, &toolchain.python, &loaded.recipe.build, request)?;
    let inputs = key::inputs(&loaded.recipe, &toolchain, &selected.set, &source.digest, &environment.keyed);
    let json = cache::canonical_json(&inputs.to_json()).map_err(|error| bug(&error.to_string()))?;
    Ok(Prepared {
        key: cache::digest(&json),
        recipe: loaded.recipe,
        archs: selected.set,
        archs_why: selected.why,
        toolchain,
        toolchain_why: chosen.notes,
        considered: chosen.considered,
        source,
        environment,
        jobs,
        inputs,
        _leases: chosen.leases,
    })
}

/// The variables by which flags reach nvcc, the recipe's own before the caller's.
fn flags<'a>(context: &Context<'a>, recipe: &'a Recipe) -> impl Iterator<Item = (&'a str, &'a str)> {
    let set = &recipe.build.env;
    let value = move |name: &'static str| set.get(name).map(String::as_str).or_else(|| context.env.get(name));
    plan::NVCC_FLAGS.into_iter().filter_map(move |name| Some((name, value(name)?)))
}

/// What the torch of `toolchain` says it accepts, if it says so.
pub fn accepted(toolchain: &Toolchain) -> Option<&[String]> {
    Some(toolchain.torch.supported_archs.as_slice()).filter(|list| !list.is_empty())
}

fn bug(why: &str) -> Problem {
    Problem::new("cuwright::bug", Exit::Bug, "the cache key could not be computed").why(why).help("please report this")
}

/// The problems that no toolkit mends.
fn beyond_toolkit(problems: &Problems) -> Vec<Problem> {
    problems.iter().filter(|problem| problem.code() != targets::NEEDS_TOOLKIT).cloned().collect()
}

/// Whether some target is named by a word that only the chosen toolkit or torch can expand.
fn needs_toolkit(request: &Request, recipe: &Recipe) -> bool {
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

/// Chooses the toolchain for a recipe.
///
/// # Errors
/// No fitting toolchain, or a range that cannot be read.
pub fn choose(
    context: &Context<'_>,
    recipe: &Recipe,
    request: &Request,
    archs: Option<&ArchSet>,
) -> Result<toolchain::Choice, Problems> {
    let needs = &recipe.toolchain;
    let range = |flag: &str, asked: Option<&String>, own: &str| match asked {
        Some(text) => requirement::range(text).map_err(|why| not_a_range(flag, text, &why)),
        None => Ok(VersionSpecifiers::from_str(own).unwrap_or_default()),
    };
    let requirements = |list: &[String]| {
        list.iter()
            .map(|text| text.parse::<Requirement>().map_err(|error| not_a_requirement(text, &error.reason)))
            .collect::<Result<Vec<_>, _>>()
    };
    let wanted = toolchain::Request {
        python: request.python.clone(),
        cc: request.cc.clone(),
        archs: archs.cloned(),
        python_range: VersionSpecifiers::from_str(&needs.python).unwrap_or_default(),
        torch: range("--torch", request.torch.as_ref(), &needs.torch)?,
        cuda: range("--cuda", request.cuda.as_ref(), &needs.cuda)?,
        build_requires: requirements(&needs.build_requires)?,
        verify_requires: requirements(&recipe.verify.requires)?,
        offline: request.offline,
        install: !request.dry,
    };
    let mut watch = |event| context.step(&recipe.name, Stage::Toolchain, toolchain::words(&event));
    let chosen = toolchain::choose(&wanted, context.env, context.cache_root, &mut watch)?;
    let home = &chosen.toolchain.toolkit.home;
    let same = |path: &str| Utf8Path::new(path).canonicalize_utf8().ok() == home.canonicalize_utf8().ok();
    if let Some(asked) = context.env.get(CUDA_HOME).filter(|asked| !same(asked)) {
        let origin = &chosen.toolchain.toolkit.origin;
        context.warn(&recipe.name, format!("CUDA_HOME={asked} is not used; the toolkit is {origin} (`-v` says why)"));
    }
    for note in &chosen.notes {
        context.note(&recipe.name, note.as_str());
    }
    for warning in &chosen.warnings {
        context.warn(&recipe.name, warning.as_str());
    }
    Ok(chosen)
}

fn not_a_range(flag: &str, text: &str, why: &str) -> Problem {
    let (one, range) = if flag == "--cuda" { ("13.0", ">=12.4,<13") } else { ("2.11.0", ">=2.6,<3") };
    Problem::new("cuwright::usage::version_range", Exit::Usage, format!("`{flag} {text}` names no version"))
        .why(why)
        .help(format!("write a version or a range: `{flag} {one}`, `{flag} \"{range}\"`"))
}

fn not_a_requirement(text: &str, why: &str) -> Problem {
    Problem::new("cuwright::recipe::requirement", Exit::Recipe, format!("`{text}` is no requirement"))
        .why(why)
        .help("write it as pip takes it: `numpy`, `setuptools<81`")
}

/// A toolchain in one line.
pub fn describe(toolchain: &Toolchain) -> String {
    format!(
        "CUDA {} ({}), torch {}, Python {}, {} {}",
        toolchain.toolkit.nvcc,
        toolchain.toolkit.origin,
        toolchain.torch.version,
        toolchain.python.version,
        toolchain.host.cxx.file_name().unwrap_or("c++"),
        toolchain.host.version
    )
}

fn tell_targets(context: &Context<'_>, unit: &str, selected: &Selected) {
    let why = selected.why.join(", ");
    context.stage(unit, Stage::Targets, format!("{} ({why})", selected.set));
    for warning in &selected.warnings {
        context.warn(unit, warning.as_str());
    }
}
