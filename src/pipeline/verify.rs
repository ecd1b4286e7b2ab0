//! Verifies one wheel: unpack, coverage per file, import. Joins `verify`'s parts with a toolchain.

use std::collections::BTreeMap;

use camino::Utf8Path;

use super::Context;
use crate::domain::arch::ArchSet;
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::recipe::Recipe;
use crate::report::FileCoverage;
use crate::verify::found::{self, Depth, Found};
use crate::verify::{coverage, import, site};

/// What a verified wheel showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// What each judged file holds.
    pub files: Vec<FileCoverage>,
    /// What the import check printed.
    pub import_output: Vec<String>,
}

/// Verifies `wheel` against `requested` and imports it with `python`.
///
/// # Errors
/// Every violation at once; the import is tried only where the files are right.
pub fn wheel(
    context: &Context<'_>,
    recipe: &Recipe,
    requested: &ArchSet,
    python: &Utf8Path,
    env: &BTreeMap<String, String>,
    wheel: &Utf8Path,
) -> Result<Verified, Problems> {
    let scratch = tempfile::Builder::new().prefix("cuwright-verify-").tempdir().map_err(no_scratch)?;
    let root = Utf8Path::from_path(scratch.path()).ok_or_else(|| no_scratch("its path is not UTF-8"))?;
    let site = site::unpack(wheel, &root.join("site"))?;
    let read = |file| found::read(file, &file.name, Depth::Headers).map(|found| Found { in_wheel: true, ..found });
    let found = site.extensions.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let judgement = coverage::judge(&recipe.verify, requested, &found);
    for warning in &judgement.warnings {
        context.warn(&recipe.name, warning.as_str());
    }
    Problems::check(judgement.problems)?;
    let cwd = root.join("cwd");
    fs_err::create_dir_all(&cwd).map_err(no_scratch)?;
    let derived;
    let modules = if recipe.verify.import.is_empty() {
        derived = import::modules_of(&site);
        &derived
    } else {
        &recipe.verify.import
    };
    let import = import::Import {
        python,
        env: env.clone(),
        modules,
        check: recipe.verify.check.as_deref(),
        cwd: &cwd,
        with_torch: true,
    };
    let import_output = import::run(&import, &site)?;
    Ok(Verified { files: judgement.files, import_output })
}

fn no_scratch(why: impl std::fmt::Display) -> Problem {
    Problem::new("cuwright::verify::no_scratch", Exit::Verify, "there is no scratch folder to unpack the wheel in")
        .why(why.to_string())
        .help("free some space in the temporary folder, or point TMPDIR at another")
}
