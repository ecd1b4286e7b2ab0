//! For each recipe: what would be chosen, what would be brought, what is in the way.

use std::sync::Mutex;

use super::RecipeReport;
use crate::domain::exit::Exit;
use crate::domain::problem::Problems;
use crate::pipeline::env::no_recipe;
use crate::pipeline::{Context, Request, aim, load, plan, prepare, units};
use crate::provision;
use crate::report::{ErrorMessage, Event};
use crate::targets::{Facts, NO_TARGET};

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
        Err(problems) => report.refuse(&problems),
    }
    if report.archs.is_none() {
        report.archs = load::load(Some(name), context.env).ok().and_then(|loaded| archs(context, &loaded, request));
    }
    report
}

/// The targets, as far as they are known without a toolchain.
fn archs(context: &Context<'_>, loaded: &load::Loaded, request: &Request) -> Option<String> {
    aim::select(context, loaded, request, Facts::default()).ok().map(|selected| selected.set.to_string())
}

/// Everything that a plan asks, of a torch extension that is not there.
fn plain(context: &Context<'_>, request: &Request) -> RecipeReport {
    let mut loaded = no_recipe(context);
    "a torch extension".clone_into(&mut loaded.recipe.name);
    let request = Request { dry: true, ..request.clone() };
    let named = !request.archs.is_empty() || !request.gpus.is_empty();
    let no_target = |problems: &Problems| !named && problems.iter().all(|problem| problem.code() == NO_TARGET);
    let (mut open, mut archs) = (false, None);
    let (checked, warnings) = listening(context, |context| match prepare::check(context, &loaded, &request) {
        // Without a GPU and without a list, the question is whether anything at all can be built.
        Err(problems) if no_target(&problems) => {
            open = true;
            prepare::check(context, &loaded, &Request { archs: vec!["all".to_owned()], ..request.clone() })
        }
        checked => checked,
    });
    if !open {
        archs = self::archs(context, &loaded, &request);
    }
    let mut report = RecipeReport { archs, warnings, ..empty(&loaded.recipe.name) };
    match checked {
        Ok(checked) => {
            report.can_build = true;
            // Nobody asked for all archs, so what is said of them interests nobody.
            report.warnings.retain(|warning| !open || !checked.selected.warnings.contains(warning));
            report.toolchain = Some(prepare::describe(&checked.chosen.toolchain));
            report.why = checked.chosen.notes;
        }
        Err(problems) if problems.iter().all(|problem| problem.code() == provision::NOT_INSTALLED) => {
            report.can_build = true;
            report.missing = told(&problems);
        }
        Err(problems) => report.refuse(&problems),
    }
    report
}

fn told(problems: &Problems) -> Vec<ErrorMessage> {
    problems.iter().map(ErrorMessage::from).collect()
}

impl RecipeReport {
    fn refuse(&mut self, problems: &Problems) {
        self.problems = told(problems);
        self.exit = problems.exit();
    }
}

fn empty(name: &str) -> RecipeReport {
    RecipeReport {
        name: name.to_owned(),
        can_build: false,
        exit: Exit::Ok,
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
