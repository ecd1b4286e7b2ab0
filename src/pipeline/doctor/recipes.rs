//! For each recipe: what would be chosen, what would be brought, what is in the way.

use std::sync::Mutex;

use super::RecipeReport;
use crate::domain::problem::Problems;
use crate::pipeline::env::no_recipe;
use crate::pipeline::{Context, Request, load, plan, prepare, units};
use crate::provision;
use crate::recipe::Recipe;
use crate::report::{ErrorMessage, Event};
use crate::targets::Facts;

/// The recipes that are named, or the plain toolchain where none is.
pub(super) fn all(context: &Context<'_>, names: &[String], request: &Request) -> Vec<RecipeReport> {
    if names.is_empty() {
        return vec![plain(context, request)];
    }
    names.iter().map(|name| one(context, name, request)).collect()
}

fn one(context: &Context<'_>, name: &str, request: &Request) -> RecipeReport {
    let (document, warnings) = listening(context, |context| {
        let loaded = load::load(Some(name), context.env)?;
        let found = units::plain(vec![loaded], request);
        found.units.iter().map(|unit| plan::document(context, unit)).collect::<Result<Vec<_>, _>>()
    });
    let mut report = RecipeReport { warnings, ..empty(name) };
    match document {
        Ok(documents) => {
            let Some(document) = documents.into_iter().next() else { return report };
            report.can_build = true;
            report.archs = Some(document.archs).filter(|archs| !archs.is_empty());
            report.toolchain = document.toolchain;
            report.why = document.toolchain_why;
            report.missing = document.missing;
        }
        Err(problems) => report.problems = problems.iter().map(ErrorMessage::from).collect(),
    }
    if report.archs.is_none() {
        report.archs = load::load(Some(name), context.env).ok().and_then(|loaded| archs(context, &loaded, request));
    }
    report
}

/// The targets, as far as they are known without a toolchain.
fn archs(context: &Context<'_>, loaded: &load::Loaded, request: &Request) -> Option<String> {
    prepare::select(context, loaded, request, Facts::default()).ok().map(|selected| selected.set.to_string())
}

/// Torch and toolkit alone.
fn plain(context: &Context<'_>, request: &Request) -> RecipeReport {
    let recipe = Recipe::without_source("a torch extension");
    let request = Request { dry: true, ..request.clone() };
    let (chosen, warnings) = listening(context, |context| prepare::choose(context, &recipe, &request, None));
    let archs = (!request.archs.is_empty() || !request.gpus.is_empty())
        .then(|| archs(context, &no_recipe(context), &request))
        .flatten();
    let mut report = RecipeReport { archs, warnings, ..empty(&recipe.name) };
    match chosen {
        Ok(chosen) => {
            report.can_build = true;
            report.toolchain = Some(prepare::describe(&chosen.toolchain));
            report.why = chosen.notes;
        }
        Err(problems) => {
            let told = || problems.iter().map(ErrorMessage::from).collect();
            report.can_build = problems.iter().all(|problem| problem.code() == provision::NOT_INSTALLED);
            if report.can_build {
                report.missing = told();
            } else {
                report.problems = told();
            }
        }
    }
    report
}

fn empty(name: &str) -> RecipeReport {
    RecipeReport {
        name: name.to_owned(),
        can_build: false,
        archs: None,
        toolchain: None,
        why: Vec::new(),
        missing: Vec::new(),
        problems: Vec::new(),
        warnings: Vec::new(),
    }
}

/// Runs `work` and keeps its warnings instead of telling them.
fn listening<T>(
    context: &Context<'_>,
    work: impl FnOnce(&Context<'_>) -> Result<T, Problems>,
) -> (Result<T, Problems>, Vec<String>) {
    let warnings = Mutex::new(Vec::new());
    let tell = |event: Event| {
        if let (Event::Warning { text, .. }, Ok(mut warnings)) = (event, warnings.lock()) {
            warnings.push(text);
        }
    };
    let result = work(&Context { tell: &tell, ..*context });
    (result, warnings.into_inner().unwrap_or_default())
}
