//! Verifies one artifact: unpack a wheel, coverage per file, import. Joins `verify`'s parts with a toolchain.

use camino::Utf8Path;

use super::made::Made;
use super::{Context, gpu_check};
use crate::domain::arch::ArchSet;
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::domain::toolchain::Toolchain;
use crate::plan;
use crate::probe::gpu;
use crate::recipe::Recipe;
use crate::report::summary::Kind;
use crate::report::{FileCoverage, GpuCheck};
use crate::verify::found::{self, Depth, Found};
use crate::verify::outcome::{Finding, Level};
use crate::verify::site::{self, Site};
use crate::verify::{abi, coverage, import, wheel};

/// What a verified artifact showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// What each judged file holds.
    pub files: Vec<FileCoverage>,
    /// What the import check printed.
    pub import_output: Vec<String>,
    /// The recipe's check on a GPU, if it has one.
    pub gpu_check: Option<GpuCheck>,
}

/// Verifies `made` against `requested`, looks at what it links, and imports it with the Python that `checker` gives. A wheel is
/// unpacked in a folder `within` the build's own: what a kill leaves there goes with the rest.
///
/// Whether it loads is shown by the import; what its tables say explains a failure, and warns where it works here only.
///
/// # Errors
/// Every violation at once; the import is tried only where the files are right.
pub fn artifact(
    context: &Context<'_>,
    recipe: &Recipe,
    requested: &ArchSet,
    toolchain: &Toolchain,
    checker: impl FnOnce() -> Result<import::Checker, Problem>,
    made: &Made,
    within: &Utf8Path,
) -> Result<Verified, Problems> {
    let scratch = tempfile::Builder::new().prefix("verify-").tempdir_in(within).map_err(no_scratch)?;
    let root = Utf8Path::from_path(scratch.path()).ok_or_else(|| no_scratch("its path is not UTF-8"))?;
    let site = match made {
        Made::Wheel(wheel) => site::unpack(wheel, &root.join("site"))?,
        Made::Tree { root, files, .. } => site::of_tree(root, files),
    };
    // Globs of a recipe name whole paths, in a tree as in a wheel.
    let read = |file| found::read(file, &file.name, Depth::Headers).map(|found| Found { in_wheel: true, ..found });
    let found = site.extensions.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let judgement = coverage::judge(&recipe.verify, requested, &found);
    for warning in &judgement.warnings {
        context.warn(&recipe.name, warning.as_str());
    }
    Problems::check(judgement.problems)?;
    let mut interfaces = interfaces(&site, toolchain, made);
    if let Made::Wheel(path) = made {
        let facts = wheel::facts(path.file_name().unwrap_or_default(), &site.root, &site.extensions);
        interfaces.extend(wheel::judge(&facts, wheel::Beside::of(Some(&toolchain.torch))));
    }
    for finding in interfaces.iter().filter(|finding| finding.level == Level::Warning) {
        context.warn(&recipe.name, finding.message.message.as_str());
    }
    let derived = || if made.kind() == Kind::Wheel { import::modules_of(&site) } else { Vec::new() };
    let modules = recipe.verify.import.clone().unwrap_or_else(derived);
    let setting = gpu_check::Setting {
        verify: &recipe.verify,
        found: &found,
        python: &toolchain.python.executable,
        env: plan::of_import(toolchain, context.env),
        within: Some(within),
        site: &site,
        modules: &modules,
    };
    let import = || {
        if modules.is_empty() && recipe.verify.check.is_none() {
            return Ok(Vec::new());
        }
        import::run(checker()?, &site, &modules, recipe.verify.check.as_deref())
    };
    let (imported, on_gpu) = gpu_check::beside(setting, || gpu::detect(context.env), import);
    let import_output = imported.map_err(|failure| explained(&interfaces, failure))?;
    // An import that works, or that nobody asked for, excuses nothing: `verify` would refuse the same file.
    let errors = interfaces.iter().filter(|finding| finding.level == Level::Error);
    Problems::check(errors.map(|finding| finding.problem.clone()).collect())?;
    let gpu_check = match on_gpu? {
        Some((_, Some(problem))) => return Err(problem.into()),
        ran => ran.map(|(check, _)| check),
    };
    Ok(Verified { files: judgement.files, import_output, gpu_check })
}

/// What is amiss with the way the files link.
fn interfaces(site: &Site, toolchain: &Toolchain, made: &Made) -> Vec<Finding> {
    let files: Vec<_> = site.extensions.iter().map(|file| (file.name.clone(), file.path.clone())).collect();
    let against = abi::Against {
        wheel: made.file().file_name().filter(|_| made.kind() == Kind::Wheel),
        torch: Some(&toolchain.torch),
        site_dirs: &toolchain.python.site_dirs,
        system: &[],
    };
    abi::judge(&files, &against).into_iter().flat_map(|(_, findings)| findings).collect()
}

/// A failed import, after what the tables of the files say is wrong.
fn explained(interfaces: &[Finding], failure: Problem) -> Problems {
    let errors = interfaces.iter().filter(|finding| finding.level == Level::Error);
    let mut all: Vec<Problem> = errors.map(|finding| finding.problem.clone()).collect();
    all.push(failure.clone());
    Problems::check(all).err().unwrap_or_else(|| failure.into())
}

fn no_scratch(why: impl std::fmt::Display) -> Problem {
    Problem::new("cuwright::verify::no_scratch", Exit::Verify, "there is no scratch folder to unpack the wheel in")
        .why(why.to_string())
        .help("free some space in the cache folder, or choose another with `--cache-dir DIR`")
}
