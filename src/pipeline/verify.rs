//! Verifies one wheel: unpack, coverage per file, import. Joins `verify`'s parts with a toolchain.

use camino::Utf8Path;

use super::Context;
use crate::domain::arch::ArchSet;
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::recipe::Recipe;
use crate::report::FileCoverage;
use crate::verify::{coverage, import, site};

/// What a verified wheel showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// What each judged file holds.
    pub files: Vec<FileCoverage>,
    /// What the import check printed.
    pub import_output: Vec<String>,
}

/// Verifies `wheel` against `requested` and imports it with the Python that `checker` gives, unpacked in a folder `within`
/// the build's own: what a kill leaves there goes with the rest.
///
/// # Errors
/// Every violation at once; the import is tried only where the files are right.
pub fn wheel(
    context: &Context<'_>,
    recipe: &Recipe,
    requested: &ArchSet,
    checker: impl FnOnce() -> Result<import::Checker, Problem>,
    wheel: &Utf8Path,
    within: &Utf8Path,
) -> Result<Verified, Problems> {
    let scratch = tempfile::Builder::new().prefix("verify-").tempdir_in(within).map_err(no_scratch)?;
    let root = Utf8Path::from_path(scratch.path()).ok_or_else(|| no_scratch("its path is not UTF-8"))?;
    let site = site::unpack(wheel, &root.join("site"))?;
    let found = site.extensions.iter().map(coverage::read).collect::<Result<Vec<_>, _>>()?;
    let judgement = coverage::judge(&recipe.verify, requested, &found);
    for warning in &judgement.warnings {
        context.warn(&recipe.name, warning.as_str());
    }
    Problems::check(judgement.problems)?;
    let derived;
    let modules = if recipe.verify.import.is_empty() {
        derived = import::modules_of(&site);
        &derived
    } else {
        &recipe.verify.import
    };
    let import_output = import::run(checker()?, &site, modules, recipe.verify.check.as_deref())?;
    Ok(Verified { files: judgement.files, import_output })
}

fn no_scratch(why: impl std::fmt::Display) -> Problem {
    Problem::new("cuwright::verify::no_scratch", Exit::Verify, "there is no scratch folder to unpack the wheel in")
        .why(why.to_string())
        .help("free some space in the cache folder, or choose another with `--cache-dir DIR`")
}
