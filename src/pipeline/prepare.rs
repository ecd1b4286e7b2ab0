//! One unit up to its key: targets, toolchain, preflight, source, environment. Compiles nothing.

use std::str::FromStr as _;

use cache::Key;
use camino::Utf8Path;
use pep440_rs::VersionSpecifiers;

use super::aim::{self, Early, Versions};
use super::load::Loaded;
use super::{Context, Request, detect, identity, site, source, toolchain};
use crate::build::{bazel, patch};
use crate::compat::support::{self, Compiler};
use crate::domain::arch::ArchSet;
use crate::domain::arch::dialect::Consumer;
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::domain::requirement::Requirement;
use crate::domain::toolchain::{Considered, Toolchain};
use crate::key::{self, Identity, KeyInputs};
use crate::plan::jobs::{Machine, Width};
use crate::plan::{self, Environment, Fate, Jobs};
use crate::preflight::{self, Site};
use crate::probe::facts;
use crate::recipe::{Backend, Recipe};
use crate::report::Stage;
use crate::source::Tree;
use crate::sys::env_vars::CUDA_HOME;
use crate::sys::lock::Lock;
use crate::sys::machine;
use crate::targets::{Facts, Selected};

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
    let early = aim::early(context, &loaded, request)?;
    patch::program(&loaded.recipe.patches, context.env)?;
    if loaded.recipe.build.backend == Backend::Bazel {
        bazel::program(context.env)?;
    }
    let known = source::known(&loaded)?;
    let Checked { selected, chosen, environment, jobs } = checked(context, &loaded, request, early)?;
    let toolchain = chosen.toolchain;
    let source = source::obtain(context, &name, known, &toolchain.python, &loaded.recipe.build, request)?;
    let facts = facts::Facts::new(Some(context.cache_root));
    let identity = Identity {
        tools: identity::tools(&toolchain, &facts, context.cache_root),
        packages: identity::packages(&toolchain, &facts),
    };
    let inputs = key::inputs(&loaded.recipe, &toolchain, &selected.set, &source.digest, &environment.keyed, identity);
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

/// A unit whose targets, toolchain and environment go together; its source is not looked at.
#[derive(Debug)]
pub struct Checked {
    /// The targets.
    pub selected: Selected,
    /// The toolchain.
    pub chosen: toolchain::Choice,
    /// The build's environment.
    pub environment: Environment,
    /// How many compile jobs.
    pub jobs: Jobs,
}

/// Asks everything that a plan asks of a unit, but for its source.
///
/// # Errors
/// Everything that is knowable without a source.
pub fn check(context: &Context<'_>, loaded: &Loaded, request: &Request) -> Result<Checked, Problems> {
    checked(context, loaded, request, aim::early(context, loaded, request)?)
}

fn checked(context: &Context<'_>, loaded: &Loaded, request: &Request, early: Early) -> Result<Checked, Problems> {
    let name = &loaded.recipe.name;
    let Early { selected: early, bound } = early;
    let archs = early.as_ref().map(|selected| &selected.set);
    let chosen = choose(context, &loaded.recipe, request, archs)?;
    let toolchain = &chosen.toolchain;
    context.stage(name, Stage::Toolchain, describe(toolchain));
    // Who does not read torch's list is not bound by it.
    let with_torch = loaded.recipe.build.archs.has(Consumer::Torch);
    let facts = Facts {
        compiler: Some(Compiler { version: toolchain.toolkit.nvcc, gpu_codes: toolchain.toolkit.codes() }),
        torch: Some(toolchain.torch.version.as_str()).filter(|_| with_torch),
        torch_accepts: accepted(toolchain).filter(|_| with_torch),
    };
    let selected = match early {
        Some(selected) if !aim::needs_toolkit(request, &loaded.recipe) => selected,
        _ => aim::select(context, loaded, request, facts)?,
    };
    tell_targets(context, name, &selected);
    for missing in &chosen.unmet {
        context.warn(name, format!("the import check needs {missing}, which {} lacks", toolchain.python.executable));
    }
    let machine = Machine { cores: machine::cores(), memory: machine::available_memory(context.env) };
    let width = Width::read(flags(context, &loaded.recipe), selected.set.len());
    let each = plan::jobs::memory(&loaded.recipe, context.env);
    let jobs = plan::jobs(machine, each, &width, bound, !request.no_launcher);
    if let Some(warning) = &jobs.warning {
        context.warn(name, warning.as_str());
    }
    let inherited = plan::inherited(Some(&loaded.recipe), context.env, selected.inherited, request.jobs.is_some());
    let disks = site::disks(context);
    let compilers = site::compilers(toolchain, context);
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
    let mut report = preflight::check(&loaded.recipe, toolchain, &selected.set, &site);
    if site.gpus.is_empty() && report.problems.iter().any(|problem| problem.code() == support::UNSUPPORTED) {
        // What the driver says is worth the wait now: it may tell what was meant.
        let gpus = detect::detected(context).gpus.into_iter().map(|(capability, _)| capability).collect();
        report = preflight::check(&loaded.recipe, toolchain, &selected.set, &Site { gpus, ..site });
    }
    let (problems, warnings) = plan::inherited::judge(&loaded.recipe, toolchain, &inherited);
    report.problems.extend(problems);
    report.warnings.extend(warnings);
    report.warnings.extend(site::foreign_headers(&inherited, toolchain));
    let environment =
        plan::environment(&loaded.recipe, toolchain, &selected.set, jobs.count, context.env, selected.inherited);
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
        context.warn(name, warning.as_str());
    }
    Problems::check(report.problems)?;
    for (variable, value) in &environment.cleared {
        context.warn(name, format!("{variable}={value} of the environment does not reach the build"));
    }
    let told = |one: &&plan::Inherited| environment.cleared.iter().any(|(name, _)| *name == one.name);
    for one in inherited.iter().filter(|one| one.fate != Fate::Cleared || !told(one)) {
        context.note(name, one.to_string());
    }
    Ok(Checked { selected, chosen, environment, jobs })
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
    let Versions { torch, cuda } = aim::versions(request)?;
    let range = |asked: Option<VersionSpecifiers>, own: &str| {
        asked.unwrap_or_else(|| VersionSpecifiers::from_str(own).unwrap_or_default())
    };
    // The recipe's own were judged when it was read.
    let requirements = |list: &[String]| list.iter().filter_map(|text| text.parse::<Requirement>().ok()).collect();
    let wanted = toolchain::Request {
        python: request.python.clone(),
        cc: request.cc.clone(),
        archs: archs.cloned(),
        python_range: VersionSpecifiers::from_str(&needs.python).unwrap_or_default(),
        torch: range(torch, &needs.torch),
        cuda: range(cuda, &needs.cuda),
        build_requires: requirements(&needs.build_requires),
        verify_requires: requirements(&recipe.verify.requires),
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
