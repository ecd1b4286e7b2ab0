//! What `build` would do, as one document. Installs, fetches and compiles nothing.
//!
//! Where the toolchain or the source is not on this machine yet, the document says what would be brought, and leaves
//! out what only they can tell: environment, command and key.

use serde::Serialize;

use super::artifact::Artifacts;
use super::units::Unit;
use super::{Context, Request, aim, prepare, source};
use crate::build::folder::BuildFolder;
use crate::domain::problem::Problems;
use crate::domain::toolchain::Considered;
use crate::plan::{self, Step};
use crate::provision;
use crate::recipe::matrix::Axis;
use crate::report::ErrorMessage;
use crate::targets::Facts;

/// The plan of one unit.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct PlanDocument {
    /// Unit: the package, and with a matrix its cell.
    pub unit: String,
    /// Package.
    pub package: String,
    /// Values of the cell of a matrix, by axis.
    pub cell: std::collections::BTreeMap<String, String>,
    /// The constraint that nothing satisfies together with this cell; everything else is empty then.
    pub pruned: Option<String>,
    /// Where the recipe came from.
    pub recipe: String,
    /// How far the recipe was tried, where it says so.
    pub tried: Option<String>,
    /// The recipe's text, where it was inferred.
    pub inferred: Option<String>,
    /// What a build of this cell would be refused for on this machine; without a matrix, that is an error instead.
    pub refused: Vec<ErrorMessage>,
    /// Canonical arch set.
    pub archs: String,
    /// Why these archs.
    pub archs_why: Vec<String>,
    /// The toolchain in one line, where it is on this machine.
    pub toolchain: Option<String>,
    /// Why this toolchain, or what would be installed.
    pub toolchain_why: Vec<String>,
    /// Every toolkit, Python and host compiler that was looked at, taken or not, and why.
    pub considered: Vec<Considered>,
    /// What a build needs first.
    pub missing: Vec<ErrorMessage>,
    /// The rest, where everything is here.
    pub ready: Option<Ready>,
}

/// The part of a plan that needs toolchain and source.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Ready {
    /// Interpreter of the toolchain, which runs setup.py.
    pub python: String,
    /// Source tree digest.
    pub source: String,
    /// Compile jobs and why.
    pub jobs: String,
    /// Variables that are set, beside the neutral ones.
    pub environment: std::collections::BTreeMap<String, String>,
    /// Inherited arch variables that do not reach the build.
    pub cleared: std::collections::BTreeMap<String, String>,
    /// The build commands, one a line, ready to paste.
    pub command: String,
    /// What they leave, and where.
    pub outputs: String,
    /// Cache key.
    pub key: String,
    /// Whether the cache holds it.
    pub hit: bool,
    /// Why not: what has changed since it was built, or how the nearest artifact of the package differs.
    pub why: Option<String>,
    /// Why the artifact in the cache is valid on this machine only; empty where it is not in the cache.
    pub local: Vec<String>,
}

/// Codes of what a build would bring by itself.
const NOT_HERE: [&str; 2] = [provision::NOT_INSTALLED, source::NOT_FETCHED];

/// Plans one unit.
///
/// # Errors
/// What a build would be refused for.
pub fn document(context: &Context<'_>, unit: &Unit) -> Result<PlanDocument, Problems> {
    let Unit { loaded, request, .. } = unit;
    let name = loaded.recipe.name.clone();
    let mut document = blank(unit);
    if document.pruned.is_some() {
        return Ok(document);
    }
    let prepared = match prepare::prepare(context, loaded.clone(), &Request { dry: true, ..request.clone() }) {
        Ok(prepared) => prepared,
        Err(problems) if problems.iter().all(|problem| NOT_HERE.contains(&problem.code())) => {
            // Only numbers can be told without a toolkit; a word that needs one stays for later.
            if let Ok(selected) = aim::select(context, loaded, request, Facts::default()) {
                document.archs = selected.set.to_string();
                document.archs_why = selected.why;
            }
            document.missing = problems.iter().map(ErrorMessage::from).collect();
            return Ok(document);
        }
        Err(problems) => return Err(problems),
    };
    let folder = BuildFolder::of(context.cache_root, &name, prepared.key.as_str());
    let environment = &prepared.environment;
    let (jobs, places) = (prepared.jobs.count, folder.places());
    let commands = plan::commands(&prepared.recipe, &prepared.toolchain, environment, jobs, places, context.env);
    let steps: Vec<&Step> = commands.steps.iter().chain(&commands.last).collect();
    let shown = |variable: &str| prepared.environment.shown.iter().any(|name| name == variable);
    let artifacts = Artifacts::open(context, &name);
    let inputs = prepared.inputs.to_json();
    let found = artifacts.get(context, &prepared);
    let hit = found.is_ok();
    let (local, stale) = match found {
        Ok(cached) => (cached.summary.local, None),
        Err(why) => (Vec::new(), why),
    };
    document.archs = prepared.archs.to_string();
    document.archs_why.clone_from(&prepared.archs_why);
    document.toolchain = Some(prepare::describe(&prepared.toolchain));
    document.toolchain_why.clone_from(&prepared.toolchain_why);
    document.considered.clone_from(&prepared.considered);
    document.ready = Some(Ready {
        python: prepared.toolchain.python.executable.to_string(),
        source: prepared.source.digest.clone(),
        jobs: prepared.jobs.why.clone(),
        environment: environment.variables.clone().into_iter().filter(|(name, _)| shown(name)).collect(),
        cleared: prepared.environment.cleared.iter().cloned().collect(),
        command: steps.iter().map(|step| step.command.paste(shown)).collect::<Vec<_>>().join("\n"),
        outputs: commands.outputs.to_string(),
        key: prepared.key.to_string(),
        hit,
        why: if hit { None } else { stale.or_else(|| artifacts.why(&name, &inputs)) },
        local,
    });
    Ok(document)
}

/// The plan of a cell that a build would be refused for here.
pub fn refused(unit: &Unit, problems: &Problems) -> PlanDocument {
    PlanDocument { refused: problems.iter().map(ErrorMessage::from).collect(), ..blank(unit) }
}

/// A plan of which nothing but the unit is known.
fn blank(unit: &Unit) -> PlanDocument {
    let loaded = &unit.loaded;
    let value = |axis: Axis| Some((axis.name().to_owned(), unit.cell.get(axis)?.to_owned()));
    PlanDocument {
        unit: unit.id.clone(),
        package: loaded.recipe.name.clone(),
        cell: Axis::ALL.into_iter().filter_map(value).collect(),
        pruned: unit.pruned.clone(),
        recipe: loaded.origin.clone(),
        tried: loaded.recipe.tried.as_ref().map(ToString::to_string),
        inferred: loaded.inferred.then(|| loaded.text.clone()),
        refused: Vec::new(),
        archs: String::new(),
        archs_why: Vec::new(),
        toolchain: None,
        toolchain_why: Vec::new(),
        considered: Vec::new(),
        missing: Vec::new(),
        ready: None,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_plan_schema_is_what_the_code_says() {
        crate::schema_check::<Vec<super::PlanDocument>>("schemas/plan.schema.json");
    }
}
